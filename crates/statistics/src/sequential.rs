//! Two targets under one load at the same time: by how much they differ, at any instant of the run.
//!
//! Arrivals are dealt to A and B at random, and what ended is counted in blocks of time. The interval of a
//! difference may be looked at after every block, and the run may end at any look: it holds the truth at all
//! looks together with its confidence (a confidence sequence). The derivation is in `docs/statistics.md`.

use crate::shift::Shift;
use crate::slices::{Join, SliceKeeper};

/// Blocks without which there is no interval: fewer do not show whether they depend on each other, and their
/// differences set the scale on which others are expected.
pub const FEWEST_BLOCKS: usize = 40;
/// Blocks that are kept at most. Of a longer run neighbours are joined.
const MOST_BLOCKS: usize = 1_024;
/// Neighbouring blocks are joined to units for as long as there are this many units.
const FEWEST_JOINED: usize = 10;
/// Units of which neighbours can be said to be alike.
const FEWEST_UNITS: usize = 20;
/// Neighbours are not taken to be more alike than this, as a correlation.
const MOST_ALIKE: f64 = 0.95;
/// Smallest square of a difference to be prepared for, in events: so the share of errors of targets that had
/// none has an interval, too.
const FEWEST_EVENTS: f64 = 2.0;
/// Share of the probability of an error that the interval by the dealing has; the one by blocks has the rest.
const BY_DEALING: f64 = 0.1;
/// Share of a target's values in one range from which they are not taken to be spread evenly in it: a server
/// that always takes about as long.
const CONCENTRATED: f64 = 0.25;
/// Ratios are looked for up to this one, as a logarithm.
const LARGEST: f64 = 12.0;

/// Values in a range, by number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bin {
    /// Smallest value of the bin.
    low: f64,
    /// All its values are below this one.
    high: f64,
    count: f64,
    /// Number of values in higher bins.
    above: f64,
}

/// Values as counts of ranges, which do not overlap. Within a range they count as evenly spread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts(Vec<Bin>);

impl Counts {
    /// Of ranges in ascending order: the smallest value, the value that all are below, and their number.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64, u64)>) -> Self {
        let bin =
            |(low, high, count)| Bin { low: low as f64, high: high as f64, count: count as f64, above: 0.0 };
        Self::with_sums(ranges.into_iter().map(bin).collect())
    }

    fn with_sums(mut bins: Vec<Bin>) -> Self {
        let mut above = 0.0;
        for bin in bins.iter_mut().rev() {
            bin.above = above;
            above += bin.count;
        }
        Self(bins)
    }

    /// The number of values.
    fn total(&self) -> f64 {
        self.0.first().map_or(0.0, |first| first.above + first.count)
    }

    /// The number of values above `limit`.
    fn above(&self, limit: f64) -> f64 {
        let at = self.0.partition_point(|bin| bin.high <= limit);
        self.0.get(at).map_or(0.0, |bin| {
            let part = ((bin.high - limit) / (bin.high - bin.low)).min(1.0);
            bin.above + bin.count * part
        })
    }

    /// The range in which the quantile `q` lies.
    fn bin_of(&self, q: f64) -> Option<&Bin> {
        let beyond = (1.0 - q) * self.total();
        self.0.iter().find(|bin| bin.above <= beyond)
    }

    fn merge(&mut self, other: &Self) {
        let mut bins = Vec::with_capacity(self.0.len() + other.0.len());
        bins.extend_from_slice(&self.0);
        bins.extend_from_slice(&other.0);
        bins.sort_by(|a, b| a.low.total_cmp(&b.low));
        bins.dedup_by(|later, kept| {
            let same = later.low == kept.low;
            if same {
                kept.count += later.count;
            }
            same
        });
        *self = Self::with_sums(bins);
    }
}

/// Outcomes of one target in a block of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Times of its responses.
    pub times: Counts,
    /// The sum of these times, in their unit.
    pub sum: f64,
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed or timed out.
    pub failed: u64,
}

impl Side {
    fn merge(&mut self, later: &Self) {
        self.times.merge(&later.times);
        self.sum += later.sum;
        self.ok += later.ok;
        self.failed += later.failed;
    }

