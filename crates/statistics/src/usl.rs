//! The Universal Scalability Law: how throughput grows, bends and falls with concurrency.

use plimsoll_core::Random;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::student_quantile;

/// Different levels of concurrency that a fit needs: twice its parameters.
pub const LEVELS_MIN: usize = 6;
/// Steps of a fit at most; it takes about ten.
const STEPS_MAX: usize = 200;
/// A step that betters the sum of squares by less than this share is the last.
const CONVERGED: f64 = 1e-12;
/// Slowdown that is taken for rounding: a millionth of the resolution of any measurement.
const ROUNDING: f64 = 1e-9;
/// Resamples of the bootstrap: the far ends of the interval of a fit to six levels are the 7th in 10,000.
const RESAMPLES: usize = 4_000;

/// One measured level of concurrency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Concurrency: users or requests in flight, more than 0; a mean need not be whole.
    pub concurrency: f64,
    /// Throughput per second that was measured there, above 0.
    pub throughput: f64,
}

/// The law with these parameters: X(N) = λN / (1 + α(N − 1) + βN(N − 1)).
///
/// Gunther (2007), "Guerrilla Capacity Planning", chapter 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// λ: throughput per second of one.
    pub lambda: f64,
    /// α ≥ 0: contention, the share of work that is done one at a time.
    pub alpha: f64,
    /// β ≥ 0: coherency, the cost of keeping each pair consistent.
    pub beta: f64,
}

/// The largest throughput by the law, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Concurrency at which throughput is largest: N* = √((1 − α) / β), at least 1.
    pub concurrency: f64,
    /// Throughput per second there.
    pub throughput: f64,
}

/// A fit of the law, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UslFit {
    /// The law that fits best.
    pub law: Usl,
    /// Peak of the law; `None` if throughput never falls (β = 0).
    pub peak: Option<Peak>,
    /// Lower ends of the intervals of the peak; `None` if not even these are bounded.
    pub peak_low: Option<Peak>,
    /// Upper ends of the intervals of the peak; `None` if a law without a peak agrees with the levels.
    pub peak_high: Option<Peak>,
    /// Root mean square of the relative distances between levels and law.
    pub error: f64,
    /// `true` if the peak is beyond the highest level: it was then not seen, but calculated.
    pub extrapolated: bool,
}

/// Reason why there is no fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UslError {
    /// Fewer than [`LEVELS_MIN`] different levels.
    TooFewLevels {
        /// Number of different levels.
        found: usize,
    },
    /// A level without load, without throughput, or that is not a number.
    BadLevel(Level),
}

impl std::fmt::Display for UslError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooFewLevels { found } => {
                write!(f, "the scalability law needs {LEVELS_MIN} levels of concurrency, has {found}")
            }
            Self::BadLevel(Level { concurrency, throughput }) => {
                write!(f, "{throughput}/s at a concurrency of {concurrency} is not a level of load")
            }
        }
    }
}

impl std::error::Error for UslError {}

impl Usl {
    /// Throughput per second at a concurrency.
    pub fn throughput(&self, concurrency: f64) -> f64 {
        self.lambda * concurrency / self.slowdown(concurrency)
    }

    /// The concurrency of the largest throughput; `None` if it never falls.
    pub fn peak(&self) -> Option<Peak> {
        let square = (1.0 - self.alpha) / self.beta;
        if self.beta <= 0.0 || !square.is_finite() {
            return None;
        }
        // With α ≥ 1 every further user lowers the throughput.
        let concurrency = square.max(1.0).sqrt();
        Some(Peak { concurrency, throughput: self.throughput(concurrency) })
    }

    fn slowdown(&self, n: f64) -> f64 {
        1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0)
    }

    fn parameters(self) -> [f64; 3] {
        [self.lambda, self.alpha, self.beta]
    }

    fn from_parameters([lambda, alpha, beta]: [f64; 3]) -> Self {
        Self { lambda, alpha, beta }
    }
}

