//! The `plimsoll` command: flags to plan patches, what is printed, exit codes. Nothing else.
#![forbid(unsafe_code)]

mod audit;
mod cache;
mod cache_flags;
mod cache_target_flags;
mod calibrate;
mod calibrate_canister;
mod campaign;
mod canister;
mod canister_charts;
mod canister_flags;
mod certificate;
mod check;
mod cluster;
mod cluster_flags;
mod cluster_run;
mod command_word;
mod compare;
mod compare_flags;
mod control_flags;
mod control_port;
mod crud;
mod crud_flags;
mod demo;
mod describe;
mod diagnostics;
mod environment;
mod errand;
mod explain;
mod export_flags;
mod exports;
mod find;
mod find_flags;
mod flags;
mod foreign_file;
mod foreign_text;
mod guard;
mod help;
mod history;
mod import;
mod import_flags;
mod ingest;
mod ingest_demo;
mod ingest_demo_flags;
mod ingest_flags;
mod ingest_target_flags;
mod keys;
mod made_plan;
mod makers;
mod named;
mod output_flags;
mod outputs;
mod paired;
#[cfg(test)]
mod printed_commands;
mod printed_plan;
mod problems;
mod progress;
mod rate_file;
mod reference;
mod refusals;
mod repeat;
mod replica_flags;
mod report;
mod request_log;
mod result_files;
mod rotation;
mod run;
mod runs;
mod runs_flags;
mod saved_runs;
mod saving;
mod schema_flags;
mod screen;
mod script_host;
mod search;
mod serve;
mod setting_args;
mod share;
mod signals;
mod sink_flags;
mod sink_values;
mod sql_answer;
mod stats;
mod steering;
mod streams;
mod sweep;
mod target_flags;
mod terminal;
mod verification;
mod watch_flags;
mod wrk;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::FromArgMatches as _;
use plimsoll_driver::inherited;
use plimsoll_plan::{Disk, Problem, Problems, Refused, Source};

use crate::cluster_flags::ClusterCommand;
use crate::flags::{Cli, ColorChoice, Command, SchemaOf};
use crate::target_flags::TargetSpec;

/// Reason for the end of the process, which sets its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Ran, and the numbers can be believed.
    Success,
    /// The target could not be reached, or the system did not play along.
    Environment,
    /// No request succeeded, and there was no threshold.
    NothingSucceeded,
    /// Bad usage.
    Usage,
    /// The measurement is invalid.
    Invalid,
    /// A comparison found a change for the worse.
    Regression,
    /// A comparison decided nothing, and was asked to.
    Undecided,
    /// The system under test does not have what it should have.
    Inconsistent,
    /// A threshold does not hold.
    Thresholds,
    /// Ended by this signal, after the partial result was written.
    Interrupted(i32),
}

impl Exit {
    /// All codes, each by one that has it, with the signals that are heeded.
    pub(crate) const KINDS: [Self; 11] = [
        Self::Success,
        Self::Environment,
        Self::Usage,
        Self::Invalid,
        Self::Regression,
        Self::Undecided,
        Self::Inconsistent,
        Self::Thresholds,
        Self::Interrupted(signal_hook::consts::SIGHUP),
        Self::Interrupted(signal_hook::consts::SIGINT),
        Self::Interrupted(signal_hook::consts::SIGTERM),
    ];

    /// The code that the process ends with.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Environment | Self::NothingSucceeded => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::Regression => 4,
            Self::Undecided => 5,
            Self::Inconsistent => 6,
            Self::Thresholds => 99,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
        }
    }

    /// Returns its meaning, for the reference.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Success => "ran: thresholds hold, or there are none and requests succeeded",
            Self::Environment | Self::NothingSucceeded => {
                "no request succeeded (without a threshold), the target cannot be reached, or an unexpected error"
            }
            Self::Usage => "bad usage, a plan with errors, or an error in a script",
            Self::Invalid => {
                "no verdict: the measurement is invalid, not by the target's doing; `find`: the generator, or the time, was the limit"
            }
            Self::Regression => "`compare`: worse",
            Self::Undecided => "`compare --strict`: undecided",
            Self::Inconsistent => {
                "a check failed: the server does not have what it acknowledged, or takes no writes any more"
            }
            Self::Thresholds => {
                "a threshold does not hold, and that is proven; `find`: no rate that was tried holds"
            }
            Self::Interrupted(signal_hook::consts::SIGINT) => "interrupted by SIGINT (`^C`)",
            Self::Interrupted(signal_hook::consts::SIGHUP) => "the terminal has gone (SIGHUP)",
            Self::Interrupted(_) => "ended by SIGTERM",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

