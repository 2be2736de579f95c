//! The page of a search, with the objective on its load line, and that of a sweep: throughput against what
//! one user sees of it.

use plimsoll_core::figure;
use plimsoll_metrics::Threshold;
use plimsoll_metrics::threshold::{Figure, Limit, Metric};

use super::markup::{Markup, class};
use super::plot::{Axis, Plot};
use super::report::{preformatted, warnings};
use super::{contents, mark, whole};
use crate::contract::capacity::{CapacityResult, LevelResult};
use crate::contract::searched::Searched;
use crate::contract::sweep::{SweepLevel, SweepResult};
use crate::contract::trial::TrialFigures;
use crate::render::document::searched::SearchDocument;
use crate::render::document::sentence;
use crate::render::layout::Emphasis;

/// Room above the limit of an objective, as a multiple of it: what is beyond is drawn at the end of the axis.
const ABOVE_LIMIT: f64 = 3.0;
/// Rates above this multiple of the upper end of the capacity are not drawn: the ramp goes far beyond it.
const ABOVE_CAPACITY: f64 = 2.0;
/// Shares of bad requests that come no nearer to the limit than this share of it are not drawn.
const NEAR_LIMIT: f64 = 0.25;
const NS_PER_MS: f64 = 1e6;
/// Words at a rate whose trial had none.
const NO_ANSWERS: &str = "no answers";

/// The whole page.
pub(crate) fn page(searched: &Searched) -> String {
    let document = SearchDocument::new(searched);
    let mut page = Markup::default();
    page.open("header", &[("class", "page")]);
    page.element("p", "brand", &document.tool);
    page.element("h1", "", &document.title);
    page.element("p", "target", &format!("{}, {}", document.started_at, document.identity));
    page.close("header");
    contents(&mut page, &[("answer", "Answer"), ("curve", "Curve"), ("origin", "Origin")]);
    page.open("main", &[("id", "main")]);
    page.section("answer", "Answer", |page| answer(page, &document));
    let charts = match searched {
        Searched::Capacity(result) => of_search(result),
        Searched::Sweep(result) => of_sweep(result),
    };
    charts.iter().for_each(|chart| page.drawn(chart));
    page.section("curve", "Load against response time", |page| {
        page.table(&document.levels);
        page.facts(&document.law);
        page.table(&document.trials);
    });
    page.section("origin", "Origin", |page| {
        page.facts(&document.origin);
        page.element("h3", "", "Command");
        preformatted(page, &document.command);
    });
    page.close("main");
    whole(&format!("{} – {} – Plimsoll", document.answer, document.title), &page.finish())
}

/// The answer, and what has to be known of it.
fn answer(page: &mut Markup, document: &SearchDocument) {
    // That nothing was to be judged is no reason for an emphasis, and still the box of the answer.
    let class = if document.emphasis == Emphasis::Plain { "done" } else { class(document.emphasis) };
    page.within("div", &format!("verdict {class}"), |page| {
        mark(page, class);
        page.within("div", "", |page| {
            page.element("p", "word", &document.answer);
            if !document.statement.is_empty() {
                page.element("p", "", &sentence(&document.statement));
            }
        });
    });
    page.notes(&document.notes);
    page.facts(&document.facts);
    warnings(page, &document.findings);
}

/// A point of a chart: its place, the words beside it, and whether it is as it should be.
struct Point {
    at: (f64, f64),
    label: String,
    /// Words beside it; empty without any.
    mark: String,
    is_good: bool,
    /// The value where it is not what the axis says, but no more than that; `None` where it is.
    bound: Option<Bound>,
}

/// A substitute for the value of a point that is not known.
#[derive(Clone)]
enum Bound {
    /// A lower percentile, which is drawn, with words about it: the value is at least as large.
    Lower(String),
    /// Nothing, for this reason: the point is at the end of the axis.
    Unknown(String),
}

/// A curve of figures by load, with the limit of an objective and the interval of the capacity on it.
struct Curve<'a> {
    title: String,
    x_title: &'a str,
    y_title: &'a str,
    points: Vec<Point>,
    /// The limit of the objective, and the objective.
    limit: Option<(f64, &'a str)>,
    /// The ends of the capacity.
    capacity: Option<[f64; 2]>,
}

