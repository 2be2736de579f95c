//! Runs under way: those that the page has started, and those of terminals that are saved.
//!
//! A run of the page is a process of its own in a process group of its own, with its messages and its result
//! in files and not in pipes: if the server ends, the run goes on, and is saved. It is steered by its control
//! port, whose token is in a file that only its user can read.

mod elsewhere;
mod entries;
mod figures;
mod messages;
mod run;
mod watched;

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse as _, Response, Sse};
use futures_util::stream::{self, Stream, StreamExt as _};
use plimsoll_store::{Outline, State as Progress, check_name};
use plimsoll_system::clock;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Child;
use tokio::time::{interval, timeout};

use self::elsewhere::Elsewhere;
pub(crate) use self::run::without_intervals;
use self::run::{Cursor, LiveRun, REPEAT, SWEEP, Stage, Told};
use crate::answer::{Json, Posted};
use crate::child_starter::ChildStarter;
use crate::examples::Example;
use crate::fleet::FleetChoice;
use crate::forms::permitted;
use crate::line_tail::LineTail;
use crate::options::Process;
use crate::plans::DraftKind;
use crate::program::{TELL_TRIALS, USAGE, Variables, said};
use crate::refusal::Refusal;
use crate::router::{Named, Ui, blocking};
use crate::secret::{SECRET_BYTES, random_hex};

/// Runs that go on at the same time. More than a few would only measure each other.
const MOST_AT_ONCE: usize = 8;
/// Runs that are kept in the list, those that have ended included.
const MOST_KEPT: usize = 20;
/// Interval between two checks of the messages of a run.
const LOOK: Duration = Duration::from_millis(100);
/// Longest time in which a run says that it begins, or why not. Names of targets are resolved before.
const START: Duration = Duration::from_secs(30);
/// Time after which a search is taken to have begun: it says nothing when it begins.
const SEARCH_START: Duration = Duration::from_millis(1_500);
/// The words about a run that was told to stop.
const STOPPING: &str = "stopping: waiting for requests in flight";
/// The words about one that was told to end at once.
const GIVING_UP: &str = "giving up: what is in flight is counted as such";
/// Begin of the name of the folder of files.
const FOLDER: &str = "plimsoll-ui-";
/// Name of the file in it that is locked as long as its server lives.
const LOCK: &str = "lock";
/// Begin of the flag that names the series of a run.
const SERIES_FLAG: &str = "--tag=series=";
/// Age up to which a folder is taken for that of a server that is just starting.
const NEW: Duration = Duration::from_secs(60);
/// Longest result of a run that is read, in bytes.
const LONGEST_RESULT: u64 = 64 << 20;
/// Interval between signs of life of a stream of events, by which a dead connection is noticed.
pub(crate) const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// The runs that the page has started, and the folder of their files.
pub(crate) struct Live {
    runs: Mutex<Runs>,
    starter: ChildStarter,
    folder: PathBuf,
    /// Held as long as this server lives.
    _lock: File,
}

/// The runs, and those that are about to be.
#[derive(Default)]
struct Runs {
    list: Vec<Arc<LiveRun>>,
    /// Starts under way: see [`Starting`].
    starting: usize,
}

/// The place of a run that is being started, until it is in the list or this is dropped.
struct Starting(Option<Arc<Live>>);

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(live) = self.0.take() {
            live.lock().starting -= 1;
        }
    }
}

/// Names of the files of a run.
struct Files {
    messages: PathBuf,
    output: PathBuf,
    input: PathBuf,
    token: PathBuf,
}

impl Files {
    fn of(folder: &Path, id: &str) -> Self {
        let [messages, output, input, token] =
            ["messages", "output", "input", "token"].map(|kind| folder.join(format!("{id}.{kind}")));
        Self { messages, output, input, token }
    }

