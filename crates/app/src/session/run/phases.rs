//! The phases of a run: it is prepared, carried out, and concluded.

use std::sync::Arc;

use plimsoll_engine::{
    Backends, Control, FirstContact, Progress, RunError, TargetAddress, Watched, preflight, resolve,
    run_accompanied,
};
use plimsoll_metrics::RunRecord;
use plimsoll_monitor::{DESCRIPTORS_PER_SERVER, Named};
use plimsoll_plan::Plan;
use plimsoll_report::evidence::Evidence;
use plimsoll_report::saved::{Beginning, Cut, LiveRecord};
use plimsoll_report::{RunContext, SavedRun};

use super::company::Company;
use super::observers::{Joining, Observers, SavedLive, ScriptErrors, StoppingQueries};
use super::{
    Live, Outcome, RunPreparation, conclude, context, failure, failure_under, tell_first, tell_lacking,
    with_setup,
};
use crate::args::control::ControlSpec;
use crate::args::live::LiveArgs;
use crate::args::output::OutputArgs;
use crate::base::failure::Failure;
use crate::base::messages::{self, Notify};
use crate::base::signals::SignalWatch;
use crate::session::backend::{self, fit_descriptors};
use crate::session::done_once::{DoneOnce, Refreshes, sent_in_all};
use crate::session::fleet::merging::taken_over;
use crate::session::lifecycle::{CurrentControl, Lifecycle};
use crate::session::live::exports::Exporters;
use crate::session::live::interval_teller::IntervalTeller;
use crate::session::live::request_log::{LostEntries, RequestLog};
use crate::session::live::stats::Statistics;
use crate::session::live::view::{Stage, View};
use crate::session::live::watched_ends::Ends;
use crate::session::observer::Observer as _;
use crate::session::queries::Queries;
use crate::session::saving::RunSaver;
use crate::session::wrk;

/// A run that can begin: all outputs are open, its servers have answered, and its setup is over.
///
/// Parts are dropped from the first to the last: a run that does not begin is torn down while everything that
/// shows it is still there.
pub(crate) struct Prepared {
    lifecycle: Lifecycle,
    observers: Observers,
    wrk: Option<wrk::Conversation>,
    company: Company,
    log: RequestLog,
    signals: SignalWatch,
    control: Control,
    notify: Notify,
    plan: Arc<Plan>,
    before: RunPreparation,
    backends: Backends,
    addresses: Vec<Arc<[TargetAddress]>>,
    first: Vec<FirstContact>,
    context: RunContext,
    beginning: Beginning,
}

/// A run whose load is over and torn down.
pub(crate) struct Ended {
    /// Of the load and of its company.
    records: Result<(RunRecord, Vec<RunRecord>), RunError>,
    exporters: Exporters,
    lost: LostEntries,
    interrupted: Option<i32>,
    torn_down: Option<DoneOnce>,
    refreshes: Option<Refreshes>,
    script_errors: ScriptErrors,
    queries: Option<StoppingQueries>,
    live: LiveRecord,
    saver: Option<RunSaver>,
    lifecycle: Lifecycle,
    wrk: Option<wrk::Conversation>,
    company: Company,
    signals: SignalWatch,
    control: Control,
    notify: Notify,
    plan: Arc<Plan>,
    before: RunPreparation,
    first: Vec<FirstContact>,
    context: RunContext,
    beginning: Beginning,
}

/// Carries out a plan on the backend that it asks for, from its first contacts to its result.
///
/// # Errors
/// The run could not begin, or was given up.
pub(crate) fn carry_out(
    plan: Plan,
    output: &OutputArgs,
    live: Live<'_>,
    before: RunPreparation,
) -> Result<Outcome, Failure> {
    Prepared::new(plan, output, live, before)?.carry_out().conclude()
}

