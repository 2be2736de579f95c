//! The decoder of one connection.

use super::HpackError;
use super::dynamic_table::{DynamicTable, ENTRY_OVERHEAD, EntryName};
use super::huffman;
use super::integer::take_integer;
use super::static_table::{STATIC_ENTRIES, STATIC_TABLE};

/// The size of either side's dynamic table until settings say otherwise: the initial value of
/// SETTINGS_HEADER_TABLE_SIZE (RFC 9113 section 6.5.2), in bytes.
pub(crate) const INITIAL_TABLE_SIZE: u32 = 4096;

/// A longer buffer for decoded strings is given back after its block, so that one huge header does not cost
/// its memory for the rest of the connection. 16 KiB holds any header that a server sends regularly.
const SCRATCH_KEPT: usize = 16 * 1024;

/// Limits for the fields of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLimits {
    /// The most bytes of all fields together: name, value and 32 for each (RFC 9113 section 6.5.2,
    /// SETTINGS_MAX_HEADER_LIST_SIZE).
    pub list_bytes: u32,
    /// The most fields.
    pub fields: u32,
}

impl Default for FieldLimits {
    /// 64 KiB and 256 fields, as for HTTP/1.1: see [`Limits`](crate::http1::Limits).
    fn default() -> Self {
        Self { list_bytes: 64 * 1024, fields: 256 }
    }
}

/// Decodes the header blocks of one connection, in the order in which they came: each may depend on all
/// before it, also on those of streams that were given up.
///
/// It holds at most a few times the larger of the advertised table size and 4,096 bytes, and at first
/// nothing.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The largest size that an update may set.
    table_limit: u32,
    /// The advertised size of the table.
    advertised: u32,
    /// Strings of a field that are Huffman-coded are decoded here. Its length is the room that there is.
    scratch: Vec<u8>,
}

impl Decoder {
    /// A decoder that announces `max_table_size` bytes to its peer as SETTINGS_HEADER_TABLE_SIZE.
    ///
    /// The peer's table has 4,096 bytes until it says otherwise, also if `max_table_size` is less: it may use
    /// these until it has seen our settings. See [`acknowledged`](Self::acknowledged).
    pub fn new(max_table_size: u32) -> Self {
        Self {
            table: DynamicTable::new(INITIAL_TABLE_SIZE),
            table_limit: max_table_size.max(INITIAL_TABLE_SIZE),
            advertised: max_table_size,
            scratch: Vec::new(),
        }
    }

    /// The size of the table that is announced to the peer, in bytes.
    pub const fn advertised(&self) -> u32 {
        self.advertised
    }

    /// The peer has acknowledged our settings: from here on an update above the advertised size is an error,
    /// also if it is below 4,096 bytes.
    pub fn acknowledged(&mut self) {
        self.table_limit = self.advertised;
    }

