//! One request before the run: a target that cannot be reached is an error at once, not a thousand counted
//! ones.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Endpoint, Open};
use plimsoll_metrics::RunRecord;
use plimsoll_plan::{Connections, End, Load, Plan};

use crate::control::{Control, Stop};
use crate::error::RunError;
use crate::run::run;

/// Sends the first request of each target once and returns the records, one per target.
///
/// It is the same run as any other, with one connection and one iteration: what it meets, the load would meet
/// too.
///
/// # Errors
/// [`RunError::Preflight`] with the reason if a target gave no response; a response of any status is one.
pub fn preflight<O: Open>(
    plan: &Plan,
    open: &O,
    addresses: &[Arc<[Endpoint]>],
    control: &Control,
) -> Result<Vec<RunRecord>, RunError> {
    let mut records = Vec::new();
    for (index, target) in plan.targets.iter().enumerate() {
        let single = single_request(plan, index);
        let record = run(&single, open, &addresses[index..=index], control, &mut |_| {})?;
        if control.wish() >= Stop::Drain {
            return Err(RunError::Stopped);
        }
        if record.total.statuses.is_empty() {
            let (class, reason) = match record.error_examples.iter().next() {
                Some((class, reason)) => (static_name(class), reason.clone()),
                None => ("timed_out", format!("no response within {:?}", plan.timeout)),
            };
            return Err(RunError::Preflight { authority: target.authority.clone(), class, reason });
        }
        records.push(record);
    }
    Ok(records)
}

/// The plan's first request to one target, alone.
fn single_request(plan: &Plan, target: usize) -> Plan {
    let steps = plan.steps.iter().filter(|step| step.target == target).take(1).cloned();
    Plan {
        steps: steps.map(|step| plimsoll_plan::Step { target: 0, ..step }).collect(),
        targets: vec![plan.targets[target].clone()],
        load: Load::Closed,
        end: End { duration: None, iterations: Some(1) },
        warmup: Nanos::ZERO,
        drain: Nanos::ZERO,
        threads: 1,
        connections: Connections { initial: 1, max: 1, depth: 1, ..plan.connections.clone() },
        ..plan.clone()
    }
}

fn static_name(class: &str) -> &'static str {
    plimsoll_core::ErrorClass::ALL.iter().map(|c| c.name()).find(|name| *name == class).unwrap_or("io")
}
