//! The state of one connection of the sink.

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;
use plimsoll_wire::http1::RequestServer;
use plimsoll_wire::http2::{PREFACE, Server, ServerOptions};
use plimsoll_wire::tls::Session;

use super::backlog::Backlog;
use super::queue::SingleServer;
use super::service::WebSocketServer;
use crate::server::output::Channel;

/// Number of bytes of the HTTP/2 preface that identify it: `PRI * HTTP/2.0` and the end of the line, which
/// no request of HTTP/1.1 has at its front (RFC 9113 section 3.4). The HTTP/2 server judges the bytes after
/// it.
const TELLING: usize = 16;

/// One accepted connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    pub(crate) protocol: Protocol,
    pub(crate) backlog: Backlog,
    pub(crate) state: State,
}

/// The protocol of a connection.
#[derive(Debug)]
pub(crate) enum Protocol {
    /// Not known yet. This many bytes have come, and match the HTTP/2 preface.
    Open(usize),
    Http1(RequestServer),
    Http2(Box<Server>),
    /// Over either version of HTTP, where the service is that.
    WebSocket(Box<WebSocketServer>),
}

impl Protocol {
    /// Begins to speak the protocol that was detected. A server of HTTP/2 writes its settings first, to
    /// `out`.
    pub(crate) fn begin(detected: DetectedProtocol, http2: &ServerOptions, out: &mut Vec<u8>) -> Self {
        match detected {
            DetectedProtocol::Nothing(matched) => Self::Open(matched),
            DetectedProtocol::Http1 => Self::Http1(RequestServer::new()),
            DetectedProtocol::Http2 => {
                let mut server = Box::new(Server::new(http2));
                server.start(out);
                Self::Http2(server)
            }
        }
    }

    /// Learns the protocol from the first bytes, unless it is known: `begin` makes it. Returns the bytes that
    /// were held back until then, and come before these.
    pub(crate) fn learn(
        &mut self,
        bytes: &[u8],
        begin: impl FnOnce(DetectedProtocol) -> Self,
    ) -> &'static [u8] {
        let Self::Open(matched) = *self else { return &[] };
        *self = begin(Self::told_by(matched, bytes));
        &PREFACE[..matched]
    }

    /// Detects the protocol from the first bytes, after `matched` bytes that are those of the HTTP/2 preface.
    pub(crate) fn told_by(matched: usize, bytes: &[u8]) -> DetectedProtocol {
        let expected = &PREFACE[matched..TELLING];
        let count = expected.len().min(bytes.len());
        if bytes[..count] != expected[..count] {
            DetectedProtocol::Http1
        } else if count == expected.len() {
            DetectedProtocol::Http2
        } else {
            DetectedProtocol::Nothing(matched + count)
        }
    }

    /// Streams of HTTP/2 that the client has reset.
    pub(crate) fn cancelled(&mut self) -> u64 {
        match self {
            Self::Http2(server) => server.cancelled(),
            Self::Open(_) | Self::Http1(_) | Self::WebSocket(_) => 0,
        }
    }
}

/// Which protocol the first bytes of a connection belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetectedProtocol {
    /// Either, so far: this many bytes match the HTTP/2 preface.
    Nothing(usize),
    Http1,
    Http2,
}

impl DetectedProtocol {
    /// The protocol that a TLS handshake has chosen. Without ALPN the first bytes decide.
    pub(crate) fn by_alpn(alpn: Option<&[u8]>) -> Self {
        match alpn {
            Some(b"h2") => Self::Http2,
            Some(b"http/1.1") => Self::Http1,
            _ => Self::Nothing(0),
        }
    }
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
    /// Its backlog goes on when the kernel has taken more.
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
            Protocol::Open(_) | Protocol::Http1(_) | Protocol::WebSocket(_) => false,
        }
    }

    /// Returns `true` if a request can still be answered: the client has not given it up.
    pub(crate) fn is_owed(&self, stream: u32) -> bool {
        match &self.protocol {
            Protocol::Http2(server) => server.is_open(stream),
            Protocol::Open(_) | Protocol::Http1(_) | Protocol::WebSocket(_) => true,
        }
    }

    /// Returns `true` if everything that was promised is sent: no request waits, and on HTTP/2 no stream is
    /// left on which the client could still send.
    pub(crate) fn is_settled(&self) -> bool {
        self.state.outstanding == 0
            && match &self.protocol {
                // A client that sends nothing more does not open windows either.
                Protocol::Http2(server) => self.state.deaf || server.active() == 0,
                Protocol::Open(_) | Protocol::Http1(_) | Protocol::WebSocket(_) => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_protocol_however_they_are_cut() {
        let told = |pieces: &[&[u8]]| {
            let mut told = DetectedProtocol::Nothing(0);
            for piece in pieces {
                let DetectedProtocol::Nothing(matched) = told else { break };
                told = Protocol::told_by(matched, piece);
            }
            told
        };
        let settings = [PREFACE, &[0; 9]].concat();
        for (bytes, expected) in [
            (settings.as_slice(), DetectedProtocol::Http2),
            (b"PRI * HTTP/2.0\r\nanything", DetectedProtocol::Http2),
            (b"PRI * HTTP/1.1\r\n\r\n", DetectedProtocol::Http1),
            (b"PRINT / HTTP/1.1\r\n\r\n", DetectedProtocol::Http1),
            (b"POST / HTTP/1.1\r\n\r\n", DetectedProtocol::Http1),
            (b"\x16\x03\x01", DetectedProtocol::Http1),
            (b"PRI", DetectedProtocol::Nothing(3)),
            (b"", DetectedProtocol::Nothing(0)),
        ] {
            assert_eq!(told(&[bytes]), expected, "{bytes:?}");
            assert_eq!(told(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{bytes:?}");
            for at in 0..bytes.len() {
                assert_eq!(told(&[&bytes[..at], &bytes[at..]]), expected, "{bytes:?} at {at}");
            }
        }
    }
}
