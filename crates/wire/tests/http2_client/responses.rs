//! Responses that are all right, and their counts.

use plimsoll_wire::http2::{Event, Indexing, Response, Traffic};

use crate::http2_client::frames::*;
use crate::http2_client::link::{CAPTURED, GET, HEAD, Link, request_head, responses};

/// Bytes of a frame's head.
const FRAME: u64 = 9;

/// Feeds one response on stream 1 and gives it.
fn read(spec: plimsoll_wire::http2::Submit<'_>, bytes: &[u8]) -> Response {
    let mut link = Link::with_requests(&[spec]);
    let events = link.take(bytes);
    assert_eq!(link.client.active(), 0);
    assert_eq!(link.sent(), []);
    let [(0, response)] = responses(&events)[..] else { panic!("{events:?}") };
    response
}

#[test]
fn end_stream_may_be_in_every_place() {
    let block_len = block(&[(":status", "200"), ("server", "script")]).len() as u64;
    let continued = {
        let block = block(&[(":status", "200"), ("server", "script")]);
        let (front, rest) = block.split_at(3);
        [frame(HEADERS, END_STREAM, 1, front), frame(CONTINUATION, END_HEADERS, 1, rest)].concat()
    };
    let trailers = headers(1, END_STREAM, &[("grpc-status", "0")]);
    let table: [(&str, Vec<u8>, u64, u64); 7] = [
        ("headers", head_200(1, END_STREAM), 0, FRAME),
        ("headers continued", continued, 0, 2 * FRAME),
        ("data", response(1, b"hello"), 5, 2 * FRAME + 5),
        ("empty data", response(1, b""), 0, 2 * FRAME),
        (
            "empty data behind data",
            [head_200(1, 0), data(1, 0, b"hello"), data(1, END_STREAM, b"")].concat(),
            5,
            3 * FRAME + 5,
        ),
        (
            "trailers",
            [head_200(1, 0), data(1, 0, b"abc"), trailers.clone()].concat(),
            3,
            2 * FRAME + 3 + trailers.len() as u64,
        ),
        ("trailers only", [head_200(1, 0), trailers.clone()].concat(), 0, FRAME + trailers.len() as u64),
    ];
    for (what, bytes, body_bytes, beside) in table {
        let wire_bytes = block_len + beside;
        assert_eq!(wire_bytes, bytes.len() as u64, "{what}: the table is wrong");
        let expected = Response { status: 200, head_bytes: block_len, body_bytes, wire_bytes, interim: 0 };
        assert_eq!(read(GET, &bytes), expected, "{what}");
    }
}

#[test]
fn padding_and_priority_are_not_counted_as_content() {
    let block = block(&[(":status", "200"), ("content-length", "2")]);
    let padded = [&[3, 0, 0, 0, 0, 9], &block[..], &[0; 3]].concat();
    let bytes = [
        frame(HEADERS, END_HEADERS | PADDED | WITH_PRIORITY, 1, &padded),
        frame(DATA, PADDED, 1, &[2, b'a', 0, 0]),
        // Nothing but padding.
        frame(DATA, PADDED, 1, &[2, 0, 0]),
        frame(DATA, PADDED, 1, &[0]),
        frame(DATA, PADDED | END_STREAM, 1, &[1, b'b', 0]),
    ]
    .concat();
    let response = read(GET, &bytes);
    assert_eq!(response.head_bytes, block.len() as u64);
    assert_eq!(response.body_bytes, 2);
    assert_eq!(response.wire_bytes, bytes.len() as u64);
}

