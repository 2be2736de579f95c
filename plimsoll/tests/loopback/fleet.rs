//! `agent`, `fleet` and `run --fleet` with a real broker: agents that are killed, a broker that is killed, a
//! coordinator that is killed, and operations without permission.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use plimsoll_core::Nanos;
use plimsoll_system::clock;
use plimsoll_testkit::{machine, skip};
use serde_json::Value;

use crate::loopback::around::{self, Site, TOKEN, refreshed, tokens};
use crate::loopback::own_metrics;
use crate::loopback::process::{Finished, Folder, Process, plimsoll, run_beside};
use crate::loopback::queries::{Scripted, vector};
use crate::loopback::sink::Sink;
use crate::loopback::steering::request;
use plimsoll_testkit::eventually::wait_to_look_again;
use plimsoll_testkit::sink_log::{account, assert_balance, delivered};

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
        let up = run_beside(&format!("fleet up --listen {listen} --agents {names} --folder {place} {flags}"));
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
        self.agent_with(name, "")
    }

    fn agent_with(&self, name: &str, limits: &str) -> Process {
        self.agent_by(name, limits, |args| Process::start(plimsoll(args)))
    }

    /// An agent that `start` starts of its arguments.
    fn agent_by(&self, name: &str, limits: &str, start: impl FnOnce(&str) -> Process) -> Process {
        let flags = self.own_flags(&format!("{name}.key"));
        let runs = self.folder.file(&format!("runs-{name}"));
        let mut agent = start(&format!("agent {flags} --folder {runs} {limits}"));
        agent.stderr.wait_for(&format!("agent {name}: ready"));
        agent
    }

    fn kill(&self) {
        let process = std::fs::read_to_string(self.file("broker.pid")).expect("it has written its number");
        let killed = std::process::Command::new("kill").args(["-9", process.trim()]).status();
        assert!(killed.expect("there is such a program").success());
    }

    fn start_again(&self) {
        let up = run_beside(&format!("fleet up --folder {}", self.file("")));
        assert_eq!(url(&up), self.url, "{up:?}");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // One that was killed has ended already.
        let _ = run_beside(&format!("fleet down --folder {}", self.file("")));
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

/// Every arrival is accounted for; the outcome of some is unknown.
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
    // The second one may use one processor only, and so has less of the load.
    let weak = |args: &str| {
        let words = ["-c", "0", env!("CARGO_BIN_EXE_plimsoll")].into_iter().chain(args.split_whitespace());
        Process::try_start(Command::new("taskset").args(words)).expect("util-linux has it")
    };
    let agents = [broker.agent("a"), broker.agent_by("b", "", weak), broker.agent("c")];
    let text = run_beside(&format!("fleet list {}", broker.own_flags("coordinator.key"))).stdout;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().map(words).collect();
    // Symptom: nothing said what the columns are.
    assert_eq!(lines[0].join(" "), "agent cores per thread version state", "{text}");
    assert!(lines.len() == 4 && lines[1][0] == "a" && lines[1].last().is_some_and(|state| state == "free"));
    let list = run_beside(&format!("fleet list {} -o json", broker.own_flags("coordinator.key")));
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
    let cores: Vec<u64> =
        (0..3).map(|place| list["agents"][place]["cores"].as_u64().expect("cores")).collect();
    let all: u64 = cores.iter().sum();
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
    let ran = run_beside(&args);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let result = parsed(&ran);
    let saw = sink.stop();
    assert_eq!(delivered(&result), saw.requests, "{:#}", result["accounting"]);
    assert_balance(&result);
    assert_eq!((account(&result, "scheduled"), unknown(&result)), (1_200, 0), "{:#}", result["accounting"]);
    for (place, name) in AGENTS.iter().enumerate() {
        let agent = &result["agents"][place];
        assert_eq!((&agent["name"], state(&result, place)), (&Value::from(*name), "finished"));
        let before: u64 = cores[..place].iter().sum();
        let shards = match cores[place] {
            1 => format!("{}/{all}", before + 1),
            held => format!("{}-{}/{all}", before + 1, before + held),
        };
        assert_eq!(agent["shard"], shards);
        // On a busy machine some may never start.
        let started = agent["started"].as_u64().expect("a number");
        let share = 1_200 * cores[place] / all;
        assert!(
            started.abs_diff(share) <= cores[place] || started < share && ran.code == Some(3),
            "{agent:#}"
        );
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
    let shown = run_beside(&format!("show peak -o text --store {store}"));
    assert!(shown.stdout.contains("3 agents") && shown.stdout.contains("limited by"), "{}", shown.stdout);
    drop(agents);
}

/// Asks a control port until the answer is as wanted. The end of the run ends the waiting.
fn ask_until(control: &str, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let answer = request(control, &format!("GET {path}"), "", "").json();
        if is_wanted(&answer) {
            return answer;
        }
        wait_to_look_again();
    }
}

