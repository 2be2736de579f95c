//! Servers that break HTTP/2 (RFC 9113) and HPACK (RFC 7541), or use them to do harm.

use std::time::Duration;

use plimsoll_core::ErrorClass;

use super::{
    Act, CLOSED_BEFORE, CLOSED_WITHIN, Case, Ends, Frame, OK, On, PROTOCOL, RESET, Speaks, Suite, TIMED_OUT,
    TOO_LARGE, flooded,
};
use crate::hpack::write_literal;
use crate::http2::frame::{
    CONTINUATION, DATA, END, END_HEADERS, GOAWAY, HEADERS, PADDED, PING, PRIORITISED, PRIORITY, PUSH_PROMISE,
    RST_STREAM, SETTINGS, WINDOW_UPDATE, put_frame,
};

const STREAM_RESET: &[Ends] = &[Ends::Failed(ErrorClass::StreamReset)];
const STREAM_REFUSED: &[Ends] = &[Ends::Failed(ErrorClass::StreamRefused)];
const GONE_AWAY: &[Ends] = &[Ends::Failed(ErrorClass::GoAway)];
const WRONG_PROTOCOL: &[Ends] = &[Ends::Failed(ErrorClass::WrongProtocol)];

/// Acknowledges SETTINGS or PING.
const ACK: u8 = 1;
/// `:status: 200` (RFC 7541 appendix A, index 8).
const STATUS_200: &[u8] = &[0x88];

/// The table.
pub(super) fn suite() -> Suite {
    let parts = [
        greetings(),
        settings(),
        frames(),
        streams(),
        blocks(),
        messages(),
        windows(),
        floods(),
        goodbyes(),
        ends(),
        odd(),
    ];
    Suite {
        name: "HTTP/2",
        speaks: Speaks::Http2,
        command: super::http1::command,
        good_connections: 0,
        good: answer(reply()),
        cases: parts.into_iter().flatten().map(|case| Case { args: http2(case.args), ..case }).collect(),
    }
}

/// The arguments of a case, with those that every case has.
fn http2(args: &'static str) -> &'static str {
    match args {
        "" => "--http2 -m 1",
        "-b body" => "--http2 -m 1 -b body",
        "-X HEAD" => "--http2 -m 1 -X HEAD",
        other => other,
    }
}

fn frame(kind: u8, flags: u8, on: On, payload: impl Into<Vec<u8>>) -> Act {
    Act::Frame(Frame { kind, flags, on, payload: payload.into() })
}

/// Returns the act that sends a frame on the stream of the request.
pub fn here(kind: u8, flags: u8, payload: impl Into<Vec<u8>>) -> Act {
    frame(kind, flags, On::Request, payload)
}

/// Returns the act that sends a frame on the connection.
pub fn aside(kind: u8, flags: u8, payload: impl Into<Vec<u8>>) -> Act {
    frame(kind, flags, On::Number(0), payload)
}

/// The frames with which a server begins: SETTINGS, and the acknowledgement of those that came with the
/// client's preface.
fn hello_with(settings: &[u8]) -> Act {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, SETTINGS, 0, 0, settings);
    put_frame(&mut bytes, SETTINGS, ACK, 0, &[]);
    Act::Send(bytes)
}

/// A server that begins as it should and does this for each request.
fn answer(acts: Vec<Act>) -> Vec<Act> {
    [vec![hello_with(&[]), Act::Await], acts, vec![Act::Again]].concat()
}

/// Returns the acts of a server that greets as it should, does `acts` for its first request, and ends the
/// connection like this.
pub fn ending(acts: Vec<Act>, end: Act) -> Vec<Act> {
    [vec![hello_with(&[]), Act::Await], acts, vec![end]].concat()
}

/// A good response.
fn reply() -> Vec<Act> {
    vec![here(HEADERS, END_HEADERS, STATUS_200), here(DATA, END, b"hello")]
}

/// The head of a good response, and these acts.
fn begun(acts: Vec<Act>) -> Vec<Act> {
    [vec![here(HEADERS, END_HEADERS, STATUS_200)], acts].concat()
}

/// A response that is a head with this block.
fn head(block: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![here(HEADERS, END_HEADERS | END, block)]
}

/// Returns a field of a block of HPACK: a literal that is not indexed.
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_literal(&mut bytes, name, value);
    bytes
}

/// The block of a good response with this field.
fn and(name: &str, value: &str) -> Vec<u8> {
    [STATUS_200, &literal(name, value)].concat()
}

