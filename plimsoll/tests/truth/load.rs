//! R14 to R18: whether the load was the one that was asked for, and whether the target bears it.

use plimsoll_core::{Nanos, Random, Rate, Shard};
use plimsoll_metrics::course::little;
use plimsoll_metrics::{LimitedBy, ReasonCode};
use plimsoll_schedule::{Arrivals, Process, Profile, Stage};
use plimsoll_testkit::{Behaviour, Concurrency, Faults, Law, SimOptions};

use crate::truth::world::{MS, SECOND, infinite, near, one_queue, plan, reasons, simulate};

/// R14, T4: five connections to a server that takes 10 ms for each request of a connection carry 500/s.
#[test]
fn r14_too_few_connections_are_the_limit_and_not_the_server() {
    let serial = || Behaviour { concurrency: Concurrency::PerConnection, ..infinite(Law::Constant(MS * 10)) };
    let (record, _) = simulate(&plan("rate: 1000, duration: 5s, connections: 5"), near(serial()));
    assert!(!record.verdict.valid && reasons(&record).contains(&ReasonCode::ConnectionLimit));
    let limit = &record.verdict.limited_by;
    assert_eq!(limit.what, LimitedBy::ConnectionLimit, "{limit:?}");
    assert!(limit.evidence.contains("carry at most 500/s"), "{limit:?}");
    assert!(record.accounting.never_started > 2_000, "{:?}", record.accounting);
    assert_eq!((record.connections.opened, record.connections.peak_open), (5, 5));
    // With enough connections the same server is fast.
    let (record, _) = simulate(&plan("rate: 1000, duration: 5s, connections: 20"), near(serial()));
    assert!(record.verdict.valid, "{:?}", record.verdict);
    assert_eq!(record.accounting.ok, 5_000);
}

/// The arrivals of all workers, by the schedules that they have.
fn united(profile: &Profile, workers: u32) -> Vec<Nanos> {
    let mut times: Vec<Nanos> = (0..workers)
        .flat_map(|index| Arrivals::new(profile, Process::Uniform, 1, Shard { index, of: workers }))
        .map(|arrival| arrival.at)
        .collect();
    times.sort_unstable();
    times
}

/// R15: rates from one in ten seconds to ten million a second, on 1 to 64 workers, also on more workers than
/// there are arrivals: never off by more than one request, and exact in the sum.
#[test]
fn r15_the_counts_of_a_rate_are_exact_on_any_number_of_workers() {
    for (count, period, seconds) in [
        (1, SECOND * 10, 1_000.0),
        (1, SECOND, 100.0),
        (3, SECOND * 7, 700.0),
        (40, SECOND, 100.0),
        (9_973, SECOND, 30.0),
        (10_000_000, SECOND, 0.05),
    ] {
        let rate = Rate::new(count, period).expect("it is one");
        let length = Nanos::from_secs_f64(seconds);
        let profile = Profile::constant(rate, length);
        let due = (rate.per_second_f64() * seconds).round() as usize;
        for workers in [1, 2, 4, 16, 64] {
            let times = united(&profile, workers);
            assert_eq!(times.len(), due, "{rate:?} on {workers}");
            let drifts =
                |(n, at): (usize, &Nanos)| (n as f64 - rate.per_second_f64() * at.as_secs_f64()).abs() > 1.0;
            assert!(!times.iter().enumerate().any(drifts), "{rate:?} on {workers}");
        }
    }
}

/// R15: ramps start the integral of their rate; rests and changes keep due arrivals.
#[test]
fn r15_ramps_rests_and_changes_are_integrals() {
    let stage = |seconds, from, to| Stage {
        duration: SECOND * seconds,
        from: Rate::per_second(from),
        to: Rate::per_second(to),
    };
    let planned = Profile::new(vec![
        stage(10, 0, 2_000),
        stage(5, 2_000, 2_000),
        stage(3, 0, 0),
        stage(7, 2_000, 1_000),
    ])
    .expect("they follow each other");
    let changed = planned.changed(SECOND * 12, Rate::per_second(77)).expect("it fits");
    let resumed = changed.spliced(SECOND * 20, &planned).expect("it fits");
    // Of the ramp down the part from 20 s on: from 12,000/7 per second to 1,000 in five seconds.
    let rest = (12_000.0 / 7.0 + 1_000.0) / 2.0 * 5.0;
    let expected = [(&planned, 30_500.0), (&changed, 15_001.0), (&resumed, 14_616.0 + rest)];
    for (profile, integral) in expected {
        for workers in [1, 7, 64] {
            let times = united(profile, workers);
            assert!((times.len() as f64 - integral).abs() <= 1.0, "{} on {workers}", times.len());
            assert_eq!(times.len() as u64, profile.total());
        }
    }
}

