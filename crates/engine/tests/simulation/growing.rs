//! The record that grows with a run counts what the record of the whole run does, in every simulated run.

use plimsoll_metrics::{Basis, GrowingRecord, Histogram, Model, RunRecord};
use plimsoll_plan::{Load, Pacing, Plan};

pub(crate) fn begin(plan: &Plan) -> GrowingRecord {
    let model = if matches!(plan.load, Load::Closed) { Model::Closed } else { Model::Open };
    let precise = plan.pacing == Pacing::Precise;
    GrowingRecord::new(&plan.outline(), Basis { model, warmup: plan.warmup, precise })
}

/// After its last interval the growing record has the same times and counts.
pub(crate) fn assert_same(growing: &GrowingRecord, whole: &RunRecord) {
    let so_far = growing.record();
    let buckets =
        |histogram: &Histogram| histogram.buckets().map(|b| (b.highest, b.count)).collect::<Vec<_>>();
    for (grown, truth) in [
        (&so_far.total.response_time, &whole.total.response_time),
        (&so_far.total.service_time, &whole.total.service_time),
    ] {
        assert_eq!(buckets(grown), buckets(truth));
    }
    for (grown, truth) in so_far.steps.iter().zip(&whole.steps) {
        assert_eq!((&grown.name, &grown.scenario), (&truth.name, &truth.scenario));
        assert_eq!(buckets(&grown.response_time), buckets(&truth.response_time));
        assert_eq!((grown.ok, grown.errors), (truth.ok, truth.errors));
    }
    if growing.verdict().is_none() {
        return;
    }
    let unfinished = whole.accounting.in_flight_at_stop;
    assert_eq!(so_far.total.start_lag.count() + unfinished, whole.total.start_lag.count());
    let counts = |record: &RunRecord| {
        let a = &record.accounting;
        [a.started, a.ok, a.failed, a.timed_out, a.dropped, a.without_data, a.in_flight_at_stop]
    };
    assert_eq!(counts(so_far), counts(whole));
    assert_eq!(so_far.iterations, whole.iterations);
    assert_eq!((so_far.duration, so_far.completed_in_window), (whole.duration, whole.completed_in_window));
}