/// The sum of both agents, second by second, while it goes on: at the control port, for monitoring, in the
/// statistics and in the history; and thresholds are judged by it, those of windows and of a phase, too.
#[test]
fn a_fleet_shows_and_judges_the_sum_while_it_goes_on() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let text = "run: {connections: 6, seed: 5}\n\
                phases: [{name: calm, duration: 4s, rate: 200}, {name: busy, duration: 5s, rate: 400}]\n\
                thresholds:\n  - {that: rate>150/s, window: 2s}\n  - {that: ok>600, phase: calm}\n  \
                - {that: rate<390/s, window: 2s}\n";
    let plan = broker
        .folder
        .write("plan.yaml", format!("{text}scenarios: [{{steps: [{{get: '{}'}}]}}]\n", sink.url()));
    let (stats, store) = (broker.folder.file("stats.csv"), broker.folder.file("runs.db"));
    let outputs = format!("--stats {stats} --store {store} --name sum --prometheus 127.0.0.1:0");
    let flags = broker.flags();
    let args = format!("run {plan} {flags} {outputs} --control 127.0.0.1:0 -o json");
    let mut coordinator = Process::start(plimsoll(&args));
    let line = coordinator.stderr.wait_for("control: http://");
    let control = line.trim_start_matches("control: http://").trim_end_matches('/').to_owned();
    let line = coordinator.stderr.wait_for("metrics: http://");
    let metrics = line.trim_start_matches("metrics: http://").trim_end_matches("/metrics").to_owned();
    sink.wait_for_load();
    let stat =
        ask_until(&control, "/stat", |stat| stat["intervals"].as_array().is_some_and(|all| all.len() > 1));
    // An arrival at the very end of a second is in one or the other.
    let second = stat["intervals"][1]["scheduled"].as_u64().expect("a number");
    assert!((150..=250).contains(&second), "{stat:#}");
    let states = ["name", "state"].map(|field| stat["agents"][1][field].clone());
    assert_eq!(states, ["b", "running"], "{stat:#}");
    let so_far = request(&control, "GET /result", "", "").json();
    assert_eq!(so_far["agents"].as_array().map(Vec::len), Some(2), "{so_far:#}");
    assert!(account(&so_far, "started") >= 200, "{so_far:#}");
    let exported = request(&metrics, "GET /metrics", "", "").body().to_owned();
    assert!(exported.contains("plimsoll_requests_total"), "{exported}");
    let ran = coordinator.finish();
    let result = parsed(&ran);
    // A busy machine proves nothing about thresholds.
    assert!(matches!(ran.code, Some(99 | 3)), "{ran:?}");
    assert_balance(&result);
    assert_eq!(account(&result, "scheduled"), 2_800);
    let held: Vec<bool> = result["thresholds"]
        .as_array()
        .expect("thresholds")
        .iter()
        .map(|one| one["passed"] == true)
        .collect();
    // By the shards alone, the first would have failed and the last held.
    assert!(held == [true, true, false] || ran.code == Some(3), "{:#}", result["thresholds"]);
    let calm = result["phases"][0]["started"].as_u64().expect("a number");
    assert!((700..=900).contains(&calm), "{:#}", result["phases"]);
    let rows = std::fs::read_to_string(&stats).expect("it was written");
    let started = |row: &str| row.split(',').nth(5).and_then(|cell| cell.parse::<u64>().ok());
    let sum: u64 = rows.lines().filter(|row| row.contains(",total,")).filter_map(started).sum();
    assert_eq!(sum, account(&result, "started"), "{rows}");
    assert!(run_beside(&format!("show sum -o text --store {store}")).stdout.contains("2 agents"));
    drop(agents);
}

/// Values that agents recorded are merged as if one process had recorded all: while it goes on, interval by
/// interval, and in the end.
#[test]
fn metrics_of_a_plan_are_those_of_all_agents() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let sink = Sink::start("--fail 10%:503");
    let load = serde_json::json!({"rate": 300, "duration": "4s", "connections": 8, "seed": 5});
    let plan = own_metrics::traced_plan(&broker.folder, &sink.url(), &load);
    let file = |name: &str| broker.folder.file(name);
    let (csv, json, stats) = (file("run.csv"), file("run.json"), file("stats.csv"));
    let outputs = format!("--stats {stats} --out csv={csv} --out json={json} --control 127.0.0.1:0");
    let args = format!("run {plan} {} {outputs} --no-preflight", broker.flags());
    let mut coordinator = Process::start(plimsoll(&args));
    let line = coordinator.stderr.wait_for("control: http://");
    let control = line.trim_start_matches("control: http://").trim_end_matches('/').to_owned();
    // More than one of them has by then.
    own_metrics::result_so_far(&control, 200);
    let ran = coordinator.finish();
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let read = |path: &str| std::fs::read_to_string(path).expect("it was written");
    let result: Value = serde_json::from_str(&read(&json)).expect("a result");
    assert_balance(&result);
    assert_eq!((state(&result, 0), state(&result, 1)), ("finished", "finished"));
    let saw = sink.stop();
    own_metrics::assert_metrics_are_those_of(&result, &saw);
    for table in [read(&csv), read(&stats)] {
        for (place, name, figure) in
            [(0, "cart", "count"), (1, "spent", "sum"), (2, "level", "count"), (3, "even", "hits")]
        {
            let all = result["metrics"][place]["all"][figure].as_f64();
            let column = format!("metric_{name}_{figure}");
            assert_eq!(Some(own_metrics::column_sum(&table, &column)), all, "{table}");
        }
    }
    drop(agents);
}

