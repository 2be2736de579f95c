//! Comparisons of runs, and several runs side by side.

use plimsoll_metrics::figure;

use super::markup::{Cell, Markup, Unit};
use super::times::{figure_of, main_time};
use super::verdict::class;
use super::{ShownRun, mark};
use crate::compare::comparison::{Comparison, FigureRow, Incomparable, Word};
use crate::compare::measure::Measure;

/// Writes a comparison: its verdict, its notes and its figures; or the reasons why there is none.
pub(super) fn comparison(page: &mut Markup, comparison: &Result<Comparison, Incomparable>) {
    let comparison = match comparison {
        Ok(comparison) => comparison,
        Err(Incomparable(reasons)) => {
            let text = format!("These runs cannot be compared, only looked at: {}.", reasons.join("; "));
            return page.element("p", "notice", &text);
        }
    };
    let (class, word) = match (&comparison.refused, comparison.verdict) {
        (Some(_), _) => ("bad", "Not judged"),
        (None, Word::Better) => ("good", "Better"),
        (None, Word::Worse) => ("bad", "Worse"),
        (None, Word::Same) => ("good", "Same"),
        (None, Word::Undecided) => ("doubtful", "Undecided"),
    };
    page.within("div", &format!("verdict {class}"), |page| {
        mark(page, class);
        page.within("div", "", |page| {
            page.element("p", "word", word);
            page.element("p", "", &format!("{}, compared with {}", comparison.b.name, comparison.a.name));
        });
    });
    if let Some(refused) = &comparison.refused {
        page.element("p", "notice", &format!("{refused}; nothing is concluded from such runs."));
    }
    if !comparison.notes.is_empty() {
        page.within("ul", "notes", |page| {
            comparison.notes.iter().for_each(|note| page.element("li", "", &note.text));
        });
    }
    let rows: Vec<Vec<Cell>> = comparison.rows().into_iter().map(row).collect();
    let head =
        ["figure", comparison.a.name.as_str(), comparison.b.name.as_str(), "change", "interval", "p", ""];
    page.table("Changes", &head, &rows);
    page.within("ul", "notes", |page| {
        for (names, reason) in comparison.reasons() {
            page.element("li", "", &format!("{names}: {reason}"));
        }
        page.element("li", "", &comparison.question());
        page.element("li", "", &comparison.methods());
    });
}

fn row(row: FigureRow) -> Vec<Cell> {
    let class = match row.verdict {
        Some(Word::Better | Word::Same) => "good",
        Some(Word::Worse) => "bad",
        Some(Word::Undecided) => "doubtful",
        None => "",
    };
    let sign = match row.verdict {
        Some(Word::Better) => "▲ ",
        Some(Word::Worse) => "▼ ",
        Some(Word::Same) => "= ",
        Some(Word::Undecided) => "? ",
        None => "",
    };
    let [a, b, change, interval, p] = row.cells.map(Cell::text);
    vec![
        Cell::text(row.label),
        a,
        b,
        change,
        interval.with_class("interval"),
        p,
        Cell::text(format!("{sign}{}", row.word)).with_class(class),
    ]
}

/// The figures that everyone asks for, run by run.
pub(super) fn side_by_side(page: &mut Markup, runs: &[ShownRun<'_>]) {
    let rows: Vec<Vec<Cell>> = runs.iter().enumerate().map(|(index, run)| of_run(index, run)).collect();
    let head =
        ["run", "verdict", "limited by", "achieved", "asked for", "p50", "p99", "max", "failed or timed out"];
    page.table("Runs side by side", &head, &rows);
}

fn of_run(index: usize, run: &ShownRun<'_>) -> Vec<Cell> {
    let result = run.result;
    let (name, key, summary) = main_time(result);
    // Figures of the page point into the results of its runs, one after the other.
    let at = |pointer: &str| format!("/{index}{pointer}");
    let rate = |value: Option<f64>, pointer: &str| {
        Cell::figure(value.map_or("-".to_owned(), figure::per_second), at(pointer), Unit::PerSecond)
    };
    let verdict = &result.verdict;
    let validity = if verdict.valid { "measurement valid" } else { "measurement INVALID" };
    let key = format!("{index}/{key}");
    let mut cells = vec![
        Cell::text(&run.name).with_note(name),
        Cell::text(verdict.outcome.word()).with_class(class(verdict.outcome)).with_note(validity),
        Cell::text(verdict.limited_by.what.replace('_', " ")),
        rate(result.rate.achieved_per_s, "/rate/achieved_per_s"),
        rate(result.rate.target_per_s, "/rate/target_per_s"),
    ];
    cells.extend(["50", "99", "max"].map(|figure| figure_of(summary, &key, figure)));
    cells.push(Cell::text(Measure::Errors.of(result).map_or_else(|_| "-".to_owned(), figure::share)));
    cells
}