    fn remove(&self) {
        for path in [&self.messages, &self.output, &self.input, &self.token] {
            // Some do not exist, and the system cleans up those that cannot be removed.
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the folders of servers that were killed. Runs that go on have opened their files.
fn remove_abandoned(temporary: &Path) {
    let Ok(entries) = fs::read_dir(temporary) else { return };
    let ours = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(FOLDER.as_bytes()));
    for folder in ours.map(|entry| entry.path()) {
        // A new folder may not be locked yet. Folders of other users cannot be opened.
        let made = fs::symlink_metadata(&folder).and_then(|found| found.modified()).ok();
        let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let is_new = clock::unix().as_secs_f64() - made.as_secs_f64() < NEW.as_secs_f64();
        let lock = OpenOptions::new().read(true).append(true).open(folder.join(LOCK));
        if !is_new && lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            // The system cleans up files that cannot be removed.
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

/// A file that only its user can read.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().create_new(true).read(true).append(true).mode(0o600).open(path)
}

impl Live {
    /// No runs yet. Their files will be in a new folder in `temporary`.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(crate) fn new(temporary: &Path, starter: ChildStarter) -> io::Result<Self> {
        remove_abandoned(temporary);
        let folder = temporary.join(format!("{FOLDER}{}", random_hex(8)?));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let lock = private(&folder.join(LOCK))?;
        lock.lock()?;
        Ok(Self { runs: Mutex::default(), starter, folder, _lock: lock })
    }

    /// The folder of the files, in which nothing else is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Result<Arc<LiveRun>, Refusal> {
        // The address of a run of the history leads to the one that makes it, as long as that goes on.
        let makes = |run: &&Arc<LiveRun>| {
            run.id == id || (!run.has_ended() && run.all_saved().iter().any(|saved| saved == id))
        };
        self.lock().list.iter().find(makes).cloned().ok_or_else(|| {
            let hint = "reload the page; runs of a terminal are steered there";
            Refusal::not_found("this page has not started this run", hint)
        })
    }

    /// The runs, with those of the history that go on and were started elsewhere.
    pub(crate) fn summaries(&self, latest: &[Outline], process: Process) -> Value {
        let own = self.lock().list.clone();
        let going_on = latest.iter().filter(|outline| outline.state == Progress::Running);
        let started = |outline: &Outline| outline.started_unix_ns as f64 / 1e9;
        for outline in going_on {
            let process = outline.process.as_deref().and_then(process).map(|(number, _)| number);
            let makes = |run: &&Arc<LiveRun>| process.is_some() && run.process == process;
            if let Some(run) = own.iter().find(makes) {
                run.note_saved(&outline.id, started(outline));
            }
        }
        let known: Vec<String> = own.iter().flat_map(|run| run.all_saved()).collect();
        // A new run may be in the history before it is known to be the same.
        let unknown_since = own.iter().filter_map(|run| run.unknown_since()).fold(f64::INFINITY, f64::min);
        let elsewhere = latest.iter().filter(|outline| outline.state == Progress::Running);
        let elsewhere = elsewhere.filter_map(|outline| {
            let started_unix_s = started(outline);
            let is_own = known.contains(&outline.id) || started_unix_s >= unknown_since;
            (!is_own).then(|| {
                json!({
                    "id": outline.id,
                    "name": outline.name,
                    "command": "run",
                    "state": "running",
                    "started_unix_s": started_unix_s,
                    "exit_code": null,
                    "run": outline.id,
                    "from": Elsewhere::of(outline, process).name(),
                })
            })
        });
        let own = own.iter().rev().map(|run| run.summary());
        json!({"runs": own.chain(elsewhere).collect::<Vec<_>>()})
    }

    /// Lines about the runs that go on, for people.
    pub(crate) fn going_on(&self) -> Vec<String> {
        let runs = self.lock().list.clone();
        let running = runs.iter().filter(|run| !run.has_ended());
        let line = |run: &Arc<LiveRun>| {
            let name =
                run.name.as_deref().map(|name| format!(" `{}`", name.escape_debug())).unwrap_or_default();
            let process = run.process.unwrap_or_default();
            let saved = run.saved().map(|id| format!(", saved as {id}")).unwrap_or_default();
            format!(
                "{}{name} is still running as process {process}{saved}; `kill -INT {process}` ends it",
                run.command
            )
        };
        running.map(line).collect()
    }

    /// Removes the folder of the files. Runs that go on have opened theirs.
    pub(crate) fn close(&self) {
        // The system cleans up files that cannot be removed.
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Takes a place for a run. The look at the others and the taking are one step, so that starts at the
    /// same time are not more together than there may be.
    ///
    /// # Errors
    /// All places are taken: the number of runs that go on.
    fn take_place(self: &Arc<Self>) -> Result<Starting, usize> {
        let mut runs = self.lock();
        let going_on = runs.starting + runs.list.iter().filter(|run| !run.has_ended()).count();
        if going_on >= MOST_AT_ONCE {
            return Err(going_on);
        }
        runs.starting += 1;
        Ok(Starting(Some(self.clone())))
    }

    /// Adds a run to the list, in its place, and forgets the oldest ones that have ended.
    fn add(&self, run: Arc<LiveRun>, mut place: Starting) {
        let mut runs = self.lock();
        runs.starting -= usize::from(place.0.take().is_some());
        let list = &mut runs.list;
        list.push(run);
        while list.len() > MOST_KEPT {
            let Some(ended) = list.iter().position(|run| run.has_ended()) else { break };
            list.remove(ended);
        }
    }
}

/// A run to be started.
#[derive(Deserialize)]
pub(crate) struct Start {
    path: Option<String>,
    text: Option<String>,
    command: Command,
    #[serde(default)]
    flags: Vec<String>,
    name: Option<String>,
    /// The fleet that carries it out; this machine if it is missing.
    fleet: Option<FleetChoice>,
}

impl Start {
    /// The name of the run: the one that it is given, that of its plan, or that of its file; `true` if it is
    /// that of the plan, which the run finds itself.
    fn called(&self, text: &str) -> (Option<String>, bool) {
        if self.name.is_some() || self.command != Command::Run {
            return (self.name.clone(), false);
        }
        let own = text.lines().find_map(|line| line.strip_prefix("name:"));
        if let Some(own) = own {
            let own = own.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
            return (Some(own.to_owned()).filter(|own| !own.is_empty()), true);
        }
        let stem = self.path.as_deref().and_then(|path| Path::new(path).file_stem());
        let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
        (stem.filter(|stem| check_name(stem).is_ok()), false)
    }
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Command {
    Run,
    Find,
    Cluster,
}

impl Command {
    /// The words of the command line; the plan or the spec follows on stdin.
    const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Run => &["run", "-"],
            Self::Find => &["find", "-"],
            Self::Cluster => &["cluster", "run", "-"],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Find => "find",
            Self::Cluster => "cluster",
        }
    }

    /// Returns `true` if it makes one run, which is steered and saved; a search makes many.
    const fn is_run(self) -> bool {
        matches!(self, Self::Run | Self::Cluster)
    }
}

/// `GET /api/live`
pub(crate) async fn list(State(ui): State<Arc<Ui>>) -> Result<Json<Value>, Refusal> {
    let history = ui.history.clone();
    let glance = blocking(move || history.glance()).await?;
    Ok(Json(ui.live.summaries(&glance.latest, ui.options.process)))
}

/// `POST /api/live`
pub(crate) async fn start(
    State(ui): State<Arc<Ui>>,
    Posted(start): Posted<Start>,
) -> Result<Json<Value>, Refusal> {
    let place = ui.live.take_place().map_err(|going_on| {
        let error = format!("{going_on} runs are already running");
        Refusal::conflict(error, "stop one, or wait for its end")
    })?;
    let folder = ui.folder.folder_of(start.path.as_deref())?;
    let text = match (&start.text, &start.path) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => {
            let (root, path) = (ui.folder.clone(), path.clone());
            blocking(move || root.read(&path)).await?.text
        }
        (None, None) => {
            return Err(Refusal::unprocessable("there is no plan", "open one, or make one from an example"));
        }
    };
    if start.command == Command::Cluster && !ui.options.clusters {
        let hint = "a spec names programs: start `plimsoll ui` with --clusters, or listen on loopback";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "clusters cannot be started from here", hint));
    }
    let known = match start.command {
        Command::Run => &ui.options.run_flags,
        Command::Find => &ui.options.find_flags,
        Command::Cluster => &ui.options.cluster_flags,
    };
    let mut flags = permitted(&start.flags, known, ui.options.closest)?;
    if let Some(fleet) = start.fleet.clone() {
        if start.command != Command::Run {
            let error = format!("`plimsoll {}` is not carried out by a fleet", start.command.name());
            return Err(Refusal::unprocessable(error, "run a plan on it"));
        }
        let folder = ui.folder.clone();
        flags.extend(blocking(move || fleet.words(&folder)).await?);
    }
    let (folder, variables) = surroundings(&ui, &start, &text, folder).await?;
    let run = begin(&ui, place, &start, &flags, (&text, &folder, variables)).await.map_err(|error| {
        Refusal::failed(
            format!("the run cannot be started: {error}"),
            "check the free space for temporary files",
        )
    })?;
    ui.events.look();
    let patience = if start.command.is_run() { START } else { SEARCH_START };
    let stage = timeout(patience, run.reached()).await.unwrap_or(Stage::Begun);
    let has_failed = matches!(run.exit_code(), Some(USAGE | 1)) && !run.has_result();
    if stage == Stage::Ended && has_failed {
        ui.live.lock().list.retain(|other| other.id != run.id);
        ui.events.look();
        return Err(refused(&ui, &run, start.command, text, flags, folder).await);
    }
    Ok(Json(json!({"id": run.id})))
}

