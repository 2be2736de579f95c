//! The observers of a run of this process.

use std::sync::Arc;

use plimsoll_engine::{Control, Progress, Stop};
use plimsoll_plan::Plan;
use plimsoll_report::RunContext;
use plimsoll_report::saved::{Beginning, LiveRecord};

use crate::base::messages::Notify;
use crate::session::fleet::merging::taken_over;
use crate::session::live::interval_teller::IntervalTeller;
use crate::session::live::view::View;
use crate::session::live::watched_ends::Ends;
use crate::session::observer::Observer;
use crate::session::queries::Queries;
use crate::session::saving::RunSaver;

/// The observers of a run, which are told in this order.
pub(crate) struct Observers {
    pub(crate) ends: Ends,
    pub(crate) script_errors: ScriptErrors,
    /// Observers that the workload brings.
    pub(crate) own: Vec<Box<dyn Observer>>,
    pub(crate) view: View,
    pub(crate) queries: Option<StoppingQueries>,
    pub(crate) teller: Option<IntervalTeller>,
    pub(crate) live: LiveRecord,
    pub(crate) saved: Option<SavedLive>,
}

impl Observer for Observers {
    fn observe(&mut self, progress: &Progress<'_>) {
        let Self { ends, script_errors, own, view, queries, teller, live, saved } = self;
        ends.observe(progress);
        script_errors.observe(progress);
        own.iter_mut().for_each(|observer| observer.observe(progress));
        view.observe(progress);
        queries.iter_mut().for_each(|queries| queries.observe(progress));
        teller.iter_mut().for_each(|teller| teller.observe(progress));
        live.observe(progress);
        saved.iter_mut().for_each(|saved| saved.observe(progress));
    }
}

/// Reports the first error of a script as soon as it occurs, and only once.
pub(crate) struct ScriptErrors {
    control: Control,
    notify: Notify,
    is_told: bool,
}

impl ScriptErrors {
    pub(crate) fn new(control: &Control, notify: &Notify) -> Self {
        Self { control: control.clone(), notify: notify.clone(), is_told: false }
    }

    /// Reports an error that was not reported yet.
    pub(crate) fn report(&mut self) {
        if let (Some(reason), false) = (self.control.script_error(), self.is_told) {
            self.is_told = true;
            (self.notify)(&format!("warning: a script has failed: {reason}"));
        }
    }
}

impl Observer for ScriptErrors {
    fn observe(&mut self, _: &Progress<'_>) {
        self.report();
    }
}

/// Thresholds on queries, which may end the run.
pub(crate) struct StoppingQueries {
    pub(crate) queries: Queries,
    pub(crate) control: Control,
}

impl Observer for StoppingQueries {
    fn observe(&mut self, progress: &Progress<'_>) {
        if self.queries.note(progress) {
            self.control.stop(Stop::Drain);
        }
    }
}

/// The history's copy of a run under way.
pub(crate) struct SavedLive {
    pub(crate) saver: RunSaver,
    /// Set until the run is known to have taken over shards of another.
    pub(crate) joining: Option<Joining>,
}

/// A run that may turn out to have taken over shards of another.
pub(crate) struct Joining {
    pub(crate) plan: Arc<Plan>,
    pub(crate) control: Control,
    pub(crate) beginning: Beginning,
}

impl Observer for SavedLive {
    fn observe(&mut self, progress: &Progress<'_>) {
        let taken_over = self.joining.as_ref().and_then(|run| taken_over(&run.plan, &run.control));
        if let Some(taken_over) = taken_over
            && let Some(Joining { beginning, .. }) = self.joining.take()
        {
            let context = RunContext { taken_over: Some(taken_over), ..beginning.context.clone() };
            self.saver.amend(Beginning { context, ..beginning });
        }
        self.saver.note(progress);
    }
}

impl Observer for LiveRecord {
    fn observe(&mut self, progress: &Progress<'_>) {
        self.note(progress.interval);
    }
}
