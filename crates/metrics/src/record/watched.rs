//! The processes that are watched beside the load: the servers that the load goes to, as a rule.

use plimsoll_core::Nanos;

use super::machine::{GroupLimits, MachineInterval, MachineRecord, ProcessUse, joined};
use serde::{Deserialize, Serialize};

/// Beginnings and ends of processes that are kept one by one, per watched server; all are counted.
const EVENTS_KEPT: usize = 100;

/// Reason why processes are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FoundBy {
    /// The processes that listen on the target's address.
    #[default]
    Address,
    /// The one with this number, and its descendants.
    Pid(u32),
    /// The processes with this name, and their descendants.
    Name(String),
    /// The processes of the server of this name, which we have started, recognised by an entry of their
    /// environment.
    Mark(String),
}

/// Processes that are watched together as one server, with its workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedProcess {
    /// The name of the first.
    pub name: String,
    /// Reason why they are watched.
    pub found_by: FoundBy,
    /// `true` if they count as the target's when the limit of the run is judged.
    pub is_target: bool,
    /// Their numbers at the start.
    pub pids: Vec<u32>,
    /// Limits of the first one's control groups.
    pub limits: GroupLimits,
    /// Soft limit of open descriptors of the first.
    pub descriptor_limit: Option<u64>,
    /// Resident memory of all at the start, in bytes.
    pub first_rss_bytes: Option<u64>,
    /// Facts about them that could not be read, with the reason; each once.
    pub missing: Vec<String>,
}

/// Resources that a watched server used between two looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedUse {
    /// Processes of the server at the end; of several intervals that are joined the most.
    pub processes: u64,
    /// Resources that they used together; `None` if there was no process.
    pub used: Option<ProcessUse>,
    /// Processes that began.
    pub began: u64,
    /// Processes that ended.
    pub ended: u64,
    /// The first of these beginnings and ends, in order of time.
    pub events: Vec<ProcessEvent>,
}

/// A watched process began or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEvent {
    /// The end of the interval in which it was noticed, since the start of the run.
    pub at: Nanos,
    /// Number of the process.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// `true` if the process ended; `false` if it began.
    pub ended: bool,
}

/// Data that a process moved between files and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileUse {
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes handed to storage, or to the cache in front of it.
    pub written_bytes: u64,
    /// System calls that read from anything: files, sockets, pipes.
    pub read_calls: u64,
    /// System calls that write to anything.
    pub write_calls: u64,
}

/// Resident memory over the measured part, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryCourse {
    /// When it began.
    pub first: Option<u64>,
    /// At most.
    pub peak: Option<u64>,
    /// When it ended, or when the last process did.
    pub last: Option<u64>,
    /// Growth in bytes per minute: the last less the first, by the length of the measured part; `None` if
    /// nothing of the server was left at its end, or the measured part was shorter than a minute.
    pub growth_per_minute: Option<f64>,
}

impl WatchedUse {
    /// Adds the interval that follows.
    pub(super) fn join(&mut self, next: &Self) {
        self.processes = self.processes.max(next.processes);
        self.used = joined(self.used, next.used, ProcessUse::join);
        self.began += next.began;
        self.ended += next.ended;
        let room = EVENTS_KEPT.saturating_sub(self.events.len());
        self.events.extend(next.events.iter().take(room).cloned());
    }

    /// Sets the time of the beginnings and ends in it.
    pub fn set_time(&mut self, at: Nanos) {
        self.events.iter_mut().for_each(|event| event.at = at);
        self.events.truncate(EVENTS_KEPT);
    }
}

impl FileUse {
    /// Adds the traffic of a further time, or of another process.
    pub fn add(&mut self, other: &Self) {
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.read_calls += other.read_calls;
        self.write_calls += other.write_calls;
    }
}

