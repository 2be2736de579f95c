//! Thresholds so far.

use plimsoll_core::figure;
use plimsoll_metrics::ThresholdResult;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::figures::Figures;
use super::frame::{cut, titled};
use super::look::{BAD, GOOD, LABEL};

/// Columns of the state.
const STATE: usize = 7;

/// The state of a threshold during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// The threshold does not hold.
    Fails,
    /// There is not enough yet to say that it holds.
    Open,
    /// The threshold holds.
    Holds,
}

impl State {
    /// The row of a threshold in a run that goes on.
    pub(super) fn of(result: &ThresholdResult) -> Self {
        match (result.passed, result.is_shown()) {
            (true, _) => Self::Holds,
            (false, true) => Self::Fails,
            (false, false) => Self::Open,
        }
    }

    const fn shown(self) -> (&'static str, Style) {
        match self {
            Self::Fails => ("fails", BAD),
            Self::Open => ("open", LABEL),
            Self::Holds => ("holds", GOOD),
        }
    }
}

/// Rows that all thresholds take, with the title.
pub(super) fn rows(figures: &Figures) -> u16 {
    match figures.standing.thresholds().len() {
        0 => 0,
        count => u16::try_from(count).unwrap_or(u16::MAX).saturating_add(1),
    }
}

/// One line for each, those that fail first.
pub(super) fn panel(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let mut thresholds: Vec<(State, &ThresholdResult)> =
        figures.standing.thresholds().iter().map(|result| (State::of(result), result)).collect();
    let count = |wanted: State| thresholds.iter().filter(|(state, _)| *state == wanted).count();
    let note = match (count(State::Fails), count(State::Holds)) {
        _ if figures.warmup => "not judged in the warm-up".to_owned(),
        (0, holds) => format!("{holds} of {} hold so far", thresholds.len()),
        (fails, _) => format!("{fails} of {} fail so far", thresholds.len()),
    };
    let inner = titled("thresholds", &note, area, buffer);
    thresholds.sort_by_key(|(state, _)| *state);
    let room = usize::from(inner.height);
    let shown = if thresholds.len() > room { room.saturating_sub(1) } else { room };
    let hidden = thresholds.len().saturating_sub(shown);
    let name = thresholds.iter().take(shown).map(|(_, result)| result.spec.to_string().chars().count()).max();
    let name = name.unwrap_or(0).min(usize::from(inner.width) / 2);
    let mut places = inner.rows();
    for ((state, result), place) in thresholds.iter().take(shown).zip(&mut places) {
        row(*state, result, name, place, buffer);
    }
    if let Some(place) = places.next().filter(|_| hidden > 0) {
        cut(&format!("\u{2026} and {hidden} more"), LABEL, place, buffer);
    }
}

fn row(state: State, result: &ThresholdResult, name: usize, area: Rect, buffer: &mut Buffer) {
    let (word, style) = state.shown();
    let place = |x: usize, width: usize| {
        let x = (area.x + x as u16).min(area.right());
        Rect { x, width: (width as u16).min(area.right() - x), ..area }
    };
    Line::from(Span::styled(word, style)).render(place(0, STATE), buffer);
    cut(&result.spec.to_string(), Style::new(), place(STATE, name), buffer);
    let observed = result.observed_text();
    let windows = result.windows.filter(|windows| windows.failed > 0).map(|windows| {
        let [failed, judged] = [windows.failed, windows.judged].map(figure::count);
        format!("in {failed} of {judged} windows")
    });
    let said = [observed, result.unreached.clone(), result.reason.clone(), windows];
    let said = said.into_iter().flatten().collect::<Vec<_>>().join("  ");
    let behind = STATE + name + 2;
    let style = if state == State::Fails { BAD } else { LABEL };
    cut(&said, style, place(behind, usize::from(area.width).saturating_sub(behind)), buffer);
}
