//! Replies, encoded once for both protocols.

use std::io::Write as _;
use std::sync::Arc;

use plimsoll_wire::http1::write_response_head;
use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{BlockId, Field, FieldValue, HeaderBlockCache, Indexing, Payload, Server};

use super::service::{ID_DIGITS, digits};

/// The CBOR body of the Internet Computer's load sink, up to the four bytes of the counter: a definite map of
/// two text keys, without the self-describing tag; 32 bytes with the counter.
const COUNTER_BODY: &[u8; 28] = b"\xa2\x66status\x67replied\x65reply\xa1\x63arg\x44";
/// The counter as JSON, up to its digits and behind them: filled with white space to the length of the CBOR,
/// so that no figure of bytes depends on who asks.
const JSON_BODY: (&[u8; 11], &[u8; 2]) = (b"{\"counter\":", b"}\n");
/// The JSON body of a resource, before and after its id.
const RESOURCE_BODY: (&[u8; 7], &[u8; 2]) = (b"{\"id\":\"", b"\"}");
/// Holds every body that differs from reply to reply.
pub(crate) type Room = [u8; 32];
/// Fixed bodies up to this size are copied behind their head, larger ones are handed over without a copy: a
/// copy of 16 KiB costs about as much as the second segment of a gathered write.
pub(crate) const INLINE_LIMIT: usize = 16 * 1024;

/// The persistence of an HTTP/1.1 connection after the reply, as its client expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// HTTP/1.1: it stays open, which need not be said.
    Keep,
    /// HTTP/1.0: it stays open, and a field says so.
    KeepTold,
    Close,
}

/// To whom an answer goes, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    /// The HTTP/2 stream; 0 on HTTP/1.1.
    pub(crate) stream: u32,
    /// `true` if the request is a HEAD request: there is no body.
    pub(crate) head_only: bool,
    /// Persistence of the connection, on HTTP/1.1.
    pub(crate) persistence: Persistence,
}

/// The body of a form.
#[derive(Debug)]
pub(crate) enum FormBody {
    Empty,
    /// Ends with the number of the request.
    Counter,
    /// JSON form of [`Counter`](Self::Counter).
    CounterJson,
    /// Ends with the number of the request in eight bytes. Make it by [`number`](Self::number).
    Number(Box<[u8]>),
    /// Names the id of the resource.
    Resource,
    /// Comes with the answer.
    Given,
    Inline(Arc<[u8]>),
    Shared(Arc<[u8]>),
}

impl FormBody {
    /// The number of the request behind some bytes.
    ///
    /// # Panics
    /// If there are more than 24.
    pub(crate) fn number(before: Vec<u8>) -> Self {
        assert!(before.len() <= size_of::<Room>() - size_of::<u64>(), "too long: {before:?}");
        Self::Number(before.into())
    }

    fn len(&self) -> usize {
        match self {
            Self::Empty | Self::Given => 0,
            Self::Counter | Self::CounterJson => COUNTER_BODY.len() + size_of::<u32>(),
            Self::Number(before) => before.len() + size_of::<u64>(),
            Self::Resource => RESOURCE_BODY.0.len() + ID_DIGITS + RESOURCE_BODY.1.len(),
            Self::Inline(bytes) | Self::Shared(bytes) => bytes.len(),
        }
    }

    /// The bytes; those that differ from reply to reply are put into `room`.
    fn render<'a>(&'a self, token: u64, room: &'a mut Room) -> &'a [u8] {
        let mut put = |parts: &[&[u8]]| {
            let mut end = 0;
            for part in parts {
                room[end..end + part.len()].copy_from_slice(part);
                end += part.len();
            }
        };
        match self {
            Self::Empty | Self::Given => return &[],
            Self::Inline(bytes) | Self::Shared(bytes) => return bytes,
            // The counter of the original has 32 bits and wraps.
            Self::Counter => put(&[COUNTER_BODY, &(token as u32).to_le_bytes()]),
            Self::CounterJson => *room = counter_as_json(token as u32),
            Self::Number(before) => put(&[before, &token.to_le_bytes()]),
            Self::Resource => put(&[RESOURCE_BODY.0, &digits(token), RESOURCE_BODY.1]),
        }
        &room[..self.len()]
    }
}

