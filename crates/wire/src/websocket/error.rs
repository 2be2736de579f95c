//! Violations of the protocol.

use std::fmt;

/// A violation of the protocol by the peer, after which nothing more can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSocketError {
    /// The server masks a frame (RFC 6455 section 5.1).
    Masked,
    /// The client does not mask a frame (section 5.1).
    Unmasked,
    /// A reserved bit is set that has no meaning, or none in this frame (section 5.2).
    ReservedBits,
    /// The opcode has no meaning (section 5.2).
    Opcode(u8),
    /// A control frame is a fragment (section 5.5).
    FragmentedControl,
    /// A control frame has more than 125 bytes (section 5.5).
    LongControl,
    /// A fragment continues a message that has not begun (section 5.4).
    NothingToContinue,
    /// A message begins before the one before has ended (section 5.4).
    Interleaved,
    /// A length is not written in the fewest bytes, or has its highest bit set (section 5.2).
    Length,
    /// A message is longer than the limit.
    TooLong,
    /// Fragments of a message without a byte, more than anybody needs.
    EmptyFragments,
    /// The payload of a compressed message is not DEFLATE (RFC 7692 section 7.2.2).
    Deflate,
    /// A text, or the reason of a close, is not UTF-8 (section 8.1).
    NotUtf8,
    /// A close frame has a status that must not be sent (section 7.4).
    CloseCode(u16),
    /// The payload of a close frame is one byte: too short for a status (section 5.5.1).
    ShortClose,
}

impl WebSocketError {
    /// The status to close the connection with (RFC 6455 section 7.4.1).
    pub const fn close_code(self) -> u16 {
        match self {
            Self::NotUtf8 | Self::Deflate => 1007,
            Self::TooLong => 1009,
            Self::EmptyFragments => 1008,
            _ => 1002,
        }
    }
}

impl fmt::Display for WebSocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Masked => "the server masks a frame",
            Self::Unmasked => "the client does not mask a frame",
            Self::ReservedBits => "a reserved bit is set that has no meaning here",
            Self::Opcode(opcode) => return write!(f, "the opcode {opcode} has no meaning"),
            Self::FragmentedControl => "a control frame is a fragment",
            Self::LongControl => "a control frame has more than 125 bytes",
            Self::NothingToContinue => "a fragment continues a message that has not begun",
            Self::Interleaved => "a message begins before the one before has ended",
            Self::Length => "a length is not written in the fewest bytes, or is too large",
            Self::TooLong => "a message is longer than the limit",
            Self::EmptyFragments => "a message has too many fragments without a byte",
            Self::Deflate => "a compressed message cannot be unpacked",
            Self::NotUtf8 => "a text is not UTF-8",
            Self::CloseCode(code) => return write!(f, "the status {code} must not be sent in a close frame"),
            Self::ShortClose => "the payload of a close frame is too short for a status",
        })
    }
}

impl std::error::Error for WebSocketError {}
