//! Comparing few runs: the block bootstrap of the ratio of quantiles, and the variance between runs.

use plimsoll_core::Random;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::shift::Shift;
use crate::student_quantile;

/// A part of a run, as a block of the bootstrap: values, in ascending order and each once, with how often
/// they occurred. It should be longer than ten times the time for which values depend on each other.
pub type Slice = Vec<(u64, u64)>;

/// Slices below which a run says too little about its own variation.
pub const SLICES_MIN: usize = 10;

/// Neighbouring slices that are drawn together, so that dependence across their border is kept. With single
/// slices 7 % of comparisons of like runs were false alarms (M/M/1, ρ = 0.8, 20,000 requests, 30 slices of
/// nine relaxation times), with pairs 4 %.
const BLOCK: usize = 2;

/// A change, with the probability of one at least as large under no change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The change and its interval.
    pub shift: Shift,
    /// Two-sided probability of a test that there is no change.
    pub p: f64,
}

/// Parameters of a bootstrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Confidence of the interval, in (0, 1).
    pub confidence: f64,
    /// Resamples; a thousand give the standard error to 2 %.
    pub resamples: usize,
    /// Seed of the resampling: the same one gives the same interval.
    pub seed: u64,
}

/// The relative change from `a` to `b` of the quantile `q` (in (0, 1)) of everything that runs measured, each
/// run being its slices. `None` if a run has fewer than [`SLICES_MIN`] of them, a side has no run, or the
/// quantile is zero.
///
/// Pairs of neighbouring slices are drawn with replacement within their run, the last one being a neighbour
/// of the first (Künsch, 1989; Politis and Romano, 1992: blocks keep the dependence among neighbours). The
/// standard error of the logarithm of each side's pooled quantile is that of the resamples, times √(B / (B −
/// 1)) for the B blocks of a resample. The interval is the estimate ± t standard errors, with
/// Welch's degrees of freedom: on the logarithmic scale the distribution is nearly symmetric, and t makes up
/// for the small number of blocks, which the percentiles of a bootstrap do not.
///
/// Resamples of one run know nothing of how runs differ. Of two runs and more on a side the variation between
/// their quantiles is therefore taken instead where it is larger, with its own few degrees of freedom. With
/// one run, a report of the interval has to say that this part is unknown (R12).
pub fn quantile_ratio(a: &[&[Slice]], b: &[&[Slice]], q: f64, how: Bootstrap) -> Option<Change> {
    let first = Side::of(a, q, how.resamples, &mut Random::new(how.seed, 0))?;
    let second = Side::of(b, q, how.resamples, &mut Random::new(how.seed, 1))?;
    Some(welch(first, second, how.confidence).map_shift(f64::exp_m1))
}

/// The change of the mean from `a` to `b` between runs, with the t interval of Welch (1947), which does not
/// assume equal variances; `None` with fewer than two values on a side. It takes the values as normal, which
/// means and quantiles of many requests nearly are; rank tests, which do not, can say nothing of so few runs.
pub fn mean_change(a: &[f64], b: &[f64], confidence: f64) -> Option<Change> {
    Some(welch(Side::between(a)?, Side::between(b)?, confidence))
}

/// As [`mean_change`], of logarithms: a relative change. `None` also if a value is not positive.
pub fn relative_mean_change(a: &[f64], b: &[f64], confidence: f64) -> Option<Change> {
    let logarithms = |values: &[f64]| -> Option<Vec<f64>> {
        values.iter().map(|&value| (value > 0.0).then(|| value.ln())).collect()
    };
    Some(mean_change(&logarithms(a)?, &logarithms(b)?, confidence)?.map_shift(f64::exp_m1))
}

impl Change {
    fn map_shift(self, scale: impl Fn(f64) -> f64) -> Self {
        Self { shift: self.shift.map(scale), ..self }
    }
}

/// An estimate of one side, the square of its standard error, and how many degrees of freedom that has.
#[derive(Clone, Copy, Debug)]
struct Side {
    estimate: f64,
    variance: f64,
    degrees: f64,
}

