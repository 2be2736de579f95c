//! `plimsoll report`: runs as one page of HTML.

use std::path::PathBuf;

use plimsoll_document::Problem;
use plimsoll_report::{RunResult, SavedRun};

use crate::args::report::ReportArgs;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::session::documents::Drawn;
use crate::session::page::{self, Runs, admit};
use crate::session::result_files;
use crate::session::saved_runs::{History, NamedRun};

pub(crate) fn command(args: &ReportArgs) -> Result<Exit, Failure> {
    if let Some(file) = &args.output {
        let problem = Problem::new("-o is the format on stdout in all commands, and a report has only one");
        return Err(Failure::usage(problem.with_hint(format!("the file is --file {}", file.display()))));
    }
    let names: Vec<&str> = args.runs.iter().map(String::as_str).collect();
    let mut history = History::at(&args.place)?;
    if let [word] = names.as_slice()
        && let Some(document) = history.document(word)?
    {
        let usual = PathBuf::from(format!("report-{}.html", document.id()));
        let page = match document.drawn()? {
            Drawn::Page(page) => page,
            Drawn::Runs(results) => of_results(results)?,
        };
        page::write(&page, args.file.as_ref().unwrap_or(&usual), args.quiet)?;
        return Ok(Exit::Success);
    }
    let read = result_files::read_runs(&names, &mut history).map_err(Failure::usage)?;
    let group = |(name, runs): (&&str, Vec<NamedRun>)| Runs { name: page::short(name), runs };
    let groups: Vec<Runs> = names.iter().zip(read).map(group).collect();
    admit(groups.iter().map(|group| group.runs.len()).sum()).map_err(Failure::usage)?;
    let html = page::page(&groups)?;
    let output = args.file.clone().unwrap_or_else(|| default_file(&groups));
    page::write(&html, &output, args.quiet)?;
    Ok(Exit::Success)
}

/// The page of runs that are compared with the first of them.
fn of_results(results: Vec<(String, RunResult)>) -> Result<Vec<u8>, Failure> {
    if results.is_empty() {
        return Err(Failure::usage(Problem::new("no run could be made: there is nothing to draw")));
    }
    admit(results.len()).map_err(Failure::usage)?;
    let of_one = |(name, result): (String, RunResult)| {
        let run = NamedRun { name: name.clone(), run: SavedRun::of_result(result) };
        Runs { name, runs: vec![run] }
    };
    page::page(&results.into_iter().map(of_one).collect::<Vec<_>>())
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
