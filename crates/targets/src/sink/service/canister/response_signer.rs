//! Where the answers of a replica are written: one for each thread.

use plimsoll_core::{Nanos, Random};
use plimsoll_ic::RequestId;
use plimsoll_ic::reply::{
    NodeSigning, QueryResult, write_call, write_call_rejection, write_query, write_read_state, write_status,
};
use plimsoll_ic::witness::{Outcome, Round};

use super::{Call, CanisterRequest, Subnet, not_found, now_ns};
use crate::sink::event_queue::PendingReply;
use crate::sink::law::Intent;
use crate::sink::truth::Action;

/// Separates the draw for "has to ask for its certificate" from that of the fates, which have the same seed.
const ACCEPTED: u64 = 0x6163_6365_7074_6564;
/// Separates the draw of the bytes of answers without a meaning from that of the fates, which have the same
/// seed.
const GARBAGE: u64 = 0x6761_7262_6167_6521;
/// Longest garbage answer, in bytes.
const MOST_GARBAGE: u64 = 64;

/// Writes the answers of one thread.
///
/// Answers that are due at the same time are gathered, [certified](Self::certify) under one signature, which
/// takes about 0.14 ms, and then answered one by one.
#[derive(Debug, Default)]
pub(crate) struct ResponseSigner {
    round: Option<Round>,
    /// The calls of the round that were rejected.
    rejected: Vec<RequestId>,
    certificate: Vec<u8>,
    body: Vec<u8>,
}

/// An answer, up to its form.
#[derive(Debug)]
pub(crate) struct Written<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
    pub(crate) action: Action,
}

impl ResponseSigner {
    /// Carries out the gathered calls whose clients wait for a certificate, and signs for all of them, and
    /// for clients that ask for the fate of a call.
    pub(crate) fn certify<'a>(
        &mut self,
        subnet: &Subnet,
        seed: u64,
        gathered: impl Iterator<Item = (&'a CanisterRequest, &'a PendingReply)>,
    ) {
        let now_ns = now_ns();
        let mut calls: Vec<(RequestId, Outcome)> = Vec::new();
        self.rejected.clear();
        for (asked, due) in gathered {
            match (asked, due.intent) {
                (CanisterRequest::Update { call, synchronous }, Intent::Reply | Intent::Reject)
                    if is_synchronous(subnet, *synchronous, seed, due.number)
                        && !is_refused(subnet, call) =>
                {
                    let outcome = subnet.execute(call, due.intent == Intent::Reject, now_ns);
                    if action_of(&outcome) == Action::Rejected {
                        self.rejected.push(call.id);
                    }
                    calls.push((call.id, outcome));
                }
                (CanisterRequest::Fate(id), Intent::Reply | Intent::Reject) => {
                    calls.push((*id, subnet.status(id, now_ns)));
                }
                _ => {}
            }
        }
        self.round = (!calls.is_empty()).then(|| Round::sign(&subnet.authority, now_ns, calls));
    }

    /// Answers request `number`.
    pub(crate) fn answer(
        &mut self,
        subnet: &Subnet,
        asked: &CanisterRequest,
        intent: Intent,
        seed: u64,
        number: u64,
    ) -> Written<'_> {
        self.body.clear();
        let now_ns = now_ns();
        let rejected = intent == Intent::Reject;
        let (status, action) = match asked {
            _ if intent == Intent::Garbage => {
                put_garbage(seed, number, &mut self.body);
                (200, Action::Garbage)
            }
            CanisterRequest::Status => {
                let key = subnet.authority.public_key_der();
                write_status(key, subnet.health(now_ns), &mut self.body);
                (200, Action::Replied)
            }
            CanisterRequest::Query(call) => {
                let signing = NodeSigning { node: &subnet.node, id: call.id, timestamp_ns: now_ns };
                let signing = subnet.options.sign_queries.then_some(signing);
                let outcome = subnet.query(call, rejected);
                let (result, action) = match &outcome {
                    Outcome::Rejected(why) => (QueryResult::Rejected(why.reject()), Action::Rejected),
                    Outcome::Replied(reply) => (QueryResult::Replied(reply), Action::Replied),
                    Outcome::Unknown | Outcome::Received | Outcome::Processing => {
                        (QueryResult::Replied(&[]), Action::Replied)
                    }
                };
                write_query(result, signing, &mut self.body);
                (200, action)
            }
            CanisterRequest::Update { call, .. } if is_refused(subnet, call) => {
                write_call_rejection(not_found(&call.canister).reject(), &mut self.body);
                (200, Action::Rejected)
            }
            CanisterRequest::Update { call, synchronous }
                if is_synchronous(subnet, *synchronous, seed, number) =>
            {
                write_call(show(self.round.as_ref(), &call.id, &mut self.certificate), &mut self.body);
                let rejected = self.rejected.contains(&call.id);
                (200, if rejected { Action::Rejected } else { Action::Replied })
            }
            CanisterRequest::Update { call, .. } => {
                let Nanos(ready_ns) = Nanos(now_ns) + subnet.options.processing;
                (202, action_of(&subnet.execute(call, rejected, ready_ns)))
            }
            CanisterRequest::Fate(id) => {
                write_read_state(show(self.round.as_ref(), id, &mut self.certificate), &mut self.body);
                (200, Action::Replied)
            }
            CanisterRequest::State(shown) => {
                write_read_state(&subnet.certificate(shown, now_ns), &mut self.body);
                (200, Action::Replied)
            }
            CanisterRequest::Refused(why) => {
                self.body.extend_from_slice(why.as_bytes());
                (400, Action::Replied)
            }
            CanisterRequest::Nowhere => (404, Action::Replied),
        };
        Written { status, body: &self.body, action }
    }
}

/// The certificate of a round for one of its calls. All answers belong to the round that was signed last.
fn show<'a>(round: Option<&Round>, id: &RequestId, certificate: &'a mut Vec<u8>) -> &'a [u8] {
    certificate.clear();
    if let Some(round) = round {
        round.write_certificate(round.place(id).unwrap_or(usize::MAX), certificate);
    }
    certificate
}

/// Returns `true` if the client of an update gets the certificate at once.
fn is_synchronous(subnet: &Subnet, asked: bool, seed: u64, number: u64) -> bool {
    let share = subnet.options.accepted;
    asked && (share == 0.0 || Random::new(seed ^ ACCEPTED, number).unit() >= share)
}

/// Returns `true` if a call is for a canister that is not there, so that no subnet carries it out.
fn is_refused(subnet: &Subnet, call: &Call) -> bool {
    subnet.options.id.is_some_and(|known| known != call.canister)
}

const fn action_of(outcome: &Outcome) -> Action {
    match outcome {
        Outcome::Rejected(..) => Action::Rejected,
        _ => Action::Replied,
    }
}

/// Bytes that are not CBOR: the first one ends a container that has not begun.
fn put_garbage(seed: u64, number: u64, out: &mut Vec<u8>) {
    let mut random = Random::new(seed ^ GARBAGE, number);
    out.push(0xff);
    for _ in 1..1 + random.below(MOST_GARBAGE) {
        // Any 8 bits.
        out.push(random.below(256) as u8);
    }
}
