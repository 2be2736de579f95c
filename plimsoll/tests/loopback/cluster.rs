//! Clusters that are started, loaded, broken, checked and ended.

use std::path::Path;

use plimsoll_testkit::{machine, verdict};
use serde_json::Value;

use crate::loopback::process::{Finished, Folder, Process, plimsoll, run};
use plimsoll_testkit::eventually::{eventually, wait_to_look_again};

/// Two sinks, and a little load on the first.
pub(crate) const SINKS: &str = r#"
name: sinks
nodes:
  count: 2
  command: ${plimsoll}
  arguments: [sink, --listen, "${address.http}"]
  ports: {http: 0}
  ready:
    - {tcp: http}
    - {log: "sink: listening on"}
parameters: {iterations: 200}
workload:
  run: {connections: 2, iterations: "${matrix.iterations}"}
  targets: {first: "http://${node.0.http}"}
  scenarios:
    - steps: [{get: /}]
"#;

/// A cluster of a test's own.
pub(crate) struct Stage {
    pub(crate) folder: Folder,
    spec: String,
}

impl Stage {
    pub(crate) fn new(spec: &str) -> Self {
        let folder = Folder::new();
        let spec = folder.write("spec.yaml", spec);
        Self { folder, spec }
    }

    /// Flags that name the cluster.
    pub(crate) fn flags(&self) -> String {
        format!("{} --dir {}", self.spec, self.folder.file("cluster"))
    }

    pub(crate) fn run(&self, flags: &str) -> Finished {
        run(&format!("cluster run {} {flags}", self.flags()))
    }

    pub(crate) fn start(&self, flags: &str) -> Process {
        Process::start(plimsoll(&format!("cluster run {} {flags}", self.flags())))
    }

    /// Returns the state file of the cluster, which lists the running nodes.
    pub(crate) fn state(&self) -> Value {
        let text = std::fs::read(self.folder.path().join("cluster/state.json")).expect("the cluster runs");
        serde_json::from_slice(&text).expect("it is JSON")
    }

    /// The processes that have the mark of this cluster.
    fn processes(state: &Value) -> Vec<u32> {
        let mark = format!("PLIMSOLL_NODE={}/", state["id"].as_str().expect("it has one"));
        let numbers = std::fs::read_dir("/proc").expect("it is there").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_marked = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(mark.as_bytes()))
        };
        numbers.filter(is_marked).collect()
    }

    /// Waits until no process of the cluster is left and its ports are free.
    pub(crate) fn await_nobody(state: &Value) {
        let gone = || Self::processes(state).is_empty();
        assert!(eventually(gone), "some are left: {state}");
        let nodes = state["nodes"].as_array().expect("there are some");
        for port in nodes.iter().flat_map(|node| node["ports"].as_array().expect("there are some")) {
            let port = port[1].as_u64().expect("a number") as u16;
            let free = || std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
            assert!(eventually(free), "port {port} is taken");
        }
    }

    /// All files of the test's folder.
    fn files(&self) -> Vec<String> {
        fn gather(folder: &Path, root: &Path, files: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).expect("it is there").flatten() {
                match entry.path().is_dir() {
                    true => gather(&entry.path(), root, files),
                    false => {
                        let path = entry.path();
                        files.push(path.strip_prefix(root).expect("below").display().to_string());
                    }
                }
            }
        }
        let mut files = Vec::new();
        gather(self.folder.path(), self.folder.path(), &mut files);
        files.sort_unstable();
        files
    }
}

#[test]
fn a_cluster_is_started_loaded_and_ended_and_leaves_nothing_but_its_folder() {
    let stage = Stage::new(&SINKS.replace("connections: 2, ", "rate: 100, "));
    let finished = stage.run("-o json");
    let result = finished.result();
    assert_eq!(result["accounting"]["ok"], 200, "{}", finished.stderr);
    assert!(finished.stderr.contains("cluster: 2 nodes are ready"), "{}", finished.stderr);
    let watched = result["generator"]["watched"].as_array().expect("there are some");
    let names: Vec<&str> = watched.iter().filter_map(|server| server["name"].as_str()).collect();
    assert_eq!(names, ["node 0", "node 1"]);
    let target: Vec<&Value> = watched.iter().map(|server| &server["is_target"]).collect();
    assert_eq!(target, [&Value::Bool(true), &Value::Bool(false)], "the one with the load");
    assert!(watched.iter().all(|server| server["found_by"] == "node"));
    assert!(result.get("faults").is_none());
    let findings = result["reconciliation"]["findings"].as_array().expect("there are some");
    assert_eq!((findings.len(), &findings[0]["check"]), (1, &"error_share".into()), "{findings:?}");
    let marker = |node| format!("cluster/{node}/.made-by-plimsoll");
    assert_eq!(
        stage.files(),
        [marker(0), "cluster/0/log".into(), marker(1), "cluster/1/log".into(), "spec.yaml".into()]
    );
}

