//! The program as processes.

use std::process::Command;

use plimsoll_testkit::program;

pub(crate) use plimsoll_testkit::program::{Finished, Folder, Process};

/// Returns the command of the program with the words of `args` as its arguments.
pub(crate) fn plimsoll(args: &str) -> Command {
    program::command(env!("CARGO_BIN_EXE_plimsoll"), args)
}

/// Runs the program to its end, beside no measurement.
pub(crate) fn run(args: &str) -> Finished {
    program::run(plimsoll(args))
}

/// Runs the program to its end beside other tests: what it does takes long, and does not depend on them.
pub(crate) fn run_beside(args: &str) -> Finished {
    Process::start(plimsoll(args)).finish()
}
