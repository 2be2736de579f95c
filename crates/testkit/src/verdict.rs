//! Runs whose verdict depends on the machine that the tests share.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;

/// The environment variable that names a file which gets a line for each run: its exit code.
const VARIABLE: &str = "PLIMSOLL_VERDICTS";

/// Returns `true` for the exit code of a run that was carried out: 0, or 3 where the machine was too busy to
/// measure on.
///
/// Tests of counts and contents take both, because other tests run beside them. A defect that made every run
/// invalid would pass all of them: so each code is noted in the file that `PLIMSOLL_VERDICTS` names, and
/// `.ci/run` looks at the share of 3.
pub fn ran(code: Option<i32>) -> bool {
    let Some(code @ (0 | 3)) = code else { return false };
    if let Some(path) = env::var_os(VARIABLE) {
        // One write per line, so that lines of other tests do not mix with it.
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let noted = file.and_then(|mut file| file.write_all(format!("{code}\n").as_bytes()));
        noted.unwrap_or_else(|error| panic!("{VARIABLE} names {}: {error}", path.display()));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_was_carried_out_by_its_code() {
        assert_eq!([Some(0), Some(3)].map(ran), [true; 2]);
        assert_eq!([None, Some(1), Some(2), Some(6), Some(99), Some(130)].map(ran), [false; 6]);
    }
}
