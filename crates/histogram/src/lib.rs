//! Histograms of nanoseconds: a fixed relative precision over a fixed range.
//!
//! The layout is that of HdrHistogram with three significant digits and 1 ns as its lowest discernible value:
//! 2,048 sub-buckets, of which the upper 1,024 are used in each further power of two. The array is our own
//! because four things that a run needs are awkward over the `hdrhistogram` crate: one bounds check on the
//! hot path that serves growth *and* overflow, a default that owns no memory (a step that never fails keeps
//! no histogram of failures), memory for the buckets around those that hold anything alone (plans have
//! thousands of steps), and a cheap difference against an earlier state ([`Cursor`]). The crate is the oracle
//! of the tests below instead.

#![forbid(unsafe_code)]

mod censored;
mod counts;
pub mod hdr;
mod sufficiency;
mod written;

use self::counts::Counts;

pub use self::censored::Censored;
pub use self::sufficiency::samples_needed;

/// log2 of [`HALF`].
const HALF_BITS: u32 = 10;
/// Sub-buckets in each power of two from 2,048 ns on: a bucket is at most 1/1024 of its value wide (0.098 %).
const HALF: u64 = 1 << HALF_BITS;
/// The range of values: 24 hours in nanoseconds, longer than any single request is waited for.
const RANGE: u64 = 24 * 3600 * 1_000_000_000;
/// Number of buckets: 38,122, which would take 298 KiB.
const BUCKETS: usize = index_of(RANGE) + 1;
/// Counts that are compared at once when an interval is cut: eight cache lines, long enough to be compared
/// fast and short enough that a stretch without news is skipped.
const STRIDE: usize = 64;

/// The bucket of a value. Also defined above [`RANGE`], where it is at least [`BUCKETS`].
#[inline]
pub const fn index_of(value: u64) -> usize {
    // Below 2,048 the shift is zero and the bucket is the value itself.
    let shift = (u64::BITS - 1 - (value | HALF).leading_zeros()) - HALF_BITS;
    (shift as usize) * (HALF as usize) + (value >> shift) as usize
}

/// The largest value of a bucket.
const fn highest_of(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * HALF {
        return index;
    }
    let shift = index / HALF - 1;
    let sub = index - shift * HALF;
    ((sub + 1) << shift) - 1
}

/// The largest value of a bucket of HdrHistogram's array, which goes on to the end of a power of two; `None`
/// if there is no such bucket.
pub fn highest_in_array(index: usize) -> Option<u64> {
    (index < BUCKETS.next_multiple_of(HALF as usize)).then(|| highest_of(index))
}

/// The smallest value that is counted in the same bucket.
pub const fn floor_of(value: u64) -> u64 {
    lowest_of(index_of(value))
}

/// The smallest and the largest value of a bucket, by its [index](index_of). The layout goes on beyond the
/// range of a [`Histogram`], up to the largest number of 64 bits.
pub const fn bounds_of(index: usize) -> (u64, u64) {
    let highest = if index >= index_of(u64::MAX) { u64::MAX } else { highest_of(index) };
    (lowest_of(index), highest)
}

/// The smallest value of a bucket.
const fn lowest_of(index: usize) -> u64 {
    if index == 0 { 0 } else { highest_of(index - 1) + 1 }
}

/// A histogram of nanoseconds from 0 to 24 hours, with three significant digits.
///
/// A value is kept with a relative error below 0.1 % (see `percentiles_are_within_a_thousandth`); count, sum,
/// smallest and largest value are exact. Larger values than 24 hours count in the last bucket and as
/// [`overflow`](Self::overflow). Merging is exact: the merge of two parts equals the recording of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Counts,
    count: u64,
    overflow: u64,
    /// Meaningless while `count` is zero.
    min: u64,
    max: u64,
    sum: u128,
}

