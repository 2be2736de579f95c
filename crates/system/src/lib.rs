//! What Linux gives a program beside its connections: clocks, threads, limits, the use of processors, names
//! of hosts, free ports, network namespaces, and what a process inherits and leaves.
//!
//! Each module stands alone and wraps a few calls of the system. Connections are the business of the driver.

pub mod child;
pub mod clock;
pub mod inherited;
pub mod last_words;
pub mod limits;
pub mod namespace;
pub mod ports;
pub mod resolve;
pub mod thread;
pub mod usage;
