//! Intervals of percentiles that survive autocorrelation.

use plimsoll_histogram::samples_needed;

use crate::SliceCount;
use crate::spread::{Spread, join};

/// Slices from which an interval can be made: with fewer the factor t grows beyond all use.
pub const FEWEST_SLICES: usize = 5;
/// Independent samples beyond the percentile that a slice should hold, so that slices hardly depend on each
/// other and their counts are not mostly zeros. Found by simulation, see `docs/statistics.md`.
const EVENTS_PER_SLICE: f64 = 2.0;

/// The interval in which the true value of a percentile lies with the given confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentileInterval {
    /// Lower end of the interval; `None` if the samples do not bound the percentile from below.
    pub low: Option<u64>,
    /// Upper end of the interval; `None` if the samples do not bound the percentile from above.
    pub high: Option<u64>,
    /// The confidence, in (0, 1).
    pub confidence: f64,
    /// The variance inflation factor: this many samples carry as much information as one independent sample.
    /// At least 1.
    pub vif: f64,
    /// The number of independent samples with the same information: all samples / `vif`.
    pub effective_samples: f64,
    /// Into how many slices the run was divided for it.
    pub slices: usize,
}

/// Reason why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoInterval {
    /// Fewer slices than [`FEWEST_SLICES`] hold samples; the value is their number.
    TooFewSlices(usize),
}

impl std::fmt::Display for NoInterval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::TooFewSlices(have) = self;
        let noun = if *have == 1 { "part" } else { "parts" };
        write!(f, "needs samples in {FEWEST_SLICES} parts of the run, has them in {have} {noun}")
    }
}

impl std::error::Error for NoInterval {}

