//! The configurations of h2loadrunner that the crate `import` is tested with, run as they are against the
//! built-in servers.

use std::path::Path;
use std::process::Command;

use plimsoll_testkit::machine;
use serde_json::Value;

mod mock;

use crate::loopback::process::{Finished, Folder, Process};
use crate::loopback::sink::unhurried;
use crate::loopback::truth::{account, assert_balance, delivered, errors};
use mock::{Asked, Mock};

/// A built-in server on a port of its own.
struct Server {
    process: Process,
    endpoint: String,
}

impl Server {
    fn start(server: &str) -> Self {
        let mut process = Process::plimsoll(&unhurried(&format!("{server} --listen 127.0.0.1:0")));
        let line = process.stderr.wait_for(": listening on ");
        let endpoint = line.rsplit(' ').next().expect("an address").to_owned();
        Self { process, endpoint }
    }

    /// Stops it: how many requests it got.
    fn stop(self) -> u64 {
        self.process.signal("INT");
        let finished = self.process.finish();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let summary = finished.stderr.lines().last().expect("it says what it did");
        let (figure, _) = summary.split_once(" requests on ").expect(summary);
        let figure = figure.rsplit(' ').next().expect("a figure").replace(',', "");
        figure.parse().unwrap_or_else(|_| panic!("{}", finished.stderr))
    }
}

/// The files of the configurations, copied: outputs of a run are written beside them.
fn copied() -> Folder {
    let folder = Folder::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/h2loadrunner");
    for entry in std::fs::read_dir(from).expect("the folder of configurations") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        folder.write(&name, std::fs::read(&path).expect("a file"));
    }
    folder
}

/// Runs a configuration against a server.
fn start(folder: &Folder, name: &str, endpoint: &str, flags: &str) -> Finished {
    let _turn = machine::load();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["run", "--h2loadrunner", &format!("{name}.json")]);
    command.args(["--connect-to", &format!("::{endpoint}"), "-o", "json"]);
    command.args(flags.split_whitespace()).current_dir(folder.path()).env_remove("SSLKEYLOGFILE");
    Process::try_start(&mut command).expect("the program was built").finish()
}

/// The result of a configuration whose every request is accounted for.
fn balanced(name: &str, server: &str, flags: &str) -> (Value, Folder) {
    let (folder, server) = (copied(), Server::start(server));
    let result = start(&folder, name, &server.endpoint, flags).result();
    assert_balance(&result);
    assert_eq!(server.stop(), delivered(&result), "{name}: {}", result["accounting"]);
    (result, folder)
}

/// The same for one whose every step succeeds, always.
fn good(name: &str, server: &str, flags: &str) -> (Value, Folder) {
    let (result, folder) = balanced(name, server, flags);
    let bad = account(&result, "failed") + account(&result, "timed_out");
    assert_eq!(bad, 0, "{name}: {}", result["errors"]);
    for (step, ok) in steps(&result) {
        assert!(ok > 0, "{name}: nothing of {step}");
    }
    (result, folder)
}

/// Names of steps, and how many of their requests were good.
fn steps(result: &Value) -> Vec<(String, u64)> {
    let steps = result["by_step"].as_array().expect("a list").iter();
    let step = |step: &Value| {
        (step["step"].as_str().expect("a name").to_owned(), step["ok"].as_u64().expect("a number"))
    };
    steps.map(step).collect()
}

#[test]
fn every_configuration_is_run_by_a_test() {
    let mut names: Vec<_> = std::fs::read_dir(copied().path())
        .expect("the folder of configurations")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        // The certificates have no authority, and the body of an update is not a configuration.
        .filter(|name| !matches!(name.as_str(), "mtls" | "update"))
        .collect();
    names.sort_unstable();
    let run = include_str!("h2loadrunner.rs");
    for name in names {
        let quoted = format!("\"{name}\"");
        assert!(run.contains(&quoted), "no test runs {name}");
    }
}

#[test]
fn plain_configurations_succeed() {
    let (result, _) = good("basic_get", "sink", "-d 1s");
    // 50 requests per second of each of two clients.
    assert_eq!(account(&result, "scheduled"), 100);
    // Every field at its default: two requests of 100 per second.
    let (result, _) = good("defaults", "sink", "-d 1s");
    assert_eq!(account(&result, "scheduled"), 100);
    let (result, _) = good("cookies", "sink", "-n 50");
    assert_eq!(account(&result, "ok"), 100, "two requests an iteration");
    good("load_share", "sink", "-n 50");
    good("two_dimensional", "sink", "-n 50");
    good("user_ids", "sink", "-n 50");
}

#[test]
fn resources_are_created_changed_and_deleted() {
    let (result, _) = good("crud_location", "target crud --drop 0 --fail 0", "-d 1s");
    // 4 clients at 10/s, after a warm-up whose resources are changed and deleted, too.
    let counts: Vec<_> = steps(&result).into_iter().map(|(_, ok)| ok).collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (3, 40), "{counts:?}");
    // A sink creates nothing: it answers 200 and no location, so there is nothing that could be changed.
    let (result, _) = balanced("crud_location", "sink", "-d 1s");
    assert_eq!((account(&result, "ok"), account(&result, "timed_out")), (0, 0), "{}", result["errors"]);
    assert!(account(&result, "failed") > 0);
}

