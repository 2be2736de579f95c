//! The result of a run so far, for requests while the run goes on.
//!
//! The run control hands over its intervals and never waits; a background thread adds them up.
//! The result itself is made on request, by the thread that asks.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use plimsoll_core::Nanos;
use plimsoll_engine::{Control, Progress};
use plimsoll_metrics::{Interval, MachineFacts, MachineInterval};
use plimsoll_plan::Plan;
use plimsoll_report::agent::AgentResult;
use plimsoll_report::fault::effects_so_far;
use plimsoll_report::result::Note;
use plimsoll_report::{RunContext, RunResult};
use plimsoll_system::thread::enter_background;

use super::fault_log::FaultLog;
use super::standing::Standing;

/// Intervals that may wait to be added. A thread that is so late has no processor; more would be memory
/// without end.
const WAITING: usize = 64;

/// The result of a run so far, shared between threads. There is none before the run begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrowingResult(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Option<State>>,
    /// Intervals that found no room.
    lost: AtomicU64,
    faults: FaultLog,
}

#[derive(Debug)]
struct State {
    standing: Standing,
    context: RunContext,
    started_unix: Nanos,
    /// The agents of a fleet, with their figures so far.
    agents: Vec<AgentResult>,
}

/// An interval on its way.
struct Update {
    started_unix: Nanos,
    interval: Interval,
    machine: Option<(MachineInterval, MachineFacts)>,
}

impl GrowingResult {
    /// None yet, of a run with these faults.
    pub(crate) fn with_faults(faults: FaultLog) -> Self {
        Self(Arc::new(Shared { faults, ..Shared::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to add up the intervals of a run.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn begin(&self, plan: &Plan, context: &RunContext) -> io::Result<IntervalFeed> {
        let (outline, length) = (plan.outline(), plan.interval);
        let standing = Standing::new(&outline, plan.basis(), plan.downsampler(), &plan.thresholds, length);
        let context = context.clone();
        *self.lock() = Some(State { standing, context, started_unix: Nanos::ZERO, agents: Vec::new() });
        let (send, receive) = sync_channel(WAITING);
        let this = self.clone();
        let thread =
            thread::Builder::new().name("result".to_owned()).spawn(move || this.collect(&receive))?;
        Ok(IntervalFeed { of: self.clone(), send: Some(send), thread: Some(thread) })
    }

    fn collect(&self, receive: &Receiver<Update>) {
        // If the system refuses, workers pay a little more.
        let _ = enter_background();
        for mut update in receive {
            let Some(state) = &mut *self.lock() else { return };
            state.started_unix = update.started_unix;
            let machine = update.machine.as_ref().map(|(seen, facts)| (seen, facts));
            state.standing.add(&mut update.interval, machine);
        }
    }

    /// Sets the agents of a fleet.
    pub(crate) fn set_agents(&self, agents: Vec<AgentResult>) {
        if let Some(state) = &mut *self.lock() {
            state.agents = agents;
        }
    }

    /// The agents of a fleet, with their figures so far.
    pub(crate) fn agents(&self) -> Vec<AgentResult> {
        self.lock().as_ref().map(|state| state.agents.clone()).unwrap_or_default()
    }

    /// Id of the run; `None` before it begins.
    pub(crate) fn run_id(&self) -> Option<String> {
        self.lock().as_ref().map(|state| state.context.run_id.clone())
    }

    /// The result as if the run ended with the last interval, without the intervals that ended by `after`,
    /// and the number of those that it has with them. `None` before there is anything to judge.
    pub(crate) fn result(&self, control: &Control, after: Nanos) -> Option<(RunResult, usize)> {
        let mut state = self.lock();
        let state = state.as_mut()?;
        state.standing.set_changes(control.changes());
        let record = state.standing.judged(state.started_unix)?;
        let intervals = record.intervals.len();
        let faults = self.0.faults.get();
        // The effect of a fault is that on all intervals since it began.
        let from = if faults.is_empty() { after } else { Nanos::ZERO };
        let known = record.intervals.iter().filter(|interval| interval.at > from && interval.at <= after);
        let known = known.count();
        let mut result = RunResult::so_far(record, state.context.clone(), from);
        if !faults.is_empty() {
            result.faults = effects_so_far(&result, faults);
            result.intervals.drain(..known);
        }
        result.agents.clone_from(&state.agents);
        let lost = self.0.lost.load(Ordering::Relaxed);
        if lost > 0 {
            let text = format!("{lost} intervals are missing in this result; the one at the end has them");
            result.notes.push(Note { code: "intervals_missing".to_owned(), text });
        }
        Some((result, intervals))
    }
}

/// Hands intervals over, as long as the run lives.
#[derive(Debug)]
pub(crate) struct IntervalFeed {
    of: GrowingResult,
    send: Option<SyncSender<Update>>,
    thread: Option<JoinHandle<()>>,
}

impl IntervalFeed {
    /// Hands over the latest interval.
    pub(crate) fn note(&self, progress: &Progress<'_>) {
        let update = Update {
            started_unix: progress.started_unix,
            interval: progress.interval.clone(),
            machine: progress.machine.map(|seen| (seen.clone(), progress.facts.clone())),
        };
        if self.send.as_ref().is_some_and(|send| send.try_send(update).is_err()) {
            self.of.0.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for IntervalFeed {
    fn drop(&mut self) {
        self.send = None;
        if let Some(thread) = self.thread.take() {
            // The thread has reported its own panic.
            let _ = thread.join();
        }
    }
}
