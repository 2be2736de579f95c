//! A run cut into slices of time, from which the precision of its percentiles is found.

use plimsoll_core::Nanos;
use plimsoll_histogram::{Delta, Histogram};
use plimsoll_statistics::{FEWEST_SLICES, Join, NoInterval, PercentileInterval, SliceCount, SliceKeeper};

use crate::{Interval, Tally};
use serde::{Deserialize, Serialize};

/// Steps up to which slices know each of them. A slice of one step is as large as its histogram has buckets
/// in use, some ten kilobytes; with many steps that would be more than the rest of the record.
pub const MOST_STEPS: usize = 8;
/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Outcomes of requests in one slice of the measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// End of the slice, since the start of the run.
    pub at: Nanos,
    /// Length of the slice, without the drain that the last one includes.
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
        // Many slices are kept for long, and merging leaves as much room again.
        std::iter::once(&mut self.total).chain(&mut self.steps).for_each(Tally::shrink);
    }
}

/// Slices of a [`Timeline`]'s measured part at most.
pub const MOST_OF_TIMELINE: usize = 120;
/// Slices of a timeline's warm-up at most.
const MOST_OF_WARMUP: usize = 30;

/// The whole run in slices of time, finer than those from which precision is found, and of all steps together
/// only: to show the values over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The warm-up.
    pub warmup: Vec<Slice>,
    /// The measured part, without the drain.
    pub measured: Vec<Slice>,
    /// Requests that ended after the end of the load; `None` if nothing was awaited there.
    pub drain: Option<Slice>,
}

/// Makes the timeline of a run from its intervals.
#[derive(Clone, Debug)]
pub struct TimelineDownsampler {
    warmup: SliceKeeper<Slice>,
    measured: SliceKeeper<Slice>,
    drain: Option<Slice>,
}

impl Default for TimelineDownsampler {
    fn default() -> Self {
        let (warmup, measured) = (MOST_OF_WARMUP, MOST_OF_TIMELINE);
        Self { warmup: SliceKeeper::keeping(warmup), measured: SliceKeeper::keeping(measured), drain: None }
    }
}

impl TimelineDownsampler {
    /// Before the first interval.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next interval, while it still has its steps.
    pub fn add(&mut self, interval: &Interval) {
        let slice =
            Slice { at: interval.at, length: interval.length, total: interval.total(), steps: Vec::new() };
        match (interval.warmup, interval.drain, &mut self.drain) {
            (true, _, _) => self.warmup.add(slice),
            (_, true, Some(drain)) => drain.join(slice),
            (_, true, drain) => *drain = Some(slice),
            (_, false, _) => self.measured.add(slice),
        }
    }

