//! Groups of earlier runs: finds the results by names.

use std::path::{Path, PathBuf};

use plimsoll_document::{Problem, Problems};
use plimsoll_report::comparison::Member;
use plimsoll_store::{Kind, Row};

use crate::session::saved_runs::{self, History, NamedRun};

/// A file or run that a text names.
enum ResultSource {
    File(PathBuf),
    /// A run of the history.
    Run(Box<Row>),
}

/// Reads the results that each text names: a file, a folder (all files in it that end in `.json` or
/// `.plimsoll`), a pattern, runs of the history (by id, name or tag), or several of these with commas between
/// them. All problems are reported together.
///
/// # Errors
/// Runs that cannot be found or read, or occur twice.
pub(crate) fn read(names: &[&str], history: &mut History) -> Result<Vec<Vec<Member>>, Problems> {
    let member = |NamedRun { name, run }| Member { file: name, result: run.result };
    let groups = read_runs(names, history)?;
    Ok(groups.into_iter().map(|runs| runs.into_iter().map(member).collect()).collect())
}

/// As [`read`], with everything that was saved of the runs.
///
/// # Errors
/// As those of [`read`].
pub(crate) fn read_runs(names: &[&str], history: &mut History) -> Result<Vec<Vec<NamedRun>>, Problems> {
    let mut problems = Problems::default();
    let mut groups = Vec::new();
    for name in names {
        let mut members = Vec::new();
        for found in found(name, history, &mut problems) {
            let runs = match found {
                ResultSource::File(file) => saved_runs::of_file(&file).map_err(Problems::from),
                ResultSource::Run(row) => {
                    history.read(&row).map(|run| vec![run]).map_err(|failure| failure.problems)
                }
            };
            match runs {
                Ok(runs) => members.extend(runs),
                Err(more) => problems.extend(more),
            }
        }
        groups.push(members);
    }
    twice(groups.iter().flatten(), &mut problems);
    if problems.is_empty() { Ok(groups) } else { Err(problems) }
}

/// Finds everything that a text names: files in the order of their names, runs of the history from the
/// earliest on.
fn found(name: &str, history: &mut History, problems: &mut Problems) -> Vec<ResultSource> {
    // A comma may also be a part of a name.
    let parts: Vec<&str> = if Path::new(name).exists() { vec![name] } else { name.split(',').collect() };
    let mut found = Vec::new();
    for part in parts {
        // A part that does not look like a file is looked up in the history.
        let runs = match Path::new(part).exists() || part.contains(['*', '?', '[']) {
            true => Ok(Vec::new()),
            false => history.find(part),
        };
        match (runs, files(part)) {
            (Err(failure), _) => problems.extend(failure.problems),
            (Ok(mut runs), _) if !runs.is_empty() => {
                // A name may be that of searches, too.
                if runs.iter().any(|row| row.kind == Kind::Run) {
                    runs.retain(|row| row.kind == Kind::Run);
                }
                found.extend(runs.into_iter().rev().map(|row| ResultSource::Run(Box::new(row))));
            }
            (Ok(_), Ok(files)) => found.extend(files.into_iter().map(ResultSource::File)),
            (Ok(_), Err(problem)) => problems.push(problem),
        }
    }
    found
}

fn files(name: &str) -> Result<Vec<PathBuf>, Problem> {
    let path = Path::new(name);
    if path.is_dir() {
        let unreadable = |error| Problem::new(format!("cannot read the folder {name}: {error}"));
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            files.push(entry.map_err(unreadable)?.path());
        }
        files.retain(|file| {
            file.is_file() && file.extension().is_some_and(|end| end == "json" || end == "plimsoll")
        });
        files.sort();
        return match files.is_empty() {
            true => Err(Problem::new(format!("no results in the folder {name}"))
                .with_hint("results are files that end in .json: `plimsoll run … --json FILE` writes them")),
            false => Ok(files),
        };
    }
    if path.exists() || !name.contains(['*', '?', '[']) {
        return Ok(vec![path.to_owned()]);
    }
    let bad = |error: &dyn std::fmt::Display| Problem::new(format!("`{name}`: {error}"));
    let mut files = Vec::new();
    for file in glob::glob(name).map_err(|error| bad(&error))? {
        files.push(file.map_err(|error| bad(&error))?);
    }
    files.retain(|file| file.is_file());
    if files.is_empty() { Err(Problem::new(format!("no file matches `{name}`"))) } else { Ok(files) }
}

/// A run that is given twice would count twice.
fn twice<'a>(members: impl Iterator<Item = &'a NamedRun>, problems: &mut Problems) {
    let mut seen: Vec<&NamedRun> = Vec::new();
    for member in members {
        let run = |member: &'a NamedRun| {
            let run = &member.run.result.run;
            (&run.id, run.started_at_unix_ns, &run.host.hostname)
        };
        match seen.iter().find(|other| run(other) == run(member)) {
            Some(other) => problems.push(
                Problem::new(format!("{} and {} are the same run", other.name, member.name))
                    .with_hint("name every run once: a run says nothing new the second time"),
            ),
            None => seen.push(member),
        }
    }
}
