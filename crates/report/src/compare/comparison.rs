//! The comparison of two groups of runs: better, worse, same or undecided.
//!
//! The unit is the run: requests of one run depend on each other, and a test of theirs finds a difference
//! between any two runs (R13 of the rules on measuring). The statistics are in `plimsoll-statistics`; this
//! module decides which figures are compared, by which method, and whether they may be.

mod grounds;
mod judging;
mod own;

use std::io;

use plimsoll_statistics::judgement::Judgement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Style;
use crate::compare::interleaved::{Broken, InterleavedResult, Interleaving, statement};
use crate::compare::measure::Measure;
use crate::contract::result::{RunResult, Tool};
use crate::render::markdown::comparison as markdown;
use crate::render::text::comparison as text;
use crate::saved::reading::{ReadError, of_kind};

/// The version of the contract of comparisons: raised when a field changes its meaning or goes.
pub const COMPARISON_VERSION: u32 = 1;

/// A run to compare, and where its result was read.
#[derive(Clone, Debug)]
pub struct Member {
    /// The file.
    pub file: String,
    /// Result of the run.
    pub result: RunResult,
}

/// Runs that were made in the same way.
#[derive(Clone, Debug)]
pub struct Group {
    /// The user's name for it.
    pub name: String,
    /// Runs of the group, at least one.
    pub members: Vec<Member>,
}

/// Figures to compare, and how to judge them.
#[derive(Clone, Debug)]
pub struct Question {
    /// The figures to judge; empty: the usual ones.
    pub measures: Vec<Measure>,
    /// The smallest relative change that matters: 0.05 for 5 %.
    pub effect: f64,
    /// The smallest change of the share of errors that matters, as a difference: 0.001 for a tenth of a
    /// percentage point.
    pub error_effect: f64,
    /// Confidence of the intervals, and one minus the share of false alarms, in (0, 1).
    pub confidence: f64,
    /// Judge runs whose figures cannot be believed, too.
    pub allow_invalid: bool,
    /// Compare what cannot be compared, too.
    pub force: bool,
    /// Judge single runs by what they vary within themselves, although how runs vary is unknown.
    pub single_runs: bool,
}

impl Default for Question {
    fn default() -> Self {
        Self {
            measures: Vec::new(),
            effect: 0.05,
            error_effect: 0.001,
            confidence: 0.95,
            allow_invalid: false,
            force: false,
            single_runs: false,
        }
    }
}

/// Groups that say nothing about each other: every reason why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomparable(pub Vec<String>);

/// The result of comparing two groups of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of this contract.
    pub schema_version: u32,
    /// The program that compared.
    pub tool: Tool,
    /// Worse if any judged figure is worse; else undecided if any is; else better if any is; else same.
    pub verdict: Word,
    /// Reason why nothing was judged: a group has invalid runs. Null if it was.
    pub refused: Option<String>,
    /// Limits and confidence of the comparison.
    pub settings: Settings,
    /// The baseline group.
    pub a: GroupResult,
    /// The group that is compared with the baseline.
    pub b: GroupResult,
    /// Remarks on differences between the groups beside their figures, and on missing figures.
    pub notes: Vec<Note>,
    /// The figures.
    pub metrics: Vec<MetricResult>,
    /// The one run in which A and B had the load at the same time; omitted if they had runs of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleaved: Option<InterleavedResult>,
}

/// Judgement of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// There is a change for the better that may matter.
    Better,
    /// There is a change for the worse that may matter.
    Worse,
    /// If there is a change, it is too small to matter.
    Same,
    /// Both no change and one that matters agree with the runs.
    Undecided,
}

impl Comparison {
    /// Reads a comparison in JSON; `None` if it is of another kind.
    ///
    /// # Errors
    /// The text is no JSON, the result is not whole, or a later version wrote it.
    pub fn from_json(json: &[u8]) -> Result<Option<Self>, ReadError> {
        of_kind(json, COMPARISON_VERSION, |mark| mark.metrics.is_some())
    }
}

