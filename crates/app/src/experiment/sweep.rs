//! `plimsoll find --sweep`: a run at each level of a setting, and the law of scalability that fits.

use plimsoll_core::Nanos;
use plimsoll_document::{Files, Problem};
use plimsoll_metrics::{Objective, RunRecord};
use plimsoll_plan::{Disk, Load, Plan};
use plimsoll_report::evidence::Course;
use plimsoll_report::level_sweep::{LevelSweep, SweepSettings};
use plimsoll_report::trial_run::{TrialCounts, TrialRun};
use plimsoll_report::{Searched, Style};

use crate::args::control::ControlSpec;
use crate::args::find::{FindArgs, SweepSpec, SweptSetting};
use crate::args::fleet::FleetSpec;
use crate::args::watch::WatchArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages;
use crate::experiment::search::{Begun, Found, KeptTrials};
use crate::experiment::trials::{FleetTrials, Trials};
use crate::experiment::{campaign, fleet_run};
use crate::session::fleet::parcel::{Parcel, RecordedFiles};
use crate::session::request::PlanRequest;
use crate::session::search::objectives;
use crate::session::searched::Destinations;
use crate::session::{backend, describe, search};

pub(crate) fn command(
    args: &FindArgs,
    spec: &SweepSpec,
    fleet: Option<FleetSpec>,
    style: &Style,
) -> Result<Exit, Failure> {
    let recorded = RecordedFiles::default();
    let files: &dyn Files = if fleet.is_some() { &recorded } else { &Disk };
    let (mut levels, mut sent): (Vec<Level>, _) = (Vec::new(), None);
    for text in &spec.levels {
        let resolved = PlanRequest::named(&args.plan, args.output.quiet || !levels.is_empty()).resolve_from(
            files,
            |flags| {
                args.amend(flags)?;
                spec.setting.set(text, flags);
                Ok(())
            },
        )?;
        let mut patch = resolved.layered.patch;
        let level = Level::here(text.clone(), resolved.plan);
        levels.push(Level { arguments: spec.setting.take(&mut patch).into_iter().collect(), ..level });
        sent.get_or_insert(patch);
    }
    let name = sent.as_ref().and_then(|patch| describe::plan_name(patch.document.as_deref()?));
    let text = sent.as_ref().zip(levels.first()).and_then(|(patch, level)| {
        Some(patch.document.as_ref()?.source().without_secrets(&level.plan.redaction))
    });
    let is_rate = spec.setting == SweptSetting::Rate;
    if levels.first().is_some_and(|level| is_rate != matches!(level.plan.load, Load::Open { .. })) {
        let hint = "leave out the plan's rate, or use --sweep rate=…";
        let problem = Problem::new("--sweep: the plan has a rate of its own");
        return Err(Failure::usage(problem.with_hint(hint)));
    }
    let fleet = match (fleet, levels.first(), sent) {
        (Some(fleet), Some(Level { plan, .. }), Some(mut patch)) => {
            fleet_run::admit_search(args, &fleet, plan).map_err(Failure::usage)?;
            let threads = patch.threads.is_some().then_some(plan.threads);
            // A lead-in of levels is an argument of each.
            patch.warmup.take_if(|_| plan.warmup == Nanos::ZERO);
            let parcel = Parcel::new(&patch, &recorded, &ControlSpec::default()).map_err(Failure::usage)?;
            Some(SweptFleet { fleet, parcel, threads })
        }
        _ => None,
    };
    let destinations = Destinations::of(&args.output, args.report.as_deref(), &args.save)?;
    let destinations = destinations.proving(&args.evidence)?;
    let sweep = Sweep {
        setting: spec.setting.name(),
        is_scaling: true,
        watch: &args.watch,
        quiet: args.output.quiet,
        destinations: destinations.or_named(name),
        text,
    };
    sweep.write(levels, fleet, style)
}

/// One level of a sweep.
pub(crate) struct Level {
    /// The setting as it was written.
    text: String,
    plan: Plan,
    /// Arguments that make the plan of an agent that of this level.
    arguments: Vec<String>,
}

impl Level {
    /// A level that this process carries out.
    pub(crate) const fn here(text: String, plan: Plan) -> Self {
        Self { text, plan, arguments: Vec::new() }
    }

    /// The level as it is carried out: with a lead-in where it has none.
    fn with_lead_in(self) -> Result<Self, Failure> {
        let Self { text, plan, mut arguments } = self;
        let (plan, more) = search::level_plan(plan).map_err(Failure::usage)?;
        arguments.extend(more);
        Ok(Self { text, plan, arguments })
    }
}

/// The agents that carry out the levels of a sweep.
pub(crate) struct SweptFleet {
    fleet: FleetSpec,
    /// The plan of all levels, without the setting.
    parcel: Parcel,
    /// Threads of each agent, if that was said.
    threads: Option<u32>,
}

