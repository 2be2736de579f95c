//! `plimsoll ingest` against the store: every record that is acknowledged is there, and no other.

use plimsoll_testkit::verdict;
use serde_json::{Value, json};

use crate::loopback::ingest_target::IngestTarget;
use crate::loopback::process::{Finished, Folder, run};

/// Sends data to a store, with JSON as output.
fn ingest(target: &IngestTarget, args: &str) -> Finished {
    run(&format!("ingest {args} --quiet -o json --url http://{}", target.address))
}

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stderr))
}

fn count(result: &Value, pointer: &str) -> u64 {
    result.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {result:#}"))
}

/// Rows that the store has acknowledged.
fn rows(target: &IngestTarget) -> u64 {
    let told = target.query("SELECT COALESCE(SUM(rows), 0) FROM plimsoll.acknowledged");
    told.pointer("/0/0").and_then(Value::as_u64).unwrap_or_else(|| panic!("{told}"))
}

#[test]
fn what_is_acknowledged_is_what_the_store_has_in_every_kind_and_format() {
    let target = IngestTarget::start("");
    let mut before = 0;
    let all = "metrics logs traces events";
    for (kinds, args) in [
        (all, ""),
        (all, "--compression gzip"),
        (all, "--compression zstd --compression-level 3"),
        (all, "--format row"),
        (all, "--format influx-line"),
        ("metrics logs traces", "--format otlp-protobuf --compression gzip"),
        ("metrics", "--shape host"),
        ("metrics", "--format remote-write"),
        ("logs", "--format loki-push"),
        (all, "--format elastic-bulk"),
    ] {
        for kind in kinds.split(' ') {
            let sent = ingest(&target, &format!("{kind} -n 10 -c 2 --batch-size 100 {args}"));
            // A busy machine may make the run invalid.
            assert!(verdict::ran(sent.code), "{kind} {args}: {}", sent.stderr);
            let result = json(&sent);
            assert_eq!(count(&result, "/accounting/ok"), 10, "{kind} {args}: {result:#}");
            assert_eq!(count(&result, "/accounting/unmeasured"), 0, "{kind} {args}");
            assert_eq!(count(&result, "/records/acknowledged"), 1_000, "{kind} {args}");
            assert_eq!(rows(&target) - before, 1_000, "{kind} {args}");
            before = rows(&target);
        }
    }
}

#[test]
fn a_rate_is_one_of_records_and_kinds_share_it() {
    let target = IngestTarget::start("--token secret");
    let one = json(&ingest(&target, "metrics --token secret --rate 20k -d 1s --batch-size 500"));
    assert_eq!(count(&one, "/accounting/scheduled"), 40);
    assert_eq!(one["records"]["target_per_s"], json!(20_000.0));
    let all = json(&ingest(&target, "unified --token secret --rate 240k -d 1s --database unified"));
    assert_eq!(count(&all, "/accounting/scheduled"), 240);
    let sent: Vec<(&str, u64)> = all["by_step"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| (step["step"].as_str().expect("a name"), step["ok"].as_u64().expect("a count")))
        .collect();
    assert_eq!(sent, [("metrics", 100), ("logs", 50), ("traces", 40), ("events", 50)]);
}

#[test]
fn batches_can_be_made_before_the_run() {
    let target = IngestTarget::start("");
    let load = format!("ingest logs -n 12 -c 1 --pregenerate 5 -o json --url http://{}", target.address);
    for (flags, size) in [("", " KB on average, "), (" --compression gzip", " KB compressed on average, ")] {
        let sent = run(&format!("{load}{flags}"));
        assert!(sent.stderr.contains("made 5 batches with 5,000 records in "), "{}", sent.stderr);
        assert!(sent.stderr.contains(size) && sent.stderr.contains(" MB in all"), "{}", sent.stderr);
        assert_eq!(count(&json(&sent), "/records/acknowledged"), 12_000);
    }
    assert_eq!(rows(&target), 24_000);
}

#[test]
fn a_store_that_refuses_is_quoted_and_nothing_is_acknowledged() {
    let target = IngestTarget::start("--token secret");
    let refused = ingest(&target, "metrics --token wrong -n 5 -c 1");
    let result = json(&refused);
    assert_eq!((refused.code, &result["verdict"]["outcome"]), (Some(1), &"fail".into()), "{result:#}");
    assert_eq!(count(&result, "/statuses/401"), 5);
    assert_eq!((count(&result, "/records/acknowledged"), count(&result, "/records/failed")), (0, 5_000));
    let folder = Folder::new();
    let failed = folder.file("failed.txt");
    let bad = ingest(&target, &format!("logs --token secret --database 1bad -n 2 -c 1 --failed {failed}"));
    assert_eq!(count(&json(&bad), "/statuses/400"), 2);
    // The batch is among what is shown.
    let shown = String::from_utf8_lossy(&std::fs::read(&failed).expect("it was written")).into_owned();
    assert!(shown.contains("invalid database name"), "{shown}");
}

#[test]
fn faults_of_the_store_are_in_the_count() {
    let target = IngestTarget::start("--fail 20%:503 --seed 4");
    let result = json(&ingest(&target, "events -n 200 -c 4 --batch-size 50"));
    let (ok, failed) = (count(&result, "/accounting/ok"), count(&result, "/accounting/failed"));
    assert_eq!((ok + failed, count(&result, "/statuses/503")), (200, failed));
    assert!(failed > 10, "{failed}");
    assert_eq!(rows(&target), ok * 50);
    assert_eq!(count(&result, "/records/acknowledged"), ok * 50);
}

#[test]
fn a_store_that_is_not_there_is_no_measurement() {
    let nobody = run("ingest metrics --url http://127.0.0.1:1 -n 5 -c 1");
    assert_eq!((nobody.code, &nobody.stdout[..]), (Some(1), ""));
    assert!(nobody.stderr.contains("no answer from the store http://127.0.0.1:1"), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("plimsoll target ingest"), "{}", nobody.stderr);
}

#[test]
fn plans_are_printed_and_mistakes_explained() {
    let plan = run("ingest metrics --rate 500k --batch-size 2000 --token secret --print-plan");
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    assert!(plan.stdout.contains("rate: 250") && !plan.stdout.contains("secret"), "{}", plan.stdout);
    // As Arc's scripts call it; they mean records, and not requests on each connection.
    let plan = run("ingest metrics --rps 500k --print-plan");
    assert!(plan.stdout.contains("rate: 500") && !plan.stdout.contains("rps"), "{}", plan.stdout);
    for (args, message) in [
        ("metrics http://127.0.0.1:1/", "takes no URL"),
        ("metrics --rate fast", "--rate"),
        ("logs --format remote-write", "remote-write has no logs"),
        ("metrics --batch-size 0", "0 records"),
        ("metrics --compression gzip --compression-level 12", "no level 12"),
        ("metrics --churn 200%", "is not a share"),
        ("metrics --measurement 1a", "is not a measurement"),
    ] {
        let refused = run(&format!("ingest {args}"));
        assert_eq!(refused.code, Some(2), "{args}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{args}: {}", refused.stderr);
        assert!(refused.stderr.contains("hint: "), "{args}: {}", refused.stderr);
    }
}

/// Returns the exit code, and the findings about the store as JSON.
fn verified(target: &IngestTarget, args: &str) -> (Option<i32>, Value) {
    let finished = ingest(target, &format!("{args} --verify"));
    let result = json(&finished);
    (finished.code, result["reconciliation"].clone())
}

#[test]
fn what_is_acknowledged_is_verified_in_every_format() {
    let target = IngestTarget::start("--token secret");
    for (kinds, args) in [
        ("metrics logs traces events", ""),
        ("traces logs", "--database other --compression zstd"),
        ("metrics", "--shape host --pregenerate 3"),
        ("metrics logs", "--format influx-line"),
        ("logs traces", "--format otlp-protobuf"),
        ("metrics", "--format remote-write"),
        ("logs", "--format loki-push"),
        ("events", "--format elastic-bulk"),
        ("unified", "--rate 24k -d 500ms"),
    ] {
        for kind in kinds.split(' ') {
            let load = if kind == "unified" { "" } else { "-n 12" };
            let (code, found) = verified(&target, &format!("{kind} --token secret {load} -c 2 {args}"));
            assert!(verdict::ran(code), "{kind} {args}: {found:#}");
            assert_eq!(found["consistent"], true, "{kind} {args}: {found:#}");
            let checks = found["checks"].as_array().expect("checks");
            assert_eq!(checks.len(), if kind == "unified" { 4 } else { 1 }, "{found:#}");
            let sum = |name: &str| checks.iter().map(|check| count(check, name)).sum::<u64>();
            assert_eq!((sum("/acknowledged"), sum("/stored")), (12_000, 12_000), "{kind} {args}: {found:#}");
            let has_ids = matches!(kind, "logs" | "traces")
                && (!args.contains("format") || args.contains("influx-line"));
            assert_eq!(checks[0]["duplicates"].is_u64(), has_ids, "{kind} {args}: {found:#}");
        }
    }
}

/// Symptom: what was written some seconds before became visible during the load, and was "stored but never
/// sent": a faultless store was inconsistent.
#[test]
fn records_of_a_load_right_before_are_not_counted() {
    let target = IngestTarget::start("");
    for kind in ["metrics", "logs"] {
        let before = ingest(&target, &format!("{kind} -n 30 -c 2"));
        assert!(verdict::ran(before.code), "{kind}: {}", before.stderr);
        let (code, found) = verified(&target, &format!("{kind} -n 12 -c 2"));
        assert!(verdict::ran(code) && found["consistent"] == true, "{kind}: {found:#}");
    }
}

#[test]
fn a_store_that_loses_or_doubles_records_is_found_out() {
    for (lie, args, wrong) in [
        ("lose:10%", "metrics", "/missing"),
        ("late:10%", "events", "/missing"),
        ("duplicate:10%", "metrics", "/surplus"),
        ("duplicate:10%", "traces", "/duplicates"),
    ] {
        let target = IngestTarget::start(&format!("--lie {lie} --seed 3"));
        let (code, found) = verified(&target, &format!("{args} -n 100 -c 2 --batch-size 10"));
        assert_eq!(code, Some(6), "{lie}: {found:#}");
        let check = &found["checks"][0];
        assert_eq!(found["consistent"], false);
        let lied = target.query("SELECT SUM(lost), SUM(duplicated), SUM(late) FROM plimsoll.acknowledged");
        let lied: u64 = (0..3).map(|column| count(&lied, &format!("/0/{column}"))).sum();
        assert_eq!((count(check, wrong), lied > 0), (lied, true), "{lie}: {found:#}");
    }
}

#[test]
fn what_may_be_there_or_not_is_no_inconsistency() {
    // A reset after a write was stored, and refusals of which nothing was stored.
    let target = IngestTarget::start("--lie unacknowledged:10% --fail 10%:503 --seed 5");
    let (code, found) = verified(&target, "traces -n 200 -c 4 --batch-size 10");
    assert!(verdict::ran(code), "{found:#}");
    let figure = |name: &str| count(&found, &format!("/checks/0/{name}"));
    assert!(figure("uncertain") > 0 && figure("stored") > figure("acknowledged"), "{found:#}");
    assert!(figure("stored") < figure("acknowledged") + figure("uncertain"), "{found:#}");
    // Records from before the run are not counted, those of the warm-up are.
    let (code, found) = verified(&target, "traces --rate 2k -d 500ms --warmup 300ms --batch-size 10");
    assert!(verdict::ran(code) && found["consistent"] == true, "{found:#}");
}

#[test]
fn what_cannot_be_verified_is_said() {
    let target = IngestTarget::start("--token secret --token writer:write");
    let refused = ingest(&target, "logs -n 2 -c 1 --token writer --verify");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("403") && refused.stderr.contains("may read, too"), "{}", refused.stderr);
    let repeated = ingest(&target, "logs -n 2 -c 1 --token secret --verify --repeat 2");
    assert_eq!(repeated.code, Some(2), "{}", repeated.stderr);
    assert!(repeated.stderr.contains("--verify and --repeat exclude each other"), "{}", repeated.stderr);
    // A server that is not a store at all.
    let sink = crate::loopback::sink::Sink::start("");
    let foreign = run(&format!("ingest logs -n 2 -c 1 --format loki-push --verify --url {}", sink.url()));
    assert_eq!(foreign.code, Some(1), "{}", foreign.stderr);
}

