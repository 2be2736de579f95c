//! The plan of evidence, made again from its text and the flags of the command.
//!
//! Nothing else is read: no file, no variable of the environment, and of scripts nothing is run. What the
//! plan of a run has from elsewhere, or what was a secret, does not follow; the evidence says which parts did
//! when it was written.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::FromArgMatches as _;
use plimsoll_engine::load_checksum;
use plimsoll_plan::{Files, KeyLogFile, Plan};
use plimsoll_report::evidence::{Contradiction, EVIDENCE_VERSION, Evidence, NotCompared, Verification, Why};
use serde_json::{Value, json};

use crate::args::cli::{Cli, Command};
use crate::args::command_word;
use crate::base::environment::RunEnvironment;
use crate::session::describe;

/// Returns the names of the parts of evidence that follow from the plan's text and the flags.
pub(super) fn following(evidence: &Evidence) -> Vec<String> {
    let Ok(plan) = again(evidence) else { return Vec::new() };
    let follows = parts(evidence, &plan).into_iter().filter(|part| part.stated == part.follows);
    follows.map(|part| part.name.to_owned()).collect()
}

/// Compares evidence with its plan.
pub(super) fn compare(evidence: &Evidence, verified: &mut Verification) {
    let is_own = evidence.evidence_version == EVIDENCE_VERSION
        && evidence.context.tool_version == env!("CARGO_PKG_VERSION");
    let followed = evidence.follows_from_plan.as_deref().unwrap_or_default();
    let contradict = |place: &str, reason: String| Contradiction { place: place.to_owned(), reason };
    let plan = match again(evidence) {
        Ok(plan) => plan,
        Err(why) if is_own && !followed.is_empty() => {
            let reason = format!("its text and the flags give no plan any more: {why}");
            return verified.contradictions.push(contradict("plan", reason));
        }
        Err(why) => return verified.open.push(open(Why::Plan, &["plan"], why)),
    };
    let (mut following, mut others, mut differ) = (Vec::new(), Vec::new(), Vec::new());
    for Part { name, stated, follows } in parts(evidence, &plan) {
        if stated == follows {
            following.push(name);
        }
        let did_follow = followed.iter().any(|known| known == name);
        match (stated == follows, did_follow) {
            (true, true) => verified.compared += 1,
            (true, false) => {}
            (false, true) if is_own => verified.contradictions.push(contradict(
                name,
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
    let is_stated = is_own || evidence.follows_from_plan.is_some();
    if is_stated && verified.contradictions.is_empty() && following != followed {
        let reason = format!("what follows from the plan and the flags is {following:?}");
        verified.open.push(open(Why::Plan, &["follows_from_plan"], reason));
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

fn open(why: Why, places: &[&str], reason: String) -> NotCompared {
    let places = places.iter().map(|place| (*place).to_owned()).collect();
    NotCompared { why, reason, places, example: "the plan".to_owned() }
}

/// A part of evidence that a plan gives.
struct Part {
    name: &'static str,
    stated: Value,
    follows: Value,
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
    .map(|(name, stated, follows)| Part { name, stated, follows })
    .into()
}

/// The plan of evidence.
///
/// # Errors
/// Why it cannot be made of the text and the flags alone.
fn again(evidence: &Evidence) -> Result<Plan, String> {
    let args: Vec<OsString> = evidence.context.args.iter().map(OsString::from).collect();
    let args = command_word::with_command(args).map_err(|problem| problem.message)?;
    let found =
        command_word::command().try_get_matches_from(&args).and_then(|found| Cli::from_arg_matches(&found));
    let Ok(Cli { command: Command::Run(args), .. }) = found else {
        return Err("the command line is not that of a run".to_owned());
    };
    let plan = &args.run.plan;
    let surroundings = RunEnvironment {
        seed: evidence.context.seed,
        quiet: true,
        only_reads: true,
        ..RunEnvironment::default()
    };
    if plan.h2loadrunner.is_some() {
        return Err("it was made of a configuration of h2loadrunner".to_owned());
    }
    let command = plan.to_command(surroundings);
    let name = command.plan.as_ref().map_or_else(String::new, |plan| plan.name().to_owned());
    let files = TextOfPlan { name: &name, text: evidence.plan.as_deref() };
    let resolved = command.resolve(&files).map_err(|refused| {
        refused.problems.iter().next().map_or_else(String::new, |problem| problem.message.clone())
    })?;
    args.run.agent.amend(resolved.plan).map_err(|problem| problem.message)
}

/// The only file that there is: the plan.
struct TextOfPlan<'t> {
    name: &'t str,
    text: Option<&'t str>,
}

impl Files for TextOfPlan<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.text.filter(|_| path == Path::new(self.name)) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "evidence has no files but the plan")),
        }
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A value, cut short.
fn short(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}
