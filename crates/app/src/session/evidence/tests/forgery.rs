//! Every kind of forgery, and what `verify` says of it: each single value of evidence is changed, and the
//! file signed anew. The change is found, or the value is among those that `verify` says it has not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_document::{Files, KeyLogFile};
use plimsoll_driver::Endpoint;
use plimsoll_engine::{Backends, Control, TargetAddress, load_checksum, run};
use plimsoll_plan::{Command, Plan, PlanPatch, PlanSource};
use plimsoll_report::RunResult;
use plimsoll_report::context::{Host, RunContext};
use plimsoll_report::evidence::{Evidence, Verification, Why};
use plimsoll_testkit::{Behaviour, Faults, Law, SimOpen, SimOptions};
use serde_json::{Value, json};

use super::{Kept, Signed};
use crate::session::{describe, evidence::plan};

const PLAN: &str = "\
name: shop
run: {rate: 300, duration: 1s, warmup: 200ms, timeout: 50ms, arrival: poisson, no_preflight: true}
targets: {api: http://sim.test}
thresholds: [p99<20ms, error_rate<90%, {that: p95<40ms, window: 1s}, {that: p50<1ms, scenario: buy}]
scenarios:
- {name: look, weight: 2, steps: [{get: /}]}
- name: buy
  steps: [{get: /items, name: list}, {post: /items, body: x, name: second, think: {exponential: 2ms}}]
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

/// Sound evidence that names another version of the program.
fn of_another_version() -> Evidence {
    let mut evidence = sound();
    evidence.context.tool_version = "0.1.0".to_owned();
    evidence.result["tool"]["version"] = "0.1.0".into();
    evidence
}

/// Signs changed evidence anew, with or without its plan, and verifies it; an error for evidence that cannot
/// be read.
fn verified(changed: &Value, with_plan: bool) -> Result<Verification<()>, String> {
    let text = serde_json::to_vec(changed).expect("it is JSON");
    let evidence = Evidence::from_text(&text).map_err(|error| error.to_string())?;
    Ok(match with_plan {
        true => Signed { evidence: Kept::Run(Box::new(evidence)), key: String::new() }.verify().map(|_| ()),
        false => evidence.verify().map(|_| ()),
    })
}

/// Every place of a value, the inner ones first. Of a list the first value stands for all.
fn places(value: &Value, place: &str, found: &mut Vec<String>) {
    let inner = |name: &str| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| places(value, &inner(name), found)),
        Value::Array(values) => {
            for (number, value) in values
                .iter()
                .enumerate()
                .filter(|(at, _)| *at == 0 || place.ends_with("intervals") && at + 1 == values.len())
            {
                places(value, &inner(&number.to_string()), found);
            }
        }
        _ => {}
    }
    found.push(place.to_owned());
}

/// Values of the same and of other types that a forger may put in place of one.
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

/// Changes every value below one part of the evidence. Returns the places of which nothing was said, and
/// those that were said not to have been compared, with the reason.
fn walk(evidence: &Evidence, parts: &[&str]) -> (BTreeSet<String>, BTreeMap<String, Why>) {
    let sound = serde_json::to_value(evidence).expect("it is JSON");
    assert_eq!(verified(&sound, true).expect("it is sound").contradictions, []);
    // The plan has no part in the result, and the record is read once.
    walk_of(&sound, parts, &|place, changed| match place.starts_with("/result") {
        true => {
            let mut forged = evidence.clone();
            forged.result = changed["result"].clone();
            Ok(forged.verify().map(|_| ()))
        }
        false => verified(changed, !place.starts_with("/record")),
    })
}

/// Verifies evidence of which the value at a place was changed; an error if it cannot be read.
type Verified<'a> = dyn Fn(&str, &Value) -> Result<Verification<()>, String> + 'a;

