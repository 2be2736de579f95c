//! The beginning and the end of a connection, SETTINGS, PING and GOAWAY.

use plimsoll_wire::http2::{Client, ClientOptions, ErrorCode, Event, FieldLimits, PREFACE, StreamFailure};

use crate::http2_client::frames::*;
use crate::http2_client::link::{GET, Link, failed, post, request_head, responses};

#[test]
fn a_client_starts_with_the_preface_settings_and_a_large_window() {
    let options = ClientOptions {
        header_table_size: 1000,
        encoder_table_size: 0,
        stream_window: 70_000,
        connection_window: 100_000,
        max_frame_size: 20_000,
        max_streams: 5,
        limits: FieldLimits { list_bytes: 9_999, fields: 10 },
        interim: 1,
    };
    let (mut client, mut out) = (Client::new(&options), Vec::new());
    client.start(&mut out);
    assert!(out.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    let own = settings(&[(1, 1000), (2, 0), (4, 70_000), (5, 20_000), (6, 9_999)]);
    assert_eq!(out[PREFACE.len()..], [own, window_update(0, 100_000 - 65_535)].concat());
}

#[test]
fn options_out_of_range_become_the_nearest() {
    let options = ClientOptions {
        stream_window: u32::MAX,
        connection_window: 1,
        max_frame_size: 1,
        ..ClientOptions::default()
    };
    let (mut client, mut out) = (Client::new(&options), Vec::new());
    client.start(&mut out);
    let own = settings(&[(1, 4096), (2, 0), (4, (1 << 31) - 1), (5, 16_384), (6, 65_536)]);
    assert_eq!(out[PREFACE.len()..], own);
}

#[test]
fn requests_may_go_before_the_servers_settings() {
    let mut link = Link::start(&ClientOptions { max_streams: 3, ..ClientOptions::default() });
    assert!(!link.client.is_ready());
    assert_eq!((link.client.capacity(), link.client.server_limit()), (3, None));
    link.submit(GET);
    link.submit(GET);
    assert_eq!(link.client.capacity(), 1);
    let events = link.take(&[settings(&[(MAX_CONCURRENT_STREAMS, 1)]), response(1, b"")].concat());
    assert_eq!(events[0], Event::Ready);
    assert!(link.client.is_ready());
    assert_eq!((link.client.capacity(), link.client.active()), (0, 1), "the server allows fewer");
    assert_eq!(link.client.server_limit(), Some(1));
    link.take(&settings(&[(MAX_CONCURRENT_STREAMS, 100)]));
    assert_eq!(link.client.capacity(), 2, "the own limit");
}

#[test]
fn a_request_is_one_frame_and_ends_its_stream() {
    let mut link = Link::ready();
    assert_eq!((link.submit(GET), link.submit(post(b"ab")), link.submit(post(b""))), (0, 1, 2));
    let kinds: Vec<_> = link.sent().iter().map(|f| (f.kind, f.flags, f.stream)).collect();
    let expected = [
        (HEADERS, END_HEADERS | END_STREAM, 1),
        (HEADERS, END_HEADERS, 3),
        (DATA, END_STREAM, 3),
        (HEADERS, END_HEADERS | END_STREAM, 5),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(link.client.tickets().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_head_larger_than_a_frame_is_continued() {
    for (len, parts) in [(16_384, 1), (16_385, 2), (40_000, 3)] {
        let mut link = Link::ready();
        let written: Vec<u8> = (0..len).map(|at| at as u8).collect();
        link.client.submit(GET, |_, out| out.extend(&written), &mut link.out);
        let frames = link.sent();
        assert_eq!(frames.len(), parts);
        assert_eq!(frames[0].kind, HEADERS);
        assert_eq!(frames[0].flags & END_STREAM, END_STREAM);
        assert!(frames[1..].iter().all(|frame| frame.kind == CONTINUATION));
        let ends: Vec<_> = frames.iter().map(|frame| frame.flags & END_HEADERS != 0).collect();
        assert_eq!(ends.iter().filter(|&&end| end).count(), 1);
        assert_eq!(ends.last(), Some(&true));
        assert!(frames.iter().all(|frame| frame.stream == 1 && frame.payload.len() <= 16_384));
        let joined: Vec<u8> = frames.into_iter().flat_map(|frame| frame.payload).collect();
        assert_eq!(joined, written);
    }
}

#[test]
fn settings_are_acknowledged_and_a_table_without_room_is_respected() {
    let mut link = Link::start(&ClientOptions::default());
    let twice = [settings(&[(0xf00d, 7), (MAX_FRAME_SIZE, 20_000)]), settings_ack(), settings(&[])];
    assert_eq!(link.take(&twice.concat()), [Event::Ready]);
    let acks = link.sent();
    assert_eq!(acks.len(), 2);
    assert!(acks.iter().all(|f| (f.kind, f.flags, f.payload.len()) == (SETTINGS, ACK, 0)));
    let content = vec![7; 20_001];
    link.submit(post(&content));
    let lengths: Vec<_> = link.sent()[1..].iter().map(|frame| frame.payload.len()).collect();
    assert_eq!(lengths, [20_000, 1], "the server's frame size");
}

#[test]
fn the_peers_table_size_reaches_the_encoder() {
    use plimsoll_wire::http2::{Field, FieldValue, HeaderBlockCache};
    let mut book = HeaderBlockCache::new();
    let value = FieldValue::Fixed(b"plimsoll".to_vec());
    let id = book.add(vec![Field { name: b"user-agent".to_vec(), value, never_indexed: false }]);
    book.seal();
    // The smallest value of a frame counts, even if a larger one follows.
    let table: [(&[(u16, u32)], bool); 3] = [
        (&[], true),
        (&[(HEADER_TABLE_SIZE, 0)], false),
        (&[(HEADER_TABLE_SIZE, 0), (HEADER_TABLE_SIZE, 4096)], false),
    ];
    for (values, inserts) in table {
        let mut link = Link::ready_with(&ClientOptions::default(), values);
        let mut lengths = Vec::new();
        for _ in 0..2 {
            let head = |indexing: &mut _, out: &mut _| book.write(id, indexing, out, |_, _| {});
            link.client.submit(GET, head, &mut link.out);
            lengths.push(link.sent()[0].payload.len());
        }
        assert_eq!(lengths[1] == 1, inserts, "{values:?}: {lengths:?}");
    }
}

#[test]
fn pings_are_answered_and_answers_are_events() {
    let mut link = Link::ready();
    assert_eq!(link.take(&ping(0, 0x0102_0304_0506_0708)), []);
    assert_eq!(link.out, ping(ACK, 0x0102_0304_0506_0708));
    link.out.clear();
    link.client.ping(42, &mut link.out);
    assert_eq!(link.out, ping(0, 42));
    assert_eq!(link.take(&ping(ACK, 42)), [Event::Pong { payload: 42 }]);
    assert_eq!(link.take(&ping(ACK, 42)), [], "nobody asked");
}

#[test]
fn go_away_fails_what_was_not_processed_and_the_rest_goes_on() {
    let mut link = Link::with_requests(&[GET, GET, GET, GET]);
    let unprocessed = |ticket| failed(ticket, StreamFailure::Unprocessed);
    assert!(!link.client.is_going_away());
    let graceful = link.take(&go_away((1 << 31) - 1, 0));
    assert_eq!(graceful, [Event::GoAway { code: ErrorCode::NoError, unprocessed: 0 }]);
    assert!(link.client.is_going_away());
    assert_eq!((link.client.capacity(), link.client.active()), (0, 4));

    let first = link.take(&go_away(5, 0));
    assert_eq!(first, [Event::GoAway { code: ErrorCode::NoError, unprocessed: 1 }, unprocessed(3)]);
    assert_eq!(responses(&link.take(&response(3, b"x")))[0].0, 1);
    let second = link.take(&go_away(1, 11));
    assert_eq!(second, [Event::GoAway { code: ErrorCode::EnhanceYourCalm, unprocessed: 1 }, unprocessed(2)]);
    assert_eq!(link.client.tickets().collect::<Vec<_>>(), [0]);
    let late = link.take(&[response(5, b"late"), response(7, b"late")].concat());
    assert_eq!(late, [], "what was announced as not processed");
    assert_eq!(responses(&link.take(&response(1, b"x")))[0].0, 0);
    assert_eq!(link.client.active(), 0);
    assert_eq!(link.sent(), []);
}

#[test]
fn unprocessed_requests_fail_in_the_order_of_their_streams() {
    let mut link = Link::with_requests(&[GET; 40]);
    link.take(&[response(3, b""), response(1, b"")].concat());
    // The freed tickets are used again, the last first.
    assert_eq!((link.submit(GET), link.submit(GET)), (0, 1));
    let events = link.take(&frame(GOAWAY, 0, 0, b"\0\0\0\x05\0\0\0\x02debug data"));
    assert_eq!(events[0], Event::GoAway { code: ErrorCode::InternalError, unprocessed: 39 });
    let tickets: Vec<_> = events[1..]
        .iter()
        .map(|event| match event {
            Event::Failed { ticket, failure: StreamFailure::Unprocessed } => *ticket,
            other => panic!("{other:?}"),
        })
        .collect();
    let expected: Vec<u32> = (3..40).chain([0, 1]).collect();
    assert_eq!(tickets, expected);
    assert_eq!(link.client.tickets().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_client_that_says_goodbye_opens_no_more_streams() {
    let mut link = Link::with_requests(&[GET]);
    link.client.go_away(&mut link.out);
    assert_eq!(link.out, go_away(0, 0));
    assert!(link.client.is_going_away());
    assert_eq!((link.client.capacity(), link.client.active()), (0, 1));
    assert_eq!(responses(&link.take(&response(1, b""))).len(), 1);
}

#[test]
fn tickets_are_dense_and_used_again() {
    let mut link = Link::ready_with(&ClientOptions { max_streams: 3, ..ClientOptions::default() }, &[]);
    let mut stream = 1;
    for _ in 0..50 {
        while link.client.capacity() > 0 {
            assert!(link.submit(GET) < 3);
        }
        link.take(&response(stream, b"x"));
        stream += 2;
    }
    assert_eq!(link.client.active(), 2);
}

/// A caller may submit as soon as it handles the first of these events, and still has to find the second
/// one's request.
#[test]
fn a_ticket_is_not_used_again_before_its_end_was_dealt_with() {
    let mut link = Link::with_requests(&[GET, GET]);
    assert_eq!(link.feed(&[response(1, b""), rst_stream(3, 7)].concat()), Ok(()));
    assert_eq!(link.client.active(), 0);
    link.client.reuse(0);
    assert_eq!(link.submit(GET), 0);
    assert_eq!(link.submit(GET), 2);
    link.client.cancel(1, &mut link.out);
    link.client.reuse(1);
    assert_eq!(link.submit(GET), 1);
    assert_eq!(link.client.tickets().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_request_goes_behind_what_is_in_out_already() {
    let mut link = Link::ready();
    link.out.extend(b"before");
    link.client.submit(GET, request_head, &mut link.out);
    assert_eq!(parse(&link.out[6..]).len(), 1);
}
