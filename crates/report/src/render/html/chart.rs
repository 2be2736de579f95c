//! Data that the charts are drawn from: bounded in size, however long the run was. Figures in text are made
//! in the other modules; these are values.

use plimsoll_histogram::Histogram;
use serde::Serialize;

use super::ShownRun;
use super::heat::Heat;
use super::time_series::{Annotation, Span, TimeSeries};
use crate::build::distribution::Bar;
use crate::contract::result::ModelKind;
use crate::contract::summary::{PERCENTILES, Summary};
use crate::render::document::times::main_time;

/// Points of the spectrum for each power of ten of the requests that are slower.
const PER_DECADE: i32 = 20;

/// Data for the charts of a page.
#[derive(Debug, Serialize)]
pub(super) struct ChartData {
    runs: Vec<RunData>,
}

/// Data for the charts of one run. Times of day are seconds since the start of the run, warm-up included.
#[derive(Debug, Serialize)]
struct RunData {
    name: String,
    is_open: bool,
    /// The key of the time that the model is about.
    time: &'static str,
    course: TimeSeries,
    spans: Vec<Span>,
    marks: Vec<Annotation>,
    spectra: Vec<Spectrum>,
    histograms: Vec<HistogramData>,
    heat: Option<Heat>,
    /// Notice about charts that are not drawn in full, and how to get them; null if nothing is missing.
    missing: Option<&'static str>,
}

/// The percentiles of a time.
#[derive(Debug, Default, Serialize)]
struct Spectrum {
    time: &'static str,
    count: u64,
    /// Pairs of a share of the values, below one, and the largest of these in nanoseconds.
    points: Vec<(f64, u64)>,
    /// The number of the first point that is a lower bound; null if none is.
    at_least_from: Option<usize>,
    /// Share of the values above which there are too few for a 95 % bound.
    known_to: f64,
    /// Intervals: share, low and high end.
    intervals: Vec<(f64, Option<u64>, Option<u64>)>,
}

#[derive(Debug, Serialize)]
struct HistogramData {
    time: &'static str,
    count: u64,
    bars: Vec<(u64, u64, u64)>,
}

impl ChartData {
    pub(super) fn new(runs: &[ShownRun<'_>]) -> Self {
        Self { runs: runs.iter().map(RunData::new).collect() }
    }
}

impl RunData {
    fn new(run: &ShownRun<'_>) -> Self {
        let result = run.result;
        let times = [("response_time", &result.response_time), ("service_time", &result.service_time)];
        let spectrum = |(time, summary): (&'static str, &Summary)| match run.histogram_of(time) {
            Some(histogram) => Spectrum::of_histogram(time, summary, histogram),
            None => Spectrum::of_summary(time, summary),
        };
        let bar = |bar: &Bar| (bar.from_ns, bar.below_ns, bar.count);
        let histograms = times.map(|(time, summary)| HistogramData {
            time,
            count: summary.count,
            bars: summary.distribution.iter().map(bar).collect(),
        });
        Self {
            name: run.name.clone(),
            is_open: result.model.kind == ModelKind::Open,
            time: main_time(result).1.trim_start_matches('/'),
            course: TimeSeries::new(result),
            spans: Span::of_run(result),
            marks: Annotation::of_run(result),
            spectra: times.map(spectrum).into_iter().collect(),
            histograms: histograms.into_iter().collect(),
            heat: Heat::new(run.saved),
            missing: run.total.is_none().then_some(super::WITHOUT_HISTOGRAMS),
        }
    }
}

impl Spectrum {
    /// The percentiles that a result has, and its largest value.
    fn of_summary(time: &'static str, summary: &Summary) -> Self {
        let mut spectrum = Self { time, count: summary.count, ..Self::default() };
        spectrum.add_intervals(summary);
        let Some((min, max)) = summary.min.zip(summary.max) else { return spectrum };
        spectrum.points.push((0.0, min));
        for ((name, p), value) in PERCENTILES.iter().zip(summary.p.values()) {
            let Some(value) = value else { continue };
            if summary.is_at_least(name) && spectrum.at_least_from.is_none() {
                spectrum.at_least_from = Some(spectrum.points.len());
            }
            spectrum.points.push((p / 100.0, value));
        }
        if summary.is_at_least("max") && spectrum.at_least_from.is_none() {
            spectrum.at_least_from = Some(spectrum.points.len());
        }
        spectrum.points.push((last_share(summary.count), max));
        spectrum
    }

    /// Percentiles of the histogram that are even on an axis of the share of slower requests.
    fn of_histogram(time: &'static str, summary: &Summary, histogram: &Histogram) -> Self {
        let mut spectrum = Self { time, count: summary.count, ..Self::default() };
        spectrum.add_intervals(summary);
        let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else { return spectrum };
        let last = last_share(histogram.count());
        let levels = (1..).map(|step| 1.0 - 10_f64.powf(f64::from(-step) / f64::from(PER_DECADE)));
        let exact = PERCENTILES.iter().map(|(_, p)| p / 100.0).filter(|share| *share < last);
        let mut shares: Vec<f64> = levels.take_while(|share| *share < last).chain(exact).collect();
        shares.sort_by(f64::total_cmp);
        spectrum.points.push((0.0, min));
        let value = |share: f64| Some((share, histogram.percentile(share * 100.0)?));
        spectrum.points.extend(shares.into_iter().filter_map(value));
        spectrum.points.push((last, max));
        // Lower bounds include all values from the smallest of them on.
        let first =
            PERCENTILES.iter().zip(summary.p.values()).find(|((name, _), _)| summary.is_at_least(name));
        let from = first.map_or(summary.is_at_least("max").then_some(max), |(_, value)| value);
        spectrum.at_least_from =
            from.and_then(|from| spectrum.points.iter().position(|(_, value)| *value >= from));
        spectrum
    }

    fn add_intervals(&mut self, summary: &Summary) {
        // ln(0.05) / ln(share) values are needed: see `Percentiles`.
        self.known_to = if summary.count == 0 { 0.0 } else { 0.05_f64.powf(1.0 / summary.count as f64) };
        let interval = |(name, p): &(&str, f64)| {
            summary.interval_of(name).map(|bounds| (p / 100.0, bounds.low, bounds.high))
        };
        self.intervals = PERCENTILES.iter().filter_map(interval).collect();
    }
}

/// The share of values that the largest of them is drawn at: one slower than all would be the next.
fn last_share(count: u64) -> f64 {
    1.0 - 1.0 / (count + 1) as f64
}
