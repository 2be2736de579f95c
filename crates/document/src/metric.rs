//! Metrics of the plan's own, and the values that steps record of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Field, Keyed, Text};

/// A metric that steps record values of. Written short, it is its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self", rename = "MetricSpec")]
#[non_exhaustive]
pub struct MetricSpec {
    /// `counter` (sum, and per second), `gauge` (last, smallest and largest value), `rate` (share of values
    /// that are true) or `trend` (distribution of numbers). Default: trend.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub kind: Field<Text>,
    /// Unit of its values in reports: `EUR`, `items`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub unit: Field<Text>,
}

/// A value to record of a metric. Written short, it is the value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self", rename = "RecordSpec")]
#[non_exhaustive]
pub struct RecordSpec {
    /// A number, or of a rate `true`, `false`, 1 or 0; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub value: Field<Text>,
    /// Tags by their names, each a template: figures are shown for each combination, too, for 100 of a metric
    /// at most.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub tags: Keyed<Field<Text>>,
}
