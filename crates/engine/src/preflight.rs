//! One request before the run: a target that cannot be reached is an error at once, not a thousand counted
//! ones.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Open;
use plimsoll_metrics::RunRecord;
use plimsoll_plan::{Connections, End, Load, Plan, Scenario, Step};
use plimsoll_scenario::{Needs, Op, Program, Reaction};

use crate::control::{Control, Stop};
use crate::error::RunError;
use crate::run::run;
use crate::sites::Site;

/// How often a request is tried that is not answered in time: some targets drop a share of their replies on
/// purpose, and one of them is no reason to give up.
const ATTEMPTS: u32 = 3;
/// The time for an answer in all attempts but the last, which has that of the plan.
const FIRST_TIMEOUT: Nanos = Nanos::from_secs(2);

/// Sends the first request of each target once, or again if it is not answered in time, and returns the
/// records: one per target that is asked, and behind them those of attempts that timed out.
///
/// It is the same run as any other, with one connection and one iteration: what it meets, the load would meet
/// too.
///
/// # Errors
/// [`RunError::Preflight`] with the reason if a target gave no response; a response of any status is one.
pub fn preflight<O: Open + Clone + 'static>(
    plan: &Plan,
    open: &O,
    addresses: &[Arc<[Site]>],
    control: &Control,
) -> Result<Vec<RunRecord>, RunError> {
    let mut records = Vec::new();
    let control = &control.for_preflight();
    let mut unanswered = Vec::new();
    // One that no step asks gets no load either.
    let is_asked = |target: &usize| plan.steps.iter().any(|step| step.target == *target);
    for index in (0..plan.targets.len()).filter(is_asked) {
        let mut single = single_request(plan, index);
        for attempt in 1..=ATTEMPTS {
            let last = attempt == ATTEMPTS;
            single.timeout = if last { plan.timeout } else { plan.timeout.min(FIRST_TIMEOUT) };
            let record = run(&single, open, &addresses[index..=index], control, &mut |_| {})?;
            if control.wish() >= Stop::Drain {
                return Err(RunError::Stopped);
            }
            if !record.total.statuses.is_empty() {
                records.push(record);
                break;
            }
            let timed_out = record.accounting.timed_out > 0;
            if last || !timed_out {
                return Err(no_response(&single, &record));
            }
            unanswered.push(record);
        }
    }
    records.append(&mut unanswered);
    Ok(records)
}

fn no_response(single: &Plan, record: &RunRecord) -> RunError {
    let (class, reason) = match record.error_examples.iter().next() {
        Some((class, reason)) => (static_name(class), reason.clone()),
        None => ("timed_out", format!("no response within {:?}", single.timeout)),
    };
    let authority = single.targets.first().map(|target| target.authority.clone()).unwrap_or_default();
    RunError::Preflight { authority, class, reason }
}

/// The plan's first request to one target, alone.
fn single_request(plan: &Plan, target: usize) -> Plan {
    // One that needs nothing of a response before it, if there is one.
    let of_target = || plan.steps.iter().filter(|step| step.target == target);
    let step = of_target().find(|step| !step.request.uses_variables()).or_else(|| of_target().next());
    let steps: Vec<Step> = step
        .map(|step| Step {
            target: 0,
            reaction: Reaction::default(),
            needs: Needs::default(),
            make_script: None,
            check_script: None,
            away: None,
            ..step.clone()
        })
        .into_iter()
        .collect();
    Plan {
        scenarios: vec![Scenario {
            name: "preflight".to_owned(),
            steps: 0..steps.len() as u32,
            program: Program::new((0..steps.len() as u32).map(Op::Send).collect()),
            weight: 1,
            start_after: Nanos::ZERO,
        }],
        steps,
        variables: 0,
        feeds: Vec::new(),
        pools: Vec::new(),
        supplies: plan.supplies.clone(),
        scripts: None,
        targets: vec![plan.targets[target].clone()],
        load: Load::Closed,
        users: None,
        phases: Vec::new(),
        end: End { duration: None, iterations: Some(1) },
        warmup: Nanos::ZERO,
        drain: Nanos::ZERO,
        threads: 1,
        connections: Connections {
            initial: 1,
            max: 1,
            depth: 1,
            streams: 1,
            rate: None,
            ..plan.connections.clone()
        },
        thresholds: Vec::new(),
        client_faults: None,
        ..plan.clone()
    }
}

fn static_name(class: &str) -> &'static str {
    plimsoll_core::ErrorClass::ALL.iter().map(|c| c.name()).find(|name| *name == class).unwrap_or("io")
}
