//! `plimsoll target cache` as a process of its own: bytes that the real server was seen to send, on both
//! ports.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use plimsoll_testkit::program::{Finished, Process};

use crate::program::{plimsoll, run};

/// A running cache server.
pub(crate) struct CacheTarget {
    process: Process,
    pub(crate) frames: String,
    pub(crate) http: String,
}

impl CacheTarget {
    pub(crate) fn start(args: &str) -> Self {
        Self::start_at("127.0.0.1:0", "127.0.0.1:0", args)
    }

    /// One at these addresses, for frames and for HTTP.
    pub(crate) fn start_at(frames: &str, http: &str, args: &str) -> Self {
        let command = format!("target cache --listen {frames} --http {http} {args}");
        let mut process = Process::start(plimsoll(&command));
        let http = process.stderr.wait_for("target cache: HTTP API on http://");
        let frames = process.stderr.wait_for("target cache: listening on ");
        let address = |line: &str| line.rsplit([' ', '/']).next().expect("an address").to_owned();
        Self { frames: address(&frames), http: address(&http), process }
    }

    /// Sends these bytes, and returns the reply: until the connection closes, or `most` bytes of it.
    fn told(address: &str, bytes: &[u8], most: usize) -> Vec<u8> {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(bytes).expect("it reads");
        let mut told = Vec::new();
        stream.take(most as u64).read_to_end(&mut told).expect("it answers");
        told
    }

    fn http(&self, line: &str, fields: &str, body: &str) -> String {
        let length = body.len();
        let request =
            format!("{line} HTTP/1.1\r\n{fields}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        String::from_utf8(Self::told(&self.http, request.as_bytes(), 1 << 20)).expect("it is text")
    }

    /// Returns `true` if the cache of the load test has a value for this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.http(&format!("GET /cache/perf_test/{key}"), DEFAULT_USER, "").contains("\"found\":true")
    }

    /// Ends it at once, with no chance to say anything.
    pub(crate) fn kill(self) {
        self.process.signal("KILL");
        self.process.finish();
    }

    pub(crate) fn stop(self) -> Finished {
        self.process.signal("TERM");
        self.process.finish()
    }
}

/// The user of the server that has none of its own, `admin:admin123`.
const DEFAULT_USER: &str = "authorization: Basic YWRtaW46YWRtaW4xMjM=\r\n";
const ADMIN: &str = "authorization: Basic bWU6cHc=\r\ncontent-type: application/json\r\n";

#[test]
fn the_cache_answers_on_both_ports_and_says_at_its_end_what_it_did() {
    let target = CacheTarget::start("--cache one --cache two --user me:pw --lie wrong:0%");
    let put = b"\0\0\0\x14\x01\0\0\0\x03one\0\0\0\x02\0\0\0\x02k1v1";
    let get = b"\0\0\0\x0E\x02\0\0\0\x03one\0\0\0\x02k1";
    let asked = [&put[..], get, b"\0\0\0\x01\0"].concat();
    let expected = b"\0\0\0\x01\x01\0\0\0\x07\x02\0\0\0\x02v1\0\0\0\x01\0";
    assert_eq!(CacheTarget::told(&target.frames, &asked, expected.len()), expected);
    let unknown = b"\0\0\0\x0F\x02\0\0\0\x04none\0\0\0\x02k1";
    let expected = b"\0\0\0\x1A\x04\0\0\0\x15Cache not found: none";
    assert_eq!(CacheTarget::told(&target.frames, unknown, expected.len()), expected);
    assert_eq!(CacheTarget::told(&target.frames, b"\0\x80\0\x01more", 100), b"", "it closes");

    assert!(target.http("GET /health", "", "").ends_with("\r\n\r\nOK"));
    assert!(target.http("GET /cache/one/k1", "", "").starts_with("HTTP/1.1 401 "));
    assert!(target.http("GET /cache/one/k1", ADMIN, "").contains(r#""value":"v1""#));
    let created = target.http("POST /admin/caches", ADMIN, r#"{"name":"three","eviction":"ttl"}"#);
    assert!(created.contains("Cache 'three' created successfully"), "{created}");

    let finished = target.stop();
    assert_eq!((finished.code, &finished.stdout[..]), (Some(0), ""));
    let said: Vec<_> = finished.stderr.lines().skip(2).collect();
    assert_eq!(
        said,
        [
            "target cache: caches: one, two",
            "target cache: 1 PUT, 1 GET of which 1 found, 0 DELETE, 1 PING, 1 answered with an error",
            "target cache: 4 requests over HTTP on 4 connections",
            "target cache: 1 connections ended for a violation",
            "target cache: 4 operations on 3 connections",
        ]
    );
}

#[test]
fn lies_are_announced_and_counted() {
    let target = CacheTarget::start("--lie stale:100% --seed 3 --not-found");
    let get = b"\0\0\0\x13\x02\0\0\0\x09perf_test\0\0\0\x01k";
    let put = b"\0\0\0\x18\x01\0\0\0\x09perf_test\0\0\0\x01\0\0\0\x01kv";
    let asked = [&get[..], put, get].concat();
    let expected = b"\0\0\0\x01\x03\0\0\0\x01\x01\0\0\0\x01\x03";
    assert_eq!(CacheTarget::told(&target.frames, &asked, expected.len()), expected);
    let said = target.stop().stderr;
    let announced =
        "target cache: faults: 100% of the GETs answered with the value before the last PUT, seed 3\n";
    assert!(said.contains(announced), "{said}");
    assert!(said.contains("target cache: 1 answered wrongly on purpose\n"), "{said}");
}

#[test]
fn a_port_that_is_taken_is_said() {
    let target = CacheTarget::start("");
    let refused = run(&format!("target cache --listen 127.0.0.1:0 --http {}", target.http));
    refused.assert_refused(1, &format!("the server cannot listen on {}", target.http));
    let ended = run("target cache --listen 127.0.0.1:0 --http off --duration 1ms --quiet");
    assert_eq!((ended.code, &ended.stderr[..]), (Some(0), ""));
}
