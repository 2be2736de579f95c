//! Clusters whose nodes have a network each: packets are dropped, rejected and held back, and nothing of the
//! network is left.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::loopback::cluster::{SINKS, Stage};
use crate::loopback::process::{Finished, Process};
use plimsoll_testkit::eventually::{eventually, wait_to_look_again};

/// Returns `true` if networks can be made here; otherwise prints why the test is skipped.
fn has_networks() -> bool {
    let script = "unshare --net sh -c 'ip link set lo up && nft list tables && tc qdisc show && \
        ip link add one type veth peer name two && tc qdisc add dev one root htb'";
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("PATH", path());
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let works = status.is_ok_and(|status| status.success());
    if !works {
        let reason = "network namespaces cannot be made here (not root, or no iproute2 or nftables)";
        plimsoll_testkit::skip::on_this_machine(reason);
    }
    works
}

fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Returns the stdout of a program.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("PATH", path()).output().expect("it is there");
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Sinks that answer a load of eight connections, whose links to the load break.
fn sinks(faults: &str) -> String {
    let spec = SINKS
        .replace("iterations: \"${matrix.iterations}\"", "duration: 4s, timeout: 400ms")
        .replace("connections: 2", "connections: 8")
        .replace("[sink, ", "[sink, --body-size, \"20000\", ");
    format!("network: namespaces\n{spec}links: [{{port: http, from: load}}]\nfaults:\n{faults}")
}

/// The device of a cluster's network that is among ours.
fn device(state: &Value) -> String {
    let host = state["nodes"][0]["host"].as_str().expect("it has one");
    let bytes: Vec<&str> = host.split('.').collect();
    format!("plimsoll{}-{}", bytes[1], bytes[2])
}

/// Waits until nothing of a cluster's network is left.
fn await_no_network(state: &Value) {
    let device = device(state);
    let gone = || !said("ip", &["-o", "link"]).contains(&format!("{device}@"));
    assert!(eventually(gone), "{device} is left");
    assert!(!Path::new("/sys/class/net").join(&device).exists());
    assert!(!said("nft", &["list", "tables"]).contains("plimsoll"), "a filter is left");
    assert!(!said("ip", &["netns", "list"]).contains("plimsoll"), "a namespace is left");
    let prefix = device.strip_prefix("plimsoll").expect("it begins so").replace('-', ".");
    assert!(!said("ip", &["route"]).contains(&format!("198.{prefix}.")), "a route is left");
}

/// Runs it without the right to make networks, even if root runs the test.
fn run_unprivileged(stage: &Stage, flags: &str) -> Finished {
    let line = format!(
        "exec setpriv --bounding-set=-sys_admin {} cluster run {} {flags}",
        env!("CARGO_BIN_EXE_plimsoll"),
        stage.flags()
    );
    // Users other than root lack even the right to drop the capability.
    let line = match said("id", &["-u"]).trim() {
        "0" => line,
        _ => line.replace("setpriv --bounding-set=-sys_admin ", ""),
    };
    Process::try_start(Command::new("sh").args(["-c", &line])).expect("there is a shell").finish()
}

#[test]
fn packets_to_a_node_are_dropped_rejected_lost_and_held_back() {
    if !has_networks() {
        return;
    }
    let stage = Stage::new(&sinks(
        "  - {fault: reset, target: 0, at: 300ms, for: 300ms}\n\
        \x20 - {fault: isolate, target: 0, at: 1s, for: 700ms}\n\
        \x20 - {fault: half_open, target: 0, at: 2400ms, for: 600ms, port: http}\n\
        \x20 - {fault: loss, target: all, at: 3300ms, for: 500ms, amount: 20%}\n\
        \x20 - {fault: bandwidth, target: 1, at: 3900ms, for: 100ms, amount: 1MiB}\n",
    ));
    let finished = stage.run("-o json");
    let result = finished.result();
    let faults = result["faults"].as_array().expect("there are some");
    let [reset, cut, half, loss, other] = faults.as_slice() else { panic!("five: {faults:?}") };
    assert!(faults.iter().all(|fault| fault["error"].is_null()), "{faults:?}");
    assert!(cut["timed_out"].as_u64() > Some(0), "what is dropped is not answered: {cut}");
    // Both sides of existing connections notice, and new ones are refused.
    assert!(reset["failed"].as_u64() > Some(0), "{reset}");
    let told = ["reset", "connect_refused"].map(|class| result["errors"][class].as_u64().unwrap_or(0));
    assert!(told.iter().sum::<u64>() > 0, "{}", result["errors"]);
    // The kernel sends lost segments again, after 200 ms at the earliest if nothing follows them.
    let slowest = loss["response_time"]["max"].as_u64().expect("there are some");
    assert!(slowest >= 200_000_000, "{loss}");
    let again = result["generator"]["machine"]["network"]["retransmitted"].as_u64();
    assert!(again > Some(0), "segments were sent again: {}", result["generator"]["machine"]["network"]);
    assert!(half["timed_out"].as_u64() > Some(0), "who is not heard does not answer: {half}");
    assert_eq!(other["nodes"][0], "1", "no load goes there: {other}");
}

