//! gRPC on HTTP/2 ("gRPC over HTTP2", grpc/doc/PROTOCOL-HTTP2.md): messages in bodies, and statuses in
//! trailers.

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
            Self::Malformed => "the body has no messages of gRPC",
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

/// Units of `grpc-timeout`, each with its nanoseconds, from the finest on.
const UNITS: [(char, u64); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60 * 1_000_000_000),
    ('H', 3_600 * 1_000_000_000),
];

/// Digits that the number of a `grpc-timeout` has at most.
const TIMEOUT_DIGITS: u64 = 100_000_000;

/// Returns the value of `grpc-timeout` for a time in nanoseconds: in the finest unit that holds it, rounded
/// up.
pub fn write_timeout(ns: u64) -> String {
    let units = UNITS.iter().map(|(unit, size)| (unit, ns.div_ceil(*size)));
    // The longest time that a u64 can say has seven digits in hours.
    let (unit, number) = { units }.find(|(_, number)| *number < TIMEOUT_DIGITS).unwrap_or((&'H', 0));
    format!("{number}{unit}")
}

/// Reads a value of `grpc-timeout`: nanoseconds, at most those that a `u64` holds. `None`: it is none.
pub fn read_timeout(value: &[u8]) -> Option<u64> {
    let (unit, digits) = value.split_last()?;
    let (_, size) = UNITS.iter().find(|(known, _)| *known == char::from(*unit))?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(number.saturating_mul(*size))
}

/// The names of the status codes, from `OK` on (grpc/doc/statuscodes.md).
pub const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The code of `UNKNOWN`: that of a status that has another code than those of [`CODES`], or none.
pub const UNKNOWN: usize = 2;

/// Reads the value of `grpc-status`: an index into [`CODES`], [`UNKNOWN`] for any other number. `None`: it is
/// no number.
pub fn read_status(value: &[u8]) -> Option<usize> {
    let digits = str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    match digits.parse::<usize>() {
        Ok(code) if code < CODES.len() => Some(code),
        _ if digits.is_empty() => None,
        _ => Some(UNKNOWN),
    }
}

/// Decodes the value of `grpc-message`, which is percent-encoded. Text that is not stays as it is.
pub fn read_status_message(value: &[u8]) -> String {
    let digit = |at: usize| value.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut text = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                text.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                text.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Appends a message of a status as the value of `grpc-message`.
pub fn write_status_message(message: &str, out: &mut Vec<u8>) {
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
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

    #[test]
    fn statuses_are_codes() {
        for (value, code) in [
            ("0", Some(0)),
            ("16", Some(16)),
            ("17", Some(UNKNOWN)),
            ("99999999999999999999999", Some(UNKNOWN)),
            ("", None),
            ("-1", None),
            ("OK", None),
        ] {
            assert_eq!(read_status(value.as_bytes()), code, "{value}");
        }
    }

    #[test]
    fn timeouts_are_written_in_the_finest_unit_that_holds_them() {
        for (ns, text) in [
            (0, "0n"),
            (99_999_999, "99999999n"),
            (100_000_000, "100000u"),
            (1_500_000_001, "1500001u"),
            (3_600_000_000_000, "3600000m"),
            (u64::MAX, "5124096H"),
        ] {
            assert_eq!(write_timeout(ns), text);
            assert!(
                read_timeout(text.as_bytes()).is_some_and(|read| read >= ns && read - ns < ns / 1_000 + 1)
            );
        }
        assert_eq!(read_timeout(b"99999999H"), Some(u64::MAX));
        for none in ["", "5", "m", "-1m", "5x", "123456789m"] {
            assert_eq!(read_timeout(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn messages_of_statuses_survive_their_encoding() {
        for message in ["", "plain", "100 % sure", "line\nline", "Grüße, 世界", "%41"] {
            let mut value = Vec::new();
            write_status_message(message, &mut value);
            assert!(value.iter().all(|byte| (b' '..=b'~').contains(byte)));
            assert_eq!(read_status_message(&value), message);
        }
        // Of peers that do not encode.
        assert_eq!(read_status_message(b"50% off %"), "50% off %");
    }
}
