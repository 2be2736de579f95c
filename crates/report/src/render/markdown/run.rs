//! One run as Markdown: the headline first, then the figures, the rest folded away.

use std::fmt::Write as _;

use plimsoll_core::escape;

use super::{Table, code, details};
use crate::build::headline::Standing;
use crate::contract::result::{Finding, RunResult};
use crate::render::document::{self, Document, Fact, Line, Target, Value};
use crate::render::layout::Emphasis;

/// Writing to a string cannot fail: this says so once.
macro_rules! add {
    ($out:expr, $($part:tt)*) => { let _ = write!($out, $($part)*); };
}

/// The whole page.
pub(crate) fn run(result: &RunResult) -> String {
    let document = Document::new(result);
    let mut out = String::new();
    verdict(&mut out, &document);
    thresholds(&mut out, &document);
    let facts = document.pace.iter().chain(&document.accounts).chain(&document.records);
    out.push_str(&self::facts(facts));
    times(&mut out, &document);
    streams(&mut out, &document);
    out.push_str(&table(&document.errors, true, false));
    let steps =
        if document.steps.rows.len() > 1 { table(&document.steps, true, true) } else { String::new() };
    details(&mut out, "Steps and statuses", &(steps + &table(&document.statuses, false, true)));
    details(&mut out, "Phases", &table(&document.phases, false, true));
    details(&mut out, "How it was made", &circumstances(&document));
    out
}

fn verdict(out: &mut String, document: &Document) {
    let opening = &document.opening;
    let headline = format!("{}: {}", opening.word.text, opening.summary.text);
    add!(
        out,
        "### {}\n\n{}\n\n",
        escape::markdown(&headline),
        escape::markdown(&opening.validity_with_evidence())
    );
    document.targets.iter().for_each(|target| {
        add!(out, "**{}**  \n", escape::markdown(target));
    });
    let model: Vec<String> = document.model.iter().map(|line| escape::markdown(line)).collect();
    add!(out, "{}\n\n", model.join("  \n"));
    if !opening.ended.is_empty() {
        add!(out, "{}\n\n", escape::markdown(&document::sentence(&opening.ended)));
    }
    if !opening.shared.is_empty() {
        add!(out, "{}\n\n", escape::markdown(&document::sentence(&opening.shared)));
    }
    findings(out, document.findings().map(|(_, kind, finding)| (kind, finding)));
    if !document.hint.is_empty() {
        add!(out, "- **hint**: {}\n", escape::markdown(&document.hint));
    }
    document.notes.iter().for_each(|note| {
        add!(out, "- {}\n", escape::markdown(note));
    });
    out.push('\n');
}

/// Findings, each with the name of its kind.
pub(super) fn findings<'a>(out: &mut String, findings: impl Iterator<Item = (&'static str, &'a Finding)>) {
    for (kind, Finding { code: name, evidence, hint }) in findings {
        let hint = if hint.is_empty() { String::new() } else { format!(" ({})", escape::markdown(hint)) };
        add!(out, "- **{kind}**, {}: {}{hint}\n", code(name), escape::markdown(evidence));
    }
}

fn thresholds(out: &mut String, document: &Document) {
    if document.thresholds.is_empty() {
        return;
    }
    let mut table = Table::of_text(&["threshold", "", "observed"]);
    for threshold in &document.thresholds {
        let held = match threshold.standing {
            Standing::Holds => "✔ met",
            Standing::Fails => "✘ **not met**",
            Standing::NotShown => "not shown",
            Standing::NotJudged => "not judged",
        };
        table.row([code(&threshold.condition).as_str(), held, &escape::markdown(&threshold.seen.text())]);
    }
    out.push_str(&table.finish());
}

/// Facts as a table of two columns. A sum stands beside the name of its whole.
pub(super) fn facts<'a>(facts: impl Iterator<Item = &'a Fact>) -> String {
    let mut table = Table::of_text(&["", ""]);
    for fact in facts.filter(|fact| fact.shown.on(Target::Markdown)) {
        match &fact.value {
            Value::Line(line) => table.row([fact.label, &cell(line)]),
            Value::Identity(identity) => {
                table.row([
                    &*identity.whole.name,
                    &format!("{}{}", identity.whole.figure.text, identity.sum()),
                ]);
            }
        }
    }
    table.finish()
}

/// The text of a line, strong if something in it is not as it should be.
fn cell(line: &Line) -> String {
    let text = escape::markdown(&line.text());
    match line.emphasis() {
        Emphasis::Bad => format!("**{text}**"),
        _ => text,
    }
}

/// A table with its names in the type of code if they are those of the plan, and the other columns flush
/// right if they are figures; nothing without rows.
pub(super) fn table(table: &document::Table, is_code: bool, are_figures: bool) -> String {
    if table.is_empty() {
        return String::new();
    }
    let titles: Vec<String> = table.titles(Target::Markdown).into_iter().map(escape::markdown).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut out = if are_figures { Table::new(&titles) } else { Table::of_text(&titles) };
    for cells in table.rows(Target::Markdown) {
        let cells = cells.iter().enumerate().map(|(column, line)| {
            let note = if line.note.is_empty() { String::new() } else { format!(" ({})", line.note) };
            let text = line.text();
            match column {
                0 if is_code => code(&text),
                _ if line.quiet => text,
                _ => escape::markdown(&text) + &note,
            }
        });
        let cells: Vec<String> = cells.collect();
        out.row(cells.iter().map(String::as_str));
    }
    out.finish()
}

fn times(out: &mut String, document: &Document) {
    let times = &document.times;
    if document.has_times {
        out.push_str(&table(times, false, true));
    }
    for remark in &document.remarks {
        add!(out, "- {}\n", escape::markdown(remark));
    }
    out.push('\n');
}

fn streams(out: &mut String, document: &Document) {
    for section in document.streams.iter().chain(&document.metrics) {
        out.push_str(&facts(section.facts.iter()));
        out.push_str(&table(&section.table, false, true));
    }
}

fn circumstances(document: &Document) -> String {
    let mut table = Table::of_text(&["", ""]);
    table.row(["command", &code(&document.command)]);
    let sections = document.origin.iter().chain(&document.generator);
    let facts = sections.flat_map(|section| &section.facts);
    for fact in facts.filter(|fact| fact.shown.on(Target::Markdown)) {
        table.row([fact.label, &cell(&fact.line())]);
    }
    table.finish()
}
