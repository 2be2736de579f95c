//! Clusters that take no writes any more, and runs of suites that cannot be made.

use std::process::Command;

use serde_json::Value;

use crate::loopback::cluster::{SINKS, Stage};
use crate::loopback::foreign::python;
use crate::loopback::process::{Finished, run};
use plimsoll_testkit::eventually::wait_to_look_again;

/// A node whose writes one bad write ends, with a load of these steps.
fn poisoned(steps: &str, more: &str) -> Option<Stage> {
    if Command::new("python3").arg("--version").output().is_err() {
        plimsoll_testkit::skip::without_program("python3");
        return None;
    }
    let stage = Stage::new(
        &format!(
            r#"
name: poisoned
nodes:
  command: python3
  arguments: ["${{spec}}/poisoned.py", "${{port.http}}", "${{data}}"MUTE]
  ports: {{http: 0}}
  ready: {{http: /status}}
workload:
  run: {{connections: 2, iterations: 200, no_preflight: true}}
  targets: {{node: "http://${{node.0.http}}"}}
  scenarios:
    - {{weight: 3, steps: [{{post: /api/products, json: {{name: a, price: 3}}, expect: {{status: 201}}}}]}}
    - {{steps: [{steps}]}}
    - {{weight: 16, steps: [{{get: /api/products/count}}]}}
{more}
"#
        )
        .replace("MUTE", if more.contains("persistence") { ", mute" } else { "" }),
    );
    stage.folder.write("poisoned.py", include_str!("poisoned.py"));
    Some(stage)
}

/// Nodes of that kind with more arguments, and the rest of a spec.
fn nodes(count: u32, arguments: &str, rest: &str) -> Option<Stage> {
    if Command::new("python3").arg("--version").output().is_err() {
        plimsoll_testkit::skip::without_program("python3");
        return None;
    }
    let stage = Stage::new(&format!(
        r#"
name: poisoned
nodes:
  count: {count}
  command: python3
  arguments: ["${{spec}}/poisoned.py", "${{port.http}}", "${{data}}", {arguments}]
  ports: {{http: 0}}
  ready: {{http: /status}}
{rest}
"#
    ));
    stage.folder.write("poisoned.py", include_str!("poisoned.py"));
    Some(stage)
}

const GOOD: &str = "{delete: /api/products/none}";
const BULK: &str = "{post: /api/products/_bulk, json: [{name: a, price: 3}], expect: {status: 201}}";
const BAD_CREATE: &str = "{post: /api/products, json: {name: a}, expect: {status: 201}}";

/// The findings of a run: check, whether it passed, and its words.
fn findings(finished: &Finished) -> Vec<(String, bool, String)> {
    let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let found = result["reconciliation"]["findings"].as_array().expect("there are some");
    found.iter().map(|one| (text(&one["check"]), one["passed"] == true, text(&one["said"]))).collect()
}

fn said<'f>(found: &'f [(String, bool, String)], check: &str) -> Vec<(bool, &'f str)> {
    found.iter().filter(|(name, ..)| name == check).map(|(_, passed, said)| (*passed, &**said)).collect()
}

#[test]
fn a_cluster_that_takes_no_writes_after_a_bad_one_has_failed() {
    for bad in [BULK, BAD_CREATE] {
        let Some(stage) = poisoned(bad, "checks: [acknowledged, convergence, {check: writable, within: 1s}]")
        else {
            return;
        };
        let finished = stage.run("-o json");
        assert_eq!(finished.code, Some(6), "{}", finished.stderr);
        let found = findings(&finished);
        let [(false, writable)] = said(&found, "writable")[..] else { panic!("{found:?}") };
        assert!(writable.starts_with("takes no writes since "), "{writable}");
        let [(false, share)] = said(&found, "error_share")[..] else { panic!("{found:?}") };
        assert!(share.contains(" of 200 requests failed: "), "{share}");
        // Acknowledged writes are still there.
        assert!(said(&found, "acknowledged writes").iter().all(|(passed, _)| *passed), "{found:?}");
        let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
        assert_eq!(result["verdict"]["outcome"], "fail");
        let summary = result["verdict"]["summary"].as_str().expect("a text");
        assert!(summary.starts_with("takes no writes since "), "{summary}");
    }
}