fn main() -> ExitCode {
    let mut color = ColorChoice::Auto;
    match parse().and_then(|cli| {
        let Some(cli) = cli else { return Ok(Exit::Success) };
        color = cli.color;
        streams::choose_color(color);
        dispatch(&cli)
    }) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            streams::choose_color(color);
            let color = environment::color(color, std::io::stderr().is_terminal());
            streams::to_stderr(&problems::render(&failure.problems, failure.source.as_deref(), color));
            failure.exit.into()
        }
    }
}

/// The command line; `None` if it only asked for help or the version, which is printed here.
fn parse() -> Result<Option<Cli>, Failure> {
    let args = command_word::with_command(std::env::args_os().collect()).map_err(Failure::usage)?;
    match command_word::command().try_get_matches_from(&args).and_then(|found| Cli::from_arg_matches(&found))
    {
        Ok(cli) => {
            if let Some(note) = command_word::habit(&args) {
                streams::to_stderr(&format!("note: {note}\n"));
            }
            Ok(Some(cli))
        }
        Err(error) => match problems::from_clap(&error, &args) {
            Some(problem) => Err(Failure::usage(problem)),
            None => {
                // A page of help whose reader has gone is no failure.
                let _ = error.print();
                Ok(None)
            }
        },
    }
}

/// Refuses a command whose result would go nowhere. Servers say what they have to say on stderr.
fn admit_stdout(command: &Command) -> Result<(), Failure> {
    if matches!(command, Command::Sink(_) | Command::Target(_)) || !inherited::stdout_was_closed() {
        return Ok(());
    }
    let problem = Problem::new("stdout is closed: the result would go nowhere");
    let hint = "redirect it to a file, or to /dev/null if it is not wanted";
    Err(Failure::environment(problem.with_hint(hint)))
}

fn dispatch(cli: &Cli) -> Result<Exit, Failure> {
    admit_stdout(&cli.command)?;
    let style = environment::style(cli.color);
    match &cli.command {
        Command::Run(args) => run::command(args, environment::look(cli.color), &style),
        Command::Cache(args) => cache::command(args, environment::look(cli.color), &style),
        Command::Crud(args) => crud::command(args, environment::look(cli.color), &style),
        Command::Canister(args) => canister::command(args, environment::look(cli.color), &style),
        Command::Ingest(args) => ingest::command(args, environment::look(cli.color), &style),
        Command::Check(args) => check::command(args),
        Command::Calibrate(args) => calibrate::command(args, &style),
        Command::Find(args) => find::command(args, &style),
        Command::Explain(args) => explain::command(args, &style),
        Command::Sink(args) => serve::command(args.to_spec(&Disk).map_err(Failure::usage)?),
        Command::Target(args) => match args.to_spec(&Disk).map_err(Failure::usage)? {
            TargetSpec::Sink(spec) => serve::command(spec),
            TargetSpec::Cache(spec) => serve::cache(spec),
            TargetSpec::Ingest(spec) => serve::ingest::command(spec),
            TargetSpec::CrudNode(spec) => serve::node::command(spec),
            TargetSpec::CrudCluster(spec) => serve::cluster::command(spec),
        },
        Command::Cluster(args) => match &args.what {
            ClusterCommand::Run(args) => cluster_run::command(args, environment::look(cli.color), &style),
            ClusterCommand::Check(args) => cluster_run::check(args),
            ClusterCommand::Up(args) => cluster::up(args),
            ClusterCommand::Down(args) => cluster::down(args),
            ClusterCommand::Status(args) => cluster::status(args),
            ClusterCommand::Guard(args) => guard::command(args),
        },
        Command::Demo(args) => demo::command(args, environment::look(cli.color), &style),
        Command::Import(args) => import::command(args),
        Command::Compare(args) => compare::command(args, &style),
        Command::Report(args) => report::command(args),
        Command::History(args) => history::command(args, &style),
        Command::Runs(args) => runs::list(args),
        Command::Show(args) => runs::show(args, &style),
        Command::Export(args) => runs::export(args, &style),
        Command::Rm(args) => runs::remove(args),
        Command::Schema(args) => schema(args.of),
        Command::Completions(args) => reference::completions(args),
        Command::Man(args) => reference::man(args),
        Command::Reference(args) => reference::reference(args),
    }
}

fn schema(of: SchemaOf) -> Result<Exit, Failure> {
    let schema = of.schema();
    run::to_stdout(|out| {
        serde_json::to_writer_pretty(&mut *out, &schema)?;
        out.write_all(b"\n")
    })?;
    Ok(Exit::Success)
}

/// Problems that end a command, and how the process ends for them.
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

    /// The system under test does not have what it should have.
    pub(crate) fn inconsistent(problem: Problem) -> Self {
        Self { problems: problem.into(), source: None, exit: Exit::Inconsistent }
    }

    /// The same of a plan that was made from flags, whose text nobody has seen: problems name the flags.
    fn by_flags(self, text: &str) -> Self {
        let mut problems = Problems::default();
        self.problems.iter().for_each(|problem| problems.push(made_plan::by_flag(problem, text)));
        Self { problems, ..self }
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
