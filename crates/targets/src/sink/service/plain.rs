//! The plain service: always the same reply.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_wire::http2::HeaderBlockCache;

use crate::sink::encoded_reply::{Draft, EncodedReply, FormBody, INLINE_LIMIT};

/// The longest body of no meaning that is held in memory as a whole.
const LARGEST_BODY: u64 = 1 << 30;

/// The one answer of a plain sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code, 200 to 599.
    pub status: u16,
    /// Value of the content-type header.
    pub content_type: String,
    /// The body.
    pub body: Body,
    /// Send the body in pieces. The head leaves with the first one when the reply is due; replies behind it
    /// on the same HTTP/1.1 connection wait for the last one. Serving, and with it a queue, ends before the
    /// first piece.
    pub slow: Option<SlowData>,
}

impl Default for Reply {
    /// `200` and the counter as CBOR.
    fn default() -> Self {
        Self { status: 200, content_type: "application/cbor".to_owned(), body: Body::Counter, slow: None }
    }
}

impl Reply {
    pub(super) fn problems(&self, require: &mut impl FnMut(bool, &str)) {
        require((200..600).contains(&self.status), "the status of a reply is between 200 and 599");
        require(
            !self.content_type.is_empty() && self.content_type.bytes().all(|b| (0x20..0x7f).contains(&b)),
            "the content type must be printable ASCII",
        );
        require(
            self.status != 204 || self.body.is_counter(),
            "a reply with status 204 has no body: leave out the body and its size, or take another status",
        );
        let is_bodiless = self.status == 204 || self.body.is_empty();
        require(
            !is_bodiless || USUAL_TYPES.contains(&self.content_type.as_str()),
            "a reply without a body has no content type: leave it out, or give it a body",
        );
        require(
            !matches!(self.body, Body::Bytes(length) if length > LARGEST_BODY),
            "a body is at most 1 GiB: it is held in memory",
        );
        require(
            !self.slow.is_some_and(|slow| slow.bytes == 0 || slow.every == Nanos::ZERO),
            "slow data needs pieces of at least one byte and a time above 0 between them",
        );
    }
}

/// The body of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The answer of the Internet Computer's load sink: the CBOR map `{status: "replied", reply: {arg: <4
    /// bytes>}}` of 32 bytes, `arg` being the number of the request, from 0 over all threads, little-endian,
    /// modulo 2^32.
    ///
    /// A person gets the same number as JSON of that length, `{"counter":7}` and white space: `GET` and `HEAD`
    /// with an `accept` that does not name `application/cbor`, as browsers and curl send it, and all methods
    /// whose `accept` names `application/json`. The paths of the Internet Computer's API always get CBOR.
    Counter,
    /// That CBOR, whoever asks.
    Cbor,
    /// This many bytes of no meaning.
    Bytes(u64),
    /// These bytes.
    Fixed(Arc<[u8]>),
}

/// Where paths of the Internet Computer's API begin, up to their version.
const API: &[u8] = b"/api/v";

/// Content types that a reply has where none was asked for.
const USUAL_TYPES: [&str; 2] = ["application/cbor", "application/octet-stream"];

impl Body {
    fn is_counter(&self) -> bool {
        matches!(self, Self::Counter | Self::Cbor)
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Counter | Self::Cbor => false,
            Self::Bytes(length) => *length == 0,
            Self::Fixed(bytes) => bytes.is_empty(),
        }
    }
}

/// The pace of a body that is sent in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowData {
    /// Bytes of a piece, at least 1.
    pub bytes: usize,
    /// Time from one piece to the next, above 0.
    pub every: Nanos,
}

impl SlowData {
    /// Returns the time from the first piece of a body of `length` bytes to its last.
    pub fn span(self, length: usize) -> Nanos {
        self.every * (length.saturating_sub(1) / self.bytes.max(1)) as u64
    }
}

/// Returns `true` if who sends this request, which has an `accept`, is told the counter as JSON, not CBOR.
pub(super) fn wants_json(method: &[u8], target: &[u8], accept: &[u8]) -> bool {
    let names = |name: &str| {
        let mut all = accept.windows(name.len());
        all.any(|part| part.eq_ignore_ascii_case(name.as_bytes()))
    };
    let is_read = || matches!(method, b"GET" | b"HEAD") && !names("application/cbor");
    !target.starts_with(API) && (names("application/json") || is_read())
}

