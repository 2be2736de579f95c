//! Flow control: content of requests within the server's windows, content of responses within the client's.

use std::sync::Arc;

use plimsoll_wire::http2::{ClientOptions, Event, Payload, StreamFailure, Submit};

use crate::http2_client::frames::*;
use crate::http2_client::link::{GET, Link, failed, post, responses};

const INITIAL: usize = 65_535;

fn shared(bytes: &Arc<[u8]>) -> Submit<'_> {
    Submit { body: Payload::Shared(bytes), ..GET }
}

/// Stream and length of the DATA frames that were sent since the last call, and whether each ends its stream.
fn sent_data(link: &mut Link) -> Vec<(u32, usize, bool)> {
    let frames = link.sent().into_iter().filter(|frame| frame.kind == DATA);
    frames.map(|frame| (frame.stream, frame.payload.len(), frame.flags & END_STREAM != 0)).collect()
}

#[test]
fn content_is_limited_by_frame_size_and_windows() {
    let mut link = Link::ready();
    let body = vec![1; INITIAL + 10];
    link.submit(post(&body));
    let frames = [16_384, 16_384, 16_384, 16_383].map(|length| (1, length, false));
    assert_eq!(sent_data(&mut link), frames);
    link.take(&window_update(1, 4));
    assert_eq!(sent_data(&mut link), [], "the connection's window is used up, too");
    link.take(&window_update(0, 100));
    assert_eq!(sent_data(&mut link), [(1, 4, false)]);
    link.take(&window_update(1, 100));
    assert_eq!(sent_data(&mut link), [(1, 6, true)]);
    assert_eq!(responses(&link.take(&response(1, b""))).len(), 1);
    assert_eq!(link.sent(), [], "the request was complete: no reset");
}

#[test]
fn the_bytes_arrive_in_order_whoever_owns_them() {
    let bytes: Vec<u8> = (0..3_000_u32).map(|at| (at / 7) as u8).collect();
    let owned: Arc<[u8]> = bytes.clone().into();
    for spec in [post(&bytes), shared(&owned)] {
        let mut link = Link::ready_with(&ClientOptions::default(), &[(INITIAL_WINDOW_SIZE, 0)]);
        link.submit(spec);
        let frames = link.sent();
        assert_eq!((frames.len(), frames[0].flags), (1, END_HEADERS), "the head goes alone");
        let mut arrived: Vec<u8> = Vec::new();
        for step in 1.. {
            link.take(&window_update(1, step));
            for frame in link.sent() {
                assert_eq!((frame.kind, frame.stream), (DATA, 1));
                arrived.extend(&frame.payload);
                assert_eq!(frame.flags == END_STREAM, arrived.len() == bytes.len());
            }
            if arrived.len() == bytes.len() {
                break;
            }
        }
        assert_eq!(arrived, bytes);
    }
    assert_eq!(Arc::strong_count(&owned), 1, "nothing is held any longer");
}

#[test]
fn streams_take_turns_when_the_connections_window_opens() {
    let mut link = Link::ready_with(&ClientOptions::default(), &[(INITIAL_WINDOW_SIZE, 1 << 20)]);
    let body = vec![1; 40_000];
    for _ in 0..4 {
        link.submit(post(&body));
    }
    let first: usize = sent_data(&mut link).iter().map(|(_, length, _)| length).sum();
    assert_eq!(first, INITIAL);
    // 14,465 bytes of stream 3 are left, 40,000 of streams 5 and 7.
    link.take(&window_update(0, 4 * 16_384));
    let sent = sent_data(&mut link);
    assert_eq!(sent.iter().map(|frame| frame.0).collect::<Vec<_>>(), [3, 5, 7, 5, 7]);
    assert_eq!(sent[0], (3, 2 * 40_000 - INITIAL, true));
    link.take(&window_update(0, 1 << 20));
    let ends: Vec<_> = sent_data(&mut link).iter().filter(|frame| frame.2).map(|frame| frame.0).collect();
    assert_eq!(ends, [5, 7]);
}

