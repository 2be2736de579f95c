//! Medians, spreads and paired ratios.

use std::fmt::{self, Display};

/// The median of some values, and how far they spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of at least one value, none of which is NaN; `None` without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[upper]
        } else {
            f64::midpoint(sorted[upper - 1], sorted[upper])
        };
        Some(Self { median, min, max })
    }
}

/// `median (min..max)`, to the precision of the formatter (`{:.2}`), else to two places.
impl Display for Spread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = out.precision().unwrap_or(2);
        write!(out, "{:.places$} ({:.places$}..{:.places$})", self.median, self.min, self.max)
    }
}

/// The ratio of each value to the one that was measured right beside it. A disturbance that is longer than a
/// pair affects both runs and cancels out, unlike in the ratio of two medians.
pub(crate) fn paired_ratios(subject: &[f64], peer: &[f64]) -> Vec<f64> {
    subject.iter().zip(peer).map(|(subject, peer)| subject / peer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_odd_and_even_counts() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(spread(&[9.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 9.0 }));
        assert_eq!(spread(&[9.0, 1.0, 2.0, 4.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn a_spread_shows_its_median_first() {
        let spread = Spread { median: 0.7251, min: 0.7, max: 12.0 };
        assert_eq!(spread.to_string(), "0.73 (0.70..12.00)");
        assert_eq!(format!("{spread:.0}"), "1 (1..12)");
    }

    #[test]
    fn ratios_are_taken_pair_by_pair() {
        // In the second pair the machine was half as fast for both: the medians of each side alone would say
        // 0.5.
        let ratios = paired_ratios(&[5.0, 12.0, 6.0], &[10.0, 16.0, 12.0]);
        assert_eq!(ratios, [0.5, 0.75, 0.5]);
        assert_eq!(Spread::of(ratios).map(|ratio| ratio.median), Some(0.5));
    }
}
