//! What limited a run, in worlds in which that is known.

use plimsoll_core::{Nanos, Random};
use plimsoll_metrics::{LimitedBy, RunRecord};
use plimsoll_testkit::{Behaviour, Concurrency, Law, Pause};

use crate::{MS, SimOptions, carry_out, percentile, plan, simulate, world};

/// A world, and what it does to this load.
fn limited(flags: &[(&'static str, &str)], options: SimOptions) -> RunRecord {
    carry_out(&plan(flags), options).0
}

#[track_caller]
fn assert_limited(record: &RunRecord, by: LimitedBy, words: &str) {
    let limit = &record.verdict.limited_by;
    assert_eq!(limit.what, by, "{limit:?}, {:?}", record.verdict);
    assert!(limit.evidence.contains(words), "{limit:?}");
}

fn constant(service: Nanos) -> Behaviour {
    Behaviour { service: Law::Constant(service), ..Behaviour::default() }
}

fn one_queue(service: Law) -> Behaviour {
    Behaviour { service, concurrency: Concurrency::SingleQueue, ..Behaviour::default() }
}

#[test]
fn few_connections_are_no_slow_server() {
    let flags = [("--rate", "1000"), ("-c", "5"), ("-d", "3s")];
    let record = limited(&flags, world(constant(MS * 10)));
    assert_limited(&record, LimitedBy::ConnectionLimit, "carry at most");
    assert!(record.verdict.limited_by.hint.contains("-c 1"), "{:?}", record.verdict.limited_by);
    // The same connections before a server that takes one request at a time.
    let record = limited(&flags, world(one_queue(Law::Constant(MS * 2))));
    assert_limited(&record, LimitedBy::Target, "wait for one another");
    // With times that vary, few in one queue look like times that only vary.
    let record = limited(&flags, world(one_queue(Law::Exponential { mean: MS * 2 })));
    assert_limited(&record, LimitedBy::Unknown, "may wait for one another");
}

#[test]
fn users_are_the_limit_of_a_closed_run_until_the_server_queues() {
    let flags = [("-c", "32"), ("-d", "2s")];
    let record = limited(&flags, world(constant(MS * 10)));
    assert_limited(&record, LimitedBy::ConnectionLimit, "32 users");
    for law in [Law::Constant(MS), Law::Exponential { mean: MS }] {
        assert_limited(&limited(&flags, world(one_queue(law))), LimitedBy::Target, "wait for one another");
    }
}

#[test]
fn a_server_that_keeps_up_limits_nothing() {
    let record = limited(&[("--rate", "1000"), ("-d", "5s")], world(constant(MS * 10)));
    assert_limited(&record, LimitedBy::None, "on time");
}

#[test]
fn a_frozen_server_is_the_target() {
    let pauses = vec![Pause { at: Nanos::from_secs(1_003), length: Nanos::from_secs(1) }];
    let behaviour = Behaviour { pauses, ..constant(MS) };
    for connections in [&[("-c", "10")][..], &[]] {
        let flags = [&[("--rate", "1000"), ("-d", "10s")], connections].concat();
        let words =
            if connections.is_empty() { "the p90 was up to" } else { "kept requests for up to 1.00 s" };
        assert_limited(&limited(&flags, world(behaviour.clone())), LimitedBy::Target, words);
    }
}

/// R17: λ = 1.05 μ is named within 10 s, λ = 0.9 μ is not, but for 5 % of the seeds.
#[test]
fn an_overloaded_queue_is_told_from_a_busy_one() {
    let named = |rate: &'static str, seed: u64| {
        let flags = [("--rate", rate), ("--arrival", "poisson"), ("-d", "10s"), ("--overload", "grow")];
        let mut plan = plan(&flags);
        plan.seed = Random::new(seed, 17).bits();
        let options = SimOptions { seed, ..world(one_queue(Law::Exponential { mean: MS })) };
        carry_out(&plan, options).0.verdict.limited_by
    };
    let wrong = |rate, by| {
        let limits = (1..=20).map(|seed| (seed, named(rate, seed)));
        limits.filter(|(_, limit)| limit.what != by).collect::<Vec<_>>()
    };
    let (overloaded, busy) = (wrong("1050", LimitedBy::Target), wrong("900", LimitedBy::None));
    assert!(overloaded.len() <= 1 && busy.len() <= 1, "{overloaded:#?} {busy:#?}");
}

/// The instants of the generator's stall of half a second in these tests.
const STALL: Pause = Pause { at: Nanos::from_millis(1_001_300), length: Nanos::from_millis(500) };

#[test]
fn a_stall_of_our_own_is_not_blamed_on_the_server_and_its_requests_are_set_apart() {
    for flags in [&[("--rate", "1000"), ("-d", "3s")][..], &[("-c", "4"), ("-d", "3s")][..]] {
        let options = SimOptions { stalls: vec![STALL], ..world(constant(MS)) };
        let (record, _) = simulate(&plan(flags), options);
        assert_limited(&record, LimitedBy::Generator, "stood still");
        let total = &record.total;
        let open = flags[0].0 == "--rate";
        // One per millisecond was due in it. Nothing is due to users, and what was in flight had its response
        // in time, as its stamp says.
        let met = total.response_in_stall.count();
        assert!(if open { (350..=510).contains(&met) } else { met <= 8 }, "{met}");
        let rest = total.response_time.without(&total.response_in_stall);
        assert_eq!(rest.count() + met, total.ok);
        let slowest = Nanos(rest.max().expect("there are others"));
        assert!(slowest < MS * 5, "{slowest:?} is not the server's");
        if open {
            assert!(percentile(&record, 99.0) > MS * 300, "all of them are in the whole figures");
        }
    }
}

#[test]
fn without_a_stall_nothing_is_set_apart() {
    let pauses = vec![Pause { at: Nanos::from_secs(1_001), length: Nanos::from_millis(500) }];
    let record = limited(&[("--rate", "1000"), ("-d", "2s")], world(Behaviour { pauses, ..constant(MS) }));
    assert_eq!(record.total.response_in_stall.count(), 0, "the server stood still, not we");
}
