//! Evidence: the result of a run follows from its record, and a result that was changed does not.

use std::path::Path;
use std::process::Command;

use plimsoll_core::{Nanos, Random};
use plimsoll_metrics::{RunRecord, Stall};
use plimsoll_plan::Plan;
use plimsoll_report::evidence::Evidence;
use plimsoll_report::{RunContext, RunResult};
use plimsoll_testkit::{Faults, Law, Pause, SimOptions};
use serde_json::Value;

use crate::truth::world::{MS, SECOND, infinite, near, one_queue, plan_of_text, simulate};

/// The evidence of a run, with its result as it would be reported.
fn evidence(plan: &Plan, record: &RunRecord, seed: u64) -> Evidence {
    let context = RunContext {
        tool_name: "plimsoll".to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        seed,
        slices: seed.is_multiple_of(3),
        ..RunContext::default()
    };
    let result = RunResult::new(record, context.clone());
    Evidence::new(record.clone(), context, plan.outline(), None).of_result(&result).expect("a result is JSON")
}

/// A run of a random plan against a random server.
fn random_run(seed: u64) -> (Plan, RunRecord) {
    let mut random = Random::new(seed, 1);
    let mut one_of = |choices: &[&str]| choices[random.below(choices.len() as u64) as usize].to_owned();
    let load =
        one_of(&["rate: 400, arrival: poisson", "rate: 2000", "connections: 4", "stages: '1s@50,1s@700'"]);
    let phases = one_of(&["", ", warmup: 200ms", ", threads: 2"]);
    let duration = if load.starts_with("stages") { "" } else { ", duration: 2s" };
    let thresholds = one_of(&[
        "",
        "thresholds: [p99<20ms, error_rate<1%]\n",
        "thresholds: [{that: p95<5ms, window: 1s}, p50<1ms]\n",
        "thresholds: [{that: error_rate<0.1%, step: second}, rate>100/s]\n",
    ]);
    let timeout = one_of(&["10ms", "1s"]);
    let steps = if thresholds.contains("second") {
        "[{get: /, name: first}, {post: /items, body: x, name: second, think: {exponential: 2ms}}]"
    } else {
        "[{get: /}]"
    };
    let plan = plan_of_text(format!(
        "run: {{{load}{duration}{phases}, timeout: {timeout}}}\n{thresholds}\
         targets: {{api: http://sim.test}}\nscenarios: [{{steps: {steps}}}]"
    ));
    let faults = Faults {
        statuses: vec![(503, random.unit() * 0.1)],
        reset: random.unit() * 0.02,
        drop_reply: random.unit() * 0.01,
        ..Faults::default()
    };
    let law = Law::LogNormal { median: MS, sigma: 0.5 };
    let server = if random.below(2) == 0 { infinite(law) } else { one_queue(law) };
    let mut options = SimOptions { seed, ..near(server) };
    options.servers[0].1.faults = faults;
    if random.below(4) == 0 {
        options.stalls = vec![Pause { at: SECOND * 1_001, length: Nanos::from_millis(300) }];
    }
    let record = simulate(&plan, options).0;
    (plan, record)
}

/// Every leaf of a result outside of notes: its place.
fn leaves(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| *name != "notes") {
                leaves(value, &format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                leaves(value, &format!("{place}/{number}"), found);
            }
        }
        _ => found.push(place.to_owned()),
    }
}

#[test]
fn results_follow_from_their_records() {
    let mut invalid = 0;
    for seed in 0..200 {
        let (plan, record) = random_run(seed);
        invalid += u32::from(!record.verdict.valid);
        let evidence = evidence(&plan, &record, seed);
        // As others get it.
        let read = Evidence::from_bytes(&evidence.to_bytes().expect("it is written")).expect("it is read");
        let verified = read.verify();
        assert_eq!(verified.contradictions, [], "seed {seed}");
        assert!(verified.compared > 300, "seed {seed}: {}", verified.compared);
    }
    assert!((10..190).contains(&invalid), "{invalid} of 200 are invalid");
}

