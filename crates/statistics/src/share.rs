//! Shares of dependent samples, such as "more than 1 % of the responses took longer than 10 ms".
//!
//! A percentile against a limit is a share against a limit: `p99 < 10 ms` holds of a server if, and only if,
//! fewer than 1 % of its responses take 10 ms or longer. Shares are the easier question: a run is cut into
//! slices, each of which counts its samples and the bad ones among them, and no quantile has to be estimated.

use crate::spread::{Spread, join};
use crate::{SliceCount, student_quantile};

/// Slices below which an interval says nothing about dependence: the variance between them would be a guess.
const FEWEST_SLICES: usize = 4;
/// Slices to which longer series are joined: enough for the t distribution to be narrow, few enough for each
/// to be long beside the time over which samples depend on one another.
const SLICES: usize = 20;

/// A share of bad samples, with the limits of its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareInterval {
    /// Bad samples by all samples.
    pub estimate: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Ratio of the variance of the estimate to that of independent samples; at least 1.
    pub variance_inflation: f64,
}

/// The two-sided interval of a share by its slices, at a confidence such as 0.95. `None` if there are fewer
/// than four slices with samples.
///
/// The estimate is that of a ratio, with the variance inflation and the degrees of freedom of
/// [`PercentileInterval`](crate::PercentileInterval). Slices that are too short for the dependence show too
/// little of it, so both are taken from up to 20 slices and from up to 10, and the larger inflation counts.
/// The interval is Wilson's with the effective number of samples, and Student's t in place of the normal
/// quantile, since the variance is an estimate.
pub fn share_interval(slices: &[SliceCount], confidence: f64) -> Option<ShareInterval> {
    let slices: Vec<SliceCount> = slices.iter().copied().filter(|slice| slice.count > 0).collect();
    if slices.len() < FEWEST_SLICES {
        return None;
    }
    let spread_of = |most: usize| Spread::of(&join(&slices, slices.len().div_ceil(most)));
    let (fine, coarse) = (spread_of(SLICES), spread_of(SLICES / 2));
    let spread = if coarse.vif > fine.vif { coarse } else { fine };
    let all = SliceCount::sum(&slices);
    let estimate = all.marked as f64 / all.count as f64;
    let t = student_quantile(confidence, spread.degrees);
    let (low, high) = wilson(estimate, spread.effective(), t);
    Some(ShareInterval { estimate, low, high, variance_inflation: spread.vif })
}

/// Wilson's score interval of a share `p` of `n` samples with the quantile `z`: the values whose distance to
/// `p` is `z` of their own standard deviations (Wilson 1927).
fn wilson(p: f64, n: f64, z: f64) -> (f64, f64) {
    let square = z * z;
    let middle = p + square / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt();
    let scale = 1.0 + square / n;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(count: u64, marked: u64, slices: usize) -> Vec<SliceCount> {
        vec![SliceCount { count, marked }; slices]
    }

    #[test]
    fn even_slices_are_wilsons_interval() {
        // 100 bad of 10,000: Wilson at t(19) = 2.093 is 0.8115 % to 1.2317 %.
        let interval = share_interval(&even(500, 5, 20), 0.95).unwrap();
        assert_eq!((interval.estimate, interval.variance_inflation), (0.01, 1.0));
        assert!((interval.low - 0.008_115).abs() < 2e-5, "{interval:?}");
        assert!((interval.high - 0.012_317).abs() < 2e-5, "{interval:?}");
    }

    #[test]
    fn no_bad_sample_is_no_proof_of_none() {
        let interval = share_interval(&even(50, 0, 20), 0.95).unwrap();
        assert_eq!((interval.estimate, interval.low), (0.0, 0.0));
        // t² / (n + t²) with t = 2.093 and n = 1,000.
        assert!((interval.high - 0.004_362).abs() < 1e-5, "{interval:?}");
    }

    #[test]
    fn bad_samples_that_come_together_widen_it() {
        let mut portions = even(500, 0, 20);
        portions[7].marked = 50;
        portions[8].marked = 50;
        let lumped = share_interval(&portions, 0.95).unwrap();
        let even = share_interval(&even(500, 5, 20), 0.95).unwrap();
        assert_eq!(lumped.estimate, even.estimate);
        assert!(lumped.variance_inflation > 40.0, "{lumped:?}");
        assert!(lumped.high > 2.0 * even.high, "{lumped:?}");
    }

    #[test]
    fn too_few_slices_say_nothing() {
        assert_eq!(share_interval(&even(500, 5, 3), 0.95), None);
        let mut portions = even(500, 5, 4);
        portions[0].count = 0;
        portions[0].marked = 0;
        assert_eq!(share_interval(&portions, 0.95), None);
    }
}
