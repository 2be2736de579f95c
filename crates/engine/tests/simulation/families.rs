//! Names with addresses of IPv4 and of IPv6, of which one family is dead: nothing fails for it, and the
//! result says so.

use plimsoll_core::ErrorClass;
use plimsoll_engine::{FirstContact, RunError, preflight};
use plimsoll_metrics::ReasonCode;
use plimsoll_testkit::{Answer, Faults, Law};

use super::*;

type Flags = &'static [(&'static str, &'static str)];

const LOADS: &[(&str, Flags)] = &[
    ("closed", &[("-c", "8"), ("-d", "1s")]),
    ("a connection per request", &[("-c", "8"), ("-d", "1s"), ("--disable-keepalive", "")]),
    ("two workers", &[("-c", "8"), ("-d", "1s"), ("-t", "2")]),
    ("users", &[("--users", "8"), ("-d", "1s")]),
    ("paced connections", &[("-c", "8"), ("-d", "1s"), ("--connection-rate", "100")]),
    ("open", &[("--rate", "200"), ("-d", "1s")]),
    ("open, a connection per request", &[("--rate", "200"), ("-d", "1s"), ("--disable-keepalive", "")]),
    ("counted", &[("-c", "8"), ("-n", "200")]),
    ("h2", &[("-c", "2"), ("-m", "4"), ("-d", "1s"), ("--http2", "")]),
];

/// Time after which a connect is given up.
const PATIENCE: (&str, &str) = ("--connect-timeout", "50ms");

fn v6() -> Endpoint {
    Endpoint::Tcp("[::1]:80".parse().expect("an address"))
}

fn good() -> Behaviour {
    Behaviour { service: Law::Constant(MS), ..Behaviour::default() }
}

fn refusing() -> Behaviour {
    Behaviour { faults: Faults { refuse_connect: 1.0, ..Faults::default() }, ..good() }
}

fn silent() -> Behaviour {
    Behaviour { faults: Faults { silent_connect: 1.0, ..Faults::default() }, ..good() }
}

/// A world with these servers at the address of IPv6 and that of IPv4.
fn both(of_v6: Behaviour, of_v4: Behaviour) -> SimOptions {
    SimOptions { servers: vec![(v6(), of_v6), (server(), of_v4)], ..SimOptions::default() }
}

fn addresses(endpoints: &[Endpoint]) -> Arc<[TargetAddress]> {
    endpoints.iter().cloned().map(TargetAddress::from).collect()
}

/// Symptom: exactly half of the requests failed with `connect_refused`.
#[test]
fn a_dead_family_fails_no_request() {
    for (how, dead) in [("refused", refusing()), ("silent", silent())] {
        for (load, flags) in LOADS {
            for v6_first in [true, false] {
                let name = format!("{how}, {load}, IPv6 first: {v6_first}");
                let flags: Vec<_> = flags.iter().copied().chain([PATIENCE]).collect();
                let order = if v6_first { [v6(), server()] } else { [server(), v6()] };
                let world = both(dead.clone(), good());
                let all = [addresses(&order)];
                let (record, truth) = carry_out_at(&plan(&flags), world, &all, &Control::default());
                assert_eq!(truth.len() as u64, delivered(&record), "{name}");
                let a = &record.accounting;
                assert!(a.ok > 100 && a.ok == a.started, "{name}: {a:?}");
                let warned = record.verdict.warnings.iter().find(|w| w.code == ReasonCode::AddressFamily);
                let peer = &record.peers[0];
                let [first, second] = order.map(|endpoint| endpoint.to_string());
                if v6_first {
                    let workers = record.workers.len() as u64;
                    assert_eq!(record.connections.family_switches, workers, "{name}");
                    let evidence = &warned.unwrap_or_else(|| panic!("{name}: no warning")).evidence;
                    assert!(evidence.contains("[::1]:80, 127.0.0.1:80"), "{evidence}");
                    assert_eq!((&peer.addresses, peer.unused_addresses.len()), (&vec![first, second], 0));
                } else {
                    assert_eq!((record.connections.family_switches, warned), (0, None), "{name}");
                    assert_eq!((&peer.addresses, &peer.unused_addresses), (&vec![first], &vec![second]));
                }
            }
        }
    }
}

