//! The rate at which a share of bad samples crosses its limit, estimated from several rates around it.
//!
//! It takes long to show that one rate holds or breaks the condition, and as long again for its neighbours.
//! Together they say more: the share grows with the rate, so that the log-odds of a bad sample are taken as
//! linear in the logarithm of the rate over a range of some percent (logistic regression). The interval of
//! the rate where that line meets the limit is all rates for which a line through the limit there fits nearly
//! as well as the best one: the profile of the likelihood ratio, whose deviance is divided by the dispersion
//! of batches in time (quasi-likelihood, McCullagh and Nelder, *Generalized Linear Models*, 4.5 and 9.2). The
//! formulas and the simulations are in `docs/statistics.md`.

use crate::spread::join;
use crate::{SliceCount, student_quantile};

/// Steepness of the line at least: where the share grows more slowly than the square of the rate, it is no
/// matter of the rate.
const FLATTEST: f64 = 2.0;
/// Largest steepness. Beyond it the line is a step at any rates that are distinguished.
const STEEPEST: f64 = 1_000.0;
/// Batches of all rates together: enough for the dispersion, few enough for each to be long beside the time
/// over which samples depend on one another.
const MOST_BATCHES: usize = 24;
/// Batches below which the dispersion is a guess.
const FEWEST_BATCHES: usize = 10;
/// Parameters of the line.
const PARAMETERS: f64 = 2.0;
/// Halvings of an interval of logarithms of rates: to less than a millionth.
const HALVINGS: u32 = 28;

/// Counts at one rate, in batches of equal time.
#[derive(Clone, Debug, PartialEq)]
pub struct RatedBatches {
    /// The rate.
    pub rate: f64,
    /// In the order of time.
    pub batches: Vec<SliceCount>,
}

/// The rate at which a share crosses its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The likeliest rate, or the end of the range if it lies beyond.
    pub estimate: f64,
    /// Lower limit of the interval; `None` if it lies beyond the range.
    pub low: Option<f64>,
    /// Upper limit of the interval; `None` if it lies beyond the range.
    pub high: Option<f64>,
    /// Ratio of the variance between batches to that of independent samples; at least 1.
    pub dispersion: f64,
}

/// The rate at which the share of bad samples crosses `limit`, searched for in the range of rates `within`,
/// with a two-sided `confidence`. `None` if no sample is bad, or with fewer than ten batches.
pub fn crossing(rated: &[RatedBatches], limit: f64, confidence: f64, within: (f64, f64)) -> Option<Crossing> {
    let line = Line::new(rated, limit)?;
    let (lowest, highest) = (within.0.ln(), within.1.ln());
    let best = zero_of(|at| line.excess(at), lowest, highest);
    let (steepness, likelihood) = (line.steepness(best), line.likelihood(best));
    let dispersion = line.dispersion(best, steepness);
    let batches = line.points.iter().map(|point| point.batches.len()).sum::<usize>() as f64;
    let farthest = student_quantile(confidence, batches - PARAMETERS).powi(2);
    let rejected = |at: f64| 2.0 * (likelihood - line.likelihood(at)) / dispersion >= farthest;
    let step = (highest - lowest) / 24.0;
    let end = |direction: f64| {
        let steps = (1..).map(|number| best + direction * step * f64::from(number));
        let outer =
            steps.take_while(|at| (lowest - 1e-9..=highest + 1e-9).contains(at)).find(|at| rejected(*at))?;
        let (mut inner, mut outer) = (outer - direction * step, outer);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(inner, outer);
            if rejected(middle) { outer = middle } else { inner = middle }
        }
        Some(outer.exp())
    };
    Some(Crossing { estimate: best.exp(), low: end(-1.0), high: end(1.0), dispersion })
}

/// One rate: its logarithm and its counts.
struct Point {
    x: f64,
    all: SliceCount,
    batches: Vec<SliceCount>,
}

/// Lines through the limit at some rate.
struct Line {
    points: Vec<Point>,
    /// Log-odds of the limit.
    level: f64,
}

impl Line {
    fn new(rated: &[RatedBatches], limit: f64) -> Option<Self> {
        let total: usize = rated.iter().map(|rated| rated.batches.len()).sum();
        let neighbours = total.div_ceil(MOST_BATCHES).max(1);
        let points: Vec<Point> = rated
            .iter()
            .map(|RatedBatches { rate, batches }| Point {
                x: rate.ln(),
                all: SliceCount::sum(batches),
                batches: join(batches, neighbours.min(batches.len()).max(1)),
            })
            .filter(|point| point.all.count > 0)
            .collect();
        let batches: usize = points.iter().map(|point| point.batches.len()).sum();
        let is_any_bad = points.iter().any(|point| point.all.marked > 0);
        (batches >= FEWEST_BATCHES && is_any_bad).then(|| Self { points, level: log_odds(limit) })
    }

    /// The share at a point by the line of this steepness that meets the limit at `at`.
    fn share(&self, point: &Point, at: f64, steepness: f64) -> f64 {
        1.0 / (1.0 + (-self.level - steepness * (point.x - at)).exp())
    }

