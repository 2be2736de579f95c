//! A probe: a few requests beside a run, sent and timed by a thread that has nothing else to do.

use std::sync::Arc;
use std::thread;

use plimsoll_driver::Open;
use plimsoll_metrics::{Log, RunRecord};
use plimsoll_plan::Plan;

use crate::control::{Control, Progress, Stop};
use crate::error::RunError;
use crate::run::{run, run_logged};
use crate::sites::Site;

/// [`run_logged`] beside a run of `probe`, see [`Plan::as_probe`], which ends with it. The records of both.
///
/// A worker that is busy reads responses late and makes requests late. What that adds to the figures shows in
/// comparison with the probe, whose requests go to the same servers at the same time (Lancet's latency
/// agents, ATC 2019; Treadmill, ISCA 2016).
///
/// # Errors
/// As [`run`], of either.
pub fn run_probed<O: Open + Clone + 'static>(
    (plan, probe): (&Plan, &Plan),
    open: &O,
    addresses: &[Arc<[Site]>],
    control: &Control,
    log: &Log,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<(RunRecord, RunRecord), RunError> {
    let of_probe = Control::for_probe();
    thread::scope(|scope| {
        let beside = thread::Builder::new()
            .name("probe".to_owned())
            .spawn_scoped(scope, || run(probe, open, addresses, &of_probe, &mut |_| {}))
            .map_err(|error| RunError::Worker(error.to_string()))?;
        let record = run_logged(plan, open, addresses, control, log, observe);
        // A run that was told to end at once does not wait for the probe's responses either.
        of_probe.stop(control.wish().max(Stop::Drain));
        let beside =
            beside.join().unwrap_or_else(|_| Err(RunError::Worker("it panicked; see above".to_owned())));
        Ok((record?, beside?))
    })
}