#[test]
fn files_are_written_beside_the_configuration() {
    let (result, folder) = good("feed_file", "sink", "-d 1s --control 127.0.0.1:0");
    let rows = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).expect("it was written");
        text.lines().count() as u64
    };
    assert_eq!(rows("requests.csv"), account(&result, "ok") + 1, "a header and a row for each");
    assert!(rows("statistics.csv") >= 3);
    assert_eq!(rows("failed.txt"), 0);
}

/// The file has the rate of every client, as the configuration has.
#[test]
fn a_feed_file_has_requests_of_every_client() {
    let (folder, server) = (copied(), Server::start("sink"));
    folder.write("rate.txt", "20\n");
    let result = start(&folder, "feed_file", &server.endpoint, "-d 1s --control 127.0.0.1:0").result();
    assert_balance(&result);
    let change = &result["rate"]["changes"][0];
    assert_eq!((&change["from_per_s"], &change["to_per_s"]), (&20.0.into(), &80.0.into()), "{change}");
    server.stop();
}

#[test]
fn weights_parallel_requests_and_scripts() {
    let (result, _) = good("mixed_weights", "sink", "-d 1s");
    let of = |name: &str| steps(&result).iter().find(|(step, _)| step == name).map_or(0, |(_, ok)| *ok);
    assert!(of("GET /read") > of("PUT /write"), "{:?}", steps(&result));
    let (result, _) = good("parallel", "sink", "-d 1s");
    let counts: Vec<_> = steps(&result).into_iter().map(|(_, ok)| ok).collect();
    assert_eq!(counts, [3, 3, 3], "9 requests per second, three at once");
    let (result, _) = good("lua", "sink", "-n 50");
    assert_eq!(account(&result, "ok"), 100);
    // The script accepts nothing but 200.
    let (result, _) = balanced("lua", "sink --status 202", "-n 50");
    assert_eq!(errors(&result, "check"), 50, "{}", result["errors"]);
}

/// The sink's answers have no entity tag and none of the members that are asked for.
#[test]
fn responses_that_do_not_match_are_failures() {
    let (result, _) = balanced("response_match", "sink --content-type application/json", "-n 50");
    // Each of the two requests of an iteration fails, and the second is sent all the same.
    assert_eq!((account(&result, "ok"), errors(&result, "check")), (0, 100), "{}", result["errors"]);
}

/// Nothing in the sink's answers can be picked up: the first step of each iteration fails.
#[test]
fn values_that_are_not_there_are_failures() {
    let (result, _) = balanced("value_pickers", "sink", "-n 50");
    assert_eq!((account(&result, "ok"), account(&result, "failed")), (0, 50), "{}", result["errors"]);
}

/// Runs a configuration against a server with the right answers: the result, and the requests that came.
fn mocked(name: &str, patched: u16, flags: &str) -> (Value, Vec<Asked>) {
    let (folder, mock) = (copied(), Mock::start(patched));
    let result = start(&folder, name, &mock.endpoint, flags).result();
    assert_balance(&result);
    let asked = mock.asked();
    assert_eq!(asked.len() as u64, delivered(&result), "{name}: {}", result["accounting"]);
    (result, asked)
}

fn of_method<'a>(asked: &'a [Asked], method: &str) -> Vec<&'a Asked> {
    asked.iter().filter(|asked| asked.method == method).collect()
}

/// The first of the examples that h2loadrunner ships: there are as many requests as 2 clients at 100/s ask
/// for, all of them are good, and scripts have made them.
#[test]
fn subscriptions_with_scripts() {
    let (result, asked) = mocked("subscriptions_with_scripts", 204, "-d 2010ms");
    assert_eq!((account(&result, "ok"), asked.len()), (402, 402), "{}", result["errors"]);
    assert!(asked.iter().all(|asked| asked.header("user-agent").is_empty()), "{:?}", asked[0]);
    let created = of_method(&asked, "POST");
    // Each client has a half of the users.
    let users: Vec<_> = created.iter().filter_map(|asked| asked.path.split('/').nth(3)).collect();
    assert!(users.contains(&"imsi000000000") && users.contains(&"imsi050000000"), "{users:?}");
    let of_second = users.iter().filter(|user| user.starts_with("imsi0500000")).count();
    assert!(of_second.abs_diff(users.len() / 2) <= 2, "{users:?}");
    assert!(created.iter().all(|asked| asked.header("x-made-by") == "a script"));
    let of_user = created.iter().find(|asked| asked.path.contains("imsi050000000")).expect("it is there");
    assert!(of_user.body.contains("/notify/imsi050000000"), "{}", of_user.body);
    for changed in of_method(&asked, "PATCH") {
        assert_eq!(
            (changed.header("x-last-status"), changed.header("x-last-location")),
            ("201", &*changed.path)
        );
    }
    assert_resources_are_deleted(&asked);
}

