//! Writing frames: requests in one piece or part by part, and replies.

use std::fmt;
use std::io::Write as _;

use super::{Kind, LENGTH_BYTES, LONGEST_FRAME, Operation, TooLong};

/// Appends a whole request. A GET, DELETE or PING has no value, and a PING neither cache nor key: those
/// arguments are not sent. If it is too long, `out` is as before.
pub fn write_request(
    operation: Operation,
    cache: &[u8],
    key: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let mut frame = FrameWriter::begin(operation, cache, out);
    if operation != Operation::Ping {
        out.extend_from_slice(key);
        frame.key_written(out);
    }
    if operation == Operation::Put {
        out.extend_from_slice(value);
    }
    frame.finish(out).map(|_| ())
}

/// A request on its way into a buffer, part by part: [`begin`](Self::begin) writes all up to the key; append
/// the key and call [`key_written`](Self::key_written); for a PUT append the value; then
/// [`finish`](Self::finish). A PING is finished as soon as it has begun.
///
/// The lengths are filled in as they become known, so nothing is copied twice. It costs no memory.
#[derive(Clone, Copy, Debug)]
#[must_use = "the lengths of the frame are wrong until it is finished"]
pub struct FrameWriter {
    operation: Operation,
    /// The beginning of the frame in the buffer.
    start: usize,
    /// The beginning of its key.
    key: usize,
    /// The end of its key, once that is known.
    key_end: usize,
}

impl FrameWriter {
    /// Appends the bytes before the key. A PING names no cache: the argument is not sent.
    #[inline]
    pub fn begin(operation: Operation, cache: &[u8], out: &mut Vec<u8>) -> Self {
        let start = out.len();
        push_head(operation, cache, out);
        Self { operation, start, key: out.len(), key_end: out.len() }
    }

    /// Declares all bytes behind the output of [`begin`](Self::begin) to be the key.
    #[inline]
    pub fn key_written(&mut self, out: &[u8]) {
        self.key_end = out.len();
    }

    /// Fills the lengths in; for a PUT all bytes behind the key are the value. Returns the bytes of the whole
    /// frame, its length included. If it is too long, `out` is as before [`begin`](Self::begin).
    #[inline]
    pub fn finish(self, out: &mut Vec<u8>) -> Result<usize, TooLong> {
        let payload = out.len() - self.start - LENGTH_BYTES;
        if payload > LONGEST_FRAME {
            out.truncate(self.start);
            return Err(TooLong { bytes: payload });
        }
        Ok(self.finish_before(0, out))
    }

    /// Fills the lengths in, and returns the bytes of the whole frame, its length included. For a PUT, `more`
    /// bytes of the value are sent behind the content of `out`. Unlike [`finish`](Self::finish), this takes
    /// frames that are too long for the server: below 4 GiB there is no limit.
    #[inline]
    pub fn finish_before(self, more: usize, out: &mut [u8]) -> usize {
        let whole = out.len() - self.start + more;
        patch(out, self.start, whole - LENGTH_BYTES);
        let (key, value) = (self.key_end - self.key, out.len() - self.key_end + more);
        match self.operation {
            Operation::Ping => {}
            Operation::Put => {
                patch(out, self.key - 2 * LENGTH_BYTES, key);
                patch(out, self.key - LENGTH_BYTES, value);
            }
            Operation::Get | Operation::Delete => patch(out, self.key - LENGTH_BYTES, key),
        }
        whole
    }
}

/// The part of a request before its key, ready to be copied: the same for all requests of one operation on
/// one cache. Make it once where the name of the cache does not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameHead {
    operation: Operation,
    bytes: Box<[u8]>,
}

impl FrameHead {
    /// The head of such requests.
    pub fn new(operation: Operation, cache: &[u8]) -> Self {
        let mut bytes = Vec::new();
        push_head(operation, cache, &mut bytes);
        Self { operation, bytes: bytes.into() }
    }

    /// Returns the operation of such requests.
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// As [`FrameWriter::begin`].
    #[inline]
    pub fn begin(&self, out: &mut Vec<u8>) -> FrameWriter {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        FrameWriter { operation: self.operation, start, key: out.len(), key_end: out.len() }
    }
}

/// Everything before the key, with lengths of 0 where they are not known yet.
#[inline]
fn push_head(operation: Operation, cache: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0, 0, operation.code()]);
    let lengths: &[u8] = match operation {
        Operation::Ping => return,
        Operation::Put => &[0; 2 * LENGTH_BYTES],
        Operation::Get | Operation::Delete => &[0; LENGTH_BYTES],
    };
    // A name beyond 4 GiB does not fit a frame: `finish` says so.
    out.extend_from_slice(&u32::try_from(cache.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(cache);
    out.extend_from_slice(lengths);
}

/// Writes a length, which is that of a part of a frame within its limit, over the one that stands there.
#[inline]
fn patch(out: &mut [u8], at: usize, length: usize) {
    let length = u32::try_from(length).expect("a part of a frame is below 4 GiB");
    out[at..at + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// A reply, as a server sends it.
#[derive(Clone, Copy, Debug)]
pub enum ServerReply<'a> {
    /// To a PING.
    Pong,
    /// To a PUT or DELETE.
    Ok,
    /// To a GET.
    Value(&'a [u8]),
    /// To a GET, by the protocol's description; the real server sends an error instead.
    NotFound,
    /// To a request that cannot be carried out.
    Error(fmt::Arguments<'a>),
}

/// Appends a reply. A value of which the frame would be too long is the caller's mistake: a value that came
/// in one frame fits into one. A text that would not fit, as it names a cache of such a name, is cut.
#[inline]
pub fn write_reply(reply: ServerReply<'_>, out: &mut Vec<u8>) {
    match reply {
        ServerReply::Pong => out.extend_from_slice(&[0, 0, 0, 1, Kind::Pong.code()]),
        ServerReply::Ok => out.extend_from_slice(&[0, 0, 0, 1, Kind::Ok.code()]),
        ServerReply::NotFound => out.extend_from_slice(&[0, 0, 0, 1, Kind::NotFound.code()]),
        ServerReply::Value(value) => {
            write_value_head(value.len(), out);
            out.extend_from_slice(value);
        }
        ServerReply::Error(text) => write_error(text, out),
    }
}

/// Appends the head of a reply with a value of this many bytes: for a server that does not want to copy it.
#[inline]
pub fn write_value_head(bytes: usize, out: &mut Vec<u8>) {
    let mut head = [0; 2 * LENGTH_BYTES + 1];
    let content = u32::try_from(bytes).expect("a value came in a frame, and fits one");
    head[..LENGTH_BYTES].copy_from_slice(&(content + 5).to_be_bytes());
    head[LENGTH_BYTES] = Kind::Value.code();
    head[LENGTH_BYTES + 1..].copy_from_slice(&content.to_be_bytes());
    out.extend_from_slice(&head);
}

fn write_error(text: fmt::Arguments<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, Kind::Error.code(), 0, 0, 0, 0]);
    let from = out.len();
    match text.as_str() {
        Some(text) => out.extend_from_slice(text.as_bytes()),
        None => out.write_fmt(text).expect("memory takes whatever is written to it"),
    }
    let room = LONGEST_FRAME - (1 + LENGTH_BYTES);
    if out.len() - from > room {
        let mut end = from + room;
        // Not in the middle of a character.
        while out[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        out.truncate(end);
    }
    let content = out.len() - from;
    patch(out, start, content + 1 + LENGTH_BYTES);
    patch(out, from - LENGTH_BYTES, content);
}
