//! Detection of a run's steady state, and of its start.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::student_quantile;

/// Slices from which a judgement is possible: half of them may be the beginning, and fewer than five say
/// nothing about a trend.
pub const FEWEST_STEADY_SLICES: usize = 10;
/// Differences below this share are none: the limit for "settled" in R11 ("within 2 %").
const TOLERANCE: f64 = 0.02;
/// Confidence at which a beginning has to differ from the rest: that of four standard errors of a normal
/// distribution. Beginnings of every length are examined, in three series, so that this is more than for one
/// comparison.
const BEGINNING_CONFIDENCE: f64 = 0.999_937;
/// A trend is one if chance makes one as strong in fewer of the runs. Three series are examined.
const TREND_CHANCE: f64 = 0.003;
/// A trend matters if it changes the series by this share from end to end.
const TREND_CHANGE: f64 = 0.05;
/// Batches into which the rest is joined before a trend is looked for: neighbours that are alike for a short
/// time no longer look like one.
const BATCHES: usize = 20;

/// One slice of a run. Slices are equally long and in the order of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyPoint {
    /// When it began, in seconds since the start of the measured part.
    pub at: f64,
    /// Completed requests per second.
    pub throughput: f64,
    /// The median of its response times, in any unit.
    pub p50: f64,
    /// Their percentile 99, in the same unit.
    pub p99: f64,
}

/// The series that are examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Completed requests per second.
    Throughput,
    /// The median response time.
    P50,
    /// The percentile 99 of the response time.
    P99,
}

impl Series {
    const ALL: [Self; 3] = [Self::Throughput, Self::P50, Self::P99];

    /// Returns the name of the series for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }

    const fn of(self, point: &SteadyPoint) -> f64 {
        match self {
            Self::Throughput => point.throughput,
            Self::P50 => point.p50,
            Self::P99 => point.p99,
        }
    }
}

/// Reason why a run was never steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unsteady {
    /// The series was still settling in the second half, at this time in seconds.
    Settles(Series, f64),
    /// The series has a trend: it changed by this share of its median over the rest of the run.
    Drifts(Series, f64),
}

/// The steady state of a run: its start, or the reason for its absence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steady {
    /// From this time on, in seconds since the start of the measured part.
    From(f64),
    /// Not within the run.
    Never(Unsteady),
    /// There are fewer slices than [`FEWEST_STEADY_SLICES`] with samples in them: this many.
    TooShort(usize),
}

/// Judges a run by its slices; those without samples (`p50` of zero) are left out.
///
/// A beginning is found with the marginal standard error rule (MSER, White 1997) on the logarithms of each
/// series, and is one if it differs from the rest by more than 2 % and by more than chance. The rest is then
/// tested for a trend (Mann–Kendall, with the variance of Hamed and Rao 1998 for autocorrelated series). See
/// `docs/statistics.md`; its results for known runs are asserted in `tests/simulation`.
pub fn steady(points: &[SteadyPoint]) -> Steady {
    let points: Vec<SteadyPoint> =
        points.iter().copied().filter(|point| Series::ALL.iter().all(|s| s.of(point) > 0.0)).collect();
    if points.len() < FEWEST_STEADY_SLICES {
        return Steady::TooShort(points.len());
    }
    let mut cut = 0;
    for series in Series::ALL {
        let logs = logs(series, &points);
        let beginning = beginning(&logs);
        if beginning > points.len() / 2 {
            return Steady::Never(Unsteady::Settles(series, points[beginning - 1].at));
        }
        cut = cut.max(beginning);
    }
    for series in Series::ALL {
        if let Some(change) = trend(&logs(series, &points[cut..])) {
            return Steady::Never(Unsteady::Drifts(series, change));
        }
    }
    Steady::From(if cut == 0 { 0.0 } else { points[cut].at })
}

/// Logarithms, so that equal shares are equal differences.
fn logs(series: Series, points: &[SteadyPoint]) -> Vec<f64> {
    points.iter().map(|point| series.of(point).ln()).collect()
}

/// Returns the number of values in the beginning, which differs from the rest; 0 if there is none.
fn beginning(values: &[f64]) -> usize {
    let count = values.len();
    // MSER: the beginning without which the squared standard error of the mean is smallest. The variance is
    // never taken as smaller than the tolerance, or a quiet series would be cut for nothing. A rest of less
    // than a quarter would not show its own variance.
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for cut in (0..count).rev() {
        sum += values[cut];
        squares += values[cut].powi(2);
        let rest = (count - cut) as f64;
        if count - cut >= (count / 4).max(FEWEST_STEADY_SLICES / 2) {
            let variance = (squares / rest - (sum / rest).powi(2)).max(0.0);
            let error = (variance + TOLERANCE.powi(2)) / rest;
            if error < best.0 {
                best = (error, cut);
            }
        }
    }
    let (head, rest) = values.split_at(best.1);
    let (mean, variance) = moments(rest);
    let lag = lag_one(rest).clamp(0.0, 0.9);
    let inflated = variance * (1.0 + lag) / (1.0 - lag);
    // A few values are a poor estimate of their own variance.
    let errors = student_quantile(BEGINNING_CONFIDENCE, rest.len() as f64 - 1.0);
    let differs = |part: &[f64]| {
        let error = (inflated * (1.0 / part.len() as f64 + 1.0 / rest.len() as f64)).sqrt();
        (moments(part).0 - mean).abs() > TOLERANCE.max(errors * error)
    };
    // The minimum is flat: by chance it lies later than it has to. Values that do not differ from the rest,
    // taken together up to the cut, belong to the rest.
    (0..head.len()).find(|&from| !differs(&head[from..])).unwrap_or(head.len())
}

