//! Where slow requests come from: the slowest and the first failed ones are named as their traces are.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_testkit::machine;
use serde_json::{Value, json};

use crate::loopback::exports::scrape;
use crate::loopback::foreign::python;
use crate::loopback::process::{Folder, Process, plimsoll, run};
use crate::loopback::sink::Sink;

/// The traces of requests by path, as the server of `traced.py` saw them, each with its flags.
fn seen(folder: &Folder) -> BTreeMap<String, Vec<(String, String)>> {
    let log = std::fs::read_to_string(folder.file("traces.log")).expect("the server has a log");
    let mut all: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for line in log.lines() {
        let (trace, path) = line.split_once(' ').expect("a trace and a path");
        let [_, id, _, flags] = trace.split('-').collect::<Vec<_>>()[..] else { panic!("{line}") };
        all.entry(path.to_owned()).or_default().push((id.to_owned(), flags.to_owned()));
    }
    all
}

fn server(folder: &Folder) -> Option<(Process, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/loopback/traced.py");
    let mut server = python(&[script, &folder.file("traces.log")])?;
    let url = format!("http://127.0.0.1:{}", server.stdout.wait_for("").trim());
    Some((server, url))
}

#[test]
fn slow_and_failed_requests_are_found_by_their_traces() {
    let folder = Folder::new();
    let Some((_server, url)) = server(&folder) else { return };
    let plan = json!({
        "targets": {"t": url},
        "run": {"users": 2, "iterations": 30},
        "scenarios": [
            {"name": "fast", "weight": 8, "steps": [{"name": "fast", "get": "/fast"}]},
            {"name": "slow", "weight": 1, "steps": [{"name": "slow", "get": "/slow"}]},
            {"name": "fail", "weight": 1, "steps": [{"name": "fail", "get": "/fail"}]},
        ],
    });
    let file = folder.write("plan.json", plan.to_string());
    let page = folder.file("page.html");
    let flags = "--trace-context --trace-link https://traces.test/t/${trace_id}?x=1";
    let text = folder.file("report.txt");
    let finished = run(&format!("run {file} {flags} --report {page} --out text={text} -o json"));
    let result = finished.result();
    // Symptom: only the slowest requests of a report had their traces.
    let failed = &result["by_step"][2]["error_examples"]["status_5xx"]["trace_id"];
    let failed = failed.as_str().expect("a trace");
    let report = std::fs::read_to_string(&text).expect("it was written");
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains(&format!("; trace {failed}")), "{report}");
    let seen = seen(&folder);
    for (number, path) in ["/fast", "/slow", "/fail"].into_iter().enumerate() {
        let step = &result["by_step"][number];
        let served: BTreeSet<&str> = seen[path].iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(served.len(), seen[path].len(), "each request has a trace of its own");
        assert!(seen[path].iter().all(|(_, flags)| flags == "01"));
        let slowest = step["slowest"].as_array().expect("the slowest");
        assert_eq!(slowest.len(), served.len().min(5), "{step:#}");
        let times: Vec<u64> = slowest.iter().filter_map(|one| one["response_time"].as_u64()).collect();
        assert!(times.is_sorted_by(|a, b| a >= b) && times.len() == slowest.len(), "{times:?}");
        assert_eq!(Some(times[0]), step["response_time"]["max"].as_u64().or(Some(times[0])));
        for one in slowest {
            let id = one["trace_id"].as_str().expect("an id");
            assert!(served.contains(id), "{path}: {id} is none of {served:?}");
        }
    }
    let least = |step: usize| result["by_step"][step]["slowest"][0]["service_time"].as_u64();
    assert!(least(1) >= Some(60_000_000) && least(2) >= Some(30_000_000), "{result:#}");
    let failed = &result["by_step"][2];
    assert_eq!(
        (&failed["slowest"][0]["status"], &failed["slowest"][0]["failure"]),
        (&json!(500), &json!("status_5xx"))
    );
    let timing = |ms: u64| {
        json!([
            {"name": "db", "duration": ms * 1_000_000, "description": "the shard"},
            {"name": "miss", "duration": null, "description": null},
        ])
    };
    assert_eq!(result["by_step"][0]["slowest"][0].get("server_timing"), None);
    assert_eq!(result["by_step"][1]["slowest"][0]["server_timing"], timing(60));
    assert_eq!(failed["slowest"][0]["server_timing"], timing(30));
    assert_eq!(failed["error_examples"]["status_5xx"]["server_timing"], timing(30));
    let example = failed["error_examples"]["status_5xx"]["trace_id"].as_str().expect("an id");
    assert!(seen["/fail"].iter().any(|(id, _)| id == example), "{example}");
    let id = result["by_step"][1]["slowest"][0]["trace_id"].as_str().expect("an id");
    let page = std::fs::read_to_string(page).expect("the page was written");
    let saved = folder.write("result.json", finished.stdout);
    let shown = Process::start(plimsoll(&format!("show {saved} -o text"))).finish().stdout;
    for (what, content) in [("page", &page), ("text", &shown)] {
        let words = "db 60.0 ms (the shard), miss";
        assert!(content.contains(words), "{words} is not in the {what}: {content}");
    }
    assert!(page.contains(&format!("href=\"https://traces.test/t/{id}?x=1\"")), "the link is on the page");
}

