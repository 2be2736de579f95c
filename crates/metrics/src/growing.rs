//! The record of a run while it goes on.

use plimsoll_core::Nanos;

use crate::record::RunRecord;
use crate::{
    Accounting, ConnectionRecord, Interval, IterationRecord, LogRecord, MachineFacts, MachineInterval,
    MachineRecord, Model, Outline, RateChange, Standing, StepRecord, Tally, ThreadUse, Verdict, WorkerRecord,
    verdict,
};

/// The record of a run that is under way, as if it ended with the last interval: what a verdict as it stands
/// is made from, by the same rules as the one at the end.
///
/// Give it every interval in its order, while it has its steps and standings ([`add`](Self::add)). It lacks
/// what only the end tells: single statuses, first-byte times, what the servers are, phases, thresholds.
/// Where arrivals wait to be started their number is taken from the rate and the time that the oldest has
/// waited.
#[derive(Clone, Debug)]
pub struct GrowingRecord {
    record: RunRecord,
    standings: Vec<Standing>,
    threads: Vec<ThreadUse>,
    watched: Nanos,
    /// Asked for at the end of the last interval under load.
    target: Option<f64>,
}

/// What is known of a run before it begins.
#[derive(Clone, Copy, Debug)]
pub struct Basis {
    /// Open or closed.
    pub model: Model,
    /// Length of the warm-up.
    pub warmup: Nanos,
    /// Whether the plan asks for the smallest start lag.
    pub precise: bool,
}

impl GrowingRecord {
    /// Before the first interval of a run with these steps.
    pub fn new(outline: &Outline, basis: Basis) -> Self {
        let mut steps: Vec<StepRecord> = outline
            .steps
            .iter()
            .map(|name| StepRecord { name: name.clone(), ..StepRecord::default() })
            .collect();
        for scenario in outline.scenarios.iter().filter(|scenario| scenario.steps.len() > 1) {
            for step in scenario.steps.clone() {
                if let Some(step) = steps.get_mut(step as usize) {
                    step.scenario.clone_from(&scenario.name);
                }
            }
        }
        let total = StepRecord { name: "all".to_owned(), ..StepRecord::default() };
        Self {
            record: empty(basis, steps, total),
            standings: Vec::new(),
            threads: Vec::new(),
            watched: Nanos::ZERO,
            target: None,
        }
    }

    /// Takes the next interval, and what the machine did meanwhile. `target` is the rate that is asked for at
    /// its end.
    pub fn add(
        &mut self,
        interval: &Interval,
        machine: Option<(&MachineInterval, &MachineFacts)>,
        target: Option<f64>,
    ) {
        if let Some((seen, facts)) = machine {
            if self.record.machine.intervals.is_empty() {
                self.record.machine.facts = facts.clone();
            }
            self.record.machine.push(seen.clone());
            if !interval.warmup && !interval.drain {
                self.note_threads(seen);
            }
        }
        self.record.intervals.push(Interval { steps: Vec::new(), standings: Vec::new(), ..interval.clone() });
        if interval.warmup {
            return;
        }
        let mut all = Tally::default();
        for (step, tally) in self.record.steps.iter_mut().zip(&interval.steps) {
            step.add(tally);
            all.merge(tally);
        }
        self.record.total.add(&all);
        for standing in &interval.standings {
            standing.start_lags.iter().for_each(|lags| self.record.total.start_lag.add(lags));
            let number = standing.worker as usize;
            if self.standings.len() <= number {
                self.standings.resize_with(number + 1, Standing::default);
            }
            self.standings[number] = Standing { start_lags: Vec::new(), ..standing.clone() };
        }
        if !interval.drain {
            self.record.duration = interval.at.since(self.record.warmup);
            // At the very end of the course the rate is zero.
            self.target = target.filter(|rate| *rate > 0.0).or(self.target);
        }
        self.settle();
    }

    /// States what was changed about the rate so far.
    pub fn set_changes(&mut self, changes: Vec<RateChange>) {
        self.record.rate_changes = changes;
    }