impl Histogram {
    /// An empty histogram, which owns no memory.
    pub const fn new() -> Self {
        Self { counts: Counts::new(), count: 0, overflow: 0, min: 0, max: 0, sum: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        // One check covers the first value, one beyond those before, and one beyond the range: none has a
        // bucket.
        let Some(bucket) = self.counts.get_mut(index_of(value)) else {
            return self.record_slowly(value);
        };
        *bucket += 1;
        self.count += 1;
        self.sum += u128::from(value);
        // Of n values in random order about ln n are a new minimum, and as many a new maximum: a branch that
        // is nearly never taken costs less than writing both again for every value.
        if value < self.min {
            self.lower_min(value);
        } else if value > self.max {
            self.raise_max(value);
        }
    }

    /// Counts one value that many times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        if self.count == 0 {
            self.min = u64::MAX;
        }
        let index = index_of(value);
        if index >= BUCKETS {
            self.overflow += times;
        }
        *self.counts.place(index.min(BUCKETS - 1)) += times;
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Records a value that has no bucket yet, or is beyond the range.
    #[cold]
    #[inline(never)]
    fn record_slowly(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    #[cold]
    #[inline(never)]
    fn lower_min(&mut self, value: u64) {
        self.min = value;
    }

    #[cold]
    #[inline(never)]
    fn raise_max(&mut self, value: u64) {
        self.max = value;
    }

    /// Adds everything that `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.min = u64::MAX;
        }
        let touched = other.touched();
        let mine = self.counts.cover(touched.clone());
        for (mine, theirs) in mine.iter_mut().zip(other.counts.slice(touched)) {
            *mine += theirs;
        }
        self.count += other.count;
        self.overflow += other.overflow;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Adds the counts of another histogram in a time. Counts are exact; the sum and the extremes are as
    /// exact as a bucket, each value being taken as the largest of its own.
    pub fn add(&mut self, delta: &Delta) {
        for &(index, count) in &delta.0 {
            self.record_many(highest_of(index as usize), count);
        }
    }

    /// Adds the counts of another histogram in a time, and `sum`, the known sum of its values.
    pub fn add_with_sum(&mut self, delta: &Delta, sum: u128) {
        let before = self.sum;
        self.add(delta);
        self.sum = before + sum;
    }

