//! Violations that end the connection.

use plimsoll_wire::http2::{Client, ClientOptions, ConnectionError, ErrorCode, FieldLimits, Payload, Submit};

use crate::http2_client::frames::*;
use crate::http2_client::link::{GET, Link, post, request_head};

use ErrorCode::{CompressionError, EnhanceYourCalm, FlowControlError, FrameSizeError, ProtocolError};

/// The error that `bytes` bring, with GOAWAY as the last that the client says.
fn error(link: &mut Link, bytes: &[u8]) -> ConnectionError {
    link.out.clear();
    let error = link.feed(bytes).expect_err("the connection is over");
    let sent = parse(&link.out);
    let last = sent.last().expect("GOAWAY was sent");
    assert_eq!(last, &parse(&go_away(0, error.code.value()))[0]);
    assert_eq!(link.client.capacity(), 0);
    let length = link.out.len();
    assert_eq!(link.feed(&ping(0, 1)), Err(error), "the error stays");
    assert_eq!(link.out.len(), length, "nothing is answered any more");
    error
}

#[test]
fn frames_against_the_rules() {
    let settings_on = |stream| frame(SETTINGS, 0, stream, &[]);
    let table: Vec<(&str, ErrorCode, Vec<u8>)> = vec![
        // Streams (RFC 9113 section 5.1.1).
        ("stream 0", ProtocolError, data(0, 0, b"x")),
        ("stream 0", ProtocolError, head_200(0, 0)),
        ("stream 0", ProtocolError, rst_stream(0, 0)),
        ("stream 0", ProtocolError, frame(PRIORITY, 0, 0, &[0; 5])),
        ("no request has opened", ProtocolError, data(2, 0, b"x")),
        ("no request has opened", ProtocolError, head_200(2, 0)),
        ("no request has opened", ProtocolError, rst_stream(2, 0)),
        ("no request has opened", ProtocolError, window_update(2, 1)),
        ("no request has opened", ProtocolError, data(5, 0, b"x")),
        ("no request has opened", ProtocolError, head_200(5, 0)),
        ("no request has opened", ProtocolError, rst_stream(5, 0)),
        ("no request has opened", ProtocolError, window_update(5, 1)),
        ("PING on a stream", ProtocolError, frame(PING, 0, 1, &[0; 8])),
        ("GOAWAY on a stream", ProtocolError, frame(GOAWAY, 0, 1, &[0; 8])),
        ("SETTINGS on a stream", ProtocolError, settings_on(1)),
        ("PUSH_PROMISE", ProtocolError, frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2])),
        // Lengths (section 4.2 and 6).
        ("SETTINGS_MAX_FRAME_SIZE", FrameSizeError, data(1, 0, &[0; 16_385])),
        ("SETTINGS_MAX_FRAME_SIZE", FrameSizeError, frame(0xfe, 0, 0, &[0; 16_385])),
        ("RST_STREAM of a wrong length", FrameSizeError, frame(RST_STREAM, 0, 1, &[0; 5])),
        ("WINDOW_UPDATE of a wrong length", FrameSizeError, frame(WINDOW_UPDATE, 0, 0, &[0; 3])),
        ("PING of a wrong length", FrameSizeError, frame(PING, 0, 0, &[0; 7])),
        ("PING of a wrong length", FrameSizeError, frame(PING, ACK, 0, &[0; 9])),
        ("GOAWAY of a wrong length", FrameSizeError, frame(GOAWAY, 0, 0, &[0; 7])),
        ("multiple of 6", FrameSizeError, frame(SETTINGS, 0, 0, &[0; 5])),
        ("with a payload", FrameSizeError, frame(SETTINGS, ACK, 0, &[0; 6])),
        ("a padded DATA frame is empty", FrameSizeError, frame(DATA, PADDED, 1, &[])),
        ("too short for its flags", FrameSizeError, frame(HEADERS, END_HEADERS | PADDED, 1, &[])),
        ("too short for its flags", FrameSizeError, frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, &[0; 4])),
        // Padding (section 6.1 and 6.2).
        ("padding of a DATA frame", ProtocolError, frame(DATA, PADDED, 1, &[2, 0])),
        ("padding of HEADERS", ProtocolError, frame(HEADERS, END_HEADERS | PADDED, 1, &[2, 0x88])),
        // Header blocks (section 4.3 and 6.10).
        ("CONTINUATION without", ProtocolError, frame(CONTINUATION, END_HEADERS, 1, &[0x88])),
        ("interrupted", ProtocolError, [frame(HEADERS, 0, 1, &[0x88]), ping(0, 0)].concat()),
        ("interrupted", ProtocolError, [frame(HEADERS, 0, 1, &[0x88]), frame(0xfe, 0, 1, &[])].concat()),
        ("interrupted", ProtocolError, [frame(HEADERS, 0, 1, &[0x88]), data(1, 0, &[])].concat()),
        ("interrupted", ProtocolError, [frame(HEADERS, 0, 1, &[0x88]), head_200(3, 0)].concat()),
        (
            "interrupted",
            ProtocolError,
            [frame(HEADERS, 0, 1, &[0x88]), frame(CONTINUATION, END_HEADERS, 3, &[])].concat(),
        ),
        ("in the middle of a field", CompressionError, frame(HEADERS, END_HEADERS, 1, &[0x40])),
        ("index", CompressionError, frame(HEADERS, END_HEADERS, 1, &[0xbe])),
        ("index", CompressionError, frame(HEADERS, END_HEADERS, 1, &[0x80])),
        ("Huffman", CompressionError, frame(HEADERS, END_HEADERS, 1, &[0x08, 0x81, 0x00])),
        ("table size", CompressionError, frame(HEADERS, END_HEADERS, 1, &[0x88, 0x20])),
        // Also for a stream that is closed.
        ("index", CompressionError, [rst_stream(1, 8), frame(HEADERS, END_HEADERS, 1, &[0xbe])].concat()),
        // SETTINGS (section 6.5).
        ("INITIAL_WINDOW_SIZE is above", FlowControlError, settings(&[(INITIAL_WINDOW_SIZE, 1 << 31)])),
        ("MAX_FRAME_SIZE is out", ProtocolError, settings(&[(MAX_FRAME_SIZE, 16_383)])),
        ("ENABLE_PUSH is neither", ProtocolError, settings(&[(ENABLE_PUSH, 2)])),
        ("sets SETTINGS_ENABLE_PUSH", ProtocolError, settings(&[(ENABLE_PUSH, 1)])),
        ("that were not sent", ProtocolError, [settings_ack(), settings_ack()].concat()),
        // Windows (section 6.9).
        ("WINDOW_UPDATE with an increment of 0", ProtocolError, window_update(0, 0)),
        ("WINDOW_UPDATE with an increment of 0", ProtocolError, window_update(0, 1 << 31)),
        ("overflow", FlowControlError, window_update(0, (1 << 31) - 65_535)),
        (
            "makes a window overflow",
            FlowControlError,
            [window_update(1, 1_000), settings(&[(INITIAL_WINDOW_SIZE, (1 << 31) - 1)])].concat(),
        ),
        ("larger last stream", ProtocolError, [go_away(1, 0), go_away(3, 0)].concat()),
    ];
    for (what, code, bytes) in table {
        let mut link = Link::with_requests(&[GET, GET]);
        let error = error(&mut link, &bytes);
        assert!(error.reason.contains(what), "{what}: {error}");
        assert_eq!((error.code, error.wrong_protocol), (code, false), "{what}");
    }
}