/// The relative change from end to end, if there is a trend that matters.
fn trend(values: &[f64]) -> Option<f64> {
    let batches = batches(values);
    let count = batches.len();
    let pairs = || (0..count).flat_map(move |i| (i + 1..count).map(move |j| (i, j)));
    let statistic: f64 = pairs().map(|(i, j)| sign(batches[j] - batches[i])).sum();
    let mut slopes: Vec<f64> = pairs().map(|(i, j)| (batches[j] - batches[i]) / (j - i) as f64).collect();
    // Sen's slope: the median of all slopes between two points.
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = slopes[slopes.len() / 2];
    let n = count as f64;
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * inflation(&batches, slope);
    let score = (statistic.abs() - 1.0).max(0.0) / variance.sqrt();
    let normal = Normal::standard();
    let is_trend = 2.0 * (1.0 - normal.cdf(score)) < TREND_CHANCE;
    let change = (slope * n).exp() - 1.0;
    (is_trend && change.abs() > TREND_CHANGE).then_some(change)
}

/// Factor by which the variance of Mann and Kendall's statistic exceeds that of independent values (Hamed and
/// Rao 1998): from the autocorrelations of the ranks, the trend taken away, where they are more than chance.
fn inflation(values: &[f64], slope: f64) -> f64 {
    let detrended: Vec<f64> = (0..).zip(values).map(|(i, value)| value - slope * f64::from(i)).collect();
    let ranks: Vec<f64> = detrended
        .iter()
        .map(|value| detrended.iter().map(|other| (1.0 + sign(value - other)) / 2.0).sum())
        .collect();
    let (mean, variance) = moments(&ranks);
    if variance <= 0.0 {
        return 1.0;
    }
    let n = ranks.len() as f64;
    let significant = 1.96 / n.sqrt();
    let mut sum = 0.0;
    for lag in 1..=ranks.len() / 4 {
        let products = ranks.iter().zip(&ranks[lag..]).map(|(a, b)| (a - mean) * (b - mean));
        let correlation = products.sum::<f64>() / (n * variance);
        let k = lag as f64;
        if correlation > significant {
            sum += (n - k) * (n - k - 1.0) * (n - k - 2.0) * correlation;
        }
    }
    1.0 + 2.0 / (n * (n - 1.0) * (n - 2.0)) * sum
}

/// The means of at most [`BATCHES`] batches of about equal size.
fn batches(values: &[f64]) -> Vec<f64> {
    let count = values.len().min(BATCHES);
    let bound = |batch: usize| batch * values.len() / count;
    (0..count).map(|batch| moments(&values[bound(batch)..bound(batch + 1)]).0).collect()
}

fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// Mean and variance (divided by n).
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n)
}

/// The correlation between a value and the next one.
fn lag_one(values: &[f64]) -> f64 {
    let (mean, variance) = moments(values);
    if variance <= 0.0 {
        return 0.0;
    }
    let products = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    products.sum::<f64>() / (values.len() as f64 * variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: impl IntoIterator<Item = f64>) -> Vec<SteadyPoint> {
        let point =
            |(at, p50): (u32, f64)| SteadyPoint { at: f64::from(at), throughput: 100.0, p50, p99: 2.0 * p50 };
        (0..).zip(values).map(point).collect()
    }

    #[test]
    fn what_never_changes_is_steady_from_the_start() {
        assert_eq!(steady(&points([5.0; 10])), Steady::From(0.0));
        assert_eq!(steady(&points([5.0; 9])), Steady::TooShort(9));
        // A second without samples says nothing.
        assert_eq!(steady(&points((0..12).map(|i| if i < 3 { 0.0 } else { 5.0 }))), Steady::TooShort(9));
    }

    #[test]
    fn a_step_is_a_beginning_in_the_first_half_and_no_steady_state_in_the_second() {
        let step = |at: usize| points((0..60).map(|i| if i < at { 8.0 } else { 5.0 }));
        assert_eq!(steady(&step(7)), Steady::From(7.0));
        assert_eq!(steady(&step(45)), Steady::Never(Unsteady::Settles(Series::P50, 44.0)));
        // A step of 1 % does not count.
        let small = points((0..60).map(|i| if i < 7 { 5.05 } else { 5.0 }));
        assert_eq!(steady(&small), Steady::From(0.0));
    }

    #[test]
    fn mann_and_kendall_find_a_trend_that_noise_hides_from_the_eye() {
        // 12 % from end to end, with steps of 8 % up and down.
        let noisy: Vec<f64> = (0..100)
            .map(|i| 5.0 * (1.0 + 0.0012 * f64::from(i)) + [0.4, -0.4, 0.1][i as usize % 3])
            .collect();
        let logs: Vec<f64> = noisy.iter().map(|value| value.ln()).collect();
        let change = trend(&logs).unwrap();
        assert!((0.08..0.16).contains(&change), "{change}");
        assert_eq!(trend(&[1.0; 20]), None);
    }
}
