//! Servers of gRPC that break its rules on an HTTP/2 that is right: statuses, messages and their lengths,
//! ends of calls.

use std::path::Path;

use plimsoll_testkit::hostile::frames::{
    CONTINUATION, DATA, END, END_HEADERS, FRAME_BYTES, GOAWAY, HEADERS, PING, RST_STREAM,
};
use plimsoll_testkit::hostile::{
    Act, CHECK, CLOSED_WITHIN, Case, Ends, ErrorClass, ErrorRow, Load, OK, PROTOCOL, RESET, Speaks, Suite,
    TIMED_OUT, aside, ending, here, literal,
};

/// A message whose field 1 is a text.
const MESSAGE: &[u8] = b"\0\0\0\0\x03\x0a\x01a";

/// The class of a status: here its name counts.
const fn row(name: &'static str) -> ErrorRow {
    ErrorRow { name, is_answer: true, is_of_server: false }
}

static UNKNOWN_STATUS: ErrorRow = row("grpc_unknown");
static INVALID_ARGUMENT: ErrorRow = row("grpc_invalid_argument");
static NOT_FOUND: ErrorRow = row("grpc_not_found");
static INTERNAL: ErrorRow = row("grpc_internal");
static UNAVAILABLE: ErrorRow = row("grpc_unavailable");

const UNKNOWN: &[Ends] = &[Ends::Failed(ErrorClass::Other(&UNKNOWN_STATUS))];
const INVALID: &[Ends] = &[Ends::Failed(ErrorClass::Other(&INVALID_ARGUMENT))];
const INCOMPLETE: &[Ends] = &[Ends::Failed(ErrorClass::StreamIncomplete)];
const STREAM_RESET: &[Ends] = &[Ends::Failed(ErrorClass::StreamReset)];

/// Returns the tables: of calls with one answer, and of those with a stream of them.
pub(crate) fn suites() -> [Suite; 2] {
    let unary = [answers(), statuses(), bodies(), compressed(), fields(), ends(), resets(), responses()];
    let suite = |name, command: fn(Load<'_>) -> String, cases: Vec<Case>| Suite {
        name,
        speaks: Speaks::Http2,
        command,
        good_connections: 0,
        good: served(whole()),
        cases,
    };
    [
        suite("gRPC", |load| command(load, "Echo"), unary.concat()),
        suite("gRPC streams", |load| command(load, "Repeat"), streams()),
    ]
}

fn command(load: Load<'_>, method: &str) -> String {
    let Load { address, requests, connections, timeout } = load;
    let proto = proto();
    format!(
        "grpc {address} plimsoll.sink.v1.Sink/{method} --proto {proto} -d {{\"text\":\"a\"}} -n {requests} \
         -c {connections} --streams 1 --timeout {timeout}s"
    )
}

/// The path of the file of the service that is called, which is that of the sink. The benchmark includes this
/// file, too, from another folder.
fn proto() -> String {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut files = folders.map(|folder| folder.join("ext/grpc/src/service/sink.proto"));
    files.find(|file| file.exists()).expect("it is in the repository").display().to_string()
}

/// A server that does this for each call.
fn served(acts: Vec<Act>) -> Vec<Act> {
    ending(acts, Act::Again)
}

/// The block of the head of an answer, with another content-type.
fn head_of(content_type: &str) -> Vec<u8> {
    [&[0x88][..], &literal("content-type", content_type)].concat()
}

/// The head of an answer.
fn head() -> Act {
    here(HEADERS, END_HEADERS, head_of("application/grpc"))
}

fn data(bytes: impl Into<Vec<u8>>) -> Act {
    here(DATA, 0, bytes)
}

/// Trailers with these fields, in as many frames as they need.
fn trailers(fields: &[(&str, &str)]) -> Vec<Act> {
    let mut block = Vec::new();
    fields.iter().for_each(|(name, value)| block.extend(literal(name, value)));
    let count = block.chunks(FRAME_BYTES).count().max(1);
    let mut parts = block.chunks(FRAME_BYTES);
    let part = |number: usize| {
        let (kind, flags) = if number == 0 { (HEADERS, END) } else { (CONTINUATION, 0) };
        let last = if number + 1 == count { END_HEADERS } else { 0 };
        here(kind, flags | last, parts.next().unwrap_or_default())
    };
    (0..count).map(part).collect()
}

fn done() -> Vec<Act> {
    trailers(&[("grpc-status", "0")])
}

/// An answer with these bytes in its body, and these trailers.
fn answer(body: &[u8], fields: &[(&str, &str)]) -> Vec<Act> {
    [vec![head()], body.chunks(FRAME_BYTES).map(data).collect(), trailers(fields)].concat()
}