/// Fits the law to measured levels (several measurements of a level may be given), by least squares of the
/// relative distances, since the errors of a throughput grow with it. `confidence` (in (0, 1)) is that of the
/// intervals, each end of which is that of one figure: concurrency and throughput of the peak.
///
/// The start is the linear fit of N / X = (1 + α(N − 1) + βN(N − 1)) / λ; then Levenberg–Marquardt, with α
/// and β held at 0 where they would become negative. Intervals are from a bootstrap of residuals, scaled by
/// √(n / (n − 3)), whose percentiles are moved out to those of Student's t (Hesterberg, 2015, "What teachers
/// should know about the bootstrap", section 5.3).
///
/// # Errors
/// With too few levels, or ones that are none.
pub fn fit(levels: &[Level], confidence: f64, seed: u64) -> Result<UslFit, UslError> {
    let is_bad = |level: &&Level| {
        let Level { concurrency, throughput } = **level;
        !(concurrency > 0.0 && concurrency.is_finite() && throughput > 0.0 && throughput.is_finite())
    };
    if let Some(level) = levels.iter().find(is_bad) {
        return Err(UslError::BadLevel(*level));
    }
    let mut distinct: Vec<f64> = levels.iter().map(|level| level.concurrency).collect();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    if distinct.len() < LEVELS_MIN {
        return Err(UslError::TooFewLevels { found: distinct.len() });
    }
    let law = best(levels);
    let peak = law.peak();
    let count = levels.len() as f64;
    let (peak_low, peak_high) = peak_interval(levels, law, confidence, seed);
    Ok(UslFit {
        law,
        peak,
        peak_low,
        peak_high,
        error: (squares(levels, law) / count).sqrt(),
        extrapolated: peak.is_some_and(|peak| distinct.last().is_some_and(|last| peak.concurrency > *last)),
    })
}

/// Sum of the squares of the relative distances.
fn squares(levels: &[Level], law: Usl) -> f64 {
    levels.iter().map(|level| (law.throughput(level.concurrency) / level.throughput - 1.0).powi(2)).sum()
}

/// The best law with α, β ≥ 0: that without bounds if it keeps them, else the best of those with α, β or both
/// at zero that do.
fn best(levels: &[Level]) -> Usl {
    let Usl { lambda, alpha, beta } = bounded(levels);
    // A slowdown of the highest level by less than rounding counts as none, and must not make a peak.
    let highest = levels.iter().map(|level| level.concurrency).fold(1.0, f64::max);
    let unless_nothing = |value: f64, pairs: f64| if value * pairs < ROUNDING { 0.0 } else { value };
    Usl {
        lambda,
        alpha: unless_nothing(alpha, highest - 1.0),
        beta: unless_nothing(beta, highest * (highest - 1.0)),
    }
}

fn bounded(levels: &[Level]) -> Usl {
    let start = linearised(levels);
    let free = descend(levels, start, [true; 3]);
    if free.alpha >= 0.0 && free.beta >= 0.0 {
        return free;
    }
    let held = |alpha: bool, beta: bool| {
        let start = Usl {
            lambda: start.lambda,
            alpha: if alpha { start.alpha.max(0.0) } else { 0.0 },
            beta: if beta { start.beta.max(0.0) } else { 0.0 },
        };
        descend(levels, start, [true, alpha, beta])
    };
    let laws = [held(true, false), held(false, true), held(false, false)];
    let kept = laws.into_iter().filter(|law| law.alpha >= 0.0 && law.beta >= 0.0);
    // The last one has both at zero, so there is one.
    kept.min_by(|a, b| squares(levels, *a).total_cmp(&squares(levels, *b))).unwrap_or(laws[2])
}

