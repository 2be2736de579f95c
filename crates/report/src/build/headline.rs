//! The headline of a result: the same rule as that of a record, see [`plimsoll_metrics::headline`].
//!
//! It is made once, from the record, and kept in the result. Where there is none any more (several results
//! become one; one of an earlier version is read; a check is made after the run), it is made from the result.

use plimsoll_core::{ErrorClass, ErrorCounts};
use plimsoll_metrics::threshold::{Operator, observed_words};
use plimsoll_metrics::{Cause, Headline, LimitedBy, RunFacts, Threshold, ThresholdFacts};

use crate::contract::reconciliation::Reconciliation;
use crate::contract::result::{OutcomeResult, RunResult, ThresholdOutcome, VerdictResult};

impl VerdictResult {
    /// The second line of a report, on the instrument.
    pub(crate) fn validity(&self) -> String {
        let limited_by = LimitedBy::from_name(&self.limited_by.what).unwrap_or_default();
        plimsoll_metrics::headline::validity(self.valid, &self.invalid_reasons, limited_by)
    }

    /// `FAIL: none of 10 requests succeeded`: the first line, where there is one line only.
    pub fn headline(&self) -> String {
        format!("{}: {}", self.outcome.word(), self.summary)
    }
}

/// A threshold after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The threshold holds.
    Holds,
    /// The threshold does not hold.
    Fails,
    /// The figures show neither.
    NotShown,
    /// The figures would decide, if the measurement could be believed.
    NotJudged,
}

impl ThresholdOutcome {
    /// Returns whether it holds, as far as that is known.
    pub(crate) const fn standing(&self) -> Standing {
        match (self.proven, self.passed, &self.reason) {
            (true, true, _) => Standing::Holds,
            (true, false, _) => Standing::Fails,
            (false, false, Some(_)) => Standing::NotShown,
            (false, ..) => Standing::NotJudged,
        }
    }

    fn facts(&self, by_own_lag: bool) -> ThresholdFacts {
        let observed = self.observed.as_ref().map(|observed| observed.text.clone());
        let observed = observed_words(observed, self.series.as_ref());
        let parts = [observed, self.unreached.clone(), self.reason.clone()];
        ThresholdFacts {
            text: self.heading(),
            passed: self.passed,
            failed_by_answers: self.proven && !self.passed,
            shown: !self.passed && (self.reason.is_none() || self.proven),
            seen: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            by_own_lag,
        }
    }
}

impl RunResult {
    /// Takes over the findings of a check after the run: a system that lacks data has failed, whatever the
    /// outcome of the load.
    pub fn reconcile(&mut self, reconciliation: Reconciliation) {
        self.reconciliation = Some(reconciliation);
        let facts = self.facts();
        if facts.inconsistent.is_some() {
            self.set_headline(&facts);
        }
    }

    /// Adds the headline if there is none, as in results of earlier versions.
    pub(crate) fn with_headline(mut self) -> Self {
        if self.verdict.summary.is_empty() {
            self.restate();
        }
        self
    }

    /// Makes the headline again, from the figures of the result.
    pub(crate) fn restate(&mut self) {
        let facts = self.facts();
        for (outcome, one) in self.thresholds.iter_mut().zip(&facts.thresholds) {
            outcome.proven = facts.is_proven(one);
        }
        self.set_headline(&facts);
    }

    fn set_headline(&mut self, facts: &RunFacts) {
        let Headline { outcome, cause, summary, .. } = Headline::of(facts);
        self.verdict.outcome = outcome;
        self.verdict.cause = cause;
        self.verdict.summary = summary;
    }

    /// Returns `true` if the target stopped answering, as the record showed.
    fn stopped_answering(&self) -> bool {
        self.verdict.cause == Some(Cause::StoppedAnswering)
    }

    /// Returns the input of the headline. A result does not record how long the generator stood still while
    /// requests waited, so `unanswered` is 0: silence proves nothing where the measurement is invalid.
    fn facts(&self) -> RunFacts {
        let accounting = &self.accounting;
        let known = |(name, count): (&String, &u64)| Some((ErrorClass::read(name).ok()?, *count));
        let errors: ErrorCounts = self.errors.iter().filter_map(known).collect();
        // A valid measurement proves everything else. Results of earlier versions mark nothing as proven, and
        // have no summary either.
        let knows = self.verdict.valid && !self.verdict.summary.is_empty();
        let own_lag = |one: &ThresholdOutcome| knows && !one.passed && !one.proven && one.reason.is_none();
        RunFacts {
            started: accounting.started,
            ok: accounting.ok,
            failed: accounting.failed,
            script_errors: errors[ErrorClass::Script],
            errors,
            timed_out: accounting.timed_out,
            unanswered: 0,
            stuck: None,
            thresholds: self.thresholds.iter().map(|one| one.facts(own_lag(one))).collect(),
            valid: self.verdict.valid,
            invalid_reasons: self.verdict.invalid_reasons.clone(),
            limited_by: LimitedBy::from_name(&self.verdict.limited_by.what).unwrap_or_default(),
            stopped: self.stopped_answering().then(|| self.verdict.summary.clone()),
            is_over: true,
            interrupted: self.run.interrupted_by_signal.is_some(),
            inconsistent: self.reconciliation.as_ref().and_then(Reconciliation::inconsistency),
        }
    }
}

