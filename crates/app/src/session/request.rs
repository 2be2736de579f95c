//! A plan that is asked for: by a file, URLs or a text, with the flags above it.

use plimsoll_document::{Files, MadeDocument, Problem, Problems, Source};
use plimsoll_import::confined;
use plimsoll_plan::{Command, Confined, Disk, PlanPatch, PlanSource, Resolved};

use crate::args::plan::PlanArgs;
use crate::base::environment::{self, RunEnvironment};
use crate::base::failure::Failure;
use crate::base::plan_parts::plan_parts;
use crate::session::import::{folder, of_h2loadrunner, read, tell};
use crate::session::{configuration, foreign_file};

/// A plan and the flags above it.
#[derive(Clone, Debug)]
pub(crate) struct PlanRequest<'a> {
    /// The flags. Without a text, they name a plan file or URLs.
    pub(crate) args: &'a PlanArgs,
    /// The plan that was made: from the flags of a workload, or of the text of another file.
    pub(crate) made: Option<PlanSource>,
    /// `true` if notes and the output of scripts are not shown.
    pub(crate) quiet: bool,
    /// `true` if the plan is only shown, so that nothing of its scripts runs.
    pub(crate) is_shown: bool,
}

impl<'a> PlanRequest<'a> {
    /// The plan that a command line names.
    pub(crate) const fn named(args: &'a PlanArgs, quiet: bool) -> Self {
        Self { args, made: None, quiet, is_shown: false }
    }

    /// The plan that a command line names, for a command that only shows it.
    pub(crate) fn shown(args: &'a PlanArgs) -> Self {
        Self::named(args, false).only_shown()
    }

    /// The plan for a command that only shows it.
    pub(crate) fn only_shown(self) -> Self {
        Self { is_shown: true, ..self }
    }

    /// A plan that was made.
    pub(crate) fn made(args: &'a PlanArgs, plan: impl Into<PlanSource>, quiet: bool) -> Self {
        Self { args, made: Some(plan.into()), quiet, is_shown: false }
    }

    /// Resolves it.
    ///
    /// # Errors
    /// All problems with it.
    pub(crate) fn resolve(&self) -> Result<Resolved, Failure> {
        self.resolve_amended(|_| Ok(()))
    }

    /// Resolves it with flags that the command itself adds.
    ///
    /// # Errors
    /// All problems with it.
    pub(crate) fn resolve_amended(
        &self,
        amend: impl FnOnce(&mut PlanPatch) -> Result<(), Problem>,
    ) -> Result<Resolved, Failure> {
        self.resolve_from(&Disk, amend)
    }

    /// Resolves the plan with flags that the command itself adds; `files` reads the files that it names.
    ///
    /// # Errors
    /// All problems with it.
    pub(crate) fn resolve_from(
        &self,
        files: &dyn Files,
        amend: impl FnOnce(&mut PlanPatch) -> Result<(), Problem>,
    ) -> Result<Resolved, Failure> {
        let environment =
            RunEnvironment { quiet: self.quiet, only_reads: self.is_shown, ..environment::surroundings() };
        let mut command = match &self.made {
            None => self.args.to_command(environment),
            Some(plan) => self.args.to_command_of(plan.clone(), environment),
        };
        amend(&mut command.flags).map_err(Failure::usage)?;
        match (&self.made, &self.args.h2loadrunner) {
            (Some(_), _) => Ok(command.resolve(files)?),
            (None, Some(file)) => {
                let (text, folder) = (read(file)?, folder(file));
                let imported = confined(&Confined::new(folder, &command.flags), |files| {
                    of_h2loadrunner(&text, folder, files, &command.flags)
                });
                let imported = imported.map_err(Failure::usage)?;
                tell(&imported, false, self.quiet)?;
                // From here on problems point into the plan, not into the file that was typed, so the source
                // gets another name.
                let name = format!("{} (as a plan)", file.display());
                let text = imported.document.to_yaml();
                command.plan = Some(PlanSource::Text(Source { name, text }));
                command.resolve(files).map_err(|refused| in_fields(refused.into()))
            }
            (None, None) => command.resolve(files).map_err(|refused| {
                let urls = self.args.urls().iter().map(String::as_str);
                foreign_file::explained(urls, refused.into())
            }),
        }
    }
}

/// Resolves a text that is called `name` in messages, with these flags and without an environment.
///
/// # Errors
/// All problems with it.
pub(crate) fn resolve_text(name: &str, text: String, flags: PlanPatch) -> Result<Resolved, Failure> {
    resolve_source(PlanSource::Text(Source { name: name.to_owned(), text }), flags)
}

/// Resolves a plan that was made from flags, with these flags and without an environment.
///
/// # Errors
/// All problems with it.
pub(crate) fn resolve_made(made: MadeDocument, flags: PlanPatch) -> Result<Resolved, Failure> {
    resolve_source(made.into(), flags)
}

fn resolve_source(plan: PlanSource, flags: PlanPatch) -> Result<Resolved, Failure> {
    let flags = PlanPatch { parts: plan_parts(), is_plan_of_flags: true, ..flags };
    Ok(Command { plan: Some(plan), environment: Vec::new(), flags }.resolve(&Disk)?)
}

/// The problems of a plan that was made of a configuration of h2loadrunner, in words of that.
fn in_fields(failure: Failure) -> Failure {
    let mut problems = Problems::default();
    failure.problems.iter().for_each(|problem| problems.push(configuration::by_field(problem)));
    Failure { problems, ..failure }
}
