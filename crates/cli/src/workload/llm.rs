//! `plimsoll llm`: completions of a language model, as a plan that a few flags come to.

use plimsoll_plan::{PlanPatch, Problem, RawValue};
use plimsoll_report::Style;

use crate::args::workload::llm::{LlmArgs, problem};
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::experiment::run::{self, RunRequest, Workload};
use crate::workload::printed_plan::PrintedPlan;

/// Name of the plan in messages.
const NAME: &str = "the plan of `plimsoll llm`";

/// The text of the plan that the flags come to.
fn text(args: &LlmArgs) -> Result<String, Failure> {
    let load = args.to_load().map_err(Failure::usage)?;
    let document = load.document().map_err(|error| Failure::usage(problem(&error)))?;
    Ok(document.to_string())
}

/// The plan that the flags come to.
///
/// # Errors
/// Everything that is wrong with them.
pub(crate) fn printed(args: &LlmArgs) -> Result<PrintedPlan, Failure> {
    let amend = |flags: &mut PlanPatch| {
        authorize(args, flags);
        Ok(())
    };
    PrintedPlan::new(&args.run, (NAME, text(args)?), amend, &[])
}

/// The command.
pub(crate) fn command(args: &LlmArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    if args.print_plan {
        return printed(args)?.show(args.run.output.quiet);
    }
    let request = RunRequest::made(&args.run, NAME, text(args)?);
    run::carry_out(&request, &mut Completions { args }, look, style)
}

/// The API key, among the flags of a run.
fn authorize(args: &LlmArgs, flags: &mut PlanPatch) {
    if let Some(key) = args.api_key() {
        flags.bearer = Some(RawValue::new("--api-key", key));
    }
}

struct Completions<'a> {
    args: &'a LlmArgs,
}

impl Workload for Completions<'_> {
    fn amend(&mut self, flags: &mut PlanPatch) -> Result<(), Problem> {
        authorize(self.args, flags);
        Ok(())
    }
}
