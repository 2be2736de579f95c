//! Status of workers while the run goes on: the input of a verdict beside the figures.

use plimsoll_core::Nanos;

use crate::histogram::Delta;
use crate::{Accounting, ConnectionRecord, IterationRecord, WorkerRecord};

/// Status of one worker at the end of an interval of the measured part, or at the end of the load if that
/// comes in the warm-up. All counts but the start lags are totals since the start of the measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Number of the worker.
    pub worker: u32,
    /// Where its arrivals went so far.
    pub accounting: Accounting,
    /// Outcomes of its iterations so far.
    pub iterations: IterationRecord,
    /// Counts of its connections, without the distributions of their times.
    pub connections: ConnectionRecord,
    /// Punctuality of the worker, without its CPU time, which comes from the machine.
    pub kept: WorkerRecord,
    /// Whole responses so far.
    pub completed: u64,
    /// Longest time by which it may start requests late on purpose.
    pub pacing_budget: Nanos,
    /// Open model: arrivals that are due and not taken up.
    pub waiting: u64,
    /// Start lags of requests that ended since the last status, step by step.
    pub start_lags: Vec<Delta>,
}

impl WorkerStatus {
    /// The same without the start lags, which are told once.
    #[must_use]
    pub fn without_lags(&self) -> Self {
        Self { start_lags: Vec::new(), ..self.clone() }
    }

    /// Returns `true` if this status has news over an earlier one, aside from the passes of the worker's
    /// loop.
    pub fn tells_more_than(&self, earlier: &Self) -> bool {
        let WorkerRecord { passes, longest_pass, .. } = earlier.kept;
        let kept = WorkerRecord { passes, longest_pass, ..self.kept.clone() };
        let has_lags = self.start_lags.iter().any(|lags| !lags.is_empty());
        has_lags || Self { kept, ..self.without_lags() } != *earlier
    }
}
