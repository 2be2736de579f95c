//! What steers a run from outside, and what it tells while it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use plimsoll_core::Nanos;
use plimsoll_metrics::Interval;

/// How a run should stop before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Go on.
    No,
    /// Start nothing more, wait for what is in flight, report.
    Drain,
    /// Report at once; what is in flight is counted as such.
    Now,
}

/// A handle that stops a run from another thread. Workers look at it at least every
/// [`worker::LONGEST_WAIT`](crate::worker::LONGEST_WAIT).
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<AtomicU8>);

impl Control {
    /// Asks to stop. A later, weaker wish does not take back a stronger one.
    pub fn stop(&self, stop: Stop) {
        self.0.fetch_max(stop as u8, Ordering::Relaxed);
    }

    /// What was asked for so far.
    pub fn wish(&self) -> Stop {
        match self.0.load(Ordering::Relaxed) {
            0 => Stop::No,
            1 => Stop::Drain,
            _ => Stop::Now,
        }
    }
}

/// What the run tells once per second.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Time since the start, warm-up included.
    pub elapsed: Nanos,
    /// The start of the run in Unix time.
    pub started_unix: Nanos,
    /// When the load ends, since the start, if that is known.
    pub end: Option<Nanos>,
    /// The second that just ended, all workers merged.
    pub interval: &'a Interval,
}
