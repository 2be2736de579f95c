//! Flags that a run on a fleet does not support, and their refusal.

use plimsoll_core::Shard;
use plimsoll_plan::{Plan, Problem, Problems, StartTime};

use crate::args::live::LiveArgs;
use crate::args::run::RunArgs;

/// Says what cannot go together with `--fleet`.
///
/// # Errors
/// All of it.
pub(crate) fn admit(
    args: &RunArgs,
    plan: &Plan,
    live: &LiveArgs,
    obstacle: Option<&'static str>,
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut refuse = |given: bool, other: &str, why: &str| {
        if given {
            let message = format!("--fleet and {other} exclude each other: {why}");
            problems.push(Problem::new(message).with_hint("leave out one of them"));
        }
    };
    let single = "it is of a run in this process";
    refuse(args.repeat.is_some(), "--repeat", single);
    refuse(args.calibrate, "--calibrate", "what this machine can generate says nothing of the agents");
    refuse(args.probe.is_some(), "--probe", single);
    refuse(args.slow_clients.is_some(), "--slow-clients", single);
    refuse(args.slices, "--slices", "parts of several runs are not kept apart");
    refuse(args.plan.h2loadrunner.is_some(), "--h2loadrunner", "import it to a plan first");
    let files = [("--stats", live.stats()), ("--log", live.log()), ("--failed", live.failed())];
    for (flag, file) in files {
        refuse(file.is_some(), flag, "the agents would write it");
    }
    for flag in live.exports.given() {
        refuse(true, flag, "live figures are those of each agent");
    }
    refuse(
        live.watch.descriptors() > 0,
        "--watch-pid",
        "the processes of this machine are not those of the agents",
    );
    refuse(plan.shard != Shard::WHOLE, "--shard", "each agent has its own");
    refuse(plan.start != StartTime::WhenReady, "--start-at", "all begin when they are ready");
    refuse(plan.wrk.is_some(), "a script of wrk", "it has one beginning and one end");
    refuse(obstacle.is_some(), obstacle.unwrap_or_default(), single);
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
