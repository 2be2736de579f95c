//! Metrics of a plan's own: numbers and truths that its steps record, by their tags.
//!
//! A worker owns one [`MetricRecord`] for each metric of the plan; the run control merges them. A metric
//! keeps all of its values together, and beside that a series for each combination of tags, of which there
//! are [`MOST_TAGGED`] at most. Those are kept that come first in the order of their tags: a combination
//! that is kept anywhere was kept everywhere, so every series has all of its values, and merging is exact in
//! any order. Values of the others are counted ([`MetricRecord::beyond`]).

mod distribution;
mod number;
mod sum;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use plimsoll_core::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::distribution::Distribution;
pub use self::number::{Millionths, Unfit};
use self::number::{of_sum, truth};
pub use self::sum::MetricSum;

/// Combinations of tags of one metric that are kept at most.
pub const MOST_TAGGED: usize = 100;
/// Longest value of a tag, in bytes.
pub const LONGEST_TAG: usize = 200;
/// Characters of a value that are shown where it is not recorded.
const SHOWN: usize = 40;

/// Kinds of metrics: the figures that their values have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeriesKind {
    /// A sum that only goes up, and its growth per second.
    Counter,
    /// A level: the last, the smallest and the largest value.
    Gauge,
    /// The share of the values that are true.
    Rate,
    /// A distribution of numbers.
    #[default]
    Trend,
}

impl SeriesKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Counter, Self::Gauge, Self::Rate, Self::Trend];

    /// The name in plans and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Rate => "rate",
            Self::Trend => "trend",
        }
    }

    /// Returns the kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A metric as a plan declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricSpec {
    /// The name that steps and thresholds use.
    pub name: String,
    /// The kind of its values.
    pub kind: SeriesKind,
    /// The unit of its values, for people; empty if the plan names none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// The values of a metric, or of one combination of its tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Series {
    /// Of a [counter](SeriesKind::Counter).
    Counter {
        /// Number of values.
        count: u64,
        /// Their sum, in millionths.
        sum: i128,
    },
    /// Of a [gauge](SeriesKind::Gauge); `None` without values.
    Gauge(Option<Level>),
    /// Of a [rate](SeriesKind::Rate).
    Rate {
        /// Number of values.
        count: u64,
        /// Those of them that were true.
        hits: u64,
    },
    /// Of a [trend](SeriesKind::Trend).
    Trend(Distribution),
}

/// The values of a gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Number of values.
    pub count: u64,
    /// When the last one was recorded, since the start of the run.
    pub at: Nanos,
    /// The last one; of several at one instant, the largest.
    pub last: Millionths,
    /// The smallest.
    pub min: Millionths,
    /// The largest.
    pub max: Millionths,
}

impl Series {
    /// Without values.
    pub fn new(kind: SeriesKind) -> Self {
        match kind {
            SeriesKind::Counter => Self::Counter { count: 0, sum: 0 },
            SeriesKind::Gauge => Self::Gauge(None),
            SeriesKind::Rate => Self::Rate { count: 0, hits: 0 },
            SeriesKind::Trend => Self::Trend(Distribution::default()),
        }
    }

    /// The kind of the metric.
    pub const fn kind(&self) -> SeriesKind {
        match self {
            Self::Counter { .. } => SeriesKind::Counter,
            Self::Gauge(_) => SeriesKind::Gauge,
            Self::Rate { .. } => SeriesKind::Rate,
            Self::Trend(_) => SeriesKind::Trend,
        }
    }

    /// Number of values.
    pub const fn count(&self) -> u64 {
        match self {
            Self::Counter { count, .. } | Self::Rate { count, .. } => *count,
            Self::Gauge(Some(level)) => level.count,
            Self::Gauge(None) => 0,
            Self::Trend(distribution) => distribution.count(),
        }
    }

