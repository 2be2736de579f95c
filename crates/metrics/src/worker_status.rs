//! Status of workers while the run goes on: the input of a verdict beside the figures.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_histogram::Delta;
use serde::{Deserialize, Serialize};

use crate::{Accounting, ConnectionRecord, ErrorExample, IterationRecord, Peer, Slowest, WorkerRecord};

/// Status of one worker at the end of an interval of the measured part, or at the end of the load if that
/// comes in the warm-up. All counts but the start lags are totals since the start of the measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Number of the worker.
    pub worker: u32,
    /// Accounting of its arrivals so far.
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
    /// Properties of the responses so far; shared, since statuses are passed on by copies.
    #[serde(with = "crate::written::shared")]
    pub responses: Arc<ResponseFacts>,
}

/// Facts about the responses that one worker has had so far, of which the intervals of a run carry nothing.
/// Counts are totals since the begin of the measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseFacts {
    /// Responses by status code, step by step.
    pub statuses: Vec<BTreeMap<u16, u64>>,
    /// The first failed request of each class, step by step; see [`StepRecord::error_examples`].
    ///
    /// [`StepRecord::error_examples`]: crate::StepRecord::error_examples
    pub error_examples: Vec<BTreeMap<String, ErrorExample>>,
    /// The slowest requests, step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<Slowest>,
    /// Text of the first error of each class, also of those that concern no request.
    pub errors: BTreeMap<String, String>,
    /// The servers, those of the plan first, in its order.
    pub peers: Vec<Peer>,
    /// Responses by negotiated protocol.
    pub protocols: BTreeMap<String, u64>,
    /// Connections by TLS version.
    pub tls_versions: BTreeMap<String, u64>,
}

impl WorkerStatus {
    /// Returns a copy of the status without the start lags, which are reported once.
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
