//! Threads and processes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plimsoll_core::Nanos;
use plimsoll_metrics::{FileUse, ProcessUse, ThreadUse};

use crate::cgroup::Groups;
use crate::kept::{Buffer, ProcFile, note, text};
use crate::parse::process::{self as parse, Schedule, Stat};
use crate::sampler::Tree;

/// Threads of one process that are examined one by one.
pub(crate) const THREADS_WATCHED: usize = 256;
/// Descriptors that are counted one by one, where the system does not tell their number.
const DESCRIPTORS_COUNTED: usize = 4096;

/// One of our own threads, in detail.
#[derive(Debug)]
pub(crate) struct Thread {
    stat: Option<ProcFile>,
    schedule: Option<ProcFile>,
    status: Option<ProcFile>,
    last: ThreadUse,
}

impl Thread {
    /// The thread whose folder this is.
    pub(crate) fn open(folder: &Path, buffer: &mut Buffer) -> Self {
        let find = |name| ProcFile::find(&folder.join(name));
        let mut thread = Self {
            stat: find("stat"),
            schedule: find("schedstat"),
            status: find("status"),
            last: ThreadUse::default(),
        };
        thread.last = thread.read(buffer);
        thread
    }

    /// Returns the use since the last call, or since the thread was opened.
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

    /// Since the thread began. Figures that can no longer be read stay as they were.
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

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) name: String,
    tasks: PathBuf,
    descriptors: PathBuf,
    stat: ProcFile,
    status: Option<ProcFile>,
    files: Option<ProcFile>,
    threads: Vec<(ProcFile, Schedule)>,
    threads_watched: usize,
    pub(crate) last: Stat,
    /// Data moved since the process began.
    pub(crate) last_files: FileUse,
    pub(crate) groups: Groups,
}

impl Process {
    /// The process of this folder in `/proc`; `None` if it cannot be read, or is over. Up to
    /// `threads_watched` of its threads are examined one by one.
    pub(crate) fn open(
        tree: &Tree,
        folder: &Path,
        threads_watched: usize,
        buffer: &mut Buffer,
        missing: &mut Vec<String>,
    ) -> Option<Self> {
        let stat = ProcFile::open(&folder.join("stat"), missing)?;
        let bytes = stat.read(buffer)?;
        let name = String::from_utf8_lossy(parse::name(bytes)?).into_owned();
        let last = parse::stat(bytes).filter(|stat| !stat.is_over)?;
        let mut process = Self {
            pid: folder.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0),
            name,
            tasks: folder.join("task"),
            descriptors: folder.join("fd"),
            stat,
            status: ProcFile::open(&folder.join("status"), missing),
            files: ProcFile::open_readable(&folder.join("io"), missing),
            threads: Vec::new(),
            threads_watched: threads_watched.min(THREADS_WATCHED),
            last,
            last_files: FileUse::default(),
            groups: Groups::of(tree, folder),
        };
        process.last_files = process.read_files(buffer).unwrap_or_default();
        process.find_threads(buffer);
        Some(process)
    }

    /// Counts all that it did since it began as of the interval that goes on.
    pub(crate) fn count_from_its_beginning(&mut self) {
        (self.last.user, self.last.system) = (Nanos::ZERO, Nanos::ZERO);
        self.last_files = FileUse::default();
        self.threads.iter_mut().for_each(|(_, seen)| *seen = Schedule::default());
    }

    /// Resident memory now, in bytes.
    pub(crate) fn rss_bytes(&self, buffer: &mut Buffer) -> Option<u64> {
        self.status.as_ref().and_then(|file| parse::resident(file.read(buffer)?))
    }

    /// Returns the number of threads that are examined one by one.
    pub(crate) const fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Returns `true` if the number of the process is no longer taken: it has ended, and its parent has
    /// reaped it.
    pub(crate) fn is_gone(&self, buffer: &mut Buffer) -> bool {
        self.stat.read(buffer).and_then(parse::stat).is_none()
    }

    /// Returns the use since the last call; `None` if the process has ended.
    pub(crate) fn sample(&mut self, buffer: &mut Buffer, missing: &mut Vec<String>) -> Option<ProcessUse> {
        let now = parse::stat(self.stat.read(buffer)?).filter(|stat| !stat.is_over)?;
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
        let files = self.read_files(buffer).map(|now| {
            let last = std::mem::replace(&mut self.last_files, now);
            since(now, last)
        });
        let rss_bytes = self.rss_bytes(buffer);
        let open = descriptors(&self.descriptors, missing);
        Some(ProcessUse {
            cpu: (now.user + now.system).since(last.user + last.system),
            system: now.system.since(last.system),
            busiest_thread: busiest,
            run_delay: delayed,
            threads: now.threads,
            last_threads: now.threads,
            rss_bytes,
            last_rss_bytes: rss_bytes,
            descriptors: open,
            last_descriptors: open,
            files,
            throttling: self.groups.throttling(buffer),
            group_memory_bytes: self.groups.memory_bytes(buffer),
        })
    }

    /// Returns the data moved since the process began. A value that can no longer be read stays as it was:
    /// the process is about to end.
    fn read_files(&self, buffer: &mut Buffer) -> Option<FileUse> {
        let file = self.files.as_ref()?;
        Some(file.read(buffer).and_then(parse::files).unwrap_or(self.last_files))
    }

    /// Looks which threads there are. Those of a pool stay; threads that are started per request are not
    /// followed.
    fn find_threads(&mut self, buffer: &mut Buffer) {
        self.threads.clear();
        if self.threads_watched == 0 {
            return;
        }
        for folder in folders(&self.tasks).iter().take(self.threads_watched) {
            let Some(file) = ProcFile::find(&folder.join("schedstat")) else { continue };
            if let Some(seen) = file.read(buffer).and_then(parse::schedule) {
                self.threads.push((file, seen));
            }
        }
    }
}

