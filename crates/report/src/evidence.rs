//! Evidence of a run: everything that its result was made of, so that others can make it again.
//!
//! A [result](crate::RunResult) is a claim. The [`Evidence`] beside it has the raw record: histograms,
//! counts, intervals, the activity of the machine, and the facts that the caller knew. [`Evidence::verify`]
//! makes the result once more from these by the rules of this program, and names every figure that does not
//! follow.

mod claims;
mod comparing;
mod counted;
mod search;
mod sums;
mod unused;

use std::collections::{BTreeMap, HashSet};
use std::io;

use plimsoll_metrics::{
    Accounting, ErrorExample, IterationRecord, Outline, RunRecord, ThresholdResult, Verdict, judge,
    judge_thresholds,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::comparing::Comparing;
pub use self::search::{Course, SEARCH_EVIDENCE_VERSION, SearchEvidence, TrialEvidence};
use crate::context::{OnceResult, RefreshResult};
use crate::reconciliation::Reconciliation;
use crate::result::Note;
use crate::saved::SavedRun;
use crate::saved::encoding::{broken, check_step, check_tally, compressed, decompressed, possible};
use crate::{CalibrationUse, ReadError, RunContext, RunResult};

/// The version of evidence: raised when a field changes its meaning or goes.
pub const EVIDENCE_VERSION: u32 = 3;

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
    /// Parts that the plan's text and the flags give again, without files, variables and secrets; `None`
    /// where that was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows_from_plan: Option<Vec<String>>,
    /// The result as it was reported.
    pub result: Value,
    /// Places at which the text that was read is not as this version writes it: fields that it does not have,
    /// or that are missing.
    #[serde(skip)]
    unread: Vec<String>,
}

/// A statement of a result that does not follow from the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The place in the result, as a JSON pointer (RFC 6901), or the name of a rule about the record itself.
    pub place: String,
    /// The statement, and what follows from the record instead.
    pub reason: String,
}

/// Reason why statements were not compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Statements that come from outside of the record: exports, agents, faults, answers of a server after
    /// the run.
    #[default]
    FromOutside,
    /// Thresholds whose figures were summed up while the run went on.
    SummedUp,
    /// Values of the record from which nothing in the result is made.
    Unused,
    /// A trial that ended before its time although its outcome was not clear: its data were used up, or a
    /// script ended it.
    Early,
    /// The plan's text, or the flags, do not give the plan again.
    Plan,
    /// The run was judged by other rules when it was made.
    OtherRules,
    /// Another version of the program made the sentences, and this one says them otherwise.
    Words,
    /// Fields that this version has, and the evidence of another one lacks.
    Missing,
    /// Fields of another version that this one does not have.
    Additional,
}

impl Why {
    /// Returns `true` if the version that made the evidence could compare them.
    pub const fn is_of_version(self) -> bool {
        matches!(self, Self::OtherRules | Self::Words | Self::Missing | Self::Additional)
    }

    /// Returns the reason in words, of values that the evidence has.
    const fn words(self) -> &'static str {
        match self {
            Self::FromOutside => "from outside of the record, and taken as recorded",
            Self::SummedUp => {
                "thresholds whose figures were summed up while the run went on, and taken as recorded"
            }
            Self::Unused => "taken as recorded where they decide no figure",
            Self::Early => "trials that ended by themselves before their time",
            Self::Plan => "the plan is not given again by its text and the flags",
            Self::OtherRules => "judged by other rules when the evidence was made",
            Self::Words => "sentences in the words of another version",
            Self::Missing => "fields that this version has, and the evidence lacks",
            Self::Additional => "fields that this version does not have or read",
        }
    }
}

/// Statements that were not compared, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotCompared {
    /// Kind of the reason.
    pub why: Why,
    /// The reason in words.
    pub reason: String,
    /// Their places: those of the result as [`Contradiction::place`], others below the part of the evidence.
    pub places: Vec<String>,
    /// The value at the first place, cut short.
    pub example: String,
}

impl NotCompared {
    /// Describes it in a line with the first place: `3 not compared: from outside of the record: /faults`.
    pub fn in_words(&self) -> String {
        let place = self.places.first().map_or("", String::as_str);
        let (count, reason, example) = (self.places.len(), &self.reason, &self.example);
        let such = if count == 1 { "at" } else { "such as" };
        format!("{count} not compared: {reason}, {such} {place}: {example}")
    }
}

/// The outcome of a verification, of a run if nothing else is said.
#[derive(Clone, Debug)]
pub struct Verification<R = RunResult> {
    /// The result that follows from the record.
    pub result: R,
    /// Values that were compared.
    pub compared: u64,
    /// Statements that do not follow; none if the evidence is sound.
    pub contradictions: Vec<Contradiction>,
    /// Statements that were not compared, by the reason.
    pub open: Vec<NotCompared>,
}

impl<R> Verification<R> {
    /// Applies a function to the result.
    pub fn map<T>(self, of: impl FnOnce(R) -> T) -> Verification<T> {
        let Self { result, compared, contradictions, open } = self;
        Verification { result: of(result), compared, contradictions, open }
    }

