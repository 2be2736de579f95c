//! Metrics of the plan's own: a table for each kind.

use plimsoll_core::figure;
use plimsoll_metrics::SeriesKind;

use super::{Fact, Line, Section, Shown, Span, Table, Unit, count, line, per_second, words};
use crate::contract::metric::{MetricFigures, NumberPercentiles, OwnMetric};
use crate::contract::result::RunResult;
use crate::render::layout::Emphasis;

/// Rows of a table at most.
const MOST_ROWS: usize = 100;

/// A section for each kind that there is.
pub(super) fn sections(result: &RunResult) -> Vec<Section> {
    let kinds = [
        (SeriesKind::Trend, "own metrics: trends"),
        (SeriesKind::Counter, "own metrics: counters"),
        (SeriesKind::Gauge, "own metrics: gauges"),
        (SeriesKind::Rate, "own metrics: rates"),
    ];
    let sections = kinds.into_iter().map(|(kind, heading)| section(result, kind, heading));
    sections.filter(|section| !section.table.is_empty()).collect()
}

fn section(result: &RunResult, kind: SeriesKind, heading: &str) -> Section {
    let metrics = || result.metrics.iter().enumerate().filter(|(_, metric)| metric.kind == kind);
    let rows = metrics().flat_map(|(index, metric)| {
        let at = format!("/metrics/{index}");
        let unit = metric.unit.as_ref().map_or(String::new(), |unit| format!(" ({unit})"));
        let first = row(kind, format!("{}{unit}", metric.name), &metric.all, &format!("{at}/all"));
        let tagged = metric.tagged.iter().enumerate().map(move |(number, tagged)| {
            let tags: Vec<String> =
                tagged.tags.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            let name = format!("{}{{{}}}", metric.name, tags.join(","));
            row(kind, name, &tagged.figures, &format!("{at}/tagged/{number}/figures"))
        });
        std::iter::once(first).chain(tagged)
    });
    let columns = columns(kind).iter().map(|(title, shown)| (*title, *shown));
    let table = Table::new("", columns, rows).of_first(MOST_ROWS);
    let facts = metrics().flat_map(|(index, metric)| remarks(index, metric)).collect();
    Section { heading: heading.to_owned(), table, facts }
}

/// The figures of all values of a metric: `mean 20.2, p50 12.5, p95 40, max 40 of 400 values`.
pub(crate) fn in_words(metric: &OwnMetric) -> String {
    let figures = &metric.all;
    let number = |value: Option<f64>| value.map_or("-".to_owned(), figure::number);
    let words = match metric.kind {
        SeriesKind::Counter => {
            let rate = figures.per_s.map_or("-".to_owned(), figure::per_second);
            format!("sum {}, {rate}", number(figures.sum))
        }
        SeriesKind::Gauge => {
            let [last, min, max] = [figures.last, figures.min, figures.max].map(number);
            format!("last {last}, min {min}, max {max}")
        }
        SeriesKind::Rate => format!("{} true", figures.share.map_or("-".to_owned(), figure::share)),
        SeriesKind::Trend => {
            let p = figures.p.clone().unwrap_or_default();
            let [mean, p50, p95, max] = [figures.mean, p.p50, p.p95, figures.max].map(number);
            format!("mean {mean}, p50 {p50}, p95 {p95}, max {max}")
        }
    };
    let unfit = match metric.unfit {
        0 => String::new(),
        unfit => format!("; {} not recorded", figure::count(unfit)),
    };
    format!("{words} of {} values{unfit}", figure::count(figures.count))
}

/// The columns of the metrics of a kind.
const fn columns(kind: SeriesKind) -> &'static [(&'static str, Shown)] {
    use Shown::{Everywhere, MarkdownAndPage};
    match kind {
        SeriesKind::Counter => {
            &[("metric", Everywhere), ("values", Everywhere), ("sum", Everywhere), ("per second", Everywhere)]
        }
        SeriesKind::Gauge => &[
            ("metric", Everywhere),
            ("values", Everywhere),
            ("last", Everywhere),
            ("min", Everywhere),
            ("max", Everywhere),
        ],
        SeriesKind::Rate => {
            &[("metric", Everywhere), ("values", Everywhere), ("true", Everywhere), ("share", Everywhere)]
        }
        SeriesKind::Trend => &[
            ("metric", Everywhere),
            ("values", Everywhere),
            ("mean", Everywhere),
            ("sd", MarkdownAndPage),
            ("min", Everywhere),
            ("p50", Everywhere),
            ("p90", MarkdownAndPage),
            ("p95", Everywhere),
            ("p99", Everywhere),
            ("p99.9", MarkdownAndPage),
            ("max", Everywhere),
        ],
    }
}

/// The figures of a series in the order of the columns.
fn row(kind: SeriesKind, name: String, figures: &MetricFigures, at: &str) -> Vec<Line> {
    let number = |value: Option<f64>, key: &str| -> Line {
        let text = value.map_or("-".to_owned(), figure::number);
        Span::figure(text, format!("{at}/{key}"), Unit::Number).into()
    };
    let mut row: Vec<Line> = vec![name.into(), count(figures.count, format!("{at}/count")).into()];
    row.extend(match kind {
        SeriesKind::Counter => {
            vec![number(figures.sum, "sum"), per_second(figures.per_s, format!("{at}/per_s")).into()]
        }
        SeriesKind::Gauge => {
            vec![number(figures.last, "last"), number(figures.min, "min"), number(figures.max, "max")]
        }
        SeriesKind::Rate => {
            let share = figures.share.map_or("-".to_owned(), figure::share);
            let hits = count(figures.hits.unwrap_or(0), format!("{at}/hits"));
            vec![hits.into(), Span::figure(share, format!("{at}/share"), Unit::Share).into()]
        }
        SeriesKind::Trend => {
            let none = NumberPercentiles::default();
            let p = figures.p.as_ref().unwrap_or(&none);
            vec![
                number(figures.mean, "mean"),
                number(figures.stdev, "stdev"),
                number(figures.min, "min"),
                number(p.p50, "p/50"),
                number(p.p90, "p/90"),
                number(p.p95, "p/95"),
                number(p.p99, "p/99"),
                number(p.p99_9, "p/99.9"),
                number(figures.max, "max"),
            ]
        }
    });
    row
}

const fn values(count: u64) -> &'static str {
    if count == 1 { "value" } else { "values" }
}

/// Values of a metric that its figures lack.
fn remarks(index: usize, metric: &OwnMetric) -> Vec<Fact> {
    let at = |key: &str| format!("/metrics/{index}/{key}");
    let mut remarks = Vec::new();
    if metric.unfit > 0 {
        let number = count(metric.unfit, at("unfit")).with(Emphasis::Doubtful);
        let example = words(metric.unfit_example.clone().unwrap_or_default(), at("unfit_example"));
        let line =
            line![number, format!(" {} of {}, the first: ", values(metric.unfit), metric.name), example];
        remarks.push(Fact::new("unrecorded", line));
    }
    if metric.beyond > 0 {
        let number = count(metric.beyond, at("beyond")).with(Emphasis::Doubtful);
        let line = line![
            number,
            format!(
                " {} of {} with further tags, which have no row of their own: {} combinations are kept",
                values(metric.beyond),
                metric.name,
                plimsoll_metrics::series::MOST_TAGGED
            ),
        ];
        remarks.push(Fact::new("more tags", line));
    }
    remarks
}
