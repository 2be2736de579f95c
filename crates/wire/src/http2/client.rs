//! The client's half of a connection.

mod captured;
mod control;
mod frames;
mod head;
mod stream;

use super::block::BlockAssembly;
use super::budget::Budget;
use super::error::{ConnectionError, ErrorCode};
use super::flow::Outflow;
use super::frame::{
    MAX_MAX_FRAME_SIZE, MAX_STREAM, MIN_MAX_FRAME_SIZE, PREFACE, put_go_away, put_headers, put_ping,
    put_rst_stream, put_settings, put_window_update,
};
use super::frame_reader::FrameReader;
use super::heads::HeadMemo;
use super::hpack::Decoder;
use super::settings::{PeerSettings, setting};
use super::streams::StreamTable;
use super::window::{INITIAL_WINDOW, MAX_WINDOW, ReceiveWindow};
use super::{FieldLimits, Indexing, Payload};

use captured::{CapturedFields, KnownBlock};
use stream::{Retention, Stream};

pub use captured::Captured;

/// Settings that a [`Client`] announces to its server, and its own limits for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Bytes of the dynamic table that responses may use (SETTINGS_HEADER_TABLE_SIZE).
    pub header_table_size: u32,
    /// Bytes of the server's dynamic table that requests use at most.
    pub encoder_table_size: u32,
    /// Bytes of content that may come on a stream before the client has counted them
    /// (SETTINGS_INITIAL_WINDOW_SIZE, at most 2^31 - 1; zero is taken as one).
    pub stream_window: u32,
    /// Bytes of content that may come on all streams together before the client has counted them, from 65,535
    /// to 2^31 - 1; the nearest if it is outside.
    pub connection_window: u32,
    /// Bytes of the payload of a frame from the server (SETTINGS_MAX_FRAME_SIZE, from 2^14 to 2^24 - 1; the
    /// nearest if it is outside).
    pub max_frame_size: u32,
    /// Streams that may be open at once, even if the server allows more.
    pub max_streams: u32,
    /// Limits of a response head; the bytes are announced to the server (SETTINGS_MAX_HEADER_LIST_SIZE).
    pub limits: FieldLimits,
    /// The most interim (1xx) responses before one final response.
    pub interim: u32,
}

impl Default for ClientOptions {
    /// Windows of 1 GiB, so that they do not limit the measurement; the table and frame sizes of the RFC; 100
    /// streams; heads of 64 KiB and 256 fields and 32 interim responses, as in HTTP/1.1.
    fn default() -> Self {
        Self {
            header_table_size: 4096,
            encoder_table_size: 4096,
            stream_window: (1 << 30) - 1,
            connection_window: (1 << 30) - 1,
            max_frame_size: MIN_MAX_FRAME_SIZE,
            max_streams: 100,
            limits: FieldLimits { list_bytes: 64 * 1024, fields: 256 },
            interim: 32,
        }
    }
}

impl ClientOptions {
    fn within_bounds(mut self) -> Self {
        self.stream_window = self.stream_window.clamp(1, MAX_WINDOW);
        self.connection_window = self.connection_window.clamp(INITIAL_WINDOW, MAX_WINDOW);
        self.max_frame_size = self.max_frame_size.clamp(MIN_MAX_FRAME_SIZE, MAX_MAX_FRAME_SIZE);
        self
    }
}

/// The options that a connection needs after its beginning.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    stream_window: u32,
    max_frame_size: u32,
    max_streams: u32,
    limits: FieldLimits,
    interim: u32,
}

/// A request, apart from its head.
#[derive(Clone, Copy, Debug)]
pub struct Submit<'a> {
    /// Set for a HEAD request: its response has no content, regardless of its head.
    pub head_request: bool,
    /// Set if the fields of the response's head are wanted: [`Event::Head`] comes then.
    pub capture: bool,
    /// Set if the content of the response is wanted: [`Client::body`].
    pub keep_body: bool,
    /// Set if content is wanted as it comes, by [`Event::Content`]. Only with `keep_body`.
    pub tell_content: bool,
    /// The content.
    pub body: Payload<'a>,
}

/// Bytes of content that are kept of a response at most. Later bytes are counted all the same.
pub const LONGEST_KEPT_BODY: usize = 16 << 20;

