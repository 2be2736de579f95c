//! Files that are written while a run goes on, compared with the result in the end.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::loopback::process::{Folder, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count};

/// The rows of a CSV file by their columns. No cell of these tests is quoted.
fn rows(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().expect("a header").split(',').collect();
    lines
        .map(|line| {
            let cells: Vec<_> = line.split(',').collect();
            assert_eq!(cells.len(), names.len(), "{line}");
            names.iter().copied().zip(cells).collect()
        })
        .collect()
}

/// The sum of a column over the rows of a scenario outside of the warm-up.
fn sum(rows: &[BTreeMap<&str, &str>], scenario: &str, column: &str) -> u64 {
    rows.iter()
        .filter(|row| row["phase"] != "warmup" && row["scenario"] == scenario)
        .map(|row| row[column].parse::<u64>().expect("a number"))
        .sum()
}

#[test]
fn rotated_files_are_whole_and_add_up() {
    let folder = Folder::new();
    let sink = Sink::start("--fail 10%:503");
    let (stats, log) = (folder.file("stats.csv"), folder.file("log.csv"));
    let flags =
        format!("--rate 2k -d 2s --interval 100ms --stats {stats} --log {log} --rotate-size 4KiB -o json");
    let result = run(&format!("run {} -c 16 {flags}", sink.url())).result();
    assert_balance(&result);
    let texts = |name: &str| -> Vec<String> {
        let aside = |number| folder.file(&format!("{name}.{number}.csv"));
        let asides = (1..).map_while(|number| std::fs::read_to_string(aside(number)).ok());
        let last = std::fs::read_to_string(folder.file(&format!("{name}.csv"))).expect("it is there");
        asides.chain([last]).collect()
    };
    for (name, least) in [("stats", 1), ("log", 20)] {
        let texts = texts(name);
        assert!(texts.len() > least, "{name}: {}", texts.len());
        assert!(texts.iter().all(|text| text.len() <= 4_096 && text.ends_with('\n')), "{name}");
    }
    let ok: u64 = texts("stats").iter().map(|text| sum(&rows(text), "total", "ok")).sum();
    assert_eq!(ok, account(&result, "ok"));
    let lines: usize = texts("log").iter().map(|text| rows(text).len()).sum();
    assert_eq!(lines as u64, account(&result, "ok") + account(&result, "failed"));
    // Outputs that cannot be rotated are refused before any load.
    for (file, why) in [("-", "stderr"), ("/dev/null", "not a regular file")] {
        let refused = run(&format!("run {} -d 1s --stats {file} --rotate-every 1h", sink.url()));
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}

#[test]
fn statistics_have_a_row_per_scenario_and_interval_and_add_up() {
    let folder = Folder::new();
    let sink = Sink::start("--fail 10%:503 --fail 5%:404 --drop 1% --delay exponential:20ms");
    for load in ["--rate 1k -c 64", "-c 8", "-c 8 -t 2"] {
        let file = folder.file("stats.csv");
        let urls = format!("{0}a {0}b", sink.url());
        let flags = format!("--warmup 300ms -d 1s --interval 250ms --timeout 400ms --stats {file} -o json");
        let result = run(&format!("run {urls} {load} {flags}")).result();
        assert_balance(&result);
        let text = std::fs::read_to_string(&file).expect("it was written");
        let rows = rows(&text);
        let accounts = [
            ("started", account(&result, "started")),
            ("ok", account(&result, "ok")),
            ("failed", account(&result, "failed")),
            ("timed_out", account(&result, "timed_out")),
            ("status_5xx", count(&result, "/statuses/503")),
            ("status_4xx", count(&result, "/statuses/404")),
        ];
        for (column, expected) in accounts {
            assert_eq!(sum(&rows, "total", column), expected, "{load} {column}: {text}");
        }
        assert!(account(&result, "timed_out") > 0 && account(&result, "failed") > 0, "{load}");
        for step in result["by_step"].as_array().unwrap() {
            let name = step["step"].as_str().unwrap();
            for column in ["ok", "failed", "timed_out"] {
                assert_eq!(
                    sum(&rows, name, column),
                    step[column].as_u64().unwrap(),
                    "{load} {name} {column}"
                );
            }
        }
        // The warm-up has 300 ms: one row of 250 and one of 50; the measured second has four.
        let phases = |phase: &str| rows.iter().filter(|row| row["phase"] == phase).count();
        assert_eq!((phases("warmup"), phases("measure")), (2 * 3, 4 * 3), "{load}: {text}");
        let intervals = result["intervals"].as_array().unwrap();
        assert_eq!(rows.len(), intervals.len() * 3, "{load}");
        for interval in intervals {
            let parts = interval["by_scenario"].as_array().unwrap();
            let ok: u64 = parts.iter().map(|part| part["ok"].as_u64().unwrap()).sum();
            assert_eq!((parts.len(), ok), (2, interval["ok"].as_u64().unwrap()));
        }
    }
}

#[test]
fn statistics_as_lines_of_json_and_as_a_table() {
    let folder = Folder::new();
    let sink = Sink::start("");
    let file = folder.file("stats.ndjson");
    let result = run(&format!("{} -n 2000 -c 4 --stats {file} -o json", sink.url())).result();
    let text = std::fs::read_to_string(&file).expect("it was written");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let total = lines.iter().filter(|line| line["scenario"] == "total" && line["phase"] != "warmup");
    let ended: u64 = total.map(|line| line["ended"].as_u64().unwrap()).sum();
    assert_eq!(ended, account(&result, "ok"));
    let finished = run(&format!("{} -n 500 -c 4 --stats -", sink.url()));
    let head = finished.stderr.lines().next().unwrap_or_default();
    assert!(head.contains("scenario") && finished.stderr.contains(" total "), "{}", finished.stderr);
}

#[test]
fn a_disk_that_is_full_is_named_once_and_ends_nothing() {
    let sink = Sink::start("");
    let flags = "-d 1s -c 2 --interval 100ms --stats /dev/full --log /dev/full -o json";
    let finished = run(&format!("{} {flags}", sink.url()));
    let result = finished.result();
    assert_balance(&result);
    // Symptom: `"entries": 2000, "dropped": 0` with nothing written.
    let ended = account(&result, "ok") + account(&result, "failed");
    assert_eq!((count(&result, "/log/entries"), count(&result, "/log/dropped")), (0, ended));
    let said = |what: &str| finished.stderr.matches(what).count();
    assert_eq!(said("cannot write statistics to /dev/full"), 1, "{}", finished.stderr);
    assert_eq!(said("cannot write to /dev/full"), 1, "{}", finished.stderr);
}

#[test]
fn the_log_has_every_request_and_a_sample_its_share() {
    let folder = Folder::new();
    let sink = Sink::start("--fail 10%:503");
    let log = |name: &str, flags: &str| {
        let file = folder.file(name);
        let result = run(&format!("{} --log {file} {flags} -o json", sink.url())).result();
        (result, std::fs::read_to_string(&file).expect("it was written"))
    };
    let (result, text) = log("all.csv", "--rate 1k -d 1s --warmup 200ms -t 2");
    let rows = rows(&text);
    let of = |outcome: &str| {
        rows.iter().filter(|row| row["warmup"] == "false" && row["outcome"] == outcome).count() as u64
    };
    assert_eq!(of("ok"), account(&result, "ok"));
    assert_eq!(of("status_5xx"), account(&result, "failed"));
    assert!(rows.iter().filter(|row| row["warmup"] == "true").count() > 100, "{text}");
    assert_eq!((count(&result, "/log/entries"), count(&result, "/log/dropped")), (rows.len() as u64, 0));
    let (result, text) = log("some.ndjson", "-n 4000 -c 4 --log-sample 1/4");
    // Binomial: 1,000 with a deviation of 27; six of them.
    let lines = text.lines().count();
    assert!((836..=1_164).contains(&lines), "{lines} of 4,000");
    assert_eq!(count(&result, "/log/entries"), lines as u64);
}

#[test]
fn failed_requests_are_written_up_to_a_limit() {
    let folder = Folder::new();
    let sink = Sink::start("--fail 50%:503");
    let file = folder.file("failed.txt");
    let result =
        run(&format!("{} -n 400 -c 4 --failed {file} --failed-limit 20 -o json", sink.url())).result();
    let text = content(&file);
    assert_eq!(text.lines().filter(|line| line.starts_with("==== ")).count(), 20, "{text}");
    let kept = (count(&result, "/log/failed"), count(&result, "/log/failed_dropped"));
    assert_eq!(kept, (20, account(&result, "failed") - 20));
}

/// A file with the bodies of messages, which need not be text.
fn content(file: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(file).expect("it was written")).into_owned()
}