/// Changes every value below some parts of evidence, and verifies it each time, as [`walk`] does.
pub(super) fn walk_of(
    sound: &Value,
    parts: &[&str],
    verified: &Verified<'_>,
) -> (BTreeSet<String>, BTreeMap<String, Why>) {
    let mut all = Vec::new();
    for part in parts {
        places(sound.pointer(part).expect("it is there"), part, &mut all);
    }
    let (mut missed, mut open) = (BTreeSet::new(), BTreeMap::new());
    let mut changed = sound.clone();
    for place in &all {
        for forged in forgeries(sound.pointer(place).expect("it is there")) {
            let before = std::mem::replace(changed.pointer_mut(place).expect("it is there"), forged);
            let found = verified(place, &changed);
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
            let name = starred(name);
            let is_told = |told: &String| {
                let told = starred(told);
                is_within(&name, &told) || is_within(&told, &name)
            };
            let why = found.open.iter().find(|open| open.places.iter().any(is_told)).map(|open| open.why);
            match why {
                Some(why) => _ = open.insert(name, why),
                None => _ = missed.insert(name),
            }
        }
    }
    (missed, open)
}

/// The places that were not compared, each with the reason.
pub(super) fn lines(open: &BTreeMap<String, Why>) -> Vec<String> {
    open.iter().map(|(place, why)| format!("{place} {why:?}")).collect()
}

#[test]
fn a_forged_result_is_found() {
    let (missed, open) = walk(&sound(), &["/result"]);
    assert_eq!(missed, BTreeSet::new());
    assert_eq!(lines(&open), Vec::<String>::new());
}

/// The sentences of another version were all taken as they were, and called verified.
#[test]
fn a_forged_result_of_another_version_is_found_or_told() {
    let (missed, open) = walk(&of_another_version(), &["/result"]);
    assert_eq!(missed, BTreeSet::new());
    for (place, why) in &open {
        let is_sentence = ["/summary", "/evidence", "/hint", "/reason", "/unreached", "/text"]
            .iter()
            .any(|name| place.ends_with(name))
            || ["/methods/", "/p_missing/", "/interval_missing/"].iter().any(|name| place.contains(name));
        match why {
            Why::Words => assert!(is_sentence, "{place}"),
            // Of objects one field was taken, or one was added: another version may have others.
            Why::Missing | Why::Additional => {}
            // A note with another code may be of a workload.
            _ => assert!(place.starts_with("/notes/") && *why == Why::FromOutside, "{place} {why:?}"),
        }
    }
    let sentences = open.values().filter(|why| **why == Why::Words).count();
    assert!(sentences > 20, "{:?}", lines(&open));
}

#[test]
fn what_the_result_was_made_of_is_compared() {
    let evidence = sound();
    let parts =
        ["/evidence_version", "/record", "/examples", "/context", "/outline", "/plan", "/follows_from_plan"];
    let (missed, open) = walk(&evidence, &parts);
    assert_eq!(missed, BTreeSet::new());
    // The list of what decides no figure is no longer than it has to be. This run has no machine, its result
    // has the slices, and their first one has the extremes.
    let listed = evidence.verify().open.into_iter().filter(|open| open.why == Why::Unused);
    let is_needed = |place: &String| open.keys().any(|name| name.starts_with(place.as_str()));
    let needless: Vec<String> =
        listed.flat_map(|open| open.places).filter(|place| !is_needed(place)).collect();
    assert_eq!(
        needless,
        [
            "record/machine",
            "record/slices/*/at",
            "record/slices/*/steps/*/limits",
            "record/slices/*/steps/*/failed_limits",
            "record/slices/*/total/limits",
            "record/slices/*/total/failed_limits",
            "record/steps/*/censored_response/from_ns",
        ]
    );
}

