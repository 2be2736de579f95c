//! `plimsoll run`: from a plan to a report and an exit code.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::Rate;
use plimsoll_driver::{BackendOptions, Open, OpenEpoll, OpenUring, clock, limits, uring_available};
use plimsoll_engine::{
    BackgroundRun, Control, FirstContact, Progress, RunError, Watched, load_checksum, preflight, resolve,
    run_accompanied,
};
use plimsoll_metrics::{Accounting, RunRecord};
use plimsoll_monitor::{DESCRIPTORS_PER_SERVER, Named};
use plimsoll_plan::{BackendChoice, Load, Overload, Plan, PlanPatch, Problem, parse_size};
use plimsoll_report::result::{CauseResult, ModelKind};
use plimsoll_report::saved::{Beginning, Cut, LiveRecord};
use plimsoll_report::slow::SlowRecord;
use plimsoll_report::{CalibrationCell, RunContext, RunResult, SavedRun, Style, render_saved};
use plimsoll_schedule::parse_rate;

use crate::control_flags::ControlSpec;
use crate::exports::Exporters;
use crate::flags::{LiveArgs, OutputArgs, RunArgs};
use crate::outputs::Outputs;
use crate::progress::ProgressLine;
use crate::refusals::Refusals;
use crate::request_log::{RequestLog, WriteListener};
use crate::saving::{RunSaver, Saving};
use crate::screen::{Screen, ScreenHandle, Theme};
use crate::signals::SignalWatch;
use crate::stats::Statistics;
use crate::steering::{Notify, Steerers};
use crate::streams::Content;
use crate::watch_flags::Ends;
use crate::{Exit, Failure, calibrate, describe, environment, import, repeat, report, screen, streams, wrk};

/// Descriptors that a run needs beside its connections: standard streams, rings, files.
pub(crate) const SPARE_DESCRIPTORS: u64 = 64;
/// Spare descriptors of a run with two threads that watches, exports and saves nothing.
const FEWEST_SPARE_DESCRIPTORS: u64 = 32;

/// A run that has ended: its result, and how the process ends.
pub(crate) struct Outcome {
    /// Its result, and the histograms behind it.
    pub(crate) run: Box<SavedRun>,
    pub(crate) exit: Exit,
    /// Output of the script's `done`, or the failure that prevented it.
    said: Option<Result<String, Failure>>,
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

/// Callback that receives the handle of a run before that run begins.
pub(crate) type OnStart = Box<dyn FnOnce(&Control)>;

/// Activities of a workload's command beside its load.
#[derive(Default)]
pub(crate) struct SideRuns {
    /// Servers to be watched, beside those that flags name.
    pub(crate) watched: Vec<Named>,
    /// Called with the handle of the run, to begin something beside it.
    pub(crate) accompany: Option<OnStart>,
    /// Receiver of all requests that may have changed something.
    pub(crate) listener: Option<WriteListener>,
    /// `true` if the figures so far are printed every second, one line below the other.
    pub(crate) periodic: bool,
    /// `true` if the load ends once all of its first requests are refused.
    pub(crate) ends_if_refused: bool,
}

/// Flags for live output, and the ways to steer the run.
pub(crate) type Live<'a> = (&'a LiveArgs, &'a ControlSpec);

/// Extensions that the command of a workload adds to a run.
pub(crate) trait Workload {
    /// Adds flags of its own to those of the run.
    fn amend(&mut self, _: &mut PlanPatch) -> Result<(), Problem> {
        Ok(())
    }

    /// Prepares the load, with the plan that is about to be run.
    fn prepare(&mut self, _: &mut Plan) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the activities beside the load.
    fn beside(&mut self) -> SideRuns {
        SideRuns::default()
    }

