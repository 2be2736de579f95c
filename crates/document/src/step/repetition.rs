//! Loops.

use schemars::JsonSchema;

use super::{StepSpec, list, part};
use crate::{Field, Text};

/// Steps that are repeated: exactly one of repeat and while, and the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct RepetitionStep {
    /// Number of times to carry out `steps`: a whole number, or a template of one.
    pub repeat: Field<Text>,
    /// Carry out `steps` as long as this condition holds.
    #[schemars(rename = "while")]
    pub while_condition: Field<Text>,
    /// The steps of a loop.
    pub steps: Vec<Field<StepSpec>>,
}

part!(RepetitionStep {
    "repeat": repeat,
    "while": while_condition,
    "steps": steps,
});

impl RepetitionStep {
    /// Steps that are carried out a number of times.
    pub fn new(times: Field<Text>, steps: impl IntoIterator<Item = StepSpec>) -> Self {
        Self { repeat: times, steps: list(steps), ..Self::default() }
    }
}
