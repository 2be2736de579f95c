//! Replies and percent-decoding of paths, which the HTTP APIs of servers share.

use std::borrow::Cow;

use plimsoll_wire::http1::write_response_head;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// Status.
    pub status: u16,
    /// Type of the content; `None` without a body.
    pub content_type: Option<&'static str>,
    /// Body.
    pub body: String,
    /// Header fields beside those of type, length and connection.
    pub fields: Vec<(String, String)>,
}

impl HttpReply {
    /// Makes a reply of JSON.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { body: body.to_string(), ..Self::new(status, Some("application/json")) }
    }

    /// Makes a reply of plain text.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::new(status, Some("text/plain; charset=utf-8")) }
    }

    /// Makes a reply without a body.
    pub const fn empty(status: u16) -> Self {
        Self::new(status, None)
    }

    const fn new(status: u16, content_type: Option<&'static str>) -> Self {
        Self { status, content_type, body: String::new(), fields: Vec::new() }
    }

    /// Adds a header field.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the reply; one to a HEAD request has no body, and the last of a connection says so.
    pub fn write(&self, out: &mut Vec<u8>, head_request: bool, stays: bool) {
        let length = self.body.len() as u64;
        write_response_head(out, self.status, self.content_type, length, !stays, &self.fields);
        if !head_request {
            out.extend_from_slice(self.body.as_bytes());
        }
    }
}

/// Decodes a part of a path from its percent-encoding (RFC 3986 section 2.1); a percent sign that begins none
/// stands for itself.
pub fn decoded(part: &[u8]) -> Cow<'_, [u8]> {
    if !part.contains(&b'%') {
        return Cow::Borrowed(part);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (mut bytes, mut rest) = (Vec::with_capacity(part.len()), part);
    while let Some((&first, behind)) = rest.split_first() {
        let pair = match (first, behind) {
            (b'%', &[high, low, ..]) => digit(high).zip(digit(low)),
            _ => None,
        };
        match pair {
            // Two digits of 4 bits make a byte.
            Some((high, low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = &behind[2..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded() {
        for (part, expected) in
            [("plain", &b"plain"[..]), ("a%20b%2f", b"a b/"), ("%ff%", b"\xFF%"), ("%g0%2", b"%g0%2")]
        {
            assert_eq!(*decoded(part.as_bytes()), *expected, "{part}");
        }
    }
}