/// Symptom: each shard ended by itself as soon as its own figures broke a threshold of the whole load.
#[test]
fn a_threshold_of_the_sum_ends_the_load_of_all_agents() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let sink = Sink::start("");
    let text = "run: {duration: 5m, connections: 6, rate: 200, seed: 5}\n\
                thresholds:\n  - {that: rate>150/s, window: 1s, abort_on_fail: true}\n  \
                - {that: ok<700, abort_on_fail: true}\n";
    let plan = broker
        .folder
        .write("plan.yaml", format!("{text}scenarios: [{{steps: [{{get: '{}'}}]}}]\n", sink.url()));
    let ran = run_beside(&format!("run {plan} {} -o json", broker.flags()));
    assert!(matches!(ran.code, Some(99 | 3)), "{ran:?}");
    let result = parsed(&ran);
    assert_balance(&result);
    let thresholds = &result["thresholds"];
    assert_eq!(
        (&thresholds[0]["passed"], &thresholds[1]["ended_run"]),
        (&Value::from(true), &Value::from(true))
    );
    let scheduled = account(&result, "scheduled");
    assert!((700..20_000).contains(&scheduled), "{scheduled}");
    assert_eq!(delivered(&result), sink.stop().requests);
    drop(agents);
}

/// Agents would each ask the server, and about their own ends.
#[test]
fn a_fleet_asks_for_its_queries_itself() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let sink = Sink::start("");
    for (values, load, codes, ends) in [
        (&["0", "0.5"][..], "-d 2s", [0, 3], false),
        (&["0", "5"], "-d 2s", [99, 3], false),
        (&["5"], "-d 5m --abort-on-fail", [99, 3], true),
    ] {
        let server = Scripted::saying(&vector(&["0"]), &vector(values));
        let flags = format!("{} {}", server.flags("prom(http_errors)<1"), broker.flags());
        let ran = run_beside(&format!("run {} --rate 200 -c 4 {load} {flags} -o json", sink.url()));
        assert!(ran.code.is_some_and(|code| codes.contains(&code)), "{ran:?}");
        let result = parsed(&ran);
        let threshold = &result["thresholds"][0];
        assert_eq!((&threshold["passed"], &threshold["ended_run"]), (&(codes[0] == 0).into(), &ends.into()));
        assert_eq!(threshold["series"]["value"], values[values.len() - 1], "{threshold:#}");
        assert_eq!(result["run"]["ended_by_threshold"].is_string(), ends, "{:#}", result["run"]);
        assert_eq!(server.asked().len(), 2);
    }
    drop(agents);
}

#[test]
fn an_agent_keeps_to_its_own_limits() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let sink = Sink::start("");
    let port = sink.endpoint.rsplit(':').next().expect("it has a port");
    let _agent = broker.agent_with("a", &format!("--allow 127.0.0.1:{port} --max-rate 100"));
    let flags = broker.flags();
    let other = run_beside(&format!("run http://127.0.0.1:1/ --rate 10 -d 1s --quiet {flags}"));
    other.assert_refused(2, "agent a: it makes load on 127.0.0.1:");
    let fast = run_beside(&format!("run {} --rate 101 -d 1s --quiet {flags}", sink.url()));
    fast.assert_refused(2, "agent a: it makes 100 requests/s at most, and its shard has up to 101/s");
    assert_eq!(
        delivered(&run_beside(&format!("run {} --rate 100 -d 1s -c 2 -o json {flags}", sink.url())).result()),
        { sink.stop().requests }
    );
    run_beside("agent --allow http://x").assert_refused(2, "is not a host");
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
        let coordinator = Process::start(plimsoll(&args));
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

