//! Threads and processes.

use std::path::{Path, PathBuf};

use plimsoll_metrics::{ProcessUse, ThreadUse};

use crate::cgroup::Groups;
use crate::kept::{Buffer, Kept, text};
use crate::parse::process::{self as parse, Schedule, Stat};
use crate::sampler::Tree;

/// Threads of one process that are looked at one by one.
const THREADS_WATCHED: usize = 256;

/// One of our own threads, in detail.
#[derive(Debug)]
pub(crate) struct Thread {
    stat: Option<Kept>,
    schedule: Option<Kept>,
    status: Option<Kept>,
    last: ThreadUse,
}

impl Thread {
    /// The thread whose folder this is.
    pub(crate) fn open(folder: &Path, buffer: &mut Buffer) -> Self {
        let find = |name| Kept::find(&folder.join(name));
        let mut thread = Self {
            stat: find("stat"),
            schedule: find("schedstat"),
            status: find("status"),
            last: ThreadUse::default(),
        };
        thread.last = thread.read(buffer);
        thread
    }

    /// What happened since the last call, or since it was opened.
    pub(crate) fn sample(&mut self, buffer: &mut Buffer) -> ThreadUse {
        let now = self.read(buffer);
        let last = std::mem::replace(&mut self.last, now);
        let since = |now: Option<u64>, last: Option<u64>| Some(now?.saturating_sub(last?));
        ThreadUse {
            cpu: now.cpu.since(last.cpu),
            system: now.system.since(last.system),
            run_delay: now.run_delay.zip(last.run_delay).map(|(now, last)| now.since(last)),
            voluntary_switches: since(now.voluntary_switches, last.voluntary_switches),
            involuntary_switches: since(now.involuntary_switches, last.involuntary_switches),
        }
    }

    /// Since the thread began. What can no longer be read stays as it was.
    fn read(&self, buffer: &mut Buffer) -> ThreadUse {
        let stat = self.stat.as_ref().and_then(|file| parse::stat(file.read(buffer)?));
        let schedule = self.schedule.as_ref().and_then(|file| parse::schedule(file.read(buffer)?));
        let switches = self.status.as_ref().and_then(|file| parse::switches(file.read(buffer)?));
        let Some(stat) = stat else { return self.last };
        ThreadUse {
            cpu: schedule.map_or(stat.user + stat.system, |schedule| schedule.cpu),
            system: stat.system,
            run_delay: schedule.map(|schedule| schedule.run_delay),
            voluntary_switches: switches.map(|(voluntary, _)| voluntary),
            involuntary_switches: switches.map(|(_, involuntary)| involuntary),
        }
    }
}

/// The threads of our process with a name that begins so and ends with their number, in that order.
pub(crate) fn workers(tree: &Tree, prefix: &str, buffer: &mut Buffer) -> Vec<Thread> {
    let mut found: Vec<(u32, Thread)> = Vec::new();
    for folder in folders(&tree.at("/proc/self/task")) {
        let name = text(&folder.join("comm")).unwrap_or_default();
        if let Some(number) = name.strip_prefix(prefix).and_then(|number| number.parse().ok()) {
            found.push((number, Thread::open(&folder, buffer)));
        }
    }
    found.sort_unstable_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, thread)| thread).collect()
}

/// The folders in a folder that are named by a number.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let numbered = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(numbered).collect()
}

/// A process as a whole.
#[derive(Debug)]
pub(crate) struct Process {
    tasks: PathBuf,
    descriptors: PathBuf,
    stat: Kept,
    status: Option<Kept>,
    threads: Vec<(Kept, Schedule)>,
    last: Stat,
    pub(crate) groups: Groups,
}

impl Process {
    /// The process whose folder in `/proc` this is; `None` if it cannot be read.
    pub(crate) fn open(
        tree: &Tree,
        folder: &Path,
        buffer: &mut Buffer,
        missing: &mut Vec<String>,
    ) -> Option<Self> {
        let stat = Kept::open(&folder.join("stat"), missing)?;
        let last = parse::stat(stat.read(buffer)?)?;
        let mut process = Self {
            tasks: folder.join("task"),
            descriptors: folder.join("fd"),
            stat,
            status: Kept::open(&folder.join("status"), missing),
            threads: Vec::new(),
            last,
            groups: Groups::of(tree, folder),
        };
        process.find_threads(buffer);
        Some(process)
    }

