//! Judgement of answers from canisters, and figures collected from them during a load.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};

use plimsoll_core::ErrorClass;
use plimsoll_ic::answer::{Reject, RequestStatus, request_status};
use plimsoll_ic::{Answer, RequestId};
use plimsoll_plan::Plan;
use plimsoll_scenario::{Judge, Judgement, Received};

/// Figures that all workers collect from the answers of canisters. Certificates are not verified within the
/// load, because each takes about a millisecond. Instead, a sample of them is handed to a verifier.
#[derive(Default)]
pub struct CanisterNotes {
    /// The highest counter in a reply, plus one; 0 without any.
    highest: AtomicU64,
    /// Bytes of all replies, as canisters have made them.
    payload: AtomicU64,
    samples: OnceLock<Samples>,
    /// Certificates chosen for the sample that were dropped because the verifier had no room.
    skipped: AtomicU64,
}

/// Selection of certificates to verify, and the channel to their verifier.
struct Samples {
    /// Calls whose id begins with a number up to this one are sampled: a share of all calls, and the same
    /// calls for all of their answers.
    below: u64,
    send: SyncSender<CertificateSample>,
}

/// A certificate that is to be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSample {
    /// The call whose state it shows.
    pub id: RequestId,
    /// The certificate.
    pub certificate: Vec<u8>,
}

impl fmt::Debug for CanisterNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CanisterNotes").field("highest", &self.highest()).finish_non_exhaustive()
    }
}

impl CanisterNotes {
    /// The notes of the judges of a plan; empty ones if it asks no canister.
    pub fn of(plan: &Plan) -> Arc<Self> {
        let mut judges = plan.steps.iter().filter_map(|step| step.handler.judge());
        judges.find_map(Self::of_judge).unwrap_or_default()
    }

    /// The notes of a judge, if it is one of canisters.
    pub(super) fn of_judge(judge: &dyn Judge) -> Option<Arc<Self>> {
        let judge: &dyn Any = judge;
        judge.downcast_ref::<CanisterJudge>().map(|judge| Arc::clone(&judge.notes))
    }

    /// The highest counter that a reply had: replies of four or eight bytes are counters, little-endian.
    pub fn highest(&self) -> Option<u64> {
        self.highest.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Bytes of all replies so far, without certificates and other envelopes.
    pub fn payload(&self) -> u64 {
        self.payload.load(Ordering::Relaxed)
    }

    /// Hands a share (0 to 1) of all certificates to a verifier from now on. Certificates for which it has no
    /// room are [skipped](Self::skipped). Only the first call has an effect.
    pub fn sample(&self, share: f64, send: SyncSender<CertificateSample>) {
        // A share of one is all of them: the conversion saturates.
        let below = (share * u64::MAX as f64) as u64;
        let _ = self.samples.set(Samples { below, send });
    }

    /// Certificates chosen for the sample for which there was no room.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    fn replied(&self, reply: &[u8]) {
        if !reply.is_empty() {
            self.payload.fetch_add(reply.len() as u64, Ordering::Relaxed);
        }
        let counter = match reply.len() {
            4 => u64::from(u32::from_le_bytes(reply.try_into().unwrap_or_default())),
            8 => u64::from_le_bytes(reply.try_into().unwrap_or_default()),
            _ => return,
        };
        // Usually another worker has seen a higher one, and nothing is written.
        if self.highest.load(Ordering::Relaxed) <= counter {
            self.highest.fetch_max(counter.saturating_add(1), Ordering::Relaxed);
        }
    }

    fn certified(&self, id: RequestId, certificate: &[u8]) {
        let Some(samples) = self.samples.get() else { return };
        let [first, ..] = id.0.as_chunks::<8>().0 else { return };
        if u64::from_be_bytes(*first) > samples.below {
            return;
        }
        let sample = CertificateSample { id, certificate: certificate.to_vec() };
        if let Err(TrySendError::Full(_)) = samples.send.try_send(sample) {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Kind of request to a canister.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Query,
    Update,
    /// A query for the status of an update.
    State,
}

impl CallKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Update => "update",
            Self::State => "state",
        }
    }
}

