//! `plimsoll ingest demo` against the store: the story is there, the questions are answered, and problems are
//! reported.

use serde_json::{Value, json};

use crate::loopback::ingest_target::IngestTarget;
use crate::loopback::process::{Finished, run};

/// Begin of the campaign, 2024-10-30T10:00:00Z.
const CAMPAIGN: u64 = 1_730_282_400_000;

fn demo(target: &IngestTarget, args: &str) -> Finished {
    run(&format!("ingest demo {args} --url http://{}", target.address))
}

fn told(finished: &Finished, code: i32) -> Value {
    assert_eq!(finished.code, Some(code), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

/// The rows of an answer.
fn rows<'a>(told: &'a Value, question: &str) -> &'a Vec<Value> {
    let questions = told["questions"].as_array().expect("questions");
    let found = questions.iter().find(|of| of["name"] == question);
    found.and_then(|of| of["rows"].as_array()).unwrap_or_else(|| panic!("{question} in {told:#}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Kind, sent and found.
fn counts(told: &Value) -> Vec<(&str, u64, u64)> {
    let count = |of: &Value, name: &str| of[name].as_u64().expect("a count");
    let records = told["records"].as_array().expect("records").iter();
    records.map(|of| (of["kind"].as_str().expect("a kind"), count(of, "sent"), count(of, "found"))).collect()
}

#[test]
fn the_answers_tell_the_story() {
    let target = IngestTarget::start("--token secret");
    let told = told(&demo(&target, &format!("--token secret -o json --campaign-time {CAMPAIGN}")), 0);
    let all = [("events", 4, 4), ("metrics", 1_800, 1_800), ("logs", 5_000, 5_000), ("traces", 3_000, 3_000)];
    assert_eq!(counts(&told), all);
    assert_eq!((&told["campaign_ms"], &told["seed"]), (&json!(CAMPAIGN), &json!(1)));
    assert_eq!(told["campaign_time"], "2024-10-30T10:00:00.000Z");

    let [spike] = &rows(&told, "spikes")[..] else { panic!("one event came before the spikes: {told:#}") };
    assert_eq!(spike[1], "marketing_campaign_started");
    // Of 5 hosts at 11 instants, of which three quarters lie above 80.
    assert!((25.0..=55.0).contains(&number(&spike[2])), "{spike}");
    assert!((80.0..=95.0).contains(&number(&spike[3])), "{spike}");

    // A tenth of the 1,667 lines of the campaign: four standard deviations are 49.
    let errors = number(&rows(&told, "errors")[0][0]);
    assert!((117.0..=216.0).contains(&errors), "{errors}");
    let latest = rows(&told, "latest_errors");
    assert_eq!(latest.len(), 10);
    let times: Vec<&str> = latest.iter().map(|row| row[0].as_str().expect("a time")).collect();
    assert!(times.is_sorted_by(|later, earlier| later > earlier), "{times:?}");
    assert!(times.iter().all(|time| time.starts_with("2024-10-30T10:2")), "{times:?}");
    assert!(latest.iter().all(|row| row[1] == "ERROR"), "{latest:?}");

    let latency = rows(&told, "latency");
    let phases: Vec<_> = latency.iter().map(|row| (row[0].as_str(), row[1].as_u64())).collect();
    let expected = [("before_campaign", 334), ("during_campaign", 333), ("after_campaign", 333)];
    assert_eq!(phases, expected.map(|(phase, count)| (Some(phase), Some(count))));
    for figure in [2, 3] {
        let [before, during, after] = [0, 1, 2].map(|row: usize| number(&latency[row][figure]));
        assert!(during > 3.0 * before && after > before && during > 3.0 * after, "{latency:?}");
    }
}

#[test]
fn people_read_tables() {
    let target = IngestTarget::start("");
    let told = demo(&target, &format!("--campaign-time {CAMPAIGN} --seed 7"));
    let note = "note: each kind has a database of its own: demo_events, demo_metrics, demo_logs, demo_traces";
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stderr.starts_with(note) && told.stderr.lines().count() == 1, "{told:?}");
    insta::assert_snapshot!("ingest_demo", told.stdout.replace(&target.address, "127.0.0.1:8000"));
}

#[test]
fn the_same_seed_and_time_are_the_same_records() {
    let target = IngestTarget::start("");
    for (prefix, seed) in [("one", 3), ("same", 3), ("other", 4)] {
        let args = format!("--campaign-time {CAMPAIGN} --database {prefix} --seed {seed} --quiet");
        assert_eq!(demo(&target, &args).code, Some(0), "{prefix}");
    }
    for table in [
        "events.system_events",
        "metrics.system_metrics",
        "logs.application_logs",
        "traces.distributed_traces",
    ] {
        let all = |prefix: &str| target.query(&format!("SELECT * FROM {prefix}_{table}")).to_string();
        assert!(all("one") == all("same"), "{table}");
        // The events are always the same.
        assert_eq!(all("one") == all("other"), table.starts_with("events"), "{table}");
    }
}

#[test]
fn a_story_that_is_there_is_not_told_again_but_can_be_asked_about() {
    let target = IngestTarget::start("");
    let nothing = demo(&target, "--queries-only");
    nothing.assert_refused(1, "has no campaign in demo_events");
    let first = told(&demo(&target, "-o json"), 0);
    let at = first["campaign_ms"].as_u64().expect("a time");
    assert_eq!(at % 60_000, 0);
    let again = demo(&target, &format!("--campaign-time {at}"));
    again.assert_refused(6, "has records of the time of the story already, so nothing was sent");
    assert!(again.stderr.contains("4 events in demo_events, 1,800 metrics in demo_metrics"), "{again:?}");
    assert!(again.stderr.contains("--database PREFIX"), "{again:?}");
    assert_eq!(target.query("SELECT COUNT(*) FROM demo_logs.application_logs"), json!([[5_000]]));
    // Without a time, that of the latest one.
    let asked = told(&demo(&target, "--queries-only -o json"), 0);
    assert_eq!((&asked["campaign_ms"], counts(&asked)), (&json!(at), vec![]));
    assert_eq!(asked["questions"], first["questions"]);
    // An older story is told to the same databases, and neither is mixed with the other.
    let older = told(&demo(&target, &format!("-o json --campaign-time {CAMPAIGN}")), 0);
    assert_eq!(rows(&older, "latency"), rows(&first, "latency"));
    assert_eq!(told(&demo(&target, "--queries-only -o json"), 0)["questions"], first["questions"]);
    let later = demo(&target, "--campaign-time 2100-01-01 --database later");
    assert_eq!(later.code, Some(0), "{later:?}");
    assert!(later.stderr.contains("which is in the future"), "{later:?}");
}

#[test]
fn a_store_that_does_not_keep_what_it_acknowledged_is_found_out() {
    for (lie, found, message) in [
        ("lose:100%", 0, "0 of 5,000 logs in demo_logs"),
        ("late:100%", 0, "0 of 3,000 spans in demo_traces"),
        ("duplicate:100%", 10_000, "10,000 of 5,000 logs in demo_logs"),
    ] {
        let target = IngestTarget::start(&format!("--lie {lie}"));
        let finished = demo(&target, "-o json");
        let told = told(&finished, 6);
        assert_eq!(counts(&told)[2], ("logs", 5_000, found), "{lie}");
        assert_eq!(told["questions"], json!([]), "{lie}");
        assert!(finished.stderr.contains("acknowledged every record, and has"), "{finished:?}");
        assert!(finished.stderr.contains(message) && finished.stderr.contains("\nhint: "), "{finished:?}");
    }
}

#[test]
fn refusals_are_in_the_words_of_the_store() {
    let target = IngestTarget::start("--token secret --token reader:read");
    for (token, words) in [
        ("", "answered 401 to the count of the events: Authentication required"),
        ("--token wrong", "answered 401 to the count of the events: Invalid or expired token"),
        ("--token reader", "answered 403 to the events: Permission denied: write required"),
    ] {
        let refused = demo(&target, token);
        refused.assert_refused(1, words);
        assert!(refused.stderr.contains("--token"), "{refused:?}");
    }
    let broken = IngestTarget::start("--fail 100%:503");
    demo(&broken, "").assert_refused(1, "answered 503 to the events: refused on purpose");
    let silent = IngestTarget::start("--lie unacknowledged:100%");
    demo(&silent, "").assert_refused(1, "no answer from http://127.0.0.1:");
    let nobody = run("ingest demo --url http://127.0.0.1:1");
    nobody.assert_refused(1, "no answer from the store http://127.0.0.1:1");
}

#[test]
fn who_may_not_flush_waits_until_the_store_does() {
    let target = IngestTarget::start("--token worker:read,write --flush-delay 1s");
    let finished = demo(&target, "--token worker -o json");
    assert_eq!(counts(&told(&finished, 0))[1], ("metrics", 1_800, 1_800));
    let said = "does not flush for this token (Permission denied: admin required)";
    assert!(finished.stderr.contains(said), "{finished:?}");
}

#[test]
fn questions_are_printed_and_mistakes_explained() {
    let printed = run("ingest demo --print-queries --database shop --campaign-time 2024-10-30T10:00:00Z");
    assert_eq!((printed.code, &printed.stderr[..]), (Some(0), ""));
    for part in [
        "-- What happened when CPU spiked\n",
        "e.time + INTERVAL 5 MINUTE\nSELECT",
        "FROM shop_traces.distributed_traces t",
        "= 17302824",
    ] {
        assert!(printed.stdout.contains(part), "{part}: {}", printed.stdout);
    }
    for (args, message) in [
        ("demo --database my-demo", "`my-demo` cannot begin the names of databases"),
        ("demo --campaign-time soon", "`soon` is neither an age nor a date"),
        ("demo --campaign-time 1730282400", "is not a time of a campaign"),
        ("demo --url http://127.0.0.1:1/api", "has a path"),
        ("demo --queries-only --seed 3", "exclude each other"),
        ("demo --rate 5k", "unknown flag `--rate`"),
        ("demo metrics", "unexpected argument `metrics`"),
        ("--url http://127.0.0.1:1 demo", "behind `demo`"),
    ] {
        let refused = run(&format!("ingest {args}"));
        assert_eq!((refused.code, &refused.stdout[..]), (Some(2), ""), "{args}: {refused:?}");
        assert!(refused.stderr.contains(message) && refused.stderr.contains("hint: "), "{args}: {refused:?}");
    }
}
