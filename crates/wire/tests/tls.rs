//! TLS: a client and a server in memory, handshakes, data, and refusals.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod authority;
mod data;
mod garbage;
mod handshake;
mod link;
mod refusals;
