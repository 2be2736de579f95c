//! The page of a sweep: throughput against what one user sees of it, level by level, and the table.
//!
//! The charts are drawn here, as SVG: a few points need no script.

use std::io;

use plimsoll_metrics::figure;

use super::markup::{Markup, escaped};
use super::{CONTENT, TEMPLATE, TITLE};
use crate::Style;
use crate::contract::sweep::{SweepLevel, SweepResult, levels_table};

/// Size of a chart in units of its own, and the room for its labels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 90.0;
const BOTTOM: f64 = 50.0;
const MARGIN: f64 = 30.0;

/// A point of a chart: its place, and the level that it belongs to.
type Point = (f64, f64, String);

/// Writes the page of a sweep.
///
/// # Errors
/// The errors of the writer.
pub fn render_sweep_page(result: &SweepResult, out: &mut dyn io::Write) -> io::Result<()> {
    let mut page = Markup::default();
    let title = format!("Sweep of {} – {}", result.setting, result.sweep.load);
    page.open("header", &[("class", "page")]);
    page.element("p", "brand", &format!("{} {}", result.tool.name, result.tool.version));
    page.element("h1", "", &title);
    page.close("header");
    let mut content = page.finish();
    let points = |of: fn(&SweepLevel) -> Option<(f64, f64)>| -> Vec<Point> {
        let placed = result.levels.iter().filter_map(|level| Some((of(level)?, level.value)));
        placed.map(|((x, y), value)| (x, y, value.to_string())).collect()
    };
    let tradeoff = points(|level| {
        let streams = level.event_streams.as_ref()?;
        Some((streams.tokens_per_s_per_user?, streams.tokens_per_s?))
    });
    content.push_str(&chart(
        ("Tokens per second: all users against each", &result.setting),
        ("tokens/s of a user", "tokens/s in all"),
        &tradeoff,
    ));
    let first =
        points(|level| Some((level.figures.in_flight, level.event_streams.as_ref()?.ttft_p50? as f64 / 1e6)));
    content.push_str(&chart(
        ("Time to first token against load", &result.setting),
        ("requests in flight", "TTFT p50, ms"),
        &first,
    ));
    let rate = points(|level| Some((level.figures.in_flight, level.figures.achieved_per_s)));
    content.push_str(&chart(
        ("Throughput against load", &result.setting),
        ("requests in flight", "answered/s"),
        &rate,
    ));
    content.push_str("<section><h2>Levels</h2><pre>");
    content.push_str(&escaped(&levels_table(result, &Style { unicode: true, width: 160, ..Style::PLAIN })));
    content.push_str("</pre></section>");
    // Each mark is replaced once: the content may contain these marks, too.
    let (head, rest) = TEMPLATE.split_once(TITLE).unwrap_or((TEMPLATE, ""));
    let (middle, tail) = rest.split_once(CONTENT).unwrap_or((rest, ""));
    let title = escaped(&format!("{title} – Plimsoll"));
    out.write_all([head, &title, middle, &content, tail].concat().as_bytes())
}

/// Three digits or so.
fn short(value: f64) -> String {
    match value {
        value if value >= 1_000.0 => figure::count(value.round() as u64),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A section with a chart of points that are joined in their order; empty without points.
fn chart((title, setting): (&str, &str), (x_title, y_title): (&str, &str), points: &[Point]) -> String {
    if points.is_empty() {
        return String::new();
    }
    let most = |of: fn(&Point) -> f64| points.iter().map(of).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let (x_most, y_most) = (most(|point| point.0), most(|point| point.1));
    let x = |value: f64| LEFT + value / x_most * (WIDTH - LEFT - MARGIN);
    let y = |value: f64| HEIGHT - BOTTOM - value / y_most * (HEIGHT - BOTTOM - MARGIN);
    let mut svg = format!(
        "<section><h2>{}</h2><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" \
         style=\"max-width:{WIDTH}px;width:100%;font:12px sans-serif\" fill=\"currentColor\">",
        escaped(title),
        escaped(title),
    );
    let (left, right, bottom, top) = (LEFT, WIDTH - MARGIN, HEIGHT - BOTTOM, MARGIN);
    svg.push_str(&format!(
        "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"currentColor\" opacity=\"0.5\"/>"
    ));
    let mut text = |at: (f64, f64), anchor: &str, words: &str| {
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            escaped(words)
        ));
    };
    for share in [0.0, 0.5, 1.0] {
        let (of_x, of_y) = (short(x_most * share), short(y_most * share));
        text((x(x_most * share), bottom + 18.0), "middle", &of_x);
        text((left - 8.0, y(y_most * share) + 4.0), "end", &of_y);
    }
    text(((left + right) / 2.0, HEIGHT - 8.0), "middle", x_title);
    text((8.0, top - 12.0), "start", y_title);
    for (place_x, place_y, level) in points {
        text((x(*place_x) + 8.0, y(*place_y) - 8.0), "start", level);
    }
    let line: Vec<String> =
        points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
    svg.push_str(&format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"currentColor\" opacity=\"0.6\"/>",
        line.join(" ")
    ));
    for (place_x, place_y, level) in points {
        svg.push_str(&format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"><title>{}: {}, {}</title></circle>",
            x(*place_x),
            y(*place_y),
            escaped(&format!("{setting} {level}")),
            short(*place_x),
            short(*place_y),
        ));
    }
    svg.push_str("</svg></section>");
    svg
}