    const fn ended(&self) -> f64 {
        (self.ok + self.failed) as f64
    }
}

/// Outcomes of both targets in the same block of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The baseline.
    pub a: Side,
    /// The target that is compared with it.
    pub b: Side,
}

impl Join for Block {
    fn join(&mut self, later: Self) {
        self.a.merge(&later.a);
        self.b.merge(&later.b);
    }
}

/// A figure by which the targets are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A quantile of the times, in (0, 1), as a ratio.
    Quantile(f64),
    /// The mean of the times, as a ratio.
    Mean,
    /// Requests that ended well, as a ratio. Of an open load both have as many, unless one fails.
    Rate,
    /// The share of ended requests that failed or timed out, as a difference.
    Errors,
}

/// The comparison of two targets, block by block.
///
/// Blocks are equally long, and come in the order of time. Each should be long against the time for which
/// requests of a target depend on each other; where they are not, that shows, and the intervals are wider.
#[derive(Clone, Debug)]
pub struct SequentialComparison {
    blocks: SliceKeeper<Block>,
    /// All of them together.
    total: Block,
    count: usize,
    /// Requests that are dealt to a side together, at most; `None` if nothing bounds their number.
    dealt_together: Option<f64>,
    /// Requests that ended in the first [`FEWEST_BLOCKS`].
    first_ended: f64,
}

impl Default for SequentialComparison {
    fn default() -> Self {
        Self {
            blocks: SliceKeeper::keeping(MOST_BLOCKS),
            total: Block::default(),
            count: 0,
            dealt_together: None,
            first_ended: 0.0,
        }
    }
}

impl SequentialComparison {
    /// Before the first block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many requests are dealt to a side together at most: those of an iteration.
    #[must_use]
    pub fn dealing(self, together: u32) -> Self {
        Self { dealt_together: Some(f64::from(together.max(1))), ..self }
    }

    /// Takes the next block.
    pub fn add(&mut self, block: Block) {
        if self.count < FEWEST_BLOCKS {
            self.first_ended += block.a.ended() + block.b.ended();
        }
        self.total.join(block.clone());
        self.blocks.add(block);
        self.count += 1;
    }

    /// Takes what ended after the last block, in the drain, as a part of that block. Without one it becomes
    /// the first.
    pub fn extend_last(&mut self, rest: Block) {
        if self.count == 0 {
            return self.add(rest);
        }
        if self.count <= FEWEST_BLOCKS {
            self.first_ended += rest.a.ended() + rest.b.ended();
        }
        self.total.join(rest.clone());
        self.blocks.extend_last(rest);
    }

    /// The number of blocks so far.
    pub const fn blocks(&self) -> usize {
        self.count
    }

    /// Both targets over all blocks.
    pub const fn total(&self) -> &Block {
        &self.total
    }

    /// The value of a figure for one side, over all blocks; `None` without samples, and for
    /// [`Figure::Rate`], which needs a length.
    pub fn value(figure: Figure, side: &Side) -> Option<f64> {
        let count = side.times.total();
        match figure {
            Figure::Quantile(q) => (count > 0.0).then(|| {
                let excess = |limit: f64| side.times.above(limit) - (1.0 - q) * count;
                falling_root(0.0, highest(&side.times), excess)
            }),
            Figure::Mean => (count > 0.0).then(|| side.sum / count),
            Figure::Rate => None,
            Figure::Errors => (side.ended() > 0.0).then(|| side.failed as f64 / side.ended()),
        }
    }

    /// The change of a figure from A to B: of ratios b / a − 1, of [`Figure::Errors`] b − a. The interval
    /// holds the truth at all looks of a run together with probability `1 − alpha`; it has no ends before
    /// [`FEWEST_BLOCKS`]. `None` while there is nothing to compare.
    pub fn change(&self, figure: Figure, alpha: f64) -> Option<Shift> {
        if figure == Figure::Errors {
            return self.errors(alpha);
        }
        let estimate = self.ratio(figure)?;
        let resolution = self.resolution(figure);
        let bound = |direction: f64| -> f64 {
            let (mut inside, mut step) = (estimate, 1e-3);
            while step < LARGEST {
                let outside = estimate + direction * step;
                if self.excludes_logarithm(figure, outside, alpha) {
                    return boundary(inside, outside, |x| self.excludes_logarithm(figure, x, alpha));
                }
                (inside, step) = (outside, step * 1.5);
            }
            direction * f64::INFINITY
        };
        let (low, high) = (bound(-1.0) - resolution, bound(1.0) + resolution);
        Some(Shift { estimate, low, high }.map(f64::exp_m1))
    }