/// One setting (RFC 9113 section 6.5.1).
fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// Cases that end like this, of servers that begin well and do these acts for each request.
fn cases<const N: usize>(ends: &[Ends], table: [(&str, Vec<Act>); N]) -> impl Iterator<Item = Case> {
    table.map(|(name, acts)| Case::new(name, ends, answer(acts))).into_iter()
}

/// First bytes. A client sends no request before it has seen SETTINGS.
fn greetings() -> Vec<Case> {
    let first = |bytes: &[u8]| vec![Act::Send(bytes.to_vec()), Act::Close];
    vec![
        Case::new(
            "HTTP/1.1",
            WRONG_PROTOCOL,
            first(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
        ),
        Case::new(
            "HTTP/1.1 that is good",
            WRONG_PROTOCOL,
            first(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        ),
        Case::new("another protocol", WRONG_PROTOCOL, first(b"220 mail.example ESMTP ready\r\n")),
        Case::new("an alert of TLS", WRONG_PROTOCOL, first(b"\x15\x03\x03\0\x02\x02\x46")),
        Case::new("bytes of no protocol", WRONG_PROTOCOL, first(&[0xff; 100])),
        Case::new("the client's preface", WRONG_PROTOCOL, first(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
        Case::new("PING before SETTINGS", PROTOCOL, vec![aside(PING, 0, [0; 8]), Act::Hold]),
        Case::new("HEADERS before SETTINGS", PROTOCOL, [reply(), vec![Act::Hold]].concat()),
        Case::new("an acknowledgement before SETTINGS", PROTOCOL, vec![aside(SETTINGS, ACK, []), Act::Hold]),
        Case::new("GOAWAY before SETTINGS", PROTOCOL, vec![aside(GOAWAY, 0, [0; 8]), Act::Hold]),
        Case::new("no SETTINGS", TIMED_OUT, vec![Act::Hold]),
        Case::new("half of SETTINGS", TIMED_OUT, vec![Act::Send(b"\0\0\0\x04".to_vec()), Act::Hold]),
        Case::new("half of SETTINGS, and the end", CLOSED_BEFORE, first(b"\0\0\0\x04")),
        Case::new("nothing but the end", CLOSED_BEFORE, vec![Act::Close]),
        Case::new("SETTINGS and the end", CLOSED_BEFORE, ending(vec![], Act::Close)),
        Case::new(
            "no acknowledgement",
            OK,
            [vec![Act::Send(b"\0\0\0\x04\0\0\0\0\0".to_vec()), Act::Await], reply(), vec![Act::Again]]
                .concat(),
        ),
    ]
}

/// Settings (RFC 9113 section 6.5).
fn settings() -> Vec<Case> {
    let set = |id, value| vec![aside(SETTINGS, 0, setting(id, value))];
    let mut list: Vec<Case> = cases(
        PROTOCOL,
        [
            ("SETTINGS of 5 bytes", vec![aside(SETTINGS, 0, [0; 5])]),
            ("SETTINGS of 7 bytes", vec![aside(SETTINGS, 0, [0; 7])]),
            ("an acknowledgement too many", vec![aside(SETTINGS, ACK, [])]),
            ("SETTINGS on a stream", vec![here(SETTINGS, 0, [])]),
            ("an acknowledgement with content", vec![aside(SETTINGS, ACK, setting(1, 0))]),
            ("ENABLE_PUSH of 1", set(2, 1)),
            ("ENABLE_PUSH of 2", set(2, 2)),
            ("an initial window of 2^31", set(4, 1 << 31)),
            ("a maximum frame size of 0", set(5, 0)),
            ("a maximum frame size of 16,383", set(5, 16_383)),
            ("a maximum frame size of 2^24", set(5, 1 << 24)),
            (
                "a good setting and a bad one",
                vec![aside(SETTINGS, 0, [setting(3, 10), setting(5, 1)].concat())],
            ),
        ],
    )
    .collect();
    let then_reply = |acts: Vec<Act>| [acts, reply()].concat();
    list.extend(cases(
        OK,
        [
            (
                "unknown settings",
                then_reply(vec![aside(SETTINGS, 0, [setting(0x99, 7), setting(0xffff, u32::MAX)].concat())]),
            ),
            ("no header table", then_reply(set(1, 0))),
            ("a header table of 2^32 - 1", then_reply(set(1, u32::MAX))),
            ("a header list of nothing", then_reply(set(6, 0))),
            (
                "1,000 settings in a frame",
                then_reply(vec![aside(SETTINGS, 0, setting(4, 65_535).repeat(1_000))]),
            ),
            (
                "a window that goes up and down",
                then_reply([set(4, 0), set(4, (1 << 31) - 1), set(4, 1)].concat()),
            ),
        ],
    ));
    // No stream may be opened: there is no answer, and no fault either.
    let none = vec![hello_with(&setting(3, 0)), Act::Hold];
    list.push(Case::new("no streams at all", TIMED_OUT, none));
    list
}

/// Frames whose length, flags or stream is wrong.
fn frames() -> Vec<Case> {
    let mut list: Vec<Case> = cases(
        PROTOCOL,
        [
            ("a DATA frame over the limit", begun(vec![here(DATA, END, [0; 16_385])])),
            ("a HEADERS frame over the limit", vec![here(HEADERS, END_HEADERS, [0; 16_385])]),
            ("an unknown frame over the limit", vec![here(0x77, 0, [0; 16_385])]),
            ("a frame of 2^24 - 1 bytes", vec![Act::Send(vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1])]),
            ("PING of 7 bytes", vec![aside(PING, 0, [0; 7])]),
            ("PING of 9 bytes", vec![aside(PING, 0, [0; 9])]),
            ("PING on a stream", vec![here(PING, 0, [0; 8])]),
            ("RST_STREAM of 3 bytes", vec![here(RST_STREAM, 0, [0; 3])]),
            ("RST_STREAM of 5 bytes", vec![here(RST_STREAM, 0, [0; 5])]),
            ("RST_STREAM on the connection", vec![aside(RST_STREAM, 0, [0; 4])]),
            ("GOAWAY of 7 bytes", vec![aside(GOAWAY, 0, [0; 7])]),
            ("GOAWAY on a stream", vec![here(GOAWAY, 0, [0; 8])]),
            ("WINDOW_UPDATE of 3 bytes", vec![aside(WINDOW_UPDATE, 0, [0, 0, 1])]),
            ("WINDOW_UPDATE of 5 bytes", vec![here(WINDOW_UPDATE, 0, [0, 0, 0, 1, 0])]),
            ("PRIORITY on the connection", vec![aside(PRIORITY, 0, [0, 0, 0, 0, 1])]),
            ("DATA on the connection", vec![aside(DATA, 0, b"hello")]),
            ("HEADERS on the connection", vec![aside(HEADERS, END_HEADERS, STATUS_200)]),
            ("CONTINUATION on the connection", vec![aside(CONTINUATION, END_HEADERS, STATUS_200)]),
            ("padding beyond a DATA frame", begun(vec![here(DATA, PADDED, [200, 1, 2, 3])])),
            ("padding as long as a DATA frame", begun(vec![here(DATA, PADDED, [4, 1, 2, 3])])),
            ("a padded DATA frame of nothing", begun(vec![here(DATA, PADDED, [])])),
            ("padding beyond a HEADERS frame", vec![here(HEADERS, END_HEADERS | PADDED, [9, 0x88])]),
            ("a padded HEADERS frame of nothing", vec![here(HEADERS, END_HEADERS | PADDED, [])]),
            ("half a priority in HEADERS", vec![here(HEADERS, END_HEADERS | PRIORITISED, [0, 0])]),
            ("garbage", vec![Act::Send(vec![0xff; 1_000])]),
            (
                "HTTP/1.1 after SETTINGS",
                vec![Act::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())],
            ),
        ],
    )
    .collect();
    let then_reply = |act: Act| [vec![act], reply()].concat();
    list.extend(cases(
        OK,
        [
            ("an unknown frame", then_reply(here(0x77, 0xff, b"what is this"))),
            (
                "ORIGIN and ALTSVC",
                [vec![aside(0xc, 0, b"\0\x05a.bcd"), aside(0xa, 0, b"\0\0h3=\":1\"")], reply()].concat(),
            ),
            ("PING", then_reply(aside(PING, 0, [1; 8]))),
            ("an acknowledgement of no PING", then_reply(aside(PING, ACK, [1; 8]))),
            (
                "unknown flags",
                vec![here(HEADERS, END_HEADERS | 0xd2, STATUS_200), here(DATA, END | 0xf6, b"hello")],
            ),
            (
                "the reserved bit of the stream",
                vec![frame(HEADERS, END_HEADERS, On::Beyond(1 << 31), STATUS_200), here(DATA, END, b"hello")],
            ),
            ("PRIORITY on an idle stream", then_reply(frame(PRIORITY, 0, On::Beyond(100), [0, 0, 0, 0, 1]))),
        ],
    ));
    // Breaches for which a receiver may end the stream or the connection, or which it may ignore (RFC 9113
    // section 5.3.1 and 6.3); the priority of a server has no meaning.
    let either = [Ends::Ok, Ends::Failed(ErrorClass::Protocol)];
    list.extend(cases(
        &either,
        [
            ("PRIORITY of 4 bytes", then_reply(here(PRIORITY, 0, [0; 4]))),
            ("a stream that depends on itself", then_reply(here(PRIORITY, 0, [0, 0, 0, 1, 1]))),
        ],
    ));
    list
}

/// Frames on streams where they may not be.
fn streams() -> Vec<Case> {
    let beyond = |kind, flags, payload: &[u8]| vec![frame(kind, flags, On::Beyond(1_000), payload)];
    let mut list: Vec<Case> = cases(
        PROTOCOL,
        [
            ("HEADERS on an idle stream", beyond(HEADERS, END_HEADERS, STATUS_200)),
            ("DATA on an idle stream", beyond(DATA, END, b"hello")),
            ("RST_STREAM on an idle stream", beyond(RST_STREAM, 0, &[0, 0, 0, 8])),
            ("WINDOW_UPDATE on an idle stream", beyond(WINDOW_UPDATE, 0, &[0, 0, 0, 1])),
            ("HEADERS on a stream of its own", vec![frame(HEADERS, END_HEADERS, On::Number(2), STATUS_200)]),
            ("DATA on a stream of its own", vec![frame(DATA, END, On::Number(2), b"hello")]),
            (
                "a push that was forbidden",
                vec![here(PUSH_PROMISE, END_HEADERS, [0, 0, 0, 2, 0x82, 0x84, 0x86])],
            ),
            (
                "a push on the connection",
                vec![aside(PUSH_PROMISE, END_HEADERS, [0, 0, 0, 2, 0x82, 0x84, 0x86])],
            ),
            ("a push of nothing", vec![here(PUSH_PROMISE, END_HEADERS, [0, 0])]),
            ("DATA before HEADERS", vec![here(DATA, 0, b"hello")]),
            ("DATA and the end before HEADERS", vec![here(DATA, END, b"hello")]),
            ("CONTINUATION of nothing", vec![here(CONTINUATION, END_HEADERS, STATUS_200)]),
            (
                "a header block that is interrupted",
                vec![here(HEADERS, 0, STATUS_200), here(DATA, 0, b"hello")],
            ),
            (
                "a header block that PING interrupts",
                vec![here(HEADERS, 0, STATUS_200), aside(PING, 0, [0; 8])],
            ),
            (
                "a header block that goes on elsewhere",
                vec![here(HEADERS, 0, STATUS_200), frame(CONTINUATION, END_HEADERS, On::Beyond(2), [0x88])],
            ),
            (
                "a header block that an unknown frame interrupts",
                vec![here(HEADERS, 0, STATUS_200), here(0x77, 0, [])],
            ),
        ],
    )
    .collect();
    // The response was whole before: the next request may be lost with the connection that is given up.
    let lost = [Ends::Ok, Ends::Failed(ErrorClass::Protocol)];
    let late = |act| [reply(), vec![act]].concat();
    list.extend(cases(
        &lost,
        [
            ("DATA on a closed stream", late(here(DATA, END, b"hello"))),
            ("HEADERS on a closed stream", late(here(HEADERS, END_HEADERS | END, STATUS_200))),
            ("RST_STREAM on a closed stream", late(here(RST_STREAM, 0, [0, 0, 0, 0]))),
            ("WINDOW_UPDATE on a closed stream", late(here(WINDOW_UPDATE, 0, [0, 0, 0, 1]))),
        ],
    ));
    list
}

/// Header blocks that cannot be read.
fn blocks() -> Vec<Case> {
    let after_status = |rest: &[u8]| head([STATUS_200, rest].concat());
    let mut list: Vec<Case> = cases(
        PROTOCOL,
        [
            ("index 0", after_status(&[0x80])),
            ("an index that is not there", after_status(&[0xff, 0x7f])),
            ("the index of an entry that was never added", after_status(&[0xbe])),
            ("an index without an end", after_status(&[0xff; 30])),
            ("an index of 2^40", after_status(&[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20])),
            ("half an index", after_status(&[0xff])),
            ("a name without its length", after_status(&[0x00])),
            ("a name beyond the block", after_status(&[0x00, 0x7e, b'a'])),
            ("a value beyond the block", after_status(&[0x00, 0x01, b'a', 0x7e, b'b'])),
            ("a value of 2^32 bytes", after_status(&[0x00, 0x01, b'a', 0x7f, 0x81, 0xff, 0xff, 0xff, 0x0f])),
            ("Huffman code with zeros behind", after_status(&[0x00, 0x01, b'a', 0x81, 0x18])),
            ("Huffman code with a byte too many", after_status(&[0x00, 0x01, b'a', 0x82, 0x1f, 0xff])),
            (
                "Huffman code with its end inside",
                after_status(&[0x00, 0x01, b'a', 0x84, 0xff, 0xff, 0xff, 0xff]),
            ),
            ("a table over the limit", head([0x3f, 0xff, 0x7f, 0x88])),
            ("a table of 2^40", head([0x3f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0x88])),
            ("a table that changes in the block", head([0x88, 0x20])),
        ],
    )
    .collect();
    list.extend(cases(
        OK,
        [
            ("a table of nothing, and of 4,096 again", head([0x20, 0x3f, 0xe1, 0x1f, 0x88])),
            (
                "an entry larger than the table",
                after_status(
                    &[&[0x40, 1, b'a', 0x7f, 0x80 | 28, 40][..], &[b'x'; 127 + 28 + 40 * 128]].concat(),
                ),
            ),
            ("a field never to be indexed", after_status(&[0x10, 1, b'a', 1, b'b'])),
            (
                "trailers behind a block in many frames",
                [
                    vec![here(HEADERS, 0, [])],
                    STATUS_200.iter().map(|byte| here(CONTINUATION, 0, [*byte])).collect(),
                    vec![
                        here(CONTINUATION, END_HEADERS, []),
                        here(HEADERS, END_HEADERS | END, literal("a", "b")),
                    ],
                ]
                .concat(),
            ),
        ],
    ));
    // A few bytes that stand for many: a field of 4,000 bytes that is put into the table once, and named from
    // there until the list would have 40 MB.
    let stored = [&[0x88, 0x40, 1, b'a', 0x7f, 0x80 | 28, 30][..], &[b'x'; 127 + 28 + 30 * 128]].concat();
    let bomb = [stored, vec![0xbe; 10_000]].concat();
    list.push(Case::new("a list that is a bomb", TOO_LARGE, answer(head(bomb))));
    let fields = literal("x-filler", &"x".repeat(100)).repeat(140);
    let long = [
        vec![here(HEADERS, END, STATUS_200)],
        vec![here(CONTINUATION, 0, fields); 20],
        vec![here(CONTINUATION, END_HEADERS, [])],
    ]
    .concat();
    // A block that is not read to its end leaves the table of the connection unknown.
    list.push(Case::new("a list of 300 KB", PROTOCOL, answer(long)));
    list
}

/// Messages whose fields or content are wrong: the stream is reset, and the connection goes on.
fn messages() -> Vec<Case> {
    let sized = |length: &str, content: Vec<Act>| {
        [vec![here(HEADERS, END_HEADERS, and("content-length", length))], content].concat()
    };
    let hello = || here(DATA, END, b"hello");
    let trailers = |flags: u8, block: Vec<u8>| {
        begun(vec![here(DATA, 0, b"hello"), here(HEADERS, END_HEADERS | flags, block)])
    };
    let status = |value: &str| literal(":status", value);
    let mut list: Vec<Case> = cases(
        PROTOCOL,
        [
            ("no status", head(literal("a", "b"))),
            ("an empty block", head([])),
            ("two statuses", head([STATUS_200, STATUS_200].concat())),
            ("a status of letters", head(status("2x0"))),
            ("a status of two digits", head(status("20"))),
            ("a status of four digits", head(status("2000"))),
            ("a status of nothing", head(status(""))),
            ("a status of 99", head(status("099"))),
            ("a status behind a field", head([&literal("a", "b"), STATUS_200].concat())),
            ("a pseudo-field of requests", head(and(":path", "/"))),
            ("an unknown pseudo-field", head(and(":nobody", "x"))),
            ("a name in upper case", head(and("Server", "x"))),
            ("a name of nothing", head(and("", "x"))),
            ("a name with a space", head(and("a b", "x"))),
            ("a name with a colon", head(and("a:b", "x"))),
            ("NUL in a value", head(and("a", "b\0c"))),
            ("a line end in a value", head(and("a", "b\r\nc: d"))),
            ("a value with a space in front", head(and("a", " b"))),
            ("connection", head(and("connection", "close"))),
            ("transfer-encoding", head(and("transfer-encoding", "chunked"))),
            ("keep-alive", head(and("keep-alive", "timeout=5"))),
            ("upgrade", head(and("upgrade", "h2c"))),
            ("a length of letters", sized("five", vec![hello()])),
            ("a negative length", sized("-5", vec![hello()])),
            (
                "two lengths that differ",
                vec![
                    here(
                        HEADERS,
                        END_HEADERS,
                        [and("content-length", "5"), literal("content-length", "6")].concat(),
                    ),
                    hello(),
                ],
            ),
            ("less content than its length", sized("10", vec![hello()])),
            ("more content than its length", sized("3", vec![hello()])),
            ("no content for a length", vec![here(HEADERS, END_HEADERS | END, and("content-length", "5"))]),
            ("204 with content", vec![here(HEADERS, END_HEADERS, [0x89]), hello()]),
            ("101", head(status("101"))),
            ("an interim response that ends the stream", head(status("103"))),
            ("DATA behind an interim response", vec![here(HEADERS, END_HEADERS, status("103")), hello()]),
            ("trailers without an end", trailers(0, literal("a", "b"))),
            ("trailers with a status", trailers(END, STATUS_200.to_vec())),
            ("trailers with a name in upper case", trailers(END, literal("A", "b"))),
            (
                "100 without an end",
                vec![Act::Repeat(1_000, Box::new(here(HEADERS, END_HEADERS, status("100"))))],
            ),
        ],
    )
    .collect();
    list.extend(cases(
        OK,
        [
            (
                "hints before, trailers behind",
                [vec![here(HEADERS, END_HEADERS, status("103"))], trailers(END, literal("checksum", "none"))]
                    .concat(),
            ),
            (
                "padding everywhere",
                vec![
                    here(HEADERS, END_HEADERS | PADDED, [3, 0x88, 0, 0, 0]),
                    here(DATA, PADDED, [2, b'h', b'i', 0, 0]),
                    here(DATA, PADDED | END, [0]),
                ],
            ),
            ("DATA of nothing at the end", begun(vec![here(DATA, 0, b"hello"), here(DATA, END, [])])),
            (
                "content-encoding of no gzip",
                vec![here(HEADERS, END_HEADERS, and("content-encoding", "gzip")), hello()],
            ),
        ],
    ));
    let head_length = vec![here(HEADERS, END_HEADERS | END, and("content-length", "5"))];
    list.push(Case::new("HEAD with a length", OK, answer(head_length)).with("-X HEAD"));
    list.push(Case::new("HEAD with content", PROTOCOL_OR_OK, answer(reply())).with("-X HEAD"));
    list
}

/// Content of an answer to HEAD is malformed (RFC 9110 section 9.3.2), but a receiver may discard it.
const PROTOCOL_OR_OK: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::Protocol)];

