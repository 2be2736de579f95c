//! The report on one run as data: sections, facts, tables and findings, made once from a result.
//!
//! Text, Markdown and HTML are written from it by small renderers, so that they agree in words and figures. A
//! fact or a table says in which formats it is shown ([`Shown`]); a figure knows where its value is in the
//! result, so that the page of HTML can be held against it.

pub(crate) mod accounts;
mod answers;
mod beside;
mod generator;
pub(crate) mod metrics;
mod origin;
pub(crate) mod records;
pub(crate) mod searched;
mod slowest;
mod steps;
pub(crate) mod streams;
pub(crate) mod times;
mod verdict;
mod websocket;

use plimsoll_core::{Nanos, figure};

use self::times::Distribution;
use self::verdict::{Opening, ThresholdLine, Tile};
use crate::build::assembly;
use crate::contract::result::{Finding, RunResult};
use crate::contract::summary::{LOW_PERCENTILES, PERCENTILES, Summary};
use crate::render::layout::Emphasis;

/// Everything that is reported on a run.
pub(crate) struct Document {
    /// Name and version of the program.
    pub(crate) tool: String,
    /// The identity of the run.
    pub(crate) run_id: String,
    pub(crate) opening: Opening,
    /// One line for each target.
    pub(crate) targets: Vec<String>,
    /// The load in words.
    pub(crate) model: Vec<String>,
    /// Time, machine and program of the run, in one line.
    pub(crate) circumstances: String,
    /// Reason why the measurement is invalid.
    pub(crate) reasons: Vec<Finding>,
    pub(crate) warnings: Vec<Finding>,
    /// Advice about the limit of the run, unless a finding gives it.
    pub(crate) hint: String,
    pub(crate) thresholds: Vec<ThresholdLine>,
    pub(crate) notes: Vec<String>,
    /// The few figures that everyone asks for.
    pub(crate) tiles: Vec<Tile>,
    /// Rate, lengths, steadiness.
    pub(crate) pace: Vec<Fact>,
    /// Accounting of arrivals, requests, iterations and bytes.
    pub(crate) accounts: Vec<Fact>,
    /// Records that the requests carried, checks of the store, and faults.
    pub(crate) records: Vec<Fact>,
    /// `true` if a request ended well or timed out: else there are no response and service times.
    pub(crate) has_times: bool,
    /// The three times of the request side by side.
    pub(crate) times: Table,
    /// Sentences below that table.
    pub(crate) remarks: Vec<String>,
    pub(crate) distribution: Distribution,
    /// Times that are not of every request.
    pub(crate) other_times: Table,
    pub(crate) steps: Table,
    /// First failures by step and class, where several steps failed.
    pub(crate) step_examples: Vec<String>,
    /// The slowest requests.
    pub(crate) slowest: Table,
    pub(crate) phases: Table,
    /// Changes of the rate while the run went on.
    pub(crate) changes: Table,
    /// Stalls of the generator.
    pub(crate) stalls: Table,
    pub(crate) statuses: Table,
    pub(crate) protocols: Table,
    pub(crate) errors: Table,
    /// The sentence in the place of errors where there are none.
    pub(crate) no_errors: String,
    /// Connections, and HTTP/2 if it was spoken.
    pub(crate) connections: Vec<Fact>,
    /// Streams of events, and the tokens in them.
    pub(crate) streams: Vec<Section>,
    /// Metrics of the plan's own.
    pub(crate) metrics: Vec<Section>,
    /// A probe and slow clients beside the load.
    pub(crate) beside: Vec<Section>,
    /// The generator, its machine, and the processes that were watched.
    pub(crate) generator: Vec<Section>,
    /// Methods and origin of the result.
    pub(crate) origin: Vec<Section>,
    /// The command line.
    pub(crate) command: String,
}