/// The folder in which the names of a plan are looked up, and variables for it. An example that is in no file
/// has its own.
async fn surroundings(
    ui: &Ui,
    start: &Start,
    text: &str,
    folder: PathBuf,
) -> Result<(PathBuf, Variables), Refusal> {
    // Agents of a fleet are elsewhere, and a cluster has its own servers.
    if start.fleet.is_some() || start.command == Command::Cluster {
        return Ok((folder, Variables::new()));
    }
    let Some(example) = Example::of_text(text).filter(|_| start.path.is_none()) else {
        return Ok((folder, ui.servers.wanted(text).await?));
    };
    let variables = ui.servers.of_example(example).await?;
    let files = ui.servers.files().map_err(|error| {
        let error = format!("the files of the example cannot be written: {error}");
        Refusal::failed(error, "check the free space for temporary files")
    })?;
    Ok((files, variables))
}

/// Starts the process of a run, and a task that listens to it.
async fn begin(
    ui: &Arc<Ui>,
    place: Starting,
    start: &Start,
    flags: &[String],
    (text, folder, variables): (&str, &Path, Variables),
) -> io::Result<Arc<LiveRun>> {
    let (id, token) = (random_hex(8)?, random_hex(SECRET_BYTES)?);
    let files = Files::of(&ui.live.folder, &id);
    let made = async {
        fs::write(&files.input, text)?;
        io::Write::write_all(&mut private(&files.token)?, token.as_bytes())?;
        let (messages, output) = (private(&files.messages)?, private(&files.output)?);
        let command = start.command;
        let mut args: Vec<OsString> = command.words().iter().map(OsString::from).collect();
        args.extend(flags.iter().map(OsString::from));
        args.extend(["-o", "json"].map(OsString::from));
        if command.is_run() {
            args.extend(["--no-tui", "--no-keys"].map(OsString::from));
        }
        // Runs that are steered are not alike.
        if command.is_run() && !is_repeated(command, flags) {
            args.push(OsString::from("--control=127.0.0.1:0"));
            let mut token = OsString::from("--control-token=@");
            token.push(&files.token);
            args.push(token);
        }
        let (name, is_of_plan) = start.called(text);
        if let Some(store) = ui.store_flag() {
            args.extend([OsString::from("--save"), store]);
            let given = name.as_ref().filter(|_| !is_of_plan);
            args.extend(given.map(|name| OsString::from(format!("--name={name}"))));
            let is_tagged = flags.iter().any(|flag| flag.starts_with(SERIES_FLAG));
            if is_repeated(command, flags) && !is_tagged {
                args.push(OsString::from(format!("{SERIES_FLAG}{id}")));
            }
        }
        let mut process = ui.program.command(&args, folder);
        process.stdin(File::open(&files.input)?);
        process.stdout(output.try_clone()?).stderr(Stdio::from(messages.try_clone()?));
        // Signals of the terminal are for the server.
        process.process_group(0);
        process.envs(variables).env(TELL_TRIALS, "1");
        let child = ui.live.starter.start(process).await?;
        let started = clock::unix().as_secs_f64();
        let run = Arc::new(LiveRun::new(id, name, kind_of(command, flags), started, child.id()));
        Ok((run, child, messages))
    };
    let (run, child, messages) = match made.await {
        Ok(made) => made,
        Err(error) => {
            files.remove();
            return Err(error);
        }
    };
    ui.live.add(run.clone(), place);
    tokio::spawn(listen_to(ui.clone(), run.clone(), child, LineTail::new(messages), token, files));
    Ok(run)
}

