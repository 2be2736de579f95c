//! `plimsoll find --sweep`: a run at each level of a setting, and the law of scalability that fits.

use plimsoll_core::Nanos;
use plimsoll_metrics::{LimitedBy, Objective, RunRecord};
use plimsoll_plan::{Disk, Files, Load, Plan, Problem, TrialLoad};
use plimsoll_report::records::RecordsResult;
use plimsoll_report::sweep::{StreamLevel, SweepLevel, SweepResult, UslResult};
use plimsoll_report::{SWEEP_SCHEMA_VERSION, Searched, Style};
use plimsoll_statistics::{Finding, Search, Settings, SliceCount, usl};

use crate::args::control::ControlSpec;
use crate::args::find::{FindArgs, SweepSpec, SweptSetting};
use crate::args::fleet::FleetSpec;
use crate::args::watch::WatchArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages;
use crate::experiment::search::{Begun, finding_name, objectives};
use crate::experiment::trials::{FleetTrials, TrialRun, Trials};
use crate::experiment::{campaign, fleet_run};
use crate::session::fleet::parcel::{Parcel, RecordedFiles};
use crate::session::request::PlanRequest;
use crate::session::searched::Destinations;
use crate::session::{backend, describe};

/// Lead-in of a level, where the plan has none.
const LEAD: Nanos = Nanos::from_secs(1);
/// Users are more than at the level before from this factor on...
const MORE_USERS: f64 = 1.5;
/// ...and the rate is the same up to this one: free users would bring it to the other.
const SAME_RATE: f64 = 1.1;
/// Levels in a row that the generator could not apply, after which the others are left out.
const ACCIDENTS: u32 = 3;
/// Confidence of decisions and intervals.
const CONFIDENCE: f64 = 0.95;

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
    let sweep = Sweep {
        setting: spec.setting.name(),
        is_scaling: true,
        watch: &args.watch,
        quiet: args.output.quiet,
        destinations: destinations.or_named(name),
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

    /// The level as it is carried out: with time to open connections and to fill caches in front where it has
    /// none.
    fn with_lead_in(self) -> Result<Self, Failure> {
        let Self { text, mut plan, mut arguments } = self;
        plan.thresholds = Vec::new();
        if plan.warmup > Nanos::ZERO || plan.users.is_some() || !plan.phases.is_empty() {
            return Ok(Self { text, plan, arguments });
        }
        let stages = match &plan.load {
            Load::Closed => {
                arguments.push(format!("--warmup={}ms", LEAD.0 / 1_000_000));
                return Ok(Self { text, plan: Plan { warmup: LEAD, ..plan }, arguments });
            }
            Load::Open { profile, .. } => profile.stages(),
        };
        let [stage] = stages else { return Ok(Self { text, plan, arguments }) };
        let (rate, duration) = (stage.to.per_second_f64(), stage.duration);
        let load = TrialLoad {
            lead: vec![(rate, LEAD)],
            rate,
            duration,
            unit: duration,
            connections: None,
            drain: plan.drain,
        };
        let usage = |error: String| Failure::usage(Problem::new(error));
        arguments.push(load.argument().map_err(|error| usage(error.to_string()))?);
        let plan = plan.as_trial(&load).map_err(|error| usage(error.to_string()))?;
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
    /// Its name in results.
    pub(crate) setting: &'a str,
    /// `true` if the work is the same at all levels, so that a law of scalability may fit.
    pub(crate) is_scaling: bool,
    /// Flags that name the servers to watch beside the runs.
    pub(crate) watch: &'a WatchArgs,
    /// Nothing but results and errors is written.
    pub(crate) quiet: bool,
    /// Where the result goes.
    pub(crate) destinations: Destinations,
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
        let (result, interrupted) = if let Some(SweptFleet { fleet, parcel, threads }) = fleet {
            let mut trials = FleetTrials::begin(fleet, &first, parcel, threads, self.quiet)?;
            let swept = sweep(&first, &levels, &mut trials, &objectives, self);
            trials.end();
            swept?
        } else {
            for level in &mut levels {
                // A descriptor for each connection.
                backend::fit_descriptors(&mut level.plan, 0).map_err(Failure::environment)?;
            }
            let mut trials = campaign::watching(self.watch, &mut first.clone(), self.quiet)?;
            levels.iter_mut().for_each(|level| trials.give(&mut level.plan));
            sweep(&first, &levels, &mut trials, &objectives, self)?
        };
        self.destinations.write(Searched::Sweep(result), style)?;
        Ok(interrupted.map_or(Exit::Success, Exit::Interrupted))
    }
}

