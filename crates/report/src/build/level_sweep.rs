//! A sweep over the levels of a setting, without its server, its clock and its load.

use plimsoll_core::Nanos;
use plimsoll_metrics::{LimitedBy, Objective};
use plimsoll_statistics::{Finding, Search, Settings, usl};
use serde::{Deserialize, Serialize};

use crate::SWEEP_SCHEMA_VERSION;
use crate::build::trial_run::{TrialCounts, TrialRun, finding_name};
use crate::capacity::SearchResult;
use crate::contract::result::Tool;
use crate::records::RecordsResult;
use crate::sweep::{StreamLevel, SweepLevel, SweepResult, UslResult};

/// Users are more than at the level before from this factor on...
const MORE_USERS: f64 = 1.5;
/// ...and the rate is the same up to this one: free users would bring it to the other.
const SAME_RATE: f64 = 1.1;
/// Levels in a row that the generator could not apply, after which the others are left out.
const ACCIDENTS: u32 = 3;
/// Confidence of decisions and intervals.
const CONFIDENCE: f64 = 0.95;

/// Settings of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepSettings {
    /// The setting whose levels are tried.
    pub setting: String,
    /// `true` if the work is the same at all levels, so that a law of scalability may fit.
    pub is_scaling: bool,
    /// Length of a level.
    pub unit: Nanos,
}

/// A sweep that is under way: it takes the measurements of its levels in their order, and makes the result.
#[derive(Clone, Debug)]
pub struct LevelSweep {
    settings: SweepSettings,
    objectives: Vec<Objective>,
    levels: Vec<SweepLevel>,
    points: Vec<usl::Level>,
    /// Levels in a row that the generator could not apply.
    spoiled: u32,
}

impl LevelSweep {
    /// A sweep before its first level.
    pub const fn new(settings: SweepSettings, objectives: Vec<Objective>) -> Self {
        Self { settings, objectives, levels: Vec::new(), points: Vec::new(), spoiled: 0 }
    }

    /// The objectives, of which there may be none.
    pub fn objectives(&self) -> &[Objective] {
        &self.objectives
    }

    /// The settings of the sweep.
    pub const fn settings(&self) -> &SweepSettings {
        &self.settings
    }

    /// Returns `true` if the generator could not apply so many levels in a row that the rest is not tried.
    pub const fn is_spoiled(&self) -> bool {
        self.spoiled >= ACCIDENTS
    }

    /// Takes the measurements of the next level: the setting as it was written, and the records that each
    /// request of a step carries.
    pub fn note(&mut self, text: &str, run: &TrialRun, counts: &TrialCounts, records: &[u32]) {
        let TrialRun { record, applied, figures } = run;
        let limits = self.objectives.iter().map(|objective| objective.limit).collect();
        let search = Search::new(Settings { confidence: CONFIDENCE, ..Settings::new(1.0, limits) });
        let finding = match applied.is_whole(&self.objectives) {
            false => Some(Finding::NotApplied),
            true => (!self.objectives.is_empty()).then(|| search.finding(counts.portions())),
        };
        let is_spoiled = finding == Some(Finding::NotApplied);
        self.spoiled = if is_spoiled { self.spoiled + 1 } else { 0 };
        if !is_spoiled && figures.in_flight > 0.0 {
            let (concurrency, throughput) = (figures.in_flight, figures.achieved_per_s);
            self.points.push(usl::Level { concurrency, throughput });
        }
        self.levels.push(SweepLevel {
            value: text.parse().unwrap_or_else(|_| record.target_per_second.unwrap_or_default()),
            figures: figures.clone(),
            records_per_s: RecordsResult::new(record, records).and_then(|records| records.acknowledged_per_s),
            event_streams: StreamLevel::new(record),
            finding: finding.map(|finding| finding_name(finding).to_owned()),
        });
    }

    /// The result of a sweep that has taken this long. `known` is what its caller knows of the circumstances;
    /// `stopped` says that a signal has ended it.
    pub fn result(mut self, known: SearchResult, tool: Tool, used: Nanos, stopped: bool) -> SweepResult {
        name_the_target(&mut self.levels);
        let (usl, usl_missing) =
            match self.settings.is_scaling.then(|| usl::fit(&self.points, CONFIDENCE, known.seed)) {
                None => (None, None),
                Some(Ok(fit)) => (Some(law(&fit)), None),
                Some(Err(why)) => (None, Some(why.to_string())),
            };
        let sweep = known.of(&self.objectives, CONFIDENCE, used);
        SweepResult {
            schema_version: SWEEP_SCHEMA_VERSION,
            tool,
            sweep: SearchResult { precision: 0.0, trial_s: self.settings.unit.as_secs_f64(), ..sweep },
            setting: self.settings.setting,
            levels: self.levels,
            interrupted: stopped,
            usl,
            usl_missing,
        }
    }
}

/// Attributes the limit to the target where a single run of the closed model cannot: compared with a level
/// of fewer users, a rate that no longer rises is limited by the target.
fn name_the_target(levels: &mut [SweepLevel]) {
    let undecided = |level: &SweepLevel| {
        let of_users = [LimitedBy::ConnectionLimit.name(), LimitedBy::Unknown.name()];
        of_users.contains(&level.figures.limited_by.as_str())
    };
    for at in 1..levels.len() {
        let (before, level) = (&levels[at - 1], &levels[at]);
        let more =
            level.figures.in_flight >= before.figures.in_flight * MORE_USERS && level.value > before.value;
        if more
            && level.figures.achieved_per_s <= before.figures.achieved_per_s * SAME_RATE
            && undecided(level)
        {
            levels[at].figures.limited_by = LimitedBy::Target.name().to_owned();
        }
    }
}

fn law(fit: &usl::UslFit) -> UslResult {
    let usl::UslFit { law, peak, peak_low, peak_high, error, extrapolated } = *fit;
    let concurrency = |peak: Option<usl::Peak>| peak.map(|peak| peak.concurrency);
    let throughput = |peak: Option<usl::Peak>| peak.map(|peak| peak.throughput);
    UslResult {
        lambda_per_s: law.lambda,
        alpha: law.alpha,
        beta: law.beta,
        peak_concurrency: concurrency(peak),
        peak_concurrency_low: concurrency(peak_low),
        peak_concurrency_high: concurrency(peak_high),
        peak_per_s: throughput(peak),
        peak_per_s_low: throughput(peak_low),
        peak_per_s_high: throughput(peak_high),
        confidence: CONFIDENCE,
        error,
        extrapolated,
    }
}
