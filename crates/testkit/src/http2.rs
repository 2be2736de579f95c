//! A simulated server's side of one HTTP/2 connection (RFC 9113): frames in, requests out, replies in, frames
//! out.
//!
//! Like [`mod@crate::request`] not the code of the product. It reads what is needed to know that a request is
//! whole, keeps every window exactly, and holds a client to the rules whose breach a test should see.

use std::collections::{BTreeMap, VecDeque};

use crate::hpack::{self, BlockReader, Field};

/// What a client says first (RFC 9113 section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Every window and frame size until SETTINGS say otherwise (RFC 9113 section 6.5.2 and 6.9.2).
const WINDOW: i64 = 65_535;
const FRAME_BYTES: usize = 16_384;
const WINDOW_MAX: i64 = (1 << 31) - 1;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// END_STREAM, or ACK.
const END: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITISED: u8 = 0x20;

/// Error codes (RFC 9113 section 7).
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const INTERNAL_ERROR: u32 = 2;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
pub(crate) const REFUSED_STREAM: u32 = 7;
const COMPRESSION_ERROR: u32 = 9;

/// What was heard from the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A whole request.
    Request {
        stream: u32,
        head_request: bool,
        /// The request as it would read in HTTP/1.1: `GET /path HTTP/2`, `host`, the other fields, the body.
        text: Vec<u8>,
    },
    /// The client broke the rules: the connection has to end with this code.
    Breach(u32),
}

/// A message to be sent on a stream.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) status: u16,
    /// `100 Continue` heads before it.
    pub(crate) interim: u32,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The largest DATA frame.
    pub(crate) frame_bytes: usize,
    /// Number in the truth log.
    pub(crate) entry: usize,
}

#[derive(Debug)]
struct Stream {
    /// What the client may still be sent.
    window: i64,
    /// What the client may still send.
    room: i64,
    /// The request, until it is whole.
    request: Option<Request>,
    /// What is left of the reply, once it has begun.
    reply: Option<Rest>,
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

/// One connection. Feed it with [`hear`](Self::hear); take what it has to say from
/// [`take_out`](Self::take_out) after every call.
#[derive(Debug)]
pub(crate) struct Http2 {
    inbox: Vec<u8>,
    out: Vec<u8>,
    reader: BlockReader,
    /// Open streams, in order.
    streams: BTreeMap<u32, Stream>,
    block: Option<Block>,
    max_streams: u32,
    /// The highest stream that the client opened.
    highest: u32,
    /// Whether the client's first SETTINGS came.
    settled: bool,
    initial_window: i64,
    frame_bytes: usize,
    window: i64,
    room: i64,
    /// Entries whose last frame went out, for the truth log.
    sent: Vec<usize>,
    /// Streams that were refused.
    refused: u64,
    over: bool,
}

/// The client broke a rule that ends the connection.
struct Breach(u32);

impl Http2 {
    /// A connection whose preface was read. `max_streams` is what the server's SETTINGS say; beyond it streams
    /// are refused.
    pub(crate) fn new(max_streams: Option<u32>) -> Self {
        let mut out = Vec::new();
        let limit = max_streams.map(|limit| [&[0, 3][..], &limit.to_be_bytes()].concat()).unwrap_or_default();
        frame(&mut out, SETTINGS, 0, 0, &limit);
        Self {
            inbox: Vec::new(),
            out,
            reader: BlockReader::new(),
            streams: BTreeMap::new(),
            block: None,
            max_streams: max_streams.unwrap_or(u32::MAX),
            highest: 0,
            settled: false,
            initial_window: WINDOW,
            frame_bytes: FRAME_BYTES,
            window: WINDOW,
            room: WINDOW,
            sent: Vec::new(),
            refused: 0,
            over: false,
        }
    }

    /// Frames that are to be sent.
    pub(crate) fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Entries of replies whose last byte is in what [`take_out`](Self::take_out) gives.
    pub(crate) fn take_sent(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.sent)
    }

    /// Streams that are neither answered nor reset.
    pub(crate) fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// The highest stream that the client opened.
    pub(crate) fn highest(&self) -> u32 {
        self.highest
    }

    /// Whether the stream is neither answered nor reset.
    pub(crate) fn is_open(&self, stream: u32) -> bool {
        self.streams.contains_key(&stream)
    }

    /// Says nothing more, and listens no more.
    pub(crate) fn end(&mut self) {
        self.over = true;
        self.streams.clear();
    }

