//! Resources of the machine that were used beside the load, as results have them.

use plimsoll_core::Nanos;
pub use plimsoll_metrics::{
    AcceptQueue as AcceptQueueResult, GroupLimits as LimitsResult, NetworkUse as NetworkResult,
    OwnSegments as OwnSegmentsResult,
};
use plimsoll_metrics::{
    CoreUse, Interval, MachineInterval, MachineRecord, OtherUse, ProcessUse, RunRecord, ThreadUse,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::watched::WatchedInterval;

/// Resources of the machine used in a time, as its system counts them. Figures that the system does not
/// report are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUse {
    /// The time in seconds. A look comes a little after the end of its interval.
    pub length_s: f64,
    /// The worker threads of the generator, by their numbers.
    pub workers: Vec<ThreadResult>,
    /// The generator's process as a whole.
    pub generator: Option<ProcessResult>,
    /// The target's processes together, if they are on this machine and were found.
    pub target: Option<ProcessResult>,
    /// The servers that were watched, in the order of `generator.watched`; omitted if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<WatchedInterval>,
    /// Other processes that used the processors, by their names, the largest first; looked for where others
    /// used more than a tenth of a processor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherResult>,
    /// Share of its time, from 0 to 1, in which each processor worked, for whomever.
    pub cores_busy_share: Vec<f64>,
    /// Share of all processors' time that went into the work of interrupts, that of the network above all.
    pub softirq_share: f64,
    /// Share of all processors' time that the hypervisor took away.
    pub steal_share: f64,
    /// Time in seconds for which some task of the machine waited for a processor (pressure stall
    /// information).
    pub pressure_s: Option<f64>,
    /// Tasks that were running or ready to, as a mean over the minute before the end.
    pub load_1m: Option<f64>,
    /// The network of the machine, by whomever it is used.
    pub network: NetworkResult,
    /// The accept queue of the target's own sockets. Left away if the target does not listen in this network,
    /// or the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_queue: Option<AcceptQueueResult>,
    /// TCP segments of the connections of the load alone. Left away if they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_segments: Option<OwnSegmentsResult>,
}

/// Resources used by the processes of one name, which are neither the generator nor watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherResult {
    /// Their name.
    pub name: String,
    /// The number of the one that used most.
    pub pid: u32,
    /// Number of them that used any CPU time.
    pub processes: u64,
    /// CPU time of all of them, at least, as a multiple of the time.
    pub cpus: f64,
}

/// Resources used by one worker thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadResult {
    /// CPU time of both kinds as a share of the time.
    pub cpu_share: f64,
    /// The part of it in the kernel, in ticks of 10 ms.
    pub system_share: f64,
    /// Time in seconds for which it was ready to run but had no processor.
    pub run_delay_s: Option<f64>,
    /// Switches because it waited for something.
    pub voluntary_switches: Option<u64>,
    /// Switches because the scheduler took the processor away.
    pub involuntary_switches: Option<u64>,
}

/// Resources used by a process, or by several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessResult {
    /// CPU time of both kinds as a multiple of the time: 2 is two processors used up.
    pub cpus: f64,
    /// The part of it in the kernel.
    #[serde(default)]
    pub system_cpus: Option<f64>,
    /// CPU time of its busiest thread as a share of the time.
    pub busiest_thread_share: Option<f64>,
    /// The longest time in seconds for which one of its threads was ready to run but had no processor.
    pub run_delay_s: Option<f64>,
    /// Threads at most.
    pub threads: u64,
    /// Resident memory in bytes at most.
    pub rss_bytes: Option<u64>,
    /// Open descriptors at most.
    pub descriptors: Option<u64>,
    /// Bytes fetched from storage; null where the system does not report them, as of another user's process.
    #[serde(default)]
    pub disk_read_bytes: Option<u64>,
    /// Bytes handed to storage, or to the cache in front of it; null as above.
    #[serde(default)]
    pub disk_written_bytes: Option<u64>,
    /// System calls that read, from files, sockets or pipes; null as above.
    #[serde(default)]
    pub read_calls: Option<u64>,
    /// System calls that write, to files, sockets or pipes; null as above. Those of io_uring do not count.
    #[serde(default)]
    pub write_calls: Option<u64>,
    /// Share of the periods in which its control group had used up its CPU time; null without such a limit.
    pub throttled_share: Option<f64>,
    /// CPU time in seconds for which its control group was held up; null without such a limit.
    pub throttled_s: Option<f64>,
    /// Memory of its control group in bytes at most.
    pub group_memory_bytes: Option<u64>,
}

/// The machine over the measured part, and what about it did not change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineSummary {
    /// Resources used in the measured part.
    #[serde(flatten)]
    pub used: MachineUse,
    /// Local ports that connections may get, per pair of addresses.
    pub ports: Option<u64>,
    /// Soft limit of open file descriptors.
    pub soft_descriptors: Option<u64>,
    /// Limits by the control groups of the generator.
    pub limits: LimitsResult,
    /// Sources that could not be read, and why.
    pub missing: Vec<String>,
}