impl Word {
    /// Returns the word in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Undecided => "undecided",
        }
    }
}

impl From<Judgement> for Word {
    fn from(judgement: Judgement) -> Self {
        match judgement {
            Judgement::Better => Self::Better,
            Judgement::Worse => Self::Worse,
            Judgement::Same => Self::Same,
            Judgement::Undecided => Self::Undecided,
        }
    }
}

/// Limits and confidence of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// The smallest relative change that matters: 0.05 is 5 %.
    pub effect: f64,
    /// The smallest difference of shares of errors that matters.
    pub error_effect: f64,
    /// Confidence of the intervals; one minus the largest p_adjusted of a change.
    pub confidence: f64,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupResult {
    /// The user's name for it.
    pub name: String,
    /// Runs of the group, as they were given.
    pub runs: Vec<RunLabel>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLabel {
    /// The file of its result; empty if it was not read from one.
    pub file: String,
    /// Identity of the run.
    pub id: String,
    /// When it started: RFC 3339, UTC.
    pub started_at: String,
    /// Hash of its plan.
    pub plan_hash: String,
    /// True if its measurement is valid.
    pub valid: bool,
}

impl RunLabel {
    pub(crate) fn new(member: &Member) -> Self {
        let Member { file, result } = member;
        Self {
            file: file.clone(),
            id: result.run.id.clone(),
            started_at: result.run.started_at.clone(),
            plan_hash: result.run.plan_hash.clone(),
            valid: result.verdict.valid,
        }
    }
}

/// Something that should be known about a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Topic of the note.
    pub code: String,
    /// One sentence.
    pub text: String,
}

impl Note {
    pub(crate) fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), text: text.into() }
    }

    /// That runs were judged which prove nothing, for this reason.
    pub(crate) fn allowed(doubt: &str) -> Self {
        Self::new("allow_invalid", format!("judged all the same, as --allow-invalid asks: {doubt}"))
    }
}

/// One figure in both groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricResult {
    /// Name of the figure: as in `--metric`, with the kind of time; of a metric of the plan's own as in a
    /// threshold.
    pub metric: String,
    /// Unit of the values: "ns", "per_s", "share" (of one), "us" or "number".
    pub unit: String,
    /// Which way it should go: "lower" or "higher", and "none" of a metric of the plan's own.
    pub better: String,
    /// True if it counts for the verdict; others are shown only.
    pub judged: bool,
    /// Run by run, as in the group; null where a run has no value.
    pub a: Vec<Option<f64>>,
    /// Values of the second group, run by run; null where a run has no value.
    pub b: Vec<Option<f64>>,
    /// Median of the runs; null if one has no value.
    pub a_median: Option<f64>,
    /// Median of the runs of the second group; null if one has no value.
    pub b_median: Option<f64>,
    /// True if values of the first group are only lower bounds, because of requests without an answer.
    pub a_at_least: bool,
    /// True if values of the second group are only lower bounds, because of requests without an answer.
    pub b_at_least: bool,
    /// From a to b; null if there is nothing to compare.
    pub change: Option<ChangeResult>,
    /// Judgement of the change; null if it was not judged.
    pub verdict: Option<Word>,
    /// Reason why it is undecided or was not judged; null if the interval says it.
    pub reason: Option<String>,
}

impl MetricResult {
    /// Takes back the judgement of a time or a rate: one of the sides has no request that succeeded.
    fn without_answers(&mut self) {
        if self.metric != Measure::Errors.to_string() {
            self.verdict = None;
            self.change = None;
            self.reason = Some("one of the two has no good answer".to_owned());
        }
    }
}

