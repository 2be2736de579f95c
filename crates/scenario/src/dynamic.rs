//! Requests that are made while the run goes on.

mod parse;
#[cfg(test)]
mod tests;

use plimsoll_core::redaction::is_secret_header;
use plimsoll_wire::http2::hpack::put_literal;

use crate::header::{is_token, is_value};
use crate::slot::write_decimal;
use crate::{FieldList, ForwardProxy, Scheme, SentRequest, reference};

/// A request that a script made, or changed. Its memory is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicRequest {
    /// The method.
    pub method: Vec<u8>,
    /// Path and query; visible ASCII characters only.
    pub path: Vec<u8>,
    /// `host[:port]`. A field called Host takes its place.
    pub authority: Vec<u8>,
    /// Other fields, without pseudo-headers. A content-length is ignored: it is that of the body.
    pub fields: FieldList,
    /// The content.
    pub body: Vec<u8>,
    /// Bytes that are sent as they are instead, over HTTP/1.1 only: wrk's `request`. They hold
    /// [`raw_count`](Self::raw_count) whole requests.
    pub raw: Vec<u8>,
    /// Requests in `raw`.
    pub raw_count: u32,
}

impl SentRequest {
    /// Becomes the request that a script made, replacing its content. Of `raw` bytes, only the path of the
    /// first request is taken.
    pub fn copy_from(&mut self, dynamic: &DynamicRequest) {
        self.method.clone_from(&dynamic.method);
        self.path.clear();
        let of_raw = dynamic.raw.split(|&byte| byte == b' ').nth(1);
        self.path.extend_from_slice(of_raw.unwrap_or(&dynamic.path));
        self.authority.clone_from(&dynamic.authority);
        self.fields.clone_from(&dynamic.fields);
        self.body.clone_from(&dynamic.body);
    }
}

impl DynamicRequest {
    /// Returns `true` if there is nothing to send.
    pub fn is_nothing(&self) -> bool {
        self.raw.is_empty() && self.method.is_empty()
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.method.clear();
        self.path.clear();
        self.authority.clear();
        self.fields.clear();
        self.body.clear();
        self.raw.clear();
        self.raw_count = 0;
    }

    /// Becomes the request that was sent, replacing its content.
    pub fn copy_from(&mut self, sent: &SentRequest) {
        self.clear();
        self.method.extend_from_slice(&sent.method);
        self.path.extend_from_slice(&sent.path);
        self.authority.extend_from_slice(&sent.authority);
        for (name, value) in sent.fields.iter().filter(|(name, _)| *name != b"content-length") {
            self.fields.push(name, value);
        }
        self.body.extend_from_slice(&sent.body);
    }

    /// Returns the number of whole requests in `raw`: wrk's scripts join several for pipelining. Allocates.
    ///
    /// # Errors
    /// If it is empty, is not HTTP/1.1, or ends in the middle of a request: a server would wait for the rest
    /// for ever.
    pub fn count_http1(raw: &[u8]) -> Result<u32, String> {
        parse::count(raw)
    }

    /// Returns the length of the first whole request of `raw` in bytes; the length of `raw` if there is none.
    /// Allocates.
    pub fn first_http1(raw: &[u8]) -> usize {
        parse::first(raw)
    }

    /// The one request that `raw` holds, as fields: for wrk's scripts over HTTP/2, or through a proxy that
    /// forwards requests. Allocates.
    ///
    /// # Errors
    /// Bytes that [`count_http1`](Self::count_http1) refuses; more than one request; a body in chunks; a
    /// request that does not [pass](Self::check).
    pub fn parse_http1(raw: &[u8]) -> Result<Self, String> {
        parse::parse(raw)
    }

    /// Makes `authority` that of its URL, and keeps the one that it has as its Host field.
    pub fn address(&mut self, authority: &[u8]) {
        if self.authority != authority {
            self.fields.push(b"host", &self.authority);
            self.authority.clear();
            self.authority.extend_from_slice(authority);
        }
    }

