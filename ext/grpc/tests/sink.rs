//! `plimsoll grpc` and steps of gRPC against `plimsoll sink --grpc`, whose log has the truth.

use std::process::Command;

use plimsoll_testkit::program::{Folder, Process, Server};
use plimsoll_testkit::sink_log::Truth;
use plimsoll_testkit::skip;
use serde_json::Value;

use crate::program::{plimsoll, run};

/// The file of the sink's own service.
const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/service/sink.proto");

/// A running sink, and its log.
struct Sink {
    server: Server,
    endpoint: String,
    folder: Folder,
}

impl Sink {
    /// Starts a sink on a free port of 127.0.0.1, with more arguments.
    fn start(args: &str) -> Self {
        let folder = Folder::new();
        let log = folder.file("truth.csv");
        let sink = format!("sink --listen 127.0.0.1:0 --truth-log {log} {args}");
        let server = Server::start(plimsoll(&sink));
        Self { endpoint: server.address.clone(), server, folder }
    }

    /// Stops it, and returns its log.
    fn stop(self) -> Truth {
        let Self { server, folder, .. } = self;
        let ended = server.stop();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        Truth::parse(&std::fs::read_to_string(folder.path().join("truth.csv")).expect("there is a log"))
    }
}

/// A load of one method of the sink's service.
fn call(sink: &Sink, method: &str, flags: &str) -> Value {
    let server = &sink.endpoint;
    let line =
        format!("grpc {server} plimsoll.sink.v1.Sink/{method} --proto {PROTO} --quiet -o json {flags}");
    let finished = run(&line);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{line}: {}", finished.stderr))
}

fn at<'a>(result: &'a Value, pointer: &str) -> &'a Value {
    result.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {result:#}"))
}

#[test]
fn calls_are_answered_over_plain_text_and_tls() {
    let sink = Sink::start("--grpc --threads 1");
    let result =
        call(&sink, "Echo", "-n 300 -c 2 --streams 5 -d {\"text\":\"a${sequence}\"} --deadline 5s -H x-a:b");
    assert_eq!(at(&result, "/accounting/ok"), 300, "{:#}", result["error_examples"]);
    assert_eq!(at(&result, "/protocols/h2"), 300);
    let gzip = call(&sink, "Echo", "-n 20 -c 1 -d {\"text\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaa\"} --gzip");
    assert_eq!(at(&gzip, "/accounting/ok"), 20, "{:#}", gzip["error_examples"]);
    let result = call(&sink, "Count", "-n 20 -c 1");
    assert_eq!(at(&result, "/accounting/ok"), 20, "{:#}", result["error_examples"]);
    let saw = sink.stop();
    assert_eq!(saw.ended(&result, "replied"), 20);
    let sink = Sink::start("--grpc --self-signed");
    let line = format!(
        "grpc https://{} --call plimsoll.sink.v1.Sink.Echo --proto {PROTO} -k -n 10 -c 1 --quiet -o json",
        sink.endpoint
    );
    let finished = run(&line);
    let result: Value = serde_json::from_str(&finished.stdout).expect(&finished.stderr);
    assert_eq!(at(&result, "/accounting/ok"), 10, "{:#}", result["error_examples"]);
}

/// A call that is answered well after its deadline counted as a success, as long as the server did not keep
/// deadlines itself.
#[test]
fn no_call_outlasts_its_deadline() {
    let sink = Sink::start("--grpc --delay 400ms");
    let result = call(&sink, "Echo", "-n 4 -c 1 --streams 4 --deadline 50ms --timeout 5s");
    // The server keeps to the deadline, too: where the generator is held up at that moment, its answer is
    // there first.
    let by_the_server = result["errors"]["grpc_deadline_exceeded"].as_u64().unwrap_or_default();
    let timed_out = at(&result, "/accounting/timed_out").as_u64().expect("a count");
    assert_eq!((timed_out + by_the_server, at(&result, "/accounting/ok")), (4, &0.into()), "{result:#}");
    let limit = at(&result, "/by_step/0/response_time/p/50").as_u64();
    assert!(limit.is_none_or(|limit| limit >= 50_000_000), "{limit:?}");
    // The shorter of both limits counts.
    let result = call(&sink, "Echo", "-n 4 -c 1 --streams 4 --deadline 5s --timeout 50ms");
    assert_eq!(at(&result, "/accounting/timed_out"), 4);
    let result = call(&sink, "Echo", "-n 4 -c 1 --streams 4 --deadline 20s");
    assert_eq!(at(&result, "/accounting/ok"), 4, "{:#}", result["error_examples"]);
}

