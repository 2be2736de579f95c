//! Common parts of searches and sweeps: their objectives, and how their results describe them.

use plimsoll_core::Nanos;
use plimsoll_driver::clock;
use plimsoll_metrics::threshold::Metric;
use plimsoll_metrics::{Histogram, Objective, ReasonCode, RunRecord, Threshold, ThresholdSpec};
use plimsoll_plan::{Plan, Problem, Problems};
use plimsoll_report::capacity::SearchResult;
use plimsoll_report::{SavedRun, rfc3339};
use plimsoll_statistics::Finding;

use crate::session::describe;

/// Objective for errors that is added if the plan has none.
const ERRORS: &str = "error_rate<1%";

/// When a search began.
pub(crate) struct Begun {
    /// On the monotonic clock.
    pub(crate) at: Nanos,
    /// The time of day, since 1970.
    unix: Nanos,
}

impl Begun {
    pub(crate) fn now() -> Self {
        Self { at: clock::monotonic(), unix: clock::unix() }
    }

    /// Identity and circumstances of a search that is over. `plan` is that of its first trial, of which the
    /// shortest takes `trial`; `precision` is the width that was aimed at, 0 if none was.
    pub(crate) fn result(
        &self,
        plan: &Plan,
        objectives: &[Objective],
        confidence: f64,
        precision: f64,
        trial: Nanos,
    ) -> SearchResult {
        SearchResult {
            id: describe::run_id(self.unix),
            name: None,
            targets: describe::targets(plan).into_iter().flat_map(|target| target.urls).collect(),
            seed: plan.seed,
            started_at: rfc3339(self.unix),
            started_at_unix_ns: self.unix.0,
            duration_s: (clock::monotonic() - self.at).as_secs_f64(),
            args: describe::redacted(std::env::args(), &plan.redaction),
            plan_hash: plan.fingerprint().to_string(),
            host: describe::host(),
            load: describe::model(plan).description.first().cloned().unwrap_or_default(),
            slo: objectives.iter().map(|objective| objective.spec.to_string()).collect(),
            confidence,
            precision,
            trial_s: trial.as_secs_f64(),
        }
    }
}

/// Returns the objectives for the server, from the thresholds of the plan.
pub(crate) fn objectives(plan: &Plan) -> Result<Vec<Objective>, Problems> {
    let mut problems = Problems::default();
    if plan.thresholds.is_empty() {
        let hint = "give one, such as --slo 'p99<10ms'";
        problems.push(Problem::new("there is nothing to search for: no --slo is given").with_hint(hint));
        return Err(problems);
    }
    let outline = plan.outline();
    let mut objectives = Vec::new();
    let errors = Threshold::parse(ERRORS).map(ThresholdSpec::new).ok();
    let about_errors = |spec: &ThresholdSpec| spec.threshold.metric == Metric::ErrorRate;
    let added = errors.filter(|_| !plan.thresholds.iter().any(about_errors));
    for spec in plan.thresholds.iter().chain(&added) {
        match Objective::new(spec, &outline) {
            Ok(objective) => {
                if objective.time_limit().is_some_and(|limit| limit >= plan.timeout.0) {
                    let message = format!("a request times out before it could break {spec}");
                    problems.push(Problem::new(message).with_hint("give --timeout a longer time"));
                }
                objectives.push(objective);
            }
            Err(hint) => {
                let message = format!("{spec} cannot be searched for");
                problems.push(Problem::new(message).with_hint(hint));
            }
        }
    }
    if problems.is_empty() { Ok(objectives) } else { Err(problems) }
}

/// A server that keeps all connections of the warm-up lets nothing start.
const NOTHING_STARTED: ReasonCode = ReasonCode::TooFewSamples;

/// The findings of a trial about the generator.
pub(crate) struct Applied {
    /// Reasons why its measurement is not valid.
    codes: Vec<ReasonCode>,
    /// `true` if it had a rate.
    is_open: bool,
    start_lag: Histogram,
}

impl Applied {
    /// Takes the findings from the record of a run on this machine.
    pub(crate) fn of_record(record: &RunRecord) -> Self {
        Self {
            codes: record.verdict.reasons.iter().map(|reason| reason.code).collect(),
            is_open: record.target_per_second.is_some(),
            start_lag: record.total.start_lag.clone(),
        }
    }

    /// Takes the findings from the merged result of a fleet.
    pub(crate) fn of_saved(run: &SavedRun) -> Self {
        let named = |name: &String| ReasonCode::ALL.iter().find(|code| code.name() == name).copied();
        Self {
            codes: run.result.verdict.invalid_reasons.iter().filter_map(named).collect(),
            is_open: run.result.rate.target_per_s.is_some(),
            start_lag: run.total().start_lag,
        }
    }

    /// Returns `true` if the generator put the requested load on the server, as far as the server let it.
    pub(crate) fn is_whole(&self, objectives: &[Objective]) -> bool {
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
    pub(crate) fn is_overload(&self) -> bool {
        self.codes.iter().any(|code| is_served(*code))
    }
}

/// Returns `true` if a reason only says that the server was too slow for the rate and the connections.
const fn is_served(code: ReasonCode) -> bool {
    matches!(code, ReasonCode::RateNotMet | ReasonCode::ConnectionLimit)
}

/// Returns the finding on a rate or a level, in one word.
pub(crate) const fn finding_name(finding: Finding) -> &'static str {
    match finding {
        Finding::Holds => "holds",
        Finding::Breaks => "breaks",
        Finding::Unclear => "unclear",
        Finding::NotApplied => "not_applied",
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{Model, Outline, Reason, Verdict};

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
        record.verdict = found(&[ReasonCode::StartLag]);
        assert!(was_applied(&record, &[objective("p99<25ms"), objective(ERRORS)]));
        assert!(!was_applied(&record, &[objective("p99<300us"), objective("p50<25ms")]));
        assert!(!was_applied(&record, &[objective(ERRORS)]) && !was_applied(&record, &[]));
        record.verdict = found(&[ReasonCode::StartLag, ReasonCode::CpuSaturation]);
        assert!(!was_applied(&record, &[objective("p99<25ms")]));
    }
}