#[test]
fn statuses_and_lengths() {
    let table: [(&str, Fields<'_>, &[u8]); 6] = [
        ("404", &[], b"gone"),
        ("999", &[("content-length", "4")], b"gone"),
        ("200", &[("content-length", "0")], b""),
        ("200", &[("content-length", "2"), ("content-length", "02")], b"ab"),
        ("204", &[("content-length", "7")], b""),
        ("304", &[("content-length", "7")], b""),
    ];
    for (status, fields, content) in table {
        let fields = [&[(":status", status)], fields].concat();
        let bytes = [headers(1, 0, &fields), data(1, END_STREAM, content)].concat();
        let response = read(GET, &bytes);
        assert_eq!(response.status.to_string(), status);
        assert_eq!(response.body_bytes, content.len() as u64);
    }
    let head = headers(1, END_STREAM, &[(":status", "200"), ("content-length", "12345")]);
    assert_eq!(read(HEAD, &head).body_bytes, 0, "a HEAD request");
}

#[test]
fn interim_responses_are_counted_and_not_remembered() {
    let interim = headers(1, 0, &[(":status", "103"), ("link", "</style.css>")]);
    let bytes = [interim.clone(), headers(1, 0, &[(":status", "100")]), response(1, b"x")].concat();
    let response = read(GET, &bytes);
    assert_eq!((response.status, response.interim, response.body_bytes), (200, 2, 1));
    assert_eq!(response.wire_bytes, bytes.len() as u64);
}

/// Blocks count as they came and as they mean, whether they were decoded or recalled; what is not of a
/// response to an open request does not count.
#[test]
fn bytes_of_heads_and_content_are_counted_until_they_are_taken() {
    let fields = [(":status", "200"), ("server", "script")];
    let trailers = [("grpc-status", "0")];
    let interim = [(":status", "103"), ("link", "</style.css>")];
    let one = [headers(1, 0, &interim), headers(1, 0, &fields), data(1, 0, b"hello")].concat();
    let rest = [data(1, 0, b"!"), headers(1, END_STREAM, &trailers)].concat();
    let bytes_of = |fields: &[(&str, &str)]| -> u64 {
        fields.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum()
    };
    let mut request = Vec::new();
    request_head(&mut Indexing::default(), &mut request);
    let mut link = Link::with_requests(&[GET, CAPTURED]);
    let sent = Traffic { heads_sent: 2 * request.len() as u64, ..Traffic::default() };
    assert_eq!(link.client.take_traffic(), sent);
    link.take(&one);
    link.take(&rest);
    let all = [&interim[..], &fields, &trailers];
    let came = Traffic {
        heads_sent: 0,
        heads_received: all.iter().map(|fields| block(fields).len() as u64).sum(),
        fields_received: all.iter().map(|fields| bytes_of(fields)).sum(),
        content_received: 6,
    };
    assert_eq!(link.client.take_traffic(), came);
    // The same blocks again, of a request that keeps the fields.
    link.take(&[headers(3, 0, &fields), headers(3, END_STREAM, &trailers)].concat());
    let again = Traffic {
        heads_received: came.heads_received - block(&interim).len() as u64,
        fields_received: came.fields_received - bytes_of(&interim),
        content_received: 0,
        ..came
    };
    assert_eq!(link.client.take_traffic(), again);
    // Nobody waits for the answer to a request that was given up.
    let ticket = link.submit(GET);
    link.client.cancel(ticket, &mut link.out);
    link.client.take_traffic();
    link.take(&headers(5, END_STREAM, &fields));
    assert_eq!(link.client.take_traffic(), Traffic::default());
}

#[test]
fn responses_of_several_streams_are_interleaved() {
    let mut link = Link::with_requests(&[GET, GET, GET]);
    let bytes = [
        head_200(3, 0),
        head_200(5, 0),
        data(3, 0, b"33"),
        head_200(1, END_STREAM),
        data(5, END_STREAM, b"5"),
        data(3, END_STREAM, b"3"),
    ]
    .concat();
    let events = link.take(&bytes);
    let bodies: Vec<_> = responses(&events).iter().map(|(ticket, r)| (*ticket, r.body_bytes)).collect();
    assert_eq!(bodies, [(0, 0), (2, 1), (1, 3)]);
}

#[test]
fn a_response_begins_once_and_only_if_it_does_not_end_at_once() {
    let began = |ticket| Event::Began { ticket };
    let mut link = Link::with_requests(&[GET, GET, GET]);
    assert_eq!(responses(&link.take(&response(1, b"whole"))).len(), 1);
    assert_eq!(link.take(&headers(3, 0, &[(":status", "100")])), [began(1)], "an interim response");
    assert_eq!(link.take(&head_200(3, 0)), []);
    assert_eq!(link.take(&data(3, 0, b"more")), []);
    let head = head_200(5, 0);
    assert_eq!(link.take(&head[..8]), [], "whose frame it is cannot be known");
    assert_eq!(link.take(&head[8..9]), [began(2)]);
    assert_eq!(link.take(&head[9..]), []);
    assert_eq!(responses(&link.take(&data(3, END_STREAM, b""))).len(), 1);
    assert_eq!(link.take(&[rst_stream(5, 8), ping(ACK, 0)].concat()).len(), 1);
}

#[test]
fn a_cut_head_and_a_continued_one_begin_their_response_too() {
    let whole = block(&[(":status", "200")]);
    let mut link = Link::with_requests(&[GET, GET, GET]);
    let events = link.take(&frame(HEADERS, 0, 1, &whole));
    assert_eq!(events, [Event::Began { ticket: 0 }]);
    assert_eq!(link.take(&frame(CONTINUATION, END_HEADERS, 1, &[])), []);
    let both = [head_200(3, END_STREAM), head_200(5, 0)[..10].to_vec()].concat();
    let events = link.take(&both);
    assert_eq!(responses(&events[..1])[0].0, 1);
    assert_eq!(events[1..], [Event::Began { ticket: 2 }]);
}

#[test]
fn captured_fields_are_there_until_the_next_receive() {
    let mut link = Link::with_requests(&[CAPTURED, GET, CAPTURED]);
    let bytes = [
        headers(1, 0, &[(":status", "103"), ("link", "early")]),
        headers(1, 0, &[(":status", "201"), ("location", "/a"), ("x", ""), ("location", "/b")]),
        headers(3, END_STREAM, &[(":status", "200"), ("location", "/not-wanted")]),
        headers(5, END_STREAM, &[(":status", "200"), ("location", "/c")]),
        headers(1, END_STREAM, &[("trailer", "late")]),
    ]
    .concat();
    let events = link.take(&bytes);
    let kinds: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::Head { ticket, .. } => (*ticket, "head"),
            Event::Response { ticket, .. } => (*ticket, "response"),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [(0, "head"), (1, "response"), (2, "head"), (2, "response"), (0, "head"), (0, "response")];
    assert_eq!(kinds, expected);
    let (Event::Head { fields: first, .. }, Event::Head { fields: second, .. }) = (events[0], events[2])
    else {
        panic!("{events:?}");
    };
    let all: Vec<_> = link.client.captured(&first).collect();
    assert_eq!(all, [(&b"location"[..], &b"/a"[..]), (b"x", b""), (b"location", b"/b")]);
    assert_eq!(link.client.captured_header(&first, "Location"), Some(&b"/a"[..]));
    assert_eq!(link.client.captured_header(&second, "location"), Some(&b"/c"[..]));
    assert_eq!(link.client.captured_header(&second, "link"), None);
    // Trailers come as a head of their own.
    let Event::Head { fields: trailers, .. } = events[4] else { panic!("{events:?}") };
    assert_eq!(link.client.captured(&trailers).collect::<Vec<_>>(), [(&b"trailer"[..], &b"late"[..])]);
    link.take(&[]);
    assert_eq!(link.client.captured(&first).count(), 0);
    assert_eq!(link.client.captured_header(&second, "location"), None);
}

/// A block with indexed fields means something else after every insertion.
#[test]
fn a_repeated_block_is_read_again_when_the_table_has_changed() {
    let mut link = Link::with_requests(&[GET, GET, GET, GET, GET, CAPTURED]);
    // Index 62 is the newest entry of the dynamic table.
    let newest = |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &[0xbe]);
    let insert = |stream, status| {
        frame(HEADERS, END_HEADERS | END_STREAM, stream, &indexed_literal(":status", status))
    };
    let bytes = [insert(1, "201"), newest(3), newest(5), insert(7, "404"), newest(9), newest(11)].concat();
    let events = link.take(&bytes);
    let statuses: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Response { response, .. } => Some(response.status),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, [201, 201, 201, 404, 404, 404]);
    assert_eq!(events.len(), 7, "with the head of the captured one");
}

