//! Results of the phases of a run.

use plimsoll_core::Nanos;

use serde::{Deserialize, Serialize};

use crate::{Interval, PhaseOutline, Tally};

/// The result of one phase: its requests that were started, and those that ended, within it.
///
/// A request that ends after its phase counts as started in that phase and as ended in a later one. Requests
/// that end in the drain count for the last phase that was under way, so that all measured phases add up to
/// the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// Name of the phase.
    pub name: String,
    /// Start of the phase, since the start of the run.
    #[serde(rename = "at_ns", with = "crate::written::nanos")]
    pub at: Nanos,
    /// Length of the phase: shorter than planned if the run ended in it, zero if the run ended before.
    #[serde(rename = "length_ns", with = "crate::written::nanos")]
    pub length: Nanos,
    /// `true` if the phase belongs to the measured part.
    pub measured: bool,
    /// Mean rate of iterations that was asked for over its length, per second, with the changes that were
    /// made while the run went on; `None` in the closed model, and without a length.
    pub target_per_second: Option<f64>,
    /// Requests that ended in it with a whole response, without those of the drain.
    pub completed: u64,
    /// Iterations started in it.
    #[serde(default)]
    pub iterations: u64,
    /// All steps together.
    pub tally: Tally,
}

/// Adds up the intervals of a run by phases. Give it every interval ([`add`](Self::add)) in their order, as
/// long as it has its steps; the intervals have to be cut at the ends of phases.
#[derive(Debug)]
pub struct PhaseMerger {
    phases: Vec<PhaseRecord>,
    /// The phase that is under way.
    present: usize,
}

impl PhaseMerger {
    /// A merger for these phases, which may be none.
    pub fn new(outline: &[PhaseOutline]) -> Self {
        let phase = |phase: &PhaseOutline| PhaseRecord {
            name: phase.name.clone(),
            at: phase.at,
            length: phase.length,
            measured: phase.measured,
            ..PhaseRecord::default()
        };
        Self { phases: outline.iter().map(phase).collect(), present: 0 }
    }

    /// Takes the next interval with its steps.
    pub fn add(&mut self, interval: &Interval) {
        while !interval.drain
            && self.present + 1 < self.phases.len()
            && self.phases[self.present].at + self.phases[self.present].length < interval.at
        {
            self.present += 1;
        }
        let Some(phase) = self.phases.get_mut(self.present) else { return };
        interval.steps.iter().for_each(|step| phase.tally.merge(step));
        phase.completed += if interval.drain { 0 } else { interval.completed };
        phase.iterations += interval.iterations;
    }

    /// The phases of a run whose load ended at `end` since the start. `target` is the mean rate that was
    /// asked for between two instants, if there was one.
    pub fn finish(self, end: Nanos, target: impl Fn(Nanos, Nanos) -> Option<f64>) -> Vec<PhaseRecord> {
        let mut phases = self.phases;
        for phase in &mut phases {
            phase.length = phase.length.min(end.since(phase.at));
            let until = phase.at + phase.length;
            phase.target_per_second = if phase.length > Nanos::ZERO { target(phase.at, until) } else { None };
        }
        phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(ms: u64, drain: bool, ok: u64) -> Interval {
        let tally = |ok| Tally { started: ok + 1, ok, completed: ok, ..Tally::default() };
        Interval {
            at: Nanos::from_millis(ms),
            drain,
            completed: 2 * ok,
            steps: vec![tally(ok), tally(ok)],
            ..Interval::default()
        }
    }

    #[test]
    fn intervals_belong_to_the_phase_that_they_end_in_and_the_drain_to_the_last_one_under_way() {
        let phase = |name: &str, at, length| PhaseOutline {
            name: name.to_owned(),
            at: Nanos::from_millis(at),
            length: Nanos::from_millis(length),
            measured: at > 0,
        };
        let outline = [phase("warm", 0, 500), phase("low", 500, 1_000), phase("high", 1_500, 500)];
        let run = |intervals: &[(u64, bool, u64)], end| {
            let mut merger = PhaseMerger::new(&outline);
            intervals.iter().for_each(|&(at, drain, ok)| merger.add(&interval(at, drain, ok)));
            let shape = |phase: PhaseRecord| {
                (phase.length.0 / 1_000_000, phase.tally.ok, phase.completed, phase.target_per_second)
            };
            let target = |from: Nanos, to: Nanos| Some((to - from).as_secs_f64());
            merger.finish(Nanos::from_millis(end), target).into_iter().map(shape).collect::<Vec<_>>()
        };
        let whole =
            [(500, false, 1), (1_000, false, 10), (1_500, false, 10), (2_000, false, 5), (9_000, true, 3)];
        assert_eq!(
            run(&whole, 2_000),
            [(500, 2, 2, Some(0.5)), (1_000, 40, 40, Some(1.0)), (500, 16, 10, Some(0.5))]
        );
        // The run was stopped in its second phase.
        assert_eq!(
            run(&[(500, false, 1), (1_100, false, 10), (9_000, true, 3)], 1_100),
            [(500, 2, 2, Some(0.5)), (600, 26, 20, Some(0.6)), (0, 0, 0, None)]
        );
    }
}
