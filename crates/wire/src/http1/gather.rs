//! Finding a whole head: in the input if it is there, else gathered from pieces into the connection's spill.

use memchr::{memchr, memchr_iter};

use super::{Limits, ProtocolError};

/// The most bytes of empty lines before a start line. RFC 9112 section 2.2 asks for tolerance of at least
/// one; four of them cover the known sinners (an extra CRLF after a body), and without a bound a peer could
/// send them for ever.
const EMPTY_LINE_BYTES_MAX: usize = 8;

/// Which kind of message a head opens: decides about its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Request,
    Response,
}

/// The place in which a whole head was found. Either way it is without the empty lines that came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'i> {
    /// In the input, which has been advanced beyond it.
    Input(&'i [u8]),
    /// The spill has it.
    Spill,
}

/// A whole head and the bytes consumed for it over all calls: the head and the empty lines before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompleteHead<'i> {
    pub(super) place: Place<'i>,
    pub(super) wire_bytes: usize,
}

impl<'i> CompleteHead<'i> {
    pub(super) fn head<'a>(&self, spill: &'a [u8]) -> &'a [u8]
    where
        'i: 'a,
    {
        match self.place {
            Place::Input(head) => head,
            Place::Spill => spill,
        }
    }
}

/// Takes a head from the front of `input`, or puts the part of it that has come into `spill` (`None`).
pub(super) fn take_head<'i>(
    message: Message,
    limits: &Limits,
    spill: &mut Vec<u8>,
    input: &mut &'i [u8],
) -> Result<Option<CompleteHead<'i>>, ProtocolError> {
    if spill.is_empty() {
        let empty = message.check_start(limits, input)?;
        let rest = &input[empty..];
        let window = &rest[..rest.len().min(limits.head_bytes)];
        if let Some(end) = head_end(window) {
            *input = &rest[end..];
            return Ok(Some(CompleteHead { place: Place::Input(&rest[..end]), wire_bytes: empty + end }));
        }
        if rest.len() >= limits.head_bytes && !matches!(rest, [] | [b'\r']) {
            return Err(ProtocolError::HeadTooLarge);
        }
    }
    let complete = gather(message, limits, spill, input)?;
    Ok(complete.map(|wire_bytes| CompleteHead { place: Place::Spill, wire_bytes }))
}

/// Appends lines of `input` to `spill` until it holds a whole head; then its length with the empty lines
/// before it, which are removed.
fn gather(
    message: Message,
    limits: &Limits,
    spill: &mut Vec<u8>,
    input: &mut &[u8],
) -> Result<Option<usize>, ProtocolError> {
    while !input.is_empty() {
        let line = memchr(b'\n', input).map_or(input.len(), |lf| lf + 1);
        // No more than is needed to decide: a line without an end is not copied whole. At least one byte, so
        // that every pass advances.
        let line = line.min(limits.head_bytes.max(1));
        let (taken, rest) = input.split_at(line);
        spill.extend_from_slice(taken);
        *input = rest;

        let empty = message.check_start(limits, spill)?;
        let head = &spill[empty..];
        // Half an empty line is not a head yet, however narrow the limit.
        if matches!(head, [] | [b'\r']) {
            continue;
        }
        let ended = head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n");
        if head.len() > limits.head_bytes || (head.len() == limits.head_bytes && !ended) {
            return Err(ProtocolError::HeadTooLarge);
        }
        if ended {
            let wire_bytes = spill.len();
            spill.drain(..empty);
            return Ok(Some(wire_bytes));
        }
    }
    Ok(None)
}

/// The length of the head at the front of `bytes`, which begin with a start line: up to and with the first
/// empty line. A line of white space only is not empty: it continues the field before it (obsolete line
/// folding).
fn head_end(bytes: &[u8]) -> Option<usize> {
    memchr_iter(b'\n', bytes).find_map(|lf| match &bytes[lf + 1..] {
        [b'\n', ..] => Some(lf + 2),
        [b'\r', b'\n', ..] => Some(lf + 3),
        _ => None,
    })
}

/// Returns `true` if these bytes are nothing but empty lines, the last of which may be cut.
pub(super) fn only_empty_lines(bytes: &[u8]) -> bool {
    matches!(&bytes[empty_lines(bytes)..], [] | [b'\r'])
}

/// Returns the length of the empty lines at the front.
fn empty_lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += match &bytes[at..] {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => return at,
        };
    }
}

impl Message {
    /// Refuses bytes that cannot begin such a message, as soon as that is certain: a peer of another protocol
    /// may never send the empty line that would end a head. Gives the length of the empty lines before the
    /// start line.
    fn check_start(self, limits: &Limits, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let empty = empty_lines(bytes);
        if empty > EMPTY_LINE_BYTES_MAX {
            return Err(ProtocolError::Malformed("too many empty lines before the start line"));
        }
        // Bytes beyond the limit must not decide: cut there, the head is too large before it is anything
        // else.
        let start = &bytes[empty..];
        let start = &start[..start.len().min(limits.head_bytes)];
        match self {
            // Half of an empty line; if anything but LF follows, the next call refuses it.
            _ if start == b"\r" => {}
            Self::Response => check_response_start(start)?,
            Self::Request => check_request_start(start)?,
        }
        Ok(empty)
    }
}

fn check_response_start(start: &[u8]) -> Result<(), ProtocolError> {
    const VERSION: &[u8] = b"HTTP/1.";
    let seen = start.len().min(VERSION.len());
    if start[..seen] == VERSION[..seen] { Ok(()) } else { Err(ProtocolError::NotHttp) }
}

fn check_request_start(start: &[u8]) -> Result<(), ProtocolError> {
    /// The part of the preface before the empty line (RFC 9113 section 3.4); `PRI` is reserved for it.
    const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";
    /// Number of the method's bytes that are checked here: enough to recognise binary protocols, and
    /// httparse checks them again.
    const METHOD_BYTES_SEEN: usize = 24;
    if start.starts_with(HTTP2_PREFACE) {
        return Err(ProtocolError::Http2Preface);
    }
    let seen = &start[..start.len().min(METHOD_BYTES_SEEN)];
    match seen.iter().position(|&byte| !is_token(byte)) {
        None => Ok(()),
        Some(end) if end > 0 && seen[end] == b' ' => Ok(()),
        Some(_) => Err(ProtocolError::NotHttp),
    }
}

/// Returns `true` if a byte may be part of a token: a method or a field name (RFC 9110 section 5.6.2).
pub(super) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}
