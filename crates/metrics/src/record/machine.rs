//! Activity of the machine and of its processes beside the load, interval by interval.

use plimsoll_core::Nanos;

use super::watched::{FileUse, WatchedProcess, WatchedUse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Activity of the machine during a run. Empty where nothing was watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Facts that do not change.
    pub facts: MachineFacts,
    /// Activity in order of time; in a long run joined as its [intervals](super::RunRecord::intervals) are.
    pub intervals: Vec<MachineInterval>,
}

/// Facts about the machine that do not change during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Local ports that connections may get, per pair of addresses.
    pub ports: Option<u64>,
    /// Soft limit of open file descriptors of the generator.
    pub soft_descriptors: Option<u64>,
    /// Limits of the generator's control groups.
    pub limits: GroupLimits,
    /// The target's process, if it is on this machine and was found.
    pub target: Option<TargetProcess>,
    /// The servers whose processes are watched; the target's is one of them.
    pub watched: Vec<WatchedProcess>,
    /// Sources that could not be read, with the reason; each once.
    pub missing: Vec<String>,
}

/// Limits of a control group, the tightest on the way to its root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LimitsResult", description = "Limits that control groups set for a process.")]
pub struct GroupLimits {
    /// Processors' worth of time; null: as much as there is.
    pub cpus: Option<f64>,
    /// Memory in bytes; null: as much as there is.
    pub memory_bytes: Option<u64>,
}

/// The processes of the target on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetProcess {
    /// Their numbers.
    pub pids: Vec<u32>,
    /// The name of the first.
    pub name: String,
    /// Limits of the first one's control groups.
    pub limits: GroupLimits,
}

/// Activity of the machine between two samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineInterval {
    /// The end of the interval of the run that it belongs to, since the start of the run.
    pub at: Nanos,
    /// Time between the two looks.
    pub length: Nanos,
    /// `true` if the interval belongs to the warm-up.
    pub warmup: bool,
    /// The generator's worker threads, by their numbers.
    pub workers: Vec<ThreadUse>,
    /// The generator's process as a whole.
    pub generator: Option<ProcessUse>,
    /// The target's processes together, if they are on this machine and were found.
    pub target: Option<ProcessUse>,
    /// The watched servers, in the order of [`MachineFacts::watched`].
    pub watched: Vec<WatchedUse>,
    /// The other processes that used most CPU time, by their names, the largest first; not looked for where
    /// there is next to nothing that the generator and the watched servers have not used.
    pub others: Vec<OtherUse>,
    /// The processors.
    pub cores: Vec<CoreUse>,
    /// Time for which some task on this machine waited for a processor (pressure stall information).
    pub pressure: Option<Nanos>,
    /// Tasks that were running or ready to, in hundredths, as a mean over the last minute.
    pub load_hundredths: Option<u64>,
    /// The network of the machine, of all processes.
    pub network: NetworkUse,
    /// The accept queue of the target, if it listens in this network; `None` if that was not read.
    #[serde(default)]
    pub target_queue: Option<AcceptQueue>,
    /// Segments of the connections to the targets; `None` if they were not read.
    #[serde(default)]
    pub own_segments: Option<OwnSegments>,
}

/// Resources that one thread used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// CPU time of both kinds, exactly where the system counts it so.
    pub cpu: Nanos,
    /// The part of it in the kernel, in ticks of 10 ms.
    pub system: Nanos,
    /// Time for which it was ready to run but had no processor.
    pub run_delay: Option<Nanos>,
    /// Switches because it waited for something.
    pub voluntary_switches: Option<u64>,
    /// Switches because the scheduler took the processor away.
    pub involuntary_switches: Option<u64>,
}

/// Resources that a process used, or several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// CPU time of both kinds, in ticks of 10 ms.
    pub cpu: Nanos,
    /// The part of it in the kernel.
    pub system: Nanos,
    /// CPU time of the thread that used most of it.
    pub busiest_thread: Option<Nanos>,
    /// The longest time for which one of its threads was ready to run but had no processor.
    pub run_delay: Option<Nanos>,
    /// Threads at the end; of several intervals that are joined the most.
    pub threads: u64,
    /// Threads at the end; of joined intervals those of the last.
    pub last_threads: u64,
    /// Resident memory at the end, in bytes; of several intervals that are joined the largest.
    pub rss_bytes: Option<u64>,
    /// Resident memory at the end, in bytes; of joined intervals that of the last.
    pub last_rss_bytes: Option<u64>,
    /// Open descriptors at the end; of several intervals that are joined the most.
    pub descriptors: Option<u64>,
    /// Open descriptors at the end; of joined intervals those of the last.
    pub last_descriptors: Option<u64>,
    /// Data moved from and to files; `None` where the system does not report it.
    pub files: Option<FileUse>,
    /// Throttling by its control group.
    pub throttling: Option<Throttling>,
    /// Memory of its control group at the end, in bytes.
    pub group_memory_bytes: Option<u64>,
}

