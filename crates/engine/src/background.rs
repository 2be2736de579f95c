//! Company: runs beside the actual one, each by threads of its own, which end with it. A probe is one, and so
//! are slow clients.

use std::fmt;
use std::sync::Arc;
use std::thread;

use plimsoll_metrics::{Log, RunRecord};
use plimsoll_plan::Plan;

use crate::addresses::TargetAddress;
use crate::backends::Backends;
use crate::control::{Control, Progress, Stop};
use crate::error::RunError;
use crate::run::{run, run_logged};

/// A run beside another one.
pub struct BackgroundRun<'a>(Box<dyn FnOnce(&Control) -> Outcome + Send + 'a>);

type Outcome = Result<RunRecord, RunError>;

impl fmt::Debug for BackgroundRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Companion")
    }
}

impl<'a> BackgroundRun<'a> {
    /// The background run of a plan, to the addresses of its targets.
    pub fn new(plan: &'a Plan, backends: &'a Backends, addresses: &'a [Arc<[TargetAddress]>]) -> Self {
        Self(Box::new(move |control| run(plan, backends, addresses, control, &mut |_| {})))
    }
}

/// [`run_logged`] in company, which ends with it: its record, and those of its background runs in their
/// order.
///
/// A worker that is busy reads responses late and makes requests late. Its effect on the figures shows in
/// comparison with a probe ([`Plan::as_probe`]), whose requests go to the same servers at the same time
/// (Lancet's latency agents, ATC 2019; Treadmill, ISCA 2016).
///
/// # Errors
/// As [`run`], of any of them.
pub fn run_accompanied(
    plan: &Plan,
    company: Vec<BackgroundRun<'_>>,
    backends: &Backends,
    addresses: &[Arc<[TargetAddress]>],
    control: &Control,
    log: &Log,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<(RunRecord, Vec<RunRecord>), RunError> {
    thread::scope(|scope| {
        let begin = |BackgroundRun(run)| {
            let control = Control::for_company();
            let of_thread = control.clone();
            let thread = thread::Builder::new()
                .name("company".to_owned())
                .spawn_scoped(scope, move || run(&of_thread))
                .map_err(|error| RunError::Worker(error.to_string()));
            (control, thread)
        };
        let beside: Vec<_> = company.into_iter().map(begin).collect();
        let record = run_logged(plan, backends, addresses, control, log, observe);
        // A run that ends at once does not wait for the responses of its background runs either.
        let stop = control.requested_stop().max(Stop::Drain);
        beside.iter().for_each(|(control, _)| control.stop(stop));
        let panicked = |_| Err(RunError::Worker("it panicked; see above".to_owned()));
        let beside = beside.into_iter().map(|(_, thread)| thread?.join().unwrap_or_else(panicked));
        let beside: Result<Vec<_>, RunError> = beside.collect();
        Ok((record?, beside?))
    })
}