    /// The values without those of `part`, all of which are among them. Counts and sum are exact, smallest
    /// and largest value as exact as a bucket.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        if part.count == 0 {
            return self.clone();
        }
        let mut rest = Self::new();
        if self.count <= part.count {
            return rest;
        }
        rest.counts = self.counts.clone();
        let both = self.touched();
        let both = both.start.max(part.touched().start)..both.end.min(part.touched().end);
        if !both.is_empty() {
            let left = rest.counts.cover(both.clone());
            for (left, taken) in left.iter_mut().zip(part.counts.slice(both)) {
                *left = left.saturating_sub(*taken);
            }
        }
        rest.count = self.count - part.count;
        rest.overflow = self.overflow.saturating_sub(part.overflow);
        rest.sum = self.sum.saturating_sub(part.sum);
        let held = rest.counts.held();
        let (first, last) = (held.start, held.end.saturating_sub(1));
        rest.min = lowest_of(first).max(self.min);
        rest.max = highest_of(last).min(self.max);
        rest
    }

    /// The histogram of which buckets and exact figures were kept elsewhere: `values` in ascending order,
    /// each any value of its bucket, with how often it occurred. The inverse of [`buckets`](Self::buckets)
    /// and [`exact`](Self::exact); `None` if these cannot be those of one histogram.
    pub fn restore(values: impl IntoIterator<Item = (u64, u64)>, exact: Exact) -> Option<Self> {
        let mut histogram = Self::new();
        let (mut first, mut last) = (None, 0);
        for (value, count) in values.into_iter().filter(|(_, count)| *count > 0) {
            let index = index_of(value).min(BUCKETS - 1);
            if first.is_some() && index <= last {
                return None;
            }
            (first, last) = (first.or(Some(index)), index);
            *histogram.counts.place(index) = count;
            histogram.count = histogram.count.checked_add(count)?;
        }
        let Exact { min, max, sum, overflow } = exact;
        let Some(first) = first else { return (exact == Exact::default()).then_some(histogram) };
        (histogram.min, histogram.max, histogram.sum, histogram.overflow) = (min, max, sum, overflow);
        let of = |value| index_of(value).min(BUCKETS - 1);
        let is_one =
            of(min) == first && of(max) == last && min <= max && overflow <= histogram.counts.at(last);
        is_one.then_some(histogram)
    }

    /// Returns the figures that are known exactly, for [`restore`](Self::restore).
    pub const fn exact(&self) -> Exact {
        if self.count == 0 {
            return Exact { min: 0, max: 0, sum: 0, overflow: 0 };
        }
        Exact { min: self.min, max: self.max, sum: self.sum, overflow: self.overflow }
    }

    /// The histogram of values that are known by a delta only: with their exact `sum`, if that is known, else
    /// the one of the buckets' middles, and with extremes within `limits`.
    pub fn of_delta(delta: &Delta, sum: Option<u128>, limits: Option<(u64, u64)>) -> Self {
        let mut histogram = Self::new();
        let (Some(&(first, _)), Some(&(last, _))) = (delta.0.first(), delta.0.last()) else {
            return histogram;
        };
        let mut middles = 0;
        histogram.counts.cover(first as usize..last as usize + 1);
        for &(index, count) in &delta.0 {
            let index = index as usize;
            *histogram.counts.place(index) = count;
            histogram.count += count;
            middles += u128::from(lowest_of(index).midpoint(highest_of(index))) * u128::from(count);
        }
        let (first, last) = (first as usize, last as usize);
        let (low, high) = limits.unwrap_or((0, highest_of(last)));
        // The last bucket has everything beyond the range, too.
        let highest = |index: usize| if index == BUCKETS - 1 { u64::MAX } else { highest_of(index) };
        histogram.min = lowest_of(first).max(low.min(highest(first)));
        histogram.max = highest(last).min(high.max(lowest_of(last)));
        histogram.sum = sum.unwrap_or(middles);
        histogram
    }

    /// Number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns `true` if nothing was recorded.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of values beyond 24 hours: counted in the last bucket, and exactly in sum and maximum.
    pub const fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The smallest value, exactly.
    pub const fn min(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.min) }
    }

    /// The largest value, exactly.
    pub const fn max(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.max) }
    }

    /// The exact sum of all values.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The arithmetic mean, from the exact sum.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The standard deviation of the recorded values (divided by n, not n − 1), from the buckets' middles.
    /// About their own mean, not about the exact one: equal values have no deviation, wherever in a bucket
    /// they lie.
    pub fn stdev(&self) -> Option<f64> {
        stdev_of(self.count, || self.buckets())
    }

    /// The percentile `p` (0 to 100) by nearest rank: the smallest recorded value such that at least
    /// `ceil(p / 100 * count)` values are not larger. The one definition of a percentile in this program.
    ///
    /// It is the largest value of its bucket, so never below the truth and less than 0.1 % above it, and
    /// never larger than the maximum.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        self.value_at(rank_of(p, self.count))
    }

    /// The value of a rank, from 1 to [`count`](Self::count), in ascending order; as [`percentile`] it is the
    /// largest value of its bucket, within the exact extremes. A rank beyond the last value has the largest.
    ///
    /// [`percentile`]: Self::percentile
    pub fn value_at(&self, rank: u64) -> Option<u64> {
        let mut seen = 0;
        for (first, counts) in self.stretches() {
            let before = seen;
            seen += counts.iter().sum::<u64>();
            if seen < rank {
                continue;
            }
            let mut seen = before;
            for (index, count) in (first..).zip(counts) {
                seen += count;
                if *count > 0 && seen >= rank {
                    return Some(highest_of(index).clamp(self.min, self.max));
                }
            }
        }
        self.max()
    }

    /// The limit between two buckets at which the share of larger values is nearest to that above percentile
    /// `p`: where parts of these values are distinguishable, see [`Delta::count_above`]. `None` without
    /// values.
    pub fn cut_near(&self, p: f64) -> Option<u64> {
        let value = self.percentile(p)?;
        let index = index_of(value).min(BUCKETS - 1);
        let off = |above: u64| (above as f64 / self.count as f64 - (1.0 - p / 100.0)).abs();
        let above = self.counts.above(index);
        let below = index.checked_sub(1).filter(|_| off(above + self.counts.at(index)) < off(above));
        Some(highest_of(below.unwrap_or(index)))
    }

    /// Returns `true` if there are enough values for any statement on percentile `p`, see [`samples_needed`].
    pub fn enough_for(&self, p: f64) -> bool {
        self.count >= samples_needed(p)
    }

    /// Returns the number of values larger than `limit`, up to the resolution of a bucket: values in the
    /// bucket of `limit` itself are not counted.
    pub fn count_above(&self, limit: u64) -> u64 {
        if limit >= self.max {
            return 0;
        }
        let index = index_of(limit);
        if index == BUCKETS - 1 {
            // Values beyond the range share this bucket, but are counted in `overflow` as well.
            return self.overflow;
        }
        self.counts.above(index)
    }

    /// Returns `true` if a percentile with this value may be larger by more than 1 %, because some of the
    /// values are lower bounds: if all of these were larger than every other value, the percentile would be
    /// that of a rank as many places higher.
    pub fn is_at_least(&self, value: u64, censored: Censored) -> bool {
        censored.may_hide(value, self.count, self.count_above(value), |rank| self.value_at(rank))
    }

    /// The buckets that hold anything, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.touched().filter_map(|index| {
            let count = self.counts.at(index);
            (count > 0).then(|| Bucket { lowest: lowest_of(index), highest: highest_of(index), count })
        })
    }

    /// The buckets that hold anything, found once for several figures: to find them is most of the work of
    /// each.
    pub fn occupied(&self) -> Occupied {
        let mut buckets = Vec::new();
        for (first, counts) in self.stretches() {
            // Most of the buckets between the smallest and the largest value are empty.
            if counts.iter().all(|count| *count == 0) {
                continue;
            }
            for (index, &count) in (first..).zip(counts) {
                if count > 0 {
                    let (lowest, highest) = (lowest_of(index), highest_of(index));
                    buckets.push(Bucket { lowest, highest, count });
                }
            }
        }
        Occupied { buckets, count: self.count, min: self.min, max: self.max }
    }

    /// The counts between the smallest and the largest value in stretches, each with the index of its first.
    fn stretches(&self) -> impl Iterator<Item = (usize, &[u64])> {
        let touched = self.touched();
        (touched.start..).step_by(STRIDE).zip(self.counts.slice(touched).chunks(STRIDE))
    }

    /// The indices between the smallest and the largest value.
    fn touched(&self) -> std::ops::Range<usize> {
        if self.count == 0 {
            return 0..0;
        }
        index_of(self.min).min(BUCKETS - 1)..index_of(self.max).min(BUCKETS - 1) + 1
    }
}