    /// Finishes the workload after the load and before the result is written. Returns how the process ends
    /// for it.
    fn conclude(&mut self, _: &mut SavedRun) -> Result<Exit, Failure> {
        Ok(Exit::Success)
    }
}

/// No workload of a command: a run as it is asked for.
impl Workload for () {}

/// The command.
pub(crate) fn command(args: &RunArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    command_with(args, &mut (), look, style)
}

/// A run that can begin.
pub(crate) struct Ready {
    pub(crate) plan: Plan,
    pub(crate) live: LiveArgs,
    pub(crate) control: ControlSpec,
    pub(crate) before: RunPreparation,
}

/// Reads everything that a run needs, of the plan that flags name or that was `made` a moment ago.
pub(crate) fn ready(
    args: &RunArgs,
    made: Option<(String, String)>,
    workload: &mut impl Workload,
    look: Theme,
) -> Result<Ready, Failure> {
    let quiet = args.output.quiet;
    let resolved = match made {
        None => import::resolve_amended(&args.plan, quiet, |flags| workload.amend(flags)),
        Some(made) => import::resolve_made(&args.plan, made, quiet, |flags| workload.amend(flags)),
    };
    let patch = resolved.as_ref().ok().map(|resolved| &resolved.layered.patch);
    let (live, control) = (args.live.or(patch), args.control.or(patch).to_spec());
    let plan_file = patch.and_then(|patch| patch.document.clone());
    let saving = args.save.to_saving(args.output.quiet);
    let (mut plan, control, saving) = match (resolved, control, saving) {
        (Ok(resolved), Ok(control), Ok(saving)) => (resolved.plan, control, saving),
        (Err(mut failure), control, saving) => {
            // All problems at once.
            let more = [control.err(), saving.err()].into_iter().flatten();
            more.for_each(|more| more.iter().for_each(|problem| failure.problems.push(problem.clone())));
            return Err(failure);
        }
        (Ok(_), control, saving) => {
            let mut problems = control.err().unwrap_or_default();
            problems.extend(saving.err().unwrap_or_default());
            return Err(Failure::usage(problems));
        }
    };
    let command_line = describe::redacted(std::env::args(), &plan.redaction);
    workload.prepare(&mut plan)?;
    let own = match args.calibrate {
        true => Some(calibrate::of_plan(&args.plan, &plan, args.output.quiet)?),
        false => None,
    };
    let probe = args.probe.as_deref().map(|rate| probe_rate(rate, &plan, args.repeat)).transpose();
    let probe = probe.map_err(Failure::usage)?;
    let slow = SlowClients::of(args, &plan).map_err(Failure::usage)?;
    let of_plan = plan_file.as_deref().and_then(describe::plan_name);
    let name = args.save.name().map(str::to_owned).or(of_plan);
    let text = plan_file.map(|file| describe::without_secrets(&file.source, &plan.redaction));
    let before = RunPreparation {
        name,
        command_line,
        calibration: own,
        slices: args.slices,
        saving,
        plan: text,
        probe,
        slow,
        look: Some(look),
        report: args.report.clone(),
        beside: workload.beside(),
    };
    Ok(Ready { plan, live, control, before })
}

/// The same as the command of a workload.
pub(crate) fn command_with(
    args: &RunArgs,
    workload: &mut impl Workload,
    look: Theme,
    style: &Style,
) -> Result<Exit, Failure> {
    let Ready { plan, live, control, before } = ready(args, None, workload, look)?;
    if let Some(runs) = args.repeat {
        repeat::admit("--repeat", &plan, &live, &control).map_err(Failure::usage)?;
        if before.report.is_some() {
            report::admit(runs as usize).map_err(Failure::usage)?;
        }
        return repeat::command(plan, runs, &live, &args.output, &before, style);
    }
    let outputs = Outputs::of(&args.output)?;
    let mut outcome = execute(plan, &args.output, (&live, &control), before)?;
    let concluded = workload.conclude(&mut outcome.run);
    // What cannot be written to one place is all the more wanted in the other.
    let written = write(&outcome, &outputs, style);
    let Outcome { run, exit, said, kept } = outcome;
    let page = args.report.as_deref();
    let page = page.map_or(Ok(()), |file| {
        report::write_runs(vec![(String::new(), vec![(*run).clone()])], file, args.output.quiet)
    });
    let saved = kept.map_or(Ok(()), |saver| saver.finish(run));
    written?;
    let (said, undone) = match said.transpose() {
        Ok(said) => (said, Ok(Exit::Success)),
        Err(failure) => (None, Err(failure)),
    };
    match said {
        // Beside a report for programs, it would be in their way.
        Some(said) if !args.output.format().is_for_people() => {
            streams::to_stderr(&said);
        }
        Some(said) => to_stdout(|out| out.write_all(said.as_bytes()))?,
        None => {}
    }
    match saved.and(page).and(undone).and(concluded) {
        Ok(more) => Ok(repeat::worse(exit, more)),
        Err(failure) => Err(Failure { exit: repeat::worse(exit, failure.exit), ..failure }),
    }
}

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

/// Returns `true` if io_uring is to be used: it was asked for or the choice was left open, and it works.
///
/// # Errors
/// If it was asked for and does not work.
pub(crate) fn uses_uring(choice: BackendChoice) -> Result<bool, Failure> {
    match choice {
        BackendChoice::Epoll => Ok(false),
        BackendChoice::Auto => Ok(uring_available().is_ok()),
        BackendChoice::Uring => match uring_available() {
            Ok(()) => Ok(true),
            Err(reason) => Err(Failure::environment(
                Problem::new(format!("io_uring does not work here: {reason}"))
                    .with_hint("leave --backend away, or use --backend epoll"),
            )),
        },
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
    let control = if look.is_some() { control.in_detail() } else { control };
    let say = say(output.quiet);
    fewer.iter().for_each(|note| say(&format!("note: {note}")));
    let notice = say.clone();
    let speak = say.clone();
    let of_run = control.clone();
    let signals = SignalWatch::start(move || of_run.clone(), move |text| speak(text))
        .map_err(|error| Failure::environment(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let steerers = Steerers::start(spec, output.quiet, &plan, &control, &say, stage.as_ref())
        .map_err(Failure::environment)?;
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
        Some((look, stage)) => Some(Screen::open(stage, &plan, &control, look).map_err(|error| {
            Failure::environment(Problem::new(format!("cannot start a thread: {error}")))
        })?),
        None => None,
    };
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
        steerers.note(&progress);
        exporters.note(&progress);
        told.note(progress.interval);
        if let Some(saver) = &mut saver {
            saver.note(&progress);
        }
    };
    // What they have not read yet came long before: the kernel's times would not be theirs.
    let slowly = OpenEpoll(BackendOptions {
        receive_stamps: false,
        bytes_per_s: before.slow.map(|slow| slow.bytes_per_s),
    });
    let company = probe.iter().map(|plan| BackgroundRun::new(plan, open, &addresses));
    let company = company.chain(slow.iter().map(|plan| BackgroundRun::new(plan, &slowly, &addresses)));
    let record =
        run_accompanied(&plan, company.collect(), open, &addresses, &control, log.handle(), &mut observe);
    drop((line, screen, steerers));
    statistics.finish();
    let lost = log.finish();
    let (mut record, mut company) = match record {
        Ok(records) => records,
        Err(RunError::Unresponsive) => {
            let mut run = Box::new(told.into_run(beginning, Cut::Stuck));
            run.result.exports = exporters.finish(false, &notice);
            saver.into_iter().for_each(|saver| saver.cut(run.clone()));
            let failure = failure_under(RunError::Unresponsive, &signals);
            failure.problems.iter().for_each(|problem| screen::tell(&format!("error: {}", problem.message)));
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

/// Says what the user should know of the first contacts.
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

/// Clients that are slow on purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowClients {
    clients: u32,
    bytes_per_s: u64,
}

impl SlowClients {
    /// Default rate at which each client sends and reads, in bytes per second.
    const BYTES_PER_S: u64 = 100;

    /// Creates the slow clients that the flags ask for.
    ///
    /// # Errors
    /// If the rate is not a size above zero, or has no effect, or if the plan cannot have slow clients.
    fn of(args: &RunArgs, plan: &Plan) -> Result<Option<Self>, Problem> {
        let rate =
            args.slow_client_rate.as_deref().map(|text| match parse_size(text.trim_end_matches("/s")) {
                Ok(0) => Err("--slow-client-rate: nothing would ever be sent".to_owned()),
                rate => rate.map_err(|error| format!("--slow-client-rate: {error}")),
            });
        let rate = rate.transpose().map_err(|error| Problem::new(error).with_hint("as in 100 or 2KiB"))?;
        let Some(clients) = args.slow_clients else {
            return match rate {
                None => Ok(None),
                Some(_) => Err(Problem::new("--slow-client-rate has no effect without --slow-clients")
                    .with_hint("say how many with --slow-clients N, or leave it out")),
            };
        };
        admit_company("--slow-clients", plan, args.repeat)?;
        Ok(Some(Self { clients, bytes_per_s: rate.unwrap_or(Self::BYTES_PER_S) }))
    }
}

/// The rate of a probe.
///
/// # Errors
/// If it is none, or if the plan cannot have a probe.
fn probe_rate(rate: &str, plan: &Plan, repeat: Option<u32>) -> Result<Rate, Problem> {
    admit_company("--probe", plan, repeat)?;
    parse_rate(rate).map_err(|error| Problem::new(format!("--probe: {error}")))
}

/// Makes sure that a plan can be run in the company that a flag asks for.
fn admit_company(flag: &str, plan: &Plan, repeat: Option<u32>) -> Result<(), Problem> {
    let refused = |other: &str, why: &str, hint: String| {
        Err(Problem::new(format!("{flag} and {other} exclude each other: {why}")).with_hint(hint))
    };
    if !plan.feeds.is_empty() {
        return refused("data sources", "it would take rows of the load", format!("leave {flag} away"));
    }
    if plan.wrk.is_some() {
        return refused("--script", "the script has one beginning and one end", format!("leave {flag} away"));
    }
    if repeat.is_some() {
        let hint = format!("make single runs with {flag}");
        return refused("--repeat", "each run would need its own", hint);
    }
    Ok(())
}

/// The result of a run that is over, and how to end for it. `unmeasured` is what the requests before and
/// beside it came to.
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
    match calibrate::used(record, plan, before.calibration.as_ref(), &context.host) {
        Ok(used) => {
            record.verdict.warnings.extend(calibrate::warning(&used));
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

/// Says something on stderr, unless nobody wants to hear it: see [`screen::tell`].
pub(crate) fn say(quiet: bool) -> Notify {
    Arc::new(move |text| {
        if !quiet {
            screen::tell(text);
        }
    })
}

/// Makes sure that there is a descriptor for every connection, and for those `beside` the plan's; where their
/// number was left to us, takes fewer, and gives a note of that.
pub(crate) fn fit_descriptors(plan: &mut Plan, beside: u32) -> Result<Option<String>, Problem> {
    let needed = u64::from(plan.connections.max) + SPARE_DESCRIPTORS + u64::from(beside);
    let Err(limit) = limits::raise_descriptors(needed) else { return Ok(None) };
    let left = |spare: u64| limit.hard.saturating_sub(spare + u64::from(beside));
    let fewest = u64::from(plan.connections.initial);
    // The usual spare is generous, and so may be too much where there are few.
    let possible = [SPARE_DESCRIPTORS, FEWEST_SPARE_DESCRIPTORS].map(left);
    let grows = matches!(plan.load, Load::Open { overload: Overload::Grow, .. });
    if grows && let Some(possible) = possible.into_iter().find(|possible| *possible >= fewest.max(1)) {
        // Bounded by `possible`, so this cannot fail for want of a higher limit.
        let _ = limits::raise_descriptors(limit.hard);
        let asked = plan.connections.max;
        plan.connections.max = u32::try_from(possible).unwrap_or(u32::MAX).min(asked);
        return Ok(Some(format!(
            "at most {} connections instead of {asked}: this process may open {} file descriptors (ulimit -Hn)",
            plan.connections.max, limit.hard
        )));
    }
    let raise = format!("raise the hard limit (ulimit -Hn {needed}, as root)");
    let [_, possible] = possible;
    Err(Problem::new(format!(
        "{} connections need {needed} file descriptors, but this process may open {} at most",
        plan.connections.max, limit.hard
    ))
    .with_hint(if possible > 0 { format!("{raise}, or use -c {possible}") } else { raise }))
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
fn exit_of(result: &RunResult) -> Exit {
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

/// Writes text to stdout. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    content_to_stdout(Content::Text, write)
}

/// The same for bytes that may be no text.
pub(crate) fn content_to_stdout(
    content: Content,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    match streams::to_stdout(content, write) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::environment(Problem::new(format!("cannot write to stdout: {error}"))))
        }
        _ => Ok(()),
    }
}
