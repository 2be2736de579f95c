//! Percentiles and a histogram as bars of text.

use std::fmt::Write as _;

use plimsoll_core::{Nanos, figure};
use plimsoll_histogram::Histogram;

/// The percentiles that are drawn.
const PERCENTILES: [f64; 10] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0];

/// Both charts, with bars of at most `width` characters and at most `classes` classes of the histogram.
/// Percentiles with too few values are left out.
pub(crate) fn charts(times: &Histogram, (width, classes): (usize, usize)) -> String {
    let (Some(shortest), Some(longest)) = (times.min(), times.max()) else { return String::new() };
    let bar = |value: f64, of: f64| "#".repeat((value / of.max(1.0) * width as f64).round() as usize);
    let time = |ns: u64| figure::nanos(Nanos(ns));
    let mut text = String::from("Percentiles\n");
    for percentile in PERCENTILES {
        let value = match percentile {
            100.0 => Some(longest),
            _ if !times.enough_for(percentile) => None,
            _ => times.percentile(percentile),
        };
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ =
                writeln!(text, "{percentile:>7}% {:>10} |{}", time(value), bar(value as f64, longest as f64));
        }
    }
    text.push_str("Histogram\n");
    // Classes of equal ratio: times of one server span orders of magnitude.
    let first = shortest.max(1) as f64;
    let ratio = (longest.max(1) as f64 / first).powf(1.0 / classes as f64).max(1.000_001);
    let mut counts = vec![0_u64; classes];
    for bucket in times.buckets() {
        let class = ((bucket.highest.max(1) as f64 / first).ln() / ratio.ln()).ceil() as usize;
        counts[class.saturating_sub(1).min(classes - 1)] += bucket.count;
    }
    let most = counts.iter().copied().max().unwrap_or_default();
    for (class, count) in counts.iter().enumerate() {
        let to = (first * ratio.powi(class as i32 + 1)) as u64;
        let _ = writeln!(
            text,
            "  to {:>10} [{count}] |{}",
            time(to.min(longest)),
            bar(*count as f64, most as f64)
        );
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_class_and_the_longest_bar_is_as_long_as_it_may_be() {
        let mut times = Histogram::new();
        for value in 1..=1_000_u64 {
            times.record(value * 1_000);
        }
        let text = charts(&times, (30, 8));
        let counts =
            text.lines().filter_map(|line| line.split_once('[')?.1.split_once(']')?.0.parse::<u64>().ok());
        assert_eq!(counts.sum::<u64>(), 1_000, "{text}");
        assert_eq!(text.lines().map(|line| line.matches('#').count()).max(), Some(30), "{text}");
        assert!(text.contains("100%") && !text.contains("99.99%"), "{text}");
        assert_eq!(charts(&Histogram::new(), (30, 8)), "");
        let mut one = Histogram::new();
        one.record(7);
        assert!(charts(&one, (30, 8)).contains("[1]"));
    }
}