impl Document {
    pub(crate) fn new(result: &RunResult) -> Self {
        let verdict = &result.verdict;
        Self {
            tool: format!("{} {}", result.tool.name, result.tool.version),
            run_id: result.run.id.clone(),
            opening: Opening::new(result),
            targets: result.run.targets.iter().map(origin::target_line).collect(),
            model: result.model.description.clone(),
            circumstances: origin::circumstances(&result.run),
            reasons: verdict.evidence.clone(),
            warnings: verdict.warnings.clone(),
            hint: verdict::hint(verdict),
            thresholds: verdict::thresholds(result),
            notes: result.notes.iter().map(|note| note.text.clone()).collect(),
            tiles: verdict::tiles(result),
            pace: accounts::pace(result),
            accounts: accounts::accounts(result),
            records: records::facts(result),
            has_times: result.response_time.count > 0 || result.service_time.count > 0,
            times: times::table(result),
            remarks: times::remarks(result),
            distribution: Distribution::new(result),
            other_times: times::others(result),
            steps: steps::steps(result),
            step_examples: steps::examples(result),
            slowest: slowest::table(result),
            phases: steps::phases(result),
            changes: steps::changes(result),
            stalls: steps::stalls(result),
            statuses: answers::statuses(result),
            protocols: answers::protocols(result),
            errors: answers::errors(result),
            no_errors: answers::no_errors(result),
            connections: answers::connections(result),
            streams: streams::sections(result),
            metrics: metrics::sections(result),
            beside: beside::sections(result),
            generator: generator::sections(result),
            origin: origin::sections(result),
            command: result.run.command_line(),
        }
    }

    /// Findings with the emphasis of their kind and its name, the reasons of an invalid measurement first.
    pub(crate) fn findings(&self) -> impl Iterator<Item = (Emphasis, &'static str, &Finding)> {
        let reasons = self.reasons.iter().map(|finding| (Emphasis::Bad, "invalid", finding));
        reasons.chain(self.warnings.iter().map(|finding| (Emphasis::Doubtful, "warning", finding)))
    }
}

/// The formats that show a part of the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shown {
    #[default]
    Everywhere,
    TextAndPage,
    MarkdownAndPage,
    Text,
    Markdown,
    Page,
    /// Empty in this result.
    Nowhere,
}

/// A format that shows parts of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Text,
    Markdown,
    Page,
}

impl Shown {
    pub(crate) const fn on(self, target: Target) -> bool {
        match self {
            Self::Everywhere => true,
            Self::TextAndPage => matches!(target, Target::Text | Target::Page),
            Self::MarkdownAndPage => matches!(target, Target::Markdown | Target::Page),
            Self::Text => matches!(target, Target::Text),
            Self::Markdown => matches!(target, Target::Markdown),
            Self::Page => matches!(target, Target::Page),
            Self::Nowhere => false,
        }
    }
}

/// The unit of a figure, by which a reader of the page's source can see how its text follows from the value
/// in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanos,
    Seconds,
    /// A whole number.
    Count,
    /// A rate.
    PerSecond,
    /// A share of one.
    Share,
    Bytes,
    /// A number without a unit that is known here.
    Number,
    /// A text as it is.
    Text,
    /// The word of an outcome.
    Outcome,
}

impl Unit {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Seconds => "s",
            Self::Count => "count",
            Self::PerSecond => "per_s",
            Self::Share => "share",
            Self::Bytes => "bytes",
            Self::Number => "number",
            Self::Text => "text",
            Self::Outcome => "outcome",
        }
    }
}

/// A piece of a line: words, or a figure with the JSON pointer (RFC 6901) of its value in the result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) emphasis: Emphasis,
    pub(crate) source: Option<(String, Unit)>,
    /// The address behind it, on pages.
    pub(crate) href: Option<String>,
}

impl Span {
    pub(crate) fn figure(text: impl Into<String>, at: impl Into<String>, unit: Unit) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Plain, source: Some((at.into(), unit)), href: None }
    }

    pub(crate) fn emphasised(emphasis: Emphasis, text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis, source: None, href: None }
    }

    /// Returns the span with this emphasis.
    pub(crate) fn with(self, emphasis: Emphasis) -> Self {
        Self { emphasis, ..self }
    }
}

/// A line of text with figures in it: a sentence, or the content of a cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
    /// A remark behind it, in small print.
    pub(crate) note: String,
    /// Beside the point: the interval of a figure.
    pub(crate) quiet: bool,
}

impl Line {
    pub(crate) fn push(&mut self, span: impl Into<Span>) {
        self.spans.push(span.into());
    }

