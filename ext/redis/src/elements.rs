//! Elements of RESP2, which replies and commands consist of, out of a byte stream.
//!
//! An element is a line behind its type: `+OK`, `-ERR text`, `:5`; a length with as many bytes, `$3`; or a
//! number of elements, `*2`. A length or number of -1 is no value.

use std::ops::RangeInclusive;

use plimsoll_core::ErrorClass;
use plimsoll_wire::in_turn::Violation;

/// Bytes of a line before its end: a status, an error, or a number. The server's own are a few hundred.
pub(crate) const LONGEST_LINE: usize = 64 * 1024;
/// Bytes of a value: what a server can be set to send (`proto-max-bulk-len`), by far.
const LONGEST_VALUE: i64 = 1 << 32;
/// Elements of an array.
const MOST_ELEMENTS: i64 = 1 << 31;

/// An element, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element<'a> {
    /// A status, or the digits of a number.
    Text(&'a [u8]),
    Error(&'a [u8]),
    /// No value, or no array.
    Nothing,
    /// An array of so many elements, which follow.
    Array(u64),
    /// A value of so many bytes, which follow.
    Value(u64),
    /// Bytes of a value, and `true` for the last ones.
    Bytes(&'a [u8], bool),
}

/// Reads elements that come in pieces. Its memory is a line that is not whole.
#[derive(Debug, Default)]
pub(crate) struct ElementReader {
    /// Received bytes of a line that did not come at once.
    line: Vec<u8>,
    /// Set if the line has been given.
    is_given: bool,
    /// Bytes of a value that have not come, with the two behind it.
    value: u64,
}

/// Bytes that are not the protocol: what they are, as the object of a sentence.
fn broken(what: impl Into<String>) -> Violation {
    Violation { class: ErrorClass::Protocol, reason: what.into() }
}

impl ElementReader {
    /// Returns the bytes that are held.
    pub(crate) fn held(&self) -> usize {
        self.line.len()
    }

    /// Takes the next element, or what there is of a value, out of the input; `None` if all of the input was
    /// taken, and no line of it is whole.
    ///
    /// # Errors
    /// The input is not the protocol.
    #[inline]
    pub(crate) fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Element<'s>>, Violation> {
        if self.value > 0 {
            return self.bytes(input).map(Some);
        }
        if std::mem::take(&mut self.is_given) {
            self.line.clear();
        }
        let end = input.iter().position(|byte| *byte == b'\n');
        let (bytes, rest) = input.split_at(end.map_or(input.len(), |end| end + 1));
        if self.line.len() + bytes.len() > LONGEST_LINE {
            return Err(broken(format!("a line of more than {LONGEST_LINE} bytes")));
        }
        *input = rest;
        let line = if end.is_some() && self.line.is_empty() {
            bytes
        } else {
            self.line.extend_from_slice(bytes);
            self.is_given = end.is_some();
            self.line.as_slice()
        };
        if end.is_none() {
            return Ok(None);
        }
        let element = element(line)?;
        if let Element::Value(length) = element {
            self.value = length + 2;
        }
        Ok(Some(element))
    }

    /// Takes bytes of a value, and the end of its line.
    fn bytes<'i>(&mut self, input: &mut &'i [u8]) -> Result<Element<'i>, Violation> {
        let left = usize::try_from(self.value).unwrap_or(usize::MAX);
        let (taken, rest) = input.split_at(input.len().min(left));
        let (value, end) = taken.split_at(taken.len().min(left.saturating_sub(2)));
        // Of the two bytes of the end, those that have come.
        let place = 2 - (left - value.len()).min(2);
        if !b"\r\n"[place..].starts_with(end) {
            return Err(broken("a value that is longer than it said"));
        }
        *input = rest;
        self.value -= taken.len() as u64;
        Ok(Element::Bytes(value, self.value == 0))
    }
}

/// Reads the element that a whole line is, or begins.
fn element(line: &[u8]) -> Result<Element<'_>, Violation> {
    if line.starts_with(b"HTTP/") {
        return Err(Violation { class: ErrorClass::WrongProtocol, ..broken("an answer of HTTP") });
    }
    let line = line.strip_suffix(b"\r\n").ok_or_else(|| broken("a line that does not end with CR LF"))?;
    let (kind, text) = line.split_first().ok_or_else(|| broken("an empty line"))?;
    match kind {
        b'+' => Ok(Element::Text(text)),
        b'-' => Ok(Element::Error(text)),
        b':' => number(text, i64::MIN..=i64::MAX).map(|_| Element::Text(text)),
        b'$' => number(text, -1..=LONGEST_VALUE).map(|bytes| of_count(bytes, Element::Value)),
        b'*' => number(text, -1..=MOST_ELEMENTS).map(|elements| of_count(elements, Element::Array)),
        other => Err(broken(format!("the unknown type 0x{other:02X}"))),
    }
}

/// The element of a length or number, of which -1 is no value.
fn of_count(count: i64, element: fn(u64) -> Element<'static>) -> Element<'static> {
    u64::try_from(count).map_or(Element::Nothing, element)
}

/// Returns the number of a line, which has to be within a range.
fn number(text: &[u8], range: RangeInclusive<i64>) -> Result<i64, Violation> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let shown = String::from_utf8_lossy(&text[..text.len().min(32)]).into_owned();
        broken(format!("`{}` in place of a length or number", shown.escape_debug()))
    })
}