impl Side {
    /// The logarithm of the pooled quantile of several runs.
    fn of(runs: &[&[Slice]], q: f64, resamples: usize, random: &mut Random) -> Option<Self> {
        if runs.is_empty() || runs.iter().any(|slices| slices.len() < SLICES_MIN) {
            return None;
        }
        let grids: Vec<Grid> = runs.iter().map(|slices| Grid::new(slices)).collect();
        let pooled = Grid::new(&runs.concat());
        let estimate = pooled.logarithm(&(0..pooled.slices()).collect::<Vec<_>>(), q)?;
        // Where each run's slices begin among all.
        let offsets: Vec<usize> =
            grids.iter().scan(0, |next, grid| Some(std::mem::replace(next, *next + grid.slices()))).collect();
        let mut drawn = Vec::with_capacity(pooled.slices());
        let mut logarithms = Vec::with_capacity(resamples);
        for _ in 0..resamples {
            drawn.clear();
            for (grid, offset) in grids.iter().zip(&offsets) {
                let count = grid.slices();
                for _ in 0..count / BLOCK {
                    let start = random.below(count as u64) as usize;
                    drawn.extend((start..start + BLOCK).map(|slice| offset + slice % count));
                }
            }
            // A resample of empty slices only says nothing.
            logarithms.extend(pooled.logarithm(&drawn, q));
        }
        let blocks = grids.iter().map(|grid| grid.slices() / BLOCK).sum::<usize>() as f64;
        let degrees = blocks - grids.len() as f64;
        let within = variance(&logarithms)? * blocks / degrees;
        let mut side = Self { estimate, variance: within, degrees };
        let of_runs: Option<Vec<f64>> =
            grids.iter().map(|grid| grid.logarithm(&(0..grid.slices()).collect::<Vec<_>>(), q)).collect();
        if let Some(between) = of_runs.as_deref().and_then(Self::between).filter(|b| b.variance >= within) {
            (side.variance, side.degrees) = (between.variance, between.degrees);
        }
        Some(side)
    }

    /// The mean of independent values.
    fn between(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        Some(Self { estimate: mean, variance: variance(values)? / count, degrees: count - 1.0 })
    }
}

/// The sample variance; `None` of fewer than two values.
fn variance(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (count - 1.0))
}

/// The difference of two sides with Welch's degrees of freedom (the formula of Satterthwaite).
fn welch(a: Side, b: Side, confidence: f64) -> Change {
    let estimate = b.estimate - a.estimate;
    let error = (a.variance + b.variance).sqrt();
    if error == 0.0 {
        let p = if estimate == 0.0 { 1.0 } else { 0.0 };
        return Change { shift: Shift { estimate, low: estimate, high: estimate }, p };
    }
    let squares = a.variance.powi(2) / a.degrees + b.variance.powi(2) / b.degrees;
    let degrees = (a.variance + b.variance).powi(2) / squares;
    let student = StudentsT::new(0.0, 1.0, degrees).expect("scale and degrees are positive");
    let margin = student_quantile(confidence, degrees) * error;
    let p = 2.0 * student.sf((estimate / error).abs());
    Change { shift: Shift { estimate, low: estimate - margin, high: estimate + margin }, p }
}

/// Slices on a common grid of values, so that a quantile of any choice of them is a binary search.
struct Grid {
    values: Vec<u64>,
    /// Of each slice: how many of its values are not larger than each of the grid.
    cumulative: Vec<Vec<u64>>,
}

impl Grid {
    fn new(slices: &[Slice]) -> Self {
        let mut values: Vec<u64> = slices.iter().flatten().map(|&(value, _)| value).collect();
        values.sort_unstable();
        values.dedup();
        let cumulative = slices.iter().map(|slice| {
            let (mut counts, mut sum) = (slice.iter().peekable(), 0);
            let up_to = values.iter().map(|value| {
                while let Some((_, count)) = counts.next_if(|(at, _)| at <= value) {
                    sum += count;
                }
                sum
            });
            up_to.collect()
        });
        Self { cumulative: cumulative.collect(), values }
    }

    fn slices(&self) -> usize {
        self.cumulative.len()
    }

