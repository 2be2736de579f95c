//! Tables of a run step by step and over time: steps, phases, changes of the rate, stalls.

use plimsoll_core::figure;
use plimsoll_metrics::RateUnit;

use super::{
    Line, Shown, Span, Table, Unit, bounded, count, figure_of, length, list, nanos, per_second, seconds,
    step_name, words,
};
use crate::contract::example::ErrorExampleResult;
use crate::contract::phase::PhaseResult;
use crate::contract::result::{ModelKind, RateChangeResult, RunResult, StepResult};

/// Rows of a table of things that may be many.
const MOST_ROWS: usize = 100;

pub(super) fn steps(result: &RunResult) -> Table {
    let open = result.model.kind == ModelKind::Open;
    let (name, key) = if open { ("response", "response_time") } else { ("service", "service_time") };
    let row = |(index, step): (usize, &StepResult)| {
        let time = if open { &step.response_time } else { &step.service_time };
        let at = |key: &str| format!("/by_step/{index}/{key}");
        let figure = |name: &str| Line::from(figure_of(time, &at(key), name));
        let said =
            |(class, example): (&String, &ErrorExampleResult)| format!("{class}: {}", example.summary());
        let said: Vec<String> = step.error_examples.iter().map(said).collect();
        vec![
            step_name(step).into(),
            count(step.ok, at("ok")).into(),
            count(step.failed, at("failed")).into(),
            count(step.timed_out, at("timed_out")).into(),
            figure("50"),
            figure("90"),
            figure("99"),
            figure("max"),
            list(&step.statuses).into(),
            list(&step.errors).into(),
            said.join(", ").into(),
        ]
    };
    let [p50, p90, p99] = ["p50", "p90", "p99"].map(|p| format!("{name} {p}"));
    let columns = [
        ("step", Shown::Everywhere),
        ("ok", Shown::Everywhere),
        ("failed", Shown::Everywhere),
        ("timed out", Shown::Everywhere),
        (&p50, Shown::Everywhere),
        (&p90, Shown::Page),
        (&p99, Shown::Everywhere),
        ("max", Shown::Page),
        ("statuses", Shown::Page),
        ("errors", Shown::Page),
        ("the first said", Shown::Page),
    ];
    Table::new(format!("Steps, with their {name} time"), columns, result.by_step.iter().enumerate().map(row))
}

/// The first failure of each step and class, where several steps failed: those of all together are of one of
/// them only.
pub(super) fn examples(result: &RunResult) -> Vec<String> {
    let failed = || result.by_step.iter().filter(|step| !step.error_examples.is_empty());
    if failed().count() < 2 {
        return Vec::new();
    }
    let lines = failed().flat_map(|step| {
        step.error_examples.iter().map(move |(class, example)| {
            let (at, summary) = (seconds(example.at_s), example.summary());
            format!("{}: {class}, the first after {at}: {summary}", step.step)
        })
    });
    lines.collect()
}

pub(super) fn phases(result: &RunResult) -> Table {
    let (achieved, rate_key) = match result.rate_unit() {
        RateUnit::Requests => ("achieved", "achieved_per_s"),
        RateUnit::Iterations => ("iterations started", "iterations_started_per_s"),
    };
    let row = |(index, phase): (usize, &PhaseResult)| {
        let times = &phase.response_time;
        let at = |key: &str| format!("/phases/{index}/{key}");
        let time = |name: &str, value| {
            let text = bounded(value, times.is_at_least(name));
            Line::from(Span::figure(text, at(&format!("response_time/p/{name}")), Unit::Nanos))
        };
        vec![
            Line::from(phase.name.as_str()).with_note(if phase.measured { "" } else { "not measured" }),
            phase_note(result, phase).into(),
            length(phase.at_s, at("at_s")).into(),
            length(phase.duration_s, at("duration_s")).into(),
            per_second(phase.target_per_s, at("target_per_s")).into(),
            phase.achieved_per_s.map_or("-".to_owned(), figure::per_second).into(),
            per_second(result.pace_of(phase).achieved, at(rate_key)).into(),
            count(phase.ok, at("ok")).into(),
            count(phase.failed, at("failed")).into(),
            count(phase.timed_out, at("timed_out")).into(),
            time("50", times.p.p50),
            time("99", times.p.p99),
        ]
    };
    let columns = [
        ("phase", Shown::MarkdownAndPage),
        ("", Shown::Text),
        ("from", Shown::Page),
        ("length", Shown::MarkdownAndPage),
        ("asked for", Shown::Page),
        ("achieved", Shown::Text),
        (achieved, Shown::MarkdownAndPage),
        ("ok", Shown::Everywhere),
        ("failed", Shown::Everywhere),
        ("timed out", Shown::Everywhere),
        ("p50", Shown::Everywhere),
        ("p99", Shown::Everywhere),
    ];
    let caption = "Phases, with the response time of requests that ended in each";
    Table::new(caption, columns, result.phases.iter().enumerate().map(row))
}

/// `low, 10.0 s of 500/s asked for, not measured`: the note of a text behind the figures of a phase.
fn phase_note(result: &RunResult, phase: &PhaseResult) -> String {
    let mut note = format!("{}, {}", phase.name, seconds(phase.duration_s));
    if let Some(asked) = result.pace_of(phase).asked_text() {
        note.push_str(&format!(" of {asked}"));
    }
    if !phase.measured {
        note.push_str(", not measured");
    }
    note
}

pub(super) fn changes(result: &RunResult) -> Table {
    let row = |(index, change): (usize, &RateChangeResult)| {
        let at = |key: &str| format!("/rate/changes/{index}/{key}");
        vec![
            length(change.at_s, at("at_s")).into(),
            words(&change.what, at("what")).into(),
            per_second(change.from_per_s, at("from_per_s")).into(),
            per_second(change.to_per_s, at("to_per_s")).into(),
            words(&change.by, at("by")).into(),
        ]
    };
    let heads = ["at", "what", "from", "to", "by"].map(|title| (title, Shown::Page));
    let rows = result.rate.changes.iter().enumerate().map(row);
    Table::new("Changes of the rate while the run went on", heads, rows).of_first(MOST_ROWS)
}

pub(super) fn stalls(result: &RunResult) -> Table {
    let workers = result.generator.workers.iter().enumerate();
    let rows = workers.flat_map(|(worker, found)| {
        found.stalls.iter().enumerate().map(move |(index, stall)| {
            let at = |key: &str| format!("/generator/workers/{worker}/stalls/{index}/{key}");
            vec![
                length(stall.at_s, at("at_s")).into(),
                nanos(stall.length_ns, at("length_ns")).into(),
                worker.to_string().into(),
            ]
        })
    });
    let heads = ["at", "length", "worker"].map(|title| (title, Shown::Page));
    Table::new("Stalls of the generator: a worker had work and did not run", heads, rows).of_first(MOST_ROWS)
}