/// The name of a command among the runs under way: a sweep is no search.
fn kind_of(command: Command, flags: &[String]) -> &'static str {
    let is_sweep = command == Command::Find && flags.iter().any(|flag| flag.starts_with("--sweep"));
    match is_repeated(command, flags) {
        true => REPEAT,
        false if is_sweep => SWEEP,
        false => command.name(),
    }
}

/// Returns `true` if several runs of a plan are made, one after the other. Flags are whole names here.
fn is_repeated(command: Command, flags: &[String]) -> bool {
    command == Command::Run && flags.iter().any(|flag| flag.starts_with("--repeat="))
}

/// Collects the messages of a run until it ends, and its exit.
async fn listen_to(
    ui: Arc<Ui>,
    run: Arc<LiveRun>,
    mut child: Child,
    mut tail: LineTail,
    token: String,
    files: Files,
) {
    let mut tick = interval(LOOK);
    let status = loop {
        let ended = tokio::select! {
            status = child.wait() => Some(status),
            _ = tick.tick() => None,
        };
        // If a message that cannot be read matters, it is in the result, too.
        let lines = tail.lines(ended.is_some()).unwrap_or_default();
        if !lines.is_empty() {
            run.say(&lines, &token);
        }
        if let Some(status) = ended {
            break status;
        }
    };
    let mut output = String::new();
    let read =
        File::open(&files.output).and_then(|file| file.take(LONGEST_RESULT).read_to_string(&mut output));
    run.end(status.ok().and_then(|status| status.code()), read.is_ok().then_some(output));
    files.remove();
    ui.events.look();
}

