//! HTTP/1.0 and HTTP/1.1 (RFC 9112): the client's half in [`ResponseClient`], the server's in
//! [`RequestServer`].
//!
//! ```text
//!             ┌─ byte-identical to the memo: one comparison ──┐
//!   input ────┤                                               ├──▶ framing ──▶ body counted ──▶ Response
//!             ├─ whole head in the input: httparse ───────────┤
//!             └─ cut head: gathered per connection, httparse ─┘
//! ```
//!
//! A target answers most requests with the same head, so a worker keeps the last one per step
//! ([`HeadMemo`]) and recognises it again by comparing bytes (about 5 ns against about 100 ns for a parse).
//! That changes no answer: `tests/http1/properties.rs` compares every result with and without it, and with
//! the input cut at every byte.
//!
//! Where the RFC leaves a choice, the client is lenient (it measures servers as they are) wherever it can
//! still know where the response ends: bare LF, obsolete line folding, white space before a colon, empty
//! lines before a head. It is strict about everything that decides the length of a message.

mod body;
mod encode;
mod error;
mod fields;
mod gather;
mod memo;
mod request;
mod response;

pub use body::{LONGEST_KEPT_BODY, LONGEST_QUOTE};
pub use encode::{reason, write_response_head};
pub use error::{ProtocolError, Truncated};
pub use memo::{HeadMemo, RequestMemo};
pub use request::{Request, RequestServer};
pub use response::{Capture, PendingRequest, Response, ResponseClient};

/// Limits for the memory and the waits that a peer can cause on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of one head, from the first byte of its start line to its empty line. It also bounds
    /// the trailer section of a chunked body.
    pub head_bytes: usize,
    /// The most header fields of one head.
    pub headers: usize,
    /// The most interim (1xx) responses before one final response; values above 255 mean 255.
    pub interim: u32,
}

impl Default for Limits {
    /// 64 KiB and 256 fields: several times the usual size today, small enough for a million connections not
    /// to be a danger. 32 interim responses: room for a server that reports progress.
    fn default() -> Self {
        Self { head_bytes: 64 * 1024, headers: 256, interim: 32 }
    }
}
