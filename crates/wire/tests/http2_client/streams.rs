//! Requests that end without a whole response, and late frames for them.

use plimsoll_wire::http2::{ClientOptions, ErrorCode, Event, FieldLimits, StreamFailure};

use crate::http2_client::frames::*;
use crate::http2_client::link::{CAPTURED, GET, HEAD, Link, failed, post, responses};

#[test]
fn resets_by_the_server() {
    let table = [
        (7, StreamFailure::Refused),
        (0, StreamFailure::Reset(ErrorCode::NoError)),
        (2, StreamFailure::Reset(ErrorCode::InternalError)),
        (13, StreamFailure::Reset(ErrorCode::Http11Required)),
        (0xdead, StreamFailure::Reset(ErrorCode::Unknown(0xdead))),
    ];
    for (code, failure) in table {
        for begun in [Vec::new(), head_200(1, 0), [head_200(1, 0), data(1, 0, b"part")].concat()] {
            let mut link = Link::with_requests(&[GET, GET]);
            let events = link.take(&[begun, rst_stream(1, code), rst_stream(1, code)].concat());
            assert_eq!(events, [failed(0, failure)]);
            assert_eq!(link.client.tickets().collect::<Vec<_>>(), [1]);
            assert_eq!(link.sent(), []);
        }
    }
}

/// Every way in which a response can break a rule that concerns only its stream.
#[test]
fn malformed_responses_fail_alone() {
    let many = |count| vec![headers(1, 0, &[(":status", "102")]); count].concat();
    let head = |fields: Fields<'_>| headers(1, END_STREAM, fields);
    let with = |field| head(&[(":status", "200"), field]);
    let sized = |length| headers(1, 0, &[(":status", "200"), ("content-length", length)]);
    let after_200 = |bytes: Vec<u8>| [head_200(1, 0), bytes].concat();
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("no :status", head(&[("server", "x")])),
        ("no :status", head(&[])),
        ("several :status", head(&[(":status", "200"), (":status", "200")])),
        ("after other fields", head(&[("server", "x"), (":status", "200")])),
        ("unknown pseudo", head(&[(":status", "200"), (":path", "/")])),
        ("unknown pseudo", head(&[(":status", "200"), (":", "/")])),
        (":status is not a number", head(&[(":status", "20")])),
        (":status is not a number", head(&[(":status", "2000")])),
        (":status is not a number", head(&[(":status", "099")])),
        (":status is not a number", head(&[(":status", "2x0")])),
        (":status is not a number", head(&[(":status", "")])),
        ("status 101", headers(1, 0, &[(":status", "101")])),
        ("not allowed", with(("Server", "x"))),
        ("not allowed", with(("ser ver", "x"))),
        ("not allowed", with(("", "x"))),
        ("not allowed", with(("server", "x\r\ny"))),
        ("white space", with(("server", " x"))),
        ("HTTP/1.1 connections", with(("connection", "keep-alive"))),
        ("HTTP/1.1 connections", with(("transfer-encoding", "chunked"))),
        ("content-length is not a number", with(("content-length", "0x1"))),
        ("differ", head(&[(":status", "200"), ("content-length", "0"), ("content-length", "1")])),
        ("interim response that ends", head(&[(":status", "100")])),
        ("too many interim", many(33)),
        ("DATA before the head", data(1, 0, b"x")),
        ("DATA before the head", data(1, END_STREAM, b"")),
        ("DATA before the head", [many(1), data(1, END_STREAM, b"x")].concat()),
        ("pseudo-header field in trailers", after_200(head_200(1, 0))),
        ("pseudo-header field in trailers", after_200(head(&[(":status", "200")]))),
        ("do not end the stream", after_200(headers(1, 0, &[("trailer", "x")]))),
        ("not allowed", after_200(head(&[("Trailer", "x")]))),
        ("less content", with(("content-length", "1"))),
        ("less content", [sized("3"), data(1, END_STREAM, b"ab")].concat()),
        ("less content", [sized("3"), data(1, 0, b"ab"), head(&[("trailer", "x")])].concat()),
        ("more content", [sized("3"), data(1, 0, b"abcd")].concat()),
        ("more content", [sized("3"), data(1, 0, b"abc"), data(1, END_STREAM, b"d")].concat()),
        ("more content", [headers(1, 0, &[(":status", "204")]), data(1, END_STREAM, b"x")].concat()),
        ("WINDOW_UPDATE with an increment of 0", window_update(1, 0)),
    ];
    for (what, bytes) in table {
        let mut link = Link::with_requests(&[GET, GET]);
        let events = link.take(&bytes);
        let Some((Event::Failed { ticket: 0, failure: StreamFailure::Malformed(fault) }, [])) =
            events.split_last()
        else {
            panic!("{what}: {events:?}");
        };
        assert!(fault.contains(what), "{what}: {fault}");
        assert_eq!(parse(&link.out), parse(&rst_stream(1, 1)), "{what}");
        link.out.clear();
        // Late frames of the stream do not matter, and the connection goes on.
        let late = [head_200(1, 0), data(1, 0, b"late"), head_200(1, END_STREAM)].concat();
        assert_eq!(link.take(&late), [], "{what}");
        assert_eq!(responses(&link.take(&response(3, b"fine")))[0].0, 1);
        assert_eq!(link.sent(), []);
    }
}

