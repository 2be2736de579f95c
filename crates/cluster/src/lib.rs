//! Starts, breaks and inspects the system under test.
#![forbid(unsafe_code)]

mod ask;
pub mod check;
pub mod cluster;
pub mod document;
mod error;
pub mod fault;
mod home;
pub mod mark;
mod network;
mod node;
pub mod pages;
pub mod proxy;
mod readiness;
mod reading;
pub mod spec;
mod staleness;
pub mod template;
pub mod timeline;
mod weather;
mod wiring;

pub use cluster::{Cluster, Setting};
pub use error::ClusterError;
pub use home::{NodeState, State};
pub use reading::known_profile;
pub use spec::Spec;
pub use staleness::Staleness;
pub use wiring::Surroundings;
