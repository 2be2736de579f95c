//! R10 to R13, as a run has them. Their simulations, over hundreds of seeds, are beside the formulas, in the
//! tests of the crate `statistics`.

use plimsoll_core::{Nanos, Random};
use plimsoll_metrics::ReasonCode;
use plimsoll_metrics::course::{Steadiness, steadiness};
use plimsoll_metrics::slice::percentile_interval;
use plimsoll_testkit::oracle::Mm1;
use plimsoll_testkit::{Behaviour, Law, Pause, SimOptions};

use crate::truth::world::{MS, SECOND, near, one_queue, plan, simulate};

/// R10: the intervals of runs against a queue hold the true percentile, although its response times depend
/// on each other, and say how much they do.
#[test]
fn r10_intervals_of_a_queue_hold_the_true_percentile() {
    let theory = Mm1 { arrivals_per_s: 800.0, services_per_s: 1_000.0 };
    let mut held = 0;
    let mut plan = plan("rate: 800, arrival: poisson, duration: 60s, connections: 2000");
    for seed in 1..=20 {
        plan.seed = Random::new(seed, 10).bits();
        let options = SimOptions { seed, ..near(one_queue(Law::Exponential { mean: MS })) };
        let (record, _) = simulate(&plan, options);
        for p in [50.0, 99.0] {
            let slices = record.slices.iter().map(|slice| &slice.total.response_time);
            let interval = percentile_interval(p, &record.total.response_time, slices).expect("20 slices");
            let (low, high) = (interval.low.expect("an end"), interval.high.unwrap_or(u64::MAX));
            let truth = theory.quantile(p / 100.0) * 1e9;
            held += u32::from((low as f64 * 0.999..=high as f64).contains(&truth));
            assert!(interval.vif > 3.0, "a busy queue remembers: {interval:?}");
        }
    }
    // 40 intervals at 95 % each; a method that assumes independent requests covers the truth in 12 at most.
    assert!(held >= 35, "{held} of 40");
}

/// R10: requests that do not depend on each other have narrower intervals.
#[test]
fn r10_intervals_of_independent_times_are_narrow() {
    // The median of the law, and its percentile 99: exp(2.3263 · 0.5) times as much.
    let law = Law::LogNormal { median: MS * 30, sigma: 0.5 };
    let options = SimOptions { seed: 5, ..near(Behaviour { service: law, ..Behaviour::default() }) };
    let (record, _) = simulate(&plan("rate: 1000, duration: 20s, connections: 400"), options);
    for (p, truth_ms) in [(50.0, 30.0), (99.0, 30.0 * (2.3263_f64 * 0.5).exp())] {
        let slices = record.slices.iter().map(|slice| &slice.total.service_time);
        let interval = percentile_interval(p, &record.total.service_time, slices).expect("20 slices");
        let (low, high) = interval.low.zip(interval.high).expect("20,000 independent samples bound p99");
        let truth = truth_ms * 1e6;
        assert!((low as f64 * 0.999..=high as f64).contains(&truth), "p{p}: {truth} in {interval:?}");
        assert!(interval.vif < 4.0, "independent times: {interval:?}");
    }
}

/// R11: a slow beginning is found and marked, and nothing is thrown away.
#[test]
fn r11_a_slow_beginning_is_found_and_marked() {
    let behaviour = Behaviour {
        service: Law::LogNormal { median: MS * 2, sigma: 0.2 },
        // The server works a tenth of the first four seconds.
        pauses: (0..40_u64).map(|n| Pause { at: SECOND + MS * (100 * n), length: MS * 90 }).collect(),
        ..Behaviour::default()
    };
    let plan = plan("rate: 500, duration: 30s, connections: 200");
    let mut late = 0;
    for seed in 1..=20 {
        let options = SimOptions { start: SECOND, seed, ..near(behaviour.clone()) };
        let (record, _) = simulate(&plan, options);
        let Steadiness::From(from) = steadiness(&record) else { panic!("{:?}", steadiness(&record)) };
        assert!(from >= SECOND * 4, "seed {seed}: {from:?}");
        late += u32::from(from > SECOND * 6);
        let warned = record.verdict.warnings.iter().any(|warning| warning.code == ReasonCode::NotSteady);
        assert!(!warned, "{:?}", record.verdict);
        assert_eq!(record.total.response_time.count(), 15_000);
    }
    assert!(late <= 1, "{late} of 20 were found later than needed");
}

/// R11: a server that becomes slower throughout is never steady, and one that does not is from the start.
#[test]
fn r11_a_drift_is_never_steady() {
    let run = |drift: bool| {
        // Every 100 ms it stands still, ever longer.
        let length = |n: u64| Nanos::from_micros(if drift { n * 250 } else { 20_000 });
        let pauses = (0..300_u64).map(|n| Pause { at: SECOND + MS * (100 * n), length: length(n) }).collect();
        let service = Law::LogNormal { median: MS * 2, sigma: 0.2 };
        let behaviour = Behaviour { service, pauses, ..Behaviour::default() };
        let options = SimOptions { start: SECOND, ..near(behaviour) };
        steadiness(&simulate(&plan("rate: 500, duration: 30s, connections: 200"), options).0)
    };
    assert!(matches!(run(true), Steadiness::Never { .. }), "{:?}", run(true));
    let without = run(false);
    assert!(matches!(without, Steadiness::From(from) if from <= SECOND * 2), "{without:?}");
}