#[test]
fn nothing_is_left_of_a_cluster_whose_owner_was_killed_in_the_middle() {
    for (spec, flags, sign) in [
        (SINKS.to_owned(), "-d 60s --set iterations=1000000000", "nodes are ready"),
        // Before they are ready.
        (SINKS.replace("sink: listening on", "no such line"), "", ""),
    ] {
        let stage = Stage::new(&spec);
        let mut owner = stage.start(flags);
        if sign.is_empty() {
            let written = || stage.folder.path().join("cluster/state.json").exists();
            assert!(eventually(written));
        } else {
            owner.stderr.wait_for(sign);
        }
        let state = stage.state();
        assert!(!Stage::processes(&state).is_empty());
        owner.signal("KILL");
        assert_eq!(owner.finish().code, None);
        Stage::await_nobody(&state);
        // A stale entry in the file is ignored: the next cluster starts as if there had been none.
        let status = run(&format!("cluster status {}", stage.flags()));
        status.assert_refused(1, "no cluster runs in");
        if !sign.is_empty() {
            assert_eq!(stage.run("-o json").result()["accounting"]["ok"], 200);
        }
    }
}

#[test]
fn an_interrupted_run_ends_its_cluster_and_tells_what_it_knows() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let stage = Stage::new(&format!("{SINKS}checks: [convergence]\n"));
        let stats = stage.folder.file("stats");
        let mut owner = stage.start(&format!("-d 60s --set iterations=1000000000 -o json --stats {stats}"));
        owner.stderr.wait_for("nodes are ready");
        let state = stage.state();
        // A line of the statistics says that the load is on.
        let began = || std::fs::read_to_string(&stats).is_ok_and(|text| text.lines().count() > 1);
        while !began() {
            wait_to_look_again();
        }
        owner.signal(signal);
        let finished = owner.finish();
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(!finished.stderr.contains("checking"), "{}", finished.stderr);
        Stage::await_nobody(&state);
    }
}

#[test]
fn a_cluster_goes_on_after_up_until_down() {
    let stage = Stage::new(SINKS);
    let up = run(&format!("cluster up {}", stage.flags()));
    assert_eq!((up.code, up.stdout.lines().count()), (Some(0), 2), "{up:?}");
    let state = stage.state();
    assert_eq!(Stage::processes(&state).len(), 2);
    let status = run(&format!("cluster status {} -o json", stage.flags()));
    let shown: Value = serde_json::from_str(&status.stdout).expect("it is JSON");
    assert_eq!((status.code, &shown["nodes"][1]["running"]), (Some(0), &Value::Bool(true)));
    stage.run("").assert_refused(1, "a cluster runs in");
    run(&format!("cluster up {}", stage.flags())).assert_refused(1, "a cluster runs in");
    let down = run(&format!("cluster down {}", stage.flags()));
    assert_eq!(down.code, Some(0), "{down:?}");
    Stage::await_nobody(&state);
    run(&format!("cluster down {}", stage.flags())).assert_refused(1, "no cluster runs in");
}

#[test]
fn a_node_that_does_not_become_ready_is_named_with_its_last_words() {
    let spec = SINKS.replace("arguments: [sink, ", "arguments: [sink, --no-such-flag, ");
    let finished = Stage::new(&spec).run("");
    finished.assert_refused(1, "node 0 is not ready: it has ended with exit status: 2");
    assert!(finished.stderr.contains("--no-such-flag"), "{}", finished.stderr);
    let spec = SINKS.replace("command: ${plimsoll}", "command: no-such-program");
    Stage::new(&spec).run("").assert_refused(1, "cannot start node 0: no-such-program");
}

