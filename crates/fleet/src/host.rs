//! The host of an agent: each run is a process of its own, `plimsoll run`, that waits for its start.
//!
//! A run that fails leaves the agent running; a run ends with its agent, because its standard input
//! does. It is steered through its control port, and its counts are read from the history that it is saved
//! in: while it goes on, at its end, and long after that.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use plimsoll_core::text::hex;
use plimsoll_report::SavedRun;
use plimsoll_report::saved::interval_line_to_bytes;
use plimsoll_store::{Store, Tag};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::agent::{AgentAction, HostEvent, share_of};
use crate::control_port::ControlPort;
use crate::limits::AgentLimits;
use crate::message::{End, Line, Prepare, Steer, SteerCommand, TOO_LATE, Unsteered};

/// Longest time for a process to be ready: names of targets are resolved, and data is read.
const READY: Duration = Duration::from_secs(170);
/// Interval between two checks of whether it is.
const LOOK: Duration = Duration::from_millis(50);
/// Interval between two lines.
const LINE: Duration = Duration::from_secs(1);
/// Longest wait for the end of a process that was killed: one that waits for a device in the kernel may not
/// end.
const KILLED: Duration = Duration::from_secs(5);
/// Last messages of a process that are kept.
const MESSAGES: usize = 20;
/// Exit code of a usage error.
const USAGE: i32 = 2;
/// The tag by which the runs of a fleet are found in the history of an agent.
const TAG: &str = "fleet";

/// The machine of an agent: starts its processes, and keeps their files.
#[derive(Clone)]
pub struct HostOptions {
    /// The program.
    pub program: PathBuf,
    /// Folder of the files of runs, and of the history.
    pub folder: PathBuf,
    /// Environment of processes: the variables that plans name by `${env(NAME)}`, without settings.
    pub environment: Vec<(String, String)>,
    /// Limits of every run.
    pub limits: AgentLimits,
}

/// Without secrets.
impl fmt::Debug for HostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostOptions").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Starts the processes of an agent, one for each share.
#[derive(Debug)]
pub struct Host {
    options: HostOptions,
    /// A random token for the control port of each process.
    token: String,
    events: Sender<(String, HostEvent)>,
    processes: BTreeMap<String, Commands>,
}

/// The way to the thread of a process.
#[derive(Debug)]
struct Commands {
    wishes: UnboundedSender<Wish>,
    /// Lines for the standard input of the process, which wait for nothing else.
    leases: UnboundedSender<String>,
}

/// A command to the thread of a process.
#[derive(Debug)]
enum Wish {
    Start { at_unix_ns: u64, from_ns: u64 },
    Steer(Steer),
    Values { number: u64, values: Vec<u8> },
    TakePart,
    Kill,
    Discard,
}

