//! The client's half: responses, one after the other, out of a byte stream.

use super::body::{BodyReader, Framing, LONGEST_KEPT_BODY, LONGEST_QUOTE, Payload, QUOTED_FROM, quote};
use super::fields::{FramingFields, completed, parse_whole};
use super::gather::{CompleteHead, Message, Place, only_empty_lines, take_head};
use super::memo::ParsedHead;
use super::{HeadMemo, Limits, ProtocolError, Truncated};

/// Bytes of memory that a connection keeps for captured heads.
const USUAL_HEAD: usize = 2048;

/// Facts about the oldest unanswered request that are needed to read its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    /// Set for a HEAD request: its response has no body, regardless of its head.
    pub head_request: bool,
    /// The parts of the response to keep.
    pub capture: Capture,
}

/// The parts of a response to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// Nothing: it is counted only.
    Nothing,
    /// The head, for [`ResponseClient::header`].
    Headers,
    /// The payload.
    Body,
    /// Head and payload.
    Whole,
}

impl Capture {
    /// Returns the capture for a wanted head, body, or both.
    pub const fn of(head: bool, body: bool) -> Self {
        match (head, body) {
            (false, false) => Self::Nothing,
            (true, false) => Self::Headers,
            (false, true) => Self::Body,
            (true, true) => Self::Whole,
        }
    }

    /// Returns `true` if the head is kept.
    pub const fn head(self) -> bool {
        matches!(self, Self::Headers | Self::Whole)
    }

    /// Returns `true` if the payload is kept.
    pub const fn body(self) -> bool {
        matches!(self, Self::Body | Self::Whole)
    }
}

/// One whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code, from 200 to 999.
    pub status: u16,
    /// Bytes of the final response's head, its empty line included.
    pub head_bytes: u64,
    /// Bytes of the payload, without the framing of chunks.
    pub body_bytes: u64,
    /// All bytes consumed since the response before: heads, interim responses, payload and its framing, and
    /// empty lines before a head.
    pub wire_bytes: u64,
    /// `true` if the server will read another request on this connection.
    pub keep_alive: bool,
    /// Interim (1xx) responses before this one.
    pub interim: u32,
}

/// Reads the responses of one connection. One per connection; 64 bytes, and nothing on the heap between
/// responses unless the last one was captured.
///
/// Call [`next`](Self::next) with the received bytes until it returns `None`, [`finish`](Self::finish) when
/// the peer has closed, and [`reset`](Self::reset) before use on another connection. After an error only
/// `reset` makes sense: where the next response begins is not known any more.
///
/// It never asks for more than one response at a time, so it may be given bytes of a pipelined successor:
/// `next` leaves them in its input.
#[derive(Debug)]
pub struct ResponseClient {
    /// While in a head that came in pieces: those pieces. After a captured head: that head. Else empty and
    /// without an allocation.
    spill: Vec<u8>,
    /// Bytes consumed for this response so far.
    wire_bytes: u64,
    /// Payload consumed of this response so far.
    body_bytes: u64,
    phase: Phase,
    /// Length of the final head. 32 bits hold it: a head of 4 GiB is not worth 4 more bytes here.
    head_bytes: u32,
    status: u16,
    interim: u8,
    keep_alive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Between responses.
    Idle,
    /// In a head, or between an interim response and the next head.
    Head,
    Body(BodyReader),
}

impl Default for ResponseClient {
    fn default() -> Self {
        Self::new()
    }
}

impl ResponseClient {
    /// A client on a new connection.
    pub const fn new() -> Self {
        Self {
            spill: Vec::new(),
            wire_bytes: 0,
            body_bytes: 0,
            phase: Phase::Idle,
            head_bytes: 0,
            status: 0,
            interim: 0,
            keep_alive: false,
        }
    }

    /// Consumes from the front of `input` until one response is complete (`Some`) or the input is used up
    /// (`None`).
    ///
    /// `owed` must be the same in every call for one response. `memo` is that of the target.
    #[inline]
    pub fn next(
        &mut self,
        limits: &Limits,
        memo: &mut HeadMemo,
        owed: PendingRequest,
        input: &mut &[u8],
    ) -> Result<Option<Response>, ProtocolError> {
        self.next_into(limits, memo, owed, input, &mut Vec::new())
    }

