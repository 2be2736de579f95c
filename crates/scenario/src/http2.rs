//! The head of a request as a header block of HTTP/2.

use plimsoll_core::Random;
use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{BlockId, Field, FieldValue, HeaderBook, Indexing};

use crate::head::{FieldText, HeadField};
use crate::request::skip;
use crate::slot::write_decimal;
use crate::{Context, RequestTemplate};

/// The fields of a head, ready to be encoded.
#[derive(Clone)]
pub(crate) enum FieldBlock {
    /// Known to the target's book. `variables` are the values of the variable fields, in order; the last of
    /// them is that of the cookies if there is a block `without` them.
    InBook { id: BlockId, without: Option<BlockId>, opening: BlockId, variables: Vec<FieldText> },
    /// Known to no book, and encoded anew each time: the request after a redirect.
    Loose { fields: Vec<HeadField>, opening: Option<BlockId> },
}

impl FieldBlock {
    /// Adds `fields`, but for those that HTTP/2 does not send, to `book`, if there is one.
    pub(crate) fn compile(fields: &[HeadField], book: Option<&mut HeaderBook>) -> Self {
        let fields = fields.iter().filter(|field| !field.of_connection);
        let Some(book) = book else {
            return Self::Loose { fields: fields.cloned().collect(), opening: None };
        };
        let (mut variables, mut known, mut always) = (Vec::new(), Vec::new(), 0);
        for field in fields {
            let value = match &field.value {
                FieldText::Template(text) if text.is_static() => FieldValue::Fixed(text.literals().to_vec()),
                changing => {
                    variables.push(changing.clone());
                    FieldValue::Variable
                }
            };
            let name = field.name.clone().into_bytes();
            known.push(Field { name, value, never_indexed: field.never_indexed() });
            always += usize::from(!field.only_with_cookies);
        }
        let without = (always < known.len()).then(|| book.add(known[..always].to_vec()));
        Self::InBook { id: book.add(known), without, opening: book.add(Vec::new()), variables }
    }

    /// A block of the book without fields. It begins what the book does not know: if the peer's table has to
    /// change its size, that stands at the begin of the next block, whichever it is (RFC 7541 section 4.2).
    pub(crate) fn opening(&self) -> Option<BlockId> {
        match *self {
            Self::InBook { opening, .. } => Some(opening),
            Self::Loose { opening, .. } => opening,
        }
    }

    /// The same fields, without a book, for a connection whose other blocks come from the book of `opening`.
    pub(crate) fn opened_by(self, opening: Option<BlockId>) -> Self {
        match self {
            Self::Loose { fields, .. } => Self::Loose { fields, opening },
            in_book @ Self::InBook { .. } => in_book,
        }
    }
}

impl FieldText {
    pub(crate) fn render(
        &self,
        context: &Context<'_>,
        random: &mut Random,
        body_len: usize,
        out: &mut Vec<u8>,
    ) {
        match self {
            Self::Template(text) => text.render(context, random, out),
            Self::Length => write_decimal(body_len as u64, out),
        }
    }
}

impl RequestTemplate {
    /// Appends the header block for HTTP/2. `book` is the one that the template was
    /// [compiled](Self::compile) with, sealed, and `indexing` is the connection's; `body_len` is the length
    /// of what [`render_body`](Self::render_body) gave for this request: call that first, with the same
    /// random numbers, which are used up by this call. Allocates only when `out` has to grow.
    ///
    /// What follows a [redirect](Self::redirected) takes the book of the request that was redirected, and is
    /// encoded anew, which allocates. A template that was never in a book cannot announce a change of the
    /// table's size: it is for connections whose peer keeps the default.
    pub fn render_block(
        &self,
        book: &HeaderBook,
        indexing: &mut Indexing,
        context: &Context<'_>,
        random: &mut Random,
        body_len: usize,
        out: &mut Vec<u8>,
    ) {
        match &self.block {
            FieldBlock::InBook { id, without, variables, .. } => {
                let id = without.filter(|_| context.cookies.is_empty()).unwrap_or(*id);
                book.write(id, indexing, out, |position, out| {
                    variables[position].render(context, random, body_len, out);
                });
            }
            FieldBlock::Loose { fields, opening } => {
                if let Some(opening) = opening {
                    book.write(*opening, indexing, out, |_, _| {});
                }
                let mut value = Vec::new();
                for field in fields {
                    if field.only_with_cookies && context.cookies.is_empty() {
                        continue;
                    }
                    value.clear();
                    field.value.render(context, random, body_len, &mut value);
                    put_literal(out, field.name.as_bytes(), &value, field.never_indexed());
                }
            }
        }
        skip(random, self.draws_after_block);
    }

    /// Appends what has to stand at the begin of a header block that is not from the `book`, on a connection
    /// whose other blocks are: of a [`DynamicRequest`](crate::DynamicRequest). Nothing in most cases.
    pub fn render_opening(&self, book: &HeaderBook, indexing: &mut Indexing, out: &mut Vec<u8>) {
        if let Some(opening) = self.block.opening() {
            book.write(opening, indexing, out, |_, _| {});
        }
    }
}
