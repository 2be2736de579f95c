//! The `plimsoll` command as a library: turns flags into plan patches, prints, and sets exit codes. Nothing
//! else. The binary calls [`main`].
//!
//! Its modules are floors. Each uses itself and those before it: `base`, `args`, `session`, `experiment`,
//! `workload`, `command`.
#![forbid(unsafe_code)]

mod args;
mod base;
mod command;
mod experiment;
mod session;
mod workload;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::FromArgMatches as _;
use plimsoll_document::Problem;
use plimsoll_plan::Disk;
use plimsoll_system::inherited;
pub use plimsoll_web::Example;

pub use crate::args::extension::{
    Alternative, Amend, Extension, ImportSource, Importer, ImporterArgs, LoadArgs, LoadCommand, LoadGroup,
    Note, RunningServer, SERVICE_GROUP, ServerSpec, ServiceCodes, SinkService, SinkServiceArgs, StartServer,
    TargetServer, TargetServerArgs, install,
};
pub use crate::args::imported_file::NamingFileArgs;
pub use crate::args::named::named;
pub use crate::args::run::RunArgs;
pub use crate::args::server::host::{Host, HostArgs, running};
pub use crate::args::server::sink::{Place, PlaceArgs, parse_seed};
pub use crate::args::server::sink_values::{
    Reader, parse_delay, parse_endpoint, parse_positive, parse_share, whole,
};
pub use crate::args::workload::key_value::{KeyArgs, hits_note, of_flag};
pub use crate::base::advice::{Advice, OtherProgram};
pub use crate::base::certificate::self_signed;
pub use crate::base::failure::Failure;
pub use crate::base::messages::{Notify, say};
pub use crate::base::plan_parts::plan_parts;
pub use crate::base::wording::{percent, url};
pub use crate::command::inspect;
pub use crate::session::built_in_sink::ANOTHER_PORT;
pub use crate::workload::auxiliary_request::{Answer, answers_before, once, reason, transport};

use crate::args::cli::{Cli, Command};
use crate::args::fleet_command::FleetCommand;
use crate::args::schema::SchemaOf;
use crate::args::server::target::TargetSpec;
use crate::args::workload::cluster::ClusterCommand;
use crate::args::{command_word, misplaced_body, other_programs};
use crate::base::color::ColorChoice;
use crate::base::exit::Exit;
use crate::base::{environment, problems, process, stdout, streams};
use crate::command::{
    agent, check, cluster, cluster_run, compare, demo, explain, fleet, guard, history, import, record,
    reference, report, runs, serve, try_once, ui, verify,
};
use crate::experiment::{ab, calibrate, find, run};
use crate::workload::printed_plan;

/// Runs the program with these extensions: reads its arguments and environment, does what they ask for, and
/// returns its exit code.
pub fn main(extensions: &'static [Extension]) -> ExitCode {
    install(extensions);
    // A file that may not grow is an error that is told, and no end without figures.
    plimsoll_system::child::survive_file_limits();
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
            let typed = command_word::with_command(std::env::args_os().collect()).unwrap_or_default();
            let problems = command_word::as_typed(&failure.problems, &typed);
            streams::to_stderr(&problems::render(&problems, failure.source.as_deref(), color));
            failure.exit.into()
        }
    }
}

/// The command line; `None` if it only asked for help or the version, which is printed here.
fn parse() -> Result<Option<Cli>, Failure> {
    let args = command_word::with_command(std::env::args_os().collect()).map_err(Failure::usage)?;
    let mut command = command_word::command();
    let found = command.try_get_matches_from_mut(&args);
    if let Some(problem) = found.as_ref().ok().and_then(|found| misplaced_body::problem(&command, found)) {
        return Err(Failure::usage(problem));
    }
    match found.and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => {
            for note in command_word::habits(&args) {
                streams::to_stderr(&format!("note: {note}\n"));
            }
            Ok(Some(cli))
        }
        Err(error) => {
            match problems::from_clap(&error, &args, &command, command_word::makes_run(&args), |flag| {
                other_programs::owner(flag, &args)
            }) {
                Some(problem) => Err(Failure::usage(other_programs::led_on(problem))),
                None => {
                    // A reader that closes the help early is not a failure.
                    let _ = error.print();
                    Ok(None)
                }
            }
        }
    }
}

