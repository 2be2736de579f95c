//! Export of a run's figures to monitoring systems while it goes on, and [queries](query) of theirs.
//!
//! ```text
//!  intervals ──► Totals ──► families ──┬─► Prometheus: text, OpenMetrics, protobuf with native histograms
//!  (run control)  (a lock for a copy)  └─► OTLP: exponential histograms, sent by a Pusher's own thread
//! ```
//!
//! [`Totals`] grow by one [`Interval`](plimsoll_metrics::Interval) at a time. Each export is a copy of all of
//! them, and they are cumulative, so a system that has missed an export catches up with the next one. Nothing
//! here is on the path of a request, and no receiver can hold up the run: the run control waits only for the
//! copying of a few numbers, and [`Pusher::finish`] for at most [`push::LAST_WORDS`].
#![forbid(unsafe_code)]

mod family;
pub mod otlp;
pub mod prometheus;
mod protobuf;
pub mod push;
pub mod query;
mod receiver;
mod times;
mod totals;

pub use push::{PushError, PushReport, Pusher, Shared};
pub use receiver::{BadReceiver, Receiver};
pub use times::Times;
pub use totals::{Gauges, Totals};
