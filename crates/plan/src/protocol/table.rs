//! The table of protocols: a row for each scheme of URLs.

use super::{cache, websocket};
use crate::Problem;
use crate::url::Url;

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
    /// The cache protocol of Carbon.
    Cache,
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
        ROWS.into_iter().find(|row| row.protocol == Some(self.of_scheme()))
    }

    /// The protocol that the schemes of its URLs stand for, whatever the version of HTTP.
    const fn of_scheme(self) -> Self {
        match self {
            Self::WebSocketHttp2 => Self::WebSocket,
            other => other,
        }
    }

    /// The scheme of URLs of servers that speak it, over TLS or not.
    pub(crate) fn scheme(self, tls: bool) -> &'static ProtocolRow {
        let of_tls =
            |row: &&'static ProtocolRow| row.protocol == Some(self.of_scheme()) && row.is_secure == tls;
        let row = ROWS.into_iter().find(of_tls).or_else(|| self.row());
        row.unwrap_or(if tls { &HTTPS } else { &HTTP })
    }
}

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
    pub(crate) scheme: &'static str,
    /// The port where none is typed.
    pub(crate) port: u16,
    /// `true` if connections use TLS.
    pub(crate) is_secure: bool,
    /// The protocol of all its connections; `None` for HTTP, whose version the flags and ALPN choose.
    pub(crate) protocol: Option<Protocol>,
    /// Noun for such a server.
    pub noun: &'static str,
    /// Hint for a step of the protocol whose target is another server: how the URL of such a target is
    /// written.
    pub(crate) target_hint: &'static str,
    /// Hint for a request over HTTP to such a server: how steps that ask it are written.
    pub(crate) step_hint: &'static str,
    /// Hint for such a URL on the command line, whose URLs are pages.
    pub(crate) command_hint: &'static str,
    /// Looks for problems of a target's URL, beyond what every URL must have.
    pub(crate) check: fn(&Url) -> Result<(), Problem>,
}

/// All schemes.
pub(crate) static ROWS: [&ProtocolRow; 5] =
    [&HTTP, &HTTPS, &cache::ROW, &websocket::PLAIN, &websocket::SECURE];

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