/// The answer with the reason why a run has not begun.
async fn refused(
    ui: &Ui,
    run: &LiveRun,
    command: Command,
    text: String,
    flags: Vec<String>,
    folder: PathBuf,
) -> Refusal {
    let (error, hint) = said(&run.messages());
    let refusal = Refusal::unprocessable(
        error.unwrap_or_else(|| "the run did not begin".to_owned()),
        hint.unwrap_or_else(|| "change the values, and try it again".to_owned()),
    );
    let kind = if command == Command::Cluster { DraftKind::Cluster } else { DraftKind::Plan };
    // `check` does not take the flags of a search, nor those of several runs.
    let is_of_several = |flag: &String| flag.starts_with("--repeat=") || flag.starts_with("--pause=");
    let flags: Vec<String> = if command.is_run() { flags } else { Vec::new() };
    let flags = flags.into_iter().filter(|flag| !is_of_several(flag)).collect();
    let problems = ui.problems(kind, folder, text, flags).await.unwrap_or_default();
    refusal.with("problems", problems)
}

/// `GET /api/live/ID/events`
pub(crate) async fn events(State(ui): State<Arc<Ui>>, Named(id): Named) -> Result<Response, Refusal> {
    let run = match ui.live.find(&id) {
        Ok(run) => run,
        Err(unknown) => return Ok(streamed(watched::events(&ui, id, unknown).await?)),
    };
    let heard = (run.listen(), Cursor::default(), ui.ends.clone());
    let batches = stream::unfold((run, heard), |(run, (mut news, mut cursor, mut ends))| async move {
        loop {
            let told = run.news(&mut cursor);
            if !told.is_empty() {
                return Some((told, (run, (news, cursor, ends))));
            }
            tokio::select! {
                // The run keeps the sender.
                _ = news.changed() => {}
                _ = ends.wait_for(|ends| *ends) => return None,
            }
        }
    });
    Ok(streamed(batches.flat_map(|told| stream::iter(told.into_iter().map(event)))))
}

fn streamed(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response()
}

/// An event about a run, in the form for the page.
fn event(told: Told) -> Result<Event, Infallible> {
    Ok(match told {
        Told::Message(text) => Event::default().event("message").data(json!({"text": &*text}).to_string()),
        // It is made of text.
        Told::Figures(data) => Event::default().event("result").data(String::from_utf8_lossy(&data)),
        Told::Entries(entries) => Event::default().event("entries").data(entries.to_string()),
        Told::End(end) => Event::default().event("end").data(end.to_string()),
    })
}

/// A rate as it was typed.
#[derive(Deserialize)]
pub(crate) struct Rate {
    rate: String,
}