impl Host {
    /// A host without a process. Its events go to `events`, each with its run.
    ///
    /// # Errors
    /// Its folder cannot be made, or there are no random numbers.
    pub fn new(options: HostOptions, events: Sender<(String, HostEvent)>) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&options.folder)?;
        Ok(Self { options, token: random_word()?, events, processes: BTreeMap::new() })
    }

    /// Carries out the actions of the agent, except for messages.
    pub fn carry_out(&mut self, action: AgentAction) {
        let (run, wish) = match action {
            AgentAction::Publish { .. } => return,
            AgentAction::Spawn { run, prepare, files } => return self.spawn(run, *prepare, &files),
            AgentAction::Collect { run } => {
                let saved = saved_shares(&self.options.folder.join(HISTORY), &run).unwrap_or_default();
                return self.tell(run.clone(), HostEvent::Collected { run, saved });
            }
            AgentAction::Lease { run, until_ns } => {
                if let Some(process) = self.processes.get(&run) {
                    // One that has ended needs none.
                    let _ = process.leases.send(format!("lease {until_ns}\n"));
                }
                return;
            }
            AgentAction::Start { run, at_unix_ns, from_ns } => (run, Wish::Start { at_unix_ns, from_ns }),
            AgentAction::Steer { run, steer } => (run, Wish::Steer(steer)),
            AgentAction::Values { run, number, values } => (run, Wish::Values { number, values }),
            AgentAction::TakePart { run } => (run, Wish::TakePart),
            AgentAction::Kill { run } => (run, Wish::Kill),
            AgentAction::Discard { run } => (run, Wish::Discard),
        };
        let is_last = matches!(wish, Wish::Discard);
        if self.processes.get(&run).is_some_and(|process| process.wishes.send(wish).is_err()) || is_last {
            self.processes.remove(&run);
        }
    }

    /// Ends all processes at once.
    pub fn end(&mut self) {
        for (_, process) in std::mem::take(&mut self.processes) {
            // One that has ended already has no receiver.
            let _ = process.wishes.send(Wish::Discard);
        }
    }

    fn tell(&self, run: String, event: HostEvent) {
        // The receiver has gone.
        let _ = self.events.send((run, event));
    }

    fn spawn(&mut self, run: String, prepare: Prepare, files: &BTreeMap<String, Vec<u8>>) {
        let refused = |error: String| HostEvent::Refused { error, hint: None, is_usage: false };
        let folder = self.options.folder.join(&run);
        if let Err(error) = write_files(&folder, &prepare, files) {
            return self.tell(run, refused(format!("the files of the run cannot be written: {error}")));
        }
        let (wishes, heard) = unbounded_channel();
        let (leases, leased) = unbounded_channel();
        let (events, options, token) = (self.events.clone(), self.options.clone(), self.token.clone());
        let thread = thread::Builder::new().name("process".to_owned());
        let of_run = run.clone();
        let spawned = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => {
                    let heard = (heard, leased);
                    runtime.block_on(look_after((&options, token), &run, &prepare, heard, &events));
                }
                Err(error) => {
                    let error = format!("there is no runtime for the process: {error}");
                    let refused = HostEvent::Refused { error, hint: None, is_usage: false };
                    let _ = events.send((run.clone(), refused));
                }
            }
            // Its plan may hold secrets. A folder that cannot be removed is left to the next run.
            let _ = fs::remove_dir_all(options.folder.join(&run));
        });
        match spawned {
            Ok(_) => drop(self.processes.insert(of_run, Commands { wishes, leases })),
            Err(error) => self.tell(of_run, refused(format!("there is no thread for the process: {error}"))),
        }
    }
}

/// A random word of hexadecimal digits, from the system.
fn random_word() -> io::Result<String> {
    let mut drawn = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut drawn)?;
    Ok(hex(&drawn))
}

/// Name of the file of the history in the folder of an agent.
const HISTORY: &str = "history.db";

/// The history of the agent, as far as a run is written there. Opening it examines the whole file, so it is
/// kept open.
struct Written {
    history: PathBuf,
    store: Option<Store>,
}

impl Written {
    /// Returns the saved run as bytes; empty if nothing was saved, or if it cannot be read.
    fn saved(&mut self, run: &str) -> Vec<u8> {
        if self.store.is_none() {
            self.store = Store::open_existing(&self.history).ok().flatten();
        }
        let Some(store) = &self.store else { return Vec::new() };
        so_far(store, run).unwrap_or_else(|_| {
            // The next try opens it anew.
            self.store = None;
            Vec::new()
        })
    }
}

/// Returns the saved runs of all shares of a fleet's run, by their numbers, as bytes.
fn saved_shares(history: &Path, run: &str) -> io::Result<BTreeMap<u32, Vec<u8>>> {
    let mut shares = BTreeMap::new();
    let Some(store) = Store::open_existing(history).map_err(io::Error::other)? else { return Ok(shares) };
    for name in store.values_of(TAG, run).map_err(io::Error::other)? {
        let Some(share) = share_of(run, &name) else { continue };
        let saved = so_far(&store, &name)?;
        if !saved.is_empty() {
            shares.insert(share, saved);
        }
    }
    Ok(shares)
}

fn so_far(store: &Store, run: &str) -> io::Result<Vec<u8>> {
    let tag = Tag { name: TAG.to_owned(), value: run.to_owned() };
    let found = store.latest_so_far(&tag).map_err(io::Error::other)?;
    found.as_ref().map_or(Ok(Vec::new()), SavedRun::to_bytes)
}

/// Writes the files of a run. Names that lead out of its folder are refused.
fn write_files(folder: &Path, prepare: &Prepare, files: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::DirBuilder::new().mode(0o700).create(folder)?;
    for file in &prepare.files {
        let name = Path::new(&file.name);
        if !name.components().all(|part| matches!(part, Component::Normal(_))) || file.name.is_empty() {
            return Err(io::Error::other(format!(
                "`{}` does not name a file below the folder of the run",
                file.name.escape_debug()
            )));
        }
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        private(&path, files.get(&file.sha256).map_or(&[], Vec::as_slice))?;
    }
    Ok(())
}

