//! Starts, breaks and inspects the system under test.
#![forbid(unsafe_code)]

mod address_book;
mod ask;
pub mod check;
pub mod cluster;
pub mod document;
mod error;
pub mod fault;
mod link_impairment;
mod network;
mod node;
pub mod pages;
pub mod process_tag;
pub mod proxy;
mod readiness;
mod reading;
pub mod spec;
mod staleness;
mod state_dir;
pub mod template;
pub mod timeline;

pub use address_book::Surroundings;
pub use cluster::{Cluster, Setting};
pub use error::ClusterError;
pub use reading::known_profile;
pub use spec::Spec;
pub use staleness::Staleness;
pub use state_dir::{NodeState, State};
