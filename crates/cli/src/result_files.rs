//! Results of earlier runs: from what names them to what is in them.

use std::path::{Path, PathBuf};

use plimsoll_plan::{Problem, Problems};
use plimsoll_report::comparison::Member;
use plimsoll_report::results_from_json;

/// Reads the results that each text names: a file, a folder (all files in it that end in `.json`), a pattern,
/// or several of these with commas between them. Everything that is wrong is reported together.
///
/// # Errors
/// What cannot be found or read, or is in it twice.
pub(crate) fn read(names: &[&str]) -> Result<Vec<Vec<Member>>, Problems> {
    let mut problems = Problems::default();
    let mut groups = Vec::new();
    for name in names {
        let mut members = Vec::new();
        for file in files(name, &mut problems) {
            match of_file(&file) {
                Ok(found) => members.extend(found),
                Err(problem) => problems.push(problem),
            }
        }
        groups.push(members);
    }
    twice(groups.iter().flatten(), &mut problems);
    if problems.is_empty() { Ok(groups) } else { Err(problems) }
}

/// The files that a text names, in the order of their names.
fn files(name: &str, problems: &mut Problems) -> Vec<PathBuf> {
    // A comma may also be a part of a name.
    let parts: Vec<&str> = if Path::new(name).exists() { vec![name] } else { name.split(',').collect() };
    let mut found = Vec::new();
    for part in parts {
        match one(part) {
            Ok(files) => found.extend(files),
            Err(problem) => problems.push(problem),
        }
    }
    found
}

fn one(name: &str) -> Result<Vec<PathBuf>, Problem> {
    let path = Path::new(name);
    if path.is_dir() {
        let unreadable = |error| Problem::new(format!("cannot read the folder {name}: {error}"));
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            files.push(entry.map_err(unreadable)?.path());
        }
        files.retain(|file| file.is_file() && file.extension().is_some_and(|end| end == "json"));
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

/// The run of a file, or its runs if it has several.
fn of_file(file: &Path) -> Result<Vec<Member>, Problem> {
    let name = file.display();
    let text = std::fs::read(file).map_err(|error| {
        Problem::new(format!("cannot read {name}: {error}"))
            .with_hint("name a file that `plimsoll run --json FILE` wrote, a folder of these, or a pattern")
    })?;
    let results = results_from_json(&text)
        .map_err(|error| Problem::new(format!("{name}: {error}")).with_hint(error.hint()))?;
    if results.is_empty() {
        let problem = Problem::new(format!("{name}: no run in it: a signal ended it before the first"));
        return Err(problem.with_hint("make the runs again"));
    }
    let is_alone = results.len() == 1;
    let member = |(number, result): (u64, _)| Member {
        file: if is_alone { name.to_string() } else { format!("{name} (run {number})") },
        result,
    };
    Ok((1..).zip(results).map(member).collect())
}

/// A run that is given twice would count twice.
fn twice<'a>(members: impl Iterator<Item = &'a Member>, problems: &mut Problems) {
    let mut seen: Vec<&Member> = Vec::new();
    for member in members {
        let run = |member: &'a Member| {
            let run = &member.result.run;
            (&run.id, run.started_at_unix_ns, &run.host.hostname)
        };
        match seen.iter().find(|other| run(other) == run(member)) {
            Some(other) => problems.push(
                Problem::new(format!("{} and {} are the same run", other.file, member.file))
                    .with_hint("name every run once: a run says nothing new the second time"),
            ),
            None => seen.push(member),
        }
    }
}
