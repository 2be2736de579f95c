//! Redis from the keys of plans to the bytes of its servers.

mod document;
mod hostile;
mod program;
mod real;
mod server;
mod simulation;