/// Several addresses of one family share the load, whether or not there are others.
#[test]
fn addresses_of_one_family_share_the_load() {
    let second = Endpoint::Tcp(([127, 0, 0, 2], 80).into());
    let endpoints = [server(), v6(), second];
    let with = |status: u16| Behaviour { answer: Answer { status, ..Answer::default() }, ..good() };
    let servers = endpoints.iter().cloned().zip([200, 201, 202].map(with)).collect();
    let world = SimOptions { servers, ..SimOptions::default() };
    let flags = [("-c", "4"), ("-n", "400"), ("--disable-keepalive", "")];
    let all = [addresses(&endpoints)];
    let (record, _) = carry_out_at(&plan(&flags), world, &all, &Control::default());
    assert_eq!(record.accounting.ok, 400);
    assert_eq!(record.total.statuses, [(200, 200), (202, 200)].into());
    assert_eq!(record.peers[0].unused_addresses, [v6().to_string()]);
}

/// Where nothing is there, both families are tried in turn for as long as the load goes on.
#[test]
fn two_dead_families_are_refused_connections() {
    let flags = [("--rate", "100"), ("-d", "2s"), ("-c", "4")];
    let all = [addresses(&[v6(), server()])];
    let (record, _) = carry_out_at(&plan(&flags), both(refusing(), refusing()), &all, &Control::default());
    let a = &record.accounting;
    assert_eq!((a.ok, a.failed), (0, 200), "{a:?}");
    assert_eq!(record.total.errors[ErrorClass::ConnectRefused], 200);
}

fn contact(
    world: SimOptions,
    flags: &[(&'static str, &str)],
) -> (Result<Vec<FirstContact>, RunError>, Arc<[TargetAddress]>) {
    let mut all = [addresses(&[v6(), server()])];
    let found = preflight(&plan(flags), &Backends::of(SimOpen::new(world)), &mut all, &Control::default());
    let [all] = all;
    (found, all)
}

/// Symptom: refused before the run, with exit code 1.
#[test]
fn the_first_contact_finds_the_family_that_answers() {
    let seconds =
        |found: &[FirstContact]| found[0].records.iter().map(|r| r.duration.as_secs_f64()).sum::<f64>();
    for (dead, reason) in [(refusing(), "refused"), (silent(), "")] {
        let (found, all) = contact(both(dead.clone(), good()), &[("-d", "2s")]);
        let found = found.expect("one of them answers");
        assert_eq!(all, addresses(&[server(), v6()]));
        let note = found[0].passed_over_note().expect("it is told");
        assert!(note.starts_with("no connection to [::1]:80 (") && note.contains(reason), "{note}");
        assert!(note.ends_with("): the load goes to 127.0.0.1:80"), "{note}");
        // The other order is nothing to talk about.
        let (found, all) = contact(both(good(), dead), &[("-d", "2s")]);
        let found = found.expect("the first answers");
        assert_eq!((all, found[0].passed_over_note()), (addresses(&[v6(), server()]), None));
        assert!(seconds(&found) < 0.1);
    }
    let (found, all) = contact(both(refusing(), refusing()), &[]);
    let error = found.expect_err("nobody answers");
    assert!(error.to_string().contains("`sim.test` ([::1]:80)"), "{error}");
    assert_eq!(all, addresses(&[v6(), server()]));
}

/// Symptom: 10 s before the clock started, for a load of 2 s.
#[test]
fn a_connect_that_hangs_holds_a_load_up_no_longer_than_the_load_takes() {
    for (flags, before) in [
        (&[("-d", "2s"), ("-c", "2")][..], 2.0),
        (&[("-d", "2s"), ("--warmup", "1s"), ("-c", "2")], 3.0),
        (&[("-d", "100ms"), ("-c", "2")], 1.5),
        (&[("-d", "20s"), ("-c", "2")], 10.0),
        (&[("-d", "20s"), ("-c", "2"), ("--connect-timeout", "1s")], 1.0),
    ] {
        let all = [addresses(&[server()])];
        let world = both(silent(), silent());
        let began = world.start;
        let (record, _) = carry_out_at(&plan(flags), world.clone(), &all, &Control::default());
        let waited = record.started_monotonic.since(began).as_secs_f64();
        assert!((before..before + 0.1).contains(&waited), "{flags:?}: {waited}");
        assert_eq!(record.accounting.ok, 0);
    }
}