    /// If the path is a whole URL of http or https, leaves its path and query, puts its authority in the
    /// place of the other, and returns whether it is https. Call it before [`check`](Self::check).
    pub fn take_origin(&mut self) -> Option<bool> {
        let (origin, rest) = reference::origin(&self.path)?;
        let (https, from) = (origin.https, self.path.len() - rest.len());
        self.authority.clear();
        self.authority.extend_from_slice(origin.authority);
        self.path.drain(..from);
        let end = self.path.iter().position(|&byte| byte == b'#').unwrap_or(self.path.len());
        self.path.truncate(end);
        if !self.path.starts_with(b"/") {
            self.path.insert(0, b'/');
        }
        Some(https)
    }

    /// Returns `true` if the method is HEAD, so that the response has no body regardless of its head. It is
    /// not known here whether the last request of raw bytes is a HEAD.
    pub fn is_head(&self) -> bool {
        self.method == b"HEAD"
    }

    /// Returns `true` if the method is idempotent, as
    /// [`RequestTemplate::is_idempotent`](crate::RequestTemplate::is_idempotent) says; that of raw bytes is
    /// not known here.
    pub fn is_idempotent(&self) -> bool {
        self.raw.is_empty() && is_idempotent(&self.method)
    }

    /// Checks that the request can be sent as it is: a legal method and path (or whole URL, which names the
    /// server), and legal names and values of fields. A refused request could be read as another one than it
    /// is, or as two. Of [`raw`](Self::raw) bytes only the number of requests is checked, which
    /// [`count_http1`](Self::count_http1) counts.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn check(&self) -> Result<(), String> {
        if !self.raw.is_empty() {
            return match self.raw_count {
                0 => Err("the bytes are not a whole request".to_owned()),
                _ => Ok(()),
            };
        }
        if self.method.is_empty() || !self.method.iter().copied().all(is_token) {
            return Err(format!("`{}` is not a method", shown(&self.method)));
        }
        if self.method == b"CONNECT" {
            return Err("the method CONNECT opens a tunnel and cannot be used for load".to_owned());
        }
        let asterisk = self.path == b"*" && self.method == b"OPTIONS";
        let is_url = reference::origin(&self.path).is_some();
        if !self.path.starts_with(b"/") && !asterisk && !is_url {
            return Err(format!("the path `{}` does not start with `/`", shown(&self.path)));
        }
        let visible = |bytes: &[u8]| bytes.iter().find(|byte| !byte.is_ascii_graphic()).copied();
        if let Some(byte) = visible(&self.path) {
            return Err(format!("`{}` is not allowed in a path: write %{byte:02X}", byte.escape_ascii()));
        }
        if let Some(byte) = visible(&self.authority) {
            return Err(format!("`{}` is not allowed in a host", byte.escape_ascii()));
        }
        let mut hosts = 0;
        for (name, value) in self.fields.iter() {
            if name.is_empty() || !name.iter().copied().all(is_token) {
                return Err(format!("`{}` is not the name of a header", shown(name)));
            }
            // The value is not shown: it may be a secret.
            if !is_value(value) {
                return Err(format!("the value of the header `{}` has a control character", shown(name)));
            }
            if name == b"transfer-encoding" {
                return Err(
                    "the header `transfer-encoding` cannot be set: bodies are sent with their length"
                        .to_owned(),
                );
            }
            if name == b"host" {
                hosts += 1;
                if let Some(byte) = visible(value) {
                    return Err(format!("`{}` is not allowed in a host", byte.escape_ascii()));
                }
            }
        }
        if hosts > 1 { Err("the header `host` is there twice".to_owned()) } else { Ok(()) }
    }

    /// Appends the whole request as HTTP/1.1 sends it to the server, or to the proxy that forwards it, with
    /// Host and Content-Length; [`raw`](Self::raw) as it is, for a server. It has to [pass](Self::check).
    pub fn write_http1(&self, forward: Option<&ForwardProxy>, out: &mut Vec<u8>) {
        if !self.raw.is_empty() {
            out.extend_from_slice(&self.raw);
            return;
        }
        let (scheme, authority) = match forward {
            Some(_) => (&b"http://"[..], &*self.authority),
            None => (&[][..], &[][..]),
        };
        // The asterisk of OPTIONS is an empty path of a URL (RFC 9112 section 3.2.4).
        let path = if forward.is_some() && self.path == b"*" { &[][..] } else { &self.path };
        for part in [&*self.method, b" ", scheme, authority, path, b" HTTP/1.1\r\n"] {
            out.extend_from_slice(part);
        }
        if let Some(value) = forward.and_then(|forward| forward.authorization.as_deref())
            && self.fields.get("proxy-authorization").is_none()
        {
            write_field(b"proxy-authorization", value.as_bytes(), out);
        }
        if !self.host().is_empty() {
            write_field(b"host", self.host(), out);
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| !is_ours(name)) {
            write_field(name, value, out);
        }
        if let Some(length) = self.content_length() {
            out.extend_from_slice(b"content-length: ");
            write_decimal(length, out);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.body);
    }

    /// Appends its header block for HTTP/2, without use of the dynamic table. Fields about connections are
    /// left out (RFC 9113 section 8.2.2). It has to [pass](Self::check), and must not be [`raw`](Self::raw):
    /// [`parse_http1`](Self::parse_http1) makes fields of that.
    ///
    /// On a connection with a book,
    /// [`HeaderBlockCache::begin`](plimsoll_wire::http2::HeaderBlockCache::begin) comes first.
    pub fn write_block(&self, scheme: Scheme, out: &mut Vec<u8>) {
        put_literal(out, b":method", &self.method, false);
        put_literal(out, b":scheme", scheme.as_str().as_bytes(), false);
        put_literal(out, b":path", &self.path, false);
        if !self.host().is_empty() {
            put_literal(out, b":authority", self.host(), false);
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| !is_ours(name)) {
            if !self.is_of_connection(name, value) {
                let secret = std::str::from_utf8(name).is_ok_and(is_secret_header);
                put_literal(out, name, trimmed(value), secret);
            }
        }
        if let Some(length) = self.content_length() {
            let mut digits = [0; 20];
            put_literal(out, b"content-length", decimal(length, &mut digits), false);
        }
    }

    fn host(&self) -> &[u8] {
        self.fields.get("host").unwrap_or(&self.authority)
    }

    /// The content-length that is sent with it, if one is. Methods that define a meaning for content have one
    /// even when there is none (RFC 9110 section 8.6).
    pub fn content_length(&self) -> Option<u64> {
        let has_one = !self.body.is_empty() || matches!(self.method.as_slice(), b"POST" | b"PUT" | b"PATCH");
        has_one.then_some(self.body.len() as u64)
    }

    /// Returns `true` if a field is about a connection of HTTP/1.1, by its name or because a Connection field
    /// names it.
    fn is_of_connection(&self, name: &[u8], value: &[u8]) -> bool {
        match name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => true,
            b"te" => !value.eq_ignore_ascii_case(b"trailers"),
            _ => self.fields.all("connection").any(|list| {
                list.split(|&byte| byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(name))
            }),
        }
    }
}

/// Returns `true` if we write the field ourselves, from other parts of the request.
fn is_ours(name: &[u8]) -> bool {
    matches!(name, b"host" | b"content-length")
}

/// Returns `true` if requests of this method change no more if they are processed twice (RFC 9110 section
/// 9.2.2).
pub(crate) fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
}

fn write_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// HTTP/2 has no white space around a value (RFC 9113 section 8.2.1).
fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The decimal digits of `number`, at the end of `digits`.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

/// The start of some bytes, for a message.
fn shown(bytes: &[u8]) -> String {
    let text = bytes[..bytes.len().min(60)].escape_ascii().to_string();
    if bytes.len() > 60 { text + "…" } else { text }
}
