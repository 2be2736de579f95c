//! Steps that depend on a condition.

use schemars::JsonSchema;

use super::{StepSpec, list, part};
use crate::{Field, Text};

/// Steps that depend on a condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct BranchStep {
    /// A condition: `${role} == admin`. With `then`, and perhaps `else`.
    #[schemars(rename = "if")]
    pub condition: Field<Text>,
    /// Steps if the condition holds.
    pub then: Vec<Field<StepSpec>>,
    /// Steps if it does not.
    #[schemars(rename = "else")]
    pub otherwise: Vec<Field<StepSpec>>,
}

part!(BranchStep {
    "if": condition,
    "then": then,
    "else": otherwise,
});

impl BranchStep {
    /// Steps that are carried out if a condition holds, and others if it does not.
    pub fn new(
        condition: impl Into<String>,
        then: impl IntoIterator<Item = StepSpec>,
        otherwise: impl IntoIterator<Item = StepSpec>,
    ) -> Self {
        Self { condition: Field::text(condition), then: list(then), otherwise: list(otherwise) }
    }
}
