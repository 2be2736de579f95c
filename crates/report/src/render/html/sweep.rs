//! The page of a sweep: throughput against what one user sees of it, level by level, and the table.

use std::io;

use plimsoll_metrics::figure;

use super::markup::{Markup, escaped};
use super::plot::{Axis, Plot};
use super::whole;
use crate::Style;
use crate::contract::sweep::{SweepLevel, SweepResult, levels_table};

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
    out.write_all(whole(&format!("{title} – Plimsoll"), &content).as_bytes())
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
    let axis = |title, most| Axis { title, ends: [0.0, most], written: short };
    let (x, y) = (axis(x_title, most(|point| point.0)), axis(y_title, most(|point| point.1)));
    let mut plot = Plot::new(title, x, y);
    points.iter().for_each(|(x, y, level)| plot.label((*x, *y), level));
    plot.line(points.iter().map(|(x, y, _)| (*x, *y)));
    for (x, y, level) in points {
        plot.dot((*x, *y), &format!("{setting} {level}: {}, {}", short(*x), short(*y)));
    }
    plot.finish()
}
