//! What workers know of themselves while the run goes on: what a verdict takes beside the figures.

use plimsoll_core::Nanos;

use crate::histogram::Delta;
use crate::{Accounting, ConnectionRecord, IterationRecord, WorkerRecord};

/// How one worker stands at the end of an interval of the measured part. All counts are those since the begin
/// of that part, but for the start lags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
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
