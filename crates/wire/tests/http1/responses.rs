//! Tables of the rules for responses.

use plimsoll_core::ErrorClass;
use plimsoll_wire::http1::{
    Capture, HeadMemo, Limits, PendingRequest, ProtocolError, Response, ResponseClient, Truncated,
    write_response_head,
};

use crate::http1::reading::{GET, HEAD, Memory, Responses, ResponsesEnd, read_at_once, read_responses};

/// At once and byte by byte, with and without a memory of heads: one answer.
fn read(owed: PendingRequest, bytes: &[u8]) -> Responses {
    let at_once = read_at_once(&[owed], bytes);
    for memory in [Memory::Kept, Memory::FreshEveryTime] {
        let by_bytes = read_responses(&Limits::default(), memory, &[owed], bytes.chunks(1));
        assert_eq!(by_bytes.responses, at_once.responses, "{}", bytes.escape_ascii());
        assert_eq!(by_bytes.end, at_once.end, "{}", bytes.escape_ascii());
    }
    at_once
}

/// The only response in `bytes`, as status, payload bytes and keep-alive; all bytes are consumed.
fn only(owed: PendingRequest, bytes: &str) -> (u16, u64, bool) {
    let all = read(owed, bytes.as_bytes());
    assert_eq!(all.end, Ok(()), "{bytes:?}");
    let [response] = all.responses[..] else { panic!("one response in {bytes:?}, not {:?}", all.responses) };
    assert_eq!(response.wire_bytes, bytes.len() as u64, "{bytes:?}");
    (response.status, response.body_bytes, response.keep_alive)
}

fn error(owed: PendingRequest, bytes: &[u8]) -> ProtocolError {
    match read(owed, bytes).end {
        Err(ResponsesEnd::Error(error)) => error,
        other => panic!("an error in {}, not {other:?}", bytes.escape_ascii()),
    }
}

#[test]
fn the_end_of_a_body_is_where_rfc_9112_section_6_3_says() {
    let rows: &[(&str, (u16, u64, bool))] = &[
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", (200, 5, true)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, 0, true)),
        ("HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh:\t 00005 \t\r\n\r\nhello", (200, 5, true)),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno!", (404, 3, true)),
        // Equal repetitions count once.
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", (200, 5, true)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5,5\r\n\r\nhello", (200, 5, true)),
        // Neither: until the peer closes, so the connection is not used again.
        ("HTTP/1.1 200 OK\r\n\r\n", (200, 0, false)),
        ("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", (200, 19, false)),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello", (200, 5, false)),
        // Chunked.
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", (200, 5, true)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\na: b\r\nc: d\r\n\r\n", (200, 0, true)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nzz\r\n0\r\n\r\n", (200, 2, true)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nzz\r\n0\r\n\r\n",
            (200, 2, true),
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: ,chunked,\r\n\r\n0\r\n\r\n", (200, 0, true)),
        // Codings that do not end in chunked: until the peer closes.
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n5\r\nhello", (200, 8, false)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n5\r\nhello", (200, 8, false)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n5\r\nhello", (200, 8, false)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhello", (200, 5, false)),
        // A coding overrides a length, and the connection is not trusted any more.
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            (200, 5, false),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            (200, 5, false),
        ),
        // HTTP/1.0 knows no codings.
        (
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            (200, 1, false),
        ),
        // The coding that was none.
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", (200, 5, true)),
        // No body, whatever the head says.
        ("HTTP/1.1 204 No Content\r\n\r\n", (204, 0, true)),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", (204, 0, true)),
        ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", (204, 0, true)),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", (304, 0, true)),
        ("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", (205, 0, true)),
        ("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", (999, 0, true)),
    ];
    for (bytes, expected) in rows {
        assert_eq!(only(GET, bytes), *expected, "{bytes:?}");
    }
}

#[test]
fn responses_to_head_have_no_body() {
    let rows: &[(&str, bool)] = &[
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", false),
    ];
    for (bytes, keep_alive) in rows {
        assert_eq!(only(HEAD, bytes), (200, 0, *keep_alive), "{bytes:?}");
    }
}

#[test]
fn the_connection_is_kept_as_rfc_9112_section_9_3_says() {
    let rows: &[(&str, &str, bool)] = &[
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: CLOSE\r\n", false),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: upgrade,  close ,x\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.1", "Connection: x\r\nConnection: close\r\n", false),
        ("1.1", "Proxy-Connection: close\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: x, keep-alive\r\n", true),
        ("1.0", "Connection: keep-alive\r\nConnection: close\r\n", false),
    ];
    for (version, fields, keep_alive) in rows {
        let bytes = format!("HTTP/{version} 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok");
        assert_eq!(only(GET, &bytes), (200, 2, *keep_alive), "{bytes:?}");
    }
}

