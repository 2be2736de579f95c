//! Servers that break HTTP/1.1 (RFC 9112), or use it to do harm.

use std::time::Duration;

use plimsoll_core::ErrorClass;

use super::{
    Act, CLOSED_BEFORE, CLOSED_WITHIN, Case, Ends, Load, OK, PROTOCOL, RESET, Speaks, Suite, TIMED_OUT,
    TOO_LARGE, flooded, held, kept, once,
};

/// The authority is invalid.
const RESOLVE: &[Ends] = &[Ends::Failed(ErrorClass::Resolve)];
const REDIRECT: &[Ends] = &[Ends::Failed(ErrorClass::Redirect)];
const CLIENT_ERROR: &[Ends] = &[Ends::Failed(ErrorClass::Status4xx)];
const SERVER_ERROR: &[Ends] = &[Ends::Failed(ErrorClass::Status5xx)];

/// A whole and good response.
const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// The table.
pub(super) fn suite() -> Suite {
    let parts = [start_lines(), lengths(), chunks(), fields(), interim(), bodiless(), timing(), ends()];
    Suite {
        name: "HTTP/1.1",
        speaks: Speaks::Http1,
        command,
        good_connections: 0,
        good: kept(GOOD),
        cases: parts.into_iter().flatten().chain(redirects()).collect(),
    }
}

/// A run of plain requests.
pub(super) fn command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!("http://{address}/ -n {requests} -c {connections} --timeout {timeout}s")
}

/// A response with this head field, and five bytes of body.
fn with_field(field: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\nhello").into_bytes()
}

/// A response with this field beside its good length.
fn beside_length(field: &str) -> Vec<u8> {
    with_field(&format!("content-length: 5\r\n{field}"))
}

/// A response whose body is chunked like this.
fn chunked(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}").into_bytes()
}

/// First bytes that are none of a response, and odd ones that are.
fn start_lines() -> Vec<Case> {
    let line = |line: &str| format!("{line}\r\ncontent-length: 5\r\n\r\nhello");
    let refused = [
        ("no HTTP/2 was asked for", line("HTTP/2.0 200 OK")),
        ("a version that is none", line("HTTP/one 200 OK")),
        ("a version in lower case", line("http/1.1 200 OK")),
        ("no version", line("200 OK")),
        ("a status of two digits", line("HTTP/1.1 20 OK")),
        ("a status of four digits", line("HTTP/1.1 2000 OK")),
        ("a status of letters", line("HTTP/1.1 abc OK")),
        ("a negative status", line("HTTP/1.1 -20 OK")),
        ("a status of zero", line("HTTP/1.1 000 OK")),
        ("a status of 99", line("HTTP/1.1 099 OK")),
        ("no space behind the status", line("HTTP/1.1 200OK")),
        ("NUL in the reason", line("HTTP/1.1 200 O\0K")),
        ("an escape in the reason", line("HTTP/1.1 200 \x1b[31mOK")),
        ("a bare CR in the status line", line("HTTP/1.1 200 O\rK")),
        ("ICY", line("ICY 200 OK")),
        ("SMTP", "220 mail.example ESMTP ready\r\n".to_owned()),
        ("SSH", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n".to_owned()),
        ("HTTP/0.9", "<html><body>hello</body></html>\n".to_owned()),
        ("a request", "GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()),
        ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
    ];
    let fine = [
        ("two spaces before the status", line("HTTP/1.1  200 OK")),
        ("no reason", line("HTTP/1.1 200")),
        ("a reason in UTF-8", line("HTTP/1.1 200 Très bien")),
        ("empty lines before the status line", line("\r\n\r\nHTTP/1.1 200 OK")),
    ];
    let bytes: [(&str, &[u8]); 5] = [
        ("SETTINGS of HTTP/2", b"\0\0\0\x04\0\0\0\0\0"),
        ("an alert of TLS", b"\x15\x03\x03\0\x02\x02\x46"),
        ("a handshake of TLS", b"\x16\x03\x03\0\x7a\x02\0\0\x76\x03\x03"),
        ("bytes of nothing", b"\0\xff\x17\x03 no protocol at all\r\n\r\n"),
        ("NUL, a thousand times", &[0; 1_000]),
    ];
    let mut cases: Vec<Case> = Vec::new();
    cases.extend(refused.map(|(name, text)| Case::new(name, PROTOCOL, once(text))));
    cases.extend(bytes.map(|(name, bytes)| Case::new(name, PROTOCOL, once(bytes))));
    cases.extend(fine.map(|(name, text)| Case::new(name, OK, kept(text))));
    // HTTP/1.0 implies that the connection ends with the response.
    cases.push(Case::new("HTTP/1.0", OK, once(line("HTTP/1.0 200 OK"))));
    cases.push(Case::new("a status of 999", SERVER_ERROR, kept(line("HTTP/1.1 999 OK"))));
    let reason = format!("HTTP/1.1 200 {}", "x".repeat(1 << 20));
    cases.push(Case::new("a reason of 1 MiB", TOO_LARGE, once(line(&reason))));
    cases.push(Case::new(
        "a status line without an end",
        TOO_LARGE,
        flood(b"HTTP/1.1 200 ", &[b'x'; 4096], 4096),
    ));
    cases
}

/// A server that sends the first bytes, and then the others this many times.
fn flood(first: &[u8], more: &[u8], times: u32) -> Vec<Act> {
    vec![Act::Await, Act::Send(first.to_vec()), flooded(more, times), Act::Hold]
}

/// Bytes beyond a response end the connection. A request that was already sent on it fails too.
const OK_OR_PROTOCOL: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::Protocol)];

