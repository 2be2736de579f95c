//! The short report: the usual output at the end of a run, on half a screen.

use plimsoll_core::{ErrorClass, figure};
use plimsoll_metrics::ReasonCode;

use super::{facts, opening, rows, section, thresholds};
use crate::Style;
use crate::contract::result::{ModelKind, RunResult};
use crate::contract::summary::Summary;
use crate::render::document::accounts::{rate_line, resent};
use crate::render::document::metrics::in_words;
use crate::render::document::streams::missing;
use crate::render::document::times::unreached;
use crate::render::document::{Document, Fact, Target, cell, seconds};
use crate::render::format::behind_name;
use crate::render::layout::{Emphasis, Page, Row};

/// Lines of the report of a normal run at most.
const LINES: usize = 25;
/// Lines of findings from which on no further one is begun.
const FINDINGS: usize = 6;
/// Hints beside those of the findings that are shown, at most.
const HINTS: usize = 3;
/// Thresholds that have a line of their own at most.
const THRESHOLDS: usize = 3;
/// Metrics of the plan's own that have a line at most.
const METRICS: usize = 4;
/// Lines of details that are always there.
const FEWEST_DETAILS: usize = 4;
/// Targets, and lines about the model, that are named.
const NAMED: usize = 2;
/// Codes of the notes that are shown: what the counts alone do not tell.
const NOTES: [&str; 2] = ["hits", "redirects"];
/// The percentiles that are shown.
const SHOWN: [&str; 4] = ["50", "90", "99", "99.9"];

/// The whole report.
pub(crate) fn page(result: &RunResult, style: &Style) -> String {
    let document = &Document::new(result);
    let mut top = Page::new(style);
    opening(&mut top, document);
    let shown = findings(&mut top, document);
    what_ran(&mut top, document);
    top.blank();
    let mut figures = Page::new(style);
    counts(&mut figures, result);
    times(&mut figures, result);
    streams(&mut figures, document, result);
    own_metrics(&mut figures, result);
    if result.slow_clients.is_some() {
        document.beside.last().into_iter().for_each(|slow| section(&mut figures, slow));
    }
    let mut end = Page::new(style);
    end.blank();
    hints(&mut end, document, shown);
    last_line(&mut end, document);
    let (top, figures, end) = (top.finish(), figures.finish(), end.finish());
    let taken = [&top, &figures, &end].iter().map(|part| part.lines().count()).sum::<usize>();
    // An empty line before them.
    let room = LINES.saturating_sub(taken + 1).max(FEWEST_DETAILS);
    let mut details = Page::new(style);
    self::details(&mut details, result, document, room);
    [top, figures, details.finish(), end].concat()
}

/// Writes the reasons why the measurement is invalid, and the warnings, and returns how many had room.
fn findings(page: &mut Page<'_>, document: &Document) -> usize {
    let before = page.lines();
    let all = document.findings().count();
    let shown = document.findings().take_while(|(emphasis, _, found)| {
        let room = page.lines() - before < FINDINGS;
        if room {
            let code = found.code.replace('_', " ");
            page.statement(*emphasis, &format!("! {code}"), &behind_name(&code, &found.in_words()));
        }
        room
    });
    let shown = shown.count();
    if shown < all {
        page.line(&format!("  {}", more(all - shown, "finding", "findings")));
    }
    shown
}

/// Writes the hints that do not stand with a finding above, of which the first `shown` are: those of the
/// others, and the one about the limit of the run.
fn hints(page: &mut Page<'_>, document: &Document, shown: usize) {
    let with_findings: Vec<&str> =
        document.findings().take(shown).map(|(_, _, found)| found.hint.as_str()).collect();
    let mut left: Vec<&str> = Vec::new();
    let others = document.findings().skip(shown).map(|(_, _, found)| found.hint.as_str());
    for hint in others.chain([document.hint.as_str()]) {
        if !hint.is_empty() && !with_findings.contains(&hint) && !left.contains(&hint) {
            left.push(hint);
        }
    }
    for hint in left.iter().take(HINTS) {
        page.statement(Emphasis::Heading, "hint", &format!(": {hint}"));
    }
    if left.len() > HINTS {
        page.line(&more(left.len() - HINTS, "hint", "hints"));
    }
}

fn what_ran(page: &mut Page<'_>, document: &Document) {
    let Document { targets, model, .. } = document;
    targets.iter().take(NAMED).for_each(|target| page.statement(Emphasis::Plain, target, ""));
    if targets.len() > NAMED {
        page.line(&more(targets.len() - NAMED, "target", "targets"));
    }
    page.statement(Emphasis::Plain, &model[..model.len().min(NAMED)].join("; "), "");
}

