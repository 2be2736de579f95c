//! Arrivals that are requests (`rate_of: requests`).

use plimsoll_core::Nanos;
use plimsoll_metrics::Pace;
use plimsoll_testkit::{Faults, Law, SimOptions, TruthLog};

use super::plans::{good, good_by_step, iterations, plan};
use super::{Behaviour, MS, percentile, simulate, world};

const PAIR: &str = "scenarios:
- {name: a, weight: 3, steps: [{get: /a1}, {get: /a2}, {get: /a3}]}
- {name: b, weight: 1, STARTsteps: [{get: /b1}, {get: /b2}]}
";

/// Requests of each tenth of a second since the first one.
fn tenths(truth: &TruthLog) -> Vec<usize> {
    let entries = truth.entries();
    let first = entries.iter().map(|entry| entry.received).min().expect("there are requests");
    let mut counts = Vec::new();
    for entry in entries {
        let tenth = (entry.received.since(first).0 / 100_000_000) as usize;
        counts.resize(counts.len().max(tenth + 1), 0);
        counts[tenth] += 1;
    }
    counts
}

fn kept(behaviour: Behaviour) -> SimOptions {
    SimOptions { keep_requests: true, ..world(behaviour) }
}

/// Seen against h2loadrunner with a scenario that joins after a second: 700 requests in place of 600, 247 of
/// them in the first second.
#[test]
fn there_are_as_many_requests_as_arrivals_however_long_iterations_are() {
    for start in ["", "start_after: 1s, "] {
        for threads in [1, 2] {
            let text = PAIR.replace("START", start);
            let settings =
                format!("rate: 200, rate_of: requests, duration: 3s, connections: 4, threads: {threads}");
            let (record, truth) = simulate(&plan(&settings, &text), kept(good()));
            assert_eq!((record.accounting.scheduled, truth.len()), (600, 600), "{start}");
            assert_eq!(record.accounting.never_started, 0);
            let tenths = tenths(&truth);
            assert!(tenths.iter().take(29).all(|count| (19..=21).contains(count)), "{tenths:?}");
            // Weights are shares of the requests.
            let by_step = good_by_step(&record);
            let (of_a, of_b): (u64, u64) = (by_step[..3].iter().sum(), by_step[3..].iter().sum());
            let expected = if start.is_empty() { 150 } else { 100 };
            assert!(of_b.abs_diff(expected) <= 2, "{of_a} {of_b}");
            let [started, completed, failed, unfinished] = iterations(&record);
            assert_eq!((started, failed), (completed + unfinished, 0));
            assert!(record.verdict.valid, "{:?}", record.verdict);
            assert_eq!(record.target_per_second, Some(200.0));
            // A request is due at its arrival, and not when the one before has ended.
            assert!(percentile(&record, 99.0) < Nanos::from_millis(2));
        }
    }
}

#[test]
fn the_rate_is_told_in_requests() {
    let text = PAIR.replace("START", "");
    let plan = plan("rate: 200, rate_of: requests, duration: 2s, connections: 4", &text);
    let (record, _) = simulate(&plan, world(good()));
    let interval = record.intervals.iter().find(|interval| !interval.drain).expect("an interval");
    let pace = Pace::of_interval(interval, &plan.outline(), Some(200.0));
    assert!(pace.to_string().ends_with("/s of 200/s") && !pace.to_string().contains("iterations"), "{pace}");
    assert_eq!((record.requests_per_arrival(), plan.requests_per_arrival()), (1.0, Some(1.0)));
}

/// An iteration whose request is not answered yet holds nothing up: others begin.
#[test]
fn a_slow_target_gets_its_requests_all_the_same() {
    let text = "scenarios: [{steps: [{get: /a}, {get: /b, think: 50ms}, {get: /c}]}]";
    let behaviour = Behaviour { service: Law::Constant(MS * 300), ..good() };
    let settings = "rate: 100, rate_of: requests, warmup: 1s, duration: 3s, connections: 200";
    let (record, truth) = simulate(&plan(settings, text), world(behaviour));
    assert_eq!((record.accounting.scheduled, record.accounting.unmeasured), (300, 100));
    assert_eq!(truth.len(), 400);
    assert!(record.steps.iter().all(|step| step.ok > 60), "{:?}", good_by_step(&record));
}

/// Arrivals that find no connection wait, or are dropped; requests that were due stay accounted for.
#[test]
fn arrivals_beyond_what_the_target_takes_are_accounted_for() {
    let text = PAIR.replace("START", "");
    for (overload, faults) in
        [("queue", Faults::default()), ("drop", Faults { drop_reply: 0.1, ..Faults::default() })]
    {
        let behaviour = Behaviour { service: Law::Constant(MS * 20), faults, ..good() };
        let settings = format!(
            "rate: 1000, rate_of: requests, duration: 1s, connections: 4, timeout: 50ms, overload: {overload}"
        );
        let (record, _) = simulate(&plan(&settings, &text), world(behaviour));
        let accounts = &record.accounting;
        assert_eq!(accounts.scheduled, 1000, "{overload}");
        assert_eq!(accounts.scheduled, accounts.started + accounts.dropped + accounts.never_started);
        assert!(accounts.started < 300 && !record.verdict.valid, "{accounts:?}");
    }
}

/// Iterations under way are completed after the data has ended: their requests have arrivals, too.
#[test]
fn iterations_under_way_are_completed_when_their_data_has_ended() {
    let text = "data: {ids: {range: [1, 21], at_end: stop}}
scenarios: [{steps: [{get: '/a/${ids}'}, {get: '/b/${ids}'}]}]
";
    let settings = "rate: 100, rate_of: requests, duration: 3s, connections: 4";
    let (record, truth) = simulate(&plan(settings, text), world(good()));
    assert_eq!(truth.len(), 40);
    assert_eq!(iterations(&record), [20, 20, 0, 0]);
}

#[test]
fn requests_at_once_have_an_arrival_each() {
    let text = "scenarios: [{steps: [{parallel: [{get: /a}, {get: /b}, {get: /c}]}]}]";
    let settings = "rate: 90, rate_of: requests, duration: 1s, connections: 4";
    let (record, truth) = simulate(&plan(settings, text), world(good()));
    assert_eq!((truth.len(), record.accounting.scheduled), (90, 90));
    assert_eq!(good_by_step(&record), [30, 30, 30]);
}