    /// The likeliest steepness of a line that meets the limit at `at`: where the score is zero.
    fn steepness(&self, at: f64) -> f64 {
        let score = |steepness: f64| {
            let of_point = |point: &Point| {
                let expected = point.all.count as f64 * self.share(point, at, steepness);
                (point.all.marked as f64 - expected) * (point.x - at)
            };
            -self.points.iter().map(of_point).sum::<f64>()
        };
        zero_of(score, FLATTEST, STEEPEST)
    }

    /// Bad samples beyond those that the likeliest line through the limit at `at` expects: growing with it.
    fn excess(&self, at: f64) -> f64 {
        let steepness = self.steepness(at);
        let of_point = |point: &Point| {
            point.all.marked as f64 - point.all.count as f64 * self.share(point, at, steepness)
        };
        self.points.iter().map(of_point).sum()
    }

    /// The logarithm of the likelihood of the likeliest line through the limit at `at`.
    fn likelihood(&self, at: f64) -> f64 {
        let steepness = self.steepness(at);
        let of_point = |point: &Point| {
            let share = self.share(point, at, steepness).clamp(1e-12, 1.0 - 1e-12);
            let (bad, all) = (point.all.marked as f64, point.all.count as f64);
            bad * share.ln() + (all - bad) * (1.0 - share).ln()
        };
        self.points.iter().map(of_point).sum()
    }

    /// Pearson's statistic of the batches by its degrees of freedom.
    fn dispersion(&self, at: f64, steepness: f64) -> f64 {
        let (mut sum, mut batches) = (0.0, 0.0);
        for point in &self.points {
            let share = self.share(point, at, steepness);
            for batch in point.batches.iter().filter(|batch| batch.count > 0) {
                let expected = batch.count as f64 * share;
                sum += (batch.marked as f64 - expected).powi(2) / (expected * (1.0 - share)).max(1e-9);
                batches += 1.0;
            }
        }
        (sum / (batches - PARAMETERS)).max(1.0)
    }
}

/// The logarithm of a share by the rest.
pub(crate) fn log_odds(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

/// The zero of a growing function between two arguments, or the argument at which it is nearest to zero.
fn zero_of(function: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    if function(low) >= 0.0 {
        return low;
    }
    if function(high) <= 0.0 {
        return high;
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if function(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(rate: f64, count: u64, marked: u64) -> RatedBatches {
        RatedBatches { rate, batches: vec![SliceCount { count, marked }; 12] }
    }

    /// Log-odds of -5.0 at 900 and -4.2 at 1,100: 1 % is where they are -4.595, by the logarithm of the rate.
    #[test]
    fn the_line_through_two_rates_meets_the_limit_between_them() {
        let share = |odds: f64| 1.0 / (1.0 + f64::exp(-odds));
        let bad = |odds: f64| (share(odds) * 1e6).round() as u64;
        let found = crossing(
            &[rated(900.0, 1_000_000, bad(-5.0)), rated(1_100.0, 1_000_000, bad(-4.2))],
            0.01,
            0.95,
            (800.0, 1_250.0),
        )
        .unwrap();
        let expected = (900_f64.ln() + (5.0 - 4.595_12) / 0.8 * (1_100_f64 / 900.0).ln()).exp();
        assert!((found.estimate - expected).abs() < 0.1, "{found:?}, not {expected}");
        // Batches that do not differ are no more regular than chance.
        assert_eq!(found.dispersion, 1.0);
        assert!(found.low.unwrap() < expected && expected < found.high.unwrap());
    }

    /// With one rate, and the steepness unknown, it is known that the crossing lies above, and no more.
    #[test]
    fn one_rate_bounds_the_crossing_on_one_side_only() {
        let found = crossing(&[rated(900.0, 10_000, 20)], 0.01, 0.95, (800.0, 1_000.0)).unwrap();
        assert!(found.low.is_some_and(|low| (890.0..=905.0).contains(&low)), "{found:?}");
        assert_eq!(found.high, None);
    }

    #[test]
    fn bad_samples_that_come_together_widen_it() {
        let even = [rated(900.0, 10_000, 50), rated(1_000.0, 10_000, 200)];
        let mut lumped = even.clone();
        for (rated, bad) in lumped.iter_mut().zip([600, 2_400]) {
            rated.batches.iter_mut().for_each(|batch| batch.marked = 0);
            rated.batches[5].marked = bad;
        }
        let within = (700.0, 1_300.0);
        let even = crossing(&even, 0.01, 0.95, within).unwrap();
        let lumped = crossing(&lumped, 0.01, 0.95, within).unwrap();
        assert!((even.estimate - lumped.estimate).abs() < 0.1);
        assert!(lumped.dispersion > 100.0 && lumped.high.is_none_or(|high| high > even.high.unwrap()));
    }

    #[test]
    fn what_says_nothing_is_no_crossing() {
        let within = (700.0, 1_300.0);
        assert_eq!(crossing(&[rated(900.0, 10_000, 0)], 0.01, 0.95, within), None);
        let mut few = rated(900.0, 10_000, 50);
        few.batches.truncate(9);
        assert_eq!(crossing(&[few], 0.01, 0.95, within), None);
    }
}
