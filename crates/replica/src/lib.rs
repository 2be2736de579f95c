//! One node of the reference cluster: a CRUD API over a log replicated by openraft, which can be made to
//! lie.
//!
//! Two threads with a runtime each: the requests of clients (`api`) and the consensus (`consensus`,
//! `machine`, `network`), so that a large answer holds up no heartbeat. A third one writes the log (`log`).
//! This is the one place of the product with an async runtime, since openraft needs one; nothing of it is
//! ever on the way of load, for nodes are processes of their own.
//!
//! A write goes: `api` checks it and encodes a [`change`]; `proposer` makes one entry of all that wait;
//! openraft brings it into the logs of a majority; `machine` applies it to the `state`, which every node
//! answers reads from. Lies that a leader tells are marks in the log, so that every node knows of them.
#![forbid(unsafe_code)]

mod api;
mod catalogue;
mod change;
mod collection;
mod consensus;
mod durable;
mod error;
mod fields;
mod frame;
mod http;
mod identifier;
mod lies;
mod log;
mod machine;
mod network;
mod node_status;
mod options;
mod peers;
mod proposer;
mod query;
mod replica;
mod segment;
mod snapshot;
mod state;
mod views;

pub use error::ReplicaError;
pub use lies::{Lie, LieKind};
pub use node_status::NodeStatus;
pub use options::{Fsync, Peer, ReplicaOptions};
pub use replica::{Bound, Replica, Stopper};