/// The law from the linear least squares of N / X, weighted by (X / N)² so that it is of relative distances.
fn linearised(levels: &[Level]) -> Usl {
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for &Level { concurrency: n, throughput } in levels {
        let weight = throughput / n;
        let row = [weight, weight * (n - 1.0), weight * n * (n - 1.0)];
        for i in 0..3 {
            (0..3).for_each(|j| matrix[i][j] += row[i] * row[j]);
            right[i] += row[i];
        }
    }
    let first = levels.iter().map(|level| level.throughput / level.concurrency).fold(0.0, f64::max);
    let linear = Usl { lambda: first, alpha: 0.0, beta: 0.0 };
    match solve(matrix, right) {
        Some([a, b, c]) if a > 0.0 => {
            let law = Usl { lambda: 1.0 / a, alpha: b / a, beta: c / a };
            if is_sensible(levels, law) { law } else { linear }
        }
        _ => linear,
    }
}

/// Returns `true` if a law has a throughput at every level: a negative α or β may leave none.
fn is_sensible(levels: &[Level], law: Usl) -> bool {
    law.lambda > 0.0 && levels.iter().all(|level| law.slowdown(level.concurrency) > 0.0)
}

/// Levenberg–Marquardt over the parameters that are free.
fn descend(levels: &[Level], start: Usl, free: [bool; 3]) -> Usl {
    let (mut law, mut damping) = (start, 1e-3);
    let mut sum = squares(levels, law);
    for _ in 0..STEPS_MAX {
        let (mut matrix, right) = normal_equations(levels, law, free);
        (0..3).for_each(|i| matrix[i][i] *= 1.0 + damping);
        let Some(step) = solve(matrix, right) else { break };
        let mut parameters = law.parameters();
        (0..3).for_each(|i| parameters[i] += step[i]);
        let next = Usl::from_parameters(parameters);
        let next_sum = squares(levels, next);
        if is_sensible(levels, next) && next_sum <= sum {
            let gained = sum - next_sum;
            (law, sum) = (next, next_sum);
            damping *= 0.1;
            if gained <= CONVERGED * sum {
                break;
            }
        } else if damping > 1e12 {
            break;
        } else {
            damping *= 10.0;
        }
    }
    law
}

/// JᵀJ and −Jᵀr of the relative distances; parameters that are held have a row of the unit matrix.
fn normal_equations(levels: &[Level], law: Usl, free: [bool; 3]) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for &Level { concurrency: n, throughput } in levels {
        let ratio = law.throughput(n) / throughput;
        let slowdown = law.slowdown(n);
        let all = [ratio / law.lambda, -ratio * (n - 1.0) / slowdown, -ratio * n * (n - 1.0) / slowdown];
        let row: [f64; 3] = std::array::from_fn(|i| if free[i] { all[i] } else { 0.0 });
        for i in 0..3 {
            (0..3).for_each(|j| matrix[i][j] += row[i] * row[j]);
            right[i] -= row[i] * (ratio - 1.0);
        }
    }
    (0..3).filter(|&i| !free[i]).for_each(|i| matrix[i][i] = 1.0);
    (matrix, right)
}

/// Solves three linear equations, scaled to a unit diagonal, by elimination with pivots; `None` if they are
/// singular.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> Option<[f64; 3]> {
    // β is a millionth of λ: without scales the pivots would compare units.
    let scale: [f64; 3] = std::array::from_fn(|i| matrix[i][i].sqrt());
    if scale.iter().any(|scale| !(scale.is_normal())) {
        return None;
    }
    for i in 0..3 {
        (0..3).for_each(|j| matrix[i][j] /= scale[i] * scale[j]);
        right[i] /= scale[i];
    }
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|&i, &j| matrix[i][column].abs().total_cmp(&matrix[j][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-14 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..3 {
            let factor = matrix[row][column] / matrix[column][column];
            (column..3).for_each(|j| matrix[row][j] -= factor * matrix[column][j]);
            right[row] -= factor * right[column];
        }
    }
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|j| matrix[row][j] * right[j]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    (0..3).for_each(|i| right[i] /= scale[i]);
    right.iter().all(|value| value.is_finite()).then_some(right)
}