#[test]
fn a_repeated_block_has_its_fields_again() {
    let mut link = Link::with_requests(&[GET, CAPTURED, CAPTURED, GET, CAPTURED, CAPTURED]);
    let answer = |stream| {
        let head = headers(stream, 0, &[(":status", "200"), ("content-type", "application/grpc")]);
        let trailers = headers(stream, END_STREAM, &[("grpc-status", "0"), ("etag", "")]);
        [head, data(stream, 0, b"abc"), trailers].concat()
    };
    let fields = |link: &Link, events: &[Event]| -> Vec<Vec<(String, String)>> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let heads = events.iter().filter_map(|event| match event {
            Event::Head { fields, .. } => Some(fields),
            _ => None,
        });
        let of = |head| link.client.captured(head).map(|(name, value)| (text(name), text(value))).collect();
        heads.map(of).collect()
    };
    let head = vec![("content-type".to_owned(), "application/grpc".to_owned())];
    let trailers = vec![("grpc-status".to_owned(), "0".to_owned()), ("etag".to_owned(), String::new())];
    // Streams 1 and 7 are not captured; those after them are, of the same blocks.
    let events = link.take(&[answer(1), answer(3), answer(5), answer(7), answer(9)].concat());
    let ended = events.iter().filter(|event| matches!(event, Event::Response { .. }));
    assert_eq!(ended.count(), 5);
    let expected: Vec<_> = (0..3).flat_map(|_| [head.clone(), trailers.clone()]).collect();
    assert_eq!(fields(&link, &events), expected);
    // A head is no trailers, however well it is known.
    let again = headers(11, END_STREAM, &[(":status", "200"), ("content-type", "application/grpc")]);
    let events = link.take(&[headers(11, 0, &[(":status", "200")]), again].concat());
    assert!(matches!(events[1], Event::Failed { ticket: 5, .. }), "{events:?}");
}

