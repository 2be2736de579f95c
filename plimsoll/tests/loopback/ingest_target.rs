//! `plimsoll target ingest` as a process of its own: writes, queries, lies and the end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use plimsoll_core::Nanos;
use plimsoll_system::clock;

use crate::loopback::process::{Finished, Process, plimsoll, run};

/// A running ingest server.
pub(crate) struct IngestTarget {
    process: Process,
    pub(crate) address: String,
}

/// `{"m":"cpu","columns":{"time":[1700000000,1700000001],"v":[1,2]}}`.
const BATCH: &[u8] =
    b"\x82\xa1m\xa3cpu\xa7columns\x82\xa4time\x92\xce\x65\x53\xf1\x00\xce\x65\x53\xf1\x01\xa1v\x92\x01\x02";

impl IngestTarget {
    pub(crate) fn start(args: &str) -> Self {
        let mut process = Process::start(plimsoll(&format!("target ingest --listen 127.0.0.1:0 {args}")));
        let line = process.stderr.wait_for("target ingest: listening on http://");
        let address = line.rsplit('/').next().expect("an address").to_owned();
        Self { process, address }
    }

    /// Sends a request, and returns status and body of the reply. Status 0: the connection ended without a
    /// reply.
    pub(crate) fn ask(&self, line: &str, fields: &str, body: &[u8]) -> (u16, String) {
        let length = body.len();
        let head =
            format!("{line} HTTP/1.1\r\n{fields}connection: close\r\ncontent-length: {length}\r\n\r\n");
        exchange(&self.address, &[head.as_bytes(), body].concat())
    }

    fn write(&self, fields: &str) -> (u16, String) {
        self.ask("POST /api/v1/write/msgpack", fields, BATCH)
    }

    fn flush(&self) {
        assert_eq!(self.ask("POST /api/v1/write/line-protocol/flush", "", b"").0, 200);
    }

    /// Returns the data that a query finds, as JSON.
    pub(crate) fn query(&self, sql: &str) -> serde_json::Value {
        let body = serde_json::json!({"sql": sql}).to_string();
        let fields = "content-type: application/json\r\n";
        let (status, told) = self.ask("POST /api/v1/query", fields, body.as_bytes());
        assert_eq!(status, 200, "{told}");
        serde_json::from_str::<serde_json::Value>(&told).expect("it is JSON")["data"].take()
    }

    pub(crate) fn stop(self, signal: &str) -> Finished {
        self.process.signal(signal);
        self.process.finish()
    }
}

/// Sends a request on a connection of its own, and returns status and body of the reply once the connection
/// has ended. Status 0: it ended without a reply.
pub(crate) fn exchange(address: &str, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request).expect("it reads");
    let mut told = Vec::new();
    // A reset is not a reply.
    let _ = stream.read_to_end(&mut told);
    let text = String::from_utf8(told).expect("it is text");
    match text.split_once("\r\n\r\n") {
        Some((head, body)) => (head[9..12].parse().expect("a status"), body.to_owned()),
        None => (0, text),
    }
}

#[test]
fn what_is_written_can_be_asked_for_and_is_told_at_the_end() {
    let target = IngestTarget::start("--flush-delay 0s --threads 2");
    assert_eq!(target.write(""), (204, String::new()));
    assert_eq!(target.write("x-arc-database: other\r\n"), (204, String::new()));
    let lines = b"cpu,host=a v=3i 1700000002000000000\n";
    assert_eq!(target.ask("POST /api/v2/write?bucket=default", "", lines).0, 204);
    assert_eq!(target.query("SELECT COUNT(*), SUM(v) FROM cpu"), serde_json::json!([[3, 6]]));
    let expected = serde_json::json!([["2023-11-14T22:13:21.000000Z", 2]]);
    assert_eq!(target.query("SELECT time, v FROM other.cpu WHERE v > 1"), expected);
    assert_eq!(target.ask("POST /api/v1/write/msgpack", "", b"\xc1").0, 400);
    let finished = target.stop("TERM");
    assert_eq!((finished.code, &finished.stdout[..]), (Some(0), ""));
    let said: Vec<_> = finished.stderr.lines().skip(1).collect();
    assert_eq!(
        said,
        [
            "target ingest: every client may read and write: no --token",
            "target ingest: default.cpu: 3 rows acknowledged, 3 visible",
            "target ingest: other.cpu: 2 rows acknowledged, 2 visible",
            "target ingest: 1 writes refused as invalid",
            "target ingest: 5 rows acknowledged, in 3 writes of 110 bytes",
            "target ingest: 6 requests, 2 of them queries, on 6 connections",
        ]
    );
}

