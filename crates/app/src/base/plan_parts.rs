//! Keys of plan files that the program and its extensions have.

use std::sync::OnceLock;

use plimsoll_plan::{BodyKey, PlanParts};
use plimsoll_workloads::PARTS;

static ALL: OnceLock<Vec<&'static BodyKey>> = OnceLock::new();

/// Adds the keys of extensions to those of the program. The first call counts.
pub(crate) fn install(extensions: impl Iterator<Item = PlanParts>) {
    // Tests of one process install the same ones.
    let _ = ALL.set(
        PARTS.bodies.iter().copied().chain(extensions.flat_map(|parts| parts.bodies).copied()).collect(),
    );
}

/// Returns the keys of plan files that the program and its extensions have: call
/// [`install`](crate::install) first.
pub fn plan_parts() -> PlanParts {
    PlanParts { bodies: ALL.get().map_or(PARTS.bodies, Vec::as_slice) }
}
