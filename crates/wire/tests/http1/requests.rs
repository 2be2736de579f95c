//! Tables of the rules for requests.

use plimsoll_wire::http1::{Limits, ProtocolError, RequestMemo, RequestServer};

use crate::http1::reading::{Memory, OwnedRequest, Requests, read_requests};

/// At once, byte by byte and in threes, with and without a memory of heads: one answer.
fn read(bytes: &[u8]) -> Requests {
    let limits = Limits::default();
    let at_once = read_requests(&limits, Memory::Kept, [bytes]);
    for size in [1, 3] {
        for memory in [Memory::Kept, Memory::FreshEveryTime] {
            let cut = read_requests(&limits, memory, bytes.chunks(size));
            assert_eq!(cut, at_once, "{}", bytes.escape_ascii());
        }
    }
    at_once
}

fn only(bytes: &str) -> OwnedRequest {
    let all = read(bytes.as_bytes());
    assert_eq!((all.error, all.cut), (None, false), "{bytes:?}");
    let [request] = &all.requests[..] else { panic!("one request in {bytes:?}, not {:?}", all.requests) };
    request.clone()
}

fn get() -> OwnedRequest {
    OwnedRequest {
        method: "GET".into(),
        target: "/".into(),
        version_minor: 1,
        keep_alive: true,
        head_request: false,
        body_bytes: 0,
        expects_continue: false,
        id: None,
    }
}

#[test]
fn requests_are_read_as_rfc_9112_says() {
    let post = |body_bytes| OwnedRequest { method: "POST".into(), body_bytes, ..get() };
    let rows = [
        ("GET / HTTP/1.1\r\n\r\n", get()),
        ("GET / HTTP/1.1\r\nHost: a\r\nAccept:*/*\r\n\r\n", get()),
        ("\r\n\nGET / HTTP/1.1\r\n\r\n", get()),
        ("GET / HTTP/1.1\nHost: a\n\n", get()),
        ("GET /a?b=%20c HTTP/1.1\r\n\r\n", OwnedRequest { target: "/a?b=%20c".into(), ..get() }),
        ("GET http://a/b HTTP/1.1\r\n\r\n", OwnedRequest { target: "http://a/b".into(), ..get() }),
        ("HEAD / HTTP/1.1\r\n\r\n", OwnedRequest { method: "HEAD".into(), head_request: true, ..get() }),
        ("head / HTTP/1.1\r\n\r\n", OwnedRequest { method: "head".into(), ..get() }),
        (
            "M-SEARCH * HTTP/1.1\r\n\r\n",
            OwnedRequest { method: "M-SEARCH".into(), target: "*".into(), ..get() },
        ),
        ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", OwnedRequest { keep_alive: false, ..get() }),
        ("GET / HTTP/1.0\r\n\r\n", OwnedRequest { keep_alive: false, version_minor: 0, ..get() }),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", OwnedRequest { version_minor: 0, ..get() }),
        ("POST / HTTP/1.1\r\n\r\n", post(0)),
        ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", post(5)),
        ("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", post(5)),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n2\r\nde\r\n0\r\nt: u\r\n\r\n",
            post(5),
        ),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", post(3)),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            OwnedRequest { keep_alive: false, ..post(2) },
        ),
        ("GET / HTTP/1.1\r\nX-Plimsoll-ID: 00ff\r\n\r\n", OwnedRequest { id: Some("00ff".into()), ..get() }),
        (
            "POST / HTTP/1.1\r\nx-plimsoll-id:  7 \r\nContent-Length: 2\r\n\r\nok",
            OwnedRequest { id: Some("7".into()), ..post(2) },
        ),
        ("GET / HTTP/1.1\r\nx-plimsoll-id:\r\n\r\n", OwnedRequest { id: Some(String::new()), ..get() }),
        (
            "POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nok",
            OwnedRequest { expects_continue: true, ..post(2) },
        ),
        (
            "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
            OwnedRequest { version_minor: 0, keep_alive: false, ..post(2) },
        ),
    ];
    for (bytes, expected) in rows {
        assert_eq!(only(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    use ProtocolError::{BadChunk, ConflictingLength, Http2Preface, Malformed, NotHttp};
    let rows: &[(&[u8], ProtocolError)] = &[
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Http2Preface),
        (b"PRI * HTTP/2.0\r\n", Http2Preface),
        (b"\x16\x03\x01\x02\x00\x01", NotHttp),
        (b"\x00", NotHttp),
        (b" GET / HTTP/1.1\r\n\r\n", NotHttp),
        (b"GET\t/ HTTP/1.1\r\n\r\n", NotHttp),
        (b"GET / HTTP/2.0\r\n\r\n", NotHttp),
        (b"GET / HTTP/1.9\r\n\r\n", NotHttp),
        (b"GET / ICE/1.1\r\n\r\n", NotHttp),
        (b"GET /\x00 HTTP/1.1\r\n\r\n", Malformed("start line")),
        (b"GET  HTTP/1.1\r\n\r\n", Malformed("start line")),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", Malformed("header name")),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", Malformed("header name")),
        (b"GET / HTTP/1.1\r\na: b\r\n folded\r\n\r\n", Malformed("header name")),
        (b"GET / HTTP/1.1\r\na: \x7f\r\n\r\n", Malformed("header value")),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", ConflictingLength),
        (b"POST / HTTP/1.1\r\nContent-Length: five\r\n\r\n", Malformed("content-length")),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
            Malformed("transfer-encoding that does not end in chunked"),
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
            Malformed("transfer-encoding that does not end in chunked"),
        ),
        (
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            Malformed("transfer-encoding in an HTTP/1.0 request"),
        ),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nhello", BadChunk),
        (b"\n\n\n\n\n\n\n\n\n", Malformed("too many empty lines before the start line")),
    ];
    for (bytes, expected) in rows {
        let all = read(bytes);
        assert_eq!((all.error, &all.requests[..]), (Some(*expected), &[][..]), "{}", bytes.escape_ascii());
    }
}

