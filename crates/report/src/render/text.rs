//! The report for people in full, from the outcome of the run down to its cost, and the [short one](brief()).

mod brief;
pub(crate) mod comparison;
pub(crate) mod repeated;
mod searched;

use plimsoll_core::{Nanos, figure};

use crate::Style;
use crate::build::distribution::Bar;
use crate::build::headline::Standing;
use crate::contract::result::{Finding, RunResult};
use crate::render::document::times::Distribution;
use crate::render::document::{Document, Fact, Line, Section, Table, Target};
use crate::render::layout::{Emphasis, Page, Row};

/// Columns of the longest bar at most.
const BAR: usize = 40;
/// Columns that the table of times takes with a column of intervals.
const INTERVAL_WIDTH: usize = 76;

pub(crate) use brief::page as brief;
pub(crate) use searched::page as searched;

/// The whole report.
pub(crate) fn page(result: &RunResult, style: &Style) -> String {
    let document = Document::new(result);
    let mut page = Page::new(style);
    opening(&mut page, &document);
    page.blank();
    what_ran(&mut page, &document);
    verdict(&mut page, &document);
    page.blank();
    facts(&mut page, document.pace.iter().chain(&document.accounts).chain(&document.records));
    page.blank();
    times(&mut page, &document);
    distribution(&mut page, &document.distribution);
    page.blank();
    table(&mut page, &document.other_times);
    if document.steps.rows.len() > 1 {
        table(&mut page, &document.steps);
        document.step_examples.iter().for_each(|line| page.line(line));
    }
    if !document.slowest.is_empty() {
        page.heading("slowest requests");
        table(&mut page, &document.slowest);
    }
    phases(&mut page, &document.phases);
    answers(&mut page, &document);
    facts(&mut page, &document.connections);
    document.streams.iter().for_each(|streams| section(&mut page, streams));
    if !document.metrics.is_empty() {
        page.blank();
    }
    document.metrics.iter().for_each(|metrics| section(&mut page, metrics));
    document.beside.iter().for_each(|beside| section(&mut page, beside));
    document.generator.iter().for_each(|part| facts(&mut page, &part.facts));
    page.blank();
    // The last lines of a report stay visible in a terminal.
    headline(&mut page, &document);
    page.finish()
}

/// The first lines of every report: the outcome, then the validity of the measurement and the factor that
/// limited the run.
fn opening(page: &mut Page<'_>, document: &Document) {
    headline(page, document);
    let opening = &document.opening;
    if !opening.ended.is_empty() {
        page.statement(Emphasis::Doubtful, &opening.ended, "");
    }
    let emphasis = if opening.is_valid { Emphasis::Plain } else { Emphasis::Bad };
    let evidence = &opening.validity_with_evidence()[opening.validity.len()..];
    page.statement(emphasis, &opening.validity, evidence);
    if !opening.shared.is_empty() {
        page.statement(Emphasis::Doubtful, &opening.shared, "");
    }
}

/// The first line alone.
fn headline(page: &mut Page<'_>, document: &Document) {
    let opening = &document.opening;
    page.statement(Emphasis::of(opening.outcome), &opening.word.text, &format!("  {}", opening.summary.text));
}

fn what_ran(page: &mut Page<'_>, document: &Document) {
    page.heading(&format!("{} · run {}", document.tool, document.run_id));
    document.targets.iter().for_each(|target| page.field("target", target));
    let mut label = "model";
    for line in &document.model {
        page.field(label, line);
        label = "";
    }
    page.field("run", &document.circumstances);
}

/// Writes the findings about the measurement with their hints, the hint about the limit of the run, and the
/// thresholds.
fn verdict(page: &mut Page<'_>, document: &Document) {
    for (emphasis, kind, Finding { code, evidence, hint }) in document.findings() {
        page.emphasised_field(kind, emphasis, code, &format!(": {evidence}"));
        if !hint.is_empty() {
            page.field("", &format!("hint: {hint}"));
        }
    }
    if !document.hint.is_empty() {
        page.field("hint", &document.hint);
    }
    thresholds(page, document, usize::MAX);
    document.notes.iter().for_each(|note| page.field("note", note));
}

/// One line for each of the first thresholds: its outcome, and its figure. Those that do not hold come first
/// if not all of them are shown.
fn thresholds(page: &mut Page<'_>, document: &Document, most: usize) {
    let mut all: Vec<_> = document.thresholds.iter().collect();
    if most < usize::MAX {
        all.sort_by_key(|threshold| threshold.passed);
    }
    let mut label = "thresholds";
    for threshold in all.into_iter().take(most) {
        let (emphasis, word) = match threshold.standing {
            Standing::Holds => (Emphasis::Good, "PASS"),
            Standing::Fails => (Emphasis::Bad, "FAIL"),
            Standing::NotShown => (Emphasis::Doubtful, "NOT SHOWN"),
            Standing::NotJudged => (Emphasis::Doubtful, "NOT JUDGED"),
        };
        let rest = format!(" {}: {}", threshold.condition, threshold.seen.text());
        page.emphasised_field(label, emphasis, word, &rest);
        label = "";
    }
}

/// Facts, one below the other.
fn facts<'a>(page: &mut Page<'_>, facts: impl IntoIterator<Item = &'a Fact>) {
    facts.into_iter().for_each(|fact| self::fact(page, fact));
}

fn fact(page: &mut Page<'_>, fact: &Fact) {
    if fact.shown.on(Target::Text) {
        field(page, fact.label, &fact.line());
    }
}

