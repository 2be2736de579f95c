//! The hot loop: one per worker thread, with its own connections, timers, recorder and random stream.
//!
//! A pass of the loop: handle events, expire requests, start arrivals, flush, decide how to wait, wait. One
//! `now` per pass serves all decisions, so that no two of them disagree about the time; measured instants
//! come from the kernel's receive stamps and from the clock around each flush.

mod answering;
mod buffers;
mod clock;
mod connecting;
mod content;
mod counts;
mod dialing;
mod draft;
mod ending;
mod event_batch;
mod exchanges;
mod failing;
mod failures;
mod iterations;
mod judging;
mod kept;
mod making;
mod misbehaving;
mod outgoing;
mod own_metrics;
mod poll_queue;
mod polling;
mod proceeding;
mod quoting;
mod receiving;
mod records;
mod resending;
mod routes;
mod routing;
mod sending;
mod slowest;
mod stalls;
mod starting;
mod step_table;
mod tokens;
mod users;
mod watching;
mod websocket;

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::{Nanos, Random, Shard};
use plimsoll_driver::{Backend, Wait};
use plimsoll_metrics::{
    Accounting, ConnectionRecord, EarlyEnd, IterationRecord, LogRecord, LogSink, MetricRecord, Peer,
    Snapshot, StepRecord, WorkerRecord,
};
use plimsoll_plan::{Load, Plan};
use plimsoll_scenario::{Feeds, Scripts, TraceKey};
use plimsoll_system::usage;

use crate::addresses::TargetAddress;
use crate::connection::Conn;
use crate::control::{Control, Stop};
use crate::directory::Directory;
use crate::pacing::Pacer;
use crate::preflight::connect_patience;
use crate::supply::{BodyQueues, MakingCpu};
use crate::target_pool::TargetPool;
use crate::timers::Timers;
use buffers::Buffers;
use clock::Clock;
use content::Content;
use counts::Counts;
use dialing::Dialing;
use draft::Draft;
use event_batch::EventBatch;
use exchanges::Exchanges;
use failures::Failures;
use iterations::Iterations;
pub(crate) use kept::Kept;
use misbehaving::Misbehaviour;
use outgoing::Outgoing;
use poll_queue::PollQueue;
use records::Records;
use routes::Routes;
use slowest::SlowestOfSteps;
use stalls::Stalls;
use step_table::StepTable;
use users::Users;
use websocket::WebSockets;

/// A worker looks at the control at least this often, and a pause of its own shows as a late return from a
/// wait.
pub const LONGEST_WAIT: Nanos = Nanos::from_millis(100);
/// Connections being established at once while preparing: below the usual listen backlog, so that no SYN is
/// dropped and sent again a second later.
const CONNECTING_AT_ONCE: u32 = 256;
/// Events handled in one pass before arrivals, timers and the control get their turn: about 3 ms of work.
const EVENTS_PER_PASS: u32 = 512;
/// Interval between two looks at a fence that has been reached.
const FENCE_LOOK: Nanos = Nanos::from_millis(1);
/// The name of the backend whose time is virtual.
pub(crate) const SIMULATED: &str = "simulated";

