//! The program with this extension alone, for its tests.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_app::main(&[plimsoll_llm::EXTENSION])
}
