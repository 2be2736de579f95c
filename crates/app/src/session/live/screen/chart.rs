//! Charts of intervals, with axes: a line of rates, bars of times.

use plimsoll_core::figure;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Widget as _;

use super::figures::Figures;
use super::look::LABEL;

/// Columns of the labels of an axis, with the axis itself: `12,345/s │`.
pub(super) const AXIS: u16 = 10;
/// Columns of a chart below which there is only the chart.
const WIDE_ENOUGH: u16 = 24;
/// Eighths of a cell, from below.
const BLOCKS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
/// Height of a linear axis, as a multiple of the highest value.
const HEADROOM: f64 = 1.1;
/// The mark at the target level.
const TARGET: &str = "\u{254c}";

/// One interval in a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChartColumn {
    /// Value of the interval; `None` if there is none.
    pub(super) value: Option<f64>,
    pub(super) style: Style,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// From zero to this.
    Linear(f64),
    /// Between these two, above zero: each decade is as high as the other.
    Logarithmic(f64, f64),
}

impl Scale {
    /// From zero to a round number with some room above all of these.
    pub(super) fn linear(values: impl Iterator<Item = f64>) -> Self {
        Self::Linear(round_up(values.fold(0.0, f64::max) * HEADROOM))
    }

    /// Whole decades around all of these; `None` without any.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>) -> Option<Self> {
        let around = values.filter(|value| *value > 0.0).map(|value| (value, value));
        let (low, high) = around.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))?;
        let low = low.log10().floor();
        Some(Self::Logarithmic(10_f64.powf(low), 10_f64.powf(high.log10().ceil().max(low + 1.0))))
    }

    /// The place of a value, from 0 at the bottom to 1 at the top.
    pub(super) fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear(top) if top > 0.0 => value / top,
            Self::Linear(_) => 0.0,
            Self::Logarithmic(low, high) => (value / low).ln() / (high / low).ln(),
        };
        place.clamp(0.0, 1.0)
    }

    /// Values to label in this many rows, each with its row from the bottom.
    fn labels(self, rows: u16) -> Vec<(u16, f64)> {
        let last = rows.saturating_sub(1);
        match self {
            Self::Linear(top) if rows >= 5 => vec![(0, 0.0), (last / 2, top / 2.0), (last, top)],
            Self::Linear(top) => vec![(0, 0.0), (last, top)],
            Self::Logarithmic(low, high) => {
                let decades = (high / low).log10().round() as u16;
                let row =
                    |decade: u16| (f64::from(last) * f64::from(decade) / f64::from(decades)).round() as u16;
                let mut labels = vec![(0, low)];
                for decade in 1..decades {
                    // A label must not overwrite another one; the first and the last come first.
                    if row(decade) < last && labels.last().is_some_and(|(below, _)| row(decade) > *below) {
                        labels.push((row(decade), low * 10_f64.powi(decade.into())));
                    }
                }
                labels.push((last, high));
                labels
            }
        }
    }
}

/// The next round number: one of a few steps between powers of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * power).find(|round| *round >= value * 0.999).unwrap_or(power * 10.0)
}

/// The axis at the left of an area; returns the area that is left for the chart.
pub(super) fn axis(scale: Scale, label: impl Fn(f64) -> String, area: Rect, buffer: &mut Buffer) -> Rect {
    if area.width < WIDE_ENOUGH || area.height == 0 {
        return area;
    }
    let labels = scale.labels(area.height);
    for (row, place) in area.rows().rev().zip(0..).map(|(place, row)| (row, place)) {
        let text = labels.iter().find(|(at, _)| *at == row).map(|(_, value)| label(*value));
        let tick = if text.is_some() { '\u{2524}' } else { '\u{2502}' };
        let text = format!("{:>width$}{tick}", text.unwrap_or_default(), width = usize::from(AXIS) - 1);
        Line::styled(text, LABEL).render(Rect { width: AXIS, ..place }, buffer);
    }
    Rect { x: area.x + AXIS, width: area.width - AXIS, ..area }
}

/// A rate on an axis: short enough for it.
pub(super) fn rate(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value >= 1e6 => format!("{}M/s", rounded(value / 1e6)),
        value if value >= 1e4 => format!("{}k/s", rounded(value / 1e3)),
        value if value == value.round() => format!("{}/s", figure::count(value as u64)),
        value => figure::per_second(value),
    }
}

/// A time on an axis, of which one digit counts.
pub(super) fn time(value: f64) -> String {
    let (value, unit) = match value {
        value if value < 999.5 => (value, "ns"),
        value if value < 999.5e3 => (value / 1e3, "\u{b5}s"),
        value if value < 999.5e6 => (value / 1e6, "ms"),
        value => (value / 1e9, "s"),
    };
    format!("{} {unit}", rounded(value))
}

