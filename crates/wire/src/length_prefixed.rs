//! Messages that stand one after another in a body, each behind its length ("Length-Prefixed-Message",
//! grpc/doc/PROTOCOL-HTTP2.md).

/// Bytes in front of a message: whether it is compressed, and its length.
pub const PREFIX: usize = 5;

/// Appends a message, not compressed, with its prefix.
///
/// # Panics
/// If the message is longer than 4 GiB, which no prefix can say.
pub fn write_message(message: &[u8], out: &mut Vec<u8>) {
    write_frame(false, message, out);
}

/// Appends a message, compressed or not, with its prefix.
///
/// # Panics
/// If the message is longer than 4 GiB, which no prefix can say.
pub fn write_frame(is_compressed: bool, message: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(message.len()).expect("a message of less than 4 GiB");
    out.reserve(PREFIX + message.len());
    out.push(u8::from(is_compressed));
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(message);
}

/// Returns the length of the message at the start of a body, with its prefix: at most all of the body.
pub fn message_length(body: &[u8]) -> usize {
    let Some(([_, length @ ..], _)) = body.split_first_chunk::<PREFIX>() else { return body.len() };
    body.len().min(PREFIX.saturating_add(u32::from_be_bytes(*length) as usize))
}

/// A fault in the framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The body ends within a prefix or a message.
    Truncated,
    /// A message is compressed, which no request has allowed.
    Compressed,
    /// The first byte of a prefix is neither 0 nor 1.
    Malformed,
}

impl FrameError {
    /// The fault in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Truncated => "the body ends within a message",
            Self::Compressed => "a message is compressed, and the request did not allow that",
            Self::Malformed => "the body is no sequence of length-prefixed messages",
        }
    }
}

/// The messages of a whole body, in their order. After an error there are no more.
#[derive(Clone, Debug)]
pub struct Messages<'b> {
    rest: &'b [u8],
    /// Compressed messages are no error.
    allows_compressed: bool,
    /// The last message is compressed.
    is_compressed: bool,
}

impl<'b> Messages<'b> {
    /// Returns the messages of this body.
    pub const fn new(body: &'b [u8]) -> Self {
        Self { rest: body, allows_compressed: false, is_compressed: false }
    }

    /// Allows or forbids compressed messages; see [`is_compressed`](Self::is_compressed).
    #[must_use]
    pub const fn allow_compressed(mut self, allows: bool) -> Self {
        self.allows_compressed = allows;
        self
    }

    /// Returns `true` if the message that was returned last is compressed, and has to be decompressed.
    pub const fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    fn take(&mut self) -> Result<&'b [u8], FrameError> {
        let Some((prefix, rest)) = self.rest.split_first_chunk::<PREFIX>() else {
            return Err(if self.rest[0] > 1 { FrameError::Malformed } else { FrameError::Truncated });
        };
        let [flag, length @ ..] = *prefix;
        match flag {
            0 => self.is_compressed = false,
            1 if self.allows_compressed => self.is_compressed = true,
            1 => return Err(FrameError::Compressed),
            _ => return Err(FrameError::Malformed),
        }
        let length = u32::from_be_bytes(length) as usize;
        let (message, rest) = rest.split_at_checked(length).ok_or(FrameError::Truncated)?;
        self.rest = rest;
        Ok(message)
    }
}

impl<'b> Iterator for Messages<'b> {
    type Item = Result<&'b [u8], FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let message = self.take();
        if message.is_err() {
            self.rest = &[];
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let mut body = Vec::new();
        for message in [&b""[..], b"one", &[7; 70_000]] {
            write_message(message, &mut body);
        }
        let read: Result<Vec<_>, _> = Messages::new(&body).collect();
        assert_eq!(read.unwrap(), [&b""[..], b"one", &[7; 70_000]]);
        // A body that was cut off gives what is whole, and then the fault.
        for end in 1..body.len().min(20) {
            let whole: Vec<_> = Messages::new(&body[..end]).collect();
            let expected = match end {
                1..5 => vec![Err(FrameError::Truncated)],
                5 => vec![Ok(&b""[..])],
                6..13 => vec![Ok(&b""[..]), Err(FrameError::Truncated)],
                13 => vec![Ok(&b""[..]), Ok(b"one")],
                _ => vec![Ok(&b""[..]), Ok(b"one"), Err(FrameError::Truncated)],
            };
            assert_eq!(whole, expected, "{end}");
        }
    }

    #[test]
    fn compressed_messages_are_told_where_they_are_allowed() {
        let mut body = Vec::new();
        write_message(b"a", &mut body);
        write_frame(true, b"b", &mut body);
        let mut messages = Messages::new(&body).allow_compressed(true);
        assert_eq!((messages.next(), messages.is_compressed()), (Some(Ok(&b"a"[..])), false));
        assert_eq!((messages.next(), messages.is_compressed()), (Some(Ok(&b"b"[..])), true));
        assert_eq!(messages.next(), None);
        assert_eq!(Messages::new(&body).last(), Some(Err(FrameError::Compressed)));
    }

    #[test]
    fn what_is_no_message_is_told() {
        for (body, fault) in [
            (&b"\x01\0\0\0\x01x"[..], FrameError::Compressed),
            (b"\x02\0\0\0\0", FrameError::Malformed),
            (b"<html>", FrameError::Malformed),
            (b"<", FrameError::Malformed),
            (b"\0\xff\xff\xff\xffx", FrameError::Truncated),
        ] {
            assert_eq!(Messages::new(body).collect::<Vec<_>>(), [Err(fault)], "{}", body.escape_ascii());
        }
    }
}
