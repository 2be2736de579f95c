//! The shards of one load as one run.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use plimsoll_core::{Nanos, figure};
use plimsoll_metrics::threshold::Metric;
use plimsoll_metrics::{
    Outline, RunFacts, RunRecord, ScenarioOutline, Threshold, ThresholdResult, ThresholdSpec, ThresholdWatch,
    judge_thresholds,
};

use super::SavedRun;
use super::merging::MergeError;
use crate::contract::result::{EarlyEndResult, Note, ThresholdOutcome, Thresholds};

impl SavedRun {
    /// The shards of one load as the run that one machine would have made: counts, rates and histograms are
    /// those of all of them together, and thresholds over the whole run are judged by these. A threshold of a
    /// phase, in every window, or on a query, holds if it holds in each shard.
    ///
    /// # Errors
    /// A run is not a shard, is of another load, or is there twice; or one of the shards is missing.
    pub fn merge_shards(runs: &[Self]) -> Result<Self, MergeError> {
        let missing = check(runs)?;
        if !missing.is_empty() {
            return Err(MergeError::Missing { shards: missing });
        }
        Self::merge_some_shards(runs)
    }

    /// Merges shards some of which may be missing, once they were checked.
    pub(super) fn merge_some_shards(runs: &[Self]) -> Result<Self, MergeError> {
        let mut merged = Self::merge(runs)?;
        (merged.result.run.shard, merged.result.run.taken_over) = (None, None);
        merged.judge_as_one();
        let starts = || runs.iter().map(|run| run.result.run.started_at_unix_ns);
        let apart = starts().max().unwrap_or(0) - starts().min().unwrap_or(0);
        let text = format!(
            "{} shards of one load; by the clocks of their machines they began within {}",
            runs.len(),
            figure::nanos(Nanos(apart))
        );
        merged.result.notes.retain(|note| note.code != "merged");
        merged.result.notes.push(Note { code: "shards".to_owned(), text });
        merged.result.restate();
        Ok(merged)
    }

    /// Judges the thresholds over the whole run by the merged figures.
    fn judge_as_one(&mut self) {
        let record = self.as_record();
        let outline = self.outline();
        let facts = RunFacts::of(&record);
        for outcome in &mut self.result.thresholds {
            if outcome.window_s.is_some() || outcome.phase.is_some() {
                continue;
            }
            let Ok(threshold) = Threshold::of_saved(&outcome.text) else { continue };
            // Each shard has asked the server at its own end.
            if matches!(threshold.metric, Metric::Query(_)) {
                continue;
            }
            let spec = ThresholdSpec {
                threshold,
                scenario: outcome.scenario.clone(),
                step: outcome.step.clone(),
                phase: None,
                window: None,
                delay: Nanos::ZERO,
                abort_on_fail: false,
            };
            if let Some(result) = judge_thresholds(&[spec], &outline, &record).first() {
                let ended_run = outcome.ended_run;
                *outcome = ThresholdOutcome { ended_run, ..ThresholdOutcome::new(result, &facts) };
            }
        }
        self.conclude_thresholds();
    }

    /// Judges all thresholds by a watch that has seen the intervals of the whole load, so that those of a
    /// phase, and in every window, hold or fail by the sum of all shards, too. `amend` is handed the results
    /// before, to judge those that no watch can.
    pub fn judge_by(&mut self, watch: &ThresholdWatch, amend: impl FnOnce(&mut [ThresholdResult])) {
        let record = self.as_record();
        let facts = RunFacts::of(&record);
        let mut results = watch.worker_status(&record);
        amend(&mut results);
        self.result.run.ended_by_threshold =
            results.iter().find(|one| one.ended_run).map(|one| one.spec.to_string());
        self.result.thresholds = results.iter().map(|one| ThresholdOutcome::new(one, &facts)).collect();
        self.conclude_thresholds();
        self.result.restate();
    }

