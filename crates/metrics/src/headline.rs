//! The headline of a run: its outcome first, the validity of the measurement second.
//!
//! Every output begins with it: the report in each format, the live screen, the result in JSON, the exit
//! code. The rule is one table, in this order; the first line that applies decides.
//!
//! | if | outcome | cause |
//! |---|---|---|
//! | a consistency check of the system under test failed | FAIL | `inconsistent` |
//! | a script failed, or a scenario could not go on | NO VERDICT | `script` |
//! | no request was started; none has ended when a run is interrupted or goes on | NO VERDICT | `invalid` |
//! | a threshold does not hold, and that is [proven](RunFacts::is_proven) | FAIL | `thresholds` |
//! | nothing succeeded, by the target's doing | FAIL | `nothing_succeeded` |
//! | the measurement is invalid, or a threshold fails by the generator's own lag | NO VERDICT | `invalid` |
//! | the target [stopped answering](crate::Standstill), or is gone | FAIL | `stopped_answering` |
//! | a threshold is not [shown](ThresholdFacts::shown) to hold, nor not to | NO VERDICT | `not_shown` |
//! | there are thresholds | PASS | |
//! | | DONE | |
//!
//! An invalid measurement proves nothing about times and rates. It does not make up errors, though: an
//! [answer](plimsoll_core::ErrorClass::is_answer) of the target itself is a fact, whatever the generator did,
//! and so is a request without an answer that waited more than twice as long as the generator may have stood
//! still meanwhile. A limit of errors that is broken by answers alone is broken; and where nothing succeeded,
//! and most failures are such facts, the target is the cause.
//!
//! A threshold with too few samples, without data, or whose figure the requests without an answer decide, is
//! neither met nor missed: it has not been tested.
//!
//! A threshold on response times that would hold without the generator's own start lag
//! ([`OwnLag`](crate::OwnLag)) has not been shown to fail, however valid the rest is.

use plimsoll_core::{ErrorClass, ErrorCounts, Nanos, figure};

use crate::threshold::observed_words;
use crate::{
    Interval, LimitedBy, MachineInterval, ReasonCode, RunRecord, Standstill, StepRecord, ThresholdResult,
    Verdict, standstill,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a run. The names are part of the result contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OutcomeResult", description = "Outcome of a run.")]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// All thresholds hold.
    Pass,
    /// A threshold does not hold, no request succeeded, or the target stopped answering. Also if the contents
    /// of the system under test differ from what it acknowledged.
    Fail,
    /// There are no thresholds, and requests succeeded.
    Done,
    /// The run shows nothing about the target.
    #[default]
    NoVerdict,
}

impl RunOutcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Pass, Self::Fail, Self::Done, Self::NoVerdict];

    /// The name in results, in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Done => "done",
            Self::NoVerdict => "no_verdict",
        }
    }

    /// Returns the word that people read first, in capitals.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Done => "DONE",
            Self::NoVerdict => "NO VERDICT",
        }
    }
}

/// Reason why a run failed, or why there is no verdict on it. The names are part of the result contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CauseResult", description = "Why a run failed, or why there is no verdict on it.")]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A threshold does not hold.
    Thresholds,
    /// No request succeeded, and no threshold is broken by it.
    NothingSucceeded,
    /// The target gave no answer any more to the end of the run, and no threshold is broken by it.
    StoppedAnswering,
    /// The contents of the system under test differ from what it acknowledged.
    Inconsistent,
    /// A script failed, or a scenario could not go on.
    Script,
    /// The measurement is invalid, or nothing was measured.
    Invalid,
    /// The measurement shows neither that a threshold holds nor that it does not.
    NotShown,
}

impl Cause {
    /// The name in results, in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thresholds => "thresholds",
            Self::NothingSucceeded => "nothing_succeeded",
            Self::StoppedAnswering => "stopped_answering",
            Self::Inconsistent => "inconsistent",
            Self::Script => "script",
            Self::Invalid => "invalid",
            Self::NotShown => "not_shown",
        }
    }
}

