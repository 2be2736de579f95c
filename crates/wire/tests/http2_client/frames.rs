//! Frames as bytes, made here without the code under test.

use plimsoll_wire::http2::hpack::put_literal;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const ENABLE_PUSH: u16 = 2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;

/// Names and values.
pub(crate) type Fields<'f> = &'f [(&'f str, &'f str)];

/// One frame that the client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// Takes bytes apart that are whole frames.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some((&[a, b, c, kind, flags, s0, s1, s2, s3], rest)) = bytes.split_first_chunk() {
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let (payload, rest) = rest.split_at(length);
        let stream = u32::from_be_bytes([s0, s1, s2, s3]);
        frames.push(Frame { kind, flags, stream, payload: payload.to_vec() });
        bytes = rest;
    }
    assert!(bytes.is_empty(), "half a frame: {bytes:?}");
    frames
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub(crate) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in values {
        payload.extend(id.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, &payload)
}

pub(crate) fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

/// A block of literals that are not indexed.
pub(crate) fn block(fields: Fields<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        put_literal(&mut block, name.as_bytes(), value.as_bytes(), false);
    }
    block
}

/// A literal that goes into the dynamic table, without Huffman coding (RFC 7541 section 6.2.1).
pub(crate) fn indexed_literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0x40, name.len() as u8];
    bytes.extend(name.bytes());
    bytes.push(value.len() as u8);
    bytes.extend(value.bytes());
    assert!(name.len() < 127 && value.len() < 127);
    bytes
}

/// HEADERS with the whole block.
pub(crate) fn headers(stream: u32, flags: u8, fields: Fields<'_>) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, &block(fields))
}

/// HEADERS of a response that is all right.
pub(crate) fn head_200(stream: u32, flags: u8) -> Vec<u8> {
    headers(stream, flags, &[(":status", "200"), ("server", "script")])
}

pub(crate) fn data(stream: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, flags, stream, bytes)
}

/// A response with this content.
pub(crate) fn response(stream: u32, content: &[u8]) -> Vec<u8> {
    [head_200(stream, 0), data(stream, END_STREAM, content)].concat()
}

pub(crate) fn rst_stream(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

pub(crate) fn ping(flags: u8, payload: u64) -> Vec<u8> {
    frame(PING, flags, 0, &payload.to_be_bytes())
}

pub(crate) fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}
