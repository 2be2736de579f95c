//! Failed requests in words: the first one of each class and step.

use std::collections::BTreeMap;

use plimsoll_core::{ErrorClass, ErrorRow, Outcome};
use plimsoll_metrics::{ErrorExample, TIMED_OUT};

use crate::request::InFlight;

/// The bit of requests without a response in time, behind those of the classes.
const TIMED_OUT_BIT: usize = ErrorClass::CORE.len();
const _: () = assert!(TIMED_OUT_BIT < u64::BITS as usize, "each class of the core has a bit");

/// The examples of one step.
#[derive(Debug, Default)]
struct Examples {
    /// A bit for each class of the core that has one.
    known: u64,
    /// Rows that have one.
    rows: Vec<&'static ErrorRow>,
    /// By class.
    all: BTreeMap<String, ErrorExample>,
}

impl Examples {
    fn lacks(&self, class: ErrorClass) -> bool {
        match class {
            ErrorClass::Other(row) => !self.rows.contains(&row),
            class => class.index().is_some_and(|bit| self.lacks_bit(bit)),
        }
    }

    const fn lacks_bit(&self, bit: usize) -> bool {
        self.known & (1 << bit) == 0
    }
}

/// The reasons of failures, and the examples that the report shows of them.
///
/// A reason is [noted](Self::note) before the requests fail that it concerns, and is forgotten with the next
/// event. A failed request [claims](Self::claim) the place of an example, and fills it with
/// [`show`](Self::show). Words cost an allocation, so they are made only while an example is missing or the
/// log wants them.
#[derive(Debug)]
pub(super) struct Failures {
    /// The connection on which a request is about to fail.
    pub(super) blamed: Option<u32>,
    /// The last error in words, until the next event.
    reason: Option<(ErrorClass, String)>,
    /// The first failures, by step.
    examples: Vec<Examples>,
    /// The first reason of each class, also of those that concern no request.
    by_class: BTreeMap<String, String>,
}

impl Failures {
    /// No failures yet, for this many steps.
    pub(super) fn new(steps: usize) -> Self {
        let examples = (0..steps).map(|_| Examples::default()).collect();
        Self { blamed: None, reason: None, examples, by_class: BTreeMap::new() }
    }

    /// Forgets the last reason: later failures have another one.
    #[inline]
    pub(super) fn forget_reason(&mut self) {
        self.reason = None;
    }

    /// Notes the reason of the requests that fail next with this class.
    #[inline]
    pub(super) fn set_reason(&mut self, class: ErrorClass, reason: String) {
        self.reason = Some((class, reason));
    }

    /// Notes the reason of the requests that fail next with this class, as far as the log or an example wants
    /// the words that `shown` makes. The first reason of each class stays.
    pub(super) fn note(&mut self, class: ErrorClass, is_logged: bool, shown: impl Fn() -> String) {
        if is_logged || self.examples.iter().any(|step| step.lacks(class)) {
            self.reason = Some((class, shown()));
        }
        if !self.by_class.contains_key(class.name()) {
            self.by_class.insert(class.name().to_owned(), shown());
        }
    }

    /// The last reason, if it is one of this class.
    #[inline]
    pub(super) fn reason(&self, class: ErrorClass) -> Option<&String> {
        self.reason.as_ref().filter(|(known, _)| *known == class).map(|(_, reason)| reason)
    }

    /// Returns `true` if a failure of this class would be the first one of its step, in the measured part.
    #[inline]
    pub(super) fn lacks_example(&self, request: &InFlight, class: ErrorClass) -> bool {
        request.measured && self.examples[request.step as usize].lacks(class)
    }

    /// Claims the place of an example for a request of the measured part that has ended badly, if it is the
    /// first one of its class and step: the name of the class.
    pub(super) fn claim(&mut self, request: &InFlight, outcome: Outcome) -> Option<&'static str> {
        let examples = &mut self.examples[request.step as usize];
        let (is_first, name) = match outcome {
            Outcome::Ok | Outcome::Failed(ErrorClass::AbortedByUs) => return None,
            Outcome::Failed(class) => (examples.lacks(class), class.name()),
            Outcome::TimedOut => (examples.lacks_bit(TIMED_OUT_BIT), TIMED_OUT),
        };
        if !is_first || !request.measured {
            return None;
        }
        match outcome {
            Outcome::Failed(ErrorClass::Other(row)) => examples.rows.push(row),
            Outcome::Failed(class) => examples.known |= class.index().map_or(0, |bit| 1 << bit),
            _ => examples.known |= 1 << TIMED_OUT_BIT,
        }
        Some(name)
    }

    /// Fills the place that a request of this step has claimed.
    pub(super) fn show(&mut self, step: u32, class: &str, example: ErrorExample) {
        self.examples[step as usize].all.insert(class.to_owned(), example);
    }

    /// Returns the examples so far of each step by class, and the first reason of each class.
    pub(super) fn so_far(&self) -> (Vec<BTreeMap<String, ErrorExample>>, BTreeMap<String, String>) {
        (self.examples.iter().map(|examples| examples.all.clone()).collect(), self.by_class.clone())
    }

    /// Returns the examples of each step by class, and the first reason of each class.
    pub(super) fn finish(
        self,
    ) -> (impl Iterator<Item = BTreeMap<String, ErrorExample>>, BTreeMap<String, String>) {
        (self.examples.into_iter().map(|examples| examples.all), self.by_class)
    }
}
