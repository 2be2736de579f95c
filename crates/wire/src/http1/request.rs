//! The server's half: requests, one after the other, out of a byte stream.

use super::body::{BodyReader, Framing, LONGEST_KEPT_BODY, Payload};
use super::fields::{FramingFields, completed, list, parse_whole};
use super::gather::{Message, Place, only_empty_lines, take_head};
use super::memo::ParsedHead;
use super::{Limits, ProtocolError, RequestMemo};

/// The header field by which a client names a request, for the truth log of a server.
const ID_HEADER: &str = "x-plimsoll-id";

/// One whole request. Its borrowed parts are in the input or in the [`RequestServer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method, as sent: methods are case-sensitive.
    pub method: &'a [u8],
    /// The request target, as sent.
    pub target: &'a [u8],
    /// The whole head, for [`header`](Self::header).
    pub head: &'a [u8],
    /// 0 for HTTP/1.0, 1 for HTTP/1.1. A 1.0 client that wants the connection kept needs the confirmation
    /// `connection: keep-alive`.
    pub version_minor: u8,
    /// `true` if the client will take another response on this connection.
    pub keep_alive: bool,
    /// `true` for a HEAD request, which is answered without a body.
    pub head_request: bool,
    /// Bytes of the payload, without the framing of chunks.
    pub body_bytes: u64,
    /// `true` if the client asked for a 100 before it would send the body.
    pub expects_continue: bool,
    /// Value of the header field `x-plimsoll-id`.
    pub id: Option<&'a [u8]>,
    /// Value of the first header field `accept`.
    pub accept: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// The value of the first header field of this name (in any case of letters), without the white space
    /// around it. Reads the head again: for servers that need a field now and then.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        let limits = Limits { head_bytes: usize::MAX, headers: usize::MAX, interim: 0 };
        let mut found = None;
        // The request was parsed before it was given: this cannot fail.
        let _ = parse_whole(self.head, &limits, |slots| {
            let mut request = httparse::Request::new(&mut []);
            let length = httparse::ParserConfig::default().parse_request_with_uninit_headers(
                &mut request,
                self.head,
                slots,
            )?;
            let field = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
            found = field.map(|field| field.value.trim_ascii());
            Ok(((), completed(length)?))
        });
        found
    }
}

/// Reads the requests of one connection. One per connection; nothing on the heap between requests that came
/// whole.
///
/// Call [`next`](Self::next) with the received bytes until it returns `None`; then, if
/// [`wants_continue`](Self::wants_continue), send a 100. After an error the connection has to be answered
/// with an error and closed: where the next request begins is not known any more.
///
/// It does not ask for a Host field: whether a request makes sense is its user's matter, not its framing's.
#[derive(Debug, Default)]
pub struct RequestServer {
    /// While in a head that came in pieces: those pieces. While in a body: the head. Else empty, or the head
    /// of the request that was returned last.
    spill: Vec<u8>,
    phase: Phase,
    head: RequestHead,
    body_bytes: u64,
    continue_due: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Between requests.
    #[default]
    Idle,
    Head,
    Body(BodyReader),
}