/// The final report of a worker.
#[derive(Debug)]
pub struct WorkerReport {
    /// Which part of the run it carried out.
    pub shard: Shard,
    /// The end of its load by itself, before the length that the plan gives an open load.
    pub early_end: Option<EarlyEnd>,
    /// One per step of the plan.
    pub steps: Vec<StepRecord>,
    /// Counts and times of the worker's connections.
    pub connections: ConnectionRecord,
    /// Accounting of this worker's arrivals.
    pub accounting: Accounting,
    /// Cost of the worker's thread: its CPU time, passes and stalls.
    pub worker: WorkerRecord,
    /// One per target: facts of the first connection.
    pub peers: Vec<Peer>,
    /// Metrics of the plan's own.
    pub metrics: Vec<MetricRecord>,
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
    /// The worker's share of the data sources.
    pub feeds: Feeds,
    /// The bodies that are made for its requests.
    pub body_queues: BodyQueues,
    /// The worker's scripts, in a state of their own.
    pub scripts: Option<Box<dyn Scripts>>,
    /// The log of single requests.
    pub log: LogSink,
    /// The servers that the plan does not name, which all workers of the run share.
    pub directory: Arc<Directory>,
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resources").field("feeds", &self.feeds).finish_non_exhaustive()
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
    /// Number of the changes of addresses that were taken up.
    names_heeded: u32,
    /// Set once the addresses of targets are not those of the start any more.
    moved: bool,
    /// Pools of the plan's targets, in their order, followed by those of servers that came up during the run.
    pools: Vec<TargetPool>,
    routes: Routes,
    conns: Vec<Conn>,
    timers: Timers,
    dialing: Dialing,
    users: Users,
    iterations: Iterations,
    polls: PollQueue,
    websockets: WebSockets,
    steps: StepTable,
    content: Content,
    /// Faults that clients make on purpose, if the plan has any.
    misbehaviour: Option<Box<Misbehaviour>>,
    exchanges: Exchanges,
    failures: Failures,
    slowest: SlowestOfSteps,
    trace_key: TraceKey,
    pacer: Pacer,
    clock: Clock,
    stalls: Stalls,
    counts: Counts,
    records: Records,
    batch: EventBatch,
    outgoing: Outgoing,
    draft: Draft,
    buffers: Buffers,
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
    /// the offset of the driver's clock from Unix time, in nanoseconds.
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
        let outgoing = Outgoing::new(io.preemptions());
        let slowest = SlowestOfSteps::new(plan.steps.len(), control.wants_exemplars());
        Self {
            io,
            plan,
            shard,
            names_heeded: control.names().version(),
            control,
            moved: false,
            heeded: 0,
            dialing: Dialing::new(plan, shard, &pools, peak),
            users: Users::new(plan, &pools),
            pools,
            routes: Routes::new(directory),
            conns: Vec::new(),
            timers: Timers::default(),
            iterations: Iterations::new(plan),
            polls: PollQueue::default(),
            websockets: WebSockets::default(),
            content: Content::new(plan, shard, unix_now, feeds, body_queues, scripts),
            steps,
            misbehaviour: Misbehaviour::of(plan, shard),
            exchanges: Exchanges::new(plan, log),
            failures: Failures::new(plan.steps.len()),
            slowest,
            trace_key: TraceKey::random(),
            pacer: Pacer::new(plan.pacing, peak),
            clock: Clock::new(unix_offset),
            stalls: Stalls::default(),
            counts: Counts::new(plan, shard),
            records: Records::new(plan, addresses),
            batch: EventBatch::default(),
            outgoing,
            draft: Draft::default(),
            buffers: Buffers::default(),
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

    /// Opens the initial connections and returns when each is established or has failed, or after as long as
    /// the run takes by itself. Failures are counted; the load will try again.
    pub fn prepare(&mut self) {
        let missing = self.pools.iter().map(|pool| pool.initial.saturating_sub(pool.open));
        let mut missing: Vec<u32> = missing.collect();
        if self.plan.connections.keep_alive && !self.dialing.ramp.is_paced() {
            let patience = connect_patience(self.plan);
            // Connects that are given up by themselves are waited for: the load would begin on dying ones.
            let is_cut = patience < self.plan.connect_timeout;
            let latest = if is_cut { self.io.now() + patience } else { Nanos::MAX };
            loop {
                let has_room = self.dialing.connecting() < CONNECTING_AT_ONCE;
                let next = missing.iter().position(|left| *left > 0).filter(|_| has_room);
                if let Some(index) = next {
                    missing[index] -= 1;
                    let now = self.io.now();
                    // A connection that fails is counted, and tried again under load.
                    let _ = self.open_connection(index as u32, now);
                }
                let all_ended = next.is_none() && self.dialing.connecting() == 0;
                let is_over = all_ended || self.io.now() >= latest;
                if is_over || self.control.requested_stop() == Stop::Now {
                    break;
                }
                self.flush();
                let now = self.io.now();
                // The end of a connect has no stamp of the kernel: it is awaited at once, and looked for
                // between two connects, so that those that follow are not in its time.
                let until = match next {
                    Some(_) => Nanos::ZERO,
                    None => self.timers.next_due().min(now + LONGEST_WAIT).min(latest),
                };
                self.io.wait(wait_for_one(until));
                self.handle_events();
                let now = self.io.now();
                self.expire(now);
                self.flush();
            }
        }
        self.flush();
    }

    /// Carries out the load from `start` on, and waits for the requests in flight at its end. Gives a
    /// snapshot to `send` about once per second.
    pub fn run(self, start: Nanos, send: impl FnMut(Snapshot)) -> WorkerReport {
        self.run_and_keep(start, send).0
    }

    /// [`run`](Self::run), and the connections that are open at its end.
    pub(crate) fn run_and_keep(
        mut self,
        start: Nanos,
        mut send: impl FnMut(Snapshot),
    ) -> (WorkerReport, Kept<B>) {
        self.clock.begin(start, self.plan);
        let begin = self.join(start);
        self.pacer.count_from(self.clock.measure.max(begin));
        while self.io.now() < begin {
            self.io.wait(wait_for_one(begin));
            self.handle_events();
        }
        let mut cpu = CpuMark::now(&self.content.bodies);
        let mut measuring = self.plan.warmup == Nanos::ZERO;
        let mut next_edge = self.clock.edge_after(start, self.plan);
        // Intervals before it joined are empty.
        while next_edge <= begin {
            send(self.snapshot(next_edge, false));
            self.counts.last_edge = next_edge;
            self.clock.begin_phase(next_edge, self.plan);
            next_edge = self.clock.edge_after(next_edge, self.plan);
        }
        let mut cpu_end = None;
        // Preparation may have ended long ago.
        self.clock.now = self.io.now();
        self.begin_users(start);
        let mut now = self.io.now();
        loop {
            self.clock.advance(now);
            // A load that ended in its warm-up has no measured part.
            if !measuring && now >= self.clock.measure && cpu_end.is_none() {
                measuring = true;
                cpu = CpuMark::now(&self.content.bodies);
            }
            let held = self.do_what_is_due(now);
            if now < self.clock.end && self.is_through() {
                self.clock.complete(self.completed_at(now));
            }
            let over = now >= self.clock.end;
            if over && cpu_end.is_none() {
                self.carry_over();
                cpu_end = Some(CpuMark::now(&self.content.bodies));
            }
            if now >= next_edge || (over && next_edge != Nanos::MAX) {
                let at = next_edge.min(self.clock.end);
                if at > self.counts.last_edge {
                    send(self.snapshot(at, false));
                }
                self.close_spare(now);
                self.counts.last_edge = at;
                next_edge =
                    if at >= self.clock.end { Nanos::MAX } else { self.clock.edge_after(at, self.plan) };
                self.clock.begin_phase(at, self.plan);
                continue;
            }
            if over && (self.counts.in_flight() == 0 || now >= self.clock.drained) {
                break;
            }
            let busy_until = self.finish_pass(now, held);
            let fence = self.control.fenced_from();
            let mut outlook = self.outlook(busy_until, next_edge);
            outlook.until = outlook.until.min(fence.max(busy_until));
            let wait = match now < fence {
                true => self.pacer.wait(outlook),
                // Due arrivals wait for the fence, not for the clock.
                false => wait_for_one(busy_until + FENCE_LOOK),
            };
            if wait.want > 1 {
                self.records.worker.gather_time = self.records.worker.gather_time.max(wait.floor);
            }
            let late = self.io.wait(wait);
            now = self.io.now();
            self.note_wait(busy_until, wait.until.max(busy_until), now);
            if measuring && cpu_end.is_none() {
                let asleep = late.unwrap_or_default();
                self.records.worker.polled += wait.spin.min(now.since(busy_until)).since(asleep) + held;
            }
            let waiting = self.counts.in_flight();
            self.handle_events();
            self.counts.note_answers(waiting);
            self.expire(now);
            if let Some(late) = late {
                // Events that came meanwhile delay arrivals, too.
                self.pacer.overslept(late + self.io.now().since(now));
            }
        }
        self.leave_websockets();
        // In virtual time, the CPU time and the run delay of this thread mean nothing.
        if self.io.name() != SIMULATED {
            let end = cpu_end.unwrap_or_else(|| CpuMark::now(&self.content.bodies));
            end.record_since(&cpu, &mut self.records.worker);
        }
        self.leave_unfinished(now);
        let drain = self.snapshot(now, true);
        if !drain.is_empty() {
            send(drain);
        }
        self.report(now)
    }
}

/// CPU time of a worker at an instant: that of the thread, and that of the helpers which make bodies.
struct CpuMark {
    thread: usage::Cpu,
    run_delay: Option<Nanos>,
    helpers: MakingCpu,
}

impl CpuMark {
    fn now(bodies: &BodyQueues) -> Self {
        Self { thread: usage::thread_cpu(), run_delay: usage::thread_run_delay(), helpers: bodies.cpu() }
    }