impl PercentileInterval {
    /// The interval of percentile `p` (in (0, 100)) from the slices of a run in the order of time. `value_at`
    /// looks up the value of a rank, from 1 to the number of samples, among all samples together.
    ///
    /// With c the share of samples above the percentile, N samples in all, and slice b holding the share w of
    /// them, the variance of c is inflated over that of independent samples by
    ///
    /// ```text
    /// VIF = Σ (marked_b − c · count_b)² / (N · c (1 − c) · (1 − Σ w²))
    /// ```
    ///
    /// which for equal slices is var(c_b) · L / (c (1 − c)). The interval lies between the ranks
    /// `N · (p ± t · √(p (1 − p) · VIF / N))`, with Student's t for `(1 − Σ w²)² / (Σ w² − 2 Σ w³ + (Σ w²)²)`
    /// degrees of freedom, B − 1 for B equal slices. Where the slices are too short to be independent of each
    /// other neighbours are joined, and the wider interval counts. Derivation, sources and coverage:
    /// `docs/statistics.md`; the coverage is asserted in `tests/simulation`.
    ///
    /// # Errors
    /// [`NoInterval`] if too few slices hold samples.
    pub fn new(
        p: f64,
        confidence: f64,
        slices: &[SliceCount],
        value_at: impl Fn(u64) -> u64,
    ) -> Result<Self, NoInterval> {
        let slices: Vec<SliceCount> = slices.iter().copied().filter(|slice| slice.count > 0).collect();
        if slices.len() < FEWEST_SLICES {
            return Err(NoInterval::TooFewSlices(slices.len()));
        }
        let share = p / 100.0;
        let all = Spread::of(&slices);
        let rare = share.min(1.0 - share);
        let enough = all.effective() * rare / EVENTS_PER_SLICE;
        let mut spread = all;
        let mut joined = 1;
        while (spread.slices as f64) > enough {
            joined += 1;
            if slices.len().div_ceil(joined) < FEWEST_SLICES {
                break;
            }
            spread = Spread::of(&join(&slices, joined));
        }
        if spread.half_width(confidence, share) < all.half_width(confidence, share) {
            spread = all;
        }
        let half = spread.half_width(confidence, share);
        let samples = spread.samples as f64;
        let low = ((share - half) * samples).floor();
        let high = ((share + half) * samples).ceil();
        // With fewer independent samples nothing bounds the percentile, wherever the rank falls.
        let bounds = |p: f64| spread.effective() >= samples_needed(p) as f64;
        Ok(Self {
            low: (low >= 1.0 && bounds(100.0 - p)).then(|| value_at(low as u64)),
            high: (high <= samples && bounds(p)).then(|| value_at(high as u64)),
            confidence,
            vif: spread.vif,
            effective_samples: spread.effective(),
            slices: spread.slices,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slices(counts: &[(u64, u64)]) -> Vec<SliceCount> {
        counts.iter().map(|&(count, above)| SliceCount { count, marked: above }).collect()
    }

    #[test]
    fn a_bound_exists_from_the_number_of_samples_that_hahn_and_meeker_give() {
        let needed = [50.0, 90.0, 99.0, 99.9, 99.99, 0.0, 100.0].map(samples_needed);
        assert_eq!(needed, [5, 29, 299, 2_995, 29_956, 1, u64::MAX]);
    }

    /// 10 slices of 100, of which 4 to 6 lie above p95: Σd² = 4, VIF 0.094, taken as 1.
    #[test]
    fn more_regular_than_chance_counts_as_independent() {
        let slices = slices(&[5, 4, 5, 6, 5, 5, 4, 6, 5, 5].map(|above| (100, above)));
        let interval = PercentileInterval::new(95.0, 0.95, &slices, |rank| rank).unwrap();
        assert_eq!((interval.vif, interval.effective_samples, interval.slices), (1.0, 1000.0, 10));
        // 950 ± 2.262 · √(1000 · 0.95 · 0.05) = 950 ± 15.6.
        assert_eq!((interval.low, interval.high), (Some(934), Some(966)));
    }

    /// One slice holds all that is above p90: Σd² = 90² + 9 · 10² = 9,000; VIF = 9,000 / (90 · 0.9) = 111.
    #[test]
    fn one_burst_is_one_observation() {
        let mut counts = [(100, 0); 10];
        counts[3] = (100, 100);
        let interval = PercentileInterval::new(90.0, 0.95, &slices(&counts), |rank| rank).unwrap();
        assert!(interval.vif >= 111.0, "{interval:?}");
        assert!(interval.effective_samples < 10.0, "{interval:?}");
        // A dozen independent samples are fewer than the 29 that bound p90.
        assert_eq!(interval.high, None);
        assert_eq!(interval.slices, 5);
    }

    #[test]
    fn the_upper_bound_of_p99_exists_from_299_effective_samples_on() {
        let high_of = |count: u64| {
            let counts: Vec<_> = (0..10).map(|b| (count / 10 + u64::from(b < count % 10), 0)).collect();
            PercentileInterval::new(99.0, 0.01, &slices(&counts), |rank| rank).unwrap().high
        };
        assert_eq!(high_of(298), None);
        assert!(high_of(299).is_some());
    }

    #[test]
    fn few_slices_and_none_are_told_apart_from_an_interval() {
        let none = PercentileInterval::new(50.0, 0.95, &[], |rank| rank);
        assert_eq!(none, Err(NoInterval::TooFewSlices(0)));
        let four = slices(&[(10, 5), (0, 0), (10, 5), (10, 5), (10, 5)]);
        let error = PercentileInterval::new(50.0, 0.95, &four, |rank| rank).unwrap_err();
        assert_eq!(error.to_string(), "needs samples in 5 parts of the run, has them in 4 parts");
    }

    proptest! {
        /// Of equal slices the formula is the plain one of a variance; of any slices the ends are in order.
        #[test]
        fn equal_slices_give_the_plain_variance(above in proptest::collection::vec(0_u64..=200, 5..=30)) {
            let length = 200.0;
            let counts = slices(&above.iter().map(|&above| (200, above)).collect::<Vec<_>>());
            let shares: Vec<f64> = above.iter().map(|&above| above as f64 / length).collect();
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
            let variance = squares / (shares.len() - 1) as f64;
            let expected = (variance * length / (mean * (1.0 - mean))).max(1.0);
            let spread = Spread::of(&counts);
            if expected.is_finite() {
                prop_assert!((spread.vif / expected - 1.0).abs() < 1e-9, "{} {expected}", spread.vif);
            }
            prop_assert!((spread.degrees - (above.len() - 1) as f64).abs() < 1e-6);
        }

        #[test]
        fn ends_are_in_order_and_ranks_exist(
            counts in proptest::collection::vec((0_u64..3_000, 0.0_f64..1.0), 5..40),
            p in 1.0_f64..99.9,
        ) {
            let counts: Vec<_> = counts.iter().map(|&(n, s)| (n, (n as f64 * s) as u64)).collect();
            let total: u64 = counts.iter().map(|slice| slice.0).sum();
            let look = |rank: u64| {
                assert!((1..=total).contains(&rank), "{rank} of {total}");
                rank
            };
            if let Ok(interval) = PercentileInterval::new(p, 0.95, &slices(&counts), look) {
                prop_assert!(interval.low.unwrap_or(0) <= interval.high.unwrap_or(u64::MAX));
                prop_assert!(interval.vif >= 1.0 && interval.effective_samples <= total as f64);
            }
        }

        #[test]
        fn joining_loses_nothing(counts in proptest::collection::vec(1_u64..50, 5..40), by in 1_usize..8) {
            let slices = slices(&counts.iter().map(|&count| (count, count / 2)).collect::<Vec<_>>());
            let joined = join(&slices, by);
            let sum = |slices: &[SliceCount]| slices.iter().map(|s| s.count).sum::<u64>();
            prop_assert_eq!(joined.len(), slices.len() / by);
            prop_assert!(joined.is_empty() || sum(&joined) == sum(&slices));
        }
    }
}
