//! A simulated server's side of one HTTP/2 connection (RFC 9113): frames in, requests out, replies in, frames
//! out.
//!
//! Like [`mod@crate::request`] not the code of the product. It reads enough to know that a request is whole,
//! keeps every window exactly, and holds a client to the rules whose breach a test should see.

pub(crate) mod frame;

use std::collections::{BTreeMap, VecDeque};

use crate::behaviour;
use crate::hpack::{self, BlockReader, Field};

use frame::{
    Breach, COMPRESSION_ERROR, CONTINUATION, DATA, END, END_HEADERS, FLOW_CONTROL_ERROR, FRAME_BYTES,
    FRAME_SIZE_ERROR, Frame, GOAWAY, HEADERS, PADDED, PING, PRIORITY, PROTOCOL_ERROR, PUSH_PROMISE,
    RST_STREAM, SETTINGS, STREAM_CLOSED, WINDOW, WINDOW_MAX, WINDOW_UPDATE, put_frame, put_head, trimmed,
    word,
};

pub(crate) use frame::{INTERNAL_ERROR, NO_ERROR, REFUSED_STREAM};

/// Connection preface of a client (RFC 9113 section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// An event from the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A whole request.
    Request {
        stream: u32,
        head_request: bool,
        /// The request as it would read in HTTP/1.1: `GET /path HTTP/2`, `host`, the other fields, the body.
        text: Vec<u8>,
    },
    /// A stream beyond the limit; it was refused.
    Refused,
    /// The client broke the rules: the connection has to end with this code.
    Breach(u32),
}

/// A reply to be sent on a stream.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// `100 Continue` heads before it.
    pub(crate) interim: u32,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The largest DATA frame.
    pub(crate) frame_bytes: usize,
}

#[derive(Debug)]
struct Stream {
    /// Flow-control window for DATA to the client, in bytes.
    window: i64,
    /// Flow-control window for DATA from the client, in bytes.
    room: i64,
    /// The request, until it is whole.
    request: Option<Request>,
    /// Rest of the reply, once it has begun.
    rest: Option<Rest>,
}

#[derive(Debug)]
struct Request {
    fields: Vec<Field>,
    body: Vec<u8>,
}

#[derive(Debug)]
struct Rest {
    body: VecDeque<u8>,
    frame_bytes: usize,
    entry: usize,
}

/// A header block that is still incomplete.
#[derive(Debug)]
struct Block {
    stream: u32,
    end_stream: bool,
    bytes: Vec<u8>,
}

/// One connection. Feed it with [`hear`](Self::hear); take its output from [`take_out`](Self::take_out) after
/// every call.
#[derive(Debug)]
pub(crate) struct Http2 {
    inbox: Vec<u8>,
    out: Vec<u8>,
    reader: BlockReader,
    /// Open streams, in order.
    streams: BTreeMap<u32, Stream>,
    block: Option<Block>,
    max_streams: u32,
    /// Limits that were announced and are not yet acknowledged.
    announced: VecDeque<u32>,
    /// When the limit changes.
    behaviour: behaviour::Http2,
    replies: u64,
    pings: u64,
    /// The highest stream that the client opened.
    highest: u32,
    /// Set when the client's first SETTINGS has come.
    settled: bool,
    initial_window: i64,
    frame_bytes: usize,
    window: i64,
    room: i64,
    /// Entries whose last frame went out, for the truth log.
    sent: Vec<usize>,
    over: bool,
}

impl Http2 {
    /// A connection whose preface was read. Streams beyond the limit in the server's SETTINGS are refused.
    pub(crate) fn new(behaviour: behaviour::Http2) -> Self {
        let mut out = Vec::new();
        let max_streams = match behaviour.bars_after {
            Some(0) => Some(0),
            _ => behaviour.max_streams,
        };
        let limit = max_streams.map(|limit| [&[0, 3][..], &limit.to_be_bytes()].concat()).unwrap_or_default();
        put_frame(&mut out, SETTINGS, 0, 0, &limit);
        Self {
            inbox: Vec::new(),
            out,
            reader: BlockReader::new(),
            streams: BTreeMap::new(),
            block: None,
            max_streams: max_streams.unwrap_or(u32::MAX),
            announced: [max_streams.unwrap_or(u32::MAX)].into(),
            behaviour,
            replies: 0,
            pings: 0,
            highest: 0,
            settled: false,
            initial_window: WINDOW,
            frame_bytes: FRAME_BYTES,
            window: WINDOW,
            room: WINDOW,
            sent: Vec::new(),
            over: false,
        }
    }

