//! Quoting: the first failed request of each class and step is kept in words.

use std::collections::BTreeMap;

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_driver::Backend;
use plimsoll_metrics::{ErrorExample, TIMED_OUT};
use plimsoll_scenario::first_line;

use super::Worker;
use crate::capture::NO_CAPTURE;
use crate::request::InFlight;

/// The bit of requests without a response in time, behind those of the classes.
const TIMED_OUT_BIT: u32 = ErrorClass::COUNT as u32;
const _: () = assert!(TIMED_OUT_BIT < u64::BITS, "each class has a bit");

/// The examples of one step.
#[derive(Debug, Default)]
pub(super) struct Examples {
    /// A bit for each class that has one.
    known: u64,
    /// By class.
    pub(super) all: BTreeMap<String, ErrorExample>,
}

impl Examples {
    pub(super) const fn lacks(&self, class: ErrorClass) -> bool {
        self.known & (1 << class as u32) == 0
    }
}

impl<B: Backend> Worker<'_, B> {
    /// Returns `true` if a failure of this class would be the first one of its step, in the measured part.
    pub(super) fn lacks_example(&self, request: &InFlight, class: ErrorClass) -> bool {
        request.measured && self.examples[request.step as usize].lacks(class)
    }

    /// Notes what went wrong, in words, for requests that are about to fail with it.
    pub(super) fn note_error(&mut self, class: ErrorClass, reason: &str) {
        let shown = || self.plan.redaction.in_text(reason).into_owned();
        if self.keeps || self.examples.iter().any(|step| step.lacks(class)) {
            self.reason = Some((class, shown()));
        }
        if !self.error_examples.contains_key(class.name()) {
            self.error_examples.insert(class.name().to_owned(), shown());
        }
    }

    /// Keeps a request of the measured part that has ended badly, if it is the first one of its class and
    /// step. Its capture is still there.
    pub(super) fn quote(&mut self, request: &InFlight, outcome: Outcome, status: u16, at: Nanos) {
        let blamed = self.blamed.take();
        let (bit, class) = match outcome {
            Outcome::Ok | Outcome::Failed(ErrorClass::AbortedByUs) => return,
            Outcome::Failed(class) => (class as u32, class.name()),
            Outcome::TimedOut => (TIMED_OUT_BIT, TIMED_OUT),
        };
        let examples = &mut self.examples[request.step as usize];
        if examples.known & (1 << bit) != 0 || !request.measured {
            return;
        }
        examples.known |= 1 << bit;
        let reason = match (&self.reason, outcome) {
            (_, Outcome::TimedOut) => {
                format!("no whole response within {:?}", self.plan.timeout_of(request.step))
            }
            (Some((known, reason)), Outcome::Failed(class)) if *known == class => reason.clone(),
            _ => class.replace('_', " "),
        };
        let body = match request.capture {
            NO_CAPTURE => String::new(),
            _ if status == 0 => String::new(),
            capture => {
                let line = first_line(&self.captures.get_mut(capture).body);
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
            at: at.since(self.times.start),
            status,
            reason,
            body,
            worker: self.shard.index,
            connection,
            address,
        };
        examples.all.insert(class.to_owned(), example);
    }
}
