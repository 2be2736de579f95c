//! The memory of the server of completions does not grow with what its clients ask for and do not read: the
//! bytes that the process has in use while one does, and others are answered.

use std::alloc::System;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, Endpoint, KernelBackend};
use plimsoll_llm::server::{LlmOptions, LlmReport, LlmServer};
use plimsoll_targets::Delay;
use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{Client, ClientOptions, Payload, Submit};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Requests of others that are answered meanwhile: each lets the server do a bounded part of its work.
const OTHERS: usize = 300;
/// Tokens of an answer of which a client asks for the most.
const MOST_TOKENS: u64 = 1_000_000;

/// The bytes in use are those of the whole process: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

fn in_use() -> usize {
    let stats = MEMORY.stats();
    // Read one after another, so that what came in between may be missing from the first.
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// A server on a unix socket, for which the kernel keeps little, and the memory before its clients came.
struct Target {
    server: LlmServer,
    path: PathBuf,
    before: usize,
}

impl Target {
    fn start(name: &str, change: impl FnOnce(LlmOptions) -> LlmOptions) -> Self {
        let target = Self::start_without_trial(name, change);
        // What is made once is not to count.
        target.answer_another();
        Self { before: in_use(), ..target }
    }

    /// Starts one that answers nobody soon.
    fn start_without_trial(name: &str, change: impl FnOnce(LlmOptions) -> LlmOptions) -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-memory-{}-{name}", std::process::id()));
        let options = change(LlmOptions::new(Endpoint::Unix(path.clone())));
        let backend = KernelBackend::Epoll(BackendOptions::default());
        let server = LlmServer::start(options, backend).expect("the server starts");
        Self { server, path, before: in_use() }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.path).expect("it listens")
    }

    /// A connection on which this many tokens are asked for.
    fn ask(&self, tokens: u64, stream: bool) -> UnixStream {
        let mut connection = self.connect();
        connection.write_all(&request(tokens, stream)).expect("it reads");
        connection
    }

    /// Asks for what is answered at once: all that has come before is read then.
    fn ask_for_health(&self) {
        let mut connection = self.connect();
        connection.write_all(b"GET /health HTTP/1.0\r\n\r\n").expect("it reads");
        let mut text = Vec::new();
        connection.read_to_end(&mut text).expect("it answers");
        assert!(text.ends_with(b"ok"), "{}", String::from_utf8_lossy(&text));
    }

    /// Asks for a few tokens and waits for all of them.
    fn answer_another(&self) {
        let mut connection = BufReader::new(self.ask(5, true));
        assert_eq!(read_stream(&mut connection), 5);
    }

    /// Answers others, and holds the memory that is in use after each of them against a bound.
    fn answer_others(&self, most: usize) {
        for _ in 0..OTHERS {
            self.answer_another();
            let used = in_use().saturating_sub(self.before);
            assert!(used <= most, "{used} bytes are in use, and {most} may be");
        }
    }

    fn stop(self) -> LlmReport {
        let report = self.server.stop();
        // It may be gone.
        let _ = std::fs::remove_file(self.path);
        report
    }
}

fn body(tokens: u64, stream: bool) -> String {
    format!(r#"{{"messages":[{{"role":"user","content":"hello"}}],"stream":{stream},"max_tokens":{tokens}}}"#)
}

fn request(tokens: u64, stream: bool) -> Vec<u8> {
    let body = body(tokens, stream);
    format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into()
}

/// Reads a stream to its end; the number of its tokens, which come in order.
fn read_stream(from: &mut impl BufRead) -> u64 {
    let (mut line, mut tokens) = (String::new(), 0);
    while !line.starts_with("data: [DONE]") {
        line.clear();
        assert!(from.read_line(&mut line).expect("it is text") > 0, "it ends after {tokens} tokens");
        if let Some((_, text)) = line.split_once(r#""content":" w"#) {
            assert!(text.starts_with(&format!("{tokens}\"")), "{line}");
            tokens += 1;
        }
    }
    tokens
}

#[test]
fn answers_that_are_not_read_take_a_bounded_memory_and_hold_up_nobody() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for stream in [true, false] {
        let target = Target::start("unread", |options| options);
        let unread: Vec<UnixStream> = (0..100).map(|_| target.ask(MOST_TOKENS, stream)).collect();
        // 64 KiB of each and a part, and as much again for a buffer that has grown.
        target.answer_others(100 * 2 * (80 << 10));
        let report = target.stop();
        assert_eq!((report.counts.abandoned, report.counts.violations), (100, 0), "{report:?}");
        // The kernel keeps some as well: 100 million tokens were asked for.
        assert!(report.counts.tokens < 10_000_000, "{} tokens were made", report.counts.tokens);
        drop(unread);
    }
}