    /// Adds a value that was read as one of the kind.
    fn add(&mut self, value: Value, at: Nanos) {
        match (self, value) {
            (Self::Counter { count, sum }, Value::Number(number)) => {
                *count += 1;
                *sum += i128::from(number.0);
            }
            (Self::Gauge(level), Value::Number(number)) => {
                Level { count: 1, at, last: number, min: number, max: number }.merge_into(level);
            }
            (Self::Rate { count, hits }, Value::Truth(truth)) => {
                *count += 1;
                *hits += u64::from(truth);
            }
            (Self::Trend(distribution), Value::Number(number)) => distribution.record(number),
            _ => debug_assert!(false, "a value is read by the kind of its metric"),
        }
    }

    /// Adds the values of another series of the kind.
    pub fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Counter { count, sum }, Self::Counter { count: more, sum: further }) => {
                *count = count.saturating_add(*more);
                *sum = sum.saturating_add(*further);
            }
            (Self::Gauge(level), Self::Gauge(Some(other))) => other.merge_into(level),
            (Self::Rate { count, hits }, Self::Rate { count: more, hits: further }) => {
                *count = count.saturating_add(*more);
                *hits = hits.saturating_add(*further);
            }
            (Self::Trend(distribution), Self::Trend(other)) => distribution.merge(other),
            // There is nothing to add: metrics of one plan have one kind.
            _ => {}
        }
    }

    /// The sum of a counter.
    pub fn sum(&self) -> Option<f64> {
        match self {
            Self::Counter { sum, .. } => Some(of_sum(*sum)),
            _ => None,
        }
    }

    /// The share of a rate's values that are true, from 0 to 1; `None` without values.
    pub fn share(&self) -> Option<f64> {
        match self {
            Self::Rate { count, hits } if *count > 0 => Some(*hits as f64 / *count as f64),
            _ => None,
        }
    }

    /// The last value of a gauge.
    pub fn last(&self) -> Option<f64> {
        match self {
            Self::Gauge(level) => level.map(|level| level.last.to_f64()),
            _ => None,
        }
    }

    /// The smallest value of a gauge or a trend.
    pub fn min(&self) -> Option<f64> {
        match self {
            Self::Gauge(level) => level.map(|level| level.min.to_f64()),
            Self::Trend(distribution) => distribution.min(),
            _ => None,
        }
    }

    /// The largest value of a gauge or a trend.
    pub fn max(&self) -> Option<f64> {
        match self {
            Self::Gauge(level) => level.map(|level| level.max.to_f64()),
            Self::Trend(distribution) => distribution.max(),
            _ => None,
        }
    }

    /// The distribution of a trend.
    pub const fn distribution(&self) -> Option<&Distribution> {
        match self {
            Self::Trend(distribution) => Some(distribution),
            _ => None,
        }
    }
}

impl Level {
    /// Adds these values to those of a gauge.
    fn merge_into(self, level: &mut Option<Self>) {
        let Some(mine) = level else {
            *level = Some(self);
            return;
        };
        mine.count = mine.count.saturating_add(self.count);
        (mine.at, mine.last) = (mine.at, mine.last).max((self.at, self.last));
        (mine.min, mine.max) = (mine.min.min(self.min), mine.max.max(self.max));
    }
}

/// A value, read as one of its metric's kind.
#[derive(Clone, Copy, Debug)]
enum Value {
    Number(Millionths),
    Truth(bool),
}

impl Value {
    fn parse(kind: SeriesKind, text: &[u8]) -> Result<Self, Unfit> {
        match kind {
            SeriesKind::Rate => truth(text).map(Self::Truth),
            SeriesKind::Counter => match Millionths::parse(text)? {
                below if below.0 < 0 => Err(Unfit::Negative),
                number => Ok(Self::Number(number)),
            },
            SeriesKind::Gauge | SeriesKind::Trend => Millionths::parse(text).map(Self::Number),
        }
    }
}

/// The values of one combination of tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaggedSeries {
    /// Names and values, in ascending order of the names.
    pub tags: Vec<(String, String)>,
    /// The values.
    pub series: Series,
}

/// A value that was not recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnfitExample {
    /// When that was, since the start of the run.
    pub at: Nanos,
    /// The value and the reason, in words.
    pub reason: String,
}

