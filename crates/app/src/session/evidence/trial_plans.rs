//! The plans of a search's trials, made again.

use plimsoll_engine::load_checksum;
use plimsoll_plan::Plan;
use plimsoll_report::evidence::{Course, SearchEvidence, TrialEvidence};
use plimsoll_statistics::Trial;
use serde_json::{Value, json};

use super::plan_again::{Part, parsed, resolved};
use crate::args::cli::Command;
use crate::args::find::FindArgs;
use crate::session::{describe, search};

/// The parts of a search's evidence that a plan gives: of the search, and of each trial.
///
/// # Errors
/// Why the plan cannot be made of the text and the flags alone.
pub(super) fn parts(evidence: &SearchEvidence, asked: &[Trial]) -> Result<Vec<Part>, String> {
    let Command::Find(args) = parsed(&evidence.circumstances.args)? else {
        return Err("the command line is not that of a search".to_owned());
    };
    match &evidence.course {
        Course::Search { settings, .. } => {
            let plan = plan_of(evidence, &args, evidence.circumstances.seed, None)?;
            let spec = args.to_spec().map_err(|_| "its flags are none of this version".to_owned())?;
            let objectives = search::objectives(&plan).unwrap_or_default();
            let specs: Vec<_> = objectives.iter().map(|objective| &objective.spec).collect();
            let mut parts = parts_of(evidence, &plan, &search::described(&plan, &objectives));
            parts.extend(
                [
                    ("objectives", json!(evidence.objectives), json!(specs)),
                    ("course/search/settings", json!(settings), json!(search::settings(&plan, &spec))),
                ]
                .map(Part::new),
            );
            for (number, (trial, next)) in evidence.trials.iter().zip(asked).enumerate() {
                let load = search::load(next, settings, &objectives);
                let again = search::trial_plan(&plan, &load, number).ok();
                parts.push(part_of_trial(number, trial, again.as_ref()));
            }
            Ok(parts)
        }
        Course::Sweep { .. } => {
            let plan_of =
                |trial: &TrialEvidence| plan_of(evidence, &args, trial.run.context.seed, Some(&trial.level));
            let levels = evidence.trials.iter().map(plan_of);
            let levels: Vec<Plan> = levels.collect::<Result<_, String>>()?;
            let Some(first) = levels.first() else { return Ok(Vec::new()) };
            let load = describe::model(first).description.first().cloned().unwrap_or_default();
            let mut parts = parts_of(evidence, first, &load);
            for (number, (trial, level)) in evidence.trials.iter().zip(levels).enumerate() {
                let again = search::level_plan(level).ok().map(|(plan, _)| plan);
                parts.push(part_of_trial(number, trial, again.as_ref()));
            }
            Ok(parts)
        }
    }
}

/// The plan of a search, or of a level of a sweep.
fn plan_of(
    evidence: &SearchEvidence,
    args: &FindArgs,
    seed: u64,
    level: Option<&str>,
) -> Result<Plan, String> {
    let sweep = args.sweep().and_then(Result::ok);
    resolved(&args.plan, evidence.plan.as_deref(), seed, |flags| {
        args.amend(flags)?;
        if let (Some(level), Some(sweep)) = (level, sweep) {
            sweep.setting.set(level, flags);
        }
        Ok(())
    })
}

/// The parts of the search itself.
fn parts_of(evidence: &SearchEvidence, plan: &Plan, load: &str) -> Vec<Part> {
    let stated = &evidence.circumstances;
    let targets: Vec<String> = describe::targets(plan).into_iter().flat_map(|target| target.urls).collect();
    [
        ("plan_hash", json!(stated.plan_hash), json!(plan.fingerprint().to_string())),
        ("seed", json!(stated.seed), json!(plan.seed)),
        ("targets", json!(stated.targets), json!(targets)),
        ("load", json!(stated.load), json!(load)),
    ]
    .map(Part::new)
    .into()
}

/// What the plan of a trial gives.
fn part_of_trial(number: usize, trial: &TrialEvidence, plan: Option<&Plan>) -> Part {
    let (context, outline) = (&trial.run.context, &trial.run.outline);
    let stated = json!([
        context.model,
        context.plan_hash,
        context.load_checksum,
        context.seed,
        context.targets,
        outline,
        context.records,
    ]);
    let follows = plan.map_or(Value::Null, |plan| {
        json!([
            describe::model(plan),
            plan.fingerprint().to_string(),
            load_checksum(plan).to_string(),
            plan.seed,
            describe::targets(plan),
            plan.outline(),
            plan.records(),
        ])
    });
    Part { name: format!("trials/{number}"), stated, follows }
}
