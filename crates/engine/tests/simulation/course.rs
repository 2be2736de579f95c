//! What a run says about its own course: whether it was steady, whether requests piled up, and whether the
//! engine's counts agree with its times.

use plimsoll_core::Nanos;
use plimsoll_metrics::course::{Steadiness, little, steadiness};
use plimsoll_metrics::slice::percentile_interval;
use plimsoll_metrics::{ReasonCode, RunRecord};
use plimsoll_testkit::{Behaviour, Concurrency, Law, Pause, SimOptions};

use super::{MS, carry_out, plan, world};

fn warns(record: &RunRecord, code: ReasonCode) -> bool {
    record.verdict.warnings.iter().any(|warning| warning.code == code)
}

/// A single queue that serves 1,000/s, under Poisson arrivals of a rate, on as many connections as it takes.
fn queue(rate: &str, seed: u64) -> RunRecord {
    let behaviour = Behaviour {
        service: Law::Exponential { mean: MS },
        concurrency: Concurrency::SingleQueue,
        ..Behaviour::default()
    };
    let flags = [("--rate", rate), ("--arrival", "poisson"), ("-d", "12s"), ("-c", "4000")];
    carry_out(&plan(&flags), SimOptions { seed, ..world(behaviour) }).0
}

#[test]
fn a_rate_above_the_capacity_is_named_and_one_below_is_not() {
    for seed in 1..4 {
        let record = queue("1100", seed);
        assert!(warns(&record, ReasonCode::Overloaded), "seed {seed}: {:?}", record.verdict);
        let record = queue("900", seed);
        assert!(!warns(&record, ReasonCode::Overloaded), "seed {seed}: {:?}", record.verdict);
    }
}

#[test]
fn counts_in_flight_agree_with_rate_and_time() {
    for (seed, service) in (1..).zip([
        Law::Constant(MS * 40),
        Law::LogNormal { median: MS * 30, sigma: 0.5 },
        Law::Bimodal { fast: MS * 5, slow: MS * 200, slow_share: 0.1 },
    ]) {
        let flags = [("--rate", "1000"), ("--arrival", "poisson"), ("-d", "30s"), ("-c", "400")];
        let options = SimOptions { seed, ..world(Behaviour { service, ..Behaviour::default() }) };
        let record = carry_out(&plan(&flags), options).0;
        let check = little(&record).expect("there are intervals enough");
        assert!(check.holds, "{service:?}: {check:?}");
        // Without the requests that are lost here it does not hold: the check can fail.
        let mut lost = record.clone();
        lost.accounting.started = lost.accounting.started * 3 / 4;
        lost.total.response_time = Default::default();
        assert!(!little(&lost).expect("as before").holds, "{service:?}");
    }
}

#[test]
fn a_slow_beginning_is_found_and_marked() {
    let behaviour = Behaviour {
        service: Law::LogNormal { median: MS * 2, sigma: 0.2 },
        // The server works a tenth of the first four seconds.
        pauses: (0..40_u64)
            .map(|n| Pause { at: Nanos::from_secs(1) + MS * (100 * n), length: MS * 90 })
            .collect(),
        ..Behaviour::default()
    };
    let flags = [("--rate", "500"), ("-d", "30s"), ("-c", "200")];
    let options = SimOptions { start: Nanos::from_secs(1), ..world(behaviour) };
    let record = carry_out(&plan(&flags), options).0;
    let Steadiness::From(from) = steadiness(&record) else { panic!("{:?}", steadiness(&record)) };
    assert!((4..=6).contains(&(from.0 / 1_000_000_000)), "{from:?}");
    assert!(!warns(&record, ReasonCode::NotSteady), "{:?}", record.verdict);
}

#[test]
fn an_interval_of_a_run_holds_the_true_percentile() {
    // The median of the law, and its percentile 99: exp(2.3263 · 0.5) times as much.
    let truths = [(50.0, 30.0), (99.0, 30.0 * (2.3263_f64 * 0.5).exp())];
    let behaviour =
        Behaviour { service: Law::LogNormal { median: MS * 30, sigma: 0.5 }, ..Behaviour::default() };
    let flags = [("--rate", "1000"), ("-d", "20s"), ("-c", "400")];
    let record = carry_out(&plan(&flags), SimOptions { seed: 5, ..world(behaviour) }).0;
    for (p, truth_ms) in truths {
        let slices = record.slices.iter().map(|slice| &slice.total.service_time);
        let interval = percentile_interval(p, &record.total.service_time, slices).expect("20 slices");
        let (low, high) = interval.low.zip(interval.high).expect("20,000 independent samples bound p99");
        // The way there and back, and the precision of a histogram.
        let latency = (SimOptions::default().latency * 2).0 as f64;
        let truth = truth_ms * 1e6 + latency;
        assert!((low as f64 * 0.999..=high as f64).contains(&truth), "p{p}: {truth} in {interval:?}");
        assert!(interval.vif < 4.0, "independent times: {interval:?}");
    }
}
