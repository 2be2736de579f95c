//! Attribution of a run's limit, in worlds whose limit is known.

use plimsoll_core::Nanos;
use plimsoll_metrics::{LimitedBy, RunRecord};
use plimsoll_testkit::{Behaviour, Concurrency, Faults, Law, Pause};

use crate::{MS, SimOptions, carry_out, plan, world};

/// A world, and its effect on this load.
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
    assert!(record.verdict.limited_by.hint.contains("-c 2"), "{:?}", record.verdict.limited_by);
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
        let record = limited(&flags, world(one_queue(law)));
        assert_limited(&record, LimitedBy::Target, "wait for one another");
        assert_limited(&record, LimitedBy::Target, "with 32 in flight on average");
    }
}

/// Users that think for three quarters of their time are not in flight meanwhile.
#[test]
fn users_that_think_are_not_said_to_be_in_flight() {
    let scenario = "scenarios: [{steps: [{get: /, think: 30ms}]}]";
    let plan = crate::plans::plan("connections: 32, duration: 2s", scenario);
    let (record, _) = carry_out(&plan, world(constant(MS * 10)));
    assert_limited(&record, LimitedBy::ConnectionLimit, "32 users");
    assert_limited(&record, LimitedBy::ConnectionLimit, "with 8.1 requests in flight on average");
    assert!(record.verdict.limited_by.hint.contains("shorter pauses"), "{:?}", record.verdict.limited_by);
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
        let words = "no answer from 3.00 s to 4.00 s, with 1";
        assert_limited(&limited(&flags, world(behaviour.clone())), LimitedBy::Target, words);
    }
}

#[test]
fn without_a_stall_nothing_is_set_apart() {
    let pauses = vec![Pause { at: Nanos::from_secs(1_001), length: Nanos::from_millis(500) }];
    let record = limited(&[("--rate", "1000"), ("-d", "2s")], world(Behaviour { pauses, ..constant(MS) }));
    assert_eq!(record.total.response_in_stall.count(), 0, "the server stood still, not we");
}

/// The next request mostly meets a reset, as the connection is closed by then.
#[test]
fn a_server_that_closes_kept_connections_in_silence_is_named_with_a_remedy() {
    for close_delay in [Nanos::from_micros(10), Nanos::from_micros(300)] {
        let faults = Faults { close_after: Some(5), close_delay, ..Faults::default() };
        let behaviour = Behaviour { faults, ..constant(MS) };
        for request in [&[("-X", "POST")][..], &[("--no-resend", "")]] {
            let flags = [&[("-c", "4"), ("-d", "1s")], request].concat();
            let record = limited(&flags, world(behaviour.clone()));
            assert_limited(&record, LimitedBy::Target, "were not served");
            let limit = &record.verdict.limited_by;
            assert!(limit.hint.contains("--disable-keepalive"), "{request:?}: {limit:?}");
        }
        let record = limited(&[("-c", "4"), ("-d", "1s")], world(behaviour.clone()));
        assert_eq!(record.accounting.failed, 0);
        assert_eq!(record.error_examples.len(), 0, "nothing has failed: {:?}", record.error_examples);
    }
}