    /// Returns `true` if a change by this much is outside of the interval of [`change`](Self::change).
    pub fn excludes(&self, figure: Figure, change: f64, alpha: f64) -> bool {
        match figure {
            Figure::Errors => {
                self.errors(alpha).is_some_and(|found| change < found.low || change > found.high)
            }
            _ => self.ratio(figure).is_some_and(|estimate| {
                let (x, resolution) = (change.ln_1p(), self.resolution(figure));
                let nearer = if x < estimate {
                    (x + resolution).min(estimate)
                } else {
                    (x - resolution).max(estimate)
                };
                self.excludes_logarithm(figure, nearer, alpha)
            }),
        }
    }

    /// Largest error of a ratio, as a logarithm, that comes from values known to a range only. Values of many
    /// ranges are spread about evenly in each, and errors cancel out. Where a good part of them is in one,
    /// they may all be at either end of it.
    fn resolution(&self, figure: Figure) -> f64 {
        let Figure::Quantile(q) = figure else { return 0.0 };
        let of_side = |times: &Counts| {
            let concentrated = |bin: &&Bin| bin.count >= CONCENTRATED * times.total() && bin.low > 0.0;
            times.bin_of(q).filter(concentrated).map_or(0.0, |bin| (bin.high / bin.low).ln())
        };
        of_side(&self.total.a.times) + of_side(&self.total.b.times)
    }

    /// The logarithm of the ratio of b to a that leaves no difference.
    fn ratio(&self, figure: Figure) -> Option<f64> {
        let Block { a, b } = &self.total;
        let positive = |a: f64, b: f64| (a > 0.0 && b > 0.0).then(|| (b / a).ln());
        match figure {
            Figure::Quantile(q) => {
                let is_there = a.times.total() > 0.0 && b.times.total() > 0.0;
                is_there.then(|| {
                    let rest = |x: f64| {
                        let (limits, c) = (self.limits(q, x), 1.0 - q);
                        quantile_difference(&self.total, limits, c)
                    };
                    falling_root(-LARGEST, LARGEST, rest)
                })
            }
            Figure::Mean => {
                positive(a.sum * b.times.total(), b.sum * a.times.total()).filter(|x| x.is_finite())
            }
            Figure::Rate => positive(a.ok as f64, b.ok as f64),
            Figure::Errors => None,
        }
    }

    /// The limits of A's and of B's times beyond which lies the share 1 − q of all times together, if those
    /// of B are `exp(x)` times as long.
    fn limits(&self, q: f64, x: f64) -> [f64; 2] {
        let (a, b, ratio) = (&self.total.a.times, &self.total.b.times, x.exp());
        let wanted = (1.0 - q) * (a.total() + b.total());
        let top = highest(a).max(highest(b) / ratio);
        let limit = falling_root(0.0, top, |limit| a.above(limit) + b.above(limit * ratio) - wanted);
        [limit, limit * ratio]
    }

    fn excludes_logarithm(&self, figure: Figure, x: f64, alpha: f64) -> bool {
        let Block { a, b } = &self.total;
        let mean = |side: &Side| side.sum / side.times.total().max(1.0);
        match figure {
            Figure::Quantile(q) => {
                let limits = self.limits(q, x);
                self.is_excluded(|block| quantile_difference(block, limits, 1.0 - q), FEWEST_EVENTS, alpha)
            }
            Figure::Mean => {
                let ratio = x.exp();
                // Sums grow with the number of requests, too, which chance deals: a request counts by how far
                // it is from the mean that the ratio leaves both of them with.
                let (sum, count) = (a.sum + b.sum / ratio, (a.times.total() + b.times.total()).max(1.0));
                let middle = sum / count;
                let rest = |side: &Side, ratio: f64| side.sum / ratio - middle * side.times.total();
                let floor = FEWEST_EVENTS * mean(a).max(mean(b) / ratio).powi(2);
                self.is_excluded(|block| rest(&block.b, ratio) - rest(&block.a, 1.0), floor, alpha)
            }
            Figure::Rate => {
                let ratio = x.exp();
                self.is_excluded(|block| block.b.ok as f64 / ratio - block.a.ok as f64, FEWEST_EVENTS, alpha)
            }
            Figure::Errors => false,
        }
    }