#[test]
fn what_is_wrong_with_a_spec_or_its_plan_is_told_before_anything_is_started() {
    let spec = SINKS.replace("first: \"http", "first: \"htp");
    let stage = Stage::new(&spec);
    let finished = stage.run("");
    finished.assert_refused(2, "unknown scheme `htp`");
    // With its place in the spec.
    assert!(finished.stderr.contains("spec.yaml:14:20"), "{}", finished.stderr);
    let got = Stage::new(&SINKS.replace("{get: /}", "{got: /}")).run("");
    got.assert_refused(2, "unknown key `got`");
    assert!(got.stderr.contains("spec.yaml:16:16"), "{}", got.stderr);
    assert!(!stage.folder.path().join("cluster").exists());
    let stage = Stage::new(SINKS);
    stage.run("http://127.0.0.1:1/").assert_refused(2, "takes no URL");
    stage.run("--repeat 2").assert_refused(2, "--repeat does not apply");
    stage.run("--set iteration=3").assert_refused(2, "the spec has no parameter `iteration`");
    stage.run("--suite x").assert_refused(2, "the spec has no suite `x`");
    stage.run("--profile x").assert_refused(2, "there is no profile `x`");
    let checked = run(&format!("cluster check {}", stage.spec));
    assert_eq!((checked.code, checked.stdout), (Some(0), format!("{}: ok", stage.spec)));
}

#[test]
fn data_that_were_there_before_are_not_removed_unless_they_are_named() {
    let stage = Stage::new(SINKS);
    let data = stage.folder.path().join("cluster/0/data");
    std::fs::create_dir_all(&data).expect("the folder can be written");
    std::fs::write(data.join("precious"), "x").expect("the folder can be written");
    stage.run("").assert_refused(1, "has data that Plimsoll did not make");
    assert!(data.join("precious").exists());
    let finished = stage.run(&format!("--clean {} -o json", data.display()));
    assert_eq!(finished.result()["accounting"]["ok"], 200);
    assert!(!data.join("precious").exists());
}

/// Faults of processes, one after the other, on the same timeline as the load.
#[test]
fn each_fault_is_marked_with_what_it_did_to_requests() {
    let spec =
        SINKS.replace("iterations: \"${matrix.iterations}\"", "rate: 400, duration: 4s, timeout: 300ms");
    let spec = spec
        + "faults:\n\
        \x20 - {fault: stop, target: 0, at: 500ms, for: 1s}\n\
        \x20 - {fault: kill, target: 0, at: 2s, for: 500ms}\n\
        \x20 - {fault: kill, target: 1, at: 3s}\n";
    let finished = Stage::new(&spec).run("-o json");
    let result = finished.result();
    let faults = result["faults"].as_array().expect("there are some");
    let [stop, kill, other] = faults.as_slice() else { panic!("three: {faults:?}") };
    assert_eq!(
        (&stop["fault"], &stop["nodes"][0], &stop["error"]),
        (&"stop".into(), &"0".into(), &Value::Null)
    );
    for fault in [stop, kill] {
        let (at, until) =
            (fault["at_s"].as_f64().expect("a time"), fault["until_s"].as_f64().expect("an end"));
        assert!(at >= 0.5 && until > at, "{fault}");
        let lost = fault["failed"].as_u64().unwrap_or(0) + fault["timed_out"].as_u64().unwrap_or(0);
        assert!(lost > 0 && fault["first_failure_s"].is_f64(), "{fault}");
    }
    assert!(stop["timed_out"].as_u64() > Some(0), "who stands still answers too late: {stop}");
    // The node had no load and was ended for good, so the checks do not miss it.
    assert_eq!((&other["nodes"][0], &other["until_s"]), (&"1".into(), &Value::Null));
    let findings = result["reconciliation"]["findings"].as_array().expect("there are some");
    assert!(findings.iter().all(|finding| finding["check"] != "survival"), "{findings:?}");
    assert!(finished.stderr.contains("fault at 0.5 s: stop node 0"), "{}", finished.stderr);
    let watched = result["generator"]["watched"].as_array().expect("there are some");
    assert!(watched[0]["began"].as_u64() >= Some(1), "its new process is watched, too: {}", watched[0]);
}

