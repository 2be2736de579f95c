//! Bodies that are made for their requests, in simulated worlds.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_metrics::WorkerRecord;
use plimsoll_plan::Plan;
use plimsoll_scenario::{Bodies, SuppliedBody};
use plimsoll_testkit::{Behaviour, Law, SimOptions, TruthLog};

use super::plans::plan;
use super::{MS, simulate, world};

/// Batches of logs, so small or so large.
fn logs(settings: &str, records: u32) -> Plan {
    let batch = format!("{{kind: logs, batch_size: {records}, compression: {{gzip: {{level: 1}}}}}}");
    plan(settings, &format!("scenarios: [{{steps: [{{post: /write, batch: {batch}}}]}}]"))
}

fn options() -> SimOptions {
    let behaviour = Behaviour { service: Law::Constant(MS), ..Behaviour::default() };
    SimOptions { keep_requests: true, ..world(behaviour) }
}

/// Returns the bodies of all requests. Asserts that each has the length that its `content-length` field
/// states.
fn bodies(truth: &TruthLog) -> Vec<Vec<u8>> {
    let body = |request: Vec<u8>| {
        let end = request.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(length.map(str::to_owned), Some((request.len() - end).to_string()), "{head}");
        assert!(head.contains("content-type: application/msgpack"), "{head}");
        request[end..].to_vec()
    };
    truth.entries().into_iter().map(|truth| body(truth.request)).collect()
}

#[test]
fn each_request_has_a_body_of_its_own() {
    for settings in [
        "iterations: 60, connections: 3",
        "iterations: 60, connections: 3, http2: true, max_concurrent_streams: 4",
    ] {
        // The second size is above the limit for copying behind the head.
        for records in [5, 2_000] {
            let plan = logs(settings, records);
            let (record, truth) = simulate(&plan, options());
            assert_eq!((record.accounting.ok, truth.len()), (60, 60), "{settings}");
            let sent = bodies(&truth);
            assert!(sent.iter().all(|body| body.starts_with(b"\x1f\x8b")), "{settings}");
            let different: BTreeSet<&Vec<u8>> = sent.iter().collect();
            assert_eq!(different.len(), 60, "{settings}");
            assert_eq!(plan.records(), [records]);
            let made: u64 = record.workers.iter().map(|worker| worker.bodies).sum();
            let late: u64 = record.workers.iter().map(|worker| worker.bodies_late).sum();
            // In simulated time nothing is made ahead, and nothing is late.
            assert_eq!((made, late), (60, 0), "{settings}");
        }
    }
}

#[test]
fn bodies_that_are_there_are_sent_over_and_over() {
    let mut plan = logs("iterations: 40, connections: 2, threads: 2", 5);
    let ready: Vec<SuppliedBody> =
        (0..5_u8).map(|number| SuppliedBody::plain(Arc::from([b'b', number]))).collect();
    plan.supplies[0].bodies = Bodies::Ready(ready.into());
    let (record, truth) = simulate(&plan, options());
    assert_eq!(record.accounting.ok, 40);
    let sent = bodies(&truth);
    for number in 0..5_u8 {
        let often = sent.iter().filter(|body| body.as_slice() == [b'b', number]).count();
        assert_eq!(often, 8, "{number}");
    }
}

#[test]
fn what_was_made_before_the_run_is_sent_first_and_once_and_never_outside_of_its_window() {
    let mut plan = logs("iterations: 40, connections: 2, threads: 2", 5);
    // Windows that have passed, that are yet to come (the clock was set back), and that fit.
    let windows = [0..=1, u64::MAX - 1..=u64::MAX, 0..=u64::MAX - 1];
    let made = |number: u8| SuppliedBody {
        window: windows[usize::from(number) % 3].clone(),
        ..SuppliedBody::plain(Arc::from([b's', number]))
    };
    plan.supplies[0].stock = (0..12).map(made).collect();
    let (record, truth) = simulate(&plan, options());
    assert_eq!(record.accounting.ok, 40);
    let sent = bodies(&truth);
    let stock: BTreeSet<u8> = sent.iter().filter(|body| body[0] == b's').map(|body| body[1]).collect();
    assert_eq!(stock, BTreeSet::from([2, 5, 8, 11]));
    assert_eq!(sent.iter().filter(|body| body[0] == b's').count(), 4, "each once");
    let sum = |of: fn(&WorkerRecord) -> u64| record.workers.iter().map(of).sum::<u64>();
    assert_eq!((sum(|worker| worker.bodies), sum(|worker| worker.bodies_expired)), (36, 8));
}
