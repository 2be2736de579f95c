//! Watched servers: groups of processes, which come and go.

use std::path::{Path, PathBuf};

use plimsoll_core::Nanos;
use plimsoll_metrics::{FileUse, FoundBy, ProcessEvent, ProcessUse, WatchedProcess, WatchedUse};

use crate::kept::{Buffer, ProcFile, note, text};
use crate::parse::process as parse;
use crate::process::{self, Process, THREADS_WATCHED};
use crate::sampler::Tree;
use crate::target::Named;

/// Processes of one server that are watched, the first.
const PROCESSES: usize = 64;
/// The most reasons that are kept for unreadable files.
const REASONS: usize = 8;
/// Bytes of a name that the system keeps beside a process: `TASK_COMM_LEN` less its end.
const NAME_KEPT: usize = 15;

/// Descriptors that the files of one named server take at most: some of each process, and those of its
/// threads.
pub const DESCRIPTORS_PER_SERVER: u32 = (5 * PROCESSES + THREADS_WATCHED) as u32;

/// All processes of this system at one instant.
#[derive(Debug, Default)]
pub(crate) struct ProcessTable {
    processes: Vec<Entry>,
    /// When the youngest of them began.
    youngest: u64,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) began: u64,
    pub(crate) name: String,
    /// CPU time so far.
    pub(crate) cpu: Nanos,
}

impl ProcessTable {
    /// Takes all processes but this one, which is not a server.
    pub(crate) fn take(tree: &Tree, buffer: &mut Buffer) -> Self {
        let own = std::process::id();
        let root = tree.at("/proc");
        let mut found = Self::default();
        for entry in std::fs::read_dir(&root).into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Some(file) = ProcFile::find(&entry.path().join("stat")) else { continue };
            let Some(bytes) = file.read(buffer) else { continue };
            let Some((stat, name)) = parse::stat(bytes).zip(parse::name(bytes)) else { continue };
            if pid == own || stat.is_over {
                continue;
            }
            let name = String::from_utf8_lossy(name).into_owned();
            found.youngest = found.youngest.max(stat.began);
            let cpu = stat.user + stat.system;
            found.processes.push(Entry { pid, parent: stat.parent, began: stat.began, name, cpu });
        }
        found.processes.sort_unstable_by_key(|entry| entry.pid);
        found
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.processes.into_iter()
    }

    /// One of these processes.
    #[cfg(test)]
    pub(crate) fn of(entries: impl Iterator<Item = Entry>) -> Self {
        Self { processes: entries.collect(), youngest: 0 }
    }
}

/// Returns `true` if a process that was named is there.
pub fn is_there(named: &Named) -> bool {
    let tree = Tree::system();
    let census = ProcessTable::take(&tree, &mut Buffer::new());
    census.processes.iter().any(|entry| is_named(&tree, named, entry))
}

fn is_named(tree: &Tree, named: &Named, entry: &Entry) -> bool {
    let name = match named {
        Named::Pid(pid) => return *pid == entry.pid,
        Named::Name(name) => name,
        Named::Marked { entry: wanted, .. } => {
            let path = tree.at("/proc").join(entry.pid.to_string()).join("environ");
            // The environment of other users' processes cannot be read.
            let environment = std::fs::read(path).unwrap_or_default();
            return environment.split(|byte| *byte == 0).any(|found| found == wanted.as_bytes());
        }
    };
    if *name == entry.name {
        return true;
    }
    let program = std::fs::read_link(tree.at("/proc").join(entry.pid.to_string()).join("exe"));
    let Ok(program) = program else {
        // The process belongs to another user: only its name is readable, and may be cut off.
        return name.as_bytes().get(..NAME_KEPT) == Some(entry.name.as_bytes());
    };
    let file = program.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    // Linux appends this to the path of a program whose file was replaced while it runs.
    *name == file.strip_suffix(" (deleted)").unwrap_or(file)
}

