//! Header blocks that are encoded once and sent by copying.
//!
//! The requests of a target, and the replies of a server, are few and known before the first is sent. So a
//! [`HeaderBlockCache`] decides once which of their fields go into the dynamic tables of the peers, and each
//! connection remembers in an [`Indexing`] which of these it has inserted. The fields that are chosen fit
//! into the table together: nothing is ever evicted, and an inserted field is one byte (two, if there are
//! more than 65) from then on.
//!
//! | a connection that has | writes a block by |
//! |---|---|
//! | inserted all entries, in the order of the book | one copy of its *warm* form |
//! | inserted some, or in another order | walking over the block's parts (a few nanoseconds for each) |
//! | a peer without room, or an own limit that is too low | one copy of its *plain* form |
//!
//! The values of variable fields are rendered between the copies.

use std::fmt;

use super::hpack::encoder::{
    Representation, put_indexed, put_literal_name, put_rendered, put_size_update, put_string,
};
use super::hpack::{ENTRY_OVERHEAD, INITIAL_TABLE_SIZE, STATIC_ENTRIES, find_field, put_literal};

/// The most bytes of table (RFC 7541 section 4.1) that a book uses: the size that every peer allows until it
/// says otherwise.
const BUDGET: u32 = INITIAL_TABLE_SIZE;

/// Names whose values differ from block to block: they get the rest of the budget after the other fields.
const LAST_IN_LINE: [&[u8]; 2] = [b":path", b"content-length"];

/// One block of a [`HeaderBlockCache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId(u32);

/// One field of a block.
#[derive(Clone, PartialEq, Eq)]
pub struct Field {
    /// In lower case (RFC 9113 section 8.2.1).
    pub name: Vec<u8>,
    /// The value: fixed, or rendered by the caller.
    pub value: FieldValue,
    /// For secrets: neither the peer nor an intermediary puts it into a table (RFC 7541 section 7.1.3).
    pub never_indexed: bool,
}

/// The value of a [`Field`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// A value that no rendering changes. Huffman-coded if that makes it shorter.
    Fixed(Vec<u8>),
    /// Written by the caller each time. Not Huffman-coded, and never put into the table.
    Variable,
}

/// The header blocks of one target (requests) or of one server (replies).
///
/// Call [`add`](Self::add) for all blocks, then [`seal`](Self::seal), then [`write`](Self::write) as often as
/// there are messages. Sealed it is shared by all connections, each with an [`Indexing`] of its own.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HeaderBlockCache {
    /// As they were added.
    fields: Vec<Vec<Field>>,
    /// One for each of `fields`.
    blocks: Vec<Block>,
    /// Number of fields that go into the table; at most `BUDGET / ENTRY_OVERHEAD`, so that 8 bits number
    /// them.
    entries: u8,
    /// The sum of their sizes (RFC 7541 section 4.1).
    table_bytes: u32,
}

/// Without the value of a secret.
impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match &self.value {
            FieldValue::Fixed(_) if self.never_indexed => "<secret>".into(),
            FieldValue::Fixed(value) => value.escape_ascii().to_string(),
            FieldValue::Variable => "<variable>".into(),
        };
        write!(f, "{}: {value}", self.name.escape_ascii())
    }
}

/// Without the encoded forms: they hold secrets.
impl fmt::Debug for HeaderBlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderBlockCache")
            .field("fields", &self.fields)
            .field("table_bytes", &self.table_bytes)
            .finish_non_exhaustive()
    }
}

/// One block in all its forms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Block {
    warm: EncodedBlock,
    plain: EncodedBlock,
    /// The bytes that `parts` refer to.
    bytes: Vec<u8>,
    parts: Vec<Part>,
}

/// A block for one state of the table, as bytes. The length of a variable value, and the value, are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct EncodedBlock {
    bytes: Vec<u8>,
    /// For each variable value the place in `bytes` where it belongs.
    cuts: Vec<u32>,
}

