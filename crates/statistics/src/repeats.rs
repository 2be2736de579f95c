//! Summary of several runs of the same plan.

use crate::student_quantile;

/// Runs from which an interval is made.
pub const FEWEST_RUNS: usize = 5;

/// One run's estimate of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunEstimate {
    /// The figure.
    pub value: f64,
    /// Standard error of the figure within the run: half the width of a 95 % interval, divided by 1.96.
    pub standard_error: f64,
}

/// Differences of a figure from run to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BetweenRuns {
    /// Number of runs.
    pub runs: usize,
    /// Mean of the runs.
    pub mean: f64,
    /// 95 % interval of the mean, from the differences between the runs alone; `None` below [`FEWEST_RUNS`].
    pub interval: Option<(f64, f64)>,
    /// Standard deviation of the runs' values; `None` for one run, whose variation from run to run is
    /// unknown.
    pub spread: Option<f64>,
    /// The `spread` to expect from the runs' own samples: the root of the mean of the squared standard
    /// errors.
    pub within: f64,
    /// The part of `spread` that `within` does not explain: the standard deviation of an effect that each
    /// start of the target decides again, and that longer runs do not average out. Zero if the runs differ no
    /// more than their samples let expect.
    pub between: Option<f64>,
}

impl BetweenRuns {
    /// Sums up the runs; `None` without any.
    ///
    /// The variance of the values is that between the runs plus that within them (one-way random effects),
    /// hence `between² = max(0, spread² − within²)`. The interval is `mean ± t · spread / √runs`: it needs no
    /// assumption about the samples within a run.
    pub fn of(runs: &[RunEstimate]) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let n = runs.len() as f64;
        let mean = runs.iter().map(|run| run.value).sum::<f64>() / n;
        let within = (runs.iter().map(|run| run.standard_error.powi(2)).sum::<f64>() / n).sqrt();
        let squares: f64 = runs.iter().map(|run| (run.value - mean).powi(2)).sum();
        let spread = (runs.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
        let between = spread.map(|spread| (spread.powi(2) - within.powi(2)).max(0.0).sqrt());
        let interval = spread.filter(|_| runs.len() >= FEWEST_RUNS).map(|spread| {
            let half = student_quantile(0.95, n - 1.0) * spread / n.sqrt();
            (mean - half, mean + half)
        });
        Some(Self { runs: runs.len(), mean, interval, spread, within, between })
    }

    /// Returns in words the statement that takes more runs; `None` if there are enough.
    pub fn unknown(&self) -> Option<String> {
        match self.runs {
            1 => Some("1 run: between-run variation unknown".to_owned()),
            runs if runs < FEWEST_RUNS => {
                Some(format!("{runs} runs: an interval over runs takes {FEWEST_RUNS}"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;

    fn run(value: f64) -> RunEstimate {
        RunEstimate { value, standard_error: 0.01 }
    }

    #[test]
    fn one_run_says_that_it_does_not_know() {
        assert_eq!(BetweenRuns::of(&[]), None);
        let one = BetweenRuns::of(&[run(1.0)]).unwrap();
        assert_eq!((one.spread, one.between, one.interval), (None, None, None));
        assert_eq!(one.unknown().as_deref(), Some("1 run: between-run variation unknown"));
        let four = BetweenRuns::of(&[1.0, 1.3, 1.0, 1.3].map(run)).unwrap();
        assert_eq!(four.unknown().as_deref(), Some("4 runs: an interval over runs takes 5"));
        assert!(four.spread.is_some() && four.interval.is_none());
    }

    /// R12: the target's mode, 1 ms or 1.3 ms, is drawn at each of its starts.
    #[test]
    fn a_mode_that_is_drawn_per_start_shows_between_runs() {
        let runs = BetweenRuns::of(&[1.0, 1.3, 1.3, 1.0, 1.0, 1.3].map(run)).unwrap();
        assert_eq!(runs.unknown(), None);
        let between = runs.between.unwrap();
        assert!((between - 0.164).abs() < 1e-3 && between > 10.0 * runs.within, "{runs:?}");
        let (low, high) = runs.interval.unwrap();
        // 1.15 ± 2.571 · 0.1643 / √6.
        assert!((low - 0.9776).abs() < 1e-3 && (high - 1.3224).abs() < 1e-3, "{runs:?}");
        let alike = BetweenRuns::of(&[run(1.0), run(1.005), run(0.995), run(1.0), run(1.0)]).unwrap();
        assert_eq!(alike.between, Some(0.0));
    }

    #[test]
    fn the_interval_holds_the_truth_in_95_percent_of_the_cases() {
        let mut random = Random::new(12, 0);
        let held = (0..2_000).filter(|_| {
            let runs: Vec<_> = (0..5).map(|_| run(1.0 + 0.1 * random.normal())).collect();
            let (low, high) = BetweenRuns::of(&runs).and_then(|runs| runs.interval).unwrap();
            (low..=high).contains(&1.0)
        });
        let share = held.count() as f64 / 2_000.0;
        assert!((0.935..0.965).contains(&share), "{share}");
    }
}
