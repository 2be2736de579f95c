//! WebSocket (RFC 6455), client and server side: the opening handshake over HTTP/1.1 or HTTP/2, frames, and
//! the messages that are made of them.
//!
//! ```text
//!   client: upgrade request (with a Sec-WebSocket-Key) ──▶ ClientHandshake ──▶ MessageReader
//!   server: ServerHandshake, write_upgrade_response     ──▶ MessageReader
//!   either: write_frame, write_close
//! ```
//!
//! Over HTTP/2 (RFC 8441) [`ClientStream`] and [`ServerStream`] take the place of the handshakes, and carry
//! all bytes behind them.
//!
//! The one extension is permessage-deflate (RFC 7692), where both ends agree on it: a frame with another
//! reserved bit is an error. Messages are whole when they are told; control frames are told between the
//! fragments of a message. Text is checked to be UTF-8 as it comes.

mod deflate;
mod error;
mod frame;
mod handshake;
mod http2;
mod reader;

pub use deflate::{Deflate, Deflater};
pub use error::WebSocketError;
pub use frame::{LONGEST_CONTROL, Opcode, close_code, is_valid_close_code, write_close, write_frame};
pub use handshake::{
    Accept, ClientHandshake, HandshakeError, HandshakeProgress, ServerHandshake, UpgradeProgress,
    UpgradeRequest, accept_of, key_of, write_upgrade_response,
};
pub use http2::{ClientNews, ClientStream, ServerNews, ServerStream};
pub use reader::{MessageReader, Received};

/// The end of a connection that the reader is at: it decides which frames have to be masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Frames that come are not masked.
    Client,
    /// Frames that come are masked.
    Server,
}
