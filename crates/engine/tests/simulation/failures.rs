//! Steps whose iteration goes on after a failed request (`on_failure: continue`).

use std::collections::BTreeMap;

use plimsoll_testkit::{Answer, Faults, Law, SimOptions, TruthLog};

use super::plans::{answering, good_by_step, iterations, plan};
use super::{Behaviour, MS, carry_out, simulate, world};

/// Creates a resource, changes it, and deletes it; CHANGE stands for further keys of the change.
const RESOURCE: &str = "scenarios:
- steps:
  - {post: /items, on_failure: continue, extract: {item: {header: location, as_path: true}}}
  - {patch: '${item}', on_failure: continue, CHANGE}
  - {same_url: true, method: DELETE, on_failure: continue}
";

/// A server that answers everything with 201 and the location of a resource.
fn creator() -> Behaviour {
    let headers = vec![("Location".to_owned(), "/items/7".to_owned())];
    answering(Answer { status: 201, headers, ..Answer::default() })
}

/// Returns the number of requests of each kind that came.
fn asked(truth: &TruthLog) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for request in truth.entries() {
        let line = String::from_utf8_lossy(&request.request);
        let line: Vec<&str> = line.split(' ').take(2).collect();
        *asked.entry(line.join(" ")).or_default() += 1;
    }
    asked
}

fn kept(behaviour: Behaviour) -> SimOptions {
    SimOptions { keep_requests: true, ..world(behaviour) }
}

#[test]
fn an_unexpected_status_ends_the_iteration_unless_its_step_goes_on() {
    for protocol in ["http1: true", "http2: true"] {
        for load in ["iterations: 100, connections: 4", "rate: 50, duration: 2050ms, connections: 4"] {
            let settings = format!("{load}, {protocol}");
            let text = RESOURCE.replace("CHANGE", "expect: {status: 200}");
            let (record, truth) = simulate(&plan(&settings, &text), kept(creator()));
            let started = record.iterations.started as usize;
            let last = started - asked(&truth)["DELETE /items/7"];
            assert!(last <= 1, "{settings}: {:?}", asked(&truth));
            assert_eq!(asked(&truth)["PATCH /items/7"], record.steps[1].errors.total() as usize);
            // An iteration with a failed request has failed, however far it went.
            assert_eq!(record.iterations.completed, 0);
            assert_eq!(iterations(&record)[2] + iterations(&record)[3], started as u64);

            let ends = text.replace("on_failure: continue, expect", "on_failure: end, expect");
            let (record, truth) = simulate(&plan(&settings, &ends), kept(creator()));
            assert_eq!(asked(&truth).get("DELETE /items/7"), None, "{settings}");
            assert!(record.iterations.failed > 90);
        }
    }
}

#[test]
fn a_time_out_does_not_end_the_iteration_if_its_step_goes_on() {
    for protocol in ["http1: true", "http2: true"] {
        for load in ["iterations: 500", "rate: 250, duration: 2s"] {
            let faults =
                Faults { drop_reply: 0.2, reset: 0.1, close_before_reply: 0.05, ..Faults::default() };
            let text = RESOURCE.replace("CHANGE", "timeout: 20ms");
            let settings = format!("{load}, connections: 8, timeout: 30ms, no_resend: true, {protocol}");
            let (record, truth) = carry_out(&plan(&settings, &text), kept(Behaviour { faults, ..creator() }));
            let asked = asked(&truth);
            // Without a location there is nothing to change; what was to be changed is deleted.
            assert_eq!(asked.len(), 3, "{asked:?}");
            let (changed, deleted) = (asked["PATCH /items/7"] as u64, asked["DELETE /items/7"] as u64);
            let created = good_by_step(&record)[0];
            let late = |of: u64, to: u64| of - to <= 20;
            assert!(late(created, changed) && late(changed, deleted), "{created} {changed} {deleted}");
            assert!(record.steps[1].ok < changed * 8 / 10, "{}", record.steps[1].ok);
            let [started, completed, failed, unfinished] = iterations(&record);
            assert_eq!(started, completed + failed + unfinished);
            assert!(completed > started / 10 && failed > started / 3, "{completed} {failed}");
        }
    }
}

/// The next step may be sent at once, think before, or be in a loop: a value that is missing ends it.
#[test]
fn an_iteration_without_a_value_that_it_was_to_take_ends_in_any_case() {
    let text = "scenarios:
- steps:
  - {get: /a, on_failure: continue, extract: {x: {header: x-missing}}}
  - {get: '/b/${x}'}
";
    let (record, truth) = simulate(&plan("iterations: 40, connections: 2", text), kept(creator()));
    assert_eq!((asked(&truth)["GET /a"], asked(&truth).len()), (40, 1));
    assert_eq!(iterations(&record), [40, 0, 40, 0]);
    let with_default = text.replace("x-missing", "x-missing, default: none");
    let (record, truth) = simulate(&plan("iterations: 40, connections: 2", &with_default), kept(creator()));
    assert_eq!(asked(&truth)["GET /b/none"], 40);
    assert_eq!(iterations(&record), [40, 40, 0, 0]);
}

#[test]
fn refused_connections_are_tried_again_after_a_pause() {
    let faults = Faults { refuse_connect: 1.0, ..Faults::default() };
    let text = "scenarios: [{steps: [{get: /a, on_failure: continue}, {get: /b, on_failure: continue}]}]";
    let behaviour = Behaviour { faults, service: Law::Constant(MS), ..Behaviour::default() };
    let (record, truth) = simulate(&plan("duration: 10s, connections: 1", text), world(behaviour));
    assert_eq!(truth.len(), 0);
    // The pause doubles up to a second.
    assert!((10..40).contains(&record.accounting.failed), "{:?}", record.accounting);
}

/// All requests that are sent at once end, and then the iteration goes on or not.
#[test]
fn requests_at_once_go_on_together() {
    let text = "scenarios:
- steps:
  - parallel:
    - {get: /a, on_failure: continue, expect: {status: 200}}
    - {get: /b}
  - {get: /c}
";
    let (record, truth) = simulate(&plan("iterations: 30, connections: 4", text), kept(creator()));
    assert_eq!(asked(&truth)["GET /c"], 30);
    assert_eq!(iterations(&record), [30, 0, 30, 0]);
    let ends = text.replace("{get: /b}", "{get: /b, expect: {status: 200}}");
    let (_, truth) = simulate(&plan("iterations: 30, connections: 4", &ends), kept(creator()));
    assert_eq!(asked(&truth).get("GET /c"), None);
}
