//! The state of one connection of the sink.

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;
use plimsoll_wire::tls::Session;

use super::backlog::Backlog;
use super::queue::SingleServer;
use super::service::WebSocketServer;
use crate::server::http::HttpProtocol;
use crate::server::output::Channel;

/// The protocol of a connection: HTTP, or WebSocket over either version of it, where the service is that.
pub(crate) type Protocol = HttpProtocol<WebSocketServer>;

/// One accepted connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    pub(crate) protocol: Protocol,
    pub(crate) backlog: Backlog,
    pub(crate) state: State,
}

/// The state of a connection beside its protocol.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Requests read.
    pub(crate) requests: u64,
    /// Body of the present request on HTTP/1.1, as far as it has come, where the service reads bodies.
    pub(crate) body: Vec<u8>,
    /// Requests read that wait for their due time, or for the next piece of their body.
    pub(crate) outstanding: u32,
    /// The latest due time so far, on HTTP/1.1: replies leave in the order of their requests.
    pub(crate) last_due: Nanos,
    /// The connection's own queue, where connections are serial.
    pub(crate) serial: SingleServer,
    /// Nothing more is read from it.
    pub(crate) deaf: bool,
    /// Nothing more is sent. On HTTP/1.1 also after a dropped reply: the next would be taken for it.
    pub(crate) mute: bool,
    /// The client has closed its side.
    pub(crate) peer_closed: bool,
    /// The client waits for `100 Continue`, which has to follow the replies before it.
    pub(crate) continue_owed: bool,
    /// `true` if the backlog of the connection goes on when the kernel has taken more.
    pub(crate) stalled: bool,
    /// Way to close once nothing is outstanding.
    pub(crate) farewell: Option<CloseMode>,
}

/// The way to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseMode {
    /// Close.
    Silent,
    /// Say that this is not HTTP, then close.
    Refuse,
    /// Close without waiting for outstanding replies: the client has broken the protocol and was notified.
    Broken,
}

impl Connection {
    pub(crate) fn new(id: ConnId, tls: Option<Box<Session>>) -> Self {
        let (channel, protocol) = (Channel::new(id, tls), Protocol::Open(0));
        Self { channel, protocol, backlog: Backlog::default(), state: State::default() }
    }

    /// Returns `true` if the client's windows hold back bytes of a stream.
    pub(crate) fn is_held(&self, stream: u32) -> bool {
        match &self.protocol {
            Protocol::Http2(server) => server.waiting(stream) > 0,
            Protocol::Open(_) | Protocol::Http1(_) | Protocol::Upgraded(_) => false,
        }
    }

    /// Returns `true` if a request can still be answered: the client has not given it up.
    pub(crate) fn is_owed(&self, stream: u32) -> bool {
        match &self.protocol {
            Protocol::Http2(server) => server.is_open(stream),
            Protocol::Open(_) | Protocol::Http1(_) | Protocol::Upgraded(_) => true,
        }
    }

    /// Returns `true` if everything that was promised is sent: no request waits, and on HTTP/2 no stream is
    /// left on which the client could still send.
    pub(crate) fn is_settled(&self) -> bool {
        self.state.outstanding == 0
            && match &self.protocol {
                // A client that sends nothing more does not open windows either.
                Protocol::Http2(server) => self.state.deaf || server.active() == 0,
                Protocol::Open(_) | Protocol::Http1(_) | Protocol::Upgraded(_) => true,
            }
    }
}
