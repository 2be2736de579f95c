//! `plimsoll run`: from a plan to a report and an exit code.

mod company;
pub(crate) mod observers;
pub(crate) mod phases;

use std::path::PathBuf;

use plimsoll_core::Rate;
use plimsoll_document::Problem;
use plimsoll_engine::{FirstContact, RunError, load_checksum};
use plimsoll_metrics::RunRecord;
use plimsoll_plan::{Load, Plan};
use plimsoll_report::context::{OnceResult, RefreshResult};
use plimsoll_report::evidence::Evidence;
use plimsoll_report::result::{CauseResult, ModelKind};
use plimsoll_report::saved::Beginning;
use plimsoll_report::{CalibrationCell, Host, RunContext, RunResult, SavedRun, Style, render_saved};
use plimsoll_system::clock;

use crate::args::control::ControlSpec;
use crate::args::live::LiveArgs;
use crate::args::save::Saving;
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages::Notify;
use crate::base::signals::SignalWatch;
use crate::session::background::{Background, SlowClients};
use crate::session::done_once::{DoneOnce, sent_beside};
use crate::session::outputs::Outputs;
use crate::session::saving::RunSaver;
use crate::session::{calibration, describe};

/// A run that has ended: its result, and how the process ends.
pub(crate) struct Outcome {
    /// Result of the run, and the histograms behind it.
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
    pub(crate) background: Background,
}

/// Flags for live output, and the ways to steer the run.
pub(crate) type Live<'a> = (&'a LiveArgs, &'a ControlSpec);

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