impl Prepared {
    /// Opens the outputs of a run, contacts its servers and carries out its setup.
    ///
    /// # Errors
    /// The first of these that fails.
    pub(crate) fn new(
        mut plan: Plan,
        output: &OutputArgs,
        (live, spec): Live<'_>,
        mut before: RunPreparation,
    ) -> Result<Self, Failure> {
        let backends = Backends::from(backend::chosen(plan.backend)?);
        let mut company = Company::of(&plan, &before)?;
        let mut watched = live.watch.named()?;
        watched.append(&mut before.background.watched);
        let descriptors = company.connections() + watched.len() as u32 * DESCRIPTORS_PER_SERVER;
        let fewer = fit_descriptors(&mut plan, descriptors).map_err(Failure::environment)?;
        let statistics = Statistics::open(&plan, live, output.quiet);
        let log = RequestLog::open(&plan, live, before.background.listener.take());
        let (statistics, log) = (statistics?, log?);
        let mut addresses = resolve(&plan).map_err(failure)?;
        let stage = Stage::of(before.look, spec, output.quiet, &statistics);
        let control = control_of(&plan, (live, spec), &stage, watched);
        if spec.tells_intervals {
            // The thresholds are those of the whole load: the reader of the intervals judges them.
            plan.thresholds.iter_mut().for_each(|threshold| threshold.abort_on_fail = false);
        }
        let notify = messages::say(output.quiet);
        fewer.iter().for_each(|note| notify(&format!("note: {note}")));
        if !spec.tells_intervals {
            tell_lacking(&plan, &notify);
        }
        let current = CurrentControl::default();
        current.set(&control);
        let signals = current.watch_signals(&notify)?;
        let shown = (stage, statistics);
        let faults = before.background.faults.clone();
        let mut view = View::start(&plan, &control, (live, spec), shown, faults, output.quiet, &notify)?;
        // Of a part of a load, the reader of the intervals asks.
        let queries = if spec.tells_intervals { None } else { Queries::begin(&plan)? };
        let first = first_contacts(&plan, &backends, &mut addresses, &control, &notify)
            .map_err(|error| failure_under(error, &signals))?;
        let lifecycle = match &spec.handed {
            Some(values) => Lifecycle::handed(&mut plan, values, &backends, &current, &notify),
            None => Lifecycle::begin(&mut plan, &backends, &control, &current, &notify)
                .map_err(|error| failure_under(error, &signals))?,
        };
        company.plans_mut().for_each(|plan| lifecycle.give(plan));
        let wrk = wrk::Conversation::begin(&plan, &addresses)?;
        let context = with_setup(context(&plan, &first, &before, false), lifecycle.setup());
        let saver = before.keep(&plan, &context)?;
        let beginning = before.beginning(&plan, &context);
        view.begin(&plan, &context, &control, before.background.periodic)
            .map_err(|error| Failure::no_thread(&error))?;
        let teller = spec.tells_intervals.then(IntervalTeller::start).transpose();
        let teller = teller.map_err(|error| Failure::no_thread(&error))?;
        let own = before.background.observers.drain(..).map(|start| start(&control, &notify)).collect();
        let plan = Arc::new(plan);
        let joining =
            || Joining { plan: Arc::clone(&plan), control: control.clone(), beginning: beginning.clone() };
        let observers = Observers {
            ends: Ends::new(&notify),
            script_errors: ScriptErrors::new(&control, &notify),
            own,
            view,
            queries: queries.map(|queries| StoppingQueries { queries, control: control.clone() }),
            teller,
            live: LiveRecord::new(plan.downsampler()),
            saved: saver.map(|saver| SavedLive { saver, joining: Some(joining()) }),
        };
        if let Some(accompany) = before.background.accompany.take() {
            accompany(&control);
        }
        Ok(Self {
            lifecycle,
            observers,
            wrk,
            company,
            log,
            signals,
            control,
            notify,
            plan,
            before,
            backends,
            addresses,
            first,
            context,
            beginning,
        })
    }

    /// Makes the load, and tears down what the setup has made, however the load ended.
    pub(crate) fn carry_out(self) -> Ended {
        let Self { mut lifecycle, mut observers, log, signals, backends, addresses, .. } = self;
        let Self { wrk, company, control, notify, plan, before, first, context, beginning, .. } = self;
        let records = {
            let runs = company.runs(&backends, &addresses);
            let mut observe = |progress: Progress<'_>| observers.observe(&progress);
            run_accompanied(&plan, runs, &backends, &addresses, &control, log.handle(), &mut observe)
        };
        let Observers { script_errors, view, queries, teller, live, saved, .. } = observers;
        let exporters = view.close();
        drop(teller);
        let lost = log.finish();
        let interrupted = signals.received();
        let torn_down = lifecycle.tear_down();
        Ended {
            records,
            exporters,
            lost,
            interrupted,
            torn_down,
            refreshes: lifecycle.take_refreshes(),
            script_errors,
            queries,
            live,
            saver: saved.map(|saved| saved.saver),
            lifecycle,
            wrk,
            company,
            signals,
            control,
            notify,
            plan,
            before,
            first,
            context,
            beginning,
        }
    }
}