/// The values of one metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricRecord {
    /// The metric.
    pub spec: MetricSpec,
    /// All values together.
    pub all: Series,
    /// Those with tags, in ascending order of the tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tagged: Vec<TaggedSeries>,
    /// Values with further combinations of tags: they are in [`all`](Self::all) only.
    #[serde(default)]
    pub beyond: u64,
    /// Values that are not recorded, because they are no values of the kind.
    #[serde(default)]
    pub unfit: u64,
    /// The first of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit_example: Option<UnfitExample>,
}

impl MetricRecord {
    /// Before the first value.
    pub fn new(spec: MetricSpec) -> Self {
        let all = Series::new(spec.kind);
        Self { spec, all, tagged: Vec::new(), beyond: 0, unfit: 0, unfit_example: None }
    }

    /// Records the value that a text is, at a time since the start of the run. `tags` come in ascending order
    /// of their names. Allocates for the first value of a series, and for buckets that no value had before.
    pub fn record<'t>(
        &mut self,
        text: &[u8],
        tags: impl Iterator<Item = (&'t str, &'t [u8])> + Clone,
        at: Nanos,
    ) {
        let is_text = |value: &[u8]| value.len() <= LONGEST_TAG && std::str::from_utf8(value).is_ok();
        let value = match Value::parse(self.spec.kind, text) {
            Ok(_) if !tags.clone().all(|(_, value)| is_text(value)) => Err(Unfit::Tag),
            parsed => parsed,
        };
        match value {
            Ok(value) => {
                self.all.add(value, at);
                if tags.clone().next().is_some() {
                    self.add_tagged(value, tags, at);
                }
            }
            Err(unfit) => self.note_unfit(text, unfit, at),
        }
    }

    fn add_tagged<'t>(
        &mut self,
        value: Value,
        tags: impl Iterator<Item = (&'t str, &'t [u8])> + Clone,
        at: Nanos,
    ) {
        match self.tagged.binary_search_by(|known| compare(&known.tags, tags.clone())) {
            Ok(place) => self.tagged[place].series.add(value, at),
            Err(place) if place >= MOST_TAGGED => self.beyond += 1,
            Err(place) => {
                let owned = |(name, value): (&str, &[u8])| {
                    (name.to_owned(), String::from_utf8_lossy(value).into_owned())
                };
                let mut series = Series::new(self.spec.kind);
                series.add(value, at);
                self.tagged.insert(place, TaggedSeries { tags: tags.map(owned).collect(), series });
                self.keep_first();
            }
        }
    }

    /// Gives up the combinations of tags that are too many.
    fn keep_first(&mut self) {
        for given_up in self.tagged.drain(self.tagged.len().min(MOST_TAGGED)..) {
            self.beyond = self.beyond.saturating_add(given_up.series.count());
        }
    }

    #[cold]
    fn note_unfit(&mut self, text: &[u8], unfit: Unfit, at: Nanos) {
        self.unfit += 1;
        if self.unfit_example.is_none() {
            let text = String::from_utf8_lossy(text);
            let mut shown: String = text.chars().take(SHOWN).collect();
            if text.chars().nth(SHOWN).is_some() {
                shown.push('…');
            }
            let reason = format!("`{}` {}", shown.escape_debug(), unfit.words());
            self.unfit_example = Some(UnfitExample { at, reason });
        }
    }

    /// Returns `true` if nothing has been recorded, not even a value that is none of the kind.
    pub const fn is_empty(&self) -> bool {
        self.all.count() == 0 && self.unfit == 0
    }

    /// Adds the values of another worker or process.
    pub fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        for theirs in &other.tagged {
            match self.tagged.binary_search_by(|mine| mine.tags.cmp(&theirs.tags)) {
                Ok(place) => self.tagged[place].series.merge(&theirs.series),
                Err(place) => self.tagged.insert(place, theirs.clone()),
            }
        }
        self.keep_first();
        self.beyond = self.beyond.saturating_add(other.beyond);
        self.unfit = self.unfit.saturating_add(other.unfit);
        let examples = [self.unfit_example.take(), other.unfit_example.clone()];
        self.unfit_example = examples.into_iter().flatten().min();
    }

    /// Adds metrics of another worker or process to those of the same name and kind; others are added behind
    /// them.
    pub fn merge_all(mine: &mut Vec<Self>, theirs: &[Self]) {
        for other in theirs {
            let is_same =
                |one: &&mut Self| one.spec.name == other.spec.name && one.spec.kind == other.spec.kind;
            match mine.iter_mut().find(is_same) {
                Some(one) => one.merge(other),
                None => mine.push(other.clone()),
            }
        }
    }

    /// All values that have these tags, and perhaps others; without tags, all values. `None` if some may be
    /// among those with [further](Self::beyond) combinations of tags.
    pub fn select(&self, tags: &BTreeMap<String, String>) -> Option<Series> {
        if tags.is_empty() {
            return Some(self.all.clone());
        }
        if self.beyond > 0 {
            return None;
        }
        let mut selected = Series::new(self.spec.kind);
        for tagged in &self.tagged {
            let has = |(name, value): (&String, &String)| {
                tagged.tags.iter().any(|(known, found)| known == name && found == value)
            };
            if tags.iter().all(has) {
                selected.merge(&tagged.series);
            }
        }
        Some(selected)
    }
}

