//! A server with a settled connection, and its output.

use plimsoll_wire::http2::{
    ConnectionError, Indexing, PREFACE, Payload, Request, Server, ServerOptions, Span,
};

use crate::http2_server::frames::{END_HEADERS, Frame, HEADERS, block, frame, parse, settings, settings_ack};

pub(crate) const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/a"), (":authority", "sink")];
pub(crate) const POST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":path", "/b"), (":authority", "sink")];

pub(crate) struct Link {
    pub(crate) server: Server,
    pub(crate) requests: Vec<Request>,
}

impl Link {
    /// A connection on which the preface, these settings and the acknowledgement of ours have come.
    pub(crate) fn new(options: &ServerOptions, values: &[(u16, u32)]) -> Self {
        let mut link = Self::fresh(options);
        let opening = [PREFACE, &settings(values), &settings_ack()].concat();
        link.receive(&opening).expect("the opening is all right");
        link
    }

    /// A connection on which nothing has come.
    pub(crate) fn fresh(options: &ServerOptions) -> Self {
        let mut server = Server::new(options);
        server.start(&mut Vec::new());
        Self { server, requests: Vec::new() }
    }

    pub(crate) fn usual() -> Self {
        Self::new(&ServerOptions::default(), &[])
    }

    /// The frames that answer `bytes` at once. Requests are kept in `requests`.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, ConnectionError> {
        let mut out = Vec::new();
        let result = self.server.receive(bytes, &mut out, &mut self.requests);
        let frames = parse(&out);
        if let Err(error) = result {
            let last = frames.last().expect("GOAWAY is in what is sent");
            assert_eq!(last.kind, crate::http2_server::frames::GOAWAY);
            assert_eq!(last.payload[4..], error.code.value().to_be_bytes());
            return Err(error);
        }
        Ok(frames)
    }

    /// Like [`receive`](Self::receive), of bytes that are all right.
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> Vec<Frame> {
        self.receive(bytes).expect("these bytes are all right")
    }

    /// The streams of the requests since the last call.
    pub(crate) fn streams(&mut self) -> Vec<u32> {
        self.requests.drain(..).map(|request| request.stream).collect()
    }

    pub(crate) fn text(&self, span: Span) -> String {
        String::from_utf8(self.server.text(span).to_vec()).expect("text")
    }

    /// Answers with 200; the frames that went out at once, or nothing if the stream is gone.
    pub(crate) fn reply(&mut self, stream: u32, body: Payload<'_>) -> Option<Vec<Frame>> {
        let mut out = Vec::new();
        let replied = self.server.reply(stream, ok, body, &mut out);
        assert_eq!(replied, !out.is_empty());
        replied.then(|| parse(&out))
    }

    pub(crate) fn data(&mut self, stream: u32, body: &[u8], end: bool) -> Option<Vec<Frame>> {
        let mut out = Vec::new();
        self.server.data(stream, Payload::Bytes(body), end, &mut out).then(|| parse(&out))
    }
}

/// `:status 200`.
pub(crate) fn ok(_: &mut Indexing, out: &mut Vec<u8>) {
    out.push(0x88);
}

/// A block in as many frames as there are parts.
pub(crate) fn in_parts(stream: u32, flags: u8, fields: &[(&str, &str)], parts: usize) -> Vec<u8> {
    let block = block(fields);
    let mut bytes = Vec::new();
    for part in 0..parts {
        let (from, to) = (block.len() * part / parts, block.len() * (part + 1) / parts);
        let kind = if part == 0 { HEADERS } else { crate::http2_server::frames::CONTINUATION };
        let end = if part + 1 == parts { END_HEADERS } else { 0 };
        bytes.extend(frame(kind, end | if part == 0 { flags } else { 0 }, stream, &block[from..to]));
    }
    bytes
}

/// Kind, flags, stream and length of each frame.
pub(crate) fn shapes(frames: &[Frame]) -> Vec<(u8, u8, u32, usize)> {
    frames.iter().map(|frame| (frame.kind, frame.flags, frame.stream, frame.payload.len())).collect()
}

/// The first four bytes of a frame's payload: a code, an increment, or the last stream of GOAWAY.
pub(crate) trait Word {
    fn word(&self) -> u32;
}

impl Word for Frame {
    fn word(&self) -> u32 {
        u32::from_be_bytes(*self.payload.first_chunk().expect("the payload has a word"))
    }
}
