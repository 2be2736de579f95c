//! `run --shard`, `--start-at` and `merge`: several processes as the generator of one load.

use serde_json::Value;

use crate::loopback::process::{Finished, Folder, Process, plimsoll, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, delivered};

/// The instant in this many seconds, as `--start-at` takes it.
pub(crate) fn in_seconds(seconds: u64) -> String {
    let now = plimsoll_system::clock::unix();
    plimsoll_core::calendar::rfc3339(now + plimsoll_core::Nanos::from_secs(seconds), 0)
}

/// The result, whether its thresholds hold or not.
fn parsed(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

fn unix_ns(result: &Value) -> u64 {
    result["run"]["started_at_unix_ns"].as_u64().expect("a number")
}

#[test]
fn three_processes_make_one_load_and_one_result() {
    let folder = Folder::new();
    let sink = Sink::start("");
    let store = folder.file("runs.db");
    let start = in_seconds(10);
    let load = "--rate 600 -d 2s -c 12 -t 1 --seed 5 --threshold rate>300/s --threshold p99<30s";
    let shards: Vec<Process> = (1..=3)
        .map(|shard| {
            let save = format!("--save --store {store} --name shard-{shard} -o json --quiet");
            let args = format!("run {} {load} --shard {shard}/3 --start-at {start} {save}", sink.url());
            Process::start(plimsoll(&args))
        })
        .collect();
    let results: Vec<Value> = shards.into_iter().map(|shard| parsed(&shard.finish())).collect();
    let received = sink.stop().requests;
    assert_eq!(results.iter().map(delivered).sum::<u64>(), received);
    for (number, result) in (1..).zip(&results) {
        assert_balance(result);
        assert_eq!(result["run"]["shard"], format!("{number}/3"), "{result:#}");
        assert_eq!(account(result, "scheduled"), 400, "{result:#}");
        assert_eq!(result["run"]["load_checksum"], results[0]["run"]["load_checksum"]);
        // The parts did not wait for each other: they share only the instant.
        assert_eq!(unix_ns(result), unix_ns(&results[0]), "{result:#}");
        assert_eq!(result["thresholds"][0]["passed"], false, "a third of the rate");
    }
    let merged = parsed(&run(&format!("merge shard-3 shard-1 shard-2 --store {store} -o json")));
    assert_balance(&merged);
    for kind in ["scheduled", "started", "ok", "failed"] {
        let sum: u64 = results.iter().map(|result| account(result, kind)).sum();
        assert_eq!(account(&merged, kind), sum, "{kind}");
    }
    assert_eq!(account(&merged, "scheduled"), 1_200);
    assert_eq!(merged["thresholds"][0]["passed"], true, "{:#}", merged["thresholds"]);
    assert_eq!(merged["run"]["shard"], Value::Null);
    let note =
        merged["notes"].as_array().and_then(|notes| notes.iter().find(|note| note["code"] == "shards"));
    let text = note.and_then(|note| note["text"].as_str()).expect("a note");
    assert!(text.starts_with("3 shards of one load"), "{text}");
    for (words, message) in [
        ("shard-1 shard-2", "shard 3/3 is missing"),
        ("shard-1 shard-2 shard-3 shard-2", "are both shard 2/3"),
    ] {
        let refused = run(&format!("merge {words} --store {store}"));
        refused.assert_refused(2, message);
    }
}

#[test]
fn a_start_that_is_over_is_refused_and_a_wait_for_one_ends_with_a_signal() {
    let sink = Sink::start("");
    let late = run(&format!("run {} --rate 10 -d 1s --start-at 2026-01-01T00:00:00Z", sink.url()));
    late.assert_refused(1, "before everything was ready");
    let waiting =
        format!("run {} --rate 10 -d 1s --no-preflight --start-at {}", sink.url(), in_seconds(3_600));
    let waiting = Process::start(plimsoll(&waiting));
    // Its handler of signals is there once it has threads.
    while waiting.threads() < 3 {}
    waiting.signal("INT");
    assert_eq!(waiting.finish().code, Some(130));
    assert_eq!(sink.stop().requests, 1, "that of the first contact");
    for (flags, message) in [
        ("--shard 2/3", "the shards of a load need the same seed"),
        ("--shard 4/3 --seed 1", "there is no shard 4 of 3"),
        ("--shard x --seed 1", "`x` is not a shard"),
        ("--start-at soon", "`soon` is not an instant"),
        ("--shard 1/9 --seed 1 -c 4", "cannot share the 4 connections"),
    ] {
        run(&format!("run http://127.0.0.1:1/ {flags}")).assert_refused(2, message);
    }
}