#[test]
fn sizes_of_batches_are_tried_in_one_run() {
    let target = IngestTarget::start("");
    let load = "metrics -c 2 --sweep batch-size=100,1000 -d 500ms --threshold p99<10s";
    let swept = ingest(&target, load);
    let result = json(&swept);
    // So short a level may show nothing, and nothing breaks so wide a limit.
    let holds = |level: &Value| level["finding"] == "holds";
    let is_shown = result["levels"].as_array().is_some_and(|levels| levels.iter().all(holds));
    assert_eq!(swept.code, Some(if is_shown { 0 } else { 3 }), "{result:#}{}", swept.stderr);
    assert_eq!((&result["setting"], &result["usl"]), (&json!("batch-size"), &Value::Null));
    let levels = result["levels"].as_array().expect("levels");
    assert_eq!(levels.iter().map(|level| &level["value"]).collect::<Vec<_>>(), [100.0, 1_000.0]);
    let mut records = 0;
    for level in levels {
        let figure = |name: &str| level[name].as_f64().unwrap_or_else(|| panic!("{name} in {level:#}"));
        let batches = figure("records_per_s") / figure("value");
        assert!((batches / figure("achieved_per_s") - 1.0).abs() < 0.05, "{level:#}");
        records += (figure("records_per_s") * figure("measured_s")).round() as u64;
    }
    // The second in front of each level is not part of its figures.
    assert!(rows(&target) > records && records > 0, "{} of {records}", rows(&target));
    for (args, message) in [
        ("--sweep batch-size=", "names no sizes of batches"),
        ("--sweep connections=1,2", "names no sizes of batches"),
        ("--sweep batch-size=10 --verify", "--verify"),
        ("--sweep batch-size=10 --stats /tmp/x", "--sweep and --stats exclude each other"),
        ("--sweep batch-size=10 --evidence /tmp/x", "--sweep and --evidence exclude each other"),
        ("--sweep batch-size=10 --repeat 2", "--sweep and --repeat exclude each other"),
        ("--sweep batch-size=10 -o k6", "k6 is of a single run"),
    ] {
        let refused = run(&format!("ingest metrics {args} --url http://{}", target.address));
        assert_eq!(refused.code, Some(2), "{args}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{args}: {}", refused.stderr);
    }
}