/// A line beside its label. Emphasis is on how it begins.
fn field(page: &mut Page<'_>, label: &str, line: &Line) {
    let text = line.text();
    match line.spans.first() {
        Some(first) if first.emphasis != Emphasis::Plain => {
            page.emphasised_field(label, first.emphasis, &first.text, &text[first.text.len()..]);
        }
        _ => page.field(label, &text),
    }
}

/// A table, and an empty line; nothing without rows.
fn table(page: &mut Page<'_>, table: &Table) {
    if !table.is_empty() {
        page.table(&table.titles(Target::Text)[1..], &rows(table));
        page.blank();
    }
}

/// The rows of a table, labelled by their first cells.
fn rows(table: &Table) -> Vec<Row> {
    let row = |cells: Vec<&Line>| Row {
        label: cells.first().map_or_else(String::new, |cell| cell.text()),
        cells: cells.iter().skip(1).map(|cell| cell.text()).collect(),
        note: String::new(),
    };
    table.rows(Target::Text).map(row).collect()
}

/// The three times of the request, side by side: with the intervals of the first one where there is room.
fn times(page: &mut Page<'_>, document: &Document) {
    let (mut rows, mut titles) = (rows(&document.times), document.times.titles(Target::Text));
    if page.width() < INTERVAL_WIDTH || rows.iter().all(|row| row.cells[1].is_empty()) {
        rows.iter_mut().for_each(|row| drop(row.cells.remove(1)));
        titles.remove(2);
    }
    page.table(&titles[1..], &rows);
    document.remarks.iter().for_each(|remark| page.field("", remark));
}

/// One line per phase, whose name and length are behind its figures.
fn phases(page: &mut Page<'_>, table: &Table) {
    if table.is_empty() {
        return;
    }
    let mut rows = rows(table);
    for (number, row) in (1..).zip(&mut rows) {
        row.note = std::mem::replace(&mut row.label, format!("phase {number}"));
    }
    page.table(&table.titles(Target::Text)[1..], &rows);
    page.field("", "p50 and p99 are of the response time of requests that ended in the phase");
    page.blank();
}

/// Statuses, protocols and errors.
fn answers(page: &mut Page<'_>, document: &Document) {
    let list = |table: &Table| {
        let all = table.rows.iter().map(|row| format!("{}: {}", row.cells[0].text(), row.cells[1].text()));
        all.collect::<Vec<_>>().join(", ")
    };
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    page.field("statuses", &or_none(list(&document.statuses)));
    if !document.protocols.is_empty() {
        page.field("protocols", &list(&document.protocols));
    }
    if document.errors.is_empty() {
        page.field("errors", "none");
    }
    let mut label = "errors";
    for cells in document.errors.rows(Target::Text) {
        let [class, count, example] = [0, 1, 2].map(|column: usize| cells[column].text());
        let example = if example.is_empty() { example } else { format!(" ({example})") };
        page.emphasised_field(label, Emphasis::Bad, &class, &format!(": {count}{example}"));
        label = "";
    }
}

/// A heading, a table and facts.
fn section(page: &mut Page<'_>, section: &Section) {
    page.heading(&section.heading);
    if !section.table.columns.is_empty() {
        page.table(&section.table.titles(Target::Text)[1..], &rows(&section.table));
    }
    facts(page, &section.facts);
    page.blank();
}

/// The distribution of the time that the model is about.
fn distribution(page: &mut Page<'_>, distribution: &Distribution) {
    let Distribution { rows, largest, count, .. } = distribution;
    if rows.is_empty() {
        return;
    }
    page.blank();
    page.heading(&distribution.title());
    let labels: Vec<String> = rows.iter().map(range).collect();
    let width_of = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let label_width = width_of(&mut labels.iter().map(|label| label.chars().count()));
    let counts: Vec<String> = rows.iter().map(|row| figure::count(row.count)).collect();
    let count_width = width_of(&mut counts.iter().map(String::len));
    // Around them: an indentation of 2, three gaps of 2, and a share of up to 8 columns.
    let bar_width = page.width().saturating_sub(label_width + count_width + 16).min(BAR);
    for ((row, label), text) in rows.iter().zip(&labels).zip(&counts) {
        let bar = bar(row.count as f64 / *largest as f64, bar_width, page.unicode());
        let padding = bar_width - bar.chars().count();
        let share = figure::share(row.count as f64 / *count as f64);
        page.line(&format!(
            "  {label:>label_width$}  {bar}{:padding$}  {text:>count_width$}  {share:>8}",
            ""
        ));
    }
}

/// `1.00 ms – 1.12 ms`, and `< …` or `≥ …` at the ends of a drawing.
pub(crate) fn range(row: &Bar) -> String {
    let limit = |value: u64| figure::nanos(Nanos(value));
    match (row.from_ns, row.below_ns) {
        (0, below) => format!("< {}", limit(below)),
        (from, u64::MAX) => format!("≥ {}", limit(from)),
        (from, below) => format!("{} – {}", limit(from), limit(below)),
    }
}

/// A bar whose length is that share of the width, in eighths of a column where the terminal can; every
/// positive share has a bar.
fn bar(share: f64, width: usize, unicode: bool) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if share <= 0.0 {
        return String::new();
    }
    if !unicode {
        return "#".repeat(((share * width as f64).round() as usize).clamp(1, width));
    }
    let eighths = ((share * width as f64 * 8.0).round() as usize).clamp(1, width * 8);
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}