/// A good answer.
fn whole() -> Vec<Act> {
    answer(MESSAGE, &[("grpc-status", "0")])
}

/// Cases that end like this, of servers that do these acts for each call.
fn cases(ends: &[Ends], table: Vec<(&str, Vec<Act>)>) -> Vec<Case> {
    table.into_iter().map(|(name, acts)| Case::new(name, ends, served(acts))).collect()
}

/// Answers that are odd, and good.
fn answers() -> Vec<Case> {
    let metadata: Vec<(String, String)> =
        (0..100).map(|number| (format!("x-{number}"), "y".repeat(20))).collect();
    let mut many: Vec<(&str, &str)> = vec![("grpc-status", "0")];
    many.extend(metadata.iter().map(|(name, value)| (&**name, &**value)));
    let with = |content_type: &str| {
        [vec![here(HEADERS, END_HEADERS, head_of(content_type)), data(MESSAGE)], done()].concat()
    };
    let ping = || aside(PING, 0, [7; 8]);
    cases(
        OK,
        vec![
            ("a good answer", whole()),
            (
                "a byte in a frame, and PING between",
                [vec![head()], MESSAGE.iter().flat_map(|byte| [data([*byte]), ping()]).collect(), done()]
                    .concat(),
            ),
            ("a message of nothing", answer(&[0; 5], &[("grpc-status", "0")])),
            ("a message that is no protobuf", answer(b"\0\0\0\0\x02\xff\xff", &[("grpc-status", "0")])),
            ("100 fields in the trailers", answer(MESSAGE, &many)),
            ("two statuses, and the last one is good", answer(MESSAGE, &[("grpc-status", "13"), many[0]])),
            ("a content-type with a codec", with("application/grpc+proto")),
            ("a content-type with parameters", with("application/grpc; charset=utf-8")),
            ("an encoding that is not used", {
                let block = [head_of("application/grpc"), literal("grpc-encoding", "snappy")].concat();
                [vec![here(HEADERS, END_HEADERS, block), data(MESSAGE)], done()].concat()
            }),
            (
                "an interim response",
                [vec![here(HEADERS, END_HEADERS, literal(":status", "103"))], whole()].concat(),
            ),
        ],
    )
}

/// Statuses that are missing or make no sense.
fn statuses() -> Vec<Case> {
    let status = |value: &str| answer(MESSAGE, &[("grpc-status", value)]);
    let alone = |fields: &[(&str, &str)]| {
        let mut block = head_of("application/grpc");
        fields.iter().for_each(|(name, value)| block.extend(literal(name, value)));
        vec![here(HEADERS, END_HEADERS | END, block)]
    };
    let mut list = cases(
        UNKNOWN,
        vec![
            ("no trailers", vec![head(), here(DATA, END, MESSAGE)]),
            ("trailers without a status", answer(MESSAGE, &[("x", "y")])),
            ("a head and no more", alone(&[])),
            ("a status of nothing", status("")),
            ("a status of letters", status("OK")),
            ("a status with a sign", status("-1")),
            ("a status with a plus", status("+0")),
            ("a status with a point", status("0.0")),
            ("a status of 17", status("17")),
            ("a status of 2^32", status("4294967296")),
            ("a status of 2^128", status("340282366920938463463374607431768211456")),
            ("a status of 10,000 digits", status(&"9".repeat(10_000))),
            ("a status of NUMERIC letters", status("\u{ff10}")),
            (
                "two statuses, and the last one is none",
                answer(MESSAGE, &[("grpc-status", "0"), ("grpc-status", "x")]),
            ),
        ],
    );
    for (name, class, acts) in [
        ("trailers only", ErrorClass::Other(&NOT_FOUND), alone(&[("grpc-status", "5")])),
        ("a message and a failure", ErrorClass::Other(&INTERNAL), status("13")),
        ("trailers only that are good, and no message", ErrorClass::Check, alone(&[("grpc-status", "0")])),
    ] {
        list.extend(cases(&[Ends::Failed(class)], vec![(name, acts)]));
    }
    // The status is in the head, where it is only if there is nothing else (PROTOCOL-HTTP2.md). It is what
    // the server said.
    let block = [head_of("application/grpc"), literal("grpc-status", "0")].concat();
    let early = vec![here(HEADERS, END_HEADERS, block), here(DATA, END, MESSAGE)];
    list.extend(cases(
        &[Ends::Ok, Ends::Failed(ErrorClass::Other(&UNKNOWN_STATUS))],
        vec![("a status in the head, and a message", early)],
    ));
    list
}

