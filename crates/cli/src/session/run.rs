//! `plimsoll run`: from a plan to a report and an exit code.

use std::path::PathBuf;

use plimsoll_core::Rate;
use plimsoll_driver::{BackendOptions, KernelBackend};
use plimsoll_engine::{
    Backends, BackgroundRun, Control, FirstContact, Progress, RunError, Stop, Watched, load_checksum,
    preflight, resolve, run_accompanied,
};
use plimsoll_metrics::RunRecord;
use plimsoll_monitor::DESCRIPTORS_PER_SERVER;
use plimsoll_plan::{Load, Plan, Problem};
use plimsoll_report::context::{OnceResult, RefreshResult};
use plimsoll_report::evidence::Evidence;
use plimsoll_report::result::{CauseResult, ModelKind};
use plimsoll_report::saved::{Beginning, Cut, LiveRecord};
use plimsoll_report::slow::SlowRecord;
use plimsoll_report::{CalibrationCell, Host, RunContext, RunResult, SavedRun, Style, render_saved};
use plimsoll_system::clock;

use crate::args::control::ControlSpec;
use crate::args::live::LiveArgs;
use crate::args::output::OutputArgs;
use crate::args::save::Saving;
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages::{self, Notify, say};
use crate::base::signals::SignalWatch;
use crate::session::around::{Around, CurrentControl};
use crate::session::backend::{self, fit_descriptors};
use crate::session::done_once::{DoneOnce, sent_beside, sent_in_all};
use crate::session::fleet::merging::taken_over;
use crate::session::live::interval_teller::IntervalTeller;
use crate::session::live::request_log::RequestLog;
use crate::session::live::stats::Statistics;
use crate::session::live::view::{Stage, View};
use crate::session::live::watched_ends::Ends;
use crate::session::outputs::Outputs;
use crate::session::queries::Queries;
use crate::session::refusals::Refusals;
use crate::session::saving::RunSaver;
use crate::session::side_runs::{SideRuns, SlowClients};
use crate::session::{calibration, describe, wrk};

/// A run that has ended: its result, and how the process ends.
pub(crate) struct Outcome {
    /// Its result, and the histograms behind it.
    pub(crate) run: Box<SavedRun>,
    pub(crate) exit: Exit,
    /// Output of the script's `done`, or the failure that prevented it.
    pub(crate) said: Option<Result<String, Failure>>,
    /// The run in the history, if it is to be saved there.
    pub(crate) kept: Option<RunSaver>,
    /// Everything that the result was made of, if it is to be written.
    pub(crate) evidence: Option<Box<Evidence>>,
}

/// Settings and facts that are known before a run begins.
#[derive(Default)]
pub(crate) struct RunPreparation {
    /// Name of the run, if it has one.
    pub(crate) name: Option<String>,
    /// The command line, without secrets.
    pub(crate) command_line: Vec<String>,
    /// Calibration of the plan's own requests, if there is one.
    pub(crate) calibration: Option<CalibrationCell>,
    /// `true` if the result keeps the values of each part of the run.
    pub(crate) slices: bool,
    /// The place to save the run in, if it is saved.
    pub(crate) saving: Option<Saving>,
    /// The text of the plan file, credentials aside.
    pub(crate) plan: Option<String>,
    /// Iterations per second of a probe beside the load, if there is to be one.
    pub(crate) probe: Option<Rate>,
    /// Clients that are slow on purpose, beside the load.
    pub(crate) slow: Option<SlowClients>,
    /// Theme of the live screen; `None` if there is none.
    pub(crate) look: Option<Theme>,
    /// `true` if evidence of the run is wanted.
    pub(crate) evidence: bool,
    /// The file of the page of HTML, if one is wanted.
    pub(crate) report: Option<PathBuf>,
    /// Everything that goes on beside the load.
    pub(crate) beside: SideRuns,
}

/// Flags for live output, and the ways to steer the run.
pub(crate) type Live<'a> = (&'a LiveArgs, &'a ControlSpec);