/// CPU time of the processes of one name that are neither the generator nor watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherUse {
    /// Their name.
    pub name: String,
    /// The number of the one that used most.
    pub pid: u32,
    /// CPU time of that one.
    pub most: Nanos,
    /// Processes of this name that used any CPU time; of several intervals that are joined the most.
    pub processes: u64,
    /// CPU time of all of them, in ticks of 10 ms. At least so much: ends between two looks are not seen.
    pub cpu: Nanos,
}

impl OtherUse {
    /// Names that are kept, those that used most.
    pub const KEPT: usize = 8;

    /// Adds what others used in the same time, or the next: by their names, the largest first.
    pub fn merge(mine: &mut Vec<Self>, theirs: impl IntoIterator<Item = Self>) {
        for next in theirs {
            let Some(known) = mine.iter_mut().find(|known| known.name == next.name) else {
                mine.push(next);
                continue;
            };
            if next.pid == known.pid {
                known.most += next.most;
            } else if next.most > known.most {
                (known.pid, known.most) = (next.pid, next.most);
            }
            known.processes = known.processes.max(next.processes);
            known.cpu += next.cpu;
        }
        mine.sort_by(|one, other| other.cpu.cmp(&one.cpu).then_with(|| one.name.cmp(&other.name)));
        mine.truncate(Self::KEPT);
    }
}

/// Throttling by a control group with a limit on CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttling {
    /// Periods of the limit that there were.
    pub periods: u64,
    /// Periods in which the time was used up.
    pub throttled: u64,
    /// Time for which threads were held up, summed over processors.
    pub time: Nanos,
}

/// Time of one processor, in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreUse {
    /// Time in which it worked, for whomever: not idle and not taken away.
    pub busy: Nanos,
    /// The part of it in which it handled interrupts' work, that of the network above all.
    pub softirq: Nanos,
    /// Time that the hypervisor took away.
    pub steal: Nanos,
}

/// Accept queues of the sockets on which the target listens, by the system's list of sockets (`sock_diag`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(
    rename = "AcceptQueueResult",
    description = "The queue of connections that the target has to accept."
)]
pub struct AcceptQueue {
    /// Connections that wait to be accepted, at the fullest look.
    pub length: u64,
    /// Connections that it holds at most (`listen`'s backlog, as the system limits it), of all sockets.
    pub limit: u64,
    /// Attempts to connect that it turned away.
    pub drops: u64,
}

/// TCP segments of the generator's own connections to the targets, by the system's list of sockets
/// (`sock_diag` with `TCP_INFO`). Of a target in the same network both ends count. What a connection does
/// after the last look before its end is in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OwnSegmentsResult", description = "TCP segments of the connections to the targets.")]
pub struct OwnSegments {
    /// Segments sent and received, those without data included.
    pub segments: u64,
    /// Segments that were sent again.
    pub resent: u64,
    /// Segments that came after later ones: one before them was lost, or overtaken.
    pub out_of_order: u64,
}

/// Activity on the network of this machine (of its namespace), of all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NetworkResult", description = "Events on the network of the machine.")]
pub struct NetworkUse {
    /// TCP segments sent, those sent again included.
    pub segments_sent: Option<u64>,
    /// TCP segments sent again.
    pub retransmitted: Option<u64>,
    /// Retransmission timeouts of TCP.
    pub timeouts: Option<u64>,
    /// Connections that a full accept queue of this machine turned away.
    pub listen_overflows: Option<u64>,
    /// Connections that a listener of this machine turned away for any reason.
    pub listen_drops: Option<u64>,
    /// TCP segments thrown away for lack of room in a receive buffer.
    pub receive_drops: Option<u64>,
    /// Datagrams thrown away for lack of room in a receive buffer.
    pub datagram_drops: Option<u64>,
    /// Packets that network devices dropped or found broken.
    pub device_drops: Option<u64>,
    /// TCP sockets in use at most; both ends of a local connection count.
    pub tcp_in_use: Option<u64>,
    /// TCP sockets in TIME_WAIT at most, each of which holds a port.
    pub tcp_time_wait: Option<u64>,
}

