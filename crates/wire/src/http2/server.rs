//! The server's half of a connection.

mod control;
mod frames;
mod head;
mod stream;

use super::block::BlockAssembly;
use super::budget::Budget;
use super::error::{ConnectionError, ErrorCode};
use super::flow::Outflow;
use super::frame::{
    MAX_MAX_FRAME_SIZE, MIN_MAX_FRAME_SIZE, put_go_away, put_headers, put_rst_stream, put_settings,
    put_window_update,
};
use super::frame_reader::FrameReader;
use super::heads::HeadMemo;
use super::hpack::Decoder;
use super::settings::{PeerSettings, setting};
use super::streams::StreamTable;
use super::window::{INITIAL_WINDOW, MAX_WINDOW, ReceiveWindow};
use super::{FieldLimits, Indexing, Payload};

use head::{HeadReader, RequestHead};
use stream::{State, Stream};

/// Settings that a [`Server`] announces to its client, and its own limits for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Bytes of the dynamic table that requests may use (SETTINGS_HEADER_TABLE_SIZE).
    pub header_table_size: u32,
    /// Streams that may be open at once; more are refused (SETTINGS_MAX_CONCURRENT_STREAMS).
    pub max_streams: u32,
    /// Bytes of content that may come on a stream before the server has counted them
    /// (SETTINGS_INITIAL_WINDOW_SIZE, at most 2^31 - 1; zero is taken as one).
    pub stream_window: u32,
    /// Bytes of content that may come on all streams together before the server has counted them, from 65,535
    /// to 2^31 - 1; the nearest if it is outside.
    pub connection_window: u32,
    /// Bytes of the payload of a frame from the client (SETTINGS_MAX_FRAME_SIZE, from 2^14 to 2^24 - 1; the
    /// nearest if it is outside).
    pub max_frame_size: u32,
    /// Limits of a request head; the bytes are announced to the client (SETTINGS_MAX_HEADER_LIST_SIZE).
    pub limits: FieldLimits,
    /// Keep the content of requests, up to [`LONGEST_KEPT_CONTENT`] bytes of each, instead of only counting
    /// it.
    pub keeps_content: bool,
    /// Hand over requests whose content is still coming, too: see [`Request::whole`]. Only with
    /// `keeps_content`.
    pub tells_parts: bool,
    /// Take extended CONNECT requests (SETTINGS_ENABLE_CONNECT_PROTOCOL, RFC 8441), which are handed over
    /// as soon as their heads have come. Only with `tells_parts`.
    pub extended_connect: bool,
    /// Name, in lower case, of the field by which clients say how long they wait: see [`Request::timeout`].
    /// Empty: there is none.
    pub timeout_field: &'static str,
}

/// The memory for the content of a slot's next request that is kept after a large one.
const CONTENT_ROOM: usize = 16 * 1024;

/// Limit of the content that is kept of one request, in bytes: all streams together stay below 4 GiB.
pub const LONGEST_KEPT_CONTENT: usize = 4 << 20;

impl Default for ServerOptions {
    /// The table and frame sizes of the RFC; 1,000 streams; windows of 1 MiB for a stream and 1 GiB for a
    /// connection, so that they do not slow a client down; heads of 64 KiB and 256 fields, as in HTTP/1.1.
    fn default() -> Self {
        Self {
            header_table_size: 4096,
            max_streams: 1000,
            stream_window: 1 << 20,
            connection_window: (1 << 30) - 1,
            max_frame_size: MIN_MAX_FRAME_SIZE,
            limits: FieldLimits { list_bytes: 64 * 1024, fields: 256 },
            keeps_content: false,
            tells_parts: false,
            extended_connect: false,
            timeout_field: "",
        }
    }
}

impl ServerOptions {
    fn within_bounds(mut self) -> Self {
        self.stream_window = self.stream_window.clamp(1, MAX_WINDOW);
        self.connection_window = self.connection_window.clamp(INITIAL_WINDOW, MAX_WINDOW);
        self.max_frame_size = self.max_frame_size.clamp(MIN_MAX_FRAME_SIZE, MAX_MAX_FRAME_SIZE);
        self
    }
}

/// A part of a request's head: read it with [`Server::text`] before the next [`Server::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// Returns the span that lies `by` bytes further back.
    fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by as u32, len: self.len }
    }
}

