//! Frames and texts that panels have in common.

use plimsoll_core::{Nanos, figure};
use plimsoll_metrics::RunOutcome;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::figures::{Figures, Times};
use super::look::{BAD, DOUBTFUL, GOOD, HEADING, LABEL};

/// A rule with a title over a panel; returns the rest of the panel below it.
pub(super) fn titled(title: &str, note: &str, area: Rect, buffer: &mut Buffer) -> Rect {
    if area.height == 0 {
        return area;
    }
    let rule = "\u{2500}".repeat(usize::from(area.width));
    buffer.set_stringn(area.x, area.y, rule, usize::from(area.width), LABEL);
    let mut spans = vec![Span::styled(format!(" {title} "), HEADING)];
    if !note.is_empty() {
        spans.push(Span::styled(format!("\u{b7} {note} "), LABEL));
    }
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    Line::from(spans).render(row(inner, 0), buffer);
    Rect { x: area.x + 1, y: area.y + 1, width: area.width.saturating_sub(2), height: area.height - 1 }
}

/// One row of an area.
pub(super) fn row(area: Rect, number: u16) -> Rect {
    Rect { y: area.y + number, height: 1, ..area }
}

/// The outcome so far, in a few words.
pub(super) fn badge(figures: &Figures) -> (String, Style) {
    let Some(headline) = figures.headline.as_ref().filter(|_| !figures.warmup) else {
        let words = if figures.warmup { "warm-up, not judged" } else { "nothing to judge yet" };
        return (words.to_owned(), LABEL);
    };
    let total = &figures.standing.record().total;
    let bad = total.failed + total.timed_out;
    let style = match headline.outcome {
        RunOutcome::Fail => BAD,
        RunOutcome::NoVerdict => DOUBTFUL,
        RunOutcome::Done if bad > 0 => DOUBTFUL,
        RunOutcome::Pass | RunOutcome::Done => GOOD,
    };
    let words = match (headline.outcome, bad) {
        // Without a threshold nothing is done before the end.
        (RunOutcome::Done, 0) => "no errors so far".to_owned(),
        (RunOutcome::Done, 1) => "1 error so far".to_owned(),
        (RunOutcome::Done, bad) => format!("{} errors so far", figure::count(bad)),
        (outcome, _) => format!("{} so far", outcome.word()),
    };
    (words, style)
}

/// A text of one line, cut where the area ends.
pub(super) fn cut(text: &str, style: Style, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let long = text.chars().count() > width;
    let shown: String =
        if long { text.chars().take(width.saturating_sub(1)).collect() } else { text.to_owned() };
    Line::styled(if long { format!("{shown}\u{2026}") } else { shown }, style).render(area, buffer);
}

/// One of the times, as in every report.
pub(super) fn time(times: &Times, at: usize) -> String {
    let bound = if times.at_least[at] { "\u{2265}" } else { "" };
    times.values[at].map_or("-".to_owned(), |value| format!("{bound}{}", figure::nanos(Nanos(value))))
}
