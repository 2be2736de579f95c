//! Activity of the machine and of processes, second by second: from `/proc`, `/sys` and control groups.
//!
//! A [`Sampler`] keeps the files open that it needs, and reads them again with each
//! [`sample`](Sampler::sample). It turns the counters of the system into differences since the last sample,
//! as [`MachineInterval`](plimsoll_metrics::MachineInterval). It reads files and nothing else: no socket, no
//! clock (the time is an argument), nothing that a user without rights could not do. A value that the system
//! does not report is `None`, and the [facts](Sampler::facts) give the reason once.
//!
//! [`parse`] has the formats as pure functions from bytes. [`host`] has the facts that do not change while a
//! run goes on.
#![forbid(unsafe_code)]

mod cgroup;
pub mod host;
mod kept;
mod machine;
mod network;
mod others;
pub mod parse;
mod process;
mod sampler;
mod server;
mod target;

pub use sampler::Sampler;
pub use server::{DESCRIPTORS_PER_SERVER, is_there};
pub use target::{Named, Watch};
