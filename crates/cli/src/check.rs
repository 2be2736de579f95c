//! `plimsoll check`: everything that is wrong with a plan, or that nothing is.

use plimsoll_plan::Disk;

use crate::flags::PlanArgs;
use crate::{Exit, Failure, describe, environment, run};

/// The command. The plan is resolved with its files as for a run.
pub(crate) fn command(args: &PlanArgs) -> Result<Exit, Failure> {
    let command = args.to_command(environment::surroundings());
    let name = match &command.plan {
        Some(name) if name == "-" => "<stdin>".to_owned(),
        Some(name) => name.clone(),
        None => {
            let urls = command.flags.urls.iter().map(|url| url.text.clone());
            describe::redacted(urls).join(" ")
        }
    };
    command.resolve(&Disk)?;
    run::to_stdout(|out| writeln!(out, "{name}: ok"))?;
    Ok(Exit::Success)
}