    /// Reads as [`next`](Self::next) does, and appends the payload to `kept` as it comes if
    /// [`PendingRequest::capture`] asks for it, up to [`LONGEST_KEPT_BODY`] bytes of it. Of a response with a
    /// status of 300 or more the first [`LONGEST_QUOTE`] bytes are appended in any case.
    #[inline]
    pub fn next_into(
        &mut self,
        limits: &Limits,
        memo: &mut HeadMemo,
        owed: PendingRequest,
        input: &mut &[u8],
        kept: &mut Vec<u8>,
    ) -> Result<Option<Response>, ProtocolError> {
        if self.phase == Phase::Idle {
            let before = *input;
            if owed.capture == Capture::Nothing
                && let Some(response) = whole_response(limits, memo, owed, input)
            {
                if response.status >= QUOTED_FROM {
                    quote(&before[response.head_bytes as usize..response.wire_bytes as usize], kept);
                }
                self.forget_captured(owed.capture);
                return Ok(Some(response));
            }
            self.forget_captured(owed.capture);
            // Stay idle, so that the response to come can still be taken whole.
            if input.is_empty() {
                return Ok(None);
            }
            self.begin();
        }
        self.advance(limits, memo, owed, input, kept)
    }

    /// The next response, if nothing of it was read before, it stands whole in `input`, and its head is the
    /// one that `memo` remembers; else `None`, and nothing has changed. Nothing of it is kept.
    #[inline]
    pub fn next_known(
        &mut self,
        limits: &Limits,
        memo: &HeadMemo,
        head_request: bool,
        input: &mut &[u8],
    ) -> Option<Response> {
        if self.phase != Phase::Idle {
            return None;
        }
        let owed = PendingRequest { head_request, capture: Capture::Nothing };
        let response = whole_response(limits, memo, owed, input)?;
        self.forget_captured(owed.capture);
        Some(response)
    }

    /// The peer closed the connection. Completes a body that ends there; `Ok(None)` if no response had begun
    /// (empty lines are not a response). Call it once; the client is as after [`reset`](Self::reset) then,
    /// except for the captured head of a response that this call completed.
    pub fn finish(&mut self) -> Result<Option<Response>, Truncated> {
        let result = match self.phase {
            Phase::Idle => Ok(None),
            Phase::Body(BodyReader::UntilClose) => return Ok(Some(self.complete())),
            Phase::Body(_) => Err(Truncated { started: true }),
            Phase::Head if !only_empty_lines(&self.spill) => Err(Truncated { started: true }),
            Phase::Head if self.interim > 0 => Err(Truncated { started: false }),
            Phase::Head => Ok(None),
        };
        self.reset();
        result
    }

