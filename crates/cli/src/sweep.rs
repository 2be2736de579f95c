//! `plimsoll find --sweep`: a run at each level of a setting, and the law of scalability that fits.

use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, Open, OpenEpoll, OpenUring, clock};
use plimsoll_metrics::{LimitedBy, Objective, RunRecord};
use plimsoll_plan::{Load, Plan, Problem, Problems};
use plimsoll_report::capacity::SearchResult;
use plimsoll_report::result::Tool;
use plimsoll_report::sweep::{SweepLevel, SweepResult, UslResult};
use plimsoll_report::{SWEEP_SCHEMA_VERSION, Style, TableFormat, TrialFigures, render_sweep, rfc3339};
use plimsoll_statistics::{Finding, Search, Settings, SliceCount, usl};

use crate::campaign::Campaign;
use crate::find::{finding_name, objectives, was_applied};
use crate::find_flags::{FindArgs, SweepSpec, SweptSetting};
use crate::{Exit, Failure, describe, import, outputs, run};

/// Lead-in of a level, where the plan has none.
const LEAD: Nanos = Nanos::from_secs(1);
/// Users are more than at the level before from this factor on...
const MORE_USERS: f64 = 1.5;
/// ...and the rate is the same up to this one: free users would bring it to the other.
const SAME_RATE: f64 = 1.1;
/// Confidence of decisions and intervals.
const CONFIDENCE: f64 = 0.95;

/// The command.
pub(crate) fn command(args: &FindArgs, spec: &SweepSpec, style: &Style) -> Result<Exit, Failure> {
    let mut plans = Vec::new();
    let mut problems = Problems::default();
    for level in &spec.levels {
        let resolved =
            import::resolve_amended(&args.plan, args.output.quiet || !plans.is_empty(), |flags| {
                args.amend(flags)?;
                spec.setting.set(level, flags);
                Ok(())
            })?;
        plans.push((level.clone(), resolved.plan));
    }
    let is_rate = spec.setting == SweptSetting::Rate;
    let Some((_, first)) = plans.first() else { return Err(Failure::usage(problems)) };
    if is_rate != matches!(first.load, Load::Open { .. }) {
        let hint = "leave the plan's rate away, or use --sweep rate=…";
        problems.push(Problem::new("--sweep: the plan has a rate of its own").with_hint(hint));
        return Err(Failure::usage(problems));
    }
    let objectives = match first.thresholds.is_empty() {
        true => Vec::new(),
        false => objectives(first).map_err(Failure::usage)?,
    };
    let json = outputs::json_file(args.output.json.as_ref())?;
    let (quiet, options) = (args.output.quiet, BackendOptions::default());
    let (result, interrupted) = if run::uses_uring(first.backend)? {
        sweep(plans, &OpenUring(options), &objectives, spec, quiet)?
    } else {
        sweep(plans, &OpenEpoll(options), &objectives, spec, quiet)?
    };
    outputs::write_table(
        json.as_ref(),
        |out| render_sweep(&result, args.output.output.into(), style, out),
        |out| render_sweep(&result, TableFormat::Json, style, out),
    )?;
    Ok(interrupted.map_or(Exit::Success, Exit::Interrupted))
}

