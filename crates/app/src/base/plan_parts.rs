//! Keys of plan files, and classes of errors, that the program and its extensions have.

use std::sync::OnceLock;

use plimsoll_core::{ErrorRow, error_row};
use plimsoll_document::{BodyKey, StepKey};
use plimsoll_plan::{InTurnProtocol, PlanParts};
use plimsoll_workloads::PARTS;

/// Parts of the program and of its extensions.
struct All {
    bodies: Vec<&'static BodyKey>,
    steps: Vec<&'static StepKey>,
    protocols: Vec<&'static InTurnProtocol>,
    errors: Vec<&'static ErrorRow>,
}

static ALL: OnceLock<All> = OnceLock::new();

/// Adds the parts of extensions to those of the program. The first call counts.
pub(crate) fn install(extensions: impl Iterator<Item = PlanParts>) {
    let parts: Vec<PlanParts> = std::iter::once(PARTS).chain(extensions).collect();
    let errors: Vec<_> = parts.iter().flat_map(|parts| parts.errors).copied().collect();
    error_row::install(errors.iter().copied());
    // Tests of one process install the same ones.
    let _ = ALL.set(All {
        bodies: parts.iter().flat_map(|parts| parts.bodies).copied().collect(),
        steps: parts.iter().flat_map(|parts| parts.steps).copied().collect(),
        protocols: parts.iter().flat_map(|parts| parts.protocols).copied().collect(),
        errors,
    });
}

/// Returns the keys of plan files, and the classes of errors, that the program and its extensions have: call
/// [`install`](crate::install) first.
pub fn plan_parts() -> PlanParts {
    ALL.get().map_or(PARTS, |All { bodies, steps, protocols, errors }| PlanParts {
        bodies,
        steps,
        protocols,
        errors,
    })
}
