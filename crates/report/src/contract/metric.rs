//! Metrics of the plan's own.

use std::collections::BTreeMap;

use plimsoll_core::Nanos;
use plimsoll_metrics::{Distribution, MetricRecord, MetricSum, Series, SeriesKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::summary::missing;

/// A metric that steps of the plan record values of. Numbers are kept with six places; percentiles and the
/// standard deviation are less than 0.1 % too large, all other figures exact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnMetric {
    /// The name that steps and thresholds use.
    pub name: String,
    /// The kind of its values.
    pub kind: SeriesKind,
    /// The unit of its values; left away if the plan names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Figures of all values.
    pub all: MetricFigures,
    /// Figures of the values with each combination of tags, in the order of the tags; left away without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tagged: Vec<TaggedFigures>,
    /// Number of values with further combinations of tags, of which there may be 100: they are in `all` only.
    pub beyond: u64,
    /// Number of values that were not recorded, because they are no values of the kind.
    pub unfit: u64,
    /// The first of these, and the reason; left away if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit_example: Option<String>,
}

/// Figures of values with the same tags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaggedFigures {
    /// The tags by their names.
    pub tags: BTreeMap<String, String>,
    /// Figures of the values.
    pub figures: MetricFigures,
}

/// Figures of the values of a metric. Those that metrics of the kind do not have are left away, and so are
/// those without values; percentiles are null then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricFigures {
    /// Number of values.
    pub count: u64,
    /// Counter: their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
    /// Counter: the sum per second of the measured part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// Rate: the number of values that are true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// Rate: their share of all values, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Gauge: the last value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<f64>,
    /// Gauge and trend: the smallest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Trend: the arithmetic mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Trend: the standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdev: Option<f64>,
    /// Gauge and trend: the largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Trend: percentiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<NumberPercentiles>,
}

/// The values of a metric in one interval, whatever their tags. Figures that metrics of the kind do not have
/// are left away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalMetric {
    /// The name that steps and thresholds use.
    pub name: String,
    /// The kind of its values.
    pub kind: SeriesKind,
    /// Number of values.
    pub count: u64,
    /// Counter: their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
    /// Counter: the sum per second of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// Rate: the number of values that are true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// Rate: their share of all values, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Gauge: the last value; left away where it is not known which of several shards had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<f64>,
    /// Gauge and trend: the smallest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Trend: the arithmetic mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Gauge and trend: the largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// The figures of a kind in an interval.
const fn figures_of(kind: SeriesKind) -> &'static [&'static str] {
    match kind {
        SeriesKind::Counter => &["count", "sum", "per_s"],
        SeriesKind::Gauge => &["count", "last", "min", "max"],
        SeriesKind::Rate => &["count", "hits", "share"],
        SeriesKind::Trend => &["count", "min", "mean", "max"],
    }
}

impl IntervalMetric {
    /// Names of the columns that a metric has in tables of intervals: one for each figure of its kind. A name
    /// of a metric has letters, digits, `_`, `-` and `.` only, so that none is quoted.
    pub fn columns(name: &str, kind: SeriesKind) -> impl Iterator<Item = String> {
        figures_of(kind).iter().map(move |figure| format!("metric_{name}_{figure}"))
    }