/// Faults of links, between the load and a node.
#[test]
fn links_are_cut_reset_and_slowed_down_by_their_port() {
    let load = "iterations: \"${matrix.iterations}\"";
    // Answers take their time, so that requests are in flight whenever something breaks.
    let spec = SINKS
        .replace("[sink, ", "[sink, --delay, constant:20ms, ")
        .replace(load, "duration: 4s, timeout: 400ms")
        .replace("connections: 2", "connections: 8")
        + "links: [{port: http, from: load}]\n\
        faults:\n\
        \x20 - {fault: isolate, target: 0, at: 500ms, for: 700ms}\n\
        \x20 - {fault: reset, target: 0, at: 2s}\n\
        \x20 - {fault: delay, target: all, at: 3s, for: 500ms, amount: 100ms}\n\
        \x20 - {fault: half_open, target: 1, at: 3800ms, for: 100ms, port: http}\n";
    let finished = Stage::new(&spec).run("-o json");
    let result = finished.result();
    let faults = result["faults"].as_array().expect("there are some");
    let [cut, reset, delay, other] = faults.as_slice() else { panic!("four: {faults:?}") };
    assert!(cut["timed_out"].as_u64() > Some(0), "what is cut answers too late: {cut}");
    // Of requests in flight those fail that have been sent again already.
    let (failed, resent) = (reset["failed"].as_u64(), reset["resent"].as_u64());
    assert!(failed.unwrap_or(0) + resent.unwrap_or(0) > 0, "{reset}");
    assert_eq!((&reset["until_s"], &reset["timed_out"]), (&Value::Null, &0.into()), "over at once");
    // Each way takes longer; nothing fails for it.
    let slowest = delay["response_time"]["max"].as_u64().expect("there are some");
    assert!(slowest >= 200_000_000, "{delay}");
    assert_eq!((&other["effect"], &other["nodes"][0]), (&"none".into(), &"1".into()), "no load goes there");
}

#[test]
fn a_node_that_ends_by_itself_is_a_finding() {
    let spec = SINKS
        .replace("--listen, ", "--duration, 1s, --listen, ")
        .replace("iterations: \"${matrix.iterations}\"", "duration: 2s");
    let finished = Stage::new(&spec).run("-o json");
    assert_eq!(finished.code, Some(6), "{finished:?}");
    let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let findings = result["reconciliation"]["findings"].as_array().expect("there are some");
    assert_eq!((findings.len(), &findings[0]["check"]), (3, &"survival".into()));
    assert!(
        findings[0]["said"].as_str().is_some_and(|said| said.contains("it has ended with exit status: 0"))
    );
}

/// Nodes of the reference target that know nothing of each other.
const STRANGERS: &str = r#"
name: strangers
nodes:
  count: 2
  command: ${plimsoll}
  arguments: [target, crud-node, --listen, "${address.http}", --raft, "${address.raft}", --data, "${data}"]
  ports: {http: 0, raft: 0}
  ready: [{http: /status}, {http: /raft/leader, json: /is_current_node_leader, equals: true}]
workload:
  run: {connections: 2, iterations: 30, no_preflight: true}
  targets: {first: "http://${node.0.http}", second: "http://${node.1.http}"}
  scenarios:
    - steps:
        - {target: first, post: /api/products, json: {name: "a", price: 1, category: Books}, expect: {status: 201}}
"#;

#[test]
fn nodes_that_differ_are_found_and_shown_and_what_outlives_them_passes() {
    let spec = format!("{STRANGERS}checks: [persistence, {{check: convergence, within: 300ms, page: 7}}]\n");
    let stage = Stage::new(&spec);
    let finished = stage.run("-o json");
    assert_eq!(finished.code, Some(6), "{finished:?}");
    let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let reconciliation = &result["reconciliation"];
    assert_eq!(reconciliation["consistent"], false);
    let findings = reconciliation["findings"].as_array().expect("there are some");
    let of = |check: &str| findings.iter().find(|one| one["check"] == check).expect("it was checked");
    let (persistence, convergence) = (of("persistence"), of("convergence"));
    assert_eq!((&persistence["check"], &persistence["passed"]), (&"persistence".into(), &true.into()));
    let said = persistence["said"].as_str().expect("a text");
    assert!(said.starts_with("node 0 30 items, node 1 0 items outlived"), "{said}");
    assert_eq!((&convergence["check"], &convergence["passed"]), (&"convergence".into(), &false.into()));
    let said = convergence["said"].as_str().expect("a text");
    assert!(said.starts_with("node 0 has 30 items, node 1 has 0 items, and they are not the same"), "{said}");
    let evidence = convergence["evidence"].as_array().expect("there is some");
    assert_eq!(evidence.len(), 6, "{evidence:?}");
    assert!(evidence[0].as_str().is_some_and(|item| item.starts_with("only node 0 has {")));
    assert_eq!(evidence[5], "and 25 more differences");
}

