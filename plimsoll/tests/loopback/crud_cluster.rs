//! `plimsoll target crud-node` and `crud-cluster` as processes: the API, agreement, failures and lies.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::loopback::process::{Finished, Folder, Process, plimsoll, run};
use plimsoll_testkit::eventually::{eventually, wait_to_look_again};
use plimsoll_testkit::ports::lasting_addresses;

/// Requests after which something that should have come to pass is given up: a minute at least.
const ATTEMPTS: usize = 300_000;

/// A running cluster.
pub(crate) struct Cluster {
    process: Process,
    nodes: Vec<Node>,
    leader: usize,
}

struct Node {
    address: String,
    pid: String,
}

/// An answer: its status, its head and its body, `Null` if that is empty.
struct Answer {
    status: u16,
    head: String,
    body: Value,
}

impl Cluster {
    pub(crate) fn start(nodes: usize, args: &str) -> Self {
        let command = &mut Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["target", "crud-cluster", "-p0", &format!("-n{nodes}")]);
        Self::of(command.args(args.split_whitespace()), nodes)
    }

    fn of(command: &mut Command, nodes: usize) -> Self {
        let mut process = Process::try_start(command).expect("the program was built");
        let mut found: Vec<_> = (0..nodes).map(|_| None).collect();
        for _ in 0..nodes {
            let line = process.stderr.wait_for(" on http://");
            let word = |before: &str| line.split_once(before).expect("it is said").1;
            let number: usize = word("node ").split(' ').next().expect("a number").parse().expect("a number");
            let address = word("http://").split(',').next().expect("an address").to_owned();
            found[number] = Some(Node { address, pid: word("process ").to_owned() });
        }
        let leader = leader(&process.stderr.wait_for("ready: "));
        Self { process, nodes: found.into_iter().flatten().collect(), leader }
    }

    /// Where a node's API is.
    pub(crate) fn address(&self, node: usize) -> &str {
        &self.nodes[node].address
    }

    /// The number of the node that led when all were ready.
    pub(crate) fn leader(&self) -> usize {
        self.leader
    }

    pub(crate) fn size(&self) -> usize {
        self.nodes.len()
    }

    fn ask(&self, node: usize, request: &str, body: &Value) -> Answer {
        ask(&self.nodes[node].address, request, body).expect("it answers")
    }

    /// Sends a request to the leader, and returns the answer.
    fn lead(&self, request: &str, body: &Value) -> Answer {
        self.ask(self.leader, request, body)
    }

    /// Returns the items that are stored on a node, in order.
    fn items(&self, node: usize) -> Vec<Value> {
        let list = self.ask(node, "GET /api/products?take=1000000", &Value::Null).body;
        list["data"].as_array().expect("a list").clone()
    }

    pub(crate) fn count(&self, node: usize) -> u64 {
        self.ask(node, "GET /api/products/count", &Value::Null).body["count"].as_u64().expect("a count")
    }

    fn await_count(&self, node: usize, count: u64) {
        assert!((0..ATTEMPTS).any(|_| self.count(node) == count), "{} of {count}", self.count(node));
    }

    pub(crate) fn lies(&self, node: usize) -> Vec<Value> {
        self.ask(node, "GET /_lies", &Value::Null).body.as_array().expect("a list").clone()
    }

    fn kill(&self, node: usize) {
        let killed = Command::new("sh").args(["-c", &format!("kill -9 {}", self.nodes[node].pid)]).status();
        assert!(killed.expect("there is a shell").success());
    }

    fn stop(self) -> Finished {
        self.process.signal("TERM");
        self.process.finish()
    }
}

/// The number in `node 1 leads`.
fn leader(line: &str) -> usize {
    let words = line.split_once("node ").expect("a node").1;
    words.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Sends a request to a node, and returns the answer; `None` if there is none.
fn ask(address: &str, request: &str, body: &Value) -> Option<Answer> {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let fields = format!("connection: close\r\ncontent-length: {}", text.len());
    exchange(
        address,
        &format!("{request} HTTP/1.1\r\ncontent-type: application/json\r\n{fields}\r\n\r\n{text}"),
    )
}

fn exchange(address: &str, request: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut told = String::new();
    stream.read_to_string(&mut told).ok()?;
    let (head, body) = told.split_once("\r\n\r\n")?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).ok()? };
    Some(Answer { status: head[9..12].parse().ok()?, head: head.to_owned(), body })
}

