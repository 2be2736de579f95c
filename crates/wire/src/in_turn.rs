//! The client's half of protocols whose answers come in the order of their requests, for crates that bring
//! such a protocol along.

use std::fmt;

use plimsoll_core::ErrorClass;

use crate::http1::Truncated;

/// Facts about the oldest unanswered request that are needed to read its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owed {
    /// Kind of the request, by a number of the protocol's own.
    pub kind: u16,
    /// Set to keep the content of the answer.
    pub keep: bool,
}

/// One whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status of HTTP that corresponds to it: answers of all protocols are judged and counted by such
    /// statuses.
    pub status: u16,
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// Reason that the server gives for a refusal.
    pub refusal: Option<String>,
}

/// Bytes that the protocol does not allow. The connection has to be closed: which answer belongs to which
/// request is not known any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The class under which the request that was owed an answer is counted.
    pub class: ErrorClass,
    /// The violation, in words.
    pub reason: String,
}

/// Reads the answers of one connection. One per connection.
///
/// Call [`next`](Self::next) with the received bytes until it returns `None`, and [`finish`](Self::finish)
/// when the server has closed. After an error neither makes sense.
pub trait InTurnClient: fmt::Debug + Send {
    /// Consumes from the front of `input` until one answer is complete (`Some`) or the input is used up
    /// (`None`). The bytes of the next answer stay in the input.
    ///
    /// `owed` is the same in every call for one answer. If it asks for that, the content is appended to
    /// `content` as it comes, at most [`LONGEST_KEPT_BODY`](crate::http1::LONGEST_KEPT_BODY) bytes in all.
    ///
    /// # Errors
    /// The server broke the protocol.
    fn next(
        &mut self,
        owed: Owed,
        input: &mut &[u8],
        content: &mut Vec<u8>,
    ) -> Result<Option<Answer>, Violation>;

    /// Notes that the server has closed the connection.
    ///
    /// # Errors
    /// An answer was not whole.
    fn finish(&mut self) -> Result<(), Truncated>;
}