#[test]
fn a_full_disk_fails_writes_and_loses_none_that_was_acknowledged() {
    let spec = STRANGERS.replace("count: 2", "count: 1").replace(", second: \"http://${node.1.http}\"", "");
    let spec = spec.replace("connections: 2, iterations: 30", "connections: 2, rate: 100, duration: 3s");
    let faults = "faults: [{fault: disk_full, at: 1s, for: 500ms}]\nchecks: [persistence]\n";
    let finished = Stage::new(&format!("{spec}{faults}")).run("-o json");
    let result = finished.result();
    let fault = &result["faults"][0];
    assert!(fault["failed"].as_u64() > Some(0) && fault["error"].is_null(), "{fault}");
    assert_eq!(result["reconciliation"]["consistent"], true, "{result}");
    let findings = result["reconciliation"]["findings"].as_array().expect("there are some");
    let of = |check: &str| findings.iter().find(|one| one["check"] == check).expect("it was checked");
    let said = of("persistence")["said"].as_str().expect("a text");
    let kept: u64 = said.split(' ').next().and_then(|count| count.parse().ok()).expect("a number");
    // A write whose answer was lost may be there, too.
    assert!(
        kept >= result["accounting"]["ok"].as_u64().expect("a count"),
        "{said}: {}",
        result["accounting"]
    );
}

#[test]
fn a_suite_is_a_run_for_each_value_and_one_table() {
    let stage = Stage::new(&format!(
        "{SINKS}suites: {{one: {{restart: false, matrix: {{iterations: [10, 20, 30]}}}}}}\n"
    ));
    let finished = stage.run("--suite one --control 127.0.0.1:0 -o json");
    assert!(verdict::ran(finished.code), "{finished:?}");
    // Each run says that it begins, has a control port, and says how it ended.
    let said = |begin: &str| finished.stderr.lines().filter(|line| line.starts_with(begin)).count();
    assert_eq!(said("control: http://127.0.0.1:"), 3, "{}", finished.stderr);
    assert_eq!(
        (said("run 2 of 3: iterations 20"), said("run 2 of 3 ended: ")),
        (1, 1),
        "{}",
        finished.stderr
    );
    // Its JSON is what it was at its end, and its page.
    let json = std::env::temp_dir().join(format!("plimsoll-suite-{}.json", std::process::id()));
    std::fs::write(&json, &finished.stdout).expect("it can be written");
    let shown = run(&format!("show {} -o json", json.display()));
    assert_eq!(shown.stdout, finished.stdout, "{}", shown.stderr);
    let page = run(&format!("report {} --file -", json.display())).stdout;
    assert!(page.contains("iterations 10") && page.contains("iterations 30"), "{} bytes", page.len());
    std::fs::remove_file(&json).expect("it was written");
    // Symptom: no file, and no word about it.
    let refused = stage.run("--suite one --evidence /tmp/x");
    refused.assert_refused(2, "a suite and --evidence exclude each other");
    let suite: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let ok = |run: &Value| run["result"]["accounting"]["ok"].as_u64();
    let runs = suite["runs"].as_array().expect("there are some");
    assert_eq!(runs.iter().map(ok).collect::<Vec<_>>(), [Some(10), Some(20), Some(30)]);
    assert_eq!((&suite["complete"], &suite["parameters"][0]), (&true.into(), &"iterations".into()));
    assert_eq!(finished.stderr.matches("nodes are ready").count(), 1, "one cluster for all of them");
    let table = stage.run("--set iterations=10,20");
    let lines: Vec<&str> = table.stdout.lines().filter(|line| line.starts_with("run ")).collect();
    assert_eq!(lines.len(), 2, "{}", table.stdout);
    let profiles = format!(
        "{SINKS}profiles: {{a: {{environment: {{X: 1}}}}, b: {{arguments: [--body-size, 5]}}}}\n\
        suites: {{p: {{matrix: {{profile: [a, b]}}}}}}\n"
    );
    let finished = Stage::new(&profiles).run("--suite p -o csv");
    assert_eq!(
        finished.stderr.matches("nodes are ready").count(),
        2,
        "a cluster for each: {}",
        finished.stderr
    );
    assert!(finished.stdout.lines().nth(2).is_some_and(|line| line.starts_with("b,")), "{}", finished.stdout);
}

