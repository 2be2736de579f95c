//! TLS: a client and a server in memory, as they are meant to work, and what they refuse.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod authority;
mod data;
mod garbage;
mod handshake;
mod link;
mod refusals;
