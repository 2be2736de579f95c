//! Clients that misbehave on purpose, in simulated worlds: aborted requests are counted exactly, as the
//! servers saw it, and as no failure.

use std::sync::Arc;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_engine::{Backends, Control, TargetAddress, preflight};
use plimsoll_metrics::RunRecord;
use plimsoll_testkit::{Answer, Behaviour, Framing, Law, SimOpen, SimOptions, TruthLog};

use super::plans::plan;
use super::{MS, carry_out, delivered, percentile, world};

/// HTTP/1.1 and HTTP/2, closed and open.
const LOADS: [&str; 4] = [
    "connections: 4, iterations: 2000",
    "connections: 40, rate: 500, iterations: 2000",
    "connections: 3, iterations: 2000, http2_prior_knowledge: true, max_concurrent_streams: 5",
    "connections: 4, rate: 500, iterations: 2000, http2_prior_knowledge: true, max_concurrent_streams: 8",
];

const POST: &str = "scenarios: [{steps: [{post: /, body: '${uuid} and some more text than that'}]}]";

/// A server that answers after a millisecond, with a body in several segments.
fn server() -> Behaviour {
    let answer = Answer { framing: Framing::Chunked(1_000), ..Answer::with_body(vec![b'x'; 40_000]) };
    Behaviour { answer, service: Law::Constant(MS), ..Behaviour::default() }
}

fn aborted(record: &RunRecord) -> u64 {
    record.total.errors[ErrorClass::AbortedByUs]
}

/// Carries out a load; every request is in its account, and the servers have seen those that were sent whole.
fn misbehave(load: &str, faults: &str, behaviour: Behaviour) -> (RunRecord, TruthLog) {
    let options = SimOptions { keep_requests: true, ..world(behaviour) };
    let (record, truth) = carry_out(&plan(&format!("{load}, {faults}"), POST), options);
    let accounts = &record.accounting;
    assert_eq!(aborted(&record), accounts.aborted, "{load}");
    assert_eq!((accounts.failed, accounts.timed_out), (0, 0), "{load} {:?}", record.error_examples);
    assert_eq!(accounts.ok + accounts.aborted, accounts.started, "{load}");
    assert_eq!(accounts.started, 2_000, "{load}");
    assert_eq!(truth.len() as u64 + accounts.cut_short, delivered(&record), "{load}");
    assert!(record.verdict.valid, "{load}: {:?}", record.verdict);
    assert!(!format!("{:?}", record.verdict).contains("aborted"), "{load}: {:?}", record.verdict);
    (record, truth)
}

#[test]
fn requests_are_aborted_in_the_middle_and_the_server_never_has_them() {
    for load in LOADS {
        let (record, truth) = misbehave(load, "abort_pct: 10, abort_at: request", server());
        let accounts = &record.accounting;
        assert!((150..=250).contains(&accounts.aborted), "{load}: {}", accounts.aborted);
        assert_eq!(accounts.cut_short, accounts.aborted, "{load}");
        assert_eq!(truth.len() as u64, accounts.ok, "{load}");
    }
}

#[test]
fn responses_are_broken_off_after_the_server_has_done_its_work() {
    for load in LOADS {
        let (record, truth) = misbehave(load, "abort_pct: 10, abort_at: response", server());
        let accounts = &record.accounting;
        assert!((150..=250).contains(&accounts.aborted), "{load}: {}", accounts.aborted);
        assert_eq!((accounts.cut_short, truth.len()), (0, 2_000), "{load}");
    }
}

#[test]
fn either_is_drawn_by_the_seed_and_leaves_requests_as_they_are() {
    for load in LOADS {
        let run = |faults: &str| misbehave(load, faults, server());
        let (one, _) = run("abort_pct: 20");
        let (same, _) = run("abort_pct: 20");
        let counts = |record: &RunRecord| (record.accounting.aborted, record.accounting.cut_short);
        assert_eq!(counts(&one), counts(&same), "{load}");
        let (all, cut) = counts(&one);
        assert!((330..=470).contains(&all) && (all / 3..=all * 2 / 3).contains(&cut), "{load}: {all} {cut}");
        // None of them counts in a response time.
        assert_eq!(one.total.response_time.count(), one.accounting.ok, "{load}");
        assert_eq!(one.total.failed_response_time.count(), 0, "{load}");
    }
}

/// The preflight request is exempt from faults: knowledge that is needed before the run is not left to
/// chance.
#[test]
fn the_request_before_the_run_is_sent_and_answered() {
    let options = SimOptions { keep_requests: true, ..world(server()) };
    let get = "scenarios: [{steps: [{get: /}]}]";
    let plan = plan("connections: 2, iterations: 20, abort_pct: 100", get);
    let open = SimOpen::new(options);
    let target_addresses: Arc<[TargetAddress]> = vec![super::server().into()].into();
    let found = preflight(&plan, &Backends::of(open.clone()), &mut [target_addresses], &Control::default())
        .expect("it is sent");
    assert_eq!((found.len(), found[0].status(), found[0].records[0].accounting.ok), (1, Some(200), 1));
    assert_eq!(carry_out(&plan, world(server())).0.accounting.aborted, 20);
}

/// A client that leaves before the answer is not a failure of the server, which has done its work.
#[test]
fn answers_are_not_waited_for() {
    let slow = Behaviour { service: Law::Constant(Nanos::from_millis(20)), ..server() };
    for load in LOADS {
        let (record, truth) = misbehave(load, "abandon_pct: 10, abandon_after: 5ms", slow.clone());
        let accounts = &record.accounting;
        assert!((150..=250).contains(&accounts.aborted), "{load}: {}", accounts.aborted);
        assert_eq!((accounts.cut_short, truth.len()), (0, 2_000), "{load}");
        assert!(percentile(&record, 1.0) >= Nanos::from_millis(20), "{load}");
        // A client that has the answer in time has no reason to leave.
        let (record, _) = misbehave(load, "abandon_pct: 10, abandon_after: 200ms", slow.clone());
        assert_eq!(record.accounting.aborted, 0, "{load}");
    }
}