/// Bodies that are not one message.
fn bodies() -> Vec<Case> {
    let good = |body: &[u8]| answer(body, &[("grpc-status", "0")]);
    let large = [&b"\0\x01\x40\0\0"[..], &vec![0; 20 << 20]].concat();
    let mut list = cases(
        CHECK,
        vec![
            ("no message", good(b"")),
            ("half a prefix", good(&MESSAGE[..3])),
            ("a length beyond the body", good(&[&b"\0\0\0\0\x7f"[..], &MESSAGE[5..]].concat())),
            ("a length of 2^32 - 1", good(&[&b"\0\xff\xff\xff\xff"[..], &MESSAGE[5..]].concat())),
            ("a length before the end of the body", good(&[&b"\0\0\0\0\x01"[..], &MESSAGE[5..]].concat())),
            ("two messages", good(&MESSAGE.repeat(2))),
            ("10,000 messages of nothing", good(&[0; 50_000])),
            ("a compressed message without an encoding", good(b"\x01\0\0\0\x01a")),
            ("a flag of 2", good(b"\x02\0\0\0\0")),
            ("a flag of 255", good(b"\xff\0\0\0\0")),
            ("HTML", good(b"<html><h1>It works</h1></html>")),
        ],
    );
    // Bodies from 16 MiB on are not read.
    list.extend(cases(CHECK, vec![("a message of 20 MiB", good(&large))]));
    list
}

/// Zeros, compressed by gzip: `count` times 258 of them and one more (RFC 1951, fixed Huffman codes; RFC
/// 1952). The checksum at the end is left out, as a decoder sees it only when it has made all of them.
fn zeros(count: usize) -> Vec<u8> {
    let mut bits = Vec::new();
    // The last block, of type 1. Numbers begin with their lowest bit, codes with their highest one.
    bits.extend([true, true, false]);
    // The literal 0 is 0011_0000.
    bits.extend([false, false, true, true, false, false, false, false]);
    // A length of 258 is 1100_0101, a distance of 1 is 0_0000.
    let again = [true, true, false, false, false, true, false, true, false, false, false, false, false];
    bits.extend(std::iter::repeat_n(again, count).flatten());
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    bytes.extend(bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |all, bit| all << 1 | u8::from(*bit))));
    bytes
}

/// Answers to calls that allow compression.
fn compressed() -> Vec<Case> {
    let encoded = |encoding: &str, message: &[u8]| {
        let block = [head_of("application/grpc"), literal("grpc-encoding", encoding)].concat();
        let length = (message.len() as u32).to_be_bytes();
        let body = [&[1][..], &length, message].concat();
        [vec![here(HEADERS, END_HEADERS, block)], body.chunks(FRAME_BYTES).map(data).collect(), done()]
            .concat()
    };
    let list = cases(
        CHECK,
        vec![
            ("gzip: no gzip", encoded("gzip", b"what is this")),
            ("gzip: nothing", encoded("gzip", b"")),
            ("gzip: the head of a file", encoded("gzip", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])),
            ("gzip: 100 KB that are 70 MB", encoded("gzip", &zeros(280_000))),
            ("gzip: another encoding", encoded("snappy", b"\x03\x08\x0a\x01a")),
            ("gzip: an encoding that nobody has", encoded("\u{1f40c}", b"\x03")),
        ],
    );
    list.into_iter().map(|case| case.with("--gzip")).collect()
}

/// Fields that are odd or huge.
fn fields() -> Vec<Case> {
    let message = |value: &str| answer(b"", &[("grpc-status", "3"), ("grpc-message", value)]);
    let mut list = cases(
        INVALID,
        vec![
            ("a broken percent", message("100% of %zz and %4")),
            ("a percent at the end", message("%")),
            ("words that are not UTF-8", message("%ff%fe%80")),
            ("escapes", message("%1b%5b31m%1b%5d0;owned%07%0d%0a")),
            ("NUL", message("%00%00")),
            ("40 KB of words", message(&"%41".repeat(13_000))),
            ("two messages of a status", {
                answer(b"", &[("grpc-status", "3"), ("grpc-message", "a"), ("grpc-message", "b")])
            }),
            ("details that are no base64", {
                answer(b"", &[("grpc-status", "3"), ("grpc-status-details-bin", "%%%")])
            }),
        ],
    );
    let huge = "y".repeat(1_000_000);
    let too_large = &[Ends::Failed(ErrorClass::HeadTooLarge), Ends::Failed(ErrorClass::Protocol)];
    list.extend(cases(
        too_large,
        vec![("a field of 1 MB", answer(MESSAGE, &[("x", &huge), ("grpc-status", "0")]))],
    ));
    list
}