#[test]
fn a_query_takes_a_bounded_part_of_the_memory_and_ends_with_the_server() {
    let target = IngestTarget::start("--flush-delay 0s");
    let ask = |sql: &str| {
        let body = serde_json::json!({"sql": sql}).to_string();
        target.ask("POST /api/v1/query", "content-type: application/json\r\n", body.as_bytes())
    };
    let (status, told) = ask("SELECT printf('%.*c', 1000000000, 'x')");
    assert!(status == 500 && told.contains("a value or a row of this target has at most 16 MiB"), "{told}");
    // A sort of 2 GB, which are in no table.
    let (status, told) = ask(
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 2000) \
         SELECT COUNT(*) FROM (SELECT x, randomblob(1000000) AS b FROM t ORDER BY b LIMIT 1999) WHERE length(b) > 5",
    );
    assert!(status == 500 && told.contains("take at most 512 MiB together"), "{status} {told}");
    let peak = target.process.peak_bytes();
    assert!(peak < 700 << 20, "{} MiB", peak >> 20);
    // It gave everything back, and others go on.
    assert_eq!(target.query("SELECT 6 * 7"), serde_json::json!([[42]]));

    // The end does not wait for a query, of which each has 30 s.
    let mut stream = TcpStream::connect(&target.address).expect("it listens");
    let endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT COUNT(*) FROM t";
    let body = serde_json::json!({"sql": endless}).to_string();
    let length = body.len();
    let head = "GET /ready HTTP/1.1\r\n\r\nPOST /api/v1/query HTTP/1.1\r\ncontent-type: application/json\r\n";
    write!(stream, "{head}content-length: {length}\r\n\r\n{body}").expect("it reads");
    // The answer shows that the request was taken up.
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("it answers");
    assert_eq!(&first, b"HTTP/1.1 200");
    let began = clock::monotonic();
    assert_eq!(target.stop("TERM").code, Some(0));
    let took = clock::monotonic().since(began);
    assert!(took < Nanos::from_secs(15), "it waited for the query: {took:?}");
}

#[test]
fn tokens_are_asked_for() {
    let target = IngestTarget::start("--token secret --token watcher:read");
    assert_eq!(target.write("").0, 401);
    assert_eq!(target.write("x-api-key: watcher\r\n").0, 403);
    assert_eq!(target.write("authorization: Bearer secret\r\n").0, 204);
    let said = target.stop("INT").stderr;
    assert!(said.contains("target ingest: 2 tokens\n") && !said.contains("secret"), "{said}");
}

#[test]
fn lies_and_failures_are_announced_done_and_counted() {
    let target = IngestTarget::start("--lie lose:100% --seed 3");
    for _ in 0..3 {
        assert_eq!(target.write("").0, 204);
    }
    target.flush();
    assert_eq!(target.query("SELECT COUNT(*) FROM cpu"), serde_json::json!([]));
    let said = target.stop("TERM").stderr;
    assert!(
        said.contains("target ingest: faults: 100% of the writes acknowledged and lost, seed 3\n"),
        "{said}"
    );
    assert!(said.contains("default.cpu: 6 rows acknowledged, 0 visible, 6 lost on purpose\n"), "{said}");

    let target = IngestTarget::start("--fail 100%:503");
    assert_eq!(target.write(""), (503, r#"{"error":"refused on purpose"}"#.to_owned()));
    let said = target.stop("TERM").stderr;
    assert!(said.contains("target ingest: 1 writes refused or reset on purpose\n"), "{said}");

    let target = IngestTarget::start("--lie unacknowledged:100% --delay constant:1ms");
    assert_eq!(target.write("").0, 0);
    let told = target.ask("GET /plimsoll/acknowledged", "", b"").1;
    assert!(told.contains(r#""unacknowledged":2"#) && told.contains(r#""rows":0"#), "{told}");
    target.stop("TERM");

    let target = IngestTarget::start("--full-after 50B --delay constant:1ms");
    assert_eq!(target.write("").0, 204);
    let full = r#"{"error":"Failed to write records: write data: no space left on device"}"#;
    assert_eq!(target.write(""), (500, full.to_owned()));
    target.stop("TERM");
}

#[test]
fn a_port_that_is_taken_is_said_and_is_free_again_at_the_end() {
    let target = IngestTarget::start("");
    let address = target.address.clone();
    let refused = run(&format!("target ingest --listen {address}"));
    refused.assert_refused(1, &format!("the server cannot listen on {address}"));
    assert_eq!(target.stop("TERM").code, Some(0));
    let ended = run(&format!("target ingest --listen {address} --duration 1ms --quiet"));
    assert_eq!((ended.code, &ended.stderr[..]), (Some(0), ""));
}