/// The spec of the examples whose suites are those of the Lithair project, in a small size.
fn small_suites() -> Stage {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/cluster");
    let read = |name: &str| std::fs::read_to_string(examples.join(name)).expect("an example");
    let spec = read("crud-node.yaml");
    let (start, rest) = spec.split_once("faults:\n").expect("it has faults");
    let checks = &rest[rest.find("checks:").expect("it has checks")..];
    let fault = "faults: [{fault: kill, target: leader, at: 300ms, for: 500ms}]\n";
    let small = [
        ("[128, 256, 512, 1024, 2048]", "[4, 16]"),
        ("seconds: 10", "seconds: 1"),
        ("concurrency: 64", "concurrency: 8"),
        ("size: [1, 100, 500]", "size: [1, 20]"),
    ];
    let spec = format!("{start}{fault}{checks}");
    let spec = small.iter().fold(spec, |spec, (large, small)| {
        assert!(spec.contains(large), "{large}");
        spec.replace(large, small)
    });
    let stage = Stage::new(&spec);
    for plan in ["mixed.yaml", "read.yaml", "bulk.yaml", "write.yaml"] {
        stage.folder.write(plan, read(plan));
    }
    stage
}

#[test]
fn the_four_suites_run_end_to_end_and_leave_nothing_behind() {
    let stage = small_suites();
    for (suite, values) in [
        ("concurrency_scaling", 2),
        ("heavy_vs_light_reads", 3),
        ("bulk_vs_single", 2),
        ("durability_profiles", 3),
    ] {
        let finished = stage.run(&format!("--suite {suite} -o json"));
        // Four processes share the machine: a run may be invalid for that. A check that fails would be 6.
        assert!(verdict::ran(finished.code), "{suite}: {:?} {}", finished.code, finished.stderr);
        let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
        let runs = result["runs"].as_array().expect("there are some");
        assert_eq!((runs.len(), &result["complete"]), (values, &true.into()), "{suite}");
        for run in runs {
            let ok = run["result"]["accounting"]["ok"].as_u64().expect("a count");
            assert!(ok > 0, "{suite}: {}", run["result"]["accounting"]);
            let size = run["values"]["size"].as_str().map(|size| size.parse::<u64>().expect("a number"));
            let records = size.map(|size| Value::from(size * ok));
            assert_eq!(run["result"]["records"].get("acknowledged"), records.as_ref(), "{suite}");
            assert_eq!(
                run["result"]["reconciliation"]["consistent"], true,
                "{suite}: {}",
                run["result"]["reconciliation"]
            );
        }
        let left = std::fs::read_to_string(stage.folder.path().join("cluster/state.json"));
        assert!(left.is_err(), "{suite} is written down as running: {left:?}");
    }
}

/// The example of Lithair's script with a node of the reference target.
fn bench_script() -> Stage {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/cluster");
    let read = |name: &str| std::fs::read_to_string(examples.join(name)).expect("an example");
    let node = "[target, crud-node, --id, \"${id}\", --listen, \"${address.http}\", --raft, \"${address.raft}\", \
                --data, \"${data}\"]";
    let stand_in = [
        ("command: lithair-node", "command: ${plimsoll}"),
        ("[--node-id, \"${id}\", --port, \"${port.http}\"]", node),
        ("ports: {http: 8080}", "ports: {http: 0, raft: 0}"),
        ("[\"**/events.raftlog\"]", "[\"**/*\"]"),
    ];
    let spec = stand_in.iter().fold(read("lithair-node.yaml"), |spec, (real, stand_in)| {
        assert!(spec.contains(real), "{real}");
        spec.replace(real, stand_in)
    });
    let stage = Stage::new(&spec);
    stage.folder.write("lithair-mix.yaml", read("lithair-mix.yaml"));
    stage
}

