//! Requests that are sent again until their answer has come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExpectSpec, Field, Text};

/// Repetition of a request until its answer has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PollSpec {
    /// Expectations that make a response the answer; the step's other ones are checked only then.
    /// Required, unless the body recognises its answer by itself.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub until: Field<ExpectSpec>,
    /// The first pause. Default: 100ms.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub every: Field<Text>,
    /// Factor by which each pause is longer than the one before. Default: 1.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub backoff: Field<Text>,
    /// The longest pause. Default: 10s.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub at_most: Field<Text>,
}