/// Lengths of bodies.
fn lengths() -> Vec<Case> {
    let refused = [
        ("a negative length", "content-length: -5"),
        ("a length with a sign", "content-length: +5"),
        ("a length in hexadecimal", "content-length: 0x5"),
        ("a length with a fraction", "content-length: 5.0"),
        ("a length with an exponent", "content-length: 1e3"),
        ("a length of two numbers", "content-length: 5 5"),
        ("a length of words", "content-length: five"),
        ("an empty length", "content-length:"),
        ("a length of 2^64", "content-length: 18446744073709551616"),
        ("a length of 40 digits", "content-length: 5555555555555555555555555555555555555555"),
        ("two lengths that differ", "content-length: 5\r\ncontent-length: 6"),
        ("a list of lengths that differ", "content-length: 5, 6"),
        ("a list of lengths with a gap", "content-length: 5,,5"),
        ("a length with a NUL", "content-length: 5\0"),
    ];
    let fine = [
        ("the same length twice", "content-length: 5\r\ncontent-length: 5"),
        ("a list of the same length", "content-length: 5, 5"),
        ("a length with zeros in front", "content-length: 0000000000000000000000005"),
        ("a length among spaces", "content-length: \t 5 \t"),
    ];
    let cut = [
        ("a body shorter than its length", "content-length: 100"),
        ("a length of 2^63", "content-length: 9223372036854775808"),
        ("a length of 2^64 - 1", "content-length: 18446744073709551615"),
    ];
    let mut cases = Vec::new();
    cases.extend(refused.map(|(name, field)| Case::new(name, PROTOCOL, once(with_field(field)))));
    cases.extend(fine.map(|(name, field)| Case::new(name, OK, kept(with_field(field)))));
    cases.extend(cut.map(|(name, field)| Case::new(name, CLOSED_WITHIN, once(with_field(field)))));
    // The response is whole; the connection is given up for the bytes behind it, without harm to a request.
    cases.push(Case::new(
        "a body longer than its length",
        OK,
        held("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhello"),
    ));
    cases.push(Case::new(
        "2^64 - 1 bytes that come",
        TIMED_OUT,
        flood(b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n", &[b'x'; 65_536], 100_000),
    ));
    cases.push(Case::new(
        "a body without a length and an end",
        TIMED_OUT,
        flood(b"HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 65_536], 100_000),
    ));
    cases.push(Case::new(
        "more than its length, without an end",
        OK_OR_PROTOCOL,
        flood(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", &[b'x'; 65_536], 100_000),
    ));
    cases
}

/// Chunks, and transfer codings.
fn chunks() -> Vec<Case> {
    let refused = [
        ("a chunk size of letters", "zz\r\nhello\r\n0\r\n\r\n"),
        ("a negative chunk size", "-5\r\nhello\r\n0\r\n\r\n"),
        ("a chunk size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
        ("an empty chunk size", "\r\nhello\r\n0\r\n\r\n"),
        ("a chunk size beyond 64 bits", "fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        ("a chunk longer than its size", "3\r\nhello\r\n0\r\n\r\n"),
        ("no line end behind a chunk", "5\r\nhello0\r\n\r\n"),
        ("a chunk size with NUL", "5\0\r\nhello\r\n0\r\n\r\n"),
        ("a chunk size of two numbers", "5 5\r\nhello\r\n0\r\n\r\n"),
        ("a trailer that is not a field", "5\r\nhello\r\n0\r\nno field\r\n\r\n"),
        ("a trailer with NUL", "5\r\nhello\r\n0\r\na: \0\r\n\r\n"),
    ];
    let fine = [
        ("extensions of chunks", "5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n"),
        ("a chunk size in upper case", "0000A\r\nhellohello\r\n000\r\n\r\n"),
        ("trailers", "5\r\nhello\r\n0\r\nchecksum: none\r\n\r\n"),
        ("a length among the trailers", "5\r\nhello\r\n0\r\ncontent-length: 100\r\n\r\n"),
        ("an encoding among the trailers", "5\r\nhello\r\n0\r\ntransfer-encoding: chunked\r\n\r\n"),
    ];
    let cut = [
        ("the end in a chunk size", "5"),
        ("the end behind a chunk size", "5\r\n"),
        ("the end in a chunk", "5\r\nhel"),
        ("the end behind a chunk", "5\r\nhello"),
        ("the end between chunks", "5\r\nhello\r\n"),
        ("the end in the last chunk", "5\r\nhello\r\n0\r\n"),
        ("the end in the trailers", "5\r\nhello\r\n0\r\na: b\r\n"),
        ("a chunk of 2^64 - 1 bytes", "ffffffffffffffff\r\nhello"),
    ];
    let mut cases = Vec::new();
    cases.extend(refused.map(|(name, body)| Case::new(name, PROTOCOL, once(chunked(body)))));
    cases.extend(fine.map(|(name, body)| Case::new(name, OK, kept(chunked(body)))));
    cases.extend(cut.map(|(name, body)| Case::new(name, CLOSED_WITHIN, once(chunked(body)))));
    let coded = |coding: &str| with_field(&format!("transfer-encoding: {coding}"));
    let body = "5\r\nhello\r\n0\r\n\r\n";
    let framed = |head: &str| format!("{head}\r\n\r\n{body}");
    cases.extend([
        Case::new("chunked twice", PROTOCOL, once(coded("chunked, chunked"))),
        // Not the last coding: the body ends with the connection (RFC 9112 section 6.3, rule 4).
        Case::new("chunked and then gzip", OK, once(coded("chunked, gzip"))),
        Case::new("an unknown coding", OK, once(coded("xchunked"))),
        Case::new(
            "gzip and then chunked, of no gzip",
            OK,
            kept(framed("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked")),
        ),
        Case::new(
            "a length beside chunks",
            OK,
            held(framed("HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked")),
        ),
        Case::new("chunks in HTTP/1.0", OK, held(framed("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked"))),
        Case::new(
            "a space behind the name of the coding",
            OK,
            kept(framed("HTTP/1.1 200 OK\r\ntransfer-encoding : chunked")),
        ),
        Case::new(
            "an extension without an end",
            TOO_LARGE_OR_PROTOCOL,
            flood(&chunked("5;"), &[b'x'; 4096], 4096),
        ),
        Case::new(
            "trailers without an end",
            TOO_LARGE,
            flood(&chunked("0\r\n"), &b"x-filler: xxxxxxxxxxxxxxxx\r\n".repeat(100), 10_000),
        ),
        Case::new(
            "chunks without an end",
            TIMED_OUT,
            flood(&chunked(""), &b"5\r\nhello\r\n".repeat(1_000), 100_000),
        ),
        Case::new(
            "ten thousand chunks of a byte",
            OK,
            kept(chunked(&format!("{}0\r\n\r\n", "1\r\nx\r\n".repeat(10_000)))),
        ),
    ]);
    cases
}

/// An extension is part of the framing, and neither a head nor a trailer: it is refused as the one or the
/// other.
const TOO_LARGE_OR_PROTOCOL: &[Ends] =
    &[Ends::Failed(ErrorClass::HeadTooLarge), Ends::Failed(ErrorClass::Protocol)];

fn fields() -> Vec<Case> {
    let refused = [
        ("a field without a colon", "no colon"),
        ("a field without a name", ": value"),
        ("a name with a space inside", "a b: value"),
        ("a name with NUL", "a\0b: value"),
        ("a name beyond ASCII", "naïve: value"),
        ("NUL in a value", "a: b\0c"),
        ("a bare CR in a value", "a: b\rc"),
        ("an escape in a value", "a: \x1b[31m"),
        ("DEL in a value", "a: \x7f"),
    ];
    let fine = [
        ("a folded field", "a: b\r\n c\r\n\td"),
        ("a space behind a name", "a : b"),
        ("a value beyond ASCII", "a: naïve"),
        ("an empty value", "a:"),
        ("content-encoding of no gzip", "content-encoding: gzip"),
        ("unknown content-encoding", "content-encoding: nothing, at, all"),
        ("a date of no calendar", "date: the day before yesterday"),
        ("a cookie of nonsense", "set-cookie: ;;;=;=;; Path=\r\nset-cookie: =\r\nset-cookie:"),
        ("connection of nonsense", "connection: ,,, ;;\r\nkeep-alive: timeout=-1, max=x"),
        ("an unwanted upgrade", "connection: upgrade\r\nupgrade: h2c"),
    ];
    let mut cases = Vec::new();
    cases.extend(refused.map(|(name, field)| Case::new(name, PROTOCOL, once(beside_length(field)))));
    cases.extend(fine.map(|(name, field)| Case::new(name, OK, kept(beside_length(field)))));
    let many = |count: usize| "x-filler: xxxxxxxxxxxxxxxxxxxxxxxx\r\n".repeat(count);
    cases.extend([
        Case::new("lines that end with LF alone", OK, kept("HTTP/1.1 200 OK\ncontent-length: 5\n\nhello")),
        Case::new("a folded first field", PROTOCOL, once(with_field(" folded: field\r\ncontent-length: 5"))),
        Case::new("100 fields", OK, kept(beside_length(many(100).trim_end()))),
        Case::new("10,000 fields", TOO_LARGE, once(beside_length(many(10_000).trim_end()))),
        Case::new("a field of 1 MiB", TOO_LARGE, once(beside_length(&format!("a: {}", "x".repeat(1 << 20))))),
        Case::new("a name of 1 MiB", TOO_LARGE, once(beside_length(&format!("{}: a", "x".repeat(1 << 20))))),
        Case::new(
            "fields without an end",
            TOO_LARGE,
            flood(b"HTTP/1.1 200 OK\r\n", many(100).as_bytes(), 10_000),
        ),
        Case::new(
            "a field without an end",
            TOO_LARGE,
            flood(b"HTTP/1.1 200 OK\r\na: ", &[b'x'; 4096], 10_000),
        ),
        Case::new(
            "empty lines without an end",
            TOO_LARGE_OR_PROTOCOL,
            flood(b"", &b"\r\n".repeat(2_000), 10_000),
        ),
    ]);
    cases
}

fn interim() -> Vec<Case> {
    let hint = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let proceed = b"HTTP/1.1 100 Continue\r\n\r\n";
    let after = |first: &[u8]| [first, GOOD].concat();
    vec![
        Case::new("100 without an end", PROTOCOL, flood(b"", &proceed.repeat(100), 1_000)),
        Case::new("103 without an end", PROTOCOL, flood(b"", &hint.repeat(100), 1_000)),
        Case::new("unrequested 101", PROTOCOL, once("HTTP/1.1 101 Switching Protocols\r\n\r\n")),
        Case::new("100 and the end", CLOSED_BEFORE, once(&proceed[..])),
        Case::new("100 and silence", TIMED_OUT, held(&proceed[..])),
        Case::new(
            "102, 103 and 199",
            OK,
            kept(after(&[&hint[..], b"HTTP/1.1 102\r\n\r\nHTTP/1.1 199 x\r\n\r\n"].concat())),
        ),
        Case::new(
            "100 with a length and no body",
            OK,
            kept(after(b"HTTP/1.1 100 Continue\r\ncontent-length: 5\r\n\r\n")),
        ),
        // An interim response has no body, even if it announces one: the five bytes are not a status line.
        Case::new(
            "100 with a body",
            PROTOCOL,
            once(after(b"HTTP/1.1 100 Continue\r\ncontent-length: 5\r\n\r\nhello")),
        ),
        Case::new("100 behind the response", OK, held([GOOD, &proceed[..]].concat())),
    ]
}

/// Responses that have no body, with one.
fn bodiless() -> Vec<Case> {
    let status = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\n\r\nhello");
    vec![
        Case::new("204 with a body", OK, held(status("204 No Content"))),
        Case::new("304 with a body", OK, held(status("304 Not Modified"))),
        Case::new("304 with a length and no body", OK, kept("HTTP/1.1 304 x\r\ncontent-length: 5\r\n\r\n")),
        Case::new("205 with a body", OK, kept(status("205 Reset Content"))),
        Case::new(
            "204 with chunks",
            OK,
            held("HTTP/1.1 204 x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ),
        Case::new("HEAD with a body", OK, held(GOOD)).with("-X HEAD"),
        Case::new(
            "HEAD with a length of 2^64 - 1",
            OK,
            kept("HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n"),
        )
        .with("-X HEAD"),
        Case::new("401 without a challenge", CLIENT_ERROR, kept(status("401 Unauthorized"))),
        Case::new("407 of no proxy", CLIENT_ERROR, kept(status("407 x"))),
        Case::new(
            "500 and the end in its body",
            CLOSED_WITHIN,
            once("HTTP/1.1 500 x\r\ncontent-length: 50\r\n\r\nhello"),
        ),
        Case::new(
            "503 whose body has escapes",
            SERVER_ERROR,
            kept("HTTP/1.1 503 x\r\ncontent-length: 5\r\n\r\n\x1b[31m"),
        ),
    ]
}

/// Redirects that are followed.
fn redirects() -> Vec<Case> {
    let to = |location: &str| kept(format!("HTTP/1.1 302 Found\r\n{location}content-length: 0\r\n\r\n"));
    let bad = [
        ("a redirect to half an address", "location: http://[::1/\r\n"),
        ("a redirect to a port that is none", "location: http://127.0.0.1:99999/\r\n"),
        ("a redirect to a user", "location: http://user:secret@/\r\n"),
        ("a redirect to itself", "location: /\r\n"),
        ("a redirect to nowhere", ""),
        ("a redirect to an empty place", "location:\r\n"),
        ("a redirect to a file", "location: file:///etc/passwd\r\n"),
        ("a redirect to gopher", "location: gopher://127.0.0.1:1/\r\n"),
    ];
    let case = |ends, (name, location)| Case::new(name, ends, to(location)).with("--follow-redirects");
    let mut all: Vec<_> = bad.into_iter().map(|row| case(REDIRECT, row)).collect();
    all.push(case(RESOLVE, ("a redirect with a user", "location: http://user:secret@127.0.0.1:1/\r\n")));
    all
}

/// Servers that take their time.
fn timing() -> Vec<Case> {
    let good = GOOD.to_vec();
    let brief = Duration::ZERO;
    let long = Duration::from_millis(100);
    vec![
        Case::new("silence", TIMED_OUT, vec![Act::Await, Act::Hold]),
        Case::new("silence that does not read", TIMED_OUT, vec![Act::Hold]),
        Case::new("silence in the status line", TIMED_OUT, held(&good[..10])),
        Case::new("silence in the head", TIMED_OUT, held(&good[..25])),
        Case::new("silence in the body", TIMED_OUT, held(&good[..good.len() - 1])),
        Case::new("silence in a chunk", TIMED_OUT, held(chunked("5\r\nhel"))),
        Case::new("silence for want of an end", TIMED_OUT, held("HTTP/1.1 200 OK\r\n\r\nhello")),
        Case::new("byte by byte", OK, vec![Act::Await, Act::Drip(good.clone(), brief), Act::Again]),
        Case::new(
            "byte by byte, and too slowly",
            TIMED_OUT,
            vec![Act::Await, Act::Drip(good.clone(), long), Act::Again],
        ),
        // A request may be under way when it comes, and then it looks like an answer.
        Case::new(
            "a response before the request",
            &[
                Ends::Ok,
                Ends::Failed(ErrorClass::UnsolicitedData),
                Ends::Failed(ErrorClass::ClosedBeforeResponse),
                Ends::Failed(ErrorClass::Reset),
            ],
            vec![Act::Send(good.clone()), Act::Close],
        ),
        // A second response may meet the next request.
        Case::new(
            "two responses to each request",
            &[Ends::Ok, Ends::Failed(ErrorClass::UnsolicitedData)],
            kept([GOOD, GOOD].concat()),
        ),
        Case::new("responses without an end", OK, flood(GOOD, &GOOD.repeat(100), 1_000)),
        Case::new("garbage behind the response", OK, held([GOOD, b"\0\xff no response"].concat())),
    ]
}

/// Servers that end the connection.
fn ends() -> Vec<Case> {
    let good = GOOD.to_vec();
    let cut = |length: usize| once(&GOOD[..length]);
    let reset = |length: usize| vec![Act::Await, Act::Send(GOOD[..length].to_vec()), Act::Reset];
    // The request may be written, or not, when the reset comes.
    let gone = &[Ends::Failed(ErrorClass::Reset), Ends::Failed(ErrorClass::ClosedBeforeResponse)];
    // The kernel answers for a server before it accepts. A reset that comes before the client has learnt that
    // it is connected is the end of the connect, "connect: Connection reset by peer".
    let unmet = &[
        Ends::Failed(ErrorClass::ConnectFailed),
        Ends::Failed(ErrorClass::Reset),
        Ends::Failed(ErrorClass::ClosedBeforeResponse),
    ];
    vec![
        Case::new("the end before the request", gone, vec![Act::Close]),
        Case::new("the end behind the request", CLOSED_BEFORE, vec![Act::Await, Act::Close]),
        Case::new("the end in the status line", CLOSED_WITHIN, cut(10)),
        Case::new("the end in the head", CLOSED_WITHIN, cut(25)),
        Case::new("the end behind a CR", CLOSED_WITHIN, cut(37)),
        Case::new("the end before the body", CLOSED_WITHIN, cut(38)),
        Case::new("the end in the body", CLOSED_WITHIN, cut(40)),
        Case::new("a reset before the request", unmet, vec![Act::Reset]),
        Case::new("a reset behind the request", RESET, vec![Act::Await, Act::Reset]),
        // A reset may destroy bytes that were received before it.
        Case::new("a reset in the head", RESET, reset(25)),
        Case::new("a reset in the body", RESET, reset(40)),
        Case::new(
            "a reset behind the response",
            &[Ends::Ok, Ends::Failed(ErrorClass::Reset)],
            vec![Act::Await, Act::Send(good.clone()), Act::Reset],
        ),
        // The next request may be under way when the end comes.
        Case::new(
            "keep-alive, and the end",
            &[Ends::Ok, Ends::Failed(ErrorClass::ClosedBeforeResponse), Ends::Failed(ErrorClass::Reset)],
            once(beside_length("connection: keep-alive")),
        ),
        Case::new("close, and no end", OK, held(beside_length("connection: close"))),
        Case::new(
            "close, and more responses",
            OK,
            held([&beside_length("connection: close")[..], GOOD, GOOD].concat()),
        ),
        Case::new("keep-alive and close", OK, held(beside_length("connection: keep-alive, close"))),
        Case::new(
            "keep-alive in HTTP/1.0",
            OK,
            kept("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello"),
        ),
    ]
}