#[test]
fn heads_are_read_leniently_where_their_end_is_certain() {
    let rows = [
        // No space after the colon; white space before it.
        "HTTP/1.1 200 OK\r\nContent-Length:2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
        // No reason phrase, with and without its space; one with bytes beyond ASCII.
        "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 Schön\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1  200  OK\r\nContent-Length: 2\r\n\r\nok",
        // Bare LF, everywhere or here and there.
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok",
        "HTTP/1.1 200 OK\nContent-Length: 2\r\n\nok",
        // Empty lines before the head.
        "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "\n\r\n\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        // Obsolete line folding; a line of white space is not an empty line.
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\td\r\nContent-Length:\r\n 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nA: b\r\n \r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: x,\r\n keep-alive\r\nContent-Length: 2\r\n\r\nok",
        // Fields without a value, and values beyond ASCII.
        "HTTP/1.1 200 OK\r\nEmpty:\r\nOther: \r\nContent-Length: 2\r\nName: ü\r\n\r\nok",
    ];
    for bytes in rows {
        assert_eq!(only(GET, bytes), (200, 2, true), "{bytes:?}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    use ProtocolError::{BadChunk, ConflictingLength, Malformed, NotHttp, SwitchedProtocols};
    let rows: &[(&[u8], ProtocolError)] = &[
        (b"SSH-2.0-OpenSSH_9.9\r\n", NotHttp),
        (b"\x15\x03\x01\x00\x02\x02\x50", NotHttp),
        (b"\x00", NotHttp),
        (b"220 mail.example ESMTP\r\n", NotHttp),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", NotHttp),
        (b"http/1.1 200 OK\r\n\r\n", NotHttp),
        (b"HTTP/2.0 200 OK\r\n\r\n", NotHttp),
        (b"HTTP/1.7 200 OK\r\n\r\n", NotHttp),
        (b"<html>", NotHttp),
        (b"\r\n\rHTTP/1.1 200 OK\r\n\r\n", NotHttp),
        (b" HTTP/1.1 200 OK\r\n\r\n", NotHttp),
        (b"HTTP/1.1 abc OK\r\n\r\n", Malformed("status line")),
        (b"HTTP/1.1 20\r\n\r\n", Malformed("status line")),
        (b"HTTP/1.1 2000 OK\r\n\r\n", Malformed("status line")),
        (b"HTTP/1.1 099 Low\r\n\r\n", Malformed("status code below 100")),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", SwitchedProtocols),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Malformed("header name")),
        (b"HTTP/1.1 200 OK\r\n: no name\r\n\r\n", Malformed("header name")),
        (b"HTTP/1.1 200 OK\r\n folded: first\r\n\r\n", Malformed("header name")),
        (b"HTTP/1.1 200 OK\r\na: \x00\r\n\r\n", Malformed("header value")),
        (b"HTTP/1.1 200 OK\r\na: b\rc: d\r\n\r\n", Malformed("header value")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", ConflictingLength),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", ConflictingLength),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", Malformed("content-length")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", Malformed("content-length")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\n", Malformed("content-length")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\n", Malformed("content-length")),
        (b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", Malformed("content-length")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n", Malformed("content-length")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", Malformed("content-length")),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
            Malformed("transfer-encoding: chunked twice"),
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello", BadChunk),
        (b"\r\n\r\n\r\n\r\n\r\n", Malformed("too many empty lines before the start line")),
    ];
    for (bytes, expected) in rows {
        assert_eq!(error(GET, bytes), *expected, "{}", bytes.escape_ascii());
        assert_eq!(expected.class(), ErrorClass::Protocol);
    }
}

#[test]
fn other_protocols_are_refused_before_any_line_ends() {
    for bytes in [&b"SSH-2.0"[..], b"H2", b"\x16\x03"] {
        assert_eq!(error(GET, bytes), ProtocolError::NotHttp);
    }
}

#[test]
fn interim_responses_are_passed_over_and_bounded() {
    let interim =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 9\r\n\r\n";
    let last = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok";
    let bytes = format!("{interim}{last}{last}");
    let all = read(GET, bytes.as_bytes());
    let expected = Response {
        status: 201,
        head_bytes: last.len() as u64 - 2,
        body_bytes: 2,
        wire_bytes: (interim.len() + last.len()) as u64,
        keep_alive: true,
        interim: 2,
    };
    let plain = Response { wire_bytes: last.len() as u64, interim: 0, ..expected };
    assert_eq!((all.responses, all.end), (vec![expected, plain], Ok(())));

    let many = |count: usize| format!("{}{last}", "HTTP/1.1 102 Processing\r\n\r\n".repeat(count));
    assert_eq!(only(GET, &many(32)), (201, 2, true));
    assert_eq!(error(GET, many(33).as_bytes()), ProtocolError::TooManyInterim);
}

#[test]
fn a_close_is_told_apart_by_where_it_comes() {
    let before = Err(ResponsesEnd::Truncated(Truncated { started: false }));
    let within = Err(ResponsesEnd::Truncated(Truncated { started: true }));
    let rows: &[(&str, usize, Result<(), ResponsesEnd>)] = &[
        ("", 0, Ok(())),
        ("\r\n\r", 0, Ok(())),
        ("H", 0, within),
        ("\r\nHTTP/1.1 200 OK\r\n", 0, within),
        ("HTTP/1.1 100 Continue\r\n\r\n", 0, before),
        ("HTTP/1.1 100 Continue\r\n\r\n\r\n", 0, before),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP", 0, within),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0, within),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", 0, within),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 1, Ok(())),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\r\n", 1, Ok(())),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloH", 1, within),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", 0, within),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 1, Ok(())),
        ("HTTP/1.1 200 OK\r\n\r\nhell", 1, Ok(())),
    ];
    for (bytes, responses, end) in rows {
        let all = read(GET, bytes.as_bytes());
        assert_eq!((all.responses.len(), all.end), (*responses, *end), "{bytes:?}");
    }
    assert_eq!(Truncated { started: false }.class(), ErrorClass::ClosedBeforeResponse);
    assert_eq!(Truncated { started: true }.class(), ErrorClass::ClosedInResponse);
}

