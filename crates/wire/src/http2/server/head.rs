//! Request heads: decoding and checking their header blocks.

use crate::http2::fields::{check_field, check_value, content_length};
use crate::http2::heads::{HeadFault, decode};
use crate::http2::hpack::Decoder;
use crate::http2::{ConnectionError, FieldLimits};

use super::Span;

/// The header field by which a client names a request, for the truth log of a server.
const ID_HEADER: &[u8] = b"x-plimsoll-id";

/// The header field by which a client names the status that a server is to answer with.
const STATUS_HEADER: &[u8] = b"x-plimsoll-status";

/// The header field by which a client of WebSocket offers subprotocols.
const SUBPROTOCOL_HEADER: &[u8] = b"sec-websocket-protocol";

/// Text beyond this is not kept in a place that will be used again.
const TEXT_KEPT: usize = 4096;

/// A valid request head.
#[derive(Debug, Default)]
pub(super) struct RequestHead {
    /// The text that the spans refer to, and nothing else.
    pub(super) text: Vec<u8>,
    pub(super) method: Span,
    pub(super) path: Span,
    pub(super) id: Option<Span>,
    pub(super) status: Option<Span>,
    pub(super) timeout: Option<Span>,
    /// The value of `:protocol` (RFC 8441 section 4).
    pub(super) protocol: Option<Span>,
    pub(super) subprotocols: Option<Span>,
    pub(super) accept: Option<Span>,
    pub(super) content_length: Option<u64>,
    pub(super) head_request: bool,
    /// A CONNECT request. Without a protocol it is valid, but there is nothing that it could be connected to.
    pub(super) connect: bool,
}

impl Clone for RequestHead {
    fn clone(&self) -> Self {
        let mut clone = Self::default();
        clone.clone_from(self);
        clone
    }

    /// Without an allocation where there is room.
    #[inline]
    fn clone_from(&mut self, other: &Self) {
        self.text.clear();
        self.text.shrink_to(TEXT_KEPT);
        self.text.extend_from_slice(&other.text);
        self.method = other.method;
        self.path = other.path;
        self.id = other.id;
        self.status = other.status;
        self.timeout = other.timeout;
        self.protocol = other.protocol;
        self.subprotocols = other.subprotocols;
        self.accept = other.accept;
        self.content_length = other.content_length;
        self.head_request = other.head_request;
        self.connect = other.connect;
    }
}

impl RequestHead {
    fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(TEXT_KEPT);
        let text = std::mem::take(&mut self.text);
        *self = Self { text, ..Self::default() };
    }

    fn put(&mut self, bytes: &[u8]) -> Span {
        let start = self.text.len() as u32;
        self.text.extend_from_slice(bytes);
        Span { start, len: bytes.len() as u32 }
    }
}

/// Reads heads. One per connection, for its buffers.
#[derive(Debug, Default)]
pub(super) struct HeadReader {
    /// The head of the last block.
    pub(super) head: RequestHead,
    authority: Vec<u8>,
    host: Vec<u8>,
    /// The pseudo-header fields and the other fields that came.
    seen: u8,
    fault: Option<&'static str>,
    /// Extended CONNECT requests are allowed.
    extended_connect: bool,
    /// Name of the field by which clients say how long they wait; empty if there is none.
    timeout_field: &'static str,
}

const METHOD: u8 = 1;
const SCHEME: u8 = 2;
const PATH: u8 = 4;
const AUTHORITY: u8 = 8;
const HOST: u8 = 16;
const REGULAR: u8 = 32;
const PROTOCOL: u8 = 64;

impl HeadReader {
    /// A reader that allows extended CONNECT requests (RFC 8441), or does not, and that knows the field with
    /// the time that clients wait, unless its name is empty.
    pub(super) fn new(extended_connect: bool, timeout_field: &'static str) -> Self {
        Self { extended_connect, timeout_field, ..Self::default() }
    }

