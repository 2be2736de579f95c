//! Effects of a threshold in a real run: exit code, result and report.

use serde_json::Value;

use crate::loopback::process::{Finished, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance};

/// The result, and whether the run was ended by the code that belongs to it: on a busy machine a run may be
/// invalid, and then proves nothing about thresholds but that errors broke a limit of errors.
fn result(finished: &Finished, code: i32) -> Value {
    let result: Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", finished.stdout, finished.stderr));
    let valid = result["verdict"]["valid"] == true;
    let mut thresholds = result["thresholds"].as_array().into_iter().flatten();
    let proven = thresholds.any(|one| one["passed"] == false && one["proven"] == true);
    assert_eq!(finished.code, Some(if valid || proven { code } else { 3 }), "{}", result["verdict"]);
    assert_balance(&result);
    result
}

#[test]
fn met_thresholds_end_well() {
    let sink = Sink::start("");
    let flags = "-n 3000 -c 8 --threshold p99<9s --threshold failed==0 --threshold error_rate<0.1% -o json";
    let result = result(&run(&format!("{} {flags}", sink.url())), 0);
    assert_eq!(result["verdict"]["thresholds"], "pass");
    let texts: Vec<_> = result["thresholds"].as_array().unwrap().iter().map(|t| t["text"].clone()).collect();
    assert_eq!(texts, ["p99<9s", "failed==0", "error_rate<0.1%"]);
    assert!(result["run"]["ended_by_threshold"].is_null());
}

#[test]
fn a_threshold_that_is_not_met_is_exit_code_99_and_one_that_shows_nothing_is_3() {
    let sink = Sink::start("--fail 20%:503");
    for (threshold, reason) in [
        ("error_rate<5%", None),
        ("status_5xx<10", None),
        ("failed<=0.1%", None),
        ("max<1ns", None),
        // 400 of them failed, and of 29,956 samples 3 may.
        ("p99.99<9s", None),
        ("p99.99{ok}<9s", Some("needs 29,956 samples, has ")),
        ("tls_time.p50<9s", Some("no data")),
    ] {
        let flags = format!("-n 2000 -c 8 --threshold ok>1 --threshold {threshold} -o json");
        let code = if reason.is_none() { 99 } else { 3 };
        let result = result(&run(&format!("{} {flags}", sink.url())), code);
        assert_eq!(result["verdict"]["thresholds"], "fail", "{threshold}");
        if code == 3 && result["verdict"]["valid"] == true {
            assert_eq!(result["verdict"]["cause"], "not_shown", "{threshold}");
        }
        let [met, failed] = &**result["thresholds"].as_array().unwrap() else { panic!("two were given") };
        assert_eq!((&met["passed"], &failed["passed"]), (&Value::Bool(true), &Value::Bool(false)));
        let said = failed["reason"].as_str();
        assert!(said.is_some() == reason.is_some(), "{failed}");
        assert!(said.unwrap_or_default().starts_with(reason.unwrap_or_default()), "{failed}");
    }
}

/// Symptom: 50 requests of 4 ms were FAIL by `p95<200ms`, for want of 9 more.
#[test]
fn a_run_that_is_too_short_for_a_percentile_says_so_before_and_after() {
    let sink = Sink::start("--delay 4ms");
    let load = |length: &str, threshold: &str| {
        run(&format!("{} --rate 50 -d {length} --threshold {threshold} -o json", sink.url()))
    };
    let short = load("1s", "p95<9s");
    let said =
        "p95<9s will not be shown to hold: it needs 59 samples, and 50 requests are due; -d 2s would do";
    assert!(short.stderr.contains(&format!("warning: {said}")), "{}", short.stderr);
    let result_of_short = result(&short, 3);
    let threshold = &result_of_short["thresholds"][0];
    assert_eq!((&threshold["passed"], &threshold["proven"]), (&false.into(), &false.into()));
    assert_eq!(threshold["reason"], "needs 59 samples, has 50: at this rate 2s would do");
    // So many have to be slow that nine more could not mend it: then it has failed.
    let slow = load("1s", "p95<1us");
    assert!(slow.stderr.contains("warning: p95<1us will not be shown"), "{}", slow.stderr);
    let result_of_slow = result(&slow, 99);
    assert_eq!(result_of_slow["thresholds"][0]["observed"]["at_least"], true);
    let enough = load("2s", "p95<9s");
    assert!(!enough.stderr.contains("will not be shown"), "{}", enough.stderr);
    result(&enough, 0);
}

#[test]
fn a_run_ends_as_soon_as_a_threshold_is_shown_not_to_hold() {
    let sink = Sink::start("--fail 50%:500");
    // Ten minutes, if nothing ends it.
    let flags = "-d 10m -c 4 --rate 500 --interval 200ms --threshold error_rate<10% --abort-on-fail -o json";
    let result = result(&run(&format!("{} {flags}", sink.url())), 99);
    assert_eq!(result["run"]["ended_by_threshold"], "error_rate<10%");
    assert_eq!(result["thresholds"][0]["ended_run"], true);
    let failed = account(&result, "failed");
    assert!(failed > 10 && account(&result, "started") < 60_000, "{}", result["accounting"]);
    let intervals = result["intervals"].as_array().unwrap();
    assert!(intervals.iter().any(|interval| interval["thresholds_failed"] == 1), "{intervals:?}");
}
