//! Comparisons of runs, and several runs side by side.

use plimsoll_core::figure;
use plimsoll_metrics::RateUnit;

use super::markup::Markup;
use super::{ShownRun, mark};
use crate::compare::comparison::{Comparison, FigureRow, Incomparable, Word};
use crate::compare::measure::Measure;
use crate::render::document::times::main_time;
use crate::render::document::{Line, Span, figure_of, per_second};
use crate::render::layout::Emphasis;

/// Writes a comparison: its verdict, its notes and its figures; or the reasons why there is none.
pub(super) fn comparison(page: &mut Markup, comparison: &Result<Comparison, Incomparable>) {
    match comparison {
        Ok(comparison) => judged(page, comparison),
        Err(Incomparable(reasons)) => {
            let text = format!("These runs cannot be compared, only looked at: {}.", reasons.join("; "));
            page.element("p", "notice", &text);
        }
    }
}

/// Writes a comparison that could be made.
pub(super) fn judged(page: &mut Markup, comparison: &Comparison) {
    let (class, word) = match (&comparison.refused, comparison.broken(), comparison.verdict) {
        (Some(_), _, _) => ("doubtful", "Not judged"),
        (None, Some(_), _) => ("bad", "Fail"),
        (None, None, Word::Better) => ("good", "Better"),
        (None, None, Word::Worse) => ("bad", "Worse"),
        (None, None, Word::Same) => ("good", "Same"),
        (None, None, Word::Undecided) => ("doubtful", "Undecided"),
    };
    page.within("div", &format!("verdict {class}"), |page| {
        mark(page, class);
        page.within("div", "", |page| {
            page.element("p", "word", word);
            page.element("p", "", &format!("{}, compared with {}", comparison.b.name, comparison.a.name));
            if let Some(run) = &comparison.interleaved {
                page.element("p", "", &run.statement);
            }
        });
    });
    let findings = comparison.interleaved.iter().flat_map(|run| &run.findings);
    page.notes(findings.map(|finding| &finding.evidence));
    if let Some(refused) = &comparison.refused {
        page.element("p", "notice", &format!("{refused}; no conclusions are drawn."));
    }
    page.notes(comparison.notes.iter().map(|note| &note.text));
    let rows: Vec<Vec<Line>> = comparison.rows().into_iter().map(row).collect();
    let head =
        ["figure", comparison.a.name.as_str(), comparison.b.name.as_str(), "change", "interval", "p", ""];
    page.rows("Changes", &head, &rows);
    let reasons = comparison.reasons().into_iter().map(|(names, reason)| format!("{names}: {reason}"));
    let notes: Vec<String> = reasons.chain([comparison.question(), comparison.methods()]).collect();
    page.notes(&notes);
}

fn row(row: FigureRow) -> Vec<Line> {
    let emphasis = match row.verdict {
        Some(Word::Better | Word::Same) => Emphasis::Good,
        Some(Word::Worse) => Emphasis::Bad,
        Some(Word::Undecided) => Emphasis::Doubtful,
        None => Emphasis::Plain,
    };
    let sign = match row.verdict {
        Some(Word::Better) => "▲ ",
        Some(Word::Worse) => "▼ ",
        Some(Word::Same) => "= ",
        Some(Word::Undecided) => "? ",
        None => "",
    };
    let [a, b, change, interval, p] = row.cells.map(Line::from);
    vec![
        row.label.into(),
        a,
        b,
        change,
        interval.quiet(),
        p,
        Span::emphasised(emphasis, format!("{sign}{}", row.word)).into(),
    ]
}

/// The figures that everyone asks for, run by run.
pub(super) fn side_by_side(page: &mut Markup, runs: &[ShownRun<'_>]) {
    let rows: Vec<Vec<Line>> = runs.iter().enumerate().map(|(index, run)| of_run(index, run)).collect();
    let head =
        ["run", "verdict", "limited by", "achieved", "asked for", "p50", "p99", "max", "failed or timed out"];
    page.rows("Runs side by side", &head, &rows);
}

fn of_run(index: usize, run: &ShownRun<'_>) -> Vec<Line> {
    let result = run.result;
    let (name, at, summary) = main_time(result);
    // Links of the page point into the results of its runs, which are listed in order.
    let at = format!("/{index}{at}");
    let verdict = &result.verdict;
    let validity = if verdict.valid { "measurement valid" } else { "measurement INVALID" };
    let outcome = Span::emphasised(Emphasis::of(verdict.outcome), verdict.outcome.word());
    let pace = result.pace();
    // Both rates of a row are of the same unit.
    let (achieved, unit) = match pace.unit {
        RateUnit::Requests => ("achieved_per_s", "requests"),
        RateUnit::Iterations => ("iterations_started_per_s", "iterations started"),
    };
    let mut cells = vec![
        Line::from(run.name.as_str()).with_note(name),
        Line::from(outcome).with_note(validity),
        verdict.limited_by.what.replace('_', " ").into(),
        Line::from(per_second(pace.achieved, format!("/{index}/rate/{achieved}"))).with_note(unit),
        per_second(result.rate.target_per_s, format!("/{index}/rate/target_per_s")).into(),
    ];
    cells.extend(["50", "99", "max"].map(|figure| Line::from(figure_of(summary, &at, figure))));
    cells.push(Measure::Errors.of(result).map_or_else(|_| "-".to_owned(), figure::share).into());
    cells
}
