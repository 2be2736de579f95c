//! MEASUREMENT R20: the same seed puts the same load on the targets, and the checksum says so.

use plimsoll_document::RawValue;
use plimsoll_engine::load_checksum;
use plimsoll_plan::{Plan, PlanPatch};
use plimsoll_testkit::{Behaviour, SimOptions};

use super::{patch, plans, resolved, simulate, world};

const OPEN: &[(&str, &str)] = &[("--rate", "2000"), ("-d", "1s"), ("--arrival", "poisson")];
const CLOSED: &[(&str, &str)] = &[("-c", "4"), ("-n", "500")];

/// A plan whose requests are different from each other.
fn varied(flags: &[(&'static str, &str)], seed: &str) -> Plan {
    resolved(PlanPatch {
        urls: vec![RawValue::new("URL", "http://sim.test/${uuid}?n=${random_int(1,1000000)}")],
        body: Some(RawValue::new("--body", "${random_hex(12)} of ${sequence}")),
        seed: Some(RawValue::new("--seed", seed)),
        ..patch(flags)
    })
}

/// Requests that the simulated server has received: their instants, and every byte.
fn seen(plan: &Plan) -> Vec<(u64, Vec<u8>)> {
    let options = SimOptions { keep_requests: true, ..world(Behaviour::default()) };
    let (_, truth) = simulate(plan, options);
    truth.entries().into_iter().map(|entry| (entry.received.0, entry.request)).collect()
}

#[test]
fn the_same_seed_is_the_same_load_and_another_one_is_not() {
    for flags in [OPEN, CLOSED] {
        let (one, again, other) = (varied(flags, "41"), varied(flags, "41"), varied(flags, "42"));
        assert_eq!(load_checksum(&one), load_checksum(&again), "{flags:?}");
        assert_ne!(load_checksum(&one), load_checksum(&other), "{flags:?}");
        let requests = seen(&one);
        assert!(requests.len() >= 500, "{flags:?}: {}", requests.len());
        assert_eq!(requests, seen(&again), "{flags:?}");
        assert_ne!(requests, seen(&other), "{flags:?}");
    }
}

#[test]
fn what_changes_the_load_changes_the_checksum() {
    let plain = load_checksum(&varied(OPEN, "41"));
    for (flag, value) in [("--rate", "2001"), ("--arrival", "uniform"), ("-t", "2")] {
        let mut flags = OPEN.to_vec();
        flags.push((flag, value));
        assert_ne!(load_checksum(&varied(&flags, "41")), plain, "{flag} {value}");
    }
    let static_requests = super::plan(OPEN);
    assert_ne!(load_checksum(&static_requests), plain);
    // Nothing is random in a uniform load of static requests: any seed makes the same one.
    let uniform = |seed| Plan { seed, ..super::plan(&[("--rate", "2000"), ("-d", "1s")]) };
    assert_eq!(load_checksum(&uniform(1)), load_checksum(&uniform(2)));
}

/// A plan file of plain requests has the checksum of its URLs: the seed counts only where something beside
/// the requests draws random numbers.
#[test]
fn the_seed_counts_only_if_something_depends_on_it() {
    const SETTINGS: &str = "rate: 2000, duration: 1s";
    let steps = |steps: &str, seed: u64| {
        let plan = plans::plan(SETTINGS, &format!("scenarios: [{{steps: [{steps}]}}]"));
        load_checksum(&Plan { seed, ..plan })
    };
    let of_urls = |seed| Plan {
        seed,
        ..resolved(PlanPatch {
            urls: vec![RawValue::new("URL", "http://sim.test/")],
            ..patch(&[("--rate", "2000"), ("-d", "1s")])
        })
    };
    assert_eq!(steps("get: /", 1), load_checksum(&of_urls(2)));
    for plain in ["{get: /, think: 1s}, {get: /b}", "{set: {a: x}}, {get: '/${a}'}"] {
        assert_eq!(steps(plain, 1), steps(plain, 2), "{plain}");
    }
    for drawn in [
        "{get: /, think: {uniform: [1s, 2s]}}, {get: /b}",
        "{set: {a: '${uuid}'}}, {get: '/${a}'}",
        "{if: '${random_int(1,2)} == 1', then: [{get: /a}]}, {get: /b}",
        "{get: '/${uuid}'}",
    ] {
        assert_ne!(steps(drawn, 1), steps(drawn, 2), "{drawn}");
    }
}

/// The checksum is of the requests that are sent: the requests that it renders first are those that the
/// server sees first.
#[test]
fn users_of_one_connection_send_what_was_rendered() {
    let plan = varied(&[("-c", "1"), ("-n", "3")], "41");
    let mut random = plimsoll_core::Random::new(41, 1);
    let rendered: Vec<Vec<u8>> = (0..3)
        .map(|index| {
            let context = plimsoll_scenario::Context { index, ..plimsoll_scenario::Context::default() };
            let (mut scratch, mut out) = (Vec::new(), Vec::new());
            plan.steps[0].request.render(&context, &mut random, &mut scratch, &mut out);
            out
        })
        .collect();
    let requests: Vec<Vec<u8>> = seen(&plan).into_iter().map(|(_, request)| request).collect();
    assert_eq!(requests, rendered);
}
