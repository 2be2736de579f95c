//! Units of rates, actions after a failure, and rows from several parts.

use plimsoll_metrics::RateUnit;
use plimsoll_plan::{Load, Plan};
use plimsoll_scenario::Order;

use crate::compile::plans::resolve;

fn text(run: &str, steps: &str) -> String {
    let run = if run.is_empty() { String::new() } else { format!("run: {{{run}}}\n") };
    format!("{run}targets: {{a: http://a.test}}\nscenarios: [{{steps: [{steps}]}}]")
}

fn plan(run: &str, steps: &str) -> Plan {
    let text = text(run, steps);
    resolve(&text, &[], &[]).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

fn message(text: &str) -> String {
    let problems = resolve(text, &[], &[]).err().unwrap_or_default();
    problems
        .iter()
        .map(|problem| format!("{} ({})", problem.message, problem.hint.as_deref().unwrap_or("-")))
        .collect()
}

#[test]
fn a_rate_may_count_requests() {
    let unit = |plan: &Plan| match plan.load {
        Load::Open { rate_of, .. } => rate_of,
        Load::Closed => panic!("closed"),
    };
    let steps = "{get: /a}, {get: /b}";
    assert_eq!(unit(&plan("rate: 10", steps)), RateUnit::Iterations);
    let requests = plan("rate: 10, rate_of: requests, duration: 2s", steps);
    assert_eq!((unit(&requests), requests.outline().rate_unit()), (RateUnit::Requests, RateUnit::Requests));
    assert_ne!(requests.fingerprint(), plan("rate: 10, duration: 2s", steps).fingerprint());
    // With the rate of every connection, and with an unknown number of requests per iteration.
    let looped = "{repeat: '${n}', steps: [{get: /a}]}, {set: {n: 2}}, {get: /b}";
    let of_each = plan("rps: 10, connections: 3, rate_of: requests", &format!("{{set: {{n: 1}}}}, {looped}"));
    assert_eq!(of_each.basis().model, plimsoll_metrics::Model::Open);
    let Load::Open { profile, .. } = &of_each.load else { panic!("closed") };
    assert_eq!(profile.peak(), 30.0);
}

#[test]
fn rates_of_requests_that_make_no_sense_are_refused() {
    for (run, steps, expected) in [
        ("rate: 1, rate_of: bytes", "{get: /}", "`bytes` is not one of iterations, requests"),
        ("rate_of: requests", "{get: /}", "run.rate_of has no effect in the closed model"),
        (
            "rate: 9, rate_of: requests, iterations: 5",
            "{get: /}",
            "run.rate_of counts requests, so run.iterations does not set the length of the run",
        ),
        ("rate: 9, rate_of: requests", "{think: 1s}, {get: /}", "thinks before its first request"),
    ] {
        let found = message(&text(run, steps));
        assert!(found.contains(expected), "{run}: {found}");
    }
    assert!(message(&text("rate: 9, rate_of: requests", "{get: /, think: 1s}, {get: /b}")).is_empty());
}

#[test]
fn a_step_says_what_comes_after_its_failure() {
    let steps = plan("", "{get: /a, on_failure: continue}, {get: /b, on_failure: end}, {get: /c}").steps;
    assert_eq!(steps.iter().map(|step| step.goes_on).collect::<Vec<_>>(), [true, false, false]);
    let (goes_on, ends) = (plan("", "{get: /a, on_failure: continue}"), plan("", "{get: /a}"));
    assert_ne!(goes_on.fingerprint(), ends.fingerprint());
    assert!(
        message(&text("", "{get: /, on_failure: retry}")).contains("`retry` is not one of end, continue")
    );
    let thinks = message(&text("", "{think: 1s, on_failure: end}, {get: /}"));
    assert!(thinks.contains("`on_failure` cannot be combined with a pause"), "{thinks}");
}

#[test]
fn rows_are_taken_from_several_parts() {
    let data = |spec: &str| format!("data: {{n: {{range: [0, 9], {spec}}}}}\n{}", text("", "{get: '/${n}'}"));
    assert_eq!(resolve(&data("slices: 3"), &[], &[]).unwrap().feeds[0].order, Order::Slices(3));
    assert!(message(&data("slices: 0")).contains("`0` is not a number of parts"));
    assert!(message(&data("slices: 2, order: random")).contains("`slices` has no effect"));
}
