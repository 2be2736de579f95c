//! A search for a capacity without its server, its clock and its load.
//!
//! [`CapacitySearch`] asks for trials, takes their measurements, and makes the result. Times are arguments:
//! whoever has the same measurements at the same times makes the same result again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::{Nanos, figure};
use plimsoll_metrics::Objective;
use plimsoll_statistics::{
    Answer, End, Finding, Level, Outcome, Purpose, Search, Settings, SliceCount, Trial, share_interval,
};
use serde::{Deserialize, Serialize};

use crate::build::level_reason::{Failures, Reasons};
use crate::build::trial_run::{TrialCounts, TrialRun, finding_name};
use crate::capacity::{Capacity, CapacityResult, LevelResult, SearchResult, ShareResult, TrialResult};
use crate::contract::result::Tool;
use crate::{CAPACITY_SCHEMA_VERSION, rfc3339};

/// Confidence at which a trial whose outcome is clear is ended before its time. Strict, since this question
/// is asked after every interval.
const EARLY_CONFIDENCE: f64 = 0.999;
/// A search that has this part of its time left when it ends says why.
const MUCH_LEFT: u64 = 5;
/// Rates at which the server has to refuse every request for the search to give up: one may be too much for
/// it.
const REFUSING: usize = 2;
/// Classes of failures that are told at most.
const CLASSES: usize = 3;

/// Settings of a search for a capacity. Rates are in iterations per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacitySettings {
    /// Rate of the first trial.
    pub from: f64,
    /// No rate above this one is tried; `None` for no limit.
    pub to: Option<f64>,
    /// The rate that is asked for, if one is.
    pub at_least: Option<f64>,
    /// Width of the answer that is aimed at, as a share of its lower end.
    pub precision: f64,
    /// Time of the whole search.
    pub max_time: Nanos,
    /// Length of the shortest trial.
    pub unit: Nanos,
    /// Unmeasured load before a shortest trial.
    pub lead: Nanos,
    /// Requests of an iteration, where that is known.
    pub requests_per_iteration: Option<f64>,
}

/// A search that is under way. Take [`next`](Self::next), carry it out, [`note`](Self::note) its
/// measurements, until there is no next trial; then make the [`result`](Self::result).
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    settings: CapacitySettings,
    objectives: Vec<Objective>,
    search: Search,
    trials: Vec<TrialResult>,
    /// The rate of the last confirmation that contradicted the lower end, and how.
    contradiction: Option<(f64, String)>,
}

impl CapacitySearch {
    /// A search that has tried nothing yet.
    pub fn new(settings: CapacitySettings, objectives: Vec<Objective>) -> Self {
        let limits = objectives.iter().map(|objective| objective.limit).collect();
        let of_arrival = settings.requests_per_iteration.unwrap_or(1.0);
        let samples = |objective: &Objective| (of_arrival * objective.share_of_steps()).max(1.0);
        let search = Search::new(Settings {
            samples: objectives.iter().map(samples).collect(),
            // Other rates are not looked at then.
            asked: settings.at_least.filter(|asked| settings.to == Some(*asked)),
            to: settings.to.unwrap_or(f64::INFINITY),
            precision: settings.precision,
            unit: settings.unit.as_secs_f64(),
            lead: settings.lead.as_secs_f64() / settings.unit.as_secs_f64(),
            ..Settings::new(settings.from, limits)
        });
        Self { settings, objectives, search, trials: Vec::new(), contradiction: None }
    }

    /// The objectives of the search.
    pub fn objectives(&self) -> &[Objective] {
        &self.objectives
    }

    /// The settings of the search.
    pub const fn settings(&self) -> &CapacitySettings {
        &self.settings
    }

    /// The trials so far.
    pub fn trials(&self) -> &[TrialResult] {
        &self.trials
    }

    /// Length of a trial as it is planned.
    pub fn length(&self, trial: &Trial) -> Nanos {
        Nanos(self.settings.unit.0.saturating_mul(u64::from(trial.length)))
    }

    /// The next trial when the search has taken this long; `None` if it is over, or there is no time for
    /// another one.
    pub fn next(&mut self, passed: Nanos) -> Option<Trial> {
        let left = Nanos(self.settings.max_time.0.saturating_sub(passed.0));
        self.search.next_within(self.units(left), self.units(self.settings.max_time))
    }