/// The order of kept tags and others.
fn compare<'t>(known: &[(String, String)], mut tags: impl Iterator<Item = (&'t str, &'t [u8])>) -> Ordering {
    for (name, value) in known {
        let Some((other, found)) = tags.next() else { return Ordering::Greater };
        let order = name.as_str().cmp(other).then_with(|| value.as_bytes().cmp(found));
        if order != Ordering::Equal {
            return order;
        }
    }
    if tags.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn metric(kind: SeriesKind) -> MetricRecord {
        MetricRecord::new(MetricSpec { name: "own".to_owned(), kind, unit: String::new() })
    }

    fn record(metric: &mut MetricRecord, text: &str, tags: &[(&str, &str)], at: u64) {
        let tags = tags.iter().map(|(name, value)| (*name, value.as_bytes()));
        metric.record(text.as_bytes(), tags, Nanos(at));
    }

    /// A value, a tag, and a time.
    type Recorded = (i64, u16, u64);

    fn of(kind: SeriesKind, values: &[Recorded]) -> MetricRecord {
        let mut metric = metric(kind);
        for (value, tag, at) in values {
            let text = match kind {
                SeriesKind::Rate => (value % 3).to_string(),
                _ => value.to_string(),
            };
            record(&mut metric, &text, &[("shop", &tag.to_string())], *at);
        }
        metric
    }

    fn values() -> impl Strategy<Value = Vec<Recorded>> {
        // More tags than are kept.
        prop::collection::vec((-50_i64..1_000, 0_u16..300, 0_u64..50), 0..400)
    }

    proptest! {
        /// Workers, intervals and shards: however the values are spread, the merged metric is the same, up to
        /// the tags that are kept and the first value that was not recorded.
        #[test]
        fn merging_is_recording_in_one_place(
            all in values(),
            cuts in (0_usize..400, 0_usize..400),
            kind in 0_usize..4,
        ) {
            let kind = SeriesKind::ALL[kind];
            let (low, high) = (cuts.0.min(cuts.1).min(all.len()), cuts.0.max(cuts.1).min(all.len()));
            let parts = [of(kind, &all[..low]), of(kind, &all[low..high]), of(kind, &all[high..])];
            let merged = |order: [usize; 3]| {
                let mut sum = metric(kind);
                order.into_iter().for_each(|part| sum.merge(&parts[part]));
                sum
            };
            let whole = of(kind, &all);
            let sum = merged([0, 1, 2]);
            for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                prop_assert_eq!(&merged(order), &sum);
            }
            prop_assert_eq!(&sum.all, &whole.all);
            prop_assert_eq!(&sum.tagged, &whole.tagged);
            prop_assert_eq!((sum.beyond, sum.unfit), (whole.beyond, whole.unfit));
            prop_assert!(sum.tagged.len() <= MOST_TAGGED);
            // Every kept series has all of its values, and nothing is lost.
            let kept: u64 = sum.tagged.iter().map(|tagged| tagged.series.count()).sum();
            prop_assert_eq!(kept + sum.beyond, sum.all.count());
            prop_assert_eq!(sum.all.count() + sum.unfit, all.len() as u64);
        }
    }

    #[test]
    fn a_hundred_thousand_tags_take_the_room_of_a_hundred() {
        let mut metric = metric(SeriesKind::Counter);
        for number in 0..100_000 {
            record(&mut metric, "1", &[("id", &format!("{number:05}"))], 0);
        }
        assert_eq!((metric.tagged.len(), metric.beyond), (MOST_TAGGED, 99_900));
        assert_eq!(metric.all.sum(), Some(100_000.0));
        assert_eq!(metric.tagged[99].tags, [("id".to_owned(), "00099".to_owned())]);
        // Nothing is said of tags of which values may be missing.
        assert_eq!(metric.select(&BTreeMap::from([("id".to_owned(), "00001".to_owned())])), None);
    }

    #[test]
    fn what_is_no_value_is_counted_with_an_example() {
        let mut trend = metric(SeriesKind::Trend);
        for text in ["12 EUR", "NaN", "1e99", "7"] {
            record(&mut trend, text, &[], 5);
        }
        assert_eq!((trend.all.count(), trend.all.min(), trend.unfit), (1, Some(7.0), 3));
        assert_eq!(trend.unfit_example.unwrap().reason, "`12 EUR` is no number");
        let mut counter = metric(SeriesKind::Counter);
        record(&mut counter, "-1", &[], 0);
        assert_eq!(counter.unfit_example.unwrap().reason, "`-1` is negative, and a counter only goes up");
        let mut rate = metric(SeriesKind::Rate);
        record(&mut rate, &format!("a\n{}", "b".repeat(60)), &[], 0);
        let shown = format!("`a\\n{}…` is neither true (1) nor false (0)", "b".repeat(38));
        assert_eq!(rate.unfit_example.unwrap().reason, shown);
        let mut tagged = metric(SeriesKind::Rate);
        record(&mut tagged, "true", &[("shop", &"s".repeat(LONGEST_TAG + 1))], 0);
        assert_eq!((tagged.unfit, tagged.all.count(), tagged.tagged.len()), (1, 0, 0));
    }

    #[test]
    fn figures_of_each_kind() {
        let mut gauge = metric(SeriesKind::Gauge);
        for (text, at) in [("5", 2), ("-3", 9), ("9", 4)] {
            record(&mut gauge, text, &[], at);
        }
        let figures = (gauge.all.last(), gauge.all.min(), gauge.all.max(), gauge.all.count());
        assert_eq!(figures, (Some(-3.0), Some(-3.0), Some(9.0), 3));
        let mut rate = metric(SeriesKind::Rate);
        assert_eq!(rate.all.share(), None);
        ["true", "0", "false", "1"].iter().for_each(|text| record(&mut rate, text, &[], 0));
        assert_eq!(rate.all.share(), Some(0.5));
        let mut counter = metric(SeriesKind::Counter);
        ["0.1", "0.2", "3"].iter().for_each(|text| record(&mut counter, text, &[], 0));
        assert_eq!((counter.all.sum(), counter.all.count()), (Some(3.3), 3));
    }

    #[test]
    fn tags_select_all_series_that_have_them() {
        let mut metric = metric(SeriesKind::Counter);
        for (shop, zone) in [("a", "eu"), ("a", "us"), ("b", "eu")] {
            record(&mut metric, "1", &[("shop", shop), ("zone", zone)], 0);
        }
        record(&mut metric, "10", &[], 0);
        let sum = |tags: &[(&str, &str)]| {
            let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            metric.select(&tags.collect()).and_then(|series| series.sum())
        };
        assert_eq!([sum(&[]), sum(&[("shop", "a")])], [Some(13.0), Some(2.0)]);
        assert_eq!([sum(&[("shop", "a"), ("zone", "us")]), sum(&[("shop", "c")])], [Some(1.0), Some(0.0)]);
    }

    #[test]
    fn read_as_it_was_written() {
        let mut metric = of(SeriesKind::Trend, &[(1, 2, 3), (-4, 5, 6)]);
        record(&mut metric, "x", &[], 7);
        let text = serde_json::to_string(&metric).unwrap();
        assert_eq!(serde_json::from_str::<MetricRecord>(&text).unwrap(), metric);
    }
}
