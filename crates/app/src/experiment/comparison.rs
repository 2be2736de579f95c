//! Comparisons of groups of runs: how the process ends for them.

use plimsoll_document::{Problem, Problems};
use plimsoll_report::comparison::{Incomparable, Word};

use crate::base::exit::Exit;
use crate::base::failure::Failure;

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
