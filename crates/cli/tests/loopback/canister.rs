//! `plimsoll canister` against the load sink, plain and as a replica.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::process::{Finished, Folder, Process, run};

/// A sink with these flags, and its URL.
struct Sink {
    process: Process,
    url: String,
}

impl Sink {
    fn start(flags: &str) -> Self {
        let process = Process::plimsoll(&format!("sink --listen 127.0.0.1:0 {flags}"));
        let line = process.stderr.wait_for(": listening on ");
        let address = line.rsplit(' ').next().expect("an address").trim_start_matches("http://").to_owned();
        Self { process, url: format!("http://{address}") }
    }

    /// Runs a load with JSON as its output; the summary is on stderr then.
    fn load(&self, args: &str) -> Finished {
        run(&format!("canister {} -o json {args}", self.url))
    }
}

/// The codes of a summary with their counts.
fn codes(summary: &str) -> BTreeMap<u16, u64> {
    let lines = summary.lines().skip_while(|line| *line != "Status codes:").skip(1);
    let code = |line: &str| {
        let (code, rest) = line.trim().split_once(": ")?;
        Some((code.parse().ok()?, rest.split(' ').next()?.parse().ok()?))
    };
    lines.map_while(code).collect()
}

/// A figure of the first line of a summary.
fn told(summary: &str, name: &str) -> u64 {
    let at = summary.find(name).unwrap_or_else(|| panic!("no {name} in {summary}"));
    let rest = &summary[at + name.len()..];
    rest.trim_start_matches([':', ' '])
        .split([' ', ',', '\n'])
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number")
}

fn step<'r>(result: &'r Value, name: &str) -> &'r Value {
    let steps = result["by_step"].as_array().expect("steps");
    steps.iter().find(|step| step["step"] == name).unwrap_or_else(|| panic!("no step {name}"))
}

#[test]
fn queries_of_the_plain_sink_are_counted_with_its_counter() {
    let sink = Sink::start("");
    for flags in ["", "--http2", "--nonce --payload-size 2KB", "--random-query-payload -t 2"] {
        let finished = sink.load(&format!("-n 1 -r 400 {flags}"));
        assert!(matches!(finished.code, Some(0 | 3)), "{flags}: {}", finished.stderr);
        let result = finished.result();
        assert_eq!(result["accounting"]["ok"], 400, "{flags}");
        assert_eq!(codes(&finished.stderr), BTreeMap::from([(200, 400)]), "{flags}");
        let failures = ["submit failures", "wait failures"].map(|name| told(&finished.stderr, name));
        assert_eq!(failures, [0, 0], "{flags}");
    }
    // Four loads, and before each a question for the status; counters begin at 0, and the last query has the highest.
    let finished = sink.load("-n 1 -r 0.5 --no-status-check");
    assert_eq!(told(&finished.stderr, "Max counter value seen"), 1_604, "{}", finished.stderr);
    drop(sink.process);
}

#[test]
fn what_becomes_of_queries_is_told_as_the_sink_has_it() {
    let folder = Folder::new();
    let log = folder.file("truth.csv");
    let flags = "--drop 3% --reset 4% --fail 5%:503 --fail 2%:429 --seed 11";
    let sink = Sink::start(&format!("{flags} --truth {log}"));
    let finished = sink.load("-n 2 -r 500 --no-status-check --query-timeout-secs 0.3 --drain 1s");
    assert!(matches!(finished.code, Some(0 | 3)), "{}", finished.stderr);
    let summary = finished.stderr.clone();
    let Sink { mut process, .. } = sink;
    process.signal("INT");
    process.wait();
    let truth = std::fs::read_to_string(&log).expect("the log");
    let mut actions: BTreeMap<String, u64> = BTreeMap::new();
    for line in truth.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let action = if fields[3] == "status" { fields[4] } else { fields[3] };
        *actions.entry(action.to_owned()).or_default() += 1;
    }
    let of = |action: &str| actions.get(action).copied().unwrap_or_default();
    let codes = codes(&summary);
    let code = |code: u16| codes.get(&code).copied().unwrap_or_default();
    assert_eq!(codes.values().sum::<u64>(), 1_000, "{summary}");
    assert_eq!(
        (code(200), code(503), code(429)),
        (of("replied"), of("503"), of("429")),
        "{actions:?} {summary}"
    );
    assert_eq!((code(11), code(44)), (of("reset"), of("dropped")), "{actions:?} {summary}");
    assert!(code(11) > 0 && code(44) > 0 && code(503) > 0, "{summary}");
    assert_eq!(told(&summary, "submit failures"), code(11) + code(503) + code(429));
    assert_eq!(told(&summary, "wait failures"), code(44));
}

#[test]
fn what_is_wrong_is_said_before_anything_is_sent() {
    let folder = Folder::new();
    let certificate =
        folder.write("certificate.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
    let ed25519 = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIPX8G5jnHt5tW0cMqAbaqDg8k37K3d/eROQz7YbXMeL6\n-----END PRIVATE KEY-----\n";
    let key = folder.write("key.pem", ed25519);
    for (args, expected) in [
        ("canister", "it is not said which replica is asked"),
        ("canister 127.0.0.1:1", "`127.0.0.1:1` is no URL of a replica"),
        ("canister http://127.0.0.1:1 --canister-id zzz", "--canister-id: `zzz` is no principal"),
        ("canister http://127.0.0.1:1 -m Counter", "invalid value 'Counter'"),
        ("canister http://127.0.0.1:1 -m QueryCounter --call-method read", "--call-method has no effect"),
        ("canister http://127.0.0.1:1 --payload 12x", "`12x` is not hexadecimal"),
        ("canister http://127.0.0.1:1 --payload-size 9MB", "an argument is at most 2 MiB"),
        ("canister http://127.0.0.1:1 --expiry 1h", "messages are valid for 10s to 5m"),
        ("canister http://127.0.0.1:1 -n 0", "-n 0: there is no such time"),
        (
            "canister http://127.0.0.1:1 --verify 1%",
            "--verify has no effect: answers to queries have no certificate",
        ),
        ("canister http://127.0.0.1:1 --verify 200% -u", "write a share above 0"),
        ("canister http://127.0.0.1:1 --status-timeout 1ms", "no answer from http://127.0.0.1:1"),
        (&format!("canister http://127.0.0.1:1 --pem-file {certificate}"), "certificate"),
        (&format!("canister http://127.0.0.1:1 --pem-file {}", folder.file("none.pem")), "cannot read"),
        (&format!("canister http://127.0.0.1:1 --pem-file {key} --principal-id aaaaa-aa"), "is of"),
    ] {
        let finished = run(args);
        assert!(matches!(finished.code, Some(1 | 2)), "{args}: {:?} {}", finished.code, finished.stderr);
        assert!(finished.stderr.contains(expected), "{args}: {}", finished.stderr);
        assert!(finished.stdout.is_empty(), "{args}: {}", finished.stdout);
    }
}
