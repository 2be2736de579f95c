//! The plan of a command line, made again from a text and the flags alone.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::FromArgMatches as _;
use plimsoll_document::{Files, KeyLogFile, Problem};
use plimsoll_plan::{Plan, PlanPatch};
use serde_json::Value;

use crate::args::cli::{Cli, Command};
use crate::args::command_word;
use crate::args::plan::PlanArgs;
use crate::base::environment::RunEnvironment;

/// A part of evidence that a plan gives.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) stated: Value,
    pub(super) follows: Value,
}

impl Part {
    pub(super) fn new((name, stated, follows): (&str, Value, Value)) -> Self {
        Self { name: name.to_owned(), stated, follows }
    }
}

/// The command of a command line.
pub(super) fn parsed(args: &[String]) -> Result<Command, String> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let args = command_word::with_command(args).map_err(|problem| problem.message)?;
    let found =
        command_word::command().try_get_matches_from(&args).and_then(|found| Cli::from_arg_matches(&found));
    found.map(|found| found.command).map_err(|_| "the command line is none of this version".to_owned())
}

/// The plan of these flags and of a text, with flags that the command itself adds.
pub(super) fn resolved(
    plan: &PlanArgs,
    text: Option<&str>,
    seed: u64,
    amend: impl FnOnce(&mut PlanPatch) -> Result<(), Problem>,
) -> Result<Plan, String> {
    let surroundings = RunEnvironment { seed, quiet: true, only_reads: true, ..RunEnvironment::default() };
    if plan.h2loadrunner.is_some() {
        return Err("it was made of a configuration of h2loadrunner".to_owned());
    }
    let mut command = plan.to_command(surroundings);
    amend(&mut command.flags).map_err(|problem| problem.message)?;
    let name = command.plan.as_ref().map_or_else(String::new, |plan| plan.name().to_owned());
    let files = TextOfPlan { name: &name, text };
    let resolved = command.resolve(&files).map_err(|refused| {
        refused.problems.iter().next().map_or_else(String::new, |problem| problem.message.clone())
    })?;
    Ok(resolved.plan)
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