    /// The difference of the shares of errors, by the narrower of two intervals.
    fn errors(&self, alpha: f64) -> Option<Shift> {
        let Some(together) = self.dealt_together else { return self.errors_by_blocks(alpha) };
        let by_blocks = self.errors_by_blocks(alpha * (1.0 - BY_DEALING))?;
        if self.count < FEWEST_BLOCKS {
            return Some(by_blocks);
        }
        let width = self.width_by_dealing(together, alpha * BY_DEALING);
        if 2.0 * width >= by_blocks.high - by_blocks.low {
            return Some(by_blocks);
        }
        let Shift { estimate, .. } = by_blocks;
        Some(Shift { estimate, low: (estimate - width).max(-1.0), high: (estimate + width).min(1.0) })
    }

    /// Half the width of the interval of the difference of the shares of errors in this run, by the chance of
    /// the dealing alone: whenever its requests failed, and however they depend on each other, those that are
    /// dealt together were as likely to be A's as B's. So the sum of A's and B's failures, with opposite
    /// signs, is made of independent parts no larger than `together` (Hoeffding 1963).
    fn width_by_dealing(&self, together: f64, alpha: f64) -> f64 {
        let Block { a, b } = &self.total;
        let squares = together * f64::midpoint(a.ended(), b.ended());
        let scale = (together * self.first_ended / 2.0).max(FEWEST_EVENTS);
        let spread = Spread { sum: 0.0, squares, scale };
        spread.limit(alpha) / f64::midpoint(a.ended(), b.ended())
    }

    /// The difference of the shares of errors, by how it varies from block to block. Its interval takes the
    /// squares of the differences as they are, without the difference that is asked about: with few errors
    /// they are not symmetric around another one than zero.
    fn errors_by_blocks(&self, alpha: f64) -> Option<Shift> {
        let Block { a, b } = &self.total;
        let (value_of_a, value_of_b) = (Self::value(Figure::Errors, a)?, Self::value(Figure::Errors, b)?);
        let estimate = value_of_b - value_of_a;
        let share = (a.failed + b.failed) as f64 / (a.ended() + b.ended());
        let rest = |side: &Side| side.failed as f64 - share * side.ended();
        let Some(spread) = self.spread(|block| rest(&block.b) - rest(&block.a), FEWEST_EVENTS) else {
            return Some(Shift { estimate, low: -1.0, high: 1.0 });
        };
        let width = spread.limit(alpha) / f64::midpoint(a.ended(), b.ended());
        Some(Shift { estimate, low: (estimate - width).max(-1.0), high: (estimate + width).min(1.0) })
    }

    /// Returns `true` if the sum of these differences is too far from zero for differences that are as likely
    /// to have either sign.
    fn is_excluded(&self, difference: impl Fn(&Block) -> f64, floor: f64, alpha: f64) -> bool {
        self.spread(difference, floor).is_some_and(|spread| spread.sum.abs() > spread.limit(alpha))
    }

    /// The sum of the differences of all blocks, and their squares; `None` for too few blocks.
    fn spread(&self, difference: impl Fn(&Block) -> f64, floor: f64) -> Option<Spread> {
        if self.count < FEWEST_BLOCKS {
            return None;
        }
        let differences: Vec<f64> = self.blocks.so_far().iter().map(difference).collect();
        let squares = |differences: &[f64]| differences.iter().map(|d| d * d).sum::<f64>();
        let first = FEWEST_BLOCKS.div_ceil(self.blocks.parts_per_slice()).min(differences.len());
        let scale = squares(&differences[..first]).max(floor);
        let sum = differences.iter().sum();
        let squares = squares(&differences) * dependence(differences);
        Some(Spread { sum, squares, scale })
    }
}