/// Windows.
fn windows() -> Vec<Case> {
    let most = i32::MAX.to_be_bytes();
    let piece = || Box::new(here(DATA, 0, [b'x'; 16_384]));
    let mut list: Vec<Case> = cases(
        PROTOCOL,
        [
            ("a window update of nothing", vec![aside(WINDOW_UPDATE, 0, [0; 4])]),
            ("a window update of nothing on a stream", vec![here(WINDOW_UPDATE, 0, [0; 4])]),
            ("a window of the connection that overflows", vec![aside(WINDOW_UPDATE, 0, most)]),
            (
                "a window of a stream that overflows",
                vec![here(WINDOW_UPDATE, 0, most), here(WINDOW_UPDATE, 0, most)],
            ),
            (
                "a setting that overflows a window",
                vec![here(WINDOW_UPDATE, 0, most), aside(SETTINGS, 0, setting(4, i32::MAX as u32))],
            ),
        ],
    )
    .collect();
    // 4 MiB for windows of 64 KiB. The excess is detected, unless the windows were opened by then.
    let heedless = begun(vec![Act::Repeat(256, piece()), here(DATA, END, [])]);
    let heedless = Case::new("content that heeds no window", PROTOCOL_OR_OK, answer(heedless));
    list.push(heedless.with("--http2 -m 1 --window-bits 16 --connection-window-bits 16"));
    // The body of the request cannot be sent.
    let closed = vec![hello_with(&setting(4, 0)), Act::Await, Act::Hold];
    list.push(Case::new("a window that never opens", TIMED_OUT, closed).with("-b body"));
    let drops = vec![
        hello_with(&setting(4, 1)),
        Act::Await,
        Act::Repeat(10, Box::new(here(WINDOW_UPDATE, 0, [0, 0, 0, 1]))),
        Act::Hold,
    ];
    list.push(Case::new("a window that opens byte by byte", TIMED_OUT, drops).with("-b body"));
    let early = answer(reply());
    list.push(Case::new("an answer before the request has ended", OK, early).with("-b body"));
    list
}

