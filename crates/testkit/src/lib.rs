//! A simulated world for tests: virtual time, a network with latency and segments, servers with known
//! behaviour, seeded faults, and oracles that say what has to come out.
//!
//! A server speaks HTTP/1.1, or HTTP/2 on connections that begin with its preface.
//!
//! [`SimBackend`] is a third [`Backend`](plimsoll_driver::Backend) beside epoll and io_uring, so the whole
//! engine runs on it unchanged, without a sleep and with the same result every time.
//! The three types to know first are [`SimOptions`] (the world as a value), [`Behaviour`] (what one server
//! does) and [`TruthLog`] (what the servers really did, to compare a report with).
//!
//! ```text
//! SimOptions ──► SimOpen ──open()──► SimBackend ◄──Backend calls── engine
//!                   │                    │ timeline: connects, segments, replies, faults
//!                   └── TruthLog ◄───────┴ one entry per request that a server received
//! ```
//!
//! It must not use the crates that it tests: requests are recognised by parsers of its own
//! ([`mod@request`]), and the oracles are closed formulas. It touches no socket and no clock, except for
//! [`mod@hostile`], servers that attack the program as a whole, and [`mod@client`], a client for tests of
//! built-in servers. Of the environment it reads which [`seeds`]
//! are asked for, if a test may be [skipped](mod@skip), and where the lock of the [`machine`] is. Of the
//! repository it reads the [commands](mod@printed_commands) that the documents print.
//!
//! Each backend owns its world: with several workers every worker has its own copy of every server, with its
//! own queue and its own clock. A test of one shared queue uses one worker.
#![forbid(unsafe_code)]

pub mod answer;
pub mod backend;
pub mod behaviour;
pub mod client;
pub mod eventually;
pub mod hostile;
pub mod law;
pub mod machine;
pub mod options;
pub mod oracle;
pub mod ports;
pub mod printed_commands;
pub mod program;
pub mod protocol;
pub mod request;
pub mod seeds;
pub mod sink_log;
pub mod skip;
pub mod truth;
pub mod verdict;

mod hpack;
mod http2;
mod server;
mod sockets;
mod timeline;

pub use answer::{Answer, Framing};
pub use backend::SimBackend;
pub use behaviour::{Behaviour, Concurrency, Faults, Http2, Pause, SlowAccept};
pub use law::Law;
pub use options::{SimOpen, SimOptions, TimedAction};
pub use protocol::{Exchange, Order, Saying, SimProtocol, Speaks};
pub use seeds::for_each_seed;
pub use truth::{Action, Truth, TruthLog};
