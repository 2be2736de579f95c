//! `plimsoll run`: from a plan to a report and an exit code.

use std::path::PathBuf;

use plimsoll_core::{Rate, Shard};
use plimsoll_driver::{BackendOptions, Open, OpenEpoll, OpenUring, clock};
use plimsoll_engine::{
    BackgroundRun, Control, FirstContact, Progress, RunError, Watched, load_checksum, preflight, resolve,
    run_accompanied,
};
use plimsoll_metrics::{Accounting, RunRecord};
use plimsoll_monitor::DESCRIPTORS_PER_SERVER;
use plimsoll_plan::{Load, Plan, Problem};
use plimsoll_report::result::{CauseResult, ModelKind};
use plimsoll_report::saved::{Beginning, Cut, LiveRecord};
use plimsoll_report::slow::SlowRecord;
use plimsoll_report::{CalibrationCell, RunContext, RunResult, SavedRun, Style, render_saved};

use crate::args::control::ControlSpec;
use crate::args::live::LiveArgs;
use crate::args::output::OutputArgs;
use crate::args::save::Saving;
use crate::base::color::Theme;
use crate::base::environment;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages::{self, Notify, say};
use crate::base::signals::SignalWatch;
use crate::session::backend::{fit_descriptors, uses_uring};
use crate::session::control::steering::Steerers;
use crate::session::live::exports::Exporters;
use crate::session::live::growing_result::GrowingResult;
use crate::session::live::progress::ProgressLine;
use crate::session::live::request_log::RequestLog;
use crate::session::live::screen::{self, Screen, ScreenHandle};
use crate::session::live::stats::Statistics;
use crate::session::live::watched_ends::Ends;
use crate::session::outputs::Outputs;
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
    /// Where the run is saved, if it is.
    pub(crate) saving: Option<Saving>,
    /// The text of the plan file, credentials aside.
    pub(crate) plan: Option<String>,
    /// Iterations per second of a probe beside the load, if there is to be one.
    pub(crate) probe: Option<Rate>,
    /// Clients that are slow on purpose, beside the load.
    pub(crate) slow: Option<SlowClients>,
    /// Theme of the live screen; `None` if there is none.
    pub(crate) look: Option<Theme>,
    /// The file of the page of HTML, if one is wanted.
    pub(crate) report: Option<PathBuf>,
    /// Everything that goes on beside the load.
    pub(crate) beside: SideRuns,
}

/// Flags for live output, and the ways to steer the run.
pub(crate) type Live<'a> = (&'a LiveArgs, &'a ControlSpec);

/// Carries out a plan on the backend that it asks for.
pub(crate) fn execute(
    plan: Plan,
    output: &OutputArgs,
    live: Live<'_>,
    before: RunPreparation,
) -> Result<Outcome, Failure> {
    let options = BackendOptions::default();
    if uses_uring(plan.backend)? {
        execute_on(plan, &OpenUring(options), output, live, before)
    } else {
        execute_on(plan, &OpenEpoll(options), output, live, before)
    }
}

