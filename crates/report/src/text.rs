//! The report for people in full, from what came of the run down to what it cost, and the [short
//! one](brief()).

mod brief;
mod phases;
mod probe;
pub(crate) mod records;
mod remarks;
mod slow;
mod wire;

use std::iter;

use plimsoll_core::Nanos;
use plimsoll_metrics::{RateUnit, figure};

use crate::Style;
use crate::assembly;
use crate::calibration::CalibrationUse;
use crate::distribution::{self, Bar};
use crate::interval::PercentileBounds;
use crate::layout::{Emphasis, Page, Row};
use crate::result::{
    CpuOfKind, Finding, IterationResult, ModelKind, RunResult, StepResult, Target, ThresholdOutcome,
};
use crate::summary::{PERCENTILES, Summary};

/// Rows of the drawn distribution at most: what keeps the report on one screen.
const DISTRIBUTION_ROWS: usize = 12;
/// Columns of the longest bar at most.
const BAR: usize = 40;

/// From this length of a run on it is said how the generator's own resources grew: in shorter ones its
/// buffers and histograms fill up.
const OWN_TRENDS_FROM_S: f64 = 600.0;
/// Share of the time in shared wake-ups from which they are told first: below it the median and all
/// percentiles up to the p90 are on time.
const SHARED_WAKEUPS: f64 = 0.10;
/// Columns that the table of times takes with a column of intervals.
const INTERVAL_WIDTH: usize = 76;
/// Changes of the rate that are listed.
const CHANGES_SHOWN: usize = 8;

pub(crate) use brief::page as brief;
pub(crate) use phases::cell as phase_cell;
pub(crate) use remarks::on_times as remarks_on_times;

/// The whole report.
pub(crate) fn page(result: &RunResult, style: &Style) -> String {
    let mut page = Page::new(style);
    opening(&mut page, result);
    page.blank();
    what_ran(&mut page, result);
    verdict(&mut page, result);
    page.blank();
    figures(&mut page, result);
    records::records(&mut page, result);
    page.blank();
    times(&mut page, result);
    distribution(&mut page, result);
    page.blank();
    other_times(&mut page, result);
    steps(&mut page, result);
    phases::phases(&mut page, result);
    wire::answers(&mut page, result);
    wire::connections(&mut page, result);
    wire::http2(&mut page, result);
    probe::probe(&mut page, result);
    slow::slow_clients(&mut page, result);
    generator(&mut page, result);
    page.blank();
    // What is last stays in sight.
    headline(&mut page, result);
    page.finish()
}

fn what_ran(page: &mut Page<'_>, result: &RunResult) {
    let run = &result.run;
    page.heading(&format!("{} {} · run {}", result.tool.name, result.tool.version, run.id));
    for target in &run.targets {
        page.field("target", &target_line(target));
    }
    let mut label = "model";
    for line in &result.model.description {
        page.field(label, line);
        label = "";
    }
    let host = &run.host;
    let mut circumstances = format!("{}, seed {}, plan {}", run.started_at, run.seed, run.plan_hash);
    if !host.hostname.is_empty() {
        circumstances.push_str(&format!(
            ", on {} ({} CPUs, {}, governor {})",
            host.hostname,
            host.cpus,
            host.kernel,
            host.governor.as_deref().unwrap_or("unknown"),
        ));
    }
    page.field("run", &circumstances);
}

/// `URLs at address, protocol, TLS`.
pub(crate) fn target_line(target: &Target) -> String {
    let urls = if target.urls.is_empty() { target.authority.clone() } else { target.urls.join(", ") };
    let mut line = urls;
    if !target.addresses.is_empty() {
        line.push_str(&format!(" at {}", target.addresses.join(", ")));
    }
    let facts = [Some(&target.protocol), target.tls_version.as_ref(), target.tls_cipher.as_ref()];
    for fact in facts.into_iter().flatten().filter(|fact| !fact.is_empty()) {
        line.push_str(&format!(", {fact}"));
    }
    line
}

