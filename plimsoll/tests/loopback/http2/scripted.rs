//! A server of HTTP/2 that a test controls, frame by frame.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;

use crate::loopback::foreign::balanced;

/// Frame types and flags (RFC 9113 section 6).
pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const PRIORITY: u8 = 0x2;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PUSH_PROMISE: u8 = 0x5;
pub(super) const PING: u8 = 0x6;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;

/// Error codes (RFC 9113 section 7).
pub(super) const NO_ERROR: u32 = 0x0;
pub(super) const PROTOCOL_ERROR: u32 = 0x1;
pub(super) const INTERNAL_ERROR: u32 = 0x2;
pub(super) const FRAME_SIZE_ERROR: u32 = 0x6;
pub(super) const REFUSED_STREAM: u32 = 0x7;
pub(super) const CANCEL: u32 = 0x8;

/// `:status: 200` (RFC 7541 appendix A, index 8).
pub(super) const OK: &[u8] = &[0x88];

/// 20 requests, one at a time on each of 4 connections.
pub(super) const SINGLY: &str = "-n 20 -c 4 -m 1 --timeout 10s";

/// Connection preface of a client (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Longest time without a byte of the client; a client that is silent for longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Behaviour of a server for one request.
pub(super) type Answer = fn(&mut Wire, u32) -> io::Result<()>;

/// Behaviour of a server.
#[derive(Clone, Copy)]
pub(super) struct Script {
    /// At the beginning of a connection, once the client's preface is there.
    pub(super) greet: fn(&mut Wire) -> io::Result<()>,
    /// For each request, with its stream, once its HEADERS are there.
    pub(super) answer: Answer,
}

/// A server that greets as it should.
pub(super) fn answering(answer: Answer) -> Script {
    Script { greet: Wire::hello, answer }
}

/// A server that breaks the protocol before any request.
pub(super) fn greeting(greet: fn(&mut Wire) -> io::Result<()>) -> Script {
    Script { greet, answer: |_, _| Ok(()) }
}

/// The result of a run without a preflight, and the counts of the server.
pub(super) fn observe(script: Script, backend: &str, load: &str) -> (Value, Saw) {
    let server = Scripted::start(script);
    let url = server.url();
    let result = balanced(&format!("{url} {load} --no-preflight --http2 --backend {backend}"));
    (result, server.saw())
}

/// A running server. It takes no more connections when this is dropped.
#[derive(Debug)]
pub(super) struct Scripted {
    address: SocketAddr,
    book: Arc<Book>,
    ends: Arc<AtomicBool>,
}

/// Counts of a server about its clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Saw {
    pub(super) connections: u64,
    pub(super) requests: u64,
    /// GOAWAY frames by error code.
    pub(super) go_aways: BTreeMap<u32, u64>,
    /// RST_STREAM frames by error code.
    pub(super) resets: BTreeMap<u32, u64>,
    /// Connections that have ended.
    ended: u64,
}

/// Growing counts of a running server about its clients, and the signal that a connection has ended.
#[derive(Debug, Default)]
struct Book {
    saw: Mutex<Saw>,
    /// Told when a connection has ended.
    ended: Condvar,
}

impl Book {
    fn write(&self) -> MutexGuard<'_, Saw> {
        self.saw.lock().expect("no thread panics with it")
    }
}

impl Scripted {
    /// Serves every connection in the same way.
    pub(super) fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let server = Self { address, book: Arc::default(), ends: Arc::default() };
        let (book, ends) = (Arc::clone(&server.book), Arc::clone(&server.ends));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                book.write().connections += 1;
                let wire = Wire { stream, book: Arc::clone(&book), has_greeted: false, requests: 0 };
                std::thread::spawn(move || wire.serve(script));
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits until every client has gone, and returns its counts.
    pub(super) fn saw(&self) -> Saw {
        let remain = |saw: &mut Saw| saw.ended < saw.connections;
        let (saw, waited) = self
            .book
            .ended
            .wait_timeout_while(self.book.write(), PATIENCE, remain)
            .expect("no thread panics with it");
        assert!(!waited.timed_out(), "connections are still open: {saw:?}");
        saw.clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts. If that fails, the thread has ended already.
        let _ = TcpStream::connect(self.address);
    }
}

/// The server's side of one connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    book: Arc<Book>,
    has_greeted: bool,
    /// Requests on this connection so far.
    pub(super) requests: u64,
}

impl Wire {
    /// Sends bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a frame.
    pub(super) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.raw(&frame(kind, flags, stream, payload))
    }

    /// Sends empty SETTINGS, as a server begins.
    pub(super) fn hello(&mut self) -> io::Result<()> {
        self.hello_with(&[])
    }

    /// Begins with these [settings](setting). From then on those of the client are acknowledged.
    pub(super) fn hello_with(&mut self, settings: &[u8]) -> io::Result<()> {
        self.has_greeted = true;
        self.frame(SETTINGS, 0, 0, settings)
    }

    /// Sends a good response.
    pub(super) fn reply(&mut self, stream: u32) -> io::Result<()> {
        self.frame(HEADERS, END_HEADERS, stream, OK)?;
        self.frame(DATA, END_STREAM, stream, b"hello")
    }

    /// Sends a good response that has not ended yet.
    pub(super) fn reply_open(&mut self, stream: u32) -> io::Result<()> {
        self.frame(HEADERS, END_HEADERS, stream, OK)?;
        self.frame(DATA, 0, stream, b"hello")
    }

    /// Sends nothing more.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    fn serve(mut self, script: Script) {
        // Frames are read until the client closes, in any case: they may say why it does.
        let greeted = self.begin(script);
        while let Ok((kind, flags, stream, payload)) = self.next() {
            let word = |from: usize| payload.get(from..from + 4).and_then(|bytes| bytes.try_into().ok());
            let code = |from: usize| word(from).map_or(u32::MAX, u32::from_be_bytes);
            match kind {
                SETTINGS if flags & ACK == 0 && self.has_greeted => drop(self.frame(SETTINGS, ACK, 0, &[])),
                PING if flags & ACK == 0 => drop(self.frame(PING, ACK, 0, &payload)),
                HEADERS if greeted.is_ok() => {
                    self.requests += 1;
                    self.book.write().requests += 1;
                    // The client may have heard enough.
                    let _ = (script.answer)(&mut self, stream);
                }
                GOAWAY => *self.book.write().go_aways.entry(code(4)).or_default() += 1,
                RST_STREAM => *self.book.write().resets.entry(code(0)).or_default() += 1,
                _ => {}
            }
        }
    }

    fn begin(&mut self, script: Script) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_read_timeout(Some(PATIENCE))?;
        let mut preface = [0; PREFACE.len()];
        self.stream.read_exact(&mut preface)?;
        assert_eq!(preface, PREFACE, "every connection begins like this");
        (script.greet)(self)
    }

    /// The next frame of the client.
    fn next(&mut self) -> io::Result<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let [a, b, c, kind, flags, s0, s1, s2, s3] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload)?;
        Ok((kind, flags, u32::from_be_bytes([s0, s1, s2, s3]), payload))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.book.write().ended += 1;
        self.book.ended.notify_all();
    }
}

/// The bytes of a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).expect("payloads are short").to_be_bytes();
    let mut bytes = vec![a, b, c, kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A header field as a literal that is not indexed (RFC 7541 section 6.2.2), for names and values below 127
/// bytes.
pub(super) fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        bytes.push(u8::try_from(text.len()).expect("it is short"));
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// One setting (RFC 9113 section 6.5.1).
pub(super) fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}
