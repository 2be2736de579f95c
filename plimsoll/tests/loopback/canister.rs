//! `plimsoll canister` against the load sink, plain and as a replica.

use std::collections::BTreeMap;

use plimsoll_testkit::{machine, verdict};
use serde_json::Value;

use crate::loopback::process::{Finished, Folder, Process, plimsoll, run};

/// A key without an owner.
const ED25519: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIPX8G5jnHt5tW0cMqAbaqDg8k37K3d/eROQz7YbXMeL6\n\
    -----END PRIVATE KEY-----\n";

/// Another one.
const P256: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIMWuDN12YI2KcN/RIpgYsoOb0EmSYvogar0zkA4WTgU9oAoGCCqGSM49\n\
    AwEHoUQDQgAEoRBAHCTB3X7MIakjKgl1R0WshbgotiY3M6/SeyLIcqzvDyLqd43O\nO5HS9AZ8U6aNBuh/PfQTr+llaj4tYDPEsQ==\n\
    -----END EC PRIVATE KEY-----\n";

/// A sink with these flags, and its URL.
struct Sink {
    process: Process,
    url: String,
}

impl Sink {
    fn start(flags: &str) -> Self {
        let mut process = Process::start(plimsoll(&format!("sink --listen 127.0.0.1:0 {flags}")));
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

/// Requests by outcome: as the summary of a load has them, and as the sink has them in its log, which it
/// completes at its end.
fn outcomes(summary: &str, sink: Sink, log: &str) -> (impl Fn(u16) -> u64, impl Fn(&str) -> u64) {
    let Sink { mut process, .. } = sink;
    process.signal("INT");
    process.wait();
    let text = std::fs::read_to_string(log).expect("the log");
    let mut actions: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let action = if fields[3] == "status" { fields[4] } else { fields[3] };
        *actions.entry(action.to_owned()).or_default() += 1;
    }
    let codes = codes(summary);
    let all = (codes.values().sum::<u64>(), actions.values().sum::<u64>());
    assert_eq!(all, (1_000, 1_000), "{actions:?} {summary}");
    let told = move |code| codes.get(&code).copied().unwrap_or_default();
    (told, move |action: &str| actions.get(action).copied().unwrap_or_default())
}

fn step<'r>(result: &'r Value, name: &str) -> &'r Value {
    let steps = result["by_step"].as_array().expect("steps");
    steps.iter().find(|step| step["step"] == name).unwrap_or_else(|| panic!("no step {name}"))
}

#[test]
fn queries_of_the_plain_sink_are_counted_with_its_counter() {
    let sink = Sink::start("");
    for flags in ["", "--http2", "--query-nonce --payload-size 2KB", "--random-query-payload -t 2"] {
        let finished = sink.load(&format!("-n 1 -r 400 {flags}"));
        assert!(verdict::ran(finished.code), "{flags}: {}", finished.stderr);
        let result = finished.result();
        assert_eq!(result["accounting"]["ok"], 400, "{flags}");
        assert_eq!(codes(&finished.stderr), BTreeMap::from([(200, 400)]), "{flags}");
        let failures = ["submit failures", "wait failures"].map(|name| told(&finished.stderr, name));
        assert_eq!(failures, [0, 0], "{flags}");
    }
    // Four loads, and before each a question for the status; counters begin at 0, the last query is the
    // highest.
    let finished = sink.load("-n 2 -r 0.5 --no-status-check");
    assert_eq!(told(&finished.stderr, "Max counter value seen"), 1_604, "{}", finished.stderr);
    drop(sink.process);
}

#[test]
fn what_becomes_of_queries_is_told_as_the_sink_has_it() {
    let folder = Folder::new();
    let log = folder.file("truth.csv");
    let flags = "--drop 3% --reset 4% --fail 5%:503 --fail 2%:429 --seed 11";
    let sink = Sink::start(&format!("{flags} --truth-log {log}"));
    let finished = sink.load("-n 2 -r 500 --no-status-check --query-timeout-secs 0.3 --drain 1s");
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    let summary = finished.stderr.clone();
    let (code, of) = outcomes(&summary, sink, &log);
    let told_codes = [200, 503, 429, 11, 44].map(&code);
    let logged = ["replied", "503", "429", "reset", "dropped"].map(of);
    assert_eq!(told_codes, logged, "{summary}");
    assert!(code(11) > 0 && code(44) > 0 && code(503) > 0, "{summary}");
    assert_eq!(told(&summary, "submit failures"), code(11) + code(503) + code(429));
    assert_eq!(told(&summary, "wait failures"), code(44));
}

