//! Frames, as a simulated server reads and writes them.

use crate::hpack;

/// Every window and frame size until SETTINGS say otherwise (RFC 9113 section 6.5.2 and 6.9.2).
pub(crate) const WINDOW: i64 = 65_535;
/// The largest payload of a frame that a client takes unless it says so, in bytes.
pub const FRAME_BYTES: usize = 16_384;
pub(crate) const WINDOW_MAX: i64 = (1 << 31) - 1;

/// A frame with a part of a body.
pub const DATA: u8 = 0;
/// A frame that begins a block of fields.
pub const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
/// A frame that ends a stream with an error.
pub const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
/// A frame that is to be acknowledged.
pub const PING: u8 = 6;
/// A frame that ends the connection.
pub const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
/// A frame that goes on with a block of fields.
pub const CONTINUATION: u8 = 9;

/// Flag: the last frame of a stream, or an acknowledgement.
pub const END: u8 = 1;
/// Flag: the last frame of a block of fields.
pub const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const PRIORITISED: u8 = 0x20;

/// Error codes (RFC 9113 section 7).
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const FLOW_CONTROL_ERROR: u32 = 3;
pub(crate) const STREAM_CLOSED: u32 = 5;
pub(crate) const FRAME_SIZE_ERROR: u32 = 6;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const COMPRESSION_ERROR: u32 = 9;

/// One frame.
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

/// The client broke a rule that ends the connection, with this code.
pub(super) struct Breach(pub(super) u32);

/// The payload without padding and priority.
pub(super) fn trimmed(flags: u8, mut payload: &[u8]) -> Result<&[u8], Breach> {
    let mut padding = 0;
    if flags & PADDED != 0 {
        let (&length, rest) = payload.split_first().ok_or(Breach(FRAME_SIZE_ERROR))?;
        (padding, payload) = (usize::from(length), rest);
    }
    if flags & PRIORITISED != 0 {
        payload = payload.get(5..).ok_or(Breach(FRAME_SIZE_ERROR))?;
    }
    let length = payload.len().checked_sub(padding).ok_or(Breach(PROTOCOL_ERROR))?;
    Ok(&payload[..length])
}

pub(super) fn word(payload: &[u8]) -> Result<u32, Breach> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Breach(FRAME_SIZE_ERROR))
}

pub(crate) fn put_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

pub(super) fn put_head(out: &mut Vec<u8>, stream: u32, flags: u8, status: u16, fields: &[(String, String)]) {
    let mut block = Vec::new();
    hpack::write(&mut block, ":status", &status.to_string());
    for (name, value) in fields {
        hpack::write(&mut block, &name.to_ascii_lowercase(), value);
    }
    put_frame(out, HEADERS, flags, stream, &block);
}
