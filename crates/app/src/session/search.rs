//! What a search or a sweep makes of a plan: its objectives, its settings, and the loads of its trials.

use plimsoll_core::{Nanos, figure};
use plimsoll_document::{Problem, Problems};
use plimsoll_metrics::threshold::Metric;
use plimsoll_metrics::{Objective, Threshold, ThresholdSpec};
use plimsoll_plan::{Load, Overload, Plan, TrialLoad};
use plimsoll_report::capacity_search::CapacitySettings;
use plimsoll_schedule::ProfileError;
use plimsoll_statistics::Trial;

use crate::args::find::SearchSpec;
use crate::session::describe;

/// Objective for errors that is added if the plan has none.
const ERRORS: &str = "error_rate<1%";
/// Shortest lead-in of a trial: time to open further connections and to fill caches.
const SHORTEST_LEAD: Nanos = Nanos::from_secs(1);
/// Longest wait for owed responses after a trial: the rest of an overload is not worth more.
const LONGEST_DRAIN: Nanos = Nanos::from_secs(2);
/// Limit of the connections, as a multiple of those that Little's law asks for within the SLO. With more, a
/// server that is overloaded would only have longer queues.
const SPARE_CONNECTIONS: f64 = 4.0;
/// Lead-in of a level of a sweep, where the plan has none.
const LEVEL_LEAD: Nanos = Nanos::from_secs(1);
/// Slices of a level of a sweep: as many as the interval of a share uses.
const LEVEL_SLICES: u64 = 20;
/// No slice of a level is shorter, in milliseconds: the shortest that `--interval` takes.
const SHORTEST_SLICE_MS: u64 = 100;
/// Connections that are always allowed.
const FEWEST_CONNECTIONS: u32 = 64;

/// Returns the objectives for the server, from the thresholds of the plan.
pub(crate) fn objectives(plan: &Plan) -> Result<Vec<Objective>, Problems> {
    let mut problems = Problems::default();
    if plan.thresholds.is_empty() {
        let hint = "give one, such as --slo 'p99<10ms'";
        problems.push(Problem::new("there is nothing to search for: no --slo is given").with_hint(hint));
        return Err(problems);
    }
    let outline = plan.outline();
    let mut objectives = Vec::new();
    let errors = Threshold::parse(ERRORS).map(ThresholdSpec::new).ok();
    let about_errors = |spec: &ThresholdSpec| spec.threshold.metric == Metric::ErrorRate;
    let added = errors.filter(|_| !plan.thresholds.iter().any(about_errors));
    for spec in plan.thresholds.iter().chain(&added) {
        match Objective::new(spec, &outline) {
            Ok(objective) => {
                if objective.time_limit().is_some_and(|limit| limit >= plan.timeout.0) {
                    let message = format!("a request times out before it could break {spec}");
                    problems.push(Problem::new(message).with_hint("give --timeout a longer time"));
                }
                objectives.push(objective);
            }
            Err(hint) => {
                let message = format!("{spec} cannot be searched for");
                problems.push(Problem::new(message).with_hint(hint));
            }
        }
    }
    if problems.is_empty() { Ok(objectives) } else { Err(problems) }
}

/// Length of the shortest trial of a search.
pub(crate) fn shortest_trial(plan: &Plan) -> Nanos {
    plan.end.duration.unwrap_or(SHORTEST_LEAD)
}

/// Settings of a search whose first trial has this plan.
pub(crate) fn settings(plan: &Plan, spec: &SearchSpec) -> CapacitySettings {
    let unit = shortest_trial(plan);
    let lead = if plan.warmup > Nanos::ZERO { plan.warmup } else { Nanos(unit.0 / 5).max(SHORTEST_LEAD) };
    CapacitySettings {
        from: spec.from,
        to: spec.to.is_finite().then_some(spec.to),
        at_least: spec.at_least,
        precision: spec.precision,
        max_time: spec.max_time,
        unit,
        lead,
        requests_per_iteration: plan.requests_per_arrival(),
    }
}

