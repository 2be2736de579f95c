//! Records as they are written: in saved runs and in the rows of a run that goes on.
//!
//! A histogram is written as HdrHistogram does ([`hdr`]), with its exact figures beside it, and errors by the
//! names of their classes. Names and order of all fields are part of the format of saved runs.

use std::collections::BTreeMap;

use plimsoll_core::{ErrorClass, ErrorCounts, Nanos};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hdr;
use crate::histogram::{Delta, Exact};
use crate::{Censored, Histogram};

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

/// Times as whole numbers of nanoseconds.
pub mod nanos {
    use super::{Deserialize, Deserializer, Nanos, Serialize, Serializer};

    /// Writes a time.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
        time.0.serialize(serializer)
    }

    /// Reads a time.
    ///
    /// # Errors
    /// If it is not a whole number.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
        u64::deserialize(deserializer).map(Nanos)
    }
}

/// A value that is shared within the process; who reads it has one of its own.
pub(crate) mod shared {
    use std::sync::Arc;

    use super::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        value: &Arc<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        T::serialize(value, serializer)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}

/// Counts of the classes of errors that occurred, by name.
pub(crate) mod errors {
    use super::{BTreeMap, Deserialize, Deserializer, ErrorClass, ErrorCounts, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(counts: &ErrorCounts, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = ErrorClass::ALL.iter().zip(counts.iter()).filter(|(_, count)| **count > 0);
        counts.map(|(class, count)| (class.name(), *count)).collect::<BTreeMap<_, _>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ErrorCounts, D::Error> {
        let mut errors = ErrorCounts::default();
        for (name, count) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            let Some(class) = ErrorClass::ALL.iter().find(|class| class.name() == name) else {
                let why = format!("`{name}` is not a class of errors that this version knows");
                return Err(serde::de::Error::custom(why));
            };
            errors[*class as usize] = count;
        }
        Ok(errors)
    }
}
