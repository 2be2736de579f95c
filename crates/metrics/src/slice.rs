//! A run cut into slices of time, from which the precision of its percentiles is found.

use plimsoll_core::Nanos;
use plimsoll_statistics::{Join, NoInterval, PercentileInterval, SliceCount, SliceKeeper};

use crate::histogram::Delta;
use crate::{Histogram, Interval, Tally};

/// Steps up to which slices know each of them. A slice of one step is as large as its histogram has buckets
/// in use, some ten kilobytes; with many steps that would be more than the rest of the record.
pub const MOST_STEPS: usize = 8;
/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// What became of requests in one slice of the measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Its end, since the start of the run.
    pub at: Nanos,
    /// Its length, without the drain that the last one includes.
    pub length: Nanos,
    /// All steps together.
    pub total: Tally,
    /// Step by step; empty if the plan has more than [`MOST_STEPS`].
    pub steps: Vec<Tally>,
}

impl Join for Slice {
    fn join(&mut self, later: Self) {
        self.at = later.at;
        self.length += later.length;
        self.total.merge(&later.total);
        for (mine, theirs) in self.steps.iter_mut().zip(&later.steps) {
            mine.merge(theirs);
        }
    }
}

/// Makes the slices of a run from its intervals.
#[derive(Clone, Debug, Default)]
pub struct Slicer(SliceKeeper<Slice>);

impl Slicer {
    /// Before the first interval.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next interval, while it still has its steps. What came in the drain belongs to the last
    /// slice: its requests were part of the measured load. The warm-up is left out.
    pub fn add(&mut self, interval: &Interval) {
        if interval.warmup {
            return;
        }
        let mut total = Tally::default();
        interval.steps.iter().for_each(|step| total.merge(step));
        let steps = if interval.steps.len() > MOST_STEPS { Vec::new() } else { interval.steps.clone() };
        let slice = Slice { at: interval.at, length: interval.length, total, steps };
        if interval.drain {
            self.0.extend_last(Slice { length: Nanos::ZERO, ..slice });
        } else {
            self.0.add(slice);
        }
    }

    /// The slices in the order of time.
    pub fn finish(self) -> Vec<Slice> {
        self.0.finish()
    }
}

/// The interval of percentile `p` (0 to 100, both excluded) of what a histogram counted, from what it counted
/// slice by slice: see [`PercentileInterval`].
///
/// # Errors
/// If too few slices hold anything.
pub fn percentile_interval<'a>(
    p: f64,
    histogram: &Histogram,
    slices: impl Iterator<Item = &'a Delta>,
) -> Result<PercentileInterval, NoInterval> {
    let Some(cut) = histogram.cut_near(p) else { return Err(NoInterval::TooFewSlices(0)) };
    let counts: Vec<SliceCount> =
        slices.map(|slice| SliceCount { count: slice.count(), above: slice.count_above(cut) }).collect();
    PercentileInterval::new(p, CONFIDENCE, &counts, |rank| {
        histogram.value_at(rank).expect("there is a value, since slices hold some")
    })
}