/// Symptom: `SIGTERM` of an agent (systemd, the drain of a node) killed its load: the coordinator heard
/// nothing for ten seconds, and requests that had been sent were in no account.
#[test]
fn an_agent_that_is_told_to_end_tells_what_it_has_sent() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    for on_loss in ["abort", "takeover"] {
        let [_first, leaving, _last] = AGENTS.map(|name| broker.agent(name));
        let mut sink = Sink::telling("");
        let load = "--rate 300 -d 16s -c 6 -t 1 --seed 5 --on-loss";
        let args = format!("run {} {load} {on_loss} {} -o json", sink.url(), broker.flags());
        let coordinator = Process::start(plimsoll(&args));
        sink.wait_for_load();
        sink.wait_for_requests(600);
        leaving.signal("TERM");
        // It ends before the run does, once its result has arrived.
        let leaving = leaving.finish();
        assert_eq!(leaving.code, Some(143), "{leaving:?}");
        assert!(leaving.stderr.contains("stopping its part of run"), "{leaving:?}");
        let ran = coordinator.finish();
        assert_eq!(ran.code, Some(7), "{ran:?}");
        assert!(ran.stderr.contains("agent b was told to end"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("is lost"), "{}", ran.stderr);
        let result = parsed(&ran);
        assert_fleet_balances(&result);
        let (left, reasons) = (&result["agents"][1], &result["verdict"]["invalid_reasons"]);
        assert_eq!((state(&result, 1), unknown(&result)), ("left", 0), "{left:#}");
        assert!(left["started"].as_u64() > Some(0), "{left:#}");
        let is_named = |reason: &Value| reason == "agent_left";
        assert!(reasons.as_array().expect("a list").iter().any(is_named), "{reasons}");
        assert_eq!(sink.stop().requests, delivered(&result), "all that it sent is in the account");
        let scheduled = account(&result, "scheduled");
        if on_loss == "abort" {
            assert!(scheduled < 4_800, "{:#}", result["accounting"]);
        } else {
            assert_eq!(scheduled, 4_800, "{:#}", result["accounting"]);
            let (from, left_out) = (&result["agents"][3]["from_s"], left["left_out"].as_u64());
            assert!(from.as_f64().is_some_and(|from| from % 5.0 == 0.0), "{:#}", result["agents"]);
            assert!(left_out > Some(0) && left_out <= Some(1_000), "{left:#}");
        }
    }
}

/// The shard of an agent that is killed is another's from a multiple of five seconds on: the whole load is
/// scheduled, and only what was due in between is unknown.
#[test]
fn another_agent_takes_over_the_shard_of_one_that_was_killed() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS.iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let load = "--rate 300 -d 32s -c 6 -t 1 --seed 5 --on-loss takeover";
    let args = format!("run {} {load} {} -o json", sink.url(), broker.flags());
    let coordinator = Process::start(plimsoll(&args));
    sink.wait_for_load();
    agents[1].signal("KILL");
    let ran = coordinator.finish();
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.stderr.contains("takes lost shards over from"), "{}", ran.stderr);
    let result = parsed(&ran);
    assert_fleet_balances(&result);
    assert_eq!(account(&result, "scheduled"), 9_600, "{:#}", result["accounting"]);
    let states = [0, 1, 2, 3].map(|agent| state(&result, agent));
    assert_eq!(states, ["finished", "lost", "finished", "finished"], "{}", ran.stderr);
    let (lost, taker) = (&result["agents"][1], &result["agents"][3]);
    let from = taker["from_s"].as_f64().expect("it was taken over");
    assert!(from % 5.0 == 0.0 && (10.0..32.0).contains(&from), "{taker:#}");
    assert_eq!((&taker["shard"], &lost["from_s"]), (&lost["shard"], &Value::Null));
    assert!(unknown(&result) > 0 && unknown(&result) as f64 <= from * 100.0 + 1.0, "{result:#}");
    // A third of the rest; on a busy machine some may never start.
    let rest = (32.0 - from) * 100.0;
    let started = taker["started"].as_f64().expect("a number");
    assert!(started > 0.0 && started <= rest + 1.0, "{started} of {rest}");
    assert!(sink.stop().requests >= delivered(&result));
    for (flags, message) in [
        ("--users 3 -d 1s", "users of a closed load"),
        ("--rate 10 -d 1s --orphan 1s", "agents would stop whenever"),
    ] {
        let refused = run_beside(&format!(
            "run {} {flags} --on-loss takeover {}",
            "http://127.0.0.1:1/",
            broker.flags()
        ));
        refused.assert_refused(2, message);
    }
    drop(agents);
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
    let coordinator = Process::start(plimsoll(&args));
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
    let mut coordinator = Process::start(plimsoll(&args));
    let line = coordinator.stderr.wait_for("fleet: run ");
    let id = line.split(' ').nth(2).expect("it has an id").to_owned();
    sink.wait_for_load();
    coordinator.signal("KILL");
    coordinator.wait();
    for agent in &mut agents {
        agent.stderr.wait_for(": free");
    }
    let collected =
        run_beside(&format!("fleet collect {id} {} -o json", broker.own_flags("coordinator.key")));
    let result = parsed(&collected);
    // Symptom: it was DONE and valid, with exit code 0, though nobody had ended it.
    assert_eq!(collected.code, Some(3), "{:#}", result["verdict"]);
    let reasons = result["verdict"]["invalid_reasons"].as_array().expect("a list");
    assert!(reasons.contains(&"unfinished".into()), "{:#}", result["verdict"]);
    assert_eq!(result["run"]["stopped_by"], "orphaned");
    assert_fleet_balances(&result);
    // The first contact of a process that was cut short is in no figure.
    let saw = sink.stop().requests;
    assert!(
        (delivered(&result)..=delivered(&result) + 3).contains(&saw),
        "{saw}: {:#}",
        result["accounting"]
    );
    assert_eq!(result["agents"].as_array().map(Vec::len), Some(3));
    let other = run_beside(&format!("fleet collect nothing {}", broker.own_flags("coordinator.key")));
    other.assert_refused(2, "no agent has data of run nothing");
}

