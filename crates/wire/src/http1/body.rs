//! Message bodies: consumed and counted, and kept only where that is asked for.

use super::gather::is_token;
use super::{Limits, ProtocolError};

/// The most bytes of a chunk's size line, its extensions included. RFC 9112 section 7.1.1 asks for a limit on
/// extensions; no known server sends more than a few dozen bytes.
const CHUNK_LINE_BYTES_MAX: u32 = 4096;

/// Bytes of a body that are kept at most. Later bytes are counted all the same.
pub const LONGEST_KEPT_BODY: usize = 16 << 20;

/// Bytes that are kept of the body of a failure response, even without a capture: room for the
/// text of a server's error.
pub const LONGEST_QUOTE: usize = 1 << 10;

/// The first status whose body is quoted.
pub(super) const QUOTED_FROM: u16 = 300;

/// Keeps the start of a body of which nothing else is kept.
#[cold]
pub(super) fn quote(body: &[u8], kept: &mut Vec<u8>) {
    let room = LONGEST_QUOTE.saturating_sub(kept.len());
    kept.extend_from_slice(&body[..body.len().min(room)]);
}

/// The way in which the end of a body is determined (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A known number of bytes; 0 if there is no body.
    Length(u64),
    Chunked,
    /// Responses only: all bytes until the peer closes.
    UntilClose,
}

/// The remaining part of a body that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyReader {
    /// Bytes left.
    Length(u64),
    Chunked(ChunkReader),
    UntilClose,
}

impl BodyReader {
    pub(super) const fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(ChunkReader::new()),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Consumes the bytes of the body from the front of `input`, and gives its payload to `payload`. Returns
    /// whether the body is complete.
    pub(super) fn advance(
        &mut self,
        limits: &Limits,
        payload: &mut Payload<'_>,
        input: &mut &[u8],
    ) -> Result<bool, ProtocolError> {
        match self {
            Self::Length(remaining) => {
                payload.take(skip(remaining, input));
                Ok(*remaining == 0)
            }
            Self::Chunked(chunks) => chunks.advance(limits, payload, input),
            Self::UntilClose => {
                payload.take(std::mem::take(input));
                Ok(false)
            }
        }
    }
}

/// The destination of the payload of a body.
#[derive(Debug)]
pub(super) struct Payload<'p> {
    /// Bytes of it so far.
    pub(super) bytes: &'p mut u64,
    /// Buffer for the payload, if it is kept.
    pub(super) kept: Option<&'p mut Vec<u8>>,
    /// Bytes that are kept at most.
    pub(super) most: usize,
}

impl Payload<'_> {
    #[inline]
    fn take(&mut self, part: &[u8]) {
        *self.bytes += part.len() as u64;
        if let Some(kept) = &mut self.kept {
            let room = self.most.saturating_sub(kept.len());
            kept.extend_from_slice(&part[..part.len().min(room)]);
        }
    }
}

/// Takes up to `remaining` bytes off `input`.
fn skip<'i>(remaining: &mut u64, input: &mut &'i [u8]) -> &'i [u8] {
    let there = usize::try_from(*remaining).map_or(input.len(), |remaining| remaining.min(input.len()));
    let (taken, rest) = input.split_at(there);
    *input = rest;
    *remaining -= there as u64;
    taken
}

/// Decodes the chunked transfer coding (RFC 9112 section 7.1). Extensions and trailers are checked for their
/// form, bounded and dropped. A bare LF ends a line, as in heads; white space may follow a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkReader {
    /// The size read so far, then the bytes left of the chunk.
    remaining: u64,
    /// Bytes of this size line, or of the trailer section, so far.
    line_bytes: u32,
    at: At,
}

/// The expected kind of the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The first digit of a size.
    SizeStart,
    /// A further digit, or the byte that ends the size.
    Size,
    /// White space after a size.
    SizePadding,
    Extension,
    /// The LF of a size line.
    SizeLf,
    /// Payload.
    Data,
    /// The line end after the payload of a chunk.
    DataEnd,
    DataLf,
    /// The first byte of a trailer field, or the line end of the empty line that ends the body.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

impl ChunkReader {
    pub(super) const fn new() -> Self {
        Self { remaining: 0, line_bytes: 0, at: At::SizeStart }
    }

    fn advance(
        &mut self,
        limits: &Limits,
        payload: &mut Payload<'_>,
        input: &mut &[u8],
    ) -> Result<bool, ProtocolError> {
        while self.at != At::Done {
            if self.at == At::Data {
                payload.take(skip(&mut self.remaining, input));
                if self.remaining > 0 {
                    return Ok(false);
                }
                self.at = At::DataEnd;
            }
            let Some((&byte, rest)) = input.split_first() else {
                return Ok(false);
            };
            *input = rest;
            self.at = self.framing_byte(limits, byte)?;
        }
        Ok(true)
    }

