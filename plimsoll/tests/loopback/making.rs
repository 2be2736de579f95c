//! CPU cost of the threads beside the workers that make and sign bodies ahead.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::loopback::process::{Folder, Process, plimsoll};

/// A key without an owner.
const ED25519: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIPX8G5jnHt5tW0cMqAbaqDg8k37K3d/eROQz7YbXMeL6\n\
    -----END PRIVATE KEY-----\n";
/// The smallest part of the CPU time of the process that has to be in the report. The rest does not belong to
/// the load: the start, the record, the tail after the measured part.
const LEAST: f64 = 0.7;

/// Runs a load; returns its result and the CPU time of its whole process in seconds, as the shell reports it.
fn measured(folder: &Folder, args: &str) -> (Value, f64) {
    let json = folder.file("result.json");
    let line = format!("{} {args} --json {json} >/dev/null; times", env!("CARGO_BIN_EXE_plimsoll"));
    let output = Command::new("sh").args(["-c", &line]).stderr(Stdio::null()).output().expect("a shell");
    let text = String::from_utf8(output.stdout).expect("times are text");
    let children = text.lines().nth(1).unwrap_or_else(|| panic!("no times: {text}"));
    // `0m1.23s 0m0.45s`: user and system time of all children.
    let seconds = |time: &str| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("a time");
        minutes.parse::<f64>().expect("minutes") * 60.0 + seconds.parse::<f64>().expect("seconds")
    };
    let used = children.split_whitespace().map(seconds).sum();
    let result = std::fs::read_to_string(&json).expect("the result");
    (serde_json::from_str(&result).expect("JSON"), used)
}

/// Asserts that the report has the CPU time of the process, and gives the share of threads of a kind.
fn share_of(kind: &str, (result, used): &(Value, f64)) -> f64 {
    let generator = &result["generator"];
    let seconds = |value: &Value| value.as_f64().expect("a number");
    let told = seconds(&generator["cpu_user_s"]) + seconds(&generator["cpu_sys_s"]);
    assert!(told <= used * 1.02, "{told} s told of {used} s: {generator}");
    assert!(told >= LEAST * used, "{told} s told of {used} s: {}", generator["cpu_by_kind"]);
    let parts = generator["cpu_by_kind"].as_array().expect("kinds of threads");
    let sum: f64 = parts.iter().map(|part| seconds(&part["cpu_s"])).sum();
    assert!((sum - told).abs() < 1e-6, "{parts:?}");
    let of_kind = parts.iter().find(|part| part["kind"] == kind).unwrap_or_else(|| panic!("{parts:?}"));
    assert_eq!(of_kind["threads"], 1);
    let per_request: f64 = parts.iter().map(|part| seconds(&part["cpu_us_per_request"])).sum();
    assert!((per_request - seconds(&generator["cpu_us_per_request"])).abs() < 0.01, "{parts:?}");
    seconds(&of_kind["cpu_s"]) / told
}

#[test]
fn cpu_per_request_has_the_threads_that_make_bodies_and_sign() {
    let folder = Folder::new();
    let mut store = Process::start(plimsoll("target ingest --listen 127.0.0.1:0"));
    let line = store.stderr.wait_for("listening on ");
    let address = line.rsplit(' ').next().expect("an address").trim_start_matches("http://").to_owned();
    let load = format!("ingest logs --url http://{address} --rate 500k --compression gzip -d 2s");
    let making = share_of("bodies", &measured(&folder, &load));
    assert!(making > 0.5, "gzip is most of the work: {making}");
    let mut replica = Process::start(plimsoll("sink --canister --listen 127.0.0.1:0"));
    let line = replica.stderr.wait_for("listening on ");
    let address = line.rsplit(' ').next().expect("an address").trim_start_matches("http://").to_owned();
    let pem = folder.write("key.pem", ED25519);
    let load = format!("canister http://{address} -r 3000 -d 2s --pem-file {pem}");
    let signing = share_of("signing", &measured(&folder, &load));
    assert!(signing > 0.05, "signatures are not for nothing: {signing}");
}