    /// Records what was used since an earlier instant.
    fn record_since(&self, begin: &Self, record: &mut WorkerRecord) {
        record.cpu_user = self.thread.user - begin.thread.user;
        record.cpu_system = self.thread.system - begin.thread.system;
        record.bodies_cpu = self.helpers.bodies.since(begin.helpers.bodies);
        record.signing_cpu = self.helpers.signing.since(begin.helpers.signing);
        record.involuntary_switches = self.thread.involuntary_switches - begin.thread.involuntary_switches;
        record.run_delay = self.run_delay.zip(begin.run_delay).map(|(after, before)| after - before);
    }
}

impl<B: Backend> Worker<'_, B> {
    /// Lets the first users begin, or plans when they do.
    fn begin_users(&mut self, start: Nanos) {
        if self.users_have_connections() {
            self.start_users(start);
        } else if self.plan.users.is_some() {
            self.users.change_at(start);
        }
    }

    /// Learns from a pass that began at `now`, and renews what is due from time to time. Returns the instant.
    #[inline]
    fn finish_pass(&mut self, now: Nanos, held: Nanos) -> Nanos {
        let mut busy_until = self.io.now();
        self.note_pass(now, busy_until - held);
        self.pacer.worked(busy_until.since(now) - held);
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
        busy_until
    }