/// A setting whose levels are tried.
pub(crate) struct Sweep<'a> {
    /// Name of the setting in results.
    pub(crate) setting: &'a str,
    /// `true` if the work is the same at all levels, so that a law of scalability may fit.
    pub(crate) is_scaling: bool,
    /// Flags that name the servers to watch beside the runs.
    pub(crate) watch: &'a WatchArgs,
    /// Nothing but results and errors is written.
    pub(crate) quiet: bool,
    /// Where the result goes.
    pub(crate) destinations: Destinations,
    /// The text of the plan file, without its secrets.
    pub(crate) text: Option<String>,
}

impl Sweep<'_> {
    /// Carries out all levels and writes the result. Their targets are those of the first.
    pub(crate) fn write(
        &self,
        levels: Vec<Level>,
        fleet: Option<SweptFleet>,
        style: &Style,
    ) -> Result<Exit, Failure> {
        let Some(first) = levels.first().map(|level| level.plan.clone()) else {
            return Err(Failure::usage(Problem::new("--sweep: there are no levels")));
        };
        let objectives = match first.thresholds.is_empty() {
            true => Vec::new(),
            false => objectives(&first).map_err(Failure::usage)?,
        };
        let levels = levels.into_iter().map(Level::with_lead_in);
        let mut levels: Vec<Level> = levels.collect::<Result<_, Failure>>()?;
        let found = if let Some(SweptFleet { fleet, parcel, threads }) = fleet {
            let mut trials = FleetTrials::begin(fleet, &first, parcel, threads, self.quiet)?;
            let swept = sweep(&first, &levels, &mut trials, objectives, self);
            trials.end();
            swept?
        } else {
            for level in &mut levels {
                // A descriptor for each connection.
                backend::fit_descriptors(&mut level.plan, 0).map_err(Failure::environment)?;
            }
            let mut trials = campaign::watching(self.watch, &mut first.clone(), self.quiet)?;
            levels.iter_mut().for_each(|level| trials.give(&mut level.plan));
            sweep(&first, &levels, &mut trials, objectives, self)?
        };
        let exit = found.exit();
        self.destinations.write(found.result, found.evidence, style)?;
        Ok(exit)
    }
}

/// Carries out all levels, or as many as there are until a signal comes. `first` is the plan of the first.
fn sweep(
    first: &Plan,
    plans: &[Level],
    trials: &mut impl Trials,
    objectives: Vec<Objective>,
    by: &Sweep<'_>,
) -> Result<Found, Failure> {
    let begun = Begun::now();
    let known = begun.circumstances(first);
    let mut kept = by.destinations.wants_evidence().then(|| KeptTrials::new(by.text.clone()));
    let unit = first.end.duration.unwrap_or_default();
    let settings = SweepSettings { setting: by.setting.to_owned(), is_scaling: by.is_scaling, unit };
    let mut sweep = LevelSweep::new(settings, objectives);
    for Level { text, plan, arguments } in plans {
        let at = begun.passed();
        let Some((run, counts)) = carry_out(trials, plan, arguments, sweep.objectives())? else { break };
        sweep.note(text, &run, &counts, &plan.records());
        if let Some(kept) = &mut kept {
            kept.keep(at, text, (plan, &known), &run, counts)?;
        }
        if sweep.is_spoiled() {
            messages::say(by.quiet)(
                "this generator could not apply three levels in a row: the rest is not tried",
            );
            break;
        }
    }
    let (ended, interrupted) = (begun.passed(), trials.interrupted());
    let stopped = interrupted.is_some();
    let evidence = kept.map(|kept| {
        let settings = sweep.settings().clone();
        kept.of(Course::Sweep { settings, begun: begun.at, ended, stopped }, sweep.objectives())
    });
    let result = Searched::Sweep(sweep.result(known, describe::tool(), ended, stopped));
    Ok(Found { result, evidence, interrupted })
}

/// Returns `true` if a run reached an end that its plan has: the duration or the number of iterations.
fn is_whole(plan: &Plan, record: &RunRecord) -> bool {
    plan.end.duration.is_some_and(|length| record.duration >= length)
        || plan.end.iterations.is_some_and(|count| record.iterations.started >= count)
}

/// Carries out one level; `None` if a signal came before its end.
fn carry_out(
    trials: &mut impl Trials,
    plan: &Plan,
    arguments: &[String],
    objectives: &[Objective],
) -> Result<Option<(TrialRun, TrialCounts)>, Failure> {
    let mut counts = TrialCounts::new(objectives.len());
    let run = trials.carry_out(plan, arguments, &mut |progress| {
        counts.note(progress.interval, objectives);
        true
    });
    // A level that a signal cut short is not evidence, whether it has a record or an error. The signal may
    // also have come after the level was over.
    if trials.interrupted().is_some() && !run.as_ref().is_ok_and(|run| is_whole(plan, &run.record)) {
        return Ok(None);
    }
    Ok(Some((run?, counts)))
}