/// One request, whole unless the [options](ServerOptions::tells_parts) say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The stream to answer on.
    pub stream: u32,
    /// The method, as sent: methods are case-sensitive.
    pub method: Span,
    /// Path and query, as sent.
    pub path: Span,
    /// Value of the first field `x-plimsoll-id`.
    pub id: Option<Span>,
    /// Value of the first field `x-plimsoll-status`.
    pub status: Option<Span>,
    /// Value of the first field with the name of the [options](ServerOptions::timeout_field).
    pub timeout: Option<Span>,
    /// The value of `:protocol`, of an extended CONNECT request.
    pub protocol: Option<Span>,
    /// Value of the first field `sec-websocket-protocol`.
    pub subprotocols: Option<Span>,
    /// Value of the first field `accept`.
    pub accept: Option<Span>,
    /// `false` if more of its content, or its end, is still to come: then the request is handed over again.
    /// The request may be answered before its end.
    pub whole: bool,
    /// `true` for a HEAD request, which is answered without content.
    pub head_request: bool,
    /// Bytes of the content, without padding.
    pub body_bytes: u64,
    /// The content, as far as it was [kept](ServerOptions::keeps_content) and not
    /// [consumed](Server::consume).
    pub content: Span,
}

/// One connection, seen from the server: requests out, replies in, in any order.
///
/// Call [`start`](Self::start) once, first. Then pass received bytes to [`receive`](Self::receive), and
/// answer each request once: by [`reply`](Self::reply), by [`reply_head`](Self::reply_head),
/// [`data`](Self::data) and perhaps [`trailers`](Self::trailers), or by [`reset`](Self::reset). Each call
/// appends output for the client to an `out` of the caller, which must be sent in that order. After an error
/// the connection is over: send `out` (a GOAWAY is in it) and close.
///
/// Content of requests is counted, and dropped unless the [options](ServerOptions) say otherwise. Content of
/// replies that the client's windows hold back is kept and follows in `receive`, the streams taking turns: at
/// most one reply for each of the streams that may be open, and shared content is not copied. A request and
/// its reply allocate nothing once a connection has had as many streams at once before, unless content has to
/// wait.
///
/// The caller has to bound the size of `out`: a client that sends and does not read should not be
/// received from.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    streams: StreamTable,
    /// By slot of `streams`.
    slots: Vec<Stream>,
    /// By slot, as far as requests had content: the heads of those that are not whole yet.
    heads: Vec<RequestHead>,
    /// By slot, where content is kept: the received parts of those that are not whole yet.
    contents: Vec<Vec<u8>>,
    /// Bytes of all of them.
    content_bytes: usize,
    outflow: Outflow,

    indexing: Indexing,
    peer: PeerSettings,

    /// Bytes of the preface that came.
    prefaced: u8,
    /// Set once the client's first SETTINGS came.
    settled: bool,
    /// `true` until our settings are acknowledged.
    awaits_ack: bool,
    frame_reader: FrameReader,
    receive_window: ReceiveWindow,
    block: BlockAssembly,
    decoder: Decoder,
    memo: HeadMemo<RequestHead>,
    reader: HeadReader,
    /// The text that the spans of the last requests refer to.
    text: Vec<u8>,

    /// The highest stream that the client opened.
    highest: u32,
    /// The highest stream that was reset, refused or ignored from this side: late frames of streams up to it
    /// are not faults. A client cannot know of a reset before it comes.
    reset: u32,
    /// The last stream that our GOAWAY named, if there was one.
    last: Option<u32>,
    cancelled: u64,
    /// Calls of `receive`, modulo 2^32.
    calls: u32,
    budget: Budget,
    error: Option<ConnectionError>,
}

