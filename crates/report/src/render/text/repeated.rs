//! Repeated runs for people.

use plimsoll_metrics::threshold::TimeKind;

use crate::Style;
use crate::compare::measure::{Measure, TimeFigure};
use crate::compare::repeated::{BetweenRunsResult, RepeatedResult, RepeatedVerdict as Verdict};
use crate::contract::result::{ModelKind, OutcomeResult, RunResult, Thresholds};
use crate::render::layout::{Emphasis, Page, Row};

/// A spread that exceeds the one expected from chance within the runs by this factor is pointed out: with
/// five runs alike, less than one in a hundred exceeds it (χ² with 4 degrees of freedom, √(13.3 / 4)).
const NOTEWORTHY: f64 = 1.83;

/// The whole page.
pub(crate) fn page(result: &RepeatedResult, style: &Style) -> String {
    let mut page = Page::new(style);
    let Verdict { outcome, summary, .. } = &result.verdict;
    page.statement(Emphasis::of(*outcome), outcome.word(), &format!("  {summary}"));
    let made = result.runs.len() as u64;
    let number = if made == result.runs_wanted {
        made.to_string()
    } else {
        format!("{made} of {}", result.runs_wanted)
    };
    let runs = if result.runs_wanted == 1 { "run" } else { "runs" };
    page.heading(&format!("{} {} · {number} {runs}", result.tool.name, result.tool.version));
    if let Some(first) = result.runs.first() {
        what_ran(&mut page, first);
    }
    verdict(&mut page, result);
    page.blank();
    runs_table(&mut page, result);
    row_reasons(&mut page, result);
    page.blank();
    spread_table(&mut page, result);
    reasons(&mut page, result);
    page.blank();
    page.statement(Emphasis::of(*outcome), outcome.word(), &format!("  {summary}"));
    page.finish()
}

fn what_ran(page: &mut Page<'_>, first: &RunResult) {
    for target in &first.run.targets {
        page.field("target", &target.urls.join(", "));
    }
    let mut label = "model";
    for line in &first.model.description {
        page.field(label, line);
        label = "";
    }
    let run = &first.run;
    page.field("run", &format!("{}, seed {} and the next, plan {}", run.started_at, run.seed, run.plan_hash));
}

/// The numbers of runs: `runs 2, 3`.
fn listed(numbers: &[u64]) -> String {
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{} {}", if numbers.len() == 1 { "run" } else { "runs" }, words.join(", "))
}

fn verdict(page: &mut Page<'_>, result: &RepeatedResult) {
    let verdict = &result.verdict;
    if !verdict.invalid_runs.is_empty() {
        let which = listed(&verdict.invalid_runs);
        let rest = format!(": do not take times and rates of {which} for the target's");
        page.emphasised_field("measurement", Emphasis::Bad, "INVALID", &rest);
    }
    let mut said: Vec<&str> = Vec::new();
    for reason in result.runs.iter().flat_map(|run| &run.verdict.evidence) {
        if !said.contains(&reason.code.as_str()) {
            said.push(&reason.code);
            let rest = format!(": {}{}", whose(result, &reason.code), reason.evidence);
            page.emphasised_field("", Emphasis::Bad, &reason.code, &rest);
            if !reason.hint.is_empty() {
                page.field("", &format!("hint: {}", reason.hint));
            }
        }
    }
    if !verdict.cut_short.is_empty() {
        let rest = format!(": {} ended early and not in the figures below", listed(&verdict.cut_short));
        page.emphasised_field("note", Emphasis::Doubtful, "cut short", &rest);
    }
    match verdict.thresholds {
        Thresholds::None => {}
        Thresholds::Pass => page.emphasised_field("thresholds", Emphasis::Good, "PASS", " in every run"),
        Thresholds::Fail => failed_thresholds(page, result),
    }
}

/// The runs that evidence with this code is of, where it is not the only run: `in 2 of 3 runs, first: `.
fn whose(result: &RepeatedResult, code: &str) -> String {
    let has = |run: &&RunResult| run.verdict.evidence.iter().any(|reason| reason.code == code);
    match (result.runs.iter().filter(has).count(), result.runs.len()) {
        (_, 1) => String::new(),
        (1, all) => format!("in 1 of {all} runs: "),
        (found, all) => format!("in {found} of {all} runs, first: "),
    }
}

fn failed_thresholds(page: &mut Page<'_>, result: &RepeatedResult) {
    let mut label = "thresholds";
    let mut said: Vec<String> = Vec::new();
    for threshold in result.runs.iter().flat_map(|run| &run.thresholds).filter(|one| !one.passed) {
        let heading = threshold.heading();
        if !said.contains(&heading) {
            let failed =
                |run: &&RunResult| run.thresholds.iter().any(|one| !one.passed && one.heading() == heading);
            let count = result.runs.iter().filter(failed).count();
            let rest = format!(" {heading}: in {count} of {} runs", result.runs.len());
            page.emphasised_field(label, Emphasis::Bad, "FAIL", &rest);
            label = "";
            said.push(heading);
        }
    }
}

