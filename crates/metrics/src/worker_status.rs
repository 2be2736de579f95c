//! What workers know of themselves while the run goes on: what a verdict takes beside the figures.

use plimsoll_core::Nanos;

use crate::histogram::Delta;
use crate::{Accounting, ConnectionRecord, IterationRecord, WorkerRecord};

/// How one worker stands at the end of an interval of the measured part, or of the load, should that end in
/// the warm-up. All counts are those since the begin of the measured part, but for the start lags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Its number.
    pub worker: u32,
    /// Where its arrivals went so far.
    pub accounting: Accounting,
    /// What became of its iterations so far.
    pub iterations: IterationRecord,
    /// What happened to connections, without the distributions of their times.
    pub connections: ConnectionRecord,
    /// How it kept up, without the CPU time: of that the machine tells.
    pub kept: WorkerRecord,
    /// Whole responses so far.
    pub completed: u64,
    /// How late it may start requests on purpose.
    pub pacing_budget: Nanos,
    /// Open model: arrivals that are due and not taken up.
    pub waiting: u64,
    /// Start lags of what ended since the last standing, step by step.
    pub start_lags: Vec<Delta>,
}

impl WorkerStatus {
    /// The same without the start lags, which are told once.
    #[must_use]
    pub fn without_lags(&self) -> Self {
        Self { start_lags: Vec::new(), ..self.clone() }
    }

    /// Whether it says more than an earlier one, but for how often the worker's loop went round meanwhile.
    pub fn tells_more_than(&self, earlier: &Self) -> bool {
        let WorkerRecord { passes, longest_pass, .. } = earlier.kept;
        let kept = WorkerRecord { passes, longest_pass, ..self.kept.clone() };
        let has_lags = self.start_lags.iter().any(|lags| !lags.is_empty());
        has_lags || Self { kept, ..self.without_lags() } != *earlier
    }
}
