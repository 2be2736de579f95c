//! The opening of a connection.

use plimsoll_wire::http2::{ErrorCode, FieldLimits, PREFACE, Server, ServerOptions};

use crate::http2_server::frames::{
    ACK, HEADERS, INITIAL_WINDOW_SIZE, PING, SETTINGS, WINDOW_UPDATE, frame, headers, parse, ping, settings,
    settings_ack,
};
use crate::http2_server::link::{GET, Link, Word};

#[test]
fn the_server_tells_its_settings_and_its_window() {
    let options = ServerOptions {
        header_table_size: 0,
        max_streams: 7,
        stream_window: 0,
        connection_window: 100_000,
        max_frame_size: 1 << 30,
        limits: FieldLimits { list_bytes: 9_000, fields: 10 },
        keeps_content: false,
        tells_parts: false,
        extended_connect: false,
        timeout_field: "",
    };
    let mut out = Vec::new();
    Server::new(&options).start(&mut out);
    let frames = parse(&out);
    let values: Vec<(u16, u32)> = frames[0]
        .payload
        .chunks(6)
        .map(|setting| {
            let word = u32::from_be_bytes(setting[2..].try_into().unwrap());
            (u16::from_be_bytes([setting[0], setting[1]]), word)
        })
        .collect();
    assert_eq!((frames[0].kind, frames[0].flags), (SETTINGS, 0));
    assert_eq!(values, [(1, 0), (3, 7), (4, 1), (5, (1 << 24) - 1), (6, 9_000)]);
    assert_eq!((frames[1].kind, frames[1].stream, frames[1].word()), (WINDOW_UPDATE, 0, 100_000 - 65_535));
    assert_eq!(frames.len(), 2);
    let mut out = Vec::new();
    Server::new(&ServerOptions { connection_window: 5, ..options }).start(&mut out);
    assert_eq!(parse(&out).len(), 1, "the initial window cannot be made smaller");
}

#[test]
fn settings_and_pings_are_acknowledged() {
    let mut link = Link::fresh(&ServerOptions::default());
    let bytes = [PREFACE, &settings(&[(0x99, 1)]), &ping(0, 0x0102), &ping(ACK, 5), &settings(&[])].concat();
    let frames = link.hear(&bytes);
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.flags, frame.payload.len())).collect();
    assert_eq!(kinds, [(SETTINGS, ACK, 0), (PING, ACK, 8), (SETTINGS, ACK, 0)]);
    assert_eq!(frames[1].payload, 0x0102_u64.to_be_bytes());
}

#[test]
fn another_protocol_is_recognised_at_its_first_wrong_byte() {
    for first in [&b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"[..], b"\x16\x03\x01", b"PRI * HTTP/2.1", b"P "] {
        for bytes in [first.chunks(first.len()), first.chunks(1)] {
            let mut link = Link::fresh(&ServerOptions::default());
            let error = bytes.map(|part| link.receive(part)).find_map(Result::err).unwrap();
            assert!(error.wrong_protocol, "{first:?}");
            assert_eq!(error.code, ErrorCode::ProtocolError);
            let mut out = Vec::new();
            assert_eq!(link.server.receive(PREFACE, &mut out, &mut link.requests), Err(error));
            assert!(out.is_empty(), "an error is told once");
        }
    }
    let mut link = Link::fresh(&ServerOptions::default());
    assert!(link.hear(&PREFACE[..23]).is_empty(), "a part of the preface is no error yet");
}

#[test]
fn the_first_frame_is_settings() {
    let others = [
        headers(1, 0, &GET),
        settings_ack(),
        ping(0, 1),
        frame(0x77, 0, 0, b"unknown"),
        frame(0, 0, 1, b"data"),
    ];
    for other in others {
        let error = Link::fresh(&ServerOptions::default()).receive(&[PREFACE, &other].concat()).unwrap_err();
        assert_eq!(error.code, ErrorCode::ProtocolError);
        assert!(!error.wrong_protocol);
    }
}

#[test]
fn requests_may_come_before_the_settings_are_acknowledged() {
    let mut link = Link::fresh(&ServerOptions { stream_window: 1, ..ServerOptions::default() });
    let body = vec![0; 16_384];
    let bytes = [
        PREFACE,
        &settings(&[(INITIAL_WINDOW_SIZE, 1 << 20)]),
        &headers(1, 0, &GET),
        &frame(0, 0, 1, &body),
        &frame(0, 0, 1, &body),
    ]
    .concat();
    link.hear(&bytes);
    // The client had not seen the small window. After the acknowledgement it has.
    link.hear(&[settings_ack(), frame(0, 0, 1, b"1")].concat());
    let frames = link.hear(&frame(0, 0, 1, b"12"));
    assert_eq!((frames[0].kind, frames[0].word()), (3, ErrorCode::FlowControlError.value()));
    assert_eq!(frames.len(), 1);
    assert!(!frames.iter().any(|frame| frame.kind == HEADERS));
}
