//! Bad input: each is a clear error or a counted class, never a panic, a hang or a wrong figure.

use std::process::Command;

use serde_json::Value;

use crate::loopback::backends::on_each;
use crate::loopback::foreign::python;
use crate::loopback::process::{Finished, Folder, Process, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count, errors};

/// An address on which nothing listens: that of a sink which has ended.
fn deserted() -> String {
    let sink = Sink::start("");
    let url = sink.url();
    sink.stop();
    url
}

#[test]
fn a_port_without_a_server() {
    on_each(|backend| {
        let url = deserted();
        let finished = run(&format!("{url} --backend {backend}"));
        finished.assert_refused(1, "refused");
        let result = run(&format!("{url} -n 20 -c 4 --no-preflight -o json --backend {backend}")).result();
        assert_balance(&result);
        assert_eq!((errors(&result, "connect_refused"), account(&result, "undelivered")), (20, 20));
    });
}

#[test]
fn a_host_that_does_not_exist() {
    // `.invalid` is reserved for names that never exist (RFC 2606).
    run("http://plimsoll-test.invalid/").assert_refused(1, "plimsoll-test.invalid");
    run("http://127.0.0.1:1/ -6").assert_refused(2, "IPv6");
}

#[test]
fn a_unix_socket_that_is_not_there() {
    let folder = Folder::new();
    let path = folder.file("none.sock");
    run(&format!("http://localhost/ --unix-socket {path}")).assert_refused(1, "No such file");
}

#[test]
fn loads_that_make_no_sense() {
    let url = deserted();
    run(&format!("{url} -n 3 -c 4")).assert_refused(2, "--iterations: 3");
    run(&format!("{url} --rate 0")).assert_refused(2, "--rate");
    run(&format!("{url} --rate -1")).assert_refused(2, "--rate");
    run(&format!("{url} -d 0")).assert_refused(2, "0");
    run(&format!("{url} -b @/nonexistent/body")).assert_refused(2, "/nonexistent/body");
    run(&format!("{url} -H broken")).assert_refused(2, "--header");
    run("gopher://127.0.0.1/").assert_refused(2, "gopher");
}

#[test]
fn flags_of_requests_are_refused_beside_steps() {
    let echo = concat!(env!("CARGO_MANIFEST_DIR"), "/../ext/grpc/tests/echo.proto");
    let folder = Folder::new();
    let (plan, script) = (
        folder.write(
            "plan.json",
            r#"{"targets": {"t": "http://127.0.0.1:1"}, "scenarios": [{"steps": [{"get": "/"}]}]}"#,
        ),
        folder.write("wrk.lua", "wrk.method = 'PUT'"),
    );
    for load in [
        format!("run {plan}"),
        "ws ws://127.0.0.1:1/ --message a".to_owned(),
        format!("grpc http://127.0.0.1:1 echo.v1.Echo/Say --proto {echo}"),
        "llm http://127.0.0.1:1/v1 --model m".to_owned(),
    ] {
        for flag in [
            format!("-s {script}"),
            "-X PUT".to_owned(),
            "-b text".to_owned(),
            "--crud-create-method PUT".to_owned(),
        ] {
            let finished = run(&format!("{load} {flag}"));
            assert_eq!(finished.code, Some(2), "{load} {flag}: {finished:?}");
        }
    }
    run(&format!("run {plan} -s {script}"))
        .assert_refused(2, "--script cannot be combined with a plan that has");
}

/// Runs this program where it may have at most this many descriptors.
fn limited(descriptors: u32, args: &str) -> Finished {
    let script = format!("ulimit -n {descriptors}; exec \"$0\" {args}");
    let mut command = Command::new("bash");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_plimsoll")]);
    Process::try_start(&mut command).expect("there is a bash").finish()
}

#[test]
fn more_connections_than_descriptors() {
    let sink = Sink::start("");
    let refused = limited(64, &format!("{} -c 100", sink.url()));
    refused.assert_refused(1, "file descriptors");
    assert!(refused.stderr.contains("ulimit"), "{}", refused.stderr);
    // Without a number, the program takes as many descriptors as there are.
    let result = limited(128, &format!("{} --rate 100 -d 300ms -o json", sink.url())).result();
    assert_eq!(account(&result, "ok"), 30);
    assert!(count(&result, "/connections/limit") < 128);
    // It was refused, because it might have grown to 10,000.
    let few = limited(64, &format!("{} --rate 100 -d 300ms -o json", sink.url()));
    assert!(few.stderr.contains("at most 32 connections instead of 10000"), "{}", few.stderr);
    let result = few.result();
    assert_eq!((account(&result, "ok"), count(&result, "/connections/limit")), (30, 32));
    assert!(refused.stderr.contains("use -c 32"), "{}", refused.stderr);
}

/// Runs against a server of `manner`, and returns the run with the preflight and the result without it.
fn against(manner: &str, backend: &str) -> Option<(Finished, Value)> {
    let mut server = python(&["-c", include_str!("hostile.py"), manner])?;
    let port = server.stdout.wait_for("").trim().to_owned();
    let common = format!("http://127.0.0.1:{port}/ --timeout 400ms --backend {backend}");
    let refused = run(&format!("{common} -n 4 -c 4"));
    let result = run(&format!("{common} -n 20 -c 4 --no-preflight -o json")).result();
    assert_balance(&result);
    assert_eq!(account(&result, "started"), 20);
    Some((refused, result))
}

