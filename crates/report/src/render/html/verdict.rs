//! The head of the page: the outcome of the run, the validity of the measurement, what limited the run, and
//! the few figures that everyone asks for.

use plimsoll_metrics::{RateUnit, figure};

use super::markup::{Cell, Markup, Unit, pointer};
use super::times::{figure_of, main_time};
use super::{figures, mark};
use crate::compare::measure::Measure;
use crate::contract::result::{Finding, OutcomeResult, RunResult};
use crate::render::layout::Emphasis;
use crate::render::text;

/// The verdict of a run, with everything that belongs to it.
pub(super) fn verdict(page: &mut Markup, result: &RunResult) {
    let verdict = &result.verdict;
    let class = class(verdict.outcome);
    page.within("div", &format!("verdict {class}"), |page| {
        mark(page, class);
        page.within("div", "", |page| {
            page.open("p", &[("class", "word"), ("data-of", "/verdict/outcome"), ("data-unit", "outcome")]);
            page.text(verdict.outcome.word());
            page.close("p");
            page.open("p", &[("data-of", "/verdict/summary"), ("data-unit", "text")]);
            page.text(&verdict.summary);
            page.close("p");
            page.element("p", if verdict.valid { "validity" } else { "validity bad" }, &verdict.validity());
        });
    });
    ended_early(page, result);
    findings(page, "Why it is invalid", "bad", &verdict.evidence);
    limited_by(page, result);
    tiles(page, result);
    thresholds(page, result);
    records(page, result);
    findings(page, "Warnings", "doubtful", &verdict.warnings);
    if !result.notes.is_empty() {
        page.within("ul", "notes", |page| {
            result.notes.iter().for_each(|note| page.element("li", "", &note.text));
        });
    }
}

/// Returns the CSS class of an outcome.
pub(super) const fn class(outcome: OutcomeResult) -> &'static str {
    match outcome {
        OutcomeResult::Pass => "good",
        OutcomeResult::Fail => "bad",
        OutcomeResult::Done => "done",
        OutcomeResult::NoVerdict => "doubtful",
    }
}

fn ended_early(page: &mut Markup, result: &RunResult) {
    let run = &result.run;
    let rest = "the figures are of the part before it";
    let text = if let Some(threshold) = &run.ended_by_threshold {
        format!("Ended early by the threshold {threshold}: {rest}.")
    } else if let Some(signal) = run.interrupted_by_signal {
        format!("Interrupted by signal {signal}: {rest}.")
    } else if let Some(by) = &run.stopped_by {
        format!("Stopped by {by}: {rest}.")
    } else {
        return;
    };
    page.element("p", "notice", &text);
}

fn findings(page: &mut Markup, title: &str, class: &'static str, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    page.element("h3", "", title);
    page.within("ul", &format!("findings {class}"), |page| {
        for finding in findings {
            page.within("li", "", |page| {
                mark(page, class);
                page.within("div", "", |page| {
                    page.element("strong", "", &finding.code.replace('_', " "));
                    page.text(": ");
                    page.text(&finding.evidence);
                    hint(page, &finding.hint);
                });
            });
        }
    });
}

fn hint(page: &mut Markup, hint: &str) {
    if !hint.is_empty() {
        page.element("p", "hint", &format!("Hint: {hint}"));
    }
}

fn limited_by(page: &mut Markup, result: &RunResult) {
    let limited = &result.verdict.limited_by;
    if limited.evidence.is_empty() {
        return;
    }
    // What a finding says in full is only named here.
    let mut findings = result.verdict.evidence.iter().chain(&result.verdict.warnings);
    let is_said = findings.any(|finding| finding.evidence == limited.evidence);
    page.within("div", "limited", |page| {
        page.open("p", &[]);
        page.element("strong", "", "Limited by: ");
        page.cell(&Cell::figure(limited.what.replace('_', " "), "/verdict/limited_by/what", Unit::Text));
        if !is_said {
            page.text(" – ");
            page.text(&limited.evidence);
        }
        page.close("p");
        if !is_said {
            hint(page, &limited.hint);
        }
    });
}

/// The few figures that everyone asks for.
fn tiles(page: &mut Markup, result: &RunResult) {
    let (name, key, summary) = main_time(result);
    let rate = &result.rate;
    let pace = result.pace();
    let (label, rate_key) = match pace.unit {
        RateUnit::Requests => ("achieved rate", "/rate/achieved_per_s"),
        RateUnit::Iterations => ("iterations started", "/rate/iterations_started_per_s"),
    };
    let mut asked = pace.asked.map(|asked| format!("of {} asked for", figure::per_second(asked)));
    if let (RateUnit::Iterations, Some(requests)) = (pace.unit, rate.achieved_per_s) {
        let requests = figure::per_second_of("requests", requests);
        asked = Some(asked.map_or(requests.clone(), |asked| format!("{asked} · {requests}")));
    }
    let percentile = |p: &str| {
        let unknown = summary.p_missing.get(p).cloned().unwrap_or_default();
        (
            figure_of(summary, key, p),
            summary.interval_of(p).map_or(unknown, crate::contract::interval::PercentileBounds::sentence),
        )
    };
    let (p50, p50_interval) = percentile("50");
    let (p99, p99_interval) = percentile("99");
    let accounting = &result.accounting;
    let bad = accounting.failed + accounting.timed_out;
    let errors = Measure::Errors.of(result).map_or_else(|_| "-".to_owned(), figure::share);
    let ended = accounting.ok + bad;
    page.within("div", "tiles", |page| {
        let achieved = pace.achieved.map_or("-".to_owned(), figure::per_second);
        let achieved = Cell::figure(achieved, rate_key, Unit::PerSecond);
        tile(page, label, &achieved, &asked.unwrap_or_default());
        tile(page, &format!("{name} p50"), &p50, &p50_interval);
        tile(page, &format!("{name} p99"), &p99, &p99_interval);
        let of = format!("{} of {} requests", figure::count(bad), figure::count(ended));
        tile(page, "failed or timed out", &Cell::text(errors), &of);
    });
    if summary.is_at_least("99") || summary.is_at_least("50") {
        page.element(
            "p",
            "hint",
            "≥ marks lower bounds: timed-out requests count as at least as long as they were waited for.",
        );
    }
}

