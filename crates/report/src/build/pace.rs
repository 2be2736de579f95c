//! The rate of a run, or of a phase of it, beside the one that was asked for.

use plimsoll_metrics::{Pace, RateUnit};

use crate::build::assembly;
use crate::contract::phase::PhaseResult;
use crate::contract::result::RunResult;

/// Share of the answers up to which the rate of the good ones is told beside that of all.
const NEARLY_ALL: f64 = 0.99;

impl RunResult {
    /// The rate beside the one that was asked for, in iterations where these have several requests.
    pub fn pace(&self) -> Pace {
        let rate = &self.rate;
        Pace::new(self.rate_unit(), rate.achieved_per_s, rate.iterations_started_per_s, rate.target_per_s)
    }

    /// Returns the rate of one phase beside the one that was asked for.
    pub fn pace_of(&self, phase: &PhaseResult) -> Pace {
        let PhaseResult { achieved_per_s, iterations_started_per_s, target_per_s, .. } = phase;
        Pace::new(self.rate_unit(), *achieved_per_s, *iterations_started_per_s, *target_per_s)
    }

    /// Good answers per second, in the time of the achieved rate: those that came after the load do not
    /// count. `None` where nearly all answers were good, and where the intervals are not all there.
    pub(crate) fn good_per_s(&self) -> Option<f64> {
        let achieved = self.rate.achieved_per_s.filter(|_| self.accounting.failed > 0)?;
        let ok = |drain: bool| {
            let part = self.intervals.iter().filter(|one| !one.warmup && one.drain == drain);
            part.map(|interval| interval.ok).fold(0, u64::saturating_add)
        };
        let is_whole = ok(false).saturating_add(ok(true)) >= self.accounting.ok;
        let good = (self.duration_s > 0.0 && is_whole).then(|| ok(false) as f64 / self.duration_s);
        good.filter(|good| *good < achieved * NEARLY_ALL)
    }

    /// Returns the unit of rates: iterations if there is a scenario of several steps and the plan asked for
    /// iterations, else requests.
    pub(crate) fn rate_unit(&self) -> RateUnit {
        let of_one = |pair: &[crate::contract::result::StepResult]| {
            pair[0].scenario == pair[1].scenario && pair[0].scenario != assembly::DEFAULT_SCENARIO
        };
        let of_several = self.by_step.windows(2).any(of_one);
        if of_several && !self.rate.paces_requests { RateUnit::Iterations } else { RateUnit::Requests }
    }
}
