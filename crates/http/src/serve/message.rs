//! Requests to a port, their permissions, and replies.

use core::net::IpAddr;

use plimsoll_wire::http1::{Request as WireRequest, write_response_head};
use subtle::ConstantTimeEq as _;

use super::BODY_BYTES;

/// The field, with any value, that a request which changes something bears where no token is asked for: a web
/// page can send it to another origin only after asking, which is never granted.
pub const CONTROL_FIELD: &str = "x-plimsoll-control";

/// One request to a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The method, as sent.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query: everything after the first `?`; empty without one.
    pub query: String,
    /// The body; bytes that are not UTF-8 are replaced.
    pub body: String,
    /// The fields that decide about access: Authorization,
    pub authorization: Option<String>,
    /// Host,
    pub host: Option<String>,
    /// Origin,
    pub origin: Option<String>,
    /// Referer,
    pub referer: Option<String>,
    /// Sec-Fetch-Site,
    pub fetch_site: Option<String>,
    /// and whether there is a [`CONTROL_FIELD`].
    pub has_control_field: bool,
    /// The media types that the reply may have; several fields as one.
    pub accept: Option<String>,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// More header fields.
    pub fields: Vec<(String, String)>,
}

impl Reply {
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

    /// An error reply to a request.
    pub fn problem(status: u16, message: &str) -> Self {
        Self::text(status, format!("error: {message}"))
    }

    /// Adds a header field to the reply.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }
}

pub(super) fn write_reply(out: &mut Vec<u8>, head_request: bool, stays: bool, reply: &Reply) {
    let mut fields = vec![("cache-control".to_owned(), "no-store".to_owned())];
    fields.extend(reply.fields.iter().cloned());
    let length = reply.body.len() as u64;
    write_response_head(out, reply.status, Some(reply.content_type), length, !stays, &fields);
    if !head_request {
        out.extend_from_slice(&reply.body);
    }
}

impl Request {
    /// The request with the bytes `raw`, whose framing is in `whole`.
    pub(super) fn new(whole: &WireRequest<'_>, raw: &[u8]) -> Result<Self, Reply> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let target = text(whole.target);
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut request = Self {
            method: text(whole.method),
            path: path.to_owned(),
            query: query.to_owned(),
            ..Self::default()
        };
        let body = request.read_fields(raw).map_err(|name| {
            let message = format!("the field {name} stands twice, and it decides who may ask");
            Reply::problem(400, &message)
        })?;
        if body.len() as u64 != whole.body_bytes {
            // Chunked, or followed by another request.
            return Err(Reply::problem(411, "send one request with a content-length"));
        }
        if body.len() > BODY_BYTES {
            return Err(Reply::problem(413, "the body is too large"));
        }
        request.body = text(body);
        Ok(request)
    }

