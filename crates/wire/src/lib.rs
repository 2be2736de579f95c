//! The protocols as state machines without I/O: bytes in, facts and bytes out, for the client and for its
//! server twin, and TLS as a layer of its own.
//!
//! ```text
//!   socket bytes ──▶ tls::Session ──┬▶ http1::ResponseClient ──▶ Response { status, bytes, keep_alive, … }
//!                    (only https)   │  http1::RequestServer  ──▶ Request  { method, target, id, … }
//!                                   ├▶ http2::Client         ──▶ Event    { ticket, response or failure, … }
//!                                   │  http2::Server         ──▶ Request  { stream, method, path, … }
//!                                   └▶ in_turn::InTurnClient ──▶ Answer   { status, bytes, refusal }
//! ```
//!
//! [`events::EventReader`] reads streams of events in the bodies of responses, [`length_prefixed::Messages`]
//! messages behind their lengths, and [`protobuf::fields`] the fields of a message.
//! [`websocket::MessageReader`] reads the messages of a connection that was upgraded to WebSocket.
//! [`tunnel::TunnelClient`] asks a proxy for a way to the peer, before anything else is spoken.
//! [`in_turn::InTurnClient`] is for protocols of other crates.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or keeps a body: bodies are counted and
//! dropped. Every decoder can be stopped after any byte and gives the same answer however its input was cut;
//! its memory for a peer is bounded by [`http1::Limits`], and by [`http2::FieldLimits`] and the options of
//! either side. The types to know first are [`http1::ResponseClient`], [`http1::RequestServer`],
//! [`http2::Client`], [`http2::Server`], [`http2::HeaderBlockCache`], [`in_turn::InTurnClient`]
//! and [`tls::Session`].
#![forbid(unsafe_code)]

pub mod events;
pub mod http1;
pub mod http2;
pub mod in_turn;
pub mod length_prefixed;
pub mod protobuf;
pub mod tls;
pub mod tunnel;
pub mod websocket;
