//! Quoting: the first failed request of each class and step is kept in words.

use std::num::NonZeroU128;

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_driver::Backend;
use plimsoll_metrics::{ErrorExample, SERVER_TIMING, Sample, ServerTiming, SlowRequest, TIMED_OUT};
use plimsoll_scenario::first_line;

use super::Worker;
use crate::capture::NO_CAPTURE;
use crate::request::InFlight;

impl<B: Backend> Worker<'_, B> {
    /// Notes the error, in words, for requests that are about to fail with it.
    pub(super) fn note_error(&mut self, class: ErrorClass, reason: &str) {
        let shown = || self.plan.redaction.in_text(reason).into_owned();
        self.failures.note(class, self.exchanges.keeps, shown);
    }

    /// The id under which the server's trace of a request is found, if the request says it.
    pub(super) fn trace_of(&self, request: &InFlight) -> Option<NonZeroU128> {
        let traced = self.steps.facts[request.step as usize].traced;
        traced.then(|| self.trace_key.id_of(request.index, request.step)).and_then(NonZeroU128::new)
    }

    /// The id in hexadecimal digits, as traces are looked for.
    fn written_trace_of(&self, request: &InFlight) -> Option<String> {
        self.trace_of(request).map(|id| format!("{id:032x}"))
    }

    /// The server's own times of a request, whose capture is still there.
    fn timing_of(&mut self, request: &InFlight) -> Vec<ServerTiming> {
        if request.capture == NO_CAPTURE || !self.steps.facts[request.step as usize].traced {
            return Vec::new();
        }
        let fields = &self.exchanges.captures.get_mut(request.capture).fields;
        let mut parts = ServerTiming::all(fields.all(SERVER_TIMING));
        for text in parts.iter_mut().filter_map(|part| part.description.as_mut()) {
            *text = self.plan.redaction.in_text(text).into_owned();
        }
        parts
    }

    /// Keeps a request of the measured part that is one of the slowest of its step, and one that stands for
    /// others in a histogram.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_slow(&mut self, request: &InFlight, sample: &Sample) {
        // Failed ones are not in the histogram.
        if matches!(sample.outcome, Outcome::Ok | Outcome::TimedOut) {
            let template = &self.plan.steps[request.step as usize].request;
            let id = self.trace_key.id_of(request.index, request.step);
            let times = (sample.response_time(), sample.done.since(self.clock.start));
            self.slowest.note_exemplar(request.step, times, || template.samples_trace(id).then_some(id));
        }
        if !self.slowest.is_slow(request.step, sample.response_time()) {
            return;
        }
        let failure = match sample.outcome {
            Outcome::Ok => String::new(),
            // We ended it, whatever it would have taken.
            Outcome::Failed(ErrorClass::AbortedByUs) => return,
            Outcome::Failed(class) => class.name().to_owned(),
            Outcome::TimedOut => TIMED_OUT.to_owned(),
        };
        let server_timing = self.timing_of(request);
        let sent = (sample.sent != Nanos::MAX).then_some(sample.sent);
        let first_byte = (sample.first_byte < sample.done).then_some(sample.first_byte);
        self.slowest.note(
            request.step,
            SlowRequest {
                at: sample.intended.since(self.clock.start),
                response_time: sample.response_time(),
                service_time: sent.map(|_| sample.service_time()),
                first_byte_time: sent.and_then(|sent| Some(first_byte?.since(sent))),
                status: sample.status,
                failure,
                worker: self.shard.index,
                trace_id: self.written_trace_of(request),
                server_timing,
            },
        );
    }

    /// Keeps a request of the measured part that has ended badly, if it is the first one of its class and
    /// step. Its capture is still there.
    pub(super) fn quote(&mut self, request: &InFlight, outcome: Outcome, status: u16, at: Nanos) {
        let blamed = self.failures.blamed.take();
        let Some(class) = self.failures.claim(request, outcome) else { return };
        let known = match outcome {
            Outcome::Failed(class) => self.failures.reason(class),
            Outcome::TimedOut | Outcome::Ok => None,
        };
        let reason = match (known, outcome) {
            (_, Outcome::TimedOut) => {
                format!("no whole response within {:?}", self.plan.timeout_of(request.step))
            }
            (Some(reason), _) => reason.clone(),
            (None, _) => class.replace('_', " "),
        };
        let body = match request.capture {
            NO_CAPTURE => String::new(),
            _ if status == 0 => String::new(),
            capture => {
                let line = first_line(&self.exchanges.captures.get_mut(capture).body);
                self.plan.redaction.in_text(&line).into_owned()
            }
        };
        let (mut connection, mut address) = (0, String::new());
        if let Some(slot) = blamed {
            let conn = &self.conns[slot as usize];
            connection = conn.number;
            address =
                self.pools[conn.pool as usize].target_addresses.endpoint(conn.target_address).to_string();
        }
        let example = ErrorExample {
            at: at.since(self.clock.start),
            status,
            reason,
            body,
            worker: self.shard.index,
            connection,
            address,
            trace_id: self.written_trace_of(request),
            server_timing: self.timing_of(request),
        };
        self.failures.show(request.step, class, example);
    }
}
