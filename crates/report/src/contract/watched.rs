//! Servers whose processes were watched beside the load, as results have them.

use plimsoll_core::figure;
use plimsoll_metrics::{
    FoundBy, MachineInterval, ProcessEvent, ProcessUse, RunRecord, WatchedProcess, WatchedUse,
};
use plimsoll_statistics::trend;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::machine::{LimitsResult, ProcessResult, measured, rounded};

/// The processes of a server that was watched: those that were named, or that listen on the target's address,
/// with their descendants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedResult {
    /// The name of its first process; the name that was asked for if there was none, or if it is a node.
    pub name: String,
    /// Method by which it was found: "address", where it listens on the target's, "pid", "name", or "node" of
    /// a cluster that we have started.
    pub found_by: String,
    /// True if the verdict took it for the target's.
    pub is_target: bool,
    /// Processes of the server at the start.
    pub pids: Vec<u32>,
    /// Processes at most at the end of an interval.
    pub processes: u64,
    /// Processes that began in the measured part.
    pub began: u64,
    /// Processes that ended in the measured part.
    pub ended: u64,
    /// Limits by the control groups of the first process.
    pub limits: LimitsResult,
    /// Soft limit of open descriptors of the first process; null if it cannot be read.
    pub descriptor_limit: Option<u64>,
    /// Resident memory of all of its processes.
    pub memory: MemoryResult,
    /// Growth of its resources over the measured part.
    #[serde(default)]
    pub trends: TrendsResult,
    /// Resources used by its processes together in the measured part; null if there were none.
    pub used: Option<ProcessResult>,
    /// Beginnings and ends of its processes, the first of them, those of the warm-up included.
    pub events: Vec<ProcessEventResult>,
    /// Sources about it that could not be read, and why; figures that depend on them are null.
    pub missing: Vec<String>,
}

/// Growth of resources over the measured part: slopes of lines through the values at the ends of intervals.
/// Null if there are fewer than five intervals, or if a value is missing in one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendsResult {
    /// Length of the time that they are of, in seconds.
    pub over_s: f64,
    /// Resident memory, in bytes per hour.
    pub rss_bytes_per_h: Option<TrendResult>,
    /// Open descriptors per hour.
    pub descriptors_per_h: Option<TrendResult>,
    /// Threads per hour.
    pub threads_per_h: Option<TrendResult>,
}

/// A slope with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendResult {
    /// Change per hour.
    pub slope: f64,
    /// The true slope lies within slope ± error with 95 % confidence; see docs/statistics.md.
    pub error: f64,
}

/// Resident memory over the measured part. Pages that processes share count for each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryResult {
    /// In bytes when the measured part began.
    pub first_bytes: Option<u64>,
    /// In bytes at most, as seen at the ends of intervals.
    pub peak_bytes: Option<u64>,
    /// In bytes when the measured part ended, or when the last process did.
    pub last_bytes: Option<u64>,
    /// Growth in bytes per minute: (last − first) by the length of the measured part; null if no process was
    /// left at its end, or that part was shorter than a minute.
    pub growth_bytes_per_min: Option<f64>,
}

/// A watched process began or ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessEventResult {
    /// The end of the interval in which it did, in seconds since the start of the run.
    pub at_s: f64,
    /// "began" or "ended".
    pub what: String,
    /// Process id.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
}

/// Resources used by a watched server in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedInterval {
    /// Processes of the server at the end of the interval.
    pub processes: u64,
    /// Resources used by them together; null if there were none.
    pub used: Option<ProcessResult>,
}

impl WatchedResult {
    /// All servers that were watched.
    pub(crate) fn all(record: &RunRecord) -> Vec<Self> {
        let Some(total) = measured(record) else { return Vec::new() };
        let servers = record.machine.facts.watched.iter().enumerate();
        servers.map(|(number, server)| Self::new(number, server, record, &total)).collect()
    }