#[test]
fn statuses_come_by_metadata_and_by_share() {
    let sink = Sink::start("--grpc");
    let result = call(&sink, "Echo", "-n 5 -c 1 -H x-plimsoll-status:9");
    assert_eq!(at(&result, "/errors/grpc_failed_precondition"), 5);
    let example = at(&result, "/error_examples/grpc_failed_precondition").as_str().unwrap();
    assert!(example.contains("the sink was told to fail with FAILED_PRECONDITION"), "{example}");
    drop(sink);
    let sink = Sink::start("--grpc --fail 30%:UNAVAILABLE --fail 10%:503 --delay 1ms");
    let result = call(&sink, "Echo", "-n 200 -c 1 --streams 4");
    let saw = sink.stop();
    for (counted, action) in [
        ("/errors/grpc_unavailable", "status 14"),
        ("/errors/status_5xx", "status 503"),
        ("/accounting/ok", "replied"),
    ] {
        assert_eq!(*at(&result, counted), saw.ended(&result, action), "{counted}: {result:#}");
    }
}

#[test]
fn streams_are_counted_by_their_messages() {
    let sink = Sink::start("--grpc --messages 7/1ms");
    let repeat = call(&sink, "Repeat", "-n 10 -c 1 --streams 3 -d {\"text\":\"tick\"}");
    assert_eq!(at(&repeat, "/accounting/ok"), 10, "{:#}", repeat["error_examples"]);
    assert_eq!(at(&repeat, "/event_streams/events"), 70);
    assert_eq!(at(&repeat, "/event_streams/itl/count"), 60);
    assert!(at(&repeat, "/event_streams/itl/max").as_u64().unwrap() > 0);
    // All that was sent comes back.
    let chat = call(&sink, "Chat", "-n 4 -c 1 -d [{\"text\":\"a\"},{\"text\":\"b\"}] --send 3");
    assert_eq!(at(&chat, "/accounting/ok"), 4, "{:#}", chat["error_examples"]);
    assert_eq!(at(&chat, "/event_streams/events"), 24);
    // One answer to all.
    let collect = call(&sink, "Collect", "-n 4 -c 1 -d {\"text\":\"a${sequence}\"} --send 5");
    assert_eq!(at(&collect, "/accounting/ok"), 4, "{:#}", collect["error_examples"]);
    assert!(collect["event_streams"].is_null());
    let failed = call(&sink, "Repeat", "-n 3 -c 1 -H x-plimsoll-status:14");
    assert_eq!(at(&failed, "/errors/grpc_unavailable"), 3, "{failed:#}");
}

#[test]
fn a_stream_of_which_enough_has_come_is_cancelled_and_good() {
    let sink = Sink::start("--grpc --messages 1000/2ms");
    let result = call(&sink, "Repeat", "-n 12 -c 1 --streams 2 --take 3");
    assert_eq!(at(&result, "/accounting/ok"), 12, "{:#}", result["error_examples"]);
    let events = at(&result, "/event_streams/events").as_u64().unwrap();
    assert!((36..200).contains(&events), "{events}");
    assert_eq!(at(&result, "/http2/cancelled"), 12, "{:#}", result["http2"]);
    drop(sink);
    // The server ends it before that.
    let sink = Sink::start("--grpc --messages 2");
    let result = call(&sink, "Repeat", "-n 4 -c 1 --take 3");
    assert_eq!(at(&result, "/errors/stream_incomplete"), 4, "{result:#}");
    let example = at(&result, "/error_examples/stream_incomplete").as_str().unwrap();
    assert!(example.contains("after 2 of the 3 messages"), "{example}");
}