impl MachineRecord {
    /// The measured part as one interval: what ended after the warm-up and not after `end`, a moment of grace
    /// included, because a look comes a little after the end of its interval. `None` if nothing was watched.
    pub fn measured(&self, end: Nanos) -> Option<MachineInterval> {
        let mut parts = self.intervals.iter().filter(|part| !part.warmup && part.at <= end);
        let mut total = parts.next()?.clone();
        parts.for_each(|part| total.join(part));
        Some(total)
    }
}

impl MachineInterval {
    /// Adds the interval that follows.
    pub fn join(&mut self, next: &Self) {
        self.at = next.at;
        self.length += next.length;
        if self.workers.len() < next.workers.len() {
            self.workers.resize(next.workers.len(), ThreadUse::default());
        }
        self.workers.iter_mut().zip(&next.workers).for_each(|(mine, theirs)| mine.join(theirs));
        self.generator = joined(self.generator, next.generator, ProcessUse::join);
        self.target = joined(self.target, next.target, ProcessUse::join);
        if self.watched.len() < next.watched.len() {
            self.watched.resize_with(next.watched.len(), WatchedUse::default);
        }
        self.watched.iter_mut().zip(&next.watched).for_each(|(mine, theirs)| mine.join(theirs));
        OtherUse::merge(&mut self.others, next.others.iter().cloned());
        if self.cores.len() < next.cores.len() {
            self.cores.resize(next.cores.len(), CoreUse::default());
        }
        for (mine, theirs) in self.cores.iter_mut().zip(&next.cores) {
            mine.busy += theirs.busy;
            mine.softirq += theirs.softirq;
            mine.steal += theirs.steal;
        }
        self.pressure = joined(self.pressure, next.pressure, |a, b| *a += *b);
        self.load_hundredths = next.load_hundredths.or(self.load_hundredths);
        self.network.join(&next.network);
        self.target_queue = joined(self.target_queue, next.target_queue, AcceptQueue::join);
        self.own_segments = joined(self.own_segments, next.own_segments, OwnSegments::join);
    }

    /// `time` as a share of the interval; 0 if that has no length.
    pub fn share(&self, time: Nanos) -> f64 {
        if self.length == Nanos::ZERO { 0.0 } else { time.0 as f64 / self.length.0 as f64 }
    }

    /// The share of all processors' time that `part` sums up to.
    pub fn cores_share(&self, part: impl Fn(&CoreUse) -> Nanos) -> f64 {
        let sum = self.cores.iter().fold(Nanos::ZERO, |sum, core| sum + part(core));
        if self.cores.is_empty() { 0.0 } else { self.share(sum) / self.cores.len() as f64 }
    }
}

impl ThreadUse {
    /// Adds what it used in a further time.
    pub fn join(&mut self, next: &Self) {
        self.cpu += next.cpu;
        self.system += next.system;
        self.run_delay = joined(self.run_delay, next.run_delay, |a, b| *a += *b);
        self.voluntary_switches = sum(self.voluntary_switches, next.voluntary_switches);
        self.involuntary_switches = sum(self.involuntary_switches, next.involuntary_switches);
    }
}

impl ProcessUse {
    pub(super) fn join(&mut self, next: &Self) {
        self.cpu += next.cpu;
        self.system += next.system;
        self.busiest_thread = joined(self.busiest_thread, next.busiest_thread, |a, b| *a += *b);
        self.run_delay = joined(self.run_delay, next.run_delay, |a, b| *a += *b);
        self.threads = self.threads.max(next.threads);
        self.last_threads = next.last_threads;
        self.rss_bytes = self.rss_bytes.max(next.rss_bytes);
        self.last_rss_bytes = next.last_rss_bytes.or(self.last_rss_bytes);
        self.descriptors = self.descriptors.max(next.descriptors);
        self.last_descriptors = next.last_descriptors.or(self.last_descriptors);
        // A sum with a part missing would be wrong.
        self.files = self.files.zip(next.files).map(|(mut mine, theirs)| {
            mine.add(&theirs);
            mine
        });
        self.throttling = joined(self.throttling, next.throttling, |a, b| {
            a.periods += b.periods;
            a.throttled += b.throttled;
            a.time += b.time;
        });
        self.group_memory_bytes = self.group_memory_bytes.max(next.group_memory_bytes);
    }

    /// Time for which its control group held it up.
    pub fn throttled_time(&self) -> Nanos {
        self.throttling.unwrap_or_default().time
    }
}