/// Writes a file that only its user can read.
fn private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(content)
}

/// A process and its output.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    /// Standard output of the process: intervals, and at the end a report, which is ignored.
    told: Lines<BufReader<ChildStdout>>,
    said: VecDeque<String>,
    control: Option<ControlPort>,
    token: String,
}

impl Process {
    fn start(options: &HostOptions, token: String, run: &str, prepare: &Prepare) -> io::Result<Self> {
        let folder = options.folder.join(run);
        private(&folder.join(TOKEN_FILE), token.as_bytes())?;
        let mut command = Command::new(&options.program);
        command.env_clear().envs(options.environment.iter().map(|(name, value)| (name, value)));
        command.arg("run");
        // Before the coordinator's arguments, so that none of them can take it as its value or give it again.
        let limits = serde_json::to_string(&options.limits).map_err(io::Error::other)?;
        command.arg(format!("--agent-limits={limits}"));
        let (before, after) = match prepare.args.iter().position(|arg| arg == "--") {
            Some(place) => prepare.args.split_at(place),
            None => (prepare.args.as_slice(), &[][..]),
        };
        command.args(before);
        let (first, last) = (prepare.shard + 1, prepare.shard + prepare.held);
        let shards = if first == last { first.to_string() } else { format!("{first}-{last}") };
        command.arg(format!("--shard={shards}/{}", prepare.of));
        command.arg(format!("--threads={}", prepare.held * prepare.threads));
        command.args(["--start-at=command", "--no-tui", "--no-keys", "--end-with-stdin"]);
        command.args(["--control=127.0.0.1:0", "--save", "--tell-intervals"]);
        command.arg(format!("--control-token=@{TOKEN_FILE}"));
        command.arg(format!("--tag={TAG}={run}"));
        let mut store = std::ffi::OsString::from("--store=");
        store.push(options.folder.join(HISTORY));
        command.arg(store);
        command.args(after);
        command.current_dir(&folder).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stderr = child.stderr.take().ok_or_else(|| io::Error::other("it has no stderr"))?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("it has no stdout"))?;
        let (lines, told) = (BufReader::new(stderr).lines(), BufReader::new(stdout).lines());
        Ok(Self { child, lines, told, said: VecDeque::new(), control: None, token })
    }

    fn note(&mut self, line: String) {
        if let Some(control) = ControlPort::announced(&line, &self.token) {
            self.control = Some(control);
        }
        if self.said.len() == MESSAGES {
            self.said.pop_front();
        }
        self.said.push_back(line);
    }

    /// Reads its output until it ends.
    async fn end(&mut self) -> End {
        while let Ok(Some(line)) = self.lines.next_line().await {
            self.note(line);
        }
        let status = self.child.wait().await.ok();
        let exit = status.and_then(|status| status.code());
        End { exit, messages: self.said.iter().cloned().collect(), ..End::default() }
    }

    /// Returns the refusal of the run: the first error that the process wrote, and the hint after it.
    fn refusal(&self, end: &End) -> HostEvent {
        let said = |word: &str| {
            self.said.iter().find_map(|line| Some(line.trim_start().strip_prefix(word)?.trim().to_owned()))
        };
        let error = said("error:").unwrap_or_else(|| match end.exit {
            Some(code) => format!("`plimsoll run` ended with code {code} before it was ready"),
            None => "`plimsoll run` was killed before it was ready".to_owned(),
        });
        HostEvent::Refused { error, hint: said("hint:"), is_usage: end.exit == Some(USAGE) }
    }

    /// Returns `true` once it waits for its start.
    async fn is_ready(&self) -> bool {
        let Some(control) = &self.control else { return false };
        let Ok(reply) = control.get("/stat").await else { return false };
        serde_json::from_str::<Value>(&reply.body).is_ok_and(|stat| stat["waiting"] == true)
    }

    /// An answer of the process: the figures of its last second, if it has any.
    async fn line(&self) -> Option<HostEvent> {
        let reply = self.control.as_ref()?.get("/stat").await.ok()?;
        let line = line(&serde_json::from_str(&reply.body).ok()?);
        Some(line.map_or(HostEvent::Alive, HostEvent::Line))
    }

    async fn take_values(&self, values: &[u8]) -> Result<(), String> {
        self.post("/values", &String::from_utf8_lossy(values)).await
    }

    async fn steer(&self, steer: Steer) -> Result<(), String> {
        let at_ns = steer.at_ns;
        let (path, body) = match steer.command {
            SteerCommand::Rate { count, period_ns } => {
                ("/rate", json!({"rate": {"count": count, "period_ns": period_ns}, "at_ns": at_ns}))
            }
            SteerCommand::Pause => ("/rate", json!({"rate": "pause", "at_ns": at_ns})),
            SteerCommand::Resume => ("/rate", json!({"rate": "resume", "at_ns": at_ns})),
            SteerCommand::Stop => ("/stop", json!({})),
            SteerCommand::StopNow => ("/stop", json!({"now": true})),
            SteerCommand::StopOrphaned => ("/stop", json!({"orphaned": true})),
            SteerCommand::StopLeaving => ("/stop", json!({"leaving": true})),
        };
        self.post(path, &body.to_string()).await
    }

    /// Sends an order to its control port.
    async fn post(&self, path: &str, body: &str) -> Result<(), String> {
        let Some(control) = &self.control else { return Err("it has no control port".to_owned()) };
        match control.post(path, body).await {
            Ok(reply) if reply.status == 200 => Ok(()),
            Ok(reply) => Err(reply.body.trim().trim_start_matches("error: ").to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Name of the file of the control port's token in the folder of a run.
const TOKEN_FILE: &str = ".control-token";

/// The last second that `/stat` reports.
fn line(stat: &Value) -> Option<Line> {
    let last = stat["intervals"].as_array()?.last()?;
    let count = |name: &str| last[name].as_u64().unwrap_or(0);
    let percentile = |name: &str| last["response_time"]["p"][name].as_u64();
    Some(Line {
        elapsed_s: stat["elapsed_s"].as_f64()?,
        end_s: stat["end_s"].as_f64(),
        scheduled: count("scheduled"),
        started: count("started"),
        ok: count("ok"),
        failed: count("failed") + count("timed_out"),
        rate_per_s: last["achieved_per_s"].as_f64(),
        p50_ns: percentile("50"),
        p99_ns: percentile("99"),
        cpu: last["machine"]["cpu_busy"].as_f64(),
    })
}

/// Looks after a process from its start to its end.
async fn look_after(
    (options, token): (&HostOptions, String),
    run: &str,
    prepare: &Prepare,
    (mut wishes, leases): (UnboundedReceiver<Wish>, UnboundedReceiver<String>),
    events: &Sender<(String, HostEvent)>,
) {
    // Without a receiver the process ends, too.
    let tell = |event| drop(events.send((run.to_owned(), event)));
    // The report at the end is not an interval.
    let tell_interval =
        |line: &str| interval_line_to_bytes(line).map(HostEvent::Interval).into_iter().for_each(&tell);
    let mut process = match Process::start(options, token, run, prepare) {
        Ok(process) => process,
        Err(error) => {
            let error = format!("`plimsoll run` cannot be started: {error}");
            return tell(HostEvent::Refused { error, hint: None, is_usage: false });
        }
    };
    if let Some(stdin) = process.child.stdin.take() {
        tokio::spawn(write_leases(stdin, leases));
    }
    let readiness = timeout(READY, get_ready(&mut process, &mut wishes)).await;
    match readiness.unwrap_or(Readiness::Late) {
        Readiness::Ready => tell(HostEvent::Ready),
        ended @ (Readiness::Ended | Readiness::Late) => {
            if matches!(ended, Readiness::Late) {
                // Its last output may say why it took so long.
                let _ = process.child.start_kill();
            }
            let end = process.end().await;
            return tell(process.refusal(&end));
        }
        Readiness::Unwanted => return,
    }
    let mut written = Written { history: options.folder.join(HISTORY), store: None };
    let mut second = interval(LINE);
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut has_begun, mut has_told_all, mut is_killed) = (false, false, false);
    loop {
        tokio::select! {
            line = process.lines.next_line() => match line {
                Ok(Some(line)) => {
                    process.note(line);
                    tell(HostEvent::Alive);
                }
                _ => break,
            },
            line = process.told.next_line(), if !has_told_all => match line {
                Ok(Some(line)) => tell_interval(&line),
                _ => has_told_all = true,
            },
            _ = second.tick(), if has_begun => {
                process.line().await.into_iter().for_each(&tell);
            }
            wish = wishes.recv() => match wish {
                Some(Wish::Start { at_unix_ns, from_ns }) => {
                    has_begun = true;
                    if let Some(control) = &process.control {
                        let start = json!({"at_unix_ns": at_unix_ns, "from_ns": from_ns});
                        // A refused start ends the process, which reports the reason.
                        let _ = control.post("/start", &start.to_string()).await;
                    }
                }
                Some(Wish::Steer(steer)) => {
                    if let Err(error) = process.steer(steer).await {
                        tell(HostEvent::Unsteered(Unsteered { number: steer.number, error }));
                    }
                }
                Some(Wish::Values { number, values }) => {
                    let error = process.take_values(&values).await.err();
                    tell(HostEvent::Values { number, error });
                }
                Some(Wish::TakePart) => tell(HostEvent::Part(written.saved(run))),
                Some(Wish::Kill) => {
                    let _ = process.child.start_kill();
                    is_killed = true;
                    break;
                }
                // It is killed when it is dropped.
                Some(Wish::Discard) | None => return,
            },
        }
    }
    let ending = async {
        while let (false, Ok(Some(line))) = (has_told_all, process.told.next_line().await) {
            tell_interval(&line);
        }
        process.end().await
    };
    refuse_late(&mut wishes, tell);
    let end = if is_killed { timeout(KILLED, ending).await.unwrap_or_default() } else { ending.await };
    tell(HostEvent::Ended { end, saved: written.saved(run) });
}

/// Refuses the wishes that are still waiting: they find no process.
fn refuse_late(wishes: &mut UnboundedReceiver<Wish>, tell: impl Fn(HostEvent)) {
    while let Ok(wish) = wishes.try_recv() {
        if let Wish::Steer(Steer { number, command, .. }) = wish
            && !command.is_stop()
        {
            tell(HostEvent::Unsteered(Unsteered { number, error: TOO_LATE.to_owned() }));
        }
    }
}

/// Writes leases to a process as they come. Its standard input ends with this.
async fn write_leases(mut stdin: ChildStdin, mut leases: UnboundedReceiver<String>) {
    while let Some(line) = leases.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
}

enum Readiness {
    Ready,
    Ended,
    Late,
    Unwanted,
}

/// Waits until a process is ready for its start.
async fn get_ready(process: &mut Process, wishes: &mut UnboundedReceiver<Wish>) -> Readiness {
    loop {
        let next = async {
            tokio::select! {
                line = process.lines.next_line() => line.ok().flatten().map(Some),
                () = sleep(LOOK) => Some(None),
            }
        };
        let next = tokio::select! {
            next = next => next,
            wish = wishes.recv() => match wish {
                Some(Wish::Discard) | None => return Readiness::Unwanted,
                Some(_) => continue,
            },
        };
        match next {
            Some(Some(line)) => process.note(line),
            Some(None) => {
                if process.is_ready().await {
                    return Readiness::Ready;
                }
            }
            None => return Readiness::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::FileReference;

    #[test]
    fn files_are_written_below_the_folder_of_the_run_only() {
        let folder = std::env::temp_dir().join(format!("plimsoll-fleet-host-{}", std::process::id()));
        let files = BTreeMap::from([("h".to_owned(), b"id\n1\n".to_vec())]);
        let of = |name: &str| Prepare {
            files: vec![FileReference { name: name.to_owned(), sha256: "h".to_owned(), bytes: 5 }],
            ..Prepare::default()
        };
        write_files(&folder, &of("data/users.csv"), &files).unwrap();
        assert_eq!(fs::read(folder.join("data/users.csv")).unwrap(), b"id\n1\n");
        for name in ["", "/etc/x", "../x", "a/../../x", "."] {
            assert!(write_files(&folder, &of(name), &files).is_err(), "{name}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_line_is_the_last_second_that_is_reported() {
        let stat = json!({"elapsed_s": 3.0, "end_s": 10.0, "intervals": [
            {"ok": 1}, {"scheduled": 9, "started": 8, "ok": 5, "failed": 1, "timed_out": 2, "achieved_per_s": 6.5,
             "response_time": {"p": {"50": 1000, "99": 9000}}, "machine": {"cpu_busy": 0.5}},
        ]});
        let told = line(&stat).unwrap();
        assert_eq!((told.ok, told.failed, told.scheduled, told.started), (5, 3, 9, 8));
        assert_eq!((told.p50_ns, told.p99_ns, told.rate_per_s), (Some(1_000), Some(9_000), Some(6.5)));
        assert_eq!(line(&json!({"intervals": []})), None);
    }
}
