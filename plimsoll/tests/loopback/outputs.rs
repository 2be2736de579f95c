//! Results in several formats and files at once.

use std::process::Command;

use plimsoll_testkit::verdict;
use serde_json::Value;

use crate::loopback::process::{Folder, Process, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::account;

#[test]
fn one_run_is_written_in_every_format_at_once() {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let formats = ["summary", "text", "json", "csv", "markdown", "junit", "ndjson", "hgrm", "hlog", "k6"];
    let outs: Vec<String> =
        formats.iter().map(|name| format!("--out {name}={}", folder.file(name))).collect();
    let finished = run(&format!("{} -n 3000 -c 4 --threshold p50<1m {}", sink.url(), outs.join(" ")));
    assert!(verdict::ran(finished.code), "{finished:?}");
    assert!(finished.stdout.contains("\n3,000 requests in "), "the report is on stdout: {}", finished.stdout);
    let read = |name: &str| std::fs::read_to_string(folder.file(name)).expect(name);
    let result: Value = serde_json::from_str(&read("json")).expect("JSON");
    assert_eq!(account(&result, "ok"), 3_000);
    let id = result["run"]["id"].as_str().expect("an id");
    assert!(read("text").contains(&format!("run {id}")) && !read("text").contains('\x1b'));
    let said = result["verdict"]["outcome"].as_str().expect("an outcome").replace('_', " ").to_uppercase();
    assert!(read("markdown").starts_with(&format!("### {said}: ")), "{}", read("markdown"));
    assert!(read("summary").starts_with(&format!("{said}  ")), "{}", read("summary"));
    assert!(
        read("junit").contains("<testcase name=\"p50&lt;60s\"")
            || read("junit").contains("<testcase name=\"p50&lt;")
    );
    assert_eq!(read("csv").lines().count(), result["intervals"].as_array().expect("a list").len() + 1);
    let lines = read("ndjson");
    let last: Value = serde_json::from_str(lines.lines().last().expect("lines")).expect("JSON");
    assert_eq!((&last["type"], &last["run"]["id"]), (&Value::from("result"), &result["run"]["id"]));
    let k6: Value = serde_json::from_str(&read("k6")).expect("JSON");
    assert_eq!(k6["metrics"]["http_reqs"]["count"], 3_000);
    assert!(read("hgrm").contains("Total count    =         3000]"), "{}", read("hgrm"));
    assert!(read("hlog").starts_with("#[Histogram log format version 1.3]\n"));
    // Formats begin alike on stdout and in a file.
    for name in ["hgrm", "hlog", "junit", "markdown", "k6"] {
        let finished = run(&format!("{} -n 300 -c 4 -o {name}", sink.url()));
        assert!(verdict::ran(finished.code), "{finished:?}");
        let head =
            |text: &str| text.lines().next().unwrap_or_default().split(' ').take(1).collect::<String>();
        assert_eq!(head(&finished.stdout), head(&read(name)), "{name}");
    }
}

#[test]
fn a_folder_that_does_not_exist_is_refused_before_the_load() {
    let sink = Sink::start("");
    let flags = "-n 100 -c 1 --out junit=/no/such/folder/x.xml";
    run(&format!("{} {flags}", sink.url())).assert_refused(1, "cannot write /no/such/folder/x.xml");
    run(&format!("{} -n 100 --json /no/such/folder/x", sink.url())).assert_refused(1, "--json: cannot write");
    let find = format!("find {} --slo p99<1s --json /no/such/folder/x", sink.url());
    run(&find).assert_refused(1, "--json: cannot write");
    run(&format!("{} --repeat 2 -n 1 --out k6=x", sink.url()))
        .assert_refused(2, "--repeat and --out exclude");
    run(&format!("{} --repeat 2 -n 1 -o junit", sink.url())).assert_refused(2, "text, json or csv");
    assert_eq!(sink.stop().requests, 0, "nothing was sent");
}

#[test]
fn a_file_that_cannot_be_written_keeps_the_result_on_stdout() {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let good = folder.file("good.json");
    let flags = format!("-n 100 -c 1 -o json --out k6=/dev/full --json {good}");
    let finished = run(&format!("{} {flags}", sink.url()));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("error: cannot write /dev/full"), "{}", finished.stderr);
    let result: Value = serde_json::from_str(&finished.stdout).expect("stdout has the result");
    let same: Value = serde_json::from_slice(&std::fs::read(good).expect("it was written")).expect("JSON");
    assert_eq!(result, same);
}

#[test]
fn the_summary_of_a_job_is_appended_to_and_only_if_that_is_asked_for() {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let summary = folder.write("summary.md", "# Before\n");
    let run_with = |flags: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        let args = format!("{} -n 100 -c 1 {flags}", sink.url());
        command.args(args.split_whitespace()).env("GITHUB_STEP_SUMMARY", &summary);
        Process::try_start(&mut command).expect("the program was built").finish()
    };
    run_with("");
    let text = || std::fs::read_to_string(&summary).expect("it is there");
    assert_eq!(text(), "# Before\n", "nobody asked for it");
    run_with("--step-summary");
    assert!(text().starts_with("# Before\n### ") && text().contains("\nmeasurement "), "{}", text());
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args([&sink.url(), "-n", "1", "--step-summary"]).env_remove("GITHUB_STEP_SUMMARY");
    let finished = Process::try_start(&mut command).expect("the program was built").finish();
    finished.assert_refused(2, "GITHUB_STEP_SUMMARY is not set");
}
