use std::io::Write as _;
use std::sync::Arc;

use plimsoll_driver::Endpoint;

use super::super::batch::tests::packed;
use super::super::http::{Caller, ConnectionFate, HttpHandler};
use super::super::options::{IngestOptions, Lie, LieKind, Token};
use super::*;
use crate::server::Outgoing;
use crate::sink::Delay;

/// A handler with one connection, and a clock that is set.
struct Table {
    handler: HttpHandler,
    caller: Caller,
    out: Outgoing,
    at: Nanos,
}

#[derive(Debug, PartialEq, Eq)]
struct Told {
    status: u16,
    head: String,
    body: String,
}

const WRITE: &str = "POST /api/v1/write/msgpack";
const QUERY: &str = "POST /api/v1/query";
const FLUSH: &str = "POST /api/v1/write/line-protocol/flush";
const ADMIN: &str = "x-api-key: admin\r\n";
const JSON: &str = "x-api-key: admin\r\ncontent-type: application/json\r\n";
const ROW: &str = r#"{"m":"cpu","columns":{"time":[1700000000],"v":[1.5]}}"#;

fn options() -> IngestOptions {
    let token = |token: &str, read, write| Token {
        token: token.to_owned(),
        permissions: Permissions { read, write, ..Permissions::default() },
    };
    IngestOptions {
        tokens: vec![
            Token { token: "admin".to_owned(), permissions: Permissions::ALL },
            token("reader", true, false),
            token("writer", false, true),
        ],
        max_payload: 1 << 20,
        ..IngestOptions::new(Endpoint::Unix("nowhere".into()))
    }
}

impl Table {
    fn new(options: IngestOptions) -> Self {
        let setup = Arc::new(Setup::new(options));
        let (caller, out) = (Caller::default(), Outgoing::default());
        Self { handler: HttpHandler::new(setup), caller, out, at: Nanos::from_secs(100) }
    }

    fn send(&mut self, line: &str, fields: &str, body: &[u8]) -> ConnectionFate {
        let length = body.len();
        let mut bytes = format!("{line} HTTP/1.1\r\n{fields}content-length: {length}\r\n\r\n").into_bytes();
        bytes.extend_from_slice(body);
        // It is 2023-11-14T22:13:20Z and as long as the test takes.
        let unix = Nanos(1_700_000_000_000_000_000 + self.at.0);
        let moment = Moment { at: self.at, unix };
        let mut course = self.handler.read(&mut self.caller, moment, &bytes, &mut self.out);
        // A query runs on a thread of its own.
        while self.caller.is_owed() {
            match self.handler.settle(&mut self.caller, moment, &mut self.out) {
                Some(next) => course = next,
                None => std::thread::yield_now(),
            }
        }
        course
    }

    fn ask(&mut self, line: &str, fields: &str, body: &[u8]) -> Told {
        assert_eq!(self.send(line, fields, body), ConnectionFate::GoesOn);
        told(&std::mem::take(&mut self.out.bytes))
    }

    /// Status and body of a write of JSON, packed.
    fn write(&mut self, json: &str) -> (u16, String) {
        let Told { status, body, .. } = self.ask(WRITE, ADMIN, &packed(json));
        (status, body)
    }

