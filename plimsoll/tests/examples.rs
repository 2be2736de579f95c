//! Every plan in `examples/` is right, and runs against the built-in server that its second line names.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_testkit::program::Server;
use plimsoll_testkit::{machine, verdict};
use serde_json::Value;

use crate::loopback::process::{self, Folder, Process};
use crate::loopback::sink::unhurried;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// The names of all examples, in their order.
pub(crate) fn examples() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder of examples");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned)).collect();
    names.sort_unstable();
    assert!(names.len() >= 20, "{names:?}");
    names
}

fn plimsoll(args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(args).envs(environment.iter().copied()).env_remove("SSLKEYLOGFILE");
    command.current_dir(folder()).output().expect("the binary runs")
}

/// Addresses that no example connects to: plans are checked here, not run.
const NOWHERE: [(&str, &str); 3] =
    [("TARGET", "http://127.0.0.1:1"), ("TARGET_2", "127.0.0.1:2"), ("TOKEN", "topsecret")];

/// The text of an example.
fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.yaml"))).expect("the example")
}

/// The URL of a server of an example, whose scheme is that of the default in its text.
fn target(text: &str, address: &str) -> String {
    let (_, default) = text.split_once("env(TARGET, ").unwrap_or_default();
    let scheme = default.split_once("://").map_or("http", |(scheme, _)| scheme);
    format!("{scheme}://{address}")
}

#[test]
fn every_example_is_right() {
    for name in examples() {
        let text = read(&name);
        assert!(text.starts_with("# "), "{name} does not say what it shows");
        assert!(server(&text).is_some(), "{name} does not say which server it is for");
        // Without a word about the environment, an example is right, too, unless it needs a secret.
        let environment = if text.contains("secret(") { &NOWHERE[2..] } else { &[] };
        let target = target(&text, "127.0.0.1:1");
        for environment in [environment, &[("TARGET", &*target), NOWHERE[1], NOWHERE[2]]] {
            let output = plimsoll(&["check", &format!("{name}.yaml")], environment);
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// Symptom: 31 of 45 examples were over in some milliseconds, and the page of such a run had no picture.
#[test]
fn every_example_is_long_enough_for_a_picture() {
    for name in examples() {
        let output = plimsoll(&["explain", &format!("{name}.yaml"), "--output", "json"], &NOWHERE[2..]);
        let explained: Value = serde_json::from_slice(&output.stdout).expect("the explanation");
        let planned = explained["schedule"]["duration_s"].as_f64().unwrap_or(0.0);
        // The data of this one end sooner; that they last, too, its run shows.
        let most = if name == "once-only" { 10.0 } else { 4.0 };
        assert!((2.0..=most).contains(&planned), "{name}: {planned} s");
    }
}

/// Flags that end a closed load after some of its iterations, which are enough for each of its steps: its
/// whole length is for people who look at it.
pub(crate) fn shortened(text: &str) -> &'static [&'static str] {
    let settings = text.lines().skip_while(|line| *line != "run:").skip(1);
    let mut settings = settings.take_while(|line| line.starts_with("  "));
    let is_closed = settings.any(|line| line == "  duration: 2s") && !text.contains("\n  rate: ");
    if is_closed { &["--iterations", "200"] } else { &[] }
}

#[test]
fn every_spec_of_a_cluster_is_right_with_its_plans_and_suites() {
    let names = ["crud-node", "crud-namespaces", "lithair-node", "lithair-cluster"];
    for name in names.iter().chain(&["lithair-bulk", "lithair-bad-create"]) {
        let output = plimsoll(&["cluster", "check", &format!("cluster/{name}.yaml")], &[]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The profiles and suites are those of the project's bench script, as they take effect there.
#[test]
fn the_profiles_and_suites_of_lithair_are_those_of_its_script() {
    let text = std::fs::read_to_string(folder().join("cluster/lithair-node.yaml")).expect("the example");
    for (profile, buffer, events, snapshot) in [
        ("high_throughput", 8_388_608, 10_000, 10_000_000),
        ("balanced", 2_097_152, 2_000, 500_000),
        ("durable_security", 1_048_576, 1_000, 100_000),
    ] {
        let (_, rest) = text.split_once(&format!("  {profile}:\n    environment:\n")).expect("a profile");
        let lines: Vec<&str> = rest.lines().take_while(|line| line.starts_with("      ")).collect();
        for line in [
            format!("      LT_BUFFER_SIZE: {buffer}"),
            format!("      LT_MAX_EVENTS_BUFFER: {events}"),
            format!("      LT_SNAPSHOT_EVERY: {snapshot}"),
        ] {
            assert!(lines.contains(&&*line), "{profile}: {line}: {lines:?}");
        }
    }
    for line in ["LT_EVENT_MAX_BATCH: 65536", "LT_FLUSH_INTERVAL_MS: 5", "LT_FSYNC_ON_APPEND: 0"] {
        assert_eq!(text.matches(line).count(), 1, "{line} is the same for all");
    }
    for suite in ["concurrency_scaling", "heavy_vs_light_reads", "bulk_vs_single", "durability_profiles"] {
        assert!(text.contains(&format!("\n  {suite}:\n")), "{suite}");
    }
    let cluster =
        std::fs::read_to_string(folder().join("cluster/lithair-cluster.yaml")).expect("the example");
    assert!(cluster.contains("\n  - acknowledged\n") && cluster.contains("fault: kill, target: leader"));
}

#[test]
fn no_example_shows_its_secret() {
    let output = plimsoll(&["explain", "secrets.yaml"], &NOWHERE);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("GET /private") && !text.contains("topsecret"), "{text}");
}

/// The arguments of the server that an example is for.
fn server(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("# Server: plimsoll "))
}

/// A plan reads nothing outside of its folder, so that the folder has a copy.
#[test]
fn the_description_of_the_sink_is_that_of_the_sink() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ext/grpc/src/service/sink.proto");
    let text = |path: &Path| std::fs::read_to_string(path).expect("the description");
    assert_eq!(text(&folder().join("sink.proto")), text(&own));
}

#[test]
fn every_example_runs() {
    let names = examples();
    let next = AtomicUsize::new(0);
    // As many as may be run at a time.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(name, &read(name));
                }
            });
        }
    });
}

