//! Evidence of a run: everything that its result was made of, so that others can make it again.
//!
//! A [result](crate::RunResult) is a claim. The [`Evidence`] beside it has the raw record: histograms,
//! counts, intervals, the activity of the machine, and the facts that the caller knew. [`Evidence::verify`]
//! makes the result once more from these by the rules of this program, and names every figure that does not
//! follow.

use std::collections::BTreeMap;
use std::io;

use plimsoll_metrics::{
    Accounting, ErrorExample, IterationRecord, Outline, RunRecord, StepRecord, Tally, ThresholdResult, judge,
    judge_thresholds,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::{OnceResult, RefreshResult};
use crate::reconciliation::Reconciliation;
use crate::saved::SavedRun;
use crate::saved::encoding::{broken, check_step, check_tally, compressed, decompressed, possible};
use crate::{CalibrationUse, ReadError, RunContext, RunResult};

/// The version of evidence: raised when a field changes its meaning or goes.
pub const EVIDENCE_VERSION: u32 = 3;

/// Statements that are judgements. Their rules were others in evidence of earlier versions: of percentiles
/// until 1, of what a run shows, and of who is its limit, until 2.
const JUDGED: [&str; 2] = ["/thresholds", "/verdict"];

/// Parts of a result that come from outside of the record: exporters, servers that were asked afterwards,
/// agents, faults that were injected, and notes of a workload.
const FROM_OUTSIDE: [&str; 5] = ["/exports", "/reconciliation", "/agents", "/faults", "/notes"];

/// A run with everything that its result was made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// The version of this contract.
    pub evidence_version: u32,
    /// The raw measurements.
    pub record: RunRecord,
    /// The first failed requests of the record: of all steps together, then step by step.
    examples: Vec<BTreeMap<String, ErrorExample>>,
    /// Facts that the caller knew: the machine, the calibration, the targets, the seed.
    pub context: RunContext,
    /// The names of scenarios, steps and phases.
    pub outline: Outline,
    /// The text of the plan file, credentials aside; `None` if there was none.
    pub plan: Option<String>,
    /// The result as it was reported.
    pub result: Value,
}

/// A statement of a result that does not follow from the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The place in the result, as a JSON pointer (RFC 6901), or the name of a rule about the record itself.
    pub place: String,
    /// The statement, and what follows from the record instead.
    pub reason: String,
}

/// The outcome of a verification.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The result that follows from the record.
    pub result: RunResult,
    /// Values of the result that were compared.
    pub compared: u64,
    /// Statements that do not follow; none if the evidence is sound.
    pub contradictions: Vec<Contradiction>,
    /// Statements that the record cannot decide, in words.
    pub open: Vec<String>,
}

impl Evidence {
    /// The evidence of a run that is over, before its [result](Self::of_result) is known.
    pub fn new(record: RunRecord, context: RunContext, outline: Outline, plan: Option<String>) -> Self {
        let steps = std::iter::once(&record.total).chain(&record.steps);
        Self {
            evidence_version: EVIDENCE_VERSION,
            examples: steps.map(|step| step.error_examples.clone()).collect(),
            record,
            context,
            outline,
            plan,
            result: Value::Null,
        }
    }

    /// The evidence with the result that is reported.
    ///
    /// # Errors
    /// The result has a figure that JSON cannot write.
    pub fn of_result(self, result: &RunResult) -> Result<Self, serde_json::Error> {
        Ok(Self { result: serde_json::to_value(result)?, ..self })
    }