#[test]
fn presets_are_sizes_that_flags_change() {
    let plan = |args: &str| {
        let printed = run(&format!("ingest {args} --print-plan"));
        assert_eq!(printed.code, Some(0), "{args}: {}", printed.stderr);
        printed.stdout
    };
    let half = plan("--preset metrics-500k --thresholds arc");
    for part in ["connections: 50", "duration: 30s", "rate: 500", "level: 1", "- p99<20ms", "- rate>475"] {
        assert!(half.contains(part), "{part} in {half}");
    }
    let changed =
        plan("logs --preset logs-100k --rate 10k --batch-size 100 --workers 3 --compression none -d 1s");
    for part in ["connections: 3", "duration: 1s", "rate: 100", "compression: none", "batch_size: 100"] {
        assert!(changed.contains(part), "{part} in {changed}");
    }
    assert!(!changed.contains("thresholds"), "{changed}");
    // Symptom: sizes of the guide had times in milliseconds, and named no database.
    for (preset, database, unit) in [
        ("metrics-500k", "default", "time_unit: ns"),
        ("logs-50k", "logs", "time_unit: ns"),
        ("traces-100k", "traces", ""),
    ] {
        let sized = plan(&format!("--preset {preset}"));
        assert!(sized.contains(&format!("x-arc-database: {database}\n")) && sized.contains(unit), "{sized}");
        let named = plan(&format!("--preset {preset} --database x --time-unit us"));
        assert!(named.contains("x-arc-database: x\n") && !named.contains("time_unit: ns"), "{named}");
    }
    let script = plan("logs --preset arc");
    for part in ["connections: 5", "duration: 30s", "rate: 50", "level: 1", "x-arc-database: logs"] {
        assert!(script.contains(part), "{part} in {script}");
    }
    // Each script counts its workers by its rate, and the one for metrics sends rows unless told otherwise.
    let rated = plan("logs --preset arc --rps 200000");
    assert!(rated.contains("connections: 20") && rated.contains("rate: 200"), "{rated}");
    assert!(rated.contains("format: columnar"), "{rated}");
    let rows = plan("metrics --preset arc --rps 5000");
    assert!(rows.contains("connections: 1\n") && rows.contains("format: row"), "{rows}");
    assert!(rows.contains("time_unit: ns"), "{rows}");
    let columns = plan("metrics --preset arc --columnar");
    assert!(columns.contains("connections: 30") && columns.contains("format: columnar"), "{columns}");
    let unified = plan("unified --preset arc --database other");
    for part in ["connections: 800", "duration: 60s", "rate: 2400", "x-arc-database: other"] {
        assert!(unified.contains(part), "{part} in {unified}");
    }
    for (args, message) in
        [("--preset arc", "no kind is named"), ("metrics --columnar --format row", "exclude each other")]
    {
        let refused = run(&format!("ingest {args}"));
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
    let other = run("ingest logs --preset metrics-500k");
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("the preset metrics-500k is one of metrics"), "{}", other.stderr);
    let target = IngestTarget::start("");
    let small = ingest(&target, "--preset traces-100k --rate 10k -d 1s --stats - --interval 500ms");
    assert_eq!(small.code, Some(2), "{}", small.stderr);
    let lines = run(&format!(
        "ingest --preset traces-100k --rate 10k -d 1s --stats - --interval 500ms --url http://{}",
        target.address
    ));
    let of_total = |line: &&str| line.contains("total") && line.contains("(target 10,000/s)");
    assert!(lines.stderr.lines().filter(of_total).count() >= 2, "{}", lines.stderr);
    assert!(lines.stderr.contains("total 10,000  failed 0"), "{}", lines.stderr);
}

