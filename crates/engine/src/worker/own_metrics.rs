//! Metrics of the plan's own, as one worker records them.

use plimsoll_core::Nanos;
use plimsoll_metrics::MetricRecord;
use plimsoll_plan::Plan;
use plimsoll_scenario::{RecordedValue, ValueSink};

/// The values that the iterations of one worker record.
#[derive(Debug)]
pub(super) struct OwnMetrics {
    records: Vec<MetricRecord>,
    /// `true` while the iteration that goes on belongs to the measured part.
    measured: bool,
    /// The present, since the start of the run.
    at: Nanos,
}

impl OwnMetrics {
    /// Before the first value.
    pub(super) fn new(plan: &Plan) -> Self {
        let records = plan.metrics.iter().cloned().map(MetricRecord::new).collect();
        Self { records, measured: false, at: Nanos::ZERO }
    }

    /// Notes that an iteration goes on, at a time since the start of the run.
    #[inline]
    pub(super) const fn go_on(&mut self, measured: bool, at: Nanos) {
        self.measured = measured;
        self.at = at;
    }

    /// The metrics with all of their values. Texts in them are redacted.
    pub(super) fn finish(&mut self, plan: &Plan) -> Vec<MetricRecord> {
        let mut records = std::mem::take(&mut self.records);
        for example in records.iter_mut().filter_map(|record| record.unfit_example.as_mut()) {
            example.reason = plan.redaction.in_text(&example.reason).into_owned();
        }
        records
    }
}

impl ValueSink for OwnMetrics {
    fn record(&mut self, value: RecordedValue<'_>) {
        // Values of the warm-up are left out, as its requests are.
        if self.measured
            && let Some(metric) = self.records.get_mut(usize::from(value.metric()))
        {
            metric.record(value.value(), value.tags(), self.at);
        }
    }
}