/// The first metrics of the plan's own, each in a line.
fn own_metrics(page: &mut Page<'_>, result: &RunResult) {
    for metric in result.metrics.iter().take(METRICS) {
        let unit = metric.unit.as_ref().map_or(String::new(), |unit| format!(" ({unit})"));
        page.statement(
            Emphasis::Heading,
            &format!("{}{unit}", metric.name),
            &format!(": {}", in_words(metric)),
        );
    }
    if result.metrics.len() > METRICS {
        page.line(&more(result.metrics.len() - METRICS, "metric", "metrics"));
    }
}

/// The outcomes of requests, and their rate.
fn counts(page: &mut Page<'_>, result: &RunResult) {
    let accounting = &result.accounting;
    let all = accounting.requests();
    let share = |part: u64| match part {
        0 => String::new(),
        part => format!(" ({})", figure::share(part as f64 / all.max(1) as f64)),
    };
    let mut line = format!(
        "{} requests in {}: {} ok, {} failed{}, {} timed out{}",
        figure::count(accounting.started),
        seconds(result.duration_s),
        figure::count(accounting.ok),
        figure::count(accounting.failed),
        share(accounting.failed),
        figure::count(accounting.timed_out),
        share(accounting.timed_out),
    );
    let more = [
        (accounting.aborted, "aborted"),
        (accounting.in_flight_at_stop, "without an answer at the end"),
        (accounting.dropped, "dropped"),
        (accounting.never_started, "never started"),
        (accounting.unknown, "unknown"),
    ];
    for (count, name) in more.iter().filter(|(count, _)| *count > 0) {
        line.push_str(&format!(", {} {name}", figure::count(*count)));
    }
    page.statement(Emphasis::Heading, &line, "");
    // A warning says so itself.
    let is_warned =
        result.verdict.warnings.iter().any(|warning| warning.code == ReasonCode::SentAgain.name());
    if let Some(resent) = resent(result).filter(|_| !is_warned) {
        page.statement(Emphasis::Plain, &resent.text(), "");
    }
    page.statement(Emphasis::Plain, &rate_line(result), "");
    if let Some(statuses) = other_statuses(result) {
        page.statement(Emphasis::Plain, &statuses, "");
    }
    for note in result.notes.iter().filter(|note| NOTES.contains(&&*note.code)) {
        page.statement(Emphasis::Plain, &note.text, "");
    }
}

/// The responses by status, where not all have one of success: redirects that nobody follows are answers.
fn other_statuses(result: &RunResult) -> Option<String> {
    let is_other = |status: &String| !status.starts_with('2');
    if !result.statuses.keys().any(is_other) {
        return None;
    }
    let all = result.statuses.iter().map(|(status, count)| format!("{} × {status}", figure::count(*count)));
    Some(format!("statuses: {}", all.collect::<Vec<_>>().join(", ")))
}

/// Tokens and goodput.
fn streams(page: &mut Page<'_>, document: &Document, result: &RunResult) {
    const SHOWN: [&str; 2] = ["goodput", "tokens"];
    let all = document.streams.iter().flat_map(|section| &section.facts);
    for fact in all.filter(|fact| SHOWN.contains(&fact.label)) {
        page.statement(Emphasis::Plain, fact.label, &format!(" {}", fact.line().text()));
    }
    for text in result.event_streams.iter().flat_map(missing) {
        page.statement(Emphasis::Plain, &text, "");
    }
}

/// Percentiles of the times that the model is about.
fn times(page: &mut Page<'_>, result: &RunResult) {
    let service = ("service", &result.service_time, "from when it was sent");
    let mut all = match result.model.kind {
        // A response time counts from when a request was due, and requests of the closed model are never due.
        ModelKind::Closed => vec![service],
        ModelKind::Open => vec![("response", &result.response_time, "from when it was due"), service],
    };
    if let Some(probe) = &result.probe {
        all.push(("probe", &probe.service_time, "service time of requests beside the load"));
    }
    if let Some(lag) = &result.lag {
        all.push(("lag", lag, "from the time in a message until it came"));
    }
    if let Some(streams) = result.event_streams.as_ref().filter(|streams| streams.ttft.count > 0) {
        all.push(("TTFT", &streams.ttft, "first content of a stream, from when it was due"));
        if streams.ttfa.count > 0 {
            all.push(("TTFA", &streams.ttfa, "first content that is not reasoning, from when it was due"));
        }
        all.push(("ITL", &streams.itl, "between contents of a stream"));
        all.push(("TPOT", &streams.tpot, "per token after the first"));
    }
    let nothing = all.iter().all(|(_, summary, _)| summary.count == 0);
    if nothing {
        page.line("no response or service times: no request succeeded");
        all.clear();
    }
    // Requests that failed before they were sent, as in a script, took no time.
    let timed = result.failed_response_time.max.is_some_and(|max| max > 0);
    if (nothing || result.accounting.ok == 0) && timed {
        all.push(("failed", &result.failed_response_time, "response time of failed requests"));
    }
    if all.is_empty() {
        return;
    }
    let row = |(label, summary, note): &(&str, &Summary, &str)| Row {
        label: (*label).to_owned(),
        cells: SHOWN.iter().chain(&["max"]).map(|name| cell(summary, name)).collect(),
        note: (*note).to_owned(),
    };
    let rows: Vec<Row> = all.iter().map(row).collect();
    page.table(&["p50", "p90", "p99", "p99.9", "max"], &rows);
    let (_, first, _) = &all[0];
    if let Some((name, reason)) = SHOWN.iter().find_map(|name| Some((name, first.p_missing.get(*name)?))) {
        page.line(&format!("- p{name} {reason}"));
    }
    if let Some(text) = unreached(result, &SHOWN) {
        page.statement(Emphasis::Plain, &text, "");
    }
    if first.censored > 0 {
        let text =
            "≥ marks lower bounds: requests without an answer took at least as long as they were waited for";
        page.statement(Emphasis::Plain, text, "");
    }
}