#[test]
fn a_share_is_sampled_and_a_header_of_the_plan_stays() {
    let folder = Folder::new();
    let Some((_server, url)) = server(&folder) else { return };
    run(&format!("{url}/a -n 200 -c 4 --trace-context=25% -o json")).result();
    let all = &seen(&folder)["/a"];
    let sampled = all.iter().filter(|(_, flags)| flags == "01").count();
    assert!((20..90).contains(&sampled), "{sampled} of {}", all.len());
    let own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let plan = json!({
        "targets": {"t": url},
        "run": {"users": 1, "iterations": 3, "trace_context": true},
        "scenarios": [{"steps": [
            {"name": "own", "get": "/b", "headers": {"traceparent": own}},
            {"name": "ours", "get": "/c"},
        ]}],
    });
    let file = folder.write("plan.json", plan.to_string());
    let result = run(&format!("run {file} -o json")).result();
    assert!(seen(&folder)["/b"].iter().all(|(id, _)| id == "0af7651916cd43dd8448eb211c80319c"));
    let named = |step: usize| result["by_step"][step]["slowest"][0]["trace_id"].as_str().is_some();
    // The trace of the other header is not ours to name.
    assert_eq!([named(0), named(1)], [false, true], "{result:#}");
    // Nothing of a head is kept where no request names a trace.
    let plain = run(&format!("{url}/slow -n 20 -c 2 -o json")).result();
    assert!(!plain.to_string().contains("server_timing"), "{plain:#}");
    run(&format!("{url}/d --trace-context -H traceparent:{own}"))
        .assert_refused(2, "--trace-context has no effect");
}

/// Traces differ from run to run, and the load is the same one.
#[test]
fn the_slowest_requests_are_in_reports_and_evidence() {
    let _turn = machine::load();
    let sink = Sink::start("--delay constant:2ms");
    let folder = Folder::new();
    let evidence = folder.file("evidence");
    let store = folder.file("runs.db");
    let line = format!("{} -R 50 -d 400ms --seed 3 --trace-context --save --store {store}", sink.url());
    let run = |more: &str| Process::start(plimsoll(&format!("{line} {more}"))).finish();
    let finished = run(&format!("--name a --long --evidence {evidence}"));
    assert!(finished.stdout.contains("due at"), "{}\n{}", finished.stdout, finished.stderr);
    let verified = Process::start(plimsoll(&format!("verify {evidence}"))).finish();
    assert_eq!(verified.code, Some(0), "{}\n{}", verified.stdout, verified.stderr);
    let checksums: BTreeSet<String> = ["b", "c"]
        .map(|name| run(&format!("--name {name} -o json")).result()["run"]["load_checksum"].to_string())
        .into();
    assert_eq!(checksums.len(), 1, "{checksums:?}");
    let shown: Value = Process::start(plimsoll(&format!("show a --store {store} -o json"))).finish().result();
    assert_eq!(shown["by_step"][0]["slowest"].as_array().map(Vec::len), Some(5), "{shown:#}");
}