    /// Returns `true` if the method is GET or HEAD, which change nothing.
    pub fn reads(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    /// Returns `true` if a page in somebody's browser could have sent it.
    fn may_be_of_a_web_page(&self) -> bool {
        // `none` means that a person typed the address.
        let elsewhere = |site: &str| !matches!(site, "none" | "same-origin");
        self.origin.is_some()
            || self.fetch_site.as_deref().is_some_and(elsewhere)
            || self.referer.as_deref().is_some_and(|referer| !self.is_own_page(referer))
            || !self.host.as_deref().is_none_or(is_no_name)
    }

    /// Returns `true` if a Referer is a page of the host that was asked.
    fn is_own_page(&self, referer: &str) -> bool {
        let authority = referer.strip_prefix("http://").map(|rest| rest.split(['/', '?', '#']).next());
        authority.flatten().zip(self.host.as_deref()).is_some_and(|(of, host)| of.eq_ignore_ascii_case(host))
    }

    /// Reads the fields that matter; returns the bytes after the head. The head was found sound before.
    ///
    /// # Errors
    /// The name of a field that decides about access, if it occurs twice: another reader of the request could
    /// see the other one (RFC 9112 section 3.2).
    fn read_fields<'a>(&mut self, raw: &'a [u8]) -> Result<&'a [u8], &'static str> {
        let (mut rest, mut in_head) = (raw, false);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
            rest = &rest[end + 1..];
            if line.is_empty() && in_head {
                return Ok(rest);
            }
            // Empty lines may come before the first one.
            in_head |= !line.is_empty();
            let line = String::from_utf8_lossy(line);
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            let (name, deciding) = match name.to_ascii_lowercase().as_str() {
                "authorization" => ("authorization", &mut self.authorization),
                "host" => ("host", &mut self.host),
                "origin" => ("origin", &mut self.origin),
                "referer" => ("referer", &mut self.referer),
                "sec-fetch-site" => ("sec-fetch-site", &mut self.fetch_site),
                CONTROL_FIELD => {
                    self.has_control_field = true;
                    continue;
                }
                "accept" => {
                    let before = self.accept.take();
                    self.accept =
                        Some(before.map_or(value.to_owned(), |before| format!("{before}, {value}")));
                    continue;
                }
                _ => continue,
            };
            if deciding.replace(value.to_owned()).is_some() {
                return Err(name);
            }
        }
        Ok(rest)
    }
}

/// The clients that may use the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Any client: for ports that only report.
    Anyone,
    /// Programs on this machine, of a port that only reports: as [`Local`](Self::Local), without the field.
    LocalReaders,
    /// Programs on this machine. Requests are refused that a web page in somebody's browser could have sent:
    /// those with an Origin or another page's Referer, those that the browser says come from another site,
    /// and those whose Host is a name other than `localhost` (DNS rebinding). Methods other than GET and HEAD
    /// need a [`CONTROL_FIELD`] besides.
    Local,
    /// Bearers of this token (`Authorization: Bearer …`).
    Token(String),
}

