//! Steps that ask a cache, as plans have them.

use plimsoll_cache::PARTS;
use plimsoll_document::Source;
use plimsoll_plan::{Command, Disk, Plan, PlanPatch, PlanSource};

/// The plan of one scenario with these steps on a cache, or its problems.
fn resolve(url: &str, steps: &str) -> Result<Plan, Vec<String>> {
    let text = format!("{{targets: {{c: '{url}'}}, scenarios: [{{steps: [{steps}]}}]}}");
    let source = PlanSource::Text(Source { name: "plan.yaml".to_owned(), text });
    let flags = PlanPatch { parts: PARTS, ..PlanPatch::default() };
    let resolved = Command { plan: Some(source), environment: Vec::new(), flags }.resolve(&Disk);
    resolved
        .map(|resolved| resolved.plan)
        .map_err(|refused| refused.problems.iter().map(|problem| problem.message.clone()).collect())
}

#[test]
fn names_are_operations_and_keys() {
    let steps = "{cache: {put: 'k${sequence}', value: v}}, {cache: {get: k}}, {cache: {delete: k}}, \
                 {cache: {ping: true}}, {name: mine, cache: {get: k}}";
    let plan = resolve("carbon://a.test/c", steps).unwrap();
    let names: Vec<&str> = plan.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["PUT k${sequence}", "GET k", "DELETE k", "PING", "mine"]);
    assert_eq!(plan.targets[0].urls, ["carbon://a.test/c"]);
    assert_eq!(plan.targets[0].protocol.title(), "the cache protocol");
}

#[test]
fn mistakes_are_told() {
    const URL: &str = "carbon://a.test/c";
    let get = "{cache: {get: k}}";
    for (url, steps, expected) in [
        ("carbon://a.test", get, "the URL names no cache"),
        ("carbon://a.test/a/b", get, "`a/b` is not a name of a cache"),
        ("carbon://me:pw@a.test/c", get, "the cache protocol has no user"),
        ("carbn://a.test/c", get, "unknown scheme `carbn`"),
        ("http://a.test", get, "`a.test` is not a cache"),
        (URL, "{get: /}", "`a.test` is a cache"),
        (URL, "{cache: {value: v}}", "the operation is missing"),
        (URL, "{cache: {ping: false}}", "the operation is missing"),
        (URL, "{cache: {get: a, delete: b}}", "put, get, delete and ping exclude each other"),
        (URL, "{cache: {get: a, ping: true}}", "put, get, delete and ping exclude each other"),
        (URL, "{cache: {get: a, value: b}}", "`value` has no effect without `put`"),
        (URL, "{cache: {ping: true, value_file: b}}", "`value_file` has no effect without `put`"),
        (URL, "{cache: {put: a, value: b, value_file: c}}", "`value` and `value_file` exclude each other"),
        (URL, "{cache: {put: a, value_file: none-there}}", "none-there"),
        (URL, "{cache: {get: '${nobody}'}}", "`${nobody}`"),
        (URL, "{cache: {put: a, value: '${nobody}'}}", "`${nobody}`"),
        (URL, "{cache: {got: a}}", "unknown key `got`"),
        (URL, "{cache: {get: k}, expect: {headers: {a: b}}}", "`a`: a cache sends no headers"),
        (URL, "{cache: {get: k}, extract: {v: {cookie: a}}}", "`cookie`: a cache sends no headers"),
    ] {
        let said = resolve(url, steps).unwrap_err();
        assert!(said.iter().any(|said| said.contains(expected)), "{url} {steps}: {said:?}");
    }
}
