//! Requests that are sent at once.

use schemars::JsonSchema;

use super::{StepSpec, list, part};
use crate::Field;

/// Requests that are sent at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct ParallelStep {
    /// Requests that are sent at once; the iteration goes on when all have been answered.
    pub parallel: Vec<Field<StepSpec>>,
}

part!(ParallelStep {
    "parallel": parallel,
});

impl ParallelStep {
    /// Sends these requests at once.
    pub fn new(requests: impl IntoIterator<Item = StepSpec>) -> Self {
        Self { parallel: list(requests) }
    }
}