#[test]
fn heads_are_bounded() {
    let limits = Limits { head_bytes: 100, headers: 3, interim: 1 };
    let end_of = |bytes: &[u8]| {
        let at_once = read_responses(&limits, Memory::Kept, &[GET], [bytes]);
        let by_bytes = read_responses(&limits, Memory::Kept, &[GET], bytes.chunks(1));
        assert_eq!((&at_once.end, &at_once.responses), (&by_bytes.end, &by_bytes.responses));
        // Little beyond the limit is ever taken in, so an endless head cannot grow anywhere.
        assert!(by_bytes.consumed <= 108, "{}", by_bytes.consumed);
        at_once.end
    };
    let too_large = Err(ResponsesEnd::Error(ProtocolError::HeadTooLarge));
    let padded = |length: usize| {
        let frame = "HTTP/1.1 204 No Content\r\nA: \r\n\r\n";
        format!("HTTP/1.1 204 No Content\r\nA: {}\r\n\r\n", "x".repeat(length - frame.len()))
    };
    assert_eq!(end_of(padded(100).as_bytes()), Ok(()));
    assert_eq!(end_of(format!("\r\n\r\n{}", padded(100)).as_bytes()), Ok(()));
    assert_eq!(end_of(padded(101).as_bytes()), too_large);
    assert_eq!(end_of(format!("HTTP/1.1 200 {}", "x".repeat(1000)).as_bytes()), too_large);
    assert_eq!(end_of(format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(1000)).as_bytes()), too_large);
    assert_eq!(end_of(b"HTTP/1.1 204 No Content\r\na:\r\nb:\r\nc:\r\n\r\n"), Ok(()));
    assert_eq!(end_of(b"HTTP/1.1 204 No Content\r\na:\r\nb:\r\nc:\r\nd:\r\n\r\n"), too_large);
    assert_eq!(ProtocolError::HeadTooLarge.class(), ErrorClass::HeadTooLarge);
}

#[test]
fn as_many_fields_as_the_limits_allow() {
    for (fields, fits) in [(0, true), (127, true), (128, true), (129, true), (256, true), (257, false)] {
        let bytes = format!("HTTP/1.1 204 No Content\r\n{}\r\n", "a:\n".repeat(fields));
        let expected = if fits { Ok(()) } else { Err(ResponsesEnd::Error(ProtocolError::HeadTooLarge)) };
        assert_eq!(read(GET, bytes.as_bytes()).end, expected, "{fields} fields");
    }
}

#[test]
fn a_memo_filled_under_wider_limits_changes_no_answer() {
    let bytes = b"HTTP/1.1 204 No Content\r\na: b\r\nc: d\r\n\r\n";
    let wide = Limits::default();
    for narrow in [Limits { head_bytes: bytes.len() - 1, ..wide }, Limits { headers: 1, ..wide }] {
        let mut memo = HeadMemo::new();
        let next = |limits: &Limits, memo: &mut HeadMemo| {
            ResponseClient::new().next(limits, memo, GET, &mut &bytes[..])
        };
        assert_eq!(next(&wide, &mut memo).map(|response| response.is_some()), Ok(true));
        assert_eq!(next(&narrow, &mut memo), Err(ProtocolError::HeadTooLarge));
        assert_eq!(next(&wide, &mut memo).map(|response| response.is_some()), Ok(true));
    }
}

