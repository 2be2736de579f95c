//! Command lines looked at without being carried out.

use std::sync::LazyLock;

use clap::FromArgMatches as _;
use plimsoll_document::Problems;
use plimsoll_plan::{Disk, Plan};
use plimsoll_targets::SinkOptions;

use crate::args::cli::{Cli, Command};
use crate::args::command_word;
use crate::base::failure::Failure;
use crate::session::request::PlanRequest;
use crate::workload;
use crate::workload::printed_plan::{self, PrintedPlan};

/// The plan that the flags of a command stand for.
#[derive(Debug)]
pub struct Printed {
    /// Text that `--print-plan` prints.
    pub yaml: String,
    /// Settings that a plan cannot contain, such as credentials, and the flags that set them.
    pub notes: Vec<String>,
    /// The plan that is run without `--print-plan`.
    pub plan: Plan,
}

/// Reads a command line, without the name of the program, as far as that is possible without a server or a
/// history.
///
/// # Errors
/// Everything that is wrong with it, in words.
pub fn read(words: &[String]) -> Result<(), String> {
    let cli = parse(words)?;
    let said = |failure: Failure| said(&failure.problems);
    let problems = |problems: Problems| self::said(&problems);
    match &cli.command {
        Command::Run(args) => {
            args.run.control.to_spec(None).map_err(problems)?;
            args.run.live.rotation().map_err(problems)?;
            PlanRequest::named(&args.run.plan, true).resolve().map(drop).map_err(said)
        }
        Command::Check(args) | Command::Explain(args) | Command::Try(args) => {
            PlanRequest::named(&args.plan, true).resolve().map(drop).map_err(said)
        }
        Command::Workload(args) => workload::printed(args).map(drop).map_err(said),
        Command::Added(load) => workload::printed_of(load).map(drop).map_err(said),
        Command::Sink(args) => args.to_spec(&Disk).map(drop).map_err(problems),
        Command::Target(args) => args.to_spec(&Disk).map(drop).map_err(problems),
        Command::Compare(args) => args.to_question().map(drop).map_err(problems),
        Command::Ab(args) => args.to_question().map(drop).map_err(problems),
        // The files that the other commands name do not exist here.
        _ => Ok(()),
    }
}

/// The plan that the flags of a command line stand for. `Ok(None)`: the command puts no load on anything.
///
/// # Errors
/// The problems of the flags. The outer error is that of a command line that cannot be read.
pub fn printed(words: &[String]) -> Result<Result<Option<Printed>, Problems>, String> {
    let printed = match &parse(words)?.command {
        Command::Workload(args) => workload::printed(args),
        Command::Added(load) => workload::printed_of(load).map(Some),
        Command::Run(args) => printed_plan::of_run(&args.run).map(Some),
        Command::Find(args) => printed_plan::of_find(args).map(Some),
        _ => Ok(None),
    };
    let shown = |PrintedPlan { yaml, notes, resolved }| Printed { yaml, notes, plan: resolved.plan };
    Ok(printed.map(|printed| printed.map(shown)).map_err(|failure| failure.problems))
}

/// The options of the server that the flags of `plimsoll sink` stand for.
///
/// # Errors
/// The problems of the flags. The outer error is that of a command line that cannot be read.
pub fn sink(words: &[String]) -> Result<Result<SinkOptions, Problems>, String> {
    match &parse(words)?.command {
        Command::Sink(args) => Ok(args.to_spec(&Disk).map(|spec| spec.options)),
        _ => Err("it is not `plimsoll sink`".to_owned()),
    }
}

/// The commands with their flags, as clap has them.
pub fn commands() -> &'static clap::Command {
    // Made once: that takes longer than reading a line.
    static COMMANDS: LazyLock<clap::Command> = LazyLock::new(|| {
        let mut command = command_word::command();
        command.build();
        command
    });
    &COMMANDS
}

fn parse(words: &[String]) -> Result<Cli, String> {
    let args = std::iter::once("plimsoll").chain(words.iter().map(String::as_str)).map(Into::into).collect();
    let args = command_word::with_command(args).map_err(|problem| problem.message)?;
    let found = commands().clone().try_get_matches_from(args).map_err(|error| error.to_string())?;
    Cli::from_arg_matches(&found).map_err(|error| error.to_string())
}

fn said(problems: &Problems) -> String {
    problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; ")
}
