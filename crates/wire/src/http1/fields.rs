//! The header fields that decide how long a message is and whether the connection survives it.

use std::mem::MaybeUninit;

use httparse::Header;

use super::{Limits, ProtocolError};

/// Number of header fields that are parsed without touching the heap: a slot is 32 bytes of untouched stack.
/// Heads with more fields are parsed a second time with room for [`Limits::headers`].
const FIELDS_ON_STACK: usize = 128;

/// The framing fields of one head (RFC 9112 sections 6 and 9.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FramingFields {
    pub(super) content_length: Option<u64>,
    /// `true` if any transfer coding was named.
    pub(super) transfer_coded: bool,
    /// `true` if the last transfer coding named is `chunked`.
    pub(super) chunked_last: bool,
    chunked_seen: bool,
    close: bool,
    keep_alive: bool,
}

impl FramingFields {
    pub(super) fn read(headers: &[Header<'_>]) -> Result<Self, ProtocolError> {
        let mut fields = Self::default();
        for header in headers {
            // The lengths distinguish nearly every field from these three with one comparison.
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => fields.add_connection(header.value),
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    fields.add_content_length(header.value)?;
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    fields.add_transfer_encoding(header.value)?;
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    /// Returns `true` if the connection may be used again, by the version and these fields (RFC
    /// 9112 section 9.3). A message with both a transfer coding and a content-length must end it (section
    /// 6.1), and so must a transfer coding in HTTP/1.0, which does not know transfer codings.
    pub(super) fn persistent(&self, version_minor: u8) -> bool {
        let suspicious = self.transfer_coded && (self.content_length.is_some() || version_minor == 0);
        !self.close && !suspicious && (version_minor >= 1 || self.keep_alive)
    }

    fn add_connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Equal repetitions, as several fields or as a list in one, count as one (RFC 9112 section 6.3, rule 5).
    fn add_content_length(&mut self, value: &[u8]) -> Result<(), ProtocolError> {
        for element in value.split(|&byte| byte == b',') {
            let length = decimal(element.trim_ascii()).ok_or(ProtocolError::Malformed("content-length"))?;
            if self.content_length.is_some_and(|known| known != length) {
                return Err(ProtocolError::ConflictingLength);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    fn add_transfer_encoding(&mut self, value: &[u8]) -> Result<(), ProtocolError> {
        for coding in list(value) {
            // "No coding" in RFC 2616 (section 3.6), dropped since; servers still send it, without a meaning.
            if coding.eq_ignore_ascii_case(b"identity") {
                continue;
            }
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            if chunked && self.chunked_seen {
                return Err(ProtocolError::Malformed("transfer-encoding: chunked twice"));
            }
            self.transfer_coded = true;
            self.chunked_seen |= chunked;
            self.chunked_last = chunked;
        }
        Ok(())
    }
}

/// The elements of a comma-separated list, without the empty ones (RFC 9110 section 5.6.1).
pub(super) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

/// Digits only (no sign, no white space), and not beyond `u64`.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// Runs `parse` with room for the fields of a head: on the stack, or on the heap if there are many.
///
/// `parse` is a parse of httparse over the whole of `head`; it returns the parsed value and its length.
pub(super) fn parse_whole<'h, T>(
    head: &'h [u8],
    limits: &Limits,
    mut parse: impl FnMut(&mut [MaybeUninit<Header<'h>>]) -> ParsedAs<T>,
) -> Result<T, ProtocolError> {
    let mut stack = [const { MaybeUninit::uninit() }; FIELDS_ON_STACK];
    let mut parsed = parse(&mut stack[..FIELDS_ON_STACK.min(limits.headers)]);
    if matches!(parsed, Err(Refusal::Syntax(httparse::Error::TooManyHeaders)))
        && limits.headers > FIELDS_ON_STACK
    {
        // A field takes at least three bytes (`a:` and LF), so a huge limit does not mean a huge allocation.
        let mut heap = vec![MaybeUninit::uninit(); limits.headers.min(head.len() / 3 + 1)];
        parsed = parse(&mut heap);
    }
    match parsed {
        Ok((value, length)) if length == head.len() => Ok(value),
        // The empty line at the end of `head` is the first one, so a parse that stops elsewhere saw other
        // line ends than `gather` did.
        Ok(_) => Err(ProtocolError::Malformed("line ends")),
        Err(Refusal::Syntax(error)) => Err(from_httparse(error)),
        Err(Refusal::Meaning(error)) => Err(error),
    }
}

/// Result of one parse: its value and the length it saw, or the reason for a refusal.
pub(super) type ParsedAs<T> = Result<(T, usize), Refusal>;

/// The length of a parse that has to be complete, because the head is.
pub(super) fn completed(status: httparse::Status<usize>) -> Result<usize, Refusal> {
    match status {
        httparse::Status::Complete(length) => Ok(length),
        httparse::Status::Partial => Err(Refusal::Meaning(ProtocolError::Malformed("line ends"))),
    }
}

/// Reason why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Syntax(httparse::Error),
    Meaning(ProtocolError),
}

impl From<httparse::Error> for Refusal {
    fn from(error: httparse::Error) -> Self {
        Self::Syntax(error)
    }
}

impl From<ProtocolError> for Refusal {
    fn from(error: ProtocolError) -> Self {
        Self::Meaning(error)
    }
}

fn from_httparse(error: httparse::Error) -> ProtocolError {
    match error {
        httparse::Error::TooManyHeaders => ProtocolError::HeadTooLarge,
        httparse::Error::Version => ProtocolError::NotHttp,
        httparse::Error::HeaderName => ProtocolError::Malformed("header name"),
        httparse::Error::HeaderValue => ProtocolError::Malformed("header value"),
        httparse::Error::NewLine => ProtocolError::Malformed("line ends"),
        httparse::Error::Status => ProtocolError::Malformed("status line"),
        httparse::Error::Token => ProtocolError::Malformed("start line"),
    }
}
