//! Rules whose breach ends the connection.

use plimsoll_wire::http2::{ErrorCode, Payload, ServerOptions};

use crate::http2_server::frames::{
    ACK, CONTINUATION, DATA, ENABLE_PUSH, END_HEADERS, END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE, PADDED, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, data, frame,
    headers, rst_stream, settings, window_update,
};
use crate::http2_server::link::{GET, Link, POST, Word, in_parts};

const PROTOCOL: ErrorCode = ErrorCode::ProtocolError;
const SIZE: ErrorCode = ErrorCode::FrameSizeError;
const FLOW: ErrorCode = ErrorCode::FlowControlError;
const CLOSED: ErrorCode = ErrorCode::StreamClosed;

#[test]
fn broken_rules_have_their_codes() {
    let cut_head = in_parts(1, END_STREAM, &GET, 2);
    let first_part = &cut_head[..cut_head.len() / 2];
    let first_part = &first_part[..9 + first_part[2] as usize];
    let open = headers(1, 0, &POST);
    let table: Vec<(&str, Vec<u8>, ErrorCode)> = vec![
        ("a frame that is too large", frame(DATA, 0, 1, &[0; 16_385])[..9].to_vec(), SIZE),
        ("an even stream", headers(2, END_STREAM, &GET), PROTOCOL),
        ("HEADERS on stream 0", headers(0, END_STREAM, &GET), PROTOCOL),
        ("an older stream", [headers(5, END_STREAM, &GET), headers(3, END_STREAM, &GET)].concat(), CLOSED),
        ("DATA on stream 0", data(0, 0, b"a"), PROTOCOL),
        ("DATA on an idle stream", data(1, 0, b"a"), PROTOCOL),
        ("RST_STREAM on an idle stream", rst_stream(1, 8), PROTOCOL),
        ("RST_STREAM on stream 0", rst_stream(0, 8), PROTOCOL),
        ("a short RST_STREAM", [open.clone(), frame(RST_STREAM, 0, 1, &[0; 3])].concat(), SIZE),
        ("WINDOW_UPDATE on an idle stream", window_update(1, 1), PROTOCOL),
        ("WINDOW_UPDATE with an increment of 0", window_update(0, 0), PROTOCOL),
        ("a window that overflows", window_update(0, 0x7fff_ffff), FLOW),
        ("a long WINDOW_UPDATE", frame(WINDOW_UPDATE, 0, 0, &[0; 5]), SIZE),
        ("PRIORITY on stream 0", frame(PRIORITY, 0, 0, &[0; 5]), PROTOCOL),
        ("a short PRIORITY", frame(PRIORITY, 0, 3, &[0; 4]), SIZE),
        ("PUSH_PROMISE", frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]), PROTOCOL),
        ("SETTINGS on a stream", frame(SETTINGS, 0, 1, &[]), PROTOCOL),
        ("a cut setting", frame(SETTINGS, 0, 0, &[0; 5]), SIZE),
        ("an acknowledgement with settings", frame(SETTINGS, ACK, 0, &[0; 6]), SIZE),
        ("a push that is half on", settings(&[(ENABLE_PUSH, 2)]), PROTOCOL),
        ("an initial window too large", settings(&[(INITIAL_WINDOW_SIZE, 1 << 31)]), FLOW),
        ("a small frame size", settings(&[(MAX_FRAME_SIZE, 16_383)]), PROTOCOL),
        ("PING on a stream", frame(PING, 0, 1, &[0; 8]), PROTOCOL),
        ("a short PING", frame(PING, 0, 0, &[0; 7]), SIZE),
        ("GOAWAY on a stream", frame(GOAWAY, 0, 1, &[0; 8]), PROTOCOL),
        ("a short GOAWAY", frame(GOAWAY, 0, 0, &[0; 7]), SIZE),
        ("CONTINUATION alone", frame(CONTINUATION, END_HEADERS, 1, &[]), PROTOCOL),
        ("a ping in a head", [first_part, &frame(PING, 0, 0, &[0; 8])].concat(), PROTOCOL),
        ("an unknown frame in a head", [first_part, &frame(0x77, 0, 1, &[])].concat(), PROTOCOL),
        ("DATA in a head", [first_part, &data(1, 0, b"a")].concat(), PROTOCOL),
        ("another stream's continuation", [first_part, &frame(CONTINUATION, 0, 3, &[])].concat(), PROTOCOL),
        ("an index that does not exist", frame(HEADERS, END_HEADERS, 1, &[0xff, 0x80, 0x01]), {
            ErrorCode::CompressionError
        }),
        ("a broken trailer block", [open.clone(), frame(HEADERS, END_HEADERS, 1, &[0x40])].concat(), {
            ErrorCode::CompressionError
        }),
        ("padding only", [open.clone(), frame(DATA, PADDED, 1, &[])].concat(), SIZE),
        ("padding beyond the frame", [open.clone(), frame(DATA, PADDED, 1, &[2, 0])].concat(), PROTOCOL),
        ("padding beyond HEADERS", frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0x82]), PROTOCOL),
    ];
    for (what, bytes, code) in table {
        let error = Link::usual().receive(&bytes).expect_err(what);
        assert_eq!((error.code, error.wrong_protocol), (code, false), "{what}: {error}");
    }
}