/// Symptom: the suites made creates only, for 3 s, where the script has its number of operations in its
/// shares, and all sizes of `bulk_vs_single` went to `_bulk`, in 200 requests each.
#[test]
fn the_suites_of_lithairs_script_have_its_operations() {
    let stage = bench_script();
    let mix = "--set create_pct=60 --set read_pct=25 --set update_pct=10 --set delete_pct=5";
    let mixed = [("create", 60..=60), ("read", 25..=25), ("update", 8..=10), ("delete", 4..=5)];
    let default = [("create", 80..=80), ("read", 15..=15), ("update", 4..=5)];
    for (flags, rounds) in [
        (format!("--suite concurrency_scaling --set concurrency=2,4 {mix}"), vec![&mixed[..], &mixed]),
        ("--suite durability_profiles --set concurrency=2".to_owned(), vec![&default[..]; 3]),
        (
            "--suite heavy_vs_light_reads --set preseed=20 --set concurrency=2".to_owned(),
            vec![&[("read", 100..=100)][..]; 3],
        ),
        (
            "--suite bulk_vs_single --set size=30,1 --set concurrency=2".to_owned(),
            vec![&[("bulk", 4..=4)][..], &[("single", 100..=100)]],
        ),
    ] {
        let finished = stage.run(&format!("{flags} --set total=100 -o json"));
        assert!(verdict::ran(finished.code), "{flags}: {:?} {}", finished.code, finished.stderr);
        let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
        let runs = result["runs"].as_array().expect("there are some");
        assert_eq!(runs.len(), rounds.len(), "{flags}");
        for (run, expected) in runs.iter().zip(rounds) {
            let steps = run["result"]["by_step"].as_array().expect("steps");
            let of_scenario = |name: &str| -> u64 {
                let named = steps
                    .iter()
                    .filter(|step| step["step"].as_str().is_some_and(|step| step.starts_with(name)));
                named.filter_map(|step| step["ok"].as_u64()).sum()
            };
            for (name, count) in expected {
                assert!(count.contains(&of_scenario(name)), "{flags}: {name}: {steps:#?}");
            }
            assert_eq!(run["result"]["accounting"]["failed"], 0, "{flags}");
            // Both are compared by items per second.
            let records = &run["result"]["records"]["acknowledged"];
            assert_eq!(records.is_u64(), flags.contains("bulk_vs_single"), "{flags}: {records}");
        }
    }
}