/// Nothing but an object.
#[derive(Deserialize)]
pub(crate) struct Nothing {}

/// `POST /api/live/ID/rate`
pub(crate) async fn rate(
    State(ui): State<Arc<Ui>>,
    Named(id): Named,
    Posted(Rate { rate }): Posted<Rate>,
) -> Result<Json<Value>, Refusal> {
    steer(&ui, &id, "/rate", &json!({"rate": rate}).to_string()).await
}

/// `POST /api/live/ID/pause`
pub(crate) async fn pause(
    State(ui): State<Arc<Ui>>,
    Named(id): Named,
    Posted(Nothing {}): Posted<Nothing>,
) -> Result<Json<Value>, Refusal> {
    steer(&ui, &id, "/pause", "").await
}

/// `POST /api/live/ID/resume`
pub(crate) async fn resume(
    State(ui): State<Arc<Ui>>,
    Named(id): Named,
    Posted(Nothing {}): Posted<Nothing>,
) -> Result<Json<Value>, Refusal> {
    steer(&ui, &id, "/resume", "").await
}

/// How a run is to be stopped.
#[derive(Deserialize)]
pub(crate) struct Stopped {
    /// Without waiting for what is in flight.
    #[serde(default)]
    now: bool,
}

/// `POST /api/live/ID/stop`
pub(crate) async fn stop(
    State(ui): State<Arc<Ui>>,
    Named(id): Named,
    Posted(Stopped { now }): Posted<Stopped>,
) -> Result<Json<Value>, Refusal> {
    let run = match ui.live.find(&id) {
        Ok(run) => run,
        Err(unknown) => return elsewhere::stop(&ui, id, now, unknown).await,
    };
    // The port of a run of a series stops that run alone.
    if run.control().is_some() && !run.is_series() {
        let body = if now { "{\"now\":true}" } else { "" };
        steer(&ui, &id, "/stop", body).await?;
        return Ok(stopping(now));
    }
    // A search, a series, or a run whose port does not listen yet, gets a signal, like `^C`: the second one
    // ends it at once.
    let process = run.process.and_then(|process| Pid::from_raw(process.cast_signed()));
    match process.filter(|_| !run.has_ended()).map(|process| kill_process(process, Signal::INT)) {
        Some(Ok(())) => Ok(stopping(now)),
        Some(Err(error)) => Err(Refusal::failed(error.to_string(), "try it again")),
        None => Err(over()),
    }
}

/// The answer to a run that was told to stop.
fn stopping(now: bool) -> Json<Value> {
    Json(json!({"told": if now { GIVING_UP } else { STOPPING }}))
}

fn over() -> Refusal {
    Refusal::conflict("the run has ended", "start it again")
}

