//! Changes of a run's rate: those made so far, and the conditions for further ones.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_core::{Nanos, Rate};
use plimsoll_metrics::{RateChange, SteeredBy, Steering as What};
use plimsoll_plan::{Load, Plan};
use plimsoll_schedule::{Profile, ProfileError};

use crate::worker::LONGEST_WAIT;

/// Highest rate that may be set, as a multiple of the highest planned rate, unless another limit was given.
const MOST_TIMES_PEAK: f64 = 10.0;

/// From a command to when it applies. A worker takes no arrival that is due after the time at which it last
/// looked at the control, so any time beyond the present would do; twice the longest wait also lets each of
/// them hear of the change before the first arrival of a faster rate is due.
const NOTICE: Nanos = Nanos(2 * LONGEST_WAIT.0);

/// A command that changes the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateCommand {
    /// Another constant rate, in iterations for the whole run, until the end; zero pauses. It ends a pause.
    To(Rate),
    /// Start nothing until [`Resume`](Self::Resume).
    Pause,
    /// Go on with the rate, or the stages, that would be in force without the pause.
    Resume,
}

/// The position of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// `true` if the run has begun and not ended, and so can be steered.
    pub running: bool,
    /// Arrivals per second that are asked for now, or were for a change that is about to apply; without a
    /// pause that is in force. `None` in the closed model, and before the run.
    pub target_per_second: Option<f64>,
    /// `true` if it is paused, or about to be.
    pub paused: bool,
}

/// Reason why the rate cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteerError {
    /// The run has not begun.
    NotYet,
    /// The run is over, or will be before the change could apply.
    Over,
    /// The closed model has no rate.
    Closed,
    /// An open run of a number of iterations: its length follows from the rate that it was planned with.
    Counted,
    /// The instant of a change is so near that not every worker would hear of it before.
    TooLate,
    /// The rate is above the highest that may be set, in iterations per second.
    AboveMost(u64),
    /// The numbers do not fit with those before.
    Profile(ProfileError),
}

