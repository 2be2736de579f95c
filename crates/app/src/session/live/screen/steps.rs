//! The table of steps.

use plimsoll_core::figure;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Sparkline, Widget as _};

use super::figures::{Figures, StepFigures};
use super::frame::{cut, time, titled};
use super::look::{BAD, HEADING, LABEL, RATE};

/// Columns of the name, at least and at most.
const NAME: (usize, usize) = (16, 60);
/// Columns of the chart of a step, at least and at most.
const CHART: (usize, usize) = (10, 60);

/// A column: its head, its width, and its text with whether it is bad news.
type Column = (&'static str, usize, fn(&StepFigures) -> (String, bool));

/// In the order of how much they matter; they are shown in the order of [`PLACES`].
const COLUMNS: [Column; 10] = [
    ("rate", 9, |step| (figure::per_second(step.rate), false)),
    ("p99", 9, |step| (time(&step.run, 2), false)),
    ("failed", 8, |step| (figure::count(step.bad), step.bad > 0)),
    ("p50", 9, |step| (time(&step.run, 0), false)),
    ("ok", 10, |step| (figure::count(step.ok), false)),
    ("max", 9, |step| (time(&step.run, 3), false)),
    ("p90", 9, |step| (time(&step.run, 1), false)),
    ("p50 now", 10, |step| (time(&step.now, 0), false)),
    ("p99 now", 10, |step| (time(&step.now, 2), false)),
    ("max now", 10, |step| (time(&step.now, 3), false)),
];
const PLACES: [usize; 10] = [0, 4, 2, 3, 6, 1, 5, 7, 8, 9];

/// Draws the rows from `first` on, which is corrected where it is beyond the end. Returns the number that
/// fit.
pub(super) fn table(figures: &Figures, first: &mut usize, area: Rect, buffer: &mut Buffer) -> usize {
    let inner = titled("steps", "times over the run", area, buffer);
    let (all, room) = (figures.steps.len(), usize::from(inner.height).saturating_sub(1));
    if room == 0 {
        return 0;
    }
    let fits = if all > room { room - 1 } else { room };
    *first = (*first).min(all.saturating_sub(fits));
    let (name, columns, chart) = widths(usize::from(inner.width));
    head(name, &columns, chart, inner, buffer);
    let mut rows = inner.rows().skip(1);
    // Failing steps come first, the others in the order of the plan.
    let mut steps: Vec<&StepFigures> = figures.steps.iter().collect();
    steps.sort_by_key(|step| step.bad == 0);
    let shown = steps.into_iter().skip(*first).take(fits);
    for (step, place) in shown.zip(&mut rows) {
        row(step, name, &columns, chart, place, buffer);
    }
    if all > fits {
        let (above, below) = (*first, all - fits - *first);
        let words = match (above, below) {
            (0, below) => format!("\u{2026} and {below} more below"),
            (above, 0) => format!("\u{2026} and {above} more above"),
            (above, below) => format!("\u{2026} and {above} more above, {below} below"),
        };
        if let Some(place) = rows.next() {
            cut(&words, LABEL, place, buffer);
        }
    }
    fits
}

/// Columns of the name, the columns that there is room for, and those of the chart.
fn widths(width: usize) -> (usize, Vec<Column>, usize) {
    let mut left = width.saturating_sub(NAME.0);
    let mut chosen = [false; COLUMNS.len()];
    for (chosen, (_, width, _)) in chosen.iter_mut().zip(COLUMNS) {
        if left < width {
            break;
        }
        *chosen = true;
        left -= width;
    }
    let columns = PLACES.iter().filter(|place| chosen[**place]).map(|place| COLUMNS[*place]).collect();
    // The name and a chart share the remaining width.
    let chart = if left >= 2 * CHART.0 { (left / 2).min(CHART.1) } else { 0 };
    ((NAME.0 + left - chart).min(NAME.1), columns, chart)
}

fn head(name: usize, columns: &[Column], chart: usize, area: Rect, buffer: &mut Buffer) {
    let mut text = format!("{:<name$}", "name");
    columns.iter().for_each(|(head, width, _)| text.push_str(&format!("{head:>width$}")));
    if chart > 2 {
        text.push_str("  rate over time");
    }
    Line::styled(text, LABEL).render(Rect { height: 1, ..area }, buffer);
}

fn row(step: &StepFigures, name: usize, columns: &[Column], chart: usize, area: Rect, buffer: &mut Buffer) {
    let full = match step.scenario.as_str() {
        "" => step.name.clone(),
        scenario => format!("{scenario} \u{25b8} {}", step.name),
    };
    let place = |x: usize, width: usize| {
        let x = (area.x + x as u16).min(area.right());
        Rect { x, width: (width as u16).min(area.right() - x), ..area }
    };
    cut(&full, Style::new(), place(0, name.saturating_sub(1)), buffer);
    let mut spans = Vec::new();
    for (head, width, cell) in columns {
        let (text, bad) = cell(step);
        let style = match *head {
            _ if bad => BAD,
            "rate" => RATE,
            "p99" => HEADING,
            _ => Style::new(),
        };
        spans.push(Span::styled(format!("{text:>width$}"), style));
    }
    let line = Line::from(spans);
    let width = line.width();
    line.render(place(name, width), buffer);
    let room = chart.saturating_sub(2);
    let shown = step.rates.len().min(room);
    let rates = step.rates.range(step.rates.len() - shown..);
    let highest = rates.clone().copied().fold(0.0, f64::max);
    if highest > 0.0 {
        let bars: Vec<u64> = rates.map(|rate| (rate / highest * 1e3) as u64).collect();
        Sparkline::default().data(bars).max(1000).style(RATE).render(place(name + width + 2, room), buffer);
    }
}
