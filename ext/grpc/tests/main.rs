//! gRPC from the files of services to calls of foreign servers, by the program with this extension alone.

mod attack;
mod calls;
#[path = "../hostile.rs"]
mod hostile;
mod import;
mod program;
mod sink;
mod tonic;
