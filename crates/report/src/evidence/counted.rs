//! Counts of a trial, and the same requests in its record.
//!
//! A search decides by the requests of each interval and the bad ones among them. The record has the same
//! requests as histograms: of the whole trial step by step, of its slices, and of a plan with one step in a
//! finer timeline.

use plimsoll_core::Nanos;
use plimsoll_histogram::Delta;
use plimsoll_metrics::{Interval, Objective, RunRecord, StepRecord, Tally};
use plimsoll_statistics::SliceCount;

use super::Contradiction;
use crate::saved::encoding::possible;
use crate::trial_run::TrialCounts;

/// A bucket of a histogram begins at most this part of a value below it.
const BUCKET: u64 = 32;

/// Differences between the counts and the record. Places begin with `place`.
pub(super) fn broken(
    place: &str,
    record: &RunRecord,
    objectives: &[Objective],
    counts: &TrialCounts,
) -> Vec<Contradiction> {
    let mut counted = Counted { place, counts, broken: Vec::new() };
    let whole = counts.portions.len() == objectives.len()
        && counts.portions.iter().all(|portions| portions.len() == counts.ends.len());
    if !whole {
        counted.contradict("", "there are not as many counts as intervals and objectives".to_owned());
        return counted.broken;
    }
    let numbers = || counts.portions.iter().flatten().flat_map(|slice| [slice.count, slice.marked]);
    if let Err(reason) = possible(numbers()) {
        counted.contradict("/portions", reason);
        return counted.broken;
    }
    counted.ends(record);
    let steps: Vec<Tally> = record.steps.iter().map(tally).collect();
    counted.parts("record/steps", objectives, &[(Nanos::MAX, steps)]);
    if record.slices.iter().all(|slice| slice.steps.len() == record.steps.len()) {
        let slices = record.slices.iter().map(|slice| (slice.at, slice.steps.clone()));
        counted.parts("record/slices", objectives, &slices.collect::<Vec<_>>());
    }
    if record.steps.len() == 1 {
        let slices = record.timeline.measured.iter().map(|slice| (slice.at, vec![slice.total.clone()]));
        let mut slices: Vec<_> = slices.collect();
        if let (Some((_, last)), Some(drain)) = (slices.last_mut(), &record.timeline.drain) {
            last.iter_mut().for_each(|last| last.merge(&drain.total));
        }
        counted.parts("record/timeline", objectives, &slices);
    }
    counted.broken
}

/// Outcomes of the requests of a step, as far as objectives look at them.
fn tally(step: &StepRecord) -> Tally {
    let streams = step.event_streams.as_deref();
    Tally {
        ok: step.ok,
        failed: step.failed,
        timed_out: step.timed_out,
        judged: streams.map_or(0, |streams| streams.judged),
        good: streams.map_or(0, |streams| streams.good),
        errors: step.errors.clone(),
        response_time: Delta::of_all(&step.response_time),
        failed_time: Delta::of_all(&step.failed_response_time),
        censored: step.censored_response,
        ..Tally::default()
    }
}

struct Counted<'a> {
    place: &'a str,
    counts: &'a TrialCounts,
    broken: Vec<Contradiction>,
}

impl Counted<'_> {
    fn contradict(&mut self, place: &str, reason: String) {
        self.broken.push(Contradiction { place: format!("{}{place}", self.place), reason });
    }

    /// The ends of the counts are those of the intervals, some of which the record of a long trial has
    /// joined.
    fn ends(&mut self, record: &RunRecord) {
        let ends = &self.counts.ends;
        let load = || record.intervals.iter().filter(|interval| !interval.warmup && !interval.drain);
        let is_known = |interval: &Interval| ends.binary_search(&interval.at).is_ok();
        let many: usize = load().map(|interval| interval.joined as usize + 1).sum();
        let drained = record.intervals.iter().any(|interval| interval.drain && !interval.warmup);
        let has_only_drain = many == 0 && drained && ends.len() == 1;
        if !ends.is_sorted_by(|one, next| one < next) || !load().all(is_known) {
            self.contradict("/ends", "not those of record/intervals".to_owned());
        } else if ends.len() != many && !has_only_drain {
            let reason = format!("{} intervals are counted, and record/intervals has {many}", ends.len());
            self.contradict("/ends", reason);
        }
    }

    /// Compares the counts with parts of the record, by their ends: the last one has what comes after it.
    fn parts(&mut self, name: &str, objectives: &[Objective], parts: &[(Nanos, Vec<Tally>)]) {
        for (number, objective) in objectives.iter().enumerate() {
            let mut begin = 0;
            for (at, (end, steps)) in parts.iter().enumerate() {
                let until = match at + 1 == parts.len() {
                    true => self.counts.ends.len(),
                    false => self.counts.ends.partition_point(|interval| interval <= end).max(begin),
                };
                let counted = SliceCount::sum(&self.counts.portions[number][begin..until]);
                begin = until;
                let recorded = objective.portion(steps);
                let is_same = counted.count == recorded.count
                    && (recorded.marked..=most_marked(objective, recorded, steps)).contains(&counted.marked);
                if !is_same {
                    let reason = format!(
                        "{} bad of {} requests are counted for {} until {}, and {name} has {} of {}",
                        counted.marked,
                        counted.count,
                        objective.spec,
                        if *end == Nanos::MAX { "the end".to_owned() } else { format!("{end:?}") },
                        recorded.marked,
                        recorded.count,
                    );
                    return self.contradict(&format!("/portions/{number}"), reason);
                }
            }
        }
    }
}

/// The most bad requests that may be counted in the intervals of a part in which so many are recorded. Where
/// requests time out before they could break the objective, one interval may have more slow ones than the
/// whole part tells.
fn most_marked(objective: &Objective, recorded: SliceCount, steps: &[Tally]) -> u64 {
    let Some(limit) = objective.time_limit() else { return recorded.marked };
    let is_early = |tally: &&Tally| {
        let from = tally.censored.from.0;
        tally.timed_out > 0 && from - from / BUCKET < limit
    };
    recorded.marked + steps.iter().filter(is_early).map(|tally| tally.timed_out).sum::<u64>()
}