fn product(name: &str) -> Value {
    json!({"name": name, "price": 1.5, "category": "c"})
}

fn id(item: &Value) -> String {
    item["id"].as_str().expect("an id").to_owned()
}

#[test]
fn one_node_answers_as_the_real_server_does() {
    let node = Cluster::start(1, "");
    let none = &Value::Null;
    assert_eq!(node.lead("GET /api/products/random-id", none).status, 404);
    let made = node.lead("POST /api/products", &product("a"));
    assert_eq!(made.status, 201);
    let (mut item, id) = (made.body.clone(), id(&made.body));
    let of_item = |method: &str| format!("{method} /api/products/{id}");
    assert_eq!(node.lead("GET /api/products/random-id", none).body, json!({"id": id}));
    assert_eq!(node.lead(&of_item("GET"), none).body, item);

    let error = |request: &str, body: &Value, status: u16, error: &str| {
        let answer = node.lead(request, body);
        assert_eq!((answer.status, &answer.body["error"]), (status, &json!(error)), "{request} {body}");
    };
    error("POST /api/products", &item, 409, &format!("'id' must be unique: value \"{id}\" already exists"));
    error("POST /api/products", &json!({"name": "a"}), 400, "Invalid JSON");
    error("POST /api/products", &product(""), 400, "'name' must not be empty");
    error(
        "POST /api/products",
        &json!({"id": "x", "name": "a", "price": 1, "category": ""}),
        400,
        "Invalid JSON",
    );
    error("POST /api/products/_bulk", &json!([product("a"), {}]), 400, "Invalid JSON array");
    error(&of_item("PUT"), &json!({"price": 2}), 400, "Invalid JSON");
    error(&of_item("PUT"), &product("b"), 400, "The primary key must match the route and cannot be changed");
    let mut young = item.clone();
    young["created_at"] = json!("now");
    error(&of_item("PUT"), &young, 400, "'created_at' is immutable and cannot be modified");
    error(&of_item("PATCH"), &json!({"price": -1}), 400, "'price' must be at least 0.01");
    for unknown in ["x", "00000000-0000-4000-8000-000000000000"] {
        error(&format!("GET /api/products/{unknown}"), none, 404, "Not found");
        error(&format!("PATCH /api/products/{unknown}"), &json!({"price": 1}), 404, "Not found");
        error(&format!("DELETE /api/products/{unknown}"), none, 404, "Not found");
    }
    error("GET /_raft/leader", none, 404, "Not found");

    assert_eq!(node.lead("POST /api/products/_bulk", &json!([])).body, json!([]));
    let bulk = node.lead("POST /api/products/_bulk", &json!([product("b"), product("c")]));
    assert_eq!((bulk.status, bulk.body.as_array().map(Vec::len)), (201, Some(2)));
    assert_eq!(node.items(0), [&item, &bulk.body[0], &bulk.body[1]].map(Clone::clone));
    item["price"] = json!(3);
    let put = node.lead(&of_item("PUT"), &item);
    assert_eq!(
        (put.status, &put.body["price"], &put.body["created_at"]),
        (200, &json!(3), &item["created_at"])
    );
    let patched = node.lead(&of_item("PATCH"), &json!({"price": 4, "colour": "red"}));
    assert_eq!(
        (patched.status, &patched.body["price"], &patched.body["name"]),
        (200, &json!(4), &json!("a"))
    );
    let page = node.lead("GET /api/products?take=1&skip=1&sort=-name", none).body;
    assert_eq!(
        (&page["data"][0]["name"], &page["total"], &page["has_more"]),
        (&json!("b"), &json!(3), &json!(true))
    );
    assert_eq!(node.lead("GET /api/products?colour=red", none).body["total"], 1);
    let deleted = node.lead(&of_item("DELETE"), none);
    assert_eq!((deleted.status, deleted.body), (204, Value::Null));
    assert_eq!(node.lead("GET /api/products/count", none).body, json!({"count": 2}));

    let allowed = node.lead("POST /api/products/count", &json!({}));
    assert!(allowed.status == 405 && allowed.head.contains("allow: GET\r\n"), "{}", allowed.head);
    let plain = "POST /api/products HTTP/1.1\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(exchange(&node.nodes[0].address, plain).map(|answer| answer.status), Some(415));
    let long = format!("POST /api/products HTTP/1.1\r\ncontent-length: {}\r\n\r\n", 3 << 20);
    assert_eq!(exchange(&node.nodes[0].address, &long).map(|answer| answer.status), Some(413));
    let status = node.lead("GET /status", none).body;
    assert_eq!((&status["raft"]["is_leader"], &status["status"]), (&json!(true), &json!("ready")));
    assert_eq!(node.lead("GET /raft/leader", none).body["is_current_node_leader"], true);
    assert_eq!(node.stop().code, Some(0));
}