/// The first lines of every report: what came of the run, then whether the measurement is valid and what
/// limited it.
pub(crate) fn opening(page: &mut Page<'_>, result: &RunResult) {
    headline(page, result);
    if let Some(ended) = ended_early(result) {
        page.statement(Emphasis::Doubtful, &ended, "");
    }
    let verdict = &result.verdict;
    let limited = &verdict.limited_by;
    // What a finding says in full is only named here.
    let mut found = verdict.evidence.iter().chain(&verdict.warnings);
    let evidence = if found.any(|finding| finding.evidence == limited.evidence) || limited.evidence.is_empty()
    {
        String::new()
    } else {
        format!(": {}", limited.evidence)
    };
    let emphasis = if verdict.valid { Emphasis::Plain } else { Emphasis::Bad };
    page.statement(emphasis, &verdict.validity(), &evidence);
    if result.generator.shared_wakeups_share > SHARED_WAKEUPS {
        let share = figure::share(result.generator.shared_wakeups_share);
        let busiest = result.generator.workers.iter().filter_map(|worker| worker.cpu_share).reduce(f64::max);
        let busy = busiest.map_or_else(String::new, |busy| {
            format!(": the core was {} busy, which is part of the start lag", figure::share(busy))
        });
        page.statement(
            Emphasis::Doubtful,
            &format!("wake-ups were shared for {share} of the time{busy}"),
            "",
        );
    }
}

/// The first line alone.
fn headline(page: &mut Page<'_>, result: &RunResult) {
    let verdict = &result.verdict;
    page.statement(verdict.outcome.emphasis(), verdict.outcome.word(), &format!("  {}", verdict.summary));
}

/// That the run came to its end before its time, if so.
fn ended_early(result: &RunResult) -> Option<String> {
    let run = &result.run;
    let by = if let Some(threshold) = &run.ended_by_threshold {
        format!("ended early by the threshold {threshold}")
    } else if let Some(signal) = run.interrupted_by_signal {
        format!("interrupted by signal {signal}")
    } else {
        format!("stopped by {}", run.stopped_by.as_ref()?)
    };
    Some(format!("{by}: the figures are of the part before it"))
}

/// Writes the findings about the measurement with their hints, the hint about what limited the run, and the
/// thresholds.
fn verdict(page: &mut Page<'_>, result: &RunResult) {
    let verdict = &result.verdict;
    for (label, emphasis, findings) in
        [("invalid", Emphasis::Bad, &verdict.evidence), ("warning", Emphasis::Doubtful, &verdict.warnings)]
    {
        findings.iter().for_each(|one| finding(page, label, emphasis, one));
    }
    let limited = &verdict.limited_by;
    let mut found = verdict.evidence.iter().chain(&verdict.warnings);
    if !limited.hint.is_empty() && !found.any(|finding| finding.hint == limited.hint) {
        page.field("hint", &limited.hint);
    }
    let mut label = "thresholds";
    for threshold in &result.thresholds {
        self::threshold(page, label, threshold);
        label = "";
    }
    result.notes.iter().for_each(|note| page.field("note", &note.text));
}

/// One line for a threshold: whether it held, and what was seen.
fn threshold(page: &mut Page<'_>, label: &str, threshold: &ThresholdOutcome) {
    let (emphasis, start) = match threshold.holds() {
        Some(true) => (Emphasis::Good, "PASS"),
        Some(false) => (Emphasis::Bad, "FAIL"),
        None => (Emphasis::Doubtful, "NOT JUDGED"),
    };
    let mut rest = format!(" {}: ", threshold.heading());
    let parts = [threshold.observed.as_ref().map(|observed| observed.text.clone()), threshold.reason.clone()];
    rest.push_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
    match (windows(threshold), threshold.windows.and_then(|windows| windows.first_failed_at_s)) {
        (Some(windows), Some(_)) => rest.push_str(&format!("; {windows}")),
        (Some(windows), None) => rest.push_str(&format!(" {windows}")),
        (None, _) => {}
    }
    page.emphasised_field(label, emphasis, start, &rest);
}

