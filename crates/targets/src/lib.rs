//! The built-in servers.
//!
//! [`sink`] is the load sink: it accepts any request, over HTTP/1.1 and HTTP/2 on the same port, and gives
//! the answers of the Internet Computer's load sink, or others as configured, after a delay of a known law,
//! through a queue of a known law, with faults of known shares, and keeps a log of the truth. The
//! measurements of Plimsoll are tested against it (the targets T1 to T5), and it must not be the bottleneck
//! of a run.
//!
//! Its answers come from a [`Service`]: always the same; or [`Crud`], a service of resources that are
//! created, changed and deleted, for scenarios whose later steps depend on the earlier ones; or that of
//! another protocol on top of HTTP. Everything else, from laws and faults to the log, is the same for every
//! service.
//!
//! ```text
//! SinkOptions ──► Sink::start ──► one thread each: Received ──► requests ──► numbered by the counter
//!                                                                              │ Law: service time, fault
//!                 SinkReport ◄── stop ◄── replies, rows of truth ◄── due times ◄┘ queue, freeze
//! ```
//!
//! [`ingest`] is a store for metrics, logs, traces and events with the HTTP API of Arc, which counts the rows
//! that it acknowledges, and loses some of them on request.
//!
//! [`server`] is the loop of all of them, with its threads and its bounds, for whoever has a protocol to
//! serve.
//!
//! The three types to know first are [`SinkOptions`], [`Sink`] and [`SinkReport`]. Nothing here opens a
//! socket or reads a clock by itself: that is the driver's.
#![forbid(unsafe_code)]

pub mod http_reply;
pub mod ingest;
pub mod server;
pub mod sink;
pub mod truth_log;

mod budget;
mod counts;
mod lies;
mod server_threads;
mod start_error;
mod table;

pub use ingest::{IngestOptions, IngestReport, IngestServer};
pub use lies::Lies;
pub use server_threads::Stopper;
pub use sink::{
    Action, Body, Crud, Delay, FaultModel, Faults, Freeze, Intent, Location, Reply, RequestFate, RequestId,
    Service, SingleServer, Sink, SinkOptions, SinkReport, SlowData, TokenServer, Truth, TruthRow,
};
pub use start_error::StartError;
