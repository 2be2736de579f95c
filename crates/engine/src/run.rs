//! Run control: from a plan to a record.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use plimsoll_core::{Nanos, Shard};
use plimsoll_driver::Endpoint;
use plimsoll_metrics::interval::IntervalMerger;
use plimsoll_metrics::{
    Accounting, ConnectionRecord, EarlyEnd, Interval, IterationRecord, Log, LogRecord, MachineInterval,
    MachineRecord, MetricRecord, Pace, Peer, PhaseMerger, RunRecord, Slice, Slicer, StepRecord,
    ThresholdWatch, TimelineDownsampler, WorkerRecord, verdict,
};
use plimsoll_plan::{Address, Plan, Proxy, StartTime, Target};
use plimsoll_scenario::{Feeds, Per};
use plimsoll_system::{
    clock,
    resolve::{self, Family},
    usage,
};
use plimsoll_wire::tunnel::Destination;

use crate::addresses::TargetAddress;
use crate::backends::Backends;
use crate::control::{Control, Progress, Stop};
use crate::crew::{Crew, Seat};
use crate::directory::Directory;
use crate::error::RunError;
use crate::job::{Job, Message};
use crate::names::Resolver;
use crate::shutdown_watchdog::{LOOK, ShutdownWatchdog};
use crate::supply::BodyQueues;
use crate::watch::MachineWatch;
use crate::worker::{SIMULATED, WorkerReport};

/// From the last worker's readiness to the start: time for every thread to be waiting on its own clock.
const HEAD_START: Nanos = Nanos::from_millis(2);
/// Time before a start that was asked for at which the workers learn of it: more than this thread may
/// oversleep on a busy machine.
const START_NOTICE: Nanos = Nanos::from_millis(200);
/// Interval between two checks of whether the wait for such a start is still wanted.
const START_LOOK: Nanos = Nanos::from_millis(100);

/// Name prefix of the workers' threads; the worker's number follows.
pub(crate) const WORKER_NAME: &str = "worker-";

/// The addresses of a plan's targets, one list per target, none empty.
pub type Resolved = Vec<Arc<[TargetAddress]>>;

/// Resolves the targets of a plan, before and outside the hot path.
///
/// # Errors
/// [`RunError::Resolve`] for the first host without an address.
pub fn resolve(plan: &Plan) -> Result<Resolved, RunError> {
    let addresses = |target| {
        let found = addresses_of_target(plan, target, &[]);
        found
            .map(Into::into)
            .map_err(|Unresolved { authority, reason }| RunError::Resolve { authority, reason })
    };
    plan.targets.iter().map(addresses).collect()
}

/// A server that has no address.
pub(crate) struct Unresolved {
    pub(crate) authority: String,
    pub(crate) reason: String,
}

/// The addresses of a target, of which those in `known` are preferred. Blocks while a name is resolved.
///
/// # Errors
/// The first server without an address.
pub(crate) fn addresses_of_target(
    plan: &Plan,
    target: &Target,
    known: &[TargetAddress],
) -> Result<Vec<TargetAddress>, Unresolved> {
    let of = |(address, member): (&Address, u16), authority: &str| {
        target_addresses_of(target, address, member, plan.connections.family)
            .map_err(|reason| Unresolved { authority: authority.to_owned(), reason })
    };
    if target.pool.is_empty() {
        return of((&target.address, 0), &target.authority);
    }
    let mut addresses = Vec::new();
    for (number, member) in (0..).zip(&target.pool) {
        // Every member has the same share, however many addresses its name has.
        let mut all = of((&member.address, number), &member.authority)?;
        let place = all.iter().position(|address| known.contains(address)).unwrap_or(0);
        addresses.push(all.swap_remove(place));
    }
    Ok(addresses)
}

/// Returns `true` if a host is a name, which may lead elsewhere later.
pub(crate) fn is_name(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse::<IpAddr>().is_err()
}

