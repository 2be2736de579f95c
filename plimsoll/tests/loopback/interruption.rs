//! Signals: `^C` once and twice, and a generator that is held up.

use std::net::TcpListener;
use std::process::Command;

use plimsoll_core::Nanos;
use plimsoll_system::clock;
use serde_json::Value;

use crate::loopback::backends::on_each;
use crate::loopback::process::{Folder, Process, plimsoll};
use crate::loopback::sink::Sink;
use plimsoll_testkit::eventually::wait_to_look_again;
use plimsoll_testkit::sink_log::{account, assert_balance, count, delivered};

/// Starts a run of a minute, and waits until it is under way.
fn under_way(backend: &str, sink: &str, load: &str) -> (Sink, Process) {
    let mut sink = Sink::telling(&format!("{sink} --backend {backend}"));
    let run = Process::start(plimsoll(&format!("{} -d 60s {load} -o json --backend {backend}", sink.url())));
    sink.wait_for_load();
    (sink, run)
}

#[test]
fn one_interrupt_drains_and_reports() {
    on_each(|backend| {
        let folder = Folder::new();
        let file = folder.file("result.json");
        let load = format!("--rate 500 --json {file}");
        let (sink, run) = under_way(backend, "--delay constant:100ms", &load);
        run.signal("INT");
        let finished = run.finish();
        assert_eq!(finished.code, Some(130), "{finished:?}");
        let result = finished.result();
        assert_balance(&result);
        assert_eq!(account(&result, "in_flight_at_stop"), 0, "what was in flight was waited for");
        assert_eq!(account(&result, "ok"), account(&result, "started"));
        assert_eq!(result["run"]["interrupted_by_signal"], 2);
        assert!(result["duration_s"].as_f64().is_some_and(|seconds| seconds < 60.0));
        // Arrivals that were due after the interrupt are not held against the run.
        assert_eq!(account(&result, "scheduled"), account(&result, "started"));
        assert_eq!(delivered(&result), sink.stop().requests);
        let written = std::fs::read_to_string(file).expect("the partial result was written");
        assert_eq!(serde_json::from_str::<Value>(&written).expect("it is JSON"), result);
    });
}

/// Returns `true` if a process has the thread that listens for signals. Its handlers are there a moment
/// before, and end the process at once until then.
fn heeds_interrupts(id: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm")).ok();
    threads.flatten().filter_map(name).any(|name| name.trim() == "signals")
}

#[test]
fn an_interrupt_before_the_load_is_one_too() {
    let sink = Sink::start("--delay constant:60s");
    let run = Process::start(plimsoll(&format!("{} -d 60s", sink.url())));
    // The signal handler is installed before the program asks the sink, which does not answer.
    while !heeds_interrupts(run.id()) {}
    run.signal("INT");
    let finished = run.finish();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(finished.stderr.contains("stopped before the run began"), "{finished:?}");
}

#[test]
fn a_termination_is_told_apart() {
    let (_sink, run) = under_way("auto", "", "--rate 500");
    run.signal("TERM");
    let finished = run.finish();
    assert_eq!(finished.code, Some(143), "{finished:?}");
    let result: Value = serde_json::from_str(&finished.stdout).expect("the partial result was written");
    assert_eq!(result["run"]["interrupted_by_signal"], 15);
    assert_balance(&result);
}

#[test]
fn a_second_interrupt_reports_at_once() {
    on_each(|backend| {
        // Nothing is ever answered, so that the drain would last for its whole minute.
        let load = "--rate 500 --no-preflight --timeout 60s --drain 60s";
        let (sink, mut run) = under_way(backend, "--drop 100%", load);
        run.signal("INT");
        run.stderr.wait_for("stopping: waiting for requests in flight");
        run.signal("INT");
        let finished = run.finish();
        assert_eq!(finished.code, Some(130), "{finished:?}");
        let result = finished.result();
        assert_balance(&result);
        assert!(result["drain_s"].as_f64().is_some_and(|seconds| seconds < 60.0), "{}", result["drain_s"]);
        assert_eq!(account(&result, "in_flight_at_stop"), account(&result, "started"));
        // The last requests were handed to the kernel before the connection was closed, so they arrive.
        assert_eq!(sink.stop().requests, delivered(&result));
    });
}