impl RequestServer {
    /// A server on a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything, for use on a new connection.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns `true` if bytes of a request were consumed and it is not complete.
    pub fn in_request(&self) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Head => !only_empty_lines(&self.spill),
            Phase::Body(_) => true,
        }
    }

    /// Consumes from the front of `input` until one request with its body is complete (`Some`) or the input
    /// is used up (`None`).
    #[inline]
    pub fn next<'a, 'i: 'a>(
        &'a mut self,
        limits: &Limits,
        memo: &mut RequestMemo,
        input: &mut &'i [u8],
    ) -> Result<Option<Request<'a>>, ProtocolError> {
        self.next_into(limits, memo, input, None)
    }

    /// Reads as [`next`](Self::next) does, and appends the payload to `kept` as it comes if there is one, up
    /// to [`LONGEST_KEPT_BODY`] bytes of it.
    #[inline]
    pub fn next_into<'a, 'i: 'a>(
        &'a mut self,
        limits: &Limits,
        memo: &mut RequestMemo,
        input: &mut &'i [u8],
        kept: Option<&mut Vec<u8>>,
    ) -> Result<Option<Request<'a>>, ProtocolError> {
        let Some(place) = self.advance(limits, memo, input, kept)? else {
            return Ok(None);
        };
        let head = match place {
            Place::Input(head) => head,
            Place::Spill => &self.spill,
        };
        Ok(Some(self.head.request(head, self.body_bytes)))
    }

    /// Returns `true` if a 100 (Continue) should be sent now: once per request that asks for it and whose
    /// body has not begun to arrive (RFC 9110 section 10.1.1).
    pub fn wants_continue(&mut self) -> bool {
        std::mem::take(&mut self.continue_due)
    }

    /// Reads on. Returns the place of the head of a request that became complete.
    fn advance<'i>(
        &mut self,
        limits: &Limits,
        memo: &mut RequestMemo,
        input: &mut &'i [u8],
        kept: Option<&mut Vec<u8>>,
    ) -> Result<Option<Place<'i>>, ProtocolError> {
        let mut place = Place::Spill;
        if self.phase == Phase::Idle {
            self.spill = Vec::new();
            self.phase = Phase::Head;
        }
        if self.phase == Phase::Head {
            let Some(found) = self.read_head(limits, memo, input)? else {
                return Ok(None);
            };
            place = found;
            self.body_bytes = 0;
            self.phase = Phase::Body(BodyReader::new(self.head.framing));
            self.continue_due = self.head.expects_continue && self.head.framing != Framing::Length(0);
        }
        // A client that already sends its body does not wait for a 100 any more.
        self.continue_due &= input.is_empty();
        let done = match &mut self.phase {
            Phase::Body(body) => body.advance(
                limits,
                &mut Payload { bytes: &mut self.body_bytes, kept, most: LONGEST_KEPT_BODY },
                input,
            )?,
            Phase::Idle | Phase::Head => false,
        };
        if done {
            self.phase = Phase::Idle;
            return Ok(Some(place));
        }
        if let Place::Input(head) = place {
            self.spill.extend_from_slice(head);
        }
        Ok(None)
    }

    fn read_head<'i>(
        &mut self,
        limits: &Limits,
        memo: &mut RequestMemo,
        input: &mut &'i [u8],
    ) -> Result<Option<Place<'i>>, ProtocolError> {
        if self.spill.is_empty()
            && let Some((head, bytes)) = memo.0.recognise(limits, input)
        {
            *input = &input[bytes.len()..];
            self.head = head;
            return Ok(Some(Place::Input(bytes)));
        }
        let Some(found) = take_head(Message::Request, limits, &mut self.spill, input)? else {
            return Ok(None);
        };
        let bytes = found.head(&self.spill);
        self.head = RequestHead::parse(bytes, limits)?;
        // A head with an id of its own does not come again.
        if self.head.id.is_none() {
            memo.0.remember(bytes, self.head);
        }
        Ok(Some(found.place))
    }
}

/// A parsed request head; its texts are places in that head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    method: Span,
    target: Span,
    id: Option<Span>,
    accept: Option<Span>,
    framing: Framing,
    fields: usize,
    version_minor: u8,
    keep_alive: bool,
    head_request: bool,
    expects_continue: bool,
}

impl ParsedHead for RequestHead {
    #[inline]
    fn fields(&self) -> usize {
        self.fields
    }
}

impl Default for RequestHead {
    fn default() -> Self {
        Self {
            method: Span::default(),
            target: Span::default(),
            id: None,
            accept: None,
            framing: Framing::Length(0),
            fields: 0,
            version_minor: 1,
            keep_alive: false,
            head_request: false,
            expects_continue: false,
        }
    }
}

