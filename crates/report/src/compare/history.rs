//! One figure over many runs, and when it changed.

use std::io;

use plimsoll_statistics::change_points::{Sensitivity, change_points};
use plimsoll_statistics::judgement::{Orientation, judge};
use plimsoll_statistics::prediction::{FEWEST_PREDECESSORS, Prediction};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::comparison::{Member, Note, RunLabel, Word};
use crate::compare::measure::Measure;
use crate::contract::result::Tool;
use crate::render::layout::{Emphasis, Page, Row};
use crate::{Style, TableFormat};

/// The version of the contract of histories: raised when a field changes its meaning or goes.
pub const HISTORY_VERSION: u32 = 1;
/// Confidence of the interval in which the newest run is expected: one in a hundred runs of an unchanged
/// server lies outside it.
const CONFIDENCE: f64 = 0.99;
/// Predecessors at most from which the newest run is judged: those far away say nothing about a change now.
const MOST_PREDECESSORS: usize = 50;
/// Columns of the bar that shows a value.
const BAR: f64 = 12.0;

/// One figure over many runs, in the order of time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// Version of this contract.
    pub schema_version: u32,
    /// The program that looked.
    pub tool: Tool,
    /// The figure: as in `--metric`, with the kind of time.
    pub metric: String,
    /// Unit of the values: "ns", "per_s", "share" (of one) or "us".
    pub unit: String,
    /// Which way it should go: "lower" or "higher".
    pub better: String,
    /// The smallest relative change that counts: 0.05 is 5 %.
    pub effect: f64,
    /// Largest probability of a change that counts.
    pub p_max: f64,
    /// Remarks on the runs.
    pub notes: Vec<Note>,
    /// The newest run, judged by those before it; null if no run has the figure.
    pub newest: Option<Newest>,
    /// The runs, in the order in which they started.
    pub runs: Vec<Point>,
    /// Changes of the mean of the figure, in the order of time.
    pub changes: Vec<Change>,
}

/// One run of a history.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// The run.
    pub run: RunLabel,
    /// The figure; null if the run has none.
    pub value: Option<f64>,
    /// True if the value is only a lower bound, because of requests without an answer.
    pub at_least: bool,
    /// Reason why it was left out; null if it was not.
    pub left_out: Option<String>,
}

/// The newest run that has the figure, judged by its predecessors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Newest {
    /// Index of the run in `runs`.
    pub at: usize,
    /// Identity of the run.
    pub run_id: String,
    /// Runs before it that it is judged by: those since the last change, at most 50.
    pub predecessors: usize,
    /// Interval in which it is expected; null below 5 predecessors.
    pub expected: Option<Expected>,
    /// value / mean − 1; null without an interval, or if the mean is zero.
    pub relative: Option<f64>,
    /// "better" or "worse": outside the interval. "same": with all of the interval, it differs by less than
    /// `effect`. "undecided": anything else.
    pub verdict: Word,
}

/// Interval in which the next run is expected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Expected {
    /// Confidence of the interval: 0.99 is 99 %.
    pub confidence: f64,
    /// Mean of the predecessors.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Newest {
    /// Judges the last value by those before it. `used` has the index of each run and its value.
    fn of(
        used: &[(usize, f64)],
        runs: &[Point],
        sensitivity: Sensitivity,
        better: Orientation,
    ) -> Option<Self> {
        let (&(at, value), before) = used.split_last()?;
        let before: Vec<f64> = before.iter().map(|(_, value)| *value).collect();
        // Changes are found without the newest run, so that it is judged by runs of one kind.
        let since = change_points(&before, sensitivity).last().map_or(0, |change| change.at);
        let predecessors = &before[since.max(before.len().saturating_sub(MOST_PREDECESSORS))..];
        let prediction = Prediction::of(predecessors, CONFIDENCE);
        let change = prediction.map(|prediction| prediction.change_to(value));
        Some(Self {
            at,
            run_id: runs[at].run.id.clone(),
            predecessors: predecessors.len(),
            expected: prediction.map(|Prediction { mean, low, high }| Expected {
                confidence: CONFIDENCE,
                mean,
                low,
                high,
            }),
            relative: change.map(|change| change.estimate).filter(|relative| relative.is_finite()),
            verdict: change.map_or(Word::Undecided, |change| {
                // The interval is the test.
                judge(change, 0.0, 1.0 - CONFIDENCE, sensitivity.change_min, better).into()
            }),
        })
    }
}