    /// The timeline.
    pub fn finish(self) -> Timeline {
        Timeline { warmup: self.warmup.finish(), measured: self.measured.finish(), drain: self.drain }
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

    /// Takes the next interval, while it still has its steps. The drain belongs to the last slice: its
    /// requests were part of the measured load. The warm-up is left out.
    pub fn add(&mut self, interval: &Interval) {
        if interval.warmup {
            return;
        }
        let steps = if interval.steps.len() > MOST_STEPS { Vec::new() } else { interval.steps.clone() };
        let slice = Slice { at: interval.at, length: interval.length, total: interval.total(), steps };
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

/// The interval of percentile `p` (0 to 100, both excluded) of a histogram's counts, from its counts slice by
/// slice: see [`PercentileInterval`].
///
/// # Errors
/// If too few slices hold anything.
pub fn percentile_interval<'a>(
    p: f64,
    histogram: &Histogram,
    slices: impl Iterator<Item = &'a Delta>,
) -> Result<PercentileInterval, NoInterval> {
    // Of a run that goes on there are none, and the cut would be found for nothing.
    let slices: Vec<&Delta> = slices.filter(|slice| !slice.is_empty()).collect();
    if slices.len() < FEWEST_SLICES {
        return Err(NoInterval::TooFewSlices(slices.len()));
    }
    let Some(cut) = histogram.cut_near(p) else { return Err(NoInterval::TooFewSlices(0)) };
    let count = |slice: &&Delta| SliceCount { count: slice.count(), marked: slice.count_above(cut) };
    let counts: Vec<SliceCount> = slices.iter().map(count).collect();
    PercentileInterval::new(p, CONFIDENCE, &counts, |rank| {
        histogram.value_at(rank).expect("there is a value, since slices hold some")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_histogram::Cursor;

    /// The values of a second, as a histogram's delta and in the histogram of the run.
    fn part(run: &mut Histogram, seen: &mut Cursor, values: impl Iterator<Item = u64>) -> Delta {
        values.for_each(|value| run.record(value));
        let mut delta = Delta::default();
        seen.advance(run, &mut delta);
        delta
    }

    #[test]
    fn slices_are_of_the_measured_part_and_the_last_one_has_the_drain() {
        let mut slicer = Slicer::new();
        let tally = |ok| Tally { ok, ..Tally::default() };
        let interval = |at: u64, ok: u64| Interval {
            at: Nanos::from_secs(at),
            length: Nanos::from_secs(1),
            steps: vec![tally(ok), tally(10 * ok)],
            ..Interval::default()
        };
        slicer.add(&Interval { warmup: true, ..interval(1, 100) });
        slicer.add(&interval(2, 1));
        slicer.add(&interval(3, 2));
        slicer.add(&Interval { drain: true, ..interval(9, 4) });
        slicer.add(&Interval { steps: vec![tally(1); MOST_STEPS + 1], ..interval(10, 0) });
        let slices = slicer.finish();
        let shape: Vec<_> =
            slices.iter().map(|s| (s.length.as_secs_f64(), s.total.ok, s.steps.len())).collect();
        assert_eq!(shape, [(1.0, 11, 2), (1.0, 66, 2), (1.0, MOST_STEPS as u64 + 1, 0)]);
        assert_eq!(slices[1].steps[1].ok, 60);
    }

    #[test]
    fn the_timeline_tells_the_parts_of_a_run_apart() {
        let mut downsampler = TimelineDownsampler::new();
        let second = |at: u64| Interval {
            at: Nanos::from_secs(at),
            length: Nanos::from_secs(1),
            warmup: at <= 2,
            drain: at > 302,
            steps: vec![Tally { ok: 1, ..Tally::default() }; 2],
            ..Interval::default()
        };
        (1..=303).for_each(|at| downsampler.add(&second(at)));
        let timeline = downsampler.finish();
        let ok = |slices: &[Slice]| slices.iter().map(|slice| slice.total.ok).sum::<u64>();
        assert_eq!((timeline.warmup.len(), ok(&timeline.warmup)), (2, 4));
        assert_eq!((timeline.measured.len(), ok(&timeline.measured)), (75, 600));
        let shape = |slice: &Slice| (slice.at, slice.length, slice.total.ok);
        let first = (Nanos::from_secs(6), Nanos::from_secs(4), 8);
        assert_eq!(timeline.measured.first().map(shape), Some(first));
        let drain = (Nanos::from_secs(303), Nanos::from_secs(1), 2);
        assert_eq!(timeline.drain.as_ref().map(shape), Some(drain));
    }

    #[test]
    fn the_cut_is_where_buckets_can_be_told_apart() {
        let (mut run, mut seen) = (Histogram::new(), Cursor::new());
        // 7 of 10 values are 1 ms, 2 are 2 ms and one is 5 ms, in every second alike.
        let second = |_| {
            part(&mut run, &mut seen, (0..100).map(|i| [1, 1, 1, 1, 1, 1, 1, 2, 2, 5][i % 10] * 1_000_000))
        };
        let parts: Vec<Delta> = (0..10).map(second).collect();
        let above = |p: f64| parts[3].count_above(run.cut_near(p).unwrap());
        // p50 lies among the 70 of 1 ms: 30 above is nearer to 50 than 100 above. p95 lies among the 5 ms.
        assert_eq!([50.0, 80.0, 95.0].map(above), [30, 10, 10]);
        let at = [1, 700, 701, 901, 1_000, 2_000].map(|rank| run.value_at(rank).unwrap() / 999_000);
        assert_eq!(at, [1, 1, 2, 5, 5, 5]);
        let interval = percentile_interval(50.0, &run, parts.iter()).unwrap();
        assert!(interval.low == interval.high && interval.vif == 1.0, "{interval:?}");
        // Nothing that is not one value lies between p80's ranks, which p80 itself begins.
        let interval = percentile_interval(80.0, &run, parts.iter()).unwrap();
        assert!(interval.low.zip(interval.high).is_some_and(|(low, high)| low <= high), "{interval:?}");
    }

    #[test]
    fn a_run_whose_seconds_differ_says_little() {
        let (mut run, mut seen) = (Histogram::new(), Cursor::new());
        let second = |second: u64| {
            let slow = if second % 5 == 2 { 50 } else { 0 };
            part(&mut run, &mut seen, (0..1_000).map(move |i| 1_000_000 * (1 + slow) + 100 * i))
        };
        let parts: Vec<Delta> = (0..20).map(second).collect();
        let interval = percentile_interval(75.0, &run, parts.iter()).unwrap();
        // A fifth of the seconds is slow: 20 of them cannot show whether it is a quarter.
        let reaches = interval.high.is_none_or(|high| high > 50_000_000);
        assert!(interval.vif > 100.0 && reaches, "{interval:?}");
        assert_eq!(percentile_interval(90.0, &run, parts[..4].iter()), Err(NoInterval::TooFewSlices(4)));
        let none = percentile_interval(90.0, &Histogram::new(), parts.iter());
        assert_eq!(none, Err(NoInterval::TooFewSlices(0)));
    }
}
