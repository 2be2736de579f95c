//! The page of two targets in one run: the answer, and how its intervals narrowed as the run went on.

use std::io;

use super::markup::Markup;
use super::plot::{Axis, Plot, round_ends};
use super::{comparing, whole};
use crate::compare::comparison::{Comparison, MetricResult};
use crate::compare::interleaved::InterleavedResult;
use crate::render::text::comparison::short;

/// Writes the page of a comparison.
///
/// # Errors
/// The errors of the writer.
pub fn render_comparison_page(comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
    let mut page = Markup::default();
    let title = format!("{} and {}", comparison.a.name, comparison.b.name);
    page.open("header", &[("class", "page")]);
    page.element("p", "brand", &format!("{} {}", comparison.tool.name, comparison.tool.version));
    page.element("h1", "", &title);
    if let Some(run) = &comparison.interleaved {
        page.element("p", "target", &format!("{}, run {}", run.started_at, run.id));
        page.element("p", "target", &format!("The load {}", run.load_of_both()));
    }
    page.close("header");
    page.open("main", &[("id", "main")]);
    page.section("comparison", "Comparison", |page| comparing::judged(page, comparison));
    let mut content = page.finish();
    if let Some(run) = &comparison.interleaved {
        let charts = comparison.metrics.iter().enumerate().map(|(index, metric)| chart(run, index, metric));
        content.extend(charts);
    }
    content.push_str("</main>");
    out.write_all(whole(&format!("{title} – Plimsoll"), &content).as_bytes())
}

/// A change in percent, without zeros at its end.
fn percent(value: f64) -> String {
    let text = format!("{:+.2}", value * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if matches!(text, "+0" | "-0") { "0".to_owned() } else { text.to_owned() }
}

/// The interval of a change at each look; empty if there never was one.
fn chart(run: &InterleavedResult, index: usize, metric: &MetricResult) -> String {
    let known: Vec<[f64; 4]> = run
        .looks
        .iter()
        .filter_map(|look| {
            let change = (*look.changes.get(index)?)?;
            Some([look.at_s, change.estimate, change.low?, change.high?])
        })
        .collect();
    let Some([last, ..]) = known.last().copied() else { return String::new() };
    // The first intervals may be many times as wide as the last: the chart is for those of the second half.
    let later = &known[known.len() / 2..];
    let ends = |of: usize, end: fn(f64, f64) -> f64| later.iter().map(|look| look[of]).fold(0.0, end);
    let (low, high) = (ends(2, f64::min), ends(3, f64::max));
    let room = ((high - low) * 0.5).max(f64::MIN_POSITIVE);
    let seconds = Axis { title: "seconds", ends: [0.0, last], written: |value| format!("{value:.0}") };
    let change = Axis {
        title: if metric.unit == "share" { "change in percentage points" } else { "change in percent" },
        ends: round_ends(low - room, high + room),
        written: percent,
    };
    let mut plot = Plot::new(&format!("{} from A to B", short(metric)), seconds, change);
    let side = |of: usize| known.iter().map(move |look| (look[0], look[of]));
    plot.area(side(2).chain(side(3).rev()));
    plot.line(side(1));
    plot.line([(0.0, 0.0), (last, 0.0)]);
    plot.finish()
}
