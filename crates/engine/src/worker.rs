//! The hot loop: one per worker thread, with its own connections, timers, recorder and random stream.
//!
//! A pass of the loop: handle what arrived, expire what is due, start what is due, flush, decide how to wait,
//! wait. One `now` per pass serves all decisions, so that no two of them disagree about the time; measured
//! instants come from the kernel's receive stamps and from the clock around each flush.

mod answering;
mod buffers;
mod connecting;
mod content;
mod dialing;
mod draft;
mod ending;
mod exchanges;
mod failing;
mod failures;
mod iterations;
mod judging;
mod making;
mod misbehaving;
mod outgoing;
mod polling;
mod proceeding;
mod quoting;
mod receiving;
mod routing;
mod sending;
mod starting;
mod step_table;
mod tokens;
mod users;
mod watching;

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::{Nanos, Random, Shard};
use plimsoll_driver::{Backend, Wait, usage};
use plimsoll_metrics::{
    Accounting, ConnectionRecord, IterationRecord, LogRecord, LogSink, Peer, Recorder, Snapshot, StepRecord,
    WorkerRecord, WorkerStatus,
};
use plimsoll_plan::{Load, Plan};
use plimsoll_scenario::{Feeds, Scripts};

use crate::addresses::TargetAddress;
use crate::connection::{Conn, PROTOCOLS};
use crate::control::{Control, Stop};
use crate::directory::Directory;
use crate::pacing::Pacer;
use crate::supply::BodyQueues;
use crate::target_pool::TargetPool;
use crate::timers::Timers;
use buffers::Buffers;
use content::Content;
use dialing::Dialing;
use draft::Draft;
use exchanges::Exchanges;
use failures::Failures;
use iterations::Iterations;
use misbehaving::Misbehaviour;
use outgoing::Outgoing;
use polling::Parked;
use step_table::StepTable;
use users::Users;

/// A worker looks at the control at least this often, and a pause of its own shows as a late return from a
/// wait.
pub const LONGEST_WAIT: Nanos = Nanos::from_millis(100);
/// A worker that comes back from a wait, or from a pass, later than this has been stalled: the scheduler or a
/// stop signal held it, and what it measured meanwhile is not the target's doing.
const STALL: Nanos = Nanos::from_millis(50);
/// A pass that begins so soon after a stall, or after another such pass, still works off what the stall has
/// left: without a backlog a worker would wait.
const CATCHING_UP: Nanos = Nanos::from_micros(20);
/// Stalls kept in detail.
const STALLS_KEPT: usize = 100;
/// Connections being established at once while preparing: below the usual listen backlog, so that no SYN is
/// dropped and sent again a second later.
const CONNECTING_AT_ONCE: u32 = 256;
/// Events handled in one pass before arrivals, timers and the control get their turn: about 3 ms of work.
const EVENTS_PER_PASS: u32 = 512;
/// The name of the backend whose time is virtual.
pub(crate) const SIMULATED: &str = "simulated";

/// The final report of a worker.
#[derive(Debug)]
pub struct WorkerReport {
    /// Which part of the run it carried out.
    pub shard: Shard,
    /// One per step of the plan.
    pub steps: Vec<StepRecord>,
    /// Counts and times of the worker's connections.
    pub connections: ConnectionRecord,
    /// Where this worker's arrivals went.
    pub accounting: Accounting,
    /// Cost of the worker's thread: its CPU time, passes and stalls.
    pub worker: WorkerRecord,
    /// One per target: facts of the first connection.
    pub peers: Vec<Peer>,
    /// TLS versions by connections.
    pub tls_versions: BTreeMap<String, u64>,
    /// Measured responses by protocol.
    pub protocols: BTreeMap<&'static str, u64>,
    /// Accounts of the iterations.
    pub iterations: IterationRecord,
    /// First error text of each class.
    pub error_examples: BTreeMap<String, String>,
    /// Completed within the measured part.
    pub completed_in_window: u64,
    /// Length of the measured part as this worker saw it.
    pub window: Nanos,
    /// Time from the end of the load to the end of the loop.
    pub drain: Nanos,
    /// Longest time by which arrivals may have been started late on purpose.
    pub pacing_budget: Nanos,
    /// Counts of the log's entries.
    pub log: LogRecord,
}

/// Resources of a worker beside its plan.
#[derive(Default)]
pub struct Resources {
    /// Its share of the data sources.
    pub feeds: Feeds,
    /// The bodies that are made for its requests.
    pub body_queues: BodyQueues,
    /// Its scripts, in a state of their own.
    pub scripts: Option<Box<dyn Scripts>>,
    /// Where it logs single requests.
    pub log: LogSink,
    /// The servers that the plan does not name, which all workers of the run share.
    pub directory: Arc<Directory>,
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resources").field("feeds", &self.feeds).finish_non_exhaustive()
    }
}