/// Thresholds, records, steps and errors, as far as there is room.
fn details(page: &mut Page<'_>, result: &RunResult, document: &Document, room: usize) {
    let mut left = room;
    let count = document.thresholds.len();
    if count > 1 {
        page.blank();
        thresholds(page, document, THRESHOLDS);
        if count > THRESHOLDS {
            page.field("", &format!("and {} more", count - THRESHOLDS));
        }
        left = left.saturating_sub(count.min(THRESHOLDS + 1) + 1);
    }
    let records: Vec<&Fact> = document.records.iter().collect();
    if !records.is_empty() {
        page.blank();
        let shown = records.len().min(left.max(FEWEST_DETAILS));
        facts(page, records.into_iter().take(shown));
        left = left.saturating_sub(shown + 1);
    }
    let count = document.steps.rows.len();
    if count > 1 {
        page.blank();
        // The head, and a line for those that are left out.
        let shown = count.min(left.saturating_sub(2).max(FEWEST_DETAILS));
        steps(page, result, document, shown);
        left = left.saturating_sub(shown + 2);
    }
    errors(page, result, document, left.max(FEWEST_DETAILS - 1));
}

/// The steps, the ones with most failures first if not all of them have room.
fn steps(page: &mut Page<'_>, result: &RunResult, document: &Document, shown: usize) {
    let mut rows: Vec<_> = result.by_step.iter().zip(rows(&document.steps)).collect();
    let left_out = rows.len() - shown;
    if left_out > 0 {
        rows.sort_by_key(|(step, _)| std::cmp::Reverse(step.failed.saturating_add(step.timed_out)));
    }
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).take(shown).collect();
    page.table(&document.steps.titles(Target::Text)[1..], &rows);
    if left_out > 0 {
        page.line(&more(left_out, "step", "steps"));
    }
}

/// Classes of errors that always have room.
const CLASSES: usize = 5;

/// Returns `true` for an error of the server by its own account.
fn is_of_server(class: &str) -> bool {
    ErrorClass::read(class).is_ok_and(ErrorClass::is_of_server)
}

/// Each class of errors with its first example: those of the server first, then the most frequent.
fn errors(page: &mut Page<'_>, result: &RunResult, document: &Document, room: usize) {
    if result.errors.is_empty() {
        return;
    }
    page.blank();
    let mut all: Vec<(&String, &u64)> = result.errors.iter().collect();
    all.sort_by_key(|(class, count)| (!is_of_server(class), std::cmp::Reverse(**count)));
    // A class that is left out saves one line, and may be the one to look at.
    let room = room.max(CLASSES.min(all.len()));
    let mut label = "errors";
    for (class, count) in all.iter().take(room) {
        let example = result.error_examples.get(*class);
        let trace = result.trace_of(class).map_or_else(String::new, |id| format!("; trace {id}"));
        let example = example.map_or_else(String::new, |example| format!(", the first: {example}{trace}"));
        page.emphasised_field(label, Emphasis::Bad, class, &format!(": {}{example}", figure::count(**count)));
        label = "";
    }
    if all.len() > room {
        page.field("", &more(all.len() - room, "class", "classes"));
    }
    let examples = document.step_examples.iter().take(room.saturating_sub(all.len()));
    examples.for_each(|line| page.field("", line));
}

/// `and 1 more step`
fn more(count: usize, one: &str, several: &str) -> String {
    format!("and {count} more {}", if count == 1 { one } else { several })
}

/// The outcome once more, since the last line stays in sight, and where there is more to read.
fn last_line(page: &mut Page<'_>, document: &Document) {
    let opening = &document.opening;
    let rest = " · the whole report: --long, or --report FILE";
    page.statement(Emphasis::of(opening.outcome), &opening.word.text, rest);
}