#[test]
fn an_answer_that_stood_still_is_whole_when_it_is_read() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for gap in [Delay::None, Delay::Exponential { mean: Nanos(100) }] {
        let target = Target::start("later", |options| LlmOptions { gap, burst: 3, ..options });
        let mut stream = BufReader::new(target.ask(50_000, true));
        let mut document = BufReader::new(target.ask(50_000, false));
        target.answer_others(1 << 20);
        assert_eq!(read_stream(&mut stream), 50_000);
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            document.read_line(&mut line).expect("a head");
            length =
                line.strip_prefix("content-length: ").map_or(length, |at| at.trim().parse().unwrap_or(0));
        }
        let mut text = vec![0; length];
        document.read_exact(&mut text).expect("it has this length");
        let text: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let words = text.pointer("/choices/0/message/content").and_then(serde_json::Value::as_str);
        let expected: String = (0..50_000).map(|number| format!(" w{number}")).collect();
        assert_eq!(words, Some(expected.as_str()));
        // Another request of the same connection is answered.
        stream.get_mut().write_all(&request(3, true)).expect("it reads");
        assert_eq!(read_stream(&mut stream), 3);
        let report = target.stop();
        assert_eq!(report.counts.whole, OTHERS as u64 + 4, "{report:?}");
    }
}

#[test]
fn streams_whose_windows_are_shut_take_a_bounded_memory() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for stream in [true, false] {
        let target = Target::start("windows", |options| options);
        let options = ClientOptions {
            stream_window: 1,
            connection_window: 0,
            max_streams: 500,
            ..ClientOptions::default()
        };
        let (mut wire, mut out) = (Client::new(&options), Vec::new());
        wire.start(&mut out);
        let body = body(MOST_TOKENS, stream);
        for _ in 0..500 {
            let body = Payload::Bytes(body.as_bytes());
            let submit =
                Submit { head_request: false, capture: false, keep_body: false, tell_content: false, body };
            let head = |_: &mut plimsoll_wire::http2::Indexing, out: &mut Vec<u8>| {
                let path = "/v1/chat/completions";
                let fields =
                    [(":method", "POST"), (":scheme", "http"), (":authority", "sink"), (":path", path)];
                for (name, value) in fields {
                    put_literal(out, name.as_bytes(), value.as_bytes(), false);
                }
            };
            wire.submit(submit, head, &mut out);
        }
        let mut connection = target.connect();
        connection.write_all(&out).expect("it reads");
        drop((wire, out));
        // A part of each stream, 64 KiB of the connection, and what the streams themselves take.
        target.answer_others(500 * 40_000);
        let report = target.stop();
        assert_eq!((report.counts.abandoned, report.counts.violations), (500, 0), "{report:?}");
    }
}

#[test]
fn replies_that_are_not_read_end_their_connection() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Target::start("replies", |options| options);
    let mut connection = target.connect();
    let requests = b"GET /v1/models HTTP/1.1\r\n\r\n".repeat(1000);
    // A reply has 250 bytes: 4 MiB of them, and what the kernel keeps.
    let taken = (0..1000).find(|_| connection.write_all(&requests).is_err());
    assert!(taken.is_some(), "a million requests were taken");
    target.answer_another();
    let report = target.stop();
    assert_eq!(report.counts.violations, 1, "{report:?}");
}