#[test]
fn a_head_request_must_not_have_content() {
    let mut link = Link::with_requests(&[HEAD]);
    let events = link.take(&response(1, b"x"));
    assert!(matches!(events[..], [Event::Failed { failure: StreamFailure::Malformed(_), .. }]), "{events:?}");
}

#[test]
fn the_limit_of_interim_responses_is_an_option() {
    let options = ClientOptions { interim: 0, ..ClientOptions::default() };
    let mut link = Link::ready_with(&options, &[]);
    link.submit(GET);
    let events = link.take(&headers(1, 0, &[(":status", "100")]));
    assert!(matches!(events[..], [Event::Failed { failure: StreamFailure::Malformed(_), .. }]), "{events:?}");
}

#[test]
fn codes_of_their_own() {
    let table =
        [("overflow", window_update(1, (1 << 31) - 1), 3), ("PRIORITY", frame(PRIORITY, 0, 1, &[0; 4]), 6)];
    for (what, bytes, code) in table {
        let mut link = Link::with_requests(&[GET, GET]);
        let events = link.take(&bytes);
        let [Event::Failed { ticket: 0, failure: StreamFailure::Malformed(fault) }] = events[..] else {
            panic!("{what}: {events:?}");
        };
        assert!(fault.contains(what), "{fault}");
        assert_eq!(link.out, rst_stream(1, code));
        assert_eq!(link.take(&bytes), [], "the stream is closed");
    }
}

#[test]
fn a_head_beyond_the_limits_fails_its_stream_and_feeds_the_table() {
    let limits = FieldLimits { list_bytes: 200, fields: 3 };
    let options = ClientOptions { limits, ..ClientOptions::default() };
    let fields = [(":status", "200"), ("a", "1"), ("b", "2"), ("c", "3")];
    let long = "x".repeat(200);
    let inserts_after = |fields: Fields<'_>| {
        let block = [block(fields), indexed_literal("z", "z"), indexed_literal(":status", "203")].concat();
        frame(HEADERS, END_HEADERS, 1, &block)
    };
    for too_large in [inserts_after(&fields), inserts_after(&[(":status", "200"), ("a", &long)])] {
        let mut link = Link::ready_with(&options, &[]);
        assert_eq!((link.submit(CAPTURED), link.submit(GET)), (0, 1));
        link.out.clear();
        assert_eq!(link.take(&too_large), [failed(0, StreamFailure::HeadTooLarge)]);
        assert_eq!(link.out, rst_stream(1, 8));
        let events = link.take(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0xbe]));
        assert_eq!(responses(&events)[0].1.status, 203, "the table has what the large head inserted");
    }
}

