//! Services whose HTTP is right and whose answers are not: stores of observability data, and REST resources.

use plimsoll_core::ErrorClass;

use super::{CHECK, Case, Ends, Load, OK, Speaks, Suite, kept};

pub(super) const REJECTED: &[Ends] = &[Ends::Failed(ErrorClass::Rejected)];

/// The tables.
pub(super) fn suites() -> [Suite; 2] {
    [suite("ingest", ingest_command, ingest()), suite("crud", crud_command, crud())]
}

/// The table of a service on HTTP/1.1, without a server that means no harm.
pub(super) fn suite(name: &'static str, command: fn(Load<'_>) -> String, cases: Vec<Case>) -> Suite {
    Suite { name, speaks: Speaks::Http1, command, good_connections: 0, good: Vec::new(), cases }
}

fn ingest_command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!(
        "ingest metrics --url http://{address} -n {requests} -c {connections} --batch-size 10 \
         --timeout {timeout}s"
    )
}

fn crud_command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!(
        "crud --leader http://{address} --total {requests} --concurrency {connections} --timeout {timeout}s"
    )
}

/// A response with this status and body.
fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    [format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n").as_bytes(), body].concat()
}

/// A case whose server answers everything like this.
pub(super) fn answering(name: &str, ends: &[Ends], status: &str, body: &[u8], args: &'static str) -> Case {
    Case::new(name, ends, kept(response(status, body))).with(args)
}

/// Answers of stores.
fn ingest() -> Vec<Case> {
    let deep = b"[".repeat(100_000);
    let bulk = "--format elastic-bulk";
    let otlp = "--format otlp-protobuf";
    let mut cases = vec![
        answering("204 with words", OK, "200 OK", b"what is this", ""),
        answering(
            "500 with escapes",
            &[Ends::Failed(ErrorClass::Status5xx)],
            "500 x",
            b"\x1b]0;owned\x07",
            "",
        ),
        answering(
            "a reason of 16 MiB",
            &[Ends::Failed(ErrorClass::Status4xx)],
            "400 x",
            &vec![b'x'; 16 << 20],
            "",
        ),
        answering("bulk: all is well", OK, "200 OK", b"{\"errors\":false,\"items\":[]}", bulk),
        answering(
            "bulk: errors",
            REJECTED,
            "200 OK",
            b"{\"errors\":true,\"items\":[{\"create\":{\"status\":400}}]}",
            bulk,
        ),
        answering(
            "bulk: errors, with escapes",
            REJECTED,
            "200 OK",
            b"{\"errors\":true,\"items\":[{\"create\":{\"error\":{\"reason\":\"\\u001b[31m\"}}}]}",
            bulk,
        ),
    ];
    // These say neither success nor failure, so they are not acknowledgements.
    for (name, body) in [
        ("bulk: nothing", &b""[..]),
        ("bulk: HTML", b"<html>it works</html>"),
        ("bulk: half an answer", b"{\"errors\":tr"),
        ("bulk: a list", b"[]"),
        ("bulk: errors that are a number", b"{\"errors\":7}"),
        ("bulk: a list in a list, 100,000 times", &deep),
        ("bulk: no UTF-8", b"{\"errors\":\"\xff\xfe\"}"),
        ("bulk: NUL", &[0; 1_000]),
    ] {
        cases.push(answering(name, CHECK, "200 OK", body, bulk));
    }
    // partial_success is field 1: rejected_data_points, field 1, and error_message, field 2. Other messages
    // say nothing, and the status counts.
    for (name, ends, body) in [
        ("OTLP: all is well", OK, &b""[..]),
        ("OTLP: a part is refused", REJECTED, b"\x0a\x02\x08\x05"),
        (
            "OTLP: a part of 2^64 - 1 is refused",
            REJECTED,
            b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ),
        ("OTLP: a number without an end", OK, &[0xff; 1_000]),
        ("OTLP: a message beyond the body", OK, b"\x0a\x7f\x08\x05"),
        ("OTLP: half a number", OK, b"\x0a\x02\x08\xff"),
        ("OTLP: a field of number 0", OK, b"\x02\x00"),
        ("OTLP: a group without an end", OK, &[0x0b; 100_000]),
        ("OTLP: HTML", OK, b"<html>it works</html>"),
    ] {
        cases.push(answering(name, ends, "200 OK", body, otlp));
    }
    cases
}

/// A creation without an id fails. An update asks for an id first, and does without where there is none.
/// Bytes behind an item are ignored.
const NO_ITEM: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::Extraction)];

/// Answers of resources.
fn crud() -> Vec<Case> {
    const MIX: &str = "--mode random --create-pct 50 --update-pct 50";
    let created = |id: &str| format!("{{\"id\":{id},\"name\":\"n\"}}").into_bytes();
    let mut cases = vec![
        answering("a good item", OK, "201 Created", &created("\"1\""), MIX),
        answering("a created item, 200 to everything", OK, "200 OK", &created("7"), MIX),
    ];
    let long = format!("\"{}\"", "x".repeat(1 << 16));
    // An id that is used in a path is either one segment of it, or unusable.
    let usable: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::Extraction), Ends::Failed(ErrorClass::Script)];
    for (name, id) in [
        ("an id with a line end", "\"1\\r\\nx-injected: yes\\r\\n\\r\\nGET /injected HTTP/1.1\""),
        ("an id with a space", "\"1 HTTP/1.1\""),
        ("an id with NUL", "\"1\\u0000\""),
        ("an id with escapes", "\"\\u001b[31m\""),
        ("an id that climbs", "\"../../../etc/passwd\""),
        ("an id with a question", "\"?a=b#c\""),
        ("an id of nothing", "\"\""),
        ("an id that is null", "null"),
        ("an id that is an object", "{\"a\":{}}"),
        ("an id of 10^999", "1e999"),
        ("an id with half a surrogate", "\"\\ud800\""),
        ("an id of 64 KiB", &long),
    ] {
        cases.push(answering(name, usable, "200 OK", &created(id), MIX));
    }
    for (name, body) in [
        ("nothing", &b""[..]),
        ("HTML", b"<html>it works</html>"),
        ("half an item", b"{\"id\":\"1"),
        ("an item and more", b"{\"id\":\"1\"} more"),
        ("a list", b"[]"),
        ("no id", b"{}"),
        ("no UTF-8", b"{\"id\":\"\xff\xfe\"}"),
        ("a list in a list, 100,000 times", &b"[".repeat(100_000)),
    ] {
        cases.push(answering(name, NO_ITEM, "200 OK", body, MIX));
    }
    cases
}