/// Returns the outcome of several runs, and a line about it. A failure that one run has shown is not undone
/// by another run that shows nothing: FAIL goes before NO VERDICT.
pub(crate) fn together<'a>(runs: impl Iterator<Item = &'a RunResult>) -> (OutcomeResult, String) {
    let runs: Vec<&RunResult> = runs.collect();
    let all: Vec<&VerdictResult> = runs.iter().map(|run| &run.verdict).collect();
    let order = [OutcomeResult::Fail, OutcomeResult::NoVerdict, OutcomeResult::Done, OutcomeResult::Pass];
    let of = |outcome: OutcomeResult| all.iter().filter(move |verdict| verdict.outcome == outcome);
    let Some(worst) = order.into_iter().find(|outcome| of(*outcome).count() > 0) else {
        return (OutcomeResult::NoVerdict, "no run was made".to_owned());
    };
    let count = of(worst).count();
    let chosen: Vec<&RunResult> = runs.iter().filter(|run| run.verdict.outcome == worst).copied().collect();
    let (summary, whose) = about(&chosen);
    let which = match (count, all.len()) {
        (2, 2) => "both runs".to_owned(),
        (count, all) if count == all => format!("all {count} runs"),
        (count, all) => format!("{count} of {all} runs"),
    };
    (worst, format!("{which}{whose}: {summary}"))
}

/// Returns a line about runs of one outcome, and whose figures it has where these are not of all of them.
fn about(runs: &[&RunResult]) -> (String, &'static str) {
    let of = |run: &RunResult| run.verdict.summary.clone();
    let first = runs.first().map(|run| of(run)).unwrap_or_default();
    if let Some(kinds) = kinds_of(runs) {
        return (kinds, "");
    }
    if let Some(sum) = sum_of(runs) {
        return (sum, "");
    }
    if runs.iter().all(|run| run.verdict.summary == first) {
        return (first, "");
    }
    worst_of(runs).map_or((first, ", the first"), |run| (of(run), ", the worst"))
}

/// Returns why runs without a verdict have none, in counts: `1 invalid, 4 too short`; `None` if all of them
/// have the same reason, or are of another outcome.
fn kinds_of(runs: &[&RunResult]) -> Option<String> {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for run in runs.iter().filter(|run| run.verdict.outcome == OutcomeResult::NoVerdict) {
        let kind = match run.verdict.cause {
            Some(Cause::Invalid) => "invalid",
            Some(Cause::NotShown) if is_too_short(run) => "too short",
            _ => "not shown",
        };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let listed = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>();
    (kinds.len() > 1).then(|| listed.join(", "))
}

/// Returns `true` if everything that a run does not show is for lack of samples.
fn is_too_short(run: &RunResult) -> bool {
    let mut unknown = run.thresholds.iter().filter(|one| one.standing() == Standing::NotShown).peekable();
    let lacks =
        |one: &ThresholdOutcome| one.reason.as_ref().is_some_and(|why| why.contains(" samples, has "));
    unknown.peek().is_some() && unknown.all(lacks)
}

/// Returns the line about the requests of these runs together; `None` if it would have the figure of a
/// threshold or another fact of one run.
fn sum_of(runs: &[&RunResult]) -> Option<String> {
    let (first, others) = runs.split_first()?;
    let is_of_requests = |run: &&RunResult| match run.verdict.cause {
        None => run.verdict.outcome == OutcomeResult::Done || run.thresholds.len() > 1,
        Some(Cause::NothingSucceeded | Cause::Invalid) => true,
        Some(_) => false,
    };
    // The line of a run that its result cannot make again has something that a sum would leave out.
    let is_whole = |run: &&RunResult| {
        let facts = run.facts();
        let lags = facts.thresholds.iter().any(|one| one.by_own_lag);
        !lags
            && run.verdict.cause == first.verdict.cause
            && Headline::of(&facts).summary == run.verdict.summary
    };
    if !runs.iter().all(|run| is_of_requests(run) && is_whole(run)) {
        return None;
    }
    let mut sum = first.facts();
    others.iter().for_each(|run| sum.add(&run.facts()));
    Some(Headline::of(&sum).summary)
}

/// The run whose only threshold came nearest to its limit, or was farthest beyond it; `None` if they do not
/// have the same one, or a run has no figure.
fn worst_of<'a>(runs: &[&'a RunResult]) -> Option<&'a RunResult> {
    let mut found: Option<(f64, &RunResult)> = None;
    let mut heading = None;
    for run in runs {
        let [threshold] = &*run.thresholds else { return None };
        let value = threshold.observed.as_ref()?.value;
        if *heading.get_or_insert_with(|| threshold.heading()) != threshold.heading() {
            return None;
        }
        let is_upper = match Threshold::of_saved(&threshold.text).ok()?.operator {
            Operator::Less | Operator::AtMost => true,
            Operator::Greater | Operator::AtLeast => false,
            Operator::Equal | Operator::Unequal => return None,
        };
        let is_worse = found.is_none_or(|(worst, _)| if is_upper { value > worst } else { value < worst });
        if is_worse {
            found = Some((value, run));
        }
    }
    found.map(|(_, run)| run)
}