/// Carries out all levels, or as many as there are until a signal comes.
fn sweep<O: Open + Clone + 'static>(
    plans: Vec<(String, Plan)>,
    open: &O,
    objectives: &[Objective],
    spec: &SweepSpec,
    quiet: bool,
) -> Result<(SweepResult, Option<i32>), Failure> {
    let (started, started_at) = (clock::monotonic(), rfc3339(clock::unix()));
    let mut levels = Vec::new();
    let mut points = Vec::new();
    let mut interrupted = None;
    let first = plans.first().map(|(_, plan)| plan.clone());
    for (number, (text, mut plan)) in plans.into_iter().enumerate() {
        plan.preflight &= number == 0;
        if plan.warmup == Nanos::ZERO && plan.users.is_none() && plan.phases.is_empty() {
            plan = lead_in(plan)?;
        }
        let (level, record) = carry_out(plan, open, objectives, &text, quiet)?;
        if let Err(signal) = record {
            interrupted = Some(signal);
            break;
        }
        if level.finding.as_deref() != Some(finding_name(Finding::NotApplied))
            && level.figures.in_flight >= 1.0
        {
            points.push(usl::Level {
                concurrency: level.figures.in_flight,
                throughput: level.figures.achieved_per_s,
            });
        }
        levels.push(level);
    }
    name_the_target(&mut levels);
    let fit = usl::fit(&points, CONFIDENCE, first.as_ref().map_or(0, |plan| plan.seed));
    let (usl, usl_missing) = match fit {
        Ok(fit) => (Some(law(&fit)), None),
        Err(why) => (None, Some(why.to_string())),
    };
    let sweep = SearchResult {
        id: format!("{:x}", clock::unix().0),
        seed: first.as_ref().map_or(0, |plan| plan.seed),
        started_at,
        duration_s: (clock::monotonic() - started).as_secs_f64(),
        args: describe::redacted(std::env::args()),
        plan_hash: first.as_ref().map(|plan| plan.fingerprint().to_string()).unwrap_or_default(),
        host: describe::host(),
        load: first
            .as_ref()
            .and_then(|plan| describe::model(plan).description.first().cloned())
            .unwrap_or_default(),
        slo: objectives.iter().map(|objective| objective.spec.to_string()).collect(),
        confidence: CONFIDENCE,
        precision: 0.0,
        trial_s: first.and_then(|plan| plan.end.duration).unwrap_or_default().as_secs_f64(),
    };
    let tool = Tool { name: "plimsoll".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let setting = spec.setting.name().to_owned();
    let result =
        SweepResult { schema_version: SWEEP_SCHEMA_VERSION, tool, sweep, setting, levels, usl, usl_missing };
    Ok((result, interrupted))
}

/// One run of the closed model may not tell whether more users would get more. Next to one with fewer users
/// it does: where the rate no longer rises with them, it is the target's.
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

/// The same with time to open connections and to fill caches in front.
fn lead_in(plan: Plan) -> Result<Plan, Failure> {
    let Load::Open { profile, .. } = &plan.load else { return Ok(Plan { warmup: LEAD, ..plan }) };
    let [stage] = profile.stages() else { return Ok(plan) };
    let (rate, length) = (stage.to, stage.duration);
    let led = plan.at_rate(&[(rate, LEAD)], rate, length, length);
    let led = led.map_err(|error| Failure::usage(Problem::new(error.to_string())))?;
    Ok(Plan { preflight: plan.preflight, ..led })
}

/// Carries out one level. `Err` in the place of the record: the signal that ended it.
fn carry_out<O: Open + Clone + 'static>(
    mut plan: Plan,
    open: &O,
    objectives: &[Objective],
    text: &str,
    quiet: bool,
) -> Result<(SweepLevel, Result<RunRecord, i32>), Failure> {
    plan.thresholds = Vec::new();
    let campaign = Campaign::begin(&mut plan, open, quiet)?;
    let mut counts: Vec<Vec<SliceCount>> = vec![Vec::new(); objectives.len()];
    let record = campaign.run(&plan, &mut |progress| {
        let interval = progress.interval;
        for (counts, objective) in counts.iter_mut().zip(objectives).filter(|_| !interval.warmup) {
            counts.push(objective.portion(&interval.steps));
        }
        true
    })?;
    let limits = objectives.iter().map(|objective| objective.limit).collect();
    let search = Search::new(Settings { confidence: CONFIDENCE, ..Settings::new(1.0, limits) });
    let finding = match was_applied(&record) {
        false => Some(Finding::NotApplied),
        true => (!objectives.is_empty()).then(|| search.finding(&counts)),
    };
    let level = SweepLevel {
        value: text.parse().unwrap_or_else(|_| record.target_per_second.unwrap_or_default()),
        figures: TrialFigures::new(&record),
        finding: finding.map(|finding| finding_name(finding).to_owned()),
    };
    let record = match campaign.interrupted() {
        Some(signal) => Err(signal),
        None => Ok(record),
    };
    Ok((level, record))
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