    /// Takes in `bytes`. Nothing after a [`Heard::Breach`].
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> Vec<Heard> {
        let mut heard = Vec::new();
        self.inbox.extend_from_slice(bytes);
        while !self.over {
            match self.next_frame() {
                Ok(None) => break,
                Ok(Some((kind, flags, stream, payload))) => {
                    if let Err(Breach(code)) = self.on_frame(kind, flags, stream, &payload, &mut heard) {
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

    /// Begins to answer; what the windows hold back follows later. `false` if the stream is gone.
    pub(crate) fn reply(&mut self, stream: u32, message: Message) -> bool {
        let Some(open) = self.streams.get_mut(&stream) else { return false };
        for _ in 0..message.interim {
            head(&mut self.out, stream, END_HEADERS, 100, &[]);
        }
        let end = if message.body.is_empty() { END } else { 0 };
        head(&mut self.out, stream, END_HEADERS | end, message.status, &message.fields);
        if message.body.is_empty() {
            self.sent.push(message.entry);
            self.streams.remove(&stream);
            return true;
        }
        let (body, entry) = (message.body.into(), message.entry);
        open.reply = Some(Rest { body, frame_bytes: message.frame_bytes.max(1), entry });
        self.pump();
        true
    }

    /// Resets a stream. `false` if it is gone.
    pub(crate) fn reset(&mut self, stream: u32, code: u32) -> bool {
        let open = self.streams.remove(&stream).is_some();
        if open {
            frame(&mut self.out, RST_STREAM, 0, stream, &code.to_be_bytes());
        }
        open
    }

    /// Says that streams above `last` are not processed.
    pub(crate) fn go_away(&mut self, last: u32, code: u32) {
        frame(&mut self.out, GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat());
    }

    /// Begins a head that never ends: [`go_on`](Self::go_on) appends to it.
    pub(crate) fn begin_endless_head(&mut self, stream: u32) {
        head(&mut self.out, stream, 0, 200, &[]);
        self.over = true;
    }

    /// One more piece of `bytes` bytes of a head that never ends.
    pub(crate) fn go_on(stream: u32, bytes: usize) -> Vec<u8> {
        let mut fields = Vec::new();
        hpack::write(&mut fields, "x-endless", &"a".repeat(bytes));
        let mut out = Vec::new();
        frame(&mut out, CONTINUATION, 0, stream, &fields);
        out
    }

    /// Sends what the windows allow: one frame of each stream in turn.
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
        let Some(rest) = &mut stream.reply else { return false };
        let allowed = self.window.min(stream.window).max(0) as usize;
        let take = rest.body.len().min(rest.frame_bytes).min(self.frame_bytes).min(allowed);
        if take == 0 {
            return false;
        }
        let bytes: Vec<u8> = rest.body.drain(..take).collect();
        self.window -= take as i64;
        stream.window -= take as i64;
        let end = rest.body.is_empty();
        frame(&mut self.out, DATA, u8::from(end), id, &bytes);
        if end {
            self.sent.push(rest.entry);
            self.streams.remove(&id);
        }
        true
    }

    // ---- hearing -----------------------------------------------------------------------------------------

    fn next_frame(&mut self) -> Result<Option<(u8, u8, u32, Vec<u8>)>, Breach> {
        let Some((&[a, b, c, kind, flags, s0, s1, s2, s3], rest)) = self.inbox.split_first_chunk::<9>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > FRAME_BYTES {
            return Err(Breach(FRAME_SIZE_ERROR));
        }
        let Some(payload) = rest.get(..length).map(<[u8]>::to_vec) else { return Ok(None) };
        self.inbox.drain(..9 + length);
        Ok(Some((kind, flags, u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]), payload)))
    }

    fn on_frame(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
        heard: &mut Vec<Heard>,
    ) -> Result<(), Breach> {
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
                frame(&mut self.out, PING, END, 0, payload);
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
        // What was read is forgotten at once, so the window opens again at once.
        self.room += length;
        if length > 0 {
            frame(&mut self.out, WINDOW_UPDATE, 0, 0, &(length as u32).to_be_bytes());
        }
        // Late frames of a stream that was reset are nobody's fault.
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
            frame(&mut self.out, WINDOW_UPDATE, 0, stream, &(length as u32).to_be_bytes());
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
                self.refused += 1;
                frame(&mut self.out, RST_STREAM, 0, stream, &REFUSED_STREAM.to_be_bytes());
                return Ok(());
            }
            self.streams.insert(stream, Stream { window, room: WINDOW, request, reply: None });
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
        frame(&mut self.out, SETTINGS, END, 0, &[]);
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
    /// Whether this is a HEAD request, and how it would read in HTTP/1.1. `None` if pseudo-fields are missing,
    /// late or double, or the body is not as long as announced (RFC 9113 section 8.1.1 and 8.3.1).
    fn text(&self) -> Option<(bool, Vec<u8>)> {
        let mut names = self.fields.iter().map(|(name, _)| name.starts_with(b":"));
        if !names.by_ref().skip_while(|pseudo| *pseudo).all(|pseudo| !pseudo) {
            return None;
        }
        let all = |name: &str| self.fields.iter().filter(move |field| field.0 == name.as_bytes());
        let one = |name| all(name).next().filter(|_| all(name).count() == 1).map(|field| &field.1[..]);
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

/// The payload without padding and priority.
fn trimmed(flags: u8, mut payload: &[u8]) -> Result<&[u8], Breach> {
    let mut padding = 0;
    if flags & PADDED != 0 {
        let (&length, rest) = payload.split_first().ok_or(Breach(FRAME_SIZE_ERROR))?;
        (padding, payload) = (usize::from(length), rest);
    }
    if flags & PRIORITISED != 0 {
        payload = payload.get(5..).ok_or(Breach(FRAME_SIZE_ERROR))?;
    }
    let length = payload.len().checked_sub(padding).ok_or(Breach(PROTOCOL_ERROR))?;
    Ok(&payload[..length])
}

fn word(payload: &[u8]) -> Result<u32, Breach> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Breach(FRAME_SIZE_ERROR))
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

fn head(out: &mut Vec<u8>, stream: u32, flags: u8, status: u16, fields: &[(String, String)]) {
    let mut block = Vec::new();
    hpack::write(&mut block, ":status", &status.to_string());
    for (name, value) in fields {
        hpack::write(&mut block, &name.to_ascii_lowercase(), value);
    }
    frame(out, HEADERS, flags, stream, &block);
}