/// An agent is killed, another takes its shard over, and then the command is killed: what all of them have
/// saved is one result, in which the owners of the shard follow each other.
#[test]
fn shards_that_were_taken_over_can_be_collected() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let mut agents: Vec<Process> = AGENTS.iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let load = "--rate 90 -d 10m -c 6 -t 1 --seed 5 --on-loss takeover --orphan 5s";
    let mut coordinator = Process::start(plimsoll(&format!("run {} {load} {}", sink.url(), broker.flags())));
    let line = coordinator.stderr.wait_for("fleet: run ");
    let id = line.split(' ').nth(2).expect("it has an id").to_owned();
    sink.wait_for_load();
    agents[1].signal("KILL");
    let line = coordinator.stderr.wait_for("takes lost shards over from");
    let instant = line.split(' ').rev().nth(2).and_then(|word| word.parse::<f64>().ok());
    let from = instant.expect("an instant") as u64;
    // Seconds later the taker is sending: a whole second is 90 requests, of which all have been seen.
    sink.wait_for_requests(90 * (from as u32 + 2));
    coordinator.signal("KILL");
    coordinator.wait();
    for agent in [0, 2] {
        agents[agent].stderr.wait_for(": free");
    }
    let collect = format!("fleet collect {id} {} -o json", broker.own_flags("coordinator.key"));
    // The lost agent has not come back: all that it was to make is unknown.
    let without = parsed(&run_beside(&collect));
    assert_fleet_balances(&without);
    let taken = |result: &Value| -> Vec<Value> {
        let agents = result["agents"].as_array().expect("agents");
        agents.iter().filter(|agent| agent["shard"] == "2/3").cloned().collect()
    };
    let owners = taken(&without);
    let [lost, taker] = &*owners else { panic!("{:#}", without["agents"]) };
    assert_eq!((&lost["name"], &lost["state"]), (&Value::from("-"), &Value::from("lost")), "{lost:#}");
    assert_eq!((unknown(&without), &lost["unknown"]), (from * 30, &Value::from(from * 30)), "{lost:#}");
    assert_eq!((&taker["from_s"], &taker["state"]), (&Value::from(from as f64), &Value::from("finished")));
    assert!(taker["started"].as_u64() > Some(0), "{taker:#}");
    // With what it has left, some of that is known.
    let _back = broker.agent("b");
    let collected = run_beside(&collect);
    assert_eq!(collected.code, Some(7), "{collected:?}");
    let result = parsed(&collected);
    assert_fleet_balances(&result);
    let owners = taken(&result);
    let [lost, _] = &*owners else { panic!("{:#}", result["agents"]) };
    assert_eq!((&lost["name"], &lost["state"]), (&Value::from("b"), &Value::from("lost")), "{lost:#}");
    assert!(lost["started"].as_u64() > Some(0) && unknown(&result) < from * 30, "{lost:#}");
    assert_eq!(account(&result, "scheduled"), account(&without, "scheduled"), "{:#}", result["accounting"]);
    let reasons = result["verdict"]["invalid_reasons"].as_array().expect("a list");
    assert!(reasons.iter().any(|reason| reason == "agent_lost"), "{}", result["verdict"]);
    assert!(sink.stop().requests >= delivered(&result));
}