/// Bytes of content that are kept of a failure response, even without a capture: room for the text
/// of a server's error.
pub const LONGEST_QUOTE: usize = 1 << 10;

/// The first status whose content is quoted.
const QUOTED_FROM: u16 = 300;

/// Bytes that a buffer for kept content keeps for the next response.
const BODY_ROOM: usize = 64 << 10;

/// An event on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server's first SETTINGS came.
    Ready,
    /// The final head of a response came, or after it its trailers, of a request submitted with `capture`.
    /// Read them with [`Client::captured`] before the next `receive`.
    Head {
        /// The request.
        ticket: u32,
        /// The fields.
        fields: Captured,
    },
    /// A response began in this `receive`, with an interim or the final head, and is not complete at its end.
    /// Comes at most once for a request, and not for one that ends in the same `receive`.
    Began {
        /// The request.
        ticket: u32,
    },
    /// Content of a response came, of a request submitted with `tell_content`: see
    /// [`Client::take_body`]. Comes before the end of the response, once for pieces that follow each other.
    Content {
        /// The request.
        ticket: u32,
        /// The status of the response.
        status: u16,
    },
    /// A whole response came; the ticket waits for [`Client::reuse`].
    Response {
        /// The request.
        ticket: u32,
        /// The response.
        response: Response,
    },
    /// A request ended without a whole response; the ticket waits for [`Client::reuse`].
    Failed {
        /// The request.
        ticket: u32,
        /// The reason.
        failure: StreamFailure,
    },
    /// The server takes no more requests on this connection (GOAWAY). Those that it did not process fail,
    /// each with its own event behind this one; the others go on.
    GoAway {
        /// The server's reason.
        code: ErrorCode,
        /// Requests that it did not process.
        unprocessed: u32,
    },
    /// The answer to a [`ping`](Client::ping).
    Pong {
        /// The payload of the ping, if the server is honest.
        payload: u64,
    },
}

/// Reason why a request ended without a whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFailure {
    /// The server refused the stream before any processing (RST_STREAM with REFUSED_STREAM).
    Refused,
    /// The server reset the stream with another code.
    Reset(ErrorCode),
    /// The server went away without processing the request (GOAWAY).
    Unprocessed,
    /// The server broke a rule on this stream. Carries the rule. The stream was reset, with PROTOCOL_ERROR
    /// unless the RFC names another code.
    Malformed(&'static str),
    /// The response's head or its trailers are larger than the limits. The stream was reset with CANCEL.
    HeadTooLarge,
}

/// One whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code, from 200 to 999.
    pub status: u16,
    /// Bytes of the final head as it came, compressed: its header block, without frame heads and padding.
    pub head_bytes: u64,
    /// Bytes of the content, without padding.
    pub body_bytes: u64,
    /// Bytes of all HEADERS, CONTINUATION and DATA frames of the response, their heads included.
    pub wire_bytes: u64,
    /// Interim (1xx) responses before this one.
    pub interim: u32,
}

/// Bytes of the messages on a connection, without the heads of frames and padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Header blocks of requests, compressed.
    pub heads_sent: u64,
    /// Header blocks of responses, compressed: interim and final heads, and trailers.
    pub heads_received: u64,
    /// Names and values of the fields in the blocks of responses, uncompressed.
    pub fields_received: u64,
    /// Content of responses.
    pub content_received: u64,
}

/// One connection, seen from the client: requests in, responses out, up to a limit at the same time.
///
/// Call [`start`](Self::start) once, first. Then, in any order: [`submit`](Self::submit) while there is
/// [`capacity`](Self::capacity), and [`receive`](Self::receive) with the received bytes. Each call appends
/// output for the server to an `out` of the caller, which must be sent in that order. After an error the
/// connection is over: send `out` (a GOAWAY is in it), close, and give up the [`tickets`](Self::tickets) that
/// are left. When the server closes, those are without a response, too.
///
/// Content of responses is counted and, unless it is wanted, dropped, so windows open as fast as content
/// comes. A request allocates nothing once a connection has had as many requests at once before, unless its
/// content has to wait.
#[derive(Debug)]
pub struct Client {
    bounds: Bounds,
    streams: StreamTable,
    /// By ticket.
    slots: Vec<Stream>,
    /// Content of responses that is kept, by ticket.
    bodies: Vec<Vec<u8>>,
    /// Content of requests that waits for [`proceed`](Self::proceed), by ticket.
    held: Vec<Vec<u8>>,
    next_stream: u32,