/// The counter as JSON. It ends with the end of a line, for terminals.
fn counter_as_json(counter: u32) -> Room {
    let (before, behind) = JSON_BODY;
    let mut room = [b' '; size_of::<Room>()];
    room[..before.len()].copy_from_slice(before);
    // Ten digits at most: they fit, and writing into the room does not fail.
    let mut digits = &mut room[before.len()..];
    let _ = write!(digits, "{counter}");
    let digits = digits.len();
    let end = room.len() - behind.len();
    room[end..].copy_from_slice(behind);
    debug_assert!(digits >= behind.len());
    room
}

/// The parts of a form.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) status: u16,
    pub(crate) content_type: &'a str,
    pub(crate) body: FormBody,
    /// `true` if the reply has a location, which differs from reply to reply.
    pub(crate) located: bool,
    /// Another field.
    pub(crate) extra: Option<(&'a str, &'a str)>,
}

impl Draft<'_> {
    /// A reply with this status and nothing else.
    pub(crate) const fn new(status: u16) -> Self {
        Draft { status, content_type: "", body: FormBody::Empty, located: false, extra: None }
    }
}

/// One reply, encoded once: for HTTP/1.1 with each [`Persistence`], for HTTP/2 as a block of the sink's book.
#[derive(Debug)]
pub(crate) struct EncodedReply {
    pub(crate) status: u16,
    /// Heads by persistence. The heads of a located form end where the location begins, those of a given body
    /// where its length does.
    heads: [Vec<u8>; 3],
    block: BlockId,
    body: FormBody,
    /// The status never has a body, though its head may have a length.
    bodiless: bool,
    located: bool,
    /// Header block of the trailers, with HTTP/2; empty if there are none.
    trailers: Box<[u8]>,
    /// Returns the length of the first piece of a body that is sent in pieces, if it does not depend on the
    /// pace.
    piece: Option<fn(&[u8]) -> usize>,
}

impl EncodedReply {
    /// Encodes the form. `book` must not be sealed yet.
    pub(crate) fn new(draft: Draft<'_>, book: &mut HeaderBlockCache) -> Self {
        let Draft { status, body, located, extra, .. } = draft;
        // RFC 9110 8.6: a 204 has no length at all, a 304 that of the 200 it stands for.
        let body = if status == 204 { FormBody::Empty } else { body };
        let content_type = (!matches!(body, FormBody::Empty)).then_some(draft.content_type);
        // A given body has no length yet.
        let length = (!matches!(body, FormBody::Given)).then_some(body.len());
        let head = |persistence| head1(status, content_type, length, located, extra, persistence);
        let heads = [Persistence::Keep, Persistence::KeepTold, Persistence::Close].map(head);
        let block = book.add(fields(status, content_type, length, located, extra));
        Self {
            status,
            heads,
            block,
            body,
            bodiless: matches!(status, 204 | 304),
            located,
            trailers: Box::default(),
            piece: None,
        }
    }

    /// A reply of HTTP/2 with status 200, these fields, a body whose length is not told, and trailers.
    /// HTTP/1.1 answers 505. `status` is that of the log.
    pub(crate) fn streamed(
        status: u16,
        fields: &[(String, String)],
        body: FormBody,
        trailers: &[(String, String)],
        piece: fn(&[u8]) -> usize,
        book: &mut HeaderBlockCache,
    ) -> Self {
        let of_http1 = Self::bare(505, book);
        let field = |name: &str, value: &str| Field {
            name: name.into(),
            value: FieldValue::Fixed(value.into()),
            never_indexed: false,
        };
        let more = fields.iter().map(|(name, value)| field(name, value));
        let block = book.add([field(":status", "200")].into_iter().chain(more).collect());
        let mut behind = Vec::new();
        for (name, value) in trailers {
            put_literal(&mut behind, name.as_bytes(), value.as_bytes(), false);
        }
        Self { status, block, body, trailers: behind.into(), piece: Some(piece), ..of_http1 }
    }

