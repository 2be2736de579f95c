//! What the machine and a process did, second by second: from `/proc`, `/sys` and control groups.
//!
//! A [`Sampler`] keeps the files open that it needs, and reads them again with each
//! [`sample`](Sampler::sample): the counters of the system become what happened since the last one, as
//! [`MachineInterval`](plimsoll_metrics::MachineInterval). It reads files and nothing else: no socket, no
//! clock (the time is an argument), nothing that a user without rights could not do. What a system does not
//! tell is `None`, and the [facts](Sampler::facts) say once why.
//!
//! [`parse`] has the formats as pure functions from bytes, [`host`] what does not change while a run goes on.
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