#[test]
fn a_peer_of_another_protocol_is_recognised_by_its_first_bytes() {
    let table: [(&[u8], bool); 9] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", true),
        (b"HTTP/1.0", true),
        (b"HTT", true),
        (b"<html>", true),
        // A TLS alert.
        (&[0x15, 3, 3, 0, 2, 2, 70], true),
        (b"SSH-2.0-OpenSSH_9.6\r\n", true),
        (&[0, 0, 0, 0xff], true),
        // HTTP/2, but not as it has to begin.
        (&[0, 0, 8, PING], false),
        (&[0, 0, 0, SETTINGS, ACK, 0, 0, 0, 0], false),
    ];
    for (bytes, wrong_protocol) in table {
        let mut link = Link::start(&ClientOptions::default());
        let whole = error(&mut link, bytes);
        assert_eq!((whole.code, whole.wrong_protocol), (ProtocolError, wrong_protocol), "{bytes:?}");
        let mut link = Link::start(&ClientOptions::default());
        let found = bytes.iter().find_map(|&byte| link.feed(&[byte]).err());
        assert_eq!(found, Some(whole), "byte by byte: {bytes:?}");
    }
}

#[test]
fn http_1_is_recognised_however_large_frames_may_be() {
    let options = ClientOptions { max_frame_size: (1 << 24) - 1, ..ClientOptions::default() };
    let mut link = Link::start(&options);
    assert!(error(&mut link, b"HTTP/1.1 200 OK").wrong_protocol);
}