#[test]
fn a_fleet_is_steered_as_one_load() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let flags = broker.flags();
    let load = "--rate 200 -d 30s -c 6 --seed 5 --control 127.0.0.1:0 -o json";
    let mut coordinator = Process::start(plimsoll(&format!("run {} {load} {flags}", sink.url())));
    let line = coordinator.stderr.wait_for("control: http://");
    let control = line.trim_start_matches("control: http://").trim_end_matches('/').to_owned();
    sink.wait_for_load();
    // A busy agent refuses the run of another coordinator.
    let other = run_beside(&format!("run {} --rate 10 -d 1s -c 2 {flags} --agents a --quiet", sink.url()));
    other.assert_refused(1, "agent a: it is busy with run");
    let told = request(&control, "POST /rate", "x-plimsoll-control: 1\r\n", "500").json();
    let at = told["at_s"].as_f64().expect("an instant");
    let ran = coordinator.finish();
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let result = parsed(&ran);
    assert_balance(&result);
    let expected = 200.0 * at + 500.0 * (30.0 - at);
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
    let coordinator = Process::start(plimsoll(&args));
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
    let nobody = run_beside(&format!("run {url} --rate 10 -d 1s --fleet nats://127.0.0.1:1"));
    nobody.assert_refused(1, "no NATS broker at nats://127.0.0.1:1");
    for (flags, message) in [
        ("--fleet x --repeat 3", "--fleet and --repeat exclude each other"),
        ("--fleet x --shard 1/3 --seed 1", "--fleet and --shard exclude each other"),
        ("--agents 3", "--agents has no effect without --fleet"),
        ("--start-at command", "waits for a control port"),
        ("--repeat 2 --start-at 2030-01-01T00:00:00Z", "--start-at is of a single run"),
        ("--fleet x --body @/etc/hostname", "is not below the folder of the plan"),
    ] {
        run_beside(&format!("run {url} --rate 10 -d 1s {flags}")).assert_refused(2, message);
    }
    run_beside(&format!("find {url} --slo p99<1s --start-at 2030-01-01T00:00:00Z"))
        .assert_refused(2, "--start-at is of a single run");
    run_beside("fleet up --listen 0.0.0.0:0").assert_refused(2, "anyone on the network could read plans");
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let flags = broker.flags();
    let none = run_beside(&format!("run {url} --rate 10 -d 1s {flags}"));
    none.assert_refused(1, "there is no free agent");
    let none = run_beside(&format!("run {url} --rate 10 -d 1s {flags} --agents a"));
    none.assert_refused(1, "there is no agent a");
    // The key of an agent does not allow orders.
    let _agent = broker.agent("b");
    let spoofed = format!("run {url} --rate 10 -d 1s {flags} --agents b").replace("coordinator.key", "a.key");
    let spoofed = run_beside(&spoofed);
    assert_eq!(spoofed.code, Some(1), "{spoofed:?}");
    assert!(spoofed.stderr.contains("the broker refused an operation"), "{}", spoofed.stderr);
    let own = format!("agent {} --name a", broker.own_flags("b.key"));
    run_beside(&own).assert_refused(2, "the key is that of agent b");
    let stranger = run_beside(&format!("run {url} --rate 10 -d 1s --fleet {}", broker.url));
    stranger.assert_refused(1, "does not accept these credentials");
    // A plan that is wrong for agents is refused by them, once.
    let wrong = run_beside(&format!("run {url} --rate 10 -d 1s -c 1 -t 8 {flags}"));
    assert!(matches!(wrong.code, Some(1 | 2)), "{wrong:?}");
    assert_eq!(sink.stop().requests, 0, "nobody has begun");
}