    /// A time in lengths of the shortest trial.
    fn units(&self, time: Nanos) -> f64 {
        time.as_secs_f64() / self.settings.unit.as_secs_f64()
    }

    /// Returns `true` if a trial with these counts so far may end before its time.
    pub fn is_clear(&self, trial: &Trial, counts: &TrialCounts) -> bool {
        self.search.is_clear(trial, counts.portions(), EARLY_CONFIDENCE)
    }

    /// Returns `true` if a trial that ended with these counts may have done so before its time: its outcome
    /// was clear after one of the intervals.
    pub fn was_clear(&self, trial: &Trial, counts: &TrialCounts) -> bool {
        let until = |end: usize| -> Vec<Vec<SliceCount>> {
            counts.portions().iter().map(|portions| portions[..end.min(portions.len())].to_vec()).collect()
        };
        (1..=counts.ends.len()).any(|end| self.search.is_clear(trial, &until(end), EARLY_CONFIDENCE))
    }

    /// Takes the measurements of a trial that began when the search had taken `at`.
    pub fn note(&mut self, trial: &Trial, at: Nanos, run: &TrialRun, counts: &TrialCounts) {
        let outcome = run.outcome(&self.objectives, counts);
        if let (Purpose::Confirmation, Outcome::Measured(portions)) = (trial.purpose, &outcome) {
            self.contradiction = self.missed(portions).map(|missed| (trial.rate, missed));
        }
        // A trial whose outcome was clear ends early.
        let carried_out = run.record.duration.as_secs_f64() / self.length(trial).as_secs_f64();
        let finding = self.search.note(trial, carried_out, outcome);
        self.trials.push(TrialResult {
            purpose: purpose_name(trial.purpose).to_owned(),
            rate_per_s: trial.rate,
            after_per_s: trial.after,
            at_s: at.as_secs_f64(),
            figures: run.figures_for(&self.objectives),
            finding: finding_name(finding).to_owned(),
        });
        if self.is_refused() && self.search.levels().len() >= REFUSING {
            self.search.give_up();
        }
    }

    /// Returns `true` if the server refused every request of every trial.
    fn is_refused(&self) -> bool {
        !self.trials.is_empty() && self.trials.iter().all(|trial| trial.figures.is_refused())
    }

