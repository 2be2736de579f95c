//! The cache of plans, from its keys to the bytes of its servers, and the built-in server on real sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod advice;
mod attack;
mod document;
#[path = "../hostile.rs"]
mod hostile;
mod load;
mod program;
mod server;
mod simulation;
mod target;
mod wire;