    /// Takes one byte that is not payload; returns the kind of the next one.
    fn framing_byte(&mut self, limits: &Limits, byte: u8) -> Result<At, ProtocolError> {
        self.line_bytes = self.line_bytes.saturating_add(1);
        match self.at {
            At::TrailerStart | At::TrailerName | At::TrailerValue | At::TrailerLf | At::EndLf => {
                if self.line_bytes as usize > limits.head_bytes {
                    return Err(ProtocolError::HeadTooLarge);
                }
                self.trailer_byte(byte)
            }
            _ if self.line_bytes > CHUNK_LINE_BYTES_MAX => Err(ProtocolError::BadChunk),
            _ => self.chunk_byte(byte),
        }
    }

    fn chunk_byte(&mut self, byte: u8) -> Result<At, ProtocolError> {
        match (self.at, byte) {
            (At::SizeStart | At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.add_digit(byte),
            (At::Size | At::SizePadding, b' ' | b'\t') => Ok(At::SizePadding),
            (At::Size | At::SizePadding, b';') => Ok(At::Extension),
            (At::Size | At::SizePadding | At::Extension, b'\r') => Ok(At::SizeLf),
            (At::Size | At::SizePadding | At::Extension | At::SizeLf, b'\n') => Ok(self.end_size_line()),
            (At::Extension, b'\t' | b' '..=0x7e | 0x80..) => Ok(At::Extension),
            (At::DataEnd, b'\r') => Ok(At::DataLf),
            (At::DataEnd | At::DataLf, b'\n') => {
                self.line_bytes = 0;
                Ok(At::SizeStart)
            }
            _ => Err(ProtocolError::BadChunk),
        }
    }

    fn trailer_byte(&mut self, byte: u8) -> Result<At, ProtocolError> {
        match (self.at, byte) {
            (At::TrailerStart, b'\r') => Ok(At::EndLf),
            (At::TrailerStart | At::EndLf, b'\n') => Ok(At::Done),
            (At::TrailerStart | At::TrailerName, _) if is_token(byte) => Ok(At::TrailerName),
            (At::TrailerName, b':') => Ok(At::TrailerValue),
            (At::TrailerValue, b'\r') => Ok(At::TrailerLf),
            (At::TrailerValue | At::TrailerLf, b'\n') => Ok(At::TrailerStart),
            (At::TrailerValue, b'\t' | b' '..=0x7e | 0x80..) => Ok(At::TrailerValue),
            _ => Err(ProtocolError::BadChunk),
        }
    }

    fn add_digit(&mut self, digit: u8) -> Result<At, ProtocolError> {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            _ => (digit | 0x20) - b'a' + 10,
        };
        // Leading zeros may be many (the line is bounded); significant digits may not exceed 64 bits.
        if self.remaining >> 60 != 0 {
            return Err(ProtocolError::BadChunk);
        }
        self.remaining = self.remaining << 4 | u64::from(value);
        Ok(At::Size)
    }