/// The input of a headline, of a run that is over or still running.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// Requests started in the measured part; where there is none, those of the warm-up that it was spent
    /// waiting for.
    pub started: u64,
    /// Of these, the ones that ended well.
    pub ok: u64,
    /// The ones that failed.
    pub failed: u64,
    /// Errors of requests by class; requests that we aborted on purpose are among these, though they are no
    /// failures.
    pub errors: ErrorCounts,
    /// The ones that timed out.
    pub timed_out: u64,
    /// Requests that timed out or were in flight at the end, if the time for which the generator itself stood
    /// still cannot be the cause.
    pub unanswered: u64,
    /// Failures of scripts, with and without a request.
    pub script_errors: u64,
    /// Why an iteration could not go on, if that was no script.
    pub stuck: Option<String>,
    /// The thresholds, in the order of the plan.
    pub thresholds: Vec<ThresholdFacts>,
    /// `true` if the measurement is valid.
    pub valid: bool,
    /// The codes of the reasons why it is not.
    pub invalid_reasons: Vec<String>,
    /// The limiting factor of the run.
    pub limited_by: LimitedBy,
    /// Sentence about a target that stopped answering, or was gone; `None` if it did not.
    pub stopped: Option<String>,
    /// `true` if the run is over.
    pub is_over: bool,
    /// `true` if a signal interrupted the run.
    pub interrupted: bool,
    /// The fault that a check found in the system under test, as a sentence.
    pub inconsistent: Option<String>,
}

/// A threshold as a headline reports it. One that is [shown](Self::shown) not to hold is proven to have
/// failed if the measurement is valid, if errors that the target answered suffice for the failure, or if
/// nothing succeeded by the target's doing. A threshold that holds is proven to hold only if the measurement
/// is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdFacts {
    /// The condition and its scope: `p99<10ms of step "login"`.
    pub text: String,
    /// `true` if the threshold holds.
    pub passed: bool,
    /// `true` if errors that the target itself answered are enough to fail the threshold.
    pub failed_by_answers: bool,
    /// `true` if a figure shows that the threshold does not hold. One that is not met without it merely
    /// cannot be shown to hold, which proves nothing.
    pub shown: bool,
    /// The figure, or the reason why there is none.
    pub seen: String,
    /// `true` if it would hold without the generator's own start lag.
    pub by_own_lag: bool,
}

/// The first two lines of every report on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// The first word.
    pub outcome: RunOutcome,
    /// Reason why it is FAIL or NO VERDICT; `None` otherwise.
    pub cause: Option<Cause>,
    /// The rest of the first line, on the target: `error_rate<0.1% does not hold: 27.1 % (2 of 3 hold)`.
    pub summary: String,
    /// The second line, on the instrument: `measurement valid · limited by the target`.
    pub validity: String,
}

/// Returns the number of errors that the target itself answered.
pub(crate) fn answered(errors: &ErrorCounts) -> u64 {
    let answers = errors.iter().filter(|(class, _)| class.is_answer());
    answers.map(|(_, count)| count).fold(0, u64::saturating_add)
}

impl RunFacts {
    /// Returns the facts of a run that is over and has been judged.
    pub fn of(record: &RunRecord) -> Self {
        Self::with_verdict(record, &record.verdict)
    }

    /// Returns the facts of a run that `verdict` judges. For a run that goes on these are the facts so far,
    /// except `is_over` and the thresholds, which the caller sets.
    pub fn with_verdict(record: &RunRecord, verdict: &Verdict) -> Self {
        Self {
            started: record.accounting.started.max(record.held_up()),
            ok: record.total.ok,
            failed: record.total.failed,
            errors: record.total.errors.clone(),
            timed_out: record.total.timed_out,
            unanswered: unanswered(
                record,
                &record.total,
                record.accounting.in_flight_at_stop,
                record.held_up(),
            ),
            script_errors: record.script_errors(),
            stuck: match record.error_examples.contains_key(ErrorClass::Script.name()) {
                true => None,
                false => record.error_examples.get(ErrorClass::Scenario.name()).cloned(),
            },
            thresholds: record.thresholds.iter().map(ThresholdFacts::of).collect(),
            valid: verdict.valid,
            invalid_reasons: verdict.codes(),
            limited_by: verdict.limited_by.what,
            stopped: Standstill::at_end(record).map(|one| one.words()).or_else(|| standstill::gone(record)),
            is_over: true,
            interrupted: record.interrupted.is_some(),
            inconsistent: None,
        }
    }