/// Frames that cost work and bring nothing on.
fn floods() -> Vec<Case> {
    let one = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, kind, flags, stream, payload);
        flooded(&bytes.repeat(1_000), 100)
    };
    let filler = literal("x-filler", &"x".repeat(100)).repeat(100);
    let mut list: Vec<Case> = cases(
        PROTOCOL,
        [
            ("SETTINGS without an end", vec![one(SETTINGS, 0, 0, &setting(4, 65_535))]),
            ("PING without an end", vec![one(PING, 0, 0, &[0; 8])]),
            ("acknowledgements without an end", vec![one(SETTINGS, ACK, 0, &[])]),
            ("PRIORITY without an end", vec![one(PRIORITY, 0, 1, &[0, 0, 0, 0, 1])]),
            ("unknown frames without an end", vec![one(0x77, 0, 0, &[])]),
            ("DATA of nothing without an end", begun(vec![one(DATA, 0, 1, &[])])),
            (
                "CONTINUATION of nothing without an end",
                vec![here(HEADERS, 0, STATUS_200), one(CONTINUATION, 0, 1, &[])],
            ),
            (
                "CONTINUATION of much without an end",
                vec![
                    here(HEADERS, 0, STATUS_200),
                    Act::Repeat(1_000, Box::new(here(CONTINUATION, 0, filler))),
                ],
            ),
        ],
    )
    .map(|case| Case { acts: [case.acts, vec![Act::Hold]].concat(), ..case })
    .collect();
    // The stream of the first request of each connection: the flood meets no other.
    for case in &mut list {
        case.acts.retain(|act| !matches!(act, Act::Again));
    }
    // Each moves the window by a byte, which is what such a frame is for; 100,000 of them do not overflow.
    let updates =
        [vec![hello_with(&[]), Act::Await], vec![one(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]), Act::Hold]];
    list.push(Case::new("window updates without an end", TIMED_OUT, updates.concat()));
    let resets = vec![Act::Repeat(20_000, Box::new(here(RST_STREAM, 0, [0, 0, 0, 8])))];
    // The first of them ends the request.
    list.push(Case::new("RST_STREAM without an end", RESET_OR_PROTOCOL, answer(resets)));
    let endless = begun(vec![Act::Repeat(100_000, Box::new(here(DATA, 0, [b'x'; 1])))]);
    list.push(Case::new("content without an end, byte by byte", TIMED_OUT, ending(endless, Act::Hold)));
    list
}