/// One row per run: the times that count in its model, the rate, and its outcome.
fn runs_table(page: &mut Page<'_>, result: &RepeatedResult) {
    let shown =
        ["50", "90", "99"].map(Measure::percentile).into_iter().chain([Measure::Rate, Measure::Errors]);
    let shown: Vec<Measure> = shown.collect();
    let rows: Vec<Row> = (1..)
        .zip(&result.runs)
        .map(|(number, run): (u64, &RunResult)| Row {
            label: format!("run {number}"),
            cells: shown
                .iter()
                .map(|measure| measure.of(run).map_or("-".to_owned(), |value| measure.show(value)))
                .collect(),
            note: became(result, number, run),
        })
        .collect();
    page.fitted(&["p50", "p90", "p99", "rate", "errors"], &rows, &["p90", "p50", "rate"]);
    let kind = result.runs.first().map(|run| run.model.kind);
    let time = if kind == Some(ModelKind::Closed) { "service" } else { "response" };
    page.field("", &format!("times are {time} times"));
}

/// Reasons of the runs that did not pass, where they are not all the same.
fn row_reasons(page: &mut Page<'_>, result: &RepeatedResult) {
    let mut reasons: Vec<(&str, Vec<u64>)> = Vec::new();
    for (number, run) in (1..).zip(&result.runs) {
        let verdict = &run.verdict;
        if !matches!(verdict.outcome, OutcomeResult::Fail | OutcomeResult::NoVerdict) {
            continue;
        }
        match reasons.iter_mut().find(|(known, _)| *known == verdict.summary) {
            Some((_, numbers)) => numbers.push(number),
            None => reasons.push((&verdict.summary, vec![number])),
        }
    }
    for (reason, numbers) in reasons.iter().filter(|_| reasons.len() > 1) {
        page.field("", &format!("{}: {reason}", listed(numbers)));
    }
}

fn became(result: &RepeatedResult, number: u64, run: &RunResult) -> String {
    let mut words = Vec::new();
    words.push(run.verdict.outcome.word());
    if !run.verdict.valid {
        words.push("invalid");
    }
    if result.verdict.cut_short.contains(&number) {
        words.push("cut short");
    }
    if run.verdict.thresholds == Thresholds::Fail {
        words.push("thresholds failed");
    }
    words.join(", ")
}

/// One row per figure: its mean with an interval, and how much of its spread is between the runs.
fn spread_table(page: &mut Page<'_>, result: &RepeatedResult) {
    let rows: Vec<Row> = result.between_runs.iter().map(spread_row).collect();
    let heads = ["mean", "95 % interval", "SD of runs", "SE in a run", "between runs"];
    page.fitted(&heads, &rows, &["SE in a run", "SD of runs"]);
}

fn spread_row(figure: &BetweenRunsResult) -> Row {
    let measure: Option<Measure> = figure.metric.parse().ok();
    let value = |value: Option<f64>| match (value, measure) {
        (Some(value), Some(measure)) => measure.show(value),
        _ => "-".to_owned(),
    };
    let interval = match (figure.low, figure.high) {
        (Some(_), Some(_)) => format!("[{}, {}]", value(figure.low), value(figure.high)),
        _ => "-".to_owned(),
    };
    let (mean, spread, within) = (value(figure.mean), value(figure.spread), value(figure.within));
    Row {
        label: short(&figure.metric, measure),
        cells: vec![mean, interval, spread, within, value(figure.between)],
        note: match (figure.spread, figure.within) {
            (Some(spread), Some(within)) if figure.low.is_some() && spread > NOTEWORTHY * within => {
                "runs differ".to_owned()
            }
            _ => String::new(),
        },
    }
}

/// The name with its time in one word.
fn short(name: &str, measure: Option<Measure>) -> String {
    let Some(Measure::Time(Some(kind), TimeFigure::Percentile(_))) = measure else { return name.to_owned() };
    let figure = name.rsplit_once("time.").map_or(name, |(_, figure)| figure);
    match kind {
        TimeKind::Service => format!("service {figure}"),
        _ => format!("resp. {figure}"),
    }
}

/// Writes each reason why figures are not known, with the figures.
fn reasons(page: &mut Page<'_>, result: &RepeatedResult) {
    let mut reasons: Vec<&str> = Vec::new();
    for reason in result.between_runs.iter().filter_map(|figure| figure.reason.as_deref()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
            let of = |figure: &&BetweenRunsResult| figure.reason.as_deref() == Some(reason);
            let names = result.between_runs.iter().filter(of).map(|figure| figure.metric.as_str());
            page.field("why", &format!("{}: {reason}", names.collect::<Vec<_>>().join(", ")));
        }
    }
}
