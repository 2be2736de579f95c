//! Errors in a server's bytes, and in requests.

use std::fmt;

use plimsoll_core::ErrorClass;

use super::{Kind, LONGEST_FRAME, Operation};

/// The server broke the protocol. Replies have no name, so which of them answers which request is not known
/// any more: the connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProtocolError {
    /// HTTP where a frame should begin.
    SpeaksHttp,
    /// A frame of no bytes, which has no kind.
    EmptyFrame,
    /// A frame of more than [`LONGEST_FRAME`] bytes. Carries the announced length.
    FrameTooLong(u32),
    /// A reply that begins with a byte that no kind of reply has.
    UnknownReply(u8),
    /// A reply of a kind that does not answer the request.
    WrongReply {
        /// The operation that was asked for.
        operation: Operation,
        /// The first byte of the reply.
        reply: u8,
    },
    /// The lengths in a reply do not add up to that of its frame.
    LengthsDisagree {
        /// The first byte of the reply.
        reply: u8,
        /// Announced bytes of the frame.
        frame: u32,
        /// Announced bytes of the reply's content; 0 if it carries none, or its length has no room.
        content: u32,
    },
}

impl ProtocolError {
    /// The class under which a request that ended this way is counted.
    pub const fn class(self) -> ErrorClass {
        match self {
            Self::SpeaksHttp => ErrorClass::WrongProtocol,
            Self::EmptyFrame
            | Self::FrameTooLong(_)
            | Self::UnknownReply(_)
            | Self::WrongReply { .. }
            | Self::LengthsDisagree { .. } => ErrorClass::Protocol,
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::SpeaksHttp => f.write_str("this port speaks HTTP, not the cache protocol"),
            Self::EmptyFrame => f.write_str("the server sent a frame of no bytes"),
            Self::FrameTooLong(bytes) => write!(
                f,
                "the server announced a frame of {bytes} bytes; the cache protocol allows {LONGEST_FRAME}"
            ),
            Self::UnknownReply(code) => write!(f, "the server sent a reply of unknown kind 0x{code:02X}"),
            Self::WrongReply { operation, reply } => {
                write!(f, "the server answered {} to a {}", word(reply), operation.word())
            }
            Self::LengthsDisagree { reply, frame, content } => write!(
                f,
                "the server sent {} with lengths that disagree: {content} bytes in a frame of {frame}",
                word(reply)
            ),
        }
    }
}

/// The name of a kind of reply.
fn word(code: u8) -> &'static str {
    Kind::of_code(code).map_or("an unknown reply", Kind::word)
}

impl std::error::Error for ProtocolError {}

/// The server closed the connection in the middle of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Truncated;

impl Truncated {
    /// The class under which the request that was owed this reply is counted.
    pub const fn class(self) -> ErrorClass {
        ErrorClass::ClosedInResponse
    }
}

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server closed the connection in the middle of a reply")
    }
}

impl std::error::Error for Truncated {}

/// A request that does not fit a frame: no server would take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TooLong {
    /// Bytes of its frame, without the four of the length.
    pub bytes: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cache name, key and value make a frame of {} bytes; the cache protocol allows {LONGEST_FRAME}",
            self.bytes
        )
    }
}

impl std::error::Error for TooLong {}