    /// Returns a number that grows whenever the dynamic table changes. As long as it is the same, a block
    /// that did not change the table means the same again.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.table.changes()
    }

    /// Decodes a whole header block and calls `field` with name and value of each field, in order. Nothing is
    /// checked about their bytes.
    ///
    /// After [`HpackError::ListTooLarge`] the decoder may go on with the next block; `field` was called for
    /// those fields in front that were within the limits. After any other error the connection is over.
    #[inline]
    pub fn decode<F>(&mut self, block: &[u8], limits: &FieldLimits, mut field: F) -> Result<(), HpackError>
    where
        F: FnMut(&[u8], &[u8]),
    {
        let mut allowance = Allowance::new(limits);
        let mut rest = self.take_size_updates(block)?;
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            if first & 0x80 != 0 {
                let index = take_integer(first, 7, &mut rest)?;
                let (name, value) = self.indexed(index).ok_or(HpackError::Index)?;
                if allowance.admits(name, value) {
                    field(name, value);
                }
                continue;
            }
            let literal = self.take_literal(first, &mut rest)?;
            let name = self.name(literal.name).ok_or(HpackError::Index)?;
            let value = self.text(literal.value);
            if allowance.admits(name, value) {
                field(name, value);
            }
            if literal.is_inserted {
                self.insert(literal);
            }
        }
        self.give_back_scratch();
        allowance.verdict()
    }

    /// The field with an index of the combined address space (RFC 7541 section 2.3.3).
    #[inline]
    fn indexed(&self, index: u32) -> Option<(&[u8], &[u8])> {
        match index.checked_sub(STATIC_ENTRIES + 1) {
            Some(place) => self.table.get(place),
            None => STATIC_TABLE.get(index.wrapping_sub(1) as usize).copied(),
        }
    }

    #[inline]
    fn name<'a>(&'a self, name: Name<'a>) -> Option<&'a [u8]> {
        match name {
            Name::Index(index) => self.indexed(index).map(|(name, _)| name),
            Name::Literal(text) => Some(self.text(text)),
        }
    }

    #[inline]
    fn text<'a>(&'a self, text: Text<'a>) -> &'a [u8] {
        match text {
            Text::Plain(bytes) => bytes,
            Text::Decoded { from, to } => &self.scratch[from..to],
        }
    }

    /// Takes the size updates at the start of a block (sections 4.2 and 6.3) and returns the rest.
    #[inline]
    fn take_size_updates<'b>(&mut self, block: &'b [u8]) -> Result<&'b [u8], HpackError> {
        let mut rest = block;
        while let [first @ 0x20..=0x3f, after @ ..] = rest {
            rest = after;
            let size = take_integer(*first, 5, &mut rest)?;
            if size > self.table_limit {
                return Err(HpackError::TableSize);
            }
            self.table.set_max_size(size);
        }
        Ok(rest)
    }

    /// Takes a literal (section 6.2) whose first byte was in front of `rest`.
    #[inline]
    fn take_literal<'b>(&mut self, first: u8, rest: &mut &'b [u8]) -> Result<Literal<'b>, HpackError> {
        let (is_inserted, index) = match first {
            0x40.. => (true, take_integer(first, 6, rest)?),
            // Not at the start, where updates were taken.
            0x20..0x40 => return Err(HpackError::TableSize),
            // Never-indexed literals differ only for intermediaries.
            0..0x20 => (false, take_integer(first, 4, rest)?),
        };
        let mut decoded = 0;
        let name = match index {
            0 => Name::Literal(self.take_text(&mut decoded, rest)?),
            index => Name::Index(index),
        };
        let value = self.take_text(&mut decoded, rest)?;
        Ok(Literal { name, value, is_inserted })
    }

    /// Takes a string (section 5.2). `decoded` is the end of this field's part of the scratch buffer.
    #[inline]
    fn take_text<'b>(&mut self, decoded: &mut usize, rest: &mut &'b [u8]) -> Result<Text<'b>, HpackError> {
        let (&first, after) = rest.split_first().ok_or(HpackError::Truncated)?;
        *rest = after;
        let length = take_integer(first, 7, rest)?;
        let (bytes, after) = rest.split_at_checked(length as usize).ok_or(HpackError::Truncated)?;
        *rest = after;
        if first & 0x80 == 0 {
            return Ok(Text::Plain(bytes));
        }
        let from = *decoded;
        *decoded = self.decode_to_scratch(from, bytes).ok_or(HpackError::Huffman)?;
        Ok(Text::Decoded { from, to: *decoded })
    }

    /// Decodes a string to the scratch buffer from `from` on, and gives its end.
    fn decode_to_scratch(&mut self, from: usize, coded: &[u8]) -> Option<usize> {
        let room = from + huffman::decoded_room(coded.len());
        if self.scratch.len() < room {
            self.scratch.resize(room, 0);
        }
        huffman::decode(coded, &mut self.scratch[from..]).map(|length| from + length)
    }

    fn insert(&mut self, literal: Literal<'_>) {
        let Self { table, scratch, .. } = self;
        let bytes = |text| match text {
            Text::Plain(bytes) => bytes,
            Text::Decoded { from, to } => &scratch[from..to],
        };
        let name = match literal.name {
            Name::Literal(text) => EntryName::Bytes(bytes(text)),
            Name::Index(index) => match index.checked_sub(STATIC_ENTRIES + 1) {
                Some(place) => EntryName::OfEntry(place),
                None => EntryName::Bytes(STATIC_TABLE[index as usize - 1].0),
            },
        };
        table.insert(name, bytes(literal.value));
    }

    #[inline]
    fn give_back_scratch(&mut self) {
        if self.scratch.len() > SCRATCH_KEPT {
            self.scratch = Vec::new();
        }
    }
}

/// A literal field whose strings are still where they were found.
#[derive(Clone, Copy, Debug)]
struct Literal<'b> {
    name: Name<'b>,
    value: Text<'b>,
    is_inserted: bool,
}

#[derive(Clone, Copy, Debug)]
enum Name<'b> {
    /// The name of the field with this index, which need not exist.
    Index(u32),
    Literal(Text<'b>),
}

#[derive(Clone, Copy, Debug)]
enum Text<'b> {
    /// Bytes as they are in the block.
    Plain(&'b [u8]),
    /// A range of the scratch buffer.
    Decoded { from: usize, to: usize },
}

/// The unused part of the limits.
struct Allowance {
    list_bytes: u64,
    fields: u32,
    exceeded: bool,
}

impl Allowance {
    #[inline]
    fn new(limits: &FieldLimits) -> Self {
        Self { list_bytes: u64::from(limits.list_bytes), fields: limits.fields, exceeded: false }
    }

    /// Counts one more field. Returns `true` if it is within the limits; `false` for every field after the
    /// first one that is not.
    #[inline]
    fn admits(&mut self, name: &[u8], value: &[u8]) -> bool {
        let size = (name.len() + value.len()) as u64 + u64::from(ENTRY_OVERHEAD);
        match (self.list_bytes.checked_sub(size), self.fields.checked_sub(1)) {
            (Some(list_bytes), Some(fields)) if !self.exceeded => {
                (self.list_bytes, self.fields) = (list_bytes, fields);
                true
            }
            _ => {
                self.exceeded = true;
                false
            }
        }
    }

    #[inline]
    fn verdict(&self) -> Result<(), HpackError> {
        if self.exceeded { Err(HpackError::ListTooLarge) } else { Ok(()) }
    }
}
