//! Paired runs: tools that take turns, and what is made of their figures.

use std::path::Path;
use std::time::Duration;

use crate::child::{self, Line};
use crate::tool::{Said, Tool};

/// The figures of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) cpu_us: f64,
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
    pub(crate) per_second: f64,
    pub(crate) peak_mib: f64,
    pub(crate) start_lag_p99_us: Option<f64>,
    pub(crate) failed: u64,
    pub(crate) valid: bool,
}

/// A tool with its command and its figures, one per round.
#[derive(Debug)]
pub(crate) struct Contestant {
    pub(crate) tool: Tool,
    pub(crate) line: Line,
    pub(crate) runs: Vec<Figures>,
}

/// Runs every contestant once per round. The order turns round with every round (AB, BA, …), so that a
/// machine that becomes slower or faster favours none.
pub(crate) fn take_turns(
    contestants: &mut [Contestant],
    rounds: u32,
    duration_s: u32,
    core: u32,
    scratch: &Path,
) -> Result<(), String> {
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        let mut order: Vec<usize> = (0..contestants.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let contestant = &mut contestants[index];
            let planned = Duration::from_secs(u64::from(duration_s));
            let finished = child::run(&contestant.line, core, planned, scratch)?;
            // plimsoll ends with 3 when it finds its own measurement invalid: that is shown, and no reason to
            // stop.
            let own = matches!(contestant.tool, Tool::Plimsoll | Tool::PlimsollPrecise);
            if finished.exit_code != 0 && !(own && finished.exit_code == 3) {
                let (code, words) = (finished.exit_code, finished.stderr.trim());
                return Err(format!("{} ended with {code}: {words}", contestant.line.typed()));
            }
            let said = contestant.tool.read(&finished.stdout)?;
            contestant.runs.push(Figures::new(&finished, said));
        }
    }
    Ok(())
}

impl Figures {
    fn new(finished: &child::Finished, said: Said) -> Self {
        let per_request = |seconds: f64| seconds * 1e6 / said.completed as f64;
        Self {
            cpu_us: per_request(finished.user_s + finished.system_s),
            user_us: per_request(finished.user_s),
            system_us: per_request(finished.system_s),
            per_second: said.per_second,
            peak_mib: finished.peak_bytes as f64 / f64::from(1 << 20),
            start_lag_p99_us: said.start_lag_p99_us,
            failed: said.failed,
            valid: said.valid,
        }
    }
}

/// Median with its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of at least one value; `None` of nothing. The median of an even number is the mean of the middle two.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Self { median, min, max })
    }
}

/// Ratios of one figure within each round: ours over theirs.
pub(crate) fn ratios(
    ours: &Contestant,
    theirs: &Contestant,
    figure: impl Fn(&Figures) -> f64,
) -> Option<Spread> {
    let rounds = ours.runs.iter().zip(&theirs.runs);
    Spread::of(rounds.map(|(ours, theirs)| figure(ours) / figure(theirs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_extremes() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let contestant = |tool, costs: [f64; 3]| Contestant {
            tool,
            line: Line::new([]),
            runs: costs.map(|cpu_us| Figures { cpu_us, ..Figures::default() }).to_vec(),
        };
        // The machine is twice as slow in the second round; the tools are not compared across rounds.
        let ours = contestant(Tool::Plimsoll, [4.0, 8.0, 5.0]);
        let theirs = contestant(Tool::Wrk, [8.0, 16.0, 5.0]);
        let ratio = ratios(&ours, &theirs, |figures| figures.cpu_us).unwrap();
        assert_eq!(ratio, Spread { median: 0.5, min: 0.5, max: 1.0 });
    }

    #[test]
    fn figures_are_per_completed_request() {
        let finished =
            child::Finished { user_s: 1.0, system_s: 3.0, peak_bytes: 5 << 20, ..child::Finished::default() };
        let figures = Figures::new(&finished, Said { completed: 1_000_000, ..Said::default() });
        assert_eq!((figures.cpu_us, figures.user_us, figures.system_us), (4.0, 1.0, 3.0));
        assert_eq!(figures.peak_mib, 5.0);
    }
}