/// Symptom: command lines of Arc's scripts ended with errors about flags that change nothing here.
#[test]
fn flags_of_arcs_scripts_that_change_nothing_are_noted_and_the_load_runs() {
    let target = IngestTarget::start("");
    let url = format!("http://{}", target.address);
    for (args, notes) in [
        ("metrics --columnar", &["note: --columnar changes nothing"][..]),
        (
            "metrics --throttle --rps 10000",
            &["note: Arc's scripts have settings that --preset arc has", "note: --throttle changes nothing"],
        ),
        ("metrics --throttle", &["note: --throttle changes nothing", "note: there is no rate to keep"]),
        ("logs --num-services 7", &[]),
    ] {
        let sent = run(&format!("ingest {args} -n 4 --workers 2 -o json --url {url}"));
        assert!(verdict::ran(sent.code), "{args}: {}", sent.stderr);
        let told = sent.stderr.lines().filter(|line| line.starts_with("note: ")).collect::<Vec<_>>();
        let same = told.iter().zip(notes).all(|(line, note)| line.starts_with(note));
        assert!(told.len() == notes.len() && same, "{args}: {told:?}");
    }
    for flag in ["--metrics-rps", "--logs-batch", "--traces-workers", "--events-database"] {
        let refused = run(&format!("ingest unified {flag} 5"));
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("hint: `ingest unified` shares one --rate"), "{}", refused.stderr);
    }
}