/// In which windows a threshold failed, or that its figure is that of the worst; `None` if none was judged.
pub(crate) fn windows(threshold: &ThresholdOutcome) -> Option<String> {
    let windows = threshold.windows.filter(|windows| windows.judged > 0)?;
    let of = figure::count(windows.judged);
    Some(match windows.first_failed_at_s {
        Some(at) => format!(
            "in {} of {of} windows, first in the one that ended at {}",
            figure::count(windows.failed),
            seconds(at),
        ),
        None => format!("at worst in {of} windows"),
    })
}

fn finding(page: &mut Page<'_>, label: &str, emphasis: Emphasis, finding: &Finding) {
    page.emphasised_field(label, emphasis, &finding.code, &format!(": {}", finding.evidence));
    if !finding.hint.is_empty() {
        page.field("", &format!("hint: {}", finding.hint));
    }
}

/// Rate, time, accounting and bytes.
fn figures(page: &mut Page<'_>, result: &RunResult) {
    page.field("rate", &rate_line(result));
    rate_changes(page, result);
    let beside = |name: &str, value: f64| {
        if value > 0.0 { format!("{} {name}", seconds(value)) } else { format!("no {name}") }
    };
    let (warmup, drain) = (beside("warm-up", result.warmup_s), beside("drain", result.drain_s));
    page.field("time", &format!("{} measured, {warmup}, {drain}", seconds(result.duration_s)));
    steady(page, result);
    let accounting = &result.accounting;
    page.field(
        "accounting",
        &format!(
            "scheduled {} = started {} + dropped {} + never started {}",
            figure::count(accounting.scheduled),
            figure::count(accounting.started),
            figure::count(accounting.dropped),
            figure::count(accounting.never_started),
        ),
    );
    if accounting.incomplete {
        page.field("", "without what workers did that have not come back: see the verdict");
    }
    if accounting.without_data > 0 {
        let without = figure::count(accounting.without_data);
        page.field("", &format!("of the never started, {without} had no data any more"));
    }
    page.field(
        "",
        &format!(
            "started {} = ok {} + failed {} + timed out {}{} + in flight at stop {}",
            figure::count(accounting.started),
            figure::count(accounting.ok),
            figure::count(accounting.failed),
            figure::count(accounting.timed_out),
            aborted(accounting.aborted),
            figure::count(accounting.in_flight_at_stop),
        ),
    );
    page.field(
        "",
        &format!(
            "of these undelivered {}; beside them unmeasured {}, redirects followed {}",
            figure::count(accounting.undelivered),
            figure::count(accounting.unmeasured),
            figure::count(accounting.redirects_followed),
        ),
    );
    if accounting.polls > 0 {
        page.field(
            "",
            &format!("sent again, for their answer was still to come: {}", figure::count(accounting.polls)),
        );
    }
    iterations(page, result);
    let (sent, received) = (figure::bytes(result.bytes.sent), figure::bytes(result.bytes.received));
    page.field("bytes", &format!("{sent} sent, {received} received"));
}

/// From when on the run was steady, if it has a beginning that differs. What never was is a warning.
fn steady(page: &mut Page<'_>, result: &RunResult) {
    let Some(from) = result.steady.from_s.filter(|from| *from > result.warmup_s) else { return };
    let text = format!(
        "steady from {} on: --warmup {}s would leave out what came before",
        seconds(from),
        from.ceil(),
    );
    page.field("", &text);
}

/// The changes of the rate, the first ones; the result in JSON has all of them.
fn rate_changes(page: &mut Page<'_>, result: &RunResult) {
    let changes = &result.rate.changes;
    for change in changes.iter().take(CHANGES_SHOWN) {
        let rates = match (change.from_per_s, change.to_per_s) {
            (Some(from), Some(to)) => format!(": {} to {}", figure::per_second(from), figure::per_second(to)),
            _ => String::new(),
        };
        page.field("", &format!("at {} {}{rates}, by {}", seconds(change.at_s), change.what, change.by));
    }
    if changes.len() > CHANGES_SHOWN {
        page.field("", &format!("and {} more", changes.len() - CHANGES_SHOWN));
    }
}

