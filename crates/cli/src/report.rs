//! `plimsoll report`: runs as one page of HTML.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_plan::Problem;
use plimsoll_report::comparison::{Comparison, Group, Incomparable, Member, Question};
use plimsoll_report::saved::SavedRun;
use plimsoll_report::{NamedRun, render_html};

use crate::compare::tool;
use crate::{Exit, Failure, result_files, run};

/// Runs that can be told apart in one chart.
const MOST_RUNS: usize = 12;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Files that `run --json FILE` wrote, folders of such files, or quoted patterns
    ///
    /// Several runs are drawn over each other, and those of each further argument are compared with those of
    /// the first.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// The file of the page [default: report-ID.html]; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// No messages on stderr
    #[arg(long)]
    quiet: bool,
}

/// The command.
pub(crate) fn command(args: &ReportArgs) -> Result<Exit, Failure> {
    let names: Vec<&str> = args.runs.iter().map(String::as_str).collect();
    let members = result_files::read(&names).map_err(Failure::usage)?;
    let groups: Vec<Group> = args.runs.iter().cloned().zip(members).map(group).collect();
    let count: usize = groups.iter().map(|group| group.members.len()).sum();
    if count > MOST_RUNS {
        let problem = Problem::new(format!("{count} runs on one page, of which at most {MOST_RUNS} can be told apart"));
        return Err(Failure::usage(problem.with_hint("name fewer; `plimsoll compare` takes groups of any size")));
    }
    let page = page(&groups)?;
    let output = args.output.clone().unwrap_or_else(|| default_file(&groups));
    if output == Path::new("-") {
        run::to_stdout(|out| out.write_all(&page))?;
    } else {
        run::to_file(&output, |out| out.write_all(&page))?;
        run::say(args.quiet)(&format!("wrote {}", output.display()));
    }
    Ok(Exit::Success)
}

/// A group with the last part of its file's name.
fn group((name, members): (String, Vec<Member>)) -> Group {
    Group { name: short(&name), members }
}

/// `report-ID.html`, or `report-ID-ID.html` from the first run to the last.
fn default_file(groups: &[Group]) -> PathBuf {
    let mut ids: Vec<&str> =
        groups.iter().flat_map(|group| &group.members).map(|member| member.result.run.id.as_str()).collect();
    if ids.len() > 2 {
        ids.drain(1..ids.len() - 1);
    }
    PathBuf::from(format!("report-{}.html", ids.join("-")))
}

/// The page of these runs.
fn page(groups: &[Group]) -> Result<Vec<u8>, Failure> {
    let members: Vec<&Member> = groups.iter().flat_map(|group| &group.members).collect();
    let names = names(&members);
    let saved: Vec<SavedRun> =
        members.iter().map(|member| SavedRun::of_result(member.result.clone())).collect();
    let runs: Vec<NamedRun<'_>> = names.iter().zip(&saved).map(|(name, run)| NamedRun { name, run }).collect();
    let comparisons = comparisons(groups);
    let mut page = Vec::new();
    render_html(&runs, &comparisons, &mut page)
        .map_err(|error| Failure::environment(Problem::new(format!("cannot write the page: {error}"))))?;
    Ok(page)
}

/// Every further group compared with the first.
fn comparisons(groups: &[Group]) -> Vec<Result<Comparison, Incomparable>> {
    let Some((first, others)) = groups.split_first() else { return Vec::new() };
    others.iter().map(|other| Comparison::new(tool(), first, other, &Question::default())).collect()
}

/// What runs are called on the page: their files' names as far as these tell them apart.
fn names(members: &[&Member]) -> Vec<String> {
    let short: Vec<String> = members.iter().map(|member| short(&member.file)).collect();
    let is_alone = |name: &String| short.iter().filter(|other| *other == name).count() == 1;
    let name = |(short, member): (&String, &&Member)| {
        if is_alone(short) { short.clone() } else { member.file.clone() }
    };
    short.iter().zip(members).map(name).collect()
}

/// A file's name without its folder and the usual ending.
fn short(file: &str) -> String {
    let name = file.trim_end_matches('/');
    let name = name.rsplit('/').next().unwrap_or(name);
    name.replacen(".json", "", 1)
}