/// Differences of a number of blocks.
#[derive(Clone, Copy, Debug)]
struct Spread {
    sum: f64,
    /// The sum of their squares.
    squares: f64,
    /// The sum of squares at which the limit is narrowest, about.
    scale: f64,
}

impl Spread {
    /// The limit that the sum stays within at all times, with probability `1 − alpha`, if each difference is
    /// as likely to have either sign.
    fn limit(self, alpha: f64) -> f64 {
        let sum = self.squares + self.scale;
        (sum * ((sum / self.scale).ln() - 2.0 * alpha.ln())).sqrt()
    }
}

/// The factor by which the sum of these differences varies more than if they were independent, at least 1.
///
/// Neighbours are joined to units, two by two, and the variances of units of all lengths are compared. Units
/// that are still like the next ones are taken for an autoregressive series.
fn dependence(mut differences: Vec<f64>) -> f64 {
    // Differences that are all the same vary by the rounding of their mean alone.
    let rounding = 1e-12 * differences.iter().map(|d| d * d).sum::<f64>() / differences.len() as f64;
    let mut independent = 0.0;
    let mut factor = 1.0_f64;
    let mut blocks_of_unit = 1.0;
    loop {
        let count = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / count;
        let rest: Vec<f64> = differences.iter().map(|d| d - mean).collect();
        // For each block, as units are of different numbers of blocks.
        let variance = rest.iter().map(|d| d * d).sum::<f64>() / ((count - 1.0) * blocks_of_unit);
        if independent == 0.0 {
            independent = variance;
        }
        if variance <= rounding || independent <= rounding {
            return factor;
        }
        let neighbours =
            rest.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / (count * blocks_of_unit);
        // The mean is that of the units themselves, which makes neighbours look opposite by one part in as
        // many as there are.
        let like = (neighbours / variance + 1.0 / count).clamp(0.0, MOST_ALIKE);
        let goes_on = if differences.len() >= FEWEST_UNITS { (1.0 + like) / (1.0 - like) } else { 1.0 };
        factor = factor.max(variance / independent * goes_on);
        if differences.len() < 2 * FEWEST_JOINED {
            return factor;
        }
        // A last one without a neighbour would be a unit of half the length.
        differences = differences.chunks_exact(2).map(|pair| pair.iter().sum()).collect();
        blocks_of_unit *= 2.0;
    }
}

/// By how many more of B's times than of A's are beyond their limits than numbers of times and the share `c`
/// say.
fn quantile_difference(block: &Block, limits: [f64; 2], c: f64) -> f64 {
    let rest = |side: &Side, limit: f64| side.times.above(limit) - c * side.times.total();
    rest(&block.b, limits[1]) - rest(&block.a, limits[0])
}

/// All values are below it.
fn highest(counts: &Counts) -> f64 {
    counts.0.last().map_or(0.0, |bin| bin.high)
}

