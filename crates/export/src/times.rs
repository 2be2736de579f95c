//! Times as monitoring systems count them: in exponential buckets and in a few fixed ones.

use std::collections::BTreeMap;

use plimsoll_core::Nanos;
use plimsoll_histogram::Delta;
use plimsoll_metrics::exemplar::BOUNDS;
use plimsoll_metrics::{Exemplar, Exemplars};

/// log2 of the number of exponential buckets in each power of two: the *scale* of OpenTelemetry, the *schema*
/// of Prometheus. With 4, a bucket is 4.4 % wide, so that a percentile is off by 2.2 % at most, and times
/// that differ by a factor of 1,000 take 160 buckets, which is as many as receivers usually keep.
pub(crate) const SCALE: i32 = 4;

/// Times of requests, counted since the start of the run.
///
/// Values come from buckets that are 0.1 % wide; each counts as the largest value of its own, as in every
/// percentile of this program. The sum is exact where it is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    pub(crate) count: u64,
    sum_ns: f64,
    /// Values of zero.
    pub(crate) zeros: u64,
    /// By the number of their exponential bucket, whose upper limit is `2^(number / 2^SCALE)` seconds.
    pub(crate) exponential: BTreeMap<i32, u64>,
    /// By the first of [`BOUNDS`] that they do not exceed; the last one has the values that exceed all.
    fixed: [u64; BOUNDS.len() + 1],
    /// The latest request with a trace of each of these buckets, which ended at an instant in Unix time.
    exemplars: Option<Box<Exemplars>>,
}

impl Times {
    /// Counts further values. `sum` is theirs, in nanoseconds, if it is known exactly.
    pub fn add(&mut self, delta: &Delta, sum: Option<u128>) {
        let mut about = 0.0;
        for (value, count) in delta.values() {
            self.count += count;
            about += value as f64 * count as f64;
            match number(value) {
                None => self.zeros += count,
                Some(number) => *self.exponential.entry(number).or_default() += count,
            }
            self.fixed[BOUNDS.partition_point(|bound| *bound < value)] += count;
        }
        self.sum_ns += sum.map_or(about, |sum| sum as f64);
    }

    /// Takes over the exemplars of an interval of a run that began at `started_unix`.
    pub(crate) fn renew(&mut self, exemplars: &Exemplars, started_unix: Nanos) {
        self.exemplars.get_or_insert_default().renew(&exemplars.shifted(started_unix));
    }

    /// The exemplar of a fixed bucket, by its number.
    pub(crate) fn exemplar(&self, bucket: usize) -> Option<&Exemplar> {
        self.exemplars.as_ref()?.get(bucket)
    }

    /// Number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum_ns / 1e9
    }

    /// Returns each of the fixed limits, in seconds, with the number of values that do not exceed it.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0;
        BOUNDS.iter().zip(&self.fixed).map(move |(bound, count)| {
            below += count;
            (*bound as f64 / 1e9, below)
        })
    }
}

/// The number of the exponential bucket of a time; `None` of zero. The smallest number whose limit is not
/// below the value.
fn number(nanos: u64) -> Option<i32> {
    // 64 bits of nanoseconds are below 2^35 seconds: the number fits however large the value is.
    (nanos > 0).then(|| ((nanos as f64 / 1e9).log2() * f64::from(1 << SCALE)).ceil() as i32)
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::Recorder;
    use plimsoll_metrics::{Gauges, Sample};

    use super::*;

    /// Returns the delta that a recorder reports for responses with these times in nanoseconds.
    pub(crate) fn delta(lengths: &[u64]) -> Delta {
        let mut recorder = Recorder::new(&["step".to_owned()]);
        for &length in lengths {
            let zero = plimsoll_core::Nanos::ZERO;
            recorder.note_started(0);
            recorder.record(&Sample {
                step: 0,
                intended: zero,
                started: zero,
                sent: zero,
                first_byte: zero,
                done: plimsoll_core::Nanos(length),
                outcome: plimsoll_core::Outcome::Ok,
                status: 200,
                bytes_sent: 0,
                bytes_received: 0,
            });
        }
        recorder.snapshot(Gauges::default()).steps.swap_remove(0).response_time
    }

    #[test]
    fn every_value_lies_in_its_exponential_bucket() {
        let limit = |number: i32| 2_f64.powf(f64::from(number) / f64::from(1 << SCALE)) * 1e9;
        let mut value = 1_u64;
        while value < 100_000_000_000_000 {
            let number = number(value).expect("it is not zero");
            // To the last digit of a double.
            assert!(limit(number) >= value as f64 * (1.0 - 1e-12), "{value} in {number}");
            assert!(limit(number - 1) < value as f64 * (1.0 + 1e-12), "{value} in {number}");
            value += value / 7 + 1;
        }
        assert_eq!(number(1_000_000_000), Some(0));
        assert_eq!((number(0), number(2_000_000_000)), (None, Some(16)));
    }

    #[test]
    fn counts_and_sums_are_kept() {
        let mut times = Times::default();
        times.add(&delta(&[0, 10_000, 10_001, 1_000_000, 20_000_000_000]), Some(20_001_020_001));
        times.add(&delta(&[1_000]), None);
        assert_eq!((times.count(), times.zeros), (6, 1));
        assert_eq!(times.exponential.values().sum::<u64>(), 5);
        assert!((times.sum_s() - 20.001_021_001).abs() < 1e-9, "{}", times.sum_s());
        let cumulative: Vec<u64> = times.cumulative().map(|(_, count)| count).collect();
        // A value that exceeds a limit by less than 0.1 % cannot be distinguished from the limit itself.
        assert_eq!(cumulative[..3], [2, 4, 4]);
        assert_eq!((cumulative[6], cumulative[7], cumulative[18]), (4, 5, 5));
        assert_eq!(times.cumulative().next().map(|(bound, _)| bound), Some(1e-5));
    }
}