#[derive(Debug)]
pub(crate) struct Server {
    /// `None` if its processes are those of the start.
    named: Option<Named>,
    members: Vec<Process>,
    /// Processes that have ended, but that their parents have not reaped.
    ended: Vec<Process>,
    /// When the youngest process of the system began that the last look saw.
    youngest: u64,
}

impl Server {
    /// A server that was named, with the processes that it has now.
    pub(crate) fn named(
        tree: &Tree,
        named: &Named,
        census: &ProcessTable,
        buffer: &mut Buffer,
    ) -> (Self, WatchedProcess) {
        let mut server = Self::new(Some(named.clone()));
        let found_by = match named {
            Named::Pid(pid) => FoundBy::Pid(*pid),
            Named::Name(name) => FoundBy::Name(name.clone()),
            Named::Marked { name, .. } => FoundBy::Mark(name.clone()),
        };
        let mut facts = WatchedProcess { found_by, ..WatchedProcess::default() };
        server.take_in(tree, census, buffer, &mut facts.missing, |entry| is_named(tree, named, entry));
        server.describe(tree, &mut facts, buffer);
        (server, facts)
    }

    /// A server whose processes are those with these numbers.
    pub(crate) fn of(tree: &Tree, pids: &[u32], buffer: &mut Buffer) -> (Self, WatchedProcess) {
        let mut server = Self::new(None);
        let mut facts = WatchedProcess::default();
        pids.iter().for_each(|pid| {
            server.open(tree, *pid, buffer, &mut facts.missing);
        });
        server.describe(tree, &mut facts, buffer);
        (server, facts)
    }

    fn new(named: Option<Named>) -> Self {
        // No process counts as new at the first look.
        Self { named, members: Vec::new(), ended: Vec::new(), youngest: u64::MAX }
    }

    /// Returns `true` if there is nothing to watch, now or later.
    pub(crate) fn is_nobody(&self) -> bool {
        self.named.is_none() && self.members.is_empty()
    }

