//! Metrics of the plan's own, as one worker records them.

use plimsoll_core::Nanos;
use plimsoll_metrics::MetricRecord;
use plimsoll_plan::Plan;
use plimsoll_scenario::{RecordedValue, ScriptValue, ValueSink};

/// The values that the iterations of one worker record.
#[derive(Debug)]
pub(super) struct OwnMetrics {
    /// Values of the intervals that are over.
    records: Vec<MetricRecord>,
    /// Values since the end of the last one.
    recent: Vec<MetricRecord>,
    /// `true` while the iteration that goes on belongs to the measured part.
    measured: bool,
    /// The present, since the start of the run.
    at: Nanos,
}

impl OwnMetrics {
    /// Before the first value.
    pub(super) fn new(plan: &Plan) -> Self {
        let records: Vec<_> = plan.metrics.iter().cloned().map(MetricRecord::new).collect();
        Self { recent: records.clone(), records, measured: false, at: Nanos::ZERO }
    }

    /// Notes that an iteration goes on, at a time since the start of the run.
    #[inline]
    pub(super) const fn go_on(&mut self, measured: bool, at: Nanos) {
        self.measured = measured;
        self.at = at;
    }

    /// Records values of a script in a request of the measured part, or forgets them. Texts of tags are
    /// redacted: no plan has seen them.
    pub(super) fn record_of_script(
        &mut self,
        values: &mut Vec<ScriptValue>,
        measured: bool,
        at: Nanos,
        plan: &Plan,
    ) {
        for ScriptValue { metric, value, tags } in values.drain(..).filter(|_| measured) {
            let Some(metric) = self.recent.get_mut(usize::from(metric)) else { continue };
            let redacted = |(name, text): &(String, String)| {
                (name.clone(), plan.redaction.in_text(text).into_owned().into_bytes())
            };
            let tags: Vec<(String, Vec<u8>)> = tags.iter().map(redacted).collect();
            let tags = tags.iter().map(|(name, text)| (name.as_str(), text.as_slice()));
            metric.record(value.as_bytes(), tags, at);
        }
    }

    /// The values since the end of the last interval: those metrics that have some. Texts in them are
    /// redacted.
    pub(super) fn take_recent(&mut self, plan: &Plan) -> Vec<MetricRecord> {
        let mut taken = Vec::new();
        for (whole, recent) in self.records.iter_mut().zip(&mut self.recent) {
            if recent.is_empty() {
                continue;
            }
            let mut part = MetricRecord::new(recent.spec.clone());
            std::mem::swap(&mut part, recent);
            if let Some(example) = &mut part.unfit_example {
                example.reason = plan.redaction.in_text(&example.reason).into_owned();
            }
            whole.merge(&part);
            taken.push(part);
        }
        taken
    }

    /// The metrics with all of their values. Texts in them are redacted.
    pub(super) fn finish(&mut self, plan: &Plan) -> Vec<MetricRecord> {
        self.take_recent(plan);
        std::mem::take(&mut self.records)
    }
}

impl ValueSink for OwnMetrics {
    fn record(&mut self, value: RecordedValue<'_>) {
        // Values of the warm-up are left out, as its requests are.
        if self.measured
            && let Some(metric) = self.recent.get_mut(usize::from(value.metric()))
        {
            metric.record(value.value(), value.tags(), self.at);
        }
    }
}