/// A client whose window holds only a part of an answer gets the rest, and the status behind it.
#[test]
fn trailers_follow_content_that_has_to_wait() {
    let sink = Sink::start("--grpc");
    let folder = Folder::new();
    let text = "x".repeat(300_000);
    let file = folder.write("big.json", format!("[{{\"text\": \"{text}\"}}]"));
    let result = call(&sink, "Echo", &format!("-n 6 -c 1 --streams 3 -D {file} --window-bits 16"));
    assert_eq!(at(&result, "/accounting/ok"), 6, "{:#}", result["error_examples"]);
}

#[test]
fn health_and_messages_of_any_service_are_answered() {
    let sink = Sink::start("--grpc");
    let folder = Folder::new();
    let health = include_str!("../../../ext/grpc/src/service/health.proto");
    folder.write("health.proto", health);
    folder.write("echo.proto", include_str!("echo.proto"));
    let plan = folder.write(
        "plan.yaml",
        format!(
            "targets: {{sink: 'http://{}'}}
run: {{http2: true}}
scenarios:
  - steps:
      - post: /grpc.health.v1.Health/Check
        grpc: {{proto: health.proto}}
        expect: {{json: {{/status: SERVING}}}}
      - post: /echo.v1.Echo/Say
        grpc: {{proto: echo.proto, message: {{text: any}}}}
        expect: {{json: {{/text: any}}}}
",
            sink.endpoint
        ),
    );
    let finished = run(&format!("run {plan} -n 5 -c 1 --quiet -o json"));
    let result: Value = serde_json::from_str(&finished.stdout).expect(&finished.stderr);
    assert_eq!(at(&result, "/accounting/ok"), 10, "{:#}", result["error_examples"]);
}

/// A watch of health goes on until its client cancels it.
#[test]
fn health_can_be_watched() {
    let sink = Sink::start("--grpc --delay 1ms");
    let line =
        format!("grpc {} grpc.health.v1.Health/Watch -n 6 -c 1 --streams 3 --quiet -o json", sink.endpoint);
    let watched = |flags: &str| -> Value {
        let finished = run(&format!("{line} {flags}"));
        serde_json::from_str(&finished.stdout).expect(&finished.stderr)
    };
    let result = watched("--take 1");
    assert_eq!(at(&result, "/accounting/ok"), 6, "{:#}", result["error_examples"]);
    assert_eq!(at(&result, "/event_streams/events"), 6);
    let result = watched("--timeout 300ms");
    assert_eq!(at(&result, "/accounting/timed_out"), 6, "{:#}", result["error_examples"]);
    assert_eq!(at(&result, "/event_streams/events"), 6);
    assert_eq!(sink.stop().ended(&result, "replied"), 6);
}

/// The server, too, gives up at the deadline: curl waits longer than it has said.
#[test]
fn the_sink_ends_calls_at_their_deadlines() {
    let folder = Folder::new();
    let message = folder.write("message", b"\0\0\0\0\0");
    for (args, method, timeout, said) in [
        ("--delay 20s", "Echo", "100m", "grpc-status: 4"),
        ("--delay 1ms", "Echo", "20S", "grpc-status: 0"),
        ("--messages 1000/1s", "Repeat", "100m", "stream 1 was not closed cleanly: CANCEL"),
    ] {
        let sink = Sink::start(&format!("--grpc {args}"));
        let url = format!("http://{}/plimsoll.sink.v1.Sink/{method}", sink.endpoint);
        let ended = Command::new("curl")
            .args(["-sv", "--http2-prior-knowledge", "-H", "content-type: application/grpc", "-H"])
            .args([format!("grpc-timeout: {timeout}"), "--data-binary".to_owned(), format!("@{message}")])
            .args(["-o", "/dev/null", &url])
            .output();
        let Ok(output) = ended else { return skip::without_program("curl") };
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(said) || text.contains("err 8"), "{args}: {text}");
    }
}

