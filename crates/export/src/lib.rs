//! What a run tells monitoring systems while it goes on.
//!
//! ```text
//!  intervals ──► Totals ──► families ──┬─► Prometheus: text, OpenMetrics, protobuf with native histograms
//!  (run control)  (a lock for a copy)  └─► OTLP: exponential histograms, sent by a Pusher's own thread
//! ```
//!
//! [`Totals`] grow by one [`Interval`](plimsoll_metrics::Interval) at a time; what is told is always a copy
//! of all of them, cumulative, so that a system that has missed something misses nothing for long. Nothing
//! here is on the way of a request, and nothing that a receiver does or leaves undone holds up the run: the
//! run control waits for no more than the copying of a few numbers, and [`Pusher::finish`] for no more than
//! [`push::LAST_WORDS`].
#![forbid(unsafe_code)]

mod family;
pub mod otlp;
pub mod prometheus;
mod protobuf;
pub mod push;
mod times;
mod totals;

pub use push::{PushError, PushReport, Pusher, Receiver, Shared};
pub use times::Times;
pub use totals::{Gauges, Totals};
