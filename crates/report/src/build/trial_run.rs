//! The measurements of one of several runs: a trial of a search, or a level of a sweep.

use plimsoll_core::{Nanos, figure};
use plimsoll_histogram::Histogram;
use plimsoll_metrics::{Interval, LimitedBy, Objective, ReasonCode, RunRecord};
use plimsoll_statistics::{Outcome, SliceCount};
use serde::{Deserialize, Serialize};

use crate::contract::result::Finding;
use crate::{SavedRun, TrialFigures};

/// A server that keeps all connections of the warm-up lets nothing start.
const NOTHING_STARTED: ReasonCode = ReasonCode::TooFewSamples;

/// The measurements of a trial, or of a level of a sweep, but for the counts of its intervals.
#[derive(Clone, Debug)]
pub struct TrialRun {
    /// Record of the trial; of a fleet as far as the merged result has it.
    pub record: RunRecord,
    /// Findings about the generator.
    pub applied: Applied,
    /// Figures of the trial.
    pub figures: TrialFigures,
}

impl TrialRun {
    /// Takes the measurements from the record of a run on this machine.
    pub fn of_record(record: RunRecord) -> Self {
        let (applied, figures) = (Applied::of_record(&record), TrialFigures::new(&record));
        Self { record, applied, figures }
    }

    /// Takes the measurements from the merged result of a fleet.
    pub fn of_fleet(run: &SavedRun) -> Self {
        Self { record: run.as_record(), applied: Applied::of_saved(run), figures: run.as_trial() }
    }

    /// Requests that were due, and did not end in time.
    pub const fn unended(&self) -> u64 {
        let accounting = &self.record.accounting;
        accounting.in_flight_at_stop + accounting.never_started + accounting.unknown
    }

    /// The figures of a trial for these objectives. Connections that suffice for its rate while requests take
    /// as long as the objectives let them are no limit of it: where all of them were taken, the target takes
    /// longer.
    pub fn figures_for(&self, objectives: &[Objective]) -> TrialFigures {
        let mut figures = self.figures.clone();
        let connections = &self.record.connections;
        let longest = objectives.iter().filter_map(Objective::time_limit).max();
        let Some((longest, rate)) = longest.zip(self.record.target_per_second) else { return figures };
        let rate = rate * self.record.requests_per_arrival();
        let needed = (rate * Nanos(longest).as_secs_f64()).ceil().max(1.0);
        if figures.limited_by == LimitedBy::Generator.name()
            || (connections.limit.saturating_mul(connections.depth.max(1).into()) as f64) < needed
        {
            return figures;
        }
        let is_limit = |finding: &&mut Finding| finding.code == ReasonCode::ConnectionLimit.name();
        if let Some(limit) = figures.findings.iter_mut().find(is_limit) {
            limit.evidence = format!(
                "the target answered {} of {}: its requests held all {} connections, of which {} suffice \
                 where none takes longer than {}",
                figure::per_second(figures.achieved_per_s),
                figure::per_second(rate),
                figure::count(connections.limit),
                figure::count(needed as u64),
                figure::nanos(Nanos(longest)),
            );
            limit.hint.clear();
            if figures.limited_by == LimitedBy::ConnectionLimit.name() {
                LimitedBy::Target.name().clone_into(&mut figures.limited_by);
            }
        }
        figures
    }

    /// The outcome for the server, of a trial with these counts.
    pub fn outcome(&self, objectives: &[Objective], counts: &TrialCounts) -> Outcome {
        if !self.applied.is_whole(objectives) {
            return Outcome::NotApplied;
        }
        // The limit of connections was reached although the generator had time: responses come too slowly for
        // this rate.
        if self.applied.is_overload() {
            return Outcome::Overloaded;
        }
        // What lag alone breaks is no finding about the server, however few requests were late.
        if objectives.iter().any(|objective| objective.breaks_by_own_lag(&self.record)) {
            return Outcome::NotApplied;
        }
        Outcome::Measured(counts.with_unended(self.unended()))
    }
}

/// The findings of a trial about the generator.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Reasons why its measurement is not valid.
    codes: Vec<ReasonCode>,
    /// `true` if it had a rate.
    is_open: bool,
    start_lag: Histogram,
}

impl Applied {
    /// Takes the findings from the record of a run on this machine.
    pub fn of_record(record: &RunRecord) -> Self {
        Self {
            codes: record.verdict.reasons.iter().map(|reason| reason.code).collect(),
            is_open: record.target_per_second.is_some(),
            start_lag: record.total.start_lag.clone(),
        }
    }

    /// Takes the findings from the merged result of a fleet.
    fn of_saved(run: &SavedRun) -> Self {
        let named = |name: &String| ReasonCode::ALL.iter().find(|code| code.name() == name).copied();
        Self {
            codes: run.result.verdict.invalid_reasons.iter().filter_map(named).collect(),
            is_open: run.result.rate.target_per_s.is_some(),
            start_lag: run.total().start_lag,
        }
    }

