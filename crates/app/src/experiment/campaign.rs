//! Several runs of one plan under different loads, against the same targets.

use std::cell::RefCell;

use plimsoll_core::Nanos;
use plimsoll_document::Problem;
use plimsoll_engine::{
    Backends, Control, Crew, FirstContact, Progress, Resolved, Stop, Watched, preflight, resolve,
    resolve_anew, run_logged,
};
use plimsoll_metrics::{Log, RunRecord};
use plimsoll_plan::{Plan, StartTime};
use plimsoll_system::clock;

use crate::args::watch::WatchArgs;
use crate::base::failure::Failure;
use crate::base::messages;
use crate::base::signals::SignalWatch;
use crate::session::done_once::{DoneOnce, Refreshes};
use crate::session::lifecycle::{CurrentControl, Lifecycle};
use crate::session::live::progress::ProgressLine;
use crate::session::live::watched_ends::Ends;
use crate::session::observer::Observer as _;
use crate::session::{backend, run, wrk};

/// Time between two looks for a signal.
const LOOK: Nanos = Nanos::from_millis(50);

/// Several runs of one plan under different loads, or of several plans in turn. The targets are tried once,
/// and resolved before each run; setup and teardown are carried out once, and a signal ends the run that is
/// under way.
pub(crate) struct Campaign {
    backends: Backends,
    /// The addresses of each plan.
    addresses: Vec<RefCell<Addresses>>,
    /// The control of the run under way.
    control: CurrentControl,
    /// Results of the first contacts before the runs of each plan.
    first: Vec<Vec<FirstContact>>,
    /// Setup and teardown of each plan.
    around: Vec<Lifecycle>,
    // It goes after them: a signal ends the teardown, too.
    signals: SignalWatch,
    watched: Watched,
    /// The threads of all runs of the first plan, if its connections are kept from run to run.
    crew: Option<RefCell<Crew>>,
    quiet: bool,
}

/// The addresses of the targets of one plan.
struct Addresses {
    resolved: Resolved,
    /// `true` until a run has used them.
    fresh: bool,
}

/// Decision of a run's caller after an interval.
pub(crate) struct Seen {
    /// `false` ends the run before its time.
    pub(crate) go_on: bool,
    /// Text for the line of progress; `None` shows the percentiles of the interval.
    pub(crate) known: Option<String>,
}

impl Campaign {
    /// Resolves the targets of `plan`, tries them unless it says not to, and carries out its setup, whose
    /// values `plan` has then.
    /// `beside` is the number of descriptors for watching, in addition to those of the plan.
    ///
    /// All runs are carried out on the backend that it asks for.
    pub(crate) fn begin(plan: &mut Plan, quiet: bool, beside: u32) -> Result<Self, Failure> {
        let backends = backend::chosen(plan.backend)?.into();
        let control = CurrentControl::default();
        let signals = control.watch_signals(&messages::say(quiet))?;
        let watched = Watched::Nothing;
        let (addresses, first, around) = (Vec::new(), Vec::new(), Vec::new());
        let mut campaign =
            Self { backends, addresses, control, first, around, signals, watched, crew: None, quiet };
        campaign.add(plan, beside)?;
        Ok(campaign)
    }

    /// Resolves the targets of another plan, and tries them: its number is one more than that of the plan
    /// before.
    pub(crate) fn add(&mut self, plan: &mut Plan, beside: u32) -> Result<(), Failure> {
        if plan.start != StartTime::WhenReady {
            let problem = Problem::new("--start-at is of a single run: the next one would begin too late");
            return Err(Failure::usage(problem.with_hint("leave it out, or make the runs one by one")));
        }
        let fewer = backend::fit_descriptors(plan, beside).map_err(Failure::environment)?;
        fewer.iter().for_each(|note| messages::say(self.quiet)(&format!("note: {note}")));
        let mut addresses = resolve(plan).map_err(run::failure)?;
        let first = match plan.preflight {
            true => {
                preflight(plan, &self.backends, &mut addresses, &self.next_control()).map_err(run::failure)?
            }
            false => Vec::new(),
        };
        let say = messages::say(self.quiet);
        run::tell_first(&first, plan, &say);
        let around = Lifecycle::begin(plan, &self.backends, &self.next_control(), &self.control, &say);
        self.around.push(around.map_err(run::failure)?);
        self.addresses.push(RefCell::new(Addresses { resolved: addresses, fresh: true }));
        self.first.push(first);
        Ok(())
    }

    /// Sets the servers to watch beside the load from now on.
    #[must_use]
    pub(crate) fn watching(self, watched: Watched) -> Self {
        Self { watched, ..self }
    }

    /// Keeps connections that are idle at the end of a run of the first plan for the next run. Without this,
    /// each run opens its own.
    #[must_use]
    pub(crate) fn keeping_connections(self) -> Self {
        Self { crew: Some(RefCell::new(Crew::new(self.backends.clone()))), ..self }
    }