/// The sites of one address of a target: its own or that of a member of its pool. Blocks while a name is
/// resolved.
///
/// # Errors
/// The reason why the address has none.
pub(crate) fn target_addresses_of(
    target: &Target,
    address: &Address,
    member: u16,
    family: plimsoll_plan::Family,
) -> Result<Vec<TargetAddress>, String> {
    let family = match family {
        plimsoll_plan::Family::Any => Family::Any,
        plimsoll_plan::Family::V4 => Family::V4,
        plimsoll_plan::Family::V6 => Family::V6,
    };
    let Some(proxy) = &target.proxy else {
        let endpoints = endpoints_of(address, family)?.into_iter();
        return Ok(endpoints.map(|endpoint| TargetAddress { endpoint, tunnel: None, member }).collect());
    };
    let (host, port) = (proxy.host.clone(), proxy.port);
    let ways = endpoints_of(&Address::Host { host, port }, family);
    let ways = ways.map_err(|reason| format!("the proxy: {reason}"))?;
    let tunnels = match target.forward() {
        Some(_) => vec![None],
        None => {
            let tunnel = |to| proxy.tunnel(&to).map(|tunnel| Some(Arc::new(tunnel)));
            destinations(address, proxy, family)?.into_iter().map(tunnel).collect::<Result<_, _>>()?
        }
    };
    let each = tunnels.iter().flat_map(|tunnel| ways.iter().map(move |way| (way.clone(), tunnel.clone())));
    Ok(each.map(|(endpoint, tunnel)| TargetAddress { endpoint, tunnel, member }).collect())
}

fn endpoints_of(address: &Address, family: Family) -> Result<Vec<Endpoint>, String> {
    Ok(match address {
        Address::Unix(path) => vec![Endpoint::Unix(path.clone())],
        Address::Fixed(addresses) => addresses.iter().copied().map(Endpoint::Tcp).collect(),
        Address::Host { host, port } => {
            let addresses = resolve::resolve(host, *port, family).map_err(|error| error.to_string())?;
            addresses.into_iter().map(Endpoint::Tcp).collect()
        }
    })
}

/// The other ends of tunnels to an address: a name where the proxy resolves those.
fn destinations(address: &Address, proxy: &Proxy, family: Family) -> Result<Vec<Destination>, String> {
    if let Address::Host { host, port } = address
        && proxy.finds_names()
        && is_name(host)
    {
        return Ok(vec![Destination::Name(host.clone(), *port)]);
    }
    // The proxy may well reach addresses that are of no use here.
    let family = if proxy.finds_names() { Family::Any } else { family };
    let to = |endpoint| match endpoint {
        Endpoint::Tcp(address) => Ok(Destination::Address(address)),
        Endpoint::Unix(_) => Err("no proxy leads to a unix socket".to_owned()),
    };
    endpoints_of(address, family)?.into_iter().map(to).collect()
}

