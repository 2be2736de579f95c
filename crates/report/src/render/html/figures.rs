//! The tables of a run beside its times: phases and changes, steps, answers, connections.

use std::collections::BTreeMap;

use plimsoll_core::Nanos;
use plimsoll_metrics::{RateUnit, figure};

use super::markup::{Cell, Markup, Unit, pointer};
use super::times::{figure_of, seconds};
use crate::contract::example::ErrorExampleResult;
use crate::contract::result::{ModelKind, RunResult};
use crate::render::text;

/// Rows of a table of things that may be many.
const MOST_ROWS: usize = 100;

/// A number of the accounting with its name below it.
pub(super) fn counted(page: &mut Markup, key: &str, count: u64, class: &'static str) {
    page.within("span", &format!("counted {class}"), |page| {
        page.cell(&Cell::figure(figure::count(count), pointer(&["accounting", key]), Unit::Count));
        page.element("small", "", &key.replace('_', " "));
    });
}

/// Writes the model, the rate that was asked for and achieved, and the lengths of the parts of the run.
pub(super) fn rate(page: &mut Markup, result: &RunResult) {
    let model = match result.model.kind {
        ModelKind::Open => "open: requests were scheduled, whatever the target did",
        ModelKind::Closed => "closed: each user waited for its response before its next request",
    };
    let mut facts = vec![("model", Cell::text(model)), ("rate", Cell::text(text::rate_line(result)))];
    facts.push(("measured", seconds(result.duration_s, "/duration_s")));
    facts.push(("warm-up", seconds(result.warmup_s, "/warmup_s")));
    facts.push(("drain", seconds(result.drain_s, "/drain_s")));
    let steady = match (result.steady.from_s, &result.steady.reason) {
        (Some(from), _) if from > result.warmup_s => Cell::text(format!("from {} on", text::seconds(from))),
        (Some(_), _) => Cell::text("from the beginning"),
        (None, reason) => Cell::text(reason.clone().unwrap_or_else(|| "not known".to_owned())),
    };
    facts.push(("steady", steady));
    if let Some(little) = &result.little {
        let word = if little.holds { "holds" } else { "does not hold" };
        let text = format!(
            "{word}: {:.1} ± {:.1} in flight, rate × time {:.1}",
            little.in_flight, little.in_flight_error, little.rate_times_time
        );
        facts.push(("Little's law", Cell::text(text)));
    }
    page.facts(&facts);
}

/// Phases, and what happened at one time or another.
pub(super) fn phases(page: &mut Markup, result: &RunResult) {
    let unit = result.rate_unit();
    let rows: Vec<Vec<Cell>> = result
        .phases
        .iter()
        .enumerate()
        .map(|(index, phase)| {
            let index = index.to_string();
            let at = |keys: &[&str]| pointer(&[&["phases", &index], keys].concat());
            let rate = |value: Option<f64>, key: &str| {
                Cell::figure(value.map_or("-".to_owned(), figure::per_second), at(&[key]), Unit::PerSecond)
            };
            let count = |value: u64, key: &str| Cell::figure(figure::count(value), at(&[key]), Unit::Count);
            let time = |value, name: &str| {
                let text = text::phase_cell(&phase.response_time, name, value);
                Cell::figure(text, at(&["response_time", "p", name]), Unit::Nanos)
            };
            let name = if phase.measured { "" } else { "not measured" };
            vec![
                Cell::text(&phase.name).with_note(name),
                seconds(phase.at_s, &at(&["at_s"])),
                seconds(phase.duration_s, &at(&["duration_s"])),
                rate(phase.target_per_s, "target_per_s"),
                rate(
                    result.pace_of(phase).achieved,
                    match unit {
                        RateUnit::Requests => "achieved_per_s",
                        RateUnit::Iterations => "iterations_started_per_s",
                    },
                ),
                count(phase.ok, "ok"),
                count(phase.failed, "failed"),
                count(phase.timed_out, "timed_out"),
                time(phase.response_time.p.p50, "50"),
                time(phase.response_time.p.p99, "99"),
            ]
        })
        .collect();
    if !rows.is_empty() {
        let achieved = match unit {
            RateUnit::Requests => "achieved",
            RateUnit::Iterations => "iterations started",
        };
        let head =
            ["phase", "from", "length", "asked for", achieved, "ok", "failed", "timed out", "p50", "p99"];
        page.table("Phases, with the response time of what ended in each", &head, &rows);
    }
    changes(page, result);
    stalls(page, result);
}

