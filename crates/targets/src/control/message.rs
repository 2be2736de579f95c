//! Requests to the control port, who may send them, and replies.

use core::net::IpAddr;

use plimsoll_wire::http1::{Request, write_response_head};
use subtle::ConstantTimeEq as _;

use super::BODY_BYTES;

/// One request to the control port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlRequest {
    /// The method, as sent.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// What follows the first `?`; empty without one.
    pub query: String,
    /// The body; bytes that are no UTF-8 are replaced.
    pub body: String,
    /// The fields that decide who may ask: Authorization,
    pub authorization: Option<String>,
    /// Host,
    pub host: Option<String>,
    /// and Origin.
    pub origin: Option<String>,
    /// The media types that the reply may have; several fields as one.
    pub accept: Option<String>,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlReply {
    /// The status.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// More header fields.
    pub fields: Vec<(String, String)>,
}

impl ControlReply {
    /// A reply in JSON.
    pub fn json(status: u16, body: String) -> Self {
        Self::new(status, "application/json", body.into_bytes())
    }

    /// A reply of any type.
    pub const fn new(status: u16, content_type: &'static str, body: Vec<u8>) -> Self {
        Self { status, content_type, body, fields: Vec::new() }
    }

    /// A reply in words.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        let mut body = body.into();
        if !body.ends_with('\n') {
            body.push('\n');
        }
        Self::new(status, "text/plain; charset=utf-8", body.into_bytes())
    }

    /// Says what is wrong with a request.
    pub fn problem(status: u16, message: &str) -> Self {
        Self::text(status, format!("error: {message}"))
    }

    /// The same with another header field.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }
}

pub(super) fn write_reply(out: &mut Vec<u8>, head_request: bool, stays: bool, reply: &ControlReply) {
    let mut fields = vec![("cache-control".to_owned(), "no-store".to_owned())];
    fields.extend(reply.fields.iter().cloned());
    let length = reply.body.len() as u64;
    write_response_head(out, reply.status, Some(reply.content_type), length, !stays, &fields);
    if !head_request {
        out.extend_from_slice(&reply.body);
    }
}

impl ControlRequest {
    /// The request whose bytes are `raw`, of which `whole` knows the framing.
    pub(super) fn new(whole: &Request<'_>, raw: &[u8]) -> Result<Self, ControlReply> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let target = text(whole.target);
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut request = Self {
            method: text(whole.method),
            path: path.to_owned(),
            query: query.to_owned(),
            ..Self::default()
        };
        let body = request.read_fields(raw);
        if body.len() as u64 != whole.body_bytes {
            // Chunked, or followed by another request.
            return Err(ControlReply::problem(411, "send one request with a content-length"));
        }
        if body.len() > BODY_BYTES {
            return Err(ControlReply::problem(413, "the body is too large"));
        }
        request.body = text(body);
        Ok(request)
    }

    /// Reads the fields that matter; returns what follows the head. The head was found sound before.
    fn read_fields<'a>(&mut self, raw: &'a [u8]) -> &'a [u8] {
        let (mut rest, mut in_head) = (raw, false);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
            rest = &rest[end + 1..];
            if line.is_empty() && in_head {
                return rest;
            }
            // Empty lines may come before the first one.
            in_head |= !line.is_empty();
            let line = String::from_utf8_lossy(line);
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "authorization" => self.authorization = Some(value.to_owned()),
                "host" => self.host = Some(value.to_owned()),
                "origin" => self.origin = Some(value.to_owned()),
                "accept" => {
                    let before = self.accept.take();
                    self.accept =
                        Some(before.map_or(value.to_owned(), |before| format!("{before}, {value}")));
                }
                _ => {}
            }
        }
        rest
    }
}

/// Who may use the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever reaches it: for what only tells.
    Anyone,
    /// Programs on this machine. Requests are refused that a web page in somebody's browser could have sent:
    /// those with an Origin, and those whose Host is a name other than `localhost` (DNS rebinding).
    Local,
    /// Who bears this token (`Authorization: Bearer …`).
    Token(String),
}

