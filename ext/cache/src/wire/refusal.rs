//! Reasons why a server refuses a request, in the words of the real one.

use std::fmt;
use std::str::Utf8Error;

use super::Operation;

/// A request whose payload is wrong. The server answers with an error of this text, and goes on.
///
/// The texts are those of the real server where they were observed; for a GET or DELETE without a key length
/// they follow those of a PUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A frame of no bytes.
    Empty,
    /// The first byte is that of no operation.
    UnknownCommand(u8),
    /// The frame ends before the length of the cache's name.
    NoNameLength(Operation),
    /// The frame ends within the cache's name.
    NameTooShort(Operation),
    /// The name is not text.
    NameNotUtf8(Utf8Error),
    /// The frame ends before the lengths of key and value.
    NoLengths(Operation),
    /// The frame ends within key or value.
    TooShort {
        /// The operation that was asked for.
        operation: Operation,
        /// Bytes of key and value that the request announces.
        expected: u64,
        /// Bytes that the frame has left for them.
        got: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => f.write_str("Empty buffer"),
            Self::UnknownCommand(code) => write!(f, "Unknown command: 0x{code:02X}"),
            Self::NoNameLength(operation) => {
                write!(f, "Invalid {}: missing cache_name length", operation.word())
            }
            Self::NameTooShort(operation) => {
                write!(f, "Invalid {}: cache_name too short", operation.word())
            }
            Self::NameNotUtf8(error) => write!(f, "Invalid cache_name UTF-8: {error}"),
            Self::NoLengths(Operation::Put) => f.write_str("Invalid PUT: missing key/value length fields"),
            Self::NoLengths(operation) => {
                write!(f, "Invalid {}: missing key length field", operation.word())
            }
            Self::TooShort { operation, expected, got } => {
                write!(f, "Invalid {}: expected {expected} bytes, got {got}", operation.word())
            }
        }
    }
}

impl std::error::Error for Refusal {}
