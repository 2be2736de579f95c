//! The configurations of h2loadrunner that the crate `import` is tested with, run as they are against the
//! built-in servers.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use plimsoll_testkit::machine;
use serde_json::{Value, json};

mod mock;

use crate::loopback::process::{Finished, Folder, Process, plimsoll};
use crate::loopback::sink::unhurried;
use mock::{Asked, Mock};
use plimsoll_testkit::sink_log::{account, assert_balance, delivered, errors};

/// A built-in server on a port of its own.
struct Server {
    process: Process,
    endpoint: String,
}

impl Server {
    fn start(server: &str) -> Self {
        let mut process = Process::start(plimsoll(&unhurried(&format!("{server} --listen 127.0.0.1:0"))));
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
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/import/tests/h2loadrunner");
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

/// The result of a configuration whose every request is accounted for, and whose every step always succeeds.
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
    // 4 clients at 10/s, after a warm-up whose resources are changed and deleted, too. The fourth comes
    // 250 ms after its end.
    let counts: Vec<_> = steps(&result).into_iter().map(|(_, ok)| ok).collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (3, 37), "{counts:?}");
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

/// A name that ends in .tsv gives the log of the program: microseconds since 1970, the status and
/// microseconds, with tabs.
#[test]
fn a_log_may_have_the_lines_of_the_program() {
    let folder = copied();
    changed(&folder, "data_get", |value| value["log-file"] = "requests.tsv".into());
    let (_, asked) = mocked_in(&folder, "changed", 204, "-n 20");
    let text = std::fs::read_to_string(folder.path().join("requests.tsv")).expect("it was written");
    let rows: Vec<Vec<u64>> = text
        .lines()
        .map(|line| line.split('\t').map(|value| value.parse().expect("a number")).collect())
        .collect();
    assert_eq!(rows.len(), asked.len());
    for row in rows {
        // This century, and less than the timeout.
        let [sent, 200, time] = row[..] else { panic!("{text}") };
        assert!(sent > 1_600_000_000_000_000 && time < 5_000_000, "{text}");
    }
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
    mocked_in(&copied(), name, patched, flags)
}

/// [`mocked`] for a configuration in this folder.
fn mocked_in(folder: &Folder, name: &str, patched: u16, flags: &str) -> (Value, Vec<Asked>) {
    let mock = Mock::start(patched);
    let result = start(folder, name, &mock.endpoint, flags).result();
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
        // The first request of either client may come first.
        let users: Vec<_> = created[..2].iter().map(|asked| asked.path.as_str()).collect();
        assert!(users.contains(&"/users/imsi00000000001/subscriptions"), "{users:?}");
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

/// A configuration of these copied ones, changed and written under another name.
fn changed(folder: &Folder, name: &str, change: impl FnOnce(&mut Value)) {
    let text = std::fs::read_to_string(folder.path().join(format!("{name}.json"))).expect("it is there");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut value);
    folder.write("changed.json", value.to_string());
}

/// A request as a user sends it: method, path, cookie, a header and the body.
type Sent = (String, String, String, String, String);

fn sent(asked: &Asked) -> Sent {
    let header = |name| asked.header(name).to_owned();
    (asked.method.clone(), asked.path.clone(), header("cookie"), header("x-id"), asked.body.clone())
}

/// Every request of every user, as the program sends it: the column of the k-th request is k modulo the
/// values of the row, a range wins over a column, and cookies are those of the user until they are
/// cleared.
#[test]
fn contents_are_those_of_the_program_request_by_request() {
    const USERS: usize = 60;
    let folder = copied();
    changed(&folder, "variables", |value| {
        let request = |uri: (&str, &str), method: &str, payload: &str| {
            json!({
                "uri": {"typeOfAction": uri.0, "input": uri.1}, "method": method, "payload": payload,
                "additonalHeaders": ["x-id: ${suci}"]
            })
        };
        let mut last = request(("sameWithLastOne", ""), "DELETE", "");
        last["clear-old-cookies"] = true.into();
        value["Scenarios"][0]["Requests"] = json!([
            request(("input", "/users/${imsi}/${imei}"), "POST", "${supi} ${suci}"),
            request(("fromResponseHeader", "location"), "PATCH", "${suci} x-ID"),
            request(("sameWithLastOne", ""), "PUT", "${suci}"),
            last,
        ]);
    });
    let rows = |name: &str| -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(folder.path().join(name)).expect("it is there");
        let row = |line: &str| line.split(',').map(str::to_owned).collect();
        text.lines().skip(1).map(row).collect()
    };
    let (ids, supis) = (rows("id.csv"), rows("var.csv"));
    let (result, asked) = mocked_in(&folder, "changed", 204, &format!("-n {USERS}"));
    assert_eq!(account(&result, "ok"), 4 * USERS as u64, "{}", result["errors"]);
    for user in 0..USERS {
        let path = format!("/users/{user:05}/{:04}", 1 + user);
        let of_user: Vec<_> = asked.iter().filter(|asked| asked.path.starts_with(&path)).map(sent).collect();
        let number = of_user[1].1.rsplit('/').next().expect("a number");
        let (resource, cookie) = (format!("{path}/{number}"), format!("session={number}"));
        let (row, supi) = (&ids[user % ids.len()], &supis[user % supis.len()][1]);
        let id = |request: usize| row[request % row.len()].clone();
        let (post, patch) = (format!("{supi} {}", id(0)), format!("{} x{}", id(1), id(1)));
        let step = |method: &str, path: &str, cookie: &str, request: usize, body: &str| -> Sent {
            (method.to_owned(), path.to_owned(), cookie.to_owned(), id(request), body.to_owned())
        };
        let expected = [
            step("POST", &path, "", 0, &post),
            step("PATCH", &resource, &cookie, 1, &patch),
            step("PUT", &resource, &cookie, 2, &id(2)),
            step("DELETE", &resource, "", 3, ""),
        ];
        assert_eq!(of_user, expected, "user {user}");
    }
}