fn changes(page: &mut Markup, result: &RunResult) {
    let rows: Vec<Vec<Cell>> = result
        .rate
        .changes
        .iter()
        .enumerate()
        .take(MOST_ROWS)
        .map(|(index, change)| {
            let index = index.to_string();
            let at = |key: &str| pointer(&["rate", "changes", &index, key]);
            let rate = |value: Option<f64>, key: &str| {
                Cell::figure(value.map_or("-".to_owned(), figure::per_second), at(key), Unit::PerSecond)
            };
            vec![
                seconds(change.at_s, &at("at_s")),
                Cell::figure(&change.what, at("what"), Unit::Text),
                rate(change.from_per_s, "from_per_s"),
                rate(change.to_per_s, "to_per_s"),
                Cell::figure(&change.by, at("by"), Unit::Text),
            ]
        })
        .collect();
    if !rows.is_empty() {
        page.table("Changes of the rate while the run went on", &["at", "what", "from", "to", "by"], &rows);
        more(page, result.rate.changes.len());
    }
}

fn stalls(page: &mut Markup, result: &RunResult) {
    let workers = result.generator.workers.iter().enumerate();
    let stalls: Vec<Vec<Cell>> = workers
        .flat_map(|(worker, found)| found.stalls.iter().enumerate().map(move |at| (worker, at)))
        .map(|(worker, (index, stall))| {
            let (number, index) = (worker.to_string(), index.to_string());
            let at = |key: &str| pointer(&["generator", "workers", &number, "stalls", &index, key]);
            vec![
                seconds(stall.at_s, &at("at_s")),
                Cell::figure(figure::nanos(Nanos(stall.length_ns)), at("length_ns"), Unit::Nanos),
                Cell::text(number.clone()),
            ]
        })
        .collect();
    if !stalls.is_empty() {
        let shown = &stalls[..stalls.len().min(MOST_ROWS)];
        page.table(
            "Stalls of the generator: a worker had work and did not run",
            &["at", "length", "worker"],
            shown,
        );
        more(page, stalls.len());
    }
}

fn more(page: &mut Markup, rows: usize) {
    if rows > MOST_ROWS {
        page.element("p", "hint", &format!("and {} more, in the result in JSON", rows - MOST_ROWS));
    }
}

/// Step by step.
pub(super) fn steps(page: &mut Markup, result: &RunResult) {
    let open = result.model.kind == ModelKind::Open;
    let rows: Vec<Vec<Cell>> = result
        .by_step
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let index = index.to_string();
            let at = |key: &str| pointer(&["by_step", &index, key]);
            let count = |value: u64, key: &str| Cell::figure(figure::count(value), at(key), Unit::Count);
            let (key, time) = if open {
                ("response_time", &step.response_time)
            } else {
                ("service_time", &step.service_time)
            };
            let key = format!("by_step/{index}/{key}");
            let mut row = vec![
                Cell::figure(&step.step, at("step"), Unit::Text),
                Cell::figure(&step.scenario, at("scenario"), Unit::Text),
                count(step.ok, "ok"),
                count(step.failed, "failed"),
                count(step.timed_out, "timed_out"),
            ];
            row.extend(["50", "90", "99", "max"].map(|name| figure_of(time, &key, name)));
            row.push(Cell::text(list(&step.statuses)));
            row.push(Cell::text(list(&step.errors)));
            let said =
                |(class, example): (&String, &ErrorExampleResult)| format!("{class}: {}", example.summary());
            row.push(Cell::text(step.error_examples.iter().map(said).collect::<Vec<_>>().join(", ")));
            row
        })
        .collect();
    let time = if open { "response time" } else { "service time" };
    let head = [
        "step",
        "scenario",
        "ok",
        "failed",
        "timed out",
        "p50",
        "p90",
        "p99",
        "max",
        "statuses",
        "errors",
        "the first said",
    ];
    page.table(&format!("Steps, with their {time}"), &head, &rows);
}

