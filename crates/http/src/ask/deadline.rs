//! The end of a wait.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::Nanos;
use plimsoll_system::clock;

/// A stop is noticed within this time.
pub(super) const STOP_POLL: Nanos = Nanos::from_millis(50);

/// The time at which a request is given up, from its name's resolution to the last byte of its answer.
#[derive(Clone, Copy, Debug)]
pub struct Deadline<'a> {
    at: Nanos,
    /// A flag, and the time that is left once it is set.
    stop: Option<(&'a AtomicBool, Nanos)>,
}

impl<'a> Deadline<'a> {
    /// A deadline that is so far away.
    pub fn within(limit: Nanos) -> Self {
        Self { at: clock::monotonic() + limit, stop: None }
    }

    /// Moves it forward to `grace` after `stop` is set, if that is earlier.
    #[must_use]
    pub const fn or_after(self, stop: &'a AtomicBool, grace: Nanos) -> Self {
        Self { stop: Some((stop, grace)), ..self }
    }

    /// The time that is left.
    pub(super) const fn left(&self, now: Nanos) -> Nanos {
        self.at.since(now)
    }

    /// Looks at the flag, and returns `true` if there is no time left.
    pub(super) fn is_over(&mut self, now: Nanos) -> bool {
        if let Some((stop, grace)) = self.stop
            && stop.load(Ordering::Relaxed)
        {
            self.at = self.at.min(now + grace);
            self.stop = None;
        }
        now >= self.at
    }
}
