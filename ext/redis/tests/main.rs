//! Redis from the keys of plans to the bytes of its servers.

mod attack;
mod document;
#[path = "../hostile.rs"]
mod hostile;
mod program;
mod real;
mod server;
mod simulation;