    /// The status of the response whose body is being read; before that of the one before.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Returns `true` if bytes of a response were consumed and it is not complete.
    pub fn in_response(&self) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Head => self.interim > 0 || !only_empty_lines(&self.spill),
            Phase::Body(_) => true,
        }
    }

    /// The value of the first header field of this name (in any case of letters) in the captured response;
    /// without the white space around it, but with obsolete line folding as it came. `None` if there is no
    /// such field or no captured response: it is kept until the next call of [`next`](Self::next).
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let mut found = None;
        self.each_header(|known, value| {
            if found.is_none() && known.eq_ignore_ascii_case(name) {
                found = Some(value);
            }
        });
        found
    }

    /// The status line of the captured response, without its end; empty if there is no captured response.
    pub fn status_line(&self) -> &[u8] {
        if self.phase != Phase::Idle {
            return &[];
        }
        let end = memchr::memchr(b'\n', &self.spill).unwrap_or(self.spill.len());
        self.spill[..end].trim_ascii_end()
    }

    /// Passes the names and values of all header fields of the captured response to `tell`, in their order,
    /// as [`header`](Self::header) gives them.
    pub fn each_header<'c>(&'c self, mut tell: impl FnMut(&'c str, &'c [u8])) {
        if self.phase != Phase::Idle || self.spill.is_empty() {
            return;
        }
        let head = self.spill.as_slice();
        let limits = Limits { head_bytes: usize::MAX, headers: usize::MAX, interim: 0 };
        // The response was parsed before it was kept: this cannot fail.
        let _ = parse_whole(head, &limits, |slots| {
            let mut response = httparse::Response::new(&mut []);
            let length = config().parse_response_with_uninit_headers(&mut response, head, slots)?;
            for header in response.headers.iter() {
                tell(header.name, header.value.trim_ascii());
            }
            Ok(((), completed(length)?))
        });
    }

    /// Forgets everything, for use on a new connection.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    fn begin(&mut self) {
        self.phase = Phase::Head;
        self.wire_bytes = 0;
        self.body_bytes = 0;
        self.interim = 0;
    }

    /// Drops the head of the response before. Its allocation stays if it is going to be needed again: at
    /// once, or, where it is that of a usual head, because steps alternate whose heads are captured and not.
    fn forget_captured(&mut self, capture: Capture) {
        if capture.head() || self.spill.capacity() <= USUAL_HEAD {
            self.spill.clear();
        } else {
            self.spill = Vec::new();
        }
    }

    fn advance(
        &mut self,
        limits: &Limits,
        memo: &mut HeadMemo,
        owed: PendingRequest,
        input: &mut &[u8],
        kept: &mut Vec<u8>,
    ) -> Result<Option<Response>, ProtocolError> {
        while self.phase == Phase::Head {
            let Some((head, length)) = self.read_head(limits, memo, owed.capture, input)? else {
                return Ok(None);
            };
            if head.is_interim() {
                self.count_interim(limits)?;
            } else {
                let framing = head.framing(owed.head_request);
                self.status = head.status;
                self.head_bytes = u32::try_from(length).unwrap_or(u32::MAX);
                self.keep_alive = head.keep_alive(framing);
                self.phase = Phase::Body(BodyReader::new(framing));
            }
        }
        let before = input.len();
        let done = match &mut self.phase {
            Phase::Body(body) => {
                let (kept, most) = match self.status {
                    _ if owed.capture.body() => (Some(kept), LONGEST_KEPT_BODY),
                    QUOTED_FROM.. => (Some(kept), LONGEST_QUOTE),
                    _ => (None, 0),
                };
                body.advance(limits, &mut Payload { bytes: &mut self.body_bytes, kept, most }, input)?
            }
            Phase::Idle | Phase::Head => false,
        };
        self.wire_bytes += (before - input.len()) as u64;
        Ok(if done { Some(self.complete()) } else { None })
    }

    /// Takes one whole head, with its length; leaves the spill as the phase after it wants it.
    fn read_head(
        &mut self,
        limits: &Limits,
        memo: &mut HeadMemo,
        capture: Capture,
        input: &mut &[u8],
    ) -> Result<Option<(ResponseHead, usize)>, ProtocolError> {
        if self.spill.is_empty()
            && let Some((head, bytes)) = memo.0.recognise(limits, input)
        {
            if capture.head() {
                self.spill.extend_from_slice(bytes);
            }
            *input = &input[bytes.len()..];
            self.wire_bytes += bytes.len() as u64;
            return Ok(Some((head, bytes.len())));
        }
        let Some(found) = take_head(Message::Response, limits, &mut self.spill, input)? else {
            return Ok(None);
        };
        let bytes = found.head(&self.spill);
        let (head, length) = (ResponseHead::parse(bytes, limits)?, bytes.len());
        // Interim heads alternate with final ones: remembering them would evict the useful one.
        if !head.is_interim() {
            memo.0.remember(bytes, head);
        }
        self.wire_bytes += found.wire_bytes as u64;
        self.settle_spill(found, capture, head.is_interim());
        Ok(Some((head, length)))
    }

    fn settle_spill(&mut self, found: CompleteHead<'_>, capture: Capture, interim: bool) {
        match (capture.head(), found.place) {
            (true, _) if interim => self.spill.clear(),
            (true, Place::Input(head)) => self.spill.extend_from_slice(head),
            (true, Place::Spill) => {}
            (false, _) => self.spill = Vec::new(),
        }
    }

    fn count_interim(&mut self, limits: &Limits) -> Result<(), ProtocolError> {
        if u32::from(self.interim) >= limits.interim || self.interim == u8::MAX {
            return Err(ProtocolError::TooManyInterim);
        }
        self.interim += 1;
        Ok(())
    }

    fn complete(&mut self) -> Response {
        self.phase = Phase::Idle;
        Response {
            status: self.status,
            head_bytes: u64::from(self.head_bytes),
            body_bytes: self.body_bytes,
            wire_bytes: self.wire_bytes,
            keep_alive: self.keep_alive,
            interim: u32::from(self.interim),
        }
    }
}

/// The usual case at once: the head is the remembered one, and its body is in the input.
#[inline]
fn whole_response(
    limits: &Limits,
    memo: &HeadMemo,
    owed: PendingRequest,
    input: &mut &[u8],
) -> Option<Response> {
    let (head, bytes) = memo.0.recognise(limits, input)?;
    let framing = head.framing(owed.head_request);
    let Framing::Length(length) = framing else {
        return None;
    };
    let body = usize::try_from(length).ok()?;
    let rest = input[bytes.len()..].get(body..)?;
    *input = rest;
    let head_bytes = bytes.len() as u64;
    Some(Response {
        status: head.status,
        head_bytes,
        body_bytes: length,
        wire_bytes: head_bytes + length,
        keep_alive: head.keep_alive(framing),
        interim: 0,
    })
}

/// A parsed response head, independent of the request that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    status: u16,
    /// Framing of the body, if the response has one.
    framing: Framing,
    persistent: bool,
    fields: usize,
}

