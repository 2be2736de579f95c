//! `plimsoll compare`: whether one group of runs is better or worse than another.

use plimsoll_plan::{Problem, Problems};
use plimsoll_report::Style;
use plimsoll_report::comparison::{Comparison, Group, Word};
use plimsoll_report::result::Tool;

use crate::compare_flags::{CompareArgs, ComparisonFormat};
use crate::saved_runs::History;
use crate::{Exit, Failure, result_files, run};

/// The command.
pub(crate) fn command(args: &CompareArgs, style: &Style) -> Result<Exit, Failure> {
    let question = args.to_question();
    let groups = groups(&args.groups, &mut History::at(&args.place)?);
    let (question, [a, b]) = match (question, groups) {
        (Ok(question), Ok(groups)) => (question, groups),
        (question, groups) => {
            // All problems at once.
            let mut problems = question.err().unwrap_or_default();
            problems.extend(groups.err().unwrap_or_default());
            return Err(Failure::usage(problems));
        }
    };
    let comparison = Comparison::new(tool(), &a, &b, &question).map_err(|incomparable| {
        let mut problems = Problems::default();
        for reason in incomparable.0 {
            problems.push(
                Problem::new(format!("these runs cannot be compared: {reason}"))
                    .with_hint("make the runs alike; --force compares them all the same"),
            );
        }
        Failure::usage(problems)
    })?;
    run::to_stdout(|out| match args.output {
        ComparisonFormat::Text => out.write_all(comparison.text(style).as_bytes()),
        ComparisonFormat::Json => comparison.write_json(out),
    })?;
    Ok(match comparison.verdict {
        _ if comparison.refused.is_some() => Exit::Invalid,
        Word::Worse => Exit::Regression,
        Word::Undecided if args.strict => Exit::Undecided,
        Word::Better | Word::Same | Word::Undecided => Exit::Success,
    })
}

/// This program, as results name it.
pub(crate) fn tool() -> Tool {
    Tool { name: "plimsoll".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

fn groups(names: &[String], history: &mut History) -> Result<[Group; 2], Problems> {
    let [a, b] = names else {
        let problem = Problem::new(format!("two groups of runs are compared, {} given", names.len()))
            .with_hint("name a group by a folder, a quoted pattern ('base/*.json') or a list with commas");
        return Err(problem.into());
    };
    let mut read = result_files::read(&[a, b], history)?.into_iter();
    let mut group = |name: &String| Group { name: name.clone(), members: read.next().unwrap_or_default() };
    Ok([group(a), group(b)])
}
