//! HTTP on the connections of a server: which version a client speaks, by ALPN or by its first bytes.

use std::convert::Infallible;

use plimsoll_wire::http1::RequestServer;
use plimsoll_wire::http2::{PREFACE, Server, ServerOptions};

/// Number of bytes of the HTTP/2 preface that identify it: `PRI * HTTP/2.0` and the end of the line, which
/// no request of HTTP/1.1 has at its front (RFC 9113 section 3.4). The HTTP/2 server judges the bytes after
/// it.
const TELLING: usize = 16;

/// The protocol of a connection to a server of HTTP, and of what clients may change to (`U`).
#[derive(Debug)]
pub enum HttpProtocol<U = Infallible> {
    /// Not known yet. This many bytes have come, and match the HTTP/2 preface.
    Open(usize),
    /// HTTP/1.1.
    Http1(RequestServer),
    /// HTTP/2.
    Http2(Box<Server>),
    /// Another protocol over either version of HTTP.
    Upgraded(Box<U>),
}

impl<U> HttpProtocol<U> {
    /// Begins to speak the protocol that was detected. A server of HTTP/2 writes its settings first, to
    /// `out`.
    pub fn begin(detected: DetectedProtocol, http2: &ServerOptions, out: &mut Vec<u8>) -> Self {
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
    pub fn learn(&mut self, bytes: &[u8], begin: impl FnOnce(DetectedProtocol) -> Self) -> &'static [u8] {
        let Self::Open(matched) = *self else { return &[] };
        *self = begin(Self::told_by(matched, bytes));
        &PREFACE[..matched]
    }

    /// Detects the protocol from the first bytes, after `matched` bytes that are those of the HTTP/2 preface.
    pub fn told_by(matched: usize, bytes: &[u8]) -> DetectedProtocol {
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
    pub fn cancelled(&mut self) -> u64 {
        match self {
            Self::Http2(server) => server.cancelled(),
            Self::Open(_) | Self::Http1(_) | Self::Upgraded(_) => 0,
        }
    }
}

/// Which protocol the first bytes of a connection belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectedProtocol {
    /// Either, so far: this many bytes match the HTTP/2 preface.
    Nothing(usize),
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl DetectedProtocol {
    /// The protocol that a TLS handshake has chosen. Without ALPN the first bytes decide.
    pub fn by_alpn(alpn: Option<&[u8]>) -> Self {
        match alpn {
            Some(b"h2") => Self::Http2,
            Some(b"http/1.1") => Self::Http1,
            _ => Self::Nothing(0),
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
                told = HttpProtocol::<Infallible>::told_by(matched, piece);
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
