//! One run of one tool, measured from outside.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::child::{Running, Usage};
use crate::command::{self, Pinned};
use crate::failure::{Failure, Result};
use crate::machine::{self, CoreTime};
use crate::options::Peer;
use crate::reading::{self, Reading};
use crate::server::Server;
use crate::session::Session;

/// Time that a run may take beyond its length, for start-up and drain, before it counts as hung.
const GRACE: Duration = Duration::from_secs(60);
/// Plimsoll's exit code for a run that it calls invalid: still a measurement of its cost.
const INVALID: i32 = 3;

/// A load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Plimsoll,
    /// Against Redis, so that it can be no peer of the cases over HTTP.
    RedisBenchmark,
    Peer(Peer),
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plimsoll => "plimsoll",
            Self::Peer(Peer::Wrk) => "wrk",
            Self::Peer(Peer::H2load) => "h2load",
            Self::RedisBenchmark => "redis-benchmark",
        }
    }

    pub(crate) fn program(self, session: &Session) -> Result<PathBuf> {
        match self {
            Self::Plimsoll => Ok(session.plimsoll.clone()),
            Self::RedisBenchmark | Self::Peer(_) => command::find(self.name()),
        }
    }
}

/// A tool with its arguments, in which `{url}`, `{authority}`, `{host}`, `{port}` and `{seconds}` are
/// placeholders that a run fills in.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) tool: Tool,
    pub(crate) args: Vec<String>,
    /// The server fails on purpose: errors are not held against the run, but have to be accounted for.
    pub(crate) among_faults: bool,
    /// The URL goes to a plan file, by the variable `TARGET` of the environment.
    pub(crate) from_plan: bool,
}

impl Load {
    pub(crate) fn new<S: AsRef<str>>(tool: Tool, args: &[S]) -> Self {
        let args = args.iter().map(|arg| arg.as_ref().to_owned()).collect();
        Self { tool, args, among_faults: false, from_plan: false }
    }

    /// Plimsoll with one worker and the session's backend.
    pub(crate) fn plimsoll<S: AsRef<str>>(session: &Session, args: &[S]) -> Self {
        let mut load =
            Self::new(Tool::Plimsoll, &["run", "{url}", "-t", "1", "-d", "{seconds}s", "--output", "json"]);
        load.args.push("--quiet".to_owned());
        load.args.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        if let Some(backend) = &session.options.backend {
            load.args.extend(["--backend".to_owned(), backend.clone()]);
        }
        load
    }

    /// Plimsoll with one worker, the session's backend and a plan file, whose target is `${env(TARGET)}`.
    pub(crate) fn plan(session: &Session, plan: &Path, args: &[&str]) -> Self {
        let mut load = Self::plimsoll(session, args);
        for arg in load.args.iter_mut().filter(|arg| *arg == "{url}") {
            *arg = plan.display().to_string();
        }
        load.from_plan = true;
        load
    }

    fn read(&self, output: &str) -> Result<Reading> {
        match self.tool {
            Tool::Plimsoll if self.among_faults => reading::plimsoll_among_faults(output),
            Tool::Plimsoll => reading::plimsoll(output),
            Tool::Peer(Peer::Wrk) => reading::wrk(output),
            Tool::Peer(Peer::H2load) => reading::h2load(output),
            Tool::RedisBenchmark => reading::redis_benchmark(output),
        }
    }

    /// The command on the tools' core.
    pub(crate) fn pinned(&self, session: &Session, server: &Server, seconds: u32) -> Result<Pinned> {
        let (host, port) = server.authority().rsplit_once(':').unwrap_or_default();
        let fill = |arg: &String| {
            arg.replace("{url}", &server.url)
                .replace("{authority}", server.authority())
                .replace("{host}", host)
                .replace("{port}", port)
                .replace("{seconds}", &seconds.to_string())
        };
        let args: Vec<String> = self.args.iter().map(fill).collect();
        let mut pinned = session.on_tool_core(&self.tool.program(session)?, &args);
        if self.from_plan {
            pinned.environment.push(("TARGET", server.url.clone()));
        }
        Ok(pinned)
    }
}

/// Cost and result of one run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) usage: Usage,
    pub(crate) reading: Reading,
    /// Share of the tool's core, from 0 to 1, that went to other processes: the disturbance.
    pub(crate) foreign_share: f64,
    /// Share of its core, from 0 to 1, that the server used.
    pub(crate) server_share: f64,
    /// Share of the server's core, from 0 to 1, that went to other processes.
    pub(crate) server_foreign_share: f64,
    /// Resident memory in bytes at each moment that was asked for.
    pub(crate) resident_bytes: Vec<u64>,
}