#[test]
fn what_comes_behind_a_completion_has_a_bound_and_its_turn() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Target::start("behind", |options| options);
    // Read one after the other, and not each with all that is behind it.
    let mut connection = BufReader::new(target.connect());
    let mut writer = connection.get_ref().try_clone().expect("it is open");
    let writing = std::thread::spawn(move || writer.write_all(&request(3, true).repeat(20_000)));
    (0..20_000).for_each(|_| assert_eq!(read_stream(&mut connection), 3));
    writing.join().expect("it does not panic").expect("it reads");
    assert_eq!(target.stop().counts.whole, 20_001);

    let waits = Delay::Constant(Nanos::from_secs(3_600));
    let target = Target::start_without_trial("far-behind", |options| LlmOptions { ttft: waits, ..options });
    let mut connection = target.ask(3, true);
    assert!(connection.write_all(&vec![b'x'; 17 << 20]).is_err(), "17 MiB were taken");
    assert_eq!(target.stop().counts.violations, 1);
}

#[test]
fn requests_that_were_given_up_leave_nothing() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let waits = Delay::Constant(Nanos::from_secs(3_600));
    for slots in [Some(1), None] {
        let target =
            Target::start_without_trial("given-up", |options| LlmOptions { ttft: waits, slots, ..options });
        let _first = target.ask(1, false);
        target.ask_for_health();
        let before = in_use();
        // An entry of each would take 16 or 32 bytes.
        for _ in 0..200 {
            let given_up: Vec<UnixStream> = (0..100).map(|_| target.ask(1, false)).collect();
            target.ask_for_health();
            drop(given_up);
            target.ask_for_health();
        }
        let used = in_use().saturating_sub(before);
        assert!(used <= 150_000, "{used} bytes are in use after 20,000 requests");
        let report = target.stop();
        assert_eq!((report.counts.completions, report.counts.abandoned), (20_001, 20_001), "{report:?}");
    }
}

#[test]
fn a_long_prompt_takes_little_more_than_its_bytes_and_all_together_have_a_bound() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Target::start("prompts", |options| options);
    let length = 15 << 20;
    let head = format!("POST /v1/completions HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
    // Nearly eight million numbers, which a tree would have 32 bytes each for.
    let mut prompt = br#"{"prompt":["text""#.to_vec();
    prompt.extend(b",0".repeat((length - prompt.len() - 2) / 2));
    prompt.resize(length - 2, b' ');
    prompt.extend(b"]}");
    let mut whole = BufReader::new(target.connect());
    let before = MEMORY.stats().bytes_allocated;
    whole.get_mut().write_all(head.as_bytes()).expect("it reads");
    whole.get_mut().write_all(&prompt).expect("it reads");
    let mut line = String::new();
    whole.read_line(&mut line).expect("it answers");
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    // What came of it in pieces, and the buffer as it grew.
    let taken = MEMORY.stats().bytes_allocated - before;
    assert!(taken <= 5 * length, "{taken} bytes were allocated for a prompt of {length}");
    drop(whole);

    // 256 MiB of them all, in buffers of 16 MiB.
    let mut unfinished = Vec::new();
    let refused = (0..20).find_map(|_| {
        let mut connection = target.connect();
        connection.write_all(head.as_bytes()).expect("it reads");
        let taken = connection.write_all(&prompt[..length - 1]);
        target.answer_another();
        let used = in_use().saturating_sub(target.before);
        assert!(used <= (256 << 20) + (64 << 20), "{used} bytes are in use");
        connection.set_nonblocking(true).expect("it is a socket");
        let mut told = vec![0; 1000];
        let told = connection.read(&mut told).map(|read| String::from_utf8_lossy(&told[..read]).into_owned());
        unfinished.push(connection);
        (taken.is_err() || told.is_ok()).then_some(told)
    });
    assert!(refused.is_some(), "20 connections have 300 MiB together");
    let report = target.stop();
    assert!(report.counts.over_memory > 0 && report.counts.violations == 0, "{report:?}");
}
