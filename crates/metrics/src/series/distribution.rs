//! The distribution of recorded numbers: the buckets of the histograms of times, on both sides of zero.

use std::collections::BTreeMap;

use plimsoll_histogram::{bounds_of, index_of, rank_of};
use serde::{Deserialize, Serialize};

use super::number::{Millionths, of_sum};

/// Numbers in buckets at most 0.1 % of their magnitude wide.
///
/// A number counts in the bucket of its magnitude in millionths, so numbers below 0.002048 have buckets of
/// their own, and every other one shares its bucket with numbers that differ from it by less than 0.1 %.
/// Count, sum, smallest and largest number are exact. Merging is exact, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Distribution {
    /// Counts above zero, by the index of their bucket; those of negative numbers by the negated index.
    buckets: BTreeMap<i32, u64>,
    count: u64,
    pub(super) sum: i128,
    /// Meaningless without numbers, as the next.
    min: Millionths,
    max: Millionths,
}

/// A distribution as it is saved.
#[derive(Serialize, Deserialize)]
struct Written {
    buckets: BTreeMap<i32, u64>,
    sum: i128,
    min: Millionths,
    max: Millionths,
}

impl Distribution {
    /// Counts one number.
    pub fn record(&mut self, number: Millionths) {
        if self.count == 0 {
            (self.min, self.max) = (number, number);
        }
        *self.buckets.entry(bucket_of(number)).or_default() += 1;
        self.count += 1;
        self.sum += i128::from(number.0);
        (self.min, self.max) = (self.min.min(number), self.max.max(number));
    }

    /// Adds all numbers of another distribution.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            (self.min, self.max) = (other.min, other.max);
        }
        for (bucket, count) in &other.buckets {
            let sum = self.buckets.entry(*bucket).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
    }

    /// Number of numbers.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest number, exactly.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then(|| self.min.to_f64())
    }

    /// The largest number, exactly.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then(|| self.max.to_f64())
    }

    /// The smallest and the largest number; `None` without numbers.
    pub(super) fn limits(&self) -> Option<(Millionths, Millionths)> {
        (self.count > 0).then_some((self.min, self.max))
    }

    /// The sum of all numbers.
    pub fn sum(&self) -> f64 {
        of_sum(self.sum)
    }

    /// The arithmetic mean, from the exact sum.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| of_sum(self.sum) / self.count as f64)
    }

    /// The standard deviation (divided by n, not n − 1), from the middles of the buckets.
    pub fn stdev(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let middles = || {
            self.buckets.iter().map(|(bucket, count)| {
                let (low, high) = bounds(*bucket);
                ((low as f64 + high as f64) / 2.0 / 1e6, *count as f64)
            })
        };
        let all = self.count as f64;
        let mean = middles().map(|(middle, count)| middle * count).sum::<f64>() / all;
        let squares: f64 = middles().map(|(middle, count)| (middle - mean).powi(2) * count).sum();
        Some((squares / all).sqrt())
    }

    /// The percentile `p` (0 to 100) by nearest rank: the largest number of its bucket, within the exact
    /// extremes. So it is never below the truth, and above it by less than 0.1 % of its magnitude.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        let rank = u128::from(rank_of(p, self.count));
        let mut seen = 0_u128;
        let (bucket, _) = self.buckets.iter().find(|(_, count)| {
            seen += u128::from(**count);
            seen >= rank
        })?;
        let (_, highest) = bounds(*bucket);
        Some(Millionths(highest.clamp(self.min.0, self.max.0)).to_f64())
    }
}

/// The bucket of a number.
fn bucket_of(number: Millionths) -> i32 {
    let index = index_of(number.0.unsigned_abs()) as i32;
    if number.0 < 0 { -index } else { index }
}

/// The smallest and the largest number of a bucket, in millionths.
fn bounds(bucket: i32) -> (i64, i64) {
    let (low, high) = bounds_of(bucket.unsigned_abs() as usize);
    let signed = |magnitude: u64| i64::try_from(magnitude).unwrap_or(i64::MAX);
    if bucket < 0 { (-signed(high), -signed(low)) } else { (signed(low), signed(high)) }
}

impl From<Distribution> for Written {
    fn from(Distribution { buckets, sum, min, max, .. }: Distribution) -> Self {
        Self { buckets, sum, min, max }
    }
}

impl TryFrom<Written> for Distribution {
    type Error = &'static str;

