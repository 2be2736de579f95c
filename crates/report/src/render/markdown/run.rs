//! One run as Markdown: the headline first, then what was measured, the rest folded away.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_metrics::figure;

use super::{Table, code, details, escaped};
use crate::contract::interval::PercentileBounds;
use crate::contract::result::{Finding, ModelKind, RunResult, ThresholdOutcome};
use crate::contract::summary::{PERCENTILES, Summary};
use crate::render::layout::Emphasis;
use crate::render::text::records::lines;
use crate::render::text::{aborted, cell, rate_line, seconds, target_line};

/// The whole page.
pub(crate) fn run(result: &RunResult) -> String {
    let mut out = String::new();
    verdict(&mut out, result);
    thresholds(&mut out, result);
    accounts(&mut out, result);
    times(&mut out, result);
    answers(&mut out, result);
    folded(&mut out, result);
    out
}

/// Writing to a string cannot fail: this says so once.
macro_rules! add {
    ($out:expr, $($part:tt)*) => { let _ = write!($out, $($part)*); };
}

fn verdict(out: &mut String, result: &RunResult) {
    let verdict = &result.verdict;
    let evidence = &verdict.limited_by.evidence;
    let evidence = if evidence.is_empty() { String::new() } else { format!(": {}", escaped(evidence)) };
    add!(out, "### {}\n\n{}{evidence}\n\n", escaped(&verdict.headline()), escaped(&verdict.validity()));
    for target in &result.run.targets {
        add!(out, "**{}**  \n", escaped(&target_line(target)));
    }
    let model: Vec<String> = result.model.description.iter().map(|line| escaped(line)).collect();
    add!(out, "{}\n\n", model.join("  \n"));
    let run = &result.run;
    if let Some(threshold) = &run.ended_by_threshold {
        add!(out, "Ended early by the threshold {}.\n\n", code(threshold));
    } else if let Some(signal) = run.interrupted_by_signal {
        add!(out, "Interrupted by signal {signal}.\n\n");
    } else if let Some(by) = &run.stopped_by {
        add!(out, "Stopped by {}.\n\n", escaped(by));
    }
    verdict.evidence.iter().for_each(|finding| found(out, "invalid", finding));
    verdict.warnings.iter().for_each(|finding| found(out, "warning", finding));
    result.notes.iter().for_each(|note| {
        add!(out, "- {}\n", escaped(&note.text));
    });
    out.push('\n');
}

fn found(out: &mut String, kind: &str, finding: &Finding) {
    let hint = if finding.hint.is_empty() { String::new() } else { format!(" ({})", escaped(&finding.hint)) };
    add!(out, "- **{kind}**, {}: {}{hint}\n", code(&finding.code), escaped(&finding.evidence));
}

fn thresholds(out: &mut String, result: &RunResult) {
    if result.thresholds.is_empty() {
        return;
    }
    let mut table = Table::of_text(&["threshold", "", "observed"]);
    for threshold in &result.thresholds {
        let held = match threshold.holds() {
            Some(true) => "✔ met",
            Some(false) => "✘ **not met**",
            None => "not judged",
        };
        table.row([code(&threshold.heading()).as_str(), held, &escaped(&observed(threshold))]);
    }
    out.push_str(&table.finish());
}