/// Returns the judges of the answers to a query, to an update, and to a query for the status of an update:
/// for tests with hostile answers.
pub fn judges(notes: &Arc<CanisterNotes>) -> [Arc<dyn Judge>; 3] {
    [CallKind::Query, CallKind::Update, CallKind::State]
        .map(|asked| Arc::new(CanisterJudge::new(asked, Arc::clone(notes))) as Arc<dyn Judge>)
}

/// Judges the answers of replicas.
#[derive(Debug)]
pub(super) struct CanisterJudge {
    asked: CallKind,
    notes: Arc<CanisterNotes>,
}

impl CanisterJudge {
    pub(super) const fn new(asked: CallKind, notes: Arc<CanisterNotes>) -> Self {
        Self { asked, notes }
    }

    /// Judges a call by the status that a certificate shows for it.
    fn state(&self, certificate: &[u8], id: Option<&[u8; 32]>) -> Judgement {
        let Some(id) = id.map(|id| RequestId(*id)) else { return GARBAGE };
        let Ok(status) = request_status(certificate, &id) else { return GARBAGE };
        if status.is_final() {
            self.notes.certified(id, certificate);
        }
        match status {
            RequestStatus::Replied { reply } => {
                self.notes.replied(reply);
                Judgement::Good
            }
            RequestStatus::Rejected(_) => Judgement::Failed(ErrorClass::Rejected),
            // The call was carried out, but its result is no longer known.
            RequestStatus::Done => GARBAGE,
            RequestStatus::Unknown | RequestStatus::Received | RequestStatus::Processing => {
                Judgement::Pending
            }
        }
    }
}

/// The judgement of a reply that does not answer the request.
const GARBAGE: Judgement = Judgement::Failed(ErrorClass::Check);

impl Judge for CanisterJudge {
    fn judge(&self, received: &Received<'_>) -> Judgement {
        let Received { body, id, .. } = received;
        match (self.asked, Answer::read(body)) {
            (CallKind::Query, Ok(Answer::Replied { arg })) => {
                self.notes.replied(arg);
                Judgement::Good
            }
            (CallKind::Query | CallKind::Update, Ok(Answer::Rejected(_))) => {
                Judgement::Failed(ErrorClass::Rejected)
            }
            (CallKind::Update, Ok(Answer::Accepted)) => Judgement::Pending,
            (CallKind::Update | CallKind::State, Ok(Answer::Certified { certificate })) => {
                self.state(certificate, id.as_ref())
            }
            _ => GARBAGE,
        }
    }

    fn needs_id(&self) -> bool {
        self.asked != CallKind::Query
    }

    fn describe(&self, received: &Received<'_>) -> String {
        let Received { body, id, .. } = received;
        let asked = self.asked.name();
        match Answer::read(body) {
            Err(error) => format!("the response is not an answer to a {asked}: {error}"),
            Ok(Answer::Rejected(reject)) => rejected(&reject),
            Ok(Answer::Certified { certificate }) if self.asked != CallKind::Query => {
                match request_status(certificate, &RequestId(id.unwrap_or_default())) {
                    Err(error) => format!("the certificate cannot be read: {error}"),
                    Ok(RequestStatus::Rejected(reject)) => rejected(&reject),
                    Ok(RequestStatus::Done) => {
                        "the call was carried out, and its outcome is no longer kept".to_owned()
                    }
                    Ok(_) => "the certificate shows no state of the call".to_owned(),
                }
            }
            Ok(Answer::Accepted) => format!("an empty answer to a {asked}"),
            Ok(Answer::Replied { .. } | Answer::Certified { .. }) => {
                format!("the answer does not belong to a {asked}")
            }
        }
    }
}

/// A rejection in words.
fn rejected(reject: &Reject<'_>) -> String {
    let Reject { code, message, error_code } = reject;
    match error_code {
        Some(error_code) => format!("rejected with code {code} ({error_code}): {message}"),
        None => format!("rejected with code {code}: {message}"),
    }
}