impl Access {
    /// The reply to a request that is not to be answered.
    pub(super) fn refusal(&self, request: &Request) -> Option<Reply> {
        let token = match self {
            Self::Anyone => return None,
            Self::LocalReaders if request.may_be_of_a_web_page() => {
                let message = "requests of web pages, and those to a name other than localhost, are not \
                               answered on a loopback address: ask for the address itself";
                return Some(Reply::problem(403, message));
            }
            Self::LocalReaders => return None,
            Self::Local if request.may_be_of_a_web_page() => {
                let message = "requests of web pages, and those to a name other than localhost, need a token \
                               here: start the run with --control-token";
                return Some(Reply::problem(403, message));
            }
            Self::Local if request.reads() || request.has_control_field => return None,
            Self::Local => {
                let message = format!(
                    "a request that changes something needs a field that no web page can send: \
                     `{CONTROL_FIELD}: 1`, with curl -H '{CONTROL_FIELD}: 1'"
                );
                return Some(Reply::problem(403, &message));
            }
            Self::Token(token) => token,
        };
        let given = request.authorization.as_deref().and_then(|value| {
            let (scheme, given) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
        });
        // The time of the comparison does not reveal where a wrong token begins to differ.
        let right = given.is_some_and(|given| bool::from(given.as_bytes().ct_eq(token.as_bytes())));
        (!right).then(|| {
            Reply::problem(401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`")
                .with_field("www-authenticate", "Bearer")
        })
    }
}

/// Returns `true` if a Host field has an address, or `localhost`: the one name that cannot be made to mean
/// another machine.
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

    fn read(raw: &str) -> Result<Request, Reply> {
        let mut reader = RequestServer::new();
        let mut input = raw.as_bytes();
        let whole = reader.next(&Limits::default(), &mut RequestMemo::new(), &mut input);
        Request::new(&whole.expect("it is sound").expect("it is whole"), raw.as_bytes())
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
        let of = |length: usize| {
            format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{}", "x".repeat(length))
        };
        assert_eq!(read(&of(BODY_BYTES)).unwrap().body.len(), BODY_BYTES);
        assert_eq!(read(&of(BODY_BYTES + 1)).unwrap_err().status, 413);
    }

    #[test]
    fn only_who_bears_the_token_is_let_in() {
        let guard = Access::Token("secret".to_owned());
        let refused = |authorization: Option<&str>| {
            let authorization = authorization.map(ToOwned::to_owned);
            let request = Request { authorization, ..Request::default() };
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
        let status = |line: &str, fields: &str| {
            let request = read(&format!("{line} HTTP/1.1\r\n{fields}\r\n")).expect("it is whole");
            let status = Access::Local.refusal(&request).map(|reply| reply.status);
            assert_eq!(Access::LocalReaders.refusal(&request).map(|reply| reply.status), status, "{fields}");
            status
        };
        for host in ["127.0.0.1:8080", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:80", "[::1]"] {
            assert_eq!(status("GET /", &format!("host: {host}\r\n")), None, "{host}");
        }
        assert_eq!(status("GET /", ""), None);
        for host in ["evil.test:8080", "evil.test", "127.0.0.1.evil.test:1", "localhost.evil.test", ""] {
            assert_eq!(status("GET /", &format!("host: {host}\r\n")), Some(403), "{host}");
        }
        let here = "host: 127.0.0.1:1\r\n";
        for (fields, refused) in [
            ("origin: http://evil.test", true),
            ("origin: null", true),
            // An image, a link or a navigation: no Origin comes with these.
            ("sec-fetch-site: cross-site", true),
            ("Sec-Fetch-Site: same-site", true),
            ("sec-fetch-site: none", false),
            ("sec-fetch-site: same-origin", false),
            ("referer: https://evil.test/", true),
            ("Referer: http://evil.test/?http://127.0.0.1:1/", true),
            ("referer: http://127.0.0.1:12/", true),
            ("referer: http://127.0.0.1:1@evil.test/", true),
            ("referer: about:blank", true),
            ("referer: http://127.0.0.1:1", false),
            ("referer: http://127.0.0.1:1/stat?x", false),
        ] {
            let expected = refused.then_some(403);
            assert_eq!(status("GET /config?rps=1", &format!("{here}{fields}\r\n")), expected, "{fields}");
        }
        let named = read("GET / HTTP/1.1\r\nhost: evil.test\r\n\r\n").unwrap();
        assert_eq!(Access::Anyone.refusal(&named), None);
    }

    /// Symptom: of two fields the last one counted, so that a foreign name could stand before it.
    #[test]
    fn fields_that_decide_come_once() {
        for (first, second) in [
            ("Host: evil.test", "Host: localhost"),
            ("Sec-Fetch-Site: cross-site", "sec-fetch-site: none"),
            ("Referer: http://evil.test/", "Referer: http://localhost/"),
            ("Authorization: Bearer a", "Authorization: Bearer t"),
        ] {
            let reply = read(&format!("GET / HTTP/1.1\r\n{first}\r\n{second}\r\n\r\n")).unwrap_err();
            assert_eq!(reply.status, 400, "{first}");
        }
    }

    #[test]
    fn a_change_without_a_token_needs_a_field_that_no_web_page_sends() {
        let change = |fields: &str| {
            let request = read(&format!("POST /rate HTTP/1.1\r\nhost: localhost:1\r\n{fields}\r\n")).unwrap();
            [Access::Local, Access::Token("t".to_owned()), Access::Anyone]
                .map(|access| access.refusal(&request))
        };
        let [local, _, anyone] = change("");
        let refusal = local.expect("it could be a form's");
        assert_eq!((refusal.status, anyone), (403, None));
        let text = String::from_utf8(refusal.body).unwrap();
        assert!(text.contains("curl -H 'x-plimsoll-control: 1'"), "{text}");
        assert_eq!(change("X-Plimsoll-Control: 1\r\n")[0], None);
        assert_eq!(change("x-plimsoll-control:\r\n")[0], None);
        // A token is such a field itself.
        assert_eq!(change("authorization: Bearer t\r\n")[1], None);
    }
}
