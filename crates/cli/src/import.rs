//! `plimsoll import`: descriptions of other tools, printed as plan files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_import::{Imported, curl, h2loadrunner, har, openapi, vegeta};
use plimsoll_plan::{Disk, Files, KeyLogFile, PlanPatch, Problem, Problems, Resolved, ScriptHost};

use crate::flags::{PlanArgs, RunEnvironment};
use crate::foreign_text::visible;
use crate::import_flags::{ImportArgs, ImportFormat};
use crate::script_host::Terminal;
use crate::{Exit, Failure, environment, foreign_file, run, streams};

/// Largest file that is imported, in bytes. It is read as a whole.
const LARGEST_IMPORT: usize = 256 << 20;

/// The command.
pub(crate) fn command(args: &ImportArgs) -> Result<Exit, Failure> {
    let (imported, strict) = match &args.format {
        ImportFormat::H2loadrunner(from) => {
            let host = ScriptHost(Arc::new(Terminal { quiet: true }));
            let lua_path = environment::surroundings().lua_path;
            let flags = PlanPatch { script_host: Some(host), lua_path, ..PlanPatch::default() };
            let imported = h2loadrunner::import_for(&read(&from.file)?, folder(&from.file), &Disk, &flags);
            (imported, from.strictness.strict)
        }
        ImportFormat::Curl(from) => {
            let imported = match from.words.as_slice() {
                // One argument is a command as a shell reads it, or but a URL.
                [command] => curl::import(command, Path::new(""), &Disk),
                words => curl::import_words(words, Path::new(""), &Disk),
            };
            (imported, from.strictness.strict)
        }
        ImportFormat::Har(args) => {
            let options = har::Options {
                think: !args.no_think,
                only: args.only.clone(),
                expect_status: args.expect_status,
            };
            (har::import(&read(&args.from.file)?, &options), args.from.strictness.strict)
        }
        ImportFormat::Openapi(args) => {
            let options = openapi::Options { server: args.server.clone() };
            (openapi::import(&read(&args.from.file)?, &options), args.from.strictness.strict)
        }
        ImportFormat::Vegeta(args) => {
            let options = vegeta::Options { steps: args.steps };
            (vegeta::import(&read(&args.from.file)?, &options), args.from.strictness.strict)
        }
    };
    let imported = imported.map_err(Failure::usage)?;
    tell(&imported, strict, false)?;
    run::to_stdout(|out| out.write_all(imported.document.to_yaml().as_bytes()))?;
    Ok(Exit::Success)
}

/// Resolves what a command line asks for: a plan file, URLs, or with `--h2loadrunner` the plan that such a
/// configuration is.
pub(crate) fn resolve(args: &PlanArgs, quiet: bool) -> Result<Resolved, Failure> {
    resolve_amended(args, quiet, |_| Ok(()))
}

/// The same with flags that the command itself adds.
pub(crate) fn resolve_amended(
    args: &PlanArgs,
    quiet: bool,
    amend: impl FnOnce(&mut PlanPatch) -> Result<(), Problem>,
) -> Result<Resolved, Failure> {
    if let Some(made) = args.made.get() {
        return resolve_made(args, made.clone(), quiet, amend);
    }
    let mut command = args.to_command(RunEnvironment { quiet, ..environment::surroundings() });
    amend(&mut command.flags).map_err(Failure::usage)?;
    let Some(file) = &args.h2loadrunner else {
        let resolved = command.resolve(&Disk).map_err(Failure::from);
        return resolved
            .map_err(|failure| foreign_file::explained(args.urls().iter().map(String::as_str), failure));
    };
    let imported = h2loadrunner::import_for(&read(file)?, folder(file), &Disk, &command.flags);
    let imported = imported.map_err(Failure::usage)?;
    tell(&imported, false, quiet)?;
    // What is wrong then is shown in the plan, not in the file as it was typed: it needs another name.
    let name = format!("{} (as a plan)", file.display());
    let files = WithPlan { name: PathBuf::from(&name), text: imported.document.to_yaml() };
    command.plan = Some(name);
    Ok(command.resolve(&files)?)
}

/// Resolves a plan that was made a moment ago, of this name and text, with the flags of a command line and
/// those that the command itself adds.
pub(crate) fn resolve_made(
    args: &PlanArgs,
    (name, text): (String, String),
    quiet: bool,
    amend: impl FnOnce(&mut PlanPatch) -> Result<(), Problem>,
) -> Result<Resolved, Failure> {
    let mut command = args.to_command(RunEnvironment { quiet, ..environment::surroundings() });
    amend(&mut command.flags).map_err(Failure::usage)?;
    let files = WithPlan { name: PathBuf::from(&name), text };
    command.plan = Some(name);
    command.resolve(&files).map_err(|refused| Failure::from(refused).by_flags(&files.text))
}

/// The file system, and in it a plan that was made a moment ago.
pub(crate) struct WithPlan {
    pub(crate) name: PathBuf,
    pub(crate) text: String,
}

impl Files for WithPlan {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path == self.name { Ok(self.text.clone().into_bytes()) } else { Disk.read(path) }
    }

    fn key_log(&self, path: &Path) -> std::io::Result<KeyLogFile> {
        Disk.key_log(path)
    }
}

/// Says what differs, on stderr; where it is strict, that is an error.
fn tell(imported: &Imported, strict: bool, quiet: bool) -> Result<(), Failure> {
    if strict && !imported.notes.is_empty() {
        let mut problems = Problems::default();
        for note in &imported.notes {
            problems.push(Problem::new(note.to_string()));
        }
        return Err(Failure::usage(problems));
    }
    if !quiet {
        let mut text = String::new();
        for note in &imported.notes {
            text.push_str(&format!("note: {}\n", visible(&note.to_string())));
        }
        streams::to_stderr(&text);
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    // One byte more tells a file that is too large.
    let read = Disk.read_head(file, LARGEST_IMPORT + 1).map_err(|error| {
        Failure::usage(
            Problem::new(format!("cannot read {}: {error}", file.display()))
                .with_hint("name a file, or - for stdin"),
        )
    })?;
    if read.len() > LARGEST_IMPORT {
        let problem = Problem::new(format!("{} has more than {} MiB", file.display(), LARGEST_IMPORT >> 20));
        return Err(Failure::usage(problem.with_hint("import a part of it, of fewer requests")));
    }
    Ok(read)
}

/// The folder that file names are relative to.
fn folder(file: &Path) -> &Path {
    if file == Path::new("-") { Path::new("") } else { file.parent().unwrap_or(Path::new("")) }
}