/// The ends of the intervals of concurrency and throughput of the peak.
fn peak_interval(levels: &[Level], law: Usl, confidence: f64, seed: u64) -> (Option<Peak>, Option<Peak>) {
    let count = levels.len() as f64;
    let degrees = count - 3.0;
    let fitted: Vec<f64> = levels.iter().map(|level| law.throughput(level.concurrency)).collect();
    let residuals: Vec<f64> =
        levels.iter().zip(&fitted).map(|(level, fit)| level.throughput / fit - 1.0).collect();
    let mean = residuals.iter().sum::<f64>() / count;
    let scale = (count / degrees).sqrt();
    let mut random = Random::new(seed, 0);
    let (mut places, mut heights) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let resample: Vec<Level> = levels
            .iter()
            .zip(&fitted)
            .map(|(level, fit)| {
                let residual = (residuals[random.below(levels.len() as u64) as usize] - mean) * scale;
                // A throughput stays one, however bad the fit was.
                Level { throughput: fit * (1.0 + residual).max(0.01), ..*level }
            })
            .collect();
        let peak = best(&resample).peak();
        places.push(peak.map_or(f64::INFINITY, |peak| peak.concurrency));
        heights.push(peak.map_or(f64::INFINITY, |peak| peak.throughput));
    }
    places.sort_by(f64::total_cmp);
    heights.sort_by(f64::total_cmp);
    let tail = Normal::standard().cdf(-student_quantile(confidence, degrees));
    let low = ((tail * RESAMPLES as f64).floor() as usize).min(RESAMPLES - 1);
    let end = |at: usize| {
        let peak = Peak { concurrency: places[at], throughput: heights[at] };
        (peak.concurrency.is_finite() && peak.throughput.is_finite()).then_some(peak)
    };
    (end(low), end(RESAMPLES - 1 - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Usl = Usl { lambda: 1000.0, alpha: 0.02, beta: 0.0005 };
    const LEVELS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

    fn levels(law: Usl, at: &[f64]) -> Vec<Level> {
        at.iter().map(|&concurrency| Level { concurrency, throughput: law.throughput(concurrency) }).collect()
    }

    #[test]
    fn an_exact_curve_is_found_exactly() {
        let found = fit(&levels(LAW, &LEVELS), 0.95, 1).unwrap();
        let relative = |found: f64, expected: f64| (found / expected - 1.0).abs();
        assert!(relative(found.law.lambda, 1000.0) < 1e-6, "{found:?}");
        assert!(
            relative(found.law.alpha, 0.02) < 1e-5 && relative(found.law.beta, 0.0005) < 1e-5,
            "{found:?}"
        );
        assert!((found.peak.unwrap().concurrency - 44.27).abs() < 0.01, "{found:?}");
        assert!(!found.extrapolated && found.error < 1e-6, "{found:?}");
        assert!(fit(&levels(LAW, &LEVELS[..6]), 0.95, 1).unwrap().extrapolated);
    }

    #[test]
    fn what_scales_without_end_has_no_peak_and_no_negative_parameter() {
        let linear = Usl { lambda: 50.0, alpha: 0.0, beta: 0.0 };
        let found = fit(&levels(linear, &LEVELS), 0.95, 1).unwrap();
        assert!(found.law.alpha < 1e-6 && found.law.beta < 1e-6 && found.peak_high.is_none(), "{found:?}");
        // Better than linear, as with a cache that warms up: the best law without negative parameters is a
        // line.
        let mut better = levels(linear, &LEVELS);
        better.iter_mut().for_each(|level| level.throughput *= level.concurrency.powf(0.05));
        let found = fit(&better, 0.95, 1).unwrap();
        assert_eq!((found.law.alpha, found.law.beta, found.peak), (0.0, 0.0, None));
    }

    #[test]
    fn too_few_levels_and_impossible_ones_are_refused() {
        let few = levels(LAW, &LEVELS[..5]);
        assert_eq!(fit(&[&few[..], &few].concat(), 0.95, 1), Err(UslError::TooFewLevels { found: 5 }));
        let mut bad = levels(LAW, &LEVELS);
        bad[3].throughput = 0.0;
        assert_eq!(fit(&bad, 0.95, 1), Err(UslError::BadLevel(bad[3])));
    }
}