fn observed(threshold: &ThresholdOutcome) -> String {
    let figure = threshold.observed.as_ref().map(|observed| observed.text.clone());
    let windows = threshold.windows.filter(|windows| windows.failed > 0);
    let windows = windows.map(|windows| format!("in {} of {} windows", windows.failed, windows.judged));
    let parts = [figure, threshold.reason.clone(), windows];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn accounts(out: &mut String, result: &RunResult) {
    let accounting = &result.accounting;
    let count = |value: u64| figure::count(value);
    let mut table = Table::of_text(&["", ""]);
    table.row(["rate", &escaped(&rate_line(result))]);
    let lengths = [(" measured", result.duration_s), (" warm-up", result.warmup_s)];
    let lengths: Vec<String> = (lengths.into_iter().filter(|(_, length)| *length > 0.0))
        .map(|(name, length)| format!("{}{name}", seconds(length)))
        .collect();
    table.row(["time", &lengths.join(", ")]);
    let scheduled = format!(
        "{} = started {} + dropped {} + never started {}",
        count(accounting.scheduled),
        count(accounting.started),
        count(accounting.dropped),
        count(accounting.never_started),
    );
    table.row(["scheduled", &scheduled]);
    let started = format!(
        "{} = ok {} + failed {} + timed out {}{} + in flight at stop {}",
        count(accounting.started),
        count(accounting.ok),
        count(accounting.failed),
        count(accounting.timed_out),
        aborted(accounting.aborted),
        count(accounting.in_flight_at_stop),
    );
    table.row(["started", &started]);
    for line in lines(result) {
        let bad = line.word.as_ref().is_some_and(|(emphasis, _)| matches!(emphasis, Emphasis::Bad));
        let text = escaped(&line.text());
        table.row([line.label, &if bad { format!("**{text}**") } else { text }]);
    }
    if accounting.incomplete {
        table.row(["", "without what workers did that have not come back"]);
    }
    out.push_str(&table.finish());
}

/// The times of the model first.
fn times(out: &mut String, result: &RunResult) {
    let (response, service) =
        (("response time", &result.response_time), ("service time", &result.service_time));
    let [(name, first), (other, second)] = match result.model.kind {
        ModelKind::Open => [response, service],
        ModelKind::Closed => [service, response],
    };
    if first.count == 0 && second.count == 0 {
        out.push_str("No request ended well or timed out: there are no times.\n\n");
        return;
    }
    let mut table = Table::new(&["", name, "95 % interval", other, "start lag"]);
    let lag = &result.start_lag;
    for (index, (p, _)) in PERCENTILES.iter().enumerate() {
        let of = |summary: &Summary| cell(summary, p, summary.p.values()[index]);
        let interval = first.interval_of(p).map_or_else(String::new, PercentileBounds::text);
        table.row([format!("p{p}").as_str(), &of(first), &interval, &of(second), &of(lag)]);
    }
    for (label, value) in [("max", (|s| s.max) as fn(&Summary) -> Option<u64>), ("mean", |s| s.mean)] {
        let of = |summary: &Summary| cell(summary, label, value(summary));
        table.row([label, &of(first), "", &of(second), &of(lag)]);
    }
    out.push_str(&table.finish());
    if let Some(summary) = [first, second].iter().find(|s| s.count > 0 && !s.p_missing.is_empty()) {
        let missing = summary.p_missing.iter().map(|(name, reason)| format!("p{name} {reason}"));
        add!(out, "Without a percentile: {}.\n\n", missing.collect::<Vec<_>>().join("; "));
    }
    if result.response_time.censored > 0 {
        let censored = figure::count(result.response_time.censored);
        add!(out, "≥ marks lower bounds: {censored} requests timed out.\n\n");
    }
    if result.model.kind == ModelKind::Closed {
        out.push_str("Closed model: response time and start lag say nothing about a user's wait.\n\n");
    }
}

fn answers(out: &mut String, result: &RunResult) {
    if result.errors.is_empty() {
        return;
    }
    let mut table = Table::of_text(&["error", "requests", "example"]);
    for (class, count) in &result.errors {
        let example = result.error_examples.get(class).map_or(String::new(), |example| escaped(example));
        table.row([code(class).as_str(), &figure::count(*count), &example]);
    }
    out.push_str(&table.finish());
}

/// Writes the folded details: steps and statuses, phases, circumstances.
fn folded(out: &mut String, result: &RunResult) {
    details(out, "Steps and statuses", &(steps(result) + &statuses(&result.statuses)));
    details(out, "Phases", &phases(result));
    details(out, "How it was made", &circumstances(result));
}

fn steps(result: &RunResult) -> String {
    if result.by_step.len() < 2 {
        return String::new();
    }
    let open = result.model.kind == ModelKind::Open;
    let name = if open { "response" } else { "service" };
    let [p50, p99] = ["50", "99"].map(|p| format!("{name} p{p}"));
    let mut table = Table::new(&["step", "ok", "failed", "timed out", &p50, &p99]);
    for step in &result.by_step {
        let time = if open { &step.response_time } else { &step.service_time };
        let label = format!("{} / {}", step.scenario, step.step);
        let label = if step.scenario == step.step { &step.step } else { &label };
        table.row([
            code(label).as_str(),
            &figure::count(step.ok),
            &figure::count(step.failed),
            &figure::count(step.timed_out),
            &cell(time, "50", time.p.p50),
            &cell(time, "99", time.p.p99),
        ]);
    }
    table.finish()
}

fn statuses(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["status", "responses"]);
    counts.iter().for_each(|(status, count)| table.row([&*escaped(status), &figure::count(*count)]));
    table.finish()
}

fn phases(result: &RunResult) -> String {
    if result.phases.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["phase", "length", "achieved", "ok", "failed", "timed out", "p50", "p99"]);
    for phase in &result.phases {
        let times = &phase.response_time;
        let time = |name: &str, value: Option<u64>| {
            let bound = if times.is_at_least(name) { "≥ " } else { "" };
            let value = value.map(|value| figure::nanos(plimsoll_core::Nanos(value)));
            value.map_or("-".to_owned(), |value| format!("{bound}{value}"))
        };
        let measured = if phase.measured { "" } else { " (not measured)" };
        table.row([
            format!("{}{measured}", escaped(&phase.name)).as_str(),
            &seconds(phase.duration_s),
            &phase.achieved_per_s.map_or("-".to_owned(), figure::per_second),
            &figure::count(phase.ok),
            &figure::count(phase.failed),
            &figure::count(phase.timed_out),
            &time("50", times.p.p50),
            &time("99", times.p.p99),
        ]);
    }
    table.finish()
}

fn circumstances(result: &RunResult) -> String {
    let (run, host, generator) = (&result.run, &result.run.host, &result.generator);
    let mut table = Table::of_text(&["", ""]);
    table.row(["command", &code(&run.args.join(" "))]);
    let identity = format!("{}, {}, seed {}, plan {}", run.id, run.started_at, run.seed, run.plan_hash);
    table.row(["run", &escaped(&identity)]);
    let machine = format!("{}, {} × {}, {}", host.hostname, host.cpus, host.cpu_model, host.kernel);
    table.row(["machine", &escaped(&machine)]);
    let cost = generator.cpu_us_per_request;
    let cost = cost.map_or(String::new(), |cost| format!(", {cost:.2} µs CPU per request"));
    let threads = if generator.threads == 1 { "thread" } else { "threads" };
    table.row(["generator", &format!("{}, {} {threads}{cost}", generator.backend, generator.threads)]);
    table.row(["tool", &escaped(&format!("{} {}", result.tool.name, result.tool.version))]);
    table.finish()
}
