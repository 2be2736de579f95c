//! Layout of the screen.

use plimsoll_core::{Nanos, figure};
use plimsoll_engine::Stop;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget as _};

use super::figures::Figures;
use super::frame::{badge, cut, row, time};
use super::handle::{SMALLEST, ViewKey};
use super::look::{DOUBTFUL, HEADING, LABEL, RATE};
use super::{panels, spread, steps, thresholds};

/// Rows from which the verdict has its own part.
const TALL: u16 = 32;
/// Rows of a chart beyond which it says nothing more.
const TALLEST_CHART: u16 = 14;
/// Rows of a chart before how times are spread is shown below it, and of that.
const USUAL_CHART: u16 = 7;
const LEAST_SPREAD: u16 = 9;
const LARGEST_SPREAD: u16 = 18;
/// The rule and three rows of figures above a chart.
const CHART_HEAD: u16 = 4;
/// Rows of thresholds where there is little room: the title, and those that fail.
const FEW_THRESHOLDS: u16 = 4;

const KEYS: &[(&str, &str)] = &[
    ("+ -", "rate"),
    ("p", "pause"),
    ("q", "stop"),
    ("tab", "view"),
    ("\u{2191}\u{2193}", "steps"),
    ("?", "help"),
];

const HELP: &[(&str, &str)] = &[
    ("+  -", "change the rate by 10 %"),
    ("p", "pause, and resume"),
    ("q  ^C", "stop and wait for pending responses; once more: report at once"),
    ("tab", "the next view: overview, steps, instrument"),
    ("\u{2191} \u{2193}  j k", "scroll the steps; page up and down, home, end"),
    ("^Z", "stop the process as a whole, which spoils the measurement"),
    ("?", "close this"),
];

/// View that the reader has chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum View {
    /// A little of everything.
    #[default]
    Overview,
    /// All steps.
    Steps,
    /// Figures that show whether the measurement can be believed.
    Instrument,
}

impl View {
    const ALL: [Self; 3] = [Self::Overview, Self::Steps, Self::Instrument];

    const fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Steps => "steps",
            Self::Instrument => "instrument",
        }
    }

    fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|view| *view == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// The page, with the choices of the reader.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) view: View,
    help: bool,
    /// The first step that is shown, and how many fit: known when it was drawn.
    pub(super) first: usize,
    fits: usize,
}

impl Page {
    /// Heeds a key.
    pub(super) fn press(&mut self, key: ViewKey) {
        let page = self.fits.max(1);
        match key {
            ViewKey::Next => self.view = self.view.moved(1),
            ViewKey::Previous => self.view = self.view.moved(View::ALL.len() - 1),
            ViewKey::Help => self.help = !self.help,
            ViewKey::Up => self.first = self.first.saturating_sub(1),
            ViewKey::Down => self.first += 1,
            ViewKey::PageUp => self.first = self.first.saturating_sub(page),
            ViewKey::PageDown => self.first += page,
            ViewKey::First => self.first = 0,
            ViewKey::Last => self.first = usize::MAX,
        }
    }

    /// Draws everything.
    pub(super) fn draw(&mut self, figures: &Figures, area: Rect, buffer: &mut Buffer) {
        let [columns, rows] = [SMALLEST.0, SMALLEST.1];
        if area.width < columns || area.height < rows {
            return too_small(figures, area, buffer);
        }
        let body = Rect { y: area.y + 2, height: area.height - 4, ..area };
        header(figures, area, buffer);
        course(figures, row(area, 1), buffer);
        match self.view {
            View::Overview => self.overview(figures, body, buffer),
            View::Steps => self.steps(figures, body, buffer),
            View::Instrument => panels::whole_instrument(figures, body, buffer),
        }
        let says_why = match self.view {
            View::Overview => Parts::of(figures, body.height).verdict,
            View::Steps => false,
            View::Instrument => true,
        };
        notice(figures, says_why, row(area, area.height - 2), buffer);
        self.keys(row(area, area.height - 1), buffer);
        if self.help {
            help(area, buffer);
        }
    }

