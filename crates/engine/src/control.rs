//! Steering a run from outside, and reporting its progress.

mod steering;

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use plimsoll_core::{Nanos, Rate};
use plimsoll_metrics::{Interval, MachineFacts, MachineInterval, Pace, RateChange, SteeredBy};
use plimsoll_monitor::Named;
use plimsoll_plan::Plan;
use plimsoll_schedule::Profile;
use plimsoll_system::clock;

use crate::addresses::TargetAddress;
use crate::error::RunError;
use crate::names::Names;
use crate::run::WORKER_NAME;
use steering::Steering;
pub use steering::{RateCommand, Status, SteerError};

/// Name prefix of the worker threads of a run beside the actual one; the worker's number follows.
const COMPANY_NAME: &str = "company-";

/// Urgency with which a run is asked to stop before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Go on.
    No,
    /// Start nothing more, wait for the requests in flight, report.
    Drain,
    /// Report at once; requests in flight are counted as such.
    Now,
}

/// Parts of the system that the run control watches beside the load. The default is nothing, as for runs
/// whose time is virtual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Watched {
    /// Nothing: the record of the run has no [machine](plimsoll_metrics::RunRecord::machine).
    #[default]
    Nothing,
    /// This machine and this process; the target's, too, if it listens on an address of this machine, and the
    /// servers that are named here.
    Machine(Vec<Named>),
}

/// A handle that steers a run from other threads: stops it, changes its rate, pauses it. Workers look at it
/// at least every [`worker::LONGEST_WAIT`](crate::worker::LONGEST_WAIT).
///
/// A change of the rate applies from one instant of the schedule on, the same for all workers: the 200 ms
/// after the command that make sure that each of them has heard of it. A pause is a change to the rate zero;
/// its end takes up the course again as if there had been no pause. In the closed model there is no rate;
/// there users begin no iterations during a pause, from when they hear of it.
#[derive(Clone, Debug, Default)]
pub struct Control {
    stop: Arc<AtomicU8>,
    steering: Arc<Steering>,
    leftovers: Arc<Leftovers>,
    marks: Arc<Mutex<Vec<Nanos>>>,
    watched: Watched,
    is_company: bool,
    detailed: bool,
    exemplars: bool,
    script_error: Arc<OnceLock<String>>,
    start: Arc<AwaitedStart>,
    /// When this process joins, in nanoseconds since the start.
    joins_at: Arc<AtomicU64>,
    fence: Arc<Fence>,
    names: Arc<Names>,
}

/// The start of a run that waits until its instant is set.
#[derive(Debug, Default)]
struct AwaitedStart {
    is_awaited: AtomicBool,
    /// In Unix time.
    at: OnceLock<Nanos>,
}

/// The instant from which on nothing may be sent, in nanoseconds of the driver's clock; never at first.
#[derive(Debug)]
struct Fence(AtomicU64);

impl Default for Fence {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

/// Time between two looks for the instant of the start.
const START_LOOK: Nanos = Nanos::from_millis(10);

/// Values that a run leaves behind: those of its scripts, whose type is known to the source of the scripts,
/// and the rows of the pool that its plan [leaves](Plan::leaves).
#[derive(Default)]
struct Leftovers(Mutex<Vec<Box<dyn Any + Send>>>);

impl std::fmt::Debug for Leftovers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Leftovers")
    }
}

impl Control {
    /// Sets what is watched beside the load.
    #[must_use]
    pub fn watching(self, watched: Watched) -> Self {
        Self { watched, ..self }
    }

    /// A handle for a run beside the actual one. Its workers do not count as those of the load in the figures
    /// of the machine.
    pub(crate) fn for_company() -> Self {
        Self { is_company: true, ..Self::default() }
    }

