//! Scenarios of several steps in simulated worlds.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_testkit::{Answer, Behaviour, Faults, Law, SimOptions};

use super::plans::{good, of_text};
use super::{MS, assert_close, percentile, plan, simulate, world};

/// Create, update and delete.
const CRUD: [(&str, &str); 3] =
    [("--crud-create-method", "POST"), ("--crud-update-method", "PATCH"), ("--crud-delete-method", "DELETE")];

/// A server that answers everything with the location of a resource.
fn creator(location: Option<&str>) -> Behaviour {
    let headers = location.map(|to| ("Location".to_owned(), to.to_owned())).into_iter().collect();
    let answer = Answer { status: 201, headers, ..Answer::default() };
    Behaviour { answer, service: Law::Constant(MS), ..Behaviour::default() }
}

fn both_protocols() -> [Vec<(&'static str, &'static str)>; 2] {
    [CRUD.to_vec(), [&CRUD[..], &[("--http2", ""), ("-m", "5")]].concat()]
}

#[test]
fn the_steps_of_an_iteration_follow_each_other() {
    for protocol in both_protocols() {
        for location in ["/made/17", "http://elsewhere.test/made/17", "made/17?x=1"] {
            let plan = plan(&[protocol.as_slice(), &[("-c", "2"), ("-n", "300")]].concat());
            let (record, truth) = simulate(&plan, world(creator(Some(location))));
            assert_eq!((record.accounting.ok, truth.len()), (900, 900), "{location}");
            let i = &record.iterations;
            assert_eq!((i.started, i.completed, i.failed, i.unfinished), (300, 300, 0, 0));
            let counts: Vec<u64> = record.steps.iter().map(|step| step.ok).collect();
            assert_eq!(counts, [300, 300, 300]);
        }
    }
}

/// In the open model the later steps are owed as soon as the one before has ended.
#[test]
fn an_open_run_owes_all_steps_of_its_iterations() {
    for protocol in both_protocols() {
        let plan = plan(&[protocol.as_slice(), &[("--rate", "500"), ("-d", "2s"), ("-c", "20")]].concat());
        let (record, truth) = simulate(&plan, world(creator(Some("/x"))));
        // The last iteration has less than two steps' time before the end of the load, after which no step
        // starts.
        let i = &record.iterations;
        assert_eq!((i.started, i.completed, i.failed, i.unfinished), (1000, 999, 0, 1));
        let requests = record.accounting.ok;
        assert_eq!((record.accounting.scheduled, truth.len() as u64), (requests, requests));
        assert!((2998..3000).contains(&requests), "{requests}");
        assert_close(percentile(&record, 50.0), Nanos::from_micros(1100), 0.05);
        assert!(record.verdict.valid, "{:?}", record.verdict);
    }
}

#[test]
fn an_iteration_without_its_resource_has_failed() {
    for protocol in both_protocols() {
        for location in [None, Some("mailto:nobody@example.test")] {
            let plan = plan(&[protocol.as_slice(), &[("-c", "2"), ("-n", "50")]].concat());
            let (record, truth) = simulate(&plan, world(creator(location)));
            assert_eq!((record.accounting.failed, truth.len()), (50, 50));
            assert_eq!(record.total.errors[ErrorClass::Extraction], 50);
            assert_eq!((record.iterations.failed, record.iterations.completed), (50, 0));
        }
    }
}

#[test]
fn whatever_goes_wrong_iterations_balance() {
    for protocol in both_protocols() {
        let faults = Faults {
            statuses: vec![(404, 0.05)],
            drop_reply: 0.03,
            reset: 0.03,
            close_before_reply: 0.03,
            ..Faults::default()
        };
        let behaviour = Behaviour { faults, ..creator(Some("/made/1")) };
        for load in [&[("-d", "1s")][..], &[("--rate", "1000"), ("-d", "1s")]] {
            let flags = [protocol.as_slice(), &[("-c", "4"), ("--timeout", "50ms")], load].concat();
            let (record, _) = super::carry_out(&plan(&flags), world(behaviour.clone()));
            let i = &record.iterations;
            assert_eq!(i.started, i.completed + i.failed + i.unfinished);
            assert!(i.completed > 100 && i.failed > 10, "{i:?}");
            let ended_badly = record.accounting.failed + record.accounting.timed_out;
            // A request that ends badly does not end its iteration: what was created is deleted.
            assert!((i.failed + 1..=3 * i.failed).contains(&ended_badly), "{ended_badly} {i:?}");
        }
    }
}

/// Users that are counted have no target of their own: weights are shares of all iterations, however fast a
/// target answers.
#[test]
fn counted_users_are_dealt_over_all_targets() {
    let text = "run: {users: 6, connections: 12, iterations: 1000, timeout: 100ms, no_resend: true, SETTINGS}
targets: {slow: http://sim.test, fast: http://sim.test:81}
scenarios:
  - {weight: 3, target: slow, steps: [{get: /slow}]}
  - {weight: 1, target: fast, steps: [{get: /fast}, {get: /again, target: slow}]}
";
    let drops = Faults { drop_reply: 0.05, reset: 0.05, ..Faults::default() };
    for (settings, faults) in [("threads: 1", Faults::default()), ("threads: 2", drops)] {
        let plan = of_text(text.replace("SETTINGS", settings));
        let (record, truth) =
            simulate(&plan, SimOptions { keep_requests: true, ..world(Behaviour { faults, ..good() }) });
        let asked = |path: &str| {
            let start = format!("GET {path} ").into_bytes();
            truth.entries().iter().filter(|truth| truth.request.starts_with(&start)).count()
        };
        assert_eq!(record.iterations.started, 1_000, "{settings}");
        // Each worker ends in the middle of its deal.
        assert!((748..=752).contains(&asked("/slow")), "{settings}: {}", asked("/slow"));
        assert!((248..=252).contains(&asked("/fast")), "{settings}: {}", asked("/fast"));
    }
}