impl ParsedHead for ResponseHead {
    #[inline]
    fn fields(&self) -> usize {
        self.fields
    }
}

fn config() -> httparse::ParserConfig {
    let mut config = httparse::ParserConfig::default();
    config
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_multiple_spaces_in_response_status_delimiters(true);
    config
}

impl ResponseHead {
    /// Reads a whole head that begins with its status line.
    fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, ProtocolError> {
        parse_whole(bytes, limits, |slots| {
            let mut response = httparse::Response::new(&mut []);
            let length =
                completed(config().parse_response_with_uninit_headers(&mut response, bytes, slots)?)?;
            let fields = FramingFields::read(response.headers)?;
            let version_minor = response.version.unwrap_or(0);
            let status = response.code.unwrap_or(0);
            let head = Self {
                status: check_status(status)?,
                framing: Self::framing_of(&fields),
                persistent: fields.persistent(version_minor),
                fields: response.headers.len(),
            };
            Ok((head, length))
        })
    }

    /// RFC 9112 section 6.3, rules 4 to 8, for a response that may have a body.
    fn framing_of(fields: &FramingFields) -> Framing {
        match fields.content_length {
            _ if fields.chunked_last => Framing::Chunked,
            _ if fields.transfer_coded => Framing::UntilClose,
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        }
    }

    fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Returns the framing of the body in answer to such a request (RFC 9112 section 6.3, rule 1).
    #[inline]
    fn framing(&self, head_request: bool) -> Framing {
        if head_request || matches!(self.status, 204 | 304) { Framing::Length(0) } else { self.framing }
    }

    #[inline]
    fn keep_alive(&self, framing: Framing) -> bool {
        self.persistent && framing != Framing::UntilClose
    }
}

fn check_status(status: u16) -> Result<u16, ProtocolError> {
    match status {
        101 => Err(ProtocolError::SwitchedProtocols),
        100.. => Ok(status),
        _ => Err(ProtocolError::Malformed("status code below 100")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: PendingRequest = PendingRequest { head_request: false, capture: Capture::Nothing };
    const CAPTURED: PendingRequest = PendingRequest { head_request: false, capture: Capture::Headers };
    const BYTES: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    fn feed(
        client: &mut ResponseClient,
        memo: &mut HeadMemo,
        owed: PendingRequest,
        mut bytes: &[u8],
    ) -> bool {
        let response = client.next(&Limits::default(), memo, owed, &mut bytes).unwrap();
        assert!(bytes.is_empty());
        response.is_some()
    }

    #[test]
    fn nothing_is_on_the_heap_unless_a_head_is_cut_or_captured() {
        let (mut client, mut memo) = (ResponseClient::new(), HeadMemo::new());
        for _ in 0..2 {
            assert!(feed(&mut client, &mut memo, GET, BYTES));
            assert_eq!(client.spill.capacity(), 0, "a whole response");
        }
        let (head, body) = BYTES.split_at(BYTES.len() - 5);
        assert!(!feed(&mut client, &mut memo, GET, head));
        assert_eq!(client.spill.capacity(), 0, "a whole head");
        assert!(feed(&mut client, &mut memo, GET, body));

        assert!(!feed(&mut client, &mut memo, GET, &head[..20]));
        assert_eq!(client.spill, head[..20]);
        assert!(!feed(&mut client, &mut memo, GET, &head[20..]));
        assert_eq!(client.spill.capacity(), 0, "freed as soon as the cut head is whole");
        assert!(feed(&mut client, &mut memo, GET, body));

        assert!(feed(&mut client, &mut memo, CAPTURED, BYTES));
        assert_eq!(client.spill, head);
        assert!(feed(&mut client, &mut memo, GET, BYTES));
        assert!(client.spill.is_empty(), "a captured head goes with the next response");
    }

    #[test]
    fn a_usual_response_is_taken_whole_after_a_call_without_input() {
        let (mut client, mut memo) = (ResponseClient::new(), HeadMemo::new());
        assert!(feed(&mut client, &mut memo, GET, BYTES));
        assert!(!feed(&mut client, &mut memo, GET, b""));
        assert_eq!(client.phase, Phase::Idle);
        let mut input = BYTES;
        assert!(whole_response(&Limits::default(), &memo, GET, &mut input).is_some());
        assert!(input.is_empty());
    }

    #[test]
    fn interim_heads_do_not_evict_the_remembered_one() {
        let (mut client, mut memo) = (ResponseClient::new(), HeadMemo::new());
        let with_interim = [b"HTTP/1.1 103 Early Hints\r\n\r\n", BYTES].concat();
        assert!(feed(&mut client, &mut memo, GET, &with_interim));
        assert!(memo.0.recognise(&Limits::default(), BYTES).is_some());
    }
}