    /// Adds the requests of another run of one plan. What is of one run alone stays as it is: thresholds,
    /// reasons, the limiting factor.
    pub fn add(&mut self, other: &Self) {
        let Self { started, ok, failed, errors, timed_out, unanswered, script_errors, .. } = other;
        self.started = self.started.saturating_add(*started);
        self.ok = self.ok.saturating_add(*ok);
        self.failed = self.failed.saturating_add(*failed);
        self.errors.merge_saturating(errors);
        self.timed_out = self.timed_out.saturating_add(*timed_out);
        self.unanswered = self.unanswered.saturating_add(*unanswered);
        self.script_errors = self.script_errors.saturating_add(*script_errors);
    }

    /// Returns the facts of some steps of a run that is over and has been judged, those with the numbers that
    /// `is_part` is true of: of one of several servers, say. A record does not have the number of their
    /// requests that were `started` in the measured part, nor of those of the warm-up that were `held_up`
    /// where none was. There are no thresholds.
    pub fn of_steps(record: &RunRecord, is_part: impl Fn(usize) -> bool, started: u64, held_up: u64) -> Self {
        let mut part = StepRecord::default();
        let steps = record.steps.iter().enumerate().filter(|(number, _)| is_part(*number));
        steps.for_each(|(_, step)| part.merge(step));
        let ended = part.ok + part.failed + part.timed_out;
        let held_up = if started == 0 { held_up } else { 0 };
        Self {
            started: started.max(held_up),
            ok: part.ok,
            failed: part.failed,
            errors: part.errors.clone(),
            timed_out: part.timed_out,
            unanswered: unanswered(record, &part, started.saturating_sub(ended), held_up),
            stopped: None,
            thresholds: Vec::new(),
            ..Self::of(record)
        }
    }

    /// The sentence that no request succeeded, by the target's doing, and how most failed; `None` if one
    /// did, or if the generator may be the cause.
    pub fn failure(&self) -> Option<String> {
        self.nothing_succeeded().then(|| self.failures())
    }

    const fn bad(&self) -> u64 {
        // Counts may come from a file, so they need not add up as in a run.
        self.failed.saturating_add(self.timed_out)
    }

    fn answered(&self) -> u64 {
        answered(&self.errors)
    }

    /// Returns `true` if no request succeeded and the generator cannot be the cause.
    fn nothing_succeeded(&self) -> bool {
        let waiting = self.started.saturating_sub(self.ok.saturating_add(self.bad()));
        let facts = self.answered().saturating_add(self.unanswered);
        self.started > 0
            && self.ok == 0
            && (self.valid || facts.saturating_mul(2) > self.bad().saturating_add(waiting))
    }

    /// Returns `true` if it is proven that this threshold holds, or that it does not.
    pub fn is_proven(&self, threshold: &ThresholdFacts) -> bool {
        let failed = !threshold.passed;
        if failed && (threshold.by_own_lag || !threshold.shown) {
            return false;
        }
        self.valid || (failed && (threshold.failed_by_answers || self.nothing_succeeded()))
    }

    /// The first threshold that only the generator's own lag breaks.
    fn lagging(&self) -> Option<&ThresholdFacts> {
        self.thresholds.iter().find(|threshold| !threshold.passed && threshold.by_own_lag)
    }

    /// The first threshold that is not shown to hold, nor not to.
    fn untested(&self) -> Option<&ThresholdFacts> {
        self.thresholds.iter().find(|threshold| !threshold.passed && !threshold.shown)
    }

    fn is_broken(&self, threshold: &ThresholdFacts) -> bool {
        !threshold.passed && self.is_proven(threshold)
    }