    /// Writes it, compressed.
    ///
    /// # Errors
    /// The figures cannot be written.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        compressed(self)
    }

    /// Reads it back.
    ///
    /// # Errors
    /// It is no evidence, or of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Mark {
            evidence_version: Option<u32>,
        }
        let text = decompressed(bytes).map_err(ReadError::Broken)?;
        let mark: Mark = serde_json::from_slice(&text).map_err(ReadError::NotJson)?;
        match mark.evidence_version {
            None => return Err(ReadError::NotAResult),
            Some(found) if found > EVIDENCE_VERSION => {
                return Err(ReadError::TooNew { found, known: EVIDENCE_VERSION });
            }
            Some(_) => {}
        }
        let mut evidence: Self = serde_json::from_slice(&text).map_err(ReadError::Broken)?;
        let Self { record, examples, .. } = &mut evidence;
        check_counts(record).map_err(broken)?;
        let steps = std::iter::once(&mut record.total).chain(&mut record.steps);
        steps.zip(examples.iter()).for_each(|(step, examples)| step.error_examples.clone_from(examples));
        Ok(evidence)
    }

    /// The run, as it is saved. Its result is the one that was reported.
    ///
    /// # Errors
    /// The result has not the fields of one.
    pub fn to_saved(&self) -> Result<SavedRun, ReadError> {
        let result = serde_json::from_value(self.result.clone()).map_err(ReadError::Broken)?;
        Ok(SavedRun::new(&self.record, result, self.plan.clone()))
    }

    /// Makes the result again from the record, and compares it with the one that was reported.
    ///
    /// Results of another version of this program may use other words: of these the figures are compared,
    /// and the fields that both have.
    pub fn verify(&self) -> Verification {
        let mut contradictions = self.broken_sums();
        let mut open = Vec::new();
        let mut record = self.record.clone();
        record.thresholds = self.thresholds(&mut open);
        // As it was when the run was judged.
        let later =
            (std::mem::take(&mut record.rate_changes), record.stopped_by.take(), record.interrupted.take());
        let unmeasured = std::mem::take(&mut record.accounting.unmeasured);
        record.verdict = judge(&record);
        (record.rate_changes, record.stopped_by, record.interrupted) = later;
        record.accounting.unmeasured = unmeasured;
        let calibrated = self.context.calibration.as_ref().and_then(CalibrationUse::warning);
        let torn_down = self.context.teardown.as_ref().and_then(OnceResult::warning);
        let refreshed = self.context.refresh.as_ref().and_then(RefreshResult::warning);
        record.verdict.warnings.extend(calibrated.into_iter().chain(refreshed).chain(torn_down));
        let mut result = RunResult::new(&record, self.context.clone());
        // Answers of the servers to questions after the run: the headline follows from them.
        let asked = self.result.get("reconciliation").filter(|asked| !asked.is_null());
        if let Some(asked) = asked.and_then(|asked| Reconciliation::deserialize(asked).ok()) {
            result.reconcile(asked);
        }
        let same_rules = self.evidence_version == EVIDENCE_VERSION;
        let same_program = same_rules && self.context.tool_version == env!("CARGO_PKG_VERSION");
        let mut comparison =
            Comparing { same_program, same_rules, compared: 0, contradictions: Vec::new(), open: Vec::new() };
        match serde_json::to_value(&result) {
            Ok(follows) => comparison.compare("", Some(&self.result), Some(&follows)),
            Err(error) => contradictions.push(Contradiction {
                place: String::new(),
                reason: format!("the record has figures that no result can have: {error}"),
            }),
        }
        contradictions.append(&mut comparison.contradictions);
        open.append(&mut comparison.open);
        Verification { result, compared: comparison.compared, contradictions, open }
    }

    /// The results of the thresholds, made again where the record has their figures.
    fn thresholds(&self, open: &mut Vec<String>) -> Vec<ThresholdResult> {
        let again = |kept: &ThresholdResult| {
            if !kept.spec.is_of_record() || kept.ended_run {
                open.push(format!(
                    "threshold {}: its figure was summed up while the run went on, and is taken as recorded",
                    kept.spec
                ));
                return kept.clone();
            }
            let mut judged = judge_thresholds(std::slice::from_ref(&kept.spec), &self.outline, &self.record);
            judged.pop().unwrap_or_else(|| kept.clone())
        };
        self.record.thresholds.iter().map(again).collect()
    }

    /// Sums of the record that do not hold: a whole is the sum of its parts, and every request is accounted
    /// for.
    fn broken_sums(&self) -> Vec<Contradiction> {
        let record = &self.record;
        let mut broken = Vec::new();
        let mut check = |place: &str, holds: Result<(), String>| {
            if let Err(reason) = holds {
                broken.push(Contradiction { place: place.to_owned(), reason });
            }
        };
        check("accounting", record.accounting.check());
        check("iterations", record.iterations.check());
        let mut sum = StepRecord { name: record.total.name.clone(), ..StepRecord::default() };
        sum.scenario.clone_from(&record.total.scenario);
        record.steps.iter().for_each(|step| sum.merge(step));
        sum.error_examples.clone_from(&record.total.error_examples);
        check("steps", same("the total", "the sum of all steps", record.total == sum));
        let whole = &record.timeline;
        for (name, slices) in [
            ("slices", record.slices.iter().collect::<Vec<_>>()),
            ("timeline", whole.measured.iter().chain(&whole.drain).collect()),
        ] {
            if slices.is_empty() {
                continue;
            }
            let mut tally = Tally::default();
            slices.iter().for_each(|slice| tally.merge(&slice.total));
            let total = &record.total;
            let of_slices = [tally.ok, tally.failed, tally.timed_out, tally.bytes_sent, tally.bytes_received];
            let of_total = [total.ok, total.failed, total.timed_out, total.bytes_sent, total.bytes_received];
            check(name, same("counts of the total", "the sum of all slices", of_slices == of_total));
            let sums = tally.response_time_sum == total.response_time.exact().sum;
            check(name, same("the sum of response times", "that of all slices", sums));
        }
        let (account, total) = (&record.accounting, &record.total);
        let ended = [account.ok, account.failed, account.timed_out];
        let counts = [total.ok, total.failed, total.timed_out] == ended;
        check("accounting", same("its ended requests", "those of the steps", counts));
        broken
    }
}

