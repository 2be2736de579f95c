//! Variation of a share from slice to slice of a run, which shows how much its samples depend on each other.

use crate::student_quantile;

/// The samples of one slice of a run, a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceCount {
    /// Samples in the slice.
    pub count: u64,
    /// Number of samples that are marked, by the same rule in all slices: larger than a cut, failed.
    pub marked: u64,
}

impl SliceCount {
    /// Adds the samples of another slice.
    pub const fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.marked += other.marked;
    }

    /// Several slices as one.
    pub fn sum(slices: &[Self]) -> Self {
        let mut sum = Self::default();
        slices.iter().for_each(|slice| sum.merge(*slice));
        sum
    }
}

/// Variation of the share of the marked samples from slice to slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) slices: usize,
    pub(crate) samples: u64,
    pub(crate) vif: f64,
    pub(crate) degrees: f64,
}

impl Spread {
    /// Of slices none of which is empty.
    pub(crate) fn of(slices: &[SliceCount]) -> Self {
        let samples: u64 = slices.iter().map(|slice| slice.count).sum();
        let above: u64 = slices.iter().map(|slice| slice.marked).sum();
        let total = samples as f64;
        let share = above as f64 / total;
        let (mut residuals, mut squares, mut cubes) = (0.0, 0.0, 0.0);
        for slice in slices {
            let weight = slice.count as f64 / total;
            residuals += (slice.marked as f64 - share * slice.count as f64).powi(2);
            squares += weight.powi(2);
            cubes += weight.powi(3);
        }
        let variance = total * share * (1.0 - share) * (1.0 - squares);
        // All on one side of the cut: nothing varies that could be inflated. Below 1 the samples would be
        // more regular than independent ones; that is not relied on.
        let vif = if variance > 0.0 { (residuals / variance).max(1.0) } else { 1.0 };
        let degrees = (1.0 - squares).powi(2) / (squares - 2.0 * cubes + squares.powi(2));
        Self { slices: slices.len(), samples, vif, degrees }
    }

    pub(crate) fn effective(&self) -> f64 {
        self.samples as f64 / self.vif
    }

    /// Half the width of the interval of a share.
    pub(crate) fn half_width(&self, confidence: f64, share: f64) -> f64 {
        student_quantile(confidence, self.degrees) * (share * (1.0 - share) / self.effective()).sqrt()
    }
}

/// Joins groups of `neighbours` slices; nothing is lost, so some groups may have one more.
pub(crate) fn join(slices: &[SliceCount], neighbours: usize) -> Vec<SliceCount> {
    let parts = slices.len() / neighbours;
    let bounds = |part: usize| part * slices.len() / parts.max(1);
    (0..parts).map(|part| SliceCount::sum(&slices[bounds(part)..bounds(part + 1)])).collect()
}