/// Returns the exchanges of a file of failed requests, each as its first line, which has times in it, and the
/// rest.
fn exchanges(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("==== ").skip(1).map(|exchange| exchange.split_once('\n').expect("two lines"))
}

#[test]
fn failed_requests_are_written_with_both_messages_and_the_reason() {
    let folder = Folder::new();
    let big = folder.write("big.bin", "x".repeat((64 << 10) + 7));
    let sink = Sink::start("--fail 20%:503 --body-size 9");
    let file = folder.file("failed.txt");
    let kept = |flags: &str| {
        let flags = format!("-n 100 -c 4 --timeout 500ms --failed {file} {flags} -o json");
        let result = run(&format!("{}order?n=${{sequence}} {flags}", sink.url())).result();
        assert_balance(&result);
        let text = content(&file);
        let failed = account(&result, "failed") + account(&result, "timed_out");
        assert_eq!(exchanges(&text).count() as u64, failed, "{text}");
        assert!(failed > 0 && !text.contains("topsecret"), "{text}");
        text
    };
    // Without a variable of its own a request has no session; both protocols keep it all the same.
    for (flags, line) in [("", "POST /order?n="), ("--http2", ":path: /order?n=")] {
        let headers = "-H authorization:topsecret -H x-kept:${sequence}";
        let text = kept(&format!("{flags} {headers} --body {{\"n\":${{sequence}}}}"));
        let mut seen = std::collections::BTreeSet::new();
        for (head, rest) in exchanges(&text) {
            assert!(head.contains("status 503: status 503, expected below 400: xxxx"), "{head}");
            let (request, response) = rest.split_once("---- response\n").expect("both");
            let number = request.split_once(line).expect("its path").1;
            let end = number.find(|c: char| !c.is_ascii_digit()).expect("more");
            let number = &number[..end];
            assert!(seen.insert(number.to_owned()), "{number} came twice");
            // Everything in it is of the same request.
            assert!(request.contains(&format!("x-kept: {number}\n")), "{request}");
            assert!(request.contains(&format!("\n\n{{\"n\":{number}}}\n")), "{request}");
            assert!(request.contains("authorization: ***\n"), "{request}");
            let status = if flags.is_empty() { "HTTP/1.1 503\n" } else { ":status: 503\n" };
            assert!(response.starts_with(status), "{response}");
            assert!(response.contains("content-length: "), "{response}");
        }
    }
    let text = kept(&format!("-X PUT --body @{big}"));
    let (_, rest) = exchanges(&text).next().expect("one failed");
    assert!(
        rest.contains("\n---- 7 more bytes\n") && rest.contains("Content-Length: 65543"),
        "{}",
        rest.len()
    );
}