impl MachineRecord {
    /// Resident memory of the watched server with this number over the measured part, which
    /// [`measured`](Self::measured) has summed up in `total`.
    pub fn memory(&self, number: usize, total: &MachineInterval) -> MemoryCourse {
        let rss = |part: &MachineInterval| part.watched.get(number)?.used?.last_rss_bytes;
        let before = self.intervals.iter().rfind(|part| part.warmup).map(rss);
        let at_start = || self.facts.watched.get(number)?.first_rss_bytes;
        let first = before.unwrap_or_else(at_start);
        let used = total.watched.get(number).and_then(|watched| watched.used);
        let last = used.and_then(|used| used.last_rss_bytes);
        let minutes = total.length.as_secs_f64() / 60.0;
        let ending = self.intervals.iter().rfind(|part| !part.warmup && part.at <= total.at);
        let is_left = ending.is_some_and(|part| rss(part).is_some());
        let growth = first.zip(last).filter(|_| is_left && minutes >= 1.0);
        MemoryCourse {
            first,
            peak: used.and_then(|used| used.rss_bytes).max(first),
            last,
            growth_per_minute: growth.map(|(first, last)| (last as f64 - first as f64) / minutes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MachineFacts;

    const MIB: u64 = 1 << 20;

    fn second(number: u64, rss: Option<u64>) -> MachineInterval {
        let used = rss.map(|rss| ProcessUse {
            rss_bytes: Some(rss),
            last_rss_bytes: Some(rss),
            files: Some(FileUse { written_bytes: 7, ..FileUse::default() }),
            ..ProcessUse::default()
        });
        MachineInterval {
            at: Nanos::from_secs(number),
            length: Nanos::from_secs(1),
            warmup: number <= 2,
            watched: vec![WatchedUse { processes: u64::from(rss.is_some()), used, ..WatchedUse::default() }],
            ..MachineInterval::default()
        }
    }

    fn record(course: &[Option<u64>]) -> MachineRecord {
        let watched = WatchedProcess { first_rss_bytes: Some(MIB), ..WatchedProcess::default() };
        let facts = MachineFacts { watched: vec![watched], ..MachineFacts::default() };
        let mut record = MachineRecord { facts, intervals: Vec::new() };
        (1..).zip(course).for_each(|(number, rss)| record.intervals.push(second(number, *rss)));
        record
    }

    #[test]
    fn memory_is_that_of_the_measured_part() {
        let course = [2, 3, 9, 5, 4].map(|mib| Some(mib * MIB));
        let record = record(&course);
        let total = record.measured(Nanos::MAX).expect("it was watched");
        let memory = record.memory(0, &total);
        assert_eq!((memory.first, memory.peak, memory.last), (Some(3 * MIB), Some(9 * MIB), Some(4 * MIB)));
        // Symptom: "growing by 20.0 MiB/min", of one in three seconds.
        assert_eq!(memory.growth_per_minute, None);
        let minutes = MachineInterval { length: Nanos::from_secs(120), ..total.clone() };
        assert_eq!(record.memory(0, &minutes).growth_per_minute, Some(MIB as f64 / 2.0));
        assert_eq!(
            total.watched[0].used.and_then(|used| used.files).map(|files| files.written_bytes),
            Some(21)
        );
    }

    #[test]
    fn without_a_warm_up_memory_begins_with_the_first_look() {
        let mut record = record(&[Some(2 * MIB), Some(2 * MIB)]);
        record.intervals.iter_mut().for_each(|part| part.warmup = false);
        let total = record.measured(Nanos::MAX).expect("it was watched");
        assert_eq!(record.memory(0, &total).first, Some(MIB));
        // No such server.
        assert_eq!(record.memory(1, &total), MemoryCourse::default());
    }

    #[test]
    fn a_server_that_ended_keeps_what_was_seen_of_it() {
        let record = record(&[Some(MIB), Some(MIB), Some(6 * MIB), None]);
        let total = record.measured(Nanos::MAX).expect("it was watched");
        let memory = record.memory(0, &total);
        assert_eq!((memory.last, memory.growth_per_minute), (Some(6 * MIB), None));
        assert_eq!(total.watched[0].processes, 1);
    }

    #[test]
    fn events_are_bounded_and_counted() {
        let event = |at| ProcessEvent { at, pid: 7, name: String::new(), ended: true };
        let one = WatchedUse { ended: 60, events: vec![event(Nanos(1)); 60], ..WatchedUse::default() };
        let mut all = one.clone();
        all.join(&one);
        all.join(&one);
        assert_eq!((all.ended, all.events.len()), (180, EVENTS_KEPT));
    }
}
