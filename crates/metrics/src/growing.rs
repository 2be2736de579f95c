//! The record of a run while it goes on.

use plimsoll_core::Nanos;

use crate::record::RunRecord;
use crate::{
    Accounting, ConnectionRecord, Interval, IntervalDownsampler, IterationRecord, MachineFacts,
    MachineInterval, MetricRecord, Model, Outline, Peer, RateChange, Slowest, StepRecord, ThreadUse,
    ThresholdResult, Verdict, WorkerRecord, WorkerStatus, verdict,
};

/// The record of a run that is under way, as if it ended with the last interval: the basis of the current
/// verdict, by the same rules as at the end.
///
/// Give it every interval in its order, while it has its steps and standings ([`add`](Self::add)), and ask
/// for the whole of it ([`judged`](Self::judged)) when it is to be shown. It lacks everything that is known
/// only at the end: first-byte times, response times of failed requests and in stalls, slices, phases.
#[derive(Clone, Debug)]
pub struct GrowingRecord {
    record: RunRecord,
    basis: Basis,
    downsampler: IntervalDownsampler,
    worker_statuses: Vec<WorkerStatus>,
    threads: Vec<ThreadUse>,
    watched: Nanos,
}

/// Facts of a run that are known before it begins.
#[derive(Clone, Copy, Debug)]
pub struct Basis {
    /// Open or closed.
    pub model: Model,
    /// Length of the warm-up.
    pub warmup: Nanos,
    /// `true` if the plan asks for the smallest start lag.
    pub precise: bool,
    /// Open model: whether arrivals are requests, and not iterations.
    pub paces_requests: bool,
    /// As [`RunRecord::users`].
    pub users: Option<u64>,
    /// As [`RunRecord::users_pause`].
    pub users_pause: bool,
    /// As [`RunRecord::users_end`].
    pub users_end: bool,
    /// Open model that ends with its iterations: the rate, in arrivals per second, that was asked for at the
    /// start of the measured part. All of them started and ended may take longer than their arrivals did.
    pub asked_per_second: Option<f64>,
}

impl Basis {
    /// The mean rate that was asked for, in arrivals per second, by the number of arrivals that were due in
    /// so much time; `None` in the closed model. Of a load that has a length, its profile says more.
    pub fn target_per_second(&self, arrivals: u64, duration: Nanos) -> Option<f64> {
        if self.model == Model::Closed || duration == Nanos::ZERO {
            return None;
        }
        let mean = arrivals as f64 / duration.as_secs_f64();
        Some(self.asked_per_second.map_or(mean, |asked| mean.max(asked)))
    }
}

impl GrowingRecord {
    /// Before the first interval of a run with these steps, of which intervals are kept as the record of the
    /// run keeps them.
    pub fn new(outline: &Outline, basis: Basis, downsampler: IntervalDownsampler) -> Self {
        let steps = outline.steps.iter();
        let mut steps: Vec<_> =
            steps.map(|name| StepRecord { name: name.clone(), ..StepRecord::default() }).collect();
        outline.describe(&mut steps);
        let record = RunRecord {
            warmup: basis.warmup,
            precise: basis.precise,
            users: basis.users,
            users_pause: basis.users_pause,
            users_end: basis.users_end,
            paces_requests: basis.paces_requests,
            total: StepRecord { name: "all".to_owned(), ..StepRecord::default() },
            steps,
            metrics: outline.metrics.iter().cloned().map(MetricRecord::new).collect(),
            ..RunRecord::empty(basis.model)
        };
        Self {
            record,
            basis,
            downsampler,
            worker_statuses: Vec::new(),
            threads: Vec::new(),
            watched: Nanos::ZERO,
        }
    }

    /// Takes the next interval, and the state of the machine in it.
    pub fn add(&mut self, interval: &Interval, machine: Option<(&MachineInterval, &MachineFacts)>) {
        if let Some((seen, facts)) = machine {
            if self.record.machine.intervals.is_empty() {
                self.record.machine.facts = facts.clone();
            }
            if !interval.warmup && !interval.drain {
                self.note_threads(seen);
            }
        }
        let (intervals, parts) = (&mut self.record.intervals, &mut self.record.machine.intervals);
        self.downsampler.add(intervals, parts, interval.clone(), machine.map(|(seen, _)| seen.clone()));
        if !interval.warmup {
            self.record.steps.iter_mut().zip(&interval.steps).for_each(|(step, tally)| step.add(tally));
            self.record.total.add(&interval.total());
            MetricRecord::merge_all(&mut self.record.metrics, &interval.metrics);
        }
        // Of the warm-up there are those of workers whose load has ended in it.
        for worker_status in &interval.worker_statuses {
            worker_status.start_lags.iter().for_each(|lags| self.record.total.start_lag.add(lags));
            let number = worker_status.worker as usize;
            if self.worker_statuses.len() <= number {
                self.worker_statuses.resize_with(number + 1, WorkerStatus::default);
            }
            self.worker_statuses[number] = worker_status.without_lags();
        }
        if !interval.drain && !interval.warmup {
            self.record.duration = interval.at.since(self.record.warmup);
        }
        self.settle();
    }