    fn outcome(&self) -> (RunOutcome, Option<Cause>) {
        let failed = |cause| (RunOutcome::Fail, Some(cause));
        let cut_short = self.interrupted || !self.is_over;
        let nothing_measured = self.started == 0 || (cut_short && self.ok == 0 && self.bad() == 0);
        if self.inconsistent.is_some() {
            failed(Cause::Inconsistent)
        } else if self.script_errors > 0 {
            (RunOutcome::NoVerdict, Some(Cause::Script))
        } else if nothing_measured {
            (RunOutcome::NoVerdict, Some(Cause::Invalid))
        } else if self.thresholds.iter().any(|threshold| self.is_broken(threshold)) {
            failed(Cause::Thresholds)
        } else if self.nothing_succeeded() {
            failed(Cause::NothingSucceeded)
        } else if !self.valid || self.lagging().is_some() {
            (RunOutcome::NoVerdict, Some(Cause::Invalid))
        } else if self.stopped.is_some() && self.is_over {
            failed(Cause::StoppedAnswering)
        } else if self.untested().is_some() {
            (RunOutcome::NoVerdict, Some(Cause::NotShown))
        } else if self.thresholds.is_empty() {
            (RunOutcome::Done, None)
        } else {
            (RunOutcome::Pass, None)
        }
    }

    fn summary(&self, outcome: RunOutcome, cause: Option<Cause>) -> String {
        match (outcome, cause) {
            (_, Some(Cause::Inconsistent)) => self.inconsistent.clone().unwrap_or_default(),
            (_, Some(Cause::Script)) => {
                let times = figure::count(self.script_errors);
                match (&self.stuck, self.script_errors) {
                    (Some(reason), 1) => format!("an iteration could not go on: {reason}"),
                    (Some(reason), _) => format!("{times} iterations could not go on: {reason}"),
                    (None, 1) => "the script failed once".to_owned(),
                    (None, _) => format!("the script failed {times} times"),
                }
            }
            (_, Some(Cause::Thresholds)) => self.broken(),
            (_, Some(Cause::NothingSucceeded)) => self.failures(),
            (_, Some(Cause::StoppedAnswering)) => self.stopped.clone().unwrap_or_default(),
            (_, Some(Cause::Invalid)) => self.unproven(),
            (_, Some(Cause::NotShown)) => self.undecided(),
            (RunOutcome::Pass, _) => format!("{}{}{}", self.held(), self.with_errors(), self.with_waiting()),
            _ => {
                let started = figure::count(self.started);
                let waiting = self.with_waiting();
                match self.bad() {
                    0 => format!("no errors in {started} requests{waiting}"),
                    bad => format!(
                        "{} errors: {} of {started} requests{}{waiting}",
                        self.error_share(),
                        figure::count(bad),
                        self.mostly(),
                    ),
                }
            }
        }
    }

    /// The first threshold that is proven not to hold, and how many do.
    fn broken(&self) -> String {
        let first = self.thresholds.iter().find(|threshold| self.is_broken(threshold));
        let Some(ThresholdFacts { text, seen, .. }) = first else { return String::new() };
        format!("{text} does not hold: {seen}{}", self.how_many_hold())
    }

    /// The first threshold that was not tested, why, and how many hold.
    fn undecided(&self) -> String {
        let Some(ThresholdFacts { text, seen, .. }) = self.untested() else { return String::new() };
        let (others, errors) = (self.how_many_hold(), self.with_errors());
        format!("{text} is not shown to hold, nor not to: {seen}{others}{errors}{}", self.with_waiting())
    }

    /// ` (1 of 2 thresholds hold)`. An invalid measurement does not show how many do.
    fn how_many_hold(&self) -> String {
        let all = self.thresholds.len();
        if all == 1 || !self.valid {
            return String::new();
        }
        let held = self.thresholds.iter().filter(|threshold| threshold.passed).count();
        format!(" ({held} of {all} thresholds hold)")
    }

    fn held(&self) -> String {
        match &self.thresholds[..] {
            [one] => format!("{} holds: {}", one.text, one.seen),
            [_, _] => "both thresholds hold".to_owned(),
            all => format!("all {} thresholds hold", all.len()),
        }
    }

    fn failures(&self) -> String {
        let started = figure::count(self.started);
        match (self.bad(), self.waiting()) {
            (0, _) => format!("none of {started} requests was answered"),
            (_, 0) => format!("none of {started} requests succeeded{}", self.mostly()),
            (bad, _) => {
                let failed = match self.most_frequent() {
                    Some((most, name)) if most >= bad => format!("{} {name}", figure::count(bad)),
                    _ => format!("{} errors{}", figure::count(bad), self.mostly()),
                };
                format!("none of {started} requests succeeded: {failed}{}", self.with_waiting())
            }
        }
    }