fn list(counts: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name}: {}", figure::count(*count))).collect();
    all.join(", ")
}

/// Statuses, protocols and errors.
pub(super) fn answers(page: &mut Markup, result: &RunResult) {
    let rows = |key: &str, counts: &BTreeMap<String, u64>| -> Vec<Vec<Cell>> {
        let accounting = &result.accounting;
        let ended = accounting.ok + accounting.failed + accounting.timed_out + accounting.aborted;
        let ended = ended.max(1);
        let row = |(name, count): (&String, &u64)| {
            let share = figure::share(*count as f64 / ended as f64);
            vec![
                Cell::text(name),
                Cell::figure(figure::count(*count), pointer(&[key, name]), Unit::Count),
                Cell::text(share),
            ]
        };
        counts.iter().map(row).collect()
    };
    page.within("div", "columns", |page| {
        let statuses = rows("statuses", &result.statuses);
        if statuses.is_empty() {
            page.element("p", "empty", "Not one response came.");
        } else {
            page.table("Responses by status", &["status", "responses", "of ended requests"], &statuses);
        }
        let errors: Vec<Vec<Cell>> = rows("errors", &result.errors)
            .into_iter()
            .zip(result.errors.keys())
            .map(|(mut row, class)| {
                row.push(Cell::text(result.error_examples.get(class).cloned().unwrap_or_default()));
                row
            })
            .collect();
        if errors.is_empty() {
            page.element("p", "empty", "No request failed.");
        } else {
            let head = ["class", "requests", "of ended requests", "the first said"];
            page.table("Failed requests by class", &head, &errors);
        }
        if result.protocols.len() > 1 {
            let protocols = rows("protocols", &result.protocols);
            page.table("Responses by protocol", &["protocol", "responses", "of ended requests"], &protocols);
        }
    });
    connections(page, result);
}

fn connections(page: &mut Markup, result: &RunResult) {
    let connections = &result.connections;
    let count = |key: &str, value: u64| {
        Cell::figure(figure::count(value), pointer(&["connections", key]), Unit::Count)
    };
    let mut facts = vec![
        ("opened", count("opened", connections.opened)),
        ("open at once at most", count("peak_open", connections.peak_open)),
        ("allowed", count("limit", connections.limit)),
        ("closed by the target while idle", count("closed_idle", connections.closed_idle)),
    ];
    if connections.tls_resumed > 0 {
        facts.push(("TLS sessions resumed", count("tls_resumed", connections.tls_resumed)));
    }
    if !connections.failed.is_empty() {
        facts.push(("failed attempts", Cell::text(list(&connections.failed)).with_class("bad")));
    }
    if connections.blocked_s > 0.0 {
        facts.push(("due arrivals waited", seconds(connections.blocked_s, "/connections/blocked_s")));
        let at_limit = seconds(connections.blocked_at_limit_s, "/connections/blocked_at_limit_s");
        facts.push(("of that at the limit", at_limit));
    }
    page.element("h3", "", "Connections");
    page.facts(&facts);
    let Some(http2) = &result.http2 else { return };
    page.element("h3", "", "HTTP/2");
    let count =
        |key: &str, value: u64| Cell::figure(figure::count(value), pointer(&["http2", key]), Unit::Count);
    let limit = http2.stream_limit.map_or("none".to_owned(), figure::count);
    let mut facts = vec![
        ("connections", count("connections", http2.connections)),
        ("streams asked for per connection", count("streams_asked", http2.streams_asked)),
        ("limit of the server", Cell::text(limit)),
        ("cancelled on timeout", count("cancelled", http2.cancelled)),
    ];
    let by_code = [
        ("reset by the server", &http2.resets),
        ("GOAWAY of the server", &http2.go_aways),
        ("violations by the server", &http2.violations),
    ];
    for (name, counts) in by_code {
        if !counts.is_empty() {
            facts.push((name, Cell::text(list(counts))));
        }
    }
    page.facts(&facts);
}
