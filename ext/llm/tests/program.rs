//! The program with this extension alone.

use std::process::Command;

use plimsoll_testkit::program::{self, Finished};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_plimsoll-llm");

/// Returns the command of the program with the words of `args` as its arguments.
pub(crate) fn plimsoll(args: &str) -> Command {
    program::command(PROGRAM, args)
}

/// Runs the program to its end, beside no measurement.
pub(crate) fn run(args: &str) -> Finished {
    program::run(plimsoll(args))
}
