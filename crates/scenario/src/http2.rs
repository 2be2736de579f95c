//! The head of a request as a header block of HTTP/2.

use plimsoll_core::Random;
use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{BlockId, Field, FieldValue, HeaderBlockCache, Indexing};

use crate::head::{FieldText, HeadField};
use crate::request::skip;
use crate::slot::write_decimal;
use crate::{Context, RequestTemplate};

/// The fields of a head, ready to be encoded.
#[derive(Clone)]
pub(crate) enum FieldBlock {
    /// Known to the target's book. `variables` are the values of the variable fields, in order; the last of
    /// them is that of the cookies if there is a block `without` them.
    InBook { id: BlockId, without: Option<BlockId>, variables: Vec<FieldText> },
    /// Known to no book, and encoded again each time: the request after a redirect, or to a server that the
    /// plan does not name.
    Loose { fields: Vec<HeadField> },
}

impl FieldBlock {
    /// Adds `fields`, except for those that HTTP/2 does not send, to `book`, if there is one.
    pub(crate) fn compile(fields: &[HeadField], book: Option<&mut HeaderBlockCache>) -> Self {
        let fields = fields.iter().filter(|field| !field.of_connection);
        let Some(book) = book else {
            return Self::Loose { fields: fields.cloned().collect() };
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
        Self::InBook { id: book.add(known), without, variables }
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
    /// Appends the header block for HTTP/2. `book` is the one that the template was [compiled](Self::compile)
    /// with, sealed, and `indexing` is the connection's; `body_len` is the length of the output of
    /// [`render_body`](Self::render_body) for this request: call that first, with the same random numbers,
    /// which are used up by this call. Allocates only when `out` has to grow.
    ///
    /// One that was compiled without a book, such as what follows a [redirect](Self::redirected), takes that
    /// of the connection's other requests, and is encoded again, which allocates.
    pub fn render_block(
        &self,
        book: &HeaderBlockCache,
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
            FieldBlock::Loose { fields } => {
                book.begin(indexing, out);
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
}