    indexing: Indexing,
    peer: PeerSettings,
    outflow: Outflow,

    frame_reader: FrameReader,
    receive_window: ReceiveWindow,
    block: BlockAssembly,
    decoder: Decoder,
    memo: HeadMemo<KnownBlock>,
    captured: CapturedFields,
    /// Tickets whose response began in this `receive`.
    begun: Vec<u32>,
    /// Bytes since the last [`take_traffic`](Self::take_traffic).
    traffic: Traffic,

    budget: Budget,
    /// Pings without an answer.
    pings: u32,
    awaits_ack: bool,
    ready: bool,
    /// Set once `go_away` was called.
    closing: bool,
    /// The last stream of the server's GOAWAY.
    last_stream: Option<u32>,
    error: Option<ConnectionError>,
}

impl Client {
    /// A client on a fresh connection.
    pub fn new(options: &ClientOptions) -> Self {
        let options = options.within_bounds();
        let ClientOptions { stream_window, max_frame_size, max_streams, limits, interim, .. } = options;
        Self {
            bounds: Bounds { stream_window, max_frame_size, max_streams, limits, interim },
            streams: StreamTable::new(),
            slots: Vec::new(),
            bodies: Vec::new(),
            held: Vec::new(),
            next_stream: 1,
            indexing: Indexing::new(options.encoder_table_size),
            peer: PeerSettings::default(),
            outflow: Outflow::new(),
            frame_reader: FrameReader::default(),
            receive_window: ReceiveWindow::new(options.connection_window),
            block: BlockAssembly::new(options.limits.list_bytes),
            decoder: Decoder::new(options.header_table_size),
            memo: HeadMemo::default(),
            captured: CapturedFields::default(),
            begun: Vec::new(),
            traffic: Traffic::default(),
            budget: Budget::new(),
            pings: 0,
            awaits_ack: true,
            ready: false,
            closing: false,
            last_stream: None,
            error: None,
        }
    }