impl AcceptQueue {
    fn join(&mut self, next: &Self) {
        self.length = self.length.max(next.length);
        self.limit = self.limit.max(next.limit);
        self.drops += next.drops;
    }
}

impl OwnSegments {
    fn join(&mut self, next: &Self) {
        self.segments += next.segments;
        self.resent += next.resent;
        self.out_of_order += next.out_of_order;
    }

    /// Segments of which the system shows that they were lost, or overtaken.
    pub const fn lost(&self) -> u64 {
        self.resent + self.out_of_order
    }
}

impl NetworkUse {
    fn join(&mut self, next: &Self) {
        self.segments_sent = sum(self.segments_sent, next.segments_sent);
        self.retransmitted = sum(self.retransmitted, next.retransmitted);
        self.timeouts = sum(self.timeouts, next.timeouts);
        self.listen_overflows = sum(self.listen_overflows, next.listen_overflows);
        self.listen_drops = sum(self.listen_drops, next.listen_drops);
        self.receive_drops = sum(self.receive_drops, next.receive_drops);
        self.datagram_drops = sum(self.datagram_drops, next.datagram_drops);
        self.device_drops = sum(self.device_drops, next.device_drops);
        self.tcp_in_use = self.tcp_in_use.max(next.tcp_in_use);
        self.tcp_time_wait = self.tcp_time_wait.max(next.tcp_time_wait);
    }
}

/// Two parts that may be unknown: what is known of them.
pub(super) fn joined<T: Copy>(mine: Option<T>, theirs: Option<T>, join: impl Fn(&mut T, &T)) -> Option<T> {
    match (mine, theirs) {
        (Some(mut mine), Some(theirs)) => {
            join(&mut mine, &theirs);
            Some(mine)
        }
        (mine, theirs) => mine.or(theirs),
    }
}

fn sum(mine: Option<u64>, theirs: Option<u64>) -> Option<u64> {
    joined(mine, theirs, |a, b| *a += b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> MachineInterval {
        let thread = ThreadUse { cpu: Nanos::from_millis(10), ..ThreadUse::default() };
        MachineInterval {
            at: Nanos::from_secs(number),
            length: Nanos::from_secs(1),
            warmup: number <= 3,
            workers: vec![thread; 2],
            cores: vec![CoreUse { busy: Nanos::from_millis(500), ..CoreUse::default() }; 4],
            network: NetworkUse {
                retransmitted: Some(number),
                tcp_in_use: Some(number),
                ..NetworkUse::default()
            },
            target: Some(ProcessUse { threads: number, ..ProcessUse::default() }),
            others: vec![other("cargo", 7, 400), other("rustc", number as u32, 10 * number)],
            ..MachineInterval::default()
        }
    }

    fn other(name: &str, pid: u32, cpu_ms: u64) -> OtherUse {
        let cpu = Nanos::from_millis(cpu_ms);
        OtherUse { name: name.to_owned(), pid, most: cpu, processes: 1, cpu }
    }

    #[test]
    fn other_processes_add_up_by_their_names() {
        let mut record = MachineRecord::default();
        record.intervals.extend((1..=6).map(second));
        let others = record.measured(Nanos::from_secs(5)).expect("it was watched").others;
        // The number is that of the process which used most in an interval.
        let rustc = OtherUse { cpu: Nanos::from_millis(90), ..other("rustc", 5, 50) };
        assert_eq!(others, [other("cargo", 7, 800), rustc]);
        let mut many = Vec::new();
        OtherUse::merge(
            &mut many,
            (1..=20).map(|number| other(&format!("p{number}"), number, number.into())),
        );
        assert_eq!((many.len(), many[0].pid), (OtherUse::KEPT, 20));
    }

    #[test]
    fn counts_add_up_and_gauges_keep_their_peak() {
        let mut record = MachineRecord::default();
        record.intervals.extend((1..=6).map(second));
        let measured = record.measured(Nanos::from_secs(5)).expect("it was watched");
        assert_eq!((measured.at, measured.length), (Nanos::from_secs(5), Nanos::from_secs(2)));
        assert_eq!((measured.network.retransmitted, measured.network.tcp_in_use), (Some(9), Some(5)));
        assert_eq!(measured.network.timeouts, None);
        assert_eq!(measured.workers[1].cpu, Nanos::from_millis(20));
        assert_eq!(measured.target.map(|target| target.threads), Some(5));
        assert!((measured.cores_share(|core| core.busy) - 0.5).abs() < 1e-9);
        assert_eq!(MachineRecord::default().measured(Nanos::MAX), None);
    }
}