#[test]
fn small_openings_go_round() {
    let mut link = Link::ready();
    let body = vec![1; INITIAL];
    for _ in 0..4 {
        link.submit(post(&body));
    }
    sent_data(&mut link);
    let mut turns = Vec::new();
    for _ in 0..7 {
        link.take(&window_update(0, 10));
        turns.extend(sent_data(&mut link));
    }
    assert_eq!(turns, [3, 5, 7, 3, 5, 7, 3].map(|stream| (stream, 10, false)));
}

#[test]
fn cancelled_and_failed_streams_lose_their_turn() {
    let mut link = Link::ready();
    let body: Arc<[u8]> = vec![1; INITIAL].into();
    for _ in 0..5 {
        link.submit(shared(&body));
    }
    sent_data(&mut link);
    link.client.cancel(1, &mut link.out);
    let events = link.take(&[rst_stream(5, 7), window_update(7, 0)].concat());
    assert_eq!(events[0], failed(2, StreamFailure::Refused));
    assert!(matches!(events[1], Event::Failed { ticket: 3, .. }));
    assert_eq!(Arc::strong_count(&body), 2, "only the fifth still waits");
    link.take(&window_update(0, 1));
    assert_eq!(sent_data(&mut link), [(9, 1, false)]);
    // The freed tickets start over.
    assert_eq!(link.submit(post(b"abc")), 3);
    link.take(&window_update(0, INITIAL as u32 + 100));
    let sent = sent_data(&mut link);
    assert_eq!(sent.iter().filter(|frame| frame.0 == 11).collect::<Vec<_>>(), [&(11, 3, true)]);
    assert_eq!(sent.last(), Some(&(9, INITIAL - 1 - 3 * 16_384, true)));
}

#[test]
fn a_new_initial_window_moves_the_windows_of_open_streams() {
    let mut link = Link::ready_with(&ClientOptions::default(), &[(INITIAL_WINDOW_SIZE, 10)]);
    link.submit(post(&[1; 30]));
    assert_eq!(sent_data(&mut link), [(1, 10, false)]);
    link.take(&settings(&[(INITIAL_WINDOW_SIZE, 4)]));
    link.take(&window_update(1, 6));
    assert_eq!(sent_data(&mut link), [], "the window was 6 below zero");
    link.take(&window_update(1, 1));
    assert_eq!(sent_data(&mut link), [(1, 1, false)]);
    link.submit(post(&[1; 5]));
    assert_eq!(sent_data(&mut link), [(3, 4, false)], "a fresh stream has the latest size");
    link.take(&settings(&[(INITIAL_WINDOW_SIZE, 1_000)]));
    assert_eq!(sent_data(&mut link), [(1, 19, true), (3, 1, true)]);
}

#[test]
fn a_window_that_shrinks_while_its_stream_waits_for_the_connection() {
    let mut link = Link::ready();
    let body = vec![1; INITIAL];
    link.submit(post(&body));
    link.submit(post(&[2; 50]));
    sent_data(&mut link);
    link.take(&settings(&[(INITIAL_WINDOW_SIZE, 0)]));
    link.take(&window_update(0, 1_000));
    assert_eq!(sent_data(&mut link), []);
    link.take(&window_update(3, 20));
    assert_eq!(sent_data(&mut link), [(3, 20, false)]);
    link.take(&settings(&[(INITIAL_WINDOW_SIZE, 30)]));
    assert_eq!(sent_data(&mut link), [(3, 30, true)]);
}

#[test]
fn settings_are_acknowledged_before_what_they_allow() {
    let mut link = Link::ready_with(&ClientOptions::default(), &[(INITIAL_WINDOW_SIZE, 0)]);
    link.submit(post(b"abc"));
    link.out.clear();
    link.take(&settings(&[(INITIAL_WINDOW_SIZE, 100)]));
    assert_eq!(link.sent().iter().map(|frame| frame.kind).collect::<Vec<_>>(), [SETTINGS, DATA]);
}