/// The ids of the traces in the buckets of a run that is being scraped, with their limits and values in
/// seconds.
fn exemplars(address: &str, accept: &str) -> Vec<(String, f64, f64)> {
    let text = scrape(address, accept);
    let buckets = text.lines().filter_map(|line| line.split_once(" # {trace_id=\""));
    let read = |(series, exemplar): (&str, &str)| {
        assert!(series.starts_with("plimsoll_response_time_seconds_bucket{"), "{series}");
        let limit = series.split_once("le=\"").and_then(|(_, rest)| rest.split('"').next()).expect("a limit");
        let (id, rest) = exemplar.split_once("\"} ").expect("an id");
        let value = rest.split(' ').next().expect("a value");
        (
            id.to_owned(),
            limit.replace("+Inf", "inf").parse().expect("a limit"),
            value.parse().expect("a value"),
        )
    };
    buckets.map(read).collect()
}

#[test]
fn a_server_of_prometheus_is_told_of_recorded_traces() {
    let folder = Folder::new();
    let Some((_server, url)) = server(&folder) else { return };
    let _turn = machine::load();
    let open = "application/openmetrics-text;version=1.0.0";
    for (flags, is_named) in [("--trace-context", true), ("--trace-context=25%", true), ("", false)] {
        let load =
            format!("{url}/slow --users 4 -d 30s --interval 100ms --prometheus 127.0.0.1:0 {flags} -o json");
        let mut run = Process::start(plimsoll(&load));
        let line = run.stderr.wait_for("metrics: http://");
        let address = line.trim_start_matches("metrics: http://").trim_end_matches("/metrics").to_owned();
        let has_come =
            |found: &[(String, f64, f64)]| if is_named { !found.is_empty() } else { told(&address) >= 20 };
        // The end of the run ends the waiting: then nothing listens.
        let mut found = exemplars(&address, open);
        while !has_come(&found) {
            found = exemplars(&address, open);
        }
        assert_eq!(exemplars(&address, "text/plain"), [], "the older text has none");
        run.signal("INT");
        run.finish().result();
        if !is_named {
            assert_eq!(found, [], "{flags}");
            continue;
        }
        let all = &seen(&folder)["/slow"];
        for (id, limit, value) in &found {
            assert!(*value >= 0.06 && value <= limit, "{value} is above {limit}");
            // A trace that its server does not record leads nowhere.
            assert!(all.iter().any(|(known, flags)| known == id && flags == "01"), "{id} is none of {all:?}");
        }
    }
}

/// Requests that have ended, of a run that is being scraped.
fn told(address: &str) -> u64 {
    let text = scrape(address, "text/plain");
    let series = text.lines().filter(|line| line.starts_with("plimsoll_requests_total{"));
    series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
}

#[test]
fn links_and_shares_that_are_none_are_refused() {
    run("http://127.0.0.1:1/ --trace-context=2").assert_refused(2, "--trace-context: `2` is not a share");
    run("http://127.0.0.1:1/ --trace-link https://traces.test/${trace_id}")
        .assert_refused(2, "--trace-link has no effect");
    run("cache --server 127.0.0.1:1 --trace-context").assert_refused(2, "--trace-context has no effect");
    for link in ["https://traces.test/", "javascript:alert(${trace_id})"] {
        run(&format!("http://127.0.0.1:1/ --trace-context --trace-link {link}"))
            .assert_refused(2, "--trace-link: a link to a trace");
    }
}
