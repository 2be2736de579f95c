//! HTTP/2 (RFC 9113) and its header compression (RFC 7541).
//!
//! ```text
//!   HeaderBook ──▶ header blocks encoded once ──┐
//!   Indexing   ──▶ what the peer's table holds ─┴▶ HEADERS ──▶ the peer
//!   the peer   ──▶ HEADERS ──▶ hpack::Decoder ──▶ fields
//! ```

mod block;
mod book;
mod budget;
mod client;
mod error;
mod fields;
mod flow;
mod frame;
mod heads;
pub mod hpack;
mod intake;
mod payload;
mod server;
mod settings;
mod streams;
mod window;

pub use book::{BlockId, Field, FieldValue, HeaderBook, Indexing};
pub use client::{Captured, Client, ClientOptions, Event, Response, StreamFailure, Submit};
pub use error::{ConnectionError, ErrorCode};
pub use frame::PREFACE;
pub use hpack::{FieldLimits, HpackError};
pub use payload::Payload;
pub use server::{Request, Server, ServerOptions, Span};