    /// A reply without a body.
    pub(crate) fn bare(status: u16, book: &mut HeaderBlockCache) -> Self {
        Self::new(Draft::new(status), book)
    }

    /// Bytes of the whole reply, about.
    pub(crate) fn len(&self) -> usize {
        self.heads[0].len() + self.body.len()
    }

    /// Returns `true` if it never leaves a body to be sent apart.
    pub(crate) const fn is_inline(&self) -> bool {
        !matches!(self.body, FormBody::Shared(_))
    }

    /// Returns `true` if its head ends with a value that differs from reply to reply.
    const fn is_open(&self) -> bool {
        self.located || matches!(self.body, FormBody::Given)
    }

    /// Bytes of the body that is really sent.
    pub(crate) fn sent_body(&self, head_only: bool) -> usize {
        if head_only || self.bodiless { 0 } else { self.body.len() }
    }
}

/// A head of HTTP/1.1; of a located form up to where the location begins.
fn head1(
    status: u16,
    content_type: Option<&str>,
    length: Option<usize>,
    located: bool,
    extra: Option<(&str, &str)>,
    persistence: Persistence,
) -> Vec<u8> {
    let mut more: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: &str| more.push((name.to_owned(), value.to_owned()));
    if persistence == Persistence::KeepTold {
        add("connection", "keep-alive");
    }
    if let Some((name, value)) = extra {
        add(name, value);
    }
    if located {
        // The last one, so that its value is what is missing before the ends of line and head.
        add("location", "");
    }
    let mut head = Vec::new();
    let close = persistence == Persistence::Close;
    write_response_head(&mut head, status, content_type, length.unwrap_or(0) as u64, close, &more);
    if located {
        head.truncate(head.len() - HEAD_END.len());
    }
    if length.is_none() {
        // The line with the length moves to the end, without its value.
        let line = memchr::memmem::find(&head, NO_LENGTH).expect("each head has a length");
        head.drain(line..line + NO_LENGTH.len());
        head.truncate(head.len() - HEAD_END.len() / 2);
        head.extend_from_slice(&NO_LENGTH[..NO_LENGTH.len() - b"0\r\n".len()]);
    }
    head
}

const NO_LENGTH: &[u8] = b"content-length: 0\r\n";

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Returns the head of a reply as fields of HTTP/2 (RFC 9113 section 8.3.2).
fn fields(
    status: u16,
    content_type: Option<&str>,
    length: Option<usize>,
    located: bool,
    extra: Option<(&str, &str)>,
) -> Vec<Field> {
    let field = |name: &str, value| Field { name: name.into(), value, never_indexed: false };
    let fixed = |name: &str, value: &str| field(name, FieldValue::Fixed(value.into()));
    let mut fields = vec![fixed(":status", &status.to_string())];
    fields.extend(content_type.map(|content_type| fixed("content-type", content_type)));
    if status != 204 {
        fields.push(match length {
            Some(length) => fixed("content-length", &length.to_string()),
            None => field("content-length", FieldValue::Variable),
        });
    }
    fields.extend(extra.map(|(name, value)| fixed(name, value)));
    fields.extend(located.then(|| field("location", FieldValue::Variable)));
    fields
}

/// One reply: a form, and the parts that differ this time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) form: &'a EncodedReply,
    /// The number in the body: that of the request, or the id of the resource.
    pub(crate) token: u64,
    /// Beginning of the location of the new resource: an origin, and the path that it was created below.
    pub(crate) below: [&'a [u8]; 2],
    /// The body, where it comes with the answer.
    pub(crate) given: &'a [u8],
}

impl<'a> Answer<'a> {
    /// An answer with nothing but a number.
    pub(crate) const fn plain(form: &'a EncodedReply, token: u64) -> Self {
        Self { form, token, below: [&[], &[]], given: &[] }
    }

