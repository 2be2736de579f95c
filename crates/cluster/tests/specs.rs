//! Problems that are reported for wrong specs, and the results of right ones.

use plimsoll_cluster::Spec;
use plimsoll_cluster::spec::NetworkKind;
use plimsoll_document::Source;

fn read(text: &str) -> Result<Spec, String> {
    Spec::read(Source { name: "spec.yaml".to_owned(), text: text.to_owned() }).map_err(|refused| {
        let line = |start: u32| text[..start as usize].matches('\n').count() + 1;
        let problems = refused.problems.iter().map(|problem| {
            let place = problem.place.map_or("-".to_owned(), |place| line(place.start).to_string());
            format!("{place}: {} ({})\n", problem.message, problem.hint.as_deref().unwrap_or("no hint"))
        });
        problems.collect()
    })
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_line() {
    let text = r#"
name: bad
clean: sometimes
nodes:
  - count: 2
    command: server
    arguments: ["${prt.http}", "${peer.id}", "${node.7.http}"]
    per_peer: ["${peer.id}=${peer.rft}"]
    ports: {http: eighty, raft: 0}
    ready:
      - {http: /status, port: htp}
      - {http: /status, equals: ready}
      - {tcp: raft, log: x}
    ready_within: soon
  - ids: [0, "a b"]
    count: 3
    comand: server
profiles:
  fast: {environment: {A: 1}}
profile: slow
links: [raft, {port: http, from: everywhere}]
leader: {pointer: leader_id}
faults:
  - {fault: kil, at: 1s}
  - {fault: kill, target: 9}
  - {fault: delay, at: 1s}
  - {fault: loss, at: 1s, amount: 200%}
  - {fault: partition, at: 1s, target: leader}
  - {fault: stop, at: 1s, amount: 3, side: [0]}
checks: [convergance, {check: persistence, page: 0}]
suites:
  empty: {description: nothing}
  profiles: {matrix: {profile: [fast, slower]}}
"#;
    insta::assert_snapshot!(read(text).unwrap_err());
}

#[test]
fn what_needs_something_that_is_not_there_says_so() {
    for (text, message) in [
        ("name: x\n", "a cluster needs `nodes`"),
        ("nodes: {count: 2}\n", "a node needs a `command`"),
        (
            "nodes: {command: a}\nfaults: [{fault: isolate, at: 1s}]\n",
            "needs links that go through the fault proxy",
        ),
        (
            "network: auto\nnodes: {command: a}\nfaults: [{fault: isolate, at: 1s}]\n",
            "needs links that go through the fault proxy",
        ),
        (
            "network: namespaces\nnodes: {command: a}\nfaults: [{fault: reset, at: 1s}]\n",
            "in network namespaces `reset` has to last",
        ),
        (
            "network: namespaces\nnodes: {command: a, ports: {http: 0}}\n\
             faults: [{fault: isolate, at: 1s, port: htp}]\n",
            "did you mean `http`?",
        ),
        ("network: vlan\nnodes: {command: a}\n", "it is one of proxy, namespaces, auto"),
        (
            "nodes: {command: a}\nfaults: [{fault: kill, target: leader, at: 1s}]\n",
            "the leader is not described",
        ),
        ("nodes: {command: a}\nchecks: [convergence]\n", "the nodes have no ports"),
        (
            "nodes: {command: a, ports: {http: 0}}\nchecks: [{check: writable, list: /api/orders}]\n",
            "an item of /api/orders is not described",
        ),
        (
            "nodes: {command: a, ports: {http: 0}}\nchecks: [{check: writable, item: 3}]\n",
            "`item` is not a JSON object",
        ),
        (
            "nodes: {command: a, ports: {http: 0}}\nchecks: [{check: convergence, most: 3%}]\n",
            "`most` does not apply to `convergence`",
        ),
        (
            "nodes: {command: a, ports: {http: 0}}\nchecks: [{check: error_share, most: 300%}]\n",
            "`300%` is not a share",
        ),
        ("nodes: {command: a, count: 101}\n", "a cluster has 1 to 100 nodes"),
        ("", "the spec is empty"),
    ] {
        let problems = read(text).unwrap_err();
        assert!(problems.contains(message), "{text}: {problems}");
    }
}

#[test]
fn a_group_of_nodes_has_ids_and_ports_in_their_order() {
    let spec = read(
        "nodes:\n  - {command: a, count: 2, ports: {http: 8080, raft: 0}}\n  - {command: b, ids: [x], ports: {http: 9000}}\n",
    );
    let spec = spec.unwrap();
    let nodes: Vec<(&str, Vec<u16>)> = spec
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node.ports.iter().map(|(_, port)| *port).collect()))
        .collect();
    assert_eq!(nodes, [("0", vec![8080, 0]), ("1", vec![8081, 0]), ("x", vec![9000])]);
    assert_eq!((spec.name.as_str(), spec.directory.to_str()), ("spec", Some("plimsoll-spec")));
}

#[test]
fn a_plan_within_a_spec_keeps_its_lines() {
    let text =
        "nodes: {command: a}\nworkload:\n  run: {duration: 1s}\n  targets: {a: http://x/}\nchecks: []\n";
    let text = &text.replace("checks: []\n", "name: x\n");
    let spec = read(text).unwrap();
    let (name, plan) = spec.plan_text(spec.workload.as_ref().unwrap()).unwrap();
    assert_eq!(name, "spec.yaml");
    assert_eq!(plan.len(), text.len());
    assert_eq!(plan.lines().nth(2), Some("  run: {duration: 1s}"));
    assert_eq!(plan.trim(), "run: {duration: 1s}\n  targets: {a: http://x/}");
}

/// The checks of a spec: their names, and whether they are implied.
fn checks(text: &str) -> Vec<(&'static str, bool)> {
    let nodes = "nodes: {command: a, ports: {http: 0}}\n";
    let spec = read(&format!("{nodes}{text}")).expect("it is right");
    spec.checks.iter().map(|check| (check.kind.name(), check.is_default)).collect()
}

#[test]
fn writes_and_errors_are_checked_unless_the_spec_says_how() {
    assert_eq!(checks(""), [("writable", true), ("error_share", true)]);
    let (writable, share) = (("writable", true), ("error_share", true));
    assert_eq!(checks("checks: [persistence]\n"), [writable, ("persistence", false), share]);
    let both = "checks: [{check: error_share, most: 5%}, {check: writable, within: 1s}]\n";
    assert_eq!(checks(both), [("error_share", false), ("writable", false)]);
    assert_eq!(checks("checks: [{check: writable, item: none}]\n"), [share]);
    // The check does not know what an item of it is.
    let other = "checks: [{check: convergence, list: /api/orders}]\n";
    assert_eq!(checks(other), [("convergence", false), share]);
}

#[test]
fn faults_of_namespaces_need_no_links_and_loopback_is_the_default() {
    let spec = read(
        "network: namespaces\nnodes: {command: \"a ${host}\", ports: {http: 0}}\n\
         faults: [{fault: isolate, at: 1s, port: http}, {fault: reset, at: 1s, for: 1s}]\n",
    );
    let spec = spec.unwrap();
    assert_eq!((spec.network, spec.faults.len()), (NetworkKind::Namespaces, 2));
    assert_eq!(read("nodes: {command: a}\n").unwrap().network, NetworkKind::Proxy);
}