fn run(name: &str, text: &str) {
    let (server, flags) = (server(text).expect("it says so"), shortened(text));
    let _turn = machine::load();
    let folder = Folder::new();
    let server = match name {
        "tls" => with_certificate(&folder),
        "users-orders-comments" => server.replace("users-orders-comments.data", &folder.file("data")),
        _ => server.to_owned(),
    };
    let (first, one) = start(&server);
    // A second one would be in the folder of the first.
    let (second, two) = start(if server.contains("crud-node") { "sink" } else { &server });
    let target = target(text, &one);
    let environment = [("TARGET", target.as_str()), ("TARGET_2", two.as_str()), ("TOKEN", "topsecret")];
    let plan = format!("{name}.yaml");
    let output = plimsoll(&[&["run", &plan, "--output", "json"], flags].concat(), &environment);
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The machine may be busy, and the run be judged invalid for that.
    assert!(verdict::ran(output.status.code()), "{name}: {:?} {stderr}", output.status.code());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("topsecret"), "{name} stores its secret");
    let result: Value = serde_json::from_str(&text).expect("stdout carries the result");
    if flags.is_empty() {
        assert!(result["duration_s"].as_f64() >= Some(1.9), "{name}: {}", result["duration_s"]);
    }
    check(name, &result);
    drop((first, second));
}

/// Accounts are balanced, and every step had a good response.
pub(crate) fn check(name: &str, result: &Value) {
    let account = |key: &str| result["accounting"][key].as_u64().expect("a number");
    let begun = account("started") + account("dropped") + account("never_started");
    assert_eq!(account("scheduled"), begun, "{name}: {}", result["accounting"]);
    let ended = account("ok") + account("failed") + account("timed_out") + account("in_flight_at_stop");
    assert_eq!(account("started"), ended, "{name}: {}", result["accounting"]);
    assert_eq!(account("failed") + account("timed_out"), 0, "{name}: {}", result["errors"]);
    let steps = result["by_step"].as_array().expect("a list");
    assert!(!steps.is_empty(), "{name}");
    for step in steps {
        assert!(step["ok"].as_u64().is_some_and(|ok| ok > 0), "{name}: {} of {}", step["ok"], step["step"]);
    }
}

fn start(server: &str) -> (Process, String) {
    let command = process::plimsoll(&unhurried(&format!("{server} --listen 127.0.0.1:0")));
    let Server { process, address } = Server::start(command);
    (process, address.trim_start_matches("http://").to_owned())
}

/// A sink with a certificate that signed itself.
fn with_certificate(folder: &Folder) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("the name is valid");
    let certificate = folder.write("certificate.pem", made.cert.pem());
    let key = folder.write("key.pem", made.signing_key.serialize_pem());
    format!("sink --tls-cert {certificate} --tls-key {key}")
}