#[test]
fn cancelling_resets_the_stream_and_frees_the_ticket() {
    let mut link = Link::with_requests(&[GET, GET, GET]);
    link.client.cancel(1, &mut link.out);
    link.client.cancel(1, &mut link.out);
    link.client.cancel(77, &mut link.out);
    assert_eq!(link.out, rst_stream(3, 8));
    assert_eq!(link.client.tickets().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(link.submit(GET), 1, "the ticket stands for stream 7 from here on");
    link.out.clear();
    let late = [response(3, b"late"), rst_stream(3, 0), window_update(3, 5), window_update(3, 0)].concat();
    assert_eq!(link.take(&late), []);
    assert_eq!(link.sent(), []);
    let events = link.take(&response(7, b"seven"));
    assert_eq!(responses(&events)[0].1.body_bytes, 5);
}

#[test]
fn late_frames_of_a_cancelled_stream_count_for_compression() {
    let mut link = Link::with_requests(&[GET, GET, GET]);
    link.client.cancel(0, &mut link.out);
    link.client.cancel(1, &mut link.out);
    let (front, rest) = (indexed_literal(":status", "204"), indexed_literal(":status", "203"));
    let late = [
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &indexed_literal(":status", "202")),
        frame(HEADERS, END_STREAM, 3, &front),
        frame(CONTINUATION, END_HEADERS, 3, &rest),
        // The second newest entry.
        frame(HEADERS, END_HEADERS | END_STREAM, 5, &[0xbf]),
    ];
    let events = link.take(&late.concat());
    assert_eq!(responses(&events)[0].1.status, 204);
}

#[test]
fn a_stream_may_be_cancelled_in_the_middle_of_anything() {
    let continued = [
        frame(HEADERS, 0, 1, &block(&[(":status", "200")])),
        frame(CONTINUATION, END_HEADERS, 1, &block(&[("a", "b")])),
    ]
    .concat();
    let content = [data(1, 0, b"some"), data(1, END_STREAM, b"content")].concat();
    let whole = [continued, content].concat();
    for cut in 0..whole.len() {
        let mut link = Link::with_requests(&[GET, GET]);
        let before = link.take(&whole[..cut]);
        assert!(before.iter().all(|event| matches!(event, Event::Began { ticket: 0 })), "{before:?}");
        link.client.cancel(0, &mut link.out);
        assert_eq!(link.submit(GET), 0, "the ticket is used again at once");
        link.out.clear();
        assert_eq!(link.take(&whole[cut..]), [], "cut at {cut}");
        assert_eq!(link.client.active(), 2);
        assert_eq!(responses(&link.take(&response(5, b"five")))[0].1.body_bytes, 4, "cut at {cut}");
        assert_eq!(link.sent(), []);
    }
}

#[test]
fn an_answer_before_the_end_of_the_request_stops_the_request() {
    let mut link = Link::ready_with(&ClientOptions::default(), &[(INITIAL_WINDOW_SIZE, 3)]);
    link.submit(post(b"0123456789"));
    link.out.clear();
    let events = link.take(&response(1, b"enough"));
    assert_eq!(responses(&events)[0].1.status, 200);
    assert_eq!(link.out, rst_stream(1, 8));
    link.out.clear();
    assert_eq!(link.take(&[window_update(1, 100), rst_stream(1, 0)].concat()), []);
    assert_eq!(link.sent(), [], "nothing more of the request");
}

#[test]
fn a_second_end_of_a_stream_is_ignored() {
    let mut link = Link::with_requests(&[GET, GET]);
    let events = link.take(&[response(1, b"1"), data(1, END_STREAM, b"2"), response(1, b"3")].concat());
    assert_eq!(responses(&events).len(), 1);
    assert_eq!(link.client.active(), 1);
}