/// When the parts of a run begin and end, on the driver's clock.
#[derive(Clone, Copy, Debug)]
struct Times {
    start: Nanos,
    measure: Nanos,
    /// End of the load; [`Nanos::MAX`] while it is not known (a counted run).
    end: Nanos,
    /// After this nothing is waited for any more.
    drained: Nanos,
}

/// Counters beside the recorder.
#[derive(Debug, Default)]
struct Counts {
    accounting: Accounting,
    /// Requests started and not ended, warm-up included.
    in_flight: u64,
    completed_in_window: u64,
    last_done: Nanos,
    /// Iterations that the closed model may still start in the measured part; `None` without a count.
    remaining: Option<u64>,
    /// Scheduled since the last snapshot, warm-up included.
    new_scheduled: u64,
    /// Iterations started since then.
    new_iterations: u64,
    /// When the last snapshot was taken.
    last_edge: Nanos,
    /// Iterations begun by this worker, the source of their global index in the closed model.
    begun: u64,
    iterations: IterationRecord,
    /// Requests of the warm-up that ended well.
    warmup_ok: u64,
    /// Calls of scripts that have failed in a row, and the requests that had ended well by then.
    script_failures: u64,
    ok_at_failure: u64,
    /// Measured responses by protocol, in the order of [`PROTOCOLS`].
    answered: [u64; PROTOCOLS.len()],
}

impl Counts {
    /// Arrivals of the measured part fell due and are never started, some of them for want of data.
    fn never_start(&mut self, measured: u64, without_data: u64) {
        self.accounting.scheduled += measured;
        self.accounting.never_started += measured;
        self.accounting.without_data += without_data;
    }
}

/// One worker. Call [`prepare`](Self::prepare), then [`run`](Self::run).
pub struct Worker<'p, B> {
    io: B,
    plan: &'p Plan,
    shard: Shard,
    control: Control,
    /// Number of the control's changes that were taken up.
    heeded: u64,
    /// Pools of the plan's targets, in their order, followed by those of servers that came up during the run.
    pools: Vec<TargetPool>,
    directory: Arc<Directory>,
    /// Number of pools whose server is being looked for.
    asked: u32,
    /// Other ways to write the authority of a server: whether it is https, the text, and its pool.
    spellings: Vec<(bool, Vec<u8>, u32)>,
    conns: Vec<Conn>,
    timers: Timers,
    dialing: Dialing,
    users: Users,
    iterations: Iterations,
    /// Requests whose answer is still to come, and that are to be sent again.
    parked: Parked,
    steps: StepTable,
    content: Content,
    /// Faults that clients make on purpose, if the plan has any.
    misbehaviour: Option<Box<Misbehaviour>>,
    exchanges: Exchanges,
    failures: Failures,
    recorder: Recorder,
    /// Records the warm-up, for its intervals only.
    warmup: Recorder,
    pacer: Pacer,
    times: Times,
    counts: Counts,
    record: WorkerRecord,
    /// The status of the worker as it was last reported.
    told: Option<Box<WorkerStatus>>,
    peers: Vec<Peer>,
    tls_versions: BTreeMap<String, u64>,
    outgoing: Outgoing,
    draft: Draft,
    buffers: Buffers,
    unix_offset: u64,
    /// The time that serves all decisions of this pass; read again after each flush.
    now: Nanos,
    /// End of the phase that is under way, on the driver's clock; never, without phases.
    border: Nanos,
    /// Set once arrivals are over.
    ended: bool,
    /// Set once the pacer was told of a response of this pass: one is enough for its means.
    observed: bool,
    /// Responses in what is being handled.
    responses: u64,
    /// Set if the event being handled was stamped by the kernel.
    stamped: bool,
    /// Set if the last pass left events for the next.
    more: bool,
    /// Begin and end of the last stall, and how far its end may still move. What was due before its end, and
    /// ended after its begin, met it: that is one comparison per request, and false for all of them while
    /// there was no stall.
    stalled: [Nanos; 3],
}

