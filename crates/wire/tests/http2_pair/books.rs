//! Messages of the tests: blocks of requests and replies with fixed and variable fields.

use plimsoll_wire::http2::{BlockId, Field, FieldValue, HeaderBlockCache, Indexing};

fn field(name: &str, value: &str) -> Field {
    let (name, value) = (name.as_bytes().to_vec(), FieldValue::Fixed(value.as_bytes().to_vec()));
    Field { never_indexed: name == b"authorization", name, value }
}

fn variable(name: &str) -> Field {
    Field { name: name.as_bytes().to_vec(), value: FieldValue::Variable, never_indexed: false }
}

/// Ways to ask. The first ones are the same every time, the others name the request.
pub(crate) const ASKS: usize = 5;

/// The blocks of a client.
pub(crate) struct Requests {
    book: HeaderBlockCache,
    blocks: Vec<BlockId>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        let mut book = HeaderBlockCache::new();
        let start = |method: &str| vec![field(":method", method), field(":scheme", "http")];
        let shared =
            || [field("user-agent", "pair/1"), field("authorization", "secret"), field("x-pad", PAD)];
        let mut blocks = Vec::new();
        for (method, path) in [("GET", "/fixed"), ("POST", "/upload?a=b"), ("HEAD", "/")] {
            let mut fields = start(method);
            fields.push(field(":path", path));
            fields.push(field(":authority", "pair.test:8080"));
            fields.extend(shared());
            blocks.push(book.add(fields));
        }
        for method in ["GET", "PUT"] {
            let mut fields = start(method);
            fields.push(variable(":path"));
            fields.push(field(":authority", "pair.test:8080"));
            fields.extend(shared());
            fields.push(variable("x-plimsoll-id"));
            blocks.push(book.add(fields));
        }
        book.seal();
        Self { book, blocks }
    }

    pub(crate) fn write(&self, ask: usize, number: u32, indexing: &mut Indexing, out: &mut Vec<u8>) {
        self.book.write(self.blocks[ask], indexing, out, |nth, out| {
            let text = if nth == 0 { path_of(ask, number) } else { number.to_string() };
            out.extend_from_slice(text.as_bytes());
        });
    }
}

/// Long enough for a table of 64 bytes not to hold it.
const PAD: &str = "0123456789012345678901234567890123456789";

pub(crate) fn is_head(ask: usize) -> bool {
    ask == 2
}

pub(crate) fn may_have_content(ask: usize) -> bool {
    ask == 1 || ask == 4
}

pub(crate) fn path_of(ask: usize, number: u32) -> String {
    match ask {
        0 => "/fixed".to_owned(),
        1 => "/upload?a=b".to_owned(),
        2 => "/".to_owned(),
        // From time to time a length byte is not enough.
        _ => format!("/item/{number}{}", "x".repeat(number as usize % 7 * 40)),
    }
}

pub(crate) fn id_of(ask: usize, number: u32) -> Option<String> {
    (ask > 2).then(|| number.to_string())
}

/// The blocks of a server.
pub(crate) struct Replies {
    book: HeaderBlockCache,
    blocks: Vec<BlockId>,
}

/// Statuses that a reply may have; the last one names its request, and the length of its content.
pub(crate) const STATUSES: [u16; 4] = [200, 404, 503, 201];

impl Replies {
    pub(crate) fn new() -> Self {
        let mut book = HeaderBlockCache::new();
        let mut blocks = Vec::new();
        for status in STATUSES {
            let mut fields =
                vec![field(":status", &status.to_string()), field("server", "pair"), field("x-pad", PAD)];
            if status == 201 {
                fields.extend([variable("x-answers"), variable("content-length")]);
            }
            blocks.push(book.add(fields));
        }
        book.seal();
        Self { book, blocks }
    }

    pub(crate) fn write(
        &self,
        status: usize,
        path: &str,
        content: usize,
        indexing: &mut Indexing,
        out: &mut Vec<u8>,
    ) {
        self.book.write(self.blocks[status], indexing, out, |nth, out| {
            let text = if nth == 0 { path.to_owned() } else { content.to_string() };
            out.extend_from_slice(text.as_bytes());
        });
    }
}
