//! `plimsoll run`: one run, or several of the same plan.

use plimsoll_document::{Files, Problem, Problems};
use plimsoll_plan::{Disk, Plan, PlanPatch, PlanSource, StartTime};
use plimsoll_report::{SavedRun, Style};
use plimsoll_system::clock;

use crate::args::control::ControlSpec;
use crate::args::fleet::FleetSpec;
use crate::args::live::LiveArgs;
use crate::args::run::RunArgs;
use crate::base::color::Theme;
use crate::base::exit::{self, Exit};
use crate::base::failure::Failure;
use crate::base::messages;
use crate::base::stdout::to_stdout;
use crate::base::streams;
use crate::experiment::repeat::{self, Rounds};
use crate::experiment::{calibrate, fleet_run};
use crate::session::background::{Background, SlowClients, probe_rate};
use crate::session::evidence::EvidenceFile;
use crate::session::fleet::conduct;
use crate::session::fleet::parcel::{Parcel, RecordedFiles};
use crate::session::outputs::Outputs;
use crate::session::request::PlanRequest;
use crate::session::run::{Outcome, RunPreparation, phases, write};
use crate::session::{describe, page};

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

    /// Returns why agents of a fleet cannot carry the load out, if they cannot.
    fn obstacle(&self) -> Option<&'static str> {
        None
    }

    /// Returns the activities beside the load.
    fn background(&mut self) -> Background {
        Background::default()
    }

    /// Finishes the workload after the load and before the result is written. Returns how the process ends
    /// for it.
    fn conclude(&mut self, _: &mut SavedRun) -> Result<Exit, Failure> {
        Ok(Exit::Success)
    }
}

/// No workload of a command: a run as it is asked for.
impl Workload for () {}

/// A run that is asked for: a plan, the flags above it and beside it.
#[derive(Clone, Debug)]
pub(crate) struct RunRequest<'a> {
    pub(crate) args: &'a RunArgs,
    /// The plan that was made; without one, the flags name the plan.
    pub(crate) made: Option<PlanSource>,
    /// `true` if a fleet carries it out, though no flag names its broker.
    on_fleet: bool,
}

impl<'a> RunRequest<'a> {
    /// A run of the plan that a command line names.
    pub(crate) const fn named(args: &'a RunArgs) -> Self {
        Self { args, made: None, on_fleet: false }
    }

    /// A run of the plan that a command line names, on a fleet: that of the usual broker, where none is
    /// named.
    pub(crate) const fn on_fleet(args: &'a RunArgs) -> Self {
        Self { args, made: None, on_fleet: true }
    }

    /// A run of a plan that was made, and is in no file that the flags name.
    pub(crate) fn made(args: &'a RunArgs, plan: impl Into<PlanSource>) -> Self {
        Self { args, made: Some(plan.into()), on_fleet: false }
    }

    /// Returns the request for the plan of the run, without notes if it is quiet.
    pub(crate) fn plan(&self, quiet: bool) -> PlanRequest<'a> {
        PlanRequest { args: &self.args.plan, made: self.made.clone(), quiet, is_shown: false }
    }
}

/// The command.
pub(crate) fn command(args: &RunArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    carry_out(&RunRequest::named(args), &mut (), look, style)
}

/// A run that can begin.
pub(crate) struct Ready {
    pub(crate) plan: Plan,
    pub(crate) live: LiveArgs,
    pub(crate) control: ControlSpec,
    pub(crate) before: RunPreparation,
    /// The plan and files for the agents; `None` if this process carries the run out.
    pub(crate) fleet: Option<FleetRun>,
}

/// A run on a fleet.
pub(crate) struct FleetRun {
    spec: FleetSpec,
    parcel: Parcel,
    /// Threads of each agent, if that was said.
    threads: Option<u32>,
}