#[test]
fn three_nodes_agree_and_followers_say_who_leads() {
    let cluster = Cluster::start(3, "");
    let follower = (cluster.leader + 1) % 3;
    let leader = &cluster.nodes[cluster.leader].address;
    let sent = cluster.ask(follower, "POST /api/products?x=1", &product("a"));
    let url = format!("http://{leader}/api/products?x=1");
    assert_eq!((sent.status, &sent.body["leader_url"]), (307, &json!(url)));
    assert!(sent.head.contains(&format!("location: {url}")), "{}", sent.head);
    for number in 0..20 {
        let made = cluster.lead("POST /api/products", &product(&number.to_string()));
        assert_eq!(made.status, 201);
        let of_item = format!("/api/products/{}", id(&made.body));
        assert_eq!(cluster.lead(&format!("PATCH {of_item}"), &json!({"price": number + 1})).status, 200);
        if number % 4 == 0 {
            assert_eq!(cluster.lead(&format!("DELETE {of_item}"), &Value::Null).status, 204);
        }
    }
    let bulk: Vec<Value> = (0..100).map(|number| product(&format!("bulk {number}"))).collect();
    assert_eq!(cluster.lead("POST /api/products/_bulk", &json!(bulk)).status, 201);
    let items = cluster.items(cluster.leader);
    assert_eq!(items.len(), 115);
    for node in 0..3 {
        cluster.await_count(node, 115);
        assert_eq!(cluster.items(node), items);
        let status = cluster.ask(node, "GET /status", &Value::Null).body;
        assert_eq!(status["raft"]["leader_port"].to_string(), leader.rsplit(':').next().expect("a port"));
    }
    let ids: BTreeSet<String> = (0..50)
        .map(|_| id(&cluster.ask(follower, "GET /api/products/random-id", &Value::Null).body))
        .collect();
    assert!(ids.len() > 10, "{ids:?}");
    assert_eq!(cluster.lies(follower), [Value::Null; 0]);
    cluster.stop();
}

#[test]
fn a_leader_that_is_killed_takes_no_acknowledged_write_with_it() {
    let mut cluster = Cluster::start(3, "");
    let addresses: Vec<String> = cluster.nodes.iter().map(|node| node.address.clone()).collect();
    let (acknowledged, count) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let (stop, old) = (AtomicBool::new(false), cluster.leader);
    let write = |first: usize| {
        let mut at = first;
        while !stop.load(Ordering::Relaxed) {
            match ask(&addresses[at % 3], "POST /api/products", &product("a")) {
                Some(answer) if answer.status == 201 => {
                    acknowledged.lock().expect("no panic while it is locked").push(id(&answer.body));
                    count.fetch_add(1, Ordering::Relaxed);
                }
                _ => at += 1,
            }
        }
    };
    let reaches = |more: usize| {
        let wanted = count.load(Ordering::Relaxed) + more;
        while count.load(Ordering::Relaxed) < wanted {
            wait_to_look_again();
        }
    };
    std::thread::scope(|scope| {
        (0..4).for_each(|first| drop(scope.spawn(move || write(first))));
        reaches(100);
        cluster.kill(old);
        cluster.leader = leader(&cluster.process.stderr.wait_for(" leads at http://"));
        reaches(100);
        stop.store(true, Ordering::Relaxed);
    });
    assert_ne!(cluster.leader, old);
    let acknowledged = acknowledged.into_inner().expect("no panic while it is locked");
    let others = (0..3).filter(|node| *node != old);
    let stored = cluster.count(cluster.leader);
    for node in others {
        cluster.await_count(node, stored);
        let found: BTreeSet<String> = cluster.items(node).iter().map(id).collect();
        let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains(*id)).collect();
        assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), acknowledged.len());
    }
    let said = cluster.stop().stderr;
    assert!(said.contains(&format!("node {old} has ended: signal: 9")), "{said}");
}