/// Load of a trial of a search.
pub(crate) fn load(trial: &Trial, settings: &CapacitySettings, objectives: &[Objective]) -> TrialLoad {
    let CapacitySettings { unit, lead, .. } = *settings;
    let scaled = |length: Nanos| Nanos(length.0.saturating_mul(u64::from(trial.scale)));
    let before = trial.after.map(|before| (before, scaled(unit)));
    let longest = objectives.iter().filter_map(Objective::time_limit).max();
    let connections = longest.map(|longest| {
        let most = trial.rate.max(trial.after.unwrap_or(0.0));
        let needed = most * longest as f64 / 1e9 * SPARE_CONNECTIONS;
        (needed.ceil() as u32).max(FEWEST_CONNECTIONS)
    });
    TrialLoad {
        lead: before.into_iter().chain([(trial.rate, scaled(lead))]).collect(),
        rate: trial.rate,
        duration: Nanos(unit.0.saturating_mul(u64::from(trial.length))),
        unit,
        connections,
        drain: LONGEST_DRAIN,
    }
}

/// The load of a search in words, by the plan of its first trial: with the connections that trials may open.
pub(crate) fn described(plan: &Plan, objectives: &[Objective]) -> String {
    let load = describe::model(plan).description.first().cloned().unwrap_or_default();
    let longest = objectives.iter().filter_map(Objective::time_limit).max();
    let (Load::Open { overload: Overload::Grow, .. }, Some(longest)) = (&plan.load, longest) else {
        return load;
    };
    let most = plan.connections.max;
    let of_trials = format!(
        "growing to {SPARE_CONNECTIONS} × rate × {}, {} at least",
        figure::nanos(Nanos(longest)),
        FEWEST_CONNECTIONS.min(most),
    );
    load.replacen(&describe::growth(most), &of_trials, 1)
}

/// Plan of the trial of this number, counted from 0.
///
/// # Errors
/// The rate does not fit.
pub(crate) fn trial_plan(plan: &Plan, load: &TrialLoad, number: usize) -> Result<Plan, ProfileError> {
    let trial = plan.as_trial(load)?;
    Ok(Plan { seed: trial.seed.wrapping_add(number as u64), ..trial })
}

/// Plan of a level of a sweep as it is carried out: with time to open connections and to fill caches in front
/// where it has none. With these arguments the plan of an agent becomes it, too.
///
/// # Errors
/// The rate does not fit.
pub(crate) fn level_plan(mut plan: Plan) -> Result<(Plan, Vec<String>), Problem> {
    plan.thresholds = Vec::new();
    let mut arguments = Vec::new();
    // An objective is judged by the slices of a level, of which there have to be some.
    let slice = plan.end.duration.map(|length| length.0 / LEVEL_SLICES / 1_000_000);
    if let Some(slice) = slice.map(|millis| Nanos::from_millis(millis.max(SHORTEST_SLICE_MS)))
        && slice < plan.interval
    {
        (plan.interval, plan.statistics) = (slice, slice);
        arguments.push(format!("--interval={}ms", slice.0 / 1_000_000));
    }
    if plan.warmup > Nanos::ZERO || plan.users.is_some() || !plan.phases.is_empty() {
        return Ok((plan, arguments));
    }
    let stages = match &plan.load {
        Load::Closed => {
            arguments.push(format!("--warmup={}ms", LEVEL_LEAD.0 / 1_000_000));
            return Ok((Plan { warmup: LEVEL_LEAD, ..plan }, arguments));
        }
        Load::Open { profile, .. } => profile.stages(),
    };
    let [stage] = stages else { return Ok((plan, arguments)) };
    let (rate, duration) = (stage.to.per_second_f64(), stage.duration);
    let load = TrialLoad {
        lead: vec![(rate, LEVEL_LEAD)],
        rate,
        duration,
        unit: duration,
        connections: None,
        drain: plan.drain,
    };
    let argument = load.argument().map_err(|error| Problem::new(error.to_string()))?;
    let plan = plan.as_trial(&load).map_err(|error| Problem::new(error.to_string()))?;
    arguments.push(argument);
    Ok((plan, arguments))
}