    fn new(number: usize, server: &WatchedProcess, record: &RunRecord, total: &MachineInterval) -> Self {
        let used = total.watched.get(number).cloned().unwrap_or_default();
        let (found_by, asked) = match &server.found_by {
            FoundBy::Address => (ADDRESS, String::new()),
            FoundBy::Pid(pid) => ("pid", pid.to_string()),
            FoundBy::Name(name) => ("name", name.clone()),
            FoundBy::Mark(name) => ("node", name.clone()),
        };
        let memory = record.machine.memory(number, total);
        let looks = record.machine.intervals.iter().filter_map(|part| part.watched.get(number));
        let events = looks.flat_map(|watched| &watched.events).take(EVENTS).map(ProcessEventResult::new);
        Self {
            // The name of a node says more than that of its program.
            name: if server.name.is_empty() || found_by == "node" { asked } else { server.name.clone() },
            found_by: found_by.to_owned(),
            is_target: server.is_target,
            pids: server.pids.clone(),
            processes: used.processes,
            began: used.began,
            ended: used.ended,
            limits: server.limits,
            descriptor_limit: server.descriptor_limit,
            memory: MemoryResult {
                first_bytes: memory.first,
                peak_bytes: memory.peak,
                last_bytes: memory.last,
                growth_bytes_per_min: memory.growth_per_minute.map(rounded),
            },
            trends: TrendsResult::new(record, |part| part.watched.get(number)?.used),
            used: used.used.map(|used| ProcessResult::new(&used, total)),
            events: events.collect(),
            missing: server.missing.clone(),
        }
    }

    /// Returns its name for people: `nginx (3 processes)`.
    pub(crate) fn title(&self) -> String {
        match (self.processes, self.pids.as_slice()) {
            (0 | 1, [pid]) => format!("{} ({pid})", self.name),
            (processes, _) => format!("{} ({processes} processes)", self.name),
        }
    }

    /// Returns the figures of the server for people, a line for each kind. For a server that was not named by
    /// the user, the first line has all figures.
    pub(crate) fn lines(&self) -> Vec<String> {
        let title = self.title();
        let mut lines = match &self.used {
            None => vec![format!("{title}: it did not run in the measured part")],
            Some(used) if self.found_by == ADDRESS => {
                vec![format!("{title}: {}, {}", processors(used), self.memory.line())]
            }
            Some(used) => {
                let lines = [format!("{title}: {}", processors(used)), self.memory.line(), self.others(used)];
                lines.into_iter().chain(self.trends.line()).collect()
            }
        };
        lines.extend(self.ends());
        if self.found_by != ADDRESS {
            lines.extend(self.missing.iter().map(|reason| format!("not read: {reason}")));
        }
        lines
    }

    /// `7 threads, 129 of 1,024 descriptors; 0 B read from disk, 12 MiB written, 1,200 write calls`
    fn others(&self, used: &ProcessResult) -> String {
        let mut parts = vec![format!("{} threads at most", figure::count(used.threads))];
        if let Some(descriptors) = used.descriptors {
            // The limit applies to each process.
            let limit = self.descriptor_limit.filter(|_| self.processes <= 1);
            let of = limit.map_or(String::new(), |limit| format!(" of {}", figure::count(limit)));
            parts.push(format!("{}{of} descriptors", figure::count(descriptors)));
        }
        if let (Some(read), Some(written)) = (used.disk_read_bytes, used.disk_written_bytes) {
            let (read, written) = (figure::bytes(read), figure::bytes(written));
            parts.push(format!("disk: {read} read, {written} written"));
        }
        if let Some(calls) = used.write_calls {
            parts.push(format!("{} write calls", figure::count(calls)));
        }
        parts.join(", ")
    }

    /// `the watched process 123 (nginx) had ended by 4 s`: when it was looked for and not found.
    pub(crate) fn ends(&self) -> Vec<String> {
        let all: Vec<&ProcessEventResult> = self.events.iter().filter(|event| event.what == ENDED).collect();
        let mut lines: Vec<String> = all
            .iter()
            .take(ENDS_TOLD)
            .map(|event| {
                let at = crate::render::document::seconds(event.at_s);
                format!("the watched process {} ({}) had ended by {at}", event.pid, event.name)
            })
            .collect();
        if all.len() > ENDS_TOLD {
            lines.push(format!("and {} more ended: see `events` in JSON", all.len() - ENDS_TOLD));
        }
        lines
    }
}

/// Beginnings and ends that a result lists, per server.
const EVENTS: usize = 100;
/// Most ends of processes that are reported per server.
const ENDS_TOLD: usize = 3;
/// `found_by` of the target's process if no flag named it.
pub(crate) const ADDRESS: &str = "address";
const ENDED: &str = "ended";

/// `0.82 CPUs (user 0.60, system 0.22)`
fn processors(used: &ProcessResult) -> String {
    let parts = used.system_cpus.map_or(String::new(), |system| {
        format!(" (user {:.2}, system {system:.2})", (used.cpus - system).max(0.0))
    });
    format!("{:.2} CPUs{parts}", used.cpus)
}