fn execute_on<O: Open + Clone + 'static>(
    mut plan: Plan,
    open: &O,
    output: &OutputArgs,
    (live, control): Live<'_>,
    mut before: RunPreparation,
) -> Result<Outcome, Failure> {
    let probe = before.probe.map(|rate| plan.as_probe(rate)).transpose();
    let probe = probe.map_err(|error| Failure::usage(Problem::new(format!("--probe: {error}"))))?;
    let mut watched = live.watch.named()?;
    watched.extend(before.beside.watched.iter().cloned());
    let descriptors = watched.len() as u32 * DESCRIPTORS_PER_SERVER;
    let slow = before.slow.map(|slow| plan.as_slow_clients(slow.clients));
    let company = probe.iter().chain(&slow).map(|plan| plan.connections.max).sum::<u32>();
    let beside = company + descriptors;
    let fewer = fit_descriptors(&mut plan, beside).map_err(Failure::environment)?;
    let (statistics, log) = (
        Statistics::open(&plan, live, output.quiet),
        RequestLog::open(&plan, live, before.beside.listener.take()),
    );
    let (mut statistics, log) = (statistics?, log?);
    let addresses = resolve(&plan).map_err(failure)?;
    let shows = control.keys && control.screen && !output.quiet && !statistics.is_on_stderr();
    let look = before.look.filter(|_| shows && screen::is_possible());
    let stage = look.map(|_| ScreenHandle::default());
    let (spec, control) = (control, Control::default().watching(Watched::Machine(watched)));
    let is_watched = look.is_some() || spec.listen.is_some();
    let control = if is_watched { control.in_detail() } else { control };
    let growing = GrowingResult::default();
    let say = say(output.quiet);
    fewer.iter().for_each(|note| say(&format!("note: {note}")));
    let notice = say.clone();
    let speak = say.clone();
    let of_run = control.clone();
    let signals = SignalWatch::start(move || of_run.clone(), move |text| speak(text))
        .map_err(|error| Failure::environment(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let shown = (stage.as_ref(), &growing);
    let steerers =
        Steerers::start(spec, output.quiet, &plan, &control, &say, shown).map_err(Failure::environment)?;
    let exports = live.exports.to_spec(&environment::otlp()).map_err(Failure::usage)?;
    let exporters = Exporters::start(&exports, &plan, &say).map_err(Failure::environment)?;
    let mut first = Vec::new();
    if plan.preflight {
        first =
            preflight(&plan, open, &addresses, &control).map_err(|error| failure_under(error, &signals))?;
        tell_first(&first, &plan, &say);
    }
    let wrk = wrk::Conversation::begin(&plan, &addresses)?;
    let context = context(&plan, &first, &before, false);
    let mut saver = before.keep(&plan, &context)?;
    let (beginning, mut told) = (before.beginning(&plan, &context), LiveRecord::new(plan.downsampler()));
    let periodic = before.beside.periodic;
    let screen = match look.filter(|_| !periodic).zip(stage.as_ref()) {
        Some((look, stage)) => {
            Some(Screen::open(stage, &plan, &control, look).map_err(|error| no_thread(&error))?)
        }
        None => None,
    };
    let feed = spec.listen.map(|_| growing.begin(&plan, &context)).transpose();
    let feed = feed.map_err(|error| no_thread(&error))?;
    let silent = output.quiet || statistics.is_on_stderr() || screen.is_some();
    let mut line = if periodic { ProgressLine::lines() } else { ProgressLine::new(silent) };
    let mut ends = Ends::new(&say);
    if let Some(accompany) = before.beside.accompany.take() {
        accompany(&control);
    }
    let mut told_script_error = ScriptErrorNotice::new(&notice);
    let mut refusals = before.beside.ends_if_refused.then(Refusals::default);
    let mut observe = |progress: Progress<'_>| {
        ends.note(&progress);
        told_script_error.tell(&control);
        if let Some(refusals) = &mut refusals {
            refusals.note(&progress, &control, &notice);
        }
        statistics.add(&progress);
        line.show(&progress);
        screen.iter().for_each(|screen| screen.show(&progress));
        feed.iter().for_each(|feed| feed.note(&progress));
        steerers.note(&progress);
        exporters.note(&progress);
        told.note(progress.interval);
        if let Some(saver) = &mut saver {
            saver.note(&progress);
        }
    };
    // Slow clients read their data long after it arrived, so the kernel's receive times do not apply.
    let slowly = OpenEpoll(BackendOptions {
        receive_stamps: false,
        bytes_per_s: before.slow.map(|slow| slow.bytes_per_s),
    });
    let company = probe.iter().map(|plan| BackgroundRun::new(plan, open, &addresses));
    let company = company.chain(slow.iter().map(|plan| BackgroundRun::new(plan, &slowly, &addresses)));
    let record =
        run_accompanied(&plan, company.collect(), open, &addresses, &control, log.handle(), &mut observe);
    drop((line, screen, feed, steerers));
    statistics.finish();
    let lost = log.finish();
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
            return Ok(Outcome { run, exit: failure.exit, said: None, kept: None });
        }
        Err(error) => {
            saver.into_iter().for_each(RunSaver::abandon);
            return Err(failure_under(error, &signals));
        }
    };
    record.log.lose(lost.entries, lost.failed);
    told_script_error.tell(&control);
    let said = wrk.map(|wrk| wrk.end(control.leftovers(), &record));
    record.interrupted = signals.received();
    let exports = exporters.finish(record.verdict.valid, &notice);
    let first = first.iter().flat_map(|contact| &contact.records);
    let unmeasured: Vec<Accounting> = first.chain(&company).map(|record| record.accounting).collect();
    // In the order in which they were begun.
    let slow = before.slow.zip(slow).map(|(slow, plan)| (slow, u64::from(plan.connections.max)));
    let slow = slow.zip(if slow.is_some() { company.pop() } else { None });
    let context = RunContext {
        probe: company.pop().map(Box::new),
        slow: slow.map(|((slow, clients), record)| SlowRecord {
            clients,
            bytes_per_s: slow.bytes_per_s,
            record: Box::new(record),
        }),
        ..context
    };
    let (mut result, exit) = conclude(&mut record, &plan, &unmeasured, context, &before, &notice);
    result.exports = exports;
    let run = Box::new(SavedRun::new(&record, result, before.plan.clone()));
    Ok(Outcome { run, exit, said, kept: saver })
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

