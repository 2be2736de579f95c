//! HTTP/2 (RFC 9113) and its header compression (RFC 7541): the client's half in [`Client`], the server's in
//! [`Server`].
//!
//! ```text
//!   HeaderBlockCache  the header blocks of a target or a server, encoded once and shared ──┐
//!   Indexing          which of their fields this connection's peer has in its table ───────┴▶ HEADERS
//!
//!   HEADERS ──┬─ as one of the last blocks that changed no table: one comparison ──┬▶ fields checked
//!             └─ hpack::Decoder ───────────────────────────────────────────────────┘
//! ```
//!
//! As in HTTP/1.1 what repeats is neither encoded nor decoded again. A request without variables is written
//! by copying some ten bytes, once the peer's dynamic table holds what the [`HeaderBlockCache`] wants there;
//! an answer whose header block is the same as the last one costs one comparison, as long as
//! [`hpack::Decoder::epoch`] says that it still means the same.

mod block;
mod block_cache;
mod budget;
mod client;
mod error;
mod fields;
mod flow;
mod frame;
mod frame_reader;
mod heads;
pub mod hpack;
mod payload;
mod server;
mod settings;
mod streams;
mod window;

pub use block_cache::{BlockId, Field, FieldValue, HeaderBlockCache, Indexing};
pub use client::{
    Captured, Client, ClientOptions, Event, LONGEST_KEPT_BODY, LONGEST_QUOTE, Response, StreamFailure,
    Submit, Traffic,
};
pub use error::{ConnectionError, ErrorCode};
pub use frame::PREFACE;
pub use hpack::{FieldLimits, HpackError};
pub use payload::Payload;
pub use server::{LONGEST_KEPT_CONTENT, Request, Server, ServerOptions, Span};