    fn conclude_thresholds(&mut self) {
        self.result.verdict.thresholds = match &*self.result.thresholds {
            [] => Thresholds::None,
            all if all.iter().all(|outcome| outcome.passed) => Thresholds::Pass,
            _ => Thresholds::Fail,
        };
    }

    /// The record as far as thresholds, and the figures of one of several runs, read it.
    pub fn as_record(&self) -> RunRecord {
        let result = &self.result;
        let completed = result.rate.achieved_per_s.unwrap_or(0.0) * result.duration_s;
        let mut record = RunRecord {
            duration: Nanos::from_secs_f64(result.duration_s),
            completed_in_window: completed.round() as u64,
            planned: result.run.planned_s.map(Nanos::from_secs_f64),
            early_end: result.run.early_end.as_ref().and_then(EarlyEndResult::record),
            paces_requests: result.rate.paces_requests,
            target_per_second: result.rate.target_per_s,
            accounting: result.accounting,
            iterations: result.iterations,
            total: self.total(),
            steps: self.steps.clone(),
            metrics: self.metrics.clone(),
            ..RunRecord::empty(result.model.kind)
        };
        record.connections.connect_time = self.connect_time.clone();
        record.connections.tls_time = self.tls_time.clone();
        record.verdict.valid = result.verdict.valid;
        record
    }

    /// Names of scenarios and steps: steps of a scenario stand together.
    fn outline(&self) -> Outline {
        let mut scenarios: Vec<ScenarioOutline> = Vec::new();
        for (number, step) in (0_u32..).zip(&self.steps) {
            match scenarios.last_mut().filter(|last| last.name == step.scenario) {
                Some(last) => last.steps.end = number + 1,
                None => {
                    let steps = number..number + 1;
                    scenarios.push(ScenarioOutline { name: step.scenario.clone(), steps });
                }
            }
        }
        Outline {
            scenarios,
            steps: self.steps.iter().map(|step| step.name.clone()).collect(),
            awaited: self.steps.iter().map(|step| step.awaited).collect(),
            phases: Vec::new(),
            paces_requests: self.result.rate.paces_requests,
            metrics: self.metrics.iter().map(|metric| metric.spec.clone()).collect(),
        }
    }
}

/// Checks that these are shards of one load, each once. Returns those that are missing.
pub(super) fn check(runs: &[SavedRun]) -> Result<Vec<String>, MergeError> {
    let Some(first) = runs.first().map(|run| &run.result.run) else { return Err(MergeError::Nothing) };
    let mut seen: BTreeMap<u32, &str> = BTreeMap::new();
    let mut all = 0;
    for run in runs.iter().map(|run| &run.result.run) {
        let no_shard = || MergeError::NoShard { id: run.id.clone() };
        let shard = run.shard.as_deref();
        let (numbers, of) = shard.and_then(shards_of).ok_or_else(no_shard)?;
        if (run.load_checksum.as_ref(), run.seed) != (first.load_checksum.as_ref(), first.seed)
            || (all != 0 && of != all)
        {
            return Err(MergeError::OtherLoad { id: run.id.clone() });
        }
        all = of;
        for number in numbers {
            if let Some(other) = seen.insert(number, &run.id) {
                let ids = [other.to_owned(), run.id.clone()];
                return Err(MergeError::Twice { shard: format!("{number}/{of}"), ids });
            }
        }
    }
    let missing = (1..=all).filter(|number| !seen.contains_key(number));
    Ok(missing.map(|number| format!("{number}/{all}")).collect())
}

/// Shards by their numbers, and how many there are in all: of `2/3`, or of `2-4/7`. `None` if a text is none.
pub fn shards_of(text: &str) -> Option<(RangeInclusive<u32>, u32)> {
    let (numbers, of) = text.split_once('/')?;
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let (first, last, of): (u32, u32, u32) = (first.parse().ok()?, last.parse().ok()?, of.parse().ok()?);
    (1 <= first && first <= last && last <= of).then_some((first..=last, of))
}
