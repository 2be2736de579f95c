//! The cache of plans, from its keys to the bytes of its servers.

mod document;
mod server;
mod simulation;
