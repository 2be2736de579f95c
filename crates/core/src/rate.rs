//! Exact arrival rates.

use crate::Nanos;

/// A rate for the whole run: `count` arrivals in every `period`.
///
/// Rational, so that 700,000/s does not become 699,790/s by a whole-nanosecond interval, and 1/3 per second
/// is exact: the n-th arrival of a constant rate is due at `floor(n * period / count)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: u64,
    period: Nanos,
}

impl Rate {
    /// `count` arrivals in every `period`, reduced to lowest terms. `None` if the period is zero.
    ///
    /// A count of zero is allowed: a stage of a load profile may rest.
    pub fn new(count: u64, period: Nanos) -> Option<Self> {
        if period == Nanos::ZERO {
            return None;
        }
        let divisor = gcd(count, period.0);
        Some(Self { count: count / divisor, period: Nanos(period.0 / divisor) })
    }

    /// `count` arrivals per second.
    pub fn per_second(count: u64) -> Self {
        let divisor = gcd(count, 1_000_000_000);
        Self { count: count / divisor, period: Nanos(1_000_000_000 / divisor) }
    }

    /// The numerator: arrivals in one [`period`](Self::period).
    pub const fn count(self) -> u64 {
        self.count
    }

    /// The denominator, never zero.
    pub const fn period(self) -> Nanos {
        self.period
    }

    /// Returns `true` if nothing ever arrives.
    pub const fn is_zero(self) -> bool {
        self.count == 0
    }

    /// Arrivals per second, for display and for decisions that do not need exactness.
    pub fn per_second_f64(self) -> f64 {
        self.count as f64 * 1e9 / self.period.0 as f64
    }

    /// Intended time of arrival `index` at this constant rate: `floor(index * period / count)`; never for a
    /// zero rate or beyond 584 years.
    pub fn arrival_at(self, index: u64) -> Nanos {
        if self.count == 0 {
            return Nanos::MAX;
        }
        let at = u128::from(index) * u128::from(self.period.0) / u128::from(self.count);
        Nanos(u64::try_from(at).unwrap_or(u64::MAX))
    }
}

/// Greatest common divisor; `gcd(0, n) = n`.
pub const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_do_not_drift() {
        let rate = Rate::per_second(700_000);
        assert_eq!(rate.arrival_at(700_000), Nanos::from_secs(1));
        assert_eq!(rate.arrival_at(700_000 * 3600), Nanos::from_secs(3600));
        let third = Rate::new(1, Nanos::from_secs(3)).unwrap();
        assert_eq!(third.arrival_at(2), Nanos::from_secs(6));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let fast = Rate::per_second(10_000_000_000);
        assert_eq!(fast.arrival_at(25), Nanos(2));
        assert_eq!(Rate::new(1, Nanos::MAX).unwrap().arrival_at(u64::MAX), Nanos::MAX);
        assert_eq!(Rate::per_second(0).arrival_at(1), Nanos::MAX);
        assert_eq!(Rate::new(1, Nanos::ZERO), None);
    }
}