    /// Decodes the block of a request head into `head`.
    pub(super) fn read(
        &mut self,
        decoder: &mut Decoder,
        limits: &FieldLimits,
        block: &[u8],
    ) -> Result<Result<(), HeadFault>, ConnectionError> {
        self.head.clear();
        (self.seen, self.fault) = (0, None);
        let large = decode(decoder, limits, block, |name, value| self.field(name, value))?;
        Ok(if large { Err(HeadFault::TooLarge) } else { self.finish().map_err(HeadFault::Malformed) })
    }

    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        let taken = if let [b':', ..] = name { self.pseudo(name, value) } else { self.regular(name, value) };
        self.fault = taken.err();
    }

    /// RFC 9113 section 8.3 and 8.3.1.
    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        let field = match name {
            b":method" => METHOD,
            b":scheme" => SCHEME,
            b":path" => PATH,
            b":authority" => AUTHORITY,
            b":protocol" if self.extended_connect => PROTOCOL,
            _ => return Err("an unknown pseudo-header field"),
        };
        if self.seen & REGULAR != 0 {
            return Err("a pseudo-header field after other fields");
        }
        if self.seen & field != 0 {
            return Err("a pseudo-header field that came before");
        }
        self.seen |= field;
        check_value(value)?;
        match field {
            METHOD if value.is_empty() => return Err("an empty :method"),
            METHOD => {
                self.head.method = self.head.put(value);
                self.head.head_request = value == b"HEAD";
                self.head.connect = value == b"CONNECT";
            }
            PATH if value.is_empty() => return Err("an empty :path"),
            PATH => self.head.path = self.head.put(value),
            AUTHORITY => value.clone_into(&mut self.authority),
            PROTOCOL => self.head.protocol = Some(self.head.put(value)),
            _ => {}
        }
        Ok(())
    }

    fn regular(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        self.seen |= REGULAR;
        check_field(name, value)?;
        match name {
            b"content-length" => {
                self.head.content_length = Some(content_length(value, self.head.content_length)?);
            }
            b"host" if self.seen & HOST != 0 => return Err("several host fields"),
            b"host" => {
                self.seen |= HOST;
                value.clone_into(&mut self.host);
            }
            STATUS_HEADER if self.head.status.is_none() => self.head.status = Some(self.head.put(value)),
            SUBPROTOCOL_HEADER if self.head.subprotocols.is_none() => {
                self.head.subprotocols = Some(self.head.put(value));
            }
            b"accept" if self.head.accept.is_none() => self.head.accept = Some(self.head.put(value)),
            ID_HEADER if self.head.id.is_none() => self.head.id = Some(self.head.put(value)),
            _ if name == self.timeout_field.as_bytes() && self.head.timeout.is_none() => {
                self.head.timeout = Some(self.head.put(value));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), &'static str> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let both = AUTHORITY | HOST;
        if self.seen & both == both && !self.authority.eq_ignore_ascii_case(&self.host) {
            return Err(":authority and host differ");
        }
        let is_extended = self.head.protocol.is_some();
        if is_extended && !self.head.connect {
            return Err(":protocol in a request that is no CONNECT");
        }
        // RFC 9113 section 8.5: only these two fields, and the authority says where to. An extended one has
        // all fields of a request (RFC 8441 section 4).
        if self.head.connect && !is_extended {
            let pseudo = self.seen & (METHOD | SCHEME | PATH | AUTHORITY);
            return if pseudo == METHOD | AUTHORITY { Ok(()) } else { Err("a malformed CONNECT request") };
        }
        let needed = METHOD | SCHEME | PATH;
        if self.seen & needed != needed {
            return Err("a request without :method, :scheme or :path");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::hpack::put_literal;

    /// Method, path and id; or the fault.
    fn read(fields: &[(&str, &str)]) -> Result<(String, String, Option<String>), &'static str> {
        let mut block = Vec::new();
        for (name, value) in fields {
            put_literal(&mut block, name.as_bytes(), value.as_bytes(), false);
        }
        let limits = FieldLimits { list_bytes: 1 << 16, fields: 100 };
        let mut reader = HeadReader::default();
        match reader.read(&mut Decoder::new(4096), &limits, &block).unwrap() {
            Ok(()) => {
                let head = &reader.head;
                let text = |span: Span| {
                    let bytes = &head.text[span.start as usize..][..span.len as usize];
                    String::from_utf8(bytes.to_vec()).unwrap()
                };
                Ok((text(head.method), text(head.path), head.id.map(text)))
            }
            Err(HeadFault::Malformed(what)) => Err(what),
            Err(HeadFault::TooLarge) => Err("too large"),
        }
    }

    const GET: [(&str, &str); 3] = [(":method", "GET"), (":scheme", "http"), (":path", "/a?b")];

    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        [&GET, more].concat()
    }

    #[test]
    fn pseudo_fields_come_in_any_order_and_before_the_others() {
        let mut fields = with(&[(":authority", "a:80"), ("x-plimsoll-id", "7"), ("host", "A:80")]);
        for _ in 0..4 {
            fields[..4].rotate_left(1);
            assert_eq!(read(&fields), Ok(("GET".into(), "/a?b".into(), Some("7".into()))));
        }
        fields.rotate_left(1);
        assert_eq!(read(&fields), Err("a pseudo-header field after other fields"));
    }

    #[test]
    fn malformed_requests_are_told_apart() {
        let table: [(Vec<(&str, &str)>, &str); 15] = [
            (GET[1..].to_vec(), "a request without :method, :scheme or :path"),
            (vec![GET[0], GET[2]], "a request without :method, :scheme or :path"),
            (GET[..2].to_vec(), "a request without :method, :scheme or :path"),
            (vec![], "a request without :method, :scheme or :path"),
            (with(&[(":method", "GET")]), "a pseudo-header field that came before"),
            (with(&[(":status", "200")]), "an unknown pseudo-header field"),
            (with(&[(":protocol", "websocket")]), "an unknown pseudo-header field"),
            (with(&[(":authority", "a"), ("host", "b")]), ":authority and host differ"),
            (with(&[("host", "b"), ("host", "b")]), "several host fields"),
            (with(&[("Host", "b")]), "a field name has a byte that is not allowed"),
            (with(&[("connection", "close")]), "a field belongs to HTTP/1.1 connections only"),
            (with(&[("content-length", "1"), ("content-length", "2")]), {
                "there are several content-lengths that differ"
            }),
            (vec![GET[0], GET[1], (":path", "")], "an empty :path"),
            (vec![(":method", ""), GET[1], GET[2]], "an empty :method"),
            (vec![(":method", "CONNECT"), GET[1], GET[2]], "a malformed CONNECT request"),
        ];
        for (fields, what) in table {
            assert_eq!(read(&fields), Err(what), "{fields:?}");
        }
        assert!(read(&[(":method", "CONNECT"), (":authority", "a:1")]).is_ok());
    }

    #[test]
    fn an_extended_connect_has_all_fields_of_a_request() {
        let connect = [(":method", "CONNECT"), (":protocol", "websocket")];
        let whole = [connect[0], connect[1], GET[1], GET[2], (":authority", "a")];
        let table = [
            (whole.to_vec(), Ok(())),
            ([&whole[..], &[("sec-websocket-protocol", "a, b")]].concat(), Ok(())),
            (connect.to_vec(), Err("a request without :method, :scheme or :path")),
            ([&whole[..], &connect[1..]].concat(), Err("a pseudo-header field that came before")),
            (with(&connect[1..]), Err(":protocol in a request that is no CONNECT")),
        ];
        for (fields, expected) in table {
            let mut block = Vec::new();
            for (name, value) in &fields {
                put_literal(&mut block, name.as_bytes(), value.as_bytes(), false);
            }
            let limits = FieldLimits { list_bytes: 1 << 16, fields: 100 };
            let mut reader = HeadReader::new(true, "");
            let result = reader.read(&mut Decoder::new(4096), &limits, &block).unwrap();
            assert_eq!(result, expected.map_err(HeadFault::Malformed), "{fields:?}");
        }
    }

    #[test]
    fn the_time_that_clients_wait_has_a_field_that_a_server_names() {
        let limits = FieldLimits { list_bytes: 1 << 16, fields: 100 };
        let mut block = Vec::new();
        for (name, value) in with(&[("x-wait", "5"), ("x-wait", "6")]) {
            put_literal(&mut block, name.as_bytes(), value.as_bytes(), false);
        }
        for (named, expected) in [("x-wait", Some(&b"5"[..])), ("x-other", None), ("", None)] {
            let mut reader = HeadReader::new(false, named);
            assert_eq!(reader.read(&mut Decoder::new(4096), &limits, &block), Ok(Ok(())));
            let text = |span: Span| &reader.head.text[span.start as usize..][..span.len as usize];
            assert_eq!(reader.head.timeout.map(text), expected, "{named}");
        }
    }

    #[test]
    fn a_reader_forgets_the_head_before() {
        let (limits, mut decoder) = (FieldLimits { list_bytes: 1 << 16, fields: 100 }, Decoder::new(4096));
        let mut reader = HeadReader::default();
        let mut block = Vec::new();
        for (name, value) in with(&[("x-plimsoll-id", "7"), ("content-length", "3")]) {
            put_literal(&mut block, name.as_bytes(), value.as_bytes(), false);
        }
        assert_eq!(reader.read(&mut decoder, &limits, &block), Ok(Ok(())));
        assert_eq!(reader.head.content_length, Some(3));
        // GET http /
        assert_eq!(reader.read(&mut decoder, &limits, &[0x82, 0x86, 0x84]), Ok(Ok(())));
        assert_eq!((reader.head.content_length, reader.head.id), (None, None));
        assert_eq!(reader.head.text, b"GET/");
    }
}
