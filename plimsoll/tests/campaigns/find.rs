//! The capacity search from the command line, against a sink whose capacity is known.

use std::process::Output;

use plimsoll_testkit::verdict;
use serde_json::Value;

use super::bench::{Sink, plimsoll, stderr};

fn find(args: &[&str]) -> Output {
    plimsoll(&["find"]).args(args).output().expect("the binary was built")
}

/// Symptom: a search gave up with four fifths of its time left, and did not say why.
fn says_why_time_is_left(result: &Value, max_time: f64) {
    let used = result["search"]["duration_s"].as_f64().expect("a length");
    let capacity = &result["capacity"];
    let is_early = used < 0.7 * max_time && (capacity["end"] == "narrow" || capacity["end"] == "unclear");
    let notes = capacity["notes"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let said = notes.filter(|note| note.contains(" were left: ")).count();
    assert!(said == 1 || !is_early, "{used} s: {capacity:#}");
    assert!(said == 0 || used < 0.9 * max_time, "{used} s: {capacity:#}");
}

/// One reply after the other, each after 2 ms: 500 per second, no matter how many ask. Few requests tell
/// about shares of a fifth.
#[test]
fn the_capacity_of_a_sink_is_bracketed() {
    let sink = Sink::measured(&["--delay", "constant:2ms", "--queue"]);
    let output = find(&[
        &sink.url,
        "--slo",
        "p80<100ms",
        "--slo",
        "error_rate<20%",
        "--from",
        "125",
        "-d",
        "600ms",
        "--precision",
        "50%",
        "--max-time",
        "60s",
        "-o",
        "json",
        "--quiet",
    ]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let exit = output.status.code();
    let capacity = &result["capacity"];
    // On a machine that has no time for it, the generator says so.
    assert!(verdict::ran(exit), "{exit:?}: {capacity:#}");
    if let Some(high) = capacity["high_per_s"].as_f64() {
        assert!(high >= 490.0, "breaks too early: {result:#}");
    }
    if let Some(low) = capacity["low_per_s"].as_f64() {
        assert!(low <= 510.0, "holds too much: {result:#}");
    }
    says_why_time_is_left(&result, 60.0);
    if exit == Some(0) {
        assert_eq!(capacity["confirmed"], true);
        assert!(result["levels"].as_array().unwrap().len() >= 3);
    }
    let trials = result["trials"].as_array().unwrap();
    // The first trial leaves its connections to the second.
    let kept = |number: usize| trials[number]["connections_kept"].as_u64();
    assert_eq!((kept(0), kept(1) > Some(0)), (Some(0), true), "{trials:#?}");
    assert!(trials.iter().all(|trial| trial["rate_per_s"].as_f64().unwrap() >= 125.0 / 2.0), "{trials:#?}");
}

#[test]
fn what_breaks_everywhere_has_no_capacity() {
    // Trials that the machine disturbs are made again, and tell nothing in the end.
    let sink = Sink::measured(&["--status", "503"]);
    let junit = std::env::temp_dir().join(format!("plimsoll-breaks-{}.xml", std::process::id()));
    let output = find(&[
        &sink.url,
        "--out",
        &format!("junit={}", junit.display()),
        "--slo",
        "p99<1s",
        "--from",
        "1k",
        "--no-preflight",
        "--at-least",
        "10",
        "-d",
        "200ms",
        "-o",
        "json",
        "--quiet",
    ]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(output.status.code(), Some(99), "{result:#}");
    assert_eq!(result["capacity"]["low_per_s"], Value::Null);
    assert_eq!(result["capacity"]["end"], "lowest");
    // Symptom: JUnit was green where the lowest rate had too few requests to tell.
    let cases = std::fs::read_to_string(&junit).expect("it was written");
    std::fs::remove_file(&junit).expect("it was written");
    let failed = cases.matches("<failure").count();
    assert!(failed >= 2 && !cases.contains("<error"), "{cases}");
}

/// Symptom: a search of 7 s said that rates "were tried for 2m00s and stayed unclear: give a longer --max-time",
/// where half of all requests fail at any rate.
#[test]
fn where_half_of_all_requests_fail_no_time_is_too_short() {
    let sink = Sink::measured(&["--fail", "50%:503"]);
    let output = find(&[
        &sink.url,
        "--slo",
        "p99<1s",
        "--from",
        "400",
        "-d",
        "500ms",
        "--max-time",
        "15s",
        "-o",
        "json",
        "--quiet",
    ]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let capacity = &result["capacity"];
    says_why_time_is_left(&result, 15.0);
    // On a machine that has no time for it, the generator says so.
    let is_generator = capacity["end"] == "generator";
    assert_eq!(output.status.code(), Some(if is_generator { 3 } else { 99 }), "{capacity:#}");
    if !is_generator {
        let statement = capacity["statement"].as_str().expect("a sentence");
        assert!(statement.starts_with("no rate that was tried meets the objectives"), "{result:#}");
    }
}

#[test]
fn a_highest_rate_is_kept() {
    let sink = Sink::start(&[]);
    let json = std::env::temp_dir().join(format!("plimsoll-find-{}.json", std::process::id()));
    let output = find(&[
        &sink.url,
        "--slo",
        "p50<200ms",
        "--from",
        "1k",
        "--to",
        "1500",
        "--at-least",
        "1500",
        "-d",
        "500ms",
        "--json",
        json.to_str().unwrap(),
    ]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains("asked for   at least 1,500/s: "), "{text}");
    if output.status.code() == Some(0) {
        assert!(text.contains("capacity    at least 1,500/s"), "{text}");
        assert!(text.contains("asked for   at least 1,500/s: met"), "{text}");
    }
    let written: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    std::fs::remove_file(&json).unwrap();
    let rates =
        written["trials"].as_array().unwrap().iter().map(|trial| trial["rate_per_s"].as_f64().unwrap());
    assert!(rates.into_iter().all(|rate| (1_000.0..=1_500.0).contains(&rate)), "{written:#}");
    assert_eq!(written["search"]["slo"][1], "error_rate<1%");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let url = "http://127.0.0.1:1/";
    for (args, message) in [
        (vec![url], "there is nothing to search for"),
        (vec![url, "--slo", "rate>5"], "cannot be searched for"),
        (vec![url, "--slo", "p99<0.1"], "--slo"),
        (vec![url, "--slo", "p99<10ms", "-R", "5"], "--rate has no place here"),
        (vec![url, "--slo", "p99<10ms", "-n", "5"], "--iterations has no place here"),
        (vec![url, "--slo", "p99<10ms", "--from", "5", "--to", "4"], "--to is below --from"),
        (vec![url, "--slo", "p99<10ms", "--to", "400", "--at-least", "401"], "--at-least is above --to"),
        (vec![url, "--slo", "p99<10ms", "--precision", "99"], "not a share from 0.5% to 50%"),
        // Symptom: a search that had time for no trial said what these had shown.
        (vec![url, "--slo", "p99<10ms", "--max-time", "3s"], "leave no room for 3 trials of 2.00 s"),
        (vec![url, "--slo", "p99<10ms", "-o", "k6"], "text, json, csv, markdown, junit"),
        (vec![url, "--slo", "p99<10ms", "--out", "hgrm=x"], "hgrm is of a single run"),
        (vec![url, "--sweep", "connections=1,2", "--out", "ndjson=x"], "ndjson is of a single run"),
        (vec![url, "--slo", "p99<60s"], "times out before"),
        (vec![url, "--slo", "error_rate<=0%"], "cannot be searched for"),
        (vec![url, "--sweep", "connections"], "has no levels"),
        (vec![url, "--sweep", "color=1,2"], "is not one of connections, streams, threads, rate"),
        (vec![url, "--sweep", "connections=1,,2"], "has an empty level"),
        (vec![url, "--sweep", "connections=1,2", "-R", "5"], "the plan has a rate of its own"),
    ] {
        let output = find(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("hint: "), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_target_that_is_not_there_is_said_at_once() {
    let output = find(&["http://127.0.0.1:1/", "--slo", "p99<10ms"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

/// Symptom: a search was text, JSON and CSV alone, and neither its JSON nor the history had it for other
/// commands; nobody could check it.
#[test]
fn a_search_and_a_sweep_are_documents() {
    let sink = Sink::light(&[]);
    let folder = std::env::temp_dir().join(format!("plimsoll-documents-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("it can be made");
    let file = |name: &str| folder.join(name).to_str().expect("it is UTF-8").to_owned();
    let store = file("history.db");
    let made = |args: &[&str]| {
        let output = plimsoll(args).env("PLIMSOLL_STORE", &store).output().expect("the binary was built");
        (String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output), output.status.code())
    };
    let search = ["--slo", "p50<200ms", "--from", "1k", "--to", "1500", "-d", "300ms", "--save"];
    let sweep = ["--sweep", "connections=1,2", "-d", "300ms", "--slo", "p50<200ms", "--name", "levels"];
    let of_search = format!("Capacity of {}", sink.url);
    for (number, (args, kind, title)) in
        [(&search[..], "search", of_search.as_str()), (&sweep, "sweep", "levels")].into_iter().enumerate()
    {
        let outs = ["json", "csv", "markdown", "junit"].map(|format| format!("{format}={}", file(format)));
        let page = file("page");
        let evidence = file("evidence");
        let mut words = vec!["find", &sink.url, "--report", &page, "--evidence", &evidence];
        words.extend(outs.iter().flat_map(|out| ["--out", out]).chain(args.iter().copied()));
        let (text, said, code) = made(&words);
        assert!(verdict::ran(code), "{said}");
        assert!(said.contains("wrote ") && said.contains(&format!("saved as {kind} ")), "{said}");
        let read = |name: &str| std::fs::read_to_string(file(name)).expect("it was written");
        let json = file("json");
        let result: Value = serde_json::from_str(&read("json")).expect("one object");
        let id = result[kind]["id"].as_str().expect("an id");
        assert!(read("page").contains(&format!("<h1>{title}</h1>")), "{}", read("markdown"));
        assert!(read("page").contains("--slo &#39;p50&lt;200ms&#39;"), "the command can be pasted");
        let (verified, said, code) = made(&["verify", &evidence]);
        assert_eq!(code, Some(0), "{verified}{said}");
        assert!(verified.contains(" follow from the records of its trials\n"), "{verified}");
        assert!(verified.contains(&format!("  {kind} {id} of ")), "{verified}");
        // What was written at the end is what the JSON, the history, or the evidence, becomes later.
        let named = if number == 0 { "latest" } else { "levels" };
        for word in [json.as_str(), &id[..8], named, &evidence] {
            for format in ["json", "csv", "markdown", "junit"] {
                let (shown, said, _) = made(&["show", word, "-o", format]);
                assert_eq!(shown, read(format), "{format} of {word}: {said}");
            }
            assert_eq!(made(&["show", word]).0, text, "{word}");
            assert_eq!(made(&["report", word, "--file", "-"]).0, read("page"), "{word}");
            // Elsewhere a run is wanted, and the message says what to do.
            for words in [
                &["show", word, "-o", "hlog"][..],
                &["compare", word, &json],
                &["history", word],
                &["export", word, "-o", "k6"],
                &["report", word, word],
            ] {
                let (_, said, code) = made(words);
                assert_eq!(code, Some(2), "{words:?}: {said}");
                assert!(said.contains("a search or a sweep") && said.contains("hint: "), "{words:?}: {said}");
            }
        }
        let list: Value = serde_json::from_str(&made(&["runs", "-o", "json"]).0).expect("one object");
        let saved = &list["runs"][0];
        assert_eq!((&saved["kind"], &saved["id"]), (&Value::from(kind), &result[kind]["id"]), "{list:#}");
        let answer = saved["answer"].as_str().expect("an answer");
        assert!(made(&["runs"]).0.contains(&format!(" {kind}: {answer}")), "{}", made(&["runs"]).0);
    }
    let (removed, ..) = made(&["rm", "levels"]);
    assert!(removed.starts_with("removed sweep ") && made(&["runs"]).0.lines().count() == 2, "{removed}");
    std::fs::remove_dir_all(&folder).expect("it was made");
}

/// One reply after the other: the rate stays the same with more users, which is the target's doing.
#[test]
fn a_sweep_shows_the_curve_and_the_law() {
    let sink = Sink::measured(&["--delay", "constant:2ms", "--queue"]);
    let output =
        find(&[&sink.url, "--sweep", "connections=1,2,3,4,8,16", "-d", "400ms", "-o", "json", "--quiet"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let levels = result["levels"].as_array().unwrap();
    let values: Vec<f64> = levels.iter().map(|level| level["value"].as_f64().unwrap()).collect();
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 8.0, 16.0]);
    assert!(levels.iter().all(|level| level["achieved_per_s"].as_f64().unwrap() < 510.0), "{result:#}");
    let invalid = levels.iter().any(|level| level["finding"] == "not_applied");
    let usl = &result["usl"];
    assert!(invalid || usl["lambda_per_s"].as_f64().is_some_and(|rate| rate < 600.0), "{result:#}");
    // All of the work is done one at a time, though a busy machine makes one user slow for other reasons.
    let law = |name: &str| usl[name].as_f64().unwrap_or_default();
    assert!(invalid || law("alpha") + 15.0 * law("beta") > 0.05, "{result:#}");
}
