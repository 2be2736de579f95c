//! `plimsoll history`: one figure over many runs, and when it changed.

use plimsoll_report::{Format, History, Style};

use crate::compare::tool;
use crate::compare_flags::{HistoryArgs, HistoryFormat};
use crate::saved_runs::History as SavedRuns;
use crate::{Exit, Failure, result_files, run};

/// The command.
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
    let history = History::new(tool(), members, measure, effect, args.allow_invalid);
    let format = match args.output {
        HistoryFormat::Text => Format::Text,
        HistoryFormat::Json => Format::Json,
        HistoryFormat::Csv => Format::Csv,
    };
    run::to_stdout(|out| history.render(format, style, out))?;
    Ok(Exit::Success)
}
