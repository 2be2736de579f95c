//! Values that are lower bounds.

use plimsoll_core::Nanos;

/// Values of a histogram that are lower bounds: the request had not ended when it was given up, or when the
/// run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Censored {
    /// Number of these values.
    pub count: u64,
    /// The smallest of them: percentiles below it are exact, others may be lower bounds. [`Nanos::MAX`] if
    /// none.
    pub from: Nanos,
}

impl Default for Censored {
    fn default() -> Self {
        Self { count: 0, from: Nanos::MAX }
    }
}

impl Censored {
    /// Share of a value by which its true one may be larger without a mark.
    const CLOSE: f64 = 0.01;

    /// Returns `true` if a percentile with this value, of `count` values with `above` larger ones, may be
    /// larger by more than 1 %. `value_at` is the value of a rank, from 1.
    pub fn may_hide(
        self,
        value: u64,
        count: u64,
        above: u64,
        value_at: impl FnOnce(u64) -> Option<u64>,
    ) -> bool {
        if self.count == 0 || value < self.from.0 {
            return false;
        }
        let rank = count.saturating_sub(above).saturating_add(self.count);
        let close = |later: u64| later as f64 <= value as f64 * (1.0 + Self::CLOSE);
        rank > count || !value_at(rank).is_some_and(close)
    }

    /// Notes one censored value.
    pub fn note(&mut self, value: Nanos) {
        self.count += 1;
        self.from = self.from.min(value);
    }

    /// Adds another record's.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.from = self.from.min(other.from);
    }
}