    /// Returns the line with a remark behind it.
    pub(crate) fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Returns the line as one that is beside the point.
    pub(crate) fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The emphasis of its first emphasised piece.
    pub(crate) fn emphasis(&self) -> Emphasis {
        let mut found = self.spans.iter().map(|span| span.emphasis);
        found.find(|emphasis| *emphasis != Emphasis::Plain).unwrap_or_default()
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<Span> for Line {
    fn from(span: Span) -> Self {
        Self { spans: vec![span], ..Self::default() }
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Span::from(text).into()
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Span::from(text).into()
    }
}

/// A line of pieces.
macro_rules! line {
    ($($part:expr),+ $(,)?) => {{
        let mut line = $crate::render::document::Line::default();
        $(line.push($part);)+
        line
    }};
}
pub(crate) use line;

/// A statement on a topic.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// The topic; empty for more about the same.
    pub(crate) label: &'static str,
    pub(crate) value: Value,
    pub(crate) shown: Shown,
}

/// A sentence, or a sum.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Line(Line),
    Identity(Identity),
}

impl Fact {
    pub(crate) fn new(label: &'static str, value: impl Into<Line>) -> Self {
        Self { label, value: Value::Line(value.into()), shown: Shown::Everywhere }
    }

    pub(crate) const fn identity(label: &'static str, identity: Identity) -> Self {
        Self { label, value: Value::Identity(identity), shown: Shown::Everywhere }
    }

    /// Shows the fact in some formats only.
    pub(crate) fn on(self, shown: Shown) -> Self {
        Self { shown, ..self }
    }

    pub(crate) fn line(&self) -> Line {
        match &self.value {
            Value::Line(line) => line.clone(),
            Value::Identity(identity) => identity.line(),
        }
    }
}

/// A count that is the sum of others.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) whole: Count,
    pub(crate) parts: Vec<Count>,
}

/// A count by its key in an object of the result.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    pub(crate) name: String,
    pub(crate) figure: Span,
}

impl Identity {
    /// The identity of counts in the object at a pointer, with the emphasis of parts that are not 0.
    pub(crate) fn new(at: &str, whole: (&str, u64), parts: &[(&str, u64, Emphasis)]) -> Self {
        let part = |&(key, value, emphasis): &(&str, u64, Emphasis)| {
            let figure = count(value, format!("{at}/{key}"));
            let emphasis = if value == 0 { Emphasis::Plain } else { emphasis };
            Count { name: key.replace('_', " "), figure: figure.with(emphasis) }
        };
        let whole = part(&(whole.0, whole.1, Emphasis::Plain));
        Self { whole, parts: parts.iter().map(part).collect() }
    }

    /// `started 5 = ok 4 + failed 1`
    fn line(&self) -> Line {
        line![format!("{} ", self.whole.name), self.whole.figure.clone(), self.sum()]
    }

    /// ` = ok 4 + failed 1`
    pub(crate) fn sum(&self) -> String {
        let parts = self.parts.iter().map(|part| format!("{} {}", part.name, part.figure.text));
        format!(" = {}", parts.collect::<Vec<_>>().join(" + "))
    }
}

/// A table: a row for each of several things, whose name is the first cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// A remark below it.
    pub(crate) hint: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) shown: Shown,
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Line>,
    pub(crate) shown: Shown,
}

impl Table {
    pub(crate) fn new<'a>(
        caption: impl Into<String>,
        columns: impl IntoIterator<Item = (&'a str, Shown)>,
        rows: impl IntoIterator<Item = Vec<Line>>,
    ) -> Self {
        let column = |(title, shown): (&str, Shown)| Column { title: title.to_owned(), shown };
        Self {
            caption: caption.into(),
            columns: columns.into_iter().map(column).collect(),
            rows: rows.into_iter().map(|cells| Row { cells, shown: Shown::Everywhere }).collect(),
            hint: String::new(),
        }
    }