/// The message is true: the run waits for the whole drain. The shell and the kernel both tell of a terminal
/// that has gone, so the second signal has to come a second after the first. This test repeats it until it is
/// heeded.
#[test]
fn a_second_hangup_reports_at_once_and_an_echo_of_the_first_does_not() {
    let load = "--rate 500 --no-preflight --timeout 60s --drain 60s";
    let (_sink, mut run) = under_way("auto", "--drop 100%", load);
    let began = clock::monotonic();
    run.signal("HUP");
    run.stderr.wait_for("stopping: waiting for requests in flight; once more to report at once");
    run.signal("HUP");
    while !run.has_ended() {
        let waited = clock::monotonic().since(began);
        assert!(waited < Nanos::from_secs(30), "no second SIGHUP was heeded");
        run.signal("HUP");
        wait_to_look_again();
    }
    let took = clock::monotonic().since(began);
    let finished = run.finish();
    assert_eq!(finished.code, Some(129), "{finished:?}");
    assert!(took >= Nanos::from_secs(1), "an echo ended the drain after {took:?}");
    let result = finished.result();
    assert_balance(&result);
    assert!(result["drain_s"].as_f64().is_some_and(|seconds| seconds < 30.0), "{}", result["drain_s"]);
}

/// A script that may use the system waits for a pipe without an end and holds up every worker, and the end
/// comes all the same.
#[test]
fn a_second_interrupt_ends_a_run_whose_workers_do_not_come_back() {
    let folder = Folder::new();
    let pipe = folder.file("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|ended| ended.success()), "a pipe can be made");
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    // Open for reading and writing, so that it neither waits for a writer nor is ever at its end.
    let script = format!("function make_request() io.open('{pipe}', 'r+'):read('*l') return {{}} end");
    let text = format!(
        "run: {{connections: 2, threads: 2, duration: 60s, no_preflight: true}}\n\
         targets: {{api: \"http://{address}\"}}\nscenarios: [{{steps: [{{get: /, script: \"{script}\"}}]}}]\n",
    );
    let plan = folder.write("plan.yaml", text);
    let mut run = Process::start(plimsoll(&format!("run {plan} --script-allow-system")));
    let mut waiting = 0;
    while waiting < 100 {
        assert!(!run.has_ended(), "{:?}", run.finish());
        wait_to_look_again();
        waiting = if run.threads_in_read("worker-") == 2 { waiting + 1 } else { 0 };
    }
    run.signal("TERM");
    run.stderr.wait_for("stopping: waiting for requests in flight");
    run.signal("INT");
    let finished = run.finish();
    assert_eq!(finished.code, Some(143), "{finished:?}");
    assert!(finished.stderr.contains("no worker came back"), "{}", finished.stderr);
}

/// MEASUREMENT R4: a pause of the generator itself is named as such, and not blamed on the target.
#[test]
fn a_generator_that_was_held_up_says_so() {
    on_each(|backend| {
        let mut sink = Sink::telling(&format!("--backend {backend}"));
        let load = format!("{} --rate 500 -d 4s -o json --backend {backend}", sink.url());
        let run = Process::start(plimsoll(&load));
        sink.wait_for_load();
        run.signal("STOP");
        let pause = Command::new("sleep").arg("0.5").status();
        run.signal("CONT");
        assert!(pause.is_ok_and(|ended| ended.success()));
        let finished = run.finish();
        assert_eq!(finished.code, Some(3), "{}", finished.stderr);
        let result = finished.result();
        assert_balance(&result);
        let reasons = &result["verdict"]["invalid_reasons"];
        assert!(reasons.as_array().is_some_and(|codes| codes.contains(&"stall".into())), "{reasons}");
        let stalls = result["generator"]["workers"][0]["stalls"].as_array().expect("a list");
        let longest = stalls.iter().map(|stall| count(stall, "/length_ns")).max();
        // The usual wait is subtracted: at most 2 ms at this rate.
        assert!(longest.is_some_and(|ns| ns > 490_000_000), "{stalls:?}");
        // Every arrival kept its slot, and the time it lost is start lag, not service time.
        assert_eq!(account(&result, "started"), 2_000);
        assert!(count(&result, "/start_lag/max") > 490_000_000);
        assert_eq!(delivered(&result), sink.stop().requests);
    });
}