#[test]
fn heads_are_bounded() {
    let limits = Limits { head_bytes: 60, headers: 2, interim: 0 };
    let error_of = |bytes: &[u8]| {
        let at_once = read_requests(&limits, Memory::Kept, [bytes]);
        assert_eq!(read_requests(&limits, Memory::Kept, bytes.chunks(1)), at_once);
        at_once.error
    };
    assert_eq!(error_of(b"GET / HTTP/1.1\r\na:\r\nb:\r\n\r\n"), None);
    assert_eq!(error_of(b"GET / HTTP/1.1\r\na:\r\nb:\r\nc:\r\n\r\n"), Some(ProtocolError::HeadTooLarge));
    assert_eq!(error_of(&[b"GET /", &[b'a'; 1000][..]].concat()), Some(ProtocolError::HeadTooLarge));
    assert_eq!(
        error_of(&[b"GET / HTTP/1.1\r\na: ", &[b'a'; 1000][..]].concat()),
        Some(ProtocolError::HeadTooLarge)
    );
}

/// Found by fuzzing: with no room for a head at all, half an empty line counted as one if it came alone.
#[test]
fn half_an_empty_line_is_no_head_under_the_narrowest_limit() {
    let limits = Limits { head_bytes: 0, headers: 0, interim: 0 };
    let bytes = b"\r\n\n\r\n\n\n\r\n\n\r6";
    for size in [1, 2, bytes.len()] {
        let error = read_requests(&limits, Memory::Kept, bytes.chunks(size)).error;
        assert_eq!(error, Some(ProtocolError::Malformed("too many empty lines before the start line")));
    }
}

#[test]
fn pipelined_requests_come_one_by_one() {
    let bytes = "GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\r\nGET /1 HTTP/1.1\r\n\r\nGET";
    let all = read(bytes.as_bytes());
    let targets: Vec<_> = all.requests.iter().map(|request| request.target.as_str()).collect();
    assert_eq!((targets, all.error, all.cut), (vec!["/1", "/2", "/1"], None, true));
}

#[test]
fn a_continue_is_wanted_once_and_only_while_the_client_waits() {
    let head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let limits = Limits::default();
    let mut memo = RequestMemo::new();
    for size in [1, 10, head.len()] {
        let mut server = RequestServer::new();
        for (index, mut piece) in head.chunks(size).enumerate() {
            assert_eq!(server.next(&limits, &mut memo, &mut piece), Ok(None));
            let whole = (index + 1) * size >= head.len();
            assert_eq!(server.wants_continue(), whole);
            assert!(!server.wants_continue(), "only once");
        }
        assert_eq!(server.next(&limits, &mut memo, &mut &b"o"[..]), Ok(None));
        assert!(!server.wants_continue());
        let mut last = &b"k"[..];
        let request = server.next(&limits, &mut memo, &mut last).unwrap().unwrap();
        assert!(request.expects_continue && request.body_bytes == 2 && request.target == b"/");
        assert!(!server.wants_continue());
    }

    // The body began to arrive before a 100 was due.
    let mut server = RequestServer::new();
    assert_eq!(server.next(&limits, &mut memo, &mut &[&head[..], b"o"].concat()[..]), Ok(None));
    assert!(!server.wants_continue());
    // There is no body to wait for.
    let mut server = RequestServer::new();
    let mut empty = &b"POST / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n"[..];
    assert!(server.next(&limits, &mut memo, &mut empty).unwrap().unwrap().expects_continue);
    assert!(!server.wants_continue());
}

#[test]
fn a_reset_server_begins_anew() {
    let (limits, mut memo, mut server) = (Limits::default(), RequestMemo::new(), RequestServer::new());
    assert_eq!(
        server.next(&limits, &mut memo, &mut &b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"[..]),
        Ok(None)
    );
    assert!(server.in_request());
    server.reset();
    assert!(!server.in_request());
    let mut input = &b"GET / HTTP/1.1\r\n\r\n"[..];
    assert_eq!(server.next(&limits, &mut memo, &mut input).unwrap().unwrap().method, b"GET");
}

#[test]
fn fields_and_payload_of_a_request_can_be_had() {
    let bytes = b"\r\nPUT /a HTTP/1.1\r\nAuthorization:  Basic x \r\ncontent-length: 5\r\n\r\nhelloGET /";
    for size in [1, 3, bytes.len()] {
        let (mut server, mut memo, mut kept) = (RequestServer::new(), RequestMemo::new(), Vec::new());
        let mut told = None;
        for mut piece in bytes.chunks(size) {
            let limits = Limits::default();
            let request = server.next_into(&limits, &mut memo, &mut piece, Some(&mut kept)).unwrap();
            let field = |name| request.and_then(|request| request.header(name)).map(<[u8]>::to_vec);
            told = told.or(request.map(|_| [field("authorization"), field("CONTENT-LENGTH"), field("host")]));
        }
        let expected = [Some(b"Basic x".to_vec()), Some(b"5".to_vec()), None];
        assert_eq!((told, &kept[..]), (Some(expected), &b"hello"[..]), "in pieces of {size}");
    }
}