/// A piece of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Bytes up to `to` that do not depend on the table.
    Bytes { to: u32 },
    /// A field that is an entry: bytes up to `to` insert it.
    Entry { number: u8, to: u32 },
    /// The next variable value.
    Variable,
}

impl HeaderBlockCache {
    /// A book without blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block. Call it for all blocks before the first [`write`](Self::write): the entries of a
    /// connection do not match those of a changed book.
    ///
    /// Until the next [`seal`](Self::seal) nothing goes into a table.
    pub fn add(&mut self, fields: Vec<Field>) -> BlockId {
        if self.entries > 0 {
            (self.entries, self.table_bytes) = (0, 0);
            self.blocks = self.fields.iter().map(|fields| Block::compile(fields, &[])).collect();
        }
        let id = BlockId(self.blocks.len() as u32);
        self.blocks.push(Block::compile(&fields, &[]));
        self.fields.push(fields);
        id
    }

    /// Decides which fields go into the tables: of the fixed ones that are neither never indexed nor in the
    /// static table as they are, first those that are no `:path` and no `content-length`, then these, in the
    /// order of their first use, as long as they fit into 4,096 bytes (RFC 7541 section 4.1) together. Fields
    /// that do not fit are skipped.
    pub fn seal(&mut self) {
        let all = || self.fields.iter().flatten().filter_map(candidate);
        let is_last = |&(name, _): &Entry<'_>| LAST_IN_LINE.contains(&name);
        let (mut chosen, mut left) = (Vec::new(), BUDGET);
        for field in all().filter(|field| !is_last(field)).chain(all().filter(is_last)) {
            let size = entry_size(field);
            if size <= u64::from(left) && !chosen.contains(&field) {
                chosen.push(field);
                left -= size as u32;
            }
        }
        // Numbered in the order in which a connection that sends the blocks in turn meets them, so that its
        // table is in the order of the book from the first blocks on.
        let mut entries = Vec::with_capacity(chosen.len());
        for field in all().filter(|field| chosen.contains(field)) {
            if !entries.contains(&field) {
                entries.push(field);
            }
        }
        self.blocks = self.fields.iter().map(|fields| Block::compile(fields, &entries)).collect();
        self.entries = entries.len() as u8;
        self.table_bytes = BUDGET - left;
    }

    /// Appends the block. `value(i, out)` has to append the bytes of the i-th variable value, counted from 0
    /// in the order of the block, and nothing else.
    ///
    /// `indexing` is that of the connection, and was never used with another book. Blocks have to be sent in
    /// the order in which they were written, and all of them: each may depend on the entries of earlier ones.
    ///
    /// Panics if `block` is not of this book.
    #[inline]
    pub fn write(
        &self,
        block: BlockId,
        indexing: &mut Indexing,
        out: &mut Vec<u8>,
        value: impl FnMut(usize, &mut Vec<u8>),
    ) {
        let block = &self.blocks[block.0 as usize];
        match indexing.state {
            State::Warm => block.warm.write(out, value),
            State::Plain => block.plain.write(out, value),
            State::Undecided | State::Partial => self.write_slowly(block, indexing, out, value),
        }
    }

    /// Appends the prefix of a block that is not of this book, on a connection whose other blocks are: if the
    /// peer's table has to change its size, that stands at the start of the next block, whichever it is (RFC
    /// 7541 section 4.2). Nothing in most cases.
    pub fn begin(&self, indexing: &mut Indexing, out: &mut Vec<u8>) {
        if indexing.state == State::Undecided {
            indexing.decide(self, out);
        }
    }