impl Run {
    /// CPU time in user mode per completed request, in microseconds.
    pub(crate) fn user_us(&self) -> f64 {
        self.usage.user_us / self.reading.completed as f64
    }

    /// CPU time in the kernel per completed request, in microseconds.
    pub(crate) fn sys_us(&self) -> f64 {
        self.usage.sys_us / self.reading.completed as f64
    }

    /// CPU time per completed request, in microseconds.
    pub(crate) fn total_us(&self) -> f64 {
        self.user_us() + self.sys_us()
    }

    /// Peak of the resident memory, in MiB.
    pub(crate) fn peak_mib(&self) -> f64 {
        self.usage.rss_peak_bytes as f64 / f64::from(1 << 20)
    }
}

/// Runs `load` for `seconds`, and looks at its memory at the given seconds after its start.
pub(crate) fn run(
    session: &Session,
    server: &Server,
    load: &Load,
    seconds: u32,
    looks: &[u32],
) -> Result<Run> {
    let name = load.tool.name();
    let pinned = load.pinned(session, server, seconds)?;
    let failed = |error: &dyn std::fmt::Display| Failure::because(format!("`{pinned}`"), error);
    let [output, errors] = ["out", "err"].map(|end| session.directory().join(format!("{name}.{end}")));
    let mut command = pinned.command();
    command.stdin(Stdio::null());
    command.stdout(File::create(&output).map_err(|error| failed(&error))?);
    command.stderr(File::create(&errors).map_err(|error| failed(&error))?);

    let options = &session.options;
    let tool_core = CoreTime::read(options.tool_core)?;
    let server_core = CoreTime::read(options.server_core)?;
    let server_cpu_us = server.cpu_us()?;
    let running = Running::start(&mut command).map_err(|error| failed(&error))?;
    let mut resident_bytes = Vec::new();
    let mut passed = 0;
    for look in looks {
        let pause = Duration::from_secs(u64::from(look.saturating_sub(passed)));
        if running.ends_within(pause).map_err(|error| failed(&error))? {
            break;
        }
        resident_bytes.push(machine::resident_bytes(running.pid())?);
        passed = *look;
    }
    let limit = Duration::from_secs(u64::from(seconds)) + GRACE;
    let usage = running.finish(limit).map_err(|error| failed(&error))?;
    let tool_core = CoreTime::read(options.tool_core)?.since(tool_core);
    let server_core = CoreTime::read(options.server_core)?.since(server_core);
    let server_cpu_us = server.cpu_us()? - server_cpu_us;

    let said = |path| fs::read_to_string(path).unwrap_or_default();
    let accepted = usage.code == 0 || (load.tool == Tool::Plimsoll && usage.code == INVALID);
    if !accepted {
        return Err(failed(&format!("exit code {}: {}", usage.code, said(&errors).trim())));
    }
    let reading = load.read(&said(&output)).map_err(|error| failed(&error))?;
    Ok(Run {
        usage,
        reading,
        foreign_share: tool_core.foreign_share(usage.user_us + usage.sys_us),
        server_share: server_cpu_us / server_core.total_us.max(1.0),
        server_foreign_share: server_core.foreign_share(server_cpu_us),
        resident_bytes,
    })
}

/// Runs of several loads by their names, in turn and each pair in the other order, as often as is asked for.
pub(crate) fn in_turn<const LOADS: usize>(
    session: &Session,
    server: &Server,
    loads: &[(&str, Load); LOADS],
) -> Result<[Vec<Run>; LOADS]> {
    let mut runs = std::array::from_fn(|_| Vec::new());
    for pair in 0..session.options.pairs {
        let mut turns: Vec<usize> = (0..LOADS).collect();
        if pair % 2 == 1 {
            turns.reverse();
        }
        for turn in turns {
            runs[turn].push(run(session, server, &loads[turn].1, session.options.seconds, &[])?);
        }
    }
    Ok(runs)
}

#[cfg(test)]
impl Run {
    /// A run without disturbance.
    pub(crate) fn undisturbed(user_us: f64, sys_us: f64, reading: Reading) -> Self {
        let usage = Usage { code: 0, user_us, sys_us, rss_peak_bytes: 5 << 20 };
        let (foreign_share, server_share, server_foreign_share) = (0.02, 0.95, 0.01);
        Self { usage, reading, foreign_share, server_share, server_foreign_share, resident_bytes: Vec::new() }
    }
}
