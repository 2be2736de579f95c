//! The ready-made workloads, and the table of them with a summary of each.

pub(crate) mod audit;
pub(crate) mod auxiliary_request;
pub(crate) mod canister;
pub(crate) mod crud;
pub(crate) mod ingest;
pub(crate) mod ingest_demo;
pub(crate) mod printed_plan;
pub(crate) mod sql_answer;
pub(crate) mod store;
pub(crate) mod verification;
pub(crate) mod websocket;

use plimsoll_document::Problem;
use plimsoll_plan::PlanPatch;
use plimsoll_report::comparison::Question;
use plimsoll_report::{SavedRun, Style, result};

use crate::args::extension::{AddedLoad, Alternative, LoadArgs, Note};
use crate::args::output::OutputFormat;
use crate::args::workload::{CalibratedArgs, WorkloadCommand};
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages;
use crate::experiment::calibrate::Comparison;
use crate::experiment::paired::{self, Outputs, Pairing};
use crate::experiment::repeat::Rounds;
use crate::experiment::run::{self, RunRequest, Workload};
use crate::session::request::PlanRequest;
use crate::workload::printed_plan::PrintedPlan;

/// The command of a workload.
///
/// # Errors
/// The command cannot be carried out, or a result could not be written.
pub(crate) fn command(command: &WorkloadCommand, look: Theme, style: &Style) -> Result<Exit, Failure> {
    match command {
        WorkloadCommand::Crud(args) => crud::command(args, look, style),
        WorkloadCommand::Canister(args) => canister::command(args, look, style),
        WorkloadCommand::Ingest(args) => ingest::command(args, look, style),
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
    let mut look_at = || request.plan(true).resolve_amended(|flags| args.amend(flags));
    let request = match args.asked(&mut look_at)? {
        Some(plan) => RunRequest::made(args.run(), plan),
        None => request,
    };
    let pairing = args.alternative()?.map(|other| paired(args, &request, other)).transpose()?;
    let mut resolve = || request.plan(true).resolve_amended(|flags| args.amend(flags));
    let notes = args.before(&mut resolve, pairing.as_ref().map(|pairing| &pairing.sides[1].1))?;
    let Some(pairing) = pairing else {
        let say = messages::say(args.run().output.quiet);
        notes.iter().for_each(|note| say(&format!("note: {note}")));
        return run::carry_out(&request, &mut Added(args), look, style);
    };
    // The sides differ in properties that a comparison requires to be equal: that is the question here.
    let question = Question { force: true, ..Question::default() };
    // Either side may carry more: that is an answer, and no failure.
    paired::command(pairing, &question, style).map(|(exit, _)| exit)
}

/// The load as it is and in another way, and how they take turns.
fn paired(
    args: &dyn LoadArgs,
    request: &RunRequest<'_>,
    other: Alternative,
) -> Result<Pairing<'static>, Failure> {
    let Alternative { flag, names, plan, amend, rounds } = other;
    let run = args.run();
    run.admit_several(flag, &["--repeat"]).map_err(Failure::usage)?;
    let output = &run.output;
    let [own, others] = amend;
    let amended = |amend: &dyn Fn(&mut PlanPatch), flags: &mut PlanPatch| {
        args.amend(flags)?;
        amend(flags);
        Ok(())
    };
    let first = request.plan(output.quiet).resolve_amended(|flags| amended(&*own, flags))?;
    let second = PlanRequest::made(&run.plan, plan, output.quiet);
    let second = second.resolve_amended(|flags| amended(&*others, flags))?;
    let patch = &first.layered.patch;
    Ok(Pairing {
        live: run.live.or(Some(patch)),
        control: run.control.to_spec(Some(patch)).map_err(Failure::usage)?,
        sides: [(names[0], first), (names[1], second)],
        flag,
        rounds: Rounds { runs: run.repeat.unwrap_or(rounds), pause: run.pause.unwrap_or_default() },
        saving: run.save.to_saving(output.quiet).map_err(Failure::usage)?,
        report: run.report.clone(),
        outputs: Outputs::of(flag, output)?,
        quiet: output.quiet,
    })
}

/// The plan that the flags of a command of an extension stand for.
///
/// # Errors
/// All problems of the flags.
pub(crate) fn printed_of(AddedLoad(args): &AddedLoad) -> Result<PrintedPlan, Failure> {
    PrintedPlan::new(args.run(), args.plan()?, |flags| args.amend(flags), &args.beside_plans())
}

/// The work of a command of an extension beside the load.
struct Added<'a>(&'a dyn LoadArgs);

impl Workload for Added<'_> {
    fn amend(&mut self, flags: &mut PlanPatch) -> Result<(), Problem> {
        self.0.amend(flags)
    }

    fn conclude(&mut self, run: &mut SavedRun) -> Result<Exit, Failure> {
        let output = &self.0.run().output;
        for Note { code, text, is_told } in self.0.notes(&run.result) {
            // The report for people has all notes.
            if is_told && output.format() != OutputFormat::Text {
                messages::say(output.quiet)(&text);
            }
            run.result.notes.push(result::Note { code: code.to_owned(), text });
        }
        Ok(Exit::Success)
    }
}

/// The plan that the flags of a command stand for; `None` if it puts no load on anything.
///
/// # Errors
/// All problems of the flags.
pub(crate) fn printed(command: &WorkloadCommand) -> Result<Option<PrintedPlan>, Failure> {
    match command {
        WorkloadCommand::Crud(args) => crud::printed(args).map(Some),
        WorkloadCommand::Canister(args) => canister::printed(args).map(Some),
        WorkloadCommand::Ingest(args) if args.instead.is_some() => Ok(None),
        WorkloadCommand::Ingest(args) => ingest::printed(args).map(Some),
        WorkloadCommand::Ws(args) => websocket::printed(args).map(Some),
    }
}

/// Measurement of `plimsoll calibrate` in place of plain requests, if one is asked for.
pub(crate) fn comparison(args: &CalibratedArgs) -> Option<Comparison> {
    args.canister.then_some(canister::calibration::report as Comparison)
}