/// A change of the mean.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Index in `runs` of the first run after it.
    pub at: usize,
    /// Identity of that run.
    pub run_id: String,
    /// When that run started: RFC 3339, UTC.
    pub started_at: String,
    /// Mean from the change before to this one.
    pub before: f64,
    /// Mean from this change to the next one.
    pub after: f64,
    /// after / before − 1; null if before is zero.
    pub relative: Option<f64>,
    /// Probability of Student's t-test between both sides.
    pub p: f64,
    /// "better" or "worse".
    pub verdict: Word,
}

impl History {
    /// The history of a figure over these runs, in any order. Runs without the figure are left
    /// out, and without `allow_invalid` those whose figures cannot be believed. Changes smaller than `effect`
    /// do not count.
    pub fn new(
        tool: Tool,
        mut members: Vec<Member>,
        measure: Measure,
        effect: f64,
        allow_invalid: bool,
    ) -> Self {
        members.sort_by(|a, b| {
            let key = |member: &Member| member.result.run.started_at_unix_ns;
            (key(a), &a.file).cmp(&(key(b), &b.file))
        });
        let measure = members.first().map_or(measure, |first| measure.in_model(first.result.model.kind));
        let runs: Vec<Point> = members
            .iter()
            .map(|member| {
                let value = measure.of(&member.result);
                let invalid = !member.result.verdict.valid && !allow_invalid;
                let left_out = match &value {
                    Err(reason) => Some(reason.clone()),
                    Ok(_) if invalid => {
                        Some(format!("invalid: {}", member.result.verdict.invalid_reasons.join(", ")))
                    }
                    Ok(_) => None,
                };
                let at_least = value.is_ok() && measure.is_at_least(&member.result);
                Point { run: RunLabel::new(member), value: value.ok(), at_least, left_out }
            })
            .collect();
        let used: Vec<(usize, f64)> = runs
            .iter()
            .enumerate()
            .filter(|(_, point)| point.left_out.is_none())
            .filter_map(|(index, point)| Some((index, point.value?)))
            .collect();
        let series: Vec<f64> = used.iter().map(|(_, value)| *value).collect();
        let sensitivity = Sensitivity { change_min: effect, ..Sensitivity::default() };
        let newest = Newest::of(&used, &runs, sensitivity, measure.orientation());
        let changes = change_points(&series, sensitivity)
            .into_iter()
            .map(|point| {
                let at = used[point.at].0;
                let rises = point.after > point.before;
                let is_better = rises == (measure.orientation() == Orientation::Higher);
                Change {
                    at,
                    run_id: runs[at].run.id.clone(),
                    started_at: runs[at].run.started_at.clone(),
                    before: point.before,
                    after: point.after,
                    relative: Some(point.relative()).filter(|relative| relative.is_finite()),
                    p: point.p,
                    verdict: if is_better { Word::Better } else { Word::Worse },
                }
            })
            .collect();
        Self {
            schema_version: HISTORY_VERSION,
            tool,
            metric: measure.to_string(),
            unit: measure.unit().to_owned(),
            better: if measure.orientation() == Orientation::Higher { "higher" } else { "lower" }.to_owned(),
            effect,
            p_max: sensitivity.p_max,
            notes: notes(&members),
            newest,
            runs,
            changes,
        }
    }