#[test]
fn what_helps_is_said_in_the_words_of_the_store_and_ours() {
    let target =
        IngestTarget::start("--token secret --token reader:read --full-after 30kB --max-payload 1MiB");
    for (args, said, hint) in [
        ("metrics --token wrong", "answered with 401: {\"error\":\"Invalid or expired token\"", "--token"),
        ("logs --token reader", "answered with 403: {\"error\":\"Permission denied", "may not write"),
        (
            "logs --token secret --database 1x",
            "answered with 400: {\"error\":\"invalid database",
            "--database",
        ),
        ("traces --token secret --batch-size 100000", "lost with ", "--batch-size"),
        ("events --token secret --format row", "no space left on device", "disk of the store is full"),
    ] {
        let url = format!("http://{}", target.address);
        let failed = run(&format!("ingest {args} -n 20 -c 2 --url {url}"));
        let stderr = &failed.stderr;
        assert!(stderr.contains(" batches were ") && stderr.contains(said), "{args}: {stderr}");
        assert!(stderr.contains(hint), "{args}: {stderr}");
    }
}

#[test]
fn times_may_begin_elsewhere_and_are_the_same_again() {
    let target = IngestTarget::start("");
    let mut seen = Vec::new();
    for database in ["one", "two"] {
        let args = format!("logs -n 20 -c 1 -t 1 --batch-size 50 --rate 1k --seed 7 --database {database}");
        let sent = ingest(&target, &format!("{args} --start-time 2026-01-01T00:00:00Z --verify"));
        assert!(verdict::ran(sent.code), "{}", sent.stderr);
        assert_eq!(json(&sent)["reconciliation"]["checks"][0]["duplicates"], 0);
        let rows = target.query(&format!(
            "SELECT MIN(epoch_ms(time)), MAX(epoch_ms(time)), MIN(request_id), MAX(request_id) \
             FROM {database}.application_logs"
        ));
        seen.push(rows[0].clone());
    }
    let start = 1_767_225_600_000_u64;
    assert_eq!((&seen[0][0], &seen[0][1]), (&json!(start), &json!(start + 999)), "{seen:?}");
    assert_eq!(seen[0], seen[1]);
    let refused = run("ingest logs --start-time soon");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--start-time: `soon`"), "{}", refused.stderr);
}