/// Carries out `plan` and returns its record with the verdict. `observe` is called about once per interval of
/// the plan, and for the rest at the end.
///
/// A worker that does not come back after the end, because a call does not return, is not waited for: the
/// record is that of the others, and says so. Its thread and the resources of it are left alone.
///
/// # Errors
/// If a backend cannot be opened, a worker thread ends unexpectedly, or none comes back. Errors of requests
/// are counted.
pub fn run(
    plan: &Plan,
    backends: &Backends,
    addresses: &[Arc<[TargetAddress]>],
    control: &Control,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<RunRecord, RunError> {
    run_logged(plan, backends, addresses, control, &Log::default(), observe)
}

/// [`run`] with a log of single requests.
///
/// # Errors
/// As [`run`].
pub fn run_logged(
    plan: &Plan,
    backends: &Backends,
    addresses: &[Arc<[TargetAddress]>],
    control: &Control,
    log: &Log,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<RunRecord, RunError> {
    Crew::new(backends.clone()).run(plan, addresses, control, log, observe)
}

impl Crew {
    /// Carries out a plan as [`run_logged`] does. Connections of the crew's last run that are idle are used
    /// again, where this plan may have them: `addresses` must be those of that run.
    ///
    /// # Errors
    /// As [`run`]. After an error the next run begins with new threads and connections.
    pub fn run(
        &mut self,
        plan: &Plan,
        addresses: &[Arc<[TargetAddress]>],
        control: &Control,
        log: &Log,
        observe: &mut dyn FnMut(Progress<'_>),
    ) -> Result<RunRecord, RunError> {
        let workers = plan.threads.max(1);
        let (send, receive) = channel();
        check_user_rows(plan)?;
        let shards: Vec<Shard> = (0..workers).map(|worker| plan.worker_shard(worker)).collect();
        let feeds = Feeds::open_all(&plan.feeds, &shards, plan.seed)
            .map_err(|error| RunError::Data(error.to_string()))?;
        let at_once = self.backends.name() == SIMULATED;
        let directory =
            Arc::new(Directory::new(plan.dynamic_origins.clone(), plan.connections.family, at_once));
        let shared = Arc::new(plan.clone());
        // The run control begins with the addresses before any worker can ask for others.
        control.names().begin(addresses);
        let _resolver = if at_once { None } else { Resolver::start(&shared, control) };
        let mut seats = self.take_seats();
        let mut members = Vec::new();
        for ((index, shard), feeds) in (0..workers).zip(shards).zip(feeds) {
            let (start, started) = channel();
            let name = format!("{}{index}", control.thread_name());
            let seat = seats.next().map_or_else(|| Seat::begin(name, self.backends.clone()), Ok);
            let mut seat = seat.map_err(|error| RunError::Worker(error.to_string()))?;
            seat.assign(Job {
                plan: Arc::clone(&shared),
                addresses: addresses.to_vec(),
                shard,
                control: control.clone(),
                feeds: feeds.with_pools(&plan.pools, shard),
                log: log.sink(index),
                directory: Arc::clone(&directory),
                body_queues: BodyQueues::open(plan, shard, at_once)?,
                messages: send.clone(),
                start: started,
                token: Arc::new(()),
            });
            members.push(Member { start, seat });
        }
        drop(send);
        let watchdog = ShutdownWatchdog::new(Nanos::MAX, Nanos::MAX);
        let team = Team { members, receive, control: control.clone(), watchdog };
        // A proxy on this machine is not the target.
        let direct = plan.targets.iter().zip(addresses).filter(|(target, _)| target.proxy.is_none());
        let direct: Vec<_> = direct.map(|(_, addresses)| Arc::clone(addresses)).collect();
        let watch = || MachineWatch::open(control.watched(), &direct);
        let (record, seats) = conduct(plan, self.backends.name(), control, team, watch, observe)?;
        self.keep_seats(seats);
        Ok(record)
    }
}

/// One worker thread, as the run control sees it.
struct Member {
    start: Sender<Nanos>,
    seat: Seat,
}

/// The worker threads.
struct Team {
    members: Vec<Member>,
    receive: Receiver<Message>,
    control: Control,
    watchdog: ShutdownWatchdog,
}

impl Team {
    /// Waits until all workers are ready. Returns the instant of the latest one, on its clock and since 1970.
    fn all_ready(&mut self, backend: &'static str) -> Result<(Nanos, Nanos), RunError> {
        let mut latest = (Nanos::ZERO, Nanos::ZERO);
        for _ in 0..self.members.len() {
            match self.listen()? {
                Some(Message::Ready(now, unix)) => latest = latest.max((now, unix)),
                Some(Message::Failed(error)) => return Err(RunError::Backend { backend, error }),
                Some(Message::Broken(error)) => return Err(error),
                None => return Err(RunError::Stopped),
                Some(_) => return Err(RunError::Worker("it ended before it was ready".to_owned())),
            }
        }
        Ok(latest)
    }

    /// Returns the next message of a worker; `None` if the watchdog has given up waiting.
    fn listen(&mut self) -> Result<Option<Message>, RunError> {
        loop {
            // If all have ended before a silence, no message can come any more.
            let all_ended = self.members.iter().all(|member| !member.seat.is_busy());
            match self.receive.recv_timeout(LOOK.into()) {
                Ok(message) => {
                    self.watchdog.hear();
                    return Ok(Some(message));
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if all_ended => break,
                Err(RecvTimeoutError::Timeout) => {
                    if self.watchdog.ends(self.control.requested_stop(), clock::monotonic()) {
                        return Ok(None);
                    }
                }
            }
        }
        Err(RunError::Worker("it panicked; see above".to_owned()))
    }

    /// Returns the threads of these workers, which have handed in their reports; leaves the others alone.
    fn dismiss(self, plan: &Plan, reports: &[WorkerReport]) -> Vec<Seat> {
        let came_back = |worker: u32| reports.iter().any(|report| plan.worker_of(report.shard) == worker);
        let members = self.members.into_iter().zip(0..).filter(|(_, worker)| came_back(*worker));
        members.map(|(member, _)| member.seat).collect()
    }
}

/// Refuses files that have fewer rows than users that each keep one. Reads as many rows as there are users.
///
/// # Errors
/// The source that has fewer, or that cannot be read so far.
pub fn check_user_rows(plan: &Plan) -> Result<(), RunError> {
    let users = plan.lasting_users();
    for feed in plan.feeds.iter().filter(|feed| feed.per == Per::User) {
        let reason = match feed.suffices(users) {
            Ok(true) => continue,
            Ok(false) => format!(
                "fewer rows than the {users} users that each keep one; add rows, use fewer connections, or let \
                 users share rows (`at_end: wrap`)"
            ),
            Err(reason) => reason,
        };
        return Err(RunError::Data(format!("data source `{}`: {reason}", feed.name)));
    }
    Ok(())
}

/// Waits for the start that was asked for: its instant on the driver's clock, and in Unix time. Workers learn
/// of it a moment before, so that an interruption until then ends the run at once.
fn wait_for_start(at: Nanos, earliest: Nanos, control: &Control) -> Result<(Nanos, Nanos), RunError> {
    loop {
        let (now, unix) = (clock::monotonic(), clock::unix());
        // The machine's clock may be set meanwhile, so the start is computed again in each turn.
        let start = now + at.since(unix);
        if unix > at || start < earliest {
            return Err(RunError::Late { by: unix.max(at).since(at) + earliest.since(start) });
        }
        if control.requested_stop() != Stop::No {
            return Err(RunError::Stopped);
        }
        let left = at.since(unix);
        if left <= START_NOTICE {
            return Ok((start, at));
        }
        clock::sleep_until(now + (left - START_NOTICE).min(START_LOOK));
    }
}

/// Returns the time of day at which the load has to start; `None`: as soon as the workers are ready.
fn start_on_command(plan: &Plan, backend: &str, control: &Control) -> Result<Option<Nanos>, RunError> {
    Ok(match plan.start {
        _ if backend == SIMULATED => None,
        StartTime::WhenReady => None,
        StartTime::At(at) => Some(at),
        StartTime::OnCommand => {
            control.expect(plan);
            Some(control.wait_for_start()?)
        }
    })
}

/// The start of the load, on the driver's clock and in Unix time: the one that was asked for, or the earliest
/// one.
fn start_of_load(
    plan: &Plan,
    backend: &str,
    control: &Control,
    earliest: (Nanos, Nanos),
) -> Result<(Nanos, Nanos), RunError> {
    let Some(at) = start_on_command(plan, backend, control)? else { return Ok(earliest) };
    let from = control.joins_at();
    let (begin, begin_unix) = wait_for_start(at + from, earliest.0, control)?;
    Ok((begin.since(from), begin_unix.since(from)))
}

/// The run control's side: starts all workers at one instant, and gathers. `watch` takes the first look at
/// the machine. Returns the threads of the workers that came back beside the record.
fn conduct(
    plan: &Plan,
    backend: &'static str,
    control: &Control,
    mut team: Team,
    watch: impl FnOnce() -> MachineWatch,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<(RunRecord, Vec<Seat>), RunError> {
    let workers = team.members.len();
    let share = plan.share();
    let (latest, latest_unix) = team.all_ready(backend)?;
    if control.requested_stop() == Stop::Now {
        return Err(RunError::Stopped);
    }
    let mut machine = watch();
    // Opening may have taken longer than the head start. Without it the workers' clock may be virtual.
    let now = machine.opened().unwrap_or(latest);
    let earliest = latest.max(now) + HEAD_START;
    let earliest = (earliest, latest_unix + earliest.since(latest));
    let (start, started_unix) = start_of_load(plan, backend, control, earliest)?;
    control.begin(plan, start);
    control.names().start(start);
    for member in &team.members {
        let _ = member.start.send(start);
    }
    let end = plan.end.duration.map(|duration| plan.warmup + duration);
    team.watchdog = watchdog(plan, backend, start, end);
    let outline = plan.outline();
    let mut watch = ThresholdWatch::new(&plan.thresholds, &outline, plan.interval);
    let mut phases = PhaseMerger::new(&outline.phases);
    let merger = IntervalMerger::new(workers).with_length(plan.interval).with_cuts(plan.cuts());
    let mut merger = merger.with_outline(outline.clone());
    let (mut intervals, mut parts): (Vec<Interval>, Vec<MachineInterval>) = (Vec::new(), Vec::new());
    let mut downsampler = plan.downsampler();
    let mut slicer = Slicer::new();
    let mut timeline = TimelineDownsampler::new();
    let mut reports: Vec<WorkerReport> = Vec::new();
    let mut tell = |mut interval: Interval| {
        if watch.look(&mut interval) {
            control.stop(Stop::Drain);
        }
        interval.marked = control.take_marks(interval.at);
        let (elapsed, paused) = (interval.at, control.status().paused);
        let target_per_second = control.target_at(elapsed).map(|target| target * share);
        let begin = interval.at.since(interval.length);
        let asked = control.profile().map(|profile| profile.mean_rate(begin, interval.at) * share);
        let pace = Pace::of_interval(&interval, &outline, asked);
        let seen = machine.look(&interval);
        let (machine, facts) = (seen.as_ref(), machine.facts());
        let told = Progress {
            elapsed,
            started_unix,
            end,
            target_per_second,
            pace,
            paused,
            interval: &interval,
            machine,
            facts,
        };
        observe(told);
        slicer.add(&interval);
        timeline.add(&interval);
        phases.add(&interval);
        downsampler.add(&mut intervals, &mut parts, interval, seen);
    };
    while reports.len() < workers {
        match team.listen()? {
            Some(Message::Snapshot(snapshot)) => {
                merger.add(&snapshot);
                while let Some(interval) = merger.next_complete() {
                    tell(interval);
                }
            }
            Some(Message::Done(report)) => reports.push(*report),
            Some(Message::Ready(..)) => {}
            Some(Message::Failed(error)) => return Err(RunError::Backend { backend, error }),
            Some(Message::Broken(error)) => return Err(error),
            None if reports.is_empty() => return Err(RunError::Unresponsive),
            None => break,
        }
    }
    let seats = team.dismiss(plan, &reports);
    for interval in merger.finish() {
        tell(interval);
    }
    reports.sort_by_key(|report| report.shard.index);
    let times = (start, started_unix);
    let mut record =
        merge(plan, backend, times, (intervals, slicer.finish(), machine.finish(parts)), reports)?;
    let asked = control.asked_per_second(plan, start, record.warmup + record.duration);
    record.target_per_second = asked.or(record.target_per_second);
    record.timeline = timeline.finish();
    complete(&mut record, control, phases, watch, share);
    Ok((record, seats))
}

/// The watchdog of a run whose load begins at an instant and ends after a time.
fn watchdog(plan: &Plan, backend: &str, start: Nanos, end: Option<Nanos>) -> ShutdownWatchdog {
    // Virtual time says nothing about the time that a simulation takes.
    let planned =
        end.filter(|_| backend != SIMULATED).map(|end| clock::monotonic().max(start) + HEAD_START + end);
    let drain = if backend == SIMULATED { Nanos::MAX } else { plan.drain };
    ShutdownWatchdog::new(planned.unwrap_or(Nanos::MAX), drain)
}

/// Completes a record by its phases, thresholds and verdict, and by what control has done to the run.
fn complete(
    record: &mut RunRecord,
    control: &Control,
    phases: PhaseMerger,
    thresholds: ThresholdWatch,
    share: f64,
) {
    let profile = control.profile();
    let target = |from, to| profile.as_ref().map(|profile| profile.mean_rate(from, to) * share);
    let end = record.warmup + record.duration;
    record.phases = phases.finish(end, target);
    record.thresholds = thresholds.finish(record);
    record.connections.address_changes = control.names().finish();
    record.verdict = verdict::judge(record);
    (record.rate_changes, record.stopped_by) = control.finish(end);
}

/// In place of the record of a worker that did not come back.
fn absent() -> WorkerRecord {
    WorkerRecord { absent: true, ..WorkerRecord::default() }
}

/// Adds up the measurements of the workers.
fn merge(
    plan: &Plan,
    backend: &'static str,
    (started_monotonic, started_unix): (Nanos, Nanos),
    (intervals, slices, machine): (Vec<Interval>, Vec<Slice>, MachineRecord),
    reports: Vec<WorkerReport>,
) -> Result<RunRecord, RunError> {
    let mut steps: Vec<StepRecord> = Vec::new();
    let mut accounting = Accounting::default();
    let mut connections = ConnectionRecord::default();
    let mut tls_versions = BTreeMap::new();
    let mut protocols: BTreeMap<String, u64> = BTreeMap::new();
    let mut iterations = IterationRecord::default();
    let mut error_examples = BTreeMap::new();
    let (mut peers, mut metrics) = (Vec::new(), Vec::new());
    let mut early_end: Option<EarlyEnd> = None;
    let (mut duration, mut drain, mut completed_in_window) = (Nanos::ZERO, Nanos::ZERO, 0);
    let (mut pacing_budget, mut workers) = (Nanos::ZERO, Vec::new());
    let mut log = LogRecord::default();
    for report in reports {
        if steps.is_empty() {
            steps = report.steps;
            peers = report.peers;
        } else {
            Peer::merge_all(&mut peers, report.peers);
            for (mine, theirs) in steps.iter_mut().zip(&report.steps) {
                mine.merge(theirs);
            }
        }
        MetricRecord::merge_all(&mut metrics, &report.metrics);
        accounting.merge(&report.accounting);
        connections.merge(&report.connections);
        for (version, count) in report.tls_versions {
            *tls_versions.entry(version).or_default() += count;
        }
        for (protocol, responses) in report.protocols {
            *protocols.entry(protocol.to_owned()).or_default() += responses;
        }
        iterations.merge(&report.iterations);
        for (class, example) in report.error_examples {
            error_examples.entry(class).or_insert(example);
        }
        // From the first end of a part on, the load was not the one that was asked for.
        early_end = early_end.into_iter().chain(report.early_end).min_by_key(|end| end.after);
        duration = duration.max(report.window);
        drain = drain.max(report.drain);
        completed_in_window += report.completed_in_window;
        pacing_budget = pacing_budget.max(report.pacing_budget);
        log.merge(report.log);
        // Workers in between did not come back.
        workers.resize_with(plan.worker_of(report.shard) as usize, absent);
        workers.push(report.worker);
    }
    workers.resize_with(plan.threads.max(1) as usize, absent);
    plan.outline().describe(&mut steps);
    let mut total = StepRecord { name: "all".to_owned(), ..StepRecord::default() };
    for step in &steps {
        total.merge(step);
    }
    accounting.check().map_err(RunError::Accounting)?;
    iterations.check().map_err(RunError::Accounting)?;
    let basis = plan.basis();
    let mut record = RunRecord {
        duration,
        warmup: basis.warmup,
        drain,
        started_unix,
        started_monotonic,
        completed_in_window,
        planned: plan.planned(),
        early_end,
        paces_requests: basis.paces_requests,
        users: basis.users,
        users_pause: basis.users_pause,
        users_end: basis.users_end,
        accounting,
        total,
        steps,
        connections,
        peers,
        metrics,
        error_examples,
        protocols,
        iterations,
        tls_versions,
        intervals,
        slices,
        workers,
        machine,
        backend: backend.into(),
        rss_peak_bytes: usage::peak_rss_bytes(),
        pacing_budget,
        precise: basis.precise,
        log,
        ..RunRecord::empty(basis.model)
    };
    record.target_per_second = basis.target_per_second(record.arrivals(), duration);
    Ok(record)
}