/// Symptom: who typed `plimsoll cluster run` with the variables of the script was shown a schema.
#[test]
fn a_cluster_without_a_spec_leads_on_to_one() {
    let folder = Folder::new();
    let missing = |variables: &[(&str, &str)]| {
        let output = plimsoll("cluster run").envs(variables.iter().copied()).output().expect("it starts");
        String::from_utf8(output.stderr).expect("it is text")
    };
    let said = missing(&[]);
    let (_, command) = said.split_once(" what load they get: ").expect("an example");
    // As it is typed in a shell, with a shorter load.
    let command = command.trim().replace("duration: 3s", "iterations: 100");
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a path"));
    let _turn = machine::load();
    let output = std::process::Command::new("sh")
        .args(["-c", &command])
        .current_dir(folder.path())
        .env("PATH", path)
        .output()
        .expect("a shell");
    assert!(verdict::ran(output.status.code()), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    for (variables, flags) in [
        (
            &[("BENCH_SUITE", "bulk_vs_single"), ("LOADGEN_BULK_SIZE", "500"), ("LIGHT_READS", "count")][..],
            "--set size=500,1 --suite bulk_vs_single`, one node",
        ),
        (
            &[("BENCH_SUITE", "concurrency_scaling"), ("LOADGEN_BULK_SIZE", "500"), ("LOADGEN_MODE", "bulk")],
            "--suite concurrency_scaling`, one node as with SINGLE_NODE=1; LOADGEN_MODE=bulk: only `plimsoll crud \
             --mode bulk` has it",
        ),
        (
            &[("BENCH_SUITE", "heavy_vs_light_reads"), ("LIGHT_READS", "1"), ("PRESEED_PER_NODE", "50")],
            "--set preseed=50 --suite heavy_vs_light_reads`, one node",
        ),
        (
            &[
                ("BENCH_SUITE", "durability_profiles"),
                ("STORAGE_PROFILE", "balanced"),
                ("PRESEED_PER_NODE", "5"),
            ],
            "--suite durability_profiles`, one node as with SINGLE_NODE=1; PRESEED_PER_NODE: only \
             heavy_vs_light_reads is preseeded",
        ),
    ] {
        let said = missing(variables);
        let command = format!("`plimsoll cluster run examples/cluster/lithair-node.yaml {flags}");
        assert!(said.contains(&command), "{variables:?}: {said}");
    }
    let said = missing(&[("BENCH_SUITE", "nonsense")]);
    assert!(said.contains("no suite `nonsense`: it has concurrency_scaling, "), "{said}");
}

/// Symptom: the command that the script's name leads to left its argument and its variables out.
#[test]
fn the_name_of_lithairs_script_leads_to_its_load() {
    let hint = |variables: &[(&str, &str)]| {
        let output = plimsoll("bench_1000_crud_parallel.sh 3000").envs(variables.iter().copied()).output();
        String::from_utf8(output.expect("it starts").stderr).expect("it is text")
    };
    for (variables, command) in [
        (&[][..], "`plimsoll crud --preset lithair --mode random --concurrency 256 --total 3000`"),
        (
            &[
                ("SINGLE_NODE", "1"),
                ("LOADGEN_MODE", "single"),
                ("LOADGEN_CONCURRENCY", "32"),
                ("PRESEED_PER_NODE", "100"),
            ],
            "`plimsoll crud --preset lithair --total 3000 --mode single --concurrency 32 --preseed 100`",
        ),
        (
            &[("BENCH_SUITE", "concurrency_scaling"), ("CREATE_PERCENTAGE", "60"), ("CONC_LIST", "1 2")],
            "`plimsoll cluster run examples/cluster/lithair-node.yaml --set create_pct=60 --suite concurrency_scaling \
             --set concurrency=1,2 --set total=3000`",
        ),
    ] {
        let said = hint(variables);
        assert!(said.contains(command), "{variables:?}: {said}");
    }
}

/// Symptom: `--set preseed=100` had no effect but a column in the table.
#[test]
fn a_parameter_that_nothing_has_is_told() {
    let stage = bench_script();
    for (suite, is_idle) in [("concurrency_scaling", true), ("heavy_vs_light_reads", false)] {
        let flags =
            format!("--suite {suite} --set preseed=3 --set concurrency=1 --set total=5 --set read=/status");
        let finished = stage.run(&flags);
        let note = format!("note: --set preseed has no effect in {suite}");
        assert_eq!(finished.stderr.contains(&note), is_idle, "{}", finished.stderr);
        assert!(!finished.stderr.contains("--set total has no effect"), "{}", finished.stderr);
    }
}

/// Symptom: variables of the script that were set had no effect, and no note.
#[test]
fn variables_of_lithairs_script_are_told_with_the_flags_to_write() {
    let stage = bench_script();
    let spec = stage.flags();
    for (args, note) in [
        (
            format!("cluster run {spec} --set concurrency=2 --set total=20 -o json"),
            "CREATE_PERCENTAGE, LIGHT_READS, PRESEED_PER_NODE, CONC_LIST, SINGLE_NODE: not read: write \
             --set create_pct=60 --set read=/status --set concurrency=1,2; PRESEED_PER_NODE: only \
             heavy_vs_light_reads is preseeded",
        ),
        (
            "crud --print-plan".to_owned(),
            "CREATE_PERCENTAGE, LIGHT_READS, PRESEED_PER_NODE, CONC_LIST, SINGLE_NODE: not read: write \
             --create-pct 60 --read-path /status --preseed 7 (in all: of three nodes, three times that); \
             `plimsoll cluster run` has nodes, profiles and suites",
        ),
    ] {
        let variables = [
            ("CREATE_PERCENTAGE", "60"),
            ("LIGHT_READS", "1"),
            ("PRESEED_PER_NODE", "7"),
            ("CONC_LIST", "1 2"),
            ("SINGLE_NODE", "1"),
        ];
        let _turn = machine::load();
        let output = plimsoll(&args).envs(variables).output().expect("it starts");
        let said = String::from_utf8(output.stderr).expect("it is text");
        assert!(said.contains(note), "{args}: {said}");
    }
}