/// R15: the engine starts all due arrivals, also with more threads than arrivals a second (wrk2#147).
#[test]
fn r15_the_engine_starts_every_arrival() {
    for (rate, seconds, threads) in [("0.1", 100, 4), ("1", 20, 16), ("12345", 2, 3), ("200000", 1, 4)] {
        let settings = format!("rate: {rate}, duration: {seconds}s, threads: {threads}, connections: 4000");
        let (record, truth) = simulate(&plan(&settings), near(Behaviour::default()));
        let due = (rate.parse::<f64>().expect("a number") * f64::from(seconds)).round() as u64;
        let of = &record.accounting;
        assert_eq!([of.scheduled, of.started, of.ok, truth.len() as u64], [due; 4], "{settings}");
        assert_eq!(record.intervals.iter().map(|interval| interval.scheduled).sum::<u64>(), due);
    }
}

/// R16: there are no retries, so that the offered load is the wanted one: the target sees every request once,
/// also when it fails or does not answer, and also over its capacity.
#[test]
fn r16_nothing_is_sent_twice() {
    let faults = Faults { statuses: vec![(503, 0.2)], reset: 0.1, drop_reply: 0.05, ..Faults::default() };
    let behaviour =
        Behaviour { faults, concurrency: Concurrency::Capacity(5), ..infinite(Law::Constant(MS * 10)) };
    let settings = "rate: 800, duration: 5s, connections: 4000, timeout: 1s, drain: 60s";
    let (record, truth) = simulate(&plan(settings), near(behaviour));
    let of = &record.accounting;
    assert!(of.failed > 300 && of.timed_out > 2_000 && of.ok > 500, "{of:?}");
    assert_eq!((of.scheduled, of.started, of.undelivered), (4_000, 4_000, 0));
    assert_eq!(truth.len(), 4_000, "one for each, and no more");
}

/// R17: λ = 1.05 μ is named within 10 s, λ = 0.9 μ is not, but for 5 % of the seeds.
#[test]
fn r17_an_overloaded_queue_is_told_from_a_busy_one() {
    let wrong = |rate: u32, by: LimitedBy| {
        let mut plan = plan(&format!("rate: {rate}, arrival: poisson, duration: 10s, connections: 4000"));
        let wrong = |seed: &u64| {
            plan.seed = Random::new(*seed, 17).bits();
            let options = SimOptions { seed: *seed, ..near(one_queue(Law::Exponential { mean: MS })) };
            let verdict = simulate(&plan, options).0.verdict;
            let warned = verdict.warnings.iter().any(|warning| warning.code == ReasonCode::Overloaded);
            verdict.limited_by.what != by || warned != (by == LimitedBy::Target)
        };
        (1..=40).filter(wrong).collect::<Vec<u64>>()
    };
    let (overloaded, busy) = (wrong(1_050, LimitedBy::Target), wrong(900, LimitedBy::None));
    assert!(overloaded.len() <= 2 && busy.len() <= 2, "seeds {overloaded:?} and {busy:?}");
}

/// R17, T1: the mean number in flight is rate times time, within 1 % and the uncertainty of counts at a few
/// instants; a run that lost a part of its requests is caught.
#[test]
fn r17_counts_in_flight_agree_with_rate_and_time() {
    for (seed, law) in (1..).zip([
        Law::Constant(MS * 400),
        Law::LogNormal { median: MS * 300, sigma: 0.5 },
        Law::Bimodal { fast: MS * 50, slow: MS * 2_000, slow_share: 0.1 },
    ]) {
        for arrival in ["uniform", "poisson"] {
            let settings = format!("rate: 1000, arrival: {arrival}, duration: 120s, connections: 4000");
            let (record, _) = simulate(&plan(&settings), SimOptions { seed, ..near(infinite(law)) });
            let check = little(&record).expect("there are intervals enough");
            let off = (check.in_flight - check.product).abs();
            assert!(check.holds, "{law:?}, {arrival}: {check:?}");
            assert!(off <= 0.01 * check.product + check.in_flight_error, "{law:?}, {arrival}: {check:?}");
            let mut lost = record.clone();
            lost.accounting.started = lost.accounting.started * 3 / 4;
            lost.total.response_time = Default::default();
            assert!(!little(&lost).expect("as before").holds, "{law:?}, {arrival}");
        }
    }
}
