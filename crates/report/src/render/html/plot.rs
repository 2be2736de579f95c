//! Charts that are drawn here, as SVG: a few points need no script.

use plimsoll_core::escape;

/// Size of a chart in units of its own, and the room for its labels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 90.0;
const BOTTOM: f64 = 50.0;
const MARGIN: f64 = 30.0;
/// Room for the words beside a point.
const ROOM: f64 = 120.0;

/// One direction of a chart: its title, its ends, and the way in which its values are written.
pub(super) struct Axis<'a> {
    pub(super) title: &'a str,
    pub(super) ends: [f64; 2],
    pub(super) written: fn(f64) -> String,
}

impl Axis<'_> {
    /// The place of a value as a share of the axis.
    fn share(&self, value: f64) -> f64 {
        let [from, to] = self.ends;
        (value - from) / (to - from)
    }
}

/// Round ends for values between these, with a round value in the middle, too.
pub(super) fn round_ends(low: f64, high: f64) -> [f64; 2] {
    let quarter = ((high - low) / 4.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(quarter.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= quarter);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step).floor(), (high / step).ceil());
    let last = if (last - first) % 2.0 == 0.0 { last } else { last + 1.0 };
    [first * step, last * step]
}

/// A section with a chart.
pub(super) struct Plot<'a> {
    x: Axis<'a>,
    y: Axis<'a>,
    svg: String,
}

impl<'a> Plot<'a> {
    /// The axes, with three values at each.
    pub(super) fn new(title: &str, x: Axis<'a>, y: Axis<'a>) -> Self {
        let title = escape::html(title);
        let svg = format!(
            "<section><h2>{title}</h2><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\" \
             style=\"max-width:{WIDTH}px;width:100%;font:12px sans-serif\" fill=\"currentColor\">"
        );
        let mut plot = Self { x, y, svg };
        let (left, right, bottom, top) = (LEFT, WIDTH - MARGIN, HEIGHT - BOTTOM, MARGIN);
        plot.svg.push_str(&format!(
            "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"currentColor\" opacity=\"0.5\"/>"
        ));
        for share in [0.0, 0.5, 1.0] {
            let value = |axis: &Axis<'_>| axis.ends[0] + share * (axis.ends[1] - axis.ends[0]);
            let (of_x, of_y) = (value(&plot.x), value(&plot.y));
            let (word_x, word_y) = ((plot.x.written)(of_x), (plot.y.written)(of_y));
            let (at_x, at_y) = plot.at((of_x, of_y));
            plot.text((at_x, bottom + 18.0), "middle", &word_x);
            plot.text((left - 8.0, at_y + 4.0), "end", &word_y);
        }
        let (of_x, of_y) = (plot.x.title, plot.y.title);
        plot.text(((left + right) / 2.0, HEIGHT - 8.0), "middle", of_x);
        plot.text((8.0, top - 12.0), "start", of_y);
        plot
    }

    /// The place of a point on the chart. Values beyond an axis are at its end.
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share = |axis: &Axis<'_>, value| axis.share(value).clamp(0.0, 1.0);
        let across = LEFT + share(&self.x, x) * (WIDTH - LEFT - MARGIN);
        let up = share(&self.y, y) * (HEIGHT - BOTTOM - MARGIN);
        (across, HEIGHT - BOTTOM - up)
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, words: &str) {
        let words = escape::html(words);
        self.svg
            .push_str(&format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"));
    }

    /// Words beside a point.
    pub(super) fn label(&mut self, point: (f64, f64), words: &str) {
        let (x, y) = self.at(point);
        // Near the right edge there is room on the left only.
        match x > WIDTH - ROOM {
            true => self.text((x - 8.0, y - 8.0), "end", words),
            false => self.text((x + 8.0, y - 8.0), "start", words),
        }
    }

    /// A line from point to point.
    pub(super) fn line(&mut self, points: impl IntoIterator<Item = (f64, f64)>) {
        let places = self.places(points);
        self.svg.push_str(&format!(
            "<polyline points=\"{places}\" fill=\"none\" stroke=\"currentColor\" opacity=\"0.6\"/>"
        ));
    }

    /// A line that is a limit, and no curve.
    pub(super) fn rule(&mut self, points: impl IntoIterator<Item = (f64, f64)>) {
        let places = self.places(points);
        self.svg.push_str(&format!(
            "<polyline points=\"{places}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\" \
             stroke-dasharray=\"6 4\"/>"
        ));
    }

    /// The area between points.
    pub(super) fn area(&mut self, points: impl IntoIterator<Item = (f64, f64)>) {
        let places = self.places(points);
        self.svg.push_str(&format!("<polygon points=\"{places}\" opacity=\"0.15\"/>"));
    }

    fn places(&self, points: impl IntoIterator<Item = (f64, f64)>) -> String {
        let place = |point| {
            let (x, y) = self.at(point);
            format!("{x:.1},{y:.1}")
        };
        points.into_iter().map(place).collect::<Vec<_>>().join(" ")
    }

    /// A dot that has words for its reader.
    pub(super) fn dot(&mut self, point: (f64, f64), words: &str) {
        let ((x, y), words) = (self.at(point), escape::html(words));
        self.svg.push_str(&format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{words}</title></circle>"
        ));
    }

    /// A dot that is hollow, and so another kind of point.
    pub(super) fn ring(&mut self, point: (f64, f64), words: &str) {
        let ((x, y), words) = (self.at(point), escape::html(words));
        self.svg.push_str(&format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"none\" stroke=\"currentColor\" \
             stroke-width=\"1.5\"><title>{words}</title></circle>"
        ));
    }

    /// The chart as markup.
    pub(super) fn finish(self) -> String {
        self.svg + "</svg></section>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: axes of changes had the ends -18.73 and +18.73.
    #[test]
    fn ends_are_round_and_hold_all_values() {
        for (low, high, ends) in
            [(-0.1873, 0.1873, [-0.2, 0.2]), (-0.013, 0.094, [-0.05, 0.15]), (-2.5403, 2.5403, [-4.0, 4.0])]
        {
            let [from, to] = round_ends(low, high);
            assert!(from <= low && high <= to, "{from} to {to}");
            assert!((from - ends[0]).abs() < 1e-9 && (to - ends[1]).abs() < 1e-9, "{from} to {to}");
        }
    }
}
