//! Contract with scripts: the names in the result, the demo, and where text goes.

use plimsoll_testkit::verdict;
use serde_json::Value;

use crate::loopback::process::run;
use crate::loopback::sink::Sink;

/// The keys of the result contract, DESIGN section 4.
const KEYS: &[(&str, &str)] = &[
    (
        "",
        "schema_version tool run verdict accounting rate duration_s bytes protocols response_time \
         service_time start_lag connect_time tls_time first_byte_time statuses errors by_step intervals \
         generator",
    ),
    ("/tool", "name version"),
    ("/run", "id seed started_at args plan_hash host"),
    ("/verdict", "outcome cause summary valid invalid_reasons thresholds"),
    ("/accounting", "scheduled started dropped never_started ok failed timed_out in_flight_at_stop"),
    ("/rate", "target_per_s achieved_per_s"),
    ("/bytes", "sent received"),
    ("/protocols", "http/1.1"),
    ("/statuses", "200"),
    ("/by_step/0", "scenario step response_time service_time start_lag statuses errors"),
    ("/intervals/0", "at_s started ok failed achieved_per_s response_time"),
    ("/intervals/0/response_time", "p"),
    ("/generator", "threads cpu_user_s cpu_sys_s cpu_us_per_request rss_peak_bytes backend calibration"),
];
/// The times of the contract, and the keys of each.
const TIMES: &str = "response_time service_time start_lag connect_time tls_time first_byte_time";
const TIME_KEYS: &str = "unit count min mean stdev max p";
const PERCENTILES: &str = "50 90 95 99 99.9 99.99";

pub(crate) fn assert_contract(result: &Value) {
    let assert_keys = |object: &Value, keys: &str, place: &str| {
        for key in keys.split_whitespace() {
            assert!(object.get(key).is_some(), "`{key}` is missing in `{place}`");
        }
    };
    for (place, keys) in KEYS {
        let object = result.pointer(place).unwrap_or_else(|| panic!("`{place}` is missing"));
        assert_keys(object, keys, place);
    }
    for time in TIMES.split_whitespace() {
        assert_keys(&result[time], TIME_KEYS, time);
        assert_keys(&result[time]["p"], PERCENTILES, time);
        assert_eq!(result[time]["unit"], "ns", "{time}");
        assert_reasons(&result[time], time);
    }
}

/// A percentile without enough samples is null and has a reason; one that is there has none.
fn assert_reasons(time: &Value, name: &str) {
    for (p, value) in time["p"].as_object().expect("an object") {
        assert_eq!(value.is_null(), time["p_missing"].get(p).is_some(), "{name} p{p}: {value}");
    }
}

#[test]
fn every_result_keeps_the_contract() {
    let sink = Sink::start("");
    for load in ["-n 100 -c 4", "--rate 100 -d 1s", "-n 1 -c 1", "--rate 400 -d 1s --warmup 100ms -t 2"] {
        assert_contract(&run(&format!("{} {load} -o json", sink.url())).result());
    }
}

#[test]
fn a_run_without_a_good_response_has_the_same_keys_and_has_failed() {
    let finished = run("http://127.0.0.1:1/ --no-preflight -c 2 -d 300ms -o json");
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let result = finished.result();
    assert_eq!(result["verdict"]["outcome"], "fail");
    assert!(!result["verdict"]["invalid_reasons"].to_string().contains("too_few_samples"));
    for time in TIMES.split_whitespace() {
        assert_reasons(&result[time], time);
    }
    assert!(result["response_time"]["max"].is_null() && result["response_time"]["p"]["50"].is_null());
}

#[test]
fn the_exit_code_is_the_outcome_and_the_streams_are_kept_apart() {
    let sink = Sink::start("");
    let finished = run(&format!("{} -n 50 -c 2 -o json", sink.url()));
    let valid = finished.result()["verdict"]["valid"].as_bool();
    assert_eq!(finished.code, Some(if valid == Some(true) { 0 } else { 3 }));
    assert_eq!(finished.stderr, "", "there is no progress where there is no terminal");
    let text = run(&format!("{} -n 50 -c 2", sink.url()));
    assert!(
        text.stdout.contains("\nmeasurement ") && text.stdout.contains("50 requests in "),
        "{}",
        text.stdout
    );
    assert!(!text.stdout.contains('\x1b'), "no colour where there is no terminal");
    let csv = run(&format!("{} -n 50 -c 2 -o csv", sink.url()));
    let columns = |line: &str| line.matches(',').count();
    let lines: Vec<&str> = csv.stdout.lines().collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| columns(line) == columns(lines[0])), "{lines:?}");
}

#[test]
fn the_demo_shows_both_models_and_explains_them() {
    let finished = run("demo");
    assert!(verdict::ran(finished.code), "{finished:?}");
    let text = &finished.stdout;
    let (closed, open) = (text.find("\nclosed: 16 users on 16 connections"), text.find("\nopen: 2000/s"));
    assert!(closed.is_some() && closed < open, "{text}");
    assert_eq!(text.matches("\nmeasurement ").count(), 2, "{text}");
    let explained = text.rsplit_once("What to look at:").map(|(_, lines)| lines);
    assert!(explained.is_some_and(|lines| ["1. ", "2. ", "3. "].iter().all(|n| lines.contains(n))), "{text}");
}