    /// Frames that are to be sent.
    pub(crate) fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Entries of replies whose last byte is in the output of [`take_out`](Self::take_out).
    pub(crate) fn take_sent(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.sent)
    }

    /// Returns `true` if a stream up to `last` is neither answered nor reset.
    pub(crate) fn has_open_until(&self, last: u32) -> bool {
        self.streams.range(..=last).next().is_some()
    }

    /// Returns `true` if the stream is neither answered nor reset.
    pub(crate) fn is_open(&self, stream: u32) -> bool {
        self.streams.contains_key(&stream)
    }

    /// Sends bytes that are not a frame, and nothing more.
    pub(crate) fn break_off(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.over = true;
    }

    /// Takes in `bytes`. Nothing after a [`Heard::Breach`].
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> Vec<Heard> {
        let mut heard = Vec::new();
        self.inbox.extend_from_slice(bytes);
        while !self.over {
            match self.next_frame() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    if let Err(Breach(code)) = self.on_frame(&frame, &mut heard) {
                        heard.push(Heard::Breach(code));
                        self.over = true;
                    }
                }
                Err(Breach(code)) => {
                    heard.push(Heard::Breach(code));
                    self.over = true;
                }
            }
        }
        self.pump();
        heard
    }

    // ---- saying ------------------------------------------------------------------------------------------

    /// Begins to answer; bytes that the windows hold back follow later. `entry` is the request's number in
    /// the truth log. `false` if the stream is gone.
    pub(crate) fn reply(&mut self, stream: u32, reply: Reply, entry: usize) -> bool {
        if !self.streams.contains_key(&stream) {
            return false;
        }
        for _ in 0..reply.interim {
            put_head(&mut self.out, stream, END_HEADERS, 100, &[]);
        }
        let end = if reply.body.is_empty() { END } else { 0 };
        put_head(&mut self.out, stream, END_HEADERS | end, reply.status, &reply.fields);
        self.replies += 1;
        if self.behaviour.bars_after == Some(self.replies) {
            self.announce(0);
        }
        let Some(open) = self.streams.get_mut(&stream) else { return false };
        if reply.body.is_empty() {
            self.sent.push(entry);
            self.streams.remove(&stream);
            return true;
        }
        let body = reply.body.into();
        open.rest = Some(Rest { body, frame_bytes: reply.frame_bytes.max(1), entry });
        self.pump();
        true
    }

    /// Allows this many streams: those that are opened before the client has acknowledged it are not refused.
    fn announce(&mut self, limit: u32) {
        put_frame(&mut self.out, SETTINGS, 0, 0, &[&[0, 3][..], &limit.to_be_bytes()].concat());
        self.announced.push_back(limit);
    }

    /// Resets a stream. `false` if it is gone.
    pub(crate) fn reset(&mut self, stream: u32, code: u32) -> bool {
        let open = self.streams.remove(&stream).is_some();
        if open {
            put_frame(&mut self.out, RST_STREAM, 0, stream, &code.to_be_bytes());
        }
        open
    }

    /// Sends GOAWAY: streams above `last` are not processed.
    pub(crate) fn go_away(&mut self, last: u32, code: u32) {
        put_frame(&mut self.out, GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat());
    }

    /// Begins a head that never ends: [`more_head`](Self::more_head) continues it, and nothing else is sent.
    pub(crate) fn begin_endless_head(&mut self, stream: u32) {
        put_head(&mut self.out, stream, 0, 200, &[]);
        self.over = true;
    }

    /// One more piece, with a field of `bytes` bytes, of a head that never ends.
    pub(crate) fn more_head(stream: u32, bytes: usize) -> Vec<u8> {
        let mut fields = Vec::new();
        hpack::write(&mut fields, "x-endless", &"a".repeat(bytes));
        let mut out = Vec::new();
        put_frame(&mut out, CONTINUATION, 0, stream, &fields);
        out
    }

    /// Sends as much as the windows allow: one frame of each stream in turn.
    fn pump(&mut self) {
        let mut moved = !self.over;
        while moved {
            moved = false;
            let ids: Vec<u32> = self.streams.keys().copied().collect();
            for id in ids {
                moved |= self.pump_stream(id);
            }
        }
    }

    fn pump_stream(&mut self, id: u32) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let Some(rest) = &mut stream.rest else { return false };
        let allowed = self.window.min(stream.window).max(0) as usize;
        let take = rest.body.len().min(rest.frame_bytes).min(self.frame_bytes).min(allowed);
        if take == 0 {
            return false;
        }
        let bytes: Vec<u8> = rest.body.drain(..take).collect();
        self.window -= take as i64;
        stream.window -= take as i64;
        let end = rest.body.is_empty();
        put_frame(&mut self.out, DATA, u8::from(end), id, &bytes);
        if end {
            self.sent.push(rest.entry);
            self.streams.remove(&id);
        }
        true
    }

    // ---- hearing -----------------------------------------------------------------------------------------

    fn next_frame(&mut self) -> Result<Option<Frame>, Breach> {
        let Some((&[a, b, c, kind, flags, s0, s1, s2, s3], rest)) = self.inbox.split_first_chunk::<9>()
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > FRAME_BYTES {
            return Err(Breach(FRAME_SIZE_ERROR));
        }
        let Some(payload) = rest.get(..length).map(<[u8]>::to_vec) else { return Ok(None) };
        self.inbox.drain(..9 + length);
        Ok(Some(Frame { kind, flags, stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]), payload }))
    }

    fn on_frame(&mut self, frame: &Frame, heard: &mut Vec<Heard>) -> Result<(), Breach> {
        let (kind, flags, stream, payload) = (frame.kind, frame.flags, frame.stream, &frame.payload[..]);
        if !std::mem::replace(&mut self.settled, true) && (kind != SETTINGS || flags & END != 0) {
            return Err(Breach(PROTOCOL_ERROR));
        }
        if let Some(block) = &self.block
            && (kind != CONTINUATION || stream != block.stream)
        {
            return Err(Breach(PROTOCOL_ERROR));
        }
        let of_stream = matches!(kind, DATA | HEADERS | PRIORITY | RST_STREAM | CONTINUATION);
        let of_connection = matches!(kind, SETTINGS | PING | GOAWAY);
        if (of_stream && stream == 0) || (of_connection && stream != 0) {
            return Err(Breach(PROTOCOL_ERROR));
        }
        match kind {
            DATA => self.on_data(flags, stream, payload, heard),
            HEADERS => {
                let bytes = trimmed(flags, payload)?.to_vec();
                self.block = Some(Block { stream, end_stream: flags & END != 0, bytes });
                self.on_block(flags, heard)
            }
            CONTINUATION => {
                self.block.as_mut().ok_or(Breach(PROTOCOL_ERROR))?.bytes.extend_from_slice(payload);
                self.on_block(flags, heard)
            }
            PRIORITY if payload.len() != 5 => Err(Breach(FRAME_SIZE_ERROR)),
            RST_STREAM => {
                word(payload)?;
                if stream > self.highest {
                    return Err(Breach(PROTOCOL_ERROR));
                }
                self.streams.remove(&stream);
                Ok(())
            }
            SETTINGS => self.on_settings(flags, payload),
            PUSH_PROMISE => Err(Breach(PROTOCOL_ERROR)),
            PING if payload.len() != 8 => Err(Breach(FRAME_SIZE_ERROR)),
            PING if flags & END == 0 => {
                put_frame(&mut self.out, PING, END, 0, payload);
                self.pings += 1;
                if self.behaviour.lets_in_at_ping == Some(self.pings) {
                    self.announce(u32::MAX);
                }
                Ok(())
            }
            GOAWAY if payload.len() < 8 => Err(Breach(FRAME_SIZE_ERROR)),
            WINDOW_UPDATE => self.on_window_update(stream, payload),
            _ => Ok(()),
        }
    }

    fn on_data(
        &mut self,
        flags: u8,
        stream: u32,
        payload: &[u8],
        heard: &mut Vec<Heard>,
    ) -> Result<(), Breach> {
        let content = trimmed(flags & PADDED, payload)?;
        let length = payload.len() as i64;
        self.room -= length;
        if self.room < 0 {
            return Err(Breach(FLOW_CONTROL_ERROR));
        }
        if stream > self.highest {
            return Err(Breach(PROTOCOL_ERROR));
        }
        // Received data are not kept, so the window opens again at once.
        self.room += length;
        if length > 0 {
            put_frame(&mut self.out, WINDOW_UPDATE, 0, 0, &(length as u32).to_be_bytes());
        }
        // Late frames of a stream that was reset are not faults.
        let Some(open) = self.streams.get_mut(&stream) else { return Ok(()) };
        let Some(request) = &mut open.request else { return Err(Breach(STREAM_CLOSED)) };
        if length > open.room {
            return Err(Breach(FLOW_CONTROL_ERROR));
        }
        request.body.extend_from_slice(content);
        if flags & END != 0 {
            return self.on_request(stream, heard);
        }
        if length > 0 {
            put_frame(&mut self.out, WINDOW_UPDATE, 0, stream, &(length as u32).to_be_bytes());
        }
        Ok(())
    }

    fn on_block(&mut self, flags: u8, heard: &mut Vec<Heard>) -> Result<(), Breach> {
        if flags & END_HEADERS == 0 {
            return Ok(());
        }
        let Some(Block { stream, end_stream, bytes }) = self.block.take() else { return Ok(()) };
        let fields = self.reader.read(&bytes).map_err(|_| Breach(COMPRESSION_ERROR))?;
        if stream > self.highest {
            if stream.is_multiple_of(2) {
                return Err(Breach(PROTOCOL_ERROR));
            }
            self.highest = stream;
            let (window, request) = (self.initial_window, Some(Request { fields, body: Vec::new() }));
            if self.streams.len() >= self.max_streams as usize {
                heard.push(Heard::Refused);
                put_frame(&mut self.out, RST_STREAM, 0, stream, &REFUSED_STREAM.to_be_bytes());
                return Ok(());
            }
            self.streams.insert(stream, Stream { window, room: WINDOW, request, rest: None });
        } else if let Some(open) = self.streams.get(&stream)
            && (open.request.is_none() || !end_stream)
        {
            return Err(Breach(if end_stream { STREAM_CLOSED } else { PROTOCOL_ERROR }));
        }
        if end_stream { self.on_request(stream, heard) } else { Ok(()) }
    }

    /// A request is whole. One that is not even a request is a breach, though the RFC would spare the
    /// connection: the product's client must not send it.
    fn on_request(&mut self, stream: u32, heard: &mut Vec<Heard>) -> Result<(), Breach> {
        let Some(open) = self.streams.get_mut(&stream) else { return Ok(()) };
        let Some(request) = open.request.take() else { return Ok(()) };
        let (head_request, text) = request.text().ok_or(Breach(PROTOCOL_ERROR))?;
        heard.push(Heard::Request { stream, head_request, text });
        Ok(())
    }

    fn on_settings(&mut self, flags: u8, payload: &[u8]) -> Result<(), Breach> {
        if flags & END != 0 {
            self.max_streams = self.announced.pop_front().unwrap_or(self.max_streams);
            return if payload.is_empty() { Ok(()) } else { Err(Breach(FRAME_SIZE_ERROR)) };
        }
        let (settings, []) = payload.as_chunks::<6>() else { return Err(Breach(FRAME_SIZE_ERROR)) };
        for &[_, id, a, b, c, d] in settings {
            let value = i64::from(u32::from_be_bytes([a, b, c, d]));
            match id {
                2 if value > 1 => return Err(Breach(PROTOCOL_ERROR)),
                4 if value > WINDOW_MAX => return Err(Breach(FLOW_CONTROL_ERROR)),
                4 => {
                    let more = value - std::mem::replace(&mut self.initial_window, value);
                    self.streams.values_mut().for_each(|stream| stream.window += more);
                }
                5 if !(16_384..1 << 24).contains(&value) => return Err(Breach(PROTOCOL_ERROR)),
                5 => self.frame_bytes = value as usize,
                _ => {}
            }
        }
        put_frame(&mut self.out, SETTINGS, END, 0, &[]);
        Ok(())
    }

    fn on_window_update(&mut self, stream: u32, payload: &[u8]) -> Result<(), Breach> {
        let more = i64::from(word(payload)? & 0x7fff_ffff);
        if more == 0 || stream > self.highest {
            return Err(Breach(PROTOCOL_ERROR));
        }
        let window = match stream {
            0 => &mut self.window,
            _ => match self.streams.get_mut(&stream) {
                Some(open) => &mut open.window,
                None => return Ok(()),
            },
        };
        *window += more;
        if *window > WINDOW_MAX { Err(Breach(FLOW_CONTROL_ERROR)) } else { Ok(()) }
    }
}