impl Ended {
    /// Makes the result of a run, and decides how the process ends.
    ///
    /// # Errors
    /// There is no record, other than of a run whose workers did not end.
    pub(crate) fn conclude(mut self) -> Result<Outcome, Failure> {
        match std::mem::replace(&mut self.records, Err(RunError::Unresponsive)) {
            Ok((record, company)) => Ok(self.conclude_record(record, company)),
            Err(RunError::Unresponsive) => Ok(self.conclude_unresponsive()),
            Err(error) => {
                self.saver.into_iter().for_each(RunSaver::abandon);
                Err(failure_under(error, &self.signals))
            }
        }
    }

    /// The outcome of a run with workers that did not end: what was known second by second.
    fn conclude_unresponsive(self) -> Outcome {
        let mut run = Box::new(self.live.into_run(self.beginning, Cut::Stuck));
        run.result.exports = self.exporters.finish(false, &self.notify);
        self.saver.into_iter().for_each(|saver| saver.cut(run.clone()));
        let failure = failure_under(RunError::Unresponsive, &self.signals);
        failure.problems.iter().for_each(|problem| messages::tell(&format!("error: {}", problem.message)));
        Outcome { run, exit: failure.exit, said: None, kept: None, evidence: None }
    }

    fn conclude_record(mut self, mut record: RunRecord, company: Vec<RunRecord>) -> Outcome {
        record.log.lose(self.lost.entries, self.lost.failed);
        self.script_errors.report();
        let said = self.wrk.map(|wrk| wrk.end(self.control.leftovers(), &record));
        record.interrupted = self.interrupted;
        self.queries.into_iter().for_each(|stopping| stopping.queries.finish(&mut record));
        let exports = self.exporters.finish(record.verdict.valid, &self.notify);
        let first = self.first.iter().flat_map(|contact| &contact.records);
        let once = self.lifecycle.setup().into_iter().chain(&self.torn_down);
        let unmeasured = sent_in_all(first.chain(&company), once, self.refreshes.as_ref());
        let (probe, slow) = self.company.records(company);
        let context = RunContext {
            taken_over: taken_over(&self.plan, &self.control),
            refresh: self.refreshes.map(|refreshes| refreshes.result),
            teardown: self.torn_down.map(|done| done.result),
            probe,
            slow,
            ..self.context
        };
        let before = self.before;
        let wanted = before.evidence.then(|| context.clone());
        let (mut result, exit) =
            conclude(&mut record, &self.plan, unmeasured, context, &before, &self.notify);
        result.exports = exports;
        let run = Box::new(SavedRun::new(&record, result, before.plan.clone()));
        let evidence = wanted.map(|context| {
            let context = RunContext { calibration: run.result.generator.calibration.clone(), ..context };
            Box::new(Evidence::new(record, context, self.plan.outline(), before.plan))
        });
        Outcome { run, exit, said, kept: self.saver, evidence }
    }
}

/// The control of a run with everything that those who look at it need.
fn control_of(
    plan: &Plan,
    (live, spec): (&LiveArgs, &ControlSpec),
    stage: &Stage,
    watched: Vec<Named>,
) -> Control {
    let control = Control::default().watching(Watched::Machine(watched));
    let is_watched = stage.is_there() || spec.listen.is_some() || spec.tells_intervals;
    let control = if is_watched { control.in_detail() } else { control };
    let is_traced = plan.steps.iter().any(|step| step.request.is_traced());
    if is_traced && live.exports.serves_prometheus() { control.with_exemplars() } else { control }
}

/// Contacts each server, if the plan wants that, and tells the user what was found.
fn first_contacts(
    plan: &Plan,
    backends: &Backends,
    addresses: &mut [Arc<[TargetAddress]>],
    control: &Control,
    notify: &Notify,
) -> Result<Vec<FirstContact>, RunError> {
    if !plan.preflight {
        return Ok(Vec::new());
    }
    let first = preflight(plan, backends, addresses, control)?;
    tell_first(&first, plan, notify);
    Ok(first)
}