    /// What happened since the last call; `None` if the process has ended.
    pub(crate) fn sample(&mut self, buffer: &mut Buffer) -> Option<ProcessUse> {
        let now = parse::stat(self.stat.read(buffer)?)?;
        let last = std::mem::replace(&mut self.last, now);
        let (mut busiest, mut delayed) = (None, None);
        let mut ended = false;
        for (file, seen) in &mut self.threads {
            let Some(now) = file.read(buffer).and_then(parse::schedule) else {
                ended = true;
                continue;
            };
            busiest = busiest.max(Some(now.cpu.since(seen.cpu)));
            delayed = delayed.max(Some(now.run_delay.since(seen.run_delay)));
            *seen = now;
        }
        if ended || now.threads != last.threads {
            self.find_threads(buffer);
        }
        // Since Linux 6.2 the size of the folder is the number of descriptors; before it was zero.
        let descriptors = std::fs::metadata(&self.descriptors).ok().map(|folder| folder.len());
        Some(ProcessUse {
            cpu: (now.user + now.system).since(last.user + last.system),
            busiest_thread: busiest,
            run_delay: delayed,
            threads: now.threads,
            rss_bytes: self.status.as_ref().and_then(|file| parse::resident(file.read(buffer)?)),
            descriptors: descriptors.filter(|count| *count > 0),
            throttling: self.groups.throttling(buffer),
            group_memory_bytes: self.groups.memory_bytes(buffer),
        })
    }

    /// Looks which threads there are. Those of a pool stay; who starts one per request is not followed.
    fn find_threads(&mut self, buffer: &mut Buffer) {
        self.threads.clear();
        for folder in folders(&self.tasks).iter().take(THREADS_WATCHED) {
            let Some(file) = Kept::find(&folder.join("schedstat")) else { continue };
            if let Some(seen) = file.read(buffer).and_then(parse::schedule) {
                self.threads.push((file, seen));
            }
        }
    }
}

/// Several processes that are one service, as one.
pub(crate) fn together(processes: &mut [Process], buffer: &mut Buffer) -> Option<ProcessUse> {
    let mut total: Option<ProcessUse> = None;
    for part in processes.iter_mut().filter_map(|process| process.sample(buffer)) {
        let Some(total) = &mut total else {
            total = Some(part);
            continue;
        };
        let plus = |a: Option<u64>, b: Option<u64>| [a, b].into_iter().flatten().reduce(u64::saturating_add);
        total.cpu += part.cpu;
        total.busiest_thread = total.busiest_thread.max(part.busiest_thread);
        total.run_delay = total.run_delay.max(part.run_delay);
        total.threads += part.threads;
        total.rss_bytes = plus(total.rss_bytes, part.rss_bytes);
        total.descriptors = plus(total.descriptors, part.descriptors);
        // They share a group as a rule, and its figures with it.
        if part.throttled_time() > total.throttled_time() {
            total.throttling = part.throttling;
        }
        total.group_memory_bytes = total.group_memory_bytes.max(part.group_memory_bytes);
    }
    total
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Nanos;

    use super::*;

    #[test]
    fn this_process_is_seen_to_work() {
        let (tree, mut buffer, mut missing) = (Tree::system(), Buffer::new(), Vec::new());
        let folder = tree.at("/proc/self");
        let mut process =
            Process::open(&tree, &folder, &mut buffer, &mut missing).expect("it can look at itself");
        let mut used = ProcessUse::default();
        // Until a tick of 10 ms has passed on a processor.
        while used.cpu == Nanos::ZERO {
            used = process.sample(&mut buffer).expect("it runs");
        }
        assert!(used.threads >= 1 && used.rss_bytes > Some(100 << 10), "{used:?}");
        assert!(used.busiest_thread.is_some(), "{used:?}");
        assert_eq!(missing, [""; 0]);
    }
}
