//! The guard of a cluster: a process that ends it when the one that has started it is gone, however that
//! went.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use plimsoll_cluster::process_tag::ProcessTag;
use plimsoll_document::Problem;

use crate::args::workload::cluster::GuardArgs;
use crate::base::environment;
use crate::base::exit::Exit;
use crate::base::failure::Failure;

/// Message to the guard: the cluster outlives this process.
const KEEP: &str = "keep\n";

/// A guard that watches over a cluster. When this is dropped, everything of the cluster is ended.
pub(crate) struct Guard {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Guard {
    /// Begins to watch over the processes that will be known by this name. The guard has a process group of
    /// its own, so that signals from the terminal do not end it.
    pub(crate) fn begin(id: &str) -> Result<Self, Failure> {
        let spawned = Command::new(environment::program())
            .args(["cluster", "guard", id])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let mut child = spawned.map_err(|error| {
            Failure::environment(Problem::new(format!("cannot start the guard of the cluster: {error}")))
        })?;
        let stdin = child.stdin.take();
        Ok(Self { child, stdin })
    }

    /// Lets the cluster go on without us.
    pub(crate) fn dismiss(mut self) {
        if let Some(mut stdin) = self.stdin.take() {
            // If the guard has gone, it has ended the cluster already.
            let _ = stdin.write_all(KEEP.as_bytes());
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stdin = None;
        // The guard is our own child.
        let _ = self.child.wait();
    }
}

/// The command of the guard's own process: waits for the end of stdin, which means the end of the process at
/// the other end of the pipe.
pub(crate) fn command(args: &GuardArgs) -> Result<Exit, Failure> {
    let mut told = Vec::new();
    // A read error ends the wait, too.
    let _ = std::io::stdin().lock().read_to_end(&mut told);
    if told == KEEP.as_bytes() {
        return Ok(Exit::Success);
    }
    ProcessTag::of_cluster(&args.id).kill().map_err(|left| {
        Failure::environment(Problem::new(format!("{left} processes of the cluster cannot be ended")))
    })?;
    Ok(Exit::Success)
}
