//! `plimsoll check`: everything that is wrong with a plan, or that nothing is.

use plimsoll_scenario::Redaction;
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
    match (PlanRequest::shown(&args.plan).resolve(), args.output) {
        (Err(failure), DocumentFormat::Json) => {
            problems::to_stdout_as_json(&failure)?;
            return Ok(failure.exit);
        }
        (Err(failure), DocumentFormat::Text) => return Err(failure),
        (Ok(resolved), DocumentFormat::Json) => {
            let mut report = json!({ "ok": true, "name": name(&args.plan), "problems": [] });
            let warnings = resolved.plan.lacking_samples();
            if !warnings.is_empty() {
                report["warnings"] = json!(warnings);
            }
            stdout::to_stdout(|out| writeln!(out, "{report:#}"))?;
        }
        (Ok(resolved), DocumentFormat::Text) => {
            run::tell_lacking(&resolved.plan, &messages::say(false));
            stdout::to_stdout(|out| writeln!(out, "{}: ok", name(&args.plan)))?;
        }
    }
    Ok(Exit::Success)
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
