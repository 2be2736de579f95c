//! wrk's scripts as users run them, against the sink: our equivalents of those that ship with wrk, and those
//! themselves where wrk is installed.

use std::path::{Path, PathBuf};

use plimsoll_testkit::verdict;
use serde_json::Value;

use crate::loopback::process::{Finished, Folder, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count, delivered, errors};

/// Where the package of wrk puts its scripts.
const INSTALLED: &str = "/usr/share/doc/wrk/examples/scripts";

fn ours() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/script/tests/wrk")
}

/// The scripts of a folder, by name.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it is a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "lua")).collect();
    paths.sort_unstable();
    assert!(paths.len() >= 9, "{paths:?}");
    paths
}

/// One run of a script, of which every request is accounted for, and all are good: the result, and the output
/// of the script's `done`, on stderr: stdout is for programs.
fn good(script: &Path) -> (Value, String) {
    let sink = Sink::start("");
    let script = script.display();
    // Pipelining does not exist for HTTP/2, and one of the scripts is about it.
    let finished = run(&format!("{} -s {script} -d 500ms -c 4 -t 2 -o json", sink.url()));
    // The machine may be busy, and the run be judged invalid for that.
    assert!(verdict::ran(finished.code), "{script}: {:?} {}", finished.code, finished.stderr);
    let result: Value = serde_json::from_str(&finished.stdout).expect("stdout carries the result alone");
    let printed = finished.stderr.clone();
    assert_balance(&result);
    assert_eq!(
        account(&result, "failed") + account(&result, "timed_out"),
        0,
        "{script}: {}",
        result["errors"]
    );
    assert!(account(&result, "ok") > 0, "{script}");
    let saw = sink.stop();
    assert_eq!(saw.requests, delivered(&result), "{script}: {}", result["accounting"]);
    check(script.to_string().rsplit('/').next().expect("a name"), &result, &printed);
    (result, printed)
}

/// Checks the visible effects of each script.
fn check(name: &str, result: &Value, printed: &str) {
    let iterations = |kind: &str| count(result, &format!("/iterations/{kind}"));
    let requests = account(result, "ok");
    match name {
        "pipeline.lua" => assert_eq!(requests, 3 * iterations("completed"), "{}", result["iterations"]),
        "stop.lua" => {
            // Nothing more is sent, and the run lasts as long as it was told to.
            assert_eq!(result["duration_s"], 0.5);
            let rate = result["rate"]["achieved_per_s"].as_f64().expect("a rate");
            assert!((400.0..=412.0).contains(&rate), "{rate}");
            // Two threads stop after a hundred responses each; requests that their other connections had in
            // flight are waited for.
            assert!((200..=206).contains(&requests), "{requests}");
        }
        // Each of four users waits for 10 ms or more before each request.
        "delay.lua" => assert!(requests <= 4 * 50, "{requests}"),
        "report.lua" => {
            let percentiles: Vec<_> = printed.lines().filter(|line| line.contains("%,")).collect();
            assert_eq!(percentiles.len(), 4, "{printed}");
            assert!(percentiles.iter().all(|line| !line.ends_with("%,0")), "{printed}");
        }
        "setup.lua" => {
            // `thread 1 made 7 requests and got 7 responses`, or in other words.
            let figures = |line: &str| {
                line.split(|c: char| !c.is_ascii_digit())
                    .filter_map(|part| part.parse::<u64>().ok())
                    .collect::<Vec<_>>()
            };
            // The other lines come from `setup`, and say less.
            let threads: Vec<_> = printed.lines().map(figures).filter(|all| all.len() == 3).collect();
            let &[[_, sent_1, got_1], [_, sent_2, got_2]] = &threads
                .iter()
                .map(|thread| <[u64; 3]>::try_from(thread.as_slice()).expect(printed))
                .collect::<Vec<_>>()[..]
            else {
                panic!("{printed}")
            };
            assert_eq!(got_1 + got_2, requests, "{printed}");
            assert!(sent_1 >= got_1 && sent_2 >= got_2, "{printed}");
        }
        // The script prints its addresses to stderr before the run.
        "addr.lua" => assert_eq!(printed.lines().count(), 2, "{printed}"),
        _ => assert_eq!(printed, ""),
    }
}

