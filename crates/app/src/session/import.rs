//! Files of other tools: their import, and the differences in the plan.

use std::path::Path;

use plimsoll_core::characters::visible;
use plimsoll_document::{Files, Problem, Problems};
use plimsoll_import::h2loadrunner::note_on_count;
use plimsoll_import::{Imported, h2loadrunner};
use plimsoll_plan::{Disk, ImportCheck, LARGEST_IMPORT, PlanPatch, ScriptHost};

use crate::base::failure::Failure;
use crate::base::streams;

/// Reports the differences on stderr; with `strict`, they are errors.
pub(crate) fn tell(imported: &Imported, strict: bool, quiet: bool) -> Result<(), Failure> {
    if strict && !imported.notes.is_empty() {
        let mut problems = Problems::default();
        for note in &imported.notes {
            problems.push(Problem::new(note.to_string()));
        }
        return Err(Failure::usage(problems));
    }
    if !quiet {
        tell_notes(imported.notes.iter().map(ToString::to_string));
    }
    Ok(())
}

/// The failure of an import that has these problems. What was noted on the way to them is told before.
pub(crate) fn failed(problems: Problems) -> Failure {
    tell_notes(problems.notes().iter().cloned());
    Failure::usage(problems)
}

fn tell_notes(notes: impl Iterator<Item = String>) {
    let text: String = notes.map(|note| format!("note: {}\n", visible(&note))).collect();
    streams::to_stderr(&text);
}

/// Imports a configuration of h2loadrunner for a run with these flags: each script is read in the language
/// that it has there, and certificates are read, unless a flag replaces them.
///
/// # Errors
/// All problems with it.
pub(crate) fn of_h2loadrunner(
    text: &[u8],
    folder: &Path,
    files: &dyn Files,
    flags: &PlanPatch,
) -> Result<Imported, Problems> {
    let syntax_error = |source: &[u8]| {
        flags.script_host.as_ref().and_then(|ScriptHost(language)| language.syntax_error(source))
    };
    let unchecked = h2loadrunner::import(text, folder, files, &syntax_error)?;
    let mut imported = unchecked.check(folder, files, &ImportCheck::with(flags))?;
    let count = flags.iterations.as_ref().and_then(|count| note_on_count(&imported.document, &count.text));
    imported.notes.extend(count);
    Ok(imported)
}

pub(crate) fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    // One byte more reveals a file that is too large.
    let read = Disk.read_head(file, LARGEST_IMPORT as usize + 1).map_err(|error| {
        Failure::usage(
            Problem::new(format!("cannot read {}: {error}", file.display()))
                .with_hint("name a file, or - for stdin"),
        )
    })?;
    if read.len() as u64 > LARGEST_IMPORT {
        let problem = Problem::new(format!("{} has more than {} MiB", file.display(), LARGEST_IMPORT >> 20));
        return Err(Failure::usage(problem.with_hint("import a part of it, of fewer requests")));
    }
    Ok(read)
}

/// The folder that file names are relative to.
pub(crate) fn folder(file: &Path) -> &Path {
    if file == Path::new("-") { Path::new("") } else { file.parent().unwrap_or(Path::new("")) }
}