fn rounded(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the number of intervals that fit into `width` columns, and the columns of each.
fn fitting(figures: &Figures, width: u16) -> (usize, usize) {
    let each = figures.bar_width(usize::from(width));
    (figures.points.len().min(usize::from(width) / each), each)
}

/// The marks of the last intervals from the left, with the column of each and how many it takes.
pub(super) fn columns<'f, T>(
    figures: &'f Figures,
    width: u16,
    of: impl Fn(&super::figures::Point) -> T + 'f,
) -> impl Iterator<Item = (u16, T)> + 'f {
    let (shown, each) = fitting(figures, width);
    let points = figures.points.range(figures.points.len() - shown..);
    let columns = points
        .zip(0..)
        .flat_map(move |(point, at)| (0..each).map(move |within| ((at * each + within) as u16, point)));
    columns.map(move |(column, point)| (column, of(point)))
}

/// A line of the last intervals, and the level that was asked for.
pub(super) fn line(
    figures: &Figures,
    mark: impl Fn(&super::figures::Point) -> ChartColumn,
    (scale, target): (Scale, Option<f64>),
    area: Rect,
    buffer: &mut Buffer,
) {
    if area.height == 0 {
        return;
    }
    if let Some(target) = target {
        let (row, _) = cell(scale.place(target), area.height);
        let text = TARGET.repeat(usize::from(area.width));
        buffer.set_stringn(area.x, area.bottom() - 1 - row, text, usize::from(area.width), LABEL);
    }
    for (column, mark) in columns(figures, area.width, mark) {
        let Some(value) = mark.value else { continue };
        let (row, block) = cell(scale.place(value), area.height);
        let place = &mut buffer[(area.x + column, area.bottom() - 1 - row)];
        place.set_char(block).set_style(mark.style);
    }
}

/// Bars of the last intervals.
pub(super) fn bars(
    figures: &Figures,
    mark: impl Fn(&super::figures::Point) -> ChartColumn,
    scale: Scale,
    area: Rect,
    buffer: &mut Buffer,
) {
    if area.height == 0 {
        return;
    }
    for (column, mark) in columns(figures, area.width, mark) {
        let Some(value) = mark.value else { continue };
        let (top, block) = cell(scale.place(value), area.height);
        for row in 0..=top {
            let block = if row == top { block } else { BLOCKS[7] };
            let place = &mut buffer[(area.x + column, area.bottom() - 1 - row)];
            place.set_char(block).set_style(mark.style);
        }
    }
}

/// The row from the bottom in which a place lies, and the block that is as high within it.
fn cell(place: f64, rows: u16) -> (u16, char) {
    let eighths = (place * f64::from(rows) * 8.0).round() as usize;
    let above_floor = eighths.max(1) - 1;
    let row = (above_floor / 8).min(usize::from(rows) - 1);
    (row as u16, BLOCKS[(above_floor - row * 8).min(7)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, top) in [(0.0, 1.0), (1.0, 1.0), (550.0, 600.0), (1_000.0, 1_000.0), (20_100.0, 25_000.0)]
        {
            assert_eq!(round_up(value), top, "{value}");
        }
        assert_eq!(Scale::logarithmic([70e3, 98e6].into_iter()), Some(Scale::Logarithmic(1e4, 1e8)));
        assert_eq!(Scale::logarithmic([1e6].into_iter()), Some(Scale::Logarithmic(1e6, 1e7)));
        assert_eq!(Scale::logarithmic(std::iter::empty()), None);
        let labels = |value: f64| (rate(value), time(value));
        assert_eq!(labels(25_000.0), ("25k/s".to_owned(), "25 \u{b5}s".to_owned()));
        assert_eq!(labels(1e7), ("10M/s".to_owned(), "10 ms".to_owned()));
        assert_eq!(labels(2.5), ("2.50/s".to_owned(), "2.5 ns".to_owned()));
    }

    #[test]
    fn one_spike_does_not_flatten_the_rest() {
        let scale = Scale::logarithmic([70e3, 98e6].into_iter()).unwrap();
        let (usual, spike) = (cell(scale.place(70e3), 4), cell(scale.place(98e6), 4));
        assert_eq!((usual.0, spike.0), (0, 3));
        assert_ne!(usual.1, BLOCKS[0], "it is above the bottom");
        let linear = Scale::Linear(98e6);
        assert_eq!(cell(linear.place(70e3), 4), (0, BLOCKS[0]));
    }

    #[test]
    fn labels_of_few_rows_do_not_overlap() {
        let log = Scale::Logarithmic(1e4, 1e8);
        assert_eq!(log.labels(2), [(0, 1e4), (1, 1e8)]);
        assert_eq!(log.labels(5).len(), 5);
        assert_eq!(Scale::Linear(600.0).labels(5), [(0, 0.0), (2, 300.0), (4, 600.0)]);
    }
}
