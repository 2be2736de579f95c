//! Tunnels through proxies: CONNECT of HTTP/1.1 (RFC 9110 section 9.3.6), and SOCKS5 (RFC 1928, with user and
//! password by RFC 1929).
//!
//! ```text
//!   socket bytes ──▶ TunnelClient ──▶ it stands: everything behind the proxy's last byte is of the peer
//! ```
//!
//! A [`TunnelRequest`] says what is asked of the proxy; it is made once for all connections to one
//! destination. A [`TunnelClient`] asks for it on one connection, before anything else is spoken on it.

mod connect;
mod socks5;

use core::net::SocketAddr;
use std::fmt;
use std::sync::Arc;

use crate::http1::Limits;
use connect::Connect;
use socks5::Socks5;

/// The most bytes of a name, a user or a password in SOCKS5, whose lengths are one byte.
pub const LONGEST_SOCKS_TEXT: usize = 255;

/// The other end of a tunnel, as the proxy is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A host that the proxy finds by its name, and a port.
    Name(String, u16),
    /// An address.
    Address(SocketAddr),
}

impl fmt::Display for Destination {
    /// `host:port`, with an IPv6 address in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(host, port) => write!(f, "{host}:{port}"),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// User and password for a proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// The password; it may be empty.
    pub password: String,
}

/// Without the texts.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<credentials>")
    }
}

/// A request for a tunnel, as its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct TunnelRequest(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    /// The head of a CONNECT request.
    Connect(Vec<u8>),
    Socks5(socks5::Messages),
}

impl TunnelRequest {
    /// CONNECT to an HTTP proxy. `authorization` is the value of the Proxy-Authorization field.
    pub fn connect(destination: &Destination, authorization: Option<&str>) -> Self {
        Self(Form::Connect(connect::head(destination, authorization)))
    }

    /// CONNECT of SOCKS5.
    ///
    /// # Errors
    /// The text that has more than [`LONGEST_SOCKS_TEXT`] bytes, in words.
    pub fn socks5(
        destination: &Destination,
        credentials: Option<&Credentials>,
    ) -> Result<Self, &'static str> {
        socks5::Messages::new(destination, credentials).map(|messages| Self(Form::Socks5(messages)))
    }
}

/// Without the bytes, which may contain credentials.
impl fmt::Debug for TunnelRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Form::Connect(_) => "TunnelRequest(CONNECT)",
            Form::Socks5(_) => "TunnelRequest(SOCKS5)",
        })
    }
}

/// Asks for a tunnel on one connection.
///
/// [`begin`](Self::begin) writes the first bytes, and [`receive`](Self::receive) takes those of the proxy
/// until it says that the tunnel stands. After an error the connection is of no use any more.
#[derive(Debug)]
pub struct TunnelClient {
    request: Arc<TunnelRequest>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Connect(Connect),
    Socks5(Socks5),
}

impl TunnelClient {
    /// Appends the first bytes for the proxy to `out`.
    pub fn begin(request: Arc<TunnelRequest>, out: &mut Vec<u8>) -> Self {
        let stage = match &request.0 {
            Form::Connect(head) => {
                out.extend_from_slice(head);
                Stage::Connect(Connect::default())
            }
            Form::Socks5(messages) => {
                out.extend_from_slice(messages.greeting());
                Stage::Socks5(Socks5::default())
            }
        };
        Self { request, stage }
    }

    /// Takes the proxy's bytes from the front of `input`, appends answers to `out`, and returns `true` once
    /// the tunnel stands. The bytes that are left in `input` then are those of the peer behind the proxy.
    ///
    /// # Errors
    /// If the proxy refuses, or does not speak its protocol.
    pub fn receive(
        &mut self,
        limits: &Limits,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, TunnelError> {
        match (&mut self.stage, &self.request.0) {
            (Stage::Connect(connect), _) => connect.receive(limits, input),
            (Stage::Socks5(socks5), Form::Socks5(messages)) => socks5.receive(messages, input, out),
            // A stage is made of its request.
            (Stage::Socks5(_), Form::Connect(_)) => Err(TunnelError::Invalid("it was not asked".to_owned())),
        }
    }
}

/// Reason why there is no tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelError {
    /// The proxy refused: its status line, or the meaning of its code.
    Refused(String),
    /// The proxy did not speak its protocol; a description of the fault.
    Invalid(String),
}

impl fmt::Display for TunnelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => write!(f, "the proxy refused the tunnel: {reason}"),
            Self::Invalid(reason) => write!(f, "the proxy's answer is not valid: {reason}"),
        }
    }
}

impl std::error::Error for TunnelError {}