#[test]
fn one_head_answers_get_and_head_requests_differently() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let bytes = [&head[..], b"hello", head, head, b"hello"].concat();
    let all = read_at_once(&[GET, HEAD, GET], &bytes);
    let bodies: Vec<_> = all.responses.iter().map(|response| response.body_bytes).collect();
    assert_eq!((bodies, all.end), (vec![5, 0, 5], Ok(())));
}

#[test]
fn captured_heads_are_there_until_the_next_response() {
    let capture = PendingRequest { head_request: false, capture: Capture::Headers };
    let bytes = b"\r\nHTTP/1.1 100 Continue\r\nLocation: /wrong\r\n\r\n\
        HTTP/1.1 302 Found\r\nLOCATION:/next \r\nSet-Cookie: a\r\nset-cookie: b\r\nEmpty:\r\n\
        Content-Length: 2\r\n\r\nok\
        HTTP/1.1 204 No Content\r\n\r\n";
    for size in [1, 2, 7, 50, bytes.len()] {
        let (mut client, mut memo) = (ResponseClient::new(), HeadMemo::new());
        let mut statuses = Vec::new();
        for mut input in bytes.chunks(size) {
            while !input.is_empty() {
                let next = client.next(&Limits::default(), &mut memo, capture, &mut input);
                let Some(response) = next.unwrap() else { continue };
                statuses.push(response.status);
                let of = |name| client.header(name);
                if response.status == 302 {
                    assert_eq!(of("location"), Some(&b"/next"[..]));
                    assert_eq!(of("set-cookie"), Some(&b"a"[..]));
                    assert_eq!(of("empty"), Some(&b""[..]));
                }
                assert_eq!(of("location").is_some(), response.status == 302);
                assert_eq!(of("absent"), None);
            }
        }
        assert_eq!(statuses, [302, 204]);
    }
}

#[test]
fn a_captured_head_may_have_many_fields_and_end_with_the_connection() {
    let capture = PendingRequest { head_request: false, capture: Capture::Headers };
    let bytes = format!("HTTP/1.1 200 OK\r\n{}last: here\r\n\r\nbody", "a:\n".repeat(200));
    let (mut client, mut memo) = (ResponseClient::new(), HeadMemo::new());
    let mut input = bytes.as_bytes();
    assert_eq!(client.next(&Limits::default(), &mut memo, capture, &mut input), Ok(None));
    assert_eq!(client.header("last"), None, "not before the response is complete");
    assert_eq!(client.finish().unwrap().unwrap().body_bytes, 4);
    assert_eq!(client.header("last"), Some(&b"here"[..]));
    assert_eq!(client.next(&Limits::default(), &mut memo, GET, &mut &b""[..]), Ok(None));
    assert_eq!(client.header("last"), None);
}

#[test]
fn in_response_and_reset() {
    let (mut client, mut memo) = (ResponseClient::new(), HeadMemo::new());
    let mut feed = |client: &mut ResponseClient, mut bytes: &[u8]| {
        client.next(&Limits::default(), &mut memo, GET, &mut bytes).unwrap().is_some()
    };
    let steps: &[(&[u8], bool, bool)] = &[
        (b"", false, false),
        (b"\r", false, false),
        (b"\n", false, false),
        (b"H", false, true),
        (b"TTP/1.1 100 Continue\r\n\r\n", false, true),
        (b"\r\n", false, true),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", false, true),
        (b"x", true, false),
    ];
    for (bytes, complete, in_response) in steps {
        assert_eq!((feed(&mut client, bytes), client.in_response()), (*complete, *in_response));
    }
    feed(&mut client, b"HTTP/1.1 200");
    client.reset();
    assert!(!client.in_response());
    assert!(feed(&mut client, b"HTTP/1.1 204 No Content\r\n\r\n"));
}

#[test]
fn a_client_is_small() {
    assert!(size_of::<ResponseClient>() <= 64, "{}", size_of::<ResponseClient>());
}

#[test]
fn heads_of_our_own_server_are_read_back() {
    for (status, close, length) in [(200, false, 5), (404, true, 0), (503, false, 70_000), (204, false, 0)] {
        let mut bytes = Vec::new();
        let extra = [("X-One".to_owned(), "1".to_owned())];
        write_response_head(&mut bytes, status, Some("application/cbor"), length, close, &extra);
        let head_bytes = bytes.len() as u64;
        bytes.resize(bytes.len() + usize::try_from(length).unwrap(), b'.');
        let expected = Response {
            status,
            head_bytes,
            body_bytes: length,
            wire_bytes: head_bytes + length,
            keep_alive: !close,
            interim: 0,
        };
        let all = read(GET, &bytes);
        assert_eq!((all.responses, all.end), (vec![expected], Ok(())));
    }
}
