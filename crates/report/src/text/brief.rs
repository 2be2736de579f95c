//! The short report: what people see at the end of a run unless they ask for more, on half a screen.

use plimsoll_metrics::figure;

use super::{cell, opening, rate_line, records, seconds, slow, step_rows, target_line};
use crate::Style;
use crate::layout::{Emphasis, Page, Row};
use crate::result::{Finding, ModelKind, RunResult, ThresholdOutcome};
use crate::summary::Summary;

/// Lines of the report of a normal run at most.
const LINES: usize = 25;
/// Lines of findings from which on no further one is begun.
const FINDINGS: usize = 6;
/// Thresholds that have a line of their own at most.
const THRESHOLDS: usize = 3;
/// Lines of details that are there whatever stands above.
const FEWEST_DETAILS: usize = 4;
/// Targets, and lines about the model, that are named.
const NAMED: usize = 2;
/// The percentiles that are shown.
const SHOWN: [&str; 4] = ["50", "90", "99", "99.9"];

/// The whole report.
pub(crate) fn page(result: &RunResult, style: &Style) -> String {
    let mut top = Page::new(style);
    opening(&mut top, result);
    findings(&mut top, result);
    what_ran(&mut top, result);
    top.blank();
    let mut figures = Page::new(style);
    counts(&mut figures, result);
    times(&mut figures, result);
    slow::slow_clients(&mut figures, result);
    let mut end = Page::new(style);
    end.blank();
    hint(&mut end, result);
    last_line(&mut end, result);
    let (top, figures, end) = (top.finish(), figures.finish(), end.finish());
    let taken = [&top, &figures, &end].iter().map(|part| part.lines().count()).sum::<usize>();
    // An empty line before them.
    let room = LINES.saturating_sub(taken + 1).max(FEWEST_DETAILS);
    let mut details = Page::new(style);
    self::details(&mut details, result, room);
    [top, figures, details.finish(), end].concat()
}

/// Writes the reasons why the measurement is invalid, and the warnings.
fn findings(page: &mut Page<'_>, result: &RunResult) {
    let verdict = &result.verdict;
    let bad = verdict.evidence.iter().map(|finding| (Emphasis::Bad, finding));
    let doubtful = verdict.warnings.iter().map(|finding| (Emphasis::Doubtful, finding));
    let all: Vec<(Emphasis, &Finding)> = bad.chain(doubtful).collect();
    let before = page.lines();
    let shown = all.iter().take_while(|(emphasis, finding)| {
        let room = page.lines() - before < FINDINGS;
        if room {
            let (code, hint) = (finding.code.replace('_', " "), &finding.hint);
            let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
            page.statement(*emphasis, &format!("! {code}"), &format!(": {}{hint}", finding.evidence));
        }
        room
    });
    let shown = shown.count();
    if shown < all.len() {
        page.line(&format!("  and {} more findings", all.len() - shown));
    }
}

fn what_ran(page: &mut Page<'_>, result: &RunResult) {
    let targets = &result.run.targets;
    for target in targets.iter().take(NAMED) {
        page.statement(Emphasis::Plain, &target_line(target), "");
    }
    if targets.len() > NAMED {
        page.line(&format!("and {} more targets", targets.len() - NAMED));
    }
    let model: Vec<&str> = result.model.description.iter().take(NAMED).map(String::as_str).collect();
    page.statement(Emphasis::Plain, &model.join("; "), "");
}

/// Where the requests went, and how fast.
fn counts(page: &mut Page<'_>, result: &RunResult) {
    let accounting = &result.accounting;
    let ended = accounting.ok + accounting.failed + accounting.timed_out + accounting.aborted;
    let share = |part: u64| match part {
        0 => String::new(),
        part => format!(" ({})", figure::share(part as f64 / ended.max(1) as f64)),
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
    ];
    for (count, name) in more.iter().filter(|(count, _)| *count > 0) {
        line.push_str(&format!(", {} {name}", figure::count(*count)));
    }
    page.statement(Emphasis::Heading, &line, "");
    page.statement(Emphasis::Plain, &rate_line(result), "");
}