/// The first reset ends a request, and those that follow may end the connection with the next one on it.
const RESET_OR_PROTOCOL: &[Ends] =
    &[Ends::Failed(ErrorClass::StreamReset), Ends::Failed(ErrorClass::Protocol)];

/// Streams that are reset, and connections that are said to end.
fn goodbyes() -> Vec<Case> {
    let reset = |code: u32| vec![here(RST_STREAM, 0, code.to_be_bytes())];
    let goodbye = |last: u32, code: u32, debug: &[u8]| {
        aside(GOAWAY, 0, [&last.to_be_bytes()[..], &code.to_be_bytes(), debug].concat())
    };
    let mut list: Vec<Case> = Vec::new();
    list.extend(cases(
        STREAM_RESET,
        [
            ("a reset with INTERNAL_ERROR", reset(2)),
            ("a reset with CANCEL", reset(8)),
            ("a reset with no error before the response", reset(0)),
            ("a reset with an unknown code", reset(u32::MAX)),
            (
                "a reset in the content",
                begun(vec![here(DATA, 0, b"hello"), here(RST_STREAM, 0, [0, 0, 0, 2])]),
            ),
        ],
    ));
    list.extend(cases(STREAM_REFUSED, [("a refused stream", reset(7))]));
    let early = [reply(), vec![here(RST_STREAM, 0, [0; 4])]].concat();
    list.extend(cases(OK, [("a reset with no error behind the response", early)]));
    list.extend([
        Case::new(
            "GOAWAY that leaves the request out",
            GONE_AWAY,
            ending(vec![goodbye(0, 0, b"")], Act::Hold),
        ),
        Case::new(
            "GOAWAY with an error",
            GONE_AWAY,
            ending(vec![goodbye(0, 2, b"\x1b[31mred\x07")], Act::Hold),
        ),
        Case::new(
            "GOAWAY with 16 KiB of words",
            GONE_AWAY,
            ending(vec![goodbye(0, 11, &[b'x'; 16_376])], Act::Hold),
        ),
        Case::new(
            "GOAWAY that takes the request in, and silence",
            TIMED_OUT,
            ending(vec![goodbye(1, 0, b"")], Act::Hold),
        ),
        Case::new(
            "GOAWAY that takes the request in, and the end",
            &[Ends::Failed(ErrorClass::GoAway), Ends::Failed(ErrorClass::ClosedBeforeResponse)],
            ending(vec![goodbye(1, 0, b"")], Act::Close),
        ),
        Case::new(
            "GOAWAY, and the response",
            OK,
            ending([vec![goodbye(1, 0, b"")], reply()].concat(), Act::Hold),
        ),
        Case::new(
            "GOAWAY that takes back what it said",
            PROTOCOL_OR_GONE,
            ending(vec![goodbye(1, 0, b""), goodbye(i32::MAX as u32, 0, b"")], Act::Hold),
        ),
        Case::new(
            "GOAWAY again and again",
            PROTOCOL_OR_GONE,
            ending(vec![Act::Repeat(20_000, Box::new(goodbye(1, 0, b"")))], Act::Hold),
        ),
        Case::new(
            "GOAWAY before each request",
            GONE_OR_TIMED_OUT,
            vec![hello_with(&[]), goodbye(0, 0, b""), Act::Hold],
        ),
    ]);
    list
}

