//! The ready-made workloads, and the table of them with a summary of each.

pub(crate) mod audit;
pub(crate) mod auxiliary_request;
pub(crate) mod cache;
pub(crate) mod canister;
pub(crate) mod crud;
pub(crate) mod ingest;
pub(crate) mod ingest_demo;
pub(crate) mod llm;
pub(crate) mod printed_plan;
pub(crate) mod sql_answer;
pub(crate) mod store;
pub(crate) mod verification;
pub(crate) mod websocket;

use plimsoll_plan::{PlanPatch, Problem};
use plimsoll_report::Style;

use crate::args::extension::{AddedLoad, LoadArgs};
use crate::args::workload::{CalibratedArgs, WorkloadCommand};
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::experiment::calibrate::Comparison;
use crate::experiment::run::{self, RunRequest, Workload};
use crate::workload::printed_plan::PrintedPlan;

/// The command of a workload.
///
/// # Errors
/// The command cannot be carried out, or a result could not be written.
pub(crate) fn command(command: &WorkloadCommand, look: Theme, style: &Style) -> Result<Exit, Failure> {
    match command {
        WorkloadCommand::Cache(args) => cache::command(args, look, style),
        WorkloadCommand::Crud(args) => crud::command(args, look, style),
        WorkloadCommand::Canister(args) => canister::command(args, look, style),
        WorkloadCommand::Ingest(args) => ingest::command(args, look, style),
        WorkloadCommand::Llm(args) => llm::command(args, look, style),
        WorkloadCommand::Ws(args) => websocket::command(args, look, style),
    }
}

/// The command of an extension.
///
/// # Errors
/// The command cannot be carried out, or a result could not be written.
pub(crate) fn added(load: &AddedLoad, look: Theme, style: &Style) -> Result<Exit, Failure> {
    let args = &*load.0;
    if args.print_plan() {
        return printed_of(load)?.show(args.run().output.quiet);
    }
    let request = RunRequest::made(args.run(), args.plan()?);
    run::carry_out(&request, &mut Added(args), look, style)
}

/// The plan that the flags of a command of an extension stand for.
///
/// # Errors
/// All problems of the flags.
pub(crate) fn printed_of(AddedLoad(args): &AddedLoad) -> Result<PrintedPlan, Failure> {
    PrintedPlan::new(args.run(), args.plan()?, |flags| args.amend(flags), &[])
}

/// The work of a command of an extension beside the load.
struct Added<'a>(&'a dyn LoadArgs);

impl Workload for Added<'_> {
    fn amend(&mut self, flags: &mut PlanPatch) -> Result<(), Problem> {
        self.0.amend(flags)
    }
}

/// The plan that the flags of a command stand for; `None` if it puts no load on anything.
///
/// # Errors
/// All problems of the flags.
pub(crate) fn printed(command: &WorkloadCommand) -> Result<Option<PrintedPlan>, Failure> {
    match command {
        WorkloadCommand::Cache(args) => cache::printed(args).map(Some),
        WorkloadCommand::Crud(args) => crud::printed(args).map(Some),
        WorkloadCommand::Canister(args) => canister::printed(args).map(Some),
        WorkloadCommand::Ingest(args) if args.instead.is_some() => Ok(None),
        WorkloadCommand::Ingest(args) => ingest::printed(args).map(Some),
        WorkloadCommand::Llm(args) => llm::printed(args).map(Some),
        WorkloadCommand::Ws(args) => websocket::printed(args).map(Some),
    }
}

/// Measurement of `plimsoll calibrate` in place of plain requests, if one is asked for.
pub(crate) fn comparison(args: &CalibratedArgs) -> Option<Comparison> {
    args.canister.then_some(canister::calibration::report as Comparison)
}