    /// Appends the head for HTTP/1.1.
    #[inline]
    pub(crate) fn write_head(&self, persistence: Persistence, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.form.heads[persistence as usize]);
        if self.form.is_open() {
            self.put_variable(out);
            out.extend_from_slice(HEAD_END);
        }
    }

    /// Appends the whole reply for HTTP/1.1. Returns the body that has to be sent after it, if it is a large
    /// one.
    #[inline]
    pub(crate) fn write(
        &self,
        head_only: bool,
        persistence: Persistence,
        out: &mut Vec<u8>,
    ) -> Option<&'a Arc<[u8]>> {
        self.write_head(persistence, out);
        match &self.form.body {
            FormBody::Shared(body) if !head_only && !self.form.bodiless => Some(body),
            _ => {
                out.extend_from_slice(self.body(head_only, &mut Room::default()));
                None
            }
        }
    }

    /// The body, which may be rendered into `room`; empty where none is sent.
    #[inline]
    pub(crate) fn body<'b>(&self, head_only: bool, room: &'b mut Room) -> &'b [u8]
    where
        'a: 'b,
    {
        match &self.form.body {
            _ if head_only || self.form.bodiless => &[],
            FormBody::Given => self.given,
            body => body.render(self.token, room),
        }
    }

    /// Appends the header block for HTTP/2.
    #[inline]
    pub(crate) fn write_block(&self, book: &HeaderBlockCache, indexing: &mut Indexing, out: &mut Vec<u8>) {
        book.write(self.form.block, indexing, out, |_, out| self.put_variable(out));
    }

    /// Writes the whole reply on a stream of HTTP/2; false if the stream is gone.
    #[inline]
    pub(crate) fn write_http2(
        &self,
        server: &mut Server,
        stream: u32,
        head_only: bool,
        book: &HeaderBlockCache,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut room = Room::default();
        let payload = match &self.form.body {
            FormBody::Shared(body) if !head_only && !self.form.bodiless => Payload::Shared(body),
            _ => match self.body(head_only, &mut room) {
                [] => Payload::None,
                bytes => Payload::Bytes(bytes),
            },
        };
        let head = |indexing: &mut Indexing, out: &mut Vec<u8>| self.write_block(book, indexing, out);
        if self.form.trailers.is_empty() {
            return server.reply(stream, head, payload, out);
        }
        server.reply_head(stream, head, out)
            && (payload.is_empty() || server.data(stream, payload, false, out))
            && server.trailers(stream, &self.form.trailers, out)
    }

    /// Returns the end of the piece of a body that begins here. A piece has this many bytes, unless the reply
    /// has pieces of its own.
    pub(crate) fn piece_end(&self, body: &[u8], begin: usize, bytes: usize) -> usize {
        let bytes = self.form.piece.map_or(bytes, |piece| piece(&body[begin..]));
        begin.saturating_add(bytes).min(body.len())
    }

    /// The header block of the trailers, if there are some.
    pub(crate) fn trailers(&self) -> Option<&'a [u8]> {
        Some(&*self.form.trailers).filter(|trailers| !trailers.is_empty())
    }

    /// The value of the field that differs from reply to reply.
    fn put_variable(&self, out: &mut Vec<u8>) {
        if matches!(self.form.body, FormBody::Given) {
            // Writing to a vector does not fail.
            let _ = write!(out, "{}", self.given.len());
            return;
        }
        self.below.iter().for_each(|part| out.extend_from_slice(part));
        out.push(b'/');
        out.extend_from_slice(&digits(self.token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(status: u16, body: FormBody) -> EncodedReply {
        let draft = Draft { status, content_type: "text/x", body, located: false, extra: None };
        EncodedReply::new(draft, &mut HeaderBlockCache::new())
    }

    fn written(form: &EncodedReply, token: u64, head_only: bool) -> (String, Vec<u8>) {
        let mut out = Vec::new();
        assert!(Answer::plain(form, token).write(head_only, Persistence::Keep, &mut out).is_none());
        let end = out.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        (String::from_utf8(out[..end].to_vec()).unwrap().to_ascii_lowercase(), out[end..].to_vec())
    }

    #[test]
    fn the_counter_is_the_cbor_of_the_original() {
        let (head, body) = written(&form(200, FormBody::Counter), 0x0102_0304, false);
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(head.contains("content-type: text/x\r\n"), "{head}");
        assert!(head.contains("content-length: 32\r\n"), "{head}");
        let expected = [
            0xa2, 0x66, b's', b't', b'a', b't', b'u', b's', 0x67, b'r', b'e', b'p', b'l', b'i', b'e', b'd',
            0x65, b'r', b'e', b'p', b'l', b'y', 0xa1, 0x63, b'a', b'r', b'g', 0x44, 4, 3, 2, 1,
        ];
        assert_eq!(body, expected);
    }

    #[test]
    fn the_counter_is_json_of_the_same_length() {
        for (token, counter) in [(0, 0), (7, 7), (u64::from(u32::MAX), u32::MAX), ((1 << 32) + 5, 5)] {
            let (head, body) = written(&form(200, FormBody::CounterJson), token, false);
            assert!(head.contains("content-length: 32\r\n"), "{head}");
            let text = String::from_utf8(body).unwrap();
            assert!(
                text.starts_with(&format!("{{\"counter\":{counter} ")) && text.ends_with(" }\n"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_counter_wraps_at_32_bits() {
        let (_, body) = written(&form(200, FormBody::Counter), (1 << 32) + 5, false);
        assert_eq!(body[28..], [5, 0, 0, 0]);
    }

    #[test]
    fn a_head_request_gets_the_length_without_the_body() {
        let (head, body) = written(&form(200, FormBody::Counter), 1, true);
        assert!(head.contains("content-length: 32\r\n"));
        assert!(body.is_empty());
    }

    #[test]
    fn a_204_has_neither_length_nor_body() {
        let (head, body) = written(&form(204, FormBody::Counter), 1, false);
        assert!(!head.contains("content-length") && !head.contains("content-type"), "{head}");
        assert!(body.is_empty());
    }

    #[test]
    fn a_304_tells_the_length_that_it_does_not_send() {
        let (head, body) = written(&form(304, FormBody::Counter), 1, false);
        assert!(head.contains("content-length: 32\r\n"), "{head}");
        assert!(body.is_empty());
    }

    #[test]
    fn each_persistence_has_its_head() {
        let form = form(200, FormBody::Counter);
        let head = |persistence| {
            let mut out = Vec::new();
            Answer::plain(&form, 0).write(true, persistence, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert!(!head(Persistence::Keep).contains("connection"));
        assert!(head(Persistence::KeepTold).contains("connection: keep-alive\r\n"));
        assert!(head(Persistence::Close).contains("connection: close\r\n"));
    }

    #[test]
    fn a_location_ends_the_head_and_a_resource_names_its_id() {
        let draft = |body, located| Draft {
            status: 201,
            content_type: "application/json",
            body,
            located,
            extra: Some(("allow", "GET")),
        };
        let mut book = HeaderBlockCache::new();
        let located = EncodedReply::new(draft(FormBody::Empty, true), &mut book);
        let answer = Answer { form: &located, token: 0xab, below: [b"http://a:1", b"/b"], given: &[] };
        let mut out = Vec::new();
        assert!(answer.write(false, Persistence::Keep, &mut out).is_none());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 201 Created\r\ncontent-length: 0\r\nallow: GET\r\n\
             location: http://a:1/b/00000000000000ab\r\n\r\n"
        );
        let found = EncodedReply::new(draft(FormBody::Resource, false), &mut book);
        let (head, body) = written(&found, 0xab, false);
        assert!(head.ends_with("content-length: 25\r\nallow: get\r\n\r\n"), "{head}");
        assert_eq!(body, b"{\"id\":\"00000000000000ab\"}");
    }

    #[test]
    fn large_bodies_are_shared() {
        let shared = form(200, FormBody::Shared(Arc::from(&[b'x'; INLINE_LIMIT + 1][..])));
        let answer = Answer::plain(&shared, 0);
        let mut out = Vec::new();
        assert_eq!(answer.write(false, Persistence::Keep, &mut out).unwrap().len(), INLINE_LIMIT + 1);
        assert!(answer.write(true, Persistence::Keep, &mut out).is_none());
        assert_eq!((shared.sent_body(false), shared.sent_body(true)), (INLINE_LIMIT + 1, 0));
        assert_eq!(written(&form(200, FormBody::Empty), 0, false).1, b"");
    }
}
