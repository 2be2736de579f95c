//! Traffic of connections, apart from the bytes of single requests.

use plimsoll_histogram::Histogram;
use plimsoll_metrics::{Http2Traffic, RATE_UNITS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of the messages on connections that spoke HTTP/2, without the heads of frames and padding, warm-up
/// included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Http2TrafficResult {
    /// Header blocks of requests, compressed.
    pub heads_sent_bytes: u64,
    /// Header blocks of responses, compressed: interim and final heads, and trailers.
    pub heads_received_bytes: u64,
    /// Names and values of the fields in the header blocks of responses, uncompressed.
    pub fields_received_bytes: u64,
    /// Part of fields_received_bytes that compression has saved, below 1; null without any.
    pub heads_saved_share: Option<f64>,
    /// Content of responses.
    pub content_received_bytes: u64,
}

impl Http2TrafficResult {
    /// `None` if no message was counted.
    pub(crate) fn new(traffic: &Http2Traffic) -> Option<Self> {
        (*traffic != Http2Traffic::default()).then(|| Self {
            heads_sent_bytes: traffic.heads_sent,
            heads_received_bytes: traffic.heads_received,
            fields_received_bytes: traffic.fields_received,
            heads_saved_share: traffic.saved(),
            content_received_bytes: traffic.content_received,
        })
    }

    /// The traffic of two runs.
    pub(crate) fn merged(&self, other: &Self) -> Option<Self> {
        let mut sum = self.counts();
        sum.merge(&other.counts());
        Self::new(&sum)
    }

    const fn counts(&self) -> Http2Traffic {
        Http2Traffic {
            heads_sent: self.heads_sent_bytes,
            heads_received: self.heads_received_bytes,
            fields_received: self.fields_received_bytes,
            content_received: self.content_received_bytes,
        }
    }
}

/// Requests per second of single connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateSpread {
    /// Number of connections.
    pub connections: u64,
    /// The slowest.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation.
    pub stdev: f64,
    /// Share of the connections, from 0 to 1, that differ from the mean by one standard deviation at
    /// most; null if runs were merged.
    pub within_stdev: Option<f64>,
    /// The fastest.
    pub max: f64,
}

impl RateSpread {
    /// `None` without connections.
    pub(crate) fn new(rates: &Histogram) -> Option<Self> {
        let per_second = |units: f64| units / RATE_UNITS as f64;
        let occupied = rates.occupied();
        Some(Self {
            connections: rates.count(),
            min: per_second(rates.min()? as f64),
            mean: per_second(rates.mean()?),
            stdev: per_second(occupied.stdev()?),
            within_stdev: occupied.within_stdev(),
            max: per_second(rates.max()? as f64),
        })
    }

    /// The spread of the connections of two runs.
    pub(crate) fn merged(&self, other: &Self) -> Self {
        let (mine, theirs) = (self.connections as f64, other.connections as f64);
        let all = (mine + theirs).max(1.0);
        let mean = (self.mean * mine + other.mean * theirs) / all;
        // The mean of the squares is the variance and the square of the mean (König, Huygens).
        let square = |one: &Self| one.stdev.powi(2) + one.mean.powi(2);
        let squares = (square(self) * mine + square(other) * theirs) / all;
        Self {
            connections: self.connections.saturating_add(other.connections),
            min: self.min.min(other.min),
            mean,
            stdev: (squares - mean.powi(2)).max(0.0).sqrt(),
            within_stdev: None,
            max: self.max.max(other.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_merged_runs_is_that_of_all_connections() {
        let of = |rates: &[u64]| {
            let mut histogram = Histogram::new();
            rates.iter().for_each(|rate| histogram.record(rate * RATE_UNITS));
            RateSpread::new(&histogram)
        };
        let (one, other, all) =
            (of(&[1, 2, 3]).unwrap(), of(&[10, 40]).unwrap(), of(&[1, 2, 3, 10, 40]).unwrap());
        let merged = one.merged(&other);
        assert_eq!((merged.connections, merged.min, merged.max), (5, 1.0, 40.0));
        assert!((merged.mean - all.mean).abs() < 1e-9, "{merged:?}");
        // Deviations are those of the middles of buckets.
        assert!((merged.stdev - all.stdev).abs() < 1e-3 * all.stdev, "{merged:?} {all:?}");
        assert_eq!((all.within_stdev, merged.within_stdev), (Some(0.8), None));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn traffic_of_merged_runs_adds_up() {
        let counts = |heads_received, fields_received| Http2Traffic {
            heads_sent: 1,
            heads_received,
            fields_received,
            content_received: 5,
        };
        let of = |heads, fields| Http2TrafficResult::new(&counts(heads, fields)).unwrap();
        let merged = of(10, 100).merged(&of(30, 100)).unwrap();
        assert_eq!((merged.heads_sent_bytes, merged.content_received_bytes), (2, 10));
        assert_eq!(merged.heads_saved_share, Some(0.8));
        assert_eq!(Http2TrafficResult::new(&Http2Traffic::default()), None);
    }
}