#[test]
fn a_first_frame_of_a_known_kind_is_http_2_all_the_same() {
    for bytes in [go_away(0, 11), head_200(1, 0), ping(0, 0), window_update(0, 1)] {
        let mut link = Link::start(&ClientOptions::default());
        link.submit(GET);
        let error = error(&mut link, &bytes);
        assert_eq!(error.to_string(), "the server's first frame is not SETTINGS (PROTOCOL_ERROR)");
        assert!(!error.wrong_protocol);
    }
}

#[test]
fn the_events_before_an_error_are_valid() {
    let mut link = Link::with_requests(&[GET, GET]);
    let result = link.feed(&[response(1, b"x"), head_200(3, 0), data(2, 0, b"")].concat());
    assert_eq!(result.map_err(|error| error.code), Err(ProtocolError));
    assert_eq!(link.events.len(), 2, "the response, and the begin of another: {:?}", link.events);
    assert_eq!(link.client.tickets().collect::<Vec<_>>(), [1], "whoever asked has to be told");
}

#[test]
fn more_data_than_the_connections_window_allows() {
    let options = ClientOptions { connection_window: 70_000, ..ClientOptions::default() };
    // A window that is replenished is never used up by a single frame of 16 KiB, but by one of 64 KiB.
    let options = ClientOptions { max_frame_size: 80_000, ..options };
    let mut link = Link::ready_with(&options, &[]);
    link.submit(GET);
    let error = error(&mut link, &[head_200(1, 0), data(1, 0, &vec![0; 70_001])].concat());
    assert_eq!(error.code, FlowControlError);
}

#[test]
fn header_blocks_are_bounded_in_bytes_and_frames() {
    let limits = FieldLimits { list_bytes: 1_000, fields: 10 };
    let options = ClientOptions { limits, max_frame_size: 20_000, ..ClientOptions::default() };
    let ready = || {
        let mut link = Link::ready_with(&options, &[]);
        link.submit(GET);
        link
    };
    let begin = frame(HEADERS, 0, 1, &[0; 1_000]);
    let more = frame(CONTINUATION, 0, 1, &[0; 16_384]);
    let mut link = ready();
    assert_eq!(link.feed(&[&begin[..], &more].concat()), Ok(()));
    assert_eq!(error(&mut link, &frame(CONTINUATION, 0, 1, &[0])).code, EnhanceYourCalm);

    let mut link = ready();
    let empty = frame(CONTINUATION, 0, 1, &[]);
    assert_eq!(link.feed(&frame(HEADERS, 0, 1, &[])), Ok(()));
    for _ in 0..128 {
        assert_eq!(link.feed(&empty), Ok(()));
    }
    assert_eq!(error(&mut link, &empty).code, EnhanceYourCalm);
}

