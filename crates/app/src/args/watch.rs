//! The flags that name servers to watch beside the load.

use clap::Args;
use plimsoll_document::{Problem, Problems};
use plimsoll_monitor::{DESCRIPTORS_PER_SERVER, Named, is_there};

use crate::base::failure::Failure;

/// Servers whose processes are watched.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WatchArgs {
    /// Watch a server on this machine by its process number, with its workers: CPU, memory, disk; repeatable
    ///
    /// Its descendants count as the same server. CPU time, memory, threads, descriptors and disk are in every
    /// interval and in the report. What listens on the target's address is watched without being named.
    #[arg(
        long,
        value_name = "PID",
        alias = "watch",
        hide_short_help = true,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    watch_pid: Vec<u32>,
    /// Watch all processes with this name as one server, also those started later; repeatable
    ///
    /// The name is that in /proc/PID/comm or the file name of the program. See --watch-pid.
    #[arg(
        long,
        value_name = "NAME",
        hide_short_help = true,
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    watch_process: Vec<String>,
}

impl WatchArgs {
    /// The servers, each once.
    ///
    /// # Errors
    /// If one is not there.
    pub(crate) fn named(&self) -> Result<Vec<Named>, Failure> {
        let (mut found, mut problems) = (Vec::new(), Problems::default());
        let pids = self.watch_pid.iter().copied().map(Named::Pid);
        for named in pids.chain(self.watch_process.iter().cloned().map(Named::Name)) {
            if found.contains(&named) {
                continue;
            }
            if !is_there(&named) {
                problems.push(absent(&named));
            }
            found.push(named);
        }
        if problems.is_empty() { Ok(found) } else { Err(Failure::usage(problems)) }
    }

    /// Descriptors that watching them takes at most.
    pub(crate) fn descriptors(&self) -> u32 {
        (self.watch_pid.len() + self.watch_process.len()) as u32 * DESCRIPTORS_PER_SERVER
    }
}

fn absent(named: &Named) -> Problem {
    match named {
        Named::Pid(pid) => {
            Problem::new(format!("--watch-pid {pid}: there is no such process on this machine"))
                .with_hint("start the server first, and give its process number; or use --watch-process NAME")
        }
        Named::Name(name) | Named::Marked { name, .. } => Problem::new(format!(
            "--watch-process {name}: no process on this machine has this name"
        ))
        .with_hint(
            "start the server first; its name is that in /proc/PID/comm, or the file name of its program",
        ),
    }
}
