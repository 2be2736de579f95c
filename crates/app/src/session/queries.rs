//! Thresholds on queries: a Prometheus server is asked before the load, at the end of the measured part, and
//! now and then between them where such a threshold may end the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Channel, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;

use plimsoll_core::Nanos;
use plimsoll_core::Redaction;
use plimsoll_document::{Problem, Problems};
use plimsoll_engine::Progress;
use plimsoll_export::Receiver;
use plimsoll_export::query::{PATH, PrometheusClient, QueryError};
use plimsoll_metrics::threshold::Answer;
use plimsoll_metrics::{RunRecord, ThresholdResult, ThresholdSpec};
use plimsoll_plan::{Plan, PrometheusServer};
use plimsoll_system::clock;

use crate::base::failure::Failure;

/// Longest time for an answer.
const LIMIT: Nanos = Nanos::from_secs(10);
/// Longest time for an answer to a user who has interrupted the run.
const SHORT_LIMIT: Nanos = Nanos::from_secs(2);
/// Time between two questions while the load goes on: servers scrape every 5 s at most, as a rule.
const EVERY: Nanos = Nanos::from_secs(5);

/// Asks for the thresholds of a plan that are queries.
pub(crate) struct Queries {
    client: Arc<PrometheusClient>,
    redaction: Redaction,
    /// Set when the load is over: questions about its course are given up then.
    stop: Arc<AtomicBool>,
    watch: Option<Watch>,
}

/// The thread that asks while the load goes on.
struct Watch {
    ask: SyncSender<Instant>,
    broken: Arc<OnceLock<Broken>>,
    /// When the measured part began, since the start of the run.
    from: Option<Nanos>,
    /// When it is asked next, likewise.
    next: Nanos,
    has_told: bool,
}

/// An instant of a run.
struct Instant {
    /// Since the begin of the measured part.
    since: Nanos,
    unix: Nanos,
}

/// The first threshold that was seen not to hold, by its place in the plan.
struct Broken {
    number: usize,
    answer: Answer,
}

impl Queries {
    /// Asks each query once, so that nothing is loaded for a question that cannot be answered; `None` for a
    /// plan without queries.
    ///
    /// # Errors
    /// The server refuses a query, or does not answer.
    pub(crate) fn begin(plan: &Plan) -> Result<Option<Self>, Failure> {
        let Some(server) = &plan.prometheus else { return Ok(None) };
        let stop = Arc::new(AtomicBool::new(false));
        let client = Arc::new(client(server, &stop)?);
        let specs: Vec<(usize, ThresholdSpec)> =
            plan.thresholds.iter().cloned().enumerate().filter(|(_, spec)| spec.query().is_some()).collect();
        try_all(&client, server, &specs, &plan.redaction)?;
        let ending = specs.into_iter().filter(|(_, spec)| spec.abort_on_fail).collect();
        let watch = Watch::start(&client, ending)?;
        Ok(Some(Self { client, redaction: plan.redaction.clone(), stop, watch }))
    }

    /// Has the server asked, if it is time, and returns `true` once a threshold asks for the end of the run.
    pub(crate) fn note(&mut self, progress: &Progress<'_>) -> bool {
        self.watch.as_mut().is_some_and(|watch| watch.note(progress))
    }

    /// Asks about the end of the measured part of a run, and judges its thresholds by the answers.
    pub(crate) fn finish(self, record: &mut RunRecord) {
        let end = record.started_unix + record.warmup + record.duration;
        self.judge(&mut record.thresholds, end, record.interrupted.is_some());
    }

    /// Asks about an instant in Unix time, and judges by the answers. The threshold that ended the run is
    /// judged by the answer that did it.
    pub(crate) fn judge(self, results: &mut [ThresholdResult], end: Nanos, is_hurried: bool) {
        self.stop.store(true, Ordering::Relaxed);
        let broken = self.watch.as_ref().and_then(|watch| watch.broken.get());
        let limit = if is_hurried { SHORT_LIMIT } else { LIMIT };
        let mut known: Vec<(String, Result<Answer, String>)> = Vec::new();
        for (number, result) in results.iter_mut().enumerate() {
            let Some(query) = result.spec.query() else { continue };
            if let Some(Broken { answer, .. }) = broken.filter(|broken| broken.number == number) {
                result.answer(Ok(answer));
                result.ended_run = true;
            } else {
                let place = known.iter().position(|(asked, _)| asked == query).unwrap_or_else(|| {
                    let answer = self.client.ask(query, end, limit, true).map_err(|error| error.to_string());
                    known.push((query.to_owned(), answer));
                    known.len() - 1
                });
                result.answer(known[place].1.as_ref().map_err(String::as_str));
            }
            self.redact(result);
        }
    }

