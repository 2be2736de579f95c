//! A request before the load, which asks whether there is anybody to put it on.

use std::path::PathBuf;

use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, OpenEpoll};
use plimsoll_engine::{Control, resolve};
use plimsoll_metrics::RunRecord;
use plimsoll_plan::{Command, PlanPatch};
use serde_json::{Value, json};

use crate::import::WithPlan;
use crate::{Failure, run};

/// How long a request before the load may take.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// Carries one iteration of a plan out, and nothing else.
pub(crate) fn once(mut document: Value, flags: PlanPatch) -> Result<RunRecord, Failure> {
    document["run"] = json!({ "iterations": 1, "connections": 1, "no_preflight": true });
    let name = "the plan of a first request";
    let files = WithPlan { name: PathBuf::from(name), text: document.to_string() };
    let command = Command { plan: Some(name.to_owned()), environment: Vec::new(), flags };
    let mut plan = command.resolve(&files)?.plan;
    (plan.timeout, plan.connect_timeout) = (PATIENCE, PATIENCE);
    let addresses = resolve(&plan).map_err(run::failure)?;
    let open = OpenEpoll(BackendOptions::default());
    let record = plimsoll_engine::run(&plan, &open, &addresses, &Control::default(), &mut |_| {});
    record.map_err(run::failure)
}

/// Why a request failed, in words.
pub(crate) fn reason(record: &RunRecord) -> String {
    let example = record.error_examples.values().next().cloned();
    example.unwrap_or_else(|| "nothing came in time".to_owned())
}
