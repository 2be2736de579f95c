//! Tests that show nothing on a machine, because something is missing there.

use std::env;
use std::io::Write as _;

/// The environment variable that makes a missing program a failure, as in continuous integration.
const VARIABLE: &str = "PLIMSOLL_NO_SKIP";

/// Reports that a test shows nothing because a program is not installed.
///
/// # Panics
/// If the environment variable `PLIMSOLL_NO_SKIP` is set: it promises that all programs are installed.
pub fn without_program(program: &str) {
    let message = format!("{program} is not installed, so nothing is tested with it");
    assert!(!fails(env::var_os(VARIABLE).as_deref()), "{message} ({VARIABLE} is set)");
    on_this_machine(&message);
}

/// Reports that a test shows nothing for a reason that no installation removes, such as a missing feature of
/// the kernel.
pub fn on_this_machine(reason: &str) {
    // Bypasses the test harness, which hides the output of tests that pass. Without a stderr there is no one
    // to tell.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
}

fn fails(value: Option<&std::ffi::OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_set_makes_a_skip_a_failure() {
        for (value, expected) in [(None, false), (Some(""), false), (Some("0"), false), (Some("1"), true)] {
            assert_eq!(fails(value.map(std::ffi::OsStr::new)), expected, "{value:?}");
        }
    }
}