    /// Returns `true` if a process belongs to the server.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.members.iter().any(|process| process.pid == pid)
    }

    /// Returns `true` if processes may join the server while it is watched.
    pub(crate) const fn comes_and_goes(&self) -> bool {
        self.named.is_some()
    }

    /// Returns `true` if all of these processes belong to the server.
    pub(crate) fn has_all(&self, pids: &[u32]) -> bool {
        pids.iter().all(|pid| self.has(*pid))
    }

    fn describe(&self, tree: &Tree, facts: &mut WatchedProcess, buffer: &mut Buffer) {
        facts.pids = self.members.iter().map(|process| process.pid).collect();
        let rss = self.members.iter().map(|process| process.rss_bytes(buffer));
        facts.first_rss_bytes = rss.reduce(|sum, next| Some(sum? + next?)).flatten();
        if let Some(first) = self.members.first() {
            facts.name.clone_from(&first.name);
            facts.limits = first.groups.limits;
            let limits = text(&folder(tree, first.pid).join("limits")).unwrap_or_default();
            let limit = parse::limit(limits.as_bytes(), b"Max open files");
            facts.descriptor_limit = limit.and_then(|[soft, _]| soft);
        }
        facts.missing.truncate(REASONS);
    }

    /// Returns the use since the last look. `census` has the processes of now; without it, no new ones are
    /// looked for.
    pub(crate) fn sample(
        &mut self,
        tree: &Tree,
        census: Option<&ProcessTable>,
        buffer: &mut Buffer,
        facts: &mut WatchedProcess,
    ) -> WatchedUse {
        let mut found = WatchedUse::default();
        let missing = &mut facts.missing;
        if let (Some(census), Some(named)) = (census, self.named.clone()) {
            let is_new = |entry: &Entry| !matches!(named, Named::Pid(_)) && is_named(tree, &named, entry);
            let began = self.take_in(tree, census, buffer, missing, is_new);
            found.began = began.len() as u64;
            found.events = began;
        }
        let mut uses: Vec<(u32, ProcessUse)> = Vec::with_capacity(self.members.len());
        let mut gone = Vec::new();
        for mut process in std::mem::take(&mut self.members) {
            match process.sample(buffer, missing) {
                Some(used) => {
                    uses.push((process.pid, used));
                    self.members.push(process);
                }
                None => {
                    found.ended += 1;
                    found.events.push(event(&process, true));
                    self.ended.push(process);
                }
            }
        }
        for process in std::mem::take(&mut self.ended) {
            if process.is_gone(buffer) { gone.push(process) } else { self.ended.push(process) }
        }
        disown(&gone, &mut uses);
        missing.truncate(REASONS);
        found.processes = uses.len() as u64;
        found.used = process::together(uses.into_iter().map(|(_, used)| used));
        found
    }

    /// Takes in processes that are `is_new`, and the descendants of those that are in; returns their events.
    fn take_in(
        &mut self,
        tree: &Tree,
        census: &ProcessTable,
        buffer: &mut Buffer,
        missing: &mut Vec<String>,
        is_new: impl Fn(&Entry) -> bool,
    ) -> Vec<ProcessEvent> {
        let mut events = Vec::new();
        loop {
            let before = self.members.len();
            for entry in &census.processes {
                let is_in = |process: &Process| process.pid == entry.pid && process.last.began == entry.began;
                if self.members.iter().any(is_in) {
                    continue;
                }
                let is_child = self.members.iter().any(|process| process.pid == entry.parent);
                if !is_child && !is_new(entry) {
                    continue;
                }
                if self.members.len() >= PROCESSES {
                    note(missing, format!("only {PROCESSES} of its processes are watched"));
                    break;
                }
                // An older process existed before, as another program or as a child of another process.
                let is_born = entry.began >= self.youngest;
                let Some(process) = self.open(tree, entry.pid, buffer, missing) else { continue };
                if is_born {
                    process.count_from_its_beginning();
                }
                events.push(event(process, false));
            }
            if self.members.len() == before {
                break;
            }
        }
        self.youngest = census.youngest;
        events
    }

    fn open(
        &mut self,
        tree: &Tree,
        pid: u32,
        buffer: &mut Buffer,
        missing: &mut Vec<String>,
    ) -> Option<&mut Process> {
        let watched: usize = self.members.iter().map(Process::threads).sum();
        let threads = THREADS_WATCHED.saturating_sub(watched);
        let mut reasons = Vec::new();
        // A process that has ended meanwhile is not worth a note.
        let process = Process::open(tree, &folder(tree, pid), threads, buffer, &mut reasons)?;
        reasons.into_iter().for_each(|reason| note(missing, reason));
        self.members.push(process);
        self.members.last_mut()
    }
}

fn folder(tree: &Tree, pid: u32) -> PathBuf {
    tree.at(Path::new("/proc").join(pid.to_string()))
}

fn event(process: &Process, ended: bool) -> ProcessEvent {
    ProcessEvent { at: Nanos::ZERO, pid: process.pid, name: process.name.clone(), ended }
}

/// Subtracts the inherited figures from parents. When a parent hears of the end of a child, the system adds
/// all that the child has moved to the parent's figures, and the figures that were seen before would count
/// twice.
fn disown(gone: &[Process], uses: &mut [(u32, ProcessUse)]) {
    for process in gone {
        let mut heir = process.last.parent;
        // A parent that ended in the same interval has passed its own use on to its parent.
        for _ in gone {
            let between = gone.iter().find(|other| other.pid == heir);
            heir = between.map_or(heir, |between| between.last.parent);
        }
        let Some((_, used)) = uses.iter_mut().find(|(pid, _)| *pid == heir) else { continue };
        let Some(files) = &mut used.files else { continue };
        let seen = process.last_files;
        // A parent that ignores SIGCHLD inherits nothing, and has usually done less itself.
        if has_at_least(*files, seen) {
            *files = process::since(*files, seen);
        }
    }
}

const fn has_at_least(all: FileUse, part: FileUse) -> bool {
    all.read_bytes >= part.read_bytes
        && all.written_bytes >= part.written_bytes
        && all.read_calls >= part.read_calls
        && all.write_calls >= part.write_calls
}
