//! Keys of plan files that the program and its extensions have.

use std::sync::OnceLock;

use plimsoll_plan::{BodyKey, InTurnProtocol, PlanParts, StepKey};
use plimsoll_workloads::PARTS;

/// What the program and its extensions have.
struct All {
    bodies: Vec<&'static BodyKey>,
    steps: Vec<&'static StepKey>,
    protocols: Vec<&'static InTurnProtocol>,
}

static ALL: OnceLock<All> = OnceLock::new();

/// Adds the keys of extensions to those of the program. The first call counts.
pub(crate) fn install(extensions: impl Iterator<Item = PlanParts>) {
    // Tests of one process install the same ones.
    let _ = ALL.set({
        let all: Vec<PlanParts> = std::iter::once(PARTS).chain(extensions).collect();
        All {
            bodies: all.iter().flat_map(|parts| parts.bodies).copied().collect(),
            steps: all.iter().flat_map(|parts| parts.steps).copied().collect(),
            protocols: all.iter().flat_map(|parts| parts.protocols).copied().collect(),
        }
    });
}

/// Returns the keys of plan files that the program and its extensions have: call
/// [`install`](crate::install) first.
pub fn plan_parts() -> PlanParts {
    ALL.get().map_or(PARTS, |All { bodies, steps, protocols }| PlanParts { bodies, steps, protocols })
}
