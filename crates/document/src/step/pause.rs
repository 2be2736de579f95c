//! Pauses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Field, Text};

/// Think time of a user: a duration, or one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self", rename = "PauseSpec")]
#[non_exhaustive]
pub struct PauseSpec {
    /// Always as long. Written short, it is this.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub fixed: Field<Text>,
    /// Uniformly distributed between two durations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uniform: Vec<Field<Text>>,
    /// Exponentially distributed with this mean.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub exponential: Field<Text>,
    /// Until this long after the end of the pace before it in the iteration, or after the iteration began;
    /// not at all, if that has passed.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub pace: Field<Text>,
}

impl PauseSpec {
    /// A pause that is always as long.
    pub fn new(length: Field<Text>) -> Self {
        Self { fixed: length, ..Self::default() }
    }
}
