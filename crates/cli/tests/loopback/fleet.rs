//! `agent`, `fleet` and `run --fleet` with a real broker: agents that are killed, a broker that is killed, a
//! coordinator that is killed, and those that may not do what they try.

use std::path::Path;

use plimsoll_testkit::skip;
use serde_json::Value;

use crate::process::{Finished, Folder, Process, run};
use crate::sink::Sink;
use crate::steering::request;
use crate::truth::{account, assert_balance, delivered};

/// Names of the agents.
const AGENTS: [&str; 3] = ["a", "b", "c"];

/// A broker with the keys of its fleet. It ends with this.
struct Broker {
    folder: Folder,
    url: String,
}

impl Broker {
    /// Starts one; `None` if there is no `nats-server`.
    fn start(listen: &str, flags: &str) -> Option<Self> {
        let folder = Folder::new();
        let place = folder.file("fleet");
        let names = AGENTS.join(",");
        let up = run(&format!("fleet up --listen {listen} --agents {names} --folder {place} {flags}"));
        if up.code == Some(1) && up.stderr.contains("there is no `nats-server`") {
            skip::without_program("nats-server");
            return None;
        }
        Some(Self { url: url(&up), folder })
    }

    /// The path of a file of the fleet.
    fn file(&self, name: &str) -> String {
        self.folder.file(&format!("fleet/{name}"))
    }

    /// Flags of a coordinator.
    fn flags(&self) -> String {
        let authorities = if Path::new(&self.file("ca.pem")).exists() {
            format!(" --fleet-ca {}", self.file("ca.pem"))
        } else {
            String::new()
        };
        format!("--fleet {} --fleet-creds {}{authorities}", self.url, self.file("coordinator.key"))
    }

    /// Flags of other commands.
    fn own_flags(&self, key: &str) -> String {
        let flags = self.flags().replace("--fleet-creds", "--creds").replace("--fleet-ca", "--ca");
        flags.replace("--fleet", "--nats").replace("coordinator.key", key)
    }

    fn agent(&self, name: &str) -> Process {
        let flags = self.own_flags(&format!("{name}.key"));
        let runs = self.folder.file(&format!("runs-{name}"));
        let mut agent = Process::plimsoll(&format!("agent {flags} --folder {runs}"));
        agent.stderr.wait_for(&format!("agent {name}: ready"));
        agent
    }

    fn kill(&self) {
        let process = std::fs::read_to_string(self.file("broker.pid")).expect("it has written its number");
        let killed = std::process::Command::new("kill").args(["-9", process.trim()]).status();
        assert!(killed.expect("there is such a program").success());
    }

    fn start_again(&self) {
        let up = run(&format!("fleet up --folder {}", self.file("")));
        assert_eq!(url(&up), self.url, "{up:?}");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // One that was killed has ended already.
        let _ = run(&format!("fleet down --folder {}", self.file("")));
    }
}

fn url(up: &Finished) -> String {
    assert_eq!(up.code, Some(0), "{up:?}");
    let line = up.stdout.lines().find_map(|line| line.strip_prefix("broker: "));
    line.unwrap_or_else(|| panic!("{up:?}")).to_owned()
}

/// The result, however the run ended.
fn parsed(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

fn unknown(result: &Value) -> u64 {
    result["accounting"]["unknown"].as_u64().unwrap_or(0)
}

/// Every arrival has its account: of some nobody knows what became of them.
fn assert_fleet_balances(result: &Value) {
    let placed =
        ["started", "dropped", "never_started"].map(|kind| account(result, kind)).iter().sum::<u64>();
    assert_eq!(account(result, "scheduled"), placed + unknown(result), "{}", result["accounting"]);
}

fn state(result: &Value, agent: usize) -> &str {
    result["agents"][agent]["state"].as_str().unwrap_or_else(|| panic!("{}", result["agents"]))
}

#[test]
fn three_agents_make_one_load_and_one_result() {
    let Some(broker) = Broker::start("127.0.0.1:0", "--tls localhost --tls 127.0.0.1") else { return };
    let agents: Vec<Process> = AGENTS.iter().map(|name| broker.agent(name)).collect();
    let list = run(&format!("fleet list {} -o json", broker.own_flags("coordinator.key")));
    let list: Value = serde_json::from_str(&list.stdout).unwrap_or_else(|error| panic!("{error}: {list:?}"));
    let names: Vec<&str> = list["agents"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            assert_eq!(one["run"], Value::Null);
            one["agent"].as_str().expect("a name")
        })
        .collect();
    assert_eq!(names, AGENTS);
    let sink = Sink::start("");
    let plan = broker.folder.write(
        "plan.yaml",
        format!(
            "targets: {{api: 'http://{}'}}\ndata: {{users: {{csv: users.csv}}}}\n\
             scenarios:\n  - steps:\n      - get: '/${{id}}'\n",
            sink.endpoint
        ),
    );
    let ids: String = (0..1_200).map(|id| format!("{id}\n")).collect();
    broker.folder.write("users.csv", format!("id\n{ids}"));
    let load = "--rate 600 -d 2s -c 12 --seed 5 --threshold rate>300/s --threshold p99<30s";
    let store = broker.folder.file("runs.db");
    let args = format!("run {plan} {load} {} -o json --name peak --store {store}", broker.flags());
    let ran = run(&args);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let result = parsed(&ran);
    let saw = sink.stop();
    assert_eq!(delivered(&result), saw.requests, "{:#}", result["accounting"]);
    assert_balance(&result);
    assert_eq!((account(&result, "scheduled"), unknown(&result)), (1_200, 0), "{:#}", result["accounting"]);
    for (place, name) in AGENTS.iter().enumerate() {
        let agent = &result["agents"][place];
        assert_eq!((&agent["name"], state(&result, place)), (&Value::from(*name), "finished"));
        assert_eq!(agent["shard"], format!("{}/3", place + 1));
        assert_eq!(agent["started"], 400, "{agent:#}");
        // One machine, and so one clock.
        let (ahead, bound) = (agent["clock_ahead_ns"].as_i64(), agent["clock_bound_ns"].as_u64());
        assert!(
            ahead.expect("it was estimated").unsigned_abs() <= bound.expect("it has a bound"),
            "{agent:#}"
        );
    }
    let passed = result["thresholds"].as_array().expect("thresholds").iter().map(|one| &one["passed"]);
    assert!(passed.clone().all(|passed| *passed == true), "judged by the sum: {:#}", result["thresholds"]);
    assert_eq!(result["run"]["shard"], Value::Null);
    let shown = run(&format!("show peak -o text --store {store}"));
    assert!(shown.stdout.contains("3 agents") && shown.stdout.contains("limited by"), "{}", shown.stdout);
    drop(agents);
}

