//! `plimsoll check`: everything that is wrong with a plan, or that nothing is.

use plimsoll_scenario::Redaction;

use crate::args::plan::PlanArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{environment, stdout};
use crate::session::describe;
use crate::session::request::PlanRequest;

/// The command. The plan is resolved with its files as for a run.
pub(crate) fn command(args: &PlanArgs) -> Result<Exit, Failure> {
    let command = args.to_command(environment::surroundings());
    let imported = args.h2loadrunner.as_ref().map(|file| file.display().to_string());
    let plan = command.plan.as_ref().map(|plan| plan.name().to_owned());
    let name = match imported.or(plan) {
        Some(name) if name == "-" => "<stdin>".to_owned(),
        Some(name) => name,
        None => {
            let urls = command.flags.urls.iter().map(|url| url.text.clone());
            let names = command.flags.redact.iter().map(|name| name.text.as_str());
            describe::redacted(urls, &Redaction::new(names)).join(" ")
        }
    };
    PlanRequest::named(args, false).resolve()?;
    stdout::to_stdout(|out| writeln!(out, "{name}: ok"))?;
    Ok(Exit::Success)
}