/// Carries out all levels, or as many as there are until a signal comes. `first` is the plan of the first.
fn sweep(
    first: &Plan,
    plans: &[Level],
    trials: &mut impl Trials,
    objectives: &[Objective],
    by: &Sweep<'_>,
) -> Result<(SweepResult, Option<i32>), Failure> {
    let begun = Begun::now();
    let mut levels = Vec::new();
    let mut points = Vec::new();
    let mut spoiled = 0;
    for level in plans {
        let Some(level) = carry_out(trials, level, objectives)? else { break };
        let is_spoiled = level.finding.as_deref() == Some(finding_name(Finding::NotApplied));
        spoiled = if is_spoiled { spoiled + 1 } else { 0 };
        if !is_spoiled && level.figures.in_flight > 0.0 {
            points.push(usl::Level {
                concurrency: level.figures.in_flight,
                throughput: level.figures.achieved_per_s,
            });
        }
        levels.push(level);
        if spoiled == ACCIDENTS {
            messages::say(by.quiet)(
                "this generator could not apply three levels in a row: the rest is not tried",
            );
            break;
        }
    }
    name_the_target(&mut levels);
    let (usl, usl_missing) = match by.is_scaling.then(|| usl::fit(&points, CONFIDENCE, first.seed)) {
        None => (None, None),
        Some(Ok(fit)) => (Some(law(&fit)), None),
        Some(Err(why)) => (None, Some(why.to_string())),
    };
    let trial = first.end.duration.unwrap_or_default();
    let result = SweepResult {
        schema_version: SWEEP_SCHEMA_VERSION,
        tool: describe::tool(),
        sweep: begun.result(first, objectives, CONFIDENCE, 0.0, trial),
        setting: by.setting.to_owned(),
        levels,
        usl,
        usl_missing,
    };
    Ok((result, trials.interrupted()))
}

/// Attributes the limit to the target where a single run of the closed model cannot: compared with a level
/// of fewer users, a rate that no longer rises is limited by the target.
fn name_the_target(levels: &mut [SweepLevel]) {
    let undecided = |level: &SweepLevel| {
        let of_users = [LimitedBy::ConnectionLimit.name(), LimitedBy::Unknown.name()];
        of_users.contains(&level.figures.limited_by.as_str())
    };
    for at in 1..levels.len() {
        let (before, level) = (&levels[at - 1], &levels[at]);
        let more =
            level.figures.in_flight >= before.figures.in_flight * MORE_USERS && level.value > before.value;
        if more
            && level.figures.achieved_per_s <= before.figures.achieved_per_s * SAME_RATE
            && undecided(level)
        {
            levels[at].figures.limited_by = LimitedBy::Target.name().to_owned();
        }
    }
}

/// Returns `true` if a run reached an end that its plan has: the duration or the number of iterations.
fn is_whole(plan: &Plan, record: &RunRecord) -> bool {
    plan.end.duration.is_some_and(|length| record.duration >= length)
        || plan.end.iterations.is_some_and(|count| record.iterations.started >= count)
}

/// Carries out one level; `None` if a signal came before its end.
fn carry_out(
    trials: &mut impl Trials,
    level: &Level,
    objectives: &[Objective],
) -> Result<Option<SweepLevel>, Failure> {
    let Level { text, plan, arguments } = level;
    let mut counts: Vec<Vec<SliceCount>> = vec![Vec::new(); objectives.len()];
    let run = trials.carry_out(plan, arguments, &mut |progress| {
        let interval = progress.interval;
        for (counts, objective) in counts.iter_mut().zip(objectives).filter(|_| !interval.warmup) {
            counts.push(objective.portion(&interval.steps));
        }
        true
    });
    // A level that a signal cut short is not evidence, whether it has a record or an error. The signal may
    // also have come after the level was over.
    if trials.interrupted().is_some() && !run.as_ref().is_ok_and(|run| is_whole(plan, &run.record)) {
        return Ok(None);
    }
    let TrialRun { record, applied, figures } = run?;
    let limits = objectives.iter().map(|objective| objective.limit).collect();
    let search = Search::new(Settings { confidence: CONFIDENCE, ..Settings::new(1.0, limits) });
    let finding = match applied.is_whole(objectives) {
        false => Some(Finding::NotApplied),
        true => (!objectives.is_empty()).then(|| search.finding(&counts)),
    };
    Ok(Some(SweepLevel {
        value: text.parse().unwrap_or_else(|_| record.target_per_second.unwrap_or_default()),
        figures,
        records_per_s: RecordsResult::new(&record, &plan.records())
            .and_then(|records| records.acknowledged_per_s),
        event_streams: StreamLevel::new(&record),
        finding: finding.map(|finding| finding_name(finding).to_owned()),
    }))
}

fn law(fit: &usl::UslFit) -> UslResult {
    let usl::UslFit { law, peak, peak_low, peak_high, error, extrapolated } = *fit;
    let concurrency = |peak: Option<usl::Peak>| peak.map(|peak| peak.concurrency);
    let throughput = |peak: Option<usl::Peak>| peak.map(|peak| peak.throughput);
    UslResult {
        lambda_per_s: law.lambda,
        alpha: law.alpha,
        beta: law.beta,
        peak_concurrency: concurrency(peak),
        peak_concurrency_low: concurrency(peak_low),
        peak_concurrency_high: concurrency(peak_high),
        peak_per_s: throughput(peak),
        peak_per_s_low: throughput(peak_low),
        peak_per_s_high: throughput(peak_high),
        confidence: CONFIDENCE,
        error,
        extrapolated,
    }
}