#[test]
fn the_loss_of_an_agent_is_told_and_accounts_balance() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    for (on_loss, others) in [("abort", false), ("continue", true)] {
        let agents: Vec<Process> = AGENTS.iter().map(|name| broker.agent(name)).collect();
        let mut sink = Sink::telling("");
        // It goes on long after the loss was noticed.
        let load = "--rate 300 -d 25s -c 6 --seed 5 --on-loss";
        let args = format!("run {} {load} {on_loss} {} -o json", sink.url(), broker.flags());
        let coordinator = Process::plimsoll(&args);
        sink.wait_for_load();
        // Some parts have come by then: one after five seconds.
        sink.wait_for_requests(2_400);
        agents[1].signal("KILL");
        let ran = coordinator.finish();
        assert_eq!(ran.code, Some(7), "{ran:?}");
        assert!(ran.stderr.contains("agent b is lost"), "{}", ran.stderr);
        let result = parsed(&ran);
        assert_fleet_balances(&result);
        let states = [0, 1, 2].map(|agent| state(&result, agent));
        assert_eq!(states, ["finished", "lost", "finished"], "{}", ran.stderr);
        assert!(unknown(&result) > 0, "{:#}", result["accounting"]);
        assert!(
            result["agents"][1]["started"].as_u64() > Some(0),
            "a part had come: {}",
            result["agents"][1]
        );
        let reasons = result["verdict"]["invalid_reasons"].as_array().expect("a list");
        assert!(reasons.iter().any(|reason| reason == "agent_lost"), "{}", result["verdict"]);
        if others {
            assert_eq!(account(&result, "scheduled"), 7_500, "{:#}", result["accounting"]);
        } else {
            assert!(account(&result, "scheduled") < 7_500, "{:#}", result["accounting"]);
        }
        assert!(sink.stop().requests >= delivered(&result));
        drop(agents);
    }
}

#[test]
fn a_broker_that_dies_costs_nothing() {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        free.local_addr().expect("it has an address").port()
    };
    let Some(broker) = Broker::start(&format!("127.0.0.1:{port}"), "") else { return };
    let agents: Vec<Process> = AGENTS.iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let args = format!("run {} --rate 300 -d 12s -c 6 --seed 5 {} -o json", sink.url(), broker.flags());
    let coordinator = Process::plimsoll(&args);
    sink.wait_for_load();
    broker.kill();
    sink.wait_for_requests(600);
    broker.start_again();
    let ran = coordinator.finish();
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let result = parsed(&ran);
    assert_balance(&result);
    assert_eq!((account(&result, "scheduled"), unknown(&result)), (3_600, 0));
    assert_eq!(delivered(&result), sink.stop().requests);
    assert!(ran.stderr.contains("the broker does not answer"), "{}", ran.stderr);
    drop(agents);
}