impl Curve<'_> {
    /// The chart as markup; `None` without points.
    fn drawn(&self) -> Option<String> {
        let most = |of: fn(&Point) -> f64| self.points.iter().map(of).reduce(f64::max);
        let (right, top) = (most(|point| point.at.0)?, most(|point| point.at.1)?);
        // The end of the capacity is on the chart, whether or not a point is there.
        let right = self.capacity.map_or(right, |[_, high]| right.max(high));
        let top = match self.limit {
            Some((limit, _)) => top.clamp(limit * 1.25, limit * ABOVE_LIMIT),
            None => top,
        };
        let axis =
            |title, most: f64| Axis { title, ends: [0.0, most.max(f64::MIN_POSITIVE)], written: short };
        let mut plot = Plot::new(&self.title, axis(self.x_title, right), axis(self.y_title, top));
        if let Some([low, high]) = self.capacity {
            plot.area([(low, 0.0), (low, top), (high, top), (high, 0.0)]);
        }
        if let Some((limit, objective)) = self.limit {
            plot.rule([(0.0, limit), (right, limit)]);
            plot.label((0.0, limit), objective);
        }
        let has_value = |point: &&Point| !matches!(point.bound, Some(Bound::Lower(_)));
        plot.line(self.points.iter().filter(has_value).map(|point| point.at));
        for Point { at, label, mark, is_good, bound } in &self.points {
            let words = match bound {
                Some(Bound::Lower(why)) => {
                    format!("{label}: {}, at least {}: {why}", short(at.0), short(at.1))
                }
                Some(Bound::Unknown(why)) => format!("{label}: no time is known: {why}"),
                None => format!("{label}: {}, {}", short(at.0), short(at.1)),
            };
            if *is_good {
                plot.dot(*at, &words);
            } else {
                plot.ring(*at, &words);
            }
            if at.1 > top {
                // The axis ends below it.
                let beyond = match bound {
                    Some(Bound::Unknown(why)) => why.clone(),
                    Some(Bound::Lower(_)) => format!("≥ {}", short(at.1)),
                    None => short(at.1),
                };
                plot.label((at.0, top), &format!("↑ {beyond}"));
            } else if matches!(bound, Some(Bound::Lower(_))) {
                plot.label(*at, &format!("≥ {}", short(at.1)));
            } else if !mark.is_empty() {
                plot.label(*at, mark);
            }
        }
        Some(plot.finish())
    }
}