    /// Takes the records of the first contacts before the runs of a plan. Later calls return none: the
    /// contacts were made once.
    pub(crate) fn take_first(&mut self, number: usize) -> Vec<FirstContact> {
        std::mem::take(&mut self.first[number])
    }

    /// Gives the values of the first plan's setup to another plan of the same file.
    pub(crate) fn give(&self, plan: &mut Plan) {
        self.around.iter().take(1).for_each(|around| around.give(plan));
    }

    /// The setup of the plan of this number, if it has one. It was carried out once, before the first run.
    pub(crate) fn setup(&self, number: usize) -> Option<&DoneOnce> {
        self.around[number].setup()
    }

    /// Takes the refreshes of the plan of this number since the last call, if it has a refresh.
    pub(crate) fn take_refreshes(&self, number: usize) -> Option<Refreshes> {
        self.around[number].take_refreshes()
    }

    /// Carries out the teardown of the plan of this number, after its last run. Without a call it is carried
    /// out when the campaign goes.
    pub(crate) fn tear_down(&mut self, number: usize) -> Option<DoneOnce> {
        self.around[number].tear_down()
    }

    /// Carries out a variant of the first plan. `go_on` sees every interval; at the first `false` the run
    /// ends before its time.
    pub(crate) fn run(
        &self,
        plan: &Plan,
        go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<RunRecord, Failure> {
        self.run_at(0, plan, go_on)
    }

    /// Carries out a variant of the plan of this number.
    pub(crate) fn run_at(
        &self,
        number: usize,
        plan: &Plan,
        go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<RunRecord, Failure> {
        self.run_shown(number, plan, &mut |progress| Seen { go_on: go_on(progress), known: None })
    }

    /// Carries out a variant of the plan of this number for a caller that has something to show in the line
    /// of progress.
    pub(crate) fn run_shown(
        &self,
        number: usize,
        plan: &Plan,
        look: &mut dyn FnMut(&Progress<'_>) -> Seen,
    ) -> Result<RunRecord, Failure> {
        let control = self.next_control();
        if self.interrupted().is_some() {
            control.stop(Stop::Drain);
        }
        let mut line = ProgressLine::new(self.quiet);
        let addresses = &self.resolved(number, plan);
        let _wrk = wrk::Conversation::begin(plan, addresses)?;
        let say = messages::say(self.quiet);
        let mut ends = Ends::new(&say);
        let mut observe = |progress: Progress<'_>| {
            ends.observe(&progress);
            let Seen { go_on, known } = look(&progress);
            line.show_with(&progress, known.as_deref());
            if !go_on {
                control.stop(Stop::Drain);
            }
        };
        let log = Log::default();
        let record = match &self.crew {
            Some(crew) if number == 0 => crew.borrow_mut().run(plan, addresses, &control, &log, &mut observe),
            _ => run_logged(plan, &self.backends, addresses, &control, &log, &mut observe),
        };
        record.map_err(run::failure)
    }

    /// The addresses for a run of the plan of this number: where its names lead now. Ones that cannot be
    /// resolved keep the addresses of the run before.
    fn resolved(&self, number: usize, plan: &Plan) -> Resolved {
        let mut addresses = self.addresses[number].borrow_mut();
        if !std::mem::take(&mut addresses.fresh) {
            let say = messages::say(self.quiet);
            match resolve_anew(plan, &mut addresses.resolved) {
                Ok(false) => {}
                Ok(true) => {
                    say("note: a name of a target leads to other addresses than in the run before");
                    // Connections are known by the number of their address, which is another one now.
                    if let Some(crew) = self.crew.as_ref().filter(|_| number == 0) {
                        *crew.borrow_mut() = Crew::new(self.backends.clone());
                    }
                }
                Err(error) => say(&format!("note: {error}; the addresses of the run before stay")),
            }
        }
        addresses.resolved.clone()
    }

    /// The signal that ended the run under way, if one did. Nothing more is to be run then.
    pub(crate) fn interrupted(&self) -> Option<i32> {
        self.signals.received()
    }

    /// Waits before the next run, unless a signal comes.
    pub(crate) fn pause(&self, time: Nanos) {
        let end = clock::monotonic() + time;
        while self.interrupted().is_none() && clock::monotonic() < end {
            clock::sleep_until(end.min(clock::monotonic() + LOOK));
        }
    }

    fn next_control(&self) -> Control {
        let control = Control::default().watching(self.watched.clone());
        self.control.set(&control);
        control
    }
}

/// Begins runs of variants of a plan, in which the servers are watched if some are named.
pub(crate) fn watching(watch: &WatchArgs, plan: &mut Plan, quiet: bool) -> Result<Campaign, Failure> {
    let named = watch.named()?;
    let watched = if named.is_empty() { Watched::Nothing } else { Watched::Machine(named) };
    Ok(Campaign::begin(plan, quiet, watch.descriptors())?.watching(watched))
}
