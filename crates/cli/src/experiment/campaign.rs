//! Several runs of one plan under different loads, against the same addresses.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_driver::Open;
use plimsoll_engine::{
    Control, FirstContact, Progress, Resolved, Stop, Watched, preflight, resolve, run_logged,
};
use plimsoll_metrics::{Log, RunRecord};
use plimsoll_plan::{Plan, Problem, StartTime};

use crate::args::watch::WatchArgs;
use crate::base::failure::Failure;
use crate::base::messages;
use crate::base::signals::SignalWatch;
use crate::session::live::progress::ProgressLine;
use crate::session::live::watched_ends::Ends;
use crate::session::{backend, run, wrk};

/// Several runs of one plan under different loads, or of several plans in turn. The targets are resolved and
/// tried once, and a signal ends the run that is under way.
pub(crate) struct Campaign<'a, O> {
    open: &'a O,
    /// The addresses of each plan.
    addresses: Vec<Resolved>,
    /// That of the run under way.
    control: Arc<Mutex<Control>>,
    signals: SignalWatch,
    /// Results of the first contacts before the runs of each plan.
    first: Vec<Vec<FirstContact>>,
    watched: Watched,
    quiet: bool,
}

impl<'a, O: Open + Clone + 'static> Campaign<'a, O> {
    /// Resolves the targets of `plan`, and tries them unless it says not to.
    /// Watching takes so many descriptors `beside` the plan's.
    pub(crate) fn begin(plan: &mut Plan, open: &'a O, quiet: bool, beside: u32) -> Result<Self, Failure> {
        let control = Arc::new(Mutex::new(Control::default()));
        let (current, speak) = (control.clone(), messages::say(quiet));
        let of_run = move || current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let signals = SignalWatch::start(of_run, move |text| speak(text)).map_err(|error| {
            Failure::environment(Problem::new(format!("cannot watch for signals: {error}")))
        })?;
        let watched = Watched::Nothing;
        let (addresses, first) = (Vec::new(), Vec::new());
        let mut campaign = Self { open, addresses, control, signals, first, watched, quiet };
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
        let addresses = resolve(plan).map_err(run::failure)?;
        let first = match plan.preflight {
            true => preflight(plan, self.open, &addresses, &self.next_control()).map_err(run::failure)?,
            false => Vec::new(),
        };
        run::tell_first(&first, plan, &messages::say(self.quiet));
        self.addresses.push(addresses);
        self.first.push(first);
        Ok(())
    }

    /// Sets the servers to watch beside the load from now on.
    #[must_use]
    pub(crate) fn watching(self, watched: Watched) -> Self {
        Self { watched, ..self }
    }

    /// Takes the records of the first contacts before the runs of a plan. Later calls return none: the
    /// contacts were made once.
    pub(crate) fn take_first(&mut self, number: usize) -> Vec<FirstContact> {
        std::mem::take(&mut self.first[number])
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
        let control = self.next_control();
        if self.interrupted().is_some() {
            control.stop(Stop::Drain);
        }
        let mut line = ProgressLine::new(self.quiet);
        let addresses = &self.addresses[number];
        let _wrk = wrk::Conversation::begin(plan, addresses)?;
        let say = messages::say(self.quiet);
        let mut ends = Ends::new(&say);
        let mut observe = |progress: Progress<'_>| {
            ends.note(&progress);
            line.show(&progress);
            if !go_on(&progress) {
                control.stop(Stop::Drain);
            }
        };
        let record = run_logged(plan, self.open, addresses, &control, &Log::default(), &mut observe);
        record.map_err(run::failure)
    }

    /// The signal that ended the run under way, if one did. Nothing more is to be run then.
    pub(crate) fn interrupted(&self) -> Option<i32> {
        self.signals.received()
    }

    fn next_control(&self) -> Control {
        let control = Control::default().watching(self.watched.clone());
        *self.control.lock().unwrap_or_else(PoisonError::into_inner) = control.clone();
        control
    }
}

/// Begins runs of variants of a plan, in which the servers are watched if some are named.
pub(crate) fn watching<'a, O: Open + Clone + 'static>(
    watch: &WatchArgs,
    plan: &mut Plan,
    open: &'a O,
    quiet: bool,
) -> Result<Campaign<'a, O>, Failure> {
    let named = watch.named()?;
    let watched = if named.is_empty() { Watched::Nothing } else { Watched::Machine(named) };
    Ok(Campaign::begin(plan, open, quiet, watch.descriptors())?.watching(watched))
}