#[test]
fn what_is_wrong_is_said_before_anything_is_sent() {
    let folder = Folder::new();
    let certificate =
        folder.write("certificate.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
    let key = folder.write("key.pem", ED25519);
    for (args, expected) in [
        ("canister", "no replica is named"),
        ("canister 127.0.0.1:1", "`127.0.0.1:1` is not a URL of a replica"),
        ("canister http://127.0.0.1:1 --canister-id zzz", "--canister-id: `zzz` is not a principal"),
        ("canister http://127.0.0.1:1 -m Counter", "-m, --call: `Counter` is not one of Query"),
        ("canister http://127.0.0.1:1 -p nowhere", "-p, --prometheus: `nowhere` is not an address"),
        ("canister http://127.0.0.1:1 --pport nowhere", "--pport: `nowhere` is not an address"),
        (
            "canister http://127.0.0.1:1 -u --nonce 15-bytes-of-text",
            "--nonce: a nonce has a text of at most 14",
        ),
        ("canister http://127.0.0.1:1 -u --query-nonce", "--query-nonce has no effect"),
        (&format!("canister http://127.0.0.1:1 --summary-file {key}"), "is there already"),
        (&format!("canister http://127.0.0.1:1 --summary-file {}", folder.file("none/a")), "cannot write"),
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

#[test]
fn updates_are_submitted_and_waited_for_at_every_version_of_the_endpoints() {
    let folder = Folder::new();
    let key = folder.write("key.pem", ED25519);
    let sink = Sink::start("--canister --check-signatures --accepted 40% --processing 30ms");
    let mut calls = 0;
    for (flags, waits) in [
        ("--api v2", 60..=60),
        ("--api v3 --pem-file KEY", 5..=55),
        ("--api v4 --pem-file KEY --http2 -t 2", 5..=55),
        ("--api v4 --presign 60 --pem-file KEY", 5..=55),
    ] {
        let flags = flags.replace("KEY", &key);
        let finished = sink.load(&format!("-u --iterations 60 -c 4 --verify 100% --poll-every 5ms {flags}"));
        assert!(verdict::ran(finished.code), "{flags}: {:?} {}", finished.code, finished.stderr);
        let result = finished.result();
        calls += 60;
        assert_eq!(codes(&finished.stderr), BTreeMap::from([(200, 60)]), "{flags}: {}", finished.stderr);
        assert_eq!(told(&finished.stderr, "Max counter value seen"), calls, "{flags}");
        assert_eq!(step(&result, "submit")["ok"], 60, "{flags}");
        let waited = step(&result, "wait")["ok"].as_u64().expect("a count");
        assert!(waits.contains(&waited), "{flags}: {waited}");
        // Each is asked for several times within its 30 ms, and is one request.
        let polls = result["accounting"]["polls"].as_u64().expect("a count");
        assert!(polls >= waited, "{flags}: {polls} for {waited}");
        assert_eq!(result["accounting"]["started"], 60 + waited, "{flags}");
        let finding = &result["reconciliation"]["findings"][0];
        assert_eq!(
            (&finding["check"], &finding["passed"]),
            (&"certificates".into(), &true.into()),
            "{finding}"
        );
        assert!(
            finding["said"].as_str().is_some_and(|said| said.starts_with("60 certificates verified")),
            "{finding}"
        );
    }
}

#[test]
fn failures_of_updates_are_those_that_the_sink_has_in_its_log() {
    let folder = Folder::new();
    let log = folder.file("truth.csv");
    let faults = "--drop 3% --reset 3% --fail 4%:503 --reject 6% --garbage 5% --seed 5";
    let sink = Sink::start(&format!("--canister {faults} --truth-log {log}"));
    // Every call is answered at once, so the log of a call is its outcome.
    let flags = "-u --no-status-check -n 2 -r 500 --query-timeout-secs 0.4 --drain 2s";
    let finished = sink.load(flags);
    assert!(verdict::ran(finished.code), "{:?} {}", finished.code, finished.stderr);
    let summary = finished.stderr.clone();
    let (code, of) = outcomes(&summary, sink, &log);
    let told_codes = [200, 503, 33, 22, 11, 44].map(&code);
    let logged = ["replied", "503", "rejected", "garbage", "reset", "dropped"].map(of);
    assert_eq!(told_codes, logged, "{summary}");
    assert!(logged.iter().all(|count| *count > 0), "{logged:?}");
    assert_eq!(told(&summary, "submit failures"), code(503) + code(11) + code(44));
    assert_eq!(told(&summary, "wait failures"), code(33) + code(22));
}

#[test]
fn what_is_wrong_with_an_answer_to_a_submission_is_no_failure_to_wait() {
    let sink = Sink::start("--canister --garbage 100%");
    for (api, submit, wait) in [("v2", 20, 0), ("v4", 0, 20)] {
        let finished = sink.load(&format!("-u --api {api} --no-status-check --iterations 20 -c 1"));
        let failures = ["submit failures", "wait failures"].map(|name| told(&finished.stderr, name));
        assert_eq!(failures, [submit, wait], "{api}: {}", finished.stderr);
        assert_eq!(codes(&finished.stderr), BTreeMap::from([(22, 20)]), "{api}");
    }
}

#[test]
fn a_p256_key_signs_and_data_are_replies_beside_what_was_on_the_wire() {
    let folder = Folder::new();
    let key = folder.write("p256.pem", P256);
    let sink = Sink::start("--canister --check-signatures");
    let finished = sink.load(&format!("-u --iterations 40 -c 2 --pem-file {key}"));
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    assert_eq!(codes(&finished.stderr), BTreeMap::from([(200, 40)]), "{}", finished.stderr);
    // A counter has four bytes.
    assert!(finished.stderr.contains("Data:      160 B of replies, "), "{}", finished.stderr);
}

#[test]
fn flags_of_the_generator_that_are_called_otherwise_have_a_hint() {
    for (flags, message, hint) in [
        ("--evaluate-max-rps", "unknown flag `--evaluate-max-rps`", "`plimsoll find`"),
        ("--http2-only true", "unknown flag `--http2-only`", "write --http2"),
        ("--canister a.wasm", "--canister: nothing is installed", "--canister-id"),
        ("--install-endpoint a", "--install-endpoint: nothing is installed", "--canister-id"),
        (
            "--pool-max-idle-per-host 9",
            "unknown flag `--pool-max-idle-per-host`",
            "the number of connections is -c",
        ),
        ("--pool-idle-timeout-secs 9", "unknown flag `--pool-idle-timeout-secs`", "--connection-inactivity"),
        ("-m StateSyncA", "-m, --call: `StateSyncA` is not one of", "steps of a plan: --print-plan"),
        ("-m cowsafetya", "-m, --call: `cowsafetya` is not one of", "steps of a plan: --print-plan"),
    ] {
        let refused = run(&format!("canister http://127.0.0.1:1 {flags}"));
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        let (error, told) = refused.stderr.split_once("\nhint: ").expect("a hint");
        assert!(error.contains(message) && told.contains(hint), "{}", refused.stderr);
    }
}

/// Symptom: `--nonce VALUE` was a flag without a value, and its value a URL.
#[test]
fn the_nonces_of_updates_are_those_of_the_generator_and_queries_have_none() {
    let sink = Sink::start("--canister");
    let finished = sink.load("-u --nonce abc --presign 10 --iterations 40 -c 4");
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    // Two messages that are the same would be one call, and count once.
    assert_eq!(told(&finished.stderr, "Max counter value seen"), 40, "{}", finished.stderr);
    let finished = sink.load("--nonce abc --iterations 4 -c 1");
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    assert!(finished.stderr.contains("note: --nonce is about updates"), "{}", finished.stderr);
}

/// Symptom: `-p 9090`, which is a port in the generator, was no address, but printed a plan.
#[test]
fn figures_for_prometheus_are_at_a_port_that_is_named_alone() {
    let sink = Sink::start("");
    for flag in ["-p", "--pport"] {
        let finished = sink.load(&format!("{flag} 0 --iterations 4 -c 1"));
        assert!(verdict::ran(finished.code), "{}", finished.stderr);
        assert!(finished.stderr.contains("http://127.0.0.1:"), "{}", finished.stderr);
    }
}

#[test]
fn a_replica_is_waited_for_with_a_word_also_when_nothing_else_is_said() {
    let quiet = run("canister http://127.0.0.1:1 --quiet --iterations 1 -c 1 --status-timeout 600ms");
    assert_eq!(quiet.code, Some(1), "{}", quiet.stderr);
    assert!(
        quiet.stderr.contains("waiting up to 0.6 s until http://127.0.0.1:1 is healthy"),
        "{}",
        quiet.stderr
    );
}

#[test]
fn calls_whose_outcome_is_not_known_at_the_end_are_told() {
    let sink = Sink::start("--canister --processing 60s");
    let finished = sink.load("-u --api v2 -n 1 -r 100 --drain 300ms");
    let outcomes = codes(&finished.stderr);
    // Whoever waits in vain counts as one that timed out.
    assert_eq!(outcomes, BTreeMap::from([(44, 100)]), "{:?} {}", finished.code, finished.stderr);
    assert_eq!(["submit failures", "wait failures"].map(|name| told(&finished.stderr, name)), [0, 100]);
}

#[test]
fn replicas_share_the_load_evenly() {
    // Each takes its time, so that none of them is ahead of the other.
    let replica = || Sink::start("--canister --delay constant:5ms");
    let replicas = [replica(), replica()];
    let urls = replicas.iter().map(|sink| sink.url.as_str()).collect::<Vec<_>>().join(",");
    // Two connections to each, and each replica counts by itself.
    let finished = run(&format!("canister {urls} -u --iterations 80 -c 4 --verify 50% -o json"));
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    assert_eq!(codes(&finished.stderr), BTreeMap::from([(200, 80)]), "{}", finished.stderr);
    let highest = told(&finished.stderr, "Max counter value seen");
    assert!((20..=60).contains(&highest), "one of them had {highest} of 80");
    let finding = &finished.result()["reconciliation"]["findings"][0];
    assert!(finding["said"].as_str().is_some_and(|said| said.contains("a sample of 50")), "{finding}");
}

#[test]
fn certificates_of_another_root_key_prove_nothing() {
    let sink = Sink::start("--canister");
    // Of the network itself.
    let mainnet = "308182301d060d2b0601040182dc7c0503010201060c2b0601040182dc7c05030201036100814c0e6ec71fab583b08bd81373c255c3c371b2e84863c98a4f1e08b74235d14fb5d9c0cd546d9685f913a0c0b2cc5341583bf4b4392e467db96d65b9bb4cb717112f8472e0d5a4d14505ffd7484b01291091c5f87b98883463f98091a0baaae";
    let finished = sink.load(&format!("-u --iterations 30 -c 2 --verify 100% --root-key {mainnet}"));
    assert_eq!(finished.code, Some(6), "{}", finished.stderr);
    let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let finding = &result["reconciliation"]["findings"][0];
    assert_eq!(finding["passed"], false);
    assert!(finding["said"].as_str().is_some_and(|said| said.contains("30 prove nothing")), "{finding}");
    let evidence = finding["evidence"].as_array().expect("there is some");
    assert_eq!(evidence.len(), 6, "five, and how many more: {evidence:?}");
    assert!(
        evidence[0].as_str().is_some_and(|text| text.contains("is not signed by the root key")),
        "{evidence:?}"
    );
    let damaged = sink.load("-u -n 1 --verify 1% --root-key /nonexistent");
    assert_eq!(damaged.code, Some(2), "{}", damaged.stderr);
    assert!(damaged.stderr.contains("--root-key: cannot read"), "{}", damaged.stderr);
}

#[test]
fn a_replica_that_is_not_healthy_yet_is_waited_for_and_one_that_never_is_is_told() {
    // The second begins with the server.
    let _turn = machine::load();
    let sink = Sink::start("--canister --unhealthy-for 1s");
    let finished = run(&format!("canister {} --iterations 5 -c 1 --status-timeout 100ms", sink.url));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("reports its health"), "{}", finished.stderr);
    let finished = sink.load("--iterations 5 -c 1");
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    assert!(finished.stderr.contains("waiting up to 60 s until"), "{}", finished.stderr);
    assert_eq!(finished.result()["accounting"]["ok"], 5);
}

#[test]
fn an_unknown_canister_is_rejected_and_charts_are_drawn_where_they_are_wanted() {
    let sink = Sink::start("--canister --canister-id rrkah-fqaaa-aaaaa-aaaaq-cai");
    let args = "--iterations 40 -c 2 --chart-size small";
    let finished = sink.load(args);
    assert_eq!(codes(&finished.stderr), BTreeMap::from([(33, 40)]), "{}", finished.stderr);
    let result = finished.result();
    assert_eq!(result["errors"]["rejected"], 40, "{}", result["errors"]);
    let example = result["error_examples"]["rejected"].as_str().expect("one");
    assert!(example.contains("rejected with code 3 (IC0301): Canister "), "{example}");
    let finished = sink.load(&format!("{args} --canister-id rrkah-fqaaa-aaaaa-aaaaq-cai"));
    assert_eq!(codes(&finished.stderr), BTreeMap::from([(200, 40)]), "{}", finished.stderr);
    assert!(finished.stderr.contains("Histogram") && finished.stderr.contains('#'), "{}", finished.stderr);
    // The default of the generator, in its spelling.
    let args = "--iterations 4 -c 1 --canister-id rrkah-fqaaa-aaaaa-aaaaq-cai --chart-size None";
    let finished = sink.load(args);
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    assert!(!finished.stderr.contains("Histogram"), "{}", finished.stderr);
}

/// Symptom: the summary took the place of another file, as text; the generator writes JSON to a new one.
#[test]
fn the_summary_is_the_json_of_the_generator_in_a_new_file() {
    let folder = Folder::new();
    let sink = Sink::start("--canister --accepted 50% --processing 20ms");
    for (name, flags, steps) in [("query", "", &["query"][..]), ("update", "-u", &["submit", "wait"])] {
        let file = folder.file(name);
        let finished =
            sink.load(&format!("{flags} --iterations 40 -c 2 --poll-every 5ms --summary-file {file}"));
        assert!(verdict::ran(finished.code), "{}", finished.stderr);
        let text = std::fs::read_to_string(&file).expect("the summary");
        let entries: Vec<Value> = serde_json::from_str(&text).expect("it is JSON");
        let named: Vec<_> = entries.iter().map(|entry| entry["step"].as_str().expect("a name")).collect();
        assert_eq!(named, steps, "{text}");
        let first = &entries[0];
        assert_eq!((&first["count"], &first["status_counts"]["200"]), (&40.into(), &40.into()), "{text}");
        assert_eq!(first["content_length"], 160, "{text}");
        assert_eq!(first["percentiles"].as_array().map(Vec::len), Some(100), "{text}");
        assert_eq!(first["latency_histogram"].as_array().map(Vec::len), Some(100), "{text}");
        for time in ["average", "median", "max", "min", "stddev"] {
            assert!(first[time]["nanos"].is_u64() && first[time]["secs"] == 0, "{time}: {text}");
        }
        let again = sink.load(&format!("{flags} --iterations 4 -c 1 --summary-file {file}"));
        again.assert_refused(1, "is there already");
        assert_eq!(std::fs::read_to_string(&file).expect("the summary"), text);
    }
}

/// Symptom: the summary said 23,082/s and the report 21,376/s, since one of them counted answers that came
/// after the end of the load.
#[test]
fn the_summary_and_the_report_achieve_the_same() {
    let sink = Sink::start("--canister --delay constant:100ms");
    let finished = sink.load("-n 1 -r 200 --no-status-check");
    let result = finished.result();
    let achieved = result["rate"]["achieved_per_s"].as_f64().expect("a rate");
    assert!(achieved < 199.0, "some answers come after the end: {achieved}");
    let (_, told) = finished.stderr.split_once("achieved: ").expect("a summary");
    let told: f64 = told.split([',', ' ']).next().and_then(|rate| rate.parse().ok()).expect("a rate");
    assert!((told - achieved).abs() < 0.01, "{told} in the summary, {achieved} in the report");
}
