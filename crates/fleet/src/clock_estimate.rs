//! The offset of another machine's clock from ours.

use plimsoll_core::Nanos;
use serde::{Deserialize, Serialize};

/// An estimate of how far another clock is ahead of ours, with its bound.
///
/// A message that left at `sent`, was answered at `there` of the other clock and came back `round_trip`
/// later bounds it: at `there` our clock was between `sent` and `sent + round_trip`, however the delay was
/// divided between both ways. The middle is the estimate, and half of the round trip its bound (Cristian
/// 1989).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockEstimate {
    /// Nanoseconds that the other clock is ahead of ours; negative if it is behind.
    pub ahead_ns: i64,
    /// Largest error of the estimate, in nanoseconds.
    pub bound_ns: u64,
}

impl ClockEstimate {
    /// The estimate of one exchange.
    pub fn of_exchange(sent: Nanos, round_trip: Nanos, there: Nanos) -> Self {
        let middle = i128::from(sent.0) + i128::from(round_trip.0 / 2);
        let ahead = i128::from(there.0) - middle;
        let ahead_ns = i64::try_from(ahead).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX });
        Self { ahead_ns, bound_ns: round_trip.0.div_ceil(2) }
    }

    /// The better of both: that with the smaller bound.
    #[must_use]
    pub const fn better(self, other: Self) -> Self {
        if other.bound_ns < self.bound_ns { other } else { self }
    }

    /// An instant of our clock on the other one.
    pub fn there(self, here: Nanos) -> Nanos {
        Nanos(here.0.saturating_add_signed(self.ahead_ns))
    }

    /// An instant of the other clock on ours.
    pub fn here(self, there: Nanos) -> Nanos {
        Nanos(there.0.saturating_add_signed(self.ahead_ns.saturating_neg()))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;

    /// However the delay is divided between the ways, the truth is within the bound, and the exchange with
    /// the least round trip has the smallest one.
    #[test]
    fn the_truth_is_within_the_bound_under_any_asymmetry() {
        let mut random = Random::new(7, 0);
        for _ in 0..2_000 {
            let ahead = (random.below(2_000_000_000) as i64) - 1_000_000_000;
            let start = Nanos::from_secs(1_800_000_000);
            let mut best: Option<ClockEstimate> = None;
            for exchange in 0..16_u64 {
                let sent = start + Nanos::from_millis(10 * exchange);
                let (to, back) = (Nanos(random.below(5_000_000)), Nanos(random.below(50_000)));
                let there = Nanos((sent + to).0.saturating_add_signed(ahead));
                let estimate = ClockEstimate::of_exchange(sent, to + back, there);
                assert!(estimate.ahead_ns.abs_diff(ahead) <= estimate.bound_ns, "{estimate:?} of {ahead}");
                best = Some(best.map_or(estimate, |best| best.better(estimate)));
            }
            let best = best.expect("there were exchanges");
            assert!(best.ahead_ns.abs_diff(ahead) <= best.bound_ns);
            let instant = start + Nanos::from_secs(5);
            assert_eq!(best.here(best.there(instant)), instant);
        }
    }
}
