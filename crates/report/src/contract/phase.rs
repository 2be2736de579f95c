//! The phases of a run in its result.

use std::collections::BTreeMap;

use plimsoll_metrics::{PhaseRecord, Tally};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::assembly::per_second;
use crate::contract::summary::{PERCENTILES, Percentiles, missing};

/// One phase of the plan: the requests that were started in it, and those that ended in it. The last phase
/// that was under way includes the requests that ended in the drain, so that all measured phases add up to
/// the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseResult {
    /// Name of the phase.
    pub name: String,
    /// Start of the phase in seconds since the start of the run, warm-up included.
    pub at_s: f64,
    /// Length of the phase in seconds: shorter than planned if the run ended in it, 0 if the run ended
    /// before.
    pub duration_s: f64,
    /// True if it is a part of the measured one; the warm-up is not.
    pub measured: bool,
    /// Requests started in it.
    pub started: u64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that timed out in it.
    pub timed_out: u64,
    /// Whole responses of any status per second, without those of the drain; null if it has no length.
    pub achieved_per_s: Option<f64>,
    /// Mean of the iterations per second that were asked for; null in the closed model, or if it has no
    /// length.
    pub target_per_s: Option<f64>,
    /// Iterations started in it per second: what the target rate counts; null if it has no length, and in
    /// results of earlier versions.
    #[serde(default)]
    pub iterations_started_per_s: Option<f64>,
    /// Response time of what ended well or timed out in it.
    pub response_time: PhaseTimes,
}

/// Response times of one phase. Percentiles are less than 0.1 % too large, as those of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseTimes {
    /// Unit of every time in this object: always "ns", nanoseconds.
    pub unit: String,
    /// Number of values.
    pub count: u64,
    /// The arithmetic mean, from the exact sum; null without values, as all that follow.
    pub mean: Option<u64>,
    /// The largest value, at most 0.1 % too large.
    pub max: Option<u64>,
    /// Percentiles.
    pub p: Percentiles,
    /// For each percentile that is null: why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_missing: BTreeMap<String, String>,
    /// Number of values that are lower bounds: requests that were given up at the timeout.
    pub censored: u64,
    /// Which figures are therefore only lower bounds: keys of `p`, "mean" or "max".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
}

impl PhaseResult {
    pub(crate) fn new(record: &PhaseRecord) -> Self {
        let tally = &record.tally;
        Self {
            name: record.name.clone(),
            at_s: record.at.as_secs_f64(),
            duration_s: record.length.as_secs_f64(),
            measured: record.measured,
            started: tally.started,
            ok: tally.ok,
            failed: tally.failed,
            timed_out: tally.timed_out,
            achieved_per_s: per_second(record.completed, record.length),
            target_per_s: record.target_per_second,
            iterations_started_per_s: per_second(record.iterations, record.length),
            response_time: PhaseTimes::new(tally),
        }
    }
}

impl PhaseTimes {
    fn new(tally: &Tally) -> Self {
        let count = tally.response_time.count();
        let mut p_missing = BTreeMap::new();
        let mut at_least = Vec::new();
        let values = PERCENTILES.map(|(name, p)| {
            if let Some(reason) = missing(p, count) {
                p_missing.insert(name.to_owned(), reason);
                return None;
            }
            let value = tally.percentile(p)?;
            if tally.is_at_least(value) {
                at_least.push(name.to_owned());
            }
            Some(value)
        });
        if tally.censored.count > 0 {
            at_least.extend(["mean".to_owned(), "max".to_owned()]);
        }
        Self {
            unit: "ns".to_owned(),
            count,
            mean: tally.mean().map(|mean| mean.round() as u64),
            max: tally.max(),
            p: Percentiles::from_values(values),
            p_missing,
            censored: tally.censored.count,
            at_least,
        }
    }

    /// Returns `true` if the figure of this name is only a lower bound.
    pub(crate) fn is_at_least(&self, name: &str) -> bool {
        self.at_least.iter().any(|known| known == name)
    }
}