impl Reply {
    /// Encodes the reply for persons, with its own status; `None` if it is the same for all.
    pub(super) fn for_persons(&self, book: &mut HeaderBlockCache) -> Option<EncodedReply> {
        let is_usual = self.content_type == Self::default().content_type;
        let (content_type, body) = ("application/json", FormBody::CounterJson);
        (self.body == Body::Counter && is_usual)
            .then(|| EncodedReply::new(Draft { content_type, body, ..Draft::new(self.status) }, book))
    }

    /// Encodes the reply with its own status, and with each of these. All of them share the bytes of the
    /// body.
    pub(super) fn encoded(
        &self,
        statuses: impl Iterator<Item = u16>,
        book: &mut HeaderBlockCache,
    ) -> (EncodedReply, Vec<EncodedReply>) {
        let bytes = fixed_bytes(&self.body);
        let mut form = |status| EncodedReply::new(usual(self, status, bytes.as_ref()), book);
        (form(self.status), statuses.map(form).collect())
    }
}

/// The bytes of a body that is always the same.
fn fixed_bytes(body: &Body) -> Option<Arc<[u8]>> {
    match body {
        Body::Counter | Body::Cbor => None,
        Body::Bytes(length) => Some(vec![b'x'; *length as usize].into()),
        Body::Fixed(bytes) => Some(Arc::clone(bytes)),
    }
}

/// The reply of a plain sink with this status.
fn usual<'a>(reply: &'a Reply, status: u16, bytes: Option<&Arc<[u8]>>) -> Draft<'a> {
    let body = match bytes {
        None => FormBody::Counter,
        Some(bytes) if bytes.is_empty() => FormBody::Empty,
        Some(bytes) if bytes.len() <= INLINE_LIMIT => FormBody::Inline(Arc::clone(bytes)),
        Some(bytes) => FormBody::Shared(Arc::clone(bytes)),
    };
    Draft { content_type: &reply.content_type, body, ..Draft::new(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_of_a_body_follows_after_its_span() {
        let slow = SlowData { bytes: 10, every: Nanos(5) };
        for (length, span) in [(0, 0), (1, 0), (10, 0), (11, 5), (20, 5), (21, 10)] {
            assert_eq!(slow.span(length), Nanos(span), "{length}");
        }
    }

    #[test]
    fn persons_are_told_by_what_they_accept() {
        let all = "text/html, */*;q=0.8";
        for (method, target, accept, json) in [
            ("GET", "/", "*/*", true),
            ("GET", "/a?b", all, true),
            ("HEAD", "/", "*/*", true),
            ("GET", "/", "application/cbor", false),
            ("GET", "/", "*/*, Application/CBOR", false),
            ("POST", "/", "*/*", false),
            ("POST", "/", "application/json", true),
            ("GET", "/api/v2/status", all, false),
            ("POST", "/api/v3/a/query", "application/json", false),
        ] {
            let told = wants_json(method.as_bytes(), target.as_bytes(), accept.as_bytes());
            assert_eq!(told, json, "{method} {target} {accept}");
        }
    }

    #[test]
    fn replies_without_a_body_have_nothing_that_only_a_body_has() {
        let count = |status, body, content_type: &str| {
            let mut found = 0;
            let reply = Reply { status, body, content_type: content_type.to_owned(), slow: None };
            reply.problems(&mut |sound, _| found += usize::from(!sound));
            found
        };
        let (cbor, bytes) = ("application/cbor", "application/octet-stream");
        assert_eq!(count(204, Body::Counter, cbor), 0);
        assert_eq!(count(204, Body::Bytes(1000), bytes), 1);
        assert_eq!(count(204, Body::Fixed(Arc::from(&b"a"[..])), "text/x"), 2);
        assert_eq!(count(204, Body::Counter, "text/x"), 1);
        assert_eq!(count(200, Body::Bytes(0), bytes), 0);
        assert_eq!(count(200, Body::Bytes(0), "text/x"), 1);
        assert_eq!(count(200, Body::Fixed(Arc::from(&b""[..])), "text/x"), 1);
        assert_eq!(count(200, Body::Bytes(1), "text/x"), 0);
        // Its head has the length and the type of the body that it stands for.
        assert_eq!(count(304, Body::Bytes(1000), "text/x"), 0);
    }
}