/// Requests that are under way are taken back; those that are not find no connection that takes them.
const GONE_OR_TIMED_OUT: &[Ends] = &[Ends::Failed(ErrorClass::GoAway), Ends::TimedOut];

/// The last stream must not grow (RFC 9113 section 6.8); a client that ignores this waits for the response in
/// vain.
const PROTOCOL_OR_GONE: &[Ends] =
    &[Ends::Failed(ErrorClass::Protocol), Ends::Failed(ErrorClass::GoAway), Ends::TimedOut];

/// Connections that end, or fall silent.
fn ends() -> Vec<Case> {
    let whole = Frame { kind: DATA, flags: END, on: On::Request, payload: b"hello".to_vec() };
    let block = Frame { kind: HEADERS, flags: END_HEADERS, on: On::Request, payload: STATUS_200.to_vec() };
    let part = |frame: &Frame, length| Act::Part(frame.clone(), length);
    // A reset may destroy bytes that were received before it.
    vec![
        Case::new(
            "the end in the head of a frame",
            CLOSED_WITHIN_OR_BEFORE,
            ending(vec![part(&block, 4)], Act::Close),
        ),
        Case::new(
            "the end behind the head of a frame",
            CLOSED_WITHIN_OR_BEFORE,
            ending(vec![part(&block, 9)], Act::Close),
        ),
        Case::new("the end behind HEADERS", CLOSED_WITHIN, ending(begun(vec![]), Act::Close)),
        Case::new("the end in DATA", CLOSED_WITHIN, ending(begun(vec![part(&whole, 12)]), Act::Close)),
        Case::new(
            "the end before the last DATA",
            CLOSED_WITHIN,
            ending(begun(vec![here(DATA, 0, b"hello")]), Act::Close),
        ),
        Case::new(
            "the end in a header block",
            CLOSED_WITHIN_OR_BEFORE,
            ending(vec![here(HEADERS, 0, STATUS_200)], Act::Close),
        ),
        Case::new("a reset of the connection", RESET, ending(vec![], Act::Reset)),
        Case::new(
            "a reset of the connection in DATA",
            RESET,
            ending(begun(vec![part(&whole, 12)]), Act::Reset),
        ),
        Case::new("silence", TIMED_OUT, ending(vec![], Act::Hold)),
        Case::new("silence behind HEADERS", TIMED_OUT, ending(begun(vec![]), Act::Hold)),
        Case::new("silence in DATA", TIMED_OUT, ending(begun(vec![part(&whole, 12)]), Act::Hold)),
        Case::new(
            "silence in a header block",
            TIMED_OUT,
            ending(vec![here(HEADERS, 0, STATUS_200)], Act::Hold),
        ),
    ]
}

