//! Frames (RFC 9113 section 4 and 6): heads, the cutting of a byte stream, and the frames that are written.

use super::{ConnectionError, ErrorCode};

/// Bytes that a client sends before its first frame (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's head.
pub(super) const HEAD_BYTES: usize = 9;

/// The smallest SETTINGS_MAX_FRAME_SIZE, and the value in force until a peer sets another (RFC 9113 section
/// 6.5.2).
pub(super) const MIN_MAX_FRAME_SIZE: u32 = 16_384;

/// The largest SETTINGS_MAX_FRAME_SIZE (RFC 9113 section 6.5.2).
pub(super) const MAX_MAX_FRAME_SIZE: u32 = (1 << 24) - 1;

/// The largest stream identifier; also the mask that removes the reserved bit.
pub(super) const MAX_STREAM: u32 = (1 << 31) - 1;

/// Frame types (RFC 9113 section 6).
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0x0;
    pub(in super::super) const HEADERS: u8 = 0x1;
    pub(in super::super) const PRIORITY: u8 = 0x2;
    pub(in super::super) const RST_STREAM: u8 = 0x3;
    pub(in super::super) const SETTINGS: u8 = 0x4;
    pub(in super::super) const PUSH_PROMISE: u8 = 0x5;
    pub(in super::super) const PING: u8 = 0x6;
    pub(in super::super) const GOAWAY: u8 = 0x7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 0x8;
    pub(in super::super) const CONTINUATION: u8 = 0x9;
}

/// Frame flags. ACK and END_STREAM are the same bit of different frames.
pub(super) mod flag {
    pub(in super::super) const ACK: u8 = 0x1;
    pub(in super::super) const END_STREAM: u8 = 0x1;
    pub(in super::super) const END_HEADERS: u8 = 0x4;
    pub(in super::super) const PADDED: u8 = 0x8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    /// Bytes of payload, 24 bits.
    pub(super) length: u32,
    /// The type, one of [`kind`] or unknown.
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// The stream, 31 bits; 0 is the connection.
    pub(super) stream: u32,
}

impl FrameHead {
    /// Reads a head; the reserved bit is ignored.
    #[inline(always)]
    pub(super) fn read(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & MAX_STREAM,
        }
    }

    #[inline]
    pub(super) fn bytes(self) -> [u8; HEAD_BYTES] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s0, s1, s2, s3]
    }

    #[inline]
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The item at the front of a byte stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Front<'i> {
    /// Too few bytes to be handled; `needed` bytes from the front on are needed for the next try.
    Cut { needed: usize },
    /// A DATA frame, as soon as its length and that of its padding are known. `taken` bytes are read (the
    /// head and the length of the padding), `follows` bytes of content and padding come after them.
    Data { head: FrameHead, padding: u32, taken: usize, follows: u32 },
    /// A frame of an unknown type, to be skipped: `follows` bytes after its head.
    Unknown { head: FrameHead, follows: u32 },
    /// Any other frame, whole.
    Whole { head: FrameHead, payload: &'i [u8] },
}

/// Reads the front of `bytes`. Payloads over `max_frame_size` are an error.
#[inline(always)]
pub(super) fn front(bytes: &[u8], max_frame_size: u32) -> Result<Front<'_>, ConnectionError> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Ok(Front::Cut { needed: HEAD_BYTES });
    };
    let head = FrameHead::read(head);
    if head.length > max_frame_size {
        return Err(ConnectionError::frame_size("a frame is larger than SETTINGS_MAX_FRAME_SIZE"));
    }
    match head.kind {
        kind::DATA if !head.has(flag::PADDED) => {
            Ok(Front::Data { head, padding: 0, taken: HEAD_BYTES, follows: head.length })
        }
        kind::DATA => padded_data(head, rest),
        kind::HEADERS..=kind::CONTINUATION => Ok(match rest.get(..head.length as usize) {
            Some(payload) => Front::Whole { head, payload },
            None => Front::Cut { needed: HEAD_BYTES + head.length as usize },
        }),
        _ => Ok(Front::Unknown { head, follows: head.length }),
    }
}

#[cold]
fn padded_data(head: FrameHead, rest: &[u8]) -> Result<Front<'static>, ConnectionError> {
    let Some(follows) = head.length.checked_sub(1) else {
        return Err(ConnectionError::frame_size("a padded DATA frame is empty"));
    };
    let Some(&padding) = rest.first() else {
        return Ok(Front::Cut { needed: HEAD_BYTES + 1 });
    };
    if u32::from(padding) > follows {
        return Err(ConnectionError::protocol("the padding of a DATA frame is longer than the frame"));
    }
    Ok(Front::Data { head, padding: u32::from(padding), taken: HEAD_BYTES + 1, follows })
}

/// The fragment of a header block in the payload of a HEADERS frame: without padding and priority
/// (RFC 9113 section 6.2).
#[inline]
pub(super) fn header_fragment(head: FrameHead, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    if !head.has(flag::PADDED | flag::PRIORITY) {
        return Ok(payload);
    }
    let mut fragment = payload;
    let too_short = ConnectionError::frame_size("a HEADERS frame is too short for its flags");
    let mut padding = 0;
    if head.has(flag::PADDED) {
        let (&length, rest) = fragment.split_first().ok_or(too_short)?;
        (padding, fragment) = (usize::from(length), rest);
    }
    if head.has(flag::PRIORITY) {
        fragment = fragment.get(5..).ok_or(too_short)?;
    }
    let length = fragment.len().checked_sub(padding);
    let length =
        length.ok_or(ConnectionError::protocol("the padding of HEADERS is longer than the frame"))?;
    Ok(&fragment[..length])
}

