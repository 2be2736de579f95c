//! The setup, the refresh and the teardown of a plan: runs of one iteration, which hand on the values that
//! they have set.

use std::fmt;

use plimsoll_metrics::{ErrorExample, Log, RunRecord, TIMED_OUT};
use plimsoll_plan::Plan;

use crate::backends::Backends;
use crate::control::{Control, Stop};
use crate::error::RunError;
use crate::run::{resolve, run_logged};

/// A variable by its name, and the value that it had at the end of a setup.
pub type SetValue = (String, Vec<u8>);

/// A setup or a teardown that was carried out.
#[derive(Debug)]
pub struct Once {
    /// The record of its requests.
    pub record: RunRecord,
    /// The values that it has set; `None` if it did not come to its end.
    pub values: Option<Vec<SetValue>>,
}

/// Reason why a setup or a teardown did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceFailure {
    /// The step whose request failed; none if it was no request.
    pub step: Option<String>,
    /// Reason in words, and the first line of the body of the response.
    pub reason: String,
}

impl fmt::Display for OnceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some(step) => write!(f, "{step}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// Carries out the setup of a plan, if it has one. [`Plan::give`] makes its values known to the load.
///
/// # Errors
/// [`RunError::Setup`] if it does not come to its end, [`RunError::Stopped`] if that is because the run was
/// stopped meanwhile, and the errors of a [`run`](crate::run()).
pub fn set_up(plan: &Plan, backends: &Backends, control: &Control) -> Result<Option<Once>, RunError> {
    let Some(setup) = &plan.setup else { return Ok(None) };
    let control = control.for_preflight();
    let once = run_once(setup, backends, &control, &Log::default())?;
    match once.failure(setup) {
        None => Ok(Some(once)),
        Some(_) if control.requested_stop() >= Stop::Drain => Err(RunError::Stopped),
        Some(failure) => Err(RunError::Setup(failure)),
    }
}

/// Carries out the refresh of a plan once, beside its load. `control` stops it.
///
/// # Errors
/// As [`run_once`].
pub fn refresh(steps: &Plan, backends: &Backends, control: &Control) -> Result<Once, RunError> {
    run_once(steps, backends, &control.for_refresh(), &Log::default())
}

/// Carries out a plan that [leaves](Plan::leaves) a row of values when it has come to its end: a setup or a
/// teardown.
///
/// # Errors
/// As [`run`](crate::run()), and if a host has no address.
pub fn run_once(plan: &Plan, backends: &Backends, control: &Control, log: &Log) -> Result<Once, RunError> {
    let addresses = resolve(plan)?;
    let record = run_logged(plan, backends, &addresses, control, log, &mut |_| {})?;
    let mut rows =
        control.leftovers().into_iter().filter_map(|left| left.downcast::<Vec<Vec<Vec<u8>>>>().ok());
    let row = rows.find_map(|rows| rows.into_iter().next());
    let values = row.map(|row| plan.left().map(str::to_owned).zip(row).collect());
    Ok(Once { record, values })
}

impl Once {
    /// Returns why it did not come to its end; `None` if it did. `plan` is the one that was carried out.
    pub fn failure(&self, plan: &Plan) -> Option<OnceFailure> {
        if self.values.is_some() {
            return None;
        }
        let examples = self.record.steps.iter().zip(&plan.steps).flat_map(|(record, step)| {
            record.error_examples.iter().map(|(class, example)| (step.name.clone(), class.as_str(), example))
        });
        // A step before it may go on after a failure.
        if let Some((step, class, example)) = examples.max_by_key(|(_, _, example)| example.at) {
            return Some(OnceFailure { step: Some(step), reason: words(class, example) });
        }
        let reason = self.record.error_examples.values().next().cloned();
        Some(OnceFailure { step: None, reason: reason.unwrap_or_else(|| "it was ended early".to_owned()) })
    }
}

/// Reason, status and the first line of the body of a failed exchange.
fn words(class: &str, example: &ErrorExample) -> String {
    let ErrorExample { status, reason, body, .. } = example;
    let mut words = match (class, reason.as_str()) {
        (TIMED_OUT, "") => "no whole response came in time".to_owned(),
        (_, "") => class.to_owned(),
        (_, reason) => reason.to_owned(),
    };
    if *status > 0 && !words.contains(&status.to_string()) {
        words = format!("status {status}, {words}");
    }
    if !body.is_empty() && !words.contains(body.as_str()) {
        words = format!("{words}: {body}");
    }
    words
}
