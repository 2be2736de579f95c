//! Requests that are sent again until their answer has come, in simulated worlds.

use plimsoll_core::Nanos;
use plimsoll_metrics::RunRecord;
use plimsoll_testkit::{Behaviour, Faults};

use super::plans::{good, iterations, plan};
use super::{assert_close, percentile, simulate, world};

/// One request that is answered at once, and one that is asked for until it is done.
const STEPS: &str = "scenarios: [{steps: [{post: /order}, {get: /state, timeout: TIMEOUT, poll: POLL}]}]";

fn steps(timeout: &str, poll: &str) -> String {
    STEPS.replace("TIMEOUT", timeout).replace("POLL", poll)
}

/// Some answers are still to come.
fn reluctant(share: f64) -> Behaviour {
    Behaviour { faults: Faults { statuses: vec![(202, share)], ..Faults::default() }, ..good() }
}

fn polls(record: &RunRecord) -> u64 {
    record.accounting.polls
}

#[test]
fn a_request_ends_with_its_answer_and_is_one_however_often_it_was_sent() {
    let poll = "{until: {status: 200}, every: 10ms}";
    for settings in [
        "iterations: 300, connections: 4",
        "iterations: 300, connections: 4, threads: 2, rate: 500",
        "iterations: 300, connections: 2, http2: true, max_concurrent_streams: 3",
    ] {
        let plan = plan(settings, &steps("2s", poll));
        let (record, truth) = simulate(&plan, world(reluctant(0.5)));
        let accounting = record.accounting;
        assert_eq!((accounting.started, accounting.ok), (600, 600), "{settings}");
        assert_eq!(iterations(&record), [300, 300, 0, 0], "{settings}");
        // The server saw exactly the requests that were started and those that were sent again.
        assert_eq!(truth.len() as u64, 600 + polls(&record), "{settings}");
        // Each is sent twice on average.
        assert!((240..360).contains(&polls(&record)), "{settings}: {}", polls(&record));
        let waits = &record.steps[1].response_time;
        assert_eq!(waits.count(), 300, "{settings}");
        let first = record.steps[0].response_time.max();
        let longest = waits.max();
        assert!(first < Some(10_000_000) && longest > Some(20_000_000), "{settings}: {first:?} {longest:?}");
    }
}

#[test]
fn pauses_grow_and_the_time_limit_is_one_for_all_of_them() {
    // Sent at 0, 101.1, 202.2, … of 1 s; or, each pause twice the one before, at 0, 101.1, 303, 707 ms.
    for (backoff, often) in [("1", 10), ("2", 4)] {
        let poll = format!("{{until: {{status: 200}}, every: 100ms, backoff: {backoff}}}");
        let scenario = format!("scenarios: [{{steps: [{{get: /state, timeout: 1s, poll: {poll}}}]}}]");
        let plan = plan("iterations: 20, connections: 20", &scenario);
        let (record, truth) = simulate(&plan, world(reluctant(1.0)));
        let accounting = record.accounting;
        assert_eq!((accounting.started, accounting.timed_out), (20, 20), "backoff {backoff}");
        assert_eq!((truth.len() as u64, polls(&record)), (20 * often, 20 * (often - 1)), "backoff {backoff}");
        assert_close(percentile(&record, 50.0), Nanos::from_secs(1), 0.01);
    }
}

#[test]
fn what_waits_for_its_answer_at_the_end_goes_on_as_long_as_answers_are_waited_for() {
    let poll = "{until: {status: 200}, every: 30ms}";
    let run = |drain: &str| {
        let settings = format!("duration: 200ms, connections: 10, drain: {drain}");
        let plan = plan(&settings, &steps("5s", poll));
        simulate(&plan, world(reluctant(0.7)))
    };
    let (record, truth) = run("4s");
    let accounting = record.accounting;
    assert_eq!((accounting.in_flight_at_stop, accounting.ok), (0, accounting.started), "{accounting:?}");
    assert_eq!(truth.len() as u64, accounting.started + accounting.polls);
    let (record, truth) = run("0s");
    let accounting = record.accounting;
    assert!((5..=10).contains(&accounting.in_flight_at_stop), "{accounting:?}");
    assert_eq!(accounting.ok + accounting.in_flight_at_stop, accounting.started, "{accounting:?}");
    // A poll that was just to be written may not have reached the server.
    let seen = truth.len() as u64;
    assert!(seen <= accounting.started + accounting.polls, "{seen}: {accounting:?}");
}

#[test]
fn a_bad_status_ends_the_waiting() {
    let faults = Faults { statuses: vec![(202, 0.6), (503, 0.3)], ..Faults::default() };
    let scenario = "scenarios: [{steps: [{get: /state, poll: {until: {status: 200}, every: 1ms}}]}]";
    let plan = plan("iterations: 400, connections: 5", scenario);
    let (record, truth) = simulate(&plan, world(Behaviour { faults, ..good() }));
    let accounting = record.accounting;
    assert_eq!((accounting.ok + accounting.failed, accounting.timed_out), (400, 0));
    // Three of four end badly.
    assert!((260..340).contains(&accounting.failed), "{accounting:?}");
    assert_eq!(truth.len() as u64, 400 + accounting.polls);
}
