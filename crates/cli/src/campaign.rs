//! Several runs of one plan under different loads, against the same addresses.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_driver::Open;
use plimsoll_engine::{Control, Progress, Resolved, Stop, Watched, preflight, resolve, run_logged};
use plimsoll_metrics::{Log, RunRecord};
use plimsoll_plan::{Plan, Problem};

use crate::progress::ProgressLine;
use crate::signals::SignalWatch;
use crate::watch_flags::Ends;
use crate::{Failure, run, wrk};

/// Several runs of one plan under different loads. The targets are resolved and tried once, and a signal ends
/// the run that is under way.
pub(crate) struct Campaign<'a, O> {
    open: &'a O,
    addresses: Resolved,
    /// That of the run under way.
    control: Arc<Mutex<Control>>,
    signals: SignalWatch,
    /// What the requests before the runs came to.
    first: Vec<RunRecord>,
    watched: Watched,
    quiet: bool,
}

impl<'a, O: Open + Clone + 'static> Campaign<'a, O> {
    /// Resolves the targets of `plan`, and tries them unless it says not to.
    /// Watching takes so many descriptors `beside` the plan's.
    pub(crate) fn begin(plan: &mut Plan, open: &'a O, quiet: bool, beside: u32) -> Result<Self, Failure> {
        run::fit_descriptors(plan, beside).map_err(Failure::environment)?;
        let addresses = resolve(plan).map_err(run::failure)?;
        let control = Arc::new(Mutex::new(Control::default()));
        let (current, speak) = (control.clone(), run::say(quiet));
        let of_run = move || current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let signals = SignalWatch::start(of_run, move |text| speak(text)).map_err(|error| {
            Failure::environment(Problem::new(format!("cannot watch for signals: {error}")))
        })?;
        let (first, watched) = (Vec::new(), Watched::Nothing);
        let mut campaign = Self { open, addresses, control, signals, first, watched, quiet };
        if plan.preflight {
            let control = campaign.next_control();
            campaign.first = preflight(plan, open, &campaign.addresses, &control).map_err(run::failure)?;
        }
        Ok(campaign)
    }

    /// What is watched beside the load from now on.
    #[must_use]
    pub(crate) fn watching(self, watched: Watched) -> Self {
        Self { watched, ..self }
    }

    /// What the requests before the runs came to, for the first who asks: they were sent once.
    pub(crate) fn take_first(&mut self) -> Vec<RunRecord> {
        std::mem::take(&mut self.first)
    }

    /// Carries out a variant of the plan. `go_on` sees every interval; at the first `false` the run ends
    /// before its time.
    pub(crate) fn run(
        &self,
        plan: &Plan,
        go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<RunRecord, Failure> {
        let control = self.next_control();
        if self.interrupted().is_some() {
            control.stop(Stop::Drain);
        }
        let mut line = ProgressLine::new(self.quiet);
        let _wrk = wrk::Conversation::begin(plan, &self.addresses)?;
        let say = run::say(self.quiet);
        let mut ends = Ends::new(&say);
        let mut observe = |progress: Progress<'_>| {
            ends.note(&progress);
            line.show(&progress);
            if !go_on(&progress) {
                control.stop(Stop::Drain);
            }
        };
        let record = run_logged(plan, self.open, &self.addresses, &control, &Log::default(), &mut observe);
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