/// Without a file, the server says what the method takes: its own service, and those that it was given.
#[test]
fn a_server_describes_its_services_by_reflection() {
    let echo = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/echo.proto");
    let sink = Sink::start(&format!("--grpc --proto {echo} --messages 4"));
    for (method, flags) in [
        ("plimsoll.sink.v1.Sink/Echo", "-d {\"text\":\"a\"}"),
        ("echo.v1.Echo/Say", "-d {\"text\":\"a\",\"at\":\"2001-09-09T01:46:40Z\"}"),
        ("echo.v1.Echo/Repeat", ""),
        ("grpc.health.v1.Health/Check", ""),
    ] {
        let line = format!("grpc {} {method} {flags} -n 4 -c 1 --quiet -o json", sink.endpoint);
        let finished = run(&line);
        let result: Value = serde_json::from_str(&finished.stdout).expect(&finished.stderr);
        assert_eq!(at(&result, "/accounting/ok"), 4, "{method}: {:#}", result["error_examples"]);
    }
    let finished = run(&format!("grpc {} no.Service/At", sink.endpoint));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("reflection refuses: `no.Service` is not known"), "{}", finished.stderr);
    let plain = Sink::start("");
    let finished = run(&format!("grpc {} no.Service/At", plain.endpoint));
    assert_ne!(finished.code, Some(0));
    assert!(finished.stderr.contains("--descriptors FILE"), "{}", finished.stderr);
    // A server that has it and fails is not one without.
    for (fault, said) in [
        ("100%:UNAVAILABLE", "UNAVAILABLE"),
        ("100%:UNAUTHENTICATED", "its reflection failed with UNAUTHENTICATED"),
    ] {
        let failing = Sink::start(&format!("--grpc --fail {fault}"));
        let finished = run(&format!("grpc {} no.Service/At", failing.endpoint));
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
        assert!(finished.stderr.contains(said), "{fault}: {}", finished.stderr);
    }
}

/// The command waited for a minute, whatever `--timeout` said.
#[test]
fn a_server_that_does_not_describe_its_services_is_waited_for_as_long_as_for_a_call() {
    let sink = Sink::start("--grpc --drop 100%");
    let finished =
        Process::start(plimsoll(&format!("grpc {} no.Service/At --timeout 100ms", sink.endpoint))).finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("no response within 100ms"), "{}", finished.stderr);
}

#[test]
fn what_is_wrong_with_the_flags_is_told() {
    for (flags, said) in [
        ("", "`plimsoll grpc` calls one method of one server"),
        ("127.0.0.1:1", "`plimsoll grpc` calls one method of one server"),
        ("127.0.0.1:1 a.B/C --call a.B/D", "the method is given twice"),
        ("127.0.0.1:1 plimsoll.sink.v1.Sink/Echo --proto PROTO -d {", "--data: not JSON"),
        ("127.0.0.1:1 plimsoll.sink.v1.Sink/Echo --proto PROTO -d {\"x\":1}", "--data: the message is no"),
        ("127.0.0.1:1 plimsoll.sink.v1.Sink/Echo --proto PROTO --send 2", "--send: "),
        ("127.0.0.1:1 plimsoll.sink.v1.Sink/Nope --proto PROTO", "no method has the path"),
        ("127.0.0.1:1 plimsoll.sink.v1.Sink/Echo --proto PROTO --deadline 0s", "--deadline: "),
        ("127.0.0.1:1 nothing --proto PROTO", "`nothing` is not a method of gRPC"),
        ("127.0.0.1:1 plimsoll.sink.v1.Sink/Echo --proto PROTO --http1.1", "HTTP/2 alone"),
    ] {
        let finished = run(&format!("grpc {}", flags.replace("PROTO", PROTO)));
        assert_eq!(finished.code, Some(2), "{flags}: {}", finished.stderr);
        assert!(finished.stderr.contains(said), "{flags}: {}", finished.stderr);
    }
}

/// Symptom: the hint for a server whose certificate is its own was "is it still running?".
#[test]
fn a_certificate_that_is_not_trusted_is_told_with_its_flags() {
    let sink = Sink::start("--grpc --self-signed");
    let url = format!("https://{}", sink.endpoint);
    let refused = run(&format!("grpc {url} plimsoll.Sink/Echo -n 1"));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("hint: --cacert FILE names the authority"), "{}", refused.stderr);
}