/// Without a word about it in the spec.
#[test]
fn whether_writes_are_taken_is_checked_after_the_load_and_after_a_restart_unless_nothing_is_written() {
    let Some(stage) = poisoned(GOOD, "") else { return };
    let finished = stage.run("-o json");
    let found = findings(&finished);
    assert_eq!(said(&found, "error_share"), [(true, "0 of 200 requests failed: 0.00 %, and 1 % may")]);
    let [(true, writable)] = said(&found, "writable")[..] else { panic!("{found:?}") };
    assert!(writable.starts_with("node 0 takes writes after the load, "), "{writable}");

    let Some(stage) = poisoned(GOOD, "checks: [persistence, {check: error_share, most: 50%}]") else {
        return;
    };
    let finished = stage.run("-o json");
    assert_eq!(finished.code, Some(6), "{}", finished.stderr);
    let found = findings(&finished);
    let [(true, _), (false, writable)] = said(&found, "writable")[..] else { panic!("{found:?}") };
    assert!(
        writable.starts_with("takes no writes since all nodes were killed and started again"),
        "{writable}"
    );
    assert_eq!(said(&found, "error_share"), [(true, "0 of 200 requests failed: 0.00 %, and 50 % may")]);

    let reads = findings(&Stage::new(SINKS).run("-o json"));
    assert_eq!(said(&reads, "writable"), []);
    assert_eq!(said(&reads, "error_share").len(), 1);
}

/// One of three nodes takes no writes after the load. That matters where it leads by then.
#[test]
fn the_leader_of_that_time_has_to_take_writes() {
    let rest = r#"
leader: {path: /raft/leader, within: 10s}
workload:
  run: {connections: 2, iterations: 100, no_preflight: true}
  targets: {leader: "http://${leader.http}", other: "http://${node.1.http}"}
  scenarios:
    - weight: 9
      steps: [{post: /api/products, target: leader, json: {name: a, price: 3}, expect: {status: 201}}]
    - steps: [{post: /api/products/_bulk, target: other, json: [{name: a}], expect: {status: 503}}]
checks: [{check: writable, within: 1s}]
"#;
    for (takes_over, passes) in [("", true), (", takes-over", false)] {
        let arguments = format!("\"id=${{id}}\", \"leader=${{spec}}/leader\"{takes_over}");
        let Some(stage) = nodes(3, &arguments, rest) else { return };
        stage.folder.write("leader", "0");
        let finished = stage.run("-o json");
        let found = findings(&finished);
        let [(passed, writable)] = said(&found, "writable")[..] else { panic!("{found:?}") };
        assert_eq!(passed, passes, "{writable}");
        assert_eq!(said(&found, "error_share"), [(true, "0 of 100 requests failed: 0.00 %, and 1 % may")]);
        if passes {
            assert!(writable.starts_with("node 0 takes writes after the load, "), "{writable}");
            continue;
        }
        assert_eq!(finished.code, Some(6), "{}", finished.stderr);
        assert!(writable.starts_with("takes no writes since "), "{writable}");
        let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
        let findings = result["reconciliation"]["findings"].as_array().expect("there are some");
        let evidence = findings.iter().find(|one| one["check"] == "writable").expect("it was checked");
        let evidence = evidence["evidence"].to_string();
        assert!(evidence.contains("node 1: POST /api/products was answered by 503"), "{evidence}");
        assert!(!evidence.contains("node 0"), "{evidence}");
    }
}