#[test]
fn servers_that_break_the_protocol() {
    let breaches = [
        ("garbage", "protocol"),
        ("other-protocol", "protocol"),
        ("two-lengths", "protocol"),
        ("bad-chunk", "protocol"),
        ("endless-interim", "protocol"),
        ("endless-headers", "head_too_large"),
        ("endless-line", "head_too_large"),
        ("short-body", "closed_in_response"),
        ("cut-head", "closed_in_response"),
        ("no-answer", "closed_before_response"),
    ];
    on_each(|backend| {
        for (manner, class) in breaches {
            let Some((refused, result)) = against(manner, backend) else { return };
            refused.assert_refused(1, "the first request to");
            // Symptom: a response that was cut off was hinted to be of a port that speaks TLS.
            let hint = match class {
                "closed_in_response" => "hint: the server began a response and closed the connection",
                "closed_before_response" => "hint: does this port speak TLS (https://), or no HTTP?",
                _ => "hint: does this port speak HTTP/1.1?",
            };
            assert!(refused.stderr.contains(hint), "{manner}: {}", refused.stderr);
            assert_eq!(errors(&result, class), 20, "{manner}: {}", result["errors"]);
            assert_eq!(account(&result, "ok"), 0, "{manner}");
            let example = &result["error_examples"][class];
            assert!(example.as_str().is_some_and(|text| !text.is_empty()), "{manner}: {example}");
        }
    });
}

#[test]
fn a_server_that_never_answers() {
    on_each(|backend| {
        let Some((refused, result)) = against("silent", backend) else { return };
        refused.assert_refused(1, "no response within");
        assert_eq!(account(&result, "timed_out"), 20);
        // As lower bounds they are in the response time, not left out of it.
        assert_eq!(count(&result, "/response_time/censored"), 20);
        assert!(count(&result, "/response_time/min") >= 400_000_000, "{}", result["response_time"]);
    });
}

/// More bytes than the content-length says belong to no request: the response before them is whole and good,
/// and the connection is not used again.
#[test]
fn a_body_that_is_longer_than_it_says() {
    on_each(|backend| {
        let Some((_, result)) = against("long-body", backend) else { return };
        assert_eq!(account(&result, "ok"), 20, "{}", result["errors"]);
        assert_eq!(count(&result, "/connections/failed/unsolicited_data"), 20, "{}", result["connections"]);
        assert_eq!(unsolicited(&result), (20, "20 of 20 connections had responses or bytes".to_owned()));
    });
}

/// Connections with data that nobody had asked for, and the beginning of the warning of them.
fn unsolicited(result: &Value) -> (u64, String) {
    let warnings = result["verdict"]["warnings"].as_array().expect("a list");
    let warning = warnings.iter().find(|warning| warning["code"] == "unsolicited_data");
    let evidence = warning.and_then(|warning| warning["evidence"].as_str()).unwrap_or_default();
    let begin = evidence.split(" that nobody").next().unwrap_or_default();
    (count(result, "/connections/unsolicited"), begin.to_owned())
}

/// A response is known to be of nobody once there are more than requests on a connection, and that is told.
/// Symptom: 200 good responses without a word, with the times of other requests.
#[test]
fn two_responses_to_each_request() {
    on_each(|backend| {
        let Some(mut server) = python(&["-c", include_str!("hostile.py"), "two-answers"]) else { return };
        let port = server.stdout.wait_for("").trim().to_owned();
        for load in ["-n 200 -c 2 --pipeline 16", "-n 50 --rate 200"] {
            let flags = format!("{load} --no-preflight --backend {backend}");
            let finished = run(&format!("http://127.0.0.1:{port}/ {flags} -o json"));
            let result = finished.result();
            assert_balance(&result);
            let (connections, said) = unsolicited(&result);
            let opened = count(&result, "/connections/opened");
            // The last one may end with the run.
            assert!(connections > 0 && connections + 2 >= opened, "{}", result["connections"]);
            assert_eq!(
                said,
                format!("{connections} of {opened} connections had responses or bytes"),
                "{load}"
            );
            // The short report of a run that was disturbed may have more important findings.
            let text = run(&format!("http://127.0.0.1:{port}/ {flags} --long")).stdout;
            assert!(text.contains("that nobody had asked for"), "{text}");
        }
    });
}

#[test]
fn odd_but_valid_responses() {
    on_each(|backend| {
        for (manner, bytes) in [("byte-by-byte", 77), ("until-close", 41), ("informed", 80)] {
            let Some((_, result)) = against(manner, backend) else { return };
            assert_eq!(account(&result, "ok"), 20, "{manner}: {}", result["errors"]);
            assert_eq!(count(&result, "/bytes/received"), 20 * bytes, "{manner}");
            assert_eq!(count(&result, "/statuses/200"), 20, "{manner}: {}", result["statuses"]);
        }
    });
}