/// Asserts that every changed resource is deleted, except for the few that the end of the run has cut off.
fn assert_resources_are_deleted(asked: &[Asked]) {
    let deleted = of_method(asked, "DELETE");
    let changed = of_method(asked, "PATCH");
    let is_left = |changed: &&&Asked| deleted.iter().all(|deleted| deleted.path != changed.path);
    let left = changed.iter().filter(is_left).count();
    assert!(changed.len() > 60 && left <= 10, "{left} of {} are left", changed.len());
}

/// The second one. Its PATCH expects 200: with 204 it fails, and the DELETE is sent all the same. (Seen with
/// the program itself: 134 of each.)
#[test]
fn subscriptions_are_deleted_whatever_became_of_their_change() {
    for (patched, failed) in [(200, false), (204, true)] {
        let (result, asked) = mocked("subscribe_update_delete", patched, "-d 2010ms");
        assert_eq!((account(&result, "scheduled"), asked.len()), (402, 402), "{}", result["errors"]);
        let counts = ["POST", "PATCH", "DELETE"].map(|method| of_method(&asked, method).len());
        assert!(counts[0] >= counts[1] && counts[1] >= counts[2] && counts[2] > 120, "{counts:?}");
        let expected = if failed { counts[1] as u64 } else { 0 };
        assert_eq!(account(&result, "failed"), expected, "{}", result["errors"]);
        assert_eq!(account(&result, "ok"), 402 - expected);
        assert_resources_are_deleted(&asked);
        let created = of_method(&asked, "POST");
        assert!(created[0].path.starts_with("/users/imsi00000000001/"), "{}", created[0].path);
        assert!(created[0].body.contains(r#"\"quotes\""#), "{}", created[0].body);
        assert!(created[0].body.len() > 1_400, "{}", created[0].body.len());
    }
}

/// The third one, in as many requests as the program itself made.
#[test]
fn data_are_read_by_users_in_turn() {
    let (result, asked) = mocked("data_get", 204, "-n 12384");
    assert_eq!(account(&result, "ok"), 12_384, "{}", result["errors"]);
    // Requests of 32 streams come in any order.
    let first = "/users/imsi000001/am-data?plmn-id=%7B%22mcc%22:%22262%22%7D";
    assert!(asked[..32].iter().any(|asked| asked.path == first), "{}", asked[0].path);
    assert!(asked.iter().all(|asked| asked.header("user-agent") == "h2loadrunner"));
}

/// The fourth one: the rows of a file decide its columns, a range wins over a column, and a picked value
/// leads to the resource.
#[test]
fn variables_of_all_kinds() {
    let (result, asked) = mocked("variables", 204, "-n 4054");
    assert_eq!(account(&result, "ok"), 12_162, "{}", result["errors"]);
    let path = "/users/00000/devices/0001/supi-1/genuine-suci1";
    let of_first = |method: &str| {
        let found = asked.iter().find(|asked| asked.method == method && asked.path.starts_with(path));
        found.map(|asked| asked.body.as_str())
    };
    assert_eq!(of_first("POST"), Some(r#"{"id": "genuine-suci1"}"#));
    // The value that was taken from the response leads to the resource.
    assert_eq!(of_first("PATCH"), Some(r#"{"id": "fake-suci1"}"#));
    // Behind 41 rows of two values there are some of one value.
    let bodies: Vec<_> = asked.iter().filter(|asked| asked.body.contains("\"suci42\"")).collect();
    assert!(
        bodies.iter().any(|asked| asked.method == "POST")
            && bodies.iter().any(|asked| asked.method == "PATCH")
    );
    let (changed, deleted) = (of_method(&asked, "PATCH"), of_method(&asked, "DELETE"));
    assert_eq!((changed.len(), deleted.len()), (4054, 4054));
    assert_resources_are_deleted(&asked);
}

/// A scenario that joins later changes whose requests they are, and not how many. (Seen: 700 in place of 600,
/// of which 247 in the first second.)
#[test]
fn requests_are_paced_while_a_scenario_waits_for_its_start() {
    let folder = copied();
    let text =
        std::fs::read_to_string(folder.path().join("subscribe_update_delete.json")).expect("it is there");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    let scenarios = value["Scenarios"].as_array_mut().expect("a list");
    let mut late = scenarios[0].clone();
    late["name"] = "late".into();
    late["interval-to-wait-before-start"] = 1000.into();
    late["Requests"].as_array_mut().expect("a list").truncate(1);
    scenarios.push(late);
    folder.write("late.json", value.to_string());
    let mock = Mock::start(200);
    let result = start(&folder, "late", &mock.endpoint, "-d 3s").result();
    assert_balance(&result);
    assert_eq!((account(&result, "scheduled"), mock.asked().len()), (600, 600), "{}", result["accounting"]);
    assert_eq!(result["rate"]["target_per_s"], 200.0);
}
