//! Failing: hands a failed request to the log, with both messages if the log keeps them.

use std::io::Write as _;

use plimsoll_core::{Nanos, Outcome};
use plimsoll_driver::Backend;
use plimsoll_metrics::log::Message;
use plimsoll_metrics::{FailedExchange, LogEntry};
use plimsoll_plan::Protocol;
use plimsoll_scenario::Context;

use super::Worker;
use crate::capture::NO_CAPTURE;
use crate::connection::Reply;
use crate::request::InFlight;

impl<B: Backend> Worker<'_, B> {
    /// Hands a request over that the log [wants](plimsoll_metrics::LogSink::wants_exchange). Its capture is
    /// still there.
    #[cold]
    pub(super) fn hand_over(&mut self, request: &InFlight, entry: LogEntry) {
        let exchange = self.exchange(request, entry, false);
        self.exchanges.log.push_failed(exchange);
    }

    /// Hands over a request that may have changed something, after any [`hand_over`](Self::hand_over) of it:
    /// the memory of both messages leaves the capture.
    pub(super) fn hand_over_write(&mut self, request: &InFlight, entry: LogEntry) {
        let exchange = self.exchange(request, entry, true);
        self.exchanges.log.push_write(exchange);
    }

    /// Hands over an exchange that is not the last of its request, if the log wants those that did not fail.
    /// Only the last one has a time. The capture is still there.
    pub(super) fn hand_over_interim(&mut self, request: &InFlight, reply: Reply, at: Nanos, reason: &str) {
        if !self.exchanges.log.wants_exchange(false) {
            return;
        }
        let intended = request.intended.min(request.sent).min(at);
        let entry = LogEntry {
            unix: self.clock.unix(intended),
            step: request.step,
            status: reply.status,
            outcome: Outcome::Ok,
            response_time: at.since(intended),
            service_time: None,
            bytes_received: reply.wire_bytes,
            warmup: !request.measured,
            trace: self.trace_of(request),
        };
        let mut exchange = self.exchange(request, entry, false);
        reason.clone_into(&mut exchange.reason);
        self.exchanges.log.push_failed(exchange);
    }

    /// Both messages of a request; their memory leaves its capture if it `takes` it.
    fn exchange(&mut self, request: &InFlight, entry: LogEntry, takes: bool) -> FailedExchange {
        let mut exchange = FailedExchange::bare(entry);
        if let Outcome::Failed(class) = entry.outcome
            && let Some(reason) = self.failures.reason(class)
        {
            exchange.reason.clone_from(reason);
        }
        let mut capture = request.capture;
        self.write_again(request, &mut capture);
        if capture != NO_CAPTURE {
            let captured = self.exchanges.captures.get_mut(capture);
            exchange.request = match takes {
                true => std::mem::take(&mut captured.request),
                false => captured.request.clone(),
            };
            let mut head = Vec::new();
            // The version is that of the request: the reason phrase and the version of the response are not
            // kept.
            if entry.status > 0 {
                let start = if exchange.request.head.starts_with(b":") { ":status:" } else { "HTTP/1.1" };
                // Writing to a vector cannot fail.
                let _ = write!(head, "{start} {}", entry.status);
            }
            for (name, value) in captured.fields.iter() {
                if !head.is_empty() {
                    head.push(b'\n');
                }
                for part in [name, b": ", value] {
                    head.extend_from_slice(part);
                }
            }
            exchange.response = match takes {
                true => Message { head, body: std::mem::take(&mut captured.body), cut: 0 },
                false => Message::new(&head, &captured.body, self.exchanges.log.longest()),
            };
        }
        if capture != request.capture {
            self.exchanges.captures.end(capture);
        }
        exchange
    }

    /// Keeps a request that was written as its step always is, and was not kept for that reason; begins a
    /// capture if there is none.
    fn write_again(&mut self, request: &InFlight, capture: &mut u32) {
        let is_as_ever = self.steps.facts[request.step as usize].repeated
            && self.exchanges.captures.detour(*capture).is_none();
        if !is_as_ever || request.bytes_sent == 0 {
            return;
        }
        let step = &self.plan.steps[request.step as usize];
        let (template, target) = (&step.request, &self.plan.targets[step.target]);
        let (context, mut random) = (Context::default(), self.content.random.clone());
        if target.protocol != Protocol::Http1 {
            template.render_request(&context, &mut random, &mut self.draft.logged);
            let scheme = target.scheme();
            self.exchanges.captures.keep_lines(capture, scheme, &self.draft.logged);
        } else {
            let mut bytes = Vec::new();
            template.render(&context, &mut random, &mut self.draft.scratch, &mut bytes);
            let more = template.shared_body().map_or(&[][..], |body| &body[..]);
            self.exchanges.captures.keep_bytes(capture, &bytes, more);
        }
    }
}