/// Returns the data moved between two looks.
pub(crate) const fn since(now: FileUse, last: FileUse) -> FileUse {
    FileUse {
        read_bytes: now.read_bytes.saturating_sub(last.read_bytes),
        written_bytes: now.written_bytes.saturating_sub(last.written_bytes),
        read_calls: now.read_calls.saturating_sub(last.read_calls),
        write_calls: now.write_calls.saturating_sub(last.write_calls),
    }
}

/// The number of descriptors in a folder of `/proc`.
fn descriptors(folder: &Path, missing: &mut Vec<String>) -> Option<u64> {
    // Since Linux 6.2 the size of the folder is the number of its entries; before, it was zero, as if there
    // were none.
    let entries = std::fs::metadata(folder).and_then(|metadata| match metadata.len() {
        0 => std::fs::read_dir(folder).map(Err),
        size => Ok(Ok(size)),
    });
    match entries {
        Ok(Ok(size)) => Some(size),
        Ok(Err(entries)) => {
            let count = entries.take(DESCRIPTORS_COUNTED + 1).count();
            if count > DESCRIPTORS_COUNTED {
                note(missing, format!("{}: more than {DESCRIPTORS_COUNTED}, not counted", folder.display()));
                return None;
            }
            Some(count as u64)
        }
        // The process has just ended.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            note(missing, format!("{}: {error}", folder.display()));
            None
        }
    }
}

/// Several processes that are one server, as one. A figure that is unknown for one of them is unknown for
/// all: a sum with a part missing would be wrong.
pub(crate) fn together(parts: impl Iterator<Item = ProcessUse>) -> Option<ProcessUse> {
    let plus = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    parts.reduce(|mut total, part| {
        total.cpu += part.cpu;
        total.system += part.system;
        total.busiest_thread = total.busiest_thread.max(part.busiest_thread);
        total.run_delay = total.run_delay.max(part.run_delay);
        total.threads += part.threads;
        total.last_threads = total.threads;
        total.rss_bytes = plus(total.rss_bytes, part.rss_bytes);
        total.last_rss_bytes = total.rss_bytes;
        total.descriptors = plus(total.descriptors, part.descriptors);
        total.last_descriptors = total.descriptors;
        total.files = total.files.zip(part.files).map(|(mut total, part)| {
            total.add(&part);
            total
        });
        // The processes usually share a group, and its figures.
        if part.throttled_time() > total.throttled_time() {
            total.throttling = part.throttling;
        }
        total.group_memory_bytes = total.group_memory_bytes.max(part.group_memory_bytes);
        total
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_to_work() {
        let (tree, mut buffer, mut missing) = (Tree::system(), Buffer::new(), Vec::new());
        let folder = tree.at("/proc/self");
        let mut process = Process::open(&tree, &folder, THREADS_WATCHED, &mut buffer, &mut missing)
            .expect("it can look at itself");
        let mut used = ProcessUse::default();
        // Until a tick of 10 ms has passed on a processor.
        while used.cpu == Nanos::ZERO {
            used = process.sample(&mut buffer, &mut missing).expect("it runs");
        }
        assert!(used.threads >= 1 && used.rss_bytes > Some(100 << 10), "{used:?}");
        assert!(used.busiest_thread.is_some(), "{used:?}");
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn a_part_of_a_sum_is_no_sum() {
        let of = |rss, files| ProcessUse { cpu: Nanos(1), rss_bytes: rss, files, ..ProcessUse::default() };
        let known = of(Some(3), Some(FileUse { written_bytes: 4, ..FileUse::default() }));
        let both = together([known, known].into_iter()).expect("there are two");
        assert_eq!((both.rss_bytes, both.files.map(|files| files.written_bytes)), (Some(6), Some(8)));
        let half = together([known, of(None, None)].into_iter()).expect("there are two");
        assert_eq!((half.cpu, half.rss_bytes, half.files), (Nanos(2), None, None));
        assert_eq!(together(std::iter::empty()), None);
    }
}