fn same(one: &str, other: &str, equal: bool) -> Result<(), String> {
    if equal { Ok(()) } else { Err(format!("{one} and {other} differ")) }
}

/// Refuses a record with counts that no run can have, and whose sums could overflow.
fn check_counts(record: &RunRecord) -> Result<(), String> {
    let RunRecord { accounting, iterations, timeline, .. } = record;
    let Accounting { scheduled, started, dropped, never_started, unknown, .. } = *accounting;
    possible([scheduled, started, dropped, never_started, unknown])?;
    let Accounting { ok, failed, timed_out, aborted, in_flight_at_stop, unmeasured, .. } = *accounting;
    possible([ok, failed, timed_out, aborted, in_flight_at_stop, unmeasured])?;
    let IterationRecord { started, completed, failed, unfinished, .. } = *iterations;
    possible([started, completed, failed, unfinished])?;
    std::iter::once(&record.total).chain(&record.steps).try_for_each(check_step)?;
    let slices =
        record.slices.iter().chain(&timeline.warmup).chain(&timeline.measured).chain(&timeline.drain);
    slices.flat_map(|slice| std::iter::once(&slice.total).chain(&slice.steps)).try_for_each(check_tally)
}

/// A comparison of two results.
struct Comparing {
    /// `true` if both were made by the same version of this program: words are compared, too.
    same_program: bool,
    /// `true` if it was judged by the rules of today.
    same_rules: bool,
    compared: u64,
    contradictions: Vec<Contradiction>,
    open: Vec<String>,
}

impl Comparing {
    /// Compares the values at a place; `None` where a result has no such field.
    fn compare(&mut self, place: &str, claimed: Option<&Value>, follows: Option<&Value>) {
        if FROM_OUTSIDE.contains(&place) {
            if claimed != follows {
                self.open.push(format!("{place}: from outside of the record"));
            }
            return;
        }
        if !self.same_rules && JUDGED.contains(&place) {
            if claimed != follows {
                self.open.push(format!("{place}: it was judged by other rules when it was made"));
            }
            return;
        }
        // Figures that could say nothing are not made any more.
        if !self.same_rules && matches!(follows, None | Some(Value::Null)) && claimed != follows {
            self.open.push(format!("{place}: it is no figure of such a run any more"));
            return;
        }
        match (claimed, follows) {
            (Some(Value::Object(claimed)), Some(Value::Object(follows))) => {
                let inner = |name: &str| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                for (name, value) in claimed {
                    self.compare(&inner(name), Some(value), follows.get(name));
                }
                // A later version has more to say.
                if self.same_program {
                    for (name, value) in follows.iter().filter(|(name, _)| !claimed.contains_key(*name)) {
                        self.compare(&inner(name), None, Some(value));
                    }
                }
            }
            (Some(Value::Array(claimed)), Some(Value::Array(follows))) if claimed.len() == follows.len() => {
                for (number, (claimed, follows)) in claimed.iter().zip(follows).enumerate() {
                    self.compare(&format!("{place}/{number}"), Some(claimed), Some(follows));
                }
            }
            (Some(Value::String(claimed)), Some(Value::String(follows)))
                if !self.same_program && claimed.contains(' ') =>
            {
                self.compared += u64::from(claimed == follows);
            }
            _ => {
                self.compared += 1;
                if claimed != follows {
                    let (claimed, follows) = (shown(claimed), shown(follows));
                    let reason = format!("{claimed} is stated, and {follows} follows from the record");
                    self.contradictions.push(Contradiction { place: place.to_owned(), reason });
                }
            }
        }
    }
}

/// A value, cut short.
fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => "nothing".to_owned(),
        Some(value) => value.to_string(),
    };
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
