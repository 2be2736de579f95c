//! Header compression, HPACK (RFC 7541).
//!
//! The receiving half is the [`Decoder`]: it keeps a dynamic table per connection and calls back with each
//! field, borrowed from the block, from a table or from a buffer for Huffman-coded strings; nothing is
//! allocated per field or block once the table is full. The sending half has no table: the content of the
//! peer's is decided beforehand, see [`HeaderBlockCache`](super::HeaderBlockCache), and this module has only
//! the functions that write representations.

mod decoder;
mod dynamic_table;
pub(super) mod encoder;
mod error;
mod huffman;
mod integer;
mod static_table;

pub use decoder::{Decoder, FieldLimits};
pub use encoder::{put_literal, put_string};
pub use error::HpackError;
pub use integer::put_integer;

pub(super) use decoder::INITIAL_TABLE_SIZE;
pub(super) use dynamic_table::ENTRY_OVERHEAD;
pub(super) use static_table::{STATIC_ENTRIES, find_field};