/// A changed result that is signed anew does not follow from the record.
#[test]
fn a_changed_result_does_not_follow() {
    let mut random = Random::new(7, 2);
    for seed in 0..20 {
        let (plan, record) = random_run(seed);
        let sound = evidence(&plan, &record, seed);
        let mut places = Vec::new();
        leaves(&sound.result, "", &mut places);
        for _ in 0..50 {
            let place = &places[random.below(places.len() as u64) as usize];
            let mut changed = sound.clone();
            let value = changed.result.pointer_mut(place).expect("it is there");
            *value = match value {
                Value::Bool(value) => Value::Bool(!*value),
                Value::Number(value) => {
                    let value = value.as_f64().expect("a number");
                    serde_json::json!(value * 1.03 + 1.0)
                }
                Value::String(value) => Value::String(format!("{value} ")),
                _ => Value::from(7),
            };
            let found = changed.verify().contradictions;
            assert!(found.iter().any(|one| one.place == *place), "seed {seed}, {place}: {found:?}");
        }
    }
}

/// A record that was changed does not hold together any more, or gives another result.
#[test]
fn a_changed_record_contradicts_the_result() {
    let (plan, record) = random_run(1);
    let sound = evidence(&plan, &record, 1);
    type Change = fn(&mut RunRecord);
    let changes: [(&str, Change); 7] = [
        ("accounting", |record| record.accounting.failed -= 1),
        ("steps", |record| record.total.ok += 1),
        ("steps", |record| record.steps[0].response_time.record(1_000)),
        ("slices", |record| record.slices.truncate(1)),
        ("timeline", |record| record.timeline.measured.truncate(1)),
        ("/duration_s", |record| record.duration = SECOND),
        ("/verdict/valid", |record| {
            record.workers[0].stalls.push(Stall { worker: 0, at: record.warmup, length: SECOND });
        }),
    ];
    for (place, change) in changes {
        let mut changed = sound.clone();
        change(&mut changed.record);
        let found = changed.verify().contradictions;
        assert!(found.iter().any(|one| one.place == place), "{place}: {found:?}");
    }
}

/// A signer may write any number.
#[test]
fn impossible_counts_are_refused() {
    let (plan, record) = random_run(1);
    let sound = evidence(&plan, &record, 1);
    let changes: [fn(&mut RunRecord); 4] = [
        |record| record.accounting.started = u64::MAX,
        |record| record.total.ok = u64::MAX,
        |record| record.slices[0].total.started = u64::MAX,
        |record| record.slices[0].total.carried = u64::MAX,
    ];
    for change in changes {
        let mut changed = sound.clone();
        change(&mut changed.record);
        let read = Evidence::from_bytes(&changed.to_bytes().expect("it is written"));
        let error = read.expect_err("no run has so many").to_string();
        assert!(error.contains("no run can have a count of 18446744073709551615"), "{error}");
    }
}

/// A file of version 1, of the first program that wrote evidence: later ones verify it, too.
#[test]
fn evidence_of_earlier_versions_is_verified() {
    let kept = std::fs::read("tests/truth/evidence-1.json.gz").expect("it is there");
    let kept = Evidence::from_bytes(&kept).expect("it is read");
    let verified = kept.verify();
    assert_eq!(verified.contradictions, []);
    assert!(verified.compared > 300, "{}", verified.compared);
    assert!(kept.record.accounting.failed > 0, "it has errors and their examples");
}

/// The figures of the board follow from its evidence, as the program is today, and each file is as it was
/// signed.
#[test]
fn the_evidence_of_the_board_is_verified() {
    let board = Path::new("../bench/board");
    let page = std::fs::read_to_string(board.join("README.md")).expect("the page of the board is there");
    let files =
        std::fs::read_dir(board).expect("the board is there").map(|file| file.expect("a file").path());
    let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "evidence")).collect();
    assert!(files.len() >= 10, "{} files", files.len());
    for file in &files {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        let bytes = std::fs::read(file).expect("it is there");
        assert!(bytes.len() < 200_000, "{name}: {} bytes", bytes.len());
        let line = bytes.iter().position(|byte| *byte == b'\n').expect("a line with the signature");
        let mut evidence = Evidence::from_bytes(&bytes[line + 1..]).expect("it is read");
        // The words of results may change until there is another version.
        let earlier = "0.0.0";
        earlier.clone_into(&mut evidence.context.tool_version);
        evidence.result["tool"]["version"] = earlier.into();
        let verified = evidence.verify();
        assert_eq!(verified.contradictions, [], "{name}");
        assert!(verified.compared > 300, "{name}: {}", verified.compared);
        let shown = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["show", "-o", "json"])
            .arg(file)
            .output()
            .expect("the program runs");
        assert!(shown.status.success(), "{name}: {}", String::from_utf8_lossy(&shown.stderr));
        assert!(page.contains(&format!("]({name})")), "{name} is not on the page");
    }
    assert_eq!(page.matches(".evidence)").count(), files.len(), "the page names files that are not there");
}