/// The case of the report: every sentence says that all is well.
#[test]
fn sentences_of_another_version_are_not_called_verified() {
    let mut forged = of_another_version();
    assert_eq!(forged.verify().of_other_version(), 0, "the same words");
    for place in ["/verdict/summary", "/verdict/limited_by/evidence", "/methods/percentile"] {
        *forged.result.pointer_mut(place).expect("it is there") = "PASS all is well".into();
    }
    let verified = forged.verify();
    assert_eq!((verified.contradictions.len(), verified.of_other_version()), (0, 3));
    let told = verified.open.iter().find(|open| open.why == Why::Words).expect("it is told").in_words();
    assert_eq!(
        told,
        "3 not compared: sentences in the words of another version, such as /methods/percentile: \
         \"PASS all is well\""
    );
    let shown = forged.to_saved().expect("a result").result.notes;
    let note = shown.iter().find(|note| note.code == "not_compared").expect("a note");
    assert_eq!(note.text, "3 statements are those of version 0.1.0, and were not compared with the record");
    // The outcome is no sentence.
    forged.result["verdict"]["outcome"] = "pass".into();
    let found = forged.verify().contradictions;
    assert_eq!(found.iter().map(|one| one.place.as_str()).collect::<Vec<_>>(), ["/verdict/outcome"]);
    assert!(forged.to_saved().expect("a result").result.notes.iter().any(|note| note.code == "not_verified"));
}

/// Judgements by other rules are not compared, but have to agree with each other.
#[test]
fn a_forged_version_of_the_rules_is_told() {
    let mut forged = sound();
    forged.evidence_version = 1;
    assert!(forged.verify().of_other_version() > 0);
    for (place, value) in [
        ("/verdict/outcome", json!("pass")),
        ("/verdict/cause", json!("script")),
        ("/verdict/thresholds", json!("pass")),
        ("/verdict/valid", json!(!forged.result["verdict"]["valid"].as_bool().expect("it is one"))),
        ("/verdict/invalid_reasons", json!(["stalls"])),
        ("/verdict/limited_by/what", json!("nobody")),
    ] {
        let mut forged = forged.clone();
        *forged.result.pointer_mut(place).expect("it is there") = value;
        let found = forged.verify().contradictions;
        assert!(found.iter().any(|one| one.place == place), "{place}: {found:?}");
    }
}

#[test]
fn the_plan_is_made_again_from_its_text_and_the_flags() {
    let sound = serde_json::to_value(sound()).expect("it is JSON");
    let all = ["plan_hash", "seed", "load_checksum", "targets", "model", "outline", "thresholds", "records"];
    assert_eq!(sound["follows_from_plan"], json!(all));
    let found = |change: &dyn Fn(&mut Value)| {
        let mut changed = sound.clone();
        change(&mut changed);
        let found = verified(&changed, true).expect("it is read").contradictions;
        found.into_iter().map(|one| one.place).collect::<Vec<_>>()
    };
    let text = |from: &str, to: &str| json!(PLAN.replace(from, to));
    assert_eq!(
        found(&|all| all["plan"] = text("rate: 300", "rate: 400")),
        ["plan_hash", "load_checksum", "model"]
    );
    assert_eq!(found(&|all| all["plan"] = text("p99<20ms", "p99<2s")), ["thresholds"]);
    assert_eq!(found(&|all| all["plan"] = text("name: second", "name: first")), ["plan_hash", "outline"]);
    assert_eq!(found(&|all| all["plan"] = json!("rate: [")), ["plan"]);
    assert_eq!(found(&|all| all["plan"] = text("# none", "")), [""; 0], "the text is the same");
    // Both places say so, and the load is another.
    let seeds = found(&|all| {
        all["context"]["seed"] = json!(8);
        all["result"]["run"]["seed"] = json!(8);
    });
    assert_eq!(seeds, ["seed"]);
    let hashes = found(&|all| {
        all["context"]["plan_hash"] = json!("0123");
        all["result"]["run"]["plan_hash"] = json!("0123");
    });
    assert_eq!(hashes, ["plan_hash"]);
}
