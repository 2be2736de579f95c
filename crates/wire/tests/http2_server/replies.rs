//! Replies, and the limits that hold them back.

use std::sync::Arc;

use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{ErrorCode, Field, FieldValue, HeaderBlockCache, Payload, ServerOptions};

use crate::http2_server::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, GOAWAY, HEADER_TABLE_SIZE, HEADERS,
    INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, RST_STREAM, data, go_away, headers, parse, rst_stream, settings,
    window_update,
};
use crate::http2_server::link::{GET, Link, POST, Word, ok, shapes};

fn asked(values: &[(u16, u32)], streams: &[u32]) -> Link {
    let mut link = Link::new(&ServerOptions::default(), values);
    for &stream in streams {
        link.hear(&headers(stream, END_STREAM, &GET));
    }
    assert_eq!(link.streams(), streams);
    link
}

/// The content of each stream, and whether it ended.
fn content(frames: &[Frame], stream: u32) -> (Vec<u8>, bool) {
    let of_stream = || frames.iter().filter(|frame| frame.stream == stream && frame.kind == DATA);
    let bytes = of_stream().flat_map(|frame| frame.payload.clone()).collect();
    (bytes, of_stream().any(|frame| frame.flags & END_STREAM != 0))
}

#[test]
fn a_reply_is_a_head_and_its_content() {
    let mut link = asked(&[], &[1, 3, 5]);
    let frames = link.reply(3, Payload::Bytes(b"hello")).unwrap();
    assert_eq!(shapes(&frames), [(HEADERS, END_HEADERS, 3, 1), (DATA, END_STREAM, 3, 5)]);
    assert!(!link.server.is_open(3));
    assert_eq!(link.reply(3, Payload::None), None, "it was answered");
    let frames = link.reply(1, Payload::None).unwrap();
    assert_eq!(shapes(&frames), [(HEADERS, END_HEADERS | END_STREAM, 1, 1)]);
    let frames = link.reply(5, Payload::Shared(&Arc::from(&b"!"[..]))).unwrap();
    assert_eq!(shapes(&frames), [(HEADERS, END_HEADERS, 5, 1), (DATA, END_STREAM, 5, 1)]);
    assert_eq!((link.server.active(), link.server.cancelled()), (0, 0));
    assert_eq!(link.reply(7, Payload::None), None, "it never came");
}

#[test]
fn a_reply_to_head_has_no_content() {
    let mut link = Link::usual();
    let fields = [(":method", "HEAD"), GET[1], GET[2]];
    link.hear(&[headers(1, END_STREAM, &fields), headers(3, END_STREAM, &fields)].concat());
    let frames = link.reply(1, Payload::Bytes(b"hello")).unwrap();
    assert_eq!(shapes(&frames), [(HEADERS, END_HEADERS | END_STREAM, 1, 1)]);
    assert!(link.server.reply_head(3, ok, &mut Vec::new()));
    assert_eq!(link.data(3, b"hello", false).unwrap(), []);
    assert_eq!(shapes(&link.data(3, b"hello", true).unwrap()), [(DATA, END_STREAM, 3, 0)]);
    assert_eq!(link.server.active(), 0);
}

#[test]
fn a_head_that_is_larger_than_a_frame_goes_on_in_others() {
    let mut link = asked(&[], &[1]);
    let mut out = Vec::new();
    let head = vec![0x88; 40_000];
    assert!(link.server.reply(1, |_, out| out.extend_from_slice(&head), Payload::None, &mut out));
    let expected = [
        (HEADERS, END_STREAM, 1, 16_384),
        (CONTINUATION, 0, 1, 16_384),
        (CONTINUATION, END_HEADERS, 1, 40_000 - 2 * 16_384),
    ];
    assert_eq!(shapes(&parse(&out)), expected);
}

#[test]
fn content_comes_in_frames_of_the_clients_size() {
    for (size, frames) in [(16_384, 3), (20_000, 2), (1 << 20, 1)] {
        let mut link = asked(&[(MAX_FRAME_SIZE, size)], &[1]);
        let said = link.reply(1, Payload::Bytes(&[7; 40_000])).unwrap();
        assert_eq!(said.len(), 1 + frames, "{size}");
        assert_eq!(content(&said, 1), (vec![7; 40_000], true));
    }
}

