//! Activities in the background of a load: a probe, slow clients, and those of a workload.

use plimsoll_core::Rate;
use plimsoll_document::Problem;
use plimsoll_engine::Control;
use plimsoll_monitor::Named;
use plimsoll_plan::{Plan, parse_size};
use plimsoll_schedule::parse_rate;

use crate::args::run::RunArgs;
use crate::session::live::fault_log::FaultLog;
use crate::session::live::request_log::WriteListener;
use crate::session::observer::StartObserver;

/// Callback that receives the handle of a run before that run begins.
pub(crate) type OnStart = Box<dyn FnOnce(&Control)>;

/// Activities of a workload's command beside its load.
#[derive(Default)]
pub(crate) struct Background {
    /// Servers to be watched, beside those that flags name.
    pub(crate) watched: Vec<Named>,
    /// Called with the handle of the run, to begin something beside it.
    pub(crate) accompany: Option<OnStart>,
    /// Faults that `accompany` makes.
    pub(crate) faults: FaultLog,
    /// Receiver of all requests that may have changed something.
    pub(crate) listener: Option<WriteListener>,
    /// `true` if the figures so far are printed every second, one line below the other.
    pub(crate) periodic: bool,
    /// Observers of the workload's own.
    pub(crate) observers: Vec<StartObserver>,
}

/// Clients that are slow on purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowClients {
    pub(crate) clients: u32,
    pub(crate) bytes_per_s: u64,
}

impl SlowClients {
    /// Default rate at which each client sends and reads, in bytes per second.
    const BYTES_PER_S: u64 = 100;

    /// Creates the slow clients that the flags ask for.
    ///
    /// # Errors
    /// If the rate is not a size above zero, or has no effect, or if the plan cannot have slow clients.
    pub(crate) fn of(args: &RunArgs, plan: &Plan) -> Result<Option<Self>, Problem> {
        let rate =
            args.slow_client_rate.as_deref().map(|text| match parse_size(text.trim_end_matches("/s")) {
                Ok(0) => Err("--slow-client-rate: nothing would ever be sent".to_owned()),
                rate => rate.map_err(|error| format!("--slow-client-rate: {error}")),
            });
        let rate = rate.transpose().map_err(|error| Problem::new(error).with_hint("as in 100 or 2KiB"))?;
        let Some(clients) = args.slow_clients else {
            return match rate {
                None => Ok(None),
                Some(_) => Err(Problem::new("--slow-client-rate has no effect without --slow-clients")
                    .with_hint("say how many with --slow-clients N, or leave it out")),
            };
        };
        admit_company("--slow-clients", plan, args.repeat)?;
        Ok(Some(Self { clients, bytes_per_s: rate.unwrap_or(Self::BYTES_PER_S) }))
    }
}

/// The rate of a probe.
///
/// # Errors
/// If the text is not a rate, or the plan cannot have a probe.
pub(crate) fn probe_rate(rate: &str, plan: &Plan, repeat: Option<u32>) -> Result<Rate, Problem> {
    admit_company("--probe", plan, repeat)?;
    parse_rate(rate).map_err(|error| Problem::new(format!("--probe: {error}")))
}

/// Makes sure that a plan can be run in the company that a flag asks for.
fn admit_company(flag: &str, plan: &Plan, repeat: Option<u32>) -> Result<(), Problem> {
    let refused = |other: &str, why: &str, hint: String| {
        Err(Problem::new(format!("{flag} and {other} exclude each other: {why}")).with_hint(hint))
    };
    if !plan.feeds.is_empty() {
        return refused("data sources", "it would take rows of the load", format!("leave out {flag}"));
    }
    if plan.wrk.is_some() {
        return refused("--script", "the script has one beginning and one end", format!("leave out {flag}"));
    }
    if repeat.is_some() {
        let hint = format!("make single runs with {flag}");
        return refused("--repeat", "each run would need its own", hint);
    }
    Ok(())
}