    fn overview(&mut self, figures: &Figures, area: Rect, buffer: &mut Buffer) {
        let parts = Parts::of(figures, area.height);
        let mut rest = area;
        let [left, right] = halves(take(&mut rest, parts.chart + CHART_HEAD));
        panels::rate(figures, left, buffer);
        panels::times(figures, right, buffer);
        if parts.spread > 0 {
            spread::panel(figures, halves(take(&mut rest, parts.spread)), buffer);
        }
        let [left, right] = halves(take(&mut rest, parts.middle));
        panels::requests(figures, left, buffer);
        panels::instrument(figures, right, buffer);
        thresholds::panel(figures, take(&mut rest, parts.thresholds), buffer);
        self.fits = steps::table(figures, &mut self.first, take(&mut rest, parts.list), buffer);
        if parts.verdict {
            panels::verdict(figures, rest, buffer);
        }
    }

    fn steps(&mut self, figures: &Figures, area: Rect, buffer: &mut Buffer) {
        self.fits = steps::table(figures, &mut self.first, area, buffer);
    }

    fn keys(&self, area: Rect, buffer: &mut Buffer) {
        let mut spans = vec![Span::raw(" ")];
        for (key, what) in KEYS {
            spans.push(Span::styled(*key, HEADING));
            spans.push(Span::styled(format!(" {what}   "), LABEL));
        }
        Line::from(spans).render(area, buffer);
        let views = View::ALL.iter().flat_map(|view| {
            let style = if *view == self.view { RATE.patch(HEADING) } else { LABEL };
            let mark = if *view == self.view { "\u{25b8}" } else { " " };
            [Span::styled(format!(" {mark}"), style), Span::styled(view.name(), style)]
        });
        let views = Line::from(views.collect::<Vec<_>>());
        let width = views.width() as u16 + 1;
        if area.width > width + 64 {
            views.render(Rect { x: area.right() - width, width, ..area }, buffer);
        }
    }
}

/// Rows of the parts of the overview.
struct Parts {
    /// Of the charts, without the figures above them.
    chart: u16,
    spread: u16,
    middle: u16,
    thresholds: u16,
    list: u16,
    /// `true` if the rows that are left belong to the verdict.
    verdict: bool,
}

impl Parts {
    /// The parts of a page of this height. Without room, parts are dropped in this order: spread of times,
    /// verdict, then rows of thresholds and steps.
    fn of(figures: &Figures, height: u16) -> Self {
        let tall = height + 4 >= TALL;
        let verdict = if tall { 6 } else { 0 };
        let middle = if tall {
            6
        } else if height >= 18 {
            4
        } else {
            3
        };
        let beside = height.saturating_sub(middle + verdict + CHART_HEAD);
        let most = if tall { beside / 3 } else { FEW_THRESHOLDS };
        let thresholds = thresholds::rows(figures).min(most).min(beside.saturating_sub(4));
        let beside = beside - thresholds;
        let wanted = u16::try_from(figures.steps.len()).unwrap_or(u16::MAX).saturating_add(2);
        let most = if tall { beside / 2 } else { beside * 2 / 3 };
        let list = wanted.clamp(3, most.max(3)).min(beside.saturating_sub(1));
        let free = beside - list;
        let spread = match free.saturating_sub(USUAL_CHART) {
            rows if rows >= LEAST_SPREAD => rows.min(LARGEST_SPREAD),
            _ => 0,
        };
        let chart = (free - spread).min(TALLEST_CHART);
        // Spare rows go to the verdict, or else to the list.
        let list = if tall { list } else { beside - spread - chart };
        Self { chart, spread, middle, thresholds, list, verdict: tall }
    }
}

/// Takes rows from the top of the remaining area.
fn take(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    let taken = Rect { height, ..*rest };
    *rest = Rect { y: rest.y + height, height: rest.height - height, ..*rest };
    taken
}

/// Two panels beside each other; the right ones have more to say.
fn halves(area: Rect) -> [Rect; 2] {
    let left = area.width * 9 / 20;
    [Rect { width: left, ..area }, Rect { x: area.x + left, width: area.width - left, ..area }]
}

fn header(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    let (badge, style) = badge(figures);
    let badge = Line::from(Span::styled(format!("\u{25cf} {badge} "), style));
    let width = (badge.width() as u16).min(area.width);
    let name = Line::from(vec![
        Span::styled(" plimsoll ", HEADING.patch(RATE)),
        Span::styled(figures.subject.target.as_str(), HEADING),
    ]);
    name.render(Rect { width: area.width - width, height: 1, ..area }, buffer);
    badge.render(Rect { x: area.right() - width, width, height: 1, ..area }, buffer);
}

