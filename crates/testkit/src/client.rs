//! A small blocking client for tests of servers, over the driver's epoll backend: bytes of any protocol, and
//! responses of HTTP/1.1.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt;

use plimsoll_core::Nanos;
use plimsoll_driver::{
    Backend, BackendOptions, Close, ConnId, Endpoint, Event, Open, OpenEpoll, SocketOptions, Wait,
};

/// Longer than any test takes on a busy machine.
const PATIENCE: Nanos = Nanos::from_secs(20);

/// A layer between the bytes of a socket and those of a test, such as TLS.
pub trait Layer: fmt::Debug {
    /// Appends the content of `bytes` to `inbox`. Returns `true` if the peer has closed the layer.
    fn receive(&mut self, bytes: &[u8], inbox: &mut Vec<u8>) -> bool;

    /// Appends bytes with this content to `out`.
    fn send(&mut self, content: &[u8], out: &mut Vec<u8>);

    /// Appends what the layer itself has to say to `out`.
    fn transmit(&mut self, out: &mut Vec<u8>);

    /// Returns `true` once content may be sent.
    fn is_ready(&self) -> bool;

    /// Returns the protocol that ALPN agreed on.
    fn alpn(&self) -> Option<&[u8]>;
}

/// A client of any number of connections, each known by an index. Its methods panic where a test cannot go
/// on.
#[derive(Debug)]
pub struct Client {
    backend: <OpenEpoll as Open>::Backend,
    peers: Vec<Peer>,
}

#[derive(Debug)]
struct Peer {
    conn: ConnId,
    layer: Option<Box<dyn Layer>>,
    inbox: Vec<u8>,
    connected: bool,
    end: Option<End>,
}

/// The end of a connection, by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// An orderly one.
    Closed,
    /// A reset.
    Reset,
}