    /// Returns the response to a query, without its times.
    fn query(&mut self, sql: &str) -> String {
        let body = json!({"sql": sql}).to_string();
        let told = self.ask(QUERY, JSON, body.as_bytes()).body;
        told.split(r#","execution_time_ms"#).next().unwrap().replace(r#"{"success":true,"#, "")
    }
}

fn told(bytes: &[u8]) -> Told {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head[9..12].parse().unwrap();
    Told { status, head: head.to_owned(), body: body.to_owned() }
}

fn error(text: &str) -> String {
    json!({"error": text}).to_string()
}

#[test]
fn who_may_do_what() {
    let mut table = Table::new(options());
    let body = packed(ROW);
    let refused = |why: &str| format!(r#"{{"error":"{why}","success":false}}"#);
    for (fields, status, expected) in [
        ("", 401, refused("Authentication required")),
        ("x-api-key: wrong\r\n", 401, refused("Invalid or expired token")),
        ("authorization: Bearer wrong\r\n", 401, refused("Invalid or expired token")),
        ("authorization: Bearer wrong\r\nx-api-key: admin\r\n", 401, refused("Invalid or expired token")),
        ("x-api-key: reader\r\n", 403, refused("Permission denied: write required")),
        ("x-api-key: writer\r\n", 204, String::new()),
        ("Authorization: Bearer writer\r\n", 204, String::new()),
        ("authorization: Token writer\r\n", 204, String::new()),
        ("authorization: writer\r\n", 204, String::new()),
        ("authorization: \r\nX-API-Key: writer\r\n", 204, String::new()),
    ] {
        let told = table.ask(WRITE, fields, &body);
        assert_eq!((told.status, told.body), (status, expected), "{fields}");
    }
    assert_eq!(table.ask("POST /api/v1/write/msgpack?p=writer", "", &body).status, 204);
    let writer = "x-api-key: writer\r\ncontent-type: application/json\r\n";
    let told = table.ask(QUERY, writer, br#"{"sql":"SELECT 1"}"#);
    assert_eq!((told.status, told.body), (403, refused("Permission denied: read required")));
    let told = table.ask(FLUSH, writer, b"");
    assert_eq!((told.status, told.body), (403, refused("Permission denied: admin required")));
    let mut open = Table::new(IngestOptions { tokens: Vec::new(), ..options() });
    assert_eq!(open.ask(WRITE, "", &body).status, 204);
}

#[test]
fn tokens_are_verified_and_made() {
    let mut table = Table::new(options());
    let verify = "GET /api/v1/auth/verify";
    let told = table.ask(verify, "", b"");
    assert_eq!((told.status, &*told.body), (401, r#"{"error":"No token provided","valid":false}"#));
    let told = table.ask(verify, "x-api-key: x\r\n", b"");
    assert_eq!((told.status, &*told.body), (401, r#"{"error":"Invalid or expired token","valid":false}"#));
    let told = table.ask(verify, "x-api-key: reader\r\n", b"");
    assert!(told.status == 200 && told.body.starts_with(r#"{"permissions":["read"],"#), "{told:?}");
    let make = "POST /api/v1/auth/tokens";
    let made = table.ask(make, JSON, br#"{"name":"n","permissions":["write"]}"#);
    let token: serde_json::Value = serde_json::from_str(&made.body).unwrap();
    let token = token["token"].as_str().unwrap();
    assert_eq!((made.status, token.len()), (201, 32));
    assert_eq!(table.ask(WRITE, &format!("x-api-key: {token}\r\n"), &packed(ROW)).status, 204);
    let told = table.ask(QUERY, &format!("x-api-key: {token}\r\n"), b"");
    assert_eq!(told.status, 403);
    for (fields, body, status) in [
        (ADMIN, &br#"{"name":"n"}"#[..], 201),
        (ADMIN, br#"{"permissions":["read"]}"#, 400),
        (ADMIN, br#"{"name":"n","permissions":["fly"]}"#, 400),
        (ADMIN, br#"{"name":"n","permissions":"read"}"#, 400),
        (ADMIN, br#"{"name":"n","expires_in":"1h"}"#, 400),
        (ADMIN, b"[]", 400),
        (ADMIN, b"{", 400),
        ("x-api-key: reader\r\n", br#"{"name":"n"}"#, 403),
    ] {
        assert_eq!(table.ask(make, fields, body).status, status, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn a_write_that_is_stored_is_answered_without_a_body_or_a_length() {
    let mut table = Table::new(options());
    let told = table.ask(WRITE, ADMIN, &packed(ROW));
    assert_eq!((told.status, &*told.head, &*told.body), (204, "HTTP/1.1 204 No Content", ""));
    for json in [
        r#"{"m":"cpu","t":1,"h":"a","fields":{"v":1},"tags":{}}"#,
        r#"{"batch":[{"m":"cpu","t":1,"h":"a","fields":{"v":1}},{"m":"cpu","columns":{"v":[1]}}]}"#,
        r#"[{"m":"cpu","columns":{"v":[1]}}]"#,
        r#"{"m":"cpu","columns":{"v":[null,1]}}"#,
        r#"{"m":"cpu","columns":{"time":[1700000000000.5],"v":[1]}}"#,
    ] {
        assert_eq!(table.write(json), (204, String::new()), "{json}");
    }
}

#[test]
fn compression_is_found_by_its_first_bytes_whatever_the_fields_say() {
    let mut table = Table::new(options());
    let plain = packed(ROW);
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = zstd::encode_all(&plain[..], 1).unwrap();
    let fields = format!("{ADMIN}content-encoding: br\r\ncontent-type: text/plain\r\n");
    for body in [&plain, &gzip(&plain), &zstd] {
        assert_eq!(table.ask(WRITE, &fields, body).status, 204);
    }
    let bomb = vec![0; 2 << 20];
    for (body, expected) in [
        (gzip(&bomb), "Invalid gzip compression: decompressed payload exceeds 1MB limit"),
        (
            zstd::encode_all(&bomb[..], 1).unwrap(),
            "Invalid zstd compression: decompressed payload exceeds 1MB limit",
        ),
    ] {
        let told = table.ask(WRITE, ADMIN, &body);
        assert_eq!((told.status, told.body), (400, error(expected)));
    }
    for (broken, begin) in [
        (&gzip(&plain)[..20], "Invalid gzip compression: "),
        (&zstd[..zstd.len() - 1], "Invalid zstd compression: "),
    ] {
        let told = table.ask(WRITE, ADMIN, broken);
        assert_eq!(told.status, 400);
        assert!(told.body.starts_with(&format!(r#"{{"error":"{begin}"#)), "{}", told.body);
    }
}

#[test]
fn writes_that_mean_nothing_are_refused_in_the_words_of_the_real_server() {
    let mut table = Table::new(options());
    let empty = table.ask(WRITE, ADMIN, b"");
    assert_eq!((empty.status, empty.body), (400, error("Empty payload")));
    for (json, status, expected) in [
        (
            r#"{"columns":{"v":[1]}}"#,
            400,
            "Invalid MessagePack payload: missing required field 'm' (measurement)",
        ),
        (
            r#"{"m":"a","columns":{"v":[1],"time":[1,2]}}"#,
            400,
            "Invalid MessagePack payload: columnar format: array length mismatch (expected 1, got 2 for 'time')",
        ),
        ("7", 400, "Invalid MessagePack payload: unsupported msgpack payload type: int8"),
        (
            r#"{"m":"1a","columns":{"v":[1]}}"#,
            400,
            "invalid measurement name \"1a\": must start with a letter and contain only alphanumeric \
             characters, underscores, or hyphens",
        ),
        (
            r#"{"m":"a","columns":{"v":[1,"x"]}}"#,
            500,
            "Failed to write records: cannot convert string to int64 in column 'v'",
        ),
    ] {
        assert_eq!(table.write(json), (status, error(expected)), "{json}");
    }
    let told = table.ask(WRITE, ADMIN, b"\xc1");
    let unknown = "Invalid MessagePack payload: failed to unmarshal msgpack: msgpack: unknown code c1 decoding interface{}";
    assert_eq!((told.status, told.body), (400, error(unknown)));
    for name in ["1a", "a b", "a.b", "-a", &"a".repeat(65)] {
        let told = table.ask(WRITE, &format!("{ADMIN}x-arc-database: {name}\r\n"), &packed(ROW));
        let expected = "invalid database name: must start with a letter and contain only alphanumeric \
                        characters, underscores, or hyphens (max 64 characters)";
        assert_eq!((told.status, told.body), (400, error(expected)), "{name}");
    }
    for line in ["GET /api/v1/write/msgpack", "PUT /api/v1/write/msgpack"] {
        assert_eq!(table.ask(line, ADMIN, b"").status, 405, "{line}");
    }
    assert_eq!(table.ask("GET /elsewhere", ADMIN, b"").status, 404);
    assert_eq!(table.handler.api().counts.writes, 0);
    assert_eq!(table.handler.api().counts.refusals, 12);
}

#[test]
fn a_payload_above_the_most_ends_the_connection() {
    let mut table = Table::new(options());
    assert_eq!(table.send(WRITE, ADMIN, &vec![0xc0; (1 << 20) + 1]), ConnectionFate::Reset);
    let mut table = Table::new(options());
    let head = format!("{WRITE} HTTP/1.1\r\n{ADMIN}content-length: 99999999\r\n\r\n");
    let moment = Moment { at: Nanos(0), unix: Nanos(0) };
    assert_eq!(
        table.handler.read(&mut table.caller, moment, head.as_bytes(), &mut table.out),
        ConnectionFate::GoesOn
    );
    assert_eq!(
        table.handler.read(&mut table.caller, moment, &[0; 1 << 20], &mut table.out),
        ConnectionFate::GoesOn
    );
    assert_eq!(
        table.handler.read(&mut table.caller, moment, &[0], &mut table.out),
        ConnectionFate::Reset,
        "it is not waited for the rest"
    );
    let mut table = Table::new(options());
    assert_eq!(
        table.handler.read(&mut table.caller, moment, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &mut table.out),
        ConnectionFate::Ends
    );
    assert_eq!(told(&table.out.bytes).status, 400);
}

#[test]
fn rows_are_seen_when_they_are_flushed() {
    let mut table = Table::new(options());
    assert_eq!(table.write(ROW).0, 204);
    let count = "SELECT COUNT(*) AS n FROM default.cpu";
    assert_eq!(table.query(count), r#""columns":[],"data":[],"row_count":0"#);
    table.at = Nanos(table.at.0 + 4_999_999_999);
    assert_eq!(table.query(count), r#""columns":[],"data":[],"row_count":0"#);
    table.at = Nanos(table.at.0 + 1);
    assert_eq!(table.query(count), r#""columns":["n"],"data":[[1]],"row_count":1"#);
    assert_eq!(table.write(ROW).0, 204);
    let flushed = table.ask(FLUSH, ADMIN, b"");
    let expected = r#"{"message":"All buffers flushed","status":"success"}"#;
    assert_eq!((flushed.status, &*flushed.body), (200, expected));
    assert_eq!(table.query(count), r#""columns":["n"],"data":[[2]],"row_count":1"#);
    let many = json!({"m": "mem", "columns": {"v": vec![1; 50_000]}}).to_string();
    assert_eq!(table.write(&many).0, 204);
    assert_eq!(
        table.query("SELECT COUNT(*) AS n FROM mem"),
        r#""columns":["n"],"data":[[50000]],"row_count":1"#
    );
}

#[test]
fn a_change_of_kind_makes_a_column_one_of_text() {
    let mut table = Table::new(options());
    assert_eq!(table.write(r#"{"m":"cpu","columns":{"time":[1],"v":[1]}}"#).0, 204);
    assert_eq!(table.write(r#"{"m":"cpu","columns":{"time":[2],"v":[1.5]}}"#).0, 204);
    table.ask(FLUSH, ADMIN, b"");
    let expected = r#""columns":["v"],"data":[["1"],["1.5"]],"row_count":2"#;
    assert_eq!(table.query("SELECT v FROM cpu ORDER BY time"), expected);
}

#[test]
fn queries_are_answered_as_the_real_server_answers_them() {
    let mut table = Table::new(options());
    let at = "x-arc-database: other\r\n";
    let row = packed(r#"{"m":"cpu","columns":{"time":[1700000000],"host":["a"],"v":[3.0]}}"#);
    assert_eq!(table.ask(WRITE, &format!("{ADMIN}{at}"), &row).status, 204);
    table.ask(FLUSH, ADMIN, b"");
    let cells = r#""data":[["2023-11-14T22:13:20.000000Z","a",3]],"row_count":1"#;
    assert_eq!(table.query("SELECT * FROM other.cpu"), format!(r#""columns":["time","host","v"],{cells}"#));
    let told = table.ask(QUERY, &format!("{JSON}{at}"), br#"{"sql":"SELECT v FROM cpu"}"#);
    assert!(told.body.starts_with(r#"{"success":true,"columns":["v"],"data":[[3]],"row_count":1,"#));
    assert!(told.body.ends_with(r#","timestamp":"2023-11-14T22:15:00Z"}"#), "{}", told.body);
    let told = table.ask("GET /api/v1/query/cpu?database=other", ADMIN, b"");
    assert!(told.status == 200 && told.body.contains(cells), "{told:?}");
    assert_eq!(table.ask("GET /api/v1/query/cpu?database=o%20o", ADMIN, b"").status, 400);
    assert_eq!(table.ask("GET /api/v1/query/cpu?limit=x", ADMIN, b"").status, 400);
    assert_eq!(table.ask("GET /api/v1/query/cpu?where=1", ADMIN, b"").status, 400);
    // But for a table that is not there, of which it shows no rows.
    let unknown = table.ask(QUERY, JSON, br#"{"sql":"SELECT * FROM nowhere.cpu"}"#);
    let names_those_there = unknown.body.contains("the database nowhere: there is other.cpu");
    assert!(unknown.status == 500 && names_those_there, "{unknown:?}");
    for (fields, body, status, expected) in [
        (ADMIN, r#"{"sql":"SELECT 1"}"#, 400, "Invalid request body: Unprocessable Entity"),
        (JSON, "{}", 400, "SQL query is required"),
        (JSON, r#"{"sql":" "}"#, 400, "SQL query is required"),
        (JSON, r#"{"sql":"DROP TABLE cpu"}"#, 400, "Dangerous SQL operation not allowed"),
        (JSON, r#"{"sql":"SELECT 1; SELECT 2"}"#, 400, "Multiple SQL statements are not allowed"),
        (JSON, r#"{"sql":"SELEC 1"}"#, 500, "arrow query failed: Parser Error: near \"SELEC\": syntax error"),
    ] {
        let told = table.ask(QUERY, fields, body.as_bytes());
        let value: serde_json::Value = serde_json::from_str(&told.body).unwrap();
        assert_eq!((told.status, value["error"].as_str()), (status, Some(expected)), "{body}");
        assert_eq!(value["success"], false);
    }
}

#[test]
fn what_a_query_may_take_is_bounded_and_said() {
    let mut table = Table::new(IngestOptions { max_payload: 4 << 20, ..options() });
    let mut why = |sql: &str| {
        let told = table.ask(QUERY, JSON, json!({"sql": sql}).to_string().as_bytes());
        let value: serde_json::Value = serde_json::from_str(&told.body).unwrap();
        (told.status, value["error"].as_str().unwrap_or_default().to_owned())
    };
    let value = "arrow query failed: Out of Memory Error: a value or a row of this target has at most 16 MiB";
    assert_eq!(why("SELECT printf('%.*c', 1000000000, 'x')"), (500, value.to_owned()));
    assert_eq!(why("SELECT length(printf('%.*c', 16000000, 'x'))"), (200, String::new()));
    let pattern = format!("SELECT 'a' LIKE '{}'", "%a".repeat(200));
    assert_eq!(why(&pattern), (500, "arrow query failed: LIKE or GLOB pattern too complex".to_owned()));
    let long = format!("SELECT 1 -- {}", "x".repeat(1 << 20));
    assert_eq!(why(&long), (400, "this target takes at most 1048576 bytes of SQL".to_owned()));
    let rows = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 5) \
                SELECT printf('%.*c', 15000000, 'x') FROM t";
    let result = "arrow query failed: the result is too large for this target: ask for less";
    assert_eq!(why(rows), (500, result.to_owned()));
}

#[test]
fn databases_and_measurements_are_listed() {
    let mut table = Table::new(options());
    assert_eq!(table.write(ROW).0, 204);
    table.ask(FLUSH, ADMIN, b"");
    let make = "POST /api/v1/databases";
    assert_eq!(table.ask(make, ADMIN, br#"{"name":"made"}"#).status, 201);
    let again = table.ask(make, ADMIN, br#"{"name":"made"}"#);
    assert_eq!((again.status, again.body), (409, error("Database 'made' already exists")));
    for body in [&b"{}"[..], br#"{"name":"a b"}"#, br#"{"name":"System"}"#, b"x"] {
        assert_eq!(table.ask(make, ADMIN, body).status, 400);
    }
    assert_eq!(table.ask(make, "x-api-key: writer\r\n", br#"{"name":"x"}"#).status, 403);
    let list = table.ask("GET /api/v1/databases", ADMIN, b"").body;
    let expected = r#"{"databases":[{"name":"default","measurement_count":1},{"name":"made","measurement_count":0}],"count":2}"#;
    assert_eq!(list, expected);
    let one = table.ask("GET /api/v1/databases/default/measurements", ADMIN, b"").body;
    assert_eq!(one, r#"{"database":"default","measurements":[{"name":"cpu"}],"count":1}"#);
    assert_eq!(table.ask("GET /api/v1/databases/none", ADMIN, b"").status, 404);
    let all = table.ask("GET /api/v1/measurements", ADMIN, b"").body;
    assert_eq!(
        all,
        r#"{"count":1,"measurements":[{"database":"default","measurement":"cpu"}],"success":true}"#
    );
    let none = table.ask("GET /api/v1/measurements?database=made", ADMIN, b"").body;
    assert_eq!(none, r#"{"count":0,"measurements":[],"success":true}"#);
    for path in ["GET /ready", "GET /health", "HEAD /ready"] {
        assert_eq!(table.ask(path, "", b"").status, 200, "{path}");
    }
}

#[test]
fn lines_are_written_to_the_database_that_is_named() {
    let mut table = Table::new(options());
    let lines = b"cpu,host=a v=1i 1700000000000000000\ncpu,host=b v=2i 1700000000000000000\nbad";
    for (path, fields) in [
        ("POST /api/v1/write/line-protocol", "x-arc-database: one\r\n"),
        ("POST /api/v2/write?org=o&bucket=two&precision=ns", ""),
        ("POST /write?db=three", ""),
        ("POST /write?db=other", "x-arc-database: four\r\n"),
    ] {
        assert_eq!(table.ask(path, &format!("{ADMIN}{fields}"), lines).status, 204, "{path}");
    }
    table.ask(FLUSH, ADMIN, b"");
    for database in ["one", "two", "three", "four"] {
        let expected = r#""columns":["n","s"],"data":[[2,3]],"row_count":1"#;
        assert_eq!(table.query(&format!("SELECT COUNT(*) AS n, SUM(v) AS s FROM {database}.cpu")), expected);
    }
    assert_eq!(table.handler.api().counts.skipped, 4);
    for (path, body, expected) in [
        ("POST /write?precision=h", &lines[..], "invalid precision \"h\": must be ns, us, ms, or s"),
        ("POST /write", b"", "Empty request body"),
        ("POST /write", b"nothing", "No valid records in request"),
    ] {
        let told = table.ask(path, ADMIN, body);
        assert_eq!((told.status, told.body), (400, error(expected)), "{path}");
    }
}

#[test]
fn what_was_acknowledged_is_told_truly_also_of_lies() {
    for (kind, seen, expected) in [
        (LieKind::Lose, 0, r#""visible":0,"buffered":0,"kept":0,"lost":10,"duplicated":0,"late":0,"#),
        (LieKind::Duplicate, 20, r#""visible":20,"buffered":0,"kept":20,"lost":0,"duplicated":10,"late":0,"#),
        (LieKind::Late, 0, r#""visible":0,"buffered":0,"kept":0,"lost":0,"duplicated":0,"late":10,"#),
    ] {
        let lie = Some(Lie { kind, share: 1.0 });
        let mut table = Table::new(IngestOptions { lie, ..options() });
        for _ in 0..10 {
            assert_eq!(table.write(ROW).0, 204);
        }
        table.ask(FLUSH, ADMIN, b"");
        let told = table.ask("GET /plimsoll/acknowledged", ADMIN, b"").body;
        let rows = format!(r#""batches":10,"rows":10,{expected}"unacknowledged":0}}"#);
        assert!(told.contains(&rows), "{told}");
        let count = table.query("SELECT COUNT(*) AS n FROM cpu");
        assert!(if seen == 0 { count.contains("[]") } else { count.contains("[[20]]") }, "{count}");
    }
    let lie = Some(Lie { kind: LieKind::Unacknowledged, share: 1.0 });
    let mut table = Table::new(IngestOptions { lie, ..options() });
    assert_eq!(table.send(WRITE, ADMIN, &packed(ROW)), ConnectionFate::Reset);
    table.caller = Caller::default();
    let told = table.ask("GET /plimsoll/acknowledged", ADMIN, b"").body;
    assert!(told.contains(r#""rows":0,"visible":0,"buffered":1,"#), "{told}");
}

#[test]
fn failures_are_told_and_nothing_is_stored_of_them() {
    let mut table = Table::new(IngestOptions { fails: vec![(503, 1.0)], ..options() });
    assert_eq!(table.write(ROW), (503, error("refused on purpose")));
    let mut table = Table::new(IngestOptions { reset: 1.0, ..options() });
    assert_eq!(table.send(WRITE, ADMIN, &packed(ROW)), ConnectionFate::Reset);
    assert_eq!((table.handler.api().counts.writes, table.handler.api().counts.failures), (0, 1));
    let mut table = Table::new(IngestOptions { full_after: Some(60), ..options() });
    assert_eq!(table.write(ROW).0, 204);
    let full = "Failed to write records: write data: no space left on device";
    assert_eq!(table.write(ROW), (500, error(full)));
}

#[test]
fn replies_wait_for_their_time_and_for_those_before_them() {
    let delay = Delay::Constant(Nanos::from_millis(5));
    let mut table = Table::new(IngestOptions { delay, ..options() });
    assert_eq!(table.send(WRITE, ADMIN, &packed(ROW)), ConnectionFate::GoesOn);
    assert_eq!(table.send("GET /ready", "connection: close\r\n", b""), ConnectionFate::Ends);
    assert_eq!(table.out.bytes, b"");
    let due = table.at + Nanos::from_millis(5);
    let [first, second] = &table.out.later[..] else { panic!("{:?}", table.out) };
    assert_eq!(*first, (due, b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()));
    assert_eq!((second.0, told(&second.1).status), (due, 200));
}

#[test]
fn requests_may_be_pipelined_and_cut_anywhere() {
    let body = packed(ROW);
    let mut bytes = format!("{WRITE} HTTP/1.1\r\n{ADMIN}content-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(&body);
    let chunked =
        format!("{WRITE} HTTP/1.1\r\n{ADMIN}transfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len());
    bytes.extend_from_slice(chunked.as_bytes());
    bytes.extend_from_slice(&body);
    bytes.extend_from_slice(b"\r\n0\r\n\r\n");
    for size in [1, 7, 100, bytes.len()] {
        let mut table = Table::new(options());
        let moment = Moment { at: Nanos(0), unix: Nanos(0) };
        for piece in bytes.chunks(size) {
            assert_eq!(
                table.handler.read(&mut table.caller, moment, piece, &mut table.out),
                ConnectionFate::GoesOn
            );
        }
        assert_eq!(table.out.bytes, b"HTTP/1.1 204 No Content\r\n\r\n".repeat(2), "{size}");
    }
    let mut table = Table::new(options());
    let fields = format!("{ADMIN}expect: 100-continue\r\n");
    let head = format!("{WRITE} HTTP/1.1\r\n{fields}content-length: {}\r\n\r\n", body.len());
    let moment = Moment { at: Nanos(0), unix: Nanos(0) };
    table.handler.read(&mut table.caller, moment, head.as_bytes(), &mut table.out);
    assert_eq!(std::mem::take(&mut table.out.bytes), b"HTTP/1.1 100 Continue\r\n\r\n");
    table.handler.read(&mut table.caller, moment, &body, &mut table.out);
    assert_eq!(told(&table.out.bytes).status, 204);
}

#[test]
fn parameters_are_found_and_decoded() {
    let value = |query: &str, name: &str| {
        parameter(query.as_bytes(), name).map(|value| String::from_utf8_lossy(&value).into_owned())
    };
    assert_eq!(value("a=1&b=x%20y+z&c", "b").as_deref(), Some("x y z"));
    assert_eq!(value("a=1&b=x%20y+z&c", "c").as_deref(), Some(""));
    assert_eq!(value("a=1&b=2", "d"), None);
    assert_eq!(value("a=1=2", "a").as_deref(), Some("1=2"));
}

#[test]
fn other_protocols_are_answered_as_their_own_servers_do() {
    let mut table = Table::new(options());
    let snappy = |bytes: &[u8]| snap::raw::Encoder::new().compress_vec(bytes).unwrap();
    let media = |kind: &str| format!("{ADMIN}content-type: {kind}\r\n");
    // One gauge `m` with one data point; one span, one log record, each empty; one series `a` of one sample.
    let metrics = b"\x0a\x10\x12\x0e\x12\x0c\x0a\x01m\x2a\x07\x0a\x05\x3a\x03\x0a\x01k";
    let empty = b"\x0a\x04\x12\x02\x12\x00";
    let series = snappy(b"\x0a\x17\x0a\x08\x0a\x03job\x12\x01a\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x07");
    let push = br#"{"streams":[{"stream":{"a":"b"},"values":[["1","x"],["2","y"]]}]}"#;
    let bulk = b"{\"index\":{}}\n{\"a\":1}\n";
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let (protobuf, json) = (media("application/x-protobuf"), media("application/json"));
    for (path, fields, body, status) in [
        ("/v1/metrics", &protobuf, &metrics[..], 200),
        ("/v1/metrics", &protobuf, &gzip(metrics), 200),
        ("/v1/logs", &protobuf, empty, 200),
        ("/v1/traces", &protobuf, empty, 200),
        ("/v1/traces", &json, empty, 415),
        ("/v1/traces", &protobuf, b"\xFF", 400),
        ("/api/v1/write", &protobuf, &series, 204),
        (
            "/api/v1/write",
            &media("application/x-protobuf;proto=io.prometheus.write.v2.Request"),
            &series,
            415,
        ),
        ("/api/v1/write", &protobuf, b"\xFF", 400),
        ("/api/v1/write", &protobuf, &snappy(b"\xFF"), 400),
        ("/api/v1/write", &protobuf, &snappy(&vec![0; 2 << 20]), 400),
        ("/loki/api/v1/push", &json, push, 204),
        ("/loki/api/v1/push", &json, &gzip(push), 204),
        ("/loki/api/v1/push", &json, b"{}", 400),
        ("/logs-app/_bulk", &media("application/x-ndjson"), bulk, 200),
        ("/_bulk", &media("application/x-ndjson"), bulk, 400),
        ("/_bulk", &media("text/plain"), bulk, 406),
        ("/insert/jsonline?_time_field=t", &media("text/plain"), b"{\"t\":1,\"a\":2}\n", 200),
        ("/insert/jsonline", &json, b"{", 400),
    ] {
        let told = table.ask(&format!("POST {path}"), fields, body);
        assert_eq!(told.status, status, "{path} {}", told.body);
    }
    table.ask(FLUSH, ADMIN, b"");
    for (name, rows) in [
        ("otlp.metrics", 2),
        ("otlp.logs", 1),
        ("otlp.spans", 1),
        ("prometheus.samples", 1),
        ("loki.entries", 4),
        ("elasticsearch.documents", 1),
        ("jsonlines.lines", 1),
    ] {
        let expected = format!(r#""columns":["n"],"data":[[{rows}]],"row_count":1"#);
        assert_eq!(table.query(&format!("SELECT COUNT(*) AS n FROM {name}")), expected, "{name}");
    }
    let refused = table.ask("POST /v1/traces", &protobuf, b"\xFF");
    assert_eq!(refused.body, "\x08\x03\x12\x2bthe payload is not a valid protobuf message");
    let full = IngestOptions { full_after: Some(0), ..options() };
    let mut table = Table::new(full);
    for (path, fields, body, status) in [
        ("/v1/metrics", &protobuf, &metrics[..], 503),
        ("/api/v1/write", &protobuf, &series, 500),
        ("/loki/api/v1/push", &json, push, 500),
        ("/i/_bulk", &json, bulk, 503),
    ] {
        let told = table.ask(&format!("POST {path}"), fields, body);
        assert!(told.status == status && told.body.contains("no space left on device"), "{path} {told:?}");
    }
}