    /// The failures of all trials by their classes, the most frequent first, with the statuses that they had:
    /// `250 status_4xx (404)`; `None` without one.
    fn failures(&self) -> Option<String> {
        let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
        for (class, count) in self.trials.iter().flat_map(|trial| &trial.figures.errors) {
            *classes.entry(class).or_default() += count;
        }
        let timed_out = self.trials.iter().map(|trial| trial.figures.timed_out).fold(0, u64::saturating_add);
        if timed_out > 0 {
            classes.insert("timed out", timed_out);
        }
        let statuses: BTreeSet<&String> =
            self.trials.iter().flat_map(|trial| trial.figures.statuses.keys()).collect();
        let of = |class: &str| -> Vec<&str> {
            let first = class.strip_prefix("status_").and_then(|range| range.strip_suffix("xx"));
            let has = |status: &&&String| first.is_some_and(|first| status.starts_with(first));
            statuses.iter().filter(has).map(|status| status.as_str()).collect()
        };
        let mut classes: Vec<(&str, u64)> = classes.into_iter().collect();
        classes.sort_by_key(|(_, count)| Reverse(*count));
        let told = |(class, count): &(&str, u64)| match of(class) {
            statuses if statuses.is_empty() => format!("{} {class}", figure::count(*count)),
            statuses => format!("{} {class} ({})", figure::count(*count), statuses.join(", ")),
        };
        let told: Vec<String> = classes.iter().take(CLASSES).map(told).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// The result of a search that has taken this long. `known` is what its caller knows of the
    /// circumstances; `stopped` says that the caller has ended it.
    pub fn result(&self, known: SearchResult, tool: Tool, used: Nanos, stopped: bool) -> CapacityResult {
        let confidence = self.search.settings().confidence;
        let search = known.of(&self.objectives, confidence, used);
        CapacityResult {
            schema_version: CAPACITY_SCHEMA_VERSION,
            tool,
            search: SearchResult {
                precision: self.settings.precision,
                trial_s: self.settings.unit.as_secs_f64(),
                ..search
            },
            capacity: self.capacity(used, stopped),
            levels: self.search.levels().iter().map(|level| self.level(level, stopped)).collect(),
            trials: self.trials.clone(),
        }
    }

    /// The objective of which more requests are bad than may be, in words.
    fn missed(&self, portions: &[Vec<SliceCount>]) -> Option<String> {
        self.objectives.iter().zip(portions).find_map(|(objective, portions)| {
            let SliceCount { count, marked } = SliceCount::sum(portions);
            let is_missed = marked as f64 > objective.limit * count as f64;
            let share = |part: f64| figure::share(part / count.max(1) as f64);
            is_missed.then(|| format!("{} of its requests broke {}", share(marked as f64), objective.spec))
        })
    }

    /// The lowest rate that breaks an objective, if none that was tried may hold: each of the others has more
    /// bad requests than may be, too, or so few requests that they say nothing.
    fn lowest_breaking(&self) -> Option<f64> {
        let may_hold = |level: &Level| {
            let mut all = self.objectives.iter().zip(level.portions());
            level.finding != Finding::Breaks
                && all.all(|(Objective { limit, .. }, portions)| {
                    let SliceCount { count, marked } = SliceCount::sum(portions);
                    count as f64 * limit >= 1.0 && marked as f64 <= limit * count as f64
                })
        };
        let levels = self.search.levels();
        let breaking = levels.iter().find(|level| level.finding == Finding::Breaks)?;
        (!levels.iter().any(may_hold)).then_some(breaking.rate)
    }

    /// The trials that a level rests on.
    fn trials_at(&self, rate: f64) -> impl Iterator<Item = &TrialResult> {
        let not_applied = finding_name(Finding::NotApplied);
        self.trials.iter().filter(move |trial| {
            trial.rate_per_s == rate && trial.after_per_s.is_none() && trial.finding != not_applied
        })
    }

    fn level(&self, level: &Level, stopped: bool) -> LevelResult {
        let share = |(objective, portions): (&Objective, &Vec<SliceCount>)| {
            let interval = share_interval(portions, self.search.settings().confidence);
            let all = SliceCount::sum(portions);
            let varies = 0 < all.marked && all.marked < all.count;
            ShareResult {
                slo: objective.spec.to_string(),
                limit: objective.limit,
                share: (all.count > 0).then(|| all.marked as f64 / all.count as f64),
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
                variance_inflation: interval.map(|interval| interval.variance_inflation).filter(|_| varies),
            }
        };
        let doubt = self.search.doubt(level, &self.search.answer(stopped));
        let finding = match doubt {
            Some(doubt) if doubt.is_unproven() => Finding::Unclear,
            _ => level.finding,
        };
        let measured_s = self.trials_at(level.rate).map(|trial| trial.figures.measured_s);
        let known = LevelResult {
            rate_per_s: level.rate,
            finding: finding_name(finding).to_owned(),
            reason: None,
            measured_s: measured_s.fold(0.0, |sum, length| sum + length),
            shares: self.objectives.iter().zip(level.portions()).map(share).collect(),
        };
        let counts = level.portions().iter().map(|portions| SliceCount::sum(portions).count).collect();
        let trials = self.trials_at(level.rate).count();
        let failures = Failures::of(self.trials_at(level.rate).map(|trial| &trial.figures));
        let unit = self.settings.unit;
        let reason = Reasons { level: &known, doubt, counts, trials, failures, unit }.in_words();
        LevelResult { reason, ..known }
    }

    /// The lowest rate above another one that the generator could not apply.
    fn lowest_not_applied(&self, above: Option<f64>) -> Option<f64> {
        let not_applied = finding_name(Finding::NotApplied);
        let spoiled = self.trials.iter().filter(|trial| trial.finding == not_applied);
        let rates = spoiled.map(|trial| trial.rate_per_s).filter(|rate| above.is_none_or(|low| *rate > low));
        rates.reduce(f64::min)
    }

    /// Why a search ended with much of its time left; `None` if it did not, or its statement says that.
    fn why_time_is_left(&self, end: End, used: Nanos) -> Option<String> {
        let most = self.settings.max_time;
        let left = Nanos(most.0.saturating_sub(used.0));
        if left.0 < most.0 / MUCH_LEFT {
            return None;
        }
        let in_words = |units: f64| figure::nanos(Nanos((units * self.settings.unit.0 as f64) as u64));
        let why = match (end, self.search.unfitting()) {
            (End::Narrow, _) => "the interval is as narrow as --precision asks for".to_owned(),
            (End::Unclear, Some([length, 0.0])) => {
                format!("the next trial would have taken {}", in_words(length))
            }
            (End::Unclear, Some(times)) => {
                let [length, kept] = times.map(in_words);
                format!("the next trial would have taken {length}, and {kept} were kept for the confirmation")
            }
            (End::Unclear, None) => "trials near the capacity have taken as long as they may".to_owned(),
            _ => return None,
        };
        let [left, most] = [left, most].map(figure::nanos);
        Some(format!("{left} of --max-time {most} were left: {why}"))
    }

    /// Why the rate that was asked for is not carried.
    fn refutation(&self, breaks: Option<f64>) -> String {
        let rate = breaks.unwrap_or_default();
        format!(
            "{} breaks the objectives, in each of {} trials: that answers what was asked, and no lower rate \
             was looked for",
            figure::per_second(rate),
            self.trials_at(rate).count(),
        )
    }

    /// The objective that takes the most time to be judged, where a search had too little of it and requests
    /// come slowly; `None` otherwise.
    fn costliest(&self, answer: &Answer) -> Option<String> {
        let settings = self.search.settings();
        let (number, arrivals) = settings.strictest()?;
        let lowest = || self.search.levels().first().map(|level| level.rate);
        let rate = answer.low.or(answer.high).or_else(lowest)?;
        let length = Nanos::from_secs_f64(arrivals / rate);
        if answer.end != End::Unclear || length <= self.settings.unit {
            return None;
        }
        let objective = &self.objectives[number];
        let samples = arrivals * settings.samples.get(number).copied().unwrap_or(1.0);
        Some(format!(
            "{} takes the time: a trial that tells {} of bad requests from chance has {}, which at {} \
             takes {}",
            objective.spec,
            figure::share(objective.limit),
            figure::count(samples.ceil() as u64),
            figure::per_second(rate),
            figure::nanos(length),
        ))
    }

    /// The trials that the generator could not carry out, in words; `None` without any.
    fn not_applied(&self) -> Option<String> {
        let name = finding_name(Finding::NotApplied);
        let spoiled = || self.trials.iter().filter(|trial| trial.finding == name);
        let first = spoiled().next()?;
        let mut rates: Vec<f64> = spoiled().map(|trial| trial.rate_per_s).collect();
        rates.dedup();
        let rates: Vec<String> = rates.into_iter().map(figure::per_second).collect();
        let cause = first.figures.cause().map_or_else(String::new, |found| format!(": {}", found.evidence));
        Some(format!(
            "{} of the {} trials tell nothing, since this generator could not put their rate on the server ({}){cause}",
            spoiled().count(),
            self.trials.len(),
            rates.join(", "),
        ))
    }

    /// Why a search that was out of time has no answer, or one with an open end.
    fn why_unclear(&self, has_end: bool) -> String {
        let is_unclear = self.search.levels().iter().any(|level| level.finding == Finding::Unclear);
        let what = match (is_unclear, has_end) {
            (true, true) => "rates beside it were tried, and stayed unclear",
            (true, false) => "the rates that were tried stayed unclear",
            (false, _) => "there was no time for a rate that shows more",
        };
        format!("{what}: give a longer --max-time")
    }

    /// Returns `true` if a rate breaks an objective, and no other one that was tried may hold: lower ones
    /// would take more time than there is to show as much.
    fn breaks_everywhere(&self, answer: &Answer) -> bool {
        answer.low.is_none() && answer.end == End::Unclear && self.lowest_breaking().is_some()
    }

    /// What trials right after an overload have shown, in words.
    fn after_overload(&self, answer: &Answer) -> Option<String> {
        let broke = finding_name(Finding::Breaks);
        let from_above = self.trials.iter().filter(|trial| trial.after_per_s.is_some());
        let broke_from_above: Vec<&TrialResult> = from_above.filter(|trial| trial.finding == broke).collect();
        match (answer.low, answer.from_above) {
            (Some(low), Some(from_above)) if from_above < low => Some(format!(
                "right after an overload it holds {} only: it recovers slowly",
                figure::per_second(from_above)
            )),
            (Some(_), None)
                if !broke_from_above.is_empty() && matches!(answer.end, End::Narrow | End::Unclear) =>
            {
                let rates: Vec<String> =
                    broke_from_above.iter().map(|trial| figure::per_second(trial.rate_per_s)).collect();
                Some(format!(
                    "right after an overload {} broke as well: within such a trial it did not recover",
                    rates.join(" and ")
                ))
            }
            _ => None,
        }
    }

    /// The answer in figures and words.
    fn capacity(&self, used: Nanos, stopped: bool) -> Capacity {
        let answer = self.search.answer(stopped);
        let mut notes: Vec<String> = self.after_overload(&answer).into_iter().collect();
        if answer.low.is_some() && !answer.confirmed {
            let contradiction = self.contradiction.as_ref().filter(|(rate, _)| Some(*rate) == answer.low);
            notes.push(match contradiction {
                Some((_, missed)) => {
                    format!("the lower end was not confirmed: in a trial of its own {missed}")
                }
                None => "the lower end was not confirmed by another trial".to_owned(),
            });
        }
        let limit = self.trials.iter().rev().find(|trial| trial.finding == finding_name(Finding::NotApplied));
        if let (End::Generator, Some(found)) = (answer.end, limit.and_then(|trial| trial.figures.cause())) {
            notes.push(found.in_words());
        }
        if answer.end != End::Generator {
            notes.extend(self.not_applied());
        }
        notes.extend(self.why_time_is_left(answer.end, used));
        notes.extend(self.costliest(&answer));
        if answer.low.is_none() && !self.is_refused() {
            notes.extend(self.failures().map(|failures| format!("requests that failed: {failures}")));
        }
        let width = answer.low.zip(answer.high).map(|(low, high)| high / low - 1.0);
        let used = figure::nanos(used);
        let statement = match answer.end {
            End::Narrow => "the lower rate meets the objectives, the upper one does not".to_owned(),
            End::Unclear => match width {
                Some(width) => format!(
                    "the capacity lies between them, {} wide: that is the precision of {used}; a longer \
                     --max-time narrows it",
                    figure::share(width),
                ),
                None => match self.lowest_breaking().filter(|_| answer.low.is_none()) {
                    Some(rate) => {
                        let is_lowest = self.search.levels().first().is_some_and(|level| level.rate == rate);
                        let rest =
                            if is_lowest { "" } else { ", and lower ones have too few requests to tell" };
                        let rate = figure::per_second(rate);
                        format!("no rate that was tried meets the objectives: {rate} breaks them{rest}")
                    }
                    None => self.why_unclear(answer.low.is_some() || answer.high.is_some()),
                },
            },
            End::Highest => "the highest rate that may be tried does not break it".to_owned(),
            End::Generator if answer.high.is_some() => {
                "this generator could not apply the last trials, so that the search ended early".to_owned()
            }
            End::Generator => match (answer.low, self.lowest_not_applied(answer.low)) {
                (Some(_), Some(rate)) => format!(
                    "the highest rate that was shown to hold; this generator could not put {} on the server, \
                     whose limit was not found",
                    figure::per_second(rate)
                ),
                (None, Some(rate)) => format!(
                    "this generator could not put even {} on the server, whose limit was not found",
                    figure::per_second(rate)
                ),
                (_, None) => "this generator ended the search before the server's limit was found".to_owned(),
            },
            End::Answered => self.refutation(answer.high),
            End::Lowest => match self.failures().filter(|_| self.is_refused()) {
                Some(failures) => format!(
                    "no rate that was tried meets the objectives: every request failed, at every rate: {failures}"
                ),
                None => "no rate that was tried meets the objectives".to_owned(),
            },
            End::Stopped => "the search was ended before it was done".to_owned(),
        };
        Capacity {
            low_per_s: answer.low,
            high_per_s: answer.high,
            asked_per_s: self.settings.at_least,
            requests_per_iteration: self.settings.requests_per_iteration,
            confirmed: answer.confirmed,
            after_overload_per_s: answer.from_above,
            end: name_of(if self.breaks_everywhere(&answer) { End::Lowest } else { answer.end }).to_owned(),
            statement,
            notes,
        }
    }
}

impl SearchResult {
    /// The circumstances of a search that is over, with what follows from its course: its start in words, the
    /// time that it took, its objectives and the confidence of its decisions.
    pub(crate) fn of(self, objectives: &[Objective], confidence: f64, used: Nanos) -> Self {
        Self {
            started_at: rfc3339(Nanos(self.started_at_unix_ns)),
            duration_s: used.as_secs_f64(),
            slo: objectives.iter().map(|objective| objective.spec.to_string()).collect(),
            confidence,
            ..self
        }
    }
}

/// The name of a purpose in results.
pub const fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Ramp => "ramp",
        Purpose::Bisection => "bisection",
        Purpose::Estimation => "estimation",
        Purpose::Confirmation => "confirmation",
        Purpose::FromAbove => "from_above",
    }
}