/// A change from a to b.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeResult {
    /// "relative" (b / a − 1) or "absolute" (b − a, of shares).
    pub kind: String,
    /// The best estimate.
    pub estimate: f64,
    /// Lower end of its interval; null without a bound.
    pub low: Option<f64>,
    /// Upper end of its interval; null without a bound.
    pub high: Option<f64>,
    /// Probability of runs at least as different if there is no change; null if nothing can be said.
    pub p: Option<f64>,
    /// The probability `p`, raised for the other judged figures (Holm); null if the figure was not judged.
    pub p_adjusted: Option<f64>,
    /// "ranks" (Mann–Whitney and Hodges–Lehmann, from 5 runs a side), "means" (Welch, 2 to 4 runs), "equal"
    /// (every run has the same value), "slices" (one run a side: bootstrap of its slices, which knows nothing
    /// of how runs differ), "sequence" (A and B in one run: a confidence sequence, which holds at every look)
    /// or "none" (one run without slices).
    pub method: String,
}

/// One figure in both groups, for people.
#[derive(Clone, Debug)]
pub(crate) struct FigureRow {
    /// Name of the figure.
    pub(crate) label: String,
    /// Values in A and in B, the change, its interval, and the probability.
    pub(crate) cells: [String; 5],
    /// Judgement of the change; `None` if it was not judged.
    pub(crate) verdict: Option<Word>,
    /// Judgement of the change in words.
    pub(crate) word: &'static str,
}

impl Comparison {
    /// Compares `b` with `a`, without runs that the generator spoiled, if enough others are there.
    ///
    /// # Errors
    /// If they cannot be compared and `question.force` is not set.
    pub fn new(tool: Tool, a: &Group, b: &Group, question: &Question) -> Result<Self, Incomparable> {
        let mut notes = grounds::notes(a, b);
        let reasons = grounds::refusals(a, b);
        if question.force {
            notes.splice(0..0, reasons.into_iter().map(|reason| Note::new("forced", reason)));
        } else if !reasons.is_empty() {
            return Err(Incomparable(reasons));
        }
        let left = if question.allow_invalid { None } else { grounds::without_spoiled(a, b) };
        let doubt = if left.is_some() { None } else { grounds::doubt(a, b) };
        if let Some(doubt) = doubt.as_deref().filter(|_| question.allow_invalid) {
            notes.insert(0, Note::allowed(doubt));
        }
        let refused = doubt.filter(|_| !question.allow_invalid);
        let (judged_a, judged_b) = left.as_ref().map_or((a, b), |([a, b], _)| (a, b));
        let mut metrics = judging::metrics(judged_a, judged_b, question, &mut notes);
        if question.measures.is_empty() {
            metrics.extend(own::metrics(judged_a, judged_b, question));
        }
        notes.splice(0..0, left.iter().map(|(_, note)| note.clone()));
        let verdict = if refused.is_some() {
            metrics.iter_mut().for_each(|metric| metric.verdict = None);
            Word::Undecided
        } else {
            overall(metrics.iter().filter_map(|metric| metric.verdict))
        };
        let group = |group: &Group| GroupResult {
            name: group.name.clone(),
            runs: group.members.iter().map(RunLabel::new).collect(),
        };
        let Question { effect, error_effect, confidence, .. } = *question;
        Ok(Self {
            schema_version: COMPARISON_VERSION,
            tool,
            verdict,
            refused,
            settings: Settings { effect, error_effect, confidence },
            a: group(a),
            b: group(b),
            notes,
            metrics,
            interleaved: None,
        })
    }

