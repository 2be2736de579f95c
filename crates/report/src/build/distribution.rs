//! Distributions of values, in ranges that look even on a logarithmic axis and have readable limits.

use plimsoll_histogram::Bucket;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lower limits of the ranges of one power of ten, times 100: the preferred numbers R20 of ISO 3.
const R20: [u64; 20] =
    [100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900];
/// Below 100 ns the limits of R20 are not whole numbers: everything there is one range.
const FINEST: u64 = 100;

/// The values of one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bar {
    /// Smallest value of the range in nanoseconds.
    pub from_ns: u64,
    /// The range ends before this value.
    pub below_ns: u64,
    /// Number of values in it.
    pub count: u64,
}

/// The number of the range of a value: 0 below [`FINEST`], then twenty per power of ten.
pub(crate) fn range_of(value: u64) -> usize {
    if value < FINEST {
        return 0;
    }
    let exponent = value.ilog10() - 2;
    let mantissa = value / 10_u64.pow(exponent);
    1 + exponent as usize * R20.len() + R20.partition_point(|limit| *limit <= mantissa) - 1
}

/// The smallest value of a range.
pub(crate) fn start_of(range: usize) -> u64 {
    let Some(position) = range.checked_sub(1) else { return 0 };
    let exponent = (position / R20.len()) as u32;
    R20[position % R20.len()].saturating_mul(10_u64.saturating_pow(exponent))
}

/// The ranges that hold anything, in ascending order, of the buckets of a histogram.
///
/// A bucket is counted where its middle lies.
pub(crate) fn bars(ascending: &[Bucket]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for bucket in ascending {
        let middle = bucket.lowest.midpoint(bucket.highest);
        match bars.last_mut() {
            Some(bar) if middle < bar.below_ns => bar.count += bucket.count,
            _ => {
                let range = range_of(middle);
                let (from_ns, below_ns) = (start_of(range), start_of(range + 1));
                bars.push(Bar { from_ns, below_ns, count: bucket.count });
            }
        }
    }
    bars
}

/// Numbers of ranges that may make a row of a drawing: divisors of twenty, so that the limits recur in every
/// power of ten.
const WIDTHS: [usize; 6] = [1, 2, 4, 5, 10, 20];
/// A row at the end of a drawing may gather this share of all values.
const END_SHARE: f64 = 0.002;

/// Joins neighbours, and gathers thin ends, until at most `most` rows are left to draw (or rows are powers of
/// ten). Neighbouring rows without values are one row.
///
/// The first row may begin at zero and the last may end at [`u64::MAX`]: they hold what lies beyond.
pub(crate) fn rows(bars: &[Bar], most: usize) -> Vec<Bar> {
    let mut rows = Vec::new();
    for width in WIDTHS {
        rows = rows_of(bars, width);
        if rows.len() <= most {
            break;
        }
    }
    rows
}

/// The rows of a drawing, each that many ranges wide.
fn rows_of(bars: &[Bar], width: usize) -> Vec<Bar> {
    // Bars of a file may have counts that no run can have.
    let total = bars.iter().map(|bar| bar.count).fold(0, u64::saturating_add);
    let end = (total as f64 * END_SHARE) as u64;
    let (Some(first), Some(last)) = (inner_end(bars.iter(), end), inner_end(bars.iter().rev(), end)) else {
        return Vec::new();
    };
    // Range 0 lies below the powers of ten and is a row of its own, so that the others are aligned with them.
    let row_of = |bar: &Bar| range_of(bar.from_ns).div_ceil(width);
    let start_of_row = |row: usize| if row == 0 { 0 } else { start_of((row - 1) * width + 1) };
    let (first, last) = (row_of(first), row_of(last));
    let mut rows: Vec<Bar> = Vec::new();
    let mut add = |bar: Bar| match rows.last_mut() {
        Some(row) if row.from_ns == bar.from_ns => row.count = row.count.saturating_add(bar.count),
        Some(row) if row.below_ns < bar.from_ns => {
            let gap = Bar { from_ns: row.below_ns, below_ns: bar.from_ns, count: 0 };
            rows.extend([gap, bar]);
        }
        _ => rows.push(bar),
    };
    for bar in bars {
        let row = row_of(bar);
        let (from_ns, below_ns) = match row {
            _ if row < first => (0, start_of_row(first)),
            _ if row > last => (start_of_row(last + 1), u64::MAX),
            _ => (start_of_row(row), start_of_row(row + 1)),
        };
        add(Bar { from_ns, below_ns, count: bar.count });
    }
    rows
}

/// The outermost bar that is more than a thin end.
fn inner_end<'a>(mut from_outside: impl Iterator<Item = &'a Bar>, thin: u64) -> Option<&'a Bar> {
    let mut passed = 0_u64;
    from_outside.find(|bar| {
        passed = passed.saturating_add(bar.count);
        passed > thin
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_histogram::Histogram;

    use super::*;

    #[test]
    fn every_value_lies_in_its_range() {
        let mut value = 1_u64;
        while value < 100_000_000_000_000 {
            for near in [value - 1, value, value + 1] {
                let range = range_of(near);
                assert!(start_of(range) <= near && near < start_of(range + 1), "{near} in {range}");
            }
            value += value / 50 + 1;
        }
        assert_eq!((start_of(1), start_of(2), start_of(21)), (100, 112, 1_000));
    }

    /// Symptom: a report of a damaged file ended the program.
    #[test]
    fn counts_that_no_run_can_have_are_drawn() {
        let bar = |from_ns| Bar { from_ns, below_ns: from_ns + 10, count: u64::MAX };
        let drawn = rows(&[bar(start_of(30)), bar(start_of(31)), bar(start_of(90))], 5);
        assert!(drawn.iter().any(|row| row.count == u64::MAX), "{drawn:?}");
    }

    #[test]
    fn bars_and_rows_lose_nothing() {
        let mut histogram = Histogram::new();
        for value in [3, 50, 120, 130, 9_000, 9_100, 5_000_000, 7_000_000_000] {
            histogram.record(value);
        }
        let bars = bars(histogram.occupied().buckets());
        assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), histogram.count());
        assert!(bars.windows(2).all(|pair| pair[0].below_ns <= pair[1].from_ns));
        for most in [3, 7, 12, 40] {
            let rows = rows(&bars, most);
            assert!(rows.len() <= most || rows.len() <= 11, "{rows:?}");
            assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), histogram.count());
            assert!(rows.windows(2).all(|pair| pair[0].below_ns == pair[1].from_ns), "{rows:?}");
        }
        assert_eq!(rows(&[], 12), []);
    }

    #[test]
    fn thin_ends_are_gathered() {
        let mut histogram = Histogram::new();
        for _ in 0..1_000 {
            histogram.record(1_050_000);
            histogram.record(1_150_000);
        }
        histogram.record(2);
        histogram.record(30_000_000_000);
        let rows = rows(&bars(histogram.occupied().buckets()), 12);
        let shape: Vec<_> = rows.iter().map(|row| (row.from_ns, row.below_ns, row.count)).collect();
        assert_eq!(
            shape,
            [
                (0, 1_000_000, 1),
                (1_000_000, 1_120_000, 1_000),
                (1_120_000, 1_250_000, 1_000),
                (1_250_000, u64::MAX, 1)
            ]
        );
    }
}
