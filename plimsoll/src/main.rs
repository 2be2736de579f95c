//! The `plimsoll` binary: the program itself is the library `plimsoll_app`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_app::main(plimsoll::EXTENSIONS)
}
