//! `plimsoll check`: everything that is wrong with a plan, or that nothing is.

mod foreign_slots;

use std::collections::BTreeSet;

use plimsoll_core::Redaction;
use plimsoll_document::{LONGEST_DATA_HEAD, Problem, Problems};
use plimsoll_engine::check_user_rows;
use plimsoll_plan::{Plan, Resolved};
use serde_json::json;

use crate::args::document::{DocumentArgs, DocumentFormat};
use crate::args::plan::PlanArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{environment, messages, problems, stdout};
use crate::session::describe;
use crate::session::request::PlanRequest;
use crate::session::run;

/// The command. The plan is resolved with its files as for a run, but nothing of its scripts runs: whoever
/// checks the plan of somebody else does not trust it yet.
pub(crate) fn command(args: &DocumentArgs) -> Result<Exit, Failure> {
    match (PlanRequest::shown(&args.plan).resolve().and_then(with_data), args.output) {
        (Err(failure), DocumentFormat::Json) => {
            problems::to_stdout_as_json(&failure)?;
            return Ok(failure.exit);
        }
        (Err(failure), DocumentFormat::Text) => return Err(failure),
        (Ok(resolved), DocumentFormat::Json) => {
            let mut report = json!({ "ok": true, "name": name(&args.plan), "problems": [] });
            let mut warnings = resolved.plan.lacking_samples();
            warnings.extend(resolved.plan.lacking_rows());
            warnings.extend(foreign_slots::notes(&resolved));
            if !warnings.is_empty() {
                report["warnings"] = json!(warnings);
            }
            stdout::to_stdout(|out| writeln!(out, "{report:#}"))?;
        }
        (Ok(resolved), DocumentFormat::Text) => {
            let say = messages::say(false);
            run::tell_lacking(&resolved.plan, &say);
            resolved.plan.lacking_rows().iter().for_each(|text| say(&format!("warning: {text}")));
            foreign_slots::notes(&resolved).iter().for_each(|note| say(&format!("note: {note}")));
            stdout::to_stdout(|out| writeln!(out, "{}: ok", name(&args.plan)))?;
        }
    }
    Ok(Exit::Success)
}

/// The plan, if its data files have rows for it as far as they are examined: their heads, in which every row
/// is read as by a run.
fn with_data(resolved: Resolved) -> Result<Resolved, Failure> {
    let plan = &resolved.plan;
    let around = [plan.setup.as_deref(), plan.teardown.as_deref()];
    let all: Vec<&Plan> = std::iter::once(plan).chain(around.into_iter().flatten()).collect();
    let feeds = all.iter().flat_map(|plan| plan.feeds.iter().map(|feed| (feed, plan.threads.max(1))));
    let of_feeds = feeds.flat_map(|(feed, workers)| {
        let problems = feed.problems(LONGEST_DATA_HEAD, workers);
        problems.into_iter().map(|problem| format!("data source `{}`: {problem}", feed.name))
    });
    let mut found: Vec<String> = of_feeds.collect();
    if found.is_empty() {
        found.extend(check_user_rows(plan).err().map(|error| error.to_string()));
    }
    // The steps around the load have the sources of the plan, too.
    let mut known = BTreeSet::new();
    let mut problems = Problems::default();
    for problem in found.into_iter().filter(|problem| known.insert(problem.clone())) {
        problems.push(Problem::new(problem));
    }
    if problems.is_empty() { Ok(resolved) } else { Err(Failure::usage(problems)) }
}

/// The name of the plan in messages: its file, or the URLs without credentials.
fn name(args: &PlanArgs) -> String {
    let command = args.to_command(environment::surroundings());
    let imported = args.h2loadrunner.as_ref().map(|file| file.display().to_string());
    let plan = command.plan.as_ref().map(|plan| plan.name().to_owned());
    match imported.or(plan) {
        Some(name) if name == "-" => "<stdin>".to_owned(),
        Some(name) => name,
        None => {
            let urls = command.flags.urls.iter().map(|url| url.text.clone());
            let names = command.flags.redact.iter().map(|name| name.text.as_str());
            describe::redacted(urls, &Redaction::new(names)).join(" ")
        }
    }
}
