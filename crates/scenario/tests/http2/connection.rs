//! One connection as the peer sees it.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_scenario::{Body, Context, RequestSpec, RequestTemplate, Scheme};
use plimsoll_wire::http2::hpack::Decoder;
use plimsoll_wire::http2::{FieldLimits, HeaderBlockCache, Indexing};

/// Names and values, in order.
pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// A sender, and the decoder of its peer.
pub(crate) struct Connection {
    pub(crate) indexing: Indexing,
    pub(crate) decoder: Decoder,
    /// The last block, encoded.
    pub(crate) block: Vec<u8>,
}

impl Default for Connection {
    fn default() -> Self {
        Self { indexing: Indexing::default(), decoder: Decoder::new(4096), block: Vec::new() }
    }
}

impl Connection {
    /// Renders one request as it goes over HTTP/2: the fields that the peer reads, and the body.
    pub(crate) fn send(
        &mut self,
        request: &RequestTemplate,
        book: &HeaderBlockCache,
        context: &Context<'_>,
        random: &mut Random,
    ) -> (Fields, Vec<u8>) {
        let mut scratch = b"left over".to_vec();
        let body = request.render_body(context, random, &mut scratch);
        self.block.clear();
        request.render_block(book, &mut self.indexing, context, random, body.len(), &mut self.block);
        let mut fields = Fields::new();
        let field = |name: &[u8], value: &[u8]| fields.push((text(name), value.to_vec()));
        self.decoder.decode(&self.block, &FieldLimits::default(), field).expect("a legal block");
        (fields, body.bytes().to_vec())
    }
}

/// The value of the one field with this name.
pub(crate) fn value<'f>(fields: &'f Fields, name: &str) -> Option<&'f [u8]> {
    let mut values = fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_slice());
    let first = values.next();
    assert!(values.next().is_none(), "{name} comes twice");
    first
}

pub(crate) fn get() -> RequestSpec {
    RequestSpec {
        method: "GET".to_owned(),
        target: "/".to_owned(),
        scheme: Scheme::Http,
        authority: "example.test:8080".to_owned(),
        ..RequestSpec::default()
    }
}

pub(crate) fn post(body: &[u8]) -> RequestSpec {
    RequestSpec { method: "POST".to_owned(), body: Body::Text(body.to_vec()), ..get() }
}

pub(crate) fn raw(len: usize) -> Body {
    Body::Raw(Arc::from(vec![b'x'; len]))
}

pub(crate) fn with_headers(spec: RequestSpec, headers: &[(&str, &str)]) -> RequestSpec {
    let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    RequestSpec { headers, ..spec }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}