/// Ends in the middle of a call.
fn ends() -> Vec<Case> {
    let begun = || vec![head(), data(&MESSAGE[..6])];
    vec![
        Case::new("a head, and the end", CLOSED_WITHIN, ending(vec![head()], Act::Close)),
        Case::new("half a message, and the end", CLOSED_WITHIN, ending(begun(), Act::Close)),
        Case::new("a message, and the end", CLOSED_WITHIN, ending(vec![head(), data(MESSAGE)], Act::Close)),
        Case::new("half a message, and a reset", RESET_OR_CLOSED, ending(begun(), Act::Reset)),
        Case::new("a head, and silence", TIMED_OUT, ending(vec![head()], Act::Hold)),
        Case::new("half a message, and silence", TIMED_OUT, ending(begun(), Act::Hold)),
        Case::new("a message, and silence", TIMED_OUT, ending(vec![head(), data(MESSAGE)], Act::Hold)),
        Case::new("no answer before the deadline", TIMED_OUT, ending(vec![], Act::Hold))
            .with("--deadline 300ms"),
        Case::new(
            "DATA behind the trailers",
            OK_OR_PROTOCOL,
            served([whole(), vec![data(MESSAGE)]].concat()),
        ),
        Case::new("trailers twice", OK_OR_PROTOCOL, served([whole(), done()].concat())),
        Case::new(
            "trailers without an end",
            PROTOCOL,
            served(vec![head(), data(MESSAGE), here(HEADERS, END_HEADERS, literal("grpc-status", "0"))]),
        ),
    ]
}

/// A reset of the connection may destroy what had come before it.
const RESET_OR_CLOSED: &[Ends] = &[RESET[0], Ends::Failed(ErrorClass::ClosedInResponse)];

/// A call that has ended well is answered; the connection ends by the frame behind it, and may take the next
/// call with it.
const OK_OR_PROTOCOL: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::Protocol)];

/// The error codes of HTTP/2 (RFC 9113 section 7), and one that has no name.
const CODES: [(&str, u32); 15] = [
    ("NO_ERROR", 0),
    ("PROTOCOL_ERROR", 1),
    ("INTERNAL_ERROR", 2),
    ("FLOW_CONTROL_ERROR", 3),
    ("SETTINGS_TIMEOUT", 4),
    ("STREAM_CLOSED", 5),
    ("FRAME_SIZE_ERROR", 6),
    ("REFUSED_STREAM", 7),
    ("CANCEL", 8),
    ("COMPRESSION_ERROR", 9),
    ("CONNECT_ERROR", 10),
    ("ENHANCE_YOUR_CALM", 11),
    ("INADEQUATE_SECURITY", 12),
    ("HTTP_1_1_REQUIRED", 13),
    ("0xffff0000", 0xffff_0000),
];

/// Calls that are reset, and connections that go away under them.
fn resets() -> Vec<Case> {
    let reset = |code: u32| here(RST_STREAM, 0, code.to_be_bytes());
    let away = |last: u32, code: u32| aside(GOAWAY, 0, [last.to_be_bytes(), code.to_be_bytes()].concat());
    let mut list = Vec::new();
    for (name, code) in CODES {
        let refused = [Ends::Failed(ErrorClass::StreamRefused)];
        let ends: &[Ends] = if code == 7 { &refused } else { STREAM_RESET };
        list.push(Case::new(format!("a reset with {name}"), ends, served(vec![reset(code)])));
        let within = served(vec![head(), data(MESSAGE), reset(code)]);
        list.push(Case::new(format!("a message, and a reset with {name}"), ends, within));
        let gone = &[Ends::Failed(ErrorClass::GoAway)];
        list.push(Case::new(format!("GOAWAY with {name}"), gone, ending(vec![away(0, code)], Act::Hold)));
    }
    list.extend([
        Case::new(
            "GOAWAY within the answer, and the rest of it",
            OK,
            ending([vec![head(), away(1, 0), data(MESSAGE)], done()].concat(), Act::Hold),
        ),
        Case::new(
            "GOAWAY within the answer, and the end",
            &[Ends::Failed(ErrorClass::GoAway), Ends::Failed(ErrorClass::ClosedInResponse)],
            ending(vec![head(), data(MESSAGE), away(1, 0)], Act::Close),
        ),
    ]);
    list
}

