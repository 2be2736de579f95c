//! The plan of evidence, made again from its text and the flags of the command.
//!
//! Nothing else is read: no file, no variable of the environment, and of scripts nothing is run. What the
//! plan of a run has from elsewhere, or what was a secret, does not follow; the evidence says which parts did
//! when it was written.

use plimsoll_engine::load_checksum;
use plimsoll_plan::Plan;
use plimsoll_report::evidence::{
    Contradiction, EVIDENCE_VERSION, Evidence, NotCompared, SearchEvidence, Verification, Why,
};
use plimsoll_statistics::Trial;
use serde_json::{Value, json};

use super::plan_again::{Part, parsed, resolved};
use super::trial_plans;
use crate::args::cli::Command;
use crate::session::describe;

/// Returns the names of the parts of evidence that follow from the plan's text and the flags.
pub(super) fn following(evidence: &Evidence) -> Vec<String> {
    again(evidence).map_or_else(|_| Vec::new(), |plan| names_of_following(&parts(evidence, &plan)))
}

/// Returns the names of the parts of a search's evidence that follow from the plan's text and the flags.
pub(super) fn following_search(evidence: &SearchEvidence) -> Vec<String> {
    let (_, trials) = evidence.verify();
    trial_plans::parts(evidence, &trials).map_or_else(|_| Vec::new(), |parts| names_of_following(&parts))
}

fn names_of_following(parts: &[Part]) -> Vec<String> {
    parts.iter().filter(|part| part.stated == part.follows).map(|part| part.name.clone()).collect()
}

/// Compares evidence with its plan.
pub(super) fn compare(evidence: &Evidence, verified: &mut Verification) {
    let is_own = evidence.evidence_version == EVIDENCE_VERSION
        && evidence.context.tool_version == env!("CARGO_PKG_VERSION");
    let parts = again(evidence).map(|plan| parts(evidence, &plan));
    compare_parts(parts, evidence.follows_from_plan.as_deref(), is_own, verified);
}

/// Compares the evidence of a search, which has asked for these trials, with its plan.
pub(super) fn compare_search<R>(evidence: &SearchEvidence, trials: &[Trial], verified: &mut Verification<R>) {
    let is_own = evidence.tool.version == env!("CARGO_PKG_VERSION");
    let parts = trial_plans::parts(evidence, trials);
    compare_parts(parts, evidence.follows_from_plan.as_deref(), is_own, verified);
}

/// Compares parts that a plan gives. `followed` names those that did when the evidence was written, and
/// `is_own` says that this version has written it.
fn compare_parts<R>(
    parts: Result<Vec<Part>, String>,
    followed: Option<&[String]>,
    is_own: bool,
    verified: &mut Verification<R>,
) {
    let is_stated = is_own || followed.is_some();
    let followed = followed.unwrap_or_default();
    let contradict = |place: &str, reason: String| Contradiction { place: place.to_owned(), reason };
    let parts = match parts {
        Ok(parts) => parts,
        Err(why) if is_own && !followed.is_empty() => {
            let reason = format!("its text and the flags give no plan any more: {why}");
            return verified.contradictions.push(contradict("plan", reason));
        }
        Err(why) => return verified.open.push(open(Why::Plan, &["plan".to_owned()], why)),
    };
    let (mut following, mut others, mut differ) = (Vec::new(), Vec::new(), Vec::new());
    for Part { name, stated, follows } in parts {
        let did_follow = followed.contains(&name);
        if stated == follows {
            following.push(name.clone());
        }
        match (stated == follows, did_follow) {
            (true, true) => verified.compared += 1,
            (true, false) => {}
            (false, true) if is_own => verified.contradictions.push(contradict(
                &name,
                format!(
                    "{} is stated, and {} follows from the plan and the flags",
                    short(&stated),
                    short(&follows)
                ),
            )),
            (false, true) => others.push(name),
            (false, false) => differ.push(name),
        }
    }
    if is_stated && verified.contradictions.is_empty() && following != followed {
        let reason = format!("what follows from the plan and the flags is {following:?}");
        verified.open.push(open(Why::Plan, &["follows_from_plan".to_owned()], reason));
    }
    for (why, names, reason) in [
        (Why::Words, others, "not as this version makes them of the plan's text and the flags"),
        (Why::Plan, differ, "not as the plan's text and the flags give them: of secrets, files or variables"),
    ] {
        if !names.is_empty() {
            verified.open.push(open(why, &names, reason.to_owned()));
        }
    }
}

fn open(why: Why, places: &[String], reason: String) -> NotCompared {
    NotCompared { why, reason, places: places.to_vec(), example: "the plan".to_owned() }
}

fn parts(evidence: &Evidence, plan: &Plan) -> Vec<Part> {
    let Evidence { context, outline, record, .. } = evidence;
    let specs: Vec<_> = record.thresholds.iter().map(|threshold| &threshold.spec).collect();
    [
        ("plan_hash", json!(context.plan_hash), json!(plan.fingerprint().to_string())),
        ("seed", json!(context.seed), json!(plan.seed)),
        ("load_checksum", json!(context.load_checksum), json!(load_checksum(plan).to_string())),
        ("targets", json!(context.targets), json!(describe::targets(plan))),
        ("model", json!(context.model), json!(describe::model(plan))),
        ("outline", json!(outline), json!(plan.outline())),
        ("thresholds", json!(specs), json!(plan.thresholds)),
        ("records", json!(context.records), json!(plan.records())),
    ]
    .map(Part::new)
    .into()
}

/// The plan of evidence.
///
/// # Errors
/// Why it cannot be made of the text and the flags alone.
fn again(evidence: &Evidence) -> Result<Plan, String> {
    let Evidence { context, plan: text, .. } = evidence;
    let Command::Run(args) = parsed(&context.args)? else {
        return Err("the command line is not that of a run".to_owned());
    };
    let plan = resolved(&args.run.plan, text.as_deref(), context.seed, |_| Ok(()))?;
    args.run.agent.amend(plan).map_err(|problem| problem.message)
}

/// A value, cut short.
fn short(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}
