//! Requests, good and malformed.

use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{ErrorCode, FieldLimits, Payload, ServerOptions};

use crate::http2_server::frames::{
    DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, PADDED, RST_STREAM, WINDOW_UPDATE,
    WITH_PRIORITY, block, data, frame, headers, indexed_literal, rst_stream,
};
use crate::http2_server::link::{GET, Link, POST, Word, in_parts};

#[test]
fn a_request_is_told_with_its_text() {
    let mut link = Link::usual();
    let mut fields = GET.to_vec();
    fields.extend([("x-plimsoll-id", "77"), ("x-plimsoll-id", "78"), ("accept", "*/*")]);
    link.hear(&[headers(1, END_STREAM, &fields), headers(5, END_STREAM, &GET)].concat());
    let [first, second] = link.requests[..] else { panic!("{:?}", link.requests) };
    assert_eq!((first.stream, first.head_request, first.body_bytes), (1, false, 0));
    assert_eq!(link.text(first.method), "GET");
    assert_eq!(link.text(first.path), "/a");
    assert_eq!(link.text(first.id.unwrap()), "77");
    assert_eq!((second.stream, second.id), (5, None));
    assert_eq!(link.text(second.path), "/a");
    assert_eq!(link.server.active(), 2);
    assert!(link.server.is_open(1) && link.server.is_open(5) && !link.server.is_open(3));
    link.hear(&[]);
    assert_eq!(link.text(first.path), "", "gone with the next call");
}

#[test]
fn the_same_block_means_the_same_until_the_table_changes() {
    let mut link = Link::usual();
    // The path is the entry that was inserted last.
    let with_path = |path: &str| [&[0x82, 0x86][..], &indexed_literal(":path", path)].concat();
    let block = [0x82, 0x86, 0xbe];
    let mut stream = 1;
    let mut ask = |link: &mut Link, block: &[u8]| {
        link.requests.clear();
        link.hear(&frame(HEADERS, END_HEADERS | END_STREAM, stream, block));
        stream += 2;
        link.text(link.requests[0].path)
    };
    assert_eq!(ask(&mut link, &with_path("/one")), "/one");
    for _ in 0..3 {
        assert_eq!(ask(&mut link, &block), "/one");
    }
    assert_eq!(ask(&mut link, &with_path("/two")), "/two");
    for _ in 0..3 {
        assert_eq!(ask(&mut link, &block), "/two");
    }
}

#[test]
fn a_remembered_head_may_have_content() {
    let mut link = Link::usual();
    let block = block(&[&POST[..], &[("content-length", "2")]].concat());
    for stream in [1, 3, 5] {
        link.hear(&[frame(HEADERS, END_HEADERS, stream, &block), data(stream, END_STREAM, b"ok")].concat());
        assert_eq!(link.streams(), [stream]);
    }
    let frames = link.hear(&frame(HEADERS, END_HEADERS | END_STREAM, 7, &block));
    assert_eq!((frames[0].kind, frames[0].word()), (RST_STREAM, ErrorCode::ProtocolError.value()));
    assert!(link.requests.is_empty());
}

#[test]
fn content_is_counted_without_padding_and_the_request_comes_with_its_end() {
    let mut link = Link::usual();
    link.hear(&[headers(1, 0, &POST), data(1, 0, b"abc")].concat());
    assert!(link.requests.is_empty());
    link.hear(&[frame(DATA, PADDED, 1, b"\x02dd\0\0"), headers(3, END_STREAM, &GET)].concat());
    assert_eq!(link.streams(), [3]);
    link.hear(&frame(DATA, PADDED | END_STREAM, 1, b"\x00e"));
    let request = link.requests[0];
    assert_eq!((request.stream, request.body_bytes), (1, 6));
    assert_eq!((link.text(request.method), link.text(request.path)), ("POST".into(), "/b".into()));
}

#[test]
fn content_is_kept_where_that_is_asked_for() {
    let options = ServerOptions { keeps_content: true, ..ServerOptions::default() };
    for cut in [1, 7, 1000] {
        let mut link = Link::new(&options, &[]);
        let bytes = [
            headers(1, 0, &POST),
            headers(3, 0, &POST),
            frame(DATA, PADDED, 1, b"\x02ab\0\0"),
            data(3, 0, b"12"),
            headers(5, END_STREAM, &GET),
            data(1, END_STREAM, b"c"),
            data(3, END_STREAM, b""),
            headers(7, 0, &POST),
            data(7, END_STREAM, b"xyz"),
        ]
        .concat();
        let mut heard = Vec::new();
        for piece in bytes.chunks(cut) {
            link.hear(piece);
            // Spans stay valid until more is received.
            let requests = std::mem::take(&mut link.requests);
            heard.extend(requests.iter().map(|request| (request.stream, link.text(request.content))));
        }
        heard.sort_unstable();
        let expected = [(1, "abc"), (3, "12"), (5, ""), (7, "xyz")];
        assert_eq!(heard, expected.map(|(stream, content)| (stream, content.to_owned())), "{cut}");
    }
}