/// Responses that are not of gRPC.
fn responses() -> Vec<Case> {
    let page = b"<html>502 Bad Gateway</html>";
    let of = |status: &str| {
        let block = [literal(":status", status), literal("content-type", "text/html")].concat();
        vec![here(HEADERS, END_HEADERS, block), here(DATA, END, page.as_slice())]
    };
    let block = |fields: &[(&str, &str)]| {
        let mut block = vec![0x88];
        fields.iter().for_each(|(name, value)| block.extend(literal(name, value)));
        here(HEADERS, END_HEADERS, block)
    };
    let mut list = Vec::new();
    for (status, class) in [
        ("502", ErrorClass::Status5xx),
        ("503", ErrorClass::Status5xx),
        ("404", ErrorClass::Status4xx),
        ("415", ErrorClass::Status4xx),
        ("302", ErrorClass::Other(&UNKNOWN_STATUS)),
        ("204", ErrorClass::Protocol),
        ("200", ErrorClass::Other(&UNKNOWN_STATUS)),
    ] {
        list.push(Case::new(format!("{status} and HTML"), &[Ends::Failed(class)], served(of(status))));
    }
    list.extend(cases(
        UNKNOWN,
        vec![
            ("an answer as text/html", {
                [vec![block(&[("content-type", "text/html")]), data(MESSAGE)], done()].concat()
            }),
            ("an answer as application/grpc-web", {
                [vec![block(&[("content-type", "application/grpc-web")]), data(MESSAGE)], done()].concat()
            }),
            ("an answer without a content-type", [vec![block(&[]), data(MESSAGE)], done()].concat()),
        ],
    ));
    let failed = [vec![here(HEADERS, END_HEADERS, literal(":status", "503"))], done()].concat();
    list.extend(cases(
        &[Ends::Failed(ErrorClass::Status5xx)],
        vec![("503 and a status that is good", failed)],
    ));
    list
}

/// Answers that are streams.
fn streams() -> Vec<Case> {
    let three = || MESSAGE.repeat(3);
    let reset = |code: u32| here(RST_STREAM, 0, code.to_be_bytes());
    let good = |body: &[u8]| answer(body, &[("grpc-status", "0")]);
    let mut list = cases(
        OK,
        vec![
            ("three messages", good(&three())),
            ("no message", good(b"")),
            ("100,000 messages of nothing", good(&[0; 500_000])),
            (
                "a byte in a frame",
                [vec![head()], three().iter().map(|byte| data([*byte])).collect(), done()].concat(),
            ),
        ],
    );
    list.extend(cases(
        UNKNOWN,
        vec![
            ("no trailers", vec![head(), here(DATA, END, three())]),
            ("a status of letters", answer(&three(), &[("grpc-status", "x")])),
        ],
    ));
    list.extend(cases(
        &[Ends::Failed(ErrorClass::Other(&UNAVAILABLE))],
        vec![("a status behind messages", { answer(&three(), &[("grpc-status", "14")]) })],
    ));
    let html = [&[0x88][..], &literal("content-type", "text/html")].concat();
    let html = vec![here(HEADERS, END_HEADERS, html), here(DATA, END, b"<html>".as_slice())];
    let long = good(b"\0\xff\xff\xff\xffabc");
    list.extend(cases(PROTOCOL, vec![("HTML", html), ("a length of 2^32 - 1", long)]));
    list.extend(cases(
        INCOMPLETE,
        vec![
            ("half a message", good(&three()[..20])),
            ("half a prefix", good(&three()[..18])),
            ("a length beyond the body", good(b"\0\0\0\0\x7fabc")),
        ],
    ));
    for (name, code) in CODES {
        let acts = served(vec![head(), data(three()), reset(code)]);
        let refused = [Ends::Failed(ErrorClass::StreamRefused)];
        let ends: &[Ends] = if code == 7 { &refused } else { INCOMPLETE };
        list.push(Case::new(format!("messages, and a reset with {name}"), ends, acts));
    }
    list.extend([
        Case::new("messages, and the end", INCOMPLETE, ending(vec![head(), data(three())], Act::Close)),
        Case::new(
            "messages, and a reset",
            RESET_OR_INCOMPLETE,
            ending(vec![head(), data(three())], Act::Reset),
        ),
        Case::new("messages, and silence", TIMED_OUT, ending(vec![head(), data(three())], Act::Hold)),
        Case::new("a message too few", INCOMPLETE, served(good(&three()))).with("--take 4"),
    ]);
    list
}

/// A reset of the connection may destroy what had come before it.
const RESET_OR_INCOMPLETE: &[Ends] = &[RESET[0], Ends::Failed(ErrorClass::StreamIncomplete)];
