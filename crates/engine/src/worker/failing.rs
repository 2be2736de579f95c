//! Failing: a request that failed is handed to the log with both messages, if that wants them.

use std::io::Write as _;

use plimsoll_core::Outcome;
use plimsoll_driver::Backend;
use plimsoll_metrics::log::Message;
use plimsoll_metrics::{FailedExchange, LogEntry};

use super::Worker;
use crate::capture::NO_CAPTURE;
use crate::request::InFlight;

impl<B: Backend> Worker<'_, B> {
    /// Hands a failed request over that the log [wants](plimsoll_metrics::LogSink::wants_failed). Its capture
    /// is still there.
    #[cold]
    pub(super) fn hand_over(&mut self, request: &InFlight, entry: LogEntry) {
        let mut exchange = FailedExchange::bare(entry);
        if let Outcome::Failed(class) = entry.outcome
            && let Some((known, reason)) = &self.reason
            && *known == class
        {
            exchange.reason.clone_from(reason);
        }
        if request.capture != NO_CAPTURE {
            let captured = self.captures.get_mut(request.capture);
            exchange.request = std::mem::take(&mut captured.request);
            let mut head = Vec::new();
            // The version is that of the request: the reason phrase and the version of the response are not
            // kept.
            if entry.status > 0 {
                let start = if exchange.request.head.starts_with(b":") { ":status:" } else { "HTTP/1.1" };
                // A vector takes everything.
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
            exchange.response = Message::new(&head, &captured.body);
        }
        self.log.push_failed(exchange);
    }
}
