//! Distribution of response times: over time as a heat map, over the run as a histogram beside it.

use plimsoll_core::figure;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Widget as _;

use super::chart::{self, AXIS};
use super::figures::{Figures, Point};
use super::frame::titled;
use super::look::{LABEL, TIME};
use super::time_classes::{CLASSES, LOWEST, PER_DECADE, TimeClasses};

/// Shades of a heat map, from few to many.
const SHADES: [char; 4] = ['\u{2591}', '\u{2592}', '\u{2593}', '\u{2588}'];
/// Columns of the figures behind the bars of the histogram.
const FIGURES: u16 = 18;

/// Which classes stand in which rows.
struct Rows {
    first: usize,
    /// Classes of a row.
    each: usize,
    count: usize,
}

impl Rows {
    /// All classes that are not empty, in at most `most` rows.
    fn of(spread: &TimeClasses, most: usize) -> Option<Self> {
        let (first, last) = spread.range()?;
        let classes = last - first + 1;
        let each = classes.div_ceil(most.max(1));
        Some(Self { first, each, count: classes.div_ceil(each) })
    }

    /// Returns the count of a row. Row 0 has the lowest times.
    fn count(&self, spread: &TimeClasses, row: usize) -> u64 {
        let from = self.first + row * self.each;
        spread.0[from..(from + self.each).min(CLASSES)].iter().map(|count| u64::from(*count)).sum()
    }

    /// The beginning of a row, in nanoseconds.
    fn begin(&self, row: usize) -> f64 {
        LOWEST * 10_f64.powf((self.first + row * self.each) as f64 / PER_DECADE as f64)
    }
}

/// Draws both, on one axis of times with a row for each class.
pub(super) fn panel(figures: &Figures, [left, right]: [Rect; 2], buffer: &mut Buffer) {
    let map = titled("response times over time", "darker is more", left, buffer);
    let bars = titled("over the run", "each row from this time on", right, buffer);
    let Some(rows) = Rows::of(&figures.spread, usize::from(map.height)) else { return };
    let all: u64 = (0..rows.count).map(|row| rows.count(&figures.spread, row)).sum();
    let most = (0..rows.count).map(|row| rows.count(&figures.spread, row)).max().unwrap_or(1).max(1);
    for row in 0..rows.count {
        let y = map.bottom() - 1 - row as u16;
        let label = format!(
            "{:>width$}\u{2524}",
            chart::time(two_digits(rows.begin(row))),
            width = usize::from(AXIS) - 1
        );
        Line::styled(label, LABEL).render(Rect { y, height: 1, width: AXIS.min(map.width), ..map }, buffer);
        let count = rows.count(&figures.spread, row);
        histogram_row((count, most, all), Rect { y, height: 1, ..bars }, buffer);
    }
    let area = Rect { x: map.x + AXIS, width: map.width.saturating_sub(AXIS), ..map };
    let spread = |point: &Point| (point.spread, if point.warmup { LABEL } else { TIME });
    for (column, (spread, style)) in chart::columns(figures, area.width, spread) {
        heat_column(&rows, &spread, style, Rect { x: area.x + column, width: 1, ..area }, buffer);
    }
}

/// An interval: the shade of each row is the share of its requests in that range of times.
fn heat_column(rows: &Rows, spread: &TimeClasses, style: Style, area: Rect, buffer: &mut Buffer) {
    let counts: Vec<u64> = (0..rows.count).map(|row| rows.count(spread, row)).collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    for (row, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        // By the logarithm: one slow request of a thousand is to be seen.
        let share = ((*count as f64).ln() + 1.0) / ((most as f64).ln() + 1.0);
        let shade = SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)];
        buffer[(area.x, area.bottom() - 1 - row as u16)].set_char(shade).set_style(style);
    }
}

/// A bar as long as its count, with the count and its share of all.
fn histogram_row((count, most, all): (u64, u64, u64), area: Rect, buffer: &mut Buffer) {
    if count == 0 {
        return;
    }
    let room = area.width.saturating_sub(FIGURES);
    let length = ((count as f64 / most as f64 * f64::from(room)).round() as usize).max(1);
    let share = figure::share(count as f64 / all.max(1) as f64);
    let text = format!("{:>9} {share:>8}", figure::count(count));
    Line::raw(text).render(Rect { width: FIGURES.min(area.width), ..area }, buffer);
    let x = area.x + FIGURES.min(area.width);
    buffer.set_stringn(x + 1, area.y, "\u{2588}".repeat(length), usize::from(room.saturating_sub(1)), TIME);
}

/// A time of two digits, which fits a label.
fn two_digits(nanos: f64) -> f64 {
    let power = 10_f64.powf(nanos.log10().floor() - 1.0);
    (nanos / power).round() * power
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{Nanos, Outcome};
    use plimsoll_metrics::{Gauges, Recorder, Sample};

    use super::*;

    #[test]
    fn every_request_is_in_one_row_whatever_room_there_is() {
        let mut recorder = Recorder::new(&["step".to_owned()]);
        for micros in [0, 5, 40, 41, 900, 150_000, 200_000_000] {
            recorder.note_started(0);
            recorder.record(&Sample {
                step: 0,
                intended: Nanos::ZERO,
                started: Nanos::ZERO,
                sent: Nanos::ZERO,
                first_byte: Nanos::ZERO,
                done: Nanos::from_micros(micros),
                outcome: Outcome::Ok,
                status: 200,
                bytes_sent: 0,
                bytes_received: 0,
            });
        }
        let spread = TimeClasses::of(&recorder.snapshot(Gauges::default()).total());
        for most in [1, 3, 10, 100] {
            let rows = Rows::of(&spread, most).expect("there are some");
            assert!(rows.count <= most);
            assert_eq!((0..rows.count).map(|row| rows.count(&spread, row)).sum::<u64>(), 7);
        }
        assert!(Rows::of(&TimeClasses::default(), 10).is_none());
        assert_eq!(two_digits(1.33352e6), 1.3e6);
    }
}