    /// Does everything that is due at this instant, and hands the written bytes to the backend. Returns how
    /// long requests that were made ahead were held.
    #[inline]
    fn do_what_is_due(&mut self, now: Nanos) -> Nanos {
        self.heed_control(now);
        self.close_unlinked();
        self.open_paced(now);
        self.start_openers(now);
        self.adjust_users(now);
        self.probe_lost(now);
        if self.routes.is_asking() {
            self.ask_directory(now);
        }
        if now < self.control.fenced_from() {
            self.start_polls(now);
            self.start_waiting(now);
            let at = self.ahead_of(now);
            self.start_sleepers(at);
            self.start_retries(at);
            self.start_arrivals(at);
        }
        self.note_spare();
        self.flush();
        let held = self.end_preparation();
        self.settle_websockets();
        if self.misbehaviour.is_some() {
            self.cut_off();
        }
        held
    }

    /// Skips the arrivals before the instant at which this process joins, which belong to the former owner of
    /// its shard, and returns that instant. Its random values differ from the former owner's.
    fn join(&mut self, start: Nanos) -> Nanos {
        let joins_at = self.control.joins_at();
        if joins_at > Nanos::ZERO {
            // By the schedule with all changes that were made before it came.
            self.heed_changes(start + joins_at);
            for pool in &mut self.pools {
                pool.take_before(joins_at, &[]);
            }
            self.content.random = random_of(self.plan.seed.wrapping_add(joins_at.0), self.shard);
        }
        start + joins_at
    }

    /// The end of a load with nothing left to do. Of an open load with a length the time to the arrival that
    /// found no data is a part: each arrival before it was due in its own part of the time.
    fn completed_at(&self, now: Nanos) -> Nanos {
        let sought = self.iterations.completion().filter(|_| self.early_end().is_some());
        let sought = sought.map_or(Nanos::ZERO, |completion| completion.at.min(now));
        self.counts.last_done.max(self.clock.measure).max(self.counts.last_edge).max(sought)
    }

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