/// Symptom: the node was called one that takes no writes, ten seconds and twenty more items later.
#[test]
fn a_create_whose_answer_has_no_id_is_a_reason_of_its_own() {
    let rest = r#"
workload:
  run: {connections: 2, iterations: 20, no_preflight: true}
  targets: {node: "http://${node.0.http}"}
  scenarios: [{steps: [{post: /api/products, json: {name: a, price: 3}, expect: {status: 201}}]}]
"#;
    let Some(stage) = nodes(1, "nameless", rest) else { return };
    let finished = stage.run("-o json");
    assert_eq!(finished.code, Some(6), "{}", finished.stderr);
    let found = findings(&finished);
    let said = said(&found, "writable");
    let reason = "writes cannot be checked: node 0: POST /api/products was answered by 201, and there is no id at \
                  /id of the answer";
    assert_eq!(said, [(false, reason)]);
    assert!(finished.stdout.contains("say where the id is: `id: /POINTER`"), "{}", finished.stdout);
}

#[test]
fn writes_to_a_list_of_unknown_items_are_not_silently_unchecked() {
    let rest = r#"
workload:
  run: {connections: 2, iterations: 20, no_preflight: true}
  targets: {node: "http://${node.0.http}"}
  scenarios: [{steps: [{post: /api/things, json: {name: a, price: 3}, expect: {status: 201}}]}]
checks: [{check: convergence, list: /api/things, count: /api/things/count}]
"#;
    let Some(stage) = nodes(1, "list=/api/things", rest) else { return };
    let note = "writes to /api/things are not checked, because an item of it is not described";
    let finished = stage.run("-o json");
    assert!(matches!(finished.code, Some(0 | 3)), "{}", finished.stderr);
    let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let notes = result["notes"].as_array().expect("a list");
    let told = notes.iter().find(|note| note["code"] == "writable").expect("a note");
    assert!(told["text"].as_str().expect("a text").starts_with(note), "{told}");
    assert_eq!(said(&findings(&finished), "writable"), []);
    let checked = run(&format!("cluster check {}", stage.folder.file("spec.yaml")));
    assert!(checked.stderr.contains(&format!("note: {note}")), "{}", checked.stderr);
    // As it advises.
    let item = "{check: writable, list: /api/things, item: '{\"name\": \"a\", \"price\": 1}'}";
    let Some(stage) = nodes(1, "list=/api/things", &rest.replace("checks: [", &format!("checks: [{item}, ")))
    else {
        return;
    };
    let finished = stage.run("-o json");
    let found = findings(&finished);
    let [(true, writable)] = said(&found, "writable")[..] else { panic!("{found:?}") };
    assert!(writable.starts_with("node 0 takes writes after the load, "), "{writable}");
    assert!(!finished.stdout.contains(note), "{}", finished.stdout);
}

#[test]
fn a_load_of_which_nothing_was_acknowledged_does_not_pass_its_verification() {
    let folder = crate::loopback::process::Folder::new();
    let [address] = plimsoll_testkit::ports::lasting_addresses();
    let (file, port) =
        (folder.write("poisoned.py", include_str!("poisoned.py")), &address["127.0.0.1:".len()..]);
    let Some(node) = python(&[&file, port, &folder.path().display().to_string()]) else { return };
    while std::net::TcpStream::connect(&address).is_err() {
        wait_to_look_again();
    }
    let finished = run(&format!(
        "crud --leader http://{address} --mode bulk --total 300 --bulk-size 50 --verify -o json"
    ));
    assert_eq!(finished.code, Some(6), "{finished:?}");
    let found = findings(&finished);
    let [(true, writes)] = said(&found, "writes")[..] else { panic!("{found:?}") };
    assert!(writes.ends_with("300 uncertain"), "{writes}");
    let [(false, none)] = said(&found, "acknowledged")[..] else { panic!("{found:?}") };
    assert!(none.starts_with("0 of 300 writes were acknowledged;"), "{none}");
    let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    assert_eq!(result["verdict"]["summary"], "0 of 300 writes were acknowledged");
    drop(node);
}