    fn unproven(&self) -> String {
        if self.started == 0 {
            return "no request was started".to_owned();
        }
        if self.ok == 0 && self.bad() == 0 {
            return "no request had ended".to_owned();
        }
        let proves = if self.thresholds.is_empty() { "" } else { ", and proves nothing about thresholds" };
        if let Some(ThresholdFacts { text, seen, .. }) = self.lagging() {
            let errors = self.with_errors();
            return format!(
                "{text} is not judged: {seen}, and without the generator's own lag it holds{errors}"
            );
        }
        format!("the measurement is invalid{proves}{}", self.with_errors())
    }

    fn with_errors(&self) -> String {
        if self.bad() == 0 { String::new() } else { format!("; {} errors", self.error_share()) }
    }

    /// Requests without an answer at the end.
    fn waiting(&self) -> u64 {
        let aborted = self.errors[ErrorClass::AbortedByUs];
        let ended = self.ok.saturating_add(self.bad()).saturating_add(aborted);
        if self.is_over { self.started.saturating_sub(ended) } else { 0 }
    }

    fn with_waiting(&self) -> String {
        match self.waiting() {
            0 => String::new(),
            waiting => format!(", {} without an answer at the end", figure::count(waiting)),
        }
    }

    /// As the threshold `error_rate` has it: of what ended, and of what has no answer at the end.
    fn error_share(&self) -> String {
        let aborted = self.errors[ErrorClass::AbortedByUs];
        let ended = self.ok.saturating_add(self.bad()).saturating_add(aborted);
        let whole = ended.saturating_add(self.waiting());
        figure::share(self.bad() as f64 / whole.max(1) as f64)
    }

    /// The most frequent kind of failure: `, most of them status_5xx`.
    fn mostly(&self) -> String {
        let Some((most, name)) = self.most_frequent() else { return String::new() };
        match (most, self.bad()) {
            (0, _) => String::new(),
            (1, 1) => format!(", {name}"),
            (most, bad) => format!(", {} {name}", of_them(most, bad)),
        }
    }

    /// The number of failures of the most frequent kind, and the name of that kind.
    fn most_frequent(&self) -> Option<(u64, &'static str)> {
        let classes = self.errors.iter().filter(|(class, _)| *class != ErrorClass::AbortedByUs);
        let classes = classes.map(|(class, count)| (count, class.name()));
        classes.chain([(self.timed_out, "timed out")]).max_by_key(|(count, _)| *count)
    }
}

/// The part of several failures that is of the most frequent kind: `all of them`, `most of them`, or their
/// number where that is not more than half.
pub(crate) fn of_them(most: u64, all: u64) -> String {
    match (most, all) {
        (2, 2) => "both of them".to_owned(),
        _ if most >= all => "all of them".to_owned(),
        _ if most > all / 2 => "most of them".to_owned(),
        _ => format!("{} of them", figure::count(most)),
    }
}

/// The second line: whether the measurement is valid, by the codes of the reasons why not, and what limited
/// it.
pub fn validity(valid: bool, reasons: &[String], limited_by: LimitedBy) -> String {
    let limit = limited_by.words();
    if valid {
        return format!("measurement valid · {limit}");
    }
    let reasons: Vec<String> = reasons.iter().map(|reason| reason.replace('_', " ")).collect();
    let colon = if reasons.is_empty() { "" } else { ": " };
    format!("measurement INVALID{colon}{} · {limit}", reasons.join(", "))
}