    /// Returns `true` if the generator put the requested load on the server, as far as the server let it.
    pub fn is_whole(&self, objectives: &[Objective]) -> bool {
        let timed = || objectives.iter().filter(|objective| objective.time_limit().is_some());
        let bears_lag = timed().count() > 0 && timed().all(|objective| objective.bears(&self.start_lag));
        self.codes.iter().all(|code| match *code {
            // Our own lag makes a response longer, but cannot lift one over a limit that is far away.
            ReasonCode::StartLag if bears_lag => true,
            NOTHING_STARTED => true,
            // In the open model response times begin with the schedule, whenever the request was sent.
            ReasonCode::SendTimeUncertain => self.is_open,
            code => is_served(code),
        })
    }

    /// Returns `true` if the server was too slow for the rate and the connections.
    fn is_overload(&self) -> bool {
        self.codes.iter().any(|code| is_served(*code))
    }
}

/// Returns `true` if a reason only says that the server was too slow for the rate and the connections.
const fn is_served(code: ReasonCode) -> bool {
    matches!(code, ReasonCode::RateNotMet | ReasonCode::ConnectionLimit)
}

/// Requests of a trial in each of its intervals, and the bad ones among them, by each objective.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialCounts {
    /// The end of each interval of the load, since the start of the run.
    pub(crate) ends: Vec<Nanos>,
    /// For each objective the counts in these intervals; those of the drain are in the last one.
    #[serde(with = "pairs")]
    pub(crate) portions: Vec<Vec<SliceCount>>,
}

impl TrialCounts {
    /// Before the first interval, for so many objectives.
    pub fn new(objectives: usize) -> Self {
        Self { ends: Vec::new(), portions: vec![Vec::new(); objectives] }
    }

    /// Takes the next interval, while it still has its steps.
    pub fn note(&mut self, interval: &Interval, objectives: &[Objective]) {
        if interval.warmup {
            return;
        }
        // Requests that end after the load belong to its last arrivals.
        let is_last = interval.drain && !self.ends.is_empty();
        if !is_last {
            self.ends.push(interval.at);
        }
        for (portions, objective) in self.portions.iter_mut().zip(objectives) {
            let portion = objective.portion(&interval.steps);
            match portions.last_mut().filter(|_| is_last) {
                Some(last) => last.merge(portion),
                None => portions.push(portion),
            }
        }
    }

    /// For each objective the counts of the intervals.
    pub fn portions(&self) -> &[Vec<SliceCount>] {
        &self.portions
    }

    /// The counts, and so many requests that did not end in time: they violate every objective.
    fn with_unended(&self, unended: u64) -> Vec<Vec<SliceCount>> {
        let mut portions = self.portions.clone();
        for last in portions.iter_mut().filter_map(|portions| portions.last_mut()) {
            last.merge(SliceCount { count: unended, marked: unended });
        }
        portions
    }
}

/// Counts as pairs of numbers.
mod pairs {
    use plimsoll_statistics::SliceCount;
    use serde::{Deserialize, Deserializer, Serializer};

    type Pairs = Vec<Vec<(u64, u64)>>;