    /// Hides secrets in what the server said.
    fn redact(&self, result: &mut ThresholdResult) {
        let texts = result.series.iter_mut().flat_map(|series| series.labels.values_mut());
        for text in texts.chain(&mut result.reason) {
            *text = self.redaction.in_text(text).into_owned();
        }
    }
}

impl Drop for Queries {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A client of the server.
fn client(
    PrometheusServer { url, authorization }: &PrometheusServer,
    stop: &Arc<AtomicBool>,
) -> Result<PrometheusClient, Failure> {
    let headers = authorization.iter().map(|value| ("authorization".to_owned(), value.clone())).collect();
    let receiver = Receiver::at(url).and_then(|receiver| receiver.ending_with(PATH).with_headers(headers));
    let receiver = receiver.map_err(|error| Failure::usage(Problem::new(format!("--prom-url: {error}"))))?;
    PrometheusClient::new(receiver, stop).map_err(|error| {
        Failure::environment(Problem::new(format!("cannot speak TLS to the Prometheus server: {error}")))
    })
}

/// Asks each query once.
///
/// # Errors
/// All that the server refuses, else the first that it does not answer.
fn try_all(
    client: &PrometheusClient,
    server: &PrometheusServer,
    specs: &[(usize, ThresholdSpec)],
    redaction: &Redaction,
) -> Result<(), Failure> {
    let mut refused = Problems::default();
    let mut tried: Vec<&str> = Vec::new();
    for (_, spec) in specs {
        let Some(query) = spec.query().filter(|query| !tried.contains(query)) else { continue };
        tried.push(query);
        let Err(error) = client.ask(query, clock::unix(), LIMIT, true) else { continue };
        let said = redaction.in_text(&format!("`{}`: {error}", spec.threshold)).into_owned();
        match error {
            QueryError::Refused(_) => {
                let hint = format!("try it on the page of the server: {}/graph", server.url);
                refused.push(Problem::new(said).with_hint(redaction.in_text(&hint)));
            }
            QueryError::NoAnswer(_) => {
                let hint = format!(
                    "nothing was sent: is {} the address of Prometheus (--prom-url)?",
                    redaction.in_text(&server.url)
                );
                return Err(Failure::environment(Problem::new(said).with_hint(hint)));
            }
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(Failure::usage(refused)) }
}

impl Watch {
    /// Starts a thread for thresholds that may end the run; `None` without one.
    fn start(
        client: &Arc<PrometheusClient>,
        specs: Vec<(usize, ThresholdSpec)>,
    ) -> Result<Option<Self>, Failure> {
        if specs.is_empty() {
            return Ok(None);
        }
        // Nothing waits in it: the thread is idle and takes a question, or there is none.
        let (ask, asked) = sync_channel(0);
        let broken = Arc::default();
        let (client, found) = (Arc::clone(client), Arc::clone(&broken));
        Builder::new()
            .name("prometheus".to_owned())
            .spawn(move || watch(&client, &specs, &asked, &found))
            .map_err(|error| Failure::no_thread(&error))?;
        Ok(Some(Self { ask, broken, from: None, next: Nanos::ZERO, has_told: false }))
    }

    fn note(&mut self, progress: &Progress<'_>) -> bool {
        let interval = progress.interval;
        if interval.warmup || interval.drain || self.has_told {
            return false;
        }
        let from = *self.from.get_or_insert(interval.at.since(interval.length));
        if interval.at >= self.next {
            let now = Instant { since: interval.at.since(from), unix: progress.started_unix + interval.at };
            if self.ask.try_send(now).is_ok() {
                self.next = interval.at + EVERY;
            }
        }
        self.has_told = self.broken.get().is_some();
        self.has_told
    }
}

/// Asks whenever it is told to, until a threshold does not hold.
fn watch(
    client: &PrometheusClient,
    specs: &[(usize, ThresholdSpec)],
    asked: &Channel<Instant>,
    broken: &OnceLock<Broken>,
) {
    for Instant { since, unix } in asked {
        for (number, spec) in specs.iter().filter(|(_, spec)| spec.delay <= since) {
            // A question without an answer shows nothing. The one at the end tells why.
            let answer = spec.query().and_then(|query| client.ask(query, unix, LIMIT, false).ok());
            if let Some(answer) = answer.filter(|answer| spec.threshold.is_broken_by(answer)) {
                let _ = broken.set(Broken { number: *number, answer });
                return;
            }
        }
    }
}
