//! Where figures are sent to, or asked from.

use std::fmt;

use plimsoll_core::Nanos;
use plimsoll_http::{Answer, AskError, Client, Deadline, Origin, Request};
use plimsoll_wire::tls::TlsConfigError;

/// The path for metrics of an OTLP receiver, below its base.
const PATH: &str = "/v1/metrics";

/// A receiver of OTLP over HTTP, or a server that is asked over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct Receiver {
    origin: Origin,
    path: String,
    headers: Vec<(String, String)>,
}

/// Without the values of headers, which are secrets.
impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&self.to_string()).finish()
    }
}

/// Reason why a text names no receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadReceiver(String);

impl fmt::Display for BadReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadReceiver {}

/// The URL, without the part behind its path.
impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.origin.is_secure() { "https" } else { "http" };
        let path = self.path.split('?').next().unwrap_or_default();
        write!(f, "{scheme}://{}{path}", self.origin.authority())
    }
}

impl Receiver {
    /// The receiver whose base this URL is: metrics go to `/v1/metrics` below it, unless it ends so.
    ///
    /// # Errors
    /// If the URL is not one that can be sent to.
    pub fn below(base: &str) -> Result<Self, BadReceiver> {
        Ok(Self::at(base)?.ending_with(PATH))
    }

    /// The one with this end of its path, which is added unless it is there.
    pub fn ending_with(mut self, end: &str) -> Self {
        if !self.path.ends_with(end) {
            let base = self.path.trim_end_matches('/');
            self.path = format!("{base}{end}");
        }
        self
    }

    /// The receiver at exactly this URL.
    ///
    /// # Errors
    /// If the URL is not one that can be sent to.
    pub fn at(url: &str) -> Result<Self, BadReceiver> {
        let bad = |what: &str| Err(BadReceiver(format!("`{}` {what}", url.escape_debug())));
        let (secure, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            _ => return bad("does not begin with http:// or https://"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        if authority.contains('@') {
            // The text is not shown: it is a secret.
            let what = "the URL of a receiver has a user in it: give credentials as a header";
            return Err(BadReceiver(what.to_owned()));
        }
        if url.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return bad("has characters that no URL has");
        }
        let port_at = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
        let (host, port) = match port_at {
            None => (authority, if secure { 443 } else { 80 }),
            Some(at) => match authority[at + 1..].parse::<u16>() {
                Ok(port) if port > 0 => (&authority[..at], port),
                _ => return bad("has no port from 1 to 65535 behind its colon"),
            },
        };
        if host.is_empty() {
            return bad("names no host");
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let origin = Origin::new(secure, authority.to_owned(), host.to_owned(), port);
        Ok(Self { origin, path, headers: Vec::new() })
    }

    /// Sets the header fields that every request bears.
    ///
    /// # Errors
    /// If one of them could not stand in a request.
    pub fn with_headers(mut self, headers: Vec<(String, String)>) -> Result<Self, BadReceiver> {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        for (name, value) in &headers {
            let ours = ["host", "content-type", "content-length", "connection", "transfer-encoding"];
            let is_ours = ours.iter().any(|known| known.eq_ignore_ascii_case(name));
            if name.is_empty() || !name.bytes().all(token) || is_ours {
                return Err(BadReceiver(format!(
                    "`{}` cannot be a header of an export",
                    name.escape_debug()
                )));
            }
            if value.chars().any(char::is_control) {
                return Err(BadReceiver(format!("the value of the header `{name}` has control characters")));
            }
        }
        self.headers = headers;
        Ok(self)
    }

    /// A client of the receiver, which takes answers of `most` bytes at most.
    ///
    /// # Errors
    /// No TLS for a receiver that wants it.
    pub(crate) fn client(&self, most: usize) -> Result<Client, TlsConfigError> {
        Client::new(self.origin.clone(), most)
    }

    /// Posts a body of this media type to the path of the receiver.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub(crate) fn post(
        &self,
        client: &Client,
        (media, body): (&str, &[u8]),
        deadline: Deadline<'_>,
    ) -> Result<Answer, AskError> {
        let request = Request::new("POST", &self.path).with_body(media, body);
        client.ask(&self.with_own_fields(request), deadline)
    }

    /// Asks for the path of the receiver with this query.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub(crate) fn get(
        &self,
        client: &Client,
        query: &str,
        deadline: Deadline<'_>,
    ) -> Result<Answer, AskError> {
        let target = format!("{}{query}", self.path);
        client.ask(&self.with_own_fields(Request::new("GET", &target)), deadline)
    }

    fn with_own_fields<'a>(&'a self, request: Request<'a>) -> Request<'a> {
        let fields = self.headers.iter();
        fields.fold(request, |request, (name, value)| request.with_field(name, value))
    }
}

/// Time that a request under way may still take after the run has ended.
pub(crate) const GRACE: Nanos = Nanos::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_receivers() {
        for (url, shown, host, port) in [
            ("http://localhost:4318", "http://localhost:4318/v1/metrics", "localhost", 4318),
            ("HTTP://a", "http://a/v1/metrics", "a", 80),
            ("https://a/", "https://a/v1/metrics", "a", 443),
            ("https://a/otlp/", "https://a/otlp/v1/metrics", "a", 443),
            ("http://[::1]:9/v1/metrics#x", "http://[::1]:9/v1/metrics", "[::1]", 9),
            ("http://[::1]", "http://[::1]/v1/metrics", "[::1]", 80),
        ] {
            let receiver = Receiver::below(url).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                (receiver.to_string().as_str(), receiver.origin.host(), receiver.origin.port()),
                (shown, host, port)
            );
        }
        assert_eq!(Receiver::at("http://a/x?key=1").expect("a URL").to_string(), "http://a/x");
        for bad in [
            "",
            "localhost:4318",
            "grpc://a",
            "http://",
            "http://:1",
            "http://a:0",
            "http://a:x",
            "http://a b",
        ] {
            assert!(Receiver::below(bad).is_err(), "{bad}");
        }
        let error = Receiver::below("http://me:secret@a/").expect_err("it has a user").to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn headers_that_would_break_a_request_are_refused() {
        let with = |name: &str, value: &str| {
            let receiver = Receiver::below("http://a").expect("a URL");
            receiver.with_headers(vec![(name.to_owned(), value.to_owned())])
        };
        let receiver = with("api-key", "secret").expect("a header");
        assert!(!format!("{receiver:?}").contains("secret"), "{receiver:?}");
        for (name, value) in
            [("", "x"), ("a b", "x"), ("a", "x\r\nb: c"), ("Content-Length", "1"), ("a:", "x")]
        {
            assert!(with(name, value).is_err(), "{name:?}: {value:?}");
        }
    }
}