/// Reads everything that a run needs.
///
/// # Errors
/// All problems with it.
pub(crate) fn ready(
    request: &RunRequest<'_>,
    workload: &mut impl Workload,
    look: Theme,
) -> Result<Ready, Failure> {
    let args = request.args;
    let fleet = if request.on_fleet { args.fleet.or_usual() } else { args.fleet.clone() };
    let fleet = fleet.to_spec().map_err(Failure::usage)?;
    let recorded = RecordedFiles::default();
    let files: &dyn Files = if fleet.is_some() { &recorded } else { &Disk };
    let limits = args.agent.to_limits().map_err(Failure::usage)?;
    if let Some(limits) = &limits {
        fleet_run::admit_arguments(limits, args).map_err(Failure::usage)?;
    }
    let resolved = request.plan(args.output.quiet).resolve_from(files, |flags| {
        flags.is_set_up_elsewhere = args.agent.is_set_up();
        if let Some(limits) = &limits {
            fleet_run::confine(limits, flags);
        }
        workload.amend(flags)
    });
    let patch = resolved.as_ref().ok().map(|resolved| &resolved.layered.patch);
    let (live, control) = (args.live.or(patch), args.control.to_spec(patch));
    let plan_file = patch.and_then(|patch| patch.document.clone());
    let sent = patch.cloned().unwrap_or_default();
    let saving = args.save.to_saving(args.output.quiet);
    let (mut plan, mut control, saving) = match (resolved, control, saving) {
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
    plan = args.agent.amend(plan).map_err(Failure::usage)?;
    control.handed = args.agent.to_handed_values().map_err(Failure::usage)?;
    let most = limits.map(|limits| fleet_run::within_limits(&limits, &plan)).transpose();
    let most = most.map_err(Failure::usage)?.flatten();
    if let Some(most) = most {
        let told = control.max_rate.filter(|told| told.per_second_f64() < most.per_second_f64());
        control.max_rate = Some(told.unwrap_or(most));
    }
    let command_line = describe::redacted(std::env::args(), &plan.redaction);
    if let Some(spec) = &fleet {
        fleet_run::admit(args, &plan, &live, workload.obstacle(), spec).map_err(Failure::usage)?;
    }
    workload.prepare(&mut plan)?;
    let own = match args.calibrate {
        true => Some(calibrate::of_plan(&request.plan(true), &plan, args.output.quiet)?),
        false => None,
    };
    let probe = args.probe.as_deref().map(|rate| probe_rate(rate, &plan, args.repeat)).transpose();
    let probe = probe.map_err(Failure::usage)?;
    let slow = SlowClients::of(args, &plan).map_err(Failure::usage)?;
    let of_plan = plan_file.as_deref().and_then(describe::plan_name);
    let name = args.save.name().map(str::to_owned).or(of_plan);
    let text = plan_file.map(|file| file.source().without_secrets(&plan.redaction));
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
        evidence: args.evidence.evidence.is_some(),
        report: args.report.clone(),
        background: workload.background(),
    };
    if plan.start == StartTime::OnCommand && control.listen.is_none() {
        let problem = Problem::new("--start-at command waits for a control port, and there is none");
        return Err(Failure::usage(problem.with_hint("add --control 127.0.0.1:0, or name an instant")));
    }
    let fleet = fleet.map(|spec| -> Result<FleetRun, Problems> {
        let threads = sent.threads.is_some().then_some(plan.threads);
        Ok(FleetRun { spec, parcel: Parcel::new(&sent, &recorded, &control)?, threads })
    });
    let fleet = fleet.transpose().map_err(Failure::usage)?;
    Ok(Ready { plan, live, control, before, fleet })
}

/// Carries a run out, and writes its result.
///
/// # Errors
/// The run cannot be carried out, or a result could not be written.
pub(crate) fn carry_out(
    request: &RunRequest<'_>,
    workload: &mut impl Workload,
    look: Theme,
    style: &Style,
) -> Result<Exit, Failure> {
    let args = request.args;
    let evidence_file = (args.evidence.evidence.as_deref())
        .map(|file| EvidenceFile::new(file, args.evidence.evidence_key.as_deref()))
        .transpose()?;
    page::admit_file(args.report.as_deref())?;
    let Ready { plan, live, control, mut before, fleet } = ready(request, workload, look)?;
    if let Some(runs) = args.repeat {
        before.saving.iter_mut().for_each(|saving| saving.name_series(&describe::run_id(clock::unix())));
        if evidence_file.is_some() {
            let problem = Problem::new("--repeat and --evidence exclude each other: evidence is of one run");
            return Err(Failure::usage(problem.with_hint("leave out one of them")));
        }
        repeat::admit("--repeat", &plan, &live, Some(&control)).map_err(Failure::usage)?;
        if before.report.is_some() {
            page::admit(runs as usize).map_err(Failure::usage)?;
        }
        let rounds = Rounds { runs, pause: args.pause.unwrap_or_default() };
        return repeat::command(plan, rounds, &live, &args.output, &before, style);
    }
    let outputs = Outputs::of(&args.output)?;
    let mut outcome = match fleet {
        Some(FleetRun { spec, parcel, threads }) => {
            conduct::run_on_fleet(&plan, parcel, spec, &args.output, (&live, &control), threads, &before)?
        }
        None => phases::carry_out(plan, &args.output, (&live, &control), before)?,
    };
    let concluded = workload.conclude(&mut outcome.run);
    // If one output cannot be written, the others are needed all the more, so every output is attempted. The
    // report comes last, since its last line is the outcome.
    let page = args.report.as_deref().map_or(Ok(()), |file| {
        page::write_runs(vec![(String::new(), vec![(*outcome.run).clone()])], file, args.output.quiet)
    });
    let proven = match (&evidence_file, outcome.evidence.take()) {
        (Some(file), Some(evidence)) => evidence
            .of_result(&outcome.run.result)
            .map_err(|error| Problem::new(format!("cannot write evidence: {error}")))
            .and_then(|evidence| file.write(evidence))
            .map(|said| messages::say(args.output.quiet)(&said))
            .map_err(Failure::environment),
        (Some(_), None) => {
            let message = "no evidence was written: the run did not come to its end";
            Err(Failure::environment(Problem::new(message)))
        }
        (None, _) => Ok(()),
    };
    let kept = outcome.kept.take();
    let saved = kept.map_or(Ok(()), |saver| saver.finish(outcome.run.clone()));
    write(&outcome, &outputs, style)?;
    let Outcome { exit, said, .. } = outcome;
    let (said, undone) = match said.transpose() {
        Ok(said) => (said, Ok(Exit::Success)),
        Err(failure) => (None, Err(failure)),
    };
    match said {
        // It would get in the way of a report for programs.
        Some(said) if !args.output.format().is_for_people() => {
            streams::to_stderr(&said);
        }
        Some(said) => to_stdout(|out| out.write_all(said.as_bytes()))?,
        None => {}
    }
    match saved.and(page).and(proven).and(undone).and(concluded) {
        Ok(more) => Ok(exit::worse(exit, more)),
        Err(failure) => Err(Failure { exit: exit::worse(exit, failure.exit), ..failure }),
    }
}
