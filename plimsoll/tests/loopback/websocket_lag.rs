//! The lag of messages that have their time in them.

use serde_json::json;

use crate::loopback::process::{Folder, Process, plimsoll, run};
use crate::loopback::shards::in_seconds;
use crate::loopback::sink::Sink;
use crate::loopback::websocket::{at, result_of};

/// The delay of the sink, and the longest lag that a time in the right unit can have, in ns.
const DELAY: u64 = 20_000_000;
const LONGEST: u64 = 600_000_000_000;

#[test]
fn the_lag_is_from_the_time_in_a_message_until_it_came() {
    let sink = Sink::start("--websocket --threads 1 --delay constant:20ms");
    for (send, lag, unit) in [
        (r#"{"at": ${timestamp_ns}}"#, json!({"json": "/at"}), 1),
        (r#"{"at": "${timestamp_us}"}"#, json!({"json": "$.at"}), 1_000),
        (r#"{"sent": {"at": ${timestamp_ms}.0}}"#, json!({"json": "/sent/at"}), 1_000_000),
        ("at=${timestamp_ms};", json!({"regex": "at=([0-9]+)"}), 1_000_000),
        ("${timestamp_s}", json!({"body": true}), 1_000_000_000),
        // Somebody's clock is ahead.
        ("9000000000000", json!({"body": true}), u64::MAX / 2),
    ] {
        for version in ["", "--http2"] {
            let folder = Folder::new();
            let message = json!({"name": "ask", "websocket": {
                "send": send, "receive": {"any": true}, "lag": lag,
            }});
            let plan = json!({
                "targets": {"chat": format!("ws://{}", sink.endpoint)},
                "run": {"iterations": 2, "connections": 2},
                "scenarios": [{"steps": [
                    {"websocket": {"open": "/"}},
                    {"repeat": 3, "steps": [message]},
                    {"websocket": {"close": 1000}},
                ]}],
                "thresholds": ["lag.max<10m", "lag.p50>=0ms"],
            });
            let file = folder.write("plan.json", plan.to_string());
            let result = result_of(&format!("run {file} {version} --quiet -o json"));
            assert_eq!(at(&result, "/accounting/ok"), 10, "{send}: {:#}", result["error_examples"]);
            let figure = |name: &str| at(&result, &format!("/lag/{name}")).as_u64().expect("a figure");
            assert_eq!((figure("count"), at(&result, "/by_step/1/lag/count")), (6, &json!(6)), "{send}");
            assert!(result["by_step"][0]["lag"].is_null(), "{send}");
            let (least, most) = (figure("min"), figure("max"));
            assert!(least.saturating_add(unit) >= DELAY && most < LONGEST, "{send}: {least} to {most}");
            let outcomes = result["thresholds"].as_array().expect("outcomes");
            assert!(outcomes.iter().all(|one| one["passed"] == true), "{send}: {outcomes:?}");
        }
    }
}

/// Subscribers wait for a publisher who thinks: the server owes them nothing meanwhile.
#[test]
fn silence_of_a_publisher_is_no_standstill() {
    let sink = Sink::start("--websocket --broadcast --threads 1");
    let folder = Folder::new();
    let plan = json!({
        "targets": {"room": format!("ws://{}", sink.endpoint)},
        "run": {"users": 9, "iterations": 9, "threads": 1},
        "scenarios": [
            {"name": "publisher", "steps": [
                {"websocket": {"open": "/"}},
                {"repeat": 10, "steps": [{"websocket": {"send": "early"}}, {"think": "50ms"}]},
                {"think": "2500ms"},
                {"repeat": 10, "steps": [{"websocket": {"send": "late"}}, {"think": "50ms"}]},
            ]},
            {"name": "subscriber", "weight": 8, "steps": [
                {"websocket": {"open": "/"}},
                {"repeat": 15, "steps": [{"websocket": {"receive": {"any": true}}}]},
            ]},
        ],
    });
    let file = folder.write("plan.json", plan.to_string());
    let result = result_of(&format!("run {file} --quiet -o json"));
    let limit = at(&result, "/verdict/limited_by");
    assert_eq!(limit["what"], "connection_limit", "{limit}");
    assert!(limit["evidence"].as_str().is_some_and(|words| words.contains("by themselves")), "{limit}");
    assert!(result["standstills"].as_array().is_none_or(Vec::is_empty), "{}", result["standstills"]);
}

#[test]
fn a_message_without_its_time_has_failed() {
    let sink = Sink::start("--websocket --threads 1");
    for (send, lag) in [
        (r#"{"id": 1}"#, json!({"json": "/at"})),
        (r#"{"at": "now"}"#, json!({"json": "/at"})),
        (r#"{"at": 12}"#, json!({"json": "/at"})),
        ("hello", json!({"regex": "at=([0-9]+)"})),
    ] {
        let folder = Folder::new();
        let plan = json!({
            "targets": {"chat": format!("ws://{}", sink.endpoint)},
            "run": {"iterations": 2, "connections": 1},
            "scenarios": [{"steps": [
                {"websocket": {"open": "/"}},
                {"websocket": {"send": send, "receive": {"any": true}, "lag": lag}},
            ]}],
        });
        let file = folder.write("plan.json", plan.to_string());
        let result = result_of(&format!("run {file} --quiet -o json"));
        assert_eq!(at(&result, "/errors/extraction"), 2, "{send}: {result:#}");
        assert!(result["lag"].is_null(), "{send}");
    }
}

#[test]
fn the_lag_is_in_reports_saved_runs_and_evidence() {
    let sink = Sink::start("--websocket --threads 1");
    let folder = Folder::new();
    let plan = json!({
        "targets": {"chat": format!("ws://{}", sink.endpoint)},
        "run": {"iterations": 2, "connections": 2},
        "scenarios": [{"steps": [
            {"websocket": {"open": "/"}},
            {"repeat": 5, "steps": [{"websocket": {
                "send": "${timestamp_ns}", "receive": {"any": true}, "lag": {"body": true},
            }}]},
        ]}],
    });
    let file = folder.write("plan.json", plan.to_string());
    let (store, evidence) = (folder.file("runs.db"), folder.file("evidence"));
    let finished = run(&format!("run {file} --long --evidence {evidence}"));
    assert!(finished.stdout.contains("lag of messages"), "{}\n{}", finished.stdout, finished.stderr);
    let verified = run(&format!("verify {evidence}"));
    assert_eq!(verified.code, Some(0), "{}\n{}", verified.stdout, verified.stderr);
    let start = in_seconds(5);
    let shards = [1, 2].map(|shard| {
        let save = format!("--save --store {store} --name shard-{shard}");
        let shard = format!("-t 1 --seed 1 --shard {shard}/2 --start-at {start}");
        let line = format!("run {file} {shard} {save} --quiet -o json");
        Process::start(plimsoll(&line))
    });
    for shard in shards {
        let finished = shard.finish();
        assert_eq!(at(&finished.result(), "/lag/count"), 5, "{finished:?}");
    }
    let merged = result_of(&format!("merge shard-1 shard-2 --store {store} -o json"));
    assert_eq!((at(&merged, "/lag/count"), at(&merged, "/by_step/1/lag/count")), (&json!(10), &json!(10)));
}