impl fmt::Display for SteerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotYet => f.write_str("the run has not begun yet: try again in a moment"),
            Self::Over => f.write_str("the run ends before a change could apply"),
            Self::Closed => f.write_str(
                "the closed model has no rate that could be set, it can only be paused and resumed: \
                 start the run with --rate for a rate",
            ),
            Self::Counted => f.write_str(
                "a run of a number of iterations keeps its rate, for its length was computed from it: \
                 start it with --duration instead of --iterations",
            ),
            Self::TooLate => f.write_str("the instant of the change is over, or too near: take a later one"),
            Self::AboveMost(most) => write!(
                f,
                "at most {most}/s can be set while this run goes on, so that a slip does no harm: start it with \
                 --max-rate for more"
            ),
            Self::Profile(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SteerError {}

/// The changes, which many threads make and every worker reads. Workers compare the version once per pass and
/// take the lock only when it has changed.
#[derive(Debug, Default)]
pub(super) struct Steering {
    /// Counts the changes; written under the lock.
    version: AtomicU64,
    /// Closed model: users are to wait.
    holds: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    course: Option<ActiveRun>,
    /// The highest rate that may be set, where one was given.
    most: Option<Rate>,
    /// From a command to when it applies, where that is longer than [`NOTICE`].
    notice: Option<Nanos>,
    over: bool,
    stopped_by: Option<SteeredBy>,
}

#[derive(Debug)]
struct ActiveRun {
    /// On the driver's clock; `None` while the run waits for it.
    start: Option<Nanos>,
    /// Open model: the schedule.
    open: Option<Open>,
    paused: bool,
    changes: Vec<RateChange>,
    commands: Vec<(Nanos, RateCommand)>,
}

#[derive(Debug)]
struct Open {
    /// Without the pauses since the last change: the profile after a pause.
    base: Profile,
    /// With everything.
    present: Profile,
    counted: bool,
    /// The highest rate that may be set, in iterations per second, rounded up.
    most: u64,
}

impl Steering {
    fn state(&self) -> MutexGuard<'_, State> {
        // Writers replace the state as a whole, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn limit(&self, most: Rate) {
        self.state().most = Some(most);
    }

    /// The run begins at `start`, with the changes that were made while it waited.
    pub(super) fn begin(&self, plan: &Plan, start: Nanos) {
        if let Some(course) = &mut self.state().course
            && course.start.is_none()
        {
            course.start = Some(start);
            return;
        }
        self.take_up(plan, Some(start));
    }

    /// The run is about to begin. Until then changes may be made at instants since its start.
    pub(super) fn expect(&self, plan: &Plan) {
        self.take_up(plan, None);
    }

    fn take_up(&self, plan: &Plan, start: Option<Nanos>) {
        let mut state = self.state();
        let most = state.most.map(Rate::per_second_f64);
        let open = match &plan.load {
            Load::Closed => None,
            Load::Open { profile, .. } => Some(Open {
                base: profile.clone(),
                present: profile.clone(),
                counted: plan.end.iterations.is_some(),
                most: most.unwrap_or_else(|| MOST_TIMES_PEAK * profile.peak()).ceil() as u64,
            }),
        };
        state.course =
            Some(ActiveRun { start, open, paused: false, changes: Vec::new(), commands: Vec::new() });
    }

    pub(super) fn started(&self) -> Option<Nanos> {
        self.state().course.as_ref()?.start
    }

    pub(super) fn finish(&self, end: Nanos) -> (Vec<RateChange>, Option<SteeredBy>) {
        let mut state = self.state();
        state.over = true;
        let mut changes = state.course.as_ref().map(|course| course.changes.clone()).unwrap_or_default();
        // Drops changes that were announced but had not taken effect by the end.
        changes.retain(|change| change.at < end);
        (changes, state.stopped_by)
    }

    pub(super) fn changes(&self) -> Vec<RateChange> {
        self.state().course.as_ref().map(|course| course.changes.clone()).unwrap_or_default()
    }

    pub(super) fn commands(&self) -> Vec<(Nanos, RateCommand)> {
        self.state().course.as_ref().map(|course| course.commands.clone()).unwrap_or_default()
    }

    pub(super) fn set_notice(&self, notice: Nanos) {
        self.state().notice = Some(notice.max(NOTICE));
    }

    pub(super) fn note_stop(&self, by: SteeredBy) {
        self.state().stopped_by.get_or_insert(by);
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn holds_users(&self) -> bool {
        self.holds.load(Ordering::Relaxed)
    }

    pub(super) fn profile(&self) -> Option<Profile> {
        let state = self.state();
        state.course.as_ref()?.open.as_ref().map(|open| open.present.clone())
    }

    pub(super) fn target_at(&self, at: Nanos) -> Option<f64> {
        let state = self.state();
        state.course.as_ref()?.open.as_ref().map(|open| open.present.rate_at(at))
    }

    /// At an instant of the driver's clock.
    pub(super) fn status(&self, now: Nanos) -> Status {
        let state = self.state();
        let begun = state.course.as_ref().and_then(|course| Some((course, course.start?)));
        let Some((course, start)) = begun else {
            return Status { running: false, target_per_second: None, paused: false };
        };
        let last = course.changes.last().map_or(Nanos::ZERO, |change| change.at);
        let at = last.max(now.since(start));
        let target_per_second = course.open.as_ref().map(|open| open.base.rate_at(at));
        Status { running: !state.over, target_per_second, paused: course.paused }
    }

    pub(super) fn change(
        &self,
        command: RateCommand,
        by: SteeredBy,
        from: Option<Nanos>,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Option<RateChange>, SteerError> {
        let mut state = self.state();
        if state.over {
            return Err(SteerError::Over);
        }
        let notice = state.notice.unwrap_or(NOTICE);
        let course = state.course.as_mut().ok_or(SteerError::NotYet)?;
        // Under the lock, so that changes have the order of their times.
        let now = match (course.start, from) {
            (Some(start), _) => Some(now().since(start)),
            // All of the schedule is still to come.
            (None, Some(_)) => None,
            (None, None) => return Err(SteerError::NotYet),
        };
        let command = match command {
            RateCommand::To(rate) if rate.is_zero() => RateCommand::Pause,
            other => other,
        };
        let change = match &mut course.open {
            Some(open) => {
                let at = from.unwrap_or(now.unwrap_or_default() + notice);
                if now.is_some_and(|now| at < now + NOTICE) {
                    return Err(SteerError::TooLate);
                }
                open.change(command, course.paused, at)?
            }
            None => match (command, course.paused) {
                (RateCommand::To(_), _) => return Err(SteerError::Closed),
                (RateCommand::Pause, true) | (RateCommand::Resume, false) => None,
                _ => Some((now.unwrap_or_default(), None, None)),
            },
        };
        let Some((at, from_per_second, to_per_second)) = change else { return Ok(None) };
        let what = match command {
            RateCommand::To(_) => What::Rate,
            RateCommand::Pause => What::Pause,
            RateCommand::Resume => What::Resume,
        };
        course.paused = what == What::Pause;
        let change = RateChange { at, what, from_per_second, to_per_second, by };
        course.changes.push(change);
        course.commands.push((at, command));
        self.holds.store(course.paused && course.open.is_none(), Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
        Ok(Some(change))
    }
}

/// A change that was made: from when on it applies, and the rates before and after it, where there are any.
type AppliedChange = (Nanos, Option<f64>, Option<f64>);

impl Open {
    /// Makes a change that applies from `at` on; `None` if there is nothing to change.
    fn change(
        &mut self,
        command: RateCommand,
        paused: bool,
        at: Nanos,
    ) -> Result<Option<AppliedChange>, SteerError> {
        let end = self.present.duration();
        if at >= end {
            return Err(SteerError::Over);
        }
        if self.counted {
            return Err(SteerError::Counted);
        }
        let (base, present) = match command {
            RateCommand::To(rate) if rate.per_second_f64() > self.most as f64 => {
                return Err(SteerError::AboveMost(self.most));
            }
            RateCommand::To(rate) => {
                let base = Profile::constant(rate, end);
                if base == self.base && !paused {
                    return Ok(None);
                }
                let present = self.present.spliced(at, &base);
                (Some(base), present)
            }
            RateCommand::Pause if paused => return Ok(None),
            RateCommand::Pause => (None, self.present.changed(at, Rate::per_second(0))),
            RateCommand::Resume if !paused => return Ok(None),
            RateCommand::Resume => (None, self.present.spliced(at, &self.base)),
        };
        let present = present.map_err(SteerError::Profile)?;
        // The rate before is the wanted one, even if it has not come into force.
        let from = self.present.rate_at(at);
        let to = present.rate_at(at);
        self.present = present;
        if let Some(base) = base {
            self.base = base;
        }
        Ok(Some((at, Some(from), Some(to))))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_document::RawValue;
    use plimsoll_plan::{Disk, PlanPatch};

    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn steered(flags: &[(&'static str, &str)]) -> Steering {
        let mut patch =
            PlanPatch { urls: vec![RawValue::new("URL", "http://a.test/")], ..PlanPatch::default() };
        for &(flag, value) in flags {
            let given = Some(RawValue::new(flag, value));
            match flag {
                "--rate" => patch.rate = given,
                "--stages" => patch.stages = given,
                "-d" => patch.duration = given,
                "-n" => patch.iterations = given,
                other => panic!("{other}"),
            }
        }
        let plan = Plan::resolve(patch, &Disk).unwrap_or_else(|problems| panic!("{problems:?}"));
        let steering = Steering::default();
        assert_eq!(
            steering.change(RateCommand::Pause, SteeredBy::Key, None, || SECOND),
            Err(SteerError::NotYet)
        );
        steering.begin(&plan, SECOND * 1000);
        steering
    }

    /// Makes a command that applies this many milliseconds after the start.
    fn command(steering: &Steering, command: RateCommand, ms: u64) -> Result<Option<RateChange>, SteerError> {
        steering.change(command, SteeredBy::Http, None, || SECOND * 1000 + Nanos::from_millis(ms))
    }

    #[test]
    fn a_change_applies_after_its_notice_and_says_from_what_to_what() {
        let steering = steered(&[("--rate", "100"), ("-d", "10s")]);
        assert_eq!((steering.version(), steering.target_at(SECOND)), (0, Some(100.0)));
        let change = command(&steering, RateCommand::To(Rate::per_second(500)), 1000).unwrap().unwrap();
        assert_eq!(change.at, Nanos::from_millis(1200));
        assert_eq!((change.from_per_second, change.to_per_second), (Some(100.0), Some(500.0)));
        assert_eq!((change.what, change.by), (What::Rate, SteeredBy::Http));
        assert_eq!((steering.version(), steering.target_at(SECOND * 2)), (1, Some(500.0)));
        // Setting the same rate again is not a change.
        assert_eq!(command(&steering, RateCommand::To(Rate::per_second(500)), 2000), Ok(None));
        assert_eq!(steering.version(), 1);
        assert_eq!(steering.finish(SECOND * 10), (vec![change], None));
        assert_eq!(command(&steering, RateCommand::Pause, 2000), Err(SteerError::Over));
    }

    #[test]
    fn a_change_at_an_instant_applies_there_unless_that_is_too_near() {
        let steering = steered(&[("--rate", "100"), ("-d", "10s")]);
        let at = |from: Nanos, rate: u64| {
            let to = RateCommand::To(Rate::per_second(rate));
            steering.change(to, SteeredBy::Http, Some(from), || SECOND * 1001)
        };
        assert_eq!(at(Nanos::from_millis(1_199), 500), Err(SteerError::TooLate));
        let change = at(SECOND * 3, 500).unwrap().unwrap();
        assert_eq!((change.at, steering.target_at(SECOND * 2)), (SECOND * 3, Some(100.0)));
        assert_eq!(steering.target_at(SECOND * 4), Some(500.0));
        assert_eq!(steering.commands(), [(SECOND * 3, RateCommand::To(Rate::per_second(500)))]);
        // Where more processes have to hear of it, there is more time.
        steering.set_notice(SECOND * 2);
        let change = command(&steering, RateCommand::Pause, 4_000).unwrap().unwrap();
        assert_eq!(change.at, SECOND * 6);
    }

    /// A process that joins a load late learns of the changes that were made before, at instants that are
    /// over by the time at which it begins.
    #[test]
    fn changes_are_made_while_the_run_waits_for_its_start() {
        let (early, late) = (steered(&[("--rate", "100"), ("-d", "10s")]), Steering::default());
        let mut patch =
            PlanPatch { urls: vec![RawValue::new("URL", "http://a.test/")], ..PlanPatch::default() };
        patch.rate = Some(RawValue::new("--rate", "100"));
        patch.duration = Some(RawValue::new("-d", "10s"));
        let plan = Plan::resolve(patch, &Disk).unwrap_or_else(|problems| panic!("{problems:?}"));
        late.expect(&plan);
        let faster = RateCommand::To(Rate::per_second(500));
        // Without an instant there is nothing to count from yet.
        assert_eq!(late.change(faster, SteeredBy::Http, None, || SECOND), Err(SteerError::NotYet));
        assert_eq!((late.started(), late.status(SECOND).running), (None, false));
        let commands = [(2, faster), (4, RateCommand::Pause), (5, RateCommand::Resume)];
        for (at, command) in commands {
            let change = |steering: &Steering| {
                let now = || SECOND * (1000 + at - 1);
                steering.change(command, SteeredBy::Http, Some(SECOND * at), now).unwrap().unwrap()
            };
            assert_eq!(change(&early), change(&late));
        }
        late.begin(&plan, SECOND * 1000);
        assert_eq!((late.profile(), late.started()), (early.profile(), Some(SECOND * 1000)));
        assert_eq!((late.version(), late.commands()), (3, early.commands()));
        // From then on an instant may be too near.
        let now = || SECOND * 1007;
        let slower = RateCommand::To(Rate::per_second(50));
        assert_eq!(late.change(slower, SteeredBy::Http, Some(SECOND * 6), now), Err(SteerError::TooLate));
    }

    #[test]
    fn a_pause_ends_where_the_stages_are_by_then() {
        let steering = steered(&[("--stages", "2s@100,2s@=200,2s@=300")]);
        let change = command(&steering, RateCommand::Pause, 800).unwrap().unwrap();
        assert_eq!((change.what, change.to_per_second), (What::Pause, Some(0.0)));
        assert_eq!(command(&steering, RateCommand::Pause, 900), Ok(None));
        let status = |seconds: u64| steering.status(SECOND * (1000 + seconds));
        assert!(status(1).paused && status(1).target_per_second == Some(100.0));
        let change = command(&steering, RateCommand::Resume, 2800).unwrap().unwrap();
        assert_eq!((change.from_per_second, change.to_per_second), (Some(0.0), Some(200.0)));
        assert_eq!(command(&steering, RateCommand::Resume, 2900), Ok(None));
        assert_eq!(steering.target_at(SECOND * 5), Some(300.0));
        // A rate ends a pause, and zero is one.
        command(&steering, RateCommand::To(Rate::per_second(0)), 3000).unwrap();
        assert!(status(3).paused);
        command(&steering, RateCommand::To(Rate::per_second(7)), 4000).unwrap();
        assert_eq!(status(4), Status { running: true, target_per_second: Some(7.0), paused: false });
        assert!(!steering.holds_users());
    }

    /// The screen and `/stat` showed the rate of the first stage to the end, and `+` raised that one.
    #[test]
    fn stages_change_the_rate_that_is_asked_for() {
        let steering = steered(&[("--stages", "2s@100,2s@=200,2s@=300")]);
        let target = |seconds: u64| steering.status(SECOND * (1000 + seconds)).target_per_second;
        assert_eq!([0, 1, 3, 5].map(target), [100.0, 100.0, 200.0, 300.0].map(Some));
        command(&steering, RateCommand::Pause, 1000).unwrap();
        assert_eq!(target(5), Some(300.0));
    }

    #[test]
    fn what_is_not_possible_says_why_and_changes_nothing() {
        let counted = steered(&[("--rate", "100"), ("-n", "500")]);
        assert_eq!(command(&counted, RateCommand::Pause, 100), Err(SteerError::Counted));
        let closed = steered(&[("-d", "10s")]);
        assert_eq!(command(&closed, RateCommand::To(Rate::per_second(5)), 100), Err(SteerError::Closed));
        assert_eq!(closed.profile(), None);
        let open = steered(&[("--rate", "100"), ("-d", "2s")]);
        assert_eq!(command(&open, RateCommand::Pause, 1800), Err(SteerError::Over));
        let odd = |period| RateCommand::To(Rate::new(1, Nanos(period)).unwrap());
        assert!(command(&open, odd(4_294_967_291), 100).is_ok());
        assert_eq!(command(&open, odd(4_294_967_279), 200), Err(SteerError::Profile(ProfileError::TooFine)));
        assert_eq!((open.version(), counted.version(), closed.version()), (1, 0, 0));
        for error in [SteerError::NotYet, SteerError::Over, SteerError::Closed, SteerError::Counted] {
            assert!(error.to_string().len() > 30, "{error}");
        }
    }

    #[test]
    fn a_rate_far_above_the_planned_ones_is_a_slip() {
        let steering = steered(&[("--stages", "2s@50,2s@70")]);
        let to = |rate| RateCommand::To(Rate::per_second(rate));
        assert_eq!(command(&steering, to(701), 100), Err(SteerError::AboveMost(700)));
        assert_eq!(command(&steering, to(100_000_000), 100), Err(SteerError::AboveMost(700)));
        assert!(SteerError::AboveMost(700).to_string().starts_with("at most 700/s can be set"));
        assert!(command(&steering, to(700), 100).is_ok_and(|change| change.is_some()));
        // A pause and its end do not change the rate.
        command(&steering, RateCommand::Pause, 200).unwrap();
        command(&steering, RateCommand::Resume, 300).unwrap();
        let slow = steered(&[("--rate", "1/m"), ("-d", "5m")]);
        assert_eq!(command(&slow, to(2), 100), Err(SteerError::AboveMost(1)));
    }

    #[test]
    fn the_highest_rate_can_be_given() {
        let plan = |rate| {
            let given = |by, text| Some(RawValue::new(by, text));
            let urls = vec![RawValue::new("URL", "http://a.test/")];
            let patch = PlanPatch {
                urls,
                rate: given("--rate", rate),
                duration: given("-d", "9s"),
                ..PlanPatch::default()
            };
            Plan::resolve(patch, &Disk).unwrap_or_else(|problems| panic!("{problems:?}"))
        };
        let steering = Steering::default();
        steering.limit(Rate::per_second(20));
        steering.begin(&plan("5"), SECOND * 1000);
        assert_eq!(
            command(&steering, RateCommand::To(Rate::per_second(21)), 100),
            Err(SteerError::AboveMost(20))
        );
        assert!(command(&steering, RateCommand::To(Rate::per_second(20)), 100).is_ok());
    }

    #[test]
    fn users_of_the_closed_model_are_held_at_once() {
        let steering = steered(&[("-d", "10s")]);
        let change = command(&steering, RateCommand::Pause, 100).unwrap().unwrap();
        assert_eq!((change.at, change.to_per_second), (Nanos::from_millis(100), None));
        assert!(steering.holds_users());
        command(&steering, RateCommand::Resume, 200).unwrap();
        assert!(!steering.holds_users());
        // The load ended before the second change took effect.
        steering.note_stop(SteeredBy::Key);
        steering.note_stop(SteeredBy::Http);
        assert_eq!(steering.finish(Nanos::from_millis(150)), (vec![change], Some(SteeredBy::Key)));
    }
}