#[test]
fn every_script_runs_and_every_request_is_accounted_for() {
    for script in scripts(&ours()) {
        good(&script);
    }
}

#[test]
fn the_scripts_of_wrk_itself_run() {
    let folder = Path::new(INSTALLED);
    if !folder.is_dir() {
        return plimsoll_testkit::skip::without_program("wrk");
    }
    for script in scripts(folder) {
        good(&script);
    }
}

/// Runs a script that is wrong: it ends (`Lines` notices a hang), with code 2, and names the place.
fn wrong(text: &str, place: &str, message: &str) -> Finished {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let script = folder.write("wrong.lua", text);
    let finished = run(&format!("{} -s {script} -d 500ms -c 2 -o json", sink.url()));
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    let shown = format!("{}{}", finished.stdout, finished.stderr);
    assert!(shown.contains(&format!("wrong.lua:{place}: ")) && shown.contains(message), "{shown}");
    finished
}

#[test]
fn a_script_that_is_wrong_before_the_run_ends_it() {
    let cases = [
        ("local x = = 1", "1", "unexpected symbol"),
        ("function init()\n error('not today')\nend", "2", "not today"),
        ("function setup()\n while true do end\nend", "2", "time limit"),
        ("while true do end", "1", "time limit"),
    ];
    for (text, place, message) in cases {
        let finished = wrong(text, place, message);
        assert!(finished.stderr.starts_with("error: "), "{}", finished.stderr);
        assert_eq!(finished.stdout, "");
    }
}

#[test]
fn a_script_that_is_wrong_in_the_run_fails_its_requests() {
    let cases = [
        ("function request()\n local none\n return none.field\nend", "3", "attempt to index"),
        ("function request()\n while true do end\nend", "2", "time limit"),
        ("function response()\n error('no answer')\nend", "2", "no answer"),
        // A slow function of the library, of which only a few fit between two signals.
        ("function request()\n while true do string.rep('x', 1e7) end\nend", "2", "time limit"),
        // Recursion through functions of the library: the first one aborted the process.
        (
            "function f() return (string.gsub('a', 'a', f)) end\nfunction request()\n f()\nend",
            "1",
            "overflow",
        ),
        ("function f()\n coroutine.wrap(f)()\nend\nfunction request() f() end", "2", ""),
        (
            "function f()\n assert(coroutine.resume(coroutine.create(f)))\nend\nfunction request() f() end",
            "2",
            "",
        ),
        ("function f()\n return load(function() return f() end)()\nend\nfunction request() f() end", "2", ""),
    ];
    for (text, place, message) in cases {
        let finished = wrong(text, place, message);
        let result: Value = serde_json::from_str(&finished.stdout).expect("the result");
        assert_balance(&result);
        assert_eq!(account(&result, "ok"), 0, "{text}");
        assert_eq!(errors(&result, "script"), account(&result, "failed"), "{text}");
    }
}

/// The result of a plan with a script that is wrong: it ends, with code 2.
fn wrong_plan(settings: &str, script: &str) -> Value {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let plan = format!(
        "targets: {{sink: '{}'}}\nrun: {{{settings}}}\nscripts: {{memory_limit: 8MiB}}\nscenarios:\n  \
         - steps:\n      - get: /\n        name: login\n        script: |\n          {script}\n",
        sink.url()
    );
    let plan = folder.write("plan.yaml", &plan);
    let finished = run(&format!("{plan} -t 1 -o json"));
    assert_eq!(finished.code, Some(2), "{settings}: {}", finished.stderr);
    let result: Value = serde_json::from_str(&finished.stdout).expect("the result");
    assert_balance(&result);
    assert_eq!(account(&result, "ok"), 0, "{settings}");
    result
}

