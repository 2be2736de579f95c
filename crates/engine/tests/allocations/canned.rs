//! A backend that answers every request at once with the same response, and allocates nothing for it.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_document::{Files, KeyLogFile};
use plimsoll_driver::{
    Backend, Chunk, Close, ConnId, Endpoint, Event, Flush, ListenerId, SocketOptions, SystemError, Wait,
};

/// From a request to its response.
const ROUND_TRIP: Nanos = Nanos::from_micros(10);

const HTTP1: &[u8] = b"HTTP/1.1 200 OK\r\nX-Token: to-17\r\nContent-Type: application/json\r\n\
    Content-Length: 13\r\n\r\n{\"id\":\"4711\"}";

const BODY: &[u8] = b"{\"id\":\"4711\"}";

/// `:status: 200`, then two literals without indexing (RFC 7541, 6.2.2).
const BLOCK: &[u8] = b"\x88\x00\x07x-token\x05to-17\x00\x0ccontent-type\x10application/json";

/// Bytes that an HTTP/2 client sends first (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types and flags of frames (RFC 9113, 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A disk on which every path is this file.
pub(crate) struct OneFile<'a>(pub(crate) &'a str);

impl Files for OneFile<'_> {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(self.0.as_bytes().to_vec())
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// One connection.
#[derive(Debug, Default)]
struct Link {
    outbox: Vec<u8>,
    dirty: bool,
    connected: bool,
    http2: bool,
    /// Response bytes that the client has not read yet.
    reply: Vec<u8>,
    /// `true` while the link is in the queue.
    ready: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Canned {
    now: Nanos,
    links: Vec<Link>,
    dirty: Vec<usize>,
    ready: VecDeque<usize>,
    /// Bytes of the event that was given last.
    given: Vec<u8>,
    scratch: Vec<u8>,
}

impl Canned {
    pub(crate) fn new() -> Self {
        Self {
            now: Nanos::from_secs(1_000),
            links: Vec::new(),
            dirty: Vec::new(),
            ready: VecDeque::new(),
            given: Vec::new(),
            scratch: Vec::new(),
        }
    }
}

impl Link {
    /// Answers every whole request of the outbox, and forgets it.
    fn answer(&mut self) {
        let mut rest = &self.outbox[..];
        if let Some(frames) = rest.strip_prefix(PREFACE) {
            self.http2 = true;
            frame(&mut self.reply, SETTINGS, 0, 0, &[]);
            rest = frames;
        }
        while !rest.is_empty() {
            let length = if self.http2 {
                answer_frame(rest, &mut self.reply)
            } else {
                answer_request(rest, &mut self.reply)
            };
            rest = &rest[length..];
        }
        self.outbox.clear();
    }
}

/// Answers the request at the beginning of `bytes`; its length.
fn answer_request(bytes: &[u8], reply: &mut Vec<u8>) -> usize {
    let find = |what: &[u8]| bytes.windows(what.len()).position(|window| window.eq_ignore_ascii_case(what));
    let head = find(b"\r\n\r\n").expect("the worker writes whole requests") + 4;
    let body = find(b"\r\ncontent-length: ").filter(|at| *at < head).map_or(0, |at| {
        let digits = bytes[at + 18..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
    });
    reply.extend_from_slice(HTTP1);
    head + body
}

/// Answers the frame at the beginning of `bytes`; its length.
fn answer_frame(bytes: &[u8], reply: &mut Vec<u8>) -> usize {
    let number = |bytes: &[u8]| bytes.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    let (length, kind, flags, stream) = (number(&bytes[..3]), bytes[3], bytes[4], number(&bytes[5..9]));
    match kind {
        SETTINGS if flags & ACK == 0 => frame(reply, SETTINGS, ACK, 0, &[]),
        HEADERS | DATA => {
            if kind == DATA && length > 0 {
                frame(reply, WINDOW_UPDATE, 0, 0, &length.to_be_bytes());
            }
            if flags & END_STREAM != 0 {
                frame(reply, HEADERS, END_HEADERS, stream, BLOCK);
                frame(reply, DATA, END_STREAM, stream, BODY);
            }
        }
        _ => {}
    }
    9 + length as usize
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

impl Backend for Canned {
    fn name(&self) -> &'static str {
        "canned"
    }

    fn preemptions(&self) -> u64 {
        0
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn poll_until(&mut self, at: Nanos) -> Nanos {
        self.now = self.now.max(at);
        self.now
    }

    fn connect(&mut self, _: &Endpoint, _: &SocketOptions) -> Result<ConnId, SystemError> {
        let slot = self.links.len();
        self.links.push(Link { ready: true, ..Link::default() });
        self.ready.push_back(slot);
        Ok(ConnId::new(slot as u32, 0))
    }

    fn listen(&mut self, _: &Endpoint, _: bool) -> Result<(ListenerId, Endpoint), SystemError> {
        panic!("a worker does not listen");
    }

    fn close_listener(&mut self, _: ListenerId) {}

    fn outbox(&mut self, conn: ConnId) -> &mut Vec<u8> {
        let Some(link) = self.links.get_mut(conn.slot()) else {
            self.scratch.clear();
            return &mut self.scratch;
        };
        if !std::mem::replace(&mut link.dirty, true) {
            self.dirty.push(conn.slot());
        }
        &mut link.outbox
    }

    fn send_shared(&mut self, conn: ConnId, body: Arc<[u8]>) {
        self.outbox(conn).extend_from_slice(&body);
    }

    fn unsent(&self, conn: ConnId) -> usize {
        self.links.get(conn.slot()).map_or(0, |link| link.outbox.len())
    }

    fn flush(&mut self) -> Flush {
        let sends = self.dirty.len() as u32;
        for slot in self.dirty.drain(..) {
            let link = &mut self.links[slot];
            link.dirty = false;
            link.answer();
            if !link.reply.is_empty() && !std::mem::replace(&mut link.ready, true) {
                self.ready.push_back(slot);
            }
        }
        Flush { first: self.now, last: self.now, sends }
    }

    fn close(&mut self, _: ConnId, _: Close) {}

    fn wait(&mut self, wait: Wait) -> Option<Nanos> {
        if self.ready.is_empty() {
            assert!(wait.until < Nanos::MAX, "nothing will ever happen again");
            self.now = self.now.max(wait.until);
        } else {
            self.now += ROUND_TRIP;
        }
        None
    }

    fn next_event(&mut self) -> Option<Event> {
        let slot = self.ready.pop_front()?;
        let (conn, at) = (ConnId::new(slot as u32, 0), self.now);
        let link = &mut self.links[slot];
        link.ready = false;
        if !std::mem::replace(&mut link.connected, true) {
            return Some(Event::Connected { conn, at });
        }
        self.given.clear();
        std::mem::swap(&mut self.given, &mut link.reply);
        let data = Chunk { buffer: 0, offset: 0, length: self.given.len() as u32 };
        Some(Event::Received { conn, at, stamped: true, data })
    }

    fn bytes(&self, data: Chunk) -> &[u8] {
        &self.given[..data.length as usize]
    }
}
