//! The `plimsoll` command: flags to plan patches, what is printed, exit codes. Nothing else.
#![forbid(unsafe_code)]

mod calibrate;
mod campaign;
mod certificate;
mod check;
mod compare;
mod compare_flags;
mod control_flags;
mod control_port;
mod demo;
mod describe;
mod diagnostics;
mod environment;
mod explain;
mod find;
mod find_flags;
mod flags;
mod history;
mod import;
mod import_flags;
mod keys;
mod makers;
mod problems;
mod progress;
mod rate_file;
mod repeat;
mod report;
mod request_log;
mod result_files;
mod run;
mod runs;
mod runs_flags;
mod saved_runs;
mod saving;
mod script_flags;
mod script_host;
mod serve;
mod signals;
mod sink_flags;
mod sink_values;
mod stats;
mod steering;
mod sweep;
mod target_flags;
mod wrk;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use plimsoll_plan::{Disk, Document, Problem, Problems, Refused, Source};

use crate::flags::{Cli, ColorChoice, Command, SchemaOf};

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Ran, and the numbers can be believed.
    Success,
    /// The target could not be reached, or the system did not play along.
    Environment,
    /// Bad usage.
    Usage,
    /// The measurement is invalid.
    Invalid,
    /// A comparison found a change for the worse.
    Regression,
    /// A comparison decided nothing, and was asked to.
    Undecided,
    /// A threshold failed on a valid run.
    Thresholds,
    /// Ended by this signal, after the partial result was written.
    Interrupted(i32),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => Self::SUCCESS,
            Exit::Environment => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Invalid => Self::from(3),
            Exit::Regression => Self::from(4),
            Exit::Undecided => Self::from(5),
            Exit::Thresholds => Self::from(99),
            Exit::Interrupted(signal) => Self::from(u8::try_from(128 + signal).unwrap_or(1)),
        }
    }
}

fn main() -> ExitCode {
    let mut color = ColorChoice::Auto;
    match parse().and_then(|cli| {
        let Some(cli) = cli else { return Ok(Exit::Success) };
        color = cli.color;
        dispatch(&cli)
    }) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let color = environment::color(color, std::io::stderr().is_terminal());
            // Where there is no stderr there is no one to tell.
            let _ = std::io::stderr()
                .write_all(problems::render(&failure.problems, failure.source.as_deref(), color).as_bytes());
            failure.exit.into()
        }
    }
}

/// The command line; `None` if it only asked for help or the version, which is printed here.
fn parse() -> Result<Option<Cli>, Failure> {
    let args = flags::with_command(std::env::args_os().collect()).map_err(Failure::usage)?;
    match Cli::try_parse_from(args) {
        Ok(cli) => Ok(Some(cli)),
        Err(error) => match problems::from_clap(&error) {
            Some(problem) => Err(Failure::usage(problem)),
            None => {
                // A page of help whose reader has gone is no failure.
                let _ = error.print();
                Ok(None)
            }
        },
    }
}

fn dispatch(cli: &Cli) -> Result<Exit, Failure> {
    let style = environment::style(cli.color);
    match &cli.command {
        Command::Run(args) => run::command(args, &style),
        Command::Check(args) => check::command(args),
        Command::Calibrate(args) => calibrate::command(args, &style),
        Command::Find(args) => find::command(args, &style),
        Command::Explain(args) => explain::command(args, &style),
        Command::Sink(args) => serve::command(args.to_spec(&Disk).map_err(Failure::usage)?),
        Command::Target(args) => serve::command(args.to_spec(&Disk).map_err(Failure::usage)?),
        Command::Demo(args) => demo::command(args, &style),
        Command::Import(args) => import::command(args),
        Command::Compare(args) => compare::command(args, &style),
        Command::Report(args) => report::command(args),
        Command::History(args) => history::command(args, &style),
        Command::Runs(args) => runs::list(args),
        Command::Show(args) => runs::show(args, &style),
        Command::Export(args) => runs::export(args, &style),
        Command::Rm(args) => runs::remove(args),
        Command::Schema(args) => schema(args.of),
    }
}

fn schema(of: SchemaOf) -> Result<Exit, Failure> {
    let schema = match of {
        SchemaOf::Result => plimsoll_report::schema_result(),
        SchemaOf::Calibration => plimsoll_report::schema_calibration(),
        SchemaOf::Sweep => plimsoll_report::schema_sweep(),
        SchemaOf::Capacity => plimsoll_report::schema_capacity(),
        SchemaOf::Comparison => plimsoll_report::schema_comparison(),
        SchemaOf::Repeated => plimsoll_report::schema_repeated(),
        SchemaOf::History => plimsoll_report::schema_history(),
        SchemaOf::Plan => Document::schema(),
    };
    run::to_stdout(|out| {
        serde_json::to_writer_pretty(&mut *out, &schema)?;
        out.write_all(b"\n")
    })?;
    Ok(Exit::Success)
}

/// What went wrong, and how to end for it.
#[derive(Debug)]
pub(crate) struct Failure {
    problems: Problems,
    /// The plan file that their places are in.
    source: Option<Box<Source>>,
    exit: Exit,
}

impl Failure {
    /// The command makes no sense as it was given.
    pub(crate) fn usage(problems: impl Into<Problems>) -> Self {
        Self { problems: problems.into(), source: None, exit: Exit::Usage }
    }

    /// The command makes sense, but could not be carried out here and now.
    pub(crate) fn environment(problem: Problem) -> Self {
        Self { problems: problem.into(), source: None, exit: Exit::Environment }
    }
}

impl From<Refused> for Failure {
    fn from(Refused { problems, source }: Refused) -> Self {
        Self { problems, source: source.map(Box::new), exit: Exit::Usage }
    }
}