impl<B> std::fmt::Debug for Worker<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("shard", &self.shard)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl<'p, B: Backend> Worker<'p, B> {
    /// A worker that carries out `shard` of the plan. `addresses` has one list per target; `unix_offset` is
    /// what has to be added to the driver's clock to get Unix time, in nanoseconds.
    pub fn new(
        io: B,
        plan: &'p Plan,
        addresses: &[Arc<[TargetAddress]>],
        shard: Shard,
        control: Control,
        unix_offset: u64,
        resources: Resources,
    ) -> Self {
        let Resources { feeds, body_queues, scripts, log, directory } = resources;
        let unix_now = io.now().0.wrapping_add(unix_offset);
        let steps = StepTable::new(plan, &log);
        let peak = match &plan.load {
            Load::Open { profile, .. } => Some(profile.peak() / f64::from(shard.of)),
            Load::Closed => None,
        };
        let pools = TargetPool::all(plan, addresses, shard);
        let names: Vec<String> = plan.steps.iter().map(|step| step.name.clone()).collect();
        let peers = plan
            .targets
            .iter()
            .zip(addresses)
            .map(|(target, list)| Peer {
                authority: target.authority.clone(),
                addresses: list.iter().map(|target_address| target_address.endpoint.to_string()).collect(),
                ..Peer::default()
            })
            .collect();
        let outgoing = Outgoing::new(io.preemptions());
        Self {
            io,
            plan,
            shard,
            control,
            heeded: 0,
            dialing: Dialing::new(plan, shard, &pools, peak),
            users: Users::new(&pools),
            pools,
            directory,
            asked: 0,
            spellings: Vec::new(),
            conns: Vec::new(),
            timers: Timers::default(),
            iterations: Iterations::new(plan),
            parked: Parked::default(),
            content: Content::new(plan, shard, unix_now, feeds, body_queues, scripts),
            steps,
            misbehaviour: Misbehaviour::of(plan, shard),
            exchanges: Exchanges::new(plan, log),
            failures: Failures::new(plan.steps.len()),
            recorder: Recorder::new(&names),
            warmup: Recorder::new(&names),
            pacer: Pacer::new(plan.pacing, peak),
            times: Times { start: Nanos::MAX, measure: Nanos::MAX, end: Nanos::MAX, drained: Nanos::MAX },
            counts: Counts {
                // In the open model the schedule itself counts.
                remaining: match plan.load {
                    Load::Closed => plan.end.iterations.map(|total| shard.share_of(total)),
                    Load::Open { .. } => None,
                },
                ..Counts::default()
            },
            record: WorkerRecord::default(),
            told: None,
            peers,
            tls_versions: BTreeMap::new(),
            outgoing,
            draft: Draft::default(),
            buffers: Buffers::default(),
            unix_offset,
            now: Nanos::ZERO,
            border: Nanos::MAX,
            ended: false,
            observed: false,
            responses: 0,
            stamped: false,
            more: false,
            stalled: [Nanos::ZERO; 3],
        }
    }

    /// The worker's clock.
    pub fn now(&self) -> Nanos {
        self.io.now()
    }

    /// Unix time, as the worker's backend has it.
    pub fn unix(&self) -> Nanos {
        self.io.unix()
    }

    /// Opens the initial connections and returns when each is established or has failed. What failed is
    /// counted; the load will try again.
    pub fn prepare(&mut self) {
        let mut missing: Vec<u32> = self.pools.iter().map(|pool| pool.initial).collect();
        if self.plan.connections.keep_alive && !self.dialing.ramp.is_paced() {
            loop {
                for (index, left) in missing.iter_mut().enumerate() {
                    while *left > 0 && self.dialing.connecting() < CONNECTING_AT_ONCE {
                        *left -= 1;
                        let now = self.io.now();
                        // What failed is counted, and tried again under load.
                        let _ = self.open_connection(index as u32, now);
                    }
                }
                if self.dialing.connecting() == 0 || self.control.requested_stop() == Stop::Now {
                    break;
                }
                self.flush();
                let now = self.io.now();
                let until = self.timers.next_due().min(now + LONGEST_WAIT);
                // Handshakes of many connections share wake-ups; one alone is not kept waiting.
                let want = self.dialing.connecting() / 2;
                self.io.wait(Wait { until, want, floor: Nanos::from_millis(1), spin: Nanos::ZERO });
                self.handle_events();
                let now = self.io.now();
                self.expire(now);
                self.flush();
            }
        }
        self.flush();
    }