    /// The record so far.
    pub const fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The verdict as it stands; `None` before there is anything to judge: in the warm-up, and until a
    /// request has ended.
    pub fn verdict(&self) -> Option<Verdict> {
        let ended = self.record.total.ok + self.record.total.failed + self.record.total.timed_out;
        (ended > 0 && !self.standings.is_empty()).then(|| verdict::judge(&self.record))
    }

    /// The accounts, if this were the end.
    fn settle(&mut self) {
        let record = &mut self.record;
        record.accounting = Accounting::default();
        record.iterations = IterationRecord::default();
        record.connections = ConnectionRecord::default();
        record.workers.clear();
        (record.completed_in_window, record.pacing_budget) = (0, Nanos::ZERO);
        let mut behind = Nanos::ZERO;
        for standing in &self.standings {
            record.accounting.merge(&standing.accounting);
            record.iterations.merge(&standing.iterations);
            record.connections.merge(&standing.connections);
            record.completed_in_window += standing.completed;
            record.pacing_budget = record.pacing_budget.max(standing.pacing_budget);
            record.workers.push(standing.kept.clone());
            behind += standing.behind;
        }
        let workers = self.standings.len().max(1) as f64;
        let waiting = (self.target.unwrap_or(0.0) * behind.as_secs_f64() / workers) as u64;
        let accounts = &mut record.accounting;
        (accounts.never_started, accounts.scheduled) =
            (accounts.never_started + waiting, accounts.scheduled + waiting);
        let ended = accounts.ok + accounts.failed + accounts.timed_out;
        accounts.in_flight_at_stop = accounts.started.saturating_sub(ended);
        let over = record.iterations.completed + record.iterations.failed;
        record.iterations.unfinished = record.iterations.started.saturating_sub(over);
        let seconds = record.duration.as_secs_f64();
        let arrivals = record.accounting.arrivals(&record.iterations) as f64;
        record.target_per_second = (record.model == Model::Open && seconds > 0.0).then(|| arrivals / seconds);
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

/// What a thread used in the time for which it was watched, as a worker's use of its wall time.
fn set_use(worker: &mut WorkerRecord, thread: &ThreadUse, watched: Nanos) {
    let scale = |time: Nanos| match watched {
        Nanos::ZERO => Nanos::ZERO,
        _ => Nanos((time.0 as f64 / watched.0 as f64 * worker.wall.0 as f64) as u64),
    };
    let system = scale(thread.system.min(thread.cpu));
    let (user, run_delay) = (scale(thread.cpu).since(system), thread.run_delay.map(scale));
    (worker.cpu_user, worker.cpu_system, worker.run_delay) = (user, system, run_delay);
}

/// The record of a run in which nothing has happened.
fn empty(basis: Basis, steps: Vec<StepRecord>, total: StepRecord) -> RunRecord {
    RunRecord {
        model: basis.model,
        duration: Nanos::ZERO,
        warmup: basis.warmup,
        drain: Nanos::ZERO,
        started_unix: Nanos::ZERO,
        started_monotonic: Nanos::ZERO,
        completed_in_window: 0,
        target_per_second: None,
        rate_changes: Vec::new(),
        stopped_by: None,
        accounting: Accounting::default(),
        iterations: IterationRecord::default(),
        total,
        steps,
        connections: ConnectionRecord::default(),
        peers: Vec::new(),
        error_examples: std::collections::BTreeMap::new(),
        protocols: std::collections::BTreeMap::new(),
        tls_versions: std::collections::BTreeMap::new(),
        intervals: Vec::new(),
        slices: Vec::new(),
        timeline: crate::Timeline::default(),
        phases: Vec::new(),
        workers: Vec::new(),
        machine: MachineRecord::default(),
        backend: "",
        rss_peak_bytes: None,
        pacing_budget: Nanos::ZERO,
        precise: basis.precise,
        interrupted: None,
        verdict: Verdict::default(),
        thresholds: Vec::new(),
        log: LogRecord::default(),
    }
}
