//! Every kind of forgery, and what `verify` says of it: each single value of evidence is changed, and the file
//! signed anew. The change is found, or the value is among those that `verify` says it has not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_engine::{Backends, Control, TargetAddress, load_checksum, run};
use plimsoll_plan::{Command, Files, KeyLogFile, Plan, PlanPatch, PlanSource};
use plimsoll_report::context::{Host, RunContext};
use plimsoll_report::evidence::{Evidence, Verification, Why};
use plimsoll_report::RunResult;
use plimsoll_testkit::{Behaviour, Faults, Law, SimOpen, SimOptions};
use serde_json::{Value, json};

use super::Signed;
use crate::session::{describe, evidence::plan};

const PLAN: &str = "\
name: shop
run: {rate: 300, duration: 2s, warmup: 200ms, timeout: 50ms, arrival: poisson, no_preflight: true}
targets: {api: http://sim.test}
thresholds: [p99<20ms, error_rate<90%, {that: p95<40ms, window: 1s}, {that: p50<1ms, scenario: buy}]
scenarios:
- {name: look, weight: 2, steps: [{get: /}]}
- {name: buy, steps: [{get: /items, name: list}, {post: /items, body: x, name: second, think: {exponential: 2ms}}]}
";

struct Only;

impl Files for Only {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(PLAN.as_bytes().to_vec())
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn the_plan() -> Plan {
    let flags = PlanPatch { default_seed: 7, ..PlanPatch::default() };
    let plan = Some(PlanSource::File("plan.yaml".to_owned()));
    let resolved = Command { plan, flags, ..Command::default() }.resolve(&Only);
    resolved.unwrap_or_else(|refused| panic!("{:?}", refused.problems)).plan
}

/// The evidence of a run of a simulated server, some of whose answers are errors.
fn sound() -> Evidence {
    let plan = the_plan();
    let server = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
    let faults = Faults { statuses: vec![(503, 0.05)], reset: 0.01, drop_reply: 0.01, ..Faults::default() };
    let behaviour = Behaviour {
        service: Law::LogNormal { median: Nanos::from_millis(2), sigma: 0.5 },
        faults,
        ..Behaviour::default()
    };
    let options = SimOptions {
        latency: Nanos(1),
        servers: vec![(server.clone(), behaviour)],
        seed: 3,
        ..SimOptions::default()
    };
    let addresses: Vec<Arc<[TargetAddress]>> =
        plan.targets.iter().map(|_| vec![server.clone().into()].into()).collect();
    let mut record =
        run(&plan, &Backends::of(SimOpen::new(options)), &addresses, &Control::default(), &mut |_| {})
            .expect("the run ends");
    record.started_unix = Nanos::from_secs(1_772_366_400);
    let context = RunContext {
        tool_name: "plimsoll".to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: Some("shop".to_owned()),
        run_id: "0123456789abcdef".to_owned(),
        seed: plan.seed,
        args: ["plimsoll", "run", "plan.yaml", "--seed", "7"].map(str::to_owned).to_vec(),
        plan_hash: plan.fingerprint().to_string(),
        load_checksum: load_checksum(&plan).to_string(),
        targets: describe::targets(&plan),
        model: describe::model(&plan),
        host: Host { hostname: "a".to_owned(), cpu_model: "One CPU".to_owned(), cpus: 4, ..Host::default() },
        slices: true,
        records: plan.records(),
        ..RunContext::default()
    };
    let result = RunResult::new(&record, context.clone());
    let evidence = Evidence::new(record, context, plan.outline(), Some(PLAN.to_owned()));
    let mut evidence = evidence.of_result(&result).expect("a result is JSON");
    evidence.follows_from_plan = Some(plan::following(&evidence));
    evidence
}

/// The same as another version would have made it.
fn of_another_version() -> Evidence {
    let mut evidence = sound();
    evidence.context.tool_version = "0.1.0".to_owned();
    evidence.result["tool"]["version"] = "0.1.0".into();
    evidence
}

/// What `verify` finds in evidence that was changed and signed anew; the error of one that cannot be read.
fn verified(changed: &Value) -> Result<Verification, String> {
    let text = serde_json::to_vec(changed).expect("it is JSON");
    let evidence = Evidence::from_text(&text).map_err(|error| error.to_string())?;
    Ok(Signed { evidence, key: String::new() }.verify())
}

/// Every place of a value, the inner ones first. Of a list with many values the first and the last stand for all.
fn places(value: &Value, place: &str, found: &mut Vec<String>) {
    let inner = |name: &str| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| places(value, &inner(name), found)),
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate().filter(|(at, _)| *at == 0 || at + 1 == values.len()) {
                places(value, &inner(&number.to_string()), found);
            }
        }
        _ => {}
    }
    found.push(place.to_owned());
}

