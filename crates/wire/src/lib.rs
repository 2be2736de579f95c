//! The protocols as state machines without I/O: bytes in, facts and bytes out, for the client and for its
//! server twin, and TLS as a layer of its own.
//!
//! ```text
//!   socket bytes ──▶ tls::Session ──▶ http1::ResponseClient ──▶ Response { status, bytes, keep_alive, … }
//!                    (only https)     http1::RequestServer  ──▶ Request  { method, target, id, … }
//! ```
//!
//! Nothing here opens a socket, reads a clock, starts a thread or keeps a body: bodies are counted and
//! dropped. Every decoder can be stopped after any byte and gives the same answer however its input was cut;
//! what it remembers of a peer is bounded by [`http1::Limits`]. The types to know first are
//! [`http1::ResponseClient`], [`http1::RequestServer`] and [`tls::Session`].
#![forbid(unsafe_code)]

pub mod http1;
pub mod http2;
pub mod tls;