    #[cold]
    fn write_slowly(
        &self,
        block: &Block,
        indexing: &mut Indexing,
        out: &mut Vec<u8>,
        mut value: impl FnMut(usize, &mut Vec<u8>),
    ) {
        if indexing.state == State::Undecided {
            indexing.decide(self, out);
        }
        if indexing.state == State::Plain {
            return block.plain.write(out, value);
        }
        let (mut from, mut variables) = (0, 0);
        for &part in &block.parts {
            match part {
                Part::Bytes { to } => {
                    out.extend_from_slice(&block.bytes[from..to as usize]);
                    from = to as usize;
                }
                Part::Entry { number, to } => {
                    match indexing.index_of(number) {
                        Some(index) => put_indexed(out, index),
                        None => {
                            out.extend_from_slice(&block.bytes[from..to as usize]);
                            indexing.insert(number);
                        }
                    }
                    from = to as usize;
                }
                Part::Variable => {
                    put_rendered(out, |out| value(variables, out));
                    variables += 1;
                }
            }
        }
        if indexing.is_in_order && indexing.inserted == self.entries {
            indexing.state = State::Warm;
        }
    }
}

/// A field that may go into the table: name and value.
type Entry<'f> = (&'f [u8], &'f [u8]);

fn candidate(field: &Field) -> Option<Entry<'_>> {
    match &field.value {
        FieldValue::Fixed(value) if !field.never_indexed && find_field(&field.name, value).is_none() => {
            Some((&field.name, value))
        }
        _ => None,
    }
}

/// RFC 7541 section 4.1.
fn entry_size((name, value): Entry<'_>) -> u64 {
    (name.len() + value.len()) as u64 + u64::from(ENTRY_OVERHEAD)
}

/// The index of an entry when `later` entries were inserted after it.
fn dynamic_index(later: u8) -> u32 {
    STATIC_ENTRIES + 1 + u32::from(later)
}

impl Block {
    fn compile(fields: &[Field], entries: &[Entry<'_>]) -> Self {
        let mut block = Self::default();
        for field in fields {
            let number = candidate(field).and_then(|one| entries.iter().position(|&entry| entry == one));
            match (&field.value, number) {
                (FieldValue::Variable, _) => block.add_variable(field),
                (FieldValue::Fixed(value), Some(number)) => {
                    let later = (entries.len() - 1 - number) as u8;
                    block.add_entry((&field.name, value), number as u8, later);
                }
                (FieldValue::Fixed(value), None) => block.add_fixed(field, value),
            }
        }
        block
    }

    /// A field that does not depend on the table.
    fn add_fixed(&mut self, field: &Field, value: &[u8]) {
        let from = self.plain.bytes.len();
        match find_field(&field.name, value) {
            Some(index) if !field.never_indexed => put_indexed(&mut self.plain.bytes, index),
            _ => put_literal(&mut self.plain.bytes, &field.name, value, field.never_indexed),
        }
        self.add_bytes(from);
    }

    fn add_variable(&mut self, field: &Field) {
        let from = self.plain.bytes.len();
        let never_indexed = field.never_indexed;
        let representation =
            if never_indexed { Representation::NEVER_INDEXED } else { Representation::PLAIN };
        put_literal_name(&mut self.plain.bytes, &field.name, representation);
        self.add_bytes(from);
        for form in [&mut self.plain, &mut self.warm] {
            form.cuts.push(form.bytes.len() as u32);
        }
        self.parts.push(Part::Variable);
    }

    fn add_entry(&mut self, (name, value): Entry<'_>, number: u8, later: u8) {
        put_literal(&mut self.plain.bytes, name, value, false);
        put_indexed(&mut self.warm.bytes, dynamic_index(later));
        put_literal_name(&mut self.bytes, name, Representation::INSERTED);
        put_string(&mut self.bytes, value);
        self.parts.push(Part::Entry { number, to: self.bytes.len() as u32 });
    }

    /// Copies the plain form from `from` on into the others.
    fn add_bytes(&mut self, from: usize) {
        let bytes = &self.plain.bytes[from..];
        self.warm.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len() as u32;
        match self.parts.last_mut() {
            Some(Part::Bytes { to }) => *to = end,
            _ => self.parts.push(Part::Bytes { to: end }),
        }
    }
}

impl EncodedBlock {
    #[inline]
    fn write(&self, out: &mut Vec<u8>, mut value: impl FnMut(usize, &mut Vec<u8>)) {
        let mut from = 0;
        for (nth, &cut) in self.cuts.iter().enumerate() {
            out.extend_from_slice(&self.bytes[from..cut as usize]);
            put_rendered(out, |out| value(nth, out));
            from = cut as usize;
        }
        out.extend_from_slice(&self.bytes[from..]);
    }
}

/// The state of the peer's dynamic table for our blocks. One per connection; nothing on the heap as long as
/// the entries of the book are first used in its order.
#[derive(Clone, Debug)]
pub struct Indexing {
    /// The most bytes of table that we want to use.
    own_limit: u32,
    /// The size of the table, as the peer's decoder knows it.
    table_size: u32,
    /// The smallest size that the peer has allowed. If it is below `table_size` the next block has to begin
    /// with an update (RFC 7541 section 4.2).
    peer_limit: u32,
    state: State,
    /// Number of entries that were inserted. None is ever evicted.
    inserted: u8,
    /// `true` if the inserted entries are the first of the book, in its order.
    is_in_order: bool,
    /// Used if they are not in order: for each entry 0, or the number of entries that had been inserted with
    /// it.
    places: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The limits have to be examined before the next block.
    Undecided,
    /// Fields are inserted where they are missing.
    Partial,
    /// Everything was inserted, in the order of the book.
    Warm,
    /// Nothing is inserted any more, nor used.
    Plain,
}

impl Default for Indexing {
    /// With an own limit of 4,096 bytes: that of the protocol, which every book keeps.
    fn default() -> Self {
        Self::new(INITIAL_TABLE_SIZE)
    }
}

impl Indexing {
    /// A connection on which nothing was inserted. If the book needs more than `own_limit` bytes of table
    /// (RFC 7541 section 4.1), nothing will be.
    pub const fn new(own_limit: u32) -> Self {
        Self {
            own_limit,
            table_size: INITIAL_TABLE_SIZE,
            peer_limit: INITIAL_TABLE_SIZE,
            state: State::Undecided,
            inserted: 0,
            is_in_order: true,
            places: Vec::new(),
        }
    }