/// Requests of a run, or of the steps in `part`, without an answer of which the generator was ready to take
/// one for more than half of the time. `in_flight` of them were under way at the end, and `held_up` since the
/// [warm-up](RunRecord::held_up).
fn unanswered(record: &RunRecord, part: &StepRecord, in_flight: u64, held_up: u64) -> u64 {
    if record.workers.is_empty() || record.workers.iter().any(|worker| worker.absent) {
        return 0;
    }
    let all: Vec<Lost> = (0..).zip(&record.workers).map(|(number, _)| Lost::new(record, number)).collect();
    let ready = |from: Nanos, until: Nanos, waited: Nanos| {
        all.iter().all(|lost| lost.between(from, until).0.saturating_mul(2) < waited.0)
    };
    let ready_throughout = |waited: Nanos| ready(Nanos::ZERO, Nanos::MAX, waited);
    let waited = part.censored_service.from;
    let timed_out = if ready_throughout(waited) {
        part.timed_out
    } else {
        // Each waited for this long before the interval in which it ended, or longer.
        let was_ready = |part: &&Interval| {
            !part.warmup && ready(part.at.since(part.length).since(waited), part.at, waited)
        };
        let found = record.intervals.iter().filter(was_ready).map(|part| part.timed_out);
        let found = found.fold(0, u64::saturating_add).min(record.total.timed_out);
        // Intervals have those of all steps: as many of them as the other steps have may be theirs.
        found.saturating_sub(record.total.timed_out.saturating_sub(part.timed_out))
    };
    let in_flight = match held_up {
        0 if ready_throughout(record.drain) => in_flight,
        0 => 0,
        held_up if ready_throughout(record.duration) => held_up,
        _ => 0,
    };
    timed_out.saturating_add(in_flight)
}

/// Time in which a worker could not take an answer: without a processor, or at a standstill.
struct Lost {
    /// Parts of the run, in their order: begin and end since its start, and the time that was lost in each.
    delays: Vec<[Nanos; 3]>,
    stalls: Vec<[Nanos; 3]>,
    /// Time without a processor of which no part of the run tells: it may have been at any instant.
    untold: Nanos,
}

impl Lost {
    fn new(record: &RunRecord, number: usize) -> Self {
        let worker = &record.workers[number];
        let looks = &record.machine.intervals;
        let delay = |look: &MachineInterval| look.workers.get(number).and_then(|thread| thread.run_delay);
        let delays = looks
            .iter()
            .filter_map(|look| Some([look.at.since(look.length), look.at, delay(look)?]))
            .collect();
        let told = looks.iter().filter(|look| !look.warmup).filter_map(delay);
        let told = told.fold(Nanos::ZERO, |sum, delay| sum + delay);
        let stalls = worker.stalls.iter().map(|stall| [stall.at, stall.at + stall.length, stall.length]);
        Self { delays, stalls: stalls.collect(), untold: worker.run_delay.unwrap_or_default().since(told) }
    }

    /// The most that may have been lost between two instants.
    fn between(&self, from: Nanos, until: Nanos) -> Nanos {
        let within = |parts: &[[Nanos; 3]]| {
            let first = parts.partition_point(|[_, end, _]| *end <= from);
            let parts = parts[first..].iter().take_while(|[begin, ..]| *begin < until);
            let lost =
                parts.map(|[begin, end, lost]| (*lost).min((*end).min(until).since((*begin).max(from))));
            lost.fold(Nanos::ZERO, |sum, lost| sum + lost)
        };
        within(&self.delays) + within(&self.stalls) + self.untold
    }
}

impl ThresholdFacts {
    /// Returns the facts of a threshold that was judged.
    pub fn of(result: &ThresholdResult) -> Self {
        let observed = result.observed_text();
        let observed = observed_words(observed, result.series.as_ref());
        let parts = [observed, result.unreached.clone(), result.reason.clone()];
        Self {
            text: result.spec.to_string(),
            passed: result.passed,
            failed_by_answers: result.failed_by_answers,
            shown: result.is_shown(),
            seen: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            by_own_lag: result.own_lag.is_some(),
        }
    }
}

impl Headline {
    /// The headline of a run.
    pub fn of(facts: &RunFacts) -> Self {
        let (outcome, cause) = facts.outcome();
        let is_lagging = outcome == RunOutcome::NoVerdict && facts.lagging().is_some();
        let validity = if facts.valid && is_lagging {
            // During a run the verdict does not know the thresholds.
            validity(false, &[ReasonCode::StartLag.name().to_owned()], LimitedBy::Generator)
        } else {
            validity(facts.valid, &facts.invalid_reasons, facts.limited_by)
        };
        Self { outcome, cause, summary: facts.summary(outcome, cause), validity }
    }
}
