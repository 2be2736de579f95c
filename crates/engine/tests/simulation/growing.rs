//! The record that grows with a run equals the record of the whole run, in every simulated run.

use plimsoll_histogram::Histogram;
use plimsoll_metrics::{GrowingRecord, Reason, ReasonCode, RunRecord, Verdict};
use plimsoll_plan::Plan;

pub(crate) fn begin(plan: &Plan) -> GrowingRecord {
    GrowingRecord::new(&plan.outline(), plan.basis(), plan.downsampler())
}

/// After its last interval the growing record has the same times and counts, and is judged alike.
pub(crate) fn assert_same(growing: &GrowingRecord, whole: &RunRecord) {
    let so_far = growing.record();
    let buckets =
        |histogram: &Histogram| histogram.buckets().map(|b| (b.highest, b.count)).collect::<Vec<_>>();
    for (grown, truth) in [
        (&so_far.total.response_time, &whole.total.response_time),
        (&so_far.total.service_time, &whole.total.service_time),
    ] {
        assert_eq!(buckets(grown), buckets(truth));
        // Seed 46374 of the plans: a limit that was met or missed by the last digits of the mean.
        assert_eq!(grown.sum(), truth.sum());
    }
    for (grown, truth) in so_far.steps.iter().zip(&whole.steps) {
        assert_eq!((&grown.name, &grown.scenario), (&truth.name, &truth.scenario));
        assert_eq!(buckets(&grown.response_time), buckets(&truth.response_time));
        assert_eq!((grown.ok, &grown.errors), (truth.ok, &truth.errors));
    }
    let Some(verdict) = growing.verdict() else { return };
    let mut growing = growing.clone();
    let judged = growing.judged(whole.started_unix, &whole.thresholds).expect("there is a verdict");
    let steps = judged.steps.iter().chain([&judged.total]).zip(whole.steps.iter().chain([&whole.total]));
    for (grown, truth) in steps {
        assert_eq!(
            (&grown.statuses, &grown.error_examples, &grown.slowest),
            (&truth.statuses, &truth.error_examples, &truth.slowest),
            "{}",
            truth.name
        );
    }
    assert_eq!((&judged.peers, &judged.protocols), (&whole.peers, &whole.protocols));
    assert_eq!((&judged.error_examples, &judged.tls_versions), (&whole.error_examples, &whole.tls_versions));
    assert_eq!(so_far.total.start_lag.count(), whole.total.start_lag.count());
    let counts = |record: &RunRecord| {
        let a = &record.accounting;
        [a.scheduled, a.started, a.never_started, a.ok, a.failed, a.timed_out, a.dropped, a.in_flight_at_stop]
    };
    assert_eq!(counts(so_far), counts(whole));
    assert_eq!(so_far.iterations, whole.iterations);
    assert_eq!((so_far.duration, so_far.completed_in_window), (whole.duration, whole.completed_in_window));
    // Start lags grow bucket by bucket.
    let [grown, truth] = [so_far, whole].map(|record| record.total.start_lag.percentile(99.0).unwrap_or(0));
    assert!(grown.abs_diff(truth) <= truth / 100, "{grown} for a start lag of {truth}");
    let judged = |verdict: &Verdict| {
        let codes = |reasons: &[Reason]| {
            let known = reasons.iter().filter(|one| grown == truth || one.code != ReasonCode::StartLag);
            // Why the load has ended is known at the end only.
            let known = known.filter(|one| one.code != ReasonCode::EndedEarly);
            known.map(|reason| reason.code).collect::<Vec<_>>()
        };
        (codes(&verdict.reasons), codes(&verdict.warnings))
    };
    assert_eq!(judged(&verdict), judged(&whole.verdict), "{verdict:?} and {:?}", whole.verdict);
}