const fn name_of(end: End) -> &'static str {
    match end {
        End::Narrow => "narrow",
        End::Unclear => "unclear",
        End::Highest => "highest",
        End::Generator => "generator",
        End::Lowest => "lowest",
        End::Answered => "answered",
        End::Stopped => "stopped",
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::ErrorClass;
    use plimsoll_metrics::{Model, Outline, RunRecord, Threshold, ThresholdSpec};

    use super::*;
    use crate::result::OutcomeResult;

    /// How the requests of a trial ended.
    #[derive(Clone, Copy)]
    enum Ended {
        Refused,
        TimedOut,
        Half,
        Late,
    }

    fn trial(ended: Ended, rate: f64) -> (TrialRun, TrialCounts) {
        let (slices, each) = (8, (rate / 4.0).ceil() as u64);
        let all = slices * each;
        let mut record = RunRecord::empty(Model::Open);
        record.duration = Nanos::from_secs(2);
        record.accounting.started = all;
        let (ok, failed, timed_out) = match ended {
            Ended::Refused => (0, all, 0),
            Ended::TimedOut => (0, 0, all),
            Ended::Half => (all / 2, all - all / 2, 0),
            Ended::Late => (all, 0, 0),
        };
        let total = &mut record.total;
        (total.ok, total.failed, total.timed_out) = (ok, failed, timed_out);
        total.errors[ErrorClass::Status4xx] = failed;
        total.statuses = [(200, ok), (404, failed)].into_iter().filter(|(_, count)| *count > 0).collect();
        let slice = SliceCount {
            count: each,
            marked: if ok == all { each } else { each.min(each * 2 * (all - ok) / all) },
        };
        let ends = (1..=slices).map(|end| Nanos(end * 250_000_000)).collect();
        (TrialRun::of_record(record), TrialCounts { ends, portions: vec![vec![slice; slices as usize]] })
    }

    fn settings(max_time: Nanos) -> CapacitySettings {
        CapacitySettings {
            from: 100.0,
            to: None,
            at_least: None,
            precision: 0.05,
            max_time,
            unit: Nanos::from_secs(2),
            lead: Nanos::from_secs(1),
            requests_per_iteration: Some(1.0),
        }
    }

    /// Symptom: a server that refused a tenth of all requests at any rate ended a search after 7 s of two
    /// minutes, with exit code 3: at the lowest rate one of twelve requests is no proof.
    #[test]
    fn what_fails_at_any_rate_is_a_result() {
        let spec = ThresholdSpec::new(Threshold::parse("error_rate<1%").unwrap());
        let objective = Objective::new(&spec, &Outline::default()).unwrap();
        // Bad requests of the first slice and of each other one, of a quarter of a second.
        for (few, share) in [(1, 0.1), (0, 0.1), (1, 0.3)] {
            let mut search = CapacitySearch::new(settings(Nanos::from_secs(120)), vec![objective.clone()]);
            let mut at = Nanos::ZERO;
            while let Some(next) = search.next(at) {
                let each = (next.rate / 4.0).ceil() as u64;
                // As many as the share is, whatever the rate.
                let until = |slice: u64| (slice as f64 * each as f64 * share) as u64;
                let marked = |slice| if slice == 0 { few } else { until(slice + 1) - until(slice) };
                let slices = 8 * u64::from(next.length);
                let portions: Vec<SliceCount> =
                    (0..slices).map(|slice| SliceCount { count: each, marked: marked(slice) }).collect();
                let SliceCount { count, marked } = SliceCount::sum(&portions);
                let mut record = RunRecord::empty(Model::Open);
                record.duration = Nanos(next.length as u64 * 2_000_000_000);
                record.accounting.started = count;
                (record.total.ok, record.total.failed) = (count - marked, marked);
                record.total.errors[ErrorClass::Status5xx] = marked;
                let ends = (1..=slices).map(|end| Nanos(end * 250_000_000)).collect();
                let counts = TrialCounts { ends, portions: vec![portions] };
                search.note(&next, at, &TrialRun::of_record(record), &counts);
                at += Nanos::from_secs(u64::from(2 * next.length + next.scale));
            }
            let tool = Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() };
            let result = search.result(SearchResult::default(), tool, at, false);
            assert_eq!(
                (result.capacity.low_per_s, result.capacity.end.as_str()),
                (None, "lowest"),
                "{result:#?}"
            );
            assert_eq!(result.capacity.outcome(), OutcomeResult::Fail);
            assert!(result.capacity.statement.starts_with("no rate that was tried meets the objectives"));
        }
    }

    /// Symptom: a search whose every request was answered with 404 went down to 0.39/s for minutes, and did
    /// not say what the server had answered.
    #[test]
    fn a_server_that_refuses_everything_is_given_up_and_told() {
        let objective =
            Objective::new(&ThresholdSpec::new(Threshold::parse("p99<60ms").unwrap()), &Outline::default());
        let settings = settings(Nanos::from_secs(100_000));
        for (ended, levels, statement, notes) in [
            (
                Ended::Refused,
                2,
                "no rate that was tried meets the objectives: every request failed, at every rate: \
                 456 status_4xx (404)",
                "",
            ),
            // A lower rate may be answered in time.
            (Ended::TimedOut, 5, "no rate that was tried meets the objectives", "requests that failed: "),
            (Ended::Late, 5, "no rate that was tried meets the objectives", ""),
            (Ended::Half, 5, "no rate that was tried meets the objectives", "requests that failed: "),
        ] {
            let mut search = CapacitySearch::new(settings.clone(), vec![objective.clone().unwrap()]);
            let mut at = Nanos::ZERO;
            while let Some(next) = search.next(at) {
                let (run, counts) = trial(ended, next.rate);
                search.note(&next, at, &run, &counts);
                at += Nanos::from_secs(3);
            }
            let tool = Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() };
            let result = search.result(SearchResult::default(), tool, at, false);
            assert_eq!((result.capacity.end.as_str(), result.capacity.low_per_s), ("lowest", None));
            assert_eq!(result.levels.len(), levels, "{:?}", result.capacity);
            assert_eq!(result.capacity.statement, statement);
            let told = result.capacity.notes.join("; ");
            assert!(told.contains(notes) && (told.contains("failed") || notes.is_empty()), "{told}");
        }
    }

    /// A search for p99 < 60 ms whose trials have this share of late requests by their rate, spread evenly.
    fn carried_out(settings: CapacitySettings, late: impl Fn(f64) -> f64, trials: usize) -> CapacityResult {
        let spec = ThresholdSpec::new(Threshold::parse("p99<60ms").unwrap());
        let objective = Objective::new(&spec, &Outline::default()).unwrap();
        let mut search = CapacitySearch::new(settings, vec![objective]);
        let (mut at, mut is_over) = (Nanos::ZERO, false);
        for _ in 0..trials {
            let Some(next) = search.next(at) else {
                is_over = true;
                break;
            };
            let (slices, each) = (20 * u64::from(next.length), (next.rate / 10.0).ceil() as u64);
            let bad = |slice: u64| ((slice + 1) as f64 * each as f64 * late(next.rate)) as u64;
            let slice = |slice: u64| SliceCount {
                count: each,
                marked: bad(slice) - if slice == 0 { 0 } else { bad(slice - 1) },
            };
            let portions: Vec<SliceCount> = (0..slices).map(slice).collect();
            let mut record = RunRecord::empty(Model::Open);
            record.duration = Nanos::from_secs(2 * u64::from(next.length));
            (record.accounting.started, record.total.ok) = (slices * each, slices * each);
            let ends = (1..=slices).map(|end| Nanos(end * 100_000_000)).collect();
            search.note(
                &next,
                at,
                &TrialRun::of_record(record),
                &TrialCounts { ends, portions: vec![portions] },
            );
            at += Nanos::from_secs(u64::from(2 * next.length + next.scale));
        }
        let tool = Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() };
        search.result(SearchResult::default(), tool, at, !is_over)
    }

    /// Symptom: of a capacity of 157 to 200/s the rows of 168 and 183/s said "holds".
    #[test]
    fn a_rate_that_held_for_too_short_a_time_is_unclear_and_says_why() {
        let late = |rate: f64| if rate > 1_000.0 { 0.5 } else { 0.0 };
        let from = CapacitySettings { from: 400.0, ..settings(Nanos::from_secs(120)) };
        let mut search = carried_out(from.clone(), late, 3);
        // It was stopped with any rate that held as its lower end.
        assert_eq!((search.levels[0].finding.as_str(), search.capacity.low_per_s), ("holds", Some(400.0)));
        assert_eq!(search.levels[0].reason, None);
        let broken = search.levels.pop().expect("1,600/s");
        assert_eq!(broken.finding, "breaks");
        let reason = broken.reason.expect("its figures are of one trial");
        assert!(
            reason.starts_with("in its 2 trials 50.0 % [") && reason.ends_with(" requests broke p99<60ms"),
            "{reason}"
        );
        assert_eq!(search.levels[0].shares[0].variance_inflation, None, "no bad request shows how they come");
        // In little time rates hold next to the one that breaks, in one short trial each.
        let reason = |level: &LevelResult| level.reason.clone().unwrap_or_default();
        let mut unproven = Vec::new();
        for (from, seconds) in [(1_200.0, 30), (1_300.0, 20), (1_400.0, 14), (1_400.0, 10), (1_450.0, 12)] {
            let little = CapacitySettings { from, ..settings(Nanos::from_secs(seconds)) };
            let ended = carried_out(little, |rate| if rate > 1_500.0 { 0.05 } else { 0.0 }, 40);
            let low = ended.capacity.low_per_s.unwrap_or(0.0);
            let is_right = |level: &LevelResult| level.finding != "holds" || level.rate_per_s <= low;
            assert!(ended.levels.iter().all(is_right), "{ended:#?}");
            unproven.extend(ended.levels.into_iter().filter(|level| reason(level).starts_with("held for ")));
        }
        assert!(!unproven.is_empty(), "no rate lies above the lower end");
        assert!(unproven.iter().all(|level| level.finding == "unclear"), "{unproven:?}");
        assert!(reason(&unproven[0]).contains(": not long enough to count (20.0 s are)"), "{unproven:?}");
        // Three requests in four hundred tell neither.
        let unclear = carried_out(from, |_| 0.0075, 1);
        assert_eq!(unclear.levels[0].finding, "unclear");
        let reason = unclear.levels[0].reason.clone().expect("it looks as if it held");
        assert!(
            reason.starts_with("too few requests to tell: 0.8 % [") && reason.contains("(limit 1.0 %)"),
            "{reason}"
        );
    }

    /// Symptom: `--at-least 400 --to 400` went on for 115 s after 400/s had broken twice.
    #[test]
    fn a_rate_that_was_asked_for_and_broke_twice_is_the_answer() {
        let asked =
            CapacitySettings { to: Some(400.0), at_least: Some(400.0), ..settings(Nanos::from_secs(120)) };
        let late = |rate: f64| if rate > 200.0 { 0.9 } else { 0.0 };
        let result = carried_out(asked, late, 40);
        assert!(result.search.duration_s < 20.0 && result.trials.len() <= 4, "{:#?}", result.capacity);
        let capacity = result.capacity;
        assert_eq!((capacity.high_per_s, capacity.outcome()), (Some(400.0), OutcomeResult::Fail));
    }

    /// Symptom: a search ended with an answer that was 100 % wide, and did not say what took the time.
    #[test]
    fn the_objective_that_takes_the_time_is_named() {
        let slow = CapacitySettings { from: 20.0, ..settings(Nanos::from_secs(60)) };
        let spec = ThresholdSpec::new(Threshold::parse("p99<60ms").unwrap());
        let objective = Objective::new(&spec, &Outline::default()).unwrap();
        let search = CapacitySearch::new(slow, vec![objective]);
        let answer =
            Answer { low: Some(7.5), high: Some(20.0), confirmed: true, from_above: None, end: End::Unclear };
        let told = search.costliest(&answer).expect("it takes 200 s");
        assert_eq!(
            told,
            "p99<60ms takes the time: a trial that tells 1.0 % of bad requests from chance has 1,500, which \
             at 7.50/s takes 3m20s"
        );
        assert_eq!(search.costliest(&Answer { low: Some(1_000.0), ..answer.clone() }), None);
        assert_eq!(search.costliest(&Answer { end: End::Narrow, ..answer }), None);
    }
}