/// The buckets of a histogram that hold anything, for several figures of it.
#[derive(Clone, Debug)]
pub struct Occupied {
    buckets: Vec<Bucket>,
    count: u64,
    min: u64,
    max: u64,
}

impl Occupied {
    /// In ascending order.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// As [`Histogram::percentile`].
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let ascending = self.buckets.iter().map(|bucket| (bucket.highest, bucket.count));
        percentile_of(p, self.count, ascending).map(|value| value.clamp(self.min, self.max))
    }

    /// As [`Histogram::stdev`].
    pub fn stdev(&self) -> Option<f64> {
        stdev_of(self.count, || self.buckets.iter().copied())
    }

    /// Share of the values that differ from their mean by one [standard deviation](Self::stdev) at most, as
    /// h2load's `+/- sd` has it. The values of a bucket count where its middle lies.
    pub fn within_stdev(&self) -> Option<f64> {
        let stdev = self.stdev()?;
        let mean = mean_of(self.count, self.buckets.iter().copied());
        // A sum of rounded terms: without room for its last bits, equal values would lie beside their mean.
        let reach = stdev + mean.abs() * f64::EPSILON * 8.0;
        let near = self.buckets.iter().filter(|bucket| (bucket.middle() - mean).abs() <= reach);
        Some(near.map(|bucket| bucket.count).sum::<u64>() as f64 / self.count as f64)
    }
}

/// Figures of a histogram that are exact although its values are kept in buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exact {
    /// The smallest value; 0 without values, as all that follow.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The sum of all values.
    pub sum: u128,
    /// Number of values beyond the range.
    pub overflow: u64,
}

/// Values that share a bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value of the bucket.
    pub lowest: u64,
    /// Largest value of the bucket.
    pub highest: u64,
    /// Number of values in the bucket, above zero.
    pub count: u64,
}

impl Bucket {
    fn middle(&self) -> f64 {
        (self.lowest as f64 + self.highest as f64) / 2.0
    }
}

/// The mean of values in buckets, from the buckets' middles.
fn mean_of(total: u64, buckets: impl Iterator<Item = Bucket>) -> f64 {
    buckets.map(|bucket| bucket.middle() * bucket.count as f64).sum::<f64>() / total as f64
}

/// The deviation of values in buckets from their mean, both from the buckets' middles.
fn stdev_of<I: Iterator<Item = Bucket>>(total: u64, buckets: impl Fn() -> I) -> Option<f64> {
    if total == 0 {
        return None;
    }
    let mean = mean_of(total, buckets());
    let squares: f64 = buckets().map(|bucket| (bucket.middle() - mean).powi(2) * bucket.count as f64).sum();
    Some((squares / total as f64).sqrt())
}