#[test]
fn windows_are_given_back_when_half_of_them_is_used() {
    let options =
        ClientOptions { stream_window: 10_000, connection_window: 70_000, ..ClientOptions::default() };
    let mut link = Link::ready_with(&options, &[]);
    link.submit(GET);
    link.out.clear();
    link.take(&[head_200(1, 0), data(1, 0, &[0; 4_999])].concat());
    assert_eq!(link.out, []);
    // Padding counts.
    link.take(&frame(DATA, PADDED, 1, &[0]));
    assert_eq!(link.out, window_update(1, 5_000));
    link.out.clear();
    for _ in 0..3 {
        link.take(&data(1, 0, &[0; 10_000]));
    }
    let updates = [window_update(1, 10_000), window_update(1, 10_000)].concat();
    let updates = [updates, window_update(0, 35_000), window_update(1, 10_000)].concat();
    assert_eq!(link.out, updates);
    link.out.clear();
    link.take(&data(1, END_STREAM, &[0; 10_000]));
    assert_eq!(link.out, [], "a stream that ends needs no window");
}

#[test]
fn late_content_of_a_cancelled_stream_counts_for_the_connections_window() {
    let options = ClientOptions { connection_window: 70_000, ..ClientOptions::default() };
    let mut link = Link::ready_with(&options, &[]);
    link.submit(GET);
    link.client.cancel(0, &mut link.out);
    link.out.clear();
    link.take(&[data(1, 0, &[0; 16_384]), data(1, 0, &[0; 16_384])].concat());
    assert_eq!(link.out, []);
    link.take(&data(1, 0, &[0; 3_000]));
    assert_eq!(link.out, window_update(0, 35_768));
}

#[test]
fn more_content_than_the_streams_window_allows() {
    let options = ClientOptions { stream_window: 100, ..ClientOptions::default() };
    let mut link = Link::ready_with(&options, &[]);
    link.submit(GET);
    link.out.clear();
    let events = link.take(&[head_200(1, 0), data(1, 0, &[0; 101])].concat());
    assert!(matches!(events[..], [Event::Failed { failure: StreamFailure::Malformed(_), .. }]), "{events:?}");
    assert_eq!(link.out, rst_stream(1, 3));
}

#[test]
fn content_needs_no_memory() {
    let mut link = Link::ready();
    link.submit(GET);
    link.take(&head_200(1, 0));
    let chunk = data(1, 0, &[7; 16_384]);
    for _ in 0..1_000 {
        for piece in chunk.chunks(1_000) {
            assert_eq!(link.take(piece), []);
        }
    }
    let events = link.take(&data(1, END_STREAM, b""));
    assert_eq!(responses(&events)[0].1.body_bytes, 16_384_000);
}

#[test]
fn content_is_told_as_it_comes_where_that_is_asked_for() {
    let told = Submit { keep_body: true, tell_content: true, ..GET };
    let mut link = Link::with_requests(&[told, Submit { keep_body: true, ..GET }]);
    let content = |ticket| Event::Content { ticket, status: 200 };
    let mut body = Vec::new();
    assert_eq!(link.take(&head_200(1, 0)), [Event::Began { ticket: 0 }]);
    link.take(&head_200(3, 0));
    // Two frames of one segment, and one that is cut.
    let two = [data(1, 0, b"ab"), data(1, 0, b"cd"), data(3, 0, b"xy")].concat();
    assert_eq!(link.take(&two), [content(0)]);
    link.client.take_body(0, &mut body);
    assert_eq!(body, b"abcd");
    let cut = data(1, 0, b"efgh");
    assert_eq!(link.take(&cut[..10]), [content(0)]);
    assert_eq!(link.take(&cut[10..]), [content(0)]);
    assert_eq!(link.take(&data(1, 0, b"")), []);
    let events = link.take(&data(1, END_STREAM, b"i"));
    assert!(matches!(events[..], [Event::Content { ticket: 0, .. }, Event::Response { .. }]), "{events:?}");
    assert_eq!(responses(&events[1..])[0].1.body_bytes, 9, "what was taken is counted");
    assert_eq!(link.client.body(1), b"xy");
}
