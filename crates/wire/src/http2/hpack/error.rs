//! Errors in a header block.

use std::fmt;

/// A header block could not be decoded.
///
/// All but [`ListTooLarge`](Self::ListTooLarge) leave the dynamic table in an unknown state: they are errors
/// of the connection (COMPRESSION_ERROR, RFC 9113 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HpackError {
    /// The block ends within a field.
    Truncated,
    /// An integer beyond 32 bits, or of more bytes than 32 bits can take (RFC 7541 section 5.1).
    Integer,
    /// A Huffman-coded string contains EOS, or its padding is longer than 7 bits or not of ones (section
    /// 5.2).
    Huffman,
    /// An index that neither table has (section 2.3.3).
    Index,
    /// A dynamic table size update above the advertised size, or after a field (sections 4.2 and 6.3).
    TableSize,
    /// The fields are larger, or more, than [`FieldLimits`](super::FieldLimits). The block was decoded to its
    /// end and the dynamic table is right: only the stream fails, and the connection goes on.
    ListTooLarge,
}

impl HpackError {
    /// Returns `true` if the connection has to end: the dynamic table no longer matches that of the peer's
    /// encoder.
    pub const fn is_fatal(self) -> bool {
        !matches!(self, Self::ListTooLarge)
    }
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the header block ends within a field",
            Self::Integer => "an integer of the header block is too large",
            Self::Huffman => "a Huffman-coded string of the header block is malformed",
            Self::Index => "the header block refers to a table entry that does not exist",
            Self::TableSize => "a dynamic table size update of the header block is not allowed",
            Self::ListTooLarge => "the header fields are larger or more than the limits",
        })
    }
}

impl std::error::Error for HpackError {}
