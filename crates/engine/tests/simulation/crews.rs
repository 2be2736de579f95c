//! Several runs by one crew: idle connections of each serve the next, and no figure knows of another run.

use std::sync::Arc;

use plimsoll_engine::{Backends, Control, Crew, TargetAddress};
use plimsoll_metrics::{Log, RATE_UNITS, RunRecord};
use plimsoll_plan::Plan;
use plimsoll_testkit::{Behaviour, Faults, Law, SimOpen, SimOptions, TruthLog};

use super::plans::good;
use super::{MS, delivered, plan, server, world};

/// Carries out the plans in turn by one crew.
fn runs(plans: &[Plan], options: SimOptions) -> (Vec<RunRecord>, TruthLog) {
    let open = SimOpen::new(options);
    let mut crew = Crew::new(Backends::of(open.clone()));
    let addresses: Vec<Arc<[TargetAddress]>> = vec![vec![server().into()].into()];
    let records = plans.iter().map(|plan| {
        let record = crew.run(plan, &addresses, &Control::default(), &Log::default(), &mut |_| {});
        let record = record.expect("the run ends");
        assert_eq!(record.accounting.check(), Ok(()));
        record
    });
    let records = records.collect();
    (records, open.truth())
}

fn slow() -> Behaviour {
    Behaviour { service: Law::Constant(MS), ..good() }
}

/// Connections that a run opened, and had from the run before.
fn connections(record: &RunRecord) -> (u64, u64) {
    (record.connections.opened, record.connections.kept)
}

#[test]
fn idle_connections_serve_the_next_run() {
    for protocol in [&[][..], &[("--http2", "")], &[("--http2", ""), ("-t", "3")]] {
        let mut flags = vec![("-c", "6"), ("--rate", "2000"), ("-d", "200ms")];
        flags.extend(protocol);
        let plans = [plan(&flags), plan(&flags), plan(&flags)];
        let (records, truth) = runs(&plans, world(slow()));
        let found: Vec<_> = records.iter().map(connections).collect();
        assert_eq!(found, [(6, 0), (0, 6), (0, 6)], "{protocol:?}");
        let all: u64 = records.iter().map(delivered).sum();
        assert_eq!(truth.len() as u64, all);
        for record in &records {
            assert_eq!(record.accounting.ok, 400);
            assert_eq!(record.connections.peak_open, 6);
            assert_eq!(record.connections.connect_time.count(), record.connections.opened);
            assert!(record.peers.iter().all(|peer| !peer.protocol.is_empty()));
            // Each has a sixth of the rate in this run, whichever it had served in others.
            let rates = &record.connections.request_rates;
            assert_eq!(rates.count(), 6);
            let rate = rates.mean().expect("there are six") / RATE_UNITS as f64;
            assert!((rate - 2000.0 / 6.0).abs() < 0.05 * rate, "{rate}");
            // 400 answers of the same fields in each run.
            let traffic = record.connections.http2.traffic;
            assert_eq!(traffic.fields_received, records[0].connections.http2.traffic.fields_received);
            assert_eq!(traffic.fields_received > 0, !protocol.is_empty());
            assert!(traffic.heads_received <= traffic.fields_received);
        }
    }
}

#[test]
fn closed_models_use_them_too() {
    let plans = [plan(&[("-c", "4"), ("-n", "100")]), plan(&[("-c", "4"), ("-n", "300")])];
    let (records, _) = runs(&plans, world(slow()));
    assert_eq!(records.iter().map(connections).collect::<Vec<_>>(), [(4, 0), (0, 4)]);
    assert_eq!(records.iter().map(|record| record.accounting.ok).collect::<Vec<_>>(), [100, 300]);
}

#[test]
fn a_run_has_no_more_of_them_than_it_may_have_and_opens_those_that_are_missing() {
    let of = |connections: &'static str| plan(&[("-c", connections), ("--rate", "500"), ("-d", "100ms")]);
    let (records, _) = runs(&[of("8"), of("3"), of("5")], world(slow()));
    assert_eq!(records.iter().map(connections).collect::<Vec<_>>(), [(8, 0), (0, 3), (2, 3)]);
    assert_eq!(records[1].connections.peak_open, 3);
}

#[test]
fn connections_with_requests_that_were_given_up_are_closed() {
    // No reply ever comes: each request times out or is cut off, and takes its connection along.
    let faults = Faults { drop_reply: 1.0, ..Faults::default() };
    let silent = Behaviour { faults, ..slow() };
    let flags = [("-c", "4"), ("--rate", "100"), ("-d", "100ms"), ("--timeout", "1s"), ("--drain", "0s")];
    let (records, _) = runs(&[plan(&flags), plan(&flags)], world(silent));
    assert_eq!(connections(&records[1]), (4, 0));
    assert_eq!(records[1].accounting.ok, 0);
}

#[test]
fn connections_that_the_plan_wants_new_are_new() {
    for flag in [("--disable-keepalive", ""), ("--connection-rate", "1000")] {
        let flags = [("-c", "4"), ("--rate", "500"), ("-d", "100ms"), flag];
        let (records, _) = runs(&[plan(&flags), plan(&flags)], world(slow()));
        assert_eq!(records[1].connections.kept, 0, "{flag:?}");
        assert!(records[1].connections.opened >= 4, "{flag:?}");
    }
}

#[test]
fn connections_that_the_server_closed_meanwhile_are_opened_anew() {
    // Each serves its 50 requests of a run, and is closed with the last.
    let faults = Faults { close_after: Some(50), ..Faults::default() };
    let closing = Behaviour { faults, ..slow() };
    let flags = [("-c", "4"), ("--rate", "2000"), ("-d", "100ms")];
    let (records, _) = runs(&[plan(&flags), plan(&flags)], world(closing));
    for record in &records {
        assert_eq!((record.accounting.ok, record.connections.opened), (200, 4), "{record:?}");
    }
}
