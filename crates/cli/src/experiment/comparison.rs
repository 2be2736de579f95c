//! Comparisons of groups of runs, written in each format.

use std::io::{self, Write};

use plimsoll_plan::{Problem, Problems};
use plimsoll_report::Style;
use plimsoll_report::comparison::{Comparison, Incomparable, Word};

use crate::args::compare::ComparisonFormat;
use crate::base::exit::Exit;
use crate::base::failure::Failure;

/// Writes a comparison in a format.
pub(crate) fn write(
    comparison: &Comparison,
    format: ComparisonFormat,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        ComparisonFormat::Text => out.write_all(comparison.text(style).as_bytes()),
        ComparisonFormat::Markdown => out.write_all(comparison.markdown().as_bytes()),
        ComparisonFormat::Json => comparison.write_json(out),
    }
}

/// Returns how the process ends for a verdict.
pub(crate) const fn exit_of(verdict: Word, strict: bool) -> Exit {
    match verdict {
        Word::Worse => Exit::Regression,
        Word::Undecided if strict => Exit::Undecided,
        Word::Better | Word::Same | Word::Undecided => Exit::Success,
    }
}

/// Reason why two groups are not compared.
pub(crate) fn incomparable(incomparable: Incomparable) -> Failure {
    let mut problems = Problems::default();
    for reason in incomparable.0 {
        problems.push(
            Problem::new(format!("these runs cannot be compared: {reason}"))
                .with_hint("make the runs alike; --force compares them anyway"),
        );
    }
    Failure::usage(problems)
}
