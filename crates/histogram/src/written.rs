//! Histograms as they are written: as HdrHistogram does ([`hdr`]), with their exact figures beside them.
//!
//! Names and order of all fields are part of the format of saved runs.

use plimsoll_core::Nanos;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Censored, Delta, Exact, Histogram, hdr};

#[derive(Serialize, Deserialize)]
struct Times {
    hdr: String,
    min: u64,
    max: u64,
    sum: u128,
    overflow: u64,
}

/// Null without values.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Exact { min, max, sum, overflow } = self.exact();
        let hdr = || hdr::plain(self.buckets().map(|bucket| (bucket.highest, bucket.count)));
        (!self.is_empty()).then(|| Times { hdr: hdr(), min, max, sum, overflow }).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(times) = Option::<Times>::deserialize(deserializer)? else { return Ok(Self::new()) };
        let Times { hdr, min, max, sum, overflow } = times;
        let values = hdr::values(&hdr).map_err(D::Error::custom)?;
        let histogram = Self::restore(values, Exact { min, max, sum, overflow });
        histogram.ok_or_else(|| D::Error::custom("the extremes of a histogram are not those of its values"))
    }
}

impl Serialize for Delta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hdr::plain(self.values()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Delta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = hdr::values(&String::deserialize(deserializer)?).map_err(D::Error::custom)?;
        Self::restore(values).ok_or_else(|| D::Error::custom("the values of a time are out of order"))
    }
}

#[derive(Serialize, Deserialize)]
struct Bounds {
    count: u64,
    from_ns: u64,
}

/// Null without values.
impl Serialize for Censored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bounds = Bounds { count: self.count, from_ns: self.from.0 };
        (self.count > 0).then_some(bounds).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Censored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bounds = Option::<Bounds>::deserialize(deserializer)?;
        Ok(bounds
            .map_or_else(Self::default, |Bounds { count, from_ns }| Self { count, from: Nanos(from_ns) }))
    }
}