/// A whole response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The head in lower case.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The counter in a CBOR reply of the sink.
    pub fn counter(&self) -> u32 {
        assert_eq!(self.body.len(), 32, "{}", self.head);
        u32::from_le_bytes(self.body[28..].try_into().unwrap())
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// Creates one without connections.
    pub fn new() -> Self {
        let backend = OpenEpoll(BackendOptions::default()).open().unwrap();
        Self { backend, peers: Vec::new() }
    }

    /// Opens a connection and gives its index.
    pub fn connect(&mut self, to: &Endpoint) -> usize {
        let conn = self.backend.connect(to, &SocketOptions::default()).unwrap();
        self.peers.push(Peer { conn, layer: None, inbox: Vec::new(), connected: false, end: None });
        let index = self.peers.len() - 1;
        self.wait_for("a connection", |client| client.peers[index].connected.then_some(()));
        index
    }

    /// Opens a connection with a layer, and waits until that is ready.
    pub fn connect_over(&mut self, to: &Endpoint, mut layer: Box<dyn Layer>) -> usize {
        let index = self.connect(to);
        layer.transmit(self.backend.outbox(self.peers[index].conn));
        self.peers[index].layer = Some(layer);
        self.backend.flush();
        self.wait_for("a handshake", |client| {
            client.peers[index].layer.as_ref().is_some_and(|layer| layer.is_ready()).then_some(())
        });
        index
    }

    /// Sends bytes on this connection.
    pub fn send(&mut self, index: usize, bytes: &[u8]) {
        let peer = &mut self.peers[index];
        let out = self.backend.outbox(peer.conn);
        match &mut peer.layer {
            None => out.extend_from_slice(bytes),
            Some(layer) => layer.send(bytes, out),
        }
        self.backend.flush();
    }

    /// Everything that came on this connection and was not taken yet.
    pub fn take(&mut self, index: usize) -> Vec<u8> {
        std::mem::take(&mut self.peers[index].inbox)
    }

    /// The protocol that ALPN agreed on.
    pub fn alpn(&self, index: usize) -> Option<&[u8]> {
        self.peers[index].layer.as_ref()?.alpn()
    }

    /// The time of the client's clock.
    pub fn now(&self) -> Nanos {
        self.backend.now()
    }

    /// Waits for the next whole response on this connection.
    pub fn response(&mut self, index: usize) -> Response {
        self.wait_for("a response", |client| take_response(&mut client.peers[index].inbox, false))
    }

    /// Waits for the next response without a body, with any content-length.
    pub fn head_response(&mut self, index: usize) -> Response {
        self.wait_for("a response", |client| take_response(&mut client.peers[index].inbox, true))
    }

    /// Waits for the end of this connection.
    pub fn end(&mut self, index: usize) -> End {
        self.wait_for("the end of a connection", |client| client.peers[index].end)
    }

    /// A whole response if there is one, without waiting.
    pub fn try_response(&mut self, index: usize) -> Option<Response> {
        take_response(&mut self.peers[index].inbox, false)
    }

    /// Returns the end of this connection, if it has ended.
    pub fn try_end(&self, index: usize) -> Option<End> {
        self.peers[index].end
    }

    /// Closes this connection at once.
    pub fn close(&mut self, index: usize) {
        self.backend.close(self.peers[index].conn, Close::Now);
    }

    /// Waits for events, `until` at most, and takes them in.
    pub fn pump(&mut self, until: Nanos) {
        self.backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
        while let Some(event) = self.backend.next_event() {
            self.accept(event);
        }
        self.backend.flush();
    }

    fn accept(&mut self, event: Event) {
        let (Event::Connected { conn, .. }
        | Event::ConnectFailed { conn, .. }
        | Event::Accepted { conn, .. }
        | Event::Received { conn, .. }
        | Event::Closed { conn, .. }
        | Event::Failed { conn, .. }) = event;
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.conn == conn) else { return };
        match event {
            Event::Connected { .. } => peer.connected = true,
            Event::Received { data, .. } => {
                let bytes = self.backend.bytes(data);
                match &mut peer.layer {
                    None => peer.inbox.extend_from_slice(bytes),
                    Some(layer) => {
                        if layer.receive(bytes, &mut peer.inbox) {
                            peer.end = Some(End::Closed);
                        }
                        layer.transmit(self.backend.outbox(conn));
                    }
                }
            }
            Event::Closed { .. } => peer.end = Some(End::Closed),
            Event::Failed { .. } => peer.end = Some(End::Reset),
            Event::ConnectFailed { error, .. } => panic!("not connected: {error}"),
            Event::Accepted { .. } => unreachable!("this client does not listen"),
        }
    }

    /// Waits until there is something; `what` is for the message if it never comes.
    pub fn wait_for<T>(&mut self, what: &str, mut ready: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = self.now() + PATIENCE;
        loop {
            if let Some(found) = ready(self) {
                return found;
            }
            assert!(self.now() < deadline, "waited in vain for {what}");
            self.pump(deadline);
        }
    }
}

/// Takes the first response off the front of `inbox` if it is whole.
fn take_response(inbox: &mut Vec<u8>, head_only: bool) -> Option<Response> {
    let end = inbox.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(inbox[..end].to_vec()).unwrap().to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |value| if head_only { 0 } else { value.trim().parse().unwrap() });
    if inbox.len() < end + length {
        return None;
    }
    let body = inbox[end..end + length].to_vec();
    inbox.drain(..end + length);
    Some(Response { status, head, body })
}

/// Makes of each function one test per backend. Where the system forbids io_uring its tests have nothing to
/// test. The crate of the tests has to depend on `plimsoll_driver`.
#[macro_export]
macro_rules! on_every_backend {
    ($($name:ident,)+) => {$(
        mod $name {
            use plimsoll_driver::{BackendOptions, KernelBackend, uring_available};
            #[test]
            fn epoll() {
                super::$name(KernelBackend::Epoll(BackendOptions::default()));
            }
            #[test]
            fn uring() {
                match uring_available() {
                    Ok(()) => super::$name(KernelBackend::Uring(BackendOptions::default())),
                    Err(reason) => {
                        $crate::skip::on_this_machine(&format!("io_uring is not available: {reason}"));
                    }
                }
            }
        }
    )+};
}
