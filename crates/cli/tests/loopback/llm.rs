//! `plimsoll llm` and steps with `stream`, against the truth log of `plimsoll target llm` and against streams
//! that are not what they should be.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use plimsoll_testkit::verdict;
use serde_json::Value;

use crate::process::{Finished, Folder, Process, run};
use crate::sink::Sink;

/// A running server of completions, with its truth log.
struct LlmTarget {
    process: Process,
    url: String,
    folder: Folder,
}

/// The truth about one completion.
#[derive(Debug)]
struct TrueAnswer {
    recv: u64,
    end: String,
    tokens: u64,
    content: Vec<u64>,
}

impl LlmTarget {
    fn start(args: &str) -> Self {
        let folder = Folder::new();
        let log = folder.file("truth.csv");
        let mut process =
            Process::plimsoll(&format!("target llm --listen 127.0.0.1:0 --truth-log {log} {args}"));
        let line = process.stderr.wait_for("target llm: listening on ");
        let url = line.trim_start_matches("target llm: listening on ");
        let url = url.split("/v1").next().expect("a URL").to_owned();
        Self { process, url, folder }
    }

    /// Puts a load on it, with JSON as output.
    fn load(&self, args: &str) -> Value {
        json(&run(&format!("llm {} --model plimsoll --quiet -o json {args}", self.url)))
    }

    fn stop(self) -> Vec<TrueAnswer> {
        self.process.signal("INT");
        let ended = self.process.finish();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let log = std::fs::read_to_string(self.folder.file("truth.csv")).expect("the log was written");
        log.lines().skip(1).map(TrueAnswer::read).collect()
    }
}

impl TrueAnswer {
    fn read(line: &str) -> Self {
        let columns: Vec<&str> = line.split(',').collect();
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        Self {
            recv: number(columns[2]),
            end: columns[4].to_owned(),
            tokens: number(columns[6]),
            content: columns[7].split(' ').filter(|at| !at.is_empty()).map(number).collect(),
        }
    }

    fn gaps(&self) -> impl Iterator<Item = u64> {
        self.content.windows(2).map(|pair| pair[1] - pair[0])
    }
}

fn json(finished: &Finished) -> Value {
    // A busy machine may make the run invalid.
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stderr))
}