/// Forwards a command to the control port of a run, and returns its answer to the page.
async fn steer(ui: &Ui, id: &str, path: &str, body: &str) -> Result<Json<Value>, Refusal> {
    let run = ui.live.find(id)?;
    if run.has_ended() {
        return Err(over());
    }
    let Some(control) = run.control() else {
        let error = format!("a {} cannot be steered like that now", run.command);
        return Err(Refusal::conflict(error, "it can be stopped"));
    };
    let reply = match control.post(path, body).await {
        Ok(reply) => reply,
        Err(_) if run.is_series() && !run.has_ended() => {
            let hint = "try it again when the next run has begun";
            return Err(Refusal::conflict("this run of the series has ended", hint));
        }
        Err(error) if run.has_ended() || error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(over());
        }
        Err(error) => {
            return Err(Refusal::new(
                StatusCode::BAD_GATEWAY,
                format!("the run does not answer: {error}"),
                "try it again: it may be about to end",
            ));
        }
    };
    if reply.status != 200 {
        let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
        // A rejected token would be our mistake, and logging in again would not help.
        let status = if status == StatusCode::UNAUTHORIZED { StatusCode::BAD_GATEWAY } else { status };
        let error = reply.body.trim().trim_start_matches("error: ");
        // The run says what to write itself.
        let (error, hint) = match error.split_once(": write ") {
            Some((error, advice)) if path == "/rate" => (error, format!("write {advice}")),
            _ if path == "/rate" => (error, "write a rate such as 500, 5k/s or 300/m".to_owned()),
            _ => {
                let hint = "runs of the open model can be paused, while they go on; others can be stopped";
                (error, hint.to_owned())
            }
        };
        return Err(Refusal::new(status, error, hint));
    }
    if let Some(is_paused) = [("/pause", true), ("/resume", false)].iter().find(|(of, _)| *of == path) {
        run.pause(is_paused.1);
        ui.events.look();
    }
    let told: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let told = match told["message"].as_str() {
        Some(message) => message.to_owned(),
        None => STOPPING.to_owned(),
    };
    Ok(Json(json!({"told": told})))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Nanos;

    use super::*;
    use crate::child_starter::child_starter;

    /// Symptom: twelve starts at once were all let in, each before any of the others was in the list.
    #[test]
    fn runs_that_start_at_the_same_time_are_not_more_than_there_may_be() {
        let temporary = std::env::temp_dir().join(format!("plimsoll-web-starts-{}", std::process::id()));
        fs::create_dir_all(&temporary).unwrap();
        let live = Arc::new(Live::new(&temporary, child_starter().0).unwrap());
        let mut places: Vec<_> = (0..12).map(|_| live.take_place()).collect();
        let taken: Vec<_> = places.iter().map(|place| place.as_ref().err().copied()).collect();
        assert_eq!(taken, [[None; MOST_AT_ONCE].as_slice(), &[Some(MOST_AT_ONCE); 4]].concat());
        // One has failed, and one has begun.
        drop(places.remove(0));
        let run = Arc::new(LiveRun::new("a".to_owned(), None, "run", 0.0, None));
        live.add(run.clone(), places.remove(0).ok().unwrap());
        let _last = live.take_place().ok().unwrap();
        assert_eq!(live.take_place().err(), Some(MOST_AT_ONCE));
        // Symptom: a run that was paused was listed as one that runs.
        run.pause(true);
        assert_eq!(run.summary()["paused"], true);
        run.end(Some(0), None);
        assert_eq!(run.summary()["paused"], false);
        assert!(live.take_place().is_ok());
        live.close();
        fs::remove_dir_all(&temporary).unwrap();
    }

    /// Symptom: runs of a plan were called `run` while they went on, and by their target in the list.
    #[test]
    fn a_run_is_called_as_it_is_asked_for_or_as_its_plan_or_its_file() {
        let start = |name: Option<&str>, path: Option<&str>| Start {
            path: path.map(str::to_owned),
            text: None,
            command: Command::Run,
            flags: Vec::new(),
            name: name.map(str::to_owned),
            fleet: None,
        };
        let shop = Some("plans/shop.yaml");
        for (start, text, called) in [
            (start(Some("fast"), shop), "name: Shop", (Some("fast"), false)),
            (start(None, shop), "# x\nname: \"Shop\" # of all\nrun: {}", (Some("Shop"), true)),
            (start(None, shop), "run: {}\nscenarios:\n  - name: browse", (Some("shop"), false)),
            (start(None, Some("a=b.yaml")), "run: {}", (None, false)),
            (start(None, None), "run: {}", (None, false)),
        ] {
            let (name, is_of_plan) = start.called(text);
            assert_eq!((name.as_deref(), is_of_plan), called, "{text}");
        }
    }

    #[test]
    fn folders_of_killed_servers_are_removed_and_others_stay() {
        let temporary = std::env::temp_dir().join(format!("plimsoll-web-live-{}", std::process::id()));
        fs::create_dir_all(&temporary).unwrap();
        let (starter, _starts) = child_starter();
        let start = || Live::new(&temporary, starter.clone()).unwrap();
        let (killed, lives, starting) = (start(), start(), start());
        let folders = [&killed, &lives, &starting].map(|live| live.folder().to_owned());
        for live in [&killed, &lives] {
            let folder = File::open(live.folder()).unwrap();
            folder.set_modified(UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        }
        // Dropping a server releases its lock, as the end of a process does. A child that another test has
        // just forked holds the lock too, until it executes its program.
        drop(killed);
        let deadline = clock::monotonic() + Nanos::from_secs(10);
        loop {
            let next = start();
            next.close();
            assert!(!next.folder().exists());
            if !folders[0].exists() || clock::monotonic() > deadline {
                break;
            }
        }
        assert_eq!(folders.each_ref().map(|folder| folder.exists()), [false, true, true]);
        fs::remove_dir_all(&temporary).unwrap();
    }
}
