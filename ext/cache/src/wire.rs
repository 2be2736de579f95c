//! The binary protocol of the Carbon cache: the client's half in [`ReplyClient`] and [`FrameWriter`], the
//! server's in [`RequestServer`] and [`write_reply`].
//!
//! Every message is a frame: its length as four bytes, big-endian like every number here, and as many bytes
//! of payload, [`LONGEST_FRAME`] at most. There is no handshake and nothing that names a request: replies
//! come in the order of the requests, and requests may be sent ahead of them.
//!
//! ```text
//! request  0x00 PING                                                       reply  0x00 PONG
//!          0x01 PUT     name length, name, key and value lengths, key, value      0x01 OK
//!          0x02 GET     name length, name, key length, key                        0x02 VALUE length, value
//!          0x03 DELETE  as GET                                                    0x01 OK
//!                                                                                 0x03 NOT_FOUND
//!                                                                                 0x04 ERROR length, text
//! ```
//!
//! The real server never sends NOT_FOUND: it answers a GET of a missing key with the error text
//! [`MISSING_TEXT`]. Both are [`Answer::Missing`] to the client. Its handling of wrong requests, and the
//! texts of its errors, are those of [`Refusal`]; the connection stays usable after each. Only a frame beyond
//! the limit ends a connection.

mod error;
mod frame;
mod in_turn;
mod refusal;
mod reply;
mod server;

pub use error::{ProtocolError, TooLong, Truncated};
pub use frame::{FrameHead, FrameWriter, ServerReply, write_reply, write_request, write_value_head};
pub use refusal::Refusal;
pub use reply::{Answer, LONGEST_ERROR_TEXT, PendingRequest, Reply, ReplyClient};
pub use server::{FrameTooLong, Request, RequestServer};

/// The most bytes of a frame, without the four of its length: 8 MiB, the limit of the real server.
pub const LONGEST_FRAME: usize = 8 << 20;

/// The error text with which the real server answers a GET of a missing key.
pub const MISSING_TEXT: &str = "Get failed: not found";

/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

/// The operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Checks whether the server answers.
    Ping,
    /// Stores a value under a key.
    Put,
    /// Reads the value of a key.
    Get,
    /// Deletes a key, which need not exist.
    Delete,
}

impl Operation {
    /// The name in output and in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Put => "put",
            Self::Get => "get",
            Self::Delete => "delete",
        }
    }

    /// Returns the number by which a request is told from others ([`Owed`](plimsoll_wire::in_turn::Owed)).
    pub const fn kind(self) -> u16 {
        self.code() as u16
    }

    /// Returns the operation of a [kind](Self::kind).
    pub(super) fn of_kind(kind: u16) -> Option<Self> {
        u8::try_from(kind).ok().and_then(Self::of_code)
    }

    /// Returns the first byte of its requests.
    const fn code(self) -> u8 {
        match self {
            Self::Ping => 0,
            Self::Put => 1,
            Self::Get => 2,
            Self::Delete => 3,
        }
    }

    const fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Ping),
            1 => Some(Self::Put),
            2 => Some(Self::Get),
            3 => Some(Self::Delete),
            _ => None,
        }
    }

    /// Returns the name in the protocol, and in the error texts of the real server.
    const fn word(self) -> &'static str {
        match self {
            Self::Ping => "PING",
            Self::Put => "PUT",
            Self::Get => "GET",
            Self::Delete => "DELETE",
        }
    }
}

/// The kind of a reply, given by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pong,
    Ok,
    Value,
    NotFound,
    Error,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Pong => 0,
            Self::Ok => 1,
            Self::Value => 2,
            Self::NotFound => 3,
            Self::Error => 4,
        }
    }

    const fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Pong),
            1 => Some(Self::Ok),
            2 => Some(Self::Value),
            3 => Some(Self::NotFound),
            4 => Some(Self::Error),
            _ => None,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Pong => "PONG",
            Self::Ok => "OK",
            Self::Value => "VALUE",
            Self::NotFound => "NOT_FOUND",
            Self::Error => "ERROR",
        }
    }

    /// Returns `true` if it can be the reply to such a request.
    const fn answers(self, operation: Operation) -> bool {
        match self {
            Self::Pong => matches!(operation, Operation::Ping),
            Self::Ok => matches!(operation, Operation::Put | Operation::Delete),
            Self::Value => matches!(operation, Operation::Get),
            Self::NotFound => matches!(operation, Operation::Get | Operation::Delete),
            Self::Error => true,
        }
    }

    /// Returns `true` if a length and as many bytes follow.
    const fn has_content(self) -> bool {
        matches!(self, Self::Value | Self::Error)
    }
}

/// Reads the number at the front of `bytes`; `None` if it is not whole.
#[inline]
fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
