//! The configurations of h2loadrunner that the crate `import` is tested with, run as they are against the
//! built-in servers.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[path = "loopback/process.rs"]
#[allow(dead_code, reason = "this test uses some of it")]
mod process;
#[path = "loopback/truth.rs"]
#[allow(dead_code, reason = "this test uses some of it")]
mod truth;

use process::{Finished, Folder, Process};
use truth::{account, assert_balance, delivered, errors};

/// A built-in server on a port of its own.
struct Server {
    process: Process,
    endpoint: String,
}

impl Server {
    fn start(server: &str) -> Self {
        let mut process = Process::plimsoll(&format!("{server} --listen 127.0.0.1:0"));
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

/// The files of the configurations, copied: what a run writes is written beside them.
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
        // Its certificates are of nobody; the body of an update is no configuration.
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
    let (result, _) = good("cookies", "sink", "-n 50");
    assert_eq!(account(&result, "ok"), 100, "two requests an iteration");
    good("load_share", "sink", "-n 50");
    good("two_dimensional", "sink", "-n 50");
    good("user_ids", "sink", "-n 50");
}

#[test]
fn resources_are_created_changed_and_deleted() {
    let (result, _) = good("crud_location", "target crud --drop 0 --fail 0", "-d 1s");
    let steps = steps(&result);
    let counts: Vec<_> = steps.iter().map(|(_, ok)| *ok).collect();
    assert_eq!(counts.len(), 3);
    assert!(counts[0] >= counts[1] && counts[1] >= counts[2], "{steps:?}");
    // A sink creates nothing: it answers 200 and no location, and nothing is changed.
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
    assert_eq!((account(&result, "ok"), errors(&result, "check")), (0, 50), "{}", result["errors"]);
}

/// Nothing in the sink's answers can be picked up: the first step of each iteration fails.
#[test]
fn values_that_are_not_there_are_failures() {
    let (name, flags) = ("value_pickers", "-n 50");
    if cfg!(feature = "xpath") {
        let (result, _) = balanced(name, "sink", flags);
        assert_eq!((account(&result, "ok"), account(&result, "failed")), (0, 50), "{}", result["errors"]);
        return;
    }
    let (folder, server) = (copied(), Server::start("sink"));
    let finished = start(&folder, name, &server.endpoint, flags);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""));
    assert!(finished.stderr.contains("this build has no XPath"), "{}", finished.stderr);
    assert_eq!(server.stop(), 0);
}