    /// Returns the name prefix of its workers' threads; the worker's number follows.
    pub(crate) fn thread_name(&self) -> &'static str {
        if self.is_company { COMPANY_NAME } else { WORKER_NAME }
    }

    /// Returns the same handle for a run whose intervals report the [status](plimsoll_metrics::WorkerStatus)
    /// of every worker, which a verdict needs while the run goes on. It costs each worker about a quarter
    /// more per snapshot.
    #[must_use]
    pub fn in_detail(self) -> Self {
        Self { detailed: true, ..self }
    }

    /// Returns the same handle for a run whose intervals have [exemplars](plimsoll_metrics::Exemplars): every
    /// response of a traced step is compared with those of its bucket then.
    #[must_use]
    pub fn with_exemplars(self) -> Self {
        Self { exemplars: true, ..self }
    }

    pub(crate) const fn wants_exemplars(&self) -> bool {
        self.exemplars
    }

    pub(crate) fn is_detailed(&self) -> bool {
        self.detailed
    }

    pub(crate) const fn watched(&self) -> &Watched {
        &self.watched
    }

    /// The first error of a script, once there is one; in the words of the script.
    pub fn script_error(&self) -> Option<&str> {
        self.script_error.get().map(String::as_str)
    }

    /// A call of a script has failed.
    pub(crate) fn note_script_error(&self, reason: &str) {
        if self.script_error.get().is_none() {
            // Another worker may have been faster.
            let _ = self.script_error.set(reason.to_owned());
        }
    }

    /// Asks to stop. A later, weaker command does not take back a stronger one.
    pub fn stop(&self, stop: Stop) {
        self.stop.fetch_max(stop as u8, Ordering::Relaxed);
    }

    /// Asks to stop and to wait for requests in flight; the record names the source.
    pub fn stop_by(&self, by: SteeredBy) {
        self.steering.note_stop(by);
        self.stop(Stop::Drain);
    }

    /// Returns the strongest stop requested so far.
    pub fn requested_stop(&self) -> Stop {
        match self.stop.load(Ordering::Relaxed) {
            0 => Stop::No,
            1 => Stop::Drain,
            _ => Stop::Now,
        }
    }

    /// Changes the rate, pauses or resumes. Returns the change and its instant; `None` if that is so already.
    ///
    /// # Errors
    /// The reason why it is not possible; then nothing has changed.
    pub fn set_rate(&self, command: RateCommand, by: SteeredBy) -> Result<Option<RateChange>, SteerError> {
        self.set_rate_at(command, by, clock::monotonic)
    }

    /// Changes the rate as [`set_rate`](Self::set_rate) does, with the time of the driver's clock, which is
    /// not the system's in simulated runs.
    ///
    /// # Errors
    /// As [`set_rate`](Self::set_rate).
    pub fn set_rate_at(
        &self,
        command: RateCommand,
        by: SteeredBy,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Option<RateChange>, SteerError> {
        self.steering.change(command, by, None, now)
    }

    /// Sets the highest rate that [`set_rate`](Self::set_rate) takes; without it, that is ten times the
    /// highest of the plan. Call it before the run begins.
    pub fn limit_rate(&self, most: Rate) {
        self.steering.limit(most);
    }

    /// The rate that is asked for now, and whether the run is paused.
    pub fn status(&self) -> Status {
        self.steering.status(clock::monotonic())
    }

    /// When the run has begun, on the driver's clock; `None` before.
    pub fn started(&self) -> Option<Nanos> {
        self.steering.started()
    }

    /// Sets the start of a run that [waits for it](plimsoll_plan::StartTime::OnCommand), in Unix time of
    /// this machine. Returns `false` if the run does not wait, or its start is already set.
    pub fn start_at(&self, at: Nanos) -> bool {
        self.awaits_start() && self.start.at.set(at).is_ok()
    }

    /// Lets this process join the load at an instant since the start: it leaves the arrivals of its shard
    /// that are due before to another one. The start itself may be over then. For the open model; call it
    /// before the run begins.
    pub fn join_at(&self, from: Nanos) {
        self.joins_at.store(from.0, Ordering::Release);
    }

    /// The instant since the start from which on this process takes part; zero if it is there from the start.
    pub fn joins_at(&self) -> Nanos {
        Nanos(self.joins_at.load(Ordering::Acquire))
    }

    /// Sends nothing from an instant of the driver's clock on, until a later one is set. The instant is the
    /// end of a lease: another process may carry on the shard afterwards. If the run ends meanwhile,
    /// arrivals that were due later are in no account.
    pub fn fence(&self, at: Nanos) {
        self.fence.0.store(at.0, Ordering::Relaxed);
    }

    /// The instant from which on nothing may be sent.
    #[inline]
    pub(crate) fn fenced_from(&self) -> Nanos {
        Nanos(self.fence.0.load(Ordering::Relaxed))
    }

    /// Returns `true` once everything is ready, and the run waits for its start to be set.
    pub fn awaits_start(&self) -> bool {
        self.start.is_awaited.load(Ordering::Acquire)
    }

    /// Waits until the start of the run is set.
    pub(crate) fn wait_for_start(&self) -> Result<Nanos, RunError> {
        self.start.is_awaited.store(true, Ordering::Release);
        loop {
            if self.requested_stop() != Stop::No {
                return Err(RunError::Stopped);
            }
            if let Some(at) = self.start.at.get() {
                self.start.is_awaited.store(false, Ordering::Release);
                return Ok(*at);
            }
            clock::sleep_until(clock::monotonic() + START_LOOK);
        }
    }

    /// Sets the time from a command to when it applies, where more than this process has to hear of it. Call
    /// it before the run begins.
    pub fn notice(&self, notice: Nanos) {
        self.steering.set_notice(notice);
    }

    /// Changes the rate, pauses or resumes at an instant since the start. In the closed model, which has no
    /// schedule, that is at once. A run that waits for its start may be changed at any instant.
    ///
    /// # Errors
    /// As [`set_rate`](Self::set_rate), and if the instant is too near.
    pub fn set_rate_from(
        &self,
        command: RateCommand,
        by: SteeredBy,
        from: Nanos,
    ) -> Result<Option<RateChange>, SteerError> {
        self.steering.change(command, by, Some(from), clock::monotonic)
    }

    /// Returns the commands of the changes made so far, each with the instant from which on it applies.
    pub fn commands(&self) -> Vec<(Nanos, RateCommand)> {
        self.steering.commands()
    }

    /// Returns the changes made so far.
    pub fn changes(&self) -> Vec<RateChange> {
        self.steering.changes()
    }

    /// Marks the interval of an instant since the start: something was done then to the system under test. If
    /// that interval was reported already, the next one is marked.
    pub fn mark(&self, at: Nanos) {
        if let Ok(mut marks) = self.marks.lock() {
            marks.push(at);
        }
    }

    /// Takes the marks up to the end of an interval. Returns `true` if there were any.
    pub(crate) fn take_marks(&self, end: Nanos) -> bool {
        let Ok(mut marks) = self.marks.lock() else { return false };
        let before = marks.len();
        marks.retain(|mark| *mark > end);
        marks.len() < before
    }

    /// Takes the values that the workers left behind, once the run is over.
    pub fn leftovers(&self) -> Vec<Box<dyn Any + Send>> {
        self.leftovers.0.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default()
    }

    /// Keeps the leftovers of a worker.
    pub(crate) fn leave(&self, leftover: Box<dyn Any + Send>) {
        // A thread that panicked with the lock has ended the run.
        if let Ok(mut all) = self.leftovers.0.lock() {
            all.push(leftover);
        }
    }

    /// Closed model: returns `true` while users must not begin iterations.
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.steering.holds_users()
    }

    /// Another handle for a run before the actual one: stopped with it, but not steered otherwise.
    pub(crate) fn for_preflight(&self) -> Self {
        Self { stop: self.stop.clone(), ..Self::default() }
    }

    /// Another handle for a run beside the actual one: stopped with this one, but not steered otherwise.
    pub(crate) fn for_refresh(&self) -> Self {
        Self { is_company: true, ..self.for_preflight() }
    }

    /// The run of `plan` is about to begin: changes of its rate may be made from here on at instants since
    /// its start, even at those that are over by the time at which this process [joins](Self::join_at).
    pub fn expect(&self, plan: &Plan) {
        self.steering.expect(plan);
    }

    /// The run of `plan` begins at `start` on the driver's clock: from here on it can be steered.
    pub fn begin(&self, plan: &Plan, start: Nanos) {
        self.steering.begin(plan, start);
    }

    /// Notes that the load has ended at `end` since the start. Returns the changes that applied before that,
    /// and the source of the stop.
    pub(crate) fn finish(&self, end: Nanos) -> (Vec<RateChange>, Option<SteeredBy>) {
        self.steering.finish(end)
    }

    /// The addresses of the targets as they change.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Has new connections to a target of the plan go to these addresses, which are not empty, from an
    /// instant of the driver's clock on. The thread that resolves names again does so, and simulated runs.
    pub fn set_addresses(&self, target: usize, authority: &str, latest: &[TargetAddress], at: Nanos) {
        self.names.note(target, authority, Ok(latest), at);
    }

    /// Returns the number of changes so far, without taking a lock.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.steering.version()
    }

    /// The profile with all changes; `None` in the closed model.
    pub fn profile(&self) -> Option<Profile> {
        self.steering.profile()
    }

    /// The mean rate that the plan asks for in the measured part of a load that began at `start` on the
    /// driver's clock and ended at `end` since then, by its profile with all changes, in arrivals per second:
    /// for what this process has of it. Chance has no part in it, and neither has data that ended. `None` in
    /// the closed model, without a measured part, and for a plan that counts iterations, whose arrivals end
    /// with these.
    pub fn asked_per_second(&self, plan: &Plan, start: Nanos, end: Nanos) -> Option<f64> {
        let profile = self.profile().filter(|_| plan.planned().is_some() && end > plan.warmup)?;
        // Before a scenario joins nothing is due, and what is before or after this process is another's.
        let from = plan.warmup.max(plan.first_joining()).max(self.joins_at());
        let to = end.min(self.fenced_from().since(start));
        let share = to.since(from).as_secs_f64() / end.since(plan.warmup).as_secs_f64();
        Some(profile.mean_rate(from, to) * share * plan.share())
    }

    /// The rate in force at an instant since the start, in arrivals per second; `None` in the closed model.
    pub fn target_at(&self, at: Nanos) -> Option<f64> {
        self.steering.target_at(at)
    }
}

/// Progress of a run, reported about once per second.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Time since the start, warm-up included.
    pub elapsed: Nanos,
    /// The start of the run in Unix time.
    pub started_unix: Nanos,
    /// When the load ends, since the start, if that is known.
    pub end: Option<Nanos>,
    /// Arrivals per second that are asked for now, for the whole run; `None` in the closed model.
    pub target_per_second: Option<f64>,
    /// The rate of that second beside the one that was asked for in it.
    pub pace: Pace,
    /// `true` while the run is paused.
    pub paused: bool,
    /// The second that just ended, all workers merged.
    pub interval: &'a Interval,
    /// Activity of the machine since the last look at it; `None` if it is not watched, or was examined a
    /// moment ago.
    pub machine: Option<&'a MachineInterval>,
    /// Facts about the machine that do not change during the run.
    pub facts: &'a MachineFacts,
}