/// The rank of the percentile `p` among `total` values, from 1.
pub fn rank_of(p: f64, total: u64) -> u64 {
    // In units of 1e-8 percent: 99.9 / 100 * 1000 in floating point is above 999, and would be rank 1000.
    const UNITS_PER_PERCENT: f64 = 1e8;
    const WHOLE: u128 = 10_000_000_000;
    let units = (p.clamp(0.0, 100.0) * UNITS_PER_PERCENT).round() as u128;
    (units * u128::from(total)).div_ceil(WHOLE).clamp(1, u128::from(total.max(1))) as u64
}

/// The percentile `p` by nearest rank over ascending `(value, count)` pairs with the sum `total`.
fn percentile_of(p: f64, total: u64, ascending: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    value_of_rank(rank_of(p, total), ascending)
}

/// The value of a rank, from 1, over ascending `(value, count)` pairs; `None` beyond the last.
fn value_of_rank(rank: u64, ascending: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    let rank = u128::from(rank);
    let mut seen = 0_u128;
    for (value, count) in ascending {
        seen += u128::from(count);
        if seen >= rank {
            return Some(value);
        }
    }
    None
}

/// Counts that a histogram gained within a time: ascending bucket numbers with their counts, all above zero.
///
/// The bucket numbers are those of every histogram of this program, so deltas of several workers add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta(Vec<(u32, u64)>);

impl Delta {
    /// An empty delta with room for that many buckets.
    pub fn with_capacity(buckets: usize) -> Self {
        Self(Vec::with_capacity(buckets))
    }

    /// One value, that many times.
    pub fn of(value: u64, times: u64) -> Self {
        let index = index_of(value).min(BUCKETS - 1) as u32;
        Self(if times > 0 { vec![(index, times)] } else { Vec::new() })
    }

    /// The counts of a whole histogram.
    pub fn of_all(histogram: &Histogram) -> Self {
        let mut delta = Self::default();
        Cursor::new().advance(histogram, &mut delta);
        delta
    }

    /// The number of buckets.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|&(_, count)| count).sum()
    }

    /// Returns `true` if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of values in buckets above the bucket of `limit`.
    pub fn count_above(&self, limit: u64) -> u64 {
        let index = index_of(limit).min(BUCKETS - 1) as u32;
        let from = self.0.partition_point(|&(bucket, _)| bucket <= index);
        self.0[from..].iter().map(|&(_, count)| count).sum()
    }

    /// The smallest value of the lowest bucket.
    pub fn lowest(&self) -> Option<u64> {
        self.0.first().map(|&(index, _)| lowest_of(index as usize))
    }

    /// Gives back the memory that no value needs.
    pub fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Adds another delta: of another worker, or of another time.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.0.extend_from_slice(&other.0);
        self.0.sort_unstable_by_key(|&(index, _)| index);
        self.0.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
    }

    /// The percentile `p` by nearest rank, as [`Histogram::percentile`] except for the limit by the exact
    /// maximum.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        percentile_of(
            p,
            self.count(),
            self.0.iter().map(|&(index, count)| (highest_of(index as usize), count)),
        )
    }

    /// The value of a rank, from 1, in ascending order: the largest of its bucket. `None` beyond the last.
    pub fn value_at(&self, rank: u64) -> Option<u64> {
        value_of_rank(rank, self.values())
    }

    /// The delta of values in ascending order, each any value of its bucket, with their counts: the inverse
    /// of [`values`](Self::values). `None` if they are not in ascending order, or too many.
    pub fn restore(values: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let of = |(value, count)| (index_of(value).min(BUCKETS - 1) as u32, count);
        let counts: Vec<_> = values.into_iter().filter(|(_, count)| *count > 0).map(of).collect();
        let total = counts.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        (total.is_some() && counts.is_sorted_by(|a, b| a.0 < b.0)).then_some(Self(counts))
    }

    /// `(largest value of the bucket, count)` in ascending order.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|&(index, count)| (highest_of(index as usize), count))
    }

    /// The buckets in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.0.iter().map(|&(index, count)| {
            let index = index as usize;
            Bucket { lowest: lowest_of(index), highest: highest_of(index), count }
        })
    }

    /// Encodes the delta in about two bytes for each bucket: distances and counts in groups of seven bits.
    pub fn packed(&self) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(2 * self.0.len());
        let mut last = 0;
        for &(index, count) in &self.0 {
            for mut number in [u64::from(index - last), count] {
                while number >= 0x80 {
                    bytes.push(number as u8 | 0x80);
                    number >>= 7;
                }
                bytes.push(number as u8);
            }
            last = index;
        }
        bytes.into()
    }

    /// Decodes a delta that was [packed](Self::packed).
    pub fn unpacked(bytes: &[u8]) -> Self {
        let mut bytes = bytes.iter();
        let mut next = || {
            let (mut number, mut shift) = (0, 0);
            for &byte in bytes.by_ref() {
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return Some(number);
                }
            }
            None
        };
        let (mut counts, mut last) = (Vec::new(), 0);
        while let Some((distance, count)) = next().zip(next()) {
            last += distance as u32;
            counts.push((last, count));
        }
        Self(counts)
    }
}

