//! The interval in which the true value of a percentile lies.

use plimsoll_core::{Nanos, figure};
use plimsoll_histogram::samples_needed;
use plimsoll_statistics::PercentileInterval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The values between which the true percentile lies with the given confidence, as far as this run shows:
/// differences between runs are not in it.
///
/// Samples that follow each other are alike, so many of them say less than as many independent ones. How much
/// less is found from how slices of the run differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PercentileBounds {
    /// Lower end in nanoseconds; null if nothing bounds the percentile from below.
    pub low: Option<u64>,
    /// Upper end in nanoseconds; null if nothing bounds the percentile from above.
    pub high: Option<u64>,
    /// The confidence, as a share of one.
    pub confidence: f64,
    /// Variance inflation factor: this many samples together say as much as one independent one. At least 1.
    pub vif: f64,
    /// Number of independent samples that would say as much.
    pub effective_samples: f64,
    /// Reason why an end is null; null if both are known.
    #[serde(default)]
    pub reason: Option<String>,
}

impl PercentileBounds {
    /// The bounds of percentile `p`. What is only known to be at least so large bounds nothing from above.
    pub(crate) fn new(p: f64, interval: &PercentileInterval, is_at_least: impl Fn(u64) -> bool) -> Self {
        let high = interval.high.filter(|high| !is_at_least(*high));
        let reason = if interval.high.is_some() && high.is_none() {
            Some("requests without an answer leave the upper end open".to_owned())
        } else if high.is_none() || interval.low.is_none() {
            let needed = samples_needed(if high.is_none() { p } else { 100.0 - p });
            let independent = figure::count(interval.effective_samples as u64);
            Some(match interval.effective_samples < needed as f64 {
                true => format!(
                    "the samples say as much as {independent} independent ones, a bound takes {}",
                    figure::count(needed)
                ),
                false => format!("the samples say as much as {independent} independent ones only"),
            })
        } else {
            None
        };
        Self {
            low: interval.low,
            high,
            confidence: interval.confidence,
            // Figures of an estimate: more digits would only make equal runs look different.
            vif: (interval.vif * 1e3).round() / 1e3,
            effective_samples: interval.effective_samples.round(),
            reason,
        }
    }

    /// For people: `[11.9, 12.8] ms`, and `≥ 11.9 ms` where the upper end is open.
    pub(crate) fn text(&self) -> String {
        let value = |value: u64| figure::nanos(Nanos(value));
        match (self.low, self.high) {
            (Some(low), Some(high)) => {
                let (low, high) = (value(low), value(high));
                match (low.split_once(' '), high.split_once(' ')) {
                    (Some((low, unit)), Some((high, same))) if unit == same => {
                        format!("[{low}, {high}] {unit}")
                    }
                    _ => format!("[{low}, {high}]"),
                }
            }
            (Some(low), None) => format!("≥ {}", value(low)),
            (None, Some(high)) => format!("≤ {}", value(high)),
            (None, None) => "-".to_owned(),
        }
    }

    /// Returns the interval in words, where nothing around them says that it is one.
    pub(crate) fn sentence(&self) -> String {
        let value = |value: u64| figure::nanos(Nanos(value));
        let bounds = match (self.low, self.high) {
            (Some(_), Some(_)) => format!("in {}", self.text()),
            (Some(low), None) => format!("at least {}", value(low)),
            (None, Some(high)) => format!("at most {}", value(high)),
            (None, None) => return "its interval is not known".to_owned(),
        };
        format!("{bounds} at {:.0} % confidence", self.confidence * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(low: Option<u64>, high: Option<u64>, censored_from: u64) -> PercentileBounds {
        let interval = PercentileInterval {
            low,
            high,
            confidence: 0.95,
            vif: 50.0,
            effective_samples: 200.0,
            slices: 10,
        };
        PercentileBounds::new(99.0, &interval, |value| value >= censored_from)
    }

    #[test]
    fn an_open_end_has_a_reason() {
        let open = bounds(Some(11_900_000), None, u64::MAX);
        assert_eq!(open.text(), "≥ 11.9 ms");
        assert_eq!(open.sentence(), "at least 11.9 ms at 95 % confidence");
        let reason = "the samples say as much as 200 independent ones, a bound takes 299";
        assert_eq!(open.reason.as_deref(), Some(reason));
        let censored = bounds(Some(11_900_000), Some(12_800_000), 12_000_000);
        assert_eq!((censored.high, censored.text()), (None, "≥ 11.9 ms".to_owned()));
        assert_eq!(censored.reason.as_deref(), Some("requests without an answer leave the upper end open"));
    }

    #[test]
    fn a_unit_is_said_once() {
        let closed = bounds(Some(11_900_000), Some(12_800_000), u64::MAX);
        assert_eq!(closed.sentence(), "in [11.9, 12.8] ms at 95 % confidence");
        assert_eq!((closed.text(), closed.reason), ("[11.9, 12.8] ms".to_owned(), None));
        assert_eq!(bounds(Some(999_000), Some(1_010_000), u64::MAX).text(), "[999 µs, 1.01 ms]");
        assert_eq!(bounds(None, Some(7), u64::MAX).text(), "≤ 7 ns");
    }
}