#[test]
fn a_stream_window_holds_its_reply_back_and_no_other() {
    let mut link = asked(&[(INITIAL_WINDOW_SIZE, 4)], &[1, 3]);
    let body: Arc<[u8]> = Arc::from(&b"0123456789"[..]);
    let mut said = link.reply(1, Payload::Shared(&body)).unwrap();
    assert_eq!(content(&said, 1), (b"0123".to_vec(), false));
    assert_eq!(link.server.waiting(1), 6);
    assert_eq!(content(&link.reply(3, Payload::Bytes(b"abcd")).unwrap(), 3), (b"abcd".to_vec(), true));
    assert!(link.server.is_open(1) && !link.server.is_open(3));
    assert!(link.hear(&window_update(0, 1_000)).is_empty());
    for increment in [1, 2, 3] {
        assert!(link.server.is_open(1));
        said.extend(link.hear(&window_update(1, increment)));
    }
    assert_eq!(content(&said, 1), (b"0123456789".to_vec(), true));
    assert!(!link.server.is_open(1));
    assert_eq!(Arc::strong_count(&body), 1, "what was shared is given back");
}

#[test]
fn the_initial_window_moves_open_streams_below_zero_and_back() {
    let mut link = asked(&[(INITIAL_WINDOW_SIZE, 4)], &[1]);
    let mut said = link.reply(1, Payload::Bytes(b"0123456789")).unwrap();
    let acks = |frames: &[Frame]| frames.iter().filter(|frame| frame.kind == 4).count();
    let mut change = |link: &mut Link, size| {
        let frames = link.hear(&settings(&[(INITIAL_WINDOW_SIZE, size)]));
        assert_eq!(acks(&frames), 1);
        said.extend(frames);
        content(&said, 1).0.len()
    };
    // Four bytes are sent; the window is then the size less four.
    for (size, sent) in [(0, 4), (3, 4), (6, 6), (0, 6), (5, 6), (7, 7), (100, 10)] {
        assert_eq!(change(&mut link, size), sent, "{size}");
    }
    assert_eq!(content(&said, 1), (b"0123456789".to_vec(), true));
}

#[test]
fn streams_take_turns_at_the_connections_window() {
    let mut link = asked(&[(INITIAL_WINDOW_SIZE, 1 << 20)], &[1, 3, 5]);
    let mut said = Vec::new();
    for stream in [1, 3, 5] {
        said.extend(link.reply(stream, Payload::Bytes(&vec![stream as u8; 100_000])).unwrap());
    }
    assert_eq!(content(&said, 1).0.len(), 65_535);
    let frames = link.hear(&window_update(0, 3 * 16_384));
    let turns: Vec<_> = frames.iter().map(|frame| (frame.stream, frame.payload.len())).collect();
    assert_eq!(turns, [(1, 16_384), (3, 16_384), (5, 16_384)]);
    said.extend(frames);
    for _ in 0..1_000 {
        said.extend(link.hear(&window_update(0, 1_000)));
    }
    for stream in [1, 3, 5] {
        assert_eq!(content(&said, stream), (vec![stream as u8; 100_000], true));
    }
    assert_eq!(link.server.active(), 0);
}

#[test]
fn a_reset_drops_what_waits() {
    let mut link = asked(&[(INITIAL_WINDOW_SIZE, 1)], &[1, 3]);
    let body: Arc<[u8]> = Arc::from(&b"0123456789"[..]);
    for stream in [1, 3] {
        link.reply(stream, Payload::Shared(&body)).unwrap();
    }
    assert_eq!(Arc::strong_count(&body), 3);
    assert!(link.hear(&rst_stream(1, 8)).is_empty());
    assert_eq!((link.server.cancelled(), Arc::strong_count(&body)), (1, 2));
    let mut out = Vec::new();
    link.server.reset(3, ErrorCode::InternalError, &mut out);
    link.server.reset(3, ErrorCode::InternalError, &mut out);
    link.server.reset(99, ErrorCode::InternalError, &mut out);
    let frames = parse(&out);
    assert_eq!((frames.len(), frames[0].kind, frames[0].word()), (1, RST_STREAM, 2));
    assert_eq!((link.server.cancelled(), Arc::strong_count(&body)), (1, 1));
    assert!(link.hear(&[window_update(1, 5), window_update(3, 5)].concat()).is_empty());
    // The next streams use the places of these.
    link.hear(&[headers(5, END_STREAM, &GET), window_update(5, 100)].concat());
    assert_eq!(content(&link.reply(5, Payload::Bytes(b"abc")).unwrap(), 5), (b"abc".to_vec(), true));
}

