//! `plimsoll history`: one figure over many runs, and when it changed.

use plimsoll_report::{History, Style, TableFormat};

use crate::args::compare::{HistoryArgs, HistoryFormat};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::stdout;
use crate::session::saved_runs::History as SavedRuns;
use crate::session::{describe, result_files};

pub(crate) fn command(args: &HistoryArgs, style: &Style) -> Result<Exit, Failure> {
    let names: Vec<&str> = args.files.iter().map(String::as_str).collect();
    let mut saved = SavedRuns::at(&args.place)?;
    let (question, groups) = (args.to_question(), result_files::read(&names, &mut saved));
    let ((measure, effect), groups) = match (question, groups) {
        (Ok(question), Ok(groups)) => (question, groups),
        (question, groups) => {
            // All problems at once.
            let mut problems = question.err().unwrap_or_default();
            problems.extend(groups.err().unwrap_or_default());
            return Err(Failure::usage(problems));
        }
    };
    let members = groups.into_iter().flatten().collect();
    let history = History::new(describe::tool(), members, measure, effect, args.allow_invalid);
    let format = match args.output {
        HistoryFormat::Text => TableFormat::Text,
        HistoryFormat::Json => TableFormat::Json,
        HistoryFormat::Csv => TableFormat::Csv,
    };
    stdout::to_stdout(|out| history.render(format, style, out))?;
    Ok(Exit::Success)
}
