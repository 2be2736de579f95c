//! Specification of a request.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::redaction::is_secret_header;

use crate::CodedBody;
use crate::Fingerprint;
use crate::Framing;
use crate::WebSocketAction;

/// Specification of a request, before it is compiled.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestSpec {
    /// Protocol in which the request is written.
    pub dialect: Dialect,
    /// Method, as it goes on the wire; of a protocol of another crate, the operation.
    pub method: String,
    /// Path and query; of a protocol of another crate, what the operation is about; a template.
    pub target: String,
    /// Scheme of the URL; only HTTP/2 sends it.
    pub scheme: Scheme,
    /// `host[:port]` for the Host header.
    pub authority: String,
    /// `true` if [`Context::authority`](crate::Context::authority) is sent instead: the request goes to one
    /// of several hosts.
    pub authority_slot: bool,
    /// Names and values; values are templates. An empty value leaves a default header (Host, User-Agent,
    /// Content-Length, Connection, the session's Cookie) out, and sends nothing.
    pub headers: Vec<(String, String)>,
    /// `true` if the cookies of the session ([`Context::cookies`](crate::Context::cookies)) are sent, if
    /// there are any. They come after those of a Cookie header in [`headers`](Self::headers), if there is
    /// one.
    pub cookies: bool,
    /// Payload.
    pub body: Body,
    /// `true` if the connection is used again; if not, the request says so (on HTTP/1.1).
    pub keep_alive: bool,
    /// The HTTP proxy that takes the request, if its scheme is `http`: it is told the whole URL.
    pub forward: Option<ForwardProxy>,
}

/// A GET of `/` without an authority.
impl Default for RequestSpec {
    fn default() -> Self {
        Self {
            dialect: Dialect::Http,
            method: "GET".to_owned(),
            target: "/".to_owned(),
            scheme: Scheme::Http,
            authority: String::new(),
            authority_slot: false,
            headers: Vec::new(),
            cookies: false,
            body: Body::None,
            keep_alive: true,
            forward: None,
        }
    }
}

/// An HTTP proxy that is handed requests by `http`, each with the whole URL in its first line (the absolute
/// form of RFC 9112 section 3.2.2).
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardProxy {
    /// The value of the Proxy-Authorization field, if the proxy wants one.
    pub authorization: Option<Arc<str>>,
}

/// Without the value.
impl fmt::Debug for ForwardProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForwardProxy")
    }
}

/// Protocol in which a request is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// HTTP: which version of it is a matter of the connection.
    #[default]
    Http,
    /// A protocol of another crate. There are no headers and no cookies, and the frame has the body.
    Framed(Arc<dyn Framing>),
    /// A WebSocket. The body is the message.
    WebSocket(WebSocketAction),
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    #[default]
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Payload of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// None.
    #[default]
    None,
    /// A template.
    Text(Vec<u8>),
    /// Bytes as they are.
    Raw(Arc<[u8]>),
    /// A binary form with texts that vary.
    Coded(CodedBody),
    /// The body in [`Context::body`](crate::Context::body), another one each time.
    Supplied {
        /// The supply that it is of, a position in the plan's.
        supply: u16,
        /// `true` if this is not a body of its own, but the inquiry after the one that the session has taken
        /// last.
        inquiry: bool,
        /// Identity of the supply: the same text, the same bodies.
        of: Arc<str>,
    },
}

/// Without the values of secret headers and the bytes of the body.
impl fmt::Debug for RequestSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (name, shown(name, value))).collect();
        let body_len = match &self.body {
            Body::None => None,
            Body::Text(text) => Some(text.len()),
            Body::Raw(bytes) => Some(bytes.len()),
            Body::Coded(_) | Body::Supplied { .. } => None,
        };
        f.debug_struct("RequestSpec")
            .field("dialect", &self.dialect)
            .field("method", &self.method)
            .field("target", &self.target)
            .field("scheme", &self.scheme)
            .field("authority", &self.authority)
            .field("authority_slot", &self.authority_slot)
            .field("headers", &headers)
            .field("cookies", &self.cookies)
            .field("body_len", &body_len)
            .field("keep_alive", &self.keep_alive)
            .field("forward", &self.forward)
            .finish()
    }
}

fn shown<'a>(name: &str, value: &'a str) -> &'a str {
    if is_secret_header(name) && !value.is_empty() { "<secret>" } else { value }
}

/// The fingerprint of the sent bytes, without the values of secret headers. The scheme is left out: it is the
/// target's.
pub(crate) fn fingerprint(spec: &RequestSpec) -> Fingerprint {
    let mut hash = Fingerprint::EMPTY
        .with_field(spec.method.as_bytes())
        .with_field(spec.authority.as_bytes())
        .with_field(spec.target.as_bytes())
        .with(&[u8::from(spec.keep_alive)]);
    for (name, value) in &spec.headers {
        hash = hash.with_field(name.as_bytes()).with_field(shown(name, value).as_bytes());
    }
    hash = match &spec.body {
        Body::None => hash.with(&[0]),
        Body::Text(text) => hash.with(&[1]).with_field(text),
        Body::Raw(bytes) => hash.with(&[2]).with_field(bytes),
        Body::Coded(coded) => hash.with(&[5]).with_field(coded.of.as_bytes()),
        Body::Supplied { supply: _, inquiry, of } => {
            hash.with(&[if *inquiry { 4 } else { 3 }]).with_field(of.as_bytes())
        }
    };
    // At the end, and only if there is something to say: plans without either keep their fingerprints.
    hash = match &spec.dialect {
        Dialect::Http => hash,
        Dialect::Framed(framing) => framing.fingerprint(hash),
        Dialect::WebSocket(action) => {
            hash.with_field(b"websocket").with_field(format!("{action:?}").as_bytes())
        }
    };
    for (tag, told) in [(b"cookies", spec.cookies), (b"pooling", spec.authority_slot)] {
        if told {
            hash = hash.with_field(tag);
        }
    }
    hash
}