#[test]
fn slow_content_follows_piece_by_piece() {
    let mut link = asked(&[(INITIAL_WINDOW_SIZE, 5)], &[1]);
    assert_eq!(link.data(1, b"early", false), None, "there is no head yet");
    let mut out = Vec::new();
    assert!(link.server.reply_head(1, ok, &mut out));
    assert!(!link.server.reply_head(1, ok, &mut out), "one head only");
    assert_eq!(link.reply(1, Payload::None), None);
    let mut said = parse(&out);
    assert_eq!(shapes(&said), [(HEADERS, END_HEADERS, 1, 1)]);
    for (piece, waits) in [("abc", 0), ("def", 1), ("", 1), ("gh", 3)] {
        said.extend(link.data(1, piece.as_bytes(), false).unwrap());
        assert_eq!(link.server.waiting(1), waits);
    }
    said.extend(link.data(1, b"", true).unwrap());
    assert_eq!(link.data(1, b"more", true), None, "it was ended");
    assert!(link.server.is_open(1));
    said.extend(link.hear(&window_update(1, 100)));
    assert_eq!(content(&said, 1), (b"abcdefgh".to_vec(), true));
    assert!(!link.server.is_open(1));
}

#[test]
fn a_client_that_goes_away_still_gets_its_replies() {
    let mut link = asked(&[], &[1]);
    assert!(link.hear(&go_away(0, 0)).is_empty());
    assert!(link.reply(1, Payload::Bytes(b"ok")).is_some());
}

#[test]
fn a_server_that_goes_away_answers_what_came_before() {
    let mut link = asked(&[], &[1, 5]);
    let mut out = Vec::new();
    link.server.go_away(ErrorCode::NoError, &mut out);
    let frames = parse(&out);
    assert_eq!((frames[0].kind, frames[0].word()), (GOAWAY, 5));
    assert!(
        link.hear(&[headers(7, 0, &GET), crate::http2_server::frames::data(7, END_STREAM, b"late")].concat())
            .is_empty()
    );
    assert!(link.requests.is_empty() && !link.server.is_open(7));
    out.clear();
    link.server.go_away(ErrorCode::NoError, &mut out);
    assert_eq!(parse(&out)[0].word(), 5, "it does not rise again");
    assert!(link.reply(5, Payload::None).is_some() && link.reply(1, Payload::None).is_some());
    assert_eq!(link.server.active(), 0);
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let mut link = Link::new(&ServerOptions { max_streams: 2, ..ServerOptions::default() }, &[]);
    let four: Vec<u8> =
        [1, 3, 5, 7].into_iter().flat_map(|stream| headers(stream, END_STREAM, &GET)).collect();
    let frames = link.hear(&four);
    assert_eq!(link.streams(), [1, 3]);
    let refused: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.stream, frame.word())).collect();
    assert_eq!(refused, [(RST_STREAM, 5, 7), (RST_STREAM, 7, 7)]);
    link.reply(1, Payload::None).unwrap();
    link.hear(&headers(9, END_STREAM, &GET));
    assert_eq!(link.streams(), [9]);
}

#[test]
fn replies_use_the_clients_table_as_far_as_it_allows() {
    let mut book = HeaderBlockCache::new();
    let fixed = |name: &str, value: &str| Field {
        name: name.as_bytes().to_vec(),
        value: FieldValue::Fixed(value.as_bytes().to_vec()),
        never_indexed: false,
    };
    let reply = book.add(vec![fixed(":status", "200"), fixed("server", "sink")]);
    book.seal();
    let block = |link: &mut Link, stream| {
        link.hear(&headers(stream, END_STREAM, &GET));
        let mut out = Vec::new();
        let head = |indexing: &mut _, out: &mut _| book.write(reply, indexing, out, |_, _| ());
        assert!(link.server.reply(stream, head, Payload::None, &mut out));
        parse(&out).remove(0).payload
    };
    // The second block refers to what the first one has inserted.
    let mut link = asked(&[], &[]);
    assert!(block(&mut link, 1).len() > 2);
    assert_eq!(block(&mut link, 3), [0x88, 0xbe]);
    // A client that sets its table to zero gets a size update of zero, and literals.
    link.hear(&settings(&[(HEADER_TABLE_SIZE, 0)]));
    assert_eq!(block(&mut link, 5)[..2], [0x20, 0x88]);
    let plain = block(&mut link, 7);
    assert!(plain[0] == 0x88 && plain.len() > 2);
    assert_eq!(block(&mut link, 9), plain);
}

