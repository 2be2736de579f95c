//! The server's half: requests, one after the other, out of a byte stream.

use std::fmt;

use super::{LENGTH_BYTES, LONGEST_FRAME, Operation, Refusal, number};

/// Bytes of memory that a connection keeps for requests that come in pieces.
const USUAL_REQUEST: usize = 4096;

/// One whole request. Its borrowed parts are in the input or in the [`RequestServer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The operation that is asked for.
    pub operation: Operation,
    /// The name of the cache; empty for a PING.
    pub cache: &'a str,
    /// The key; empty for a PING.
    pub key: &'a [u8],
    /// The value; empty for all but a PUT.
    pub value: &'a [u8],
}

/// Reads the requests of one connection. One per connection; 32 bytes, and on the heap no more than the
/// received part of an incomplete request.
///
/// Call [`next`](Self::next) with the received bytes until it returns `None`. After an error the connection
/// has to be closed, as the real server does, without an answer.
#[derive(Debug, Default)]
pub struct RequestServer {
    /// Received bytes of a frame that is not whole, its length included; or the frame that was returned last.
    spill: Vec<u8>,
    /// Set if `spill` is a frame that was returned.
    given: bool,
}

impl RequestServer {
    /// A server on a new connection.
    pub const fn new() -> Self {
        Self { spill: Vec::new(), given: false }
    }

    /// Forgets everything, for use on a new connection.
    pub fn reset(&mut self) {
        self.forget_given();
        self.spill.clear();
    }

    /// Returns `true` if bytes of a request were consumed and it is not complete.
    pub fn in_request(&self) -> bool {
        !self.given && !self.spill.is_empty()
    }

    /// Bytes of memory that it keeps for a request that did not come whole.
    pub const fn held_bytes(&self) -> usize {
        self.spill.capacity()
    }

    /// Consumes from the front of `input` until one request is complete (`Some`) or the input is used up
    /// (`None`). A [`Refusal`] is to be answered with its text; the next call goes on behind its frame.
    #[inline]
    pub fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Result<Request<'a>, Refusal>>, FrameTooLong> {
        if self.given {
            self.forget_given();
        }
        if self.spill.is_empty()
            && let Some(length) = number(input)
        {
            let length = check(length)?;
            if let Some(frame) = input.get(LENGTH_BYTES..LENGTH_BYTES + length) {
                *input = &input[LENGTH_BYTES + length..];
                return Ok(Some(Request::read(frame)));
            }
        }
        if !self.gather(input)? {
            return Ok(None);
        }
        self.given = true;
        Ok(Some(Request::read(&self.spill[LENGTH_BYTES..])))
    }

    /// Drops the frame that was returned; keeps its memory if it is that of a usual request.
    fn forget_given(&mut self) {
        self.given = false;
        if self.spill.capacity() > USUAL_REQUEST {
            self.spill = Vec::new();
        } else {
            self.spill.clear();
        }
    }

    /// Takes the bytes of the frame in `spill` off the input. Returns `true` once the frame is whole.
    fn gather(&mut self, input: &mut &[u8]) -> Result<bool, FrameTooLong> {
        if !self.fill(LENGTH_BYTES, input) {
            return Ok(false);
        }
        let length = number(&self.spill).expect("so many bytes are there");
        Ok(self.fill(LENGTH_BYTES + check(length)?, input))
    }

    /// Takes bytes until `spill` has `wanted` of them. Returns `true` once it has. It makes room for the
    /// bytes that have come, and never for more than `wanted`.
    fn fill(&mut self, wanted: usize, input: &mut &[u8]) -> bool {
        let missing = wanted.saturating_sub(self.spill.len());
        let (part, rest) = input.split_at(missing.min(input.len()));
        let needed = self.spill.len() + part.len();
        if needed > self.spill.capacity() {
            let room = needed.max(2 * self.spill.capacity()).min(wanted);
            self.spill.reserve_exact(room - self.spill.len());
        }
        self.spill.extend_from_slice(part);
        *input = rest;
        part.len() == missing
    }
}

impl<'a> Request<'a> {
    /// Parses the content of a frame. Bytes behind it are ignored, as the real server does.
    #[inline]
    fn read(frame: &'a [u8]) -> Result<Self, Refusal> {
        let (&code, rest) = frame.split_first().ok_or(Refusal::Empty)?;
        let operation = Operation::of_code(code).ok_or(Refusal::UnknownCommand(code))?;
        if operation == Operation::Ping {
            return Ok(Self { operation, cache: "", key: &[], value: &[] });
        }
        let (name, rest) = length(rest).ok_or(Refusal::NoNameLength(operation))?;
        let (name, rest) = rest.split_at_checked(name as usize).ok_or(Refusal::NameTooShort(operation))?;
        let cache = str::from_utf8(name).map_err(Refusal::NameNotUtf8)?;
        let (key, rest) = length(rest).ok_or(Refusal::NoLengths(operation))?;
        let (value, rest) = match operation {
            Operation::Put => length(rest).ok_or(Refusal::NoLengths(operation))?,
            _ => (0, rest),
        };
        let too_short =
            || Refusal::TooShort { operation, expected: u64::from(key) + u64::from(value), got: rest.len() };
        let (key, rest) = rest.split_at_checked(key as usize).ok_or_else(too_short)?;
        let value = rest.get(..value as usize).ok_or_else(too_short)?;
        Ok(Self { operation, cache, key, value })
    }
}

/// The length at the front of `bytes`, and the rest.
#[inline]
fn length(bytes: &[u8]) -> Option<(u32, &[u8])> {
    Some((number(bytes)?, &bytes[LENGTH_BYTES..]))
}

#[inline]
fn check(length: u32) -> Result<usize, FrameTooLong> {
    let bytes = length as usize;
    if bytes > LONGEST_FRAME { Err(FrameTooLong { bytes: length }) } else { Ok(bytes) }
}

/// A client announced a frame beyond [`LONGEST_FRAME`]: it may speak another protocol altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameTooLong {
    /// Bytes of the frame, as it says.
    pub bytes: u32,
}

impl fmt::Display for FrameTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the client announced a frame of {} bytes; the cache protocol allows {LONGEST_FRAME}",
            self.bytes
        )
    }
}

impl std::error::Error for FrameTooLong {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_that_of_what_has_come() {
        assert!(size_of::<RequestServer>() <= 32);
        let (mut server, ping) = (RequestServer::new(), [0, 0, 0, 1, 0]);
        assert!(server.next(&mut &ping[..]).unwrap().is_some());
        assert_eq!(server.spill.capacity(), 0, "a whole request");
        // The longest frame is announced, and little of it comes.
        assert_eq!(server.next(&mut &[0, 0x80, 0, 0, 1][..]), Ok(None));
        assert!(server.spill.capacity() < 1024, "{}", server.spill.capacity());
        assert_eq!(server.held_bytes(), server.spill.capacity());
        let rest = vec![1; LONGEST_FRAME - 1];
        for piece in rest[1..].chunks(60_000) {
            assert_eq!(server.next(&mut &*piece), Ok(None));
        }
        assert_eq!(server.held_bytes(), LENGTH_BYTES + LONGEST_FRAME, "no more than the frame");
        assert!(server.next(&mut &[1][..]).unwrap().is_some());
        assert!(server.next(&mut &[0, 0x80, 0, 0, 1][..]).unwrap().is_none());
        assert!(server.next(&mut &rest[..]).unwrap().is_some());
        assert_eq!(server.next(&mut &b""[..]), Ok(None));
        assert_eq!(server.spill.capacity(), 0, "that of a large request is given back");
    }
}
