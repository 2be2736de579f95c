//! `plimsoll report`: runs as one page of HTML.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_plan::{Problem, Problems};
use plimsoll_report::comparison::{Comparison, Group, Incomparable, Member, Question};
use plimsoll_report::{SavedRun, html};

use crate::describe::tool;
use crate::saved_runs::{History, NamedRun};
use crate::saving::PlaceArgs;
use crate::streams::Content;
use crate::{Exit, Failure, outputs, result_files, run};

/// Runs that can be told apart in one chart.
const MOST_RUNS: usize = 12;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Files that `run --json FILE` wrote, folders of such files, quoted patterns, names, tags and ids of
    /// saved runs, or latest
    ///
    /// Several runs are drawn over each other, and those of each further argument are compared with those of
    /// the first. Saved runs have the most to show.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// File of the page [default: report-ID.html]; - is stdout
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Former name of --file; in all other commands, a format.
    #[arg(short, long, value_name = "FILE", hide = true)]
    output: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
    /// No messages on stderr
    #[arg(long)]
    quiet: bool,
}

/// Runs of which each has the same right to be compared.
struct Runs {
    name: String,
    runs: Vec<NamedRun>,
}

/// The command.
pub(crate) fn command(args: &ReportArgs) -> Result<Exit, Failure> {
    if let Some(file) = &args.output {
        let problem = Problem::new("-o is the format on stdout in all commands, and a report has only one");
        return Err(Failure::usage(problem.with_hint(format!("the file is --file {}", file.display()))));
    }
    let names: Vec<&str> = args.runs.iter().map(String::as_str).collect();
    let mut history = History::at(&args.place)?;
    let read = result_files::read_runs(&names, &mut history).map_err(Failure::usage)?;
    let group = |(name, runs): (&&str, Vec<NamedRun>)| Runs { name: short(name), runs };
    let groups: Vec<Runs> = names.iter().zip(read).map(group).collect();
    admit(groups.iter().map(|group| group.runs.len()).sum()).map_err(Failure::usage)?;
    let page = page(&groups)?;
    let output = args.file.clone().unwrap_or_else(|| default_file(&groups));
    write(&page, &output, args.quiet)?;
    Ok(Exit::Success)
}

/// Checks that so many runs have room on a page.
///
/// # Errors
/// There are too many.
pub(crate) fn admit(runs: usize) -> Result<(), Problems> {
    if runs <= MOST_RUNS {
        return Ok(());
    }
    let message = format!("{runs} runs on one page, of which at most {MOST_RUNS} can be told apart");
    let hint = "name fewer; `plimsoll compare` takes groups of any size";
    Err(Problem::new(message).with_hint(hint).into())
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

fn write(page: &[u8], output: &Path, quiet: bool) -> Result<(), Failure> {
    if output == Path::new("-") {
        return run::content_to_stdout(Content::Bytes, |out| out.write_all(page));
    }
    outputs::to_file(output, |out| out.write_all(page))?;
    run::say(quiet)(&format!("wrote {}", output.display()));
    Ok(())
}

/// `report-ID.html`, or `report-ID-ID.html` from the first run to the last.
fn default_file(groups: &[Runs]) -> PathBuf {
    let runs = groups.iter().flat_map(|group| &group.runs);
    let mut ids: Vec<&str> = runs.map(|run| run.run.result.run.id.as_str()).collect();
    if ids.len() > 2 {
        ids.drain(1..ids.len() - 1);
    }
    PathBuf::from(format!("report-{}.html", ids.join("-")))
}

/// The page of these runs.
fn page(groups: &[Runs]) -> Result<Vec<u8>, Failure> {
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
    let group =
        |runs: &Runs| Group { name: runs.name.clone(), members: runs.runs.iter().map(member).collect() };
    let Some((first, others)) = groups.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let (first, question) = (group(first), Question::default());
    others.iter().map(|other| Comparison::new(tool(), &first, &group(other), &question)).collect()
}

/// Returns the names of the runs on the page. A run that is alone in its argument is named after it, others
/// after their files, with as much of the file's name as tells the runs apart.
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
fn short(file: &str) -> String {
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
