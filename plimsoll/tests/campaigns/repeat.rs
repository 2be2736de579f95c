//! `plimsoll run --repeat` against a sink.

use plimsoll_testkit::verdict;
use serde_json::Value;

use super::bench::{Sink, output, stderr};

#[test]
fn each_run_has_its_own_seed_and_connections_and_compare_takes_them_as_a_group() {
    let sink = Sink::start(&[]);
    let file = std::env::temp_dir().join(format!("plimsoll-repeat-{}.json", std::process::id()));
    let path = file.to_str().expect("the temporary folder has a name");
    let load = ["run", &sink.url, "-c", "3", "-n", "600", "--seed", "11", "--repeat", "3", "-o", "json"];
    let made = output(&[&load[..], &["--json", path]].concat());
    // On a machine that has no time for it, the generator says so.
    assert!(verdict::ran(made.status.code()), "{}", stderr(&made));
    let result: Value = serde_json::from_slice(&made.stdout).expect("one object");
    let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(result, written);
    let runs = result["runs"].as_array().unwrap();
    let of = |pointer: &str| -> Vec<u64> {
        runs.iter().map(|run| run.pointer(pointer).and_then(Value::as_u64).expect("a number")).collect()
    };
    assert_eq!(of("/run/seed"), [11, 12, 13]);
    assert_eq!(of("/accounting/ok"), [600, 600, 600]);
    assert_eq!(of("/connections/opened"), [3, 3, 3]);
    // The request before the runs was sent once.
    assert_eq!(of("/accounting/unmeasured"), [1, 0, 0]);
    assert!(runs.iter().all(|run| run["notes"].as_array().unwrap().is_empty()));
    let rate = &result["between_runs"].as_array().unwrap()[4];
    let rates: Vec<f64> = rate["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert_eq!((rate["metric"].as_str(), rates.len()), (Some("rate"), 3));
    assert!((rate["mean"].as_f64().unwrap() - rates.iter().sum::<f64>() / 3.0).abs() < 1e-6, "{rate}");

    // A group that is given twice is found by its runs.
    let twice = output(&["compare", path, path]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(stderr(&twice).contains("(run 3) are the same run"), "{}", stderr(&twice));
    let other = file.with_extension("other.json");
    let again = output(&["run", &sink.url, "-c", "3", "-n", "600", "--json", other.to_str().unwrap()]);
    assert!(verdict::ran(again.status.code()), "{}", stderr(&again));
    let compared = output(&["compare", path, other.to_str().unwrap(), "--allow-invalid", "-o", "json"]);
    let comparison: Value = serde_json::from_slice(&compared.stdout).expect("one object");
    assert_eq!(comparison["a"]["runs"].as_array().unwrap().len(), 3);
    assert_eq!(comparison["a"]["runs"][1]["file"], format!("{path} (run 2)"));
    assert_eq!(comparison["b"]["runs"].as_array().unwrap().len(), 1);
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_file(&other).unwrap();
}

#[test]
fn the_worst_run_decides_the_exit_code() {
    let sink = Sink::start(&[]);
    let made = output(&["run", &sink.url, "-n", "400", "--repeat", "2", "--threshold", "ok<1", "--quiet"]);
    let text = String::from_utf8_lossy(&made.stdout);
    assert!(matches!(made.status.code(), Some(99 | 3)), "{text}");
    assert!(text.contains("FAIL ok<1: in 2 of 2 runs"), "{text}");
}

/// The pause is between the runs, not behind the last, and a signal ends it.
#[test]
fn runs_have_a_pause_between_them() {
    let sink = Sink::start(&[]);
    let made = output(&["run", &sink.url, "-n", "20", "-c", "2", "--repeat", "2", "--pause", "300ms"]);
    let said = stderr(&made);
    assert_eq!(said.matches("300 ms until the next run").count(), 1, "{said}");
    let refused = output(&["run", &sink.url, "-n", "20", "--pause", "1s"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--repeat"), "{}", stderr(&refused));
    let refused = output(&["run", &sink.url, "-n", "20", "--repeat", "2", "--pause", "x"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}

#[test]
fn what_cannot_be_repeated_is_refused_at_once() {
    let url = "http://127.0.0.1:1/";
    let all = ["--stats", "x", "--log", "y", "--failed", "z", "--rate-file", "r", "--control", "127.0.0.1:0"];
    let refused = output(&[&["run", url, "--repeat", "2", "-R", "5"][..], &all].concat());
    assert_eq!(refused.status.code(), Some(2));
    for flag in ["--stats", "--log", "--failed", "--rate-file", "--control"] {
        let message = format!("--repeat and {flag} exclude each other");
        assert!(stderr(&refused).contains(&message), "{}", stderr(&refused));
    }
    for number in ["0", "1001", "x"] {
        let refused = output(&["run", url, "--repeat", number]);
        assert_eq!(refused.status.code(), Some(2), "{number}");
        assert!(stderr(&refused).contains("--repeat"), "{}", stderr(&refused));
    }
    let unreachable = output(&["run", url, "--repeat", "2"]);
    assert_eq!(unreachable.status.code(), Some(1), "{}", stderr(&unreachable));
}