/// The phase, the progress of the run, and the time that is left.
fn course(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    let (elapsed, end) = (figures.elapsed, figures.subject.end);
    let phases = &figures.subject.outline.phases;
    let named = phases.iter().find(|phase| phase.at <= elapsed && elapsed < phase.end());
    let (phase, style) = match () {
        () if figures.stopping == Stop::Now => ("stopping now", DOUBTFUL),
        () if figures.drain || figures.stopping == Stop::Drain => {
            ("stopping, waiting for responses", DOUBTFUL)
        }
        () if figures.paused => ("paused", DOUBTFUL),
        () => match named {
            Some(phase) => (phase.name.as_str(), HEADING),
            None if elapsed < figures.subject.basis.warmup => ("warm-up", HEADING),
            None if figures.subject.end.is_some_and(|end| elapsed >= end) => {
                ("waiting for responses", HEADING)
            }
            None => ("measure", HEADING),
        },
    };
    let done = figures.standing.record().iterations.started;
    let (share, words) = match (end, figures.subject.iterations) {
        (_, Some(all)) if all > 0 => {
            let words = format!("{} of {} iterations", figure::count(done), figure::count(all));
            (Some(done as f64 / all as f64), words)
        }
        (Some(end), _) if end > Nanos::ZERO => {
            let left = end.since(elapsed).as_secs_f64().ceil() as u64;
            let words =
                format!("{} of {}, {} left", clock(elapsed), clock(end), clock(Nanos::from_secs(left)));
            (Some(elapsed.as_secs_f64() / end.as_secs_f64()), words)
        }
        _ => (None, clock(elapsed)),
    };
    let head = Line::from(Span::styled(format!(" {phase}  "), style));
    let tail = Line::raw(format!("  {words} "));
    let (first, last) = (head.width() as u16, tail.width() as u16);
    head.render(area, buffer);
    let width = area.width.saturating_sub(first + last);
    tail.render(Rect { x: area.right().saturating_sub(last), width: last.min(area.width), ..area }, buffer);
    let Some(share) = share.filter(|_| width >= 4) else { return };
    let full = ((share.clamp(0.0, 1.0) * f64::from(width)) as usize).min(usize::from(width));
    let bar = Line::from(vec![
        Span::styled("\u{2501}".repeat(full), RATE),
        Span::styled("\u{254c}".repeat(usize::from(width) - full), LABEL),
    ]);
    bar.render(Rect { x: area.x + first, width, ..area }, buffer);
}

/// `12 s`, `2m05s`: in whole seconds.
fn clock(time: Nanos) -> String {
    match time.as_secs_f64() as u64 {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds => figure::nanos(Nanos::from_secs(seconds)),
    }
}

/// The latest message, or the problem, unless the page `says_why` already.
fn notice(figures: &Figures, says_why: bool, area: Rect, buffer: &mut Buffer) {
    let (text, style) = if figures.lost > 0 {
        (format!("{} intervals are missing on this screen, not in the result", figures.lost), DOUBTFUL)
    } else if let Some(message) = figures.latest_message() {
        (message.to_owned(), Style::new())
    } else if let Some((reason, style)) = panels::first_reason(figures).filter(|_| !says_why) {
        (format!("{}: {}", reason.code, reason.evidence), style)
    } else {
        return;
    };
    cut(&format!(" {text}"), style, area, buffer);
}

fn help(area: Rect, buffer: &mut Buffer) {
    let (width, height) = (76.min(area.width), (HELP.len() as u16 + 2).min(area.height));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(place, buffer);
    let block = Block::bordered().border_style(RATE).title(Span::styled(" keys ", HEADING));
    let inner = block.inner(place);
    block.render(place, buffer);
    for (line, (key, what)) in inner.rows().zip(HELP) {
        let spans = vec![Span::styled(format!(" {key:<9} "), HEADING), Span::raw(*what)];
        Line::from(spans).render(line, buffer);
    }
}

/// The figures that matter most, where there is no room for more.
fn too_small(figures: &Figures, area: Rect, buffer: &mut Buffer) {
    let lines = [
        format!("{} {}", clock(figures.elapsed), badge(figures).0),
        format!("{} {} in flight", figure::per_second(figures.rate()), figures.in_flight),
        format!("p99 {}", time(&figures.now, 2)),
        format!("{} bad", figures.standing.record().total.failed + figures.standing.record().total.timed_out),
        "(too small for more)".to_owned(),
    ];
    for (row, line) in area.rows().zip(&lines) {
        Line::raw(line.as_str()).render(row, buffer);
    }
}