    /// Writes it as text, as JSON or as a table with one line per run.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn render(&self, format: TableFormat, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
        match format {
            TableFormat::Text => out.write_all(self.page(style).as_bytes()),
            TableFormat::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                out.write_all(b"\n")
            }
            TableFormat::Csv => out.write_all(self.table().as_bytes()),
        }
    }

    fn page(&self, style: &Style) -> String {
        let mut page = Page::new(style);
        let Tool { name, version } = &self.tool;
        page.heading(&format!("{name} {version} · history of {}", self.metric));
        if let Some(newest) = &self.newest {
            let (emphasis, start) = match newest.verdict {
                Word::Better => (Emphasis::Good, "BETTER"),
                Word::Worse => (Emphasis::Bad, "WORSE"),
                Word::Same => (Emphasis::Plain, "same"),
                Word::Undecided => (Emphasis::Plain, "undecided"),
            };
            page.emphasised_field("newest", emphasis, start, &self.judged(newest));
        }
        let used = self.runs.iter().filter(|point| point.left_out.is_none()).count();
        page.field("runs", &format!("{used} of {} used, oldest first", self.runs.len()));
        if self.changes.is_empty() {
            let effect = (self.effect * 1e6).round() / 1e4;
            page.field("changes", &format!("none of {effect} % and more (p <= {})", self.p_max));
        }
        let mut label = "changes";
        for change in &self.changes {
            let (emphasis, start) = match change.verdict {
                Word::Better => (Emphasis::Good, "BETTER"),
                _ => (Emphasis::Bad, "WORSE"),
            };
            page.emphasised_field(label, emphasis, start, &format!(" {}", self.told(change)));
            label = "";
        }
        for note in &self.notes {
            page.emphasised_field("", Emphasis::Doubtful, "warning", &format!(": {}", note.text));
        }
        page.blank();
        let largest = self.runs.iter().filter_map(|point| point.value).fold(0.0, f64::max);
        let rows: Vec<Row> =
            self.runs.iter().enumerate().map(|(i, point)| self.row(i, point, largest)).collect();
        page.table(&["started", &self.metric, "", ""], &rows);
        page.finish()
    }

    /// The judgement of the newest run in words, behind the verdict.
    fn judged(&self, newest: &Newest) -> String {
        let value = self.shown_of(&self.runs[newest.at]);
        let Some(expected) = newest.expected else {
            let known = newest.predecessors;
            return format!(
                ": {value}; a judgement takes {FEWEST_PREDECESSORS} runs since the last change, there are {known}"
            );
        };
        let by = newest.relative.map_or(String::new(), |by| format!(" by {:+.1} %", by * 100.0));
        let by = if matches!(newest.verdict, Word::Better | Word::Worse) { by } else { String::new() };
        let (low, high) = (self.shown(Some(expected.low)), self.shown(Some(expected.high)));
        let percent = expected.confidence * 100.0;
        let runs = newest.predecessors;
        format!("{by}: {value}, expected {low} to {high} ({percent:.0} %) by the {runs} runs before it")
    }

    /// A change in words.
    fn told(&self, change: &Change) -> String {
        let by = change.relative.map_or("from zero".to_owned(), |by| format!("by {:+.1} %", by * 100.0));
        let (before, after) = (self.shown(Some(change.before)), self.shown(Some(change.after)));
        let p = if change.p < 0.001 { "p below 0.001".to_owned() } else { format!("p {:.3}", change.p) };
        format!("{by} from the run of {} on: {before} to {after}, {p}", change.started_at)
    }

    fn shown(&self, value: Option<f64>) -> String {
        let measure: Option<Measure> = self.metric.parse().ok();
        value.zip(measure).map_or("-".to_owned(), |(value, measure)| measure.show(value))
    }

    /// The figure of a run, with the sign of a lower bound.
    fn shown_of(&self, point: &Point) -> String {
        format!("{}{}", if point.at_least { "≥ " } else { "" }, self.shown(point.value))
    }

    fn row(&self, index: usize, point: &Point, largest: f64) -> Row {
        let share = point.value.filter(|_| largest > 0.0).map_or(0.0, |value| value / largest);
        let changed = self.changes.iter().find(|change| change.at == index);
        let mark = changed.map_or(String::new(), |change| format!("{}; ", change.verdict.name()));
        let note = match &point.left_out {
            Some(reason) => format!("left out ({reason}); {}", point.run.file),
            None => format!("{mark}{}", point.run.file),
        };
        let bar = "█".repeat((share * BAR).round() as usize);
        Row {
            label: format!("{}", index + 1),
            cells: vec![point.run.started_at.clone(), self.shown_of(point), format!("{bar:<12}")],
            note,
        }
    }

    fn table(&self) -> String {
        let mut text = String::from("started_at,run_id,value,left_out,changed,at_least\n");
        for (index, point) in self.runs.iter().enumerate() {
            let changed = self.changes.iter().find(|change| change.at == index);
            text.push_str(&format!(
                "{},{},{},{},{},{}\n",
                point.run.started_at,
                point.run.id,
                point.value.map_or(String::new(), |value| value.to_string()),
                point.left_out.is_some(),
                changed.map_or("", |change| change.verdict.name()),
                point.at_least,
            ));
        }
        text
    }
}

/// The JSON Schema of [`History`].
pub fn schema_history() -> serde_json::Value {
    schemars::schema_for!(History).to_value()
}

fn notes(members: &[Member]) -> Vec<Note> {
    let different = |of: fn(&Member) -> &str| {
        let mut values: Vec<&str> = members.iter().map(of).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    let mut notes = Vec::new();
    for (name, count) in [
        ("plans", different(|member| &member.result.run.plan_hash)),
        ("hosts", different(|member| &member.result.run.host.hostname)),
    ] {
        if count > 1 {
            let text = format!("the runs are of {count} {name}: a change may be theirs");
            notes.push(Note::new("circumstances", text));
        }
    }
    if members.iter().any(|member| member.result.model.kind != members[0].result.model.kind) {
        notes.push(Note::new("models", "some runs are open and some closed: their times differ in meaning"));
    }
    notes
}
