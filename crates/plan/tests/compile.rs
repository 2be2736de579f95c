//! From a plan file to requests.

mod around;
mod data;
mod flow;
mod interleaved;
mod lengths;
mod pace;
pub(crate) mod plans;
mod programs;
mod recording;
mod requests;
mod secrets;
mod targets;
mod tokens;
