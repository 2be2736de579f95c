//! Outcomes of requests that carry records, counted in records.

use plimsoll_metrics::RunRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Records that were sent, where requests carry batches of them. The times of a result are those of batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordsResult {
    /// In batches that were answered as they should be.
    pub acknowledged: u64,
    /// In batches that failed or timed out: whether the store has them is not known.
    pub failed: u64,
    /// Acknowledged per second of the measured part.
    pub acknowledged_per_s: Option<f64>,
    /// Records per second that were asked for; null where the load has no rate.
    pub target_per_s: Option<f64>,
}

impl RecordsResult {
    /// Counts the records of a run whose steps carry this many each, by step; `None` if no step carries any.
    pub fn new(record: &RunRecord, per_request: &[u32]) -> Option<Self> {
        if per_request.iter().all(|&records| records == 0) {
            return None;
        }
        let steps = || record.steps.iter().zip(per_request.iter().map(|&records| u64::from(records)));
        let acknowledged = steps().map(|(step, records)| step.ok * records).sum::<u64>();
        let failed = steps().map(|(step, records)| (step.failed + step.timed_out) * records).sum::<u64>();
        let batches = steps().map(|(step, _)| step.ok + step.failed + step.timed_out).sum::<u64>();
        let seconds = record.duration.as_secs_f64();
        let per_batch = (batches > 0).then(|| (acknowledged + failed) as f64 / batches as f64);
        Some(Self {
            acknowledged,
            failed,
            acknowledged_per_s: (seconds > 0.0).then(|| acknowledged as f64 / seconds),
            target_per_s: record.target_per_second.zip(per_batch).map(|(target, records)| target * records),
        })
    }

    /// The share of the records that were asked for which was acknowledged; `None` without a rate.
    pub fn achievement(&self) -> Option<f64> {
        let target = self.target_per_s.filter(|target| *target > 0.0)?;
        Some(self.acknowledged_per_s? / target)
    }
}
