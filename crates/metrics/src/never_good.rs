//! Requests that were due and not answered well: why a percentile of what was due may not be reached.

use plimsoll_core::figure;
use plimsoll_histogram::rank_of;

/// Requests that were due and were not answered well, however late: they lie beyond every time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeverGood {
    /// Started, and failed.
    pub failed: u64,
    /// Given up, because no connection was free.
    pub dropped: u64,
    /// Due before the end, and without a time or a connection.
    pub never_started: u64,
}

impl NeverGood {
    /// Number of all of them.
    pub const fn sum(self) -> u64 {
        self.failed.saturating_add(self.dropped).saturating_add(self.never_started)
    }

    /// Returns `true` if percentile `p` of what was due is one of these, beside so many requests with a time.
    pub fn is_beyond(self, p: f64, timed: u64) -> bool {
        timed > 0 && rank_of(p, timed.saturating_add(self.sum())) > timed
    }

    /// The shares of each kind, of the requests that were `due`: `2.0 % failed, 1.0 % dropped`.
    pub fn why(self, due: u64) -> String {
        let kinds =
            [(self.failed, "failed"), (self.dropped, "dropped"), (self.never_started, "never started")];
        let share = |count: u64| figure::share(count as f64 / due.max(1) as f64);
        let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
        kinds.map(|(count, what)| format!("{} {what}", share(count))).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_among_the_failures_is_beyond_every_time() {
        let lost = NeverGood { failed: 60, dropped: 0, never_started: 10 };
        assert_eq!([30.0, 30.1, 99.0].map(|p| lost.is_beyond(p, 30)), [false, true, true]);
        assert_eq!(lost.why(100), "60.0 % failed, 10.0 % never started");
        assert!(!NeverGood::default().is_beyond(99.9, 30));
        assert!(!lost.is_beyond(50.0, 0), "there is no time to be beyond");
    }
}