#[test]
fn a_leader_without_a_majority_says_that_nobody_knows_and_then_that_it_does_not_lead() {
    let cluster = Cluster::start(3, "--commit-timeout 200ms --election-timeout 1s");
    let signal = |name: &str| {
        let others = cluster.nodes.iter().enumerate().filter(|(node, _)| *node != cluster.leader);
        let pids: Vec<&str> = others.map(|(_, node)| &node.pid[..]).collect();
        let sent = Command::new("sh").args(["-c", &format!("kill -s {name} {}", pids.join(" "))]).status();
        assert!(sent.expect("there is a shell").success());
    };
    signal("STOP");
    let unknown = cluster.lead("POST /api/products", &product("a"));
    assert_eq!((unknown.status, unknown.head.contains("retry-after")), (503, false), "{}", unknown.body);
    let mut later = (0..ATTEMPTS).map(|_| cluster.lead("POST /api/products", &product("b")));
    assert!(later.any(|answer| answer.status == 503 && answer.head.contains("retry-after: 1")));
    assert_eq!(cluster.lead("GET /status", &Value::Null).body["raft"]["leader_port"], 0);
    signal("CONT");
    let addresses: Vec<&String> = cluster.nodes.iter().map(|node| &node.address).collect();
    let writes = |_: usize| {
        addresses.iter().any(|address| {
            ask(address, "POST /api/products", &product("c")).is_some_and(|answer| answer.status == 201)
        })
    };
    assert!((0..ATTEMPTS).any(writes));
    let agree = |_: usize| {
        let items = cluster.items(0);
        items == cluster.items(1) && items == cluster.items(2)
    };
    assert!((0..ATTEMPTS).any(agree));
    cluster.stop();
}

#[test]
fn what_was_acknowledged_is_there_after_all_nodes_were_killed() {
    let folder = Folder::new();
    // Snapshots, too.
    let args = format!("--data {} --snapshot-every 20KiB", folder.path().display());
    let cluster = Cluster::start(3, &args);
    for number in 0..10 {
        let bulk: Vec<Value> = (0..50).map(|item| product(&format!("{number} {item}"))).collect();
        assert_eq!(cluster.lead("POST /api/products/_bulk", &json!(bulk)).status, 201);
    }
    let items = cluster.items(cluster.leader);
    (0..3).for_each(|node| cluster.kill(node));
    let finished = cluster.process.finish();
    assert!(finished.code == Some(1) && finished.stderr.contains("all nodes have ended"), "{finished:?}");
    let snapshots = std::fs::read_dir(folder.path().join("node-0/snapshot")).expect("a folder");
    assert_eq!(snapshots.count(), 1);

    let cluster = Cluster::start(3, &args);
    for node in 0..3 {
        cluster.await_count(node, 500);
        assert_eq!(cluster.items(node), items);
    }
    assert_eq!(cluster.lead("POST /api/products", &product("more")).status, 201);
    cluster.stop();
    let other =
        run(&format!("target crud-node --id 1 --data {} --listen 127.0.0.1:0", folder.file("node-0")));
    other.assert_refused(1, "has the data of node 0");
}