impl Access {
    /// The reply to a request that is not to be answered.
    pub(super) fn refusal(&self, request: &ControlRequest) -> Option<ControlReply> {
        let token = match self {
            Self::Anyone => return None,
            Self::Local => {
                let local = request.host.as_deref().is_none_or(is_no_name);
                return (request.origin.is_some() || !local).then(|| {
                    let message = "requests of web pages are refused, and those to a name other than localhost; \
                                   with --control-token they have to bear the token instead";
                    ControlReply::problem(403, message)
                });
            }
            Self::Token(token) => token,
        };
        let given = request.authorization.as_deref().and_then(|value| {
            let (scheme, given) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
        });
        // The time says nothing about where a wrong token begins to differ.
        let right = given.is_some_and(|given| bool::from(given.as_bytes().ct_eq(token.as_bytes())));
        (!right).then(|| {
            ControlReply::problem(401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`")
                .with_field("www-authenticate", "Bearer")
        })
    }
}

/// Whether a Host field has an address, or the one name that cannot be made to mean another machine.
fn is_no_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::http1::{Limits, RequestMemo, RequestServer};

    use super::*;

    fn read(raw: &str) -> Result<ControlRequest, ControlReply> {
        let mut reader = RequestServer::new();
        let mut input = raw.as_bytes();
        let whole = reader.next(&Limits::default(), &mut RequestMemo::new(), &mut input);
        ControlRequest::new(&whole.expect("it is sound").expect("it is whole"), raw.as_bytes())
    }

    #[test]
    fn a_request_is_read() {
        let request = read(
            "\r\nPOST /rate?a=b?c HTTP/1.1\r\nHOST: localhost:1\r\nauthorization:  Bearer x y \r\n\
             Content-Length: 4\r\n\r\n5k/s",
        )
        .unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/rate"));
        assert_eq!((request.query.as_str(), request.body.as_str()), ("a=b?c", "5k/s"));
        assert_eq!(request.authorization.as_deref(), Some("Bearer x y"));
        let request = read("GET / HTTP/1.1\r\naccept: a/b;q=0.5\r\nAccept: c/d\r\n\r\n").unwrap();
        assert_eq!(request.accept.as_deref(), Some("a/b;q=0.5, c/d"));
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n5\r\n0\r\n\r\n";
        assert_eq!(read(chunked).unwrap_err().status, 411);
        assert_eq!(read("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n").unwrap_err().status, 411);
        let large = format!("POST / HTTP/1.1\r\ncontent-length: 5000\r\n\r\n{}", "x".repeat(5000));
        assert_eq!(read(&large).unwrap_err().status, 413);
    }

    #[test]
    fn only_who_bears_the_token_is_let_in() {
        let guard = Access::Token("secret".to_owned());
        let refused = |authorization: Option<&str>| {
            let authorization = authorization.map(ToOwned::to_owned);
            let request = ControlRequest { authorization, ..ControlRequest::default() };
            guard.refusal(&request).map(|reply| reply.status)
        };
        assert_eq!(refused(Some("Bearer secret")), None);
        assert_eq!(refused(Some("bearer  secret")), None);
        for wrong in ["Bearer secreT", "Bearer secret2", "Bearer secre", "Bearer ", "Basic secret", "secret"]
        {
            assert_eq!(refused(Some(wrong)), Some(401), "{wrong}");
        }
        assert_eq!(refused(None), Some(401));
    }

    #[test]
    fn without_a_token_web_pages_are_kept_out() {
        let guard = Access::Local;
        let refused = |host: Option<&str>, origin: Option<&str>| {
            let (host, origin) = (host.map(ToOwned::to_owned), origin.map(ToOwned::to_owned));
            guard.refusal(&ControlRequest { host, origin, ..ControlRequest::default() }).is_some()
        };
        for host in ["127.0.0.1:8080", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:80", "[::1]"] {
            assert!(!refused(Some(host), None), "{host}");
        }
        assert!(!refused(None, None));
        for host in ["evil.test:8080", "evil.test", "127.0.0.1.evil.test:1", "localhost.evil.test", ""] {
            assert!(refused(Some(host), None), "{host}");
        }
        assert!(refused(Some("127.0.0.1:1"), Some("http://evil.test")));
        assert!(refused(Some("127.0.0.1:1"), Some("null")));
        let named = ControlRequest { host: Some("evil.test".to_owned()), ..ControlRequest::default() };
        assert_eq!(Access::Anyone.refusal(&named), None);
    }
}