impl Server {
    /// A server on a fresh connection.
    pub fn new(options: &ServerOptions) -> Self {
        let options = options.within_bounds();
        let mut frame_reader = FrameReader::default();
        if options.keeps_content {
            frame_reader.tell_content();
        }
        Self {
            options,
            streams: StreamTable::new(),
            slots: Vec::new(),
            heads: Vec::new(),
            contents: Vec::new(),
            content_bytes: 0,
            outflow: Outflow::new(),
            indexing: Indexing::default(),
            peer: PeerSettings::default(),
            prefaced: 0,
            settled: false,
            awaits_ack: true,
            frame_reader,
            receive_window: ReceiveWindow::new(options.connection_window),
            block: BlockAssembly::new(options.limits.list_bytes),
            decoder: Decoder::new(options.header_table_size),
            memo: HeadMemo::default(),
            reader: HeadReader::new(options.extended_connect, options.timeout_field),
            text: Vec::new(),
            highest: 0,
            reset: 0,
            last: None,
            cancelled: 0,
            calls: 0,
            budget: Budget::new(),
            error: None,
        }
    }

    /// Appends the first bytes of a server: SETTINGS, and the connection's window. The client's preface need
    /// not have come.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        let options = &self.options;
        let settings = [
            (setting::HEADER_TABLE_SIZE, options.header_table_size),
            (setting::MAX_CONCURRENT_STREAMS, options.max_streams),
            (setting::INITIAL_WINDOW_SIZE, options.stream_window),
            (setting::MAX_FRAME_SIZE, options.max_frame_size),
            (setting::MAX_HEADER_LIST_SIZE, options.limits.list_bytes),
        ];
        let connect = [(setting::ENABLE_CONNECT_PROTOCOL, 1)];
        put_settings(out, &[&settings[..], if options.extended_connect { &connect } else { &[] }].concat());
        if options.connection_window > INITIAL_WINDOW {
            put_window_update(out, 0, options.connection_window - INITIAL_WINDOW);
        }
    }

    /// A part of a request of the last [`receive`](Self::receive); empty if it is older than that.
    #[inline]
    pub fn text(&self, span: Span) -> &[u8] {
        self.text.get(span.start as usize..).and_then(|text| text.get(..span.len as usize)).unwrap_or(&[])
    }

    /// Returns `true` if the stream is open: `false` once its reply has gone out whole, or either side has
    /// reset it.
    #[inline]
    pub fn is_open(&self, stream: u32) -> bool {
        self.streams.find(stream).is_some()
    }

    /// Returns `true` if the head of a reply was given on the stream, and its end was not.
    pub fn is_replying(&self, stream: u32) -> bool {
        self.streams.find(stream).is_some_and(|slot| self.slots[slot as usize].state == State::Replying)
    }

    /// Streams that are open.
    #[inline]
    pub fn active(&self) -> u32 {
        self.streams.len()
    }

    /// Streams that the client has reset before their reply had gone out whole.
    pub fn cancelled(&self) -> u64 {
        self.cancelled
    }

    /// Bytes of the reply's content that wait for the client's windows.
    pub fn waiting(&self, stream: u32) -> usize {
        self.streams
            .find(stream)
            .map_or(0, |slot| self.outflow.waiting(slot, &self.slots[slot as usize].flow))
    }

    /// Bytes that are kept of requests that are not whole yet, and of replies that wait for the client's
    /// windows, on all streams together.
    pub const fn held_bytes(&self) -> usize {
        self.content_bytes + self.outflow.total_waiting()
    }

    /// Answers a request. `head` appends the header block of the reply, which must hold a final `:status`;
    /// the content is left out if the request was a HEAD request. `false`, and nothing is written, if the
    /// stream is gone or is being answered.
    #[inline]
    pub fn reply(
        &mut self,
        stream: u32,
        head: impl FnOnce(&mut Indexing, &mut Vec<u8>),
        body: Payload<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(slot) = self.find_waiting(stream) else { return false };
        let entry = &mut self.slots[slot as usize];
        let no_body = body.is_empty() || entry.head_request;
        let indexing = &mut self.indexing;
        put_headers(out, stream, no_body, self.peer.max_frame_size, |out| head(indexing, out));
        entry.state = State::Replying;
        if no_body || self.outflow.send(slot, &mut entry.flow, body, true, &self.peer, out) {
            self.replied(slot, out);
        }
        true
    }

    /// Begins to answer a request; the content follows by [`data`](Self::data). Like [`reply`](Self::reply)
    /// otherwise.
    pub fn reply_head(
        &mut self,
        stream: u32,
        head: impl FnOnce(&mut Indexing, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(slot) = self.find_waiting(stream) else { return false };
        let indexing = &mut self.indexing;
        put_headers(out, stream, false, self.peer.max_frame_size, |out| head(indexing, out));
        self.slots[slot as usize].state = State::Replying;
        true
    }

    /// Continues an answer, with `end` for the last time. For a HEAD request the content is left out.
    /// `false`, and nothing is written, if the stream is gone, has no reply head yet, or was ended before.
    ///
    /// Content that the client's windows hold back is kept, see [`waiting`](Self::waiting).
    pub fn data(&mut self, stream: u32, body: Payload<'_>, end: bool, out: &mut Vec<u8>) -> bool {
        let Some(slot) = self.streams.find(stream) else { return false };
        let entry = &mut self.slots[slot as usize];
        if entry.state != State::Replying || entry.flow.has_end() || !entry.trailers.is_empty() {
            return false;
        }
        let body = if entry.head_request { Payload::None } else { body };
        if self.outflow.send(slot, &mut entry.flow, body, end, &self.peer, out) {
            self.replied(slot, out);
        }
        true
    }

    /// Ends an answer with trailers, which follow its content, that which waits for the client's windows
    /// included. `block` is their header block, at least one field, which must leave the dynamic table alone,
    /// as [`put_literal`](super::hpack::put_literal) does. `false`, and nothing is written, if the stream is
    /// gone, has no reply head yet, or was ended before.
    pub fn trailers(&mut self, stream: u32, block: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(slot) = self.streams.find(stream) else { return false };
        let entry = &mut self.slots[slot as usize];
        if entry.state != State::Replying || entry.flow.has_end() || !entry.trailers.is_empty() {
            return false;
        }
        if self.outflow.waiting(slot, &entry.flow) > 0 {
            entry.trailers.extend_from_slice(block);
            return true;
        }
        put_headers(out, stream, true, self.peer.max_frame_size, |out| out.extend_from_slice(block));
        self.replied(slot, out);
        true
    }

    /// Forgets the first bytes of the content of a request that is not whole: later parts begin behind them.
    pub fn consume(&mut self, stream: u32, bytes: usize) {
        if let Some(content) = self.streams.find(stream).and_then(|slot| self.contents.get_mut(slot as usize))
        {
            let bytes = bytes.min(content.len());
            content.drain(..bytes);
            self.content_bytes -= bytes;
        }
    }

    /// Resets a stream instead of answering it, or in the middle of the answer. Nothing happens if it is
    /// gone.
    pub fn reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
        if let Some(slot) = self.streams.find(stream) {
            put_rst_stream(out, stream, code);
            self.reset = self.reset.max(stream);
            self.release(slot);
        }
    }

    /// Sends GOAWAY with this code. Open streams go on; those that the client opens later are
    /// ignored, and it knows which these are: all above the last stream that had come by now.
    pub fn go_away(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        let last = *self.last.get_or_insert(self.highest);
        put_go_away(out, last, code);
    }

    #[inline]
    fn find_waiting(&self, stream: u32) -> Option<u32> {
        self.streams.find(stream).filter(|&slot| {
            let entry = &self.slots[slot as usize];
            entry.state == State::Waiting || (self.options.tells_parts && entry.state == State::Requesting)
        })
    }

    /// The last byte of a reply went out.
    #[inline]
    fn replied(&mut self, slot: u32, out: &mut Vec<u8>) {
        self.budget.renew();
        let entry = &self.slots[slot as usize];
        if entry.receiving {
            // The rest of the request is not needed (RFC 9113 section 8.1).
            let stream = entry.flow.stream;
            put_rst_stream(out, stream, ErrorCode::NoError);
            self.reset = self.reset.max(stream);
        }
        self.release(slot);
    }

    /// Forgets a stream.
    #[inline]
    fn release(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.trailers.clear();
        let flow = &mut entry.flow;
        self.streams.remove(flow.stream);
        self.outflow.close(slot, flow);
        self.forget_content(slot);
    }

    /// Gives back the memory of a slot's content, but for the little that the next one is likely to need.
    #[inline]
    fn forget_content(&mut self, slot: u32) {
        if let Some(content) = self.contents.get_mut(slot as usize) {
            self.content_bytes -= content.len();
            content.clear();
            content.shrink_to(CONTENT_ROOM);
        }
    }
}