    /// Sets the changes of the rate so far.
    pub fn set_changes(&mut self, changes: Vec<RateChange>) {
        self.record.rate_changes = changes;
    }

    /// The record so far with its verdict, these thresholds, and the properties of the responses that the
    /// workers have reported last: the basis of a result. `None` before there is anything to judge.
    pub fn judged(&mut self, started_unix: Nanos, thresholds: &[ThresholdResult]) -> Option<&RunRecord> {
        let verdict = self.verdict()?;
        let record = &mut self.record;
        record.verdict = verdict;
        record.thresholds = thresholds.to_vec();
        record.started_unix = started_unix;
        for step in record.steps.iter_mut().chain([&mut record.total]) {
            step.statuses.clear();
            step.error_examples.clear();
            step.slowest = Slowest::default();
        }
        record.error_examples.clear();
        record.protocols.clear();
        record.tls_versions.clear();
        record.peers.clear();
        for facts in self.worker_statuses.iter().map(|status| &*status.responses) {
            for (step, statuses) in record.steps.iter_mut().zip(&facts.statuses) {
                step.merge_statuses(statuses);
                record.total.merge_statuses(statuses);
            }
            for (step, examples) in record.steps.iter_mut().zip(&facts.error_examples) {
                step.merge_examples(examples);
                record.total.merge_examples(examples);
            }
            for (step, slowest) in record.steps.iter_mut().zip(&facts.slowest) {
                step.slowest.merge(slowest);
                record.total.slowest.merge(slowest);
            }
            for (class, text) in &facts.errors {
                record.error_examples.entry(class.clone()).or_insert_with(|| text.clone());
            }
            for (protocol, responses) in &facts.protocols {
                *record.protocols.entry(protocol.clone()).or_default() += responses;
            }
            for (version, connections) in &facts.tls_versions {
                *record.tls_versions.entry(version.clone()).or_default() += connections;
            }
            Peer::merge_all(&mut record.peers, facts.peers.iter().cloned());
        }
        Some(record)
    }

    /// The record so far, without the verdict and what [`judged`](Self::judged) adds.
    pub const fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The verdict so far; `None` before there is anything to judge: in the warm-up, and until a
    /// request has ended.
    pub fn verdict(&self) -> Option<Verdict> {
        let total = &self.record.total;
        let ended = total.ok + total.failed + total.timed_out + total.aborted();
        (ended > 0 && !self.worker_statuses.is_empty()).then(|| verdict::judge(&self.record))
    }

    /// The accounts, if this were the end.
    fn settle(&mut self) {
        let record = &mut self.record;
        record.accounting = Accounting::default();
        record.iterations = IterationRecord::default();
        record.connections = ConnectionRecord::default();
        record.workers.clear();
        (record.completed_in_window, record.pacing_budget) = (0, Nanos::ZERO);
        let mut waiting = 0;
        for worker_status in &self.worker_statuses {
            record.accounting.merge(&worker_status.accounting);
            record.iterations.merge(&worker_status.iterations);
            record.connections.merge(&worker_status.connections);
            record.completed_in_window += worker_status.completed;
            record.pacing_budget = record.pacing_budget.max(worker_status.pacing_budget);
            record.workers.push(worker_status.kept.clone());
            waiting += worker_status.waiting;
        }
        let accounts = &mut record.accounting;
        (accounts.never_started, accounts.scheduled) =
            (accounts.never_started + waiting, accounts.scheduled + waiting);
        let ended = accounts.ok + accounts.failed + accounts.timed_out + accounts.aborted;
        accounts.in_flight_at_stop = accounts.started.saturating_sub(ended);
        let over = record.iterations.completed + record.iterations.failed;
        record.iterations.unfinished = record.iterations.started.saturating_sub(over);
        let arrivals = record.arrivals();
        record.target_per_second = self.basis.target_per_second(arrivals, record.duration);
        for (worker, thread) in record.workers.iter_mut().zip(&self.threads) {
            set_use(worker, thread, self.watched);
        }
    }

    fn note_threads(&mut self, seen: &MachineInterval) {
        if self.threads.len() < seen.workers.len() {
            self.threads.resize(seen.workers.len(), ThreadUse::default());
        }
        self.threads.iter_mut().zip(&seen.workers).for_each(|(mine, theirs)| mine.join(theirs));
        self.watched += seen.length;
    }
}

/// Sets the CPU time and run delay of a worker: those of its thread while it was watched, scaled to the
/// worker's wall time.
fn set_use(worker: &mut WorkerRecord, thread: &ThreadUse, watched: Nanos) {
    let scale = |time: Nanos| match watched {
        Nanos::ZERO => Nanos::ZERO,
        _ => Nanos((time.0 as f64 / watched.0 as f64 * worker.wall.0 as f64) as u64),
    };
    let system = scale(thread.system.min(thread.cpu));
    let (user, run_delay) = (scale(thread.cpu).since(system), thread.run_delay.map(scale));
    (worker.cpu_user, worker.cpu_system, worker.run_delay) = (user, system, run_delay);
}