    /// Number of statements that only the version which made the evidence could compare.
    pub fn of_other_version(&self) -> usize {
        let open = self.open.iter().filter(|open| open.why.is_of_version());
        open.map(|open| open.places.len()).sum()
    }
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
            follows_from_plan: None,
            result: Value::Null,
            unread: Vec::new(),
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
        Self::from_text(&decompressed(bytes).map_err(ReadError::Broken)?)
    }

    /// Reads the text of evidence: its bytes without the compression.
    ///
    /// # Errors
    /// It is no evidence, or of a later version.
    pub fn from_text(text: &[u8]) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Mark {
            evidence_version: Option<u32>,
        }
        let mark: Mark = serde_json::from_slice(text).map_err(ReadError::NotJson)?;
        match mark.evidence_version {
            None => return Err(ReadError::NotAResult),
            Some(found) if found > EVIDENCE_VERSION => {
                return Err(ReadError::TooNew { found, known: EVIDENCE_VERSION });
            }
            Some(_) => {}
        }
        let mut evidence: Self = serde_json::from_slice(text).map_err(ReadError::Broken)?;
        evidence.admit().map_err(broken)?;
        evidence.unread = comparing::unread(text, &evidence)?;
        Ok(evidence)
    }

    /// Refuses counts that no run can have, and gives the steps their examples.
    fn admit(&mut self) -> Result<(), String> {
        let Self { record, examples, .. } = self;
        check_counts(record)?;
        if examples.len() != record.steps.len() + 1 {
            return Err("the examples of errors are not those of the steps".to_owned());
        }
        let steps = std::iter::once(&mut record.total).chain(&mut record.steps);
        steps.zip(examples.iter()).for_each(|(step, examples)| step.error_examples.clone_from(examples));
        Ok(())
    }

    /// The run, as it is saved. Its result is the one that was reported, with a note if sentences in it are
    /// those of another version, which were not compared, or if something in it does not follow.
    ///
    /// # Errors
    /// The result has not the fields of one.
    pub fn to_saved(&self) -> Result<SavedRun, ReadError> {
        let mut result: RunResult = serde_json::from_value(self.result.clone()).map_err(ReadError::Broken)?;
        result.notes.extend(self.verify().note(&self.context.tool_version));
        Ok(SavedRun::new(&self.record, result, self.plan.clone()))
    }

    /// Makes the result again from the record, and compares it with the one that was reported.
    ///
    /// Another version of this program may say the same in other words, and have other fields. Its figures
    /// are compared, and so are texts that are copied; sentences and fields that differ are left open.
    pub fn verify(&self) -> Verification {
        let same_rules = self.evidence_version == EVIDENCE_VERSION;
        let same_program = same_rules && self.context.tool_version == env!("CARGO_PKG_VERSION");
        let mut comparison = Comparing {
            same_program,
            same_rules,
            copied: if same_program { HashSet::new() } else { self.texts() },
            compared: 0,
            contradictions: sums::broken(self),
            open: BTreeMap::new(),
        };
        if !same_rules {
            comparison.leave_open(Why::OtherRules, "evidence_version", Some(&self.evidence_version.into()));
            comparison.contradictions.extend(claims::broken(&self.result));
        }
        for place in &self.unread {
            match same_program {
                true => comparison.contradictions.push(Contradiction {
                    place: place.clone(),
                    reason: "evidence of this version has no such field here, or always has it".to_owned(),
                }),
                false => comparison.leave_open(Why::Additional, place, None),
            }
        }
        let mut record = self.record.clone();
        record.thresholds = self.thresholds(&mut comparison);
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
        comparison.made_again("", Ok(self.result.clone()), serde_json::to_value(&result));
        let json =
            |part: &RunRecord| (serde_json::to_value(&part.verdict), serde_json::to_value(&part.thresholds));
        let (claimed, follows) = (json(&self.record), json(&record));
        comparison.made_again("record/verdict", claimed.0, follows.0);
        comparison.made_again("record/thresholds", claimed.1, follows.1);
        unused::list(&mut comparison);
        let Comparing { compared, contradictions, open, .. } = comparison;
        Verification { result, compared, contradictions, open: open.into_values().collect() }
    }

    /// All texts of the evidence beside its result, but for those in which the run is judged.
    fn texts(&self) -> HashSet<String> {
        let mut record = self.record.clone();
        record.verdict = Verdict::default();
        record.thresholds.clear();
        let parts = [
            serde_json::to_value(&record),
            serde_json::to_value(&self.examples),
            serde_json::to_value(&self.context),
            serde_json::to_value(&self.outline),
        ];
        let mut found = HashSet::new();
        parts.into_iter().flatten().for_each(|part| comparing::texts(part, &mut found));
        found
    }

    /// The results of the thresholds, made again where the record has their figures.
    fn thresholds(&self, comparison: &mut Comparing) -> Vec<ThresholdResult> {
        let again = |(number, kept): (usize, &ThresholdResult)| {
            if !kept.spec.is_of_record() || kept.ended_run {
                let place = format!("record/thresholds/{number}");
                let why = if kept.spec.query().is_some() { Why::FromOutside } else { Why::SummedUp };
                comparison.leave_open(why, &place, Some(&kept.spec.to_string().into()));
                return kept.clone();
            }
            let mut judged = judge_thresholds(std::slice::from_ref(&kept.spec), &self.outline, &self.record);
            judged.pop().unwrap_or_else(|| kept.clone())
        };
        self.record.thresholds.iter().enumerate().map(again).collect()
    }
}

impl Verification {
    /// The note on a result that is shown without all of it having been compared.
    fn note(&self, version: &str) -> Option<Note> {
        let note = |code: &str, text: String| Some(Note { code: code.to_owned(), text });
        match (self.contradictions.len(), self.of_other_version()) {
            (0, 0) => None,
            (0, 1) => note(
                "not_compared",
                format!("1 statement is that of version {version}, and was not compared"),
            ),
            (0, many) => note(
                "not_compared",
                format!(
                    "{many} statements are those of version {version}, and were not compared with the record"
                ),
            ),
            (1, _) => note(
                "not_verified",
                "1 statement does not follow from the record: `plimsoll verify`".to_owned(),
            ),
            (many, _) => note(
                "not_verified",
                format!("{many} statements do not follow from the record: `plimsoll verify` names them"),
            ),
        }
    }
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
