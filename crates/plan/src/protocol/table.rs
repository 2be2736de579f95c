//! The table of protocols: a row for each scheme of URLs.

use std::fmt;
use std::sync::Arc;

use plimsoll_document::Problem;
use plimsoll_wire::in_turn::InTurnClient;

use super::websocket;
use crate::PlanParts;

/// Protocol spoken with a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1; over TLS, only that is offered by ALPN.
    #[default]
    Http1,
    /// HTTP/2: without TLS from the first byte on (prior knowledge), over TLS as the only offer of ALPN.
    Http2,
    /// HTTP/1.1 or HTTP/2, as the server chooses by ALPN; only over TLS.
    Negotiated,
    /// A protocol of another crate.
    InTurn(&'static InTurnProtocol),
    /// WebSocket (RFC 6455), opened over HTTP/1.1.
    WebSocket,
    /// WebSocket, opened over HTTP/2 (RFC 8441), each on a connection of its own: without TLS from the first
    /// byte on, over TLS as the only offer of ALPN.
    WebSocketHttp2,
}

impl Protocol {
    /// Returns `true` if replies come in the order of the requests on each connection.
    pub const fn is_in_turn(self) -> bool {
        !self.may_be_http2()
    }

    /// Returns `true` if a connection may speak HTTP/2.
    pub const fn may_be_http2(self) -> bool {
        matches!(self, Self::Http2 | Self::Negotiated)
    }

    /// Returns `true` if connections become WebSockets.
    pub const fn is_websocket(self) -> bool {
        matches!(self, Self::WebSocket | Self::WebSocketHttp2)
    }

    /// Returns the words for it in reports.
    pub fn title(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Negotiated => "HTTP/2 or HTTP/1.1 by ALPN",
            Self::WebSocketHttp2 => "WebSocket over HTTP/2",
            other => other.row().map_or("", |row| row.title),
        }
    }

    /// Returns the row of the protocol; `None` for HTTP, whose rows are those of its schemes.
    pub fn row(self) -> Option<&'static ProtocolRow> {
        self.rows().first().copied()
    }

    /// Returns the rows of its schemes; none for HTTP.
    const fn rows(self) -> &'static [&'static ProtocolRow] {
        match self {
            Self::Http1 | Self::Http2 | Self::Negotiated => &[],
            Self::InTurn(protocol) => protocol.rows,
            Self::WebSocket | Self::WebSocketHttp2 => &WEBSOCKET,
        }
    }

    /// The scheme of URLs of servers that speak it, over TLS or not.
    pub(crate) fn scheme(self, tls: bool) -> &'static ProtocolRow {
        let row = self.rows().iter().copied().find(|row| row.is_secure == tls).or_else(|| self.row());
        row.unwrap_or(if tls { &HTTPS } else { &HTTP })
    }
}

/// A protocol of another crate whose answers come in the order of the requests. Names tell them apart.
pub struct InTurnProtocol {
    /// Name in results.
    pub name: &'static str,
    /// The schemes of its URLs, the usual one first.
    pub rows: &'static [&'static ProtocolRow],
    /// Makes the client of a new connection.
    pub client: fn() -> Box<dyn InTurnClient>,
    /// Returns what begins each connection to the server of a URL, if the protocol has such a thing.
    pub opening: fn(&ServerUrl<'_>) -> Option<Opening>,
    /// Hint for a check of a field of a head, which answers do not have: what to check instead.
    pub content_hint: &'static str,
}

impl fmt::Debug for InTurnProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for InTurnProtocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for InTurnProtocol {}

/// A scheme of URLs, and the protocol of its servers.
#[derive(Debug)]
pub struct ProtocolRow {
    /// Name of the kind of load in calibrations; empty for HTTP, whose versions have names.
    pub name: &'static str,
    /// Words for the protocol in reports; empty for HTTP.
    pub title: &'static str,
    /// Command that starts a server for it; empty for HTTP.
    pub server_command: &'static str,
    /// The scheme as it is written.
    pub scheme: &'static str,
    /// The port where none is typed.
    pub port: u16,
    /// `true` if connections use TLS.
    pub is_secure: bool,
    /// The protocol of all its connections; `None` for HTTP, whose version the flags and ALPN choose.
    pub protocol: Option<Protocol>,
    /// Noun for such a server.
    pub noun: &'static str,
    /// Hint for a step of the protocol whose target is another server: how the URL of such a target is
    /// written.
    pub target_hint: &'static str,
    /// Hint for a request over HTTP to such a server: how steps that ask it are written.
    pub step_hint: &'static str,
    /// Hint for such a URL on the command line, whose URLs are pages.
    pub command_hint: &'static str,
    /// Looks for problems of a target's URL, beyond what every URL must have.
    pub check: fn(&ServerUrl<'_>) -> Result<(), Problem>,
}

/// Beginning of a connection, before its first request: credentials, for example.
#[derive(Clone, PartialEq, Eq)]
pub struct Opening {
    /// Bytes that are sent.
    pub bytes: Arc<[u8]>,
    /// Number of answers to them. The connection is open once they have come, and is closed if one of them
    /// has a status of 400 or more.
    pub answers: u32,
}

/// Without the bytes, which may be secret.
impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("answers", &self.answers).finish_non_exhaustive()
    }
}

/// Parts of a URL that a protocol judges.
#[derive(Clone, Copy, Debug)]
pub struct ServerUrl<'a> {
    /// Path and query, beginning with `/`; a template.
    pub path: &'a str,
    /// `user:password`, if there is one.
    pub user_info: Option<&'a str>,
}

/// The schemes of WebSocket.
static WEBSOCKET: [&ProtocolRow; 2] = [&websocket::PLAIN, &websocket::SECURE];

/// Returns the rows of all schemes: those of this crate, and of the parts of the plan that is being read.
pub(crate) fn rows() -> impl Iterator<Item = &'static ProtocolRow> {
    let added = PlanParts::current_protocols().iter().flat_map(|protocol| protocol.rows);
    [&HTTP, &HTTPS].into_iter().chain(added.copied()).chain(WEBSOCKET)
}

/// HTTP without TLS.
pub(crate) static HTTP: ProtocolRow = HTTP_ROW;

/// HTTP over TLS.
pub(crate) static HTTPS: ProtocolRow =
    ProtocolRow { scheme: "https", port: 443, is_secure: true, ..HTTP_ROW };

const HTTP_ROW: ProtocolRow = ProtocolRow {
    name: "",
    title: "",
    server_command: "",
    scheme: "http",
    port: 80,
    is_secure: false,
    protocol: None,
    noun: "a server",
    target_hint: "",
    step_hint: "",
    command_hint: "",
    check: |_| Ok(()),
};

impl ProtocolRow {
    /// Returns `true` if HTTP is spoken.
    pub(crate) const fn is_http(&self) -> bool {
        self.protocol.is_none()
    }
}

/// Schemes tell rows apart.
impl PartialEq for ProtocolRow {
    fn eq(&self, other: &Self) -> bool {
        self.scheme == other.scheme
    }
}

impl Eq for ProtocolRow {}