    /// The comparison of two targets, called `names`, that had the load of one run at the same time. `run` is
    /// [that run](Interleaving::result), with identity and circumstances; `refused` says why its measurement
    /// is not valid.
    pub fn of_interleaving(
        tool: Tool,
        names: [String; 2],
        interleaving: &Interleaving,
        run: InterleavedResult,
        refused: Option<String>,
    ) -> Self {
        let question = interleaving.question();
        let is_valid = refused.is_none();
        let broken = run.broken();
        // That nothing succeeded is a fact, even if the measurement is invalid.
        let allowed = refused.as_deref().filter(|_| question.allow_invalid).map(Note::allowed);
        let refused = refused.filter(|_| !question.allow_invalid && broken.is_none());
        let mut metrics = interleaving.metrics();
        if broken.is_some() {
            metrics.iter_mut().for_each(MetricResult::without_answers);
        }
        let (own, together) = own::of_sides(&run.metrics, question.confidence);
        let together = together.then(|| {
            let text = "metrics of the plan's own are those of A and B together, in the result in JSON";
            Note::new("own_metrics", text)
        });
        let verdict = match (&refused, broken) {
            (Some(_), _) => {
                metrics.iter_mut().for_each(|metric| metric.verdict = None);
                Word::Undecided
            }
            (None, Some(Broken::B)) => Word::Worse,
            (None, Some(Broken::A | Broken::Both)) => Word::Undecided,
            (None, None) => overall(metrics.iter().filter_map(|metric| metric.verdict)),
        };
        let statement = match (&refused, run.failures()) {
            (Some(_), _) => "no verdict: the measurement is invalid".to_owned(),
            (None, Some(failures)) => failures,
            (None, None) => {
                let statement = statement(&metrics, verdict, run.after_s);
                run.breaks().map_or_else(|| statement.clone(), |breaks| format!("{breaks}; {statement}"))
            }
        };
        let shares = interleaving.shares_of_errors().filter(|_| broken.is_none());
        let notes = allowed.into_iter().chain(shares.map(|text| Note::new("errors", text)));
        let group = |name| GroupResult {
            name,
            runs: vec![RunLabel {
                file: String::new(),
                id: run.id.clone(),
                started_at: run.started_at.clone(),
                plan_hash: run.plan_hash.clone(),
                valid: is_valid,
            }],
        };
        let [a, b] = names.map(group);
        let Question { effect, error_effect, confidence, .. } = *question;
        Self {
            schema_version: COMPARISON_VERSION,
            tool,
            verdict,
            refused,
            settings: Settings { effect, error_effect, confidence },
            a,
            b,
            notes: notes.chain(together).collect(),
            metrics: metrics.into_iter().chain(own).collect(),
            interleaved: Some(InterleavedResult { statement, ..run }),
        }
    }

    /// The page for people.
    pub fn text(&self, style: &Style) -> String {
        text::page(self, style)
    }

    /// A page in Markdown, for a pull request.
    pub fn markdown(&self) -> String {
        markdown::page(self)
    }

    /// Returns the figures for people, one after the other.
    pub(crate) fn rows(&self) -> Vec<FigureRow> {
        self.metrics.iter().map(text::row).collect()
    }

    /// Returns the question in words, with the smallest changes that matter and the confidence.
    pub(crate) fn question(&self) -> String {
        text::question(self)
    }

    /// Reason why figures are undecided or not judged: the figures, and the reason.
    pub(crate) fn reasons(&self) -> Vec<(String, &str)> {
        text::reasons(self)
    }

    /// By what methods it was judged.
    pub(crate) fn methods(&self) -> String {
        text::methods(self)
    }

    /// Sides of the only run of which no request succeeded; `None` if some of each did.
    pub fn broken(&self) -> Option<Broken> {
        self.interleaved.as_ref().and_then(InterleavedResult::broken)
    }

    /// The contract, as one object.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

/// The JSON Schema of [`Comparison`].
pub fn schema_comparison() -> serde_json::Value {
    schemars::schema_for!(Comparison).to_value()
}

fn overall(words: impl Iterator<Item = Word>) -> Word {
    let words: Vec<Word> = words.collect();
    let order = [Word::Worse, Word::Undecided, Word::Better];
    let none = if words.is_empty() { Word::Undecided } else { Word::Same };
    order.into_iter().find(|word| words.contains(word)).unwrap_or(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_word_is_the_verdict() {
        use Word::{Better, Same, Undecided, Worse};
        for (words, expected) in [
            (&[Same, Better, Undecided, Worse][..], Worse),
            (&[Same, Better, Undecided], Undecided),
            (&[Same, Better], Better),
            (&[Same, Same], Same),
            (&[], Undecided),
        ] {
            assert_eq!(overall(words.iter().copied()), expected, "{words:?}");
        }
    }
}