fn tile(page: &mut Markup, label: &str, value: &Cell, below: &str) {
    page.within("div", "tile", |page| {
        page.element("span", "label", label);
        page.within("span", "value", |page| page.cell(value));
        page.element("span", "below", below);
    });
}

fn thresholds(page: &mut Markup, result: &RunResult) {
    if result.thresholds.is_empty() {
        return;
    }
    let row = |(index, threshold): (usize, &crate::contract::result::ThresholdOutcome)| {
        let (class, word) = match threshold.holds() {
            Some(true) => ("good", "✓ pass"),
            Some(false) => ("bad", "✗ fail"),
            None => ("doubtful", "! not judged"),
        };
        let index = index.to_string();
        let at = |keys: &[&str]| pointer(&[&["thresholds", &index], keys].concat());
        let observed = match &threshold.observed {
            Some(observed) => Cell::figure(&observed.text, at(&["observed", "text"]), Unit::Text),
            None => Cell::text("-"),
        };
        let reason = threshold.reason.clone().unwrap_or_default();
        vec![
            // First, so that it is in sight on a narrow screen.
            Cell::text(word).with_class(class),
            Cell::text(threshold.heading()),
            observed,
            Cell::text([text::windows(threshold).unwrap_or_default(), reason].join(" ").trim()),
        ]
    };
    let rows: Vec<Vec<Cell>> = result.thresholds.iter().enumerate().map(row).collect();
    page.table("Thresholds", &["", "threshold", "observed", "windows"], &rows);
    if result.thresholds.iter().any(|threshold| threshold.holds().is_none()) {
        page.element("p", "hint", "An invalid measurement proves nothing about what is not judged.");
    }
}

/// Writes the table of the records that requests carried.
fn records(page: &mut Markup, result: &RunResult) {
    let lines = text::records::lines(result);
    if lines.is_empty() {
        return;
    }
    let row = |line: &text::records::Line| {
        let class = match line.word {
            Some((Emphasis::Bad, _)) => "bad",
            Some(_) => "doubtful",
            None => "",
        };
        vec![Cell::text(line.label), Cell::text(line.text()).with_class(class)]
    };
    let rows: Vec<Vec<Cell>> = lines.iter().map(row).collect();
    page.table("Records", &["", ""], &rows);
}

/// The accounting identity: where every arrival and every request went.
pub(super) fn accounting(page: &mut Markup, result: &RunResult) {
    let accounting = &result.accounting;
    let flow = |page: &mut Markup, (whole, count): (&str, u64), parts: &[(&str, u64, &'static str)]| {
        page.within("p", "identity", |page| {
            figures::counted(page, whole, count, "");
            for (position, (name, count, class)) in parts.iter().enumerate() {
                page.element("span", "sign", if position == 0 { "=" } else { "+" });
                figures::counted(page, name, *count, if *count > 0 { class } else { "" });
            }
        });
    };
    flow(
        page,
        ("scheduled", accounting.scheduled),
        &[
            ("started", accounting.started, ""),
            ("dropped", accounting.dropped, "doubtful"),
            ("never_started", accounting.never_started, "doubtful"),
        ],
    );
    flow(
        page,
        ("started", accounting.started),
        &[
            ("ok", accounting.ok, "good"),
            ("failed", accounting.failed, "bad"),
            ("timed_out", accounting.timed_out, "bad"),
            ("aborted", accounting.aborted, "doubtful"),
            ("in_flight_at_stop", accounting.in_flight_at_stop, "doubtful"),
        ],
    );
    if accounting.incomplete {
        page.element("p", "notice", "Without what workers did that have not come back: see the verdict.");
    }
    let count = |key: &str, value: u64| {
        Cell::figure(figure::count(value), pointer(&["accounting", key]), Unit::Count)
    };
    let mut facts = vec![
        ("started, of which nothing was sent", count("undelivered", accounting.undelivered)),
        ("sent before the measured part", count("unmeasured", accounting.unmeasured)),
        ("redirects followed", count("redirects_followed", accounting.redirects_followed)),
    ];
    if accounting.polls > 0 {
        facts.push(("sent again for an answer", count("polls", accounting.polls)));
    }
    if accounting.without_data > 0 {
        facts.push(("never started for want of data", count("without_data", accounting.without_data)));
    }
    let bytes =
        |key: &str, value: u64| Cell::figure(figure::bytes(value), pointer(&["bytes", key]), Unit::Bytes);
    facts.push(("bytes sent", bytes("sent", result.bytes.sent)));
    facts.push(("bytes received", bytes("received", result.bytes.received)));
    page.facts(&facts);
    if text::iterations_differ(result) {
        let iterations = &result.iterations;
        let count = |key: &str, value: u64| {
            Cell::figure(figure::count(value), pointer(&["iterations", key]), Unit::Count)
        };
        page.element("h3", "", "Iterations");
        page.facts(&[
            ("started", count("started", iterations.started)),
            ("completed", count("completed", iterations.completed)),
            ("failed", count("failed", iterations.failed)),
            ("unfinished", count("unfinished", iterations.unfinished)),
        ]);
    }
}