/// Refuses a command whose result would go nowhere. Servers say what they have to say on stderr.
fn admit_stdout(command: &Command) -> Result<(), Failure> {
    if matches!(command, Command::Agent(_) | Command::Sink(_) | Command::Target(_) | Command::Ui(_))
        || !inherited::stdout_was_closed()
    {
        return Ok(());
    }
    let problem = Problem::new("stdout is closed: the result would go nowhere");
    let hint = "redirect it to a file, or to /dev/null if it is not wanted";
    Err(Failure::environment(problem.with_hint(hint)))
}

/// Returns `true` if this is a server that is to end with its parent, which has ended already.
fn is_abandoned(command: &Command) -> bool {
    let is_server = matches!(command, Command::Sink(_) | Command::Target(_));
    is_server && environment::ends_with().is_some_and(|parent| !process::end_with(parent))
}

fn dispatch(cli: &Cli) -> Result<Exit, Failure> {
    admit_stdout(&cli.command)?;
    if is_abandoned(&cli.command) {
        return Ok(Exit::Success);
    }
    let style = environment::style(cli.color);
    match &cli.command {
        Command::Run(args) if args.print_plan => printed_plan::of_run(&args.run)?.show(args.run.output.quiet),
        Command::Run(args) => run::command(&args.run, environment::look(cli.color), &style),
        Command::Added(load) => workload::added(load, environment::look(cli.color), &style),
        Command::Workload(args) => workload::command(args, environment::look(cli.color), &style),
        Command::Check(args) => check::command(args),
        Command::Calibrate(args) => calibrate::command(args, workload::comparison(&args.instead), &style),
        Command::Find(args) if args.print_plan => printed_plan::of_find(args)?.show(args.output.quiet),
        Command::Find(args) => find::command(args, &style),
        Command::Explain(args) => explain::command(args, &style),
        Command::Try(args) => try_once::command(args),
        Command::Ui(args) => ui::command(args),
        Command::Sink(args) => serve::command(args.to_spec(&Disk).map_err(Failure::usage)?),
        Command::Target(args) => match args.to_spec(&Disk).map_err(Failure::usage)? {
            TargetSpec::Sink(spec) => serve::command(spec),
            TargetSpec::Added(name, spec) => serve::added(name, spec),
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
        Command::Agent(args) => agent::command(args),
        Command::Fleet(args) => match &args.what {
            FleetCommand::Up(args) => fleet::up(args),
            FleetCommand::Down(args) => fleet::down(args),
            FleetCommand::List(args) => fleet::list(args),
            FleetCommand::Run(args) => fleet::run(args, environment::look(cli.color), &style),
            FleetCommand::Collect(args) => fleet::collect(args, &style),
        },
        Command::Demo(args) => demo::command(args, environment::look(cli.color), &style),
        Command::Import(args) => import::command(args),
        Command::Record(args) => record::command(args),
        Command::Compare(args) => compare::command(args, &style),
        Command::Ab(args) => ab::command(args, &style),
        Command::Report(args) => report::command(args),
        Command::History(args) => history::command(args, &style),
        Command::Runs(args) => runs::list(args, &style),
        Command::Show(args) => runs::show(args, &style),
        Command::Export(args) => runs::export(args, &style),
        Command::Verify(args) => verify::command(args),
        Command::Merge(args) => runs::merge(args, &style),
        Command::Rm(args) => runs::remove(args),
        Command::Schema(args) => schema(args.of),
        Command::Completions(args) => reference::completions(args),
        Command::Man(args) => reference::man(args),
        Command::Reference(args) => reference::reference(args),
    }
}

fn schema(of: SchemaOf) -> Result<Exit, Failure> {
    let schema = of.schema();
    stdout::to_stdout(|out| {
        serde_json::to_writer_pretty(&mut *out, &schema)?;
        out.write_all(b"\n")
    })?;
    Ok(Exit::Success)
}