    /// The first rows of a table of things that may be many; the result in JSON has all of them.
    pub(crate) fn of_first(mut self, most: usize) -> Self {
        if self.rows.len() > most {
            self.hint = format!("and {} more, in the result in JSON", self.rows.len() - most);
            self.rows.truncate(most);
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The titles of the columns that a format shows.
    pub(crate) fn titles(&self, target: Target) -> Vec<&str> {
        let shown = self.columns.iter().filter(|column| column.shown.on(target));
        shown.map(|column| column.title.as_str()).collect()
    }

    /// The rows that a format shows, with the cells of these columns.
    pub(crate) fn rows(&self, target: Target) -> impl Iterator<Item = Vec<&Line>> {
        self.rows.iter().filter(move |row| row.shown.on(target)).map(move |row| {
            let cells = row.cells.iter().zip(&self.columns);
            cells.filter(|(_, column)| column.shown.on(target)).map(|(cell, _)| cell).collect()
        })
    }
}

/// Facts under a heading, with a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) table: Table,
    pub(crate) facts: Vec<Fact>,
}

/// A pointer to a key of a result, with the escapes of RFC 6901.
pub(crate) fn pointer(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
}

pub(crate) fn count(value: u64, at: impl Into<String>) -> Span {
    Span::figure(figure::count(value), at, Unit::Count)
}

pub(crate) fn nanos(value: u64, at: impl Into<String>) -> Span {
    Span::figure(figure::nanos(Nanos(value)), at, Unit::Nanos)
}

pub(crate) fn bytes(value: u64, at: impl Into<String>) -> Span {
    Span::figure(figure::bytes(value), at, Unit::Bytes)
}

pub(crate) fn share(value: f64, at: impl Into<String>) -> Span {
    Span::figure(figure::share(value), at, Unit::Share)
}

pub(crate) fn words(text: impl Into<String>, at: impl Into<String>) -> Span {
    Span::figure(text, at, Unit::Text)
}

pub(crate) fn per_second(value: Option<f64>, at: impl Into<String>) -> Span {
    Span::figure(value.map_or("-".to_owned(), figure::per_second), at, Unit::PerSecond)
}

/// A length in seconds.
pub(crate) fn length(value: f64, at: impl Into<String>) -> Span {
    let text = if value == 0.0 { "0 s".to_owned() } else { seconds(value) };
    Span::figure(text, at, Unit::Seconds)
}

/// A percentile, by its name in `p`, or `min`, `mean`, `stdev`, `within_stdev` or `max`, of the summary
/// at this pointer.
pub(crate) fn figure_of(summary: &Summary, at: &str, name: &str) -> Span {
    if name == "within_stdev" {
        let text = summary.within_stdev.map_or("-".to_owned(), figure::share);
        return Span::figure(text, format!("{at}/{name}"), Unit::Share);
    }
    let is_percentile = PERCENTILES.iter().chain(&LOW_PERCENTILES).any(|(known, _)| *known == name);
    let key = if is_percentile { pointer(&["p", name]) } else { pointer(&[name]) };
    Span::figure(cell(summary, name), format!("{at}{key}"), Unit::Nanos)
}

/// One figure of a summary, by its name in the result.
pub(crate) fn cell(summary: &Summary, name: &str) -> String {
    let value = match name {
        "min" => summary.min,
        "mean" => summary.mean,
        "stdev" => summary.stdev,
        "max" => summary.max,
        percentile => summary.percentile(percentile),
    };
    bounded(value, summary.is_at_least(name))
}

/// A time that may be unknown, or a lower bound only.
fn bounded(value: Option<u64>, at_least: bool) -> String {
    let bound = if at_least { "≥ " } else { "" };
    value.map_or("-".to_owned(), |value| format!("{bound}{}", figure::nanos(Nanos(value))))
}

/// Seconds as a duration for people.
pub(crate) fn seconds(value: f64) -> String {
    figure::nanos(Nanos::from_secs_f64(value))
}

/// `ended early: …` as a sentence.
pub(crate) fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).chain(['.']).collect()
}

/// `name: count, name: count`
fn list(counts: &std::collections::BTreeMap<String, u64>) -> String {
    let all: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name}: {}", figure::count(*count))).collect();
    all.join(", ")
}

/// The name of a step with its scenario, if the plan names one.
fn step_name(step: &crate::contract::result::StepResult) -> String {
    let named = step.scenario != assembly::DEFAULT_SCENARIO && step.scenario != step.step;
    if named { format!("{} ▸ {}", step.scenario, step.step) } else { step.step.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_escaped() {
        assert_eq!(pointer(&["protocols", "http/1.1", "~"]), "/protocols/http~11.1/~0");
        assert_eq!(pointer(&["response_time", "p", "99.9"]), "/response_time/p/99.9");
    }

    #[test]
    fn an_identity_names_its_parts() {
        let parts = [("ok", 4_000, Emphasis::Good), ("timed_out", 0, Emphasis::Bad)];
        let identity = Identity::new("/accounting", ("started", 4_000), &parts);
        assert_eq!(
            Fact::identity("", identity.clone()).line().text(),
            "started 4,000 = ok 4,000 + timed out 0"
        );
        let figures = identity.parts.iter().map(|part| &part.figure);
        let emphases: Vec<_> = figures.map(|figure| figure.emphasis).collect();
        assert_eq!(emphases, [Emphasis::Good, Emphasis::Plain]);
    }
}