    fn try_from(Written { mut buckets, sum, min, max }: Written) -> Result<Self, Self::Error> {
        buckets.retain(|_, count| *count > 0);
        let count = buckets.values().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let Some(count) = count else { return Err("a distribution has more numbers than can be counted") };
        let ends = buckets.first_key_value().zip(buckets.last_key_value());
        let is_one = match ends {
            Some(((first, _), (last, _))) => {
                min <= max && bucket_of(min) == *first && bucket_of(max) == *last
            }
            None => sum == 0 && min == max,
        };
        match is_one {
            true => Ok(Self { buckets, count, sum, min, max }),
            false => Err("the extremes of a distribution are not those of its numbers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(numbers: &[i64]) -> Distribution {
        let mut distribution = Distribution::default();
        numbers.iter().for_each(|number| distribution.record(Millionths(*number)));
        distribution
    }

    /// Numbers of every magnitude and both signs.
    fn numbers() -> impl Strategy<Value = Vec<i64>> {
        let one = (0_u32..63, any::<i64>()).prop_map(|(shift, number)| number >> shift);
        let one = one.prop_map(|number| number.clamp(-9_000_000_000_000_000_000, 9_000_000_000_000_000_000));
        prop::collection::vec(one, 1..200)
    }

    proptest! {
        /// Parts in any order are the whole.
        #[test]
        fn merging_is_recording_in_one_place(one in numbers(), other in numbers()) {
            let all: Vec<i64> = one.iter().chain(&other).copied().collect();
            let (mut first, mut second) = (of(&one), of(&other));
            let before = first.clone();
            first.merge(&second);
            second.merge(&before);
            prop_assert_eq!(&first, &of(&all));
            prop_assert_eq!(&second, &first);
        }

        /// Percentiles are never below the truth, and above it by less than a thousandth.
        #[test]
        fn percentiles_are_within_a_thousandth(numbers in numbers(), p in 0.1_f64..100.0) {
            let distribution = of(&numbers);
            let mut sorted = numbers;
            sorted.sort_unstable();
            let truth = sorted[rank_of(p, sorted.len() as u64) as usize - 1];
            let found = (distribution.percentile(p).unwrap() * 1e6).round();
            let error = found - truth as f64;
            let room = (truth as f64).abs() / 1024.0 + 1024.0 * f64::EPSILON * (truth as f64).abs();
            prop_assert!(error >= -(truth as f64).abs() * 1e-15, "{found} {truth}");
            prop_assert!(error <= room.max(0.5), "{found} {truth}");
            prop_assert_eq!(distribution.percentile(100.0), distribution.max());
        }

        /// A distribution is read as it was written.
        #[test]
        fn written_and_read(numbers in numbers()) {
            let distribution = of(&numbers);
            let text = serde_json::to_string(&distribution).unwrap();
            prop_assert_eq!(serde_json::from_str::<Distribution>(&text).unwrap(), distribution);
        }
    }

    #[test]
    fn figures() {
        let distribution = of(&[-2_000_000, 1_000_000, 4_000_000]);
        assert_eq!((distribution.min(), distribution.max()), (Some(-2.0), Some(4.0)));
        assert_eq!((distribution.count(), distribution.mean()), (3, Some(1.0)));
        assert!((distribution.stdev().unwrap() - 6_f64.sqrt()).abs() < 0.01);
        assert_eq!(distribution.percentile(50.0).map(|p| (p * 100.0).round()), Some(100.0));
        assert_eq!(Distribution::default().percentile(50.0), None);
        assert_eq!(Distribution::default().mean(), None);
    }

    #[test]
    fn a_forged_distribution_is_refused() {
        for text in [
            r#"{"buckets":{"2147483647":1},"sum":1,"min":1,"max":1}"#,
            r#"{"buckets":{"-2147483648":1},"sum":1,"min":1,"max":1}"#,
            r#"{"buckets":{"1":18446744073709551615,"2":1},"sum":1,"min":1,"max":2}"#,
            r#"{"buckets":{"5":1},"sum":5,"min":4,"max":5}"#,
            r#"{"buckets":{},"sum":5,"min":0,"max":0}"#,
        ] {
            assert!(serde_json::from_str::<Distribution>(text).is_err(), "{text}");
        }
        let none = r#"{"buckets":{"3":0},"sum":0,"min":0,"max":0}"#;
        assert_eq!(serde_json::from_str::<Distribution>(none).unwrap(), Distribution::default());
    }
}
