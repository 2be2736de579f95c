//! The trials of a search: on this machine, or on the agents of a fleet.

use plimsoll_document::Problem;
use plimsoll_engine::{Control, Progress, Stop};
use plimsoll_plan::Plan;
use plimsoll_report::agent::AgentResult;
use plimsoll_report::trial_run::TrialRun;
use plimsoll_system::clock;

use crate::args::fleet::FleetSpec;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages::{self, Notify};
use crate::base::signals::SignalWatch;
use crate::experiment::campaign::Campaign;
use crate::session::describe;
use crate::session::fleet::conduct::{Audience, Conducted, Fleet};
use crate::session::fleet::parcel::Parcel;
use crate::session::lifecycle::{CurrentControl, Lifecycle};
use crate::session::live::progress::ProgressLine;
use crate::session::run::failure_under;

/// Sees an interval of a trial, and ends it at the first `false`.
pub(crate) type GoOn<'a> = dyn FnMut(&Progress<'_>) -> bool + 'a;

/// Runs of one plan under the loads that a search, or a sweep, asks for.
pub(crate) trait Trials {
    /// Carries out `plan`. With these arguments the plan of another process becomes it, too.
    ///
    /// # Errors
    /// It cannot be carried out.
    fn carry_out(
        &mut self,
        plan: &Plan,
        arguments: &[String],
        go_on: &mut GoOn<'_>,
    ) -> Result<TrialRun, Failure>;

    /// The signal that ended the trial under way, if one did. Nothing more is to be carried out then.
    fn interrupted(&self) -> Option<i32>;
}

impl Trials for Campaign {
    fn carry_out(&mut self, plan: &Plan, _: &[String], go_on: &mut GoOn<'_>) -> Result<TrialRun, Failure> {
        self.run(plan, go_on).map(TrialRun::of_record)
    }

    fn interrupted(&self) -> Option<i32> {
        Campaign::interrupted(self)
    }
}

/// How often a trial is made again that an agent has not begun: its machine was busy at that moment.
const REPEATS: usize = 2;

/// Trials on agents, each of which is a run of the fleet. The agents stay claimed from the first to the last.
pub(crate) struct FleetTrials {
    fleet: Fleet,
    parcel: Parcel,
    /// Setup, refresh and teardown of the plan, if it has any: once for all trials.
    around: Option<Lifecycle>,
    /// Control of the trial under way, which a signal stops.
    control: CurrentControl,
    signals: SignalWatch,
    say: Notify,
    quiet: bool,
}

impl FleetTrials {
    /// Chooses the agents, and carries out the setup of the plan of the search or the sweep, which the parcel
    /// has.
    ///
    /// # Errors
    /// There is no broker, or not the agents that are asked for, or the setup failed.
    pub(crate) fn begin(
        spec: FleetSpec,
        plan: &Plan,
        parcel: Parcel,
        threads: Option<u32>,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let say = messages::say(quiet);
        let holder = format!("find-{}", describe::run_id(clock::unix()));
        let fleet = Fleet::gather(spec, threads, Some(holder), say.clone())?;
        say(&format!("fleet: trials on {}", fleet.described()));
        let control = CurrentControl::default();
        let signals = control.watch_signals(&say)?;
        let around = Lifecycle::of_others(plan, &control.get(), &control, &say)
            .map_err(|error| failure_under(error, &signals))?;
        Ok(Self { fleet, parcel, around, control, signals, say, quiet })
    }

    /// Lets the agents go, and carries out the teardown.
    pub(crate) fn end(self) {
        let Self { fleet, around, .. } = self;
        fleet.let_go();
        drop(around);
    }
}

impl FleetTrials {
    /// Carries out a trial once. It shows nothing to `go_on` if an agent has not begun.
    fn attempt(
        &mut self,
        plan: &Plan,
        parcel: Parcel,
        go_on: &mut GoOn<'_>,
    ) -> Result<(Conducted, Control), Failure> {
        let control = Control::default();
        self.control.set(&control);
        if self.signals.received().is_some() {
            control.stop(Stop::Drain);
        }
        let run = describe::run_id(clock::unix());
        let mut audience = TrialAudience { control: &control, line: ProgressLine::new(self.quiet), go_on };
        let around = self.around.as_ref();
        let conducted = self.fleet.carry_out(plan, parcel, &run, &control, around, &mut audience)?;
        Ok((conducted, control))
    }
}

impl Trials for FleetTrials {
    fn carry_out(
        &mut self,
        plan: &Plan,
        arguments: &[String],
        go_on: &mut GoOn<'_>,
    ) -> Result<TrialRun, Failure> {
        let mut parcel = self.parcel.clone();
        arguments.iter().for_each(|argument| parcel.add_argument(argument.clone()));
        let (mut conducted, mut control) = self.attempt(plan, parcel.clone(), go_on)?;
        for _ in 0..REPEATS {
            let unbegun = conducted.unbegun();
            if unbegun.is_empty() || self.signals.received().is_some() {
                break;
            }
            (self.say)(&format!("fleet: not begun by {}: the trial is made again", unbegun.join(", ")));
            (conducted, control) = self.attempt(plan, parcel.clone(), go_on)?;
        }
        let (run, is_whole) = conducted.conclude(plan, &control, &self.signals, &self.say)?;
        if !is_whole && self.signals.received().is_none() {
            let lost = run.result.verdict.evidence.first().map(|found| found.evidence.clone());
            let problem = Problem::new(lost.unwrap_or_else(|| "an agent was lost".to_owned()));
            let hint = "a search needs all of its agents to the end: begin again with those that are there";
            return Err(Failure { exit: Exit::AgentLost, ..Failure::environment(problem.with_hint(hint)) });
        }
        Ok(TrialRun::of_fleet(&run))
    }

    fn interrupted(&self) -> Option<i32> {
        self.signals.received()
    }
}

/// A search that looks at the intervals of its trial.
struct TrialAudience<'a, 'g> {
    control: &'a Control,
    line: ProgressLine,
    go_on: &'a mut GoOn<'g>,
}

impl Audience for TrialAudience<'_, '_> {
    fn begin(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn show(&mut self, progress: &Progress<'_>) {
        self.line.show(progress);
        if !(self.go_on)(progress) {
            self.control.stop(Stop::Drain);
        }
    }

    fn look(&mut self, _: Vec<AgentResult>) {}

    fn wants_steps(&self) -> bool {
        false
    }

    fn needs_all(&self) -> bool {
        true
    }
}