#[test]
fn a_repeated_block_is_taken_with_its_content_length() {
    let mut link = Link::with_requests(&[GET, HEAD, GET, GET]);
    let head = |stream, flags| headers(stream, flags, &[(":status", "200"), ("content-length", "3")]);
    let bytes = [
        [head(1, 0), data(1, END_STREAM, b"abc")].concat(),
        head(3, END_STREAM),
        [head(5, 0), data(5, END_STREAM, b"abc")].concat(),
        [head(7, 0), data(7, END_STREAM, b"ab")].concat(),
    ]
    .concat();
    let events = link.take(&bytes);
    assert_eq!(responses(&events[..3]).iter().map(|(_, r)| r.body_bytes).sum::<u64>(), 6);
    assert!(matches!(events[3], Event::Failed { ticket: 3, .. }), "{events:?}");
}

#[test]
fn unknown_frames_and_priorities_mean_nothing() {
    let bytes = [
        frame(PRIORITY, 0, 1, &[0; 5]),
        frame(PRIORITY, 0, 99, &[0; 5]),
        frame(0xbe, 0xff, 1, &[7; 300]),
        frame(0xbe, 0, 2, &[]),
        head_200(1, 0),
        frame(0x0a, 1, 0, &[1]),
        data(1, END_STREAM, b"1234"),
    ]
    .concat();
    let response = read(GET, &bytes);
    let own = head_200(1, 0).len() + data(1, 0, b"1234").len();
    assert_eq!((response.body_bytes, response.wire_bytes), (4, own as u64));
}