#[test]
fn without_its_coordinator_a_fleet_stops_and_its_result_can_be_collected() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let mut agents: Vec<Process> = AGENTS.iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let args = format!("run {} --rate 300 -d 10m -c 6 --orphan 5s {}", sink.url(), broker.flags());
    let mut coordinator = Process::plimsoll(&args);
    let line = coordinator.stderr.wait_for("fleet: run ");
    let id = line.split(' ').nth(2).expect("it has an id").to_owned();
    sink.wait_for_load();
    coordinator.signal("KILL");
    coordinator.wait();
    for agent in &mut agents {
        agent.stderr.wait_for(": free");
    }
    let collected = run(&format!("fleet collect {id} {} -o json", broker.own_flags("coordinator.key")));
    let result = parsed(&collected);
    assert_fleet_balances(&result);
    // The first contact of a process that was cut short is in no figure.
    let saw = sink.stop().requests;
    assert!(
        (delivered(&result)..=delivered(&result) + 3).contains(&saw),
        "{saw}: {:#}",
        result["accounting"]
    );
    assert_eq!(result["agents"].as_array().map(Vec::len), Some(3));
    let other = run(&format!("fleet collect nothing {}", broker.own_flags("coordinator.key")));
    other.assert_refused(2, "no agent has anything of run nothing");
}

#[test]
fn a_fleet_is_steered_as_one_load() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let flags = broker.flags();
    let load = "--rate 200 -d 14s -c 6 --seed 5 --control 127.0.0.1:0 -o json";
    let mut coordinator = Process::plimsoll(&format!("run {} {load} {flags}", sink.url()));
    let line = coordinator.stderr.wait_for("control: http://");
    let control = line.trim_start_matches("control: http://").trim_end_matches('/').to_owned();
    sink.wait_for_load();
    // Who is busy says so, to whoever names it.
    let other = run(&format!("run {} --rate 10 -d 1s -c 2 {flags} --agents a --quiet", sink.url()));
    other.assert_refused(1, "agent a: it is busy with run");
    let told = request(&control, "POST /rate", "x-plimsoll-control: 1\r\n", "500").json();
    let at = told["at_s"].as_f64().expect("an instant");
    let ran = coordinator.finish();
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let result = parsed(&ran);
    assert_balance(&result);
    let expected = 200.0 * at + 500.0 * (14.0 - at);
    let scheduled = account(&result, "scheduled") as f64;
    assert!((scheduled - expected).abs() <= 2.0, "{scheduled} beside {expected}: {}", ran.stderr);
    assert_eq!(delivered(&result), sink.stop().requests);
    drop(agents);
}

#[test]
fn an_interruption_stops_all_agents() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let args = format!("run {} --rate 200 -d 10m -c 6 {} -o json", sink.url(), broker.flags());
    let coordinator = Process::plimsoll(&args);
    sink.wait_for_load();
    coordinator.signal("INT");
    let ran = coordinator.finish();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let result = parsed(&ran);
    assert_balance(&result);
    assert_eq!(unknown(&result), 0);
    assert_eq!(delivered(&result), sink.stop().requests);
    drop(agents);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_sent() {
    let sink = Sink::start("");
    let url = sink.url();
    let nobody = run(&format!("run {url} --rate 10 -d 1s --fleet nats://127.0.0.1:1"));
    nobody.assert_refused(1, "no NATS broker at nats://127.0.0.1:1");
    for (flags, message) in [
        ("--fleet x --repeat 3", "--fleet and --repeat exclude each other"),
        ("--fleet x --shard 1/3 --seed 1", "--fleet and --shard exclude each other"),
        ("--agents 3", "--agents has no effect without --fleet"),
        ("--start-at command", "waits for a control port"),
        ("--repeat 2 --start-at 2030-01-01T00:00:00Z", "--start-at is of a single run"),
        ("--fleet x --body @/etc/hostname", "is not below the folder of the plan"),
    ] {
        run(&format!("run {url} --rate 10 -d 1s {flags}")).assert_refused(2, message);
    }
    run(&format!("find {url} --slo p99<1s --start-at 2030-01-01T00:00:00Z"))
        .assert_refused(2, "--start-at is of a single run");
    run("fleet up --listen 0.0.0.0:0").assert_refused(2, "anybody in the network could read plans");
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let flags = broker.flags();
    let none = run(&format!("run {url} --rate 10 -d 1s {flags}"));
    none.assert_refused(1, "there is no free agent");
    let none = run(&format!("run {url} --rate 10 -d 1s {flags} --agents a"));
    none.assert_refused(1, "there is no agent a");
    // The key of an agent gives no orders.
    let _agent = broker.agent("b");
    let spoofed = format!("run {url} --rate 10 -d 1s {flags} --agents b").replace("coordinator.key", "a.key");
    let spoofed = run(&spoofed);
    assert_eq!(spoofed.code, Some(1), "{spoofed:?}");
    assert!(spoofed.stderr.contains("the broker has refused something"), "{}", spoofed.stderr);
    let own = format!("agent {} --name a", broker.own_flags("b.key"));
    run(&own).assert_refused(2, "the key is that of agent b");
    let stranger = run(&format!("run {url} --rate 10 -d 1s --fleet {}", broker.url));
    stranger.assert_refused(1, "does not take these credentials");
    // A plan that is wrong for agents is refused by them, once.
    let wrong = run(&format!("run {url} --rate 10 -d 1s -c 1 -t 8 {flags}"));
    assert!(matches!(wrong.code, Some(1 | 2)), "{wrong:?}");
    assert_eq!(sink.stop().requests, 0, "nobody has begun");
}
