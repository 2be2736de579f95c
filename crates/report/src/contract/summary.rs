//! A histogram, summed up for a result.

use std::collections::BTreeMap;

use plimsoll_histogram::{Censored, Delta, Histogram, samples_needed};
use plimsoll_metrics::slice::percentile_interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::distribution::{self, Bar};
use crate::contract::interval::PercentileBounds;

/// The figures of one kind of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Unit of every time in this object: always "ns", nanoseconds.
    pub unit: String,
    /// Number of values.
    pub count: u64,
    /// The smallest value, exactly; null without values, as all that follow.
    pub min: Option<u64>,
    /// The arithmetic mean, from the exact sum.
    pub mean: Option<u64>,
    /// The standard deviation.
    pub stdev: Option<u64>,
    /// Share of the values, from 0 to 1, that differ from the mean by one standard deviation at most.
    /// Left away without values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_stdev: Option<f64>,
    /// The largest value, exactly.
    pub max: Option<u64>,
    /// Percentiles.
    pub p: Percentiles,
    /// For each percentile that is null: why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p_missing: BTreeMap<String, String>,
    /// For the keys of `p`: the values between which the true percentile lies, or null with the reason in
    /// interval_missing. Only of times that are known slice by slice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub interval: BTreeMap<String, Option<PercentileBounds>>,
    /// For each interval that is null: why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub interval_missing: BTreeMap<String, String>,
    /// Number of values that are lower bounds: requests that were given up at the timeout, or that had no
    /// answer when the run ended.
    pub censored: u64,
    /// Which figures are therefore only lower bounds: keys of `p`, "mean" or "max".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
    /// Values above 24 hours, which percentiles and distribution show as 24 hours.
    pub overflow: u64,
    /// Distribution of the values: twenty ranges to each power of ten, those without values left out.
    pub distribution: Vec<Bar>,
}

/// Percentiles by nearest rank: the smallest value such that at least ceil(p / 100 * count) values are not
/// larger, shown less than 0.1 % too large. Null if there are too few values for any 95 % upper bound of the
/// percentile, which takes ln(0.05) / ln(p / 100) independent ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// The percentile 10. Left away in results of earlier versions, and of phases.
    #[serde(default, rename = "10", skip_serializing_if = "Option::is_none")]
    pub p10: Option<u64>,
    /// The percentile 25. Left away in results of earlier versions, and of phases.
    #[serde(default, rename = "25", skip_serializing_if = "Option::is_none")]
    pub p25: Option<u64>,
    /// The median.
    #[serde(rename = "50")]
    pub p50: Option<u64>,
    /// The percentile 75.
    #[serde(rename = "75")]
    pub p75: Option<u64>,
    /// The percentile 90.
    #[serde(rename = "90")]
    pub p90: Option<u64>,
    /// The percentile 95.
    #[serde(rename = "95")]
    pub p95: Option<u64>,
    /// The percentile 99; needs 299 values.
    #[serde(rename = "99")]
    pub p99: Option<u64>,
    /// The percentile 99.9; needs 2,995 values.
    #[serde(rename = "99.9")]
    pub p99_9: Option<u64>,
    /// The percentile 99.99; needs 29,956 values.
    #[serde(rename = "99.99")]
    pub p99_99: Option<u64>,
}

/// The percentiles below the median of a [`Summary`], with their names in results. They have no intervals.
pub const LOW_PERCENTILES: [(&str, f64); 2] = [("10", 10.0), ("25", 25.0)];

/// The percentiles of a [`Summary`] from the median on, with their names in results.
pub const PERCENTILES: [(&str, f64); 7] =
    [("50", 50.0), ("75", 75.0), ("90", 90.0), ("95", 95.0), ("99", 99.0), ("99.9", 99.9), ("99.99", 99.99)];

impl Percentiles {
    /// The values in the order of [`PERCENTILES`].
    pub fn values(&self) -> [Option<u64>; 7] {
        [self.p50, self.p75, self.p90, self.p95, self.p99, self.p99_9, self.p99_99]
    }

    pub(crate) fn from_values([p50, p75, p90, p95, p99, p99_9, p99_99]: [Option<u64>; 7]) -> Self {
        Self { p50, p75, p90, p95, p99, p99_9, p99_99, ..Self::default() }
    }
}

/// Reason why a percentile is missing; `None` if it is not.
pub(crate) fn missing(p: f64, count: u64) -> Option<String> {
    let needed = samples_needed(p);
    match count {
        0 => Some("no samples".to_owned()),
        _ if count < needed => Some(format!("needs {needed} samples, has {count}")),
        _ => None,
    }
}

impl Summary {
    /// One of the [`PERCENTILES`] or [`LOW_PERCENTILES`] by its name; `None` as well if it has no value.
    pub(crate) fn percentile(&self, name: &str) -> Option<u64> {
        match name {
            "10" => return self.p.p10,
            "25" => return self.p.p25,
            _ => {}
        }
        let place = PERCENTILES.iter().position(|(known, _)| *known == name)?;
        self.p.values()[place]
    }