/// Tells of the first error of a script as soon as there is one, and not again.
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
    first.iter().filter_map(|contact| contact.note(plan)).for_each(|note| say(&format!("note: {note}")));
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
        tool_name: "plimsoll".to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: before.name.clone(),
        run_id: describe::run_id(clock::unix()),
        seed: plan.seed,
        shard: (plan.shard != Shard::WHOLE).then(|| format!("{}/{}", plan.shard.index + 1, plan.shard.of)),
        args: before.command_line.clone(),
        plan_hash: plan.fingerprint().to_string(),
        load_checksum: load_checksum(plan).to_string(),
        targets: describe::targets(plan),
        model: describe::model(plan),
        host: describe::host(),
        preflight: first.first().and_then(|first| describe::preflight(first, plan)),
        calibration: None,
        repeated,
        slices: before.slices,
        records: plan.records(),
        probe: None,
        slow: None,
    }
}

/// The result of a run that is over, and how to end for it. `unmeasured` counts the requests before and
/// beside it.
pub(crate) fn conclude(
    record: &mut RunRecord,
    plan: &Plan,
    unmeasured: &[Accounting],
    mut context: RunContext,
    before: &RunPreparation,
    notice: &Notify,
) -> (RunResult, Exit) {
    for Accounting { started, undelivered, redirects_followed, polls, unmeasured, .. } in unmeasured {
        record.accounting.unmeasured += started - undelivered + redirects_followed + polls + unmeasured;
    }
    match calibration::used(record, plan, before.calibration.as_ref(), &context.host) {
        Ok(used) => {
            record.verdict.warnings.extend(calibration::warning(&used));
            context.calibration = Some(used);
        }
        Err(why) => {
            why.iter().for_each(|why| notice(&format!("note: {why}; run `plimsoll calibrate` again")));
        }
    }
    let result = RunResult::new(record, context);
    let exit = exit_of(&result);
    (result, exit)
}

fn no_thread(error: &std::io::Error) -> Failure {
    Failure::environment(Problem::new(format!("cannot start a thread: {error}")))
}

/// The failure of a run that may have been interrupted.
fn failure_under(error: RunError, signals: &SignalWatch) -> Failure {
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
        (None, Some(CauseResult::NothingSucceeded)) => Exit::NothingSucceeded,
        (None, Some(CauseResult::Invalid)) => Exit::Invalid,
        (None, None) => Exit::Success,
    }
}

/// Writes the report to stdout, and the result to the files that were named.
pub(crate) fn write(outcome: &Outcome, outputs: &Outputs, style: &Style) -> Result<(), Failure> {
    outputs.write(style, &|format, style, out| render_saved(&outcome.run, format.into(), style, out))
}
