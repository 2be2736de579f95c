//! A small blocking HTTP/1.1 client over the driver's epoll backend, which also carries the bytes of
//! [`Streams`](crate::sink::streams::Streams).

use plimsoll_core::Nanos;
use plimsoll_driver::{
    Backend, BackendOptions, Close, ConnId, Endpoint, Event, Open, OpenEpoll, SocketOptions, Wait,
};
use plimsoll_wire::tls::{ClientConfig, Session};

/// Longer than any test takes on a busy machine.
const PATIENCE: Nanos = Nanos::from_secs(20);

pub(crate) struct Client {
    backend: <OpenEpoll as Open>::Backend,
    peers: Vec<Peer>,
}

struct Peer {
    conn: ConnId,
    tls: Option<Session>,
    inbox: Vec<u8>,
    connected: bool,
    end: Option<End>,
}

/// The end of a connection, by the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The head in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The counter in a CBOR reply.
    pub(crate) fn counter(&self) -> u32 {
        assert_eq!(self.body.len(), 32, "{}", self.head);
        u32::from_le_bytes(self.body[28..].try_into().unwrap())
    }
}

impl Client {
    pub(crate) fn new() -> Self {
        let backend = OpenEpoll(BackendOptions::default()).open().unwrap();
        Self { backend, peers: Vec::new() }
    }

    /// Opens a connection and gives its index.
    pub(crate) fn connect(&mut self, to: &Endpoint) -> usize {
        let conn = self.backend.connect(to, &SocketOptions::default()).unwrap();
        self.peers.push(Peer { conn, tls: None, inbox: Vec::new(), connected: false, end: None });
        let index = self.peers.len() - 1;
        self.wait_for("a connection", |client| client.peers[index].connected.then_some(()));
        index
    }

    /// Opens a connection with TLS.
    pub(crate) fn connect_tls(&mut self, to: &Endpoint, config: &ClientConfig) -> usize {
        let index = self.connect(to);
        let mut session = Session::client(config, "localhost").unwrap();
        session.transmit(self.backend.outbox(self.peers[index].conn));
        self.peers[index].tls = Some(session);
        self.backend.flush();
        self.wait_for("a TLS handshake", |client| {
            (!client.peers[index].tls.as_ref().unwrap().is_handshaking()).then_some(())
        });
        index
    }

    pub(crate) fn send(&mut self, index: usize, bytes: &[u8]) {
        let peer = &mut self.peers[index];
        let out = self.backend.outbox(peer.conn);
        match &mut peer.tls {
            None => out.extend_from_slice(bytes),
            Some(session) => session.send(bytes, out),
        }
        self.backend.flush();
    }

    /// Everything that came on this connection and was not taken yet.
    pub(crate) fn take(&mut self, index: usize) -> Vec<u8> {
        std::mem::take(&mut self.peers[index].inbox)
    }

    /// The protocol that ALPN agreed on.
    pub(crate) fn alpn(&self, index: usize) -> Option<&[u8]> {
        self.peers[index].tls.as_ref()?.alpn()
    }

    pub(crate) fn now(&self) -> Nanos {
        self.backend.now()
    }

    /// Waits for the next whole response on this connection.
    pub(crate) fn response(&mut self, index: usize) -> Response {
        self.wait_for("a response", |client| take_response(&mut client.peers[index].inbox, false))
    }

    /// Waits for the next response without a body, with any content-length.
    pub(crate) fn head_response(&mut self, index: usize) -> Response {
        self.wait_for("a response", |client| take_response(&mut client.peers[index].inbox, true))
    }

    /// Waits for the end of this connection.
    pub(crate) fn end(&mut self, index: usize) -> End {
        self.wait_for("the end of a connection", |client| client.peers[index].end)
    }

    /// A whole response if there is one, without waiting.
    pub(crate) fn try_response(&mut self, index: usize) -> Option<Response> {
        take_response(&mut self.peers[index].inbox, false)
    }

    /// Returns the end of this connection, if it has ended.
    pub(crate) fn try_end(&self, index: usize) -> Option<End> {
        self.peers[index].end
    }

    pub(crate) fn close(&mut self, index: usize) {
        self.backend.close(self.peers[index].conn, Close::Now);
    }

    /// Waits for events, `until` at most, and takes them in.
    pub(crate) fn pump(&mut self, until: Nanos) {
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
                match &mut peer.tls {
                    None => peer.inbox.extend_from_slice(bytes),
                    Some(session) => {
                        let received = session.receive(bytes, &mut peer.inbox).unwrap();
                        if received.closed {
                            peer.end = Some(End::Closed);
                        }
                        session.transmit(self.backend.outbox(conn));
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
    pub(crate) fn wait_for<T>(&mut self, what: &str, mut ready: impl FnMut(&mut Self) -> Option<T>) -> T {
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