fn count(result: &Value, pointer: &str) -> u64 {
    result.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {result:#}"))
}

/// The value of a rank as reports have it.
fn percentile(mut values: Vec<u64>, p: f64) -> u64 {
    values.sort_unstable();
    values[((p / 100.0 * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1]
}

/// Asserts that a reported time is the true one, within what a machine adds that also builds. The kernel
/// stamps a segment when it comes, so a late reader changes nothing, but a writer may be interrupted between
/// its clock and the kernel.
fn assert_near(what: &str, reported: u64, truth: u64) {
    let margin = 2_000_000 + truth / 50;
    assert!(reported.abs_diff(truth) <= margin, "{what}: {reported} ns, in truth {truth} ns");
}

#[test]
fn tokens_have_the_times_that_the_server_gave_them() {
    for streams in [1, 20] {
        let target = LlmTarget::start("--ttft lognormal:40ms,0.3 --gap exponential:4ms");
        let result = target.load(&format!("--output-tokens 25 -n {} -c {streams} --seed 3", streams * 6));
        let requests = streams * 6;
        assert_eq!(count(&result, "/accounting/ok"), requests, "{result:#}");
        assert_eq!(count(&result, "/event_streams/tokens"), requests * 25);
        assert_eq!(count(&result, "/event_streams/content_events"), requests * 25);
        // Role, content, the reason of the end, usage and [DONE].
        assert_eq!(count(&result, "/event_streams/events"), requests * 29);
        assert_eq!(count(&result, "/event_streams/uncounted"), 0);
        assert_eq!(count(&result, "/event_streams/count_differs"), 0);
        assert_eq!(count(&result, "/event_streams/itl/count"), requests * 24);
        let truth = target.stop();
        assert_eq!(truth.len() as u64, requests);
        assert!(truth.iter().all(|answer| answer.end == "whole" && answer.tokens == 25));
        let first = truth.iter().map(|answer| answer.content[0] - answer.recv).collect();
        let gaps: Vec<u64> = truth.iter().flat_map(TrueAnswer::gaps).collect();
        let spread = |answer: &TrueAnswer| (answer.content[24] - answer.content[0]) / 24;
        let at = |what: &str, p: &str| count(&result, &format!("/event_streams/{what}/p/{p}"));
        assert_near("TTFT", at("ttft_from_sent", "50"), percentile(first, 50.0));
        assert_near("ITL", at("itl", "50"), percentile(gaps.clone(), 50.0));
        assert_near("ITL p90", at("itl", "90"), percentile(gaps, 90.0));
        assert_near("TPOT", at("tpot", "50"), percentile(truth.iter().map(spread).collect(), 50.0));
    }
}

#[test]
fn without_a_judge_every_event_is_content() {
    // Each event is content, the role and the end included.
    let target = LlmTarget::start("--tokens 10");
    let folder = Folder::new();
    let plan = format!(
        "scenarios:\n  - steps:\n      - post: {}/v1/chat/completions\n        json: {{messages: [{{role: \
         user, content: hello}}], stream: true}}\n        stream: sse\n        expect: {{body: {{contains: \
         DONE}}}}\n",
        target.url
    );
    let plan = folder.write("plan.yaml", plan);
    let result = json(&run(&format!("run {plan} -n 20 -c 4 --quiet -o json")));
    assert_eq!(count(&result, "/accounting/ok"), 20, "{result:#}");
    // Role, ten tokens, the reason of the end and [DONE].
    assert_eq!(count(&result, "/event_streams/events"), 20 * 13);
    assert_eq!(count(&result, "/event_streams/content_events"), 20 * 13);
    assert_eq!(target.stop().len(), 20);
}

#[test]
fn streams_on_http2_are_read_as_those_on_http1_are() {
    // Bodies in four pieces, which are one line without an end.
    let sink = Sink::start("--body-size 64 --slow-data 16B/5ms --content-type application/x-ndjson");
    let folder = Folder::new();
    let plan = format!("scenarios: [{{steps: [{{get: {}, stream: ndjson}}]}}]\n", sink.url());
    let plan = folder.write("plan.yaml", plan);
    for protocol in ["--http2 --streams 8", "--http1.1"] {
        let result = json(&run(&format!("run {plan} {protocol} -n 40 -c 2 --quiet -o json")));
        assert_eq!(count(&result, "/accounting/ok"), 40, "{protocol}: {result:#}");
        let streams = &result["event_streams"];
        assert_eq!((count(streams, "/events"), count(streams, "/bytes")), (40, 40 * 64), "{protocol}");
        assert_eq!(count(streams, "/ttft/count"), 40, "{protocol}");
    }
}

#[test]
fn what_goes_wrong_in_the_middle_of_a_stream_has_a_class_and_no_ttft() {
    for (fault, class, said) in [
        ("--error 100%", "rejected", "the engine has failed on purpose"),
        ("--cut 100%", "stream_incomplete", "after 6 events of a stream"),
    ] {
        let target = LlmTarget::start(&format!("--tokens 10 {fault}"));
        let result = target.load("--output-tokens 10 -n 8 -c 2 --goodput ttft<10s");
        assert_eq!(count(&result, &format!("/errors/{class}")), 8, "{fault}: {result:#}");
        let streams = &result["event_streams"];
        assert_eq!(count(streams, "/ttft/count"), 0, "{fault}");
        assert_eq!((count(streams, "/goodput/good"), count(streams, "/requests")), (0, 8));
        // What came before was delivered: five tokens of each.
        assert_eq!(count(streams, "/itl/count"), 8 * 4, "{fault}");
        let example = result["error_examples"][class].as_str().expect("an example");
        assert!(example.contains(said), "{example}");
        assert!(target.stop().iter().all(|answer| answer.content.len() == 5));
    }
}

#[test]
fn a_stream_that_stands_still_times_out_and_its_first_token_counts() {
    let target = LlmTarget::start("--tokens 10 --stall 100%");
    let result = target.load("--output-tokens 10 -n 2 -c 2 --timeout 1s");
    assert_eq!(count(&result, "/accounting/timed_out"), 2, "{result:#}");
    assert_eq!(count(&result, "/event_streams/ttft/count"), 2);
    assert_eq!(count(&result, "/event_streams/ttft/censored"), 0, "it had come");
    assert_eq!(count(&result, "/event_streams/tpot/count"), 0);
}

#[test]
fn streams_that_are_abandoned_are_no_failures_and_not_judged() {
    let target = LlmTarget::start("--gap constant:100ms");
    let abandon = "--abandon-pct 100 --abandon-after 150ms --output-tokens 50 --goodput ttft<1h";
    let result = target.load(&format!("-n 4 -c 4 {abandon}"));
    assert_eq!((count(&result, "/accounting/aborted"), count(&result, "/accounting/failed")), (4, 0));
    assert_eq!(count(&result, "/event_streams/requests"), 0, "{result:#}");
    assert_eq!(count(&result, "/event_streams/ttft/count"), 0);
    let truth = target.stop();
    assert!(truth.iter().all(|answer| answer.end == "abandoned" && answer.tokens < 50), "{truth:?}");
}

#[test]
fn goodput_is_judged_and_slots_make_requests_wait() {
    // One at a time, 50 ms each: of eight that begin together, those behind the third wait beyond 200 ms.
    let target = LlmTarget::start("--ttft constant:50ms --slots 1");
    let run = |threshold: &str| {
        let args = format!("--output-tokens 2 -n 8 -c 8 --goodput ttft<200ms --threshold {threshold}");
        target.load(&args)
    };
    let result = run("goodput>99%");
    let good = count(&result, "/event_streams/goodput/good");
    assert!((1..=4).contains(&good), "{good}");
    assert_eq!(result["thresholds"][0]["passed"], false);
    assert_eq!(result["thresholds"][0]["observed"]["value"].as_f64(), Some(good as f64 / 8.0 * 100.0));
    assert_eq!(result["event_streams"]["goodput"]["bounds"], "ttft<200ms");
    let result = run("goodput>1%");
    assert_eq!(result["thresholds"][0]["passed"], true, "{result:#}");
}

#[test]
fn an_answer_that_is_no_stream_says_what_to_look_at() {
    let server = Recorded::serve("application/json", b"{\"choices\":[]}");
    let finished = run(&format!("llm {} --model m -n 1 --quiet -o json", server.url));
    let result = json(&finished);
    let example = result["error_examples"]["stream_incomplete"].as_str().expect("an example");
    assert!(example.contains("does the server stream at all?"), "{example}");
    server.end();
}

#[test]
fn plans_and_flags_without_streams_are_refused() {
    let refused = run("http://127.0.0.1:1/ --goodput ttft<1s");
    refused.assert_refused(2, "--goodput has no effect: no step has a stream of events");
    let refused = run("http://127.0.0.1:1/ --threshold ttft.p99<1s");
    refused.assert_refused(2, "is about streams of events");
    let refused = run("llm http://127.0.0.1:1 --model m --threshold goodput>99%");
    refused.assert_refused(2, "needs the bounds of the goodput");
    let refused = run("llm http://127.0.0.1:1 --model m --input-tokens many");
    refused.assert_refused(2, "--input-tokens: `many` is no length");
}

#[test]
fn prompts_of_a_file_and_an_api_key_are_sent() {
    let folder = Folder::new();
    let prompts = folder.write("prompts.jsonl", "{\"prompt\": \"12345678\", \"output_tokens\": 3}\n");
    let target = LlmTarget::start("");
    let result = target.load(&format!("--prompts {prompts} -n 4 --api-key secret-word"));
    assert_eq!(count(&result, "/event_streams/tokens"), 12, "{result:#}");
    assert_eq!(count(&result, "/event_streams/prompt_tokens"), 8);
    assert!(!result.to_string().contains("secret-word"));
    assert_eq!(target.stop().len(), 4);
}

#[test]
fn a_report_shows_tokens_their_times_and_goodput() {
    let target = LlmTarget::start("--gap constant:1ms");
    let args = format!("llm {} --model plimsoll -n 20 --goodput ttft<10s", target.url);
    for format in ["summary", "text", "markdown"] {
        let finished = run(&format!("{args} -o {format}"));
        assert!(verdict::ran(finished.code), "{}", finished.stderr);
        for shown in ["TTFT", "ITL", "TPOT", "goodput", "requests within ttft", "tokens"] {
            assert!(finished.stdout.contains(shown), "{shown} in {}", finished.stdout);
        }
    }
}

/// A server that answers its first connection with recorded bytes.
struct Recorded {
    url: String,
    thread: JoinHandle<()>,
}

impl Recorded {
    fn serve(kind: &str, body: &[u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let answer = [head.as_bytes(), body].concat();
        let thread = std::thread::spawn(move || {
            // A first contact may connect and send nothing.
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut request = [0; 1 << 16];
                if stream.read(&mut request).is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(&answer);
                    return;
                }
            }
        });
        Self { url, thread }
    }

    fn end(self) {
        self.thread.join().expect("the server ended");
    }
}
