//! Servers that are watched beside the load.

use serde_json::Value;

use crate::loopback::process::{Folder, Process, plimsoll, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::assert_balance;

/// A program that runs until it is killed.
fn bystander() -> Process {
    let mut process = Process::start(plimsoll("sink --listen 127.0.0.1:0"));
    process.stderr.wait_for("sink: listening on ");
    process
}

#[test]
fn a_watched_process_is_in_every_interval_and_its_end_is_told() {
    let folder = Folder::new();
    let (csv, bystander) = (folder.file("run.csv"), bystander());
    let pid = bystander.id();
    let mut sink = Sink::telling("");
    let flags = format!("--watch-pid {pid} --interval 200ms --rate 200 -o json --out csv={csv}");
    let mut run = Process::start(plimsoll(&format!("{} -d 60s {flags}", sink.url())));
    sink.wait_for_load();
    drop(bystander);
    let told = run.stderr.wait_for("had ended by");
    assert!(told.starts_with(&format!("note: the watched process {pid} (plimsoll) had ended by ")), "{told}");
    run.signal("INT");
    let result = run.finish().result();
    assert_balance(&result);
    let watched = result["generator"]["watched"].as_array().expect("there are some");
    let [target, other] = watched.as_slice() else { panic!("the sink and the other: {watched:?}") };
    assert_eq!((&target["found_by"], &target["is_target"]), (&"address".into(), &true.into()));
    assert_eq!((&other["found_by"], &other["is_target"]), (&"pid".into(), &false.into()));
    assert_eq!((&other["pids"], &other["ended"]), (&vec![pid].into(), &1.into()));
    assert_eq!((&other["events"][0]["what"], &other["events"][0]["pid"]), (&"ended".into(), &pid.into()));
    assert!(other["memory"]["first_bytes"].as_u64() > Some(1 << 20), "{other}");
    assert_eq!(other["memory"]["growth_bytes_per_min"], Value::Null, "nothing was left at the end");
    // The target went on.
    let memory = &target["memory"];
    assert!(memory["last_bytes"].is_u64(), "{target}");
    assert_eq!(memory["growth_bytes_per_min"], Value::Null, "a run of seconds shows none");
    assert!(target["used"]["write_calls"].is_u64() && target["used"]["descriptors"].is_u64(), "{target}");

    let intervals = result["intervals"].as_array().expect("there are some");
    let looks: Vec<&Value> = intervals.iter().map(|interval| &interval["machine"]["watched"][1]).collect();
    let ended = looks.iter().filter(|look| look["processes"] == 0);
    // A process that has ended has no figures, rather than zeros.
    assert!(ended.clone().count() > 0 && ended.clone().all(|look| look["used"].is_null()), "{looks:?}");
    let text = std::fs::read_to_string(csv).expect("it was written");
    let (header, rows) = text.split_once('\n').expect("a header");
    assert!(header.contains("watched_1_rss_bytes") && header.ends_with("watched_2_write_calls"), "{header}");
    let cells = header.split(',').count();
    assert!(rows.lines().all(|row| row.split(',').count() == cells), "{text}");
    assert!(rows.lines().any(|row| row.ends_with(",0,,,,,,,,,")), "{text}");
}

#[test]
fn who_is_not_there_cannot_be_watched() {
    let sink = Sink::start("");
    let of = |flags: &str| run(&format!("{} -n 1 {flags}", sink.url()));
    of("--watch-pid 4194999").assert_refused(2, "--watch-pid 4194999: there is no such process");
    of("--watch-process no-such-name").assert_refused(2, "no process on this machine has this name");
}