/// Carries out a plan on the backend that it asks for.
pub(crate) fn execute(
    mut plan: Plan,
    output: &OutputArgs,
    (live, control): Live<'_>,
    mut before: RunPreparation,
) -> Result<Outcome, Failure> {
    let backends = &Backends::from(backend::chosen(plan.backend)?);
    let probe = before.probe.map(|rate| plan.as_probe(rate)).transpose();
    let mut probe = probe.map_err(|error| Failure::usage(Problem::new(format!("--probe: {error}"))))?;
    let mut watched = live.watch.named()?;
    watched.extend(before.beside.watched.iter().cloned());
    let descriptors = watched.len() as u32 * DESCRIPTORS_PER_SERVER;
    let mut slow = before.slow.map(|slow| plan.as_slow_clients(slow.clients));
    let company = probe.iter().chain(&slow).map(|plan| plan.connections.max).sum::<u32>();
    let beside = company + descriptors;
    let fewer = fit_descriptors(&mut plan, beside).map_err(Failure::environment)?;
    let (statistics, log) = (
        Statistics::open(&plan, live, output.quiet),
        RequestLog::open(&plan, live, before.beside.listener.take()),
    );
    let (statistics, log) = (statistics?, log?);
    let mut addresses = resolve(&plan).map_err(failure)?;
    let stage = Stage::of(before.look, control, output.quiet, &statistics);
    let (spec, control) = (control, Control::default().watching(Watched::Machine(watched)));
    let is_watched = stage.is_there() || spec.listen.is_some() || spec.tells_intervals;
    let control = if is_watched { control.in_detail() } else { control };
    let is_traced = plan.steps.iter().any(|step| step.request.is_traced());
    let has_exemplars = is_traced && live.exports.serves_prometheus();
    let control = if has_exemplars { control.with_exemplars() } else { control };
    if spec.tells_intervals {
        // The thresholds are those of the whole load: the reader of the intervals judges them.
        plan.thresholds.iter_mut().for_each(|threshold| threshold.abort_on_fail = false);
    }
    let say = say(output.quiet);
    let current = CurrentControl::default();
    current.set(&control);
    fewer.iter().for_each(|note| say(&format!("note: {note}")));
    if !spec.tells_intervals {
        tell_lacking(&plan, &say);
    }
    let notice = say.clone();
    let speak = say.clone();
    let of_run = current.clone();
    let signals = SignalWatch::start(move || of_run.get(), move |text| speak(text))
        .map_err(|error| Failure::environment(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let mut view = View::start(
        &plan,
        &control,
        (live, spec),
        (stage, statistics),
        before.beside.faults.clone(),
        output.quiet,
        &say,
    )?;
    // Of a part of a load, the reader of the intervals asks.
    let mut queries = if spec.tells_intervals { None } else { Queries::begin(&plan)? };
    let mut first = Vec::new();
    if plan.preflight {
        first = preflight(&plan, backends, &mut addresses, &control)
            .map_err(|error| failure_under(error, &signals))?;
        tell_first(&first, &plan, &say);
    }
    let mut around = match &spec.handed {
        Some(values) => Around::handed(&mut plan, values, backends, &current, &say),
        None => Around::begin(&mut plan, backends, &control, &current, &say)
            .map_err(|error| failure_under(error, &signals))?,
    };
    probe.iter_mut().chain(&mut slow).for_each(|plan| around.give(plan));
    let wrk = wrk::Conversation::begin(&plan, &addresses)?;
    let context = with_setup(context(&plan, &first, &before, false), around.setup());
    let mut saver = before.keep(&plan, &context)?;
    let (beginning, mut told) = (before.beginning(&plan, &context), LiveRecord::new(plan.downsampler()));
    let periodic = before.beside.periodic;
    view.begin(&plan, &context, &control, periodic).map_err(|error| Failure::no_thread(&error))?;
    let teller = spec.tells_intervals.then(IntervalTeller::start).transpose();
    let teller = teller.map_err(|error| Failure::no_thread(&error))?;
    let mut ends = Ends::new(&say);
    if let Some(accompany) = before.beside.accompany.take() {
        accompany(&control);
    }
    let mut told_script_error = ScriptErrorNotice::new(&notice);
    let mut refusals = before.beside.ends_if_refused.then(Refusals::default);
    let mut is_known_to_join = false;
    let mut observe = |progress: Progress<'_>| {
        if !is_known_to_join
            && let Some(taken_over) = taken_over(&plan, &control)
            && let Some(saver) = &saver
        {
            is_known_to_join = true;
            let context = RunContext { taken_over: Some(taken_over), ..beginning.context.clone() };
            saver.amend(Beginning { context, ..beginning.clone() });
        }
        ends.note(&progress);
        told_script_error.tell(&control);
        if let Some(refusals) = &mut refusals {
            refusals.note(&progress, &control, &notice);
        }
        view.show(&progress);
        if queries.as_mut().is_some_and(|queries| queries.note(&progress)) {
            control.stop(Stop::Drain);
        }
        teller.iter().for_each(|teller| teller.note(&progress));
        told.note(progress.interval);
        if let Some(saver) = &mut saver {
            saver.note(&progress);
        }
    };
    // Slow clients read their data long after it arrived, so the kernel's receive times do not apply.
    let slowly = Backends::from(KernelBackend::Epoll(BackendOptions {
        receive_stamps: false,
        bytes_per_s: before.slow.map(|slow| slow.bytes_per_s),
    }));
    let company = probe.iter().map(|plan| BackgroundRun::new(plan, backends, &addresses));
    let company = company.chain(slow.iter().map(|plan| BackgroundRun::new(plan, &slowly, &addresses)));
    let record =
        run_accompanied(&plan, company.collect(), backends, &addresses, &control, log.handle(), &mut observe);
    let exporters = view.close();
    drop(teller);
    let lost = log.finish();
    let interrupted = signals.received();
    let torn_down = around.tear_down();
    let refreshes = around.take_refreshes();
    let (mut record, mut company) = match record {
        Ok(records) => records,
        Err(RunError::Unresponsive) => {
            let mut run = Box::new(told.into_run(beginning, Cut::Stuck));
            run.result.exports = exporters.finish(false, &notice);
            saver.into_iter().for_each(|saver| saver.cut(run.clone()));
            let failure = failure_under(RunError::Unresponsive, &signals);
            failure
                .problems
                .iter()
                .for_each(|problem| messages::tell(&format!("error: {}", problem.message)));
            return Ok(Outcome { run, exit: failure.exit, said: None, kept: None, evidence: None });
        }
        Err(error) => {
            saver.into_iter().for_each(RunSaver::abandon);
            return Err(failure_under(error, &signals));
        }
    };
    record.log.lose(lost.entries, lost.failed);
    told_script_error.tell(&control);
    let said = wrk.map(|wrk| wrk.end(control.leftovers(), &record));
    record.interrupted = interrupted;
    queries.into_iter().for_each(|queries| queries.finish(&mut record));
    let exports = exporters.finish(record.verdict.valid, &notice);
    let first = first.iter().flat_map(|contact| &contact.records);
    let once = around.setup().into_iter().chain(&torn_down);
    let unmeasured = sent_in_all(first.chain(&company), once, refreshes.as_ref());
    // In the order in which they were begun.
    let slow = before.slow.zip(slow).map(|(slow, plan)| (slow, u64::from(plan.connections.max)));
    let slow = slow.zip(if slow.is_some() { company.pop() } else { None });
    let context = RunContext {
        taken_over: taken_over(&plan, &control),
        refresh: refreshes.map(|refreshes| refreshes.result),
        teardown: torn_down.map(|done| done.result),
        probe: company.pop().map(Box::new),
        slow: slow.map(|((slow, clients), record)| SlowRecord {
            clients,
            bytes_per_s: slow.bytes_per_s,
            record: Box::new(record),
        }),
        ..context
    };
    let wanted = before.evidence.then(|| context.clone());
    let (mut result, exit) = conclude(&mut record, &plan, unmeasured, context, &before, &notice);
    result.exports = exports;
    let run = Box::new(SavedRun::new(&record, result, before.plan.clone()));
    let evidence = wanted.map(|context| {
        let context = RunContext { calibration: run.result.generator.calibration.clone(), ..context };
        Box::new(Evidence::new(record, context, plan.outline(), before.plan))
    });
    Ok(Outcome { run, exit, said, kept: saver, evidence })
}

impl RunPreparation {
    /// Begins to save a run, if it is to be saved.
    pub(crate) fn keep(&self, plan: &Plan, context: &RunContext) -> Result<Option<RunSaver>, Failure> {
        let Some(saving) = &self.saving else { return Ok(None) };
        saving.begin(self.beginning(plan, context), plan.downsampler()).map(Some)
    }

    /// Describes a run that begins now.
    fn beginning(&self, plan: &Plan, context: &RunContext) -> Beginning {
        Beginning {
            context: context.clone(),
            model: match plan.load {
                Load::Open { .. } => ModelKind::Open,
                Load::Closed => ModelKind::Closed,
            },
            started_unix_ns: clock::unix().0,
            warmup_ns: plan.warmup.0,
            steps: plan.outline().step_names(),
            plan: self.plan.clone(),
        }
    }
}

/// Reports the first error of a script as soon as it occurs, and only once.
struct ScriptErrorNotice {
    say: Notify,
    is_told: bool,
}

impl ScriptErrorNotice {
    fn new(say: &Notify) -> Self {
        Self { say: say.clone(), is_told: false }
    }

    fn tell(&mut self, control: &Control) {
        if let (Some(reason), false) = (control.script_error(), self.is_told) {
            self.is_told = true;
            (self.say)(&format!("warning: a script has failed: {reason}"));
        }
    }
}

/// Reports the first contacts to the user.
pub(crate) fn tell_first(first: &[FirstContact], plan: &Plan, say: &Notify) {
    let notes =
        first.iter().flat_map(|contact| contact.passed_over_note().into_iter().chain(contact.note(plan)));
    notes.for_each(|note| say(&format!("note: {note}")));
}

/// Tells the user of thresholds that the run is too short for.
pub(crate) fn tell_lacking(plan: &Plan, say: &Notify) {
    plan.lacking_samples().iter().for_each(|text| say(&format!("warning: {text}")));
}

/// Returns the context of a run, as known before it begins. `first` holds the results of the first contacts
/// with its targets.
pub(crate) fn context(
    plan: &Plan,
    first: &[FirstContact],
    before: &RunPreparation,
    repeated: bool,
) -> RunContext {
    RunContext {
        name: before.name.clone(),
        preflight: describe::preflight(first, plan),
        repeated,
        slices: before.slices,
        unmeasured: first
            .iter()
            .flat_map(|contact| &contact.records)
            .map(|one| sent_beside(&one.accounting))
            .sum(),
        ..context_of(plan, before.command_line.clone(), describe::host())
    }
}

/// Returns the context of a run of a plan on this machine, as the plan alone gives it.
pub(crate) fn context_of(plan: &Plan, args: Vec<String>, host: Host) -> RunContext {
    RunContext {
        tool_name: "plimsoll".to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: describe::run_id(clock::unix()),
        seed: plan.seed,
        shard: plan.shard_name(),
        args,
        plan_hash: plan.fingerprint().to_string(),
        load_checksum: load_checksum(plan).to_string(),
        targets: describe::targets(plan),
        model: describe::model(plan),
        host,
        trace_link: plan.trace_link.clone(),
        records: plan.records(),
        ..RunContext::default()
    }
}

/// The context of a run with this setup before it.
pub(crate) fn with_setup(context: RunContext, setup: Option<&DoneOnce>) -> RunContext {
    let Some(DoneOnce { result, sent }) = setup else { return context };
    let unmeasured = context.unmeasured + sent;
    RunContext { setup: Some(result.clone()), unmeasured, ..context }
}

/// The result of a run that is over, and how to end for it. `unmeasured` counts the requests before and
/// beside it.
pub(crate) fn conclude(
    record: &mut RunRecord,
    plan: &Plan,
    unmeasured: u64,
    mut context: RunContext,
    before: &RunPreparation,
    notice: &Notify,
) -> (RunResult, Exit) {
    record.accounting.unmeasured += unmeasured;
    match calibration::used(record, plan, before.calibration.as_ref(), &context.host) {
        Ok(used) => {
            record.verdict.warnings.extend(used.warning());
            context.calibration = Some(used);
        }
        Err(why) => {
            why.iter().for_each(|why| notice(&format!("note: {why}; run `plimsoll calibrate` again")));
        }
    }
    record.verdict.warnings.extend(context.refresh.as_ref().and_then(RefreshResult::warning));
    record.verdict.warnings.extend(context.teardown.as_ref().and_then(OnceResult::warning));
    let result = RunResult::new(record, context);
    let exit = exit_of(&result);
    (result, exit)
}

/// The failure of a run that may have been interrupted.
pub(crate) fn failure_under(error: RunError, signals: &SignalWatch) -> Failure {
    match signals.received() {
        Some(signal) => Failure { exit: Exit::Interrupted(signal), ..failure(error) },
        None => failure(error),
    }
}

pub(crate) fn failure(error: RunError) -> Failure {
    let problem = Problem::new(error.to_string());
    if matches!(error, RunError::Data(_) | RunError::Script(_)) {
        return Failure::usage(problem);
    }
    Failure::environment(match error.hint() {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    })
}

/// Returns how a run ends the process: by the signal that interrupted it, else by the cause of its outcome.
pub(crate) fn exit_of(result: &RunResult) -> Exit {
    match (result.run.interrupted_by_signal, result.verdict.cause) {
        (Some(signal), _) => Exit::Interrupted(signal),
        (None, Some(CauseResult::Inconsistent)) => Exit::Inconsistent,
        (None, Some(CauseResult::Script)) => Exit::Usage,
        (None, Some(CauseResult::Thresholds)) => Exit::Thresholds,
        (None, Some(CauseResult::NothingSucceeded | CauseResult::StoppedAnswering)) => Exit::NothingSucceeded,
        (None, Some(CauseResult::Invalid | CauseResult::NotShown)) => Exit::Invalid,
        (None, None) => Exit::Success,
    }
}

/// Writes the report to stdout, and the result to the files that were named.
pub(crate) fn write(outcome: &Outcome, outputs: &Outputs, style: &Style) -> Result<(), Failure> {
    outputs.write(style, &|format, style, out| render_saved(&outcome.run, format.into(), style, out))
}
