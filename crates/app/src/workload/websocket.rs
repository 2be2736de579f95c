//! `plimsoll ws`: messages on WebSockets, as a plan that a few flags come to.

use plimsoll_report::Style;

use crate::args::workload::websocket::{SETTINGS, WebSocketArgs, problem};
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::made_plan::MadePlan;
use crate::experiment::run::{self, RunRequest};
use crate::workload::printed_plan::PrintedPlan;

/// Name of the plan in messages.
const NAME: &str = "the plan of `plimsoll ws`";

/// The text of the plan that the flags come to.
fn text(args: &WebSocketArgs) -> Result<String, Failure> {
    let document = args.to_load()?.document();
    Ok(document.map_err(|error| Failure::usage(problem(&error)))?.to_string())
}

/// The plan that the flags come to.
///
/// # Errors
/// Everything that is wrong with them.
pub(crate) fn printed(args: &WebSocketArgs) -> Result<PrintedPlan, Failure> {
    PrintedPlan::new(&args.run, MadePlan::new(NAME, text(args)?, &SETTINGS), |_| Ok(()), &[])
}

/// The command.
pub(crate) fn command(args: &WebSocketArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    if args.print_plan {
        return printed(args)?.show(args.run.output.quiet);
    }
    let request = RunRequest::made(&args.run, MadePlan::new(NAME, text(args)?, &SETTINGS));
    run::carry_out(&request, &mut (), look, style)
}
