//! Services whose HTTP is right and whose answers are not: replicas of the Internet Computer, stores of
//! observability data, and REST resources.

use plimsoll_core::ErrorClass;

use super::{CHECK, Case, Command, Ends, OK, Speaks, Suite, kept};

const REJECTED: &[Ends] = &[Ends::Failed(ErrorClass::Rejected)];

/// The tables.
pub(super) fn suites() -> [Suite; 3] {
    let suite = |name, command, cases| Suite {
        name,
        speaks: Speaks::Http1,
        command,
        good_connections: 0,
        good: Vec::new(),
        cases,
    };
    [
        suite("canister", Command::Canister, canister()),
        suite("ingest", Command::Ingest, ingest()),
        suite("crud", Command::Crud, crud()),
    ]
}

/// A response with this status and body.
fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    [format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n").as_bytes(), body].concat()
}

/// A case whose server answers everything like this.
fn answering(name: &str, ends: &[Ends], status: &str, body: &[u8], args: &'static str) -> Case {
    Case::new(name, ends, kept(response(status, body))).with(args)
}

/// A text of CBOR, of fewer than 24 bytes (RFC 8949 section 3.1).
fn text(text: &str) -> Vec<u8> {
    [&[0x60 | text.len() as u8], text.as_bytes()].concat()
}

/// A map of CBOR that describes itself, as answers begin: its entries are keys and values in turn.
fn map(entries: &[Vec<u8>]) -> Vec<u8> {
    [&[0xd9, 0xd9, 0xf7, 0xa0 | (entries.len() / 2) as u8][..], &entries.concat()].concat()
}

/// Answers of replicas.
fn canister() -> Vec<Case> {
    let replied = |reply: Vec<u8>| map(&[text("status"), text("replied"), text("reply"), reply]);
    let good = replied([&[0xa1][..], &text("arg"), &[0x41, 7]].concat());
    let rejected = |message: Vec<u8>| {
        map(&[
            text("status"),
            text("rejected"),
            text("reject_code"),
            vec![4],
            text("reject_message"),
            message,
        ])
    };
    // A text, or bytes, of so many bytes as 32 bits tell.
    let long = |kind: u8, content: &[u8]| {
        [&[kind | 26][..], &(content.len() as u32).to_be_bytes(), content].concat()
    };
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("HTML", b"<html>it works</html>".to_vec()),
        ("JSON", b"{\"status\":\"replied\"}".to_vec()),
        ("bytes of nothing", vec![0xff; 1_000]),
        ("half an answer", good[..good.len() / 2].to_vec()),
        ("an answer and more", [&good[..], b"more"].concat()),
        ("a list", vec![0xd9, 0xd9, 0xf7, 0x80]),
        ("a map of nothing", map(&[])),
        ("a status of nobody", map(&[text("status"), text("nothing")])),
        ("a status that is a number", map(&[text("status"), vec![7]])),
        ("no reply", map(&[text("status"), text("replied")])),
        ("a reply that is a number", replied(vec![7])),
        ("a reply without an argument", replied(vec![0xa0])),
        ("an argument that is text", replied([&[0xa1][..], &text("arg"), &text("x")].concat())),
        ("bytes of 2^64 - 1", replied([&[0xa1][..], &text("arg"), &[0x5b], &[0xff; 8]].concat())),
        ("a map of 2^64 - 1", [&[0xd9, 0xd9, 0xf7, 0xbb][..], &[0xff; 8]].concat()),
        ("a list of 2^64 - 1", [&[0xd9, 0xd9, 0xf7, 0x9b][..], &[0xff; 8]].concat()),
        ("a list in a list, 100,000 times", vec![0x81; 100_000]),
        ("a tag of a tag, 100,000 times", vec![0xc1; 100_000]),
        ("lists without an end", vec![0x9f; 100_000]),
        ("a text that is no UTF-8", map(&[text("status"), vec![0x62, 0xff, 0xfe]])),
        ("reserved lengths", vec![0xd9, 0xd9, 0xf7, 0xbc, 0xbd, 0xbe]),
    ];
    let mut cases: Vec<Case> =
        bad.iter().map(|(name, body)| answering(name, CHECK, "200 OK", body, "")).collect();
    let escapes = long(0x60, b"\x1b[31m\x1b]0;owned\x07");
    cases.extend([
        answering("a good reply", OK, "200 OK", &good, ""),
        answering(
            "a reply of 1 MiB",
            OK,
            "200 OK",
            &replied([&[0xa1][..], &text("arg"), &long(0x40, &vec![0; 1 << 20])].concat()),
            "",
        ),
        answering("a reject with escapes", REJECTED, "200 OK", &rejected(escapes), ""),
        answering("a reject of 1 MiB", REJECTED, "200 OK", &rejected(long(0x60, &vec![b'x'; 1 << 20])), ""),
        answering("a reject that is a number", CHECK_OR_REJECTED, "200 OK", &rejected(vec![7]), ""),
    ]);
    // Updates: what should be a certificate is none.
    let certified =
        |certificate: Vec<u8>| map(&[text("status"), text("replied"), text("certificate"), certificate]);
    for (name, body) in [
        ("an update, no certificate", map(&[text("status"), text("replied")])),
        ("an update, a certificate of nothing", certified(vec![0x40])),
        ("an update, a certificate of garbage", certified(long(0x40, &[0xff; 1_000]))),
        (
            "an update, a certificate without a tree",
            certified(long(0x40, &map(&[text("signature"), vec![0x40]]))),
        ),
        (
            "an update, a tree of 100,000 forks",
            certified(long(0x40, &map(&[text("tree"), [0x83, 1].repeat(50_000)]))),
        ),
    ] {
        cases.push(answering(name, CHECK_OR_REJECTED, "200 OK", &body, "-u"));
    }
    // The submission is taken in, and the answer to the question for the outcome is none.
    cases.push(answering("an update, nothing", CHECK_OR_LOST, "200 OK", b"", "-u"));
    // Taken in, and then never heard of: the same answer is none to the question for the outcome.
    cases.push(answering(
        "an update that is taken in, and garbage",
        CHECK_OR_LOST,
        "202 Accepted",
        b"",
        "-u",
    ));
    cases
}

/// The reject has no words, but it is one; whether it counts depends on which of them is read first.
const CHECK_OR_REJECTED: &[Ends] = &[Ends::Failed(ErrorClass::Check), Ends::Failed(ErrorClass::Rejected)];
/// The submission was well answered. An answer to the question for the outcome that is none is a bad one, or
/// one to wait longer for.
const CHECK_OR_LOST: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::Check), Ends::TimedOut];

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
    // Neither that all is well nor that it is not is said: no acknowledgement.
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
    // partial_success is field 1: rejected_data_points, field 1, and error_message, field 2. What is no such
    // message says nothing, and counts by its status.
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

/// A creation without an id fails. An update asks for an id first, and does without where there is none. What
/// stands behind an item is not looked at.
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
    // An id that is used in a path is written so that it is one segment of it, or is none.
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