/// Percentiles of the times that the model is about.
fn times(page: &mut Page<'_>, result: &RunResult) {
    let service = ("service", &result.service_time, "from when it was sent");
    let mut all = match result.model.kind {
        // A response time counts from when a request was due, and in the closed model nothing is.
        ModelKind::Closed => vec![service],
        ModelKind::Open => vec![("response", &result.response_time, "from when it was due"), service],
    };
    if let Some(probe) = &result.probe {
        all.push(("probe", &probe.service_time, "service time of requests beside the load"));
    }
    let nothing = all.iter().all(|(_, summary, _)| summary.count == 0);
    if nothing {
        page.line("no response or service times: no request succeeded");
        all.clear();
    }
    // What failed before it was sent, as in a script, took no time.
    let timed = result.failed_response_time.max.is_some_and(|max| max > 0);
    if (nothing || result.accounting.ok == 0) && timed {
        all.push(("failed", &result.failed_response_time, "response time of failed requests"));
    }
    if all.is_empty() {
        return;
    }
    let row = |(label, summary, note): &(&str, &Summary, &str)| Row {
        label: (*label).to_owned(),
        cells: SHOWN
            .iter()
            .map(|name| cell(summary, name, summary.percentile(name)))
            .chain([cell(summary, "max", summary.max)])
            .collect(),
        note: (*note).to_owned(),
    };
    let rows: Vec<Row> = all.iter().map(row).collect();
    page.table(&["p50", "p90", "p99", "p99.9", "max"], &rows);
    let (_, first, _) = &all[0];
    if let Some((name, reason)) = SHOWN.iter().find_map(|name| Some((name, first.p_missing.get(*name)?))) {
        page.line(&format!("- p{name} {reason}"));
    }
    if first.censored > 0 {
        let text = "≥ marks lower bounds: timed-out requests took at least as long as they were waited for";
        page.statement(Emphasis::Plain, text, "");
    }
}

/// Thresholds, records, steps and errors, as far as there is room.
fn details(page: &mut Page<'_>, result: &RunResult, room: usize) {
    let thresholds = if result.thresholds.len() > 1 { thresholds(page, result) } else { 0 };
    let mut left = room.saturating_sub(thresholds);
    let lines = records::lines(result);
    if !lines.is_empty() {
        page.blank();
        let shown = lines.len().min(left.max(FEWEST_DETAILS));
        records::write(page, &lines[..shown]);
        left = left.saturating_sub(shown + 1);
    }
    let rows = step_rows(result);
    if rows.len() > 1 {
        page.blank();
        // The head, and a line for those that are left out.
        let shown = rows.len().min(left.saturating_sub(2).max(FEWEST_DETAILS));
        steps(page, result, rows, shown);
        left = left.saturating_sub(shown + 2);
    }
    errors(page, result, left.max(FEWEST_DETAILS - 1));
}

/// One line for each threshold, those that do not hold first; how many lines that were.
fn thresholds(page: &mut Page<'_>, result: &RunResult) -> usize {
    page.blank();
    let mut all: Vec<&ThresholdOutcome> = result.thresholds.iter().collect();
    all.sort_by_key(|threshold| threshold.passed);
    let mut label = "thresholds";
    for threshold in all.iter().take(THRESHOLDS) {
        super::threshold(page, label, threshold);
        label = "";
    }
    if all.len() > THRESHOLDS {
        page.field("", &format!("and {} more", all.len() - THRESHOLDS));
    }
    all.len().min(THRESHOLDS + 1) + 1
}

/// The steps, the ones with most failures first if not all of them have room.
fn steps(page: &mut Page<'_>, result: &RunResult, rows: Vec<Row>, shown: usize) {
    let open = result.model.kind == ModelKind::Open;
    let heads = if open {
        ["ok", "failed", "timed out", "response p50", "response p99"]
    } else {
        ["ok", "failed", "timed out", "service p50", "service p99"]
    };
    let left_out = rows.len() - shown;
    let rows = if left_out == 0 {
        rows
    } else {
        let mut steps: Vec<_> = result.by_step.iter().zip(rows).collect();
        steps.sort_by_key(|(step, _)| std::cmp::Reverse(step.failed + step.timed_out));
        steps.into_iter().map(|(_, row)| row).take(shown).collect()
    };
    page.table(&heads, &rows);
    if left_out > 0 {
        page.line(&format!("and {left_out} more steps"));
    }
}

/// Each class of errors with its first example, the most frequent first.
fn errors(page: &mut Page<'_>, result: &RunResult, room: usize) {
    if result.errors.is_empty() {
        return;
    }
    page.blank();
    let mut all: Vec<(&String, &u64)> = result.errors.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut label = "errors";
    for (class, count) in all.iter().take(room) {
        let example = result.error_examples.get(*class);
        let example = example.map_or_else(String::new, |example| format!(", the first: {example}"));
        page.emphasised_field(label, Emphasis::Bad, class, &format!(": {}{example}", figure::count(**count)));
        label = "";
    }
    if all.len() > room {
        page.field("", &format!("and {} more classes", all.len() - room));
    }
    let lines = super::examples_of_steps(result);
    lines.iter().take(room.saturating_sub(all.len())).for_each(|line| page.field("", line));
}

/// Writes the hint about what limited the run, unless a finding has a hint already.
fn hint(page: &mut Page<'_>, result: &RunResult) {
    let verdict = &result.verdict;
    let limited = &verdict.limited_by;
    if verdict.evidence.is_empty() && verdict.warnings.is_empty() && !limited.hint.is_empty() {
        page.statement(Emphasis::Heading, "hint", &format!(": {}", limited.hint));
    }
}

/// The outcome once more, for it is what stays in sight, and where there is more to read.
fn last_line(page: &mut Page<'_>, result: &RunResult) {
    let outcome = result.verdict.outcome;
    page.statement(outcome.emphasis(), outcome.word(), " · the whole report: --long, or --report FILE");
}
