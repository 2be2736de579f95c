//! First word of a run's report, and its exit code: with servers that are well, fail in part, fail always,
//! never answer, or are not there.

use std::process::Command;

use serde_json::Value;

use crate::loopback::process::{Finished, Folder, run};
use crate::loopback::sink::Sink;

/// Asserts that report and exit code are those of one outcome. On a busy machine the measurement may be
/// invalid: then the outcome has to be `invalid`.
#[track_caller]
fn assert_outcome(flags: &str, valid: (i32, &str), invalid: (i32, &str)) -> Finished {
    let finished = run(&format!("{flags} -o json"));
    let result = parsed(&finished);
    let verdict = &result["verdict"];
    let (code, outcome) = if verdict["valid"] == true { valid } else { invalid };
    assert_eq!(
        (finished.code, verdict["outcome"].as_str()),
        (Some(code), Some(outcome)),
        "{flags}: {verdict:#}"
    );
    finished
}

fn parsed(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

/// Of a run that proves nothing, for the machine is busy.
const NO_VERDICT: (i32, &str) = (3, "no_verdict");

#[test]
fn a_server_that_fails_every_request_is_a_failure_and_no_fault_of_the_machine() {
    for (faults, class) in [("--status 500", "status_5xx"), ("--status 401", "status_4xx")] {
        let sink = Sink::start(faults);
        let load = format!("{} -n 200 -c 2", sink.url());
        let failed = assert_outcome(&load, (1, "fail"), (1, "fail"));
        let result = failed.result();
        assert_eq!(result["verdict"]["cause"], "nothing_succeeded");
        assert_eq!(result["errors"][class], 200);
        assert!(result["service_time"]["p"]["50"].is_null(), "{}", result["service_time"]);
        assert_eq!(result["service_time"]["p_missing"]["50"], "no samples");
        for threshold in ["error_rate<1%", "p99<10s"] {
            let load = format!("{load} --threshold {threshold}");
            assert_outcome(&load, (99, "fail"), (99, "fail"));
        }
        // A threshold that does not depend on errors holds, and is not what a run is for.
        assert_outcome(&format!("{load} --threshold started==200"), (1, "fail"), (1, "fail"));
    }
}

#[test]
fn a_server_that_is_down_or_never_answers_is_a_failure() {
    let down = "http://127.0.0.1:1/ --no-preflight -c 2 -d 300ms";
    assert_outcome(down, (1, "fail"), (1, "fail"));
    assert_outcome(&format!("{down} --threshold error_rate<1%"), (99, "fail"), (99, "fail"));
    let silent = Sink::start("--drop 100%");
    // Requests that time out, that are in flight at the end, and that were all sent in the warm-up.
    for load in [
        "--rate 50 -d 1s --timeout 1s",
        "-c 2 -d 500ms --drain 1s",
        "-c 2 --warmup 300ms -d 1s --drain 100ms",
    ] {
        let load = format!("{} {load} --no-preflight", silent.url());
        let finished = run(&format!("{load} -o json"));
        let result = parsed(&finished);
        let verdict = &result["verdict"];
        // The generator may have stood still for longer than that.
        let valid = verdict["valid"] == true;
        assert!(finished.code == Some(1) || (!valid && finished.code == Some(3)), "{load}: {verdict:#}");
        assert_eq!(verdict["outcome"] == "fail", finished.code == Some(1), "{verdict:#}");
        let errors = run(&format!("{load} --threshold ok>=1 -o json"));
        let valid = parsed(&errors)["verdict"]["valid"] == true;
        // Those that are in flight at the end may yet have been good: then it is that nothing succeeded.
        let failed = matches!(errors.code, Some(1 | 99));
        assert!(failed || (!valid && errors.code == Some(3)), "{load}: {}", errors.stderr);
    }
}

#[test]
fn errors_in_part_are_told_and_judged_by_thresholds_only() {
    let sink = Sink::start("--fail 20%:503");
    let load = format!("{} -n 1000 -c 2", sink.url());
    let done = assert_outcome(&load, (0, "done"), NO_VERDICT).result();
    assert!(done["verdict"]["summary"].as_str().is_some_and(|said| said.contains("% errors")), "{done:#}");
    // The server answered these requests, whatever the generator did.
    assert_outcome(&format!("{load} --threshold error_rate<5%"), (99, "fail"), (99, "fail"));
    assert_outcome(&format!("{load} --threshold p50<1ns"), (99, "fail"), NO_VERDICT);
    assert_outcome(&format!("{load} --threshold error_rate<90%"), (0, "pass"), NO_VERDICT);
}

#[test]
fn one_failure_in_twenty_is_told_and_judged() {
    let sink = Sink::start("--fail 5%:503");
    let load = format!("{} -n 2000 -c 2", sink.url());
    let done = assert_outcome(&load, (0, "done"), NO_VERDICT).result();
    let failed = done["accounting"]["failed"].as_u64().expect("a count");
    assert!((50..=160).contains(&failed), "{failed} of 2,000");
    assert_eq!(done["errors"]["status_5xx"], failed);
    assert_outcome(&format!("{load} --threshold error_rate<1%"), (99, "fail"), (99, "fail"));
    assert_outcome(&format!("{load} --threshold error_rate<10%"), (0, "pass"), NO_VERDICT);
}

#[test]
fn a_healthy_server_passes_or_is_done() {
    let sink = Sink::start("");
    assert_outcome(&format!("{} -n 500 -c 2", sink.url()), (0, "done"), NO_VERDICT);
    assert_outcome(&format!("{} -n 500 -c 2 --threshold error_rate<1%", sink.url()), (0, "pass"), NO_VERDICT);
}

/// The outcome is the first and the last thing that is read, in each format for people and for CI.
#[test]
fn every_report_begins_with_the_outcome() {
    let sink = Sink::start("--status 500");
    let load = format!("{} -n 50 -c 2", sink.url());
    let brief = run(&load);
    let lines: Vec<&str> = brief.stdout.lines().collect();
    assert!(lines.len() <= 25, "{}", brief.stdout);
    assert!(lines[0].starts_with("FAIL  none of 50 requests succeeded"), "{}", brief.stdout);
    assert!(lines[1].starts_with("measurement "), "{}", brief.stdout);
    assert!(lines[lines.len() - 1].starts_with("FAIL "), "{}", brief.stdout);
    for long in ["--long", "-o text"] {
        let long = run(&format!("{load} {long}")).stdout;
        assert!(long.starts_with("FAIL  ") && long.contains("\naccounting  scheduled 50"), "{long}");
        assert!(long.lines().last().is_some_and(|line| line.starts_with("FAIL  ")), "{long}");
    }
    assert!(
        run(&format!("{load} -o markdown")).stdout.starts_with("### FAIL: none of 50 requests succeeded")
    );
    let junit = run(&format!("{load} -o junit")).stdout;
    assert!(junit.contains("failures=\"1\" errors=\"0\""), "{junit}");
    assert!(junit.contains("<failure message=\"none of 50 requests succeeded"), "{junit}");
    let refused = run(&format!("{load} --long -o json"));
    refused.assert_refused(2, "--long");
}

/// Messages beside the report come before it, so that a terminal shows the outcome last.
#[test]
fn the_outcome_is_the_last_line_whatever_else_is_written() {
    let (sink, folder) = (Sink::start("--status 500"), Folder::new());
    let store = folder.path().join("history.db");
    let page = folder.path().join("page.html");
    let (store, page) = (store.display(), page.display());
    for more in [
        format!("--name outcome --store {store}"),
        format!("--report {page}"),
        format!("--json {page}.json"),
        format!("--out csv={page}.csv"),
    ] {
        let line = format!("{} run {} -n 50 -c 2 {more} 2>&1", env!("CARGO_BIN_EXE_plimsoll"), sink.url());
        let output = Command::new("sh").args(["-c", &line]).output().expect("there is a shell");
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(shown.lines().last().is_some_and(|line| line.starts_with("FAIL ")), "{more}: {shown}");
    }
}

/// A run that was repeated ends as the worst of them.
#[test]
fn repeated_runs_that_all_fail_are_a_failure() {
    let sink = Sink::start("--status 404");
    let repeated = run(&format!("{} -n 50 -c 2 --repeat 2", sink.url()));
    assert_eq!(repeated.code, Some(1), "{}", repeated.stdout);
    assert!(repeated.stdout.starts_with("FAIL  both runs: none of 100 requests"), "{}", repeated.stdout);
}