    pub(super) fn serialize<S: Serializer>(all: &[Vec<SliceCount>], to: S) -> Result<S::Ok, S::Error> {
        let pairs = |one: &Vec<SliceCount>| one.iter().map(|slice| (slice.count, slice.marked)).collect();
        serde::Serialize::serialize(&all.iter().map(pairs).collect::<Pairs>(), to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<SliceCount>>, D::Error> {
        let slice = |(count, marked)| SliceCount { count, marked };
        let all = Pairs::deserialize(from)?;
        Ok(all.into_iter().map(|one| one.into_iter().map(slice).collect()).collect())
    }
}

/// Returns the finding on a rate or a level, in one word.
pub const fn finding_name(finding: plimsoll_statistics::Finding) -> &'static str {
    use plimsoll_statistics::Finding as Found;
    match finding {
        Found::Holds => "holds",
        Found::Breaks => "breaks",
        Found::Unclear => "unclear",
        Found::NotApplied => "not_applied",
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{Model, Outline, Reason, Threshold, ThresholdSpec, Verdict};

    use super::*;

    #[test]
    fn a_lag_far_inside_the_limit_is_no_reason_to_drop_a_trial() {
        let objective = |text: &str| {
            let spec = ThresholdSpec::new(Threshold::parse(text).unwrap());
            Objective::new(&spec, &Outline::default()).unwrap()
        };
        let was_applied =
            |record: &RunRecord, objectives: &[Objective]| Applied::of_record(record).is_whole(objectives);
        let mut record = RunRecord::empty(Model::Open);
        record.total.start_lag.record_many(30_700, 1_000);
        let reason = |code| Reason { code, evidence: String::new(), hint: String::new() };
        let found = |codes: &[ReasonCode]| Verdict {
            reasons: codes.iter().map(|code| reason(*code)).collect(),
            ..Verdict::default()
        };
        let errors = "error_rate<1%";
        record.verdict = found(&[ReasonCode::StartLag]);
        assert!(was_applied(&record, &[objective("p99<25ms"), objective(errors)]));
        assert!(!was_applied(&record, &[objective("p99<300us"), objective("p50<25ms")]));
        assert!(!was_applied(&record, &[objective(errors)]) && !was_applied(&record, &[]));
        record.verdict = found(&[ReasonCode::StartLag, ReasonCode::CpuSaturation]);
        assert!(!was_applied(&record, &[objective("p99<25ms")]));
    }

    /// Symptom: "less than 900/s", from a trial whose requests started up to 25 ms late for other work on the
    /// machine.
    #[test]
    fn a_trial_that_our_own_lag_breaks_tells_nothing() {
        let spec = ThresholdSpec::new(Threshold::parse("p99<25ms").unwrap());
        let outline = Outline { steps: vec!["a".to_owned()], ..Outline::default() };
        let objectives = [Objective::new(&spec, &outline).unwrap()];
        let outcome = |lag: u64, service: u64| {
            let mut record = RunRecord::empty(Model::Open);
            record.total.start_lag.record_many(1_000, 480);
            record.total.service_time.record_many(1_000_000, 480);
            record.total.response_time.record_many(1_001_000, 480);
            record.total.start_lag.record_many(lag, 20);
            record.total.service_time.record_many(service, 20);
            record.total.response_time.record_many(lag + service, 20);
            record.steps = vec![record.total.clone()];
            let run = TrialRun::of_record(record);
            let bad = u64::from(lag + service >= 25_000_000) * 20;
            let mut counts = TrialCounts::new(1);
            counts.portions[0].push(SliceCount { count: 500, marked: bad });
            run.outcome(&objectives, &counts)
        };
        assert!(matches!(outcome(24_400_000, 1_000_000), Outcome::NotApplied));
        assert!(matches!(outcome(1_000, 30_000_000), Outcome::Measured(_)), "the server breaks it");
        assert!(matches!(outcome(24_400_000, 30_000_000), Outcome::Measured(_)), "without the lag, too");
        assert!(matches!(outcome(5_000_000, 1_000_000), Outcome::Measured(_)), "it holds");
    }

    /// Symptom: a search whose trials had 64 connections, as many as it chose, said "limited by
    /// connection_limit" and "use -c 163 or more" of a server that answered 200 of 400 requests per second.
    #[test]
    fn connections_that_suffice_for_the_objectives_are_not_blamed_for_a_slow_target() {
        let objective = |text: &str| {
            let spec = ThresholdSpec::new(Threshold::parse(text).unwrap());
            Objective::new(&spec, &Outline::default()).unwrap()
        };
        let mut record = RunRecord::empty(Model::Open);
        record.duration = Nanos::from_secs(2);
        (record.target_per_second, record.completed_in_window) = (Some(400.0), 400);
        record.connections.limit = 64;
        let limit = Reason {
            code: ReasonCode::ConnectionLimit,
            evidence: "64 connections carry at most 200/s".to_owned(),
            hint: "use -c 163 or more, or a lower rate".to_owned(),
        };
        record.verdict.reasons = vec![limit];
        record.verdict.limited_by.what = LimitedBy::ConnectionLimit;
        let of = |record: &RunRecord, text: &str| {
            TrialRun::of_record(record.clone()).figures_for(&[objective(text), objective("error_rate<1%")])
        };
        let figures = of(&record, "p99<30ms");
        assert_eq!(figures.limited_by, "target");
        assert_eq!(
            (figures.findings[0].evidence.as_str(), figures.findings[0].hint.as_str()),
            (
                "the target answered 200/s of 400/s: its requests held all 64 connections, of which 12 \
                 suffice where none takes longer than 30.0 ms",
                ""
            )
        );
        // Within 200 ms 400/s take 80 connections: these are too few, and so are any without a time.
        for text in ["p99<200ms", "timeout_rate<1%"] {
            let figures = of(&record, text);
            assert_eq!(figures.limited_by, "connection_limit", "{text}");
            assert!(figures.findings[0].hint.starts_with("use -c 163"), "{figures:?}");
        }
        // A generator that was late says nothing about the target.
        record.verdict.limited_by.what = LimitedBy::Generator;
        assert_eq!(of(&record, "p99<30ms").limited_by, "generator");
    }

    #[test]
    fn a_trial_that_was_too_far_behind_says_so_in_place_of_its_percentiles() {
        let mut record = RunRecord::empty(Model::Open);
        record.duration = Nanos::from_secs(2);
        let why = |record: &RunRecord| TrialFigures::new(record).p_missing;
        assert_eq!(why(&record)["99"], "no answers");
        record.completed_in_window = 298;
        let reason =
            "no request that was due in it was answered; 298 answers were to requests of its lead-in";
        assert_eq!((why(&record)["50"].as_str(), why(&record)["99"].as_str()), (reason, reason));
        record.total.failed = 10;
        assert_eq!(why(&record)["50"], "no request ended well");
        record.total.response_time.record_many(1_000_000, 143);
        assert_eq!(why(&record).get("50"), None);
        assert!(
            why(&record)["99"].starts_with("needs ") && why(&record)["99"].ends_with(" samples, has 143")
        );
    }
}