    fn end_size_line(&mut self) -> At {
        self.line_bytes = 0;
        if self.remaining == 0 { At::TrailerStart } else { At::Data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_body_the_front_is_kept_and_all_of_it_counted() {
        let (mut bytes, mut kept) = (0, Vec::new());
        for (most, expected) in [(5, "hello"), (LONGEST_KEPT_BODY, "hello, world")] {
            (bytes, kept) = (0, Vec::new());
            for piece in ["hel", "lo, ", "world"] {
                Payload { bytes: &mut bytes, kept: Some(&mut kept), most }.take(piece.as_bytes());
            }
            assert_eq!((bytes, &kept[..]), (12, expected.as_bytes()));
        }
        for _ in 0..3 {
            quote(&[b'x'; 1000], &mut kept);
        }
        assert_eq!((bytes, kept.len()), (12, LONGEST_QUOTE));
    }

    /// The whole of `body` at once: payload, the rest of the input, and whether it is complete.
    fn read(body: &[u8]) -> Result<(u64, usize, bool), ProtocolError> {
        let (mut reader, mut bytes, mut kept, mut input) = (ChunkReader::new(), 0, Vec::new(), body);
        let mut payload = Payload { bytes: &mut bytes, kept: Some(&mut kept), most: LONGEST_KEPT_BODY };
        let done = reader.advance(&Limits::default(), &mut payload, &mut input)?;
        assert_eq!(kept.len() as u64, bytes);
        Ok((bytes, input.len(), done))
    }

    #[test]
    fn chunked_bodies() {
        let ok: &[(&[u8], u64)] = &[
            (b"0\r\n\r\n", 0),
            (b"5\r\nhello\r\n0\r\n\r\n", 5),
            (b"5\nhello\n0\n\n", 5),
            (b"00005\r\nhello\r\n000\r\n\r\n", 5),
            (b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", 20),
            (b"5;name=value;other=\"quo ted\"\r\nhello\r\n0;last\r\n\r\n", 5),
            (b"5  \r\nhello\r\n0\t\r\n\r\n", 5),
            (b"5 ; a\r\nhello\r\n0\r\n\r\n", 5),
            (b"0\r\nChecksum: abc\r\nOther:\r\n\r\n", 0),
            (b"0\nChecksum: \xff\n\r\n", 0),
            (b"4\r\n\r\n\r\n\r\n0\r\n\r\n", 4),
        ];
        for (body, payload) in ok {
            assert_eq!(read(body), Ok((*payload, 0, true)), "{:?}", body.escape_ascii().to_string());
            // Bytes after the body belong to the next message.
            let followed = [*body, b"HTTP/1.1"].concat();
            assert_eq!(read(&followed), Ok((*payload, 8, true)));
        }
    }

    #[test]
    fn bad_chunks() {
        let bad: &[&[u8]] = &[
            b"\r\n",
            b"g\r\n",
            b"-1\r\n",
            b"+1\r\n",
            b" 5\r\n",
            b"0x5\r\n",
            b"5\rx",
            b"5;a\x00\r\n",
            b"5;a\rb\r\n",
            b"5 5\r\n",
            b"5\r\nhelloX",
            b"5\r\nhello\rX",
            b"10000000000000000\r\n",
            b"5\r\nhello\r\n\r\n",
            b"0\r\n: empty name\r\n",
            b"0\r\nno colon\r\n",
            b"0\r\nno-colon\r\n",
            b"0\r\na: b\rc\r\n",
            b"0\r\na: \x01\r\n",
            b"0\r\n\rx",
        ];
        for body in bad {
            assert_eq!(read(body), Err(ProtocolError::BadChunk), "{:?}", body.escape_ascii().to_string());
        }
    }

    #[test]
    fn size_lines_and_trailers_are_bounded() {
        let line_max = CHUNK_LINE_BYTES_MAX as usize;
        let zeros = |count: usize| [vec![b'0'; count], b"\r\n\r\n".to_vec()].concat();
        assert_eq!(read(&zeros(line_max - 2)), Ok((0, 0, true)));
        assert_eq!(read(&zeros(line_max)), Err(ProtocolError::BadChunk));
        assert_eq!(read(&[b"5;".to_vec(), vec![b'x'; line_max]].concat()), Err(ProtocolError::BadChunk));

        let head_max = Limits::default().head_bytes;
        let trailers = |count: usize| [b"0\r\na:".to_vec(), vec![b'x'; count], b"\r\n\r\n".to_vec()].concat();
        assert_eq!(read(&trailers(head_max - 6)), Ok((0, 0, true)));
        assert_eq!(read(&trailers(head_max - 5)), Err(ProtocolError::HeadTooLarge));
        let many = [b"0\r\n".to_vec(), b"a: b\r\n".repeat(head_max / 6 + 1)].concat();
        assert_eq!(read(&many), Err(ProtocolError::HeadTooLarge));
    }

    #[test]
    fn the_largest_size_is_that_of_64_bits() {
        assert_eq!(read(b"ffffffffffffffff\r\nab"), Ok((2, 0, false)));
        assert_eq!(read(b"00ffffffffffffffff\r\nab"), Ok((2, 0, false)));
    }

    #[test]
    fn size_lines_are_read_as_httparse_reads_them() {
        for line in
            ["0\r\n", "1f\r\n", "FFF\r\n", "12;ext\r\n", "7fffffffffffffff\r\n", "8 ;x=y\r\n", "9\t\r\n"]
        {
            let expected = match httparse::parse_chunk_size(line.as_bytes()) {
                Ok(httparse::Status::Complete((_, size))) => size,
                other => panic!("{line:?}: {other:?}"),
            };
            let mut reader = ChunkReader::new();
            for &byte in line.as_bytes() {
                reader.at = reader.framing_byte(&Limits::default(), byte).unwrap();
            }
            assert_eq!(reader.remaining, expected, "{line:?}");
        }
    }
}