#[test]
fn frames_that_bring_nothing_on_are_bounded() {
    let floods: Vec<(&str, Vec<u8>)> = vec![
        ("ping", ping(0, 0)),
        ("pong", ping(ACK, 0)),
        ("settings", settings(&[])),
        ("priority", frame(PRIORITY, 0, 1, &[0; 5])),
        ("unknown", frame(0xfe, 0, 0, &[])),
        ("reset", rst_stream(1, 8)),
        ("empty data", data(3, 0, &[])),
        ("padding", frame(DATA, PADDED, 3, &[0])),
        ("late empty data", data(1, 0, &[])),
        ("go away", go_away(3, 0)),
    ];
    for (what, flood) in floods {
        let mut link = Link::with_requests(&[GET, GET, GET]);
        link.client.cancel(0, &mut link.out);
        assert_eq!(link.feed(&head_200(3, 0)), Ok(()));
        assert_eq!(link.feed(&flood.repeat(9_999)), Ok(()), "{what}");
        assert_eq!(link.client.active(), if what == "go away" { 1 } else { 2 });
        assert_eq!(link.feed(&data(3, END_STREAM, b"x")), Ok(()), "a response");
        assert_eq!(link.feed(&flood.repeat(9_999)), Ok(()), "{what}: counted from that response on");
        assert_eq!(error(&mut link, &flood.repeat(3)).code, EnhanceYourCalm, "{what}");
    }
}

#[test]
fn answers_that_were_asked_for_are_not_a_flood() {
    let (mut client, mut out) = (Client::new(&ClientOptions::default()), Vec::new());
    let mut events = Vec::new();
    client.receive(&settings(&[]), &mut out, &mut events).expect("SETTINGS are fine");
    for payload in 0..20_000 {
        client.ping(payload, &mut out);
        client.receive(&ping(ACK, payload), &mut out, &mut events).expect("a ping was sent");
        out.clear();
    }
    assert_eq!(events.len(), 20_001);
}

/// Symptom: updates that let nothing be sent kept a worker busy until the timeout of its request.
#[test]
fn window_updates_that_let_nothing_be_sent_have_an_end() {
    for stream in [0, 1] {
        let mut link = Link::with_requests(&[GET]);
        // Nothing waits for the window.
        let updates = window_update(stream, 1).repeat(10_000);
        for _ in 0..100 {
            assert_eq!(link.feed(&updates), Ok(()));
        }
        assert_eq!(error(&mut link, &updates).code, EnhanceYourCalm, "{stream}");
    }
}

/// Many small updates are how some servers let a large request in.
#[test]
fn window_updates_are_not_a_flood() {
    let mut link = Link::ready();
    let body = vec![0; 100_000];
    link.submit(post(&body));
    for _ in 0..30_000 {
        assert_eq!(link.feed(&window_update(0, 1)), Ok(()));
    }
    let shared = Submit { body: Payload::None, ..GET };
    link.client.submit(shared, request_head, &mut link.out);
    assert_eq!(link.client.active(), 2);
}

/// Some servers measure the path by pings for as long as content comes or goes.
#[test]
fn pings_beside_content_are_not_a_flood() {
    let mut link = Link::ready();
    let body = vec![0; 200_000];
    link.submit(post(&body));
    let opening = [ping(0, 1), window_update(1, 5), window_update(0, 5)].concat();
    assert_eq!(link.feed(&opening.repeat(20_000)), Ok(()));
    link.client.cancel(0, &mut link.out);
    link.submit(GET);
    assert_eq!(link.feed(&head_200(3, 0)), Ok(()));
    assert_eq!(link.feed(&[ping(0, 1), data(3, 0, b"x")].concat().repeat(20_000)), Ok(()));
}