#[test]
fn each_request_of_a_batch_is_written_by_itself() {
    let folder = Folder::new();
    let sink = Sink::start("--fail 30%:503");
    let file = folder.file("failed.txt");
    let batch = r#"
        wrk.headers["Authorization"] = "topsecret"
        local batch = wrk.format("GET", "/a") .. wrk.format("PUT", "/b", nil, "hello") .. wrk.format("GET", "/c")
        function request() return batch end"#;
    let script = folder.write("batch.lua", batch);
    let result = run(&format!("{} -n 50 -c 2 -s {script} --failed {file} -o json", sink.url())).result();
    assert_balance(&result);
    let text = content(&file);
    assert_eq!(exchanges(&text).count() as u64, account(&result, "failed"), "{text}");
    assert!(!text.contains("topsecret"), "{text}");
    for line in ["GET /a", "PUT /b", "GET /c"] {
        assert!(text.contains(&format!("---- request\n{line} HTTP/1.1\n")), "{line}: {text}");
    }
    assert_eq!(text.matches("hello").count(), text.matches("PUT /b").count(), "{text}");
}

#[test]
fn a_timeout_has_its_request_and_no_response() {
    let folder = Folder::new();
    let sink = Sink::start("--drop 100%");
    for protocol in ["", "--http2"] {
        let file = folder.file("failed.txt");
        let flags =
            format!("{protocol} --no-preflight --rate 20 -d 500ms --timeout 200ms --failed {file} -o json");
        let result = run(&format!("{}lost {flags}", sink.url())).result();
        let text = content(&file);
        assert_eq!(exchanges(&text).count() as u64, account(&result, "timed_out"), "{text}");
        assert!(account(&result, "timed_out") > 0);
        for (head, rest) in exchanges(&text) {
            assert!(head.contains(": timed_out, after "), "{head}");
            assert!(rest.contains("/lost") && rest.contains("---- no response was kept"), "{rest}");
        }
    }
}
