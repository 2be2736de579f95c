//! `plimsoll ingest --verify`: records have to be there, in their databases and at their times.

use plimsoll_testkit::verdict;
use serde_json::{Value, json};

use crate::loopback::ingest_target::IngestTarget;
use crate::loopback::process::{Finished, run};

/// The beginning of the year 2026, in milliseconds since 1970.
const RECENT_MS: u64 = 1_767_225_600_000;

fn ingest(target: &IngestTarget, path: &str, args: &str) -> Finished {
    run(&format!("ingest {args} -c 1 --quiet -o json --url http://{}{path}", target.address))
}

/// The checks of a verification.
fn checks(finished: &Finished) -> Vec<Value> {
    let result: Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", finished.stdout, finished.stderr));
    result["reconciliation"]["checks"].as_array().unwrap_or_else(|| panic!("{result:#}")).clone()
}

#[test]
fn lines_to_arcs_own_endpoint_are_of_now_and_not_of_1970() {
    let target = IngestTarget::start("");
    let own = "/api/v1/write/line-protocol";
    for (number, (path, args)) in [
        (own, ""),
        (own, "--time-unit ns"),
        (own, "--time-unit s --compression zstd"),
        ("/api/v1/write/line-protocol?precision=us", ""),
        ("", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let database = format!("d{number}");
        let load =
            format!("logs --format influx-line -n 4 --batch-size 50 --database {database} --verify {args}");
        let sent = ingest(&target, path, &load);
        // A busy machine may make the run invalid.
        assert!(verdict::ran(sent.code), "{path} {args}: {}", sent.stderr);
        let found = checks(&sent);
        assert_eq!((&found[0]["stored"], &found[0]["misdated"]), (&json!(200), &json!(0)), "{found:#?}");
        let least = found[0]["times_ms"][0].as_u64().unwrap_or_else(|| panic!("{found:#?}"));
        assert!(least > RECENT_MS, "{path} {args}: {least}");
    }
    let conflict = ingest(&target, "/write?precision=s", "logs --format influx-line -n 1 --time-unit ms");
    conflict.assert_refused(2, "`precision=s` says another unit");
}

#[test]
fn records_at_times_that_nobody_sent_are_found_out() {
    let target = IngestTarget::start("");
    // The target decodes the name of the parameter, so that it is the first precision to it, and none to us.
    let misread = "/api/v1/write/line-protocol?precisio%6E=ns";
    let load = "metrics --format influx-line -n 4 --batch-size 50 --verify";
    // A second time the least time of the table is nothing new.
    for round in [1, 2] {
        let sent = ingest(&target, misread, load);
        assert_eq!(sent.code, Some(6), "{round}: {}", sent.stderr);
        let found = checks(&sent);
        assert_eq!((&found[0]["stored"], &found[0]["misdated"]), (&json!(200), &json!(200)), "{found:#?}");
        assert!(found[0]["times_ms"][0].as_u64().is_some_and(|least| least < 10_000_000), "{found:#?}");
    }
    let told = run(&format!("ingest {load} -c 1 --url http://{}{misread}", target.address));
    // Lines of a report end where the page does.
    let page = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.contains("200 at times that were never sent, all stored records from 1970-01-01T00:"),
        "{page}"
    );
    // Wrong times from earlier runs are not attributed to this one.
    let good = ingest(&target, "", load);
    assert!(verdict::ran(good.code), "{}", good.stderr);
}

#[test]
fn a_store_with_arcs_interface_is_asked_in_sql_whatever_the_path() {
    let target = IngestTarget::start("");
    let load = "logs --format influx-line -n 4 --batch-size 50 --verify";
    let sent = ingest(&target, "/api/v2/write?bucket=b&precision=ms", load);
    assert!(verdict::ran(sent.code), "{}", sent.stderr);
    assert_eq!(checks(&sent)[0]["tables"], "b.application_logs");
    assert_eq!(target.query("SELECT COUNT(*) FROM b.application_logs"), json!([[200]]));
}

#[test]
fn several_databases_share_a_load_and_are_verified_one_by_one() {
    let target = IngestTarget::start("");
    // Counted and not timed: a machine without time would cut requests at the end.
    let load = "unified -n 120 --database tenant --databases 3 --batch-size 100 --verify";
    let sent = ingest(&target, "", load);
    assert!(verdict::ran(sent.code), "{:?} {} {}", sent.code, sent.stdout, sent.stderr);
    let found = checks(&sent);
    assert_eq!(found.len(), 12, "{found:#?}");
    let mut all = 0;
    for number in 1..=3 {
        let logs = found
            .iter()
            .find(|check| check["tables"] == format!("tenant_{number}.application_logs"))
            .unwrap_or_else(|| panic!("{found:#?}"));
        let rows = target.query(&format!("SELECT COUNT(*) FROM tenant_{number}.application_logs"));
        assert_eq!(logs["stored"], rows[0][0], "{logs:#?}");
        assert!(rows[0][0].as_u64() > Some(0), "{rows}");
    }
    for check in &found {
        assert_eq!(check["stored"], check["acknowledged"], "{check:#?}");
        all += check["acknowledged"].as_u64().unwrap_or_default();
    }
    assert_eq!(all, 12_000);
    let conflict = ingest(&target, "/write?db=x", "logs --format influx-line --databases 2");
    conflict.assert_refused(2, "--databases and the database that --url names exclude each other");
}

#[test]
fn a_load_that_is_refused_from_the_beginning_ends_with_what_the_store_says() {
    let target = IngestTarget::start("--token secret");
    for (args, said, hint) in [
        ("--token wrong", "answered with 401: {\"error\":\"Invalid or expired token\"", "--token"),
        ("--token secret --database 1x", "answered with 400: {\"error\":\"invalid database", "--database"),
    ] {
        let url = format!("http://{}", target.address);
        // Five minutes, of which a second or two are enough.
        let ended = run(&format!("ingest logs -R 30k -d 300s -c 1 --batch-size 100 {args} --url {url}"));
        let stderr = &ended.stderr;
        assert_eq!(ended.code, Some(1), "{stderr}");
        assert!(stderr.contains("the run ends: all of the first "), "{stderr}");
        assert!(stderr.contains(said) && stderr.contains(hint), "{args}: {stderr}");
    }
}

#[test]
fn mistakes_name_flags_and_no_plan_that_nobody_wrote() {
    for (args, message) in [
        ("ingest metrics --hosts 0", "error: --hosts: there cannot be 0 hosts\nhint: --hosts are from 1"),
        ("ingest logs --hosts 4", "error: --hosts: logs have no hosts"),
        ("ingest events --batch-size 0", "hint: --batch-size is from 1 to 1000000"),
        ("canister http://127.0.0.1:1 --payload xyz", "error: --payload: `xyz` is not hexadecimal\nhint: "),
        ("canister http://127.0.0.1:1 --payload-size big", "error: --payload-size: `big` is not a size"),
        ("canister http://127.0.0.1:1 --pem-file /nonexistent", "error: --pem-file: cannot read"),
        ("canister http://127.0.0.1:1 --expiry 10m", "hint: leave `--expiry` out"),
    ] {
        let refused = run(args);
        assert_eq!(refused.code, Some(2), "{args}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{args}: {}", refused.stderr);
        assert!(!refused.stderr.contains("the plan of"), "{args}: {}", refused.stderr);
    }
}