#[test]
fn held_bytes_are_those_of_unfinished_requests_and_of_replies_without_a_window() {
    let options = ServerOptions { keeps_content: true, ..ServerOptions::default() };
    let mut link = Link::new(&options, &[]);
    link.hear(&[headers(1, 0, &POST), data(1, 0, &[b'x'; 1000]), headers(3, 0, &POST)].concat());
    link.hear(&data(3, 0, &[b'y'; 500]));
    assert_eq!(link.server.held_bytes(), 1500);
    // A request that is handed over is the caller's, and one that is reset nobody's.
    link.hear(&data(1, END_STREAM, b"x"));
    assert_eq!(link.server.held_bytes(), 500);
    link.hear(&rst_stream(3, 8));
    assert_eq!(link.server.held_bytes(), 0);
    // The window of the connection has 65,535 bytes.
    let mut out = Vec::new();
    let body = Payload::Bytes(&[b'z'; 70_000]);
    link.server.reply(1, |_, out| put_literal(out, b":status", b"200", false), body, &mut out);
    assert_eq!(link.server.held_bytes(), 70_000 - 65_535);
    link.hear(&rst_stream(1, 8));
    assert_eq!(link.server.held_bytes(), 0);
}

#[test]
fn trailers_end_a_request() {
    let mut link = Link::usual();
    link.hear(
        &[headers(1, 0, &POST), data(1, 0, b"abc"), headers(1, END_STREAM, &[("x-sum", "1")])].concat(),
    );
    assert_eq!(link.requests[0].body_bytes, 3);
    let rows: [(u8, &[(&str, &str)]); 4] = [
        (0, &[("x-sum", "1")]),
        (END_STREAM, &[(":path", "/")]),
        (END_STREAM, &[("Upper", "1")]),
        (END_STREAM, &[("connection", "close")]),
    ];
    for (flags, trailers) in rows {
        let mut link = Link::usual();
        let frames = link.hear(&[headers(1, 0, &POST), headers(1, flags, trailers)].concat());
        assert_eq!((frames[0].kind, frames[0].word()), (RST_STREAM, ErrorCode::ProtocolError.value()));
        assert!(link.requests.is_empty() && !link.server.is_open(1), "{trailers:?}");
    }
}

#[test]
fn heads_come_in_parts_padded_and_with_priorities() {
    let mut link = Link::usual();
    link.hear(&in_parts(1, END_STREAM, &GET, 5));
    let block = block(&GET);
    let padded = [&[3][..], &block, &[0; 3]].concat();
    link.hear(&frame(HEADERS, END_HEADERS | END_STREAM | PADDED, 3, &padded));
    let both = [&[3, 0, 0, 0, 0, 16][..], &block, &[0; 3]].concat();
    link.hear(&frame(HEADERS, END_HEADERS | END_STREAM | PADDED | WITH_PRIORITY, 5, &both));
    assert_eq!(link.streams(), [1, 3, 5]);
}

#[test]
fn a_head_request_is_told() {
    let mut link = Link::usual();
    let fields = [(":method", "HEAD"), GET[1], GET[2]];
    link.hear(&headers(1, END_STREAM, &fields));
    assert!(link.requests[0].head_request);
}

#[test]
fn a_malformed_request_ends_its_stream_only() {
    let (method, scheme, path) = (GET[0], GET[1], GET[2]);
    type Case<'c> = (&'c str, Vec<(&'c str, &'c str)>, ErrorCode);
    let table: Vec<Case<'_>> = vec![
        ("no method", vec![scheme, path], ErrorCode::ProtocolError),
        ("two paths", vec![method, scheme, path, path], ErrorCode::ProtocolError),
        ("an empty path", vec![method, scheme, (":path", "")], ErrorCode::ProtocolError),
        (
            "a pseudo-header of replies",
            vec![method, scheme, path, (":status", "200")],
            ErrorCode::ProtocolError,
        ),
        ("a late pseudo-header", vec![method, scheme, ("a", "b"), path], ErrorCode::ProtocolError),
        ("an upper-case name", vec![method, scheme, path, ("Accept", "b")], ErrorCode::ProtocolError),
        (
            "a field of HTTP/1.1",
            vec![method, scheme, path, ("transfer-encoding", "x")],
            ErrorCode::ProtocolError,
        ),
        ("a bad te", vec![method, scheme, path, ("te", "gzip")], ErrorCode::ProtocolError),
        ("a bad length", vec![method, scheme, path, ("content-length", "x")], ErrorCode::ProtocolError),
        ("content that is announced", vec![method, scheme, path, ("content-length", "1")], {
            ErrorCode::ProtocolError
        }),
        ("two authorities", vec![method, scheme, path, (":authority", "a"), ("host", "b")], {
            ErrorCode::ProtocolError
        }),
        ("a line end in a path", vec![method, scheme, (":path", "/\n")], ErrorCode::ProtocolError),
        ("CONNECT", vec![(":method", "CONNECT"), (":authority", "a:1")], ErrorCode::ConnectError),
        ("a malformed CONNECT", vec![(":method", "CONNECT"), path], ErrorCode::ProtocolError),
    ];
    for (what, fields, code) in table {
        let mut link = Link::usual();
        let frames = link.hear(&headers(1, END_STREAM, &fields));
        assert_eq!(
            (frames[0].kind, frames[0].stream, frames[0].word()),
            (RST_STREAM, 1, code.value()),
            "{what}"
        );
        assert!(link.requests.is_empty() && !link.server.is_open(1), "{what}");
        // Frames that the client sent before it could know are ignored, and the connection goes on.
        assert!(link.hear(&[data(1, 0, b"late"), headers(1, END_STREAM, &[("t", "1")])].concat()).is_empty());
        link.hear(&headers(3, END_STREAM, &GET));
        assert_eq!(link.streams(), [3], "{what}");
    }
}

