//! Runs as one page of HTML.

use std::path::Path;

use plimsoll_document::{Problem, Problems};
use plimsoll_report::comparison::{Comparison, Group, Incomparable, Member, Question};
use plimsoll_report::{SavedRun, html};

use crate::base::failure::Failure;
use crate::base::files::{self, EndFile};
use crate::base::messages::say;
use crate::base::stdout::content_to_stdout;
use crate::base::streams::Content;
use crate::session::describe::tool;
use crate::session::saved_runs::NamedRun;

/// Runs that can be distinguished in one chart.
const MOST_RUNS: usize = 12;

/// Runs of which each has the same right to be compared.
pub(crate) struct Runs {
    pub(crate) name: String,
    pub(crate) runs: Vec<NamedRun>,
}

/// Checks that this many runs fit on a page.
///
/// # Errors
/// There are too many.
pub(crate) fn admit(runs: usize) -> Result<(), Problems> {
    if runs <= MOST_RUNS {
        return Ok(());
    }
    let message = format!("{runs} runs on one page, of which at most {MOST_RUNS} can be distinguished");
    let hint = "name fewer; `plimsoll compare` takes groups of any size";
    Err(Problem::new(message).with_hint(hint).into())
}

/// Tries the file of a page before the load: days of it are not to end with a folder that does not exist.
///
/// # Errors
/// It cannot be written.
pub(crate) fn admit_file(report: Option<&Path>) -> Result<(), Failure> {
    let file = report.filter(|file| *file != Path::new("-"));
    file.map_or(Ok(()), |file| EndFile::new("--report", file).map(drop))
}

/// Writes the page of runs that were made just now, in groups with names.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_runs(
    groups: Vec<(String, Vec<SavedRun>)>,
    output: &Path,
    quiet: bool,
) -> Result<(), Failure> {
    let named = |(number, run): (u32, SavedRun)| NamedRun { name: format!("run {number}"), run };
    let group = |(name, runs)| Runs { name, runs: (1..).zip(runs).map(named).collect() };
    let groups: Vec<Runs> = groups.into_iter().map(group).collect();
    write(&page(&groups)?, output, quiet)
}

/// Writes a page to a file, or to stdout for `-`.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(page: &[u8], output: &Path, quiet: bool) -> Result<(), Failure> {
    if output == Path::new("-") {
        return content_to_stdout(Content::Bytes, |out| out.write_all(page));
    }
    files::to_file(output, |out| out.write_all(page))?;
    say(quiet)(&format!("wrote {}", output.display()));
    Ok(())
}

/// The page of these runs.
pub(crate) fn page(groups: &[Runs]) -> Result<Vec<u8>, Failure> {
    let runs: Vec<&NamedRun> = groups.iter().flat_map(|group| &group.runs).collect();
    let names = names(groups);
    let shown: Vec<html::NamedRun<'_>> =
        names.iter().zip(&runs).map(|(name, run)| html::NamedRun { name, run: &run.run }).collect();
    let mut page = Vec::new();
    html::render(&shown, &comparisons(groups), &mut page)
        .map_err(|error| Failure::environment(Problem::new(format!("cannot write the page: {error}"))))?;
    Ok(page)
}

/// Every further group compared with the first.
fn comparisons(groups: &[Runs]) -> Vec<Result<Comparison, Incomparable>> {
    let member = |run: &NamedRun| Member { file: run.name.clone(), result: run.run.result.clone() };
    // Two files of one name, as in two folders, are named as they were given.
    let is_alone = |name: &str| groups.iter().filter(|other| other.name == name).count() == 1;
    let name = |runs: &Runs| match &runs.runs[..] {
        [run] if !is_alone(&runs.name) => run.name.clone(),
        _ => runs.name.clone(),
    };
    let group = |runs: &Runs| Group { name: name(runs), members: runs.runs.iter().map(member).collect() };
    let Some((first, others)) = groups.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let (first, question) = (group(first), Question::default());
    others.iter().map(|other| Comparison::new(tool(), &first, &group(other), &question)).collect()
}

/// Returns the names of the runs on the page. A run that is alone in its argument is named after it, others
/// after their files, with as much of the file's name as distinguishes the runs.
fn names(groups: &[Runs]) -> Vec<String> {
    let of_group = |group: &Runs| -> Vec<String> {
        match &group.runs[..] {
            [_] if !group.name.is_empty() => vec![group.name.clone()],
            runs => runs.iter().map(|run| short(&run.name)).collect(),
        }
    };
    let short: Vec<String> = groups.iter().flat_map(of_group).collect();
    let is_alone = |name: &String| short.iter().filter(|other| *other == name).count() == 1;
    let runs = groups.iter().flat_map(|group| &group.runs);
    let name = |(short, run): (&String, &NamedRun)| {
        if is_alone(short) { short.clone() } else { run.name.clone() }
    };
    short.iter().zip(runs).map(name).collect()
}

/// A file's name without its folder and the usual endings.
pub(crate) fn short(file: &str) -> String {
    let name = file.trim_end_matches('/');
    let name = name.rsplit('/').next().unwrap_or(name);
    name.replacen(".json", "", 1).replacen(".plimsoll", "", 1)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_are_short() {
        for (name, expected) in [
            ("results/base.json", "base"),
            ("new/", "new"),
            ("a.json (run 2)", "a (run 2)"),
            ("x.plimsoll", "x"),
            ("run 1a2b3c4d (nightly)", "run 1a2b3c4d (nightly)"),
        ] {
            assert_eq!(short(name), expected);
        }
    }
}
