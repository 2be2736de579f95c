//! The setup before the load of a run, the refresh beside it, and the teardown after it.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_document::Problem;
use plimsoll_driver::{BackendOptions, KernelBackend};
use plimsoll_engine::{Backends, Control, RunError, run_once, set_up};
use plimsoll_metrics::Log;
use plimsoll_plan::{GivenValue, Plan, SharedText};

use crate::base::failure::Failure;
use crate::base::handed_values::HandedValues;
use crate::base::messages::Notify;
use crate::base::signals::SignalWatch;
use crate::session::done_once::{DoneOnce, Refreshes};
use crate::session::refresher::Refresher;

/// The control of the run that signals are for, of several runs in turn.
#[derive(Clone, Default)]
pub(crate) struct CurrentControl(Arc<Mutex<Control>>);

impl CurrentControl {
    pub(crate) fn get(&self) -> Control {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, control: &Control) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = control.clone();
    }

    /// Has signals stop the run that is current when they come, and notify the user.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn watch_signals(&self, notify: &Notify) -> Result<SignalWatch, Failure> {
        let (current, notify) = (self.clone(), notify.clone());
        SignalWatch::start(move || current.get(), move |text| notify(text))
            .map_err(|error| Failure::environment(Problem::new(format!("cannot watch for signals: {error}"))))
    }
}

/// Setup, refresh and teardown of a plan. The setup is over when there is one of these, and the refresh goes
/// on for as long as it is there; the teardown is carried out when it is asked for, and at the latest when
/// this goes: however the run ended.
pub(crate) struct Lifecycle {
    setup: Option<DoneOnce>,
    values: Vec<(String, GivenValue)>,
    refresher: Option<Refresher>,
    teardown: Option<Arc<Plan>>,
    backends: Backends,
    /// A signal ends the teardown by it.
    current: CurrentControl,
    say: Notify,
}

impl Lifecycle {
    /// Carries out the setup of a plan, which is given the values. `control` stops it.
    ///
    /// # Errors
    /// It failed, or was stopped.
    pub(crate) fn begin(
        plan: &mut Plan,
        backends: &Backends,
        control: &Control,
        current: &CurrentControl,
        say: &Notify,
    ) -> Result<Self, RunError> {
        let once = set_up(plan, backends, control)?;
        let values = once.as_ref().and_then(|once| once.values.clone()).unwrap_or_default();
        let given = |(name, value): (String, Vec<u8>)| {
            let mut refreshed = plan.refresh.iter().flat_map(|refresh| refresh.steps.left());
            let is_refreshed = refreshed.any(|other| *other == name);
            let value = if is_refreshed {
                GivenValue::Refreshed(SharedText::new(&value))
            } else {
                GivenValue::Fixed(value)
            };
            (name, value)
        };
        let values: Vec<(String, GivenValue)> = values.into_iter().map(given).collect();
        plan.give(&values);
        let setup = once.zip(plan.setup.as_deref()).map(|(once, steps)| DoneOnce::new(Ok(&once), steps));
        setup.iter().for_each(|setup| say(&format!("setup: {}", setup.result.words())));
        let texts = values.iter().filter_map(|(name, value)| match value {
            GivenValue::Refreshed(text) => Some((name.clone(), text.clone())),
            GivenValue::Fixed(_) => None,
        });
        let refresh = plan.refresh.as_ref().map(|refresh| (refresh.every, Arc::clone(&refresh.steps)));
        let start = |refresh| Refresher::start(refresh, texts.collect(), backends, say);
        Ok(Self {
            setup,
            refresher: refresh.map(start).transpose()?,
            values,
            teardown: plan.teardown.clone(),
            backends: backends.clone(),
            current: current.clone(),
            say: say.clone(),
        })
    }

    /// Carries out the setup of a plan whose load other processes make; `None` if there is nothing around it.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(crate) fn of_others(
        plan: &Plan,
        control: &Control,
        current: &CurrentControl,
        say: &Notify,
    ) -> Result<Option<Self>, RunError> {
        if plan.setup.is_none() && plan.teardown.is_none() {
            return Ok(None);
        }
        // There is one request now and then, so epoll will do whatever the load runs on.
        let backends = Backends::from(KernelBackend::Epoll(BackendOptions::default()));
        Self::begin(&mut plan.clone(), &backends, control, current, say).map(Some)
    }

    /// Gives a plan the values of a setup that another process has carried out. That process does the rest,
    /// too.
    pub(crate) fn handed(
        plan: &mut Plan,
        values: &HandedValues,
        backends: &Backends,
        current: &CurrentControl,
        say: &Notify,
    ) -> Self {
        let values = values.as_given().to_vec();
        plan.give(&values);
        Self {
            setup: None,
            values,
            refresher: None,
            teardown: None,
            backends: backends.clone(),
            current: current.clone(),
            say: say.clone(),
        }
    }

    /// Writes the current values of the setup for other processes.
    pub(crate) fn to_hand_over(&self) -> String {
        HandedValues::to_text(&self.values)
    }

    /// Writes the current refreshed values for other processes; `None` if the plan has no refresh.
    pub(crate) fn refreshed(&self) -> Option<String> {
        self.refresher.as_ref().map(|_| HandedValues::refreshed_to_text(&self.values))
    }

    /// The setup, if the plan has one.
    pub(crate) fn setup(&self) -> Option<&DoneOnce> {
        self.setup.as_ref()
    }

    /// Gives the values of the setup to another plan of the same file.
    pub(crate) fn give(&self, plan: &mut Plan) {
        plan.give(&self.values);
    }

    /// Takes the refreshes since the last call, if the plan has a refresh. The last ones are known after the
    /// teardown.
    pub(crate) fn take_refreshes(&self) -> Option<Refreshes> {
        self.refresher.as_ref().map(Refresher::take)
    }

    /// Ends the refresh, and carries out the teardown with its last values, unless that was done or there is
    /// none.
    pub(crate) fn tear_down(&mut self) -> Option<DoneOnce> {
        self.refresher.iter_mut().for_each(Refresher::end);
        let steps = self.teardown.take()?;
        // The load may have been stopped: its control would stop these requests, too.
        let control = Control::default();
        self.current.set(&control);
        let once = run_once(&steps, &self.backends, &control, &Log::default());
        let done = DoneOnce::new(once.as_ref(), &steps);
        (self.say)(&format!("teardown: {}", done.result.words()));
        Some(done)
    }
}

impl Drop for Lifecycle {
    fn drop(&mut self) {
        if let Some(warning) = self.tear_down().and_then(|done| done.result.warning()) {
            (self.say)(&format!("warning: {}", warning.evidence));
        }
    }
}