/// The counts of several deltas, to which one can be added and from which it can be taken away again: the
/// histogram of a sliding window.
///
/// Adding and taking away cost as much as the delta has buckets, whatever was added before. Memory is as much
/// as a histogram's.
#[derive(Clone, Debug, Default)]
pub struct Sliding {
    counts: Counts,
    count: u64,
}

impl Sliding {
    /// Adds the values of a difference.
    pub fn add(&mut self, delta: &Delta) {
        for &(index, count) in &delta.0 {
            *self.counts.place(index as usize) += count;
            self.count += count;
        }
    }

    /// Takes away a delta that was added before.
    pub fn take(&mut self, delta: &Delta) {
        for &(index, count) in &delta.0 {
            *self.counts.place(index as usize) -= count;
            self.count -= count;
        }
    }

    /// The number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The buckets that hold anything, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.counts.iter().filter(|(_, count)| *count > 0).map(|(index, count)| Bucket {
            lowest: lowest_of(index),
            highest: highest_of(index),
            count,
        })
    }

    /// The largest value of the bucket in which percentile `p` (0 to 100) lies; `None` without values.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        percentile_of(p, self.count, self.buckets().map(|bucket| (bucket.highest, bucket.count)))
    }

    /// The value of a rank, from 1, in ascending order: the largest of its bucket. `None` beyond the last.
    pub fn value_at(&self, rank: u64) -> Option<u64> {
        value_of_rank(rank, self.buckets().map(|bucket| (bucket.highest, bucket.count)))
    }

    /// Returns the number of values in buckets above the bucket of `limit`.
    pub fn count_above(&self, limit: u64) -> u64 {
        self.counts.above(index_of(limit).min(BUCKETS - 1))
    }

    /// The standard deviation; `None` with fewer than two values.
    pub fn stdev(&self) -> Option<f64> {
        stdev_of(self.count, || self.buckets())
    }
}

/// An earlier state of one histogram, to compute its counts since then.
///
/// Memory is as much as the histogram's own; an advance reads the buckets between the histogram's
/// smallest and largest value, and skips 64 equal counts at a time.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    seen: Counts,
    count: u64,
}

impl Cursor {
    /// At the beginning: nothing was seen.
    pub const fn new() -> Self {
        Self { seen: Counts::new(), count: 0 }
    }

    /// Adds to `delta` the counts of `histogram` since the last call. Always call it with the same histogram.
    pub fn advance(&mut self, histogram: &Histogram, delta: &mut Delta) {
        if histogram.count == self.count {
            return;
        }
        self.count = histogram.count;
        let touched = histogram.touched();
        let already = delta.0.len();
        let mut first = touched.start;
        let chunks = histogram.counts.slice(touched.clone()).chunks(STRIDE);
        for (now, seen) in chunks.zip(self.seen.cover(touched).chunks_mut(STRIDE)) {
            if now != seen {
                for (offset, (now, seen)) in now.iter().zip(seen.iter_mut()).enumerate() {
                    if *now != *seen {
                        delta.0.push(((first + offset) as u32, now - *seen));
                        *seen = *now;
                    }
                }
            }
            first += STRIDE;
        }
        if already > 0 {
            // The delta has values of another histogram already: bring both into one ascending order.
            let later = Delta(delta.0.split_off(already));
            delta.merge(&later);
        }
    }
}