#[test]
fn content_has_the_length_that_was_announced() {
    let announced = [&POST[..], &[("content-length", "3")]].concat();
    let rows = [
        (vec![data(1, END_STREAM, b"abc")], true),
        (vec![data(1, 0, b"abc"), data(1, END_STREAM, b"")], true),
        (vec![data(1, 0, b"abc"), headers(1, END_STREAM, &[])], true),
        (vec![data(1, END_STREAM, b"ab")], false),
        (vec![data(1, 0, b"abcd")], false),
        (vec![data(1, 0, b"ab"), headers(1, END_STREAM, &[])], false),
        (vec![headers(1, END_STREAM, &[])], false),
    ];
    for (frames, good) in rows {
        let mut link = Link::usual();
        let said = link.hear(&[headers(1, 0, &announced), frames.concat()].concat());
        assert_eq!(link.requests.len(), usize::from(good), "{frames:?}");
        assert_eq!(said.iter().any(|frame| frame.kind == RST_STREAM), !good, "{frames:?}");
    }
}

#[test]
fn heads_beyond_the_limits_end_their_stream_and_keep_the_table() {
    let limits = FieldLimits { list_bytes: 1_000, fields: 8 };
    let mut link = Link::new(&ServerOptions { limits, ..ServerOptions::default() }, &[]);
    let long = "x".repeat(900);
    let many: Vec<_> = GET.iter().copied().chain([("a", "b"); 5]).collect();
    for (stream, fields) in [(1, [&GET[..], &[("long", &long)]].concat()), (3, many)] {
        let frames = link.hear(&headers(stream, END_STREAM, &fields));
        assert_eq!((frames[0].kind, frames[0].word()), (RST_STREAM, ErrorCode::EnhanceYourCalm.value()));
    }
    // A block that is too large puts a path into the table; the next one uses it.
    let mut block = [0x82, 0x86].to_vec();
    for _ in 0..8 {
        block.extend(indexed_literal("filler", "f"));
    }
    block.extend(indexed_literal(":path", "/kept"));
    link.hear(&frame(HEADERS, END_HEADERS | END_STREAM, 5, &block));
    assert!(link.requests.is_empty());
    link.hear(&frame(HEADERS, END_HEADERS | END_STREAM, 7, &[0x82, 0x86, 0xbe]));
    assert_eq!(link.text(link.requests[0].path), "/kept");
}

#[test]
fn windows_are_given_back_when_half_of_them_is_used() {
    let options =
        ServerOptions { stream_window: 1_000, connection_window: 65_535, ..ServerOptions::default() };
    let mut link = Link::new(&options, &[(INITIAL_WINDOW_SIZE, 5)]);
    link.hear(&headers(1, 0, &POST));
    assert!(link.hear(&data(1, 0, &[0; 499])).is_empty());
    let frames = link.hear(&data(1, 0, &[0; 1]));
    assert_eq!((frames[0].kind, frames[0].stream, frames[0].word()), (WINDOW_UPDATE, 1, 500));
    // 100 MB in frames of 1,000 bytes: both windows open as fast as they are used.
    let (mut stream, mut connection) = (500_u32, 500_u32);
    let frame = frame(DATA, PADDED, 1, &[&[9][..], &[0; 999]].concat());
    for _ in 0..100_000 {
        for said in link.hear(&frame) {
            assert_eq!(said.kind, WINDOW_UPDATE);
            *(if said.stream == 1 { &mut stream } else { &mut connection }) += said.word();
        }
    }
    assert_eq!(stream, 500 + 100_000_000);
    assert!(connection.abs_diff(100_000_000 + 1_000) < 65_535 / 2 + 1_000, "{connection}");
    link.hear(&data(1, END_STREAM, &[]));
    assert_eq!(link.requests[0].body_bytes, 500 + 100_000 * 990);
}

#[test]
fn a_stream_that_the_client_resets_is_gone() {
    let mut link = Link::usual();
    link.hear(
        &[headers(1, 0, &POST), rst_stream(1, 8), headers(3, END_STREAM, &GET), rst_stream(3, 8)].concat(),
    );
    assert_eq!(link.streams(), [3], "it was whole when it came");
    assert!(!link.server.is_open(1) && !link.server.is_open(3));
    assert_eq!((link.server.cancelled(), link.server.active()), (2, 0));
    assert!(link.hear(&rst_stream(3, 8)).is_empty());
    assert_eq!(link.server.cancelled(), 2);
}
