//! Redis from the keys of plans to the bytes of its servers.

mod document;
mod server;
mod simulation;