    /// Sums up a histogram, some of whose values may be lower bounds.
    pub fn new(histogram: &Histogram, censored: Censored) -> Self {
        let count = histogram.count();
        let mut p_missing = BTreeMap::new();
        let mut at_least = Vec::new();
        let occupied = histogram.occupied();
        let values = PERCENTILES.map(|(name, p)| {
            if let Some(reason) = missing(p, count) {
                p_missing.insert(name.to_owned(), reason);
                return None;
            }
            let value = occupied.percentile(p)?;
            if histogram.is_at_least(value, censored) {
                at_least.push(name.to_owned());
            }
            Some(value)
        });
        if censored.count > 0 {
            at_least.extend(["mean".to_owned(), "max".to_owned()]);
        }
        let rounded = |value: f64| value.round() as u64;
        // A lower bound is no less than the median but where most values are bounds.
        let [p10, p25] = LOW_PERCENTILES.map(|(_, p)| {
            let value = missing(p, count).is_none().then(|| occupied.percentile(p)).flatten()?;
            (!histogram.is_at_least(value, censored)).then_some(value)
        });
        Self {
            unit: "ns".to_owned(),
            count,
            min: histogram.min(),
            mean: histogram.mean().map(rounded),
            stdev: occupied.stdev().map(rounded),
            within_stdev: occupied.within_stdev(),
            max: histogram.max(),
            p: Percentiles { p10, p25, ..Percentiles::from_values(values) },
            p_missing,
            interval: BTreeMap::new(),
            interval_missing: BTreeMap::new(),
            censored: censored.count,
            at_least,
            overflow: histogram.overflow(),
            distribution: distribution::bars(occupied.buckets()),
        }
    }

    /// Sums up a histogram of exact values.
    pub fn exact(histogram: &Histogram) -> Self {
        Self::new(histogram, Censored::default())
    }

    /// Adds the intervals of the percentiles, from what the histogram counted in each slice of the run;
    /// `slices` is why there are none where they are not known.
    pub(crate) fn with_intervals(
        mut self,
        histogram: &Histogram,
        censored: Censored,
        slices: Result<&[&Delta], &str>,
    ) -> Self {
        for (name, p) in PERCENTILES {
            let missing = match (self.p_missing.get(name), slices) {
                (Some(reason), _) => Err(reason.clone()),
                (None, Err(reason)) => Err(reason.to_owned()),
                (None, Ok(slices)) => percentile_interval(p, histogram, slices.iter().copied())
                    .map_err(|reason| reason.to_string()),
            };
            let interval = match missing {
                Ok(interval) => {
                    Some(PercentileBounds::new(p, &interval, |value| histogram.is_at_least(value, censored)))
                }
                Err(reason) => {
                    self.interval_missing.insert(name.to_owned(), reason);
                    None
                }
            };
            self.interval.insert(name.to_owned(), interval);
        }
        self
    }

    /// The interval of a percentile, by its name in `p`; `None` if it has none.
    pub fn interval_of(&self, name: &str) -> Option<&PercentileBounds> {
        self.interval.get(name)?.as_ref()
    }

    /// Returns `true` if a figure, by its name in `p` or "mean" or "max", is only a lower bound.
    pub fn is_at_least(&self, figure: &str) -> bool {
        self.at_least.iter().any(|name| name == figure)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Nanos;

    use super::*;

    fn filled(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn a_percentile_without_enough_values_is_null_and_says_why() {
        let summary = Summary::exact(&filled(vec![7; 298]));
        assert_eq!((summary.p.p95, summary.p.p99), (Some(7), None));
        assert_eq!(summary.p_missing["99"], "needs 299 samples, has 298");
        assert_eq!(summary.p_missing.len(), 3);
        let summary = Summary::exact(&filled(vec![7; 299]));
        assert_eq!(summary.p.p99, Some(7));
        assert!(!summary.p_missing.contains_key("99"));
        let empty = Summary::exact(&Histogram::new());
        assert_eq!((empty.min, empty.mean, empty.stdev, empty.max), (None, None, None, None));
        assert_eq!(empty.p, Percentiles::default());
        assert_eq!(empty.p_missing.len(), PERCENTILES.len());
        assert_eq!(empty.p_missing["50"], "no samples");
    }

    #[test]
    fn low_percentiles_are_there_where_they_are_known() {
        let summary = Summary::exact(&filled(1..=1_000));
        assert_eq!((summary.percentile("10"), summary.percentile("25")), (Some(100), Some(250)));
        assert_eq!(Summary::exact(&filled([7])).percentile("10"), None);
        // Most requests were given up: their times are bounds.
        let given_up =
            Summary::new(&filled((0..100).chain(2_000..2_900)), Censored { count: 900, from: Nanos(2_000) });
        assert_eq!((given_up.percentile("10"), given_up.percentile("25")), (Some(99), None));
    }

    #[test]
    fn only_figures_that_a_lower_bound_can_move_are_lower_bounds() {
        // 1,000 values, of which the largest 20 were given up at 2,000 and more.
        let histogram = filled((0..980).chain(2_000..2_020));
        let censored = Censored { count: 20, from: Nanos(2_000) };
        let summary = Summary::new(&histogram, censored);
        assert_eq!(summary.at_least, ["99", "mean", "max"]);
        assert_eq!((summary.p.p95, summary.p.p99), (Some(949), Some(2_009)));
        assert_eq!(summary.censored, 20);
        assert!(Summary::exact(&histogram).at_least.is_empty());
    }
}
