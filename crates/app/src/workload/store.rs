//! The store that an ingest load is sent to.

use plimsoll_document::Problem;
use plimsoll_plan::PlanPatch;
use serde_json::json;

use crate::base::failure::Failure;
use crate::workload::auxiliary_request::{once, reason};

/// Checks that the store answers. Without this check, a run could measure a store that is not there. The
/// request writes nothing, and any answer is good.
pub(crate) fn reach(origin: &str, flags: PlanPatch) -> Result<(), Failure> {
    let record = once(
        json!({
            "targets": { "store": origin },
            "scenarios": [{ "steps": [{ "get": "/", "expect": { "status": ["200-599"] } }] }],
        }),
        flags,
    )?;
    if record.accounting.ok > 0 {
        return Ok(());
    }
    let problem = Problem::new(format!("no answer from the store {origin}: {}", reason(&record)));
    Err(Failure::environment(
        problem.with_hint("name it with --url; `plimsoll target ingest` is a store to try it on"),
    ))
}