/// What a forger may write in place of a value.
fn forgeries(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![json!("forged words")],
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(value) => match value.as_u64() {
            Some(value) => vec![json!(value + 1)],
            None => vec![json!(value.as_f64().expect("a number") * 1.5 + 1.0)],
        },
        Value::String(_) => vec![json!("PASS all is well")],
        Value::Array(values) if !values.is_empty() => {
            let mut twice = values.clone();
            twice.push(values[values.len() - 1].clone());
            vec![json!(values[1..]), json!(twice)]
        }
        Value::Object(fields) if !fields.is_empty() => {
            let mut more = fields.clone();
            more.insert("forged".to_owned(), json!("more words"));
            let first = fields.keys().next().cloned().unwrap_or_default();
            let mut less = fields.clone();
            less.remove(&first);
            vec![Value::Object(more), Value::Object(less)]
        }
        Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

/// A place of the evidence as `verify` names it: of the result without the name of the part.
fn named(place: &str) -> &str {
    place.strip_prefix("/result").unwrap_or_else(|| place.strip_prefix('/').unwrap_or(place))
}

/// A place with a star for each number.
fn starred(place: &str) -> String {
    let star = |part| if str::parse::<u64>(part).is_ok() { "*" } else { part };
    place.split('/').map(star).collect::<Vec<_>>().join("/")
}

/// Changes every value below one part of the evidence. Returns the places of which nothing was said, and those that
/// were said not to have been compared, with the reason.
fn walk(evidence: &Evidence, parts: &[&str]) -> (BTreeSet<String>, BTreeMap<String, Why>) {
    let sound = serde_json::to_value(evidence).expect("it is JSON");
    assert_eq!(verified(&sound).expect("it is sound").contradictions, []);
    let mut all = Vec::new();
    for part in parts {
        places(sound.pointer(part).expect("it is there"), part, &mut all);
    }
    let (mut missed, mut open) = (BTreeSet::new(), BTreeMap::new());
    let mut changed = sound.clone();
    for place in &all {
        for forged in forgeries(sound.pointer(place).expect("it is there")) {
            let before = std::mem::replace(changed.pointer_mut(place).expect("it is there"), forged);
            // The plan has no part in the result, and the record is read once.
            let found = match place.starts_with("/result") {
                true => Ok(Evidence { result: changed["result"].clone(), ..evidence.clone() }.verify()),
                false => verified(&changed),
            };
            *changed.pointer_mut(place).expect("it is there") = before;
            let Ok(found) = found else { continue };
            if !found.contradictions.is_empty() {
                continue;
            }
            let name = named(place);
            // Of what was left open, or of a part of it.
            let is_within = |inner: &str, outer: &str| {
                inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let is_told = |told: &String| is_within(name, told) || is_within(told, name);
            let why = found.open.iter().find(|open| open.places.iter().any(is_told)).map(|open| open.why);
            let name = starred(name);
            match why {
                Some(why) => _ = open.insert(name, why),
                None => _ = missed.insert(name),
            }
        }
    }
    (missed, open)
}

#[test]
fn a_forged_result_is_found() {
    let (missed, open) = walk(&sound(), &["/result"]);
    let open: Vec<String> = open.into_iter().map(|(place, why)| format!("{place} {why:?}")).collect();
    println!("{missed:#?}\n{open:#?}");
    assert_eq!(missed, BTreeSet::new());
    assert_eq!(open, Vec::<String>::new());
}

#[test]
fn a_forged_result_of_another_version_is_found() {
    let (missed, open) = walk(&of_another_version(), &["/result"]);
    let open: Vec<String> = open.into_iter().map(|(place, why)| format!("{place} {why:?}")).collect();
    println!("{missed:#?}\n{open:#?}");
    assert_eq!(missed, BTreeSet::new());
    assert_eq!(open, Vec::<String>::new());
}

#[test]
fn what_the_result_was_made_of_is_compared() {
    let parts = [
        "/evidence_version", "/record", "/examples", "/context", "/outline", "/plan", "/follows_from_plan",
    ];
    let (missed, open) = walk(&sound(), &parts);
    let open: Vec<String> = open.into_iter().map(|(place, why)| format!("{place} {why:?}")).collect();
    println!("{missed:#?}\n{open:#?}");
    assert_eq!(missed, BTreeSet::new());
    assert_eq!(open, Vec::<String>::new());
}
