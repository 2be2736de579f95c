//! `plimsoll ws`: messages on WebSockets, as a plan that a few flags come to.

use plimsoll_document::MadeDocument;
use plimsoll_report::Style;

use crate::args::workload::websocket::{WebSocketArgs, problem};
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::experiment::run::{self, RunRequest};
use crate::workload::printed_plan::PrintedPlan;

/// The plan that the flags come to, without those of the run.
fn made(args: &WebSocketArgs) -> Result<MadeDocument, Failure> {
    args.to_load()?.document().map_err(|error| Failure::usage(problem(&error)))
}

/// The plan that the flags come to.
///
/// # Errors
/// Everything that is wrong with them.
pub(crate) fn printed(args: &WebSocketArgs) -> Result<PrintedPlan, Failure> {
    PrintedPlan::new(&args.run, made(args)?, |_| Ok(()), &[])
}

/// The command.
pub(crate) fn command(args: &WebSocketArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    if args.print_plan {
        return printed(args)?.show(args.run.output.quiet);
    }
    let request = RunRequest::made(&args.run, made(args)?);
    run::carry_out(&request, &mut (), look, style)
}