#[test]
fn a_script_without_memory_ends_the_run() {
    let script = "function make_request() local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e5) .. i end end";
    for settings in ["connections: 2, duration: 1h", "connections: 2, duration: 1h, rate: 1000"] {
        let result = wrong_plan(settings, script);
        let shown = result["errors"].to_string() + &result["error_examples"].to_string();
        assert!(errors(&result, "script") > 0, "{shown}");
    }
}

#[test]
fn recursion_through_the_library_in_the_script_of_a_step_is_an_error() {
    let script = "local function f() return (string.gsub('a', 'a', f)) end function make_request() f() end";
    let result = wrong_plan("connections: 2, duration: 500ms", script);
    let shown = result["error_examples"].to_string();
    assert!(shown.contains("login: inline:1: ") && shown.contains("stack"), "{shown}");
    assert_eq!(errors(&result, "script"), account(&result, "failed"), "{}", result["accounting"]);
}

#[test]
fn a_script_that_fails_each_time_ends_the_run() {
    // With this many connections, one pass over all of them takes longer than the pause of each.
    for load in ["connections: 200", "connections: 200, rate: 5k"] {
        let settings = format!("{load}, duration: 1h");
        let result = wrong_plan(&settings, "function make_request() error(('x'):rep(1e4)) end");
        let failed = errors(&result, "script");
        assert!((100..=400).contains(&failed), "{settings}: {}", result["errors"]);
    }
}

/// Symptom: a script that failed went on to the end of the run without a word.
#[test]
fn the_first_error_of_a_script_is_told_while_the_run_goes_on() {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let text =
        "local n = 0\nfunction response()\n n = n + 1\n if n % 2 == 0 then error('every other') end\nend";
    let script = folder.write("half.lua", text);
    let finished = run(&format!("{} -s {script} -n 400 -c 1 -o json", sink.url()));
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    let told = finished.stderr.matches("warning: a script has failed: ").count();
    assert_eq!(told, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("half.lua:4: every other"), "{}", finished.stderr);
    let result: Value = serde_json::from_str(&finished.stdout).expect("the result");
    assert_eq!((account(&result, "ok"), account(&result, "failed")), (200, 200), "it went on");
}

/// The whole result was thrown away.
#[test]
fn an_error_in_done_leaves_the_result() {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let script = folder.write("done.lua", "function done()\n io.open('report.txt', 'w')\nend");
    let kept = folder.file("kept.json");
    let finished = run(&format!("{} -s {script} -n 20 -c 2 -o json --json {kept}", sink.url()));
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("`io.open` is not allowed"), "{}", finished.stderr);
    let result: Value = serde_json::from_str(&finished.stdout).expect("the result");
    assert_eq!(account(&result, "ok"), 20);
    let kept = std::fs::read_to_string(kept).expect("the file was written");
    assert!(kept.contains("\"schema_version\""));
}

/// As in wrk, other return values of `request` beside `wrk.thread:stop()` are ignored.
#[test]
fn a_request_that_stops_its_thread_and_returns_nothing_is_no_error() {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let text = "local n = 0\nfunction request()\n n = n + 1\n if n > 50 then wrk.thread:stop() return end\n \
                return wrk.format()\nend";
    let script = folder.write("stops.lua", text);
    let finished = run(&format!("{} -s {script} -n 1000 -c 2 -t 1 -o json", sink.url()));
    assert!(verdict::ran(finished.code), "{:?} {}", finished.code, finished.stderr);
    let result: Value = serde_json::from_str(&finished.stdout).expect("the result");
    assert_balance(&result);
    assert_eq!((account(&result, "ok"), account(&result, "failed")), (50, 0), "{}", result["accounting"]);
    assert_eq!(sink.stop().requests, 50, "and nothing was sent before the run");
}
