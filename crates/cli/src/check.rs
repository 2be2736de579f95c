//! `plimsoll check`: everything that is wrong with a plan, or that nothing is.

use plimsoll_scenario::Redaction;

use crate::flags::PlanArgs;
use crate::{Exit, Failure, describe, environment, import, run};

/// The command. The plan is resolved with its files as for a run.
pub(crate) fn command(args: &PlanArgs) -> Result<Exit, Failure> {
    let command = args.to_command(environment::surroundings());
    let imported = args.h2loadrunner.as_ref().map(|file| file.display().to_string());
    let name = match imported.as_ref().or(command.plan.as_ref()) {
        Some(name) if name == "-" => "<stdin>".to_owned(),
        Some(name) => name.clone(),
        None => {
            let urls = command.flags.urls.iter().map(|url| url.text.clone());
            let names = command.flags.redact.iter().map(|name| name.text.as_str());
            describe::redacted(urls, &Redaction::new(names)).join(" ")
        }
    };
    import::resolve(args, false)?;
    run::to_stdout(|out| writeln!(out, "{name}: ok"))?;
    Ok(Exit::Success)
}
