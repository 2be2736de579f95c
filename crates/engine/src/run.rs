//! Run control: from a plan to a record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use plimsoll_core::{Nanos, Shard};
use plimsoll_driver::resolve::{self, Family};
use plimsoll_driver::{Backend, Endpoint, Open, SystemError, clock, usage};
use plimsoll_metrics::interval::IntervalMerger;
use plimsoll_metrics::{
    Accounting, ConnectionRecord, Interval, IterationRecord, Log, LogRecord, LogSink, MachineRecord, Model,
    RunRecord, Snapshot, StepRecord, ThresholdWatch, Verdict, verdict,
};
use plimsoll_plan::{Address, Load, Pacing, Plan};
use plimsoll_scenario::Feeds;

use crate::control::{Control, Progress, Stop};
use crate::error::RunError;
use crate::sites::Site;
use crate::watch::MachineWatch;
use crate::worker::{Resources, Worker, WorkerReport};

/// From the last worker's readiness to the start: time for every thread to be waiting on its own clock.
const HEAD_START: Nanos = Nanos::from_millis(2);

/// How the threads of workers are called, before their number.
pub(crate) const WORKER_NAME: &str = "worker-";

/// The addresses of a plan's targets, one list per target, none empty.
pub type Resolved = Vec<Arc<[Site]>>;

/// Resolves the targets of a plan, before and outside the hot path.
///
/// # Errors
/// [`RunError::Resolve`] for the first host without an address.
pub fn resolve(plan: &Plan) -> Result<Resolved, RunError> {
    let family = match plan.connections.family {
        plimsoll_plan::Family::Any => Family::Any,
        plimsoll_plan::Family::V4 => Family::V4,
        plimsoll_plan::Family::V6 => Family::V6,
    };
    let sites_of = |address: &Address, member: u16, authority: &str| -> Result<Vec<Site>, RunError> {
        let endpoints: Vec<Endpoint> = match address {
            Address::Unix(path) => vec![Endpoint::Unix(path.clone())],
            Address::Fixed(addresses) => addresses.iter().copied().map(Endpoint::Tcp).collect(),
            Address::Host { host, port } => resolve::resolve(host, *port, family)
                .map_err(|error| RunError::Resolve {
                    authority: authority.to_owned(),
                    reason: error.to_string(),
                })?
                .into_iter()
                .map(Endpoint::Tcp)
                .collect(),
        };
        Ok(endpoints.into_iter().map(|endpoint| Site { endpoint, member }).collect())
    };
    plan.targets
        .iter()
        .map(|target| {
            if target.pool.is_empty() {
                return Ok(sites_of(&target.address, 0, &target.authority)?.into());
            }
            let mut sites = Vec::new();
            for (number, member) in (0..).zip(&target.pool) {
                // Every member has the same share, however many addresses its name has.
                sites.extend(sites_of(&member.address, number, &member.authority)?.into_iter().take(1));
            }
            Ok(sites.into())
        })
        .collect()
}

/// What a worker thread tells the run control.
enum Message {
    /// Connections are open; the worker's clock says so much.
    Ready(Nanos),
    Snapshot(Snapshot),
    Done(Box<WorkerReport>),
    Failed(SystemError),
    /// Data or scripts could not be opened.
    Broken(RunError),
}