/// Appends a frame's head.
#[inline]
pub(super) fn put_head(out: &mut Vec<u8>, length: u32, kind: u8, flags: u8, stream: u32) {
    out.extend_from_slice(&FrameHead { length, kind, flags, stream }.bytes());
}

/// Appends HEADERS for the block that `write` appends, with CONTINUATION frames if it is longer than the
/// peer's `max_frame_size`. Gives the bytes of the block.
#[inline]
pub(super) fn put_headers(
    out: &mut Vec<u8>,
    stream: u32,
    end_stream: bool,
    max_frame_size: u32,
    write: impl FnOnce(&mut Vec<u8>),
) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    write(out);
    let length = out.len() - start - HEAD_BYTES;
    let end = if end_stream { flag::END_STREAM } else { 0 };
    if length > max_frame_size as usize {
        split_headers(out, start, stream, end, max_frame_size as usize);
    } else {
        let flags = end | flag::END_HEADERS;
        let head = FrameHead { length: length as u32, kind: kind::HEADERS, flags, stream };
        out[start..start + HEAD_BYTES].copy_from_slice(&head.bytes());
    }
    length
}

/// Puts the block that begins behind a frame head at `start` into frames of at most `size` bytes.
#[cold]
fn split_headers(out: &mut Vec<u8>, start: usize, stream: u32, end: u8, size: usize) {
    let block = out.split_off(start + HEAD_BYTES);
    out.truncate(start);
    let mut fragments = block.chunks(size).peekable();
    let (mut kind, mut flags) = (kind::HEADERS, end);
    while let Some(fragment) = fragments.next() {
        if fragments.peek().is_none() {
            flags |= flag::END_HEADERS;
        }
        put_head(out, fragment.len() as u32, kind, flags, stream);
        out.extend_from_slice(fragment);
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}

/// Appends RST_STREAM (RFC 9113 section 6.4).
pub(super) fn put_rst_stream(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    put_head(out, 4, kind::RST_STREAM, 0, stream);
    out.extend_from_slice(&code.value().to_be_bytes());
}

/// Appends SETTINGS with these identifiers and values (RFC 9113 section 6.5).
pub(super) fn put_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    put_head(out, 6 * settings.len() as u32, kind::SETTINGS, 0, 0);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of SETTINGS.
pub(super) fn put_settings_ack(out: &mut Vec<u8>) {
    put_head(out, 0, kind::SETTINGS, flag::ACK, 0);
}

/// Appends PING, or the answer to one (RFC 9113 section 6.7).
pub(super) fn put_ping(out: &mut Vec<u8>, ack: bool, payload: [u8; 8]) {
    put_head(out, 8, kind::PING, if ack { flag::ACK } else { 0 }, 0);
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY without debug data (RFC 9113 section 6.8).
pub(super) fn put_go_away(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode) {
    put_head(out, 8, kind::GOAWAY, 0, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.value().to_be_bytes());
}

/// Appends WINDOW_UPDATE; stream 0 is the connection, `increment` is from 1 to 2^31 - 1 (RFC 9113 section
/// 6.9).
pub(super) fn put_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    put_head(out, 4, kind::WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// A payload of exactly four bytes, as RST_STREAM and WINDOW_UPDATE have.
#[inline]
pub(super) fn word(payload: &[u8], reason: &'static str) -> Result<u32, ConnectionError> {
    let bytes = payload.try_into().map_err(|_| ConnectionError::frame_size(reason))?;
    Ok(u32::from_be_bytes(bytes))
}

/// The payload of PING (RFC 9113 section 6.7).
pub(super) fn ping_payload(head: FrameHead, payload: &[u8]) -> Result<[u8; 8], ConnectionError> {
    if head.stream != 0 {
        return Err(ConnectionError::protocol("PING on a stream"));
    }
    payload.try_into().map_err(|_| ConnectionError::frame_size("PING of a wrong length"))
}

/// The last stream and the code of GOAWAY (RFC 9113 section 6.8); debug data is ignored.
pub(super) fn go_away_payload(head: FrameHead, payload: &[u8]) -> Result<(u32, ErrorCode), ConnectionError> {
    if head.stream != 0 {
        return Err(ConnectionError::protocol("GOAWAY on a stream"));
    }
    let Some((&[last, code], _)) = payload.as_chunks::<4>().0.split_first_chunk::<2>() else {
        return Err(ConnectionError::frame_size("GOAWAY of a wrong length"));
    };
    let (last, code) = (u32::from_be_bytes(last) & MAX_STREAM, u32::from_be_bytes(code));
    Ok((last, ErrorCode::from_value(code)))
}

/// Returns `true` if SETTINGS are an acknowledgement, which is empty (RFC 9113 section 6.5).
pub(super) fn is_settings_ack(head: FrameHead, payload: &[u8]) -> Result<bool, ConnectionError> {
    if head.stream != 0 {
        return Err(ConnectionError::protocol("SETTINGS on a stream"));
    }
    let ack = head.has(flag::ACK);
    if ack && !payload.is_empty() {
        return Err(ConnectionError::frame_size("an acknowledgement of SETTINGS with a payload"));
    }
    Ok(ack)
}