/// Describes the achieved rate and the rate that was asked for: in requests, and in iterations if these have
/// several.
pub(crate) fn rate_line(result: &RunResult) -> String {
    let pace = result.pace();
    let share = pace.share().map_or(String::new(), |share| format!(" ({})", figure::share(share)));
    let asked = pace.asked.map(|asked| format!(" of {} asked for{share}", figure::per_second(asked)));
    let asked = asked.unwrap_or_default();
    match pace.unit {
        RateUnit::Requests => format!("{} achieved{asked}", pace.achieved_text()),
        RateUnit::Iterations => {
            let requests = result.rate.achieved_per_s;
            let requests =
                requests.map_or("- requests/s".to_owned(), |rate| figure::per_second_of("requests", rate));
            format!("{requests} achieved; {} started{asked}", pace.achieved_text())
        }
    }
}

/// The part of the accounts about requests that were aborted, where there are any.
pub(crate) fn aborted(count: u64) -> String {
    if count > 0 { format!(" + aborted {}", figure::count(count)) } else { String::new() }
}

/// Returns `true` if the accounts of iterations differ from those of requests.
pub(crate) fn iterations_differ(result: &RunResult) -> bool {
    let (iterations, accounting) = (&result.iterations, &result.accounting);
    let as_requests = IterationResult {
        started: accounting.started,
        completed: accounting.ok,
        failed: accounting.failed + accounting.timed_out + accounting.aborted,
        unfinished: accounting.in_flight_at_stop,
    };
    let of_several = result.rate.paces_requests || result.rate_unit() == RateUnit::Iterations;
    iterations.started > 0 && (*iterations != as_requests || of_several)
}

/// The accounts of iterations, unless each of them is one request.
fn iterations(page: &mut Page<'_>, result: &RunResult) {
    let iterations = &result.iterations;
    if !iterations_differ(result) {
        return;
    }
    page.field(
        "iterations",
        &format!(
            "started {} = completed {} + failed {} + unfinished {}",
            figure::count(iterations.started),
            figure::count(iterations.completed),
            figure::count(iterations.failed),
            figure::count(iterations.unfinished),
        ),
    );
}

/// The three times of the request, side by side.
fn times(page: &mut Page<'_>, result: &RunResult) {
    // What says nothing about a user's wait has a star, and a remark below the table.
    let stars = if result.model.kind == ModelKind::Open { [""; 3] } else { ["", "*", "*"] };
    let (names, columns) =
        (main_columns(result).map(|(name, _)| name), main_columns(result).map(|(_, of)| of));
    let mut titles: Vec<String> =
        names.iter().zip(stars).map(|(name, star)| format!("{name}{star}")).collect();
    let has_intervals = page.width() >= INTERVAL_WIDTH
        && PERCENTILES.iter().any(|(name, _)| columns[0].interval_of(name).is_some());
    // Beside the time that the model is about.
    let beside = |cells: Vec<String>, interval: String| {
        let mut cells: Vec<String> = cells;
        if has_intervals {
            cells.insert(1, interval);
        }
        cells
    };
    let mut rows: Vec<Row> = PERCENTILES
        .iter()
        .enumerate()
        .map(|(index, (name, _))| {
            let cells =
                columns.iter().map(|summary| cell(summary, name, summary.p.values()[index])).collect();
            let interval = columns[0].interval_of(name).map_or_else(String::new, PercentileBounds::text);
            Row { label: format!("p{name}"), cells: beside(cells, interval), note: String::new() }
        })
        .collect();
    let mut exact = |label: &str, value: fn(&Summary) -> Option<u64>| {
        let cells = columns.iter().map(|summary| cell(summary, label, value(summary))).collect();
        let cells = beside(cells, String::new());
        rows.push(Row { label: label.to_owned(), cells, note: String::new() });
    };
    exact("max", |summary| summary.max);
    exact("mean", |summary| summary.mean);
    exact("stdev", |summary| summary.stdev);
    if has_intervals {
        titles.insert(1, "95 % interval".to_owned());
    }
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    page.table(&titles, &rows);
    remarks::on_times(result).iter().for_each(|remark| page.field("", remark));
}