impl Request {
    /// Returns whether this is a HEAD request, and its text as it would read in HTTP/1.1. Returns `None` if
    /// pseudo-fields are missing, late or double, or if the body is not as long as announced (RFC 9113
    /// sections 8.1.1 and 8.3.1).
    fn text(&self) -> Option<(bool, Vec<u8>)> {
        let mut names = self.fields.iter().map(|(name, _)| name.starts_with(b":"));
        if !names.by_ref().skip_while(|pseudo| *pseudo).all(|pseudo| !pseudo) {
            return None;
        }
        let one = |name: &str| {
            let mut all = self.fields.iter().filter(|field| field.0 == name.as_bytes());
            let first = all.next()?;
            all.next().is_none().then_some(&first.1[..])
        };
        let (method, path, _) = (one(":method")?, one(":path")?, one(":scheme")?);
        let mut text = [method, b" ", path, b" HTTP/2\r\n"].concat();
        if let Some(authority) = one(":authority") {
            text.extend_from_slice(&[b"host: ", authority, b"\r\n"].concat());
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
            text.extend_from_slice(&[name, &b": "[..], value, b"\r\n"].concat());
        }
        let announced = one("content-length").map(|value| value == self.body.len().to_string().as_bytes());
        if announced == Some(false) {
            return None;
        }
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(&self.body);
        Some((method == b"HEAD", text))
    }
}
