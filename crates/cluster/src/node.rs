//! One node: its process, from its start to its end.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plimsoll_core::Nanos;
use plimsoll_system::clock;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};

use crate::error::{ClusterError, of_file};
use crate::process_tag::{self, ProcessTag};

/// Poll interval while a process ends.
const LOOK: Nanos = Nanos::from_millis(5);

/// Everything needed to start a node.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) id: String,
    pub(crate) command: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) folder: PathBuf,
    pub(crate) log: PathBuf,
    /// Time between SIGTERM and SIGKILL.
    pub(crate) grace: Nanos,
}

/// A node, which may run.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) launch: Launch,
    pub(crate) mark: ProcessTag,
    child: Option<Child>,
}

impl Node {
    /// One that was not started yet.
    pub(crate) fn new(launch: Launch, cluster: &str) -> Self {
        let mark = ProcessTag::of_node(cluster, &launch.id);
        Self { launch, mark, child: None }
    }

    /// Starts it in a process group of its own, with its log as output.
    pub(crate) fn start(&mut self) -> Result<(), ClusterError> {
        let Launch { id, command, arguments, environment, folder, log, .. } = &self.launch;
        let output = OpenOptions::new().append(true).create(true).open(log).map_err(of_file("write", log))?;
        let also = output.try_clone().map_err(of_file("write", log))?;
        let (variable, value) = self.mark.entry().split_once('=').unwrap_or_default();
        let spawned = Command::new(program(command))
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .env(variable, value)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(also)
            .process_group(0)
            .spawn();
        let error = |error| ClusterError::Start { node: id.clone(), command: command.clone(), error };
        self.child = Some(spawned.map_err(error)?);
        Ok(())
    }

    /// The number of its first process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// When that began.
    pub(crate) fn began(&self) -> Option<u64> {
        process_tag::began(self.pid()?)
    }

    /// Returns the exit status of the first process, in words; `None` if it runs, or was never started.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        Some(status.to_string())
    }

    /// Returns `true` if the first process runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.is_some() && self.ended().is_none()
    }

    /// Sends a signal to its process group, and to the processes that have left it. The number of the group
    /// is not another one's before its first process was waited for.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.runs() {
            let group = self.pid().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
            // It fails only for a group that has just ended.
            let _ = group.map(|group| kill_process_group(group, signal));
        }
    }

    /// Ends it by SIGKILL, and everything that it has started; returns when all of that is gone.
    pub(crate) fn kill(&mut self) -> Result<(), ClusterError> {
        self.signal(Signal::KILL);
        if let Some(mut child) = self.child.take() {
            // It fails only for a process that was waited for before.
            let _ = child.wait();
        }
        self.mark.kill().map_err(|left| ClusterError::System {
            what: "cannot kill the processes of a node",
            error: std::io::Error::other(format!("{left} of node {} are left", self.launch.id)),
        })
    }

    /// Ends it by SIGTERM, and by SIGKILL if it takes longer than it may.
    pub(crate) fn end(&mut self) -> Result<(), ClusterError> {
        self.signal(Signal::TERM);
        // A stopped process would not handle the first signal.
        self.signal(Signal::CONT);
        let until = clock::monotonic() + self.launch.grace;
        while self.runs() && clock::monotonic() < until {
            clock::sleep_until(clock::monotonic() + LOOK);
        }
        self.kill()
    }

    /// Limits how large files may become for all of its processes, in bytes; `None` lifts the limit.
    pub(crate) fn limit_files(&self, largest: Option<u64>) {
        for pid in self.mark.processes() {
            let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
            // The hard limit stays, so that the soft one can be raised again.
            let limit = Rlimit { current: largest, maximum: None };
            // A process that has just ended has no files.
            let _ = prlimit(Some(pid), Resource::Fsize, limit);
        }
    }
}

/// A program with a path, as an absolute one: the node has another working directory than we do.
fn program(command: &str) -> PathBuf {
    match command.contains('/') {
        true => std::path::absolute(command).unwrap_or_else(|_| Path::new(command).to_owned()),
        false => PathBuf::from(command),
    }
}