    /// The logarithm of the quantile `q`, by nearest rank, of these slices together.
    fn logarithm(&self, slices: &[usize], q: f64) -> Option<f64> {
        let up_to = |at: usize| slices.iter().map(|&slice| self.cumulative[slice][at]).sum::<u64>();
        let total = up_to(self.values.len().checked_sub(1)?);
        let rank = (q * total as f64).ceil().max(1.0) as u64;
        let (mut from, mut to) = (0, self.values.len() - 1);
        while from < to {
            let middle = usize::midpoint(from, to);
            if up_to(middle) >= rank { to = middle } else { from = middle + 1 }
        }
        (total > 0 && self.values[from] > 0).then(|| (self.values[from] as f64).ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: Bootstrap = Bootstrap { confidence: 0.95, resamples: 500, seed: 1 };

    /// Slices whose values are `center` ± 10 %, drawn evenly.
    fn run(center: f64, seed: u64) -> Vec<Slice> {
        let mut random = Random::new(seed, 7);
        let slice = |_| {
            let mut values: Vec<u64> =
                (0..200).map(|_| (center * (0.9 + 0.2 * random.unit())) as u64).collect();
            values.sort_unstable();
            values.into_iter().map(|value| (value, 1)).collect()
        };
        (0..20).map(slice).collect()
    }

    #[test]
    fn a_ratio_is_found_and_its_interval_holds_it() {
        let (a, b) = (run(1e6, 1), run(1.2e6, 2));
        let change = quantile_ratio(&[&a], &[&b], 0.5, HOW).unwrap();
        assert!((change.shift.estimate - 0.2).abs() < 0.01, "{change:?}");
        assert!(change.shift.low < 0.2 && 0.2 < change.shift.high && change.p < 1e-6, "{change:?}");
        assert_eq!(quantile_ratio(&[&a], &[&b], 0.5, HOW), Some(change), "the seed decides");
    }

    #[test]
    fn runs_that_differ_among_themselves_widen_the_interval() {
        let (low, high) = (run(1e6, 1), run(1.3e6, 2));
        let alone = quantile_ratio(&[&low], &[&high], 0.5, HOW).unwrap();
        assert!(alone.p < 0.001);
        let (other_low, other_high) = (run(1e6, 3), run(1.3e6, 4));
        let mixed = quantile_ratio(&[&low, &other_high], &[&other_low, &high], 0.5, HOW).unwrap();
        assert!(mixed.p > 0.5 && mixed.shift.low < -0.3 && mixed.shift.high > 0.3, "{mixed:?}");
    }

    #[test]
    fn too_little_says_nothing() {
        let a = run(1e6, 1);
        assert_eq!(quantile_ratio(&[&a[..9]], &[&a], 0.5, HOW), None);
        assert_eq!(quantile_ratio(&[], &[&a], 0.5, HOW), None);
        let zeros = vec![vec![(0, 5)]; 20];
        assert_eq!(quantile_ratio(&[&zeros], &[&a], 0.5, HOW), None);
        let empty = vec![Slice::new(); 20];
        assert_eq!(quantile_ratio(&[&empty], &[&a], 0.5, HOW), None);
        assert_eq!(mean_change(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(relative_mean_change(&[0.0, 1.0], &[1.0, 2.0], 0.95), None);
    }

    #[test]
    fn the_interval_between_runs_is_that_of_welch() {
        // By hand: 37/6 ± t · √(29/12 + 7/9), t of 4.54 degrees of freedom being 2.650.
        let Change { shift, p } = mean_change(&[20.0, 22.0, 27.0, 25.0], &[28.0, 31.0, 30.0], 0.95).unwrap();
        assert!((shift.estimate - 37.0 / 6.0).abs() < 1e-9, "{shift:?}");
        assert!((shift.high - shift.estimate - 2.650 * 1.7873).abs() < 0.01, "{shift:?}");
        assert!((0.01..0.05).contains(&p), "{p}");
        let same = mean_change(&[5.0, 5.0], &[5.0, 5.0], 0.95).unwrap();
        assert_eq!((same.shift.low, same.shift.high, same.p), (0.0, 0.0, 1.0));
    }
}