/// A part of a frame is not part of a response yet: a stream has begun to be answered with its first whole
/// block.
const CLOSED_WITHIN_OR_BEFORE: &[Ends] =
    &[Ends::Failed(ErrorClass::ClosedBeforeResponse), Ends::Failed(ErrorClass::ClosedInResponse)];

/// Answers that are odd, and right.
fn odd() -> Vec<Case> {
    let (mut head, mut content) = (Vec::new(), Vec::new());
    put_frame(&mut head, HEADERS, END_HEADERS, 1, &and("a", "b"));
    put_frame(&mut content, DATA, END, 1, b"hello");
    let brief = Duration::from_millis(1);
    let large = begun(vec![Act::Repeat(6, Box::new(here(DATA, 0, [b'x'; 10_000]))), here(DATA, END, [])]);
    vec![
        // The first request of each connection is answered. The end of the connection is announced within the
        // answer: after it the next request may be on its way.
        Case::new(
            "byte by byte",
            OK,
            ending(
                vec![
                    Act::Drip(head, brief),
                    aside(GOAWAY, 0, [0, 0, 0, 1, 0, 0, 0, 0]),
                    Act::Drip(content, brief),
                ],
                Act::Hold,
            ),
        ),
        Case::new("content of 60,000 bytes", OK, answer(large)),
    ]
}