/// The coordinator searches; each of its trials is a run of the same agents, which refuse other runs in
/// between.
#[test]
fn a_search_drives_trials_on_agents_that_stay_claimed() {
    let _turn = machine::light_load();
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let flags = broker.flags();
    let search = "--slo p90<20s --from 500 --to 1000 -d 1s --max-time 30s -o json";
    let mut searching = Process::start(plimsoll(&format!("find {} {search} {flags}", sink.url())));
    sink.wait_for_load();
    let other = run_beside(&format!("run {} --rate 10 -d 1s -c 2 {flags} --agents a --quiet", sink.url()));
    other.assert_refused(1, "agent a: it is busy with run");
    // Off a terminal a search says nothing until its end, which other work on the machine puts off.
    let late = clock::monotonic() + Nanos::from_secs(300);
    while !searching.has_ended() && clock::monotonic() < late {
        wait_to_look_again();
    }
    let found = searching.finish();
    let result = parsed(&found);
    // A busy machine may not apply a rate, or not in time; the search says so.
    let end = result["capacity"]["end"].as_str().expect("an end").to_owned();
    let is_cut = matches!(&*end, "generator" | "stopped" | "unclear");
    assert!(found.code == Some(0) && end == "highest" || found.code == Some(3) && is_cut, "{found:?}");
    let trials = result["trials"].as_array().expect("trials");
    assert!(is_cut || trials.len() > 1, "{result:#}");
    for trial in trials.iter().filter(|trial| trial["finding"] == "holds") {
        let (rate, answered) = (trial["rate_per_s"].as_f64(), trial["achieved_per_s"].as_f64());
        let (rate, answered) = (rate.expect("a rate"), answered.expect("a rate"));
        assert!((answered - rate).abs() < rate / 2.0, "the load is that of both: {trial:#}");
    }
    if end == "highest" {
        assert_eq!(result["capacity"]["low_per_s"], 1000.0, "{result:#}");
    }
    // They are free again.
    let ran = run_beside(&format!("run {} --rate 20 -d 1s -c 4 {flags} -o json", sink.url()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    for (args, message) in [
        ("--on-loss continue", "a run without one of its agents"),
        ("--on-loss takeover", "a run without one of its agents"),
        ("--sweep threads=1,2", "--fleet and --sweep threads exclude each other"),
    ] {
        let refused = run_beside(&format!("find {} --slo p90<1s {args} {flags}", sink.url()));
        refused.assert_refused(2, message);
    }
    drop(agents);
}

/// Each level of a sweep is a run of the same agents, which refuse other runs in between.
#[test]
fn the_levels_of_a_sweep_are_runs_of_agents_that_stay_claimed() {
    let _turn = machine::light_load();
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let mut sink = Sink::telling("");
    let flags = broker.flags();
    let sweep = format!("find {} --sweep rate=500,1000 -d 1s -c 4 -t 1 -o json {flags}", sink.url());
    let sweeping = Process::start(plimsoll(&sweep));
    sink.wait_for_load();
    let other = run_beside(&format!("run {} --rate 10 -d 1s -c 2 {flags} --agents a --quiet", sink.url()));
    other.assert_refused(1, "agent a: it is busy with run");
    let swept = sweeping.finish();
    assert_eq!(swept.code, Some(0), "{swept:?}");
    let result = parsed(&swept);
    let levels = result["levels"].as_array().expect("levels");
    let values: Vec<f64> = levels.iter().filter_map(|level| level["value"].as_f64()).collect();
    assert_eq!((result["setting"].as_str(), values), (Some("rate"), vec![500.0, 1_000.0]), "{result:#}");
    for level in levels.iter().filter(|level| level["finding"] != "not_applied") {
        let (rate, answered) = (level["value"].as_f64(), level["achieved_per_s"].as_f64());
        let (rate, answered) = (rate.expect("a rate"), answered.expect("a rate"));
        assert!((answered - rate).abs() < rate / 2.0, "the load is that of both: {level:#}");
    }
    // Connections are those of the whole load, and users of a closed load: both agents have one of two.
    let slow = Sink::start("--delay 5ms");
    let closed =
        run_beside(&format!("find {} --sweep connections=2,4 -d 1s -t 1 -o json {flags}", slow.url()));
    assert_eq!(closed.code, Some(0), "{closed:?}");
    let result = parsed(&closed);
    let levels = result["levels"].as_array().expect("levels");
    assert_eq!(levels.len(), 2, "{result:#}");
    for level in levels {
        let (value, users) = (level["value"].as_f64(), level["in_flight"].as_f64());
        let (value, users) = (value.expect("a number"), users.expect("a number"));
        assert!(users > value / 2.0 && users < value * 1.1, "{level:#}");
    }
    drop(agents);
}

/// The coordinator logs in once for all agents, sends them the tokens that it refreshes, and logs out once.
#[test]
fn the_setup_is_carried_out_once_for_all_agents() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let (site, folder, flags) = (Site::start(), Folder::new(), broker.flags());
    let plan = refreshed(&folder, &site.url, "");
    let text = std::fs::read_to_string(&plan).expect("it was written");
    let longer = text
        .replace("post: /login", "post: /login/long")
        .replace("extract: {token: {json: /token}}", "extract: {token: {json: /token}, more: {json: /more}}");
    let plan = folder.write("longer.yaml", longer);
    let ran = run_beside(&format!("run {plan} --rate 60 -d 4s -c 4 -t 1 -o json {flags}"));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let result = parsed(&ran);
    assert_balance(&result);
    let about = &result["run"];
    let (refresh, logins) = (&about["refresh"], site.count("POST /login"));
    assert_eq!((&about["setup"]["requests"], &about["teardown"]["requests"]), (&1.into(), &1.into()));
    assert!(refresh["times"].as_u64() >= Some(3), "{refresh}");
    assert_eq!((&refresh["failed"], refresh["requests"].as_u64()), (&0.into(), Some(logins as u64 - 1)));
    assert_eq!(account(&result, "failed"), 0, "{:#}", result["accounting"]);
    let used = tokens(&site, "GET /items");
    let (first, last) = (used.iter().min().expect("tokens"), used.iter().max().expect("tokens"));
    assert!(first + 2 <= *last, "the agents had the tokens {first} to {last}");
    assert_eq!(tokens(&site, "DELETE /session"), [logins], "once, with the last token");
    assert!(site.seen().last().is_some_and(|last| last.starts_with("DELETE")), "{:?}", site.seen().last());
    let sent = site.seen().len() as u64;
    assert_eq!(account(&result, "started") + account(&result, "unmeasured"), sent, "{result}");
    // A token is a secret, which nobody keeps.
    let kept = std::process::Command::new("grep").args(["-rl", TOKEN, &broker.folder.file("")]).output();
    assert_eq!(String::from_utf8_lossy(&kept.expect("there is such a program").stdout), "");
    drop(agents);
}

/// Without a setup no agent begins; a search carries it out once for all of its trials.
#[test]
fn a_setup_that_fails_begins_no_load_and_one_is_enough_for_a_search() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let (site, folder, flags) = (Site::start(), Folder::new(), broker.flags());
    let broken = around::plan(&folder, &site.url, "/broken", "/session");
    let ran = run_beside(&format!("run {broken} --rate 60 -d 1s {flags}"));
    assert!(ran.code == Some(1) && ran.stderr.contains("no such user"), "{ran:?}");
    assert_eq!((site.count("GET"), site.count("DELETE")), (0, 0), "{:?}", site.seen());
    let plan = around::plan(&folder, &site.url, "/login", "/session");
    let found = run_beside(&format!("find {plan} --sweep rate=20,40 -d 1s -c 4 -t 1 -o json {flags}"));
    assert!(matches!(found.code, Some(0 | 3)), "{found:?}");
    assert_eq!((site.count("POST /login"), site.count("DELETE /session")), (1, 1), "{:?}", site.seen());
    assert!(site.count("GET /items") >= 60, "{:?}", site.seen());
    assert!(tokens(&site, "GET /items").iter().all(|number| *number == 1));
    drop(agents);
}

