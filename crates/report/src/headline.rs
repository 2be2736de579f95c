//! The headline of a result: the same rule as that of a record, see [`plimsoll_metrics::headline`].
//!
//! It is made once, from the record, and kept in the result. Where there is none any more (several results
//! become one; one of an earlier version is read; a check is made after the run), it is made from the result.

use plimsoll_core::ErrorClass;
use plimsoll_metrics::{Cause, Headline, LimitedBy, RunFacts, RunOutcome, ThresholdFacts};

use crate::layout::Emphasis;
use crate::reconciliation::Reconciliation;
use crate::result::{CauseResult, OutcomeResult, RunResult, ThresholdOutcome, VerdictResult};

impl From<RunOutcome> for OutcomeResult {
    fn from(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Pass => Self::Pass,
            RunOutcome::Fail => Self::Fail,
            RunOutcome::Done => Self::Done,
            RunOutcome::NoVerdict => Self::NoVerdict,
        }
    }
}

impl From<Cause> for CauseResult {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Thresholds => Self::Thresholds,
            Cause::NothingSucceeded => Self::NothingSucceeded,
            Cause::Inconsistent => Self::Inconsistent,
            Cause::Script => Self::Script,
            Cause::Invalid => Self::Invalid,
        }
    }
}

impl CauseResult {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thresholds => Cause::Thresholds.name(),
            Self::NothingSucceeded => Cause::NothingSucceeded.name(),
            Self::Inconsistent => Cause::Inconsistent.name(),
            Self::Script => Cause::Script.name(),
            Self::Invalid => Cause::Invalid.name(),
        }
    }
}

impl OutcomeResult {
    /// Returns the first word of a report, such as `PASS`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => RunOutcome::Pass.word(),
            Self::Fail => RunOutcome::Fail.word(),
            Self::Done => RunOutcome::Done.word(),
            Self::NoVerdict => RunOutcome::NoVerdict.word(),
        }
    }

    /// Returns the emphasis of its word. A run that is done is as good as its figures, which nobody has
    /// judged.
    pub(crate) const fn emphasis(self) -> Emphasis {
        match self {
            Self::Pass => Emphasis::Good,
            Self::Fail => Emphasis::Bad,
            Self::Done => Emphasis::Heading,
            Self::NoVerdict => Emphasis::Doubtful,
        }
    }
}

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

impl ThresholdOutcome {
    /// Returns `true` if it holds; `None` if that is not known, because the measurement is invalid.
    pub(crate) const fn holds(&self) -> Option<bool> {
        if self.proven { Some(self.passed) } else { None }
    }

    fn facts(&self, by_own_lag: bool) -> ThresholdFacts {
        let observed = self.observed.as_ref().map(|observed| observed.text.clone());
        let parts = [observed, self.reason.clone()];
        ThresholdFacts {
            text: self.heading(),
            passed: self.passed,
            failed_by_answers: self.proven && !self.passed,
            shown: !self.passed && self.reason.is_none(),
            seen: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            by_own_lag,
        }
    }
}

impl RunResult {
    /// Takes over what a check after the run found: a system that does not have what it should have has
    /// failed, whatever the load came to.
    pub fn reconcile(&mut self, reconciliation: Reconciliation) {
        self.reconciliation = Some(reconciliation);
        let facts = self.facts();
        if facts.inconsistent.is_some() {
            self.set_headline(&facts);
        }
    }

    /// The same with a headline, which results of earlier versions do not have.
    pub(crate) fn with_headline(mut self) -> Self {
        if self.verdict.summary.is_empty() {
            self.restate();
        }
        self
    }

    /// Makes the headline anew, from what the result has.
    pub(crate) fn restate(&mut self) {
        let facts = self.facts();
        for (outcome, one) in self.thresholds.iter_mut().zip(&facts.thresholds) {
            outcome.proven = facts.is_proven(one);
        }
        self.set_headline(&facts);
    }

    fn set_headline(&mut self, facts: &RunFacts) {
        let Headline { outcome, cause, summary, .. } = Headline::of(facts);
        self.verdict.outcome = outcome.into();
        self.verdict.cause = cause.map(CauseResult::from);
        self.verdict.summary = summary;
    }

    /// Returns the input of the headline. A result does not record how long the generator stood still while
    /// requests waited, so `unanswered` is 0: silence proves nothing where the measurement is invalid.
    fn facts(&self) -> RunFacts {
        let accounting = &self.accounting;
        let mut errors = [0; ErrorClass::COUNT];
        for class in ErrorClass::ALL {
            errors[*class as usize] = self.errors.get(class.name()).copied().unwrap_or(0);
        }
        // A valid measurement proves everything else. Results of earlier versions say of nothing that it is
        // proven, and have no summary either.
        let knows = self.verdict.valid && !self.verdict.summary.is_empty();
        let own_lag = |one: &ThresholdOutcome| knows && !one.passed && !one.proven;
        RunFacts {
            started: accounting.started,
            ok: accounting.ok,
            failed: accounting.failed,
            errors,
            timed_out: accounting.timed_out,
            unanswered: 0,
            script_errors: errors[ErrorClass::Script as usize],
            thresholds: self.thresholds.iter().map(|one| one.facts(own_lag(one))).collect(),
            valid: self.verdict.valid,
            invalid_reasons: self.verdict.invalid_reasons.clone(),
            limited_by: LimitedBy::from_name(&self.verdict.limited_by.what).unwrap_or_default(),
            is_over: true,
            interrupted: self.run.interrupted_by_signal.is_some(),
            inconsistent: self.reconciliation.as_ref().and_then(Reconciliation::inconsistency),
        }
    }
}

/// Returns the outcome of several runs, and a line about it. A failure that one run has shown is not undone
/// by another run that shows nothing: FAIL goes before NO VERDICT.
pub(crate) fn together<'a>(runs: impl Iterator<Item = &'a RunResult>) -> (OutcomeResult, String) {
    let all: Vec<&VerdictResult> = runs.map(|run| &run.verdict).collect();
    let order = [OutcomeResult::Fail, OutcomeResult::NoVerdict, OutcomeResult::Done, OutcomeResult::Pass];
    let of = |outcome: OutcomeResult| all.iter().filter(move |verdict| verdict.outcome == outcome);
    let Some(worst) = order.into_iter().find(|outcome| of(*outcome).count() > 0) else {
        return (OutcomeResult::NoVerdict, "no run was made".to_owned());
    };
    let count = of(worst).count();
    let summary = of(worst).next().map(|verdict| verdict.summary.as_str()).unwrap_or_default();
    let which = if count == all.len() {
        format!("all {count} runs")
    } else {
        format!("{count} of {} runs", all.len())
    };
    (worst, format!("{which}: {summary}"))
}
