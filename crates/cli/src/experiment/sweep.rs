//! `plimsoll find --sweep`: a run at each level of a setting, and the law of scalability that fits.

use std::path::{Path, PathBuf};

use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, Open, OpenEpoll, OpenUring};
use plimsoll_metrics::{LimitedBy, Objective, RunRecord};
use plimsoll_plan::{Load, Plan, Problem};
use plimsoll_report::html::render_sweep_page;
use plimsoll_report::records::RecordsResult;
use plimsoll_report::sweep::{StreamLevel, SweepLevel, SweepResult, UslResult};
use plimsoll_report::{SWEEP_SCHEMA_VERSION, Style, TableFormat, TrialFigures, render_sweep};
use plimsoll_statistics::{Finding, Search, Settings, SliceCount, usl};

use crate::args::find::{FindArgs, SweepSpec, SweptSetting};
use crate::args::watch::WatchArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::files::{self, EndFile};
use crate::base::messages;
use crate::experiment::campaign::{self, Campaign};
use crate::experiment::search::{Begun, finding_name, objectives, was_applied};
use crate::session::request::PlanRequest;
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

pub(crate) fn command(args: &FindArgs, spec: &SweepSpec, style: &Style) -> Result<Exit, Failure> {
    let mut plans = Vec::new();
    for level in &spec.levels {
        let resolved = PlanRequest::named(&args.plan, args.output.quiet || !plans.is_empty())
            .resolve_amended(|flags| {
                args.amend(flags)?;
                spec.setting.set(level, flags);
                Ok(())
            })?;
        plans.push((level.clone(), resolved.plan));
    }
    let is_rate = spec.setting == SweptSetting::Rate;
    if plans.first().is_some_and(|(_, plan)| is_rate != matches!(plan.load, Load::Open { .. })) {
        let hint = "leave out the plan's rate, or use --sweep rate=…";
        let problem = Problem::new("--sweep: the plan has a rate of its own");
        return Err(Failure::usage(problem.with_hint(hint)));
    }
    let sweep = Sweep {
        setting: spec.setting.name(),
        is_scaling: true,
        watch: &args.watch,
        quiet: args.output.quiet,
        html: args.html(),
    };
    sweep.write(plans, args.output.output.into(), args.output.json.as_ref(), style)
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
    /// File of a page with charts.
    pub(crate) html: Option<&'a Path>,
}

impl Sweep<'_> {
    /// Carries out a plan for each level and writes the result. Their targets are those of the first.
    pub(crate) fn write(
        &self,
        plans: Vec<(String, Plan)>,
        format: TableFormat,
        json: Option<&PathBuf>,
        style: &Style,
    ) -> Result<Exit, Failure> {
        let Some(first) = plans.first().map(|(_, plan)| plan.clone()) else {
            return Err(Failure::usage(Problem::new("--sweep: there are no levels")));
        };
        let objectives = match first.thresholds.is_empty() {
            true => Vec::new(),
            false => objectives(&first).map_err(Failure::usage)?,
        };
        let json = files::json_file(json)?;
        let html = self.html.map(|path| EndFile::new("--html", path)).transpose()?;
        let options = BackendOptions::default();
        let (result, interrupted) = if backend::uses_uring(first.backend)? {
            sweep(&first, plans, &OpenUring(options), &objectives, self)?
        } else {
            sweep(&first, plans, &OpenEpoll(options), &objectives, self)?
        };
        if let Some(file) = &html {
            let mut page = Vec::new();
            render_sweep_page(&result, &mut page).map_err(|error| {
                Failure::environment(Problem::new(format!("cannot make the page: {error}")))
            })?;
            file.write(&page).map_err(Failure::environment)?;
        }
        files::write_table(
            json.as_ref(),
            |out| render_sweep(&result, format, style, out),
            |out| render_sweep(&result, TableFormat::Json, style, out),
        )?;
        Ok(interrupted.map_or(Exit::Success, Exit::Interrupted))
    }
}

/// Carries out all levels, or as many as there are until a signal comes. `first` is the plan of the first.
fn sweep<O: Open + Clone + 'static>(
    first: &Plan,
    plans: Vec<(String, Plan)>,
    open: &O,
    objectives: &[Objective],
    by: &Sweep<'_>,
) -> Result<(SweepResult, Option<i32>), Failure> {
    let begun = Begun::now();
    let mut levels = Vec::new();
    let mut points = Vec::new();
    let plans = plans.into_iter().map(|(text, plan)| Ok((text, of_level(plan)?)));
    let plans: Vec<(String, Plan)> = plans.collect::<Result<_, Failure>>()?;
    let campaign = campaign::watching(by.watch, &mut first.clone(), open, by.quiet)?;
    let mut spoiled = 0;
    for (text, plan) in plans {
        let Some(level) = carry_out(&campaign, &plan, objectives, &text)? else { break };
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
    Ok((result, campaign.interrupted()))
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

/// The plan of a level as it is carried out: with time to open connections and to fill caches in front where
/// it has none, and with a descriptor for each connection.
fn of_level(plan: Plan) -> Result<Plan, Failure> {
    let bare = plan.warmup == Nanos::ZERO && plan.users.is_none() && plan.phases.is_empty();
    let mut plan = if bare { lead_in(plan)? } else { plan };
    plan.thresholds = Vec::new();
    backend::fit_descriptors(&mut plan, 0).map_err(Failure::environment)?;
    Ok(plan)
}

fn lead_in(plan: Plan) -> Result<Plan, Failure> {
    let Load::Open { profile, .. } = &plan.load else { return Ok(Plan { warmup: LEAD, ..plan }) };
    let [stage] = profile.stages() else { return Ok(plan) };
    let (rate, length) = (stage.to, stage.duration);
    let led = plan.at_rate(&[(rate, LEAD)], rate, length, length);
    led.map_err(|error| Failure::usage(Problem::new(error.to_string())))
}

/// Returns `true` if a run reached an end that its plan has: the duration or the number of iterations.
fn is_whole(plan: &Plan, record: &RunRecord) -> bool {
    plan.end.duration.is_some_and(|length| record.duration >= length)
        || plan.end.iterations.is_some_and(|count| record.iterations.started >= count)
}

/// Carries out one level; `None` if a signal came before its end.
fn carry_out<O: Open + Clone + 'static>(
    campaign: &Campaign<'_, O>,
    plan: &Plan,
    objectives: &[Objective],
    text: &str,
) -> Result<Option<SweepLevel>, Failure> {
    let mut counts: Vec<Vec<SliceCount>> = vec![Vec::new(); objectives.len()];
    let record = campaign.run(plan, &mut |progress| {
        let interval = progress.interval;
        for (counts, objective) in counts.iter_mut().zip(objectives).filter(|_| !interval.warmup) {
            counts.push(objective.portion(&interval.steps));
        }
        true
    });
    // A level that a signal cut short is not evidence, whether it has a record or an error. The signal may
    // also have come after the level was over.
    if campaign.interrupted().is_some() && !record.as_ref().is_ok_and(|record| is_whole(plan, record)) {
        return Ok(None);
    }
    let record = record?;
    let limits = objectives.iter().map(|objective| objective.limit).collect();
    let search = Search::new(Settings { confidence: CONFIDENCE, ..Settings::new(1.0, limits) });
    let finding = match was_applied(&record, objectives) {
        false => Some(Finding::NotApplied),
        true => (!objectives.is_empty()).then(|| search.finding(&counts)),
    };
    Ok(Some(SweepLevel {
        value: text.parse().unwrap_or_else(|_| record.target_per_second.unwrap_or_default()),
        figures: TrialFigures::new(&record),
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
