//! R19 to R22: the statements of the instrument about itself. (The cells of R19's matrix are in
//! `attribution`.)

use plimsoll_core::Nanos;
use plimsoll_histogram::Histogram;
use plimsoll_metrics::LimitedBy;
use plimsoll_report::schema_result;
use plimsoll_testkit::{Behaviour, Concurrency, Faults, Law, Pause, SimOptions, TruthLog};
use serde_json::Value;

use crate::truth::stage::{Needs, play};
use crate::truth::world::{MS, SECOND, infinite, near, one_queue, plan, plan_of_steps, simulate};

/// R19: worlds in which exactly one thing is the limit.
#[test]
fn r19_what_limits_a_run_is_named() {
    let slow = || infinite(Law::Constant(MS * 10));
    let frozen = Behaviour { pauses: vec![Pause { at: SECOND * 1_003, length: SECOND }], ..slow() };
    let serial = Behaviour { concurrency: Concurrency::PerConnection, ..slow() };
    let stalls = vec![Pause { at: SECOND * 1_001, length: MS * 500 }];
    for (settings, world, by) in [
        ("rate: 1000, duration: 5s", near(slow()), LimitedBy::None),
        ("rate: 1000, duration: 5s, connections: 5", near(serial), LimitedBy::ConnectionLimit),
        ("connections: 32, duration: 3s", near(slow()), LimitedBy::ConnectionLimit),
        ("connections: 32, duration: 3s", near(one_queue(Law::Constant(MS))), LimitedBy::Target),
        ("rate: 1000, duration: 10s", near(frozen), LimitedBy::Target),
        ("rate: 1000, duration: 4s", SimOptions { stalls, ..near(slow()) }, LimitedBy::Generator),
    ] {
        let limit = simulate(&plan(settings), world).0.verdict.limited_by;
        assert_eq!(limit.what, by, "{settings}: {limit:?}");
        assert!(!limit.evidence.is_empty() && (by == LimitedBy::None || !limit.hint.is_empty()), "{limit:?}");
    }
}

/// Returns every request that was sent: its world, the time at which it was received, and its bytes.
fn sent(truth: &TruthLog) -> Vec<(u32, Nanos, Vec<u8>)> {
    let entries = truth.entries();
    entries.into_iter().map(|entry| (entry.world, entry.received, entry.request)).collect()
}

/// R20: the same seed and plan give the same schedule, bodies, think times and figures; another seed others.
#[test]
fn r20_a_seed_is_a_run() {
    let steps = "[{post: '/${random_int(1, 9999)}', body: '${random_hex(32)}', think: {exponential: 5ms}}]";
    for load in ["rate: 3000, arrival: poisson, duration: 1s", "connections: 8, duration: 1s"] {
        let outcome = |seed: u64| {
            let mut plan = plan_of_steps(&format!("{load}, timeout: 100ms"), steps);
            plan.seed = seed;
            let faults = Faults { drop_reply: 0.01, reset: 0.02, ..Faults::default() };
            let behaviour = Behaviour { faults, ..infinite(Law::LogNormal { median: MS, sigma: 0.5 }) };
            let options = SimOptions { keep_requests: true, ..near(behaviour) };
            let (record, truth) = simulate(&plan, options);
            (sent(&truth), record.accounting, record.total)
        };
        let first = outcome(7);
        assert!(first.0.len() > 500, "{load}: {}", first.0.len());
        assert_eq!(first, outcome(7), "{load}");
        assert_ne!(first.0, outcome(8).0, "{load}");
    }
}

/// R21, as far as merging goes: four workers record the same as one, to the last bucket.
#[test]
fn r21_merged_workers_are_one_worker() {
    let of = |threads: u32| {
        let settings = format!(
            "rate: 5000, arrival: poisson, duration: 3s, connections: 400, threads: {threads}, precise: true"
        );
        // No draws of the server, which every world makes for itself.
        simulate(&plan(&settings), near(infinite(Law::Constant(MS * 3)))).0
    };
    let (one, four) = (of(1), of(4));
    assert_eq!(four.workers.len(), 4);
    // To the bucket; below it a few nanoseconds differ, since connections are opened by other requests.
    let buckets = |histogram: &Histogram| -> Vec<(u64, u64)> {
        histogram.buckets().map(|bucket| (bucket.highest, bucket.count)).collect()
    };
    assert_eq!(buckets(&four.total.response_time), buckets(&one.total.response_time));
    assert_eq!(buckets(&four.total.service_time), buckets(&one.total.service_time));
    assert_eq!(four.accounting, one.accounting);
}

/// Fields in which a result says how it came about, as JSON pointers.
const GROUNDS: [&str; 19] = [
    "/schema_version",
    "/tool/version",
    "/run/seed",
    "/run/plan_hash",
    "/run/args",
    "/run/host/kernel",
    "/run/host/cpu_model",
    "/run/host/governor",
    "/model/kind",
    "/model/description",
    "/model/arrivals",
    "/warmup_s",
    "/steady/state",
    "/generator/backend",
    "/generator/calibration",
    "/verdict/valid",
    "/verdict/invalid_reasons",
    "/verdict/thresholds",
    "/verdict/limited_by",
];

/// Returns `true` if the schema demands the field at a pointer, at every step of the way.
fn is_required(schema: &Value, pointer: &str) -> bool {
    let mut at = schema;
    for name in pointer.split('/').skip(1) {
        if let Some(values) = at.get("additionalProperties") {
            return values != &Value::Bool(false);
        }
        let demanded = at["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
        if !demanded {
            return false;
        }
        at = resolved(schema, &at["properties"][name]);
    }
    true
}

/// The definition that a reference points to, if it is one.
fn resolved<'a>(schema: &'a Value, at: &'a Value) -> &'a Value {
    let alternatives = at["anyOf"].as_array().into_iter().flatten();
    let mut references = std::iter::once(at).chain(alternatives).filter_map(|one| one["$ref"].as_str());
    match references.next().and_then(|path| schema.pointer(path.trim_start_matches('#'))) {
        Some(definition) => definition,
        None => at,
    }
}

/// R22: a result has all of its grounds, and one without them is not a result by the schema.
#[test]
fn r22_the_grounds_of_a_result_are_in_it() {
    let schema = schema_result();
    let script = "sink; load --rate 300 -d 1s --seed 11";
    let Some(result) = play(Needs::Nothing, script) else { return };
    assert_eq!(result["run"]["seed"], 11);
    for pointer in GROUNDS {
        assert!(result.pointer(pointer).is_some(), "{pointer} is missing");
        assert!(is_required(&schema, pointer), "a result without {pointer} would be one");
    }
    assert!(!is_required(&schema, "/run/nothing"));
    // The method of an interval goes with it.
    assert!(result.pointer("/response_time/interval/50").is_some());
    let interval = schema["$defs"].to_string();
    assert!(["confidence", "vif", "effective_samples"].iter().all(|name| interval.contains(name)));
}
