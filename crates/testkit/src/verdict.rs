//! Runs whose verdict depends on the machine that the tests share.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::thread;

use serde_json::Value;

/// The environment variable that names a file which gets a line for each run: its exit code, its test, the
/// reasons why it is invalid, and their evidence.
const VARIABLE: &str = "PLIMSOLL_VERDICTS";

/// Returns `true` for the exit code of a run that was carried out: 0, or 3 where the machine was too busy to
/// measure on.
///
/// Tests of counts and contents take both, because they hold on a busy machine, too. A defect that made every
/// run invalid would pass all of them: so each code is noted in the file that `PLIMSOLL_VERDICTS` names, and
/// `ci/verdicts` judges the share of 3.
pub fn ran(code: Option<i32>) -> bool {
    let carried_out = matches!(code, Some(0 | 3));
    if carried_out {
        note(code, "");
    }
    carried_out
}

/// Notes the exit code of a run with its result, as [`ran`] does, where other codes are taken, too.
pub fn of_result(code: Option<i32>, result: &Value) {
    let reasons = result["verdict"]["invalid_reasons"].as_array().into_iter().flatten();
    let codes: Vec<&str> = reasons.filter_map(Value::as_str).collect();
    if codes.is_empty() {
        return note(code, "");
    }
    let told = result["verdict"]["evidence"].as_array().into_iter().flatten();
    let evidence: Vec<&str> = told.filter_map(|reason| reason["evidence"].as_str()).collect();
    note(code, &format!("{}\t{}", codes.join(","), evidence.join("; ")));
}

fn note(code: Option<i32>, reasons: &str) {
    let (Some(code), Some(path)) = (code, env::var_os(VARIABLE)) else { return };
    let test = thread::current().name().unwrap_or("a thread of a test").to_owned();
    // One write per line, so that lines of other tests do not mix with it.
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let noted = file.and_then(|mut file| file.write_all(format!("{code}\t{test}\t{reasons}\n").as_bytes()));
    noted.unwrap_or_else(|error| panic!("{VARIABLE} names {}: {error}", path.display()));
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