#[test]
fn calls_of_a_canister_are_made_by_agents() {
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let agents: Vec<Process> = AGENTS[..2].iter().map(|name| broker.agent(name)).collect();
    let sink = Sink::start("");
    let (url, flags) = (sink.url(), broker.flags());
    let ran = run_beside(&format!("canister {url} -n 1 -r 200 --seed 5 -o json {flags}"));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let result = parsed(&ran);
    assert_balance(&result);
    assert_eq!(account(&result, "scheduled"), 200);
    assert_eq!(result["agents"].as_array().map(Vec::len), Some(2));
    let answered = account(&result, "ok");
    assert!(ran.stderr.contains(&format!("  200: {answered}")), "{}", ran.stderr);
    // The content of replies is recorded on the agents only.
    assert!(!ran.stderr.contains("of replies"), "{}", ran.stderr);
    let refused = run_beside(&format!("canister {url} -n 1 -r 10 --presign 10 {flags}"));
    refused.assert_refused(2, "--fleet and --presign exclude each other");
    drop(agents);
}

/// A command in a time namespace of its own, whose monotonic clock is `ahead` seconds ahead.
fn unshared(ahead: u32, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--time", "--monotonic", &ahead.to_string(), "--"]).args(words);
    command
}

/// The clock that deadlines go by is another one on each machine, and runs from its boot. No instant of one
/// may be taken for that of another.
#[test]
fn agents_with_monotonic_clocks_of_their_own_begin_within_the_stated_bound() {
    if !unshared(1, &["true"]).status().is_ok_and(|status| status.success()) {
        return skip::on_this_machine("time namespaces cannot be made here (not root, or no unshare)");
    }
    let Some(broker) = Broker::start("127.0.0.1:0", "") else { return };
    let ahead = [0, 5_000, 900_000];
    let agent = |(name, ahead): (&&str, u32)| {
        broker.agent_by(name, "", |args| {
            let words: Vec<&str> =
                [env!("CARGO_BIN_EXE_plimsoll")].into_iter().chain(args.split_whitespace()).collect();
            Process::try_start(&mut unshared(ahead, &words)).expect("it was there just now")
        })
    };
    let agents: Vec<Process> = AGENTS.iter().zip(ahead).map(agent).collect();
    let sink = Sink::start("");
    let load = "--rate 300 -d 2s -c 6 --seed 5 -o json";
    let ran = run_beside(&format!("run {} {load} {}", sink.url(), broker.flags()));
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let result = parsed(&ran);
    assert_balance(&result);
    assert_eq!((account(&result, "scheduled"), unknown(&result)), (600, 0), "{:#}", result["accounting"]);
    assert_eq!(delivered(&result), sink.stop().requests);
    // Of the time of day there is one clock for all of them.
    let starts: Vec<(u64, u64)> = AGENTS
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let agent = &result["agents"][place];
            let bound = agent["clock_bound_ns"].as_u64().expect("a bound");
            let off = agent["clock_ahead_ns"].as_i64().expect("an estimate").unsigned_abs();
            assert!(off <= bound, "{agent:#}");
            let store = broker.folder.file(&format!("runs-{name}/history.db"));
            let own = parsed(&run_beside(&format!("show latest -o json --store {store}")));
            (own["run"]["started_at_unix_ns"].as_u64().expect("an instant"), bound)
        })
        .collect();
    for (start, bound) in &starts {
        for (other, beside) in &starts {
            assert!(start.abs_diff(*other) <= bound + beside, "{starts:?}");
        }
    }
    drop(agents);
}

/// A broker that greets its client, if `greets`, and then sends a line without an end.
fn hostile_broker(greets: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client comes");
        let info =
            r#"{"server_id":"x","version":"2.10.0","host":"x","port":1,"max_payload":1048576,"proto":1}"#;
        if greets {
            // The PONG may come before its PING.
            stream.write_all(format!("INFO {info}\r\nPONG\r\n").as_bytes()).expect("it reads");
        }
        let line = vec![b'x'; 1 << 20];
        while stream.write_all(&line).is_ok() {}
    });
    format!("nats://me:S3CRET@127.0.0.1:{port}")
}

/// Symptom: an agent kept all of it, 410 MB after 5 s.
#[test]
fn a_line_of_a_broker_without_an_end_ends_an_agent_and_a_coordinator() {
    let folder = Folder::new();
    for greets in [false, true] {
        let agent = format!("agent --name a --folder {} --nats", folder.file("a"));
        for command in [agent.as_str(), "run http://127.0.0.1:1 -n 1 --fleet"] {
            let ended = run_beside(&format!("{command} {}", hostile_broker(greets)));
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert!(ended.stderr.contains("sends more than a fleet does: "), "{ended:?}");
            assert!(!ended.stderr.contains("S3CRET"), "{ended:?}");
        }
    }
}