    /// Carries out the load from `start` on, and waits for what is in flight at its end. Gives a snapshot to
    /// `send` about once per second.
    pub fn run(mut self, start: Nanos, mut send: impl FnMut(Snapshot)) -> WorkerReport {
        self.times.start = start;
        self.times.measure = start + self.plan.warmup;
        self.times.end = self.plan.end.duration.map_or(Nanos::MAX, |length| self.times.measure + length);
        self.times.drained = self.times.end + self.plan.drain;
        while self.io.now() < start {
            self.io.wait(wait_for_one(start));
            self.handle_events();
        }
        let mut cpu = usage::thread_cpu();
        let mut helpers = self.content.bodies.cpu();
        let mut run_delay = usage::thread_run_delay();
        let mut measuring = self.plan.warmup == Nanos::ZERO;
        let mut next_edge = self.edge_after(start);
        let mut cpu_end = None;
        self.border = self.border_after(start);
        // What was prepared may have ended long ago.
        self.now = self.io.now();
        if self.users_have_connections() {
            self.start_users(start);
        } else if self.plan.users.is_some() {
            self.users.change_at(start);
        }
        let mut now = self.io.now();
        loop {
            self.now = self.now.max(now);
            // A load that ended in its warm-up has no measured part.
            if !measuring && now >= self.times.measure && cpu_end.is_none() {
                measuring = true;
                cpu = usage::thread_cpu();
                helpers = self.content.bodies.cpu();
                run_delay = usage::thread_run_delay();
            }
            self.heed_control(now);
            self.open_paced(now);
            self.start_openers(now);
            self.adjust_users(now);
            self.probe_lost(now);
            if self.asked > 0 {
                self.ask_directory(now);
            }
            self.start_parked(now);
            self.start_waiting(now);
            self.start_sleepers(now);
            self.start_retries(now);
            self.start_arrivals(now);
            self.note_spare();
            self.flush();
            if self.misbehaviour.is_some() {
                self.cut_off();
            }
            if now < self.times.end && self.is_through() {
                self.times.end = self.counts.last_done.max(self.times.measure).max(self.counts.last_edge);
                self.times.drained = self.times.end;
            }
            let over = now >= self.times.end;
            if over && cpu_end.is_none() {
                cpu_end = Some((usage::thread_cpu(), usage::thread_run_delay(), self.content.bodies.cpu()));
            }
            if now >= next_edge || (over && next_edge != Nanos::MAX) {
                let at = next_edge.min(self.times.end);
                if at > self.counts.last_edge {
                    send(self.snapshot(at, false));
                }
                self.close_spare(now);
                self.counts.last_edge = at;
                next_edge = if at >= self.times.end { Nanos::MAX } else { self.edge_after(at) };
                self.border = self.border_after(at);
                continue;
            }
            if over && (self.counts.in_flight == 0 || now >= self.times.drained) {
                break;
            }
            let mut busy_until = self.io.now();
            self.note_pass(now, busy_until);
            self.pacer.worked(busy_until.since(now));
            if busy_until >= self.content.tokens.due {
                self.renew_tokens(busy_until);
                busy_until = self.io.now();
            }
            if self.outgoing.send_times.is_due() {
                self.outgoing.send_times.adjust_limit(busy_until, self.cpu_time());
            }
            if self.pacer.is_due(busy_until) {
                self.pacer.adjust(busy_until, self.cpu_time());
            }
            let outlook = self.outlook(busy_until, next_edge);
            let wait = self.pacer.wait(outlook);
            if wait.want > 1 {
                self.record.gather_time = self.record.gather_time.max(wait.floor);
            }
            let late = self.io.wait(wait);
            now = self.io.now();
            self.note_wait(busy_until, wait.until.max(busy_until), now);
            self.handle_events();
            self.expire(now);
            if let Some(late) = late {
                // What came meanwhile is in the way of arrivals, too.
                self.pacer.overslept(late + self.io.now().since(now));
            }
        }
        let (end, delay_end, helpers_end) = cpu_end
            .unwrap_or_else(|| (usage::thread_cpu(), usage::thread_run_delay(), self.content.bodies.cpu()));
        // Beside virtual time, what this thread took of a CPU and how long it had to wait for one say
        // nothing.
        if self.io.name() != SIMULATED {
            self.record.cpu_user = end.user - cpu.user;
            self.record.cpu_system = end.system - cpu.system;
            self.record.bodies_cpu = helpers_end.bodies.since(helpers.bodies);
            self.record.signing_cpu = helpers_end.signing.since(helpers.signing);
            self.record.involuntary_switches = end.involuntary_switches - cpu.involuntary_switches;
            self.record.run_delay = delay_end.zip(run_delay).map(|(after, before)| after - before);
        }
        let drain = self.snapshot(now, true);
        if !drain.is_empty() {
            send(drain);
        }
        self.report(now)
    }
}

impl<B: Backend> Worker<'_, B> {
    /// CPU time of this thread; none in virtual time, where it would say nothing.
    fn cpu_time(&self) -> Nanos {
        if self.io.name() == SIMULATED {
            return Nanos::ZERO;
        }
        let cpu = usage::thread_cpu();
        cpu.user + cpu.system
    }
}

/// The stream of random numbers of one worker. Stream 0 is the schedule's.
pub(crate) fn random_of(seed: u64, worker: Shard) -> Random {
    Random::new(seed, u64::from(worker.index) + 1)
}

fn wait_for_one(until: Nanos) -> Wait {
    Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO }
}