#[test]
fn a_closed_stream_stays_closed() {
    let answered = || {
        let mut link = Link::usual();
        link.hear(&headers(1, END_STREAM, &GET));
        link.reply(1, Payload::None).unwrap();
        link
    };
    for bytes in [headers(1, END_STREAM, &GET), data(1, 0, b"a")] {
        assert_eq!(answered().receive(&bytes).unwrap_err().code, CLOSED);
    }
    // These may have been under way.
    for bytes in [rst_stream(1, 8), window_update(1, 5), frame(PRIORITY, 0, 1, &[0; 5])] {
        assert!(answered().hear(&bytes).is_empty());
    }
}

#[test]
fn what_follows_a_whole_request_ends_its_stream() {
    for bytes in [headers(1, END_STREAM, &[("t", "1")]), data(1, 0, b"a"), data(1, END_STREAM, b"")] {
        let mut link = Link::usual();
        link.hear(&headers(1, END_STREAM, &GET));
        let frames = link.hear(&bytes);
        assert_eq!((frames[0].kind, frames[0].word()), (RST_STREAM, CLOSED.value()));
        assert_eq!(link.reply(1, Payload::None), None);
        assert_eq!(link.server.cancelled(), 0);
    }
}

#[test]
fn more_data_than_the_windows_allow_is_an_error() {
    let options = ServerOptions { stream_window: 100, connection_window: 65_535, ..ServerOptions::default() };
    let mut link = Link::new(&options, &[]);
    link.hear(&headers(1, 0, &POST));
    let frames = link.hear(&data(1, 0, &[0; 101]));
    assert_eq!((frames[0].kind, frames[0].stream, frames[0].word()), (RST_STREAM, 1, FLOW.value()));
    // The connection's window is given back at once, so only a frame larger than it can break it.
    let options = ServerOptions { max_frame_size: 100_000, connection_window: 65_535, ..options };
    let mut link = Link::new(&options, &[]);
    link.hear(&headers(1, 0, &POST));
    assert_eq!(link.receive(&data(1, 0, &[0; 65_536])).unwrap_err().code, FLOW);
}

#[test]
fn windows_of_streams_overflow_alone() {
    let mut link = Link::usual();
    link.hear(&[headers(1, END_STREAM, &GET), headers(3, END_STREAM, &GET)].concat());
    let frames = link.hear(&[window_update(1, 0x7fff_ffff), window_update(3, 0)].concat());
    let said: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.stream, frame.word())).collect();
    assert_eq!(said, [(RST_STREAM, 1, FLOW.value()), (RST_STREAM, 3, PROTOCOL.value())]);
    assert_eq!(link.server.active(), 0);
    // An overflow of a window by a changed initial window is an error of the connection.
    let mut link = Link::usual();
    link.hear(&[headers(1, END_STREAM, &GET), window_update(1, 0x7fff_ffff - 65_535)].concat());
    assert_eq!(link.receive(&settings(&[(INITIAL_WINDOW_SIZE, 65_536)])).unwrap_err().code, FLOW);
}