    /// The cells of these columns; all but the count are empty without values.
    pub fn cells(seen: Option<&Self>, kind: SeriesKind) -> impl Iterator<Item = String> {
        figures_of(kind).iter().map(move |figure| match *figure {
            "count" => seen.map_or(0, |seen| seen.count).to_string(),
            "hits" => seen.and_then(|seen| seen.hits).map_or(String::new(), |hits| hits.to_string()),
            figure => seen.and_then(|seen| seen.figure(figure)).map_or(String::new(), |it| it.to_string()),
        })
    }

    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "sum" => self.sum,
            "per_s" => self.per_s,
            "share" => self.share,
            "last" => self.last,
            "min" => self.min,
            "mean" => self.mean,
            "max" => self.max,
            _ => None,
        }
    }

    /// The metrics of an interval of this length in seconds.
    pub fn all(sums: &[MetricSum], length_s: f64) -> Vec<Self> {
        let one = |sum: &MetricSum| Self {
            name: sum.name.clone(),
            kind: sum.kind,
            count: sum.count,
            sum: sum.sum(),
            per_s: sum.sum().filter(|_| length_s > 0.0).map(|sum| sum / length_s),
            hits: sum.hits(),
            share: sum.share(),
            last: sum.last(),
            min: sum.min(),
            mean: sum.mean(),
            max: sum.max(),
        };
        sums.iter().map(one).collect()
    }

    /// The metrics of parts of an interval that has this length in seconds: of several shards, or of
    /// intervals that follow each other. These are `in_order`, so that the last value of a gauge is known.
    pub(crate) fn joined<'a>(
        parts: impl Iterator<Item = &'a [Self]>,
        length_s: f64,
        in_order: bool,
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for part in parts.flatten() {
            match all.iter_mut().find(|one| one.name == part.name && one.kind == part.kind) {
                Some(one) => one.join(part, in_order),
                None => all.push(part.clone()),
            }
        }
        for one in &mut all {
            one.per_s = one.sum.filter(|_| length_s > 0.0).map(|sum| sum / length_s);
        }
        all
    }

    fn join(&mut self, next: &Self, in_order: bool) {
        let pick = |mine: Option<f64>, theirs: Option<f64>, of: fn(f64, f64) -> f64| match (mine, theirs) {
            (Some(mine), Some(theirs)) => Some(of(mine, theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        let total = |one: &Self| one.mean.map(|mean| mean * one.count as f64);
        let sum_of_both = pick(total(self), total(next), |mine, theirs| mine + theirs);
        self.count = self.count.saturating_add(next.count);
        self.mean = sum_of_both.filter(|_| self.count > 0).map(|sum| sum / self.count as f64);
        self.sum = pick(self.sum, next.sum, |mine, theirs| mine + theirs);
        self.hits = self.hits.map(|hits| hits.saturating_add(next.hits.unwrap_or(0)));
        self.share = self.hits.filter(|_| self.count > 0).map(|hits| hits as f64 / self.count as f64);
        self.min = pick(self.min, next.min, f64::min);
        self.max = pick(self.max, next.max, f64::max);
        self.last = next.last.filter(|_| in_order);
    }
}

/// Percentiles of numbers by nearest rank. Null if there are too few values for any 95 % upper bound of the
/// percentile, which takes ln(0.05) / ln(p / 100) independent ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NumberPercentiles {
    /// The median.
    #[serde(rename = "50")]
    pub p50: Option<f64>,
    /// The percentile 90.
    #[serde(rename = "90")]
    pub p90: Option<f64>,
    /// The percentile 95.
    #[serde(rename = "95")]
    pub p95: Option<f64>,
    /// The percentile 99; needs 299 values.
    #[serde(rename = "99")]
    pub p99: Option<f64>,
    /// The percentile 99.9; needs 2,995 values.
    #[serde(rename = "99.9")]
    pub p99_9: Option<f64>,
}

impl OwnMetric {
    /// The metrics of a run whose measured part has this length, or of a part of it.
    pub fn all(metrics: &[MetricRecord], length: Nanos) -> Vec<Self> {
        metrics.iter().map(|metric| Self::new(metric, length)).collect()
    }

    fn new(metric: &MetricRecord, length: Nanos) -> Self {
        let tagged = metric.tagged.iter().map(|tagged| TaggedFigures {
            tags: tagged.tags.iter().cloned().collect(),
            figures: MetricFigures::new(&tagged.series, length),
        });
        Self {
            name: metric.spec.name.clone(),
            kind: metric.spec.kind,
            unit: Some(metric.spec.unit.clone()).filter(|unit| !unit.is_empty()),
            all: MetricFigures::new(&metric.all, length),
            tagged: tagged.collect(),
            beyond: metric.beyond,
            unfit: metric.unfit,
            unfit_example: metric.unfit_example.as_ref().map(|example| example.reason.clone()),
        }
    }
}

impl MetricFigures {
    fn new(series: &Series, length: Nanos) -> Self {
        let distribution = series.distribution();
        let percentile = |p: f64| {
            let trend = distribution.filter(|trend| missing(p, trend.count()).is_none())?;
            trend.percentile(p)
        };
        let sum = series.sum();
        Self {
            count: series.count(),
            sum,
            per_s: sum.filter(|_| length > Nanos::ZERO).map(|sum| sum / length.as_secs_f64()),
            hits: match series {
                Series::Rate { hits, .. } => Some(*hits),
                _ => None,
            },
            share: series.share(),
            last: series.last(),
            min: series.min(),
            mean: distribution.and_then(Distribution::mean),
            stdev: distribution.and_then(Distribution::stdev),
            max: series.max(),
            p: distribution.map(|_| NumberPercentiles {
                p50: percentile(50.0),
                p90: percentile(90.0),
                p95: percentile(95.0),
                p99: percentile(99.0),
                p99_9: percentile(99.9),
            }),
        }
    }
}
