//! Cumulative totals of a run so far, as monitoring systems count.

use plimsoll_core::{ErrorCounts, Nanos};
use plimsoll_metrics::{
    FileUse, FoundBy, Interval, MachineFacts, MachineInterval, MetricRecord, Outline, ProcessUse, Tally,
    WatchedProcess, WatchedUse,
};
use plimsoll_system::usage;

use crate::times::Times;

/// The figures of a run so far. Counts only grow, so that an occasional reader misses nothing.
///
/// One is made before the run; [`add`](Self::add) takes every interval in its order. The warm-up is kept
/// apart, so that the rest adds up to the accounts of the result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    pub(crate) outline: Outline,
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) started_unix: Nanos,
    pub(crate) at: Nanos,
    pub(crate) warmup: Vec<StepTotals>,
    pub(crate) measured: Vec<StepTotals>,
    pub(crate) gauges: Gauges,
    pub(crate) servers: Vec<ServerTotals>,
    /// Metrics of the plan's own, in its order.
    pub(crate) metrics: Vec<MetricRecord>,
    pub(crate) valid: Option<bool>,
}

/// Values that are read and not counted, as of the end of the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// Iterations per second that are asked for; `None` in the closed model.
    pub target_per_second: Option<f64>,
    /// Whole responses per second of the last interval; `None` before the first one.
    pub achieved_per_second: Option<f64>,
    /// `true` while the run is paused.
    pub paused: bool,
    /// Requests in flight.
    pub in_flight: u64,
    /// Open connections.
    pub connections: u64,
    /// Thresholds that do not hold now.
    pub thresholds_failed: u32,
    /// CPU time of this process in user mode and in the kernel, since it began.
    pub cpu: Option<(Nanos, Nanos)>,
    /// Resident memory of this process in bytes.
    pub memory_bytes: Option<u64>,
}

/// A server whose processes are watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerTotals {
    pub(crate) name: String,
    /// Place of the server among those that are watched, from 1 on: several may have one name.
    pub(crate) number: String,
    pub(crate) processes: u64,
    pub(crate) user: Nanos,
    pub(crate) system: Nanos,
    /// File use of the server in total; `None` from the first interval in which that was not known.
    pub(crate) files: Option<FileUse>,
    /// Gauges of the server; `None` while it has no process.
    pub(crate) now: Option<ProcessUse>,
}

impl ServerTotals {
    fn new(number: usize, facts: &WatchedProcess) -> Self {
        let name = match &facts.found_by {
            FoundBy::Name(name) | FoundBy::Mark(name) => name.clone(),
            _ => facts.name.clone(),
        };
        let number = (number + 1).to_string();
        Self { name, number, files: Some(FileUse::default()), ..Self::default() }
    }

    fn add(&mut self, watched: &WatchedUse) {
        self.processes = watched.processes;
        self.now = watched.used;
        let Some(used) = &watched.used else { return };
        self.system += used.system;
        self.user += used.cpu.since(used.system);
        // A sum with a part missing would be wrong.
        self.files = self.files.zip(used.files).map(|(mut sum, part)| {
            sum.add(&part);
            sum
        });
    }
}

/// The counts of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StepTotals {
    pub(crate) started: u64,
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) timed_out: u64,
    /// Whole responses with a status below 300, then from 300, 400 and 500 on.
    pub(crate) statuses: [u64; 4],
    pub(crate) errors: ErrorCounts,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) response_time: Times,
    pub(crate) service_time: Times,
    pub(crate) content_events: u64,
    pub(crate) ttft: Times,
}

impl StepTotals {
    fn add(&mut self, tally: &Tally) {
        self.started += tally.started;
        self.ok += tally.ok;
        self.failed += tally.failed;
        self.timed_out += tally.timed_out;
        let others: u64 = tally.statuses.iter().sum();
        self.statuses[0] += tally.completed.saturating_sub(others);
        for (mine, theirs) in self.statuses[1..].iter_mut().zip(&tally.statuses) {
            *mine += theirs;
        }
        self.errors.merge(&tally.errors);
        self.bytes_sent += tally.bytes_sent;
        self.bytes_received += tally.bytes_received;
        self.response_time.add(&tally.response_time, Some(tally.response_time_sum));
        self.service_time.add(&tally.service_time, None);
        self.content_events += tally.content_events;
        self.ttft.add(&tally.ttft, None);
    }
}

impl Totals {
    /// Returns the totals of a run that has not begun. `facts` are names and values that identify it: the
    /// version of the program, the plan, the seed.
    pub fn new(outline: Outline, facts: Vec<(&'static str, String)>) -> Self {
        let steps = vec![StepTotals::default(); outline.steps.len()];
        let metrics = outline.metrics.iter().cloned().map(MetricRecord::new).collect();
        Self { outline, facts, warmup: steps.clone(), measured: steps, metrics, ..Self::default() }
    }

    /// Adds an interval, which has its steps, and takes over the gauges at its end. `started_unix` is the
    /// start of the run in Unix time.
    pub fn add(&mut self, started_unix: Nanos, interval: &Interval, gauges: Gauges) {
        self.started_unix = started_unix;
        self.at = interval.at;
        let steps = if interval.warmup { &mut self.warmup } else { &mut self.measured };
        for (mine, tally) in steps.iter_mut().zip(&interval.steps) {
            mine.add(tally);
        }
        for (mine, exemplars) in steps.iter_mut().zip(&interval.exemplars) {
            mine.response_time.renew(exemplars, started_unix);
        }
        MetricRecord::merge_all(&mut self.metrics, &interval.metrics);
        let length = interval.length.as_secs_f64();
        // During the drain no rate is asked for.
        let rate = (length > 0.0 && !interval.drain).then(|| interval.completed as f64 / length);
        self.gauges = Gauges {
            achieved_per_second: rate.or(self.gauges.achieved_per_second),
            in_flight: interval.in_flight,
            connections: interval.connections,
            thresholds_failed: interval.thresholds_failed,
            ..gauges
        };
    }

    /// Adds the usage of the watched servers in an interval.
    pub fn watch(&mut self, facts: &MachineFacts, seen: &MachineInterval) {
        for (number, (facts, watched)) in facts.watched.iter().zip(&seen.watched).enumerate() {
            if self.servers.len() <= number {
                self.servers.push(ServerTotals::new(number, facts));
            }
            self.servers[number].add(watched);
        }
    }

    /// The run is over, and its figures can be believed or not. From then on the gauges of the load are zero.
    pub fn end(&mut self, valid: bool) {
        self.valid = Some(valid);
        let target_per_second = self.gauges.target_per_second.map(|_| 0.0);
        let achieved_per_second = self.gauges.achieved_per_second.map(|_| 0.0);
        let over =
            Gauges { target_per_second, achieved_per_second, in_flight: 0, connections: 0, ..self.gauges };
        self.gauges = over;
    }

    /// Adds the usage of this process so far to the gauges.
    #[must_use]
    pub fn with_process(mut self) -> Self {
        let cpu = usage::process_cpu();
        self.gauges.cpu = Some((cpu.user, cpu.system));
        self.gauges.memory_bytes = usage::rss_bytes();
        self
    }

    /// Names of the scenario and the step of an index; those of a plain URL are the same.
    pub(crate) fn names(&self, step: usize) -> (&str, &str) {
        let name = self.outline.steps.get(step).map_or("", String::as_str);
        let scenario = u32::try_from(step).ok().and_then(|step| self.outline.scenario_of(step));
        let scenario = scenario.and_then(|index| self.outline.scenarios.get(index));
        (scenario.map_or(name, |scenario| scenario.name.as_str()), name)
    }
}