/// A header block that leaves the dynamic table alone.
fn trailers() -> Vec<u8> {
    let mut block = Vec::new();
    put_literal(&mut block, b"grpc-status", b"0", false);
    block
}

#[test]
fn trailers_follow_the_content_that_waits() {
    let block = trailers();
    let end = (HEADERS, END_HEADERS | END_STREAM, 1, block.len());
    // Nothing waits.
    let mut link = asked(&[], &[1, 3]);
    let mut out = Vec::new();
    assert!(!link.server.trailers(1, &block, &mut out), "there is no head");
    assert!(link.server.reply_head(1, ok, &mut out) && link.server.is_replying(1));
    link.data(1, b"abc", false).unwrap();
    out.clear();
    assert!(link.server.trailers(1, &block, &mut out));
    assert_eq!(shapes(&parse(&out)), [end]);
    assert!(!link.server.is_open(1) && !link.server.is_replying(1));
    assert!(!link.server.trailers(1, &block, &mut out), "it is over");
    // Content that waits goes first, and nothing comes behind.
    let mut link = asked(&[(INITIAL_WINDOW_SIZE, 4)], &[1, 3]);
    assert!(link.server.reply_head(1, ok, &mut Vec::new()));
    let mut said = link.data(1, b"0123456789", false).unwrap();
    out.clear();
    assert!(link.server.trailers(1, &block, &mut out) && out.is_empty());
    assert!(!link.server.trailers(1, &block, &mut out) && link.data(1, b"x", false).is_none());
    said.extend(link.hear(&window_update(1, 5)));
    assert!(link.server.is_open(1));
    said.extend(link.hear(&window_update(1, 5)));
    assert_eq!(shapes(&said).last(), Some(&end));
    assert_eq!(content(&said, 1), (b"0123456789".to_vec(), false));
    assert!(!link.server.is_open(1));
    // The next stream in its place has none of it.
    link.hear(&headers(5, END_STREAM, &GET));
    assert_eq!(content(&link.reply(5, Payload::Bytes(b"ab")).unwrap(), 5), (b"ab".to_vec(), true));
    // A stream that is reset takes its trailers along.
    assert!(link.server.reply_head(3, ok, &mut Vec::new()));
    link.data(3, b"0123456789", false).unwrap();
    assert!(link.server.trailers(3, &block, &mut out));
    link.hear(&rst_stream(3, 8));
    link.hear(&headers(7, END_STREAM, &GET));
    assert_eq!(content(&link.reply(7, Payload::Bytes(b"cd")).unwrap(), 7), (b"cd".to_vec(), true));
}

#[test]
fn a_request_may_be_answered_while_it_comes() {
    let options = ServerOptions { keeps_content: true, tells_parts: true, ..ServerOptions::default() };
    let mut link = Link::new(&options, &[]);
    let told = |link: &mut Link| {
        let requests: Vec<_> = link.requests.drain(..).collect();
        let told = requests.iter().map(|request| (request.whole, link.text(request.content)));
        told.collect::<Vec<_>>()
    };
    link.hear(&headers(1, 0, &POST));
    assert!(told(&mut link).is_empty());
    link.hear(&data(1, 0, b"abc"));
    assert_eq!(told(&mut link), [(false, "abc".to_owned())]);
    assert!(link.server.reply_head(1, ok, &mut Vec::new()));
    link.server.consume(1, 2);
    assert_eq!(content(&link.data(1, b"AB", false).unwrap(), 1), (b"AB".to_vec(), false));
    link.hear(&data(1, 0, b"de"));
    assert_eq!(told(&mut link), [(false, "cde".to_owned())]);
    // Content that comes with the end is reported once.
    link.hear(&data(1, END_STREAM, b"f"));
    assert_eq!(told(&mut link), [(true, "cdef".to_owned())]);
    assert_eq!(content(&link.data(1, b"C", true).unwrap(), 1), (b"C".to_vec(), true));
    // A client whose answer is over need not send the rest.
    link.hear(&[headers(3, 0, &POST), data(3, 0, b"a")].concat());
    let frames = link.reply(3, Payload::Bytes(b"no")).unwrap();
    let shape = (RST_STREAM, 0, 3, 4);
    assert_eq!(shapes(&frames).last(), Some(&shape));
    assert_eq!(frames.last().unwrap().word(), ErrorCode::NoError.value());
    link.hear(&data(3, END_STREAM, b"late"));
    assert_eq!(link.server.active(), 0);
}