/// Where a function that does not rise is zero between `low` and `high`.
fn falling_root(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    // 52 halvings leave the precision of a double.
    for _ in 0..52 {
        let middle = f64::midpoint(low, high);
        if function(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The end of an interval between a logarithm inside of it and one outside, to a hundred-thousandth.
fn boundary(mut inside: f64, mut outside: f64, is_outside: impl Fn(f64) -> bool) -> f64 {
    while (outside - inside).abs() > 1e-5 {
        let middle = f64::midpoint(inside, outside);
        if is_outside(middle) {
            outside = middle;
        } else {
            inside = middle;
        }
    }
    outside
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;

    const ALPHA: f64 = 0.05;

    /// A side of a block whose times lie in ranges of a hundredth.
    fn side(times: &[u64], failed: u64) -> Side {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let low = |time: u64| time - time % 10;
        let counts = Counts::new(
            sorted
                .chunk_by(|a, b| low(*a) == low(*b))
                .map(|bin| (low(bin[0]), low(bin[0]) + 10, bin.len() as u64)),
        );
        Side { times: counts, sum: times.iter().sum::<u64>() as f64, ok: times.len() as u64, failed }
    }

    fn uniform(random: &mut Random, count: u64, scale: f64) -> Vec<u64> {
        (0..count).map(|_| (scale * (1_000.0 + 1_000.0 * random.unit())) as u64).collect()
    }

    #[test]
    fn values_above_a_limit_are_counted_within_ranges_too() {
        let counts = Counts::new([(10, 20, 4), (30, 40, 2)]);
        for (limit, expected) in
            [(0.0, 6.0), (10.0, 6.0), (15.0, 4.0), (20.0, 2.0), (25.0, 2.0), (35.0, 1.0), (40.0, 0.0)]
        {
            assert_eq!(counts.above(limit), expected, "{limit}");
        }
        let mut merged = counts.clone();
        merged.merge(&Counts::new([(0, 5, 1), (30, 40, 2)]));
        assert_eq!((merged.total(), merged.above(9.0), merged.above(30.0)), (9.0, 8.0, 4.0));
        assert_eq!(Counts::default().above(1.0), 0.0);
    }

    #[test]
    fn a_change_is_found_in_each_figure_and_the_interval_holds_it() {
        let mut comparison = SequentialComparison::new();
        let random = &mut Random::new(4, 0);
        for _ in 0..80 {
            let (a, b) = (uniform(random, 200, 1.0), uniform(random, 220, 1.1));
            comparison.add(Block { a: side(&a, 2), b: side(&b, 44) });
        }
        let truth = |figure| match figure {
            Figure::Errors => 44.0 / 264.0 - 2.0 / 202.0,
            _ => 0.1,
        };
        for figure in
            [Figure::Quantile(0.5), Figure::Quantile(0.99), Figure::Mean, Figure::Rate, Figure::Errors]
        {
            let found = comparison.change(figure, ALPHA).unwrap();
            let truth = truth(figure);
            assert!(found.low <= truth && truth <= found.high && found.low > 0.0, "{figure:?} {found:?}");
            assert!((found.estimate - truth).abs() < 0.01, "{figure:?} {found:?}");
            assert!(comparison.excludes(figure, 0.0, ALPHA) && !comparison.excludes(figure, truth, ALPHA));
        }
        let p50 = |side| SequentialComparison::value(Figure::Quantile(0.5), side).unwrap();
        let Block { a, b } = comparison.total();
        assert!((p50(a) - 1_500.0).abs() < 15.0 && (p50(b) - 1_650.0).abs() < 15.0);
    }

    /// Times of servers that always take as long are known to a range only. The interval was of the width of
    /// nothing, and left out the truth by most of a range.
    #[test]
    fn constant_times_are_known_to_a_range_only() {
        for (a, b) in [(1_009, 1_010), (1_003, 1_013), (1_000, 1_019), (1_019, 1_000), (1_005, 1_005)] {
            let mut comparison = SequentialComparison::new();
            for _ in 0..100 {
                comparison.add(Block { a: side(&[a; 50], 0), b: side(&[b; 50], 0) });
            }
            let truth = b as f64 / a as f64 - 1.0;
            for figure in [Figure::Quantile(0.5), Figure::Quantile(0.99)] {
                let found = comparison.change(figure, ALPHA).unwrap();
                assert!(found.low <= truth && truth <= found.high, "{a} {b}: {found:?}, {truth}");
                assert!(found.high - found.low < 0.05, "{a} {b}: {found:?}");
                assert!(!comparison.excludes(figure, truth, ALPHA), "{a} {b}");
                assert!(comparison.excludes(figure, 0.1, ALPHA), "{a} {b}");
            }
        }
    }

    /// The last of an odd number of blocks was a unit of its own, half as long as the others, and what ended
    /// in the drain was a block. Blocks of servers that always take as long vary by little else, so a change
    /// that was known was not known at the end of the run.
    #[test]
    fn what_is_left_at_the_end_of_a_run_hides_no_change() {
        let block = |a: usize, b: usize| Block { a: side(&vec![1_005; a], 0), b: side(&vec![2_005; b], 0) };
        for blocks in FEWEST_BLOCKS..FEWEST_BLOCKS + 8 {
            let mut comparison = SequentialComparison::new();
            // One request to and fro: arrivals are dealt at random.
            (0..blocks).for_each(|number| comparison.add(block(50 + number % 2, 50 + number / 2 % 2)));
            let before = comparison.change(Figure::Quantile(0.5), ALPHA).unwrap();
            comparison.extend_last(block(1, 2));
            let after = comparison.change(Figure::Quantile(0.5), ALPHA).unwrap();
            for found in [before, after] {
                assert!(found.low > 0.9 && found.high < 1.1, "{blocks}: {before:?} {after:?}");
            }
            assert_eq!(
                (comparison.blocks(), comparison.total().b.ok),
                (blocks, comparison.total().b.times.total() as u64)
            );
        }
    }

    #[test]
    fn the_other_way_round_is_the_reciprocal() {
        let [mut forth, mut back] = [SequentialComparison::new(), SequentialComparison::new()];
        let random = &mut Random::new(5, 0);
        for _ in 0..50 {
            let (a, b) = (side(&uniform(random, 100, 1.0), 0), side(&uniform(random, 100, 1.04), 0));
            forth.add(Block { a: a.clone(), b: b.clone() });
            back.add(Block { a: b, b: a });
        }
        for figure in [Figure::Quantile(0.9), Figure::Mean] {
            let (forth, back) = (forth.change(figure, ALPHA).unwrap(), back.change(figure, ALPHA).unwrap());
            for (there, again) in
                [(forth.low, back.high), (forth.high, back.low), (forth.estimate, back.estimate)]
            {
                assert!(((1.0 + there) * (1.0 + again) - 1.0).abs() < 1e-3, "{forth:?} {back:?}");
            }
        }
    }

    #[test]
    fn there_is_no_interval_before_there_are_enough_blocks() {
        let mut comparison = SequentialComparison::new();
        assert_eq!(comparison.change(Figure::Quantile(0.5), ALPHA), None);
        assert_eq!(comparison.change(Figure::Errors, ALPHA), None);
        for number in 1..=FEWEST_BLOCKS {
            let block = Block { a: side(&[1_000; 50], 0), b: side(&[2_000; 50], 0) };
            comparison.add(block);
            let found = comparison.change(Figure::Quantile(0.5), ALPHA).unwrap();
            assert!((found.estimate - 1.0).abs() < 0.02, "{found:?}");
            assert_eq!(found.low.is_finite() && found.high.is_finite(), number == FEWEST_BLOCKS, "{number}");
            assert_eq!(comparison.excludes(Figure::Mean, 0.0, ALPHA), number == FEWEST_BLOCKS);
        }
    }

    #[test]
    fn targets_without_errors_may_still_have_some() {
        let mut comparison = SequentialComparison::new();
        (0..40).for_each(|_| comparison.add(Block { a: side(&[1_000; 25], 0), b: side(&[1_000; 25], 0) }));
        let found = comparison.change(Figure::Errors, ALPHA).unwrap();
        // Of 1,000 requests each: about the rule of three, for any time and both signs.
        assert!(found.estimate == 0.0 && (0.003..0.006).contains(&found.high), "{found:?}");
        assert!(!comparison.excludes(Figure::Quantile(0.99), 0.0, ALPHA));
    }

    #[test]
    fn blocks_that_follow_each_other_say_less() {
        let width = |length: usize| {
            let mut comparison = SequentialComparison::new();
            let random = &mut Random::new(6, 0);
            for _ in 0..256 / length {
                let times = [(); 2].map(|()| 1.0 + 0.1 * random.normal());
                for _ in 0..length {
                    let [a, b] = times.map(|scale| side(&uniform(random, 20, scale), 0));
                    comparison.add(Block { a, b });
                }
            }
            let found = comparison.change(Figure::Quantile(0.5), ALPHA).unwrap();
            found.high - found.low
        };
        let (apart, together) = (width(1), width(8));
        assert!(together > 1.8 * apart, "{apart} {together}");
    }
}
