//! Commands as plans have them.

use plimsoll_document::{Document, Problems, Source};
use plimsoll_plan::{Command, Disk, Plan, PlanPatch, PlanSource};
use plimsoll_redis::PARTS;

const URL: &str = "redis://a.test";

fn text(url: &str, steps: &str) -> String {
    format!("{{targets: {{r: '{url}'}}, scenarios: [{{steps: [{steps}]}}]}}")
}

/// The plan of one scenario with these steps, or its problems with their places and hints.
fn resolve(url: &str, steps: &str) -> Result<Plan, Vec<String>> {
    let text = text(url, steps);
    let source = PlanSource::Text(Source { name: "plan.yaml".to_owned(), text: text.clone() });
    let flags = PlanPatch { parts: PARTS, ..PlanPatch::default() };
    let resolved = Command { plan: Some(source), environment: Vec::new(), flags }.resolve(&Disk);
    resolved.map(|resolved| resolved.plan).map_err(|refused| {
        let problem = |problem: &plimsoll_document::Problem| {
            let at = problem.place.map_or("", |place| &text[place.start as usize..place.end as usize]);
            format!("{} at `{at}` ({})", problem.message, problem.hint.as_deref().unwrap_or_default())
        };
        refused.problems.iter().map(problem).collect()
    })
}

#[test]
fn names_are_commands_and_keys() {
    let steps = "{redis: 'set k${sequence} \"a b\"'}, {redis: [GET, k]}, {redis: PING}, {redis: [EXPIRE, k, 60]}, \
                 {name: mine, redis: GET k}";
    let plan = resolve(URL, steps).unwrap();
    let names: Vec<&str> = plan.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["SET k${sequence}", "GET k", "PING", "EXPIRE k", "mine"]);
    assert_eq!(plan.targets[0].protocol.title(), "the protocol of Redis");
    assert_eq!(plan.targets[0].scheme(), "redis");
}

#[test]
fn databases_and_users_are_servers_of_their_own() {
    let text = "{targets: {a: 'redis://h', b: 'redis://h/1', c: 'redis://me:pw@h/1', d: 'redis://h'}, \
                scenarios: [{steps: [{target: a, redis: PING}, {target: b, redis: PING}, \
                {target: c, redis: PING}, {target: d, redis: PING}]}]}";
    let source = PlanSource::Text(Source { name: "plan.yaml".to_owned(), text: text.to_owned() });
    let flags = PlanPatch { parts: PARTS, ..PlanPatch::default() };
    let command = Command { plan: Some(source), environment: Vec::new(), flags };
    let plan = command.resolve(&Disk).expect("a plan").plan;
    let answers =
        |target: &plimsoll_plan::Target| target.opening.as_ref().map_or(0, |opening| opening.answers);
    assert_eq!(plan.targets.iter().map(answers).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(!format!("{plan:?}").contains("pw"), "passwords are not shown");
}

#[test]
fn mistakes_are_told() {
    for (url, steps, expected) in [
        ("redis://a.test/two", "{redis: PING}", "`two` is not a database"),
        ("redsi://a.test", "{redis: PING}", "(did you mean `redis://`?)"),
        ("http://a.test", "{redis: PING}", "`a.test` is not a Redis server"),
        (URL, "{get: /}", "`a.test` is a Redis server"),
        (URL, "{redis: ''}", "the command is missing"),
        (URL, "{redis: []}", "the command is missing"),
        (URL, "{redis: {get: k}}", "`redis` has to be a single value, and is a mapping"),
        (URL, "{redis: 'SET \"a'}", "a quote is not closed"),
        (URL, "{redis: [get, '${nobody}']}", "`${nobody}`"),
        (URL, "{redis: 'GET ${nobody}'}", "`${nobody}`"),
        (URL, "{redis: ['${uuid}', k]}", "the command `${uuid}` varies"),
        (URL, "{redis: UNSUBSCRIBE a b}", "more than one answer"),
        (URL, "{redis: 'SET k \"\\xff\"'}", "no text in UTF-8"),
        (URL, "{redis: multi}", "a step cannot be the command MULTI"),
        (URL, "{redis: [SELECT, 2]}", "redis://127.0.0.1:6379/2"),
        (URL, "{redis: SUBSCRIBE news}", "more than one answer"),
        (URL, "{redis: GET k, expect: {headers: {a: b}}}", "`a`: a Redis server sends no headers"),
        (URL, "{redis: GET k, get: /}", "`redis` and `get` exclude each other"),
    ] {
        let said = resolve(url, steps).unwrap_err();
        assert!(said.iter().any(|said| said.contains(expected)), "{url} {steps}: {said:?}");
    }
}

#[test]
fn commands_are_written_as_they_were() {
    let written = "targets:\n  r: redis://a.test\nscenarios:\n  - steps:\n      - redis: GET k\n      - redis:\n          \
                   - SET\n          - k\n          - 1\n";
    let mut problems = Problems::default();
    let source = Source { name: "plan.yaml".to_owned(), text: written.to_owned() };
    let document = Document::read(&source, PARTS.document(), &mut problems).expect("a document");
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(document.to_yaml(), written);
}
