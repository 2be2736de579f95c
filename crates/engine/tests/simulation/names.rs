//! Names that lead elsewhere while a run goes on: new connections go there, open ones stay, and the result
//! says so.

use plimsoll_testkit::{Answer, Law};

use super::steering::timed_action;
use super::*;

type Flags = &'static [(&'static str, &'static str)];

/// Where new connections go once the name leads to other addresses, as shares of the later requests in
/// percent: to the first server, to the second one.
struct Move {
    name: &'static str,
    to: &'static [usize],
    first: u64,
    second: u64,
}

const MOVES: [Move; 3] = [
    Move { name: "moved", to: &[1], first: 0, second: 100 },
    Move { name: "added", to: &[0, 1], first: 50, second: 50 },
    Move { name: "another order", to: &[0], first: 100, second: 0 },
];

/// Loads whose connections are new after the change, with the time that this takes, in milliseconds.
const RENEWING: [(&str, Flags, u64); 7] = [
    ("open, one per request", &[("--rate", "200"), ("--disable-keepalive", "")], 0),
    ("closed, one per request", &[("-c", "4"), ("--disable-keepalive", "")], 0),
    ("two workers", &[("-c", "4"), ("-t", "2"), ("--disable-keepalive", "")], 0),
    ("users", &[("--users", "4"), ("--disable-keepalive", "")], 0),
    ("open, short lives", &[("--rate", "200"), ("--connection-lifetime", "50ms")], 25),
    ("closed, short lives", &[("-c", "4"), ("--connection-lifetime", "50ms")], 25),
    ("h2, one per request", &[("-c", "4"), ("--http2", ""), ("--max-requests-per-connection", "1")], 0),
];

/// Loads that keep the connections that they have.
const KEEPING: [(&str, Flags); 3] = [
    ("open", &[("--rate", "200"), ("-c", "4")]),
    ("closed", &[("-c", "4")]),
    ("h2", &[("-c", "2"), ("-m", "4"), ("--http2", "")]),
];

fn servers() -> [Endpoint; 2] {
    [server(), Endpoint::Tcp(([127, 0, 0, 2], 80).into())]
}

/// A run of two seconds in whose middle the name leads to `to`: its record, and the requests that came
/// `settling` or more after that.
fn moved(flags: Flags, to: &'static [usize], settling: Nanos) -> (RunRecord, u64) {
    let middle = Nanos::from_secs(1);
    let with = |status: u16| Behaviour {
        service: Law::Constant(MS),
        answer: Answer { status, ..Answer::default() },
        ..Behaviour::default()
    };
    let control = Control::default();
    let steered = control.clone();
    let latest: Vec<TargetAddress> = to.iter().map(|number| servers()[*number].clone().into()).collect();
    let action = timed_action(middle, move |at| steered.set_addresses(0, "a.test", &latest, at));
    let world = SimOptions {
        servers: servers().into_iter().zip([200, 201].map(with)).collect(),
        timed_actions: vec![action],
        ..SimOptions::default()
    };
    let from = world.start + middle + settling;
    let plan = plan(&[&[("-d", "2s")], flags].concat());
    let all = [[servers()[0].clone().into()].into()];
    let (record, truth) = carry_out_at(&plan, world, &all, &control);
    let later = truth.entries().iter().filter(|entry| entry.received >= from).count() as u64;
    (record, later)
}

#[test]
fn new_connections_go_where_the_name_leads_now() {
    for Move { name, to, first, second } in MOVES {
        for (load, flags, settling) in RENEWING {
            let cell = format!("{name}, {load}");
            let (record, later) = moved(flags, to, Nanos::from_millis(settling));
            let a = &record.accounting;
            assert_eq!((a.ok, a.failed, a.undelivered), (a.started, 0, 0), "{cell}");
            let of = |status: u16| record.total.statuses.get(&status).copied().unwrap_or(0);
            assert_eq!(of(200) + of(201), a.ok, "{cell}");
            if record.workers.len() > 1 {
                // The change comes when the first of them is there; each worker has a clock of its own.
                assert_eq!(of(201) > 0, second > 0, "{cell}");
                continue;
            }
            // Connections of short lives end one after the other, and some were opened just before the
            // change.
            let slack = 8 + if settling > 0 { 150 } else { 0 };
            assert!(later > 150, "{cell}: {later}");
            let expected = later * second / 100;
            assert!(of(201).abs_diff(expected) <= slack, "{cell}: {} of {expected}", of(201));
            assert!(of(200) >= (later * first / 100).saturating_sub(slack), "{cell}");
            let changes = &record.connections.address_changes;
            let Some(change) = changes.first() else {
                assert_eq!(second, 0, "{cell}: a change is told");
                continue;
            };
            assert_eq!(changes.len(), 1, "{cell}");
            assert_eq!(change.added, ["127.0.0.2:80"], "{cell}");
            assert_eq!(change.removed.is_empty(), first > 0, "{cell}");
            assert!(change.at.0.abs_diff(Nanos::from_secs(1).0) < Nanos::from_millis(50).0, "{cell}");
            assert_eq!(record.peers[0].addresses, ["127.0.0.1:80", "127.0.0.2:80"], "{cell}");
        }
    }
}

#[test]
fn open_connections_stay_where_they_are() {
    for (load, flags) in KEEPING {
        let (record, _) = moved(flags, &[1], Nanos::ZERO);
        assert_eq!(record.total.statuses, [(200, record.accounting.ok)].into(), "{load}");
        assert_eq!(record.connections.address_changes[0].removed, ["127.0.0.1:80"], "{load}");
    }
}