    /// Appends the first bytes of a client: the preface, SETTINGS, and the connection's window. Requests may
    /// follow at once (RFC 9113 section 3.4).
    pub fn start(&mut self, out: &mut Vec<u8>) {
        let bounds = &self.bounds;
        out.extend_from_slice(PREFACE);
        let settings = [
            (setting::HEADER_TABLE_SIZE, self.decoder.advertised()),
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, bounds.stream_window),
            (setting::MAX_FRAME_SIZE, bounds.max_frame_size),
            (setting::MAX_HEADER_LIST_SIZE, bounds.limits.list_bytes),
        ];
        put_settings(out, &settings);
        let window = self.receive_window.size();
        if window > INITIAL_WINDOW {
            put_window_update(out, 0, window - INITIAL_WINDOW);
        }
    }

    /// Returns `true` once the server's first SETTINGS came.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Streams that may be opened: the rest of the smaller of the own limit and the server's (until its
    /// SETTINGS come, of the own). 0 once either side goes away, after an error, and when all identifiers are
    /// used.
    #[inline]
    pub fn capacity(&self) -> u32 {
        if self.is_going_away() || self.error.is_some() || self.next_stream > MAX_STREAM {
            return 0;
        }
        let server = self.peer.max_concurrent_streams.unwrap_or(u32::MAX);
        let identifiers = (MAX_STREAM - self.next_stream) / 2 + 1;
        self.bounds.max_streams.min(server).saturating_sub(self.streams.len()).min(identifiers)
    }

    /// Streams that are open.
    #[inline]
    pub fn active(&self) -> u32 {
        self.streams.len()
    }

    /// The server's limit of streams (SETTINGS_MAX_CONCURRENT_STREAMS); `None` if it set none.
    pub fn server_limit(&self) -> Option<u32> {
        self.peer.max_concurrent_streams
    }

    /// Returns `true` if the server's settings allow extended CONNECT requests (RFC 8441 section 3).
    pub fn allows_extended_connect(&self) -> bool {
        self.peer.enable_connect_protocol
    }

    /// Returns `true` once the server has sent GOAWAY or [`go_away`](Self::go_away) was called.
    #[inline]
    pub fn is_going_away(&self) -> bool {
        self.closing || self.last_stream.is_some()
    }

    /// Opens a stream, for which there must be [`capacity`](Self::capacity). `head` appends the header block
    /// of the request. Content goes to `out` as far as the windows allow; the rest is kept and follows in
    /// `receive` when they open, the streams taking turns.
    ///
    /// The ticket is a small dense number, less than twice the limit of streams. It stands for this request
    /// until [`reuse`](Self::reuse) after its [`Event::Response`] or [`Event::Failed`], or until
    /// [`cancel`](Self::cancel).
    #[inline]
    pub fn submit(
        &mut self,
        spec: Submit<'_>,
        head: impl FnOnce(&mut Indexing, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> u32 {
        let no_body = spec.body.is_empty();
        let ticket = self.open(&spec, no_body, head, out);
        if !no_body {
            let stream = &mut self.slots[ticket as usize];
            self.outflow.send(ticket, &mut stream.flow, spec.body, true, &self.peer, out);
        }
        ticket
    }

    /// [`submit`](Self::submit) of a request whose content goes out in parts: the first `length` bytes now,
    /// and the rest by [`proceed`](Self::proceed).
    pub fn submit_part(
        &mut self,
        spec: Submit<'_>,
        length: usize,
        head: impl FnOnce(&mut Indexing, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> u32 {
        let (part, rest) = spec.body.bytes().split_at(length);
        let ticket = self.open(&spec, false, head, out);
        if self.held.len() <= ticket as usize {
            self.held.resize_with(ticket as usize + 1, Vec::new);
        }
        self.held[ticket as usize].extend_from_slice(rest);
        let flow = &mut self.slots[ticket as usize].flow;
        self.outflow.send(ticket, flow, Payload::Bytes(part), rest.is_empty(), &self.peer, out);
        ticket
    }

    /// Sends another part of the content of a request: as many bytes as `length` says of those that are left,
    /// and the end of the stream with the last of them. Nothing if the request has ended or is whole.
    pub fn proceed(&mut self, ticket: u32, length: impl FnOnce(&[u8]) -> usize, out: &mut Vec<u8>) {
        let Some(held) = self.held.get_mut(ticket as usize).filter(|held| !held.is_empty()) else { return };
        let part: Vec<u8> = held.drain(..length(held)).collect();
        let flow = &mut self.slots[ticket as usize].flow;
        self.outflow.send(ticket, flow, Payload::Bytes(&part), held.is_empty(), &self.peer, out);
    }

    /// Returns `true` if content of a request is still to be sent.
    fn is_sending(&self, ticket: u32) -> bool {
        let held = self.held.get(ticket as usize).is_some_and(|held| !held.is_empty());
        held || self.outflow.waiting(ticket, &self.slots[ticket as usize].flow) > 0
    }

    /// [`submit`](Self::submit) of a request that will be [cancelled](Self::cancel) before it is whole:
    /// without any of its content. If it has none, it is whole.
    pub fn submit_cut(
        &mut self,
        spec: Submit<'_>,
        head: impl FnOnce(&mut Indexing, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> u32 {
        let no_body = spec.body.is_empty();
        self.open(&spec, no_body, head, out)
    }

    /// Opens a stream that carries bytes both ways until either side ends it, by a CONNECT request. There
    /// must be [`capacity`](Self::capacity). `head` appends its header block. [`Event::Head`] brings the
    /// fields of the response, [`Event::Content`] its content; [`send`](Self::send) sends content.
    pub fn connect(&mut self, head: impl FnOnce(&mut Indexing, &mut Vec<u8>), out: &mut Vec<u8>) -> u32 {
        let spec = Submit {
            head_request: false,
            capture: true,
            keep_body: true,
            tell_content: true,
            body: Payload::None,
        };
        self.open(&spec, false, head, out)
    }

    /// Sends content on a stream opened by [`connect`](Self::connect), as far as the windows allow; the rest
    /// is kept and follows in `receive`. Nothing happens if the stream has ended.
    pub fn send(&mut self, ticket: u32, content: &[u8], out: &mut Vec<u8>) {
        if let Some(stream) = self.slots.get_mut(ticket as usize).filter(|stream| stream.id() != 0) {
            self.outflow.send(ticket, &mut stream.flow, Payload::Bytes(content), false, &self.peer, out);
        }
    }

    /// The response so far, of a request whose final head came, until its ticket is [reused](Self::reuse).
    pub fn response(&self, ticket: u32) -> Option<Response> {
        self.slots.get(ticket as usize).filter(|stream| stream.has_head()).map(Stream::response)
    }

    /// Opens a stream: everything of a request but its content.
    #[inline]
    fn open(
        &mut self,
        spec: &Submit<'_>,
        no_body: bool,
        head: impl FnOnce(&mut Indexing, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> u32 {
        debug_assert!(self.capacity() > 0, "a stream was opened without capacity");
        let id = self.next_stream;
        self.next_stream += 2;
        let ticket = self.streams.insert(id);
        let indexing = &mut self.indexing;
        let block = put_headers(out, id, no_body, self.peer.max_frame_size, |out| head(indexing, out));
        self.traffic.heads_sent += block as u64;
        if self.slots.len() <= ticket as usize {
            self.slots.push(Stream::vacant());
        }
        let stream = &mut self.slots[ticket as usize];
        stream.open(id, &self.peer, self.bounds.stream_window, spec);
        if spec.keep_body {
            self.frame_reader.tell_content();
            self.clear_body(ticket);
        }
        ticket
    }

    /// Makes room for the content of a response.
    fn clear_body(&mut self, ticket: u32) {
        if self.bodies.len() <= ticket as usize {
            self.bodies.resize_with(ticket as usize + 1, Vec::new);
        }
        let body = &mut self.bodies[ticket as usize];
        body.clear();
        body.shrink_to(BODY_ROOM);
    }

    /// Gives up a request: RST_STREAM with CANCEL. Later frames for it are ignored, and its ticket is free at
    /// once. A ticket whose request has ended is ignored.
    pub fn cancel(&mut self, ticket: u32, out: &mut Vec<u8>) {
        if let Some(stream) = self.slots.get(ticket as usize).filter(|stream| stream.id() != 0) {
            put_rst_stream(out, stream.id(), ErrorCode::Cancel);
            self.release(ticket);
            self.streams.reuse(ticket);
        }
    }

    /// Breaks a response off of which enough has come: RST_STREAM with CANCEL. Later frames for it are
    /// ignored, and the ticket waits for [`reuse`](Self::reuse), as behind [`Event::Response`]. Returns the
    /// bytes of its HEADERS, CONTINUATION and DATA frames so far; `None`, and nothing is written, if the
    /// request has ended.
    pub fn break_off(&mut self, ticket: u32, out: &mut Vec<u8>) -> Option<u64> {
        let stream = self.slots.get(ticket as usize).filter(|stream| stream.id() != 0)?;
        let wire_bytes = stream.wire_bytes;
        put_rst_stream(out, stream.id(), ErrorCode::Cancel);
        self.release(ticket);
        Some(wire_bytes)
    }

    /// Asks for a sign of life; [`Event::Pong`] answers.
    pub fn ping(&mut self, payload: u64, out: &mut Vec<u8>) {
        self.pings = self.pings.saturating_add(1);
        put_ping(out, false, payload.to_be_bytes());
    }

    /// Sends GOAWAY with NO_ERROR. Open streams go on, no more may be opened.
    pub fn go_away(&mut self, out: &mut Vec<u8>) {
        self.closing = true;
        put_go_away(out, 0, ErrorCode::NoError);
    }

    /// The tickets of the open streams, in ascending order.
    pub fn tickets(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.slots).filter(|(_, stream)| stream.id() != 0).map(|(ticket, _)| ticket)
    }

    /// Names and values of a captured head in their order, without `:status`. Empty after the next `receive`.
    pub fn captured(&self, fields: &Captured) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.captured.fields(*fields)
    }

    /// The value of the first captured field of this name, which is compared without regard to case.
    pub fn captured_header(&self, fields: &Captured, name: &str) -> Option<&[u8]> {
        let mut all = self.captured(fields);
        all.find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// The content of a response, as much as came of it, up to [`LONGEST_KEPT_BODY`] bytes; of a request
    /// submitted with `keep_body`, until its ticket is [reused](Self::reuse). Of a response with a status of
    /// 300 or more the first [`LONGEST_QUOTE`] bytes are there in any case.
    pub fn body(&self, ticket: u32) -> &[u8] {
        match (self.slots.get(ticket as usize), self.bodies.get(ticket as usize)) {
            (Some(stream), Some(body)) if stream.keeps != Retention::Nothing => body,
            _ => &[],
        }
    }

    /// Moves the content of a response that is [kept](Self::body) so far to the end of `into`.
    pub fn take_body(&mut self, ticket: u32, into: &mut Vec<u8>) {
        if let Some(body) = self.bodies.get_mut(ticket as usize) {
            into.append(body);
        }
    }

    /// Lets the ticket of a request that has ended stand for another. To be called once for each
    /// [`Event::Response`] and [`Event::Failed`], when it is dealt with: not earlier, because the requests
    /// that the owner submits meanwhile would get the tickets of events that are still to come.
    #[inline]
    pub fn reuse(&mut self, ticket: u32) {
        self.streams.reuse(ticket);
    }

    /// Bytes of the messages since the last call, or since the start.
    pub fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    /// Ends a stream. Its ticket stays taken.
    #[inline]
    fn release(&mut self, ticket: u32) {
        let stream = &mut self.slots[ticket as usize];
        self.streams.retire(stream.id());
        self.outflow.close(ticket, &mut stream.flow);
        if let Some(held) = self.held.get_mut(ticket as usize) {
            held.clear();
            held.shrink_to(BODY_ROOM);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_ends_with_the_identifiers() {
        let (mut client, mut out) = (Client::new(&ClientOptions::default()), Vec::new());
        client.next_stream = MAX_STREAM - 2;
        for left in [2, 1] {
            assert_eq!(client.capacity(), left);
            let body = Payload::None;
            let spec =
                Submit { head_request: false, capture: false, keep_body: false, tell_content: false, body };
            out.clear();
            client.submit(spec, |_, _| (), &mut out);
        }
        assert_eq!(out, [0, 0, 0, 1, 5, 0x7f, 0xff, 0xff, 0xff]);
        assert_eq!((client.capacity(), client.active()), (0, 2));
        let mut events = Vec::new();
        let head = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 5, 0x7f, 0xff, 0xff, 0xff, 0x88];
        client.receive(&head, &mut out, &mut events).unwrap();
        assert!(matches!(events[..], [Event::Ready, Event::Response { ticket: 1, .. }]), "{events:?}");
        assert_eq!(client.capacity(), 0);
    }

    /// Stream, flags and length of each frame.
    fn frames(mut out: &[u8]) -> Vec<(u8, u8, u8)> {
        let mut frames = Vec::new();
        while let Some((head, rest)) = out.split_first_chunk::<9>() {
            frames.push((head[3], head[4], head[2]));
            out = &rest[usize::from(head[2])..];
        }
        frames
    }

    #[test]
    fn content_goes_out_in_parts_and_what_is_held_ends_with_its_request() {
        let (mut client, mut out) = (Client::new(&ClientOptions::default()), Vec::new());
        let spec = Submit {
            head_request: false,
            capture: false,
            keep_body: false,
            tell_content: false,
            body: Payload::Bytes(b"aabbbcc"),
        };
        let ticket = client.submit_part(spec, 2, |_, _| (), &mut out);
        assert_eq!(frames(&out), [(1, 4, 0), (0, 0, 2)]);
        out.clear();
        client.proceed(ticket, |left| left.len().min(3), &mut out);
        client.proceed(ticket, <[u8]>::len, &mut out);
        client.proceed(ticket, <[u8]>::len, &mut out);
        assert_eq!(frames(&out), [(0, 0, 3), (0, 1, 2)]);
        out.clear();
        let whole = client.submit_part(spec, 7, |_, _| (), &mut out);
        assert_eq!(frames(&out), [(1, 4, 0), (0, 1, 7)]);
        client.cancel(whole, &mut out);
        let other = client.submit_part(spec, 1, |_, _| (), &mut out);
        let mut events = Vec::new();
        let settings_and_head = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 5, 0, 0, 0, 5, 0x88];
        out.clear();
        client.receive(&settings_and_head, &mut out, &mut events).unwrap();
        assert!(matches!(events[..], [Event::Ready, Event::Response { .. }]), "{events:?}");
        // The answer came before the end of the request.
        assert_eq!(frames(&out), [(4, 1, 0), (3, 0, 4)]);
        out.clear();
        client.proceed(other, <[u8]>::len, &mut out);
        assert!(out.is_empty());
    }
}