#[test]
fn a_node_that_lost_all_gets_a_snapshot() {
    let folder = Folder::new();
    let http: [String; 3] = lasting_addresses();
    let raft: [String; 3] = lasting_addresses();
    let start = |id: usize, data: &str| {
        let others = (0..3).filter(|other| *other != id);
        let peers = others.map(|other| format!("--peer {other}={}/{}", http[other], raft[other]));
        let place = format!("--id {id} --listen {} --raft {}", http[id], raft[id]);
        let data = format!("--data {} --snapshot-every 4KiB", folder.file(data));
        let mut node = Process::start(plimsoll(&format!(
            "target crud-node {place} {data} {}",
            peers.collect::<Vec<_>>().join(" ")
        )));
        node.stderr.wait_for(" leads, term ");
        node
    };
    let list = |id: usize| {
        ask(&http[id], "GET /api/products", &Value::Null).expect("it answers").body["data"].take()
    };
    let starts = [("0", 0), ("1", 1), ("2", 2)];
    let mut nodes: Vec<Process> = std::thread::scope(|scope| {
        let threads = starts.map(|(data, id)| scope.spawn(move || start(id, data)));
        threads.map(|thread| thread.join().expect("it starts")).into()
    });
    let status = ask(&http[0], "GET /raft/leader", &Value::Null).expect("it answers").body;
    let leader = status["leader_id"].as_u64().expect("a leader") as usize;
    let other = (leader + 1) % 3;
    nodes[other].signal("KILL");
    nodes[other].wait();
    // More entries than are kept beside a snapshot.
    for number in 0..200 {
        let made = ask(&http[leader], "POST /api/products", &product(&number.to_string()));
        assert_eq!(made.map(|answer| answer.status), Some(201));
    }
    let oldest = std::fs::read_dir(folder.path().join(format!("{leader}/log"))).expect("a folder");
    assert!(oldest.filter_map(Result::ok).any(|file| file.file_name() == "purged"));
    for data in ["new", &other.to_string()] {
        nodes[other] = start(other, data);
        assert!((0..ATTEMPTS).any(|_| list(other) == list(leader)), "{data}");
        assert_eq!(list(other).as_array().map(Vec::len), Some(200));
        assert!(std::fs::read_dir(folder.path().join(data).join("snapshot")).expect("a folder").count() > 0);
        nodes[other].signal("TERM");
        nodes[other].wait();
    }
}

#[test]
fn a_log_that_is_torn_is_cut_and_one_that_is_damaged_is_refused() {
    let folder = Folder::new();
    let start = format!(
        "target crud-node --data {} --listen 127.0.0.1:0 --raft 127.0.0.1:0",
        folder.path().display()
    );
    let mut node = Process::start(plimsoll(&start));
    let address =
        node.stderr.wait_for("listening on http://").rsplit('/').next().expect("an address").to_owned();
    node.stderr.wait_for("node 0 leads");
    for name in ["a", "b"] {
        assert_eq!(
            ask(&address, "POST /api/products", &product(name)).map(|answer| answer.status),
            Some(201)
        );
    }
    run(&start).assert_refused(1, "is in use by another process");
    node.signal("KILL");
    node.wait();
    let log = folder.path().join("log/00000000000000000000.log");
    let whole = std::fs::read(&log).expect("there is a log");
    std::fs::write(&log, [&whole[..], b"plim"].concat()).expect("it can be written");
    let mut node = Process::start(plimsoll(&start));
    node.stderr.wait_for("4 bytes at the end of the log were never acknowledged");
    let address =
        node.stderr.wait_for("listening on http://").rsplit('/').next().expect("an address").to_owned();
    node.stderr.wait_for("node 0 leads");
    let count = ask(&address, "GET /api/products/count", &Value::Null).map(|answer| answer.body);
    assert_eq!(count, Some(json!({"count": 2})));
    node.signal("TERM");
    node.wait();
    let mut damaged = whole;
    damaged[30] ^= 1;
    std::fs::write(&log, damaged).expect("it can be written");
    run(&start).assert_refused(1, "is damaged at byte 0: what follows was acknowledged");
}

