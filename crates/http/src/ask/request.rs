//! A request, and the server that it is for.

use core::net::{IpAddr, SocketAddr};

use super::AskError;

/// The scheme, host and port of a server (RFC 6454).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    secure: bool,
    authority: String,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin at this host and port, over TLS if `secure`. `authority` is the value of the Host field.
    pub const fn new(secure: bool, authority: String, host: String, port: u16) -> Self {
        Self { secure, authority, host, port }
    }

    /// Returns `true` if it is asked over TLS.
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// Host and port as in a URL.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The host: a name, or an address, IPv6 with or without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The host without the brackets of an IPv6 address.
    pub(super) fn bare_host(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }

    /// Returns `true` if the host is an address.
    pub(super) fn is_address(&self) -> bool {
        self.bare_host().parse::<IpAddr>().is_ok()
    }
}

impl From<SocketAddr> for Origin {
    fn from(address: SocketAddr) -> Self {
        Self::new(false, address.to_string(), address.ip().to_string(), address.port())
    }
}

/// One request.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    method: &'a str,
    target: &'a str,
    fields: Vec<(&'a str, &'a str)>,
    body: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// A request without a body. `target` is the path, with the query if there is one.
    pub const fn new(method: &'a str, target: &'a str) -> Self {
        Self { method, target, fields: Vec::new(), body: None }
    }

    /// Adds a header field.
    #[must_use]
    pub fn with_field(mut self, name: &'a str, value: &'a str) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Gives it a body of this media type.
    #[must_use]
    pub fn with_body(mut self, media: &'a str, body: &'a [u8]) -> Self {
        self.body = Some(body);
        self.with_field("content-type", media)
    }

    /// Gives it JSON for a body.
    #[must_use]
    pub fn with_json(self, json: &'a str) -> Self {
        self.with_body("application/json", json.as_bytes())
    }

    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// The bytes of the request. `stays` asks the server to keep the connection.
    ///
    /// # Errors
    /// A part would end before its place does: parts may have come from a server.
    pub(super) fn bytes(&self, origin: &Origin, stays: bool) -> Result<Vec<u8>, AskError> {
        let Self { method, target, fields, body } = self;
        let word = |part: &str| !part.is_empty() && !part.chars().any(|c| c.is_control() || c == ' ');
        let value = |part: &str| !part.chars().any(char::is_control);
        let mut parts = vec![(*method, word(method)), (target, word(target))];
        parts.extend(fields.iter().flat_map(|&(name, text)| [(name, word(name)), (text, value(text))]));
        if let Some((part, _)) = parts.into_iter().find(|(_, may)| !may) {
            return Err(AskError::Unwritable(part.to_owned()));
        }
        let connection = if stays { "keep-alive" } else { "close" };
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\nuser-agent: plimsoll\r\nconnection: {connection}\r\n",
            origin.authority
        );
        let length = body.map(|body| body.len().to_string());
        let length = length.as_deref().map(|length| ("content-length", length));
        for (name, value) in fields.iter().copied().chain(length) {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_request() {
        let origin = Origin::from(SocketAddr::from(([127, 0, 0, 1], 81)));
        let head = |line: &str, connection: &str| {
            format!(
                "{line} HTTP/1.1\r\nhost: 127.0.0.1:81\r\nuser-agent: plimsoll\r\nconnection: {connection}\r\n"
            )
        };
        let get = Request::new("GET", "/a?b");
        let bytes = |request: &Request<'_>, stays| request.bytes(&origin, stays).map(String::from_utf8);
        assert_eq!(bytes(&get, false), Ok(Ok(head("GET /a?b", "close") + "\r\n")));
        let post = Request::new("POST", "/").with_field("X-A", "b").with_json("{}");
        let fields = "X-A: b\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(bytes(&post, true), Ok(Ok(head("POST /", "keep-alive") + fields)));
    }

    #[test]
    fn hosts_are_names_or_addresses() {
        for (host, bare, is_address) in [
            ("a.test", "a.test", false),
            ("[::1]", "::1", true),
            ("::1", "::1", true),
            ("1.2.3.4", "1.2.3.4", true),
        ] {
            let origin = Origin::new(false, String::new(), host.to_owned(), 1);
            assert_eq!((origin.bare_host(), origin.is_address()), (bare, is_address), "{host}");
        }
        let origin = Origin::from("[::1]:80".parse::<SocketAddr>().unwrap());
        assert_eq!((origin.authority(), origin.host()), ("[::1]:80", "::1"));
    }
}