#[test]
fn a_narrow_link_carries_as_much_as_it_is_wide() {
    if !has_networks() {
        return;
    }
    let spec = sinks("  - {fault: bandwidth, target: 0, at: 0s, for: 10s, amount: 1MiB}\n");
    let result = Stage::new(&spec.replace("timeout: 400ms", "timeout: 20s")).run("-o json").result();
    // Without the fault, megabytes come in milliseconds: on a busy machine also after the load has begun. The
    // burst that the queue lets through is small against the second that is added.
    let number = |value: &Value| value.as_f64().expect("a number");
    let narrow_from = number(&result["faults"][0]["at_s"]) + 1.0;
    let intervals = result["intervals"].as_array().expect("there are some").iter();
    let narrow = intervals.filter(|one| number(&one["at_s"]) - number(&one["length_s"]) >= narrow_from);
    let sums = narrow.map(|one| (20_000.0 * number(&one["ok"]), number(&one["length_s"])));
    let (bytes, seconds) =
        sums.fold((0.0, 0.0), |(bytes, seconds), (more, length)| (bytes + more, seconds + length));
    let most = 2.0 * 1_048_576.0 * (seconds + 1.0);
    assert!(bytes > 0.0 && bytes < most, "{bytes} in {seconds} s: {}", result["faults"]);
}

/// Not every kernel can delay packets. One that cannot says so before anything is started.
#[test]
fn packets_are_delayed_or_it_is_said_that_they_cannot_be() {
    if !has_networks() {
        return;
    }
    let spec = sinks("  - {fault: delay, target: 0, at: 1s, for: 1s, amount: 100ms}\n");
    let stage = Stage::new(&spec);
    let finished = stage.run("-o json");
    if finished.code == Some(1) {
        finished.assert_refused(1, "nodes cannot have networks of their own: `delay`: tc: ");
        return assert!(!stage.folder.path().join("cluster/state.json").exists());
    }
    let result = finished.result();
    let slowest = result["faults"][0]["response_time"]["max"].as_u64().expect("there are some");
    assert!(slowest >= 200_000_000, "{}", result["faults"]);
}

/// Three nodes of the reference cluster, written to at a bounded rate.
const CRUD: &str = r#"
name: crud
network: namespaces
nodes:
  count: 3
  command: ${plimsoll}
  arguments:
    - target
    - crud-node
    - --id=${id}
    - --listen=${address.http}
    - --raft=${address.raft}
    - --data=${data}
  per_peer: [--peer, "${peer.id}=${peer.http}/${peer.raft}"]
  ports: {http: 0, raft: 0}
  ready: {http: /status}
leader: {path: /raft/leader, pointer: /leader_id}
workload:
  run: {connections: 8, rate: 300, duration: 9s, follow_redirects: 3, timeout: 2s}
  targets: {n0: "http://${node.0.http}", n1: "http://${node.1.http}", n2: "http://${node.2.http}"}
  scenarios:
    - steps:
        - {target: n0, post: /api/products, json: {name: a, price: 1, category: x}, expect: {status: 201}}
    - steps:
        - {target: n1, post: /api/products, json: {name: b, price: 1, category: x}, expect: {status: 201}}
    - steps:
        - {target: n2, post: /api/products, json: {name: c, price: 1, category: x}, expect: {status: 201}}
faults:
  - {fault: loss, target: all, at: 500ms, for: 1s, amount: 5%}
  - {fault: isolate, target: leader, at: 2s, for: 2500ms}
  - {fault: isolate, target: leader, at: 6s, for: 1s}
checks: [acknowledged, convergence]
"#;

#[test]
fn a_leader_that_nobody_hears_is_followed_by_another_and_no_acknowledged_write_is_lost() {
    if !has_networks() {
        return;
    }
    let finished = Stage::new(CRUD).run("-o json");
    let result = finished.result();
    let faults = result["faults"].as_array().expect("there are some");
    assert!(faults.iter().all(|fault| fault["error"].is_null()), "{faults:?}");
    assert_ne!(faults[1]["nodes"], faults[2]["nodes"], "somebody else leads: {faults:?}");
    let lost = |fault: &Value| fault["failed"].as_u64().max(fault["timed_out"].as_u64());
    assert!(lost(&faults[1]) > Some(0), "who was cut off could not write: {}", faults[1]);
    assert_eq!(result["reconciliation"]["consistent"], true, "{}", result["reconciliation"]);
    assert!(result["accounting"]["ok"].as_u64() > Some(1_000), "{}", result["accounting"]);
}

#[test]
fn nothing_is_left_of_networks_whoever_ends_them() {
    if !has_networks() {
        return;
    }
    for signal in ["KILL", "INT"] {
        let stage = Stage::new(&format!("network: namespaces\n{SINKS}"));
        let stats = stage.folder.file("stats");
        let mut owner = stage.start(&format!("-d 60s --set iterations=1000000000 --stats {stats}"));
        owner.stderr.wait_for("nodes are ready");
        // A line of the statistics says that the load is on.
        while !std::fs::read_to_string(&stats).is_ok_and(|text| text.lines().count() > 1) {
            wait_to_look_again();
        }
        let state = stage.state();
        assert!(said("ip", &["-o", "link"]).contains(&device(&state)), "{state}");
        owner.signal(signal);
        assert_eq!(owner.finish().code.is_none(), signal == "KILL");
        Stage::await_nobody(&state);
        await_no_network(&state);
    }
}

#[test]
fn who_may_make_no_networks_is_told_or_gets_the_proxy() {
    let spec = format!("{SINKS}network: namespaces\n");
    let finished = run_unprivileged(&Stage::new(&spec), "-o json");
    finished.assert_refused(1, "nodes cannot have networks of their own: no network namespace can be made");
    assert!(finished.stderr.contains("`network: proxy` does without"), "{}", finished.stderr);
    let spec = spec.replace("namespaces", "auto");
    let finished = run_unprivileged(&Stage::new(&spec), "-o json");
    let result = finished.result();
    assert_eq!(result["accounting"]["ok"], 200);
    let notes = result["notes"].as_array().expect("there are some");
    let note = notes.iter().find(|note| note["code"] == "network").expect("it is told");
    let text = note["text"].as_str().expect("a text");
    assert!(text.starts_with("faults go through the proxy: nodes cannot have"), "{text}");
}