    /// The peer allows a table of `size` bytes (SETTINGS_HEADER_TABLE_SIZE). Call it when its settings are
    /// acknowledged, before the next block is written.
    ///
    /// If that is less than the table has, the next block begins with a size update (RFC 7541 section 4.2):
    /// to `size` if the book fits, else to 0, and then nothing is indexed any more. A larger size changes
    /// nothing.
    pub fn peer_limit(&mut self, size: u32) {
        self.peer_limit = self.peer_limit.min(size);
        if self.peer_limit < self.table_size {
            self.state = State::Undecided;
        }
    }

    /// Looks at the limits, and notifies the peer if the table has to shrink.
    fn decide(&mut self, book: &HeaderBlockCache, out: &mut Vec<u8>) {
        let limit = self.own_limit.min(self.peer_limit);
        let is_used = book.entries > 0 && book.table_bytes <= limit;
        if self.peer_limit < self.table_size {
            self.table_size = if is_used { self.peer_limit } else { 0 };
            put_size_update(out, self.table_size);
        }
        self.state = if is_used { State::Partial } else { State::Plain };
    }

    fn index_of(&self, number: u8) -> Option<u32> {
        let place = if self.is_in_order {
            (number < self.inserted).then_some(number + 1)
        } else {
            self.places.get(usize::from(number)).copied().filter(|&place| place > 0)
        };
        place.map(|place| dynamic_index(self.inserted - place))
    }

    fn insert(&mut self, number: u8) {
        if self.is_in_order && number != self.inserted {
            self.is_in_order = false;
            self.places = (1..=self.inserted).collect();
        }
        self.inserted += 1;
        if !self.is_in_order {
            let end = usize::from(number) + 1;
            self.places.resize(self.places.len().max(end), 0);
            self.places[usize::from(number)] = self.inserted;
        }
    }
}