/// Each of three clients goes through its own part of ten ids, again and again. (Seen: all ten in turn,
/// so that parts of different lengths went to other clients from the second round on.)
#[test]
fn clients_keep_their_parts_of_the_ids() {
    let folder = copied();
    changed(&folder, "data_get", |value| {
        (value["clients"], value["request-per-second"]) = (3.into(), 24.into());
        let scenario = &mut value["Scenarios"][0];
        (scenario["user-id-range-start"], scenario["user-id-range-end"]) = (0.into(), 10.into());
        scenario["user-id-range-slicing"] = true.into();
        scenario["Requests"][0]["uri"]["input"] = "/users/-USER_ID".into();
    });
    let (_, asked) = mocked_in(&folder, "changed", 204, "-d 1s");
    let mut paths: Vec<_> = asked.into_iter().map(|asked| asked.path).collect();
    paths.sort_unstable();
    let parts = [0..4, 4..7, 7..10];
    let of_part = |part: Range<u32>| part.cycle().take(24);
    let mut expected: Vec<_> =
        parts.into_iter().flat_map(of_part).map(|id| format!("/users/{id:02}")).collect();
    expected.sort_unstable();
    assert_eq!(paths, expected);
}

/// Nothing of an expression that matches no status is good, and everything is sent. (Seen: an error.)
#[test]
fn a_status_that_matches_nothing_fails_every_request() {
    let folder = copied();
    changed(&folder, "data_get", |value| {
        let rule = json!({"header-name": ":status", "matchType": "RegexMatch", "input": "2"});
        value["Scenarios"][0]["Requests"][0]["response-match"]["headers"] = json!([rule]);
    });
    let (result, asked) = mocked_in(&folder, "changed", 204, "-n 20");
    assert_eq!((account(&result, "ok"), errors(&result, "check"), asked.len()), (0, 20, 20));
}

/// The examples that the program ships, in our words: every key at its value, and nothing to be told.
#[test]
fn every_shipped_example_is_taken_over_without_a_note() {
    let folder = copied();
    for name in ["subscriptions_with_scripts", "subscribe_update_delete", "data_get", "variables"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["import", "h2loadrunner", "--strict", &format!("{name}.json")]);
        command.current_dir(folder.path());
        let finished = Process::try_start(&mut command).expect("the program was built").finish();
        assert_eq!((finished.code, &*finished.stderr), (Some(0), ""), "{name}");
    }
}

/// Reports tell the bytes that compression saved, and the requests per second of each client.
#[test]
fn traffic_and_rates_of_clients_are_in_the_result() {
    let (result, asked) = mocked("subscriptions_with_scripts", 204, "-d 1s");
    let traffic = &result["http2"]["traffic"];
    let bytes = |key: &str| traffic[key].as_u64().unwrap_or_else(|| panic!("{traffic}"));
    // The answer to a POST has a body of 18 bytes, the others have none.
    assert_eq!(bytes("content_received_bytes"), 18 * of_method(&asked, "POST").len() as u64);
    assert!(bytes("heads_received_bytes") < bytes("fields_received_bytes"), "{traffic}");
    let saved = traffic["heads_saved_share"].as_f64().expect("a share");
    assert!(saved > 0.0 && saved < 1.0, "{traffic}");
    assert!(bytes("heads_sent_bytes") > 0, "{traffic}");
    let rates = &result["connections"]["requests_per_s"];
    let rate = |key: &str| rates[key].as_f64().unwrap_or_else(|| panic!("{rates}"));
    assert_eq!(rates["connections"], 2);
    assert!(rate("min") <= rate("mean") && rate("mean") <= rate("max") && rate("max") < 110.0, "{rates}");
    assert!(rate("min") > 50.0, "{rates}");
}

/// A scenario that joins later changes whose requests they are, and not how many. (Seen: 700 in place of 600,
/// of which 247 in the first second.)
#[test]
fn requests_are_paced_while_a_scenario_waits_for_its_start() {
    let folder = copied();
    changed(&folder, "subscribe_update_delete", |value| {
        let scenarios = value["Scenarios"].as_array_mut().expect("a list");
        let mut late = scenarios[0].clone();
        late["name"] = "late".into();
        late["interval-to-wait-before-start"] = 1000.into();
        late["Requests"].as_array_mut().expect("a list").truncate(1);
        scenarios.push(late);
    });
    let (result, asked) = mocked_in(&folder, "changed", 200, "-d 3s");
    assert_eq!((account(&result, "scheduled"), asked.len()), (600, 600), "{}", result["accounting"]);
    assert_eq!(result["rate"]["target_per_s"], 200.0);
}