#[test]
fn what_is_lost_doubled_or_not_deleted_is_told() {
    let none = &Value::Null;
    let told = |cluster: &Cluster, number: usize, expected: Value| {
        let mut lie = cluster.lies(cluster.leader).remove(number);
        lie["model"].take();
        assert_eq!(lie, expected);
    };
    let lie = |kind: &str, operation: &str, id: &str, duplicate: Value| json!({"kind": kind, "operation": operation, "model": null, "id": id, "duplicate": duplicate});

    let cluster = Cluster::start(1, "--lie lose --lie-share 100%");
    let made = cluster.lead("POST /api/products", &product("a"));
    assert_eq!((made.status, cluster.count(0)), (201, 0));
    told(&cluster, 0, lie("lose", "create", &id(&made.body), Value::Null));
    let finished = cluster.stop();
    assert!(finished.stderr.contains("faults: 100% of the creates and updates"), "{}", finished.stderr);

    let cluster = Cluster::start(1, "--lie duplicate --lie-share 1.0");
    let made = cluster.lead("POST /api/products", &product("a"));
    let [one, other] = &cluster.items(0)[..] else { panic!("not two items") };
    assert_eq!((one, &other["name"]), (&made.body, &json!("a")));
    told(&cluster, 0, lie("duplicate", "create", &id(one), other["id"].clone()));
    cluster.stop();

    let cluster = Cluster::start(1, "--lie resurrect --lie-share 100%");
    let made = cluster.lead("POST /api/products", &product("a"));
    assert_eq!(cluster.lead(&format!("DELETE /api/products/{}", id(&made.body)), none).status, 204);
    assert_eq!(cluster.items(0), std::slice::from_ref(&made.body));
    told(&cluster, 0, lie("resurrect", "delete", &id(&made.body), Value::Null));
    cluster.stop();

    let cluster = Cluster::start(1, "--lie stale --lie-share 100% --stale-by 1h");
    let made = cluster.lead("POST /api/products", &product("a"));
    assert_eq!(cluster.lead(&format!("GET /api/products/{}", id(&made.body)), none).status, 404);
    assert_eq!(cluster.count(0), 0);
    told(&cluster, 0, lie("stale", "get", &id(&made.body), Value::Null));
    assert_eq!(cluster.lies(0)[1]["operation"], "count");
    cluster.stop();
}

#[test]
fn a_node_diverges_alone_and_says_from_what() {
    let cluster = Cluster::start(3, "--lie diverge@1 --lie-share 20% --seed 3");
    let bulk: Vec<Value> = (0..100).map(|number| product(&number.to_string())).collect();
    let made = cluster.lead("POST /api/products/_bulk", &json!(bulk)).body;
    let made: Vec<Value> = made.as_array().expect("a list").clone();
    (0..3).for_each(|node| cluster.await_count(node, 100));
    assert_eq!((cluster.items(0), cluster.items(2)), (made.clone(), made.clone()));
    let other = cluster.items(1);
    let differ: Vec<_> =
        made.iter().zip(&other).filter(|(one, other)| one != other).map(|(one, _)| id(one)).collect();
    let told: Vec<_> = cluster.lies(1).iter().map(id).collect();
    assert_eq!(told, differ);
    assert!((5..40).contains(&told.len()), "{told:?}");
    assert_eq!(cluster.lies(0).len() + cluster.lies(2).len(), 0);
    cluster.stop();
}

#[test]
fn a_cluster_leaves_nothing_behind_even_if_it_is_killed() {
    let folder = Folder::new();
    let files = || std::fs::read_dir(folder.path()).expect("a folder").count();
    for signal in ["TERM", "KILL"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["target", "crud-cluster", "-p0", "-n3"]).env("TMPDIR", folder.path());
        let mut cluster = Cluster::of(&mut command, 3);
        assert_eq!(files(), 1);
        if signal == "TERM" {
            cluster.kill(0);
            cluster.process.stderr.wait_for("node 0 has ended");
        }
        cluster.process.signal(signal);
        cluster.process.wait();
        let gone = |node: &Node| TcpStream::connect(&node.address).is_err();
        let ended = || cluster.nodes.iter().all(gone) && files() == 0;
        assert!(eventually(ended), "{signal}: {}", files());
    }
}
