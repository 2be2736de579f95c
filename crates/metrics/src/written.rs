//! Records as they are written: in saved runs and in the rows of a run that goes on.
//!
//! Histograms are written as [`plimsoll_histogram`] does, and errors by the names of their classes. Names and
//! order of all fields are part of the format of saved runs.

use std::collections::BTreeMap;

use plimsoll_core::{ErrorClass, ErrorCounts, Nanos};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
        let counts = counts.iter().map(|(class, count)| (class.name(), count));
        counts.collect::<BTreeMap<_, _>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ErrorCounts, D::Error> {
        let mut errors = ErrorCounts::default();
        for (name, count) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            errors[ErrorClass::read(&name).map_err(serde::de::Error::custom)?] = count;
        }
        Ok(errors)
    }
}