/// Three digits or so.
fn short(value: f64) -> String {
    match value {
        value if value >= 1_000.0 => figure::count(value.round() as u64),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A percentile of the figures of trials, by its name.
type TimeOf = (&'static str, fn(&TrialFigures) -> Option<u64>);

/// The percentile that an objective is about, and its limit in milliseconds, where the figures of trials have
/// that one.
fn timed(slo: &str) -> Option<(TimeOf, f64)> {
    const KNOWN: [(f64, TimeOf); 4] = [
        (50.0, ("p50", |figures| figures.p50)),
        (90.0, ("p90", |figures| figures.p90)),
        (99.0, ("p99", |figures| figures.p99)),
        (99.9, ("p99.9", |figures| figures.p99_9)),
    ];
    let threshold = Threshold::of_saved(slo).ok()?;
    let (Metric::Time(_, Figure::Percentile(p), _), Limit::Time(limit)) = (threshold.metric, threshold.limit)
    else {
        return None;
    };
    let (_, time) = KNOWN.into_iter().find(|(known, _)| (known - p.p()).abs() < 1e-6)?;
    Some((time, limit.0 as f64 / NS_PER_MS))
}

/// The place of a rate that breaks and whose time is not known: at the highest percentile below it that is,
/// which is a lower bound, or beyond every limit.
fn without_time(name: &str, figures: &TrialFigures) -> (f64, Option<Bound>) {
    if !figures.has_answers() {
        return (f64::INFINITY, Some(Bound::Unknown(NO_ANSWERS.to_owned())));
    }
    let lower = [("p99", figures.p99), ("p90", figures.p90), ("p50", figures.p50)];
    let known = lower.into_iter().find_map(|(lower, value)| Some((lower, value?)));
    match known {
        Some((lower, value)) => {
            let why = format!("{name} is not shown, as there were too few requests; {lower} is");
            (value as f64 / NS_PER_MS, Some(Bound::Lower(why)))
        }
        None => {
            (f64::INFINITY, Some(Bound::Unknown(format!("{name} not shown: too few requests were answered"))))
        }
    }
}

/// The charts of a search, one for each objective.
fn of_search(result: &CapacityResult) -> Vec<String> {
    let slo = result.search.slo.iter().enumerate();
    slo.filter_map(|(number, slo)| of_objective(result, number, slo)?.drawn()).collect()
}

/// The times of the levels against the limit of an objective, or the share of requests that break it where
/// the figures of trials do not have its time; `None` if no share comes near the limit.
fn of_objective<'a>(result: &CapacityResult, number: usize, slo: &'a str) -> Option<Curve<'a>> {
    let point = |level: &LevelResult, (value, bound)| Point {
        at: (level.rate_per_s, value),
        label: format!("{} {}", figure::per_second(level.rate_per_s), level.finding.replace('_', " ")),
        mark: String::new(),
        is_good: level.finding == "holds",
        bound,
    };
    let curve = |title, y_title, limit, points| Curve {
        title,
        x_title: "iterations/s",
        y_title,
        points,
        limit: Some((limit, slo)),
        capacity: ends(result),
    };
    let farthest = result.capacity.high_per_s.map_or(f64::INFINITY, |high| high * ABOVE_CAPACITY);
    let levels = || result.levels.iter().filter(move |level| level.rate_per_s <= farthest);
    if let Some(((name, time), limit)) = timed(slo) {
        let value = |level: &LevelResult| {
            let figures = &result.longest_at(level)?.figures;
            match time(figures) {
                Some(time) => Some((time as f64 / NS_PER_MS, None)),
                None => (level.finding == "breaks").then(|| without_time(name, figures)),
            }
        };
        let points = levels().filter_map(|level| Some(point(level, value(level)?)));
        return Some(curve(format!("Load line: {name} by rate"), "ms", limit, points.collect()));
    }
    let shares = || levels().filter_map(move |level| Some((level, level.shares.get(number)?)));
    let limit = shares().next()?.1.limit;
    if shares().all(|(_, share)| share.share.is_none_or(|share| share < limit * NEAR_LIMIT)) {
        return None;
    }
    // Answers that an overload never gave are beyond every limit of a time; they are no errors.
    let is_of_times =
        Threshold::of_saved(slo).is_ok_and(|threshold| matches!(threshold.metric, Metric::Time(..)));
    let value = |level: &LevelResult, share: Option<f64>| match is_of_times && level.is_overloaded() {
        true => {
            let has_answers = result.longest_at(level).is_some_and(|trial| trial.figures.has_answers());
            let why = if has_answers { "more came than was answered" } else { NO_ANSWERS };
            Some((f64::INFINITY, Some(Bound::Unknown(why.to_owned()))))
        }
        false => share.map(|share| (share * 100.0, None)),
    };
    let points = shares().filter_map(|(level, of)| Some(point(level, value(level, of.share)?)));
    Some(curve(format!("Requests that break {slo}, by rate"), "%", limit * 100.0, points.collect()))
}

/// The ends of the capacity on a chart; an open one is that of the axis.
fn ends(result: &CapacityResult) -> Option<[f64; 2]> {
    let capacity = &result.capacity;
    capacity.low_per_s.or(capacity.high_per_s)?;
    let highest = result.levels.iter().map(|level| level.rate_per_s).fold(0.0, f64::max);
    Some([capacity.low_per_s.unwrap_or(0.0), capacity.high_per_s.unwrap_or(highest)])
}

/// The charts of a sweep.
fn of_sweep(result: &SweepResult) -> Vec<String> {
    let curve = |title: &str, x_title, y_title, of: fn(&SweepLevel) -> Option<(f64, f64)>| {
        let point = |level: &SweepLevel| {
            let label = format!("{} {}", result.setting, level.value);
            let is_good = !matches!(level.finding.as_deref(), Some("breaks" | "not_applied"));
            Some(Point { at: of(level)?, label, mark: level.value.to_string(), is_good, bound: None })
        };
        let points = result.levels.iter().filter_map(point).collect();
        let title = title.to_owned();
        Curve { title, x_title, y_title, points, limit: None, capacity: None }.drawn()
    };
    let charts = [
        curve(
            "Tokens per second: all users against each",
            "tokens/s of a user",
            "tokens/s in all",
            |level| {
                let streams = level.event_streams.as_ref()?;
                Some((streams.tokens_per_s_per_user?, streams.tokens_per_s?))
            },
        ),
        curve("Time to first token against load", "requests in flight", "TTFT p50, ms", |level| {
            Some((level.figures.in_flight, level.event_streams.as_ref()?.ttft_p50? as f64 / NS_PER_MS))
        }),
        curve("Throughput against load", "requests in flight", "answered/s", |level| {
            Some((level.figures.in_flight, level.figures.achieved_per_s))
        }),
        curve("Response time against load", "requests in flight", "p99, ms", |level| {
            Some((level.figures.in_flight, level.figures.p99? as f64 / NS_PER_MS))
        }),
    ];
    charts.into_iter().flatten().collect()
}