/// Carries out `plan` and returns its record with the verdict. `observe` is called about once per interval of
/// the plan, and for what is left at the end.
///
/// # Errors
/// If a backend cannot be opened or a worker thread ends unexpectedly. What goes wrong with requests is
/// counted.
pub fn run<O: Open>(
    plan: &Plan,
    open: &O,
    addresses: &[Arc<[Site]>],
    control: &Control,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<RunRecord, RunError> {
    run_logged(plan, open, addresses, control, &Log::default(), observe)
}

/// [`run`] with a log of single requests.
///
/// # Errors
/// As [`run`].
pub fn run_logged<O: Open>(
    plan: &Plan,
    open: &O,
    addresses: &[Arc<[Site]>],
    control: &Control,
    log: &Log,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<RunRecord, RunError> {
    let workers = plan.threads.max(1);
    let (send, receive) = channel();
    let feeds = Feeds::open_all(&plan.feeds, workers, plan.seed)
        .map_err(|error| RunError::Data(error.to_string()))?;
    thread::scope(|scope| {
        let mut starts = Vec::new();
        for (index, feeds) in (0..workers).zip(feeds) {
            let (start, started) = channel();
            starts.push(start);
            let (send, control) = (send.clone(), control.clone());
            let log = log.sink(index);
            let shard = Shard { index, of: workers };
            thread::Builder::new()
                .name(format!("{WORKER_NAME}{index}"))
                .spawn_scoped(scope, move || {
                    let make = |io: O::Backend, unix_offset| {
                        let resources = resources(plan, addresses, shard, feeds, log)?;
                        Ok(Worker::new(io, plan, addresses, shard, control, unix_offset, resources))
                    };
                    work(open, make, &send, &started);
                })
                .map_err(|error| RunError::Worker(error.to_string()))?;
        }
        drop(send);
        let watch = || MachineWatch::open(control.watched(), addresses);
        conduct(plan, open.name(), control, (&receive, &starts), watch, observe)
    })
}

/// The body of a worker thread. `make` makes the worker of a backend and what has to be added to its clock to
/// get Unix time.
fn work<'p, O: Open>(
    open: &O,
    make: impl FnOnce(O::Backend, u64) -> Result<Worker<'p, O::Backend>, RunError>,
    send: &Sender<Message>,
    start: &Receiver<Nanos>,
) {
    // A send fails only when the run control has given up: then there is no one to tell.
    let io = match open.open() {
        Ok(io) => io,
        Err(error) => {
            let _ = send.send(Message::Failed(error));
            return;
        }
    };
    let unix_offset = clock::unix().0.wrapping_sub(io.now().0);
    let mut worker = match make(io, unix_offset) {
        Ok(worker) => worker,
        Err(error) => {
            let _ = send.send(Message::Broken(error));
            return;
        }
    };
    worker.prepare();
    if send.send(Message::Ready(worker.now())).is_err() {
        return;
    }
    let Ok(start) = start.recv() else { return };
    let report = worker.run(start, |snapshot| {
        let _ = send.send(Message::Snapshot(snapshot));
    });
    let _ = send.send(Message::Done(Box::new(report)));
}

/// Opens what a worker has beside its plan.
fn resources(
    plan: &Plan,
    addresses: &[Arc<[Site]>],
    shard: Shard,
    feeds: Feeds,
    log: LogSink,
) -> Result<Resources, RunError> {
    let addresses: Vec<String> =
        addresses.iter().flat_map(|list| list.iter()).map(|site| site.endpoint.to_string()).collect();
    let scripts = match &plan.scripts {
        None => None,
        Some(source) => {
            Some(source.open(shard, &addresses).map_err(|error| RunError::Script(error.message))?)
        }
    };
    Ok(Resources { feeds, scripts, log })
}

/// The run control's side: starts all workers at one instant, and gathers. `watch` takes the first look at
/// the machine.
fn conduct(
    plan: &Plan,
    backend: &'static str,
    control: &Control,
    (receive, starts): (&Receiver<Message>, &[Sender<Nanos>]),
    watch: impl FnOnce() -> MachineWatch,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<RunRecord, RunError> {
    let mut latest = Nanos::ZERO;
    for _ in starts {
        match receive.recv() {
            Ok(Message::Ready(now)) => latest = latest.max(now),
            Ok(Message::Failed(error)) => return Err(RunError::Backend { backend, error }),
            Ok(Message::Broken(error)) => return Err(error),
            _ => return Err(RunError::Worker("it ended before it was ready".to_owned())),
        }
    }
    if control.wish() == Stop::Now {
        return Err(RunError::Stopped);
    }
    let mut machine = watch();
    // That look may have taken longer than the head start. Without it the workers' clock may be virtual.
    let now = machine.opened().unwrap_or(latest);
    let start = latest.max(now) + HEAD_START;
    let started_unix = clock::unix() + HEAD_START;
    control.begin(plan, start);
    for worker in starts {
        let _ = worker.send(start);
    }
    let end = plan.end.duration.map(|duration| plan.warmup + duration);
    let outline = plan.outline();
    let mut watch = ThresholdWatch::new(&plan.thresholds, &outline, plan.interval);
    let mut merger = IntervalMerger::new(starts.len()).with_length(plan.interval).with_outline(outline);
    let mut intervals: Vec<Interval> = Vec::new();
    let mut reports: Vec<WorkerReport> = Vec::new();
    let mut tell = |mut interval: Interval| {
        if watch.look(&mut interval) {
            control.stop(Stop::Drain);
        }
        let (elapsed, paused) = (interval.at, control.status().paused);
        let target_per_second = control.target_at(elapsed);
        observe(Progress { elapsed, started_unix, end, target_per_second, paused, interval: &interval });
        machine.look(&interval);
        // They are as large as the histograms, and there is one per second.
        interval.steps = Vec::new();
        intervals.push(interval);
    };
    while reports.len() < starts.len() {
        match receive.recv() {
            Ok(Message::Snapshot(snapshot)) => {
                merger.add(&snapshot);
                while let Some(interval) = merger.next_complete() {
                    tell(interval);
                }
            }
            Ok(Message::Done(report)) => reports.push(*report),
            Ok(Message::Ready(_)) => {}
            Ok(Message::Failed(error)) => return Err(RunError::Backend { backend, error }),
            Ok(Message::Broken(error)) => return Err(error),
            Err(_) => return Err(RunError::Worker("it panicked; see above".to_owned())),
        }
    }
    for interval in merger.finish() {
        tell(interval);
    }
    reports.sort_by_key(|report| report.shard.index);
    let times = (start, started_unix);
    let mut record = merge(plan, backend, times, (intervals, machine.finish()), reports)?;
    record.thresholds = watch.finish(&record);
    (record.rate_changes, record.stopped_by) = control.finish(record.warmup + record.duration);
    Ok(record)
}

/// Adds up what the workers measured, and judges it.
fn merge(
    plan: &Plan,
    backend: &'static str,
    (started_monotonic, started_unix): (Nanos, Nanos),
    (intervals, machine): (Vec<Interval>, MachineRecord),
    reports: Vec<WorkerReport>,
) -> Result<RunRecord, RunError> {
    let mut steps: Vec<StepRecord> = Vec::new();
    let mut accounting = Accounting::default();
    let mut connections = ConnectionRecord::default();
    let mut tls_versions = BTreeMap::new();
    let mut protocols: BTreeMap<String, u64> = BTreeMap::new();
    let mut iterations = IterationRecord::default();
    let mut error_examples = BTreeMap::new();
    let mut peers = Vec::new();
    let (mut duration, mut drain, mut completed_in_window) = (Nanos::ZERO, Nanos::ZERO, 0);
    let mut pacing_budget = Nanos::ZERO;
    let mut workers = Vec::new();
    let mut log = LogRecord::default();
    for report in reports {
        if steps.is_empty() {
            steps = report.steps;
            peers = report.peers;
        } else {
            for (mine, theirs) in peers.iter_mut().zip(report.peers) {
                if mine.protocol.is_empty() {
                    *mine = theirs;
                }
            }
            for (mine, theirs) in steps.iter_mut().zip(&report.steps) {
                mine.merge(theirs);
            }
        }
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
        duration = duration.max(report.window);
        drain = drain.max(report.drain);
        completed_in_window += report.completed_in_window;
        pacing_budget = pacing_budget.max(report.pacing_budget);
        log.merge(report.log);
        workers.push(report.worker);
    }
    for scenario in plan.scenarios.iter().filter(|scenario| scenario.steps.len() > 1) {
        for step in scenario.steps.clone() {
            if let Some(step) = steps.get_mut(step as usize) {
                step.scenario.clone_from(&scenario.name);
            }
        }
    }
    let mut total = StepRecord { name: "all".to_owned(), ..StepRecord::default() };
    for step in &steps {
        total.merge(step);
    }
    accounting.check().map_err(RunError::Accounting)?;
    iterations.check().map_err(RunError::Accounting)?;
    let model = match plan.load {
        Load::Closed => Model::Closed,
        Load::Open { .. } => Model::Open,
    };
    let arrivals = accounting.arrivals(&iterations);
    let target_per_second =
        (model == Model::Open && duration > Nanos::ZERO).then(|| arrivals as f64 / duration.as_secs_f64());
    let mut record = RunRecord {
        model,
        duration,
        warmup: plan.warmup,
        drain,
        started_unix,
        started_monotonic,
        completed_in_window,
        target_per_second,
        rate_changes: Vec::new(),
        stopped_by: None,
        accounting,
        total,
        steps,
        connections,
        peers,
        error_examples,
        protocols,
        iterations,
        tls_versions,
        intervals,
        workers,
        machine,
        backend,
        rss_peak_bytes: usage::peak_rss_bytes(),
        pacing_budget,
        precise: plan.pacing == Pacing::Precise,
        interrupted: None,
        verdict: Verdict::default(),
        thresholds: Vec::new(),
        log,
    };
    record.verdict = verdict::judge(&record);
    Ok(record)
}
