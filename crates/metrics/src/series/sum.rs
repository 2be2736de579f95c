//! The values of a metric in one interval, as small as a record keeps them.

use plimsoll_core::Nanos;
use serde::{Deserialize, Serialize};

use super::number::{Millionths, of_sum};
use super::{MetricRecord, Series, SeriesKind};

/// The values of a metric in an interval, tags and distribution left out: a long run has thousands of
/// intervals, so that each of them is to take a few words. Sums of intervals are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricSum {
    /// The name of the metric.
    pub name: String,
    /// The kind of the metric.
    pub kind: SeriesKind,
    /// Number of values.
    pub count: u64,
    /// Counter and trend: their sum, in millionths.
    sum: i128,
    /// Rate: the number of values that are true.
    hits: u64,
    /// Gauge and trend: the smallest and the largest value.
    limits: Option<(Millionths, Millionths)>,
    /// Gauge: when the last value was recorded, and the value.
    last: Option<(Nanos, Millionths)>,
}

impl MetricSum {
    /// The values of a metric.
    pub fn new(metric: &MetricRecord) -> Self {
        let (sum, hits, limits, last) = match &metric.all {
            Series::Counter { sum, .. } => (*sum, 0, None, None),
            Series::Rate { hits, .. } => (0, *hits, None, None),
            Series::Gauge(level) => {
                let limits = level.map(|level| (level.min, level.max));
                (0, 0, limits, level.map(|level| (level.at, level.last)))
            }
            Series::Trend(distribution) => (distribution.sum, 0, distribution.limits(), None),
        };
        let (name, kind) = (metric.spec.name.clone(), metric.spec.kind);
        Self { name, kind, count: metric.all.count(), sum, hits, limits, last }
    }

    /// Adds the values of other metrics to those of the same name and kind; others are added behind them.
    pub fn merge_all(mine: &mut Vec<Self>, theirs: &[Self]) {
        for other in theirs {
            match mine.iter_mut().find(|one| one.name == other.name && one.kind == other.kind) {
                Some(one) => one.merge(other),
                None => mine.push(other.clone()),
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.hits = self.hits.saturating_add(other.hits);
        self.limits = match (self.limits, other.limits) {
            (Some((low, high)), Some((lower, higher))) => Some((low.min(lower), high.max(higher))),
            (mine, theirs) => mine.or(theirs),
        };
        self.last = self.last.max(other.last);
    }

    /// The sum of a counter's values.
    pub fn sum(&self) -> Option<f64> {
        (self.kind == SeriesKind::Counter).then(|| of_sum(self.sum))
    }

    /// The number of a rate's values that are true.
    pub fn hits(&self) -> Option<u64> {
        (self.kind == SeriesKind::Rate).then_some(self.hits)
    }

    /// The share of a rate's values that are true, from 0 to 1; `None` without values.
    pub fn share(&self) -> Option<f64> {
        self.hits().filter(|_| self.count > 0).map(|hits| hits as f64 / self.count as f64)
    }

    /// The mean of a trend's values; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.kind == SeriesKind::Trend && self.count > 0).then(|| of_sum(self.sum) / self.count as f64)
    }

    /// The smallest value of a gauge or a trend.
    pub fn min(&self) -> Option<f64> {
        self.limits.map(|(low, _)| low.to_f64())
    }

    /// The largest value of a gauge or a trend.
    pub fn max(&self) -> Option<f64> {
        self.limits.map(|(_, high)| high.to_f64())
    }

    /// The last value of a gauge.
    pub fn last(&self) -> Option<f64> {
        self.last.map(|(_, last)| last.to_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MetricSpec;

    fn of(kind: SeriesKind, values: &[(&str, u64)]) -> MetricRecord {
        let mut metric = MetricRecord::new(MetricSpec { name: "own".to_owned(), kind, unit: String::new() });
        values.iter().for_each(|(text, at)| metric.record(text.as_bytes(), std::iter::empty(), Nanos(*at)));
        metric
    }

    #[test]
    fn sums_of_intervals_are_the_sum_of_their_values() {
        for (kind, values) in [
            (SeriesKind::Counter, [("0.1", 1), ("0.2", 2), ("7", 3), ("1e9", 4)]),
            (SeriesKind::Gauge, [("5", 4), ("-3", 9), ("9", 2), ("1", 1)]),
            (SeriesKind::Rate, [("true", 1), ("0", 2), ("1", 3), ("false", 4)]),
            (SeriesKind::Trend, [("-2.5", 1), ("4", 2), ("0", 3), ("1000", 4)]),
        ] {
            let whole = of(kind, &values);
            let (first, second) = values.split_at(2);
            let (first, second) = (MetricSum::new(&of(kind, first)), MetricSum::new(&of(kind, second)));
            for order in [[&first, &second], [&second, &first]] {
                let mut sum = Vec::new();
                order.iter().for_each(|part| MetricSum::merge_all(&mut sum, std::slice::from_ref(*part)));
                assert_eq!(sum, [MetricSum::new(&whole)], "{kind:?}");
            }
            let sum = MetricSum::new(&whole);
            assert_eq!((sum.count, sum.sum(), sum.share()), (4, whole.all.sum(), whole.all.share()));
            assert_eq!((sum.min(), sum.max()), (whole.all.min(), whole.all.max()));
            assert_eq!(sum.last(), whole.all.last());
            assert_eq!(sum.mean(), whole.all.distribution().and_then(crate::Distribution::mean));
        }
        let none = MetricSum::new(&of(SeriesKind::Rate, &[]));
        assert_eq!((none.hits(), none.share(), none.mean(), none.min()), (Some(0), None, None, None));
    }
}
