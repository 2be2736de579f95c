//! `plimsoll agent`: waits for runs of a fleet, and carries out a shard of each.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::thread;

use plimsoll_document::Problem;
use plimsoll_engine::{Control, Stop};
use plimsoll_fleet::{
    AgentIdentity, AgentLimits, Departure, HostOptions, ServiceError, check_name, serve_agent,
};
use plimsoll_schedule::parse_rate;
use plimsoll_system::usage;

use crate::args::fleet_command::AgentArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::signals::SignalWatch;
use crate::base::{environment, streams};
use crate::session::calibration::thread_capacity;
use crate::session::fleet::broker::{connect, failure};

/// Name of the lock file in the folder of an agent.
const LOCK: &str = "lock";

/// The command. It serves until a signal ends it: the first in order, a second one at once.
pub(crate) fn command(args: &AgentArgs) -> Result<Exit, Failure> {
    let rate = args.max_rate.as_deref().map(parse_rate).transpose();
    let rate = rate.map_err(|error| Failure::usage(Problem::new(format!("--max-rate: {error}"))))?;
    let limits = AgentLimits {
        targets: args.allow.clone(),
        requests_per_s: rate.map(plimsoll_core::Rate::per_second_f64),
        scripts: args.allow_scripts.map(Into::into).unwrap_or_default(),
    };
    if !args.broker.has_credentials() && !args.insecure {
        let problem =
            Problem::new("an agent without a key takes orders from everybody who reaches the broker");
        let hint = "add --creds FILE with a key that `plimsoll fleet up` has made, or --insecure";
        return Err(Failure::usage(problem.with_hint(hint)));
    }
    let address = args.broker.address("agent").map_err(Failure::usage)?;
    let of_key = address.credentials.as_ref().and_then(|credentials| credentials.agent.clone());
    if let (Some(name), Some(of_key)) = (&args.name, &of_key)
        && name != of_key
    {
        let message = format!("--name: the key is that of agent {of_key}, not of {name}");
        return Err(Failure::usage(Problem::new(message).with_hint("leave out --name, or name its own key")));
    }
    let name = args.name.clone().or(of_key).unwrap_or_else(of_machine);
    check_name(&name).map_err(|error| Failure::usage(Problem::new(error.to_string())))?;
    let usual = || environment::data_folder().map(|folder| folder.join("agents").join(&name));
    let Some(folder) = args.folder.clone().or_else(usual) else {
        let problem = Problem::new("no folder for the runs of this agent: HOME is not set");
        return Err(Failure::usage(problem.with_hint("name one: --folder FOLDER")));
    };
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let _lock = lock(&folder)?;
    let options = HostOptions {
        program: environment::program(),
        environment: environment::without_settings(),
        folder,
        limits,
    };
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let identity = AgentIdentity {
        name: name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cores,
        thread_per_s: thread_capacity(),
    };
    let say = |text: &str| streams::to_stderr(&format!("agent {name}: {text}\n"));
    let control = Control::default();
    let of_signals = control.clone();
    let signals = SignalWatch::start(move || of_signals.clone(), |_| {})
        .map_err(|error| Failure::environment(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let link = connect(address)?;
    let departure = || match control.requested_stop() {
        Stop::No => Departure::No,
        Stop::Drain => Departure::InOrder,
        Stop::Now => Departure::AtOnce,
    };
    let served = serve_agent(identity, link, options, departure, say);
    served.map_err(|error| match error {
        ServiceError::Folder(error) => {
            Failure::environment(Problem::new(format!("the folder of the agent cannot be made: {error}")))
        }
        ServiceError::Link(error) => failure(&error),
    })?;
    Ok(signals.received().map_or(Exit::Success, Exit::Interrupted))
}

/// A valid name of an agent from the name of the machine.
fn of_machine() -> String {
    let name = usage::host().hostname;
    let name = name.split('.').next().unwrap_or_default();
    let word: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').collect();
    if word.is_empty() { "agent".to_owned() } else { word }
}

/// Locks the folder of the agent: two agents in one folder would mix up their runs.
fn lock(folder: &Path) -> Result<File, Failure> {
    let failure = |what: String| Failure::environment(Problem::new(what));
    let opened = fs::create_dir_all(folder)
        .and_then(|()| OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK)));
    let lock = opened.map_err(|error| failure(format!("{}: {error}", folder.display())))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(_) => {
            let problem = Problem::new(format!("another agent has the folder {}", folder.display()));
            Err(Failure::environment(problem.with_hint("give each a --name, or a --folder, of its own")))
        }
    }
}