/// The target's process on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetProcessResult {
    /// Process id of the target; several, if several processes listen together.
    pub pids: Vec<u32>,
    /// The name of the first.
    pub name: String,
    /// Limits by its control groups.
    pub limits: LimitsResult,
    /// Resources that it used in the measured part.
    #[serde(flatten)]
    pub used: ProcessResult,
}

impl MachineUse {
    pub(crate) fn new(interval: &MachineInterval) -> Self {
        let busy = |core: &CoreUse| rounded(interval.share(core.busy));
        Self {
            length_s: rounded(interval.length.as_secs_f64()),
            workers: interval.workers.iter().map(|thread| ThreadResult::new(thread, interval)).collect(),
            generator: interval.generator.map(|process| ProcessResult::new(&process, interval)),
            target: interval.target.map(|process| ProcessResult::new(&process, interval)),
            watched: interval.watched.iter().map(|server| WatchedInterval::new(server, interval)).collect(),
            others: interval.others.iter().map(|other| OtherResult::new(other, interval)).collect(),
            cores_busy_share: interval.cores.iter().map(busy).collect(),
            softirq_share: rounded(interval.cores_share(|core| core.softirq)),
            steal_share: rounded(interval.cores_share(|core| core.steal)),
            pressure_s: interval.pressure.map(seconds),
            load_1m: interval.load_hundredths.map(|load| load as f64 / 100.0),
            network: interval.network,
            target_queue: interval.target_queue,
            own_segments: interval.own_segments,
        }
    }
}

impl OtherResult {
    fn new(other: &OtherUse, interval: &MachineInterval) -> Self {
        let OtherUse { name, pid, processes, cpu, .. } = other;
        Self { name: name.clone(), pid: *pid, processes: *processes, cpus: rounded(interval.share(*cpu)) }
    }
}

impl ThreadResult {
    fn new(thread: &ThreadUse, interval: &MachineInterval) -> Self {
        Self {
            cpu_share: rounded(interval.share(thread.cpu)),
            system_share: rounded(interval.share(thread.system)),
            run_delay_s: thread.run_delay.map(seconds),
            voluntary_switches: thread.voluntary_switches,
            involuntary_switches: thread.involuntary_switches,
        }
    }
}

impl ProcessResult {
    pub(crate) fn new(process: &ProcessUse, interval: &MachineInterval) -> Self {
        Self {
            cpus: rounded(interval.share(process.cpu)),
            system_cpus: Some(rounded(interval.share(process.system))),
            busiest_thread_share: process.busiest_thread.map(|cpu| rounded(interval.share(cpu))),
            run_delay_s: process.run_delay.map(seconds),
            threads: process.threads,
            rss_bytes: process.rss_bytes,
            descriptors: process.descriptors,
            disk_read_bytes: process.files.map(|files| files.read_bytes),
            disk_written_bytes: process.files.map(|files| files.written_bytes),
            read_calls: process.files.map(|files| files.read_calls),
            write_calls: process.files.map(|files| files.write_calls),
            throttled_share: process
                .throttling
                .map(|groups| rounded(groups.throttled as f64 / groups.periods.max(1) as f64)),
            throttled_s: process.throttling.map(|groups| seconds(groups.time)),
            group_memory_bytes: process.group_memory_bytes,
        }
    }
}

impl MachineSummary {
    /// `None` if the machine was not watched.
    pub(crate) fn new(record: &RunRecord) -> Option<Self> {
        let facts = &record.machine.facts;
        let measured = measured(record)?;
        Some(Self {
            // They are listed beside it.
            used: MachineUse { watched: Vec::new(), ..MachineUse::new(&measured) },
            ports: facts.ports,
            soft_descriptors: facts.soft_descriptors,
            limits: facts.limits,
            missing: facts.missing.clone(),
        })
    }
}

impl TargetProcessResult {
    /// `None` if it was not watched.
    pub(crate) fn new(record: &RunRecord) -> Option<Self> {
        let target = record.machine.facts.target.as_ref()?;
        let measured = measured(record)?;
        Some(Self {
            pids: target.pids.clone(),
            name: target.name.clone(),
            limits: target.limits,
            used: ProcessResult::new(&measured.target?, &measured),
        })
    }
}

/// Returns the resources of the machine used in the measured part.
pub(crate) fn measured(record: &RunRecord) -> Option<MachineInterval> {
    record.machine.measured(record.warmup + record.duration)
}

/// Returns the resources of the machine used in an interval of the run. The last part of the interval may
/// have been too short to be examined.
pub(crate) fn during(machine: &MachineRecord, interval: &Interval) -> Option<MachineUse> {
    let begin = interval.at.since(interval.length);
    let after = machine.intervals.partition_point(|part| part.at <= interval.at);
    let last = machine.intervals[..after].last().filter(|part| part.at > begin)?;
    Some(MachineUse::new(last))
}

fn seconds(time: Nanos) -> f64 {
    rounded(time.as_secs_f64())
}

/// Six decimals: none of the sources is more exact over a second.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