impl MemoryResult {
    /// `memory 12.0 MiB at first, 15.3 MiB at last, 16.0 MiB at most, growing by 3.20 MiB/min`
    pub(crate) fn line(&self) -> String {
        let figures = [(self.first_bytes, "first"), (self.last_bytes, "last"), (self.peak_bytes, "most")];
        let known = figures.into_iter().filter_map(|(bytes, when)| Some((bytes?, when)));
        let parts: Vec<String> =
            known.map(|(bytes, when)| format!("{} at {when}", figure::bytes(bytes))).collect();
        if parts.is_empty() {
            return "memory: not known".to_owned();
        }
        let growth = self.growth_bytes_per_min.map_or(String::new(), |growth| format!(", {}", rate(growth)));
        format!("memory {}{growth}", parts.join(", "))
    }
}

/// `growing by 3.2 MiB/min`
pub(crate) fn rate(growth: f64) -> String {
    let bytes = figure::bytes(growth.abs() as u64);
    match growth {
        growth if growth >= 1.0 => format!("growing by {bytes}/min"),
        growth if growth <= -1.0 => format!("shrinking by {bytes}/min"),
        _ => "not growing".to_owned(),
    }
}

/// Shorter runs say nothing about hours: their beginning is most of what they show.
const TREND_FROM_S: f64 = 60.0;

impl TrendsResult {
    /// Returns the trends of a process, or of several together, from its use in each interval.
    pub(crate) fn new(record: &RunRecord, used: impl Fn(&MachineInterval) -> Option<ProcessUse>) -> Self {
        let end = record.warmup + record.duration;
        let measured = record.machine.intervals.iter().filter(|part| !part.warmup && part.at <= end);
        let measured: Vec<&MachineInterval> = measured.collect();
        let of = |of: fn(&ProcessUse) -> Option<u64>| {
            let point =
                |part: &&MachineInterval| Some((part.at.as_secs_f64() / 3_600.0, of(&used(part)?)? as f64));
            let points: Option<Vec<(f64, f64)>> = measured.iter().map(point).collect();
            let found = trend(&points?, 0.95)?;
            Some(TrendResult { slope: rounded(found.slope), error: rounded(found.error) })
        };
        Self {
            over_s: rounded(record.duration.as_secs_f64()),
            rss_bytes_per_h: of(|used| used.last_rss_bytes),
            descriptors_per_h: of(|used| used.last_descriptors),
            threads_per_h: of(|used| Some(used.last_threads)),
        }
    }

    /// `memory grows by 1.20 MiB ± 102 KiB per hour, descriptors and threads show no trend`; nothing of a run
    /// that is too short for it.
    pub(crate) fn line(&self) -> Option<String> {
        if self.over_s < TREND_FROM_S {
            return None;
        }
        let bytes = |value: f64| figure::bytes(value.round() as u64);
        let number = |value: f64| format!("{value:.1}");
        let said = [
            self.rss_bytes_per_h.map(|trend| trend.said("memory", bytes)),
            self.descriptors_per_h.map(|trend| trend.said("descriptors", number)),
            self.threads_per_h.map(|trend| trend.said("threads", number)),
        ];
        let said: Vec<String> = said.into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

impl TrendResult {
    /// `memory growing by 1.20 MiB ± 102 KiB per hour`
    fn said(self, name: &str, show: impl Fn(f64) -> String) -> String {
        let (slope, error) = (show(self.slope.abs()), show(self.error));
        match self.slope.abs() > self.error {
            true if self.slope > 0.0 => format!("{name} growing by {slope} ± {error} per hour"),
            true => format!("{name} shrinking by {slope} ± {error} per hour"),
            false => format!("{name} without a trend (0 ± {error} per hour)"),
        }
    }
}

impl ProcessEventResult {
    fn new(event: &ProcessEvent) -> Self {
        Self {
            at_s: rounded(event.at.as_secs_f64()),
            what: if event.ended { ENDED } else { "began" }.to_owned(),
            pid: event.pid,
            name: event.name.clone(),
        }
    }
}

impl WatchedInterval {
    pub(crate) fn new(watched: &WatchedUse, interval: &MachineInterval) -> Self {
        Self {
            processes: watched.processes,
            used: watched.used.map(|used| ProcessResult::new(&used, interval)),
        }
    }
}