/// The three times of the request in the order of what they say about the model, with their names.
pub(crate) fn main_columns(result: &RunResult) -> [(&'static str, &Summary); 3] {
    let response = ("response time", &result.response_time);
    let service = ("service time", &result.service_time);
    let lag = ("start lag", &result.start_lag);
    match result.model.kind {
        ModelKind::Open => [response, service, lag],
        ModelKind::Closed => [service, response, lag],
    }
}

/// One figure of a summary, by its name in the result.
pub(crate) fn cell(summary: &Summary, name: &str, value: Option<u64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let bound = if summary.is_at_least(name) { "≥ " } else { "" };
    format!("{bound}{}", figure::nanos(Nanos(value)))
}

/// The distribution of the time that the model is about.
fn distribution(page: &mut Page<'_>, result: &RunResult) {
    let (name, summary) = match result.model.kind {
        ModelKind::Open => ("response time", &result.response_time),
        ModelKind::Closed => ("service time", &result.service_time),
    };
    let rows = distribution::rows(&summary.distribution, DISTRIBUTION_ROWS);
    let Some(largest) = rows.iter().map(|row| row.count).max() else { return };
    page.blank();
    page.heading(&format!("{name} of {} requests", figure::count(summary.count)));
    let labels: Vec<String> = rows.iter().map(range).collect();
    let width_of = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let label_width = width_of(&mut labels.iter().map(|label| label.chars().count()));
    let counts: Vec<String> = rows.iter().map(|row| figure::count(row.count)).collect();
    let count_width = width_of(&mut counts.iter().map(String::len));
    // Around them: an indentation of 2, three gaps of 2, and a share of up to 8 columns.
    let bar_width = page.width().saturating_sub(label_width + count_width + 16).min(BAR);
    for ((row, label), count) in rows.iter().zip(&labels).zip(&counts) {
        let share = row.count as f64 / summary.count as f64;
        let bar = bar(row.count as f64 / largest as f64, bar_width, page.unicode());
        let padding = bar_width - bar.chars().count();
        let share = figure::share(share);
        page.line(&format!(
            "  {label:>label_width$}  {bar}{:padding$}  {count:>count_width$}  {share:>8}",
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

/// A bar whose length is that share of the width, in eighths of a column where the terminal can; what is not
/// nothing has a bar.
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

/// Times that are not of every request.
fn other_times(page: &mut Page<'_>, result: &RunResult) {
    let rows: Vec<Row> = [
        ("first byte", Some(&result.first_byte_time)),
        ("connect", Some(&result.connect_time)),
        ("TLS", Some(&result.tls_time)),
        ("PING", result.http2.as_ref().map(|http2| &http2.ping_time)),
        ("failed", Some(&result.failed_response_time)),
    ]
    .into_iter()
    .filter_map(|(label, summary)| Some((label, summary?)))
    .filter(|(_, summary)| summary.count > 0)
    .map(|(label, summary)| Row {
        label: label.to_owned(),
        cells: vec![
            figure::count(summary.count),
            cell(summary, "50", summary.p.p50),
            cell(summary, "90", summary.p.p90),
            cell(summary, "99", summary.p.p99),
            cell(summary, "max", summary.max),
        ],
        note: String::new(),
    })
    .collect();
    if !rows.is_empty() {
        page.table(&["count", "p50", "p90", "p99", "max"], &rows);
        page.blank();
    }
}

/// Step by step, if there is more than one.
fn steps(page: &mut Page<'_>, result: &RunResult) {
    if result.by_step.len() < 2 {
        return;
    }
    let open = result.model.kind == ModelKind::Open;
    let (p50, p99) = if open { ("response p50", "response p99") } else { ("service p50", "service p99") };
    page.table(&["ok", "failed", "timed out", p50, p99], &step_rows(result));
    examples_of_steps(result).iter().for_each(|line| page.line(line));
    page.blank();
}

/// The first failure of each step and class, where several steps failed: those of all together are of one of
/// them only.
fn examples_of_steps(result: &RunResult) -> Vec<String> {
    let failed = || result.by_step.iter().filter(|step| !step.error_examples.is_empty());
    if failed().count() < 2 {
        return Vec::new();
    }
    let lines = failed().flat_map(|step| {
        step.error_examples.iter().map(move |(class, example)| {
            format!(
                "{}: {class}, the first after {}: {}",
                step.step,
                seconds(example.at_s),
                example.summary()
            )
        })
    });
    lines.collect()
}

/// A row for each step, with its name.
fn step_rows(result: &RunResult) -> Vec<Row> {
    let open = result.model.kind == ModelKind::Open;
    let row = |step: &StepResult| {
        let time = if open { &step.response_time } else { &step.service_time };
        let named = step.scenario != assembly::DEFAULT_SCENARIO && step.scenario != step.step;
        Row {
            label: if named { format!("{} ▸ {}", step.scenario, step.step) } else { step.step.clone() },
            cells: vec![
                figure::count(step.ok),
                figure::count(step.failed),
                figure::count(step.timed_out),
                cell(time, "50", time.p.p50),
                cell(time, "99", time.p.p99),
            ],
            note: String::new(),
        }
    };
    result.by_step.iter().map(row).collect()
}

/// Returns the share of the calibrated limit that the run used: `31.0 % of this machine's calibrated limit of
/// 182,000/s for HTTP/1.1, 64 connections; at half of it, it adds 120 µs …`
pub(crate) fn calibrated(calibration: &CalibrationUse) -> String {
    let of = if calibration.of_this_plan {
        "this plan's requests".to_owned()
    } else {
        calibration.load.describe()
    };
    let mut line = format!(
        "{} of this machine's calibrated limit of {} for {of}",
        figure::share(calibration.used_share),
        figure::per_second(calibration.limit_per_s),
    );
    if let (Some(p50), Some(p99)) = (calibration.added_p50_ns, calibration.added_p99_ns) {
        let (p50, p99) = (figure::nanos(Nanos(p50)), figure::nanos(Nanos(p99)));
        line.push_str(&format!("; at half of it, it adds {p50} (p99 {p99})"));
    }
    line
}

/// Returns the CPU cost of each kind of thread, if there are others than the workers.
fn by_kind(kinds: &[CpuOfKind]) -> Option<String> {
    let part = |part: &CpuOfKind| {
        let threads = if part.threads == 1 { "thread" } else { "threads" };
        let cost = part.cpu_us_per_request.map_or_else(|| seconds(part.cpu_s), |cpu| format!("{cpu:.2} µs"));
        format!("{} {cost} ({} {threads})", part.kind, part.threads)
    };
    (kinds.len() > 1).then(|| format!("of that {}", kinds.iter().map(part).collect::<Vec<_>>().join(", ")))
}

/// Writes the cost of the generator itself.
fn generator(page: &mut Page<'_>, result: &RunResult) {
    let generator = &result.generator;
    let mut line = format!(
        "{}, {} {}, ",
        generator.backend,
        generator.threads,
        if generator.threads == 1 { "thread" } else { "threads" }
    );
    let total = generator.cpu_user_s + generator.cpu_sys_s;
    match generator.cpu_us_per_request {
        Some(cpu) if total > 0.0 => {
            let user = cpu * generator.cpu_user_s / total;
            line.push_str(&format!("{cpu:.2} µs CPU per request (user {user:.2}, system {:.2})", cpu - user));
        }
        _ => line.push_str(&format!("{} CPU", seconds(total))),
    }
    if let Some(busiest) = generator.workers.iter().filter_map(|worker| worker.cpu_share).reduce(f64::max) {
        line.push_str(&format!(", busiest thread {} of its core", figure::share(busiest)));
    }
    if let Some(bytes) = generator.rss_peak_bytes {
        line.push_str(&format!(", {} memory at most", figure::bytes(bytes)));
    }
    page.field("generator", &line);
    if let Some(parts) = by_kind(&generator.cpu_by_kind) {
        page.field("", &parts);
    }
    if let Some(trends) = generator.trends.line().filter(|_| result.duration_s >= OWN_TRENDS_FROM_S) {
        page.field("", &trends);
    }
    if let Some(calibration) = &generator.calibration {
        page.field("", &calibrated(calibration));
    }
    if let Some(turnaround) = generator.turnaround_mean_ns {
        let share = result.service_time.mean.map_or_else(String::new, |service| {
            let share = turnaround as f64 / (service + turnaround).max(1) as f64;
            format!(", {} of a user's cycle", figure::share(share))
        });
        let span = figure::nanos(Nanos(turnaround));
        page.field("", &format!("{span} from a response to the next request of its user{share}"));
    }
    if generator.send_time_uncertain > 0 {
        let (count, s) =
            (generator.send_time_uncertain, if generator.send_time_uncertain == 1 { "" } else { "s" });
        let share = figure::share(count as f64 / result.accounting.started.max(1) as f64);
        let count = figure::count(count);
        page.field(
            "",
            &format!("interrupted while it sent {count} request{s} ({share}): uncertain service times"),
        );
    }
    if let Some(log) = &result.log {
        let mut parts = Vec::new();
        let mut part = |kept: u64, dropped: u64, what: &str, why: &str| {
            if kept + dropped > 0 {
                let lost =
                    if dropped > 0 { format!(", {} {why}", figure::count(dropped)) } else { String::new() };
                parts.push(format!("{} {what}{lost}", figure::count(kept)));
            }
        };
        part(log.entries, log.dropped, "requests", "given up: the disk could not keep up");
        part(log.failed, log.failed_dropped, "failed requests with their messages", "more are not kept");
        page.field("log", &parts.join("; "));
    }
    exports(page, result);
    if generator.bodies > 0 {
        let mut line = format!(
            "made {} bodies while the run went on, {} of them when they were due",
            figure::count(generator.bodies),
            figure::count(generator.bodies_late),
        );
        if generator.bodies_expired > 0 {
            let expired = figure::count(generator.bodies_expired);
            line.push_str(&format!("; {expired} more had expired and were never sent"));
        }
        page.field("", &line);
    }
    let responses = generator.stamped + generator.unstamped;
    if responses > 0 {
        let share = figure::share(generator.stamped as f64 / responses as f64);
        let mut line = format!("arrival stamped by the kernel for {share} of the responses");
        let lag = generator.receive_lag.as_ref().and_then(|lag| lag.p.p50.zip(lag.max));
        if let Some((p50, max)) = lag.map(|(p50, max)| (figure::nanos(Nanos(p50)), figure::nanos(Nanos(max))))
        {
            line.push_str(&format!(", which were read {p50} later (at most {max})"));
        }
        page.field("", &line);
    }
    watched(page, result);
}

/// The servers whose processes were watched.
fn watched(page: &mut Page<'_>, result: &RunResult) {
    for server in &result.generator.watched {
        let lines = server.lines();
        let labels = iter::once("watched").chain(iter::repeat(""));
        lines.iter().zip(labels).for_each(|(line, label)| page.field(label, line));
    }
}

/// Writes the receivers of exports while the run went on, and the exports that failed.
fn exports(page: &mut Page<'_>, result: &RunResult) {
    for export in &result.exports {
        let mut line = format!("{} {}: {} times", export.kind, export.to, figure::count(export.sent));
        if let Some(error) = &export.last_error {
            line.push_str(&format!(", {} failed, the last one: {error}", figure::count(export.failed)));
        }
        page.field("exports", &line);
    }
}

/// Seconds as a duration for people.
pub(crate) fn seconds(value: f64) -> String {
    figure::nanos(Nanos::from_secs_f64(value))
}