#[test]
fn a_run_of_a_suite_that_cannot_be_made_is_a_row_of_its_table() {
    let spec = SINKS.replace("[sink, ", "[sink, --body-size, \"${matrix.size}\", ")
        + "checks: [{check: error_share, most: 0%}]\nsuites: {sizes: {matrix: {size: [5, none, 6]}}}\n";
    let spec = spec.replace("parameters: {", "parameters: {size: 4, ");
    let stage = Stage::new(&spec);
    let finished = stage.run("--suite sizes -o json");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let suite: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let runs = suite["runs"].as_array().expect("there are some");
    let ok: Vec<Option<u64>> = runs.iter().map(|run| run["result"]["accounting"]["ok"].as_u64()).collect();
    assert_eq!((ok, &suite["complete"]), (vec![Some(200), None, Some(200)], &true.into()));
    let error = runs[1]["error"][0].as_str().expect("a text");
    assert!(error.starts_with("node 0 is not ready: it has ended with exit status: 2"), "{error}");
    assert_eq!((&runs[1]["exit_code"], &runs[0]["error"]), (&1.into(), &Value::Null));
    let table = stage.run("--suite sizes");
    let lines: Vec<&str> = table.stdout.lines().filter(|line| line.starts_with("run ")).collect();
    assert!(
        lines.iter().any(|line| line.contains("could not be made: node 0 is not ready")),
        "{}",
        table.stdout
    );
    assert_eq!(lines.iter().filter(|line| !line.contains("could not")).count(), 3, "{}", table.stdout);
    assert!(table.stdout.starts_with("FAIL"), "{}", table.stdout);
}

/// A node that starts once on its data: the findings of its run are not lost to the next.
#[test]
fn each_run_of_a_suite_has_a_cluster_of_its_own() {
    let once = "[ -e ${data}/x ] && { echo 'Error: cannot read the data' >&2; seq 20 >&2; exit 3; }; touch ${data}/x; \
                exec ${plimsoll} target crud-node --listen ${address.http} --raft ${address.raft} --data ${data}/y";
    let spec = format!(
        r#"
name: once
nodes:
  command: sh
  arguments: [-c, "{once}"]
  ports: {{http: 0, raft: 0}}
  ready: [{{http: /status}}, {{http: /raft/leader, json: /is_current_node_leader, equals: true}}]
parameters: {{iterations: 20}}
workload:
  run: {{connections: 2, iterations: "${{matrix.iterations}}", no_preflight: true}}
  targets: {{first: "http://${{node.0.http}}"}}
  scenarios:
    - steps:
        - {{post: /api/products, json: {{name: a, price: 1, category: b}}, expect: {{status: 201}}}}
checks: [persistence, {{check: writable, within: 100ms}}]
"#
    );
    let finished = Stage::new(&spec).run("--set iterations=10,20 -o json");
    assert_eq!(finished.code, Some(6), "{finished:?}");
    let suite: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let runs = suite["runs"].as_array().expect("there are some");
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!((&run["exit_code"], run["result"]["accounting"]["failed"].as_u64()), (&6.into(), Some(0)));
        let findings = run["result"]["reconciliation"]["findings"].as_array().expect("there are some");
        let lost = findings.iter().find(|one| one["check"] == "persistence").expect("it was checked");
        assert_eq!(lost["passed"], false);
        // The first error of its log, and not the last lines alone.
        assert_eq!(lost["evidence"][0], "Error: cannot read the data", "{lost}");
    }
}

#[test]
fn a_port_that_is_taken_is_told_before_a_node_is_started() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it has one").port();
    let spec = SINKS
        .replace("count: 2", "count: 1")
        .replace("ports: {http: 0}", &format!("ports: {{http: {port}}}"));
    let stage = Stage::new(&spec);
    stage.run("").assert_refused(1, &format!("cannot start node 0: its port http ({port}) is taken"));
    let log = std::fs::read_to_string(stage.folder.path().join("cluster/0/log")).expect("it was made");
    assert_eq!(log, "", "nothing was started");
}
