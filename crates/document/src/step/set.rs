//! Assignments to variables.

use schemars::JsonSchema;

use super::part;
use crate::{Field, Keyed, Text};

/// Assignments to variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct SetStep {
    /// Set variables to these templates.
    pub set: Keyed<Field<Text>>,
}

part!(SetStep {
    "set": set,
});

impl SetStep {
    /// Assignment of a template to one variable.
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        Self { set: Keyed::one(name, Field::text(value)) }
    }
}