impl RequestHead {
    /// Reads a whole head that begins with its request line.
    fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, ProtocolError> {
        parse_whole(bytes, limits, |slots| {
            let mut request = httparse::Request::new(&mut []);
            let length = completed(httparse::ParserConfig::default().parse_request_with_uninit_headers(
                &mut request,
                bytes,
                slots,
            )?)?;
            let fields = FramingFields::read(request.headers)?;
            let version_minor = request.version.unwrap_or(0);
            let method = request.method.unwrap_or("").as_bytes();
            let target = request.path.unwrap_or("").as_bytes();
            let named = |name| request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            let [id, accept] = [ID_HEADER, "accept"].map(named);
            let expects_continue = request.headers.iter().any(|header| {
                header.name.eq_ignore_ascii_case("expect")
                    && list(header.value).any(|one| one.eq_ignore_ascii_case(b"100-continue"))
            });
            let head = Self {
                method: Span::of(method, bytes),
                target: Span::of(target, bytes),
                id: id.map(|header| Span::of(header.value, bytes)),
                accept: accept.map(|header| Span::of(header.value, bytes)),
                framing: Self::framing_of(&fields, version_minor)?,
                fields: request.headers.len(),
                version_minor,
                keep_alive: fields.persistent(version_minor),
                head_request: method == b"HEAD",
                // A client of HTTP/1.0 cannot mean it (RFC 9110 section 10.1.1).
                expects_continue: expects_continue && version_minor >= 1,
            };
            Ok((head, length))
        })
    }

    /// RFC 9112 section 6.3, rules 3 to 7, and section 6.1 on HTTP/1.0. A server cannot read until the client
    /// closes, so a transfer coding that does not end in `chunked` is an error.
    fn framing_of(fields: &FramingFields, version_minor: u8) -> Result<Framing, ProtocolError> {
        match (fields.transfer_coded, fields.chunked_last) {
            (true, _) if version_minor == 0 => {
                Err(ProtocolError::Malformed("transfer-encoding in an HTTP/1.0 request"))
            }
            (true, true) => Ok(Framing::Chunked),
            (true, false) => Err(ProtocolError::Malformed("transfer-encoding that does not end in chunked")),
            (false, _) => Ok(Framing::Length(fields.content_length.unwrap_or(0))),
        }
    }

    #[inline]
    fn request<'a>(&self, head: &'a [u8], body_bytes: u64) -> Request<'a> {
        Request {
            method: self.method.of_head(head),
            target: self.target.of_head(head),
            head,
            version_minor: self.version_minor,
            keep_alive: self.keep_alive,
            head_request: self.head_request,
            body_bytes,
            expects_continue: self.expects_continue,
            id: self.id.map(|id| id.of_head(head)),
            accept: self.accept.map(|accept| accept.of_head(head)),
        }
    }
}

/// A part of a head. 32 bits would not do for a head beyond 4 GiB; its parts read as empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The position of `part`, which was cut out of `head`, in it.
    fn of(part: &[u8], head: &[u8]) -> Self {
        let start = (part.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize);
        match (u32::try_from(start), u32::try_from(start.wrapping_add(part.len()))) {
            (Ok(start), Ok(end)) => Self { start, end },
            _ => Self::default(),
        }
    }

    #[inline]
    fn of_head(self, head: &[u8]) -> &[u8] {
        head.get(self.start as usize..self.end as usize).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_requests_leave_nothing_on_the_heap() {
        let (limits, mut memo, mut server) = (Limits::default(), RequestMemo::new(), RequestServer::new());
        let whole = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nok";
        for _ in 0..2 {
            assert!(server.next(&limits, &mut memo, &mut &whole[..]).unwrap().is_some());
            assert_eq!(server.spill.capacity(), 0);
        }
        let (first, last) = whole.split_at(whole.len() - 1);
        assert_eq!(server.next(&limits, &mut memo, &mut &first[..]), Ok(None));
        assert!(server.next(&limits, &mut memo, &mut &last[..]).unwrap().is_some());
        assert!(!server.spill.is_empty(), "the returned request borrowed from it");
        assert_eq!(server.next(&limits, &mut memo, &mut &b""[..]), Ok(None));
        assert_eq!(server.spill.capacity(), 0);
    }

    #[test]
    fn a_head_with_an_id_does_not_evict_the_remembered_one() {
        let (limits, mut memo, mut server) = (Limits::default(), RequestMemo::new(), RequestServer::new());
        let plain = &b"GET / HTTP/1.1\r\n\r\n"[..];
        let named = &b"GET / HTTP/1.1\r\nx-plimsoll-id: 1\r\n\r\n"[..];
        for mut bytes in [plain, named] {
            assert!(server.next(&limits, &mut memo, &mut bytes).unwrap().is_some());
        }
        assert!(memo.0.recognise(&limits, plain).is_some());
        assert!(memo.0.recognise(&limits, named).is_none());
    }
}
