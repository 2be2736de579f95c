//! The slowest requests of each step.

use plimsoll_core::Nanos;
use plimsoll_metrics::{SlowRequest, Slowest};

/// The slowest requests of each step so far.
#[derive(Debug)]
pub(super) struct SlowestOfSteps {
    /// The response times above which requests are to be noted, by step: each request is compared with one,
    /// so they stand together.
    floors: Vec<Nanos>,
    all: Vec<Slowest>,
}

impl SlowestOfSteps {
    /// None so far, of this many steps.
    pub(super) fn new(steps: usize) -> Self {
        Self { floors: vec![Nanos::ZERO; steps], all: vec![Slowest::default(); steps] }
    }

    /// Returns `true` if a request of a step that took this long is one of its slowest.
    #[inline]
    pub(super) fn has_room(&self, step: u32, response_time: Nanos) -> bool {
        response_time > self.floors[step as usize]
    }

    /// Takes a request of a step in.
    pub(super) fn note(&mut self, step: u32, request: SlowRequest) {
        let step = step as usize;
        self.all[step].note(request);
        self.floors[step] = self.all[step].floor().unwrap_or(Nanos::ZERO);
    }

    /// The slowest requests of each step.
    pub(super) fn finish(self) -> Vec<Slowest> {
        self.all
    }
}
