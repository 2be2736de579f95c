//! The slowest requests of each step, and those that stand for others in histograms.

use plimsoll_core::Nanos;
use plimsoll_metrics::{Exemplar, Exemplars, SlowRequest, Slowest};

/// The slowest requests of each step so far.
#[derive(Debug)]
pub(super) struct SlowestOfSteps {
    /// The response times above which requests are to be noted, by step: each request is compared with one,
    /// so they stand together. They stay zero where exemplars are wanted: any request may be one.
    floors: Vec<Nanos>,
    all: Vec<Slowest>,
    /// Exemplars of the present interval, by step; `None` where none are wanted.
    exemplars: Option<Vec<Exemplars>>,
}

impl SlowestOfSteps {
    /// None so far, of this many steps.
    pub(super) fn new(steps: usize, wants_exemplars: bool) -> Self {
        Self {
            floors: vec![Nanos::ZERO; steps],
            all: vec![Slowest::default(); steps],
            exemplars: wants_exemplars.then(|| vec![Exemplars::default(); steps]),
        }
    }

    /// Returns `true` if a request of a step that took this long may be one of its slowest, or an exemplar.
    #[inline]
    pub(super) fn has_room(&self, step: u32, response_time: Nanos) -> bool {
        response_time > self.floors[step as usize]
    }

    /// Returns `true` if it is one of its slowest.
    pub(super) fn is_slow(&self, step: u32, response_time: Nanos) -> bool {
        self.all[step as usize].floor().is_none_or(|floor| response_time > floor)
    }

    /// Takes a request of a step in.
    pub(super) fn note(&mut self, step: u32, request: SlowRequest) {
        let step = step as usize;
        self.all[step].note(request);
        if self.exemplars.is_none() {
            self.floors[step] = self.all[step].floor().unwrap_or(Nanos::ZERO);
        }
    }

    /// Takes an exemplar of a step in, if there is room for it and it has a trace.
    pub(super) fn note_exemplar(
        &mut self,
        step: u32,
        (response_time, done): (Nanos, Nanos),
        trace_id: impl FnOnce() -> Option<u128>,
    ) {
        let Some(exemplars) = self.exemplars.as_mut().map(|all| &mut all[step as usize]) else { return };
        if exemplars.has_room(response_time)
            && let Some(trace_id) = trace_id()
        {
            exemplars.note(Exemplar { trace_id, response_time, done });
        }
    }

    /// Takes the exemplars of the interval that ends now; empty where none are wanted.
    pub(super) fn take_exemplars(&mut self) -> Vec<Exemplars> {
        let Some(exemplars) = &mut self.exemplars else { return Vec::new() };
        let next = vec![Exemplars::default(); exemplars.len()];
        std::mem::replace(exemplars, next)
    }

    /// The slowest requests of each step so far.
    pub(super) fn so_far(&self) -> &[Slowest] {
        &self.all
    }

    /// The slowest requests of each step.
    pub(super) fn finish(self) -> Vec<Slowest> {
        self.all
    }
}
