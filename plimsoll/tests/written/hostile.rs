//! Text of others acts on no terminal and in no table, wherever it comes from.

use std::process::Output;

use serde_json::Value;

use crate::written::server::Server;
use crate::written::{Place, text};

/// Colours, the title, the cancel signal, the direction of writing, an 8-bit control sequence, and the start
/// of the line.
const HOSTILE: &str = "\x1b[31mred\x1b]0;pwned\x07\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\u{9b}2J\u{7f}\rx";
/// The text of [`HOSTILE`] as JSON escapes it.
const ESCAPED: &str = r"\u001b[31mred\u001b]0;pwned\u0007\u202e\u2066\u200f\u061c\u2028\u009b2J\u007f\rx";

/// Panics if something in a text acts on a terminal.
fn assert_harmless(what: &str, bytes: &[u8]) {
    let text = text(bytes);
    let acts = |c: &char| (c.is_control() && !matches!(c, '\n' | '\t')) || plimsoll_core::disguises(*c);
    if let Some(c) = text.chars().find(acts) {
        let at = text.find(c).unwrap_or_default();
        let from = text[..at].char_indices().rev().nth(80).map_or(0, |(at, _)| at);
        panic!("{what} has {c:?} after {:?}", &text[from..at]);
    }
}

fn assert_output_harmless(what: &str, output: &Output) {
    assert_harmless(&format!("stdout of {what}"), &output.stdout);
    assert_harmless(&format!("stderr of {what}"), &output.stderr);
    assert!(!text(&output.stderr).contains("panicked"), "{what}: {}", text(&output.stderr));
}

/// An HTTP/2 frame.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, 0, 0, 0, 0, 0], payload].concat()
}

/// An error of the cache protocol.
fn cache_error(words: &str) -> Vec<u8> {
    let (frame, content) = ((words.len() as u32 + 5).to_be_bytes(), (words.len() as u32).to_be_bytes());
    [&frame[..], &[4], &content, words.as_bytes()].concat()
}

#[test]
fn of_servers() {
    let place = Place::new();
    let head = |line: &str| format!("HTTP/1.1 {line}\r\n").into_bytes();
    let http = |line: String| head(&line);
    let go_away =
        [frame(4, &[]), frame(7, &[&[0, 0, 0, 0, 0, 0, 0, 2][..], HOSTILE.as_bytes()].concat())].concat();
    let answers: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("a status line", http(format!("200 {HOSTILE}\r\ncontent-length: 0\r\n")), &[]),
        ("no status", http(HOSTILE.to_owned()), &[]),
        ("no HTTP", HOSTILE.as_bytes().to_vec(), &[]),
        ("a header", http(format!("503 no\r\nx-{HOSTILE}: {HOSTILE}\r\ncontent-length: 0\r\n")), &[]),
        ("a body", http(format!("503 no\r\ncontent-length: {}\r\n\r\n{HOSTILE}", HOSTILE.len())), &[]),
        (
            "a redirect",
            http(format!("302 go\r\nlocation: {HOSTILE}\r\ncontent-length: 0\r\n")),
            &["--follow-redirects"],
        ),
        (
            "a redirect to nowhere",
            http("302 go\r\nlocation: mail:\u{202e}\u{9b}x\r\ncontent-length: 0\r\n".to_owned()),
            &["--follow-redirects"],
        ),
        ("a GOAWAY", go_away, &["--http2"]),
    ];
    for (what, answer, flags) in answers {
        let server = Server::that_says([&answer[..], b"\r\n"].concat());
        for more in
            [&["-o", "text", "--no-preflight"][..], &["-o", "json", "--no-preflight"], &["-o", "markdown"]]
        {
            let url = server.url();
            let args = ["run", &url, "-n", "3", "-c", "1", "--timeout", "2s", "--connect-timeout", "2s"];
            let output = place.output(&[&args[..], flags, more].concat());
            assert!(!output.stdout.is_empty() || output.status.code() == Some(1), "{what}: {output:?}");
            assert_output_harmless(what, &output);
        }
    }
    let server = Server::that_says(cache_error(HOSTILE));
    for flags in [&[][..], &["--no-preflight"]] {
        let address = server.address();
        let output = place.output(
            &[&["cache", "--server", address, "--cache", "c", "-n", "3", "--timeout", "5s"][..], flags]
                .concat(),
        );
        assert_output_harmless("a cache", &output);
        let all = text(&output.stdout) + &text(&output.stderr);
        assert!(all.contains("[31mred"), "the text is shown: {all}");
    }
}

#[test]
fn of_files_and_arguments() {
    let place = Place::new();
    let har = format!(
        r#"{{"log":{{"entries":[{{"startedDateTime":"2026-01-01T00:00:00Z","time":1,"request":{{"method":"GET","url":"http://127.0.0.1/{ESCAPED}","headers":[{{"name":"x","value":"{ESCAPED}"}}]}},"response":{{"status":200}}}}]}}}}"#
    );
    place.write("a.har", har);
    let openapi = format!(
        r#"{{"openapi":"3.0.0","info":{{"title":"{ESCAPED}","version":"1"}},"servers":[{{"url":"http://127.0.0.1/{ESCAPED}"}}],"paths":{{"/{ESCAPED}":{{"get":{{"operationId":"{ESCAPED}","responses":{{}}}}}}}}}}"#
    );
    place.write("openapi.json", openapi);
    place.write("h2.json", format!(r#"{{"host":"{ESCAPED}","port":1,"path":"/{ESCAPED}","{ESCAPED}":1}}"#));
    place.write("targets", format!("GET http://127.0.0.1/{HOSTILE}\n{HOSTILE}\n"));
    place.write("key.yaml", format!("targets: {{a: 'http://127.0.0.1:1/'}}\n\"{ESCAPED}\": 1\n"));
    place.write("raw.yaml", format!("name: {HOSTILE}\nscenarios: [\n"));
    place.write(
        "name.yaml",
        format!(
            "name: \"{ESCAPED}\"\ntargets: {{a: 'http://127.0.0.1:1/'}}\nscenarios:\n- name: \"{ESCAPED}\"\n\
             \x20 steps: [{{get: \"/{ESCAPED}\", name: \"{ESCAPED}\"}}]\nphases: [{{name: \"{ESCAPED}\"}}]\n"
        ),
    );
    place.write("rows.csv", format!("a,{HOSTILE}\n1,{HOSTILE}\n"));
    place.write(
        "data.yaml",
        "targets: {a: 'http://127.0.0.1:1/'}\ndata: {d: {csv: rows.csv}}\n\
         scenarios: [{data: [d], steps: [{get: '/${a}'}]}]\n",
    );
    place.write("lua.lua", format!("error(\"{}\")", ESCAPED.replace("\\u00", "\\x").replace("\\u", "")));
    let url = format!("http://127.0.0.1:1/{HOSTILE}");
    let tables: [&[&str]; 22] = [
        &["import", "har", "a.har"],
        &["import", "openapi", "openapi.json"],
        &["import", "h2loadrunner", "h2.json"],
        &["import", "vegeta", "targets"],
        &["import", "curl", "--", "curl", &url, "-H", HOSTILE, "--data", HOSTILE],
        &["import", "har", HOSTILE],
        &["check", "key.yaml"],
        &["check", "raw.yaml"],
        &["check", "name.yaml"],
        &["explain", "name.yaml"],
        &["run", "name.yaml", "-n", "1"],
        &["check", HOSTILE],
        &["check", "data.yaml"],
        &["run", "data.yaml", "-n", "1", "--no-preflight"],
        &["run", &url],
        &["run", "http://127.0.0.1:1/", "-s", "lua.lua"],
        &["run", "http://127.0.0.1:1/", "--json", HOSTILE, "--zz", HOSTILE],
        &[
            "run",
            "http://127.0.0.1:1/",
            "-H",
            HOSTILE,
            "--tag",
            HOSTILE,
            "--name",
            HOSTILE,
            "--rate",
            HOSTILE,
        ],
        &[HOSTILE],
        &["show", HOSTILE],
        &["runs", "--store", HOSTILE, "--tag", HOSTILE],
        &["compare", HOSTILE, HOSTILE],
    ];
    for args in tables {
        let output = place.output(args);
        assert!(!output.stdout.is_empty() || !output.stderr.is_empty(), "{args:?} says nothing");
        assert_output_harmless(&format!("{args:?}"), &output);
    }
}

/// Puts the text in the place of each text of a result, but for those whose values are known to the reader.
fn poison(value: &mut Value, name: &str, hostile: &str) {
    const KNOWN: [&str; 14] = [
        "schema_version",
        "model",
        "cause",
        "outcome",
        "thresholds",
        "kind",
        "finding",
        "started_at",
        "by",
        "unit",
        "state",
        "limited_by",
        "class",
        "time",
    ];
    match value {
        Value::String(text) if !KNOWN.contains(&name) => *text = hostile.to_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| poison(item, name, hostile)),
        Value::Object(members) => {
            members.iter_mut().for_each(|(name, member)| poison(member, &name.clone(), hostile));
            if matches!(name, "statuses" | "errors" | "error_examples" | "failed" | "protocols" | "resets") {
                let known = members.values().next().cloned();
                members.extend(known.map(|member| (hostile.to_owned(), member)));
            }
        }
        _ => {}
    }
}

#[test]
fn of_results_that_others_have_made() {
    let place = Place::new();
    let bad = format!("HTTP/1.1 503 no\r\ncontent-length: {}\r\n\r\n{HOSTILE}", HOSTILE.len());
    let server = Server::of_http(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec(), bad.into());
    place.result(&["run", &server.url(), "-n", "40", "-c", "1", "--json", "good.json", "--log", "l.ndjson"]);
    let good: Value = serde_json::from_slice(&place.read("good.json")).expect("it is JSON");
    let mut read = 0;
    // The result with all changes at once may not be readable any more: then each part by itself.
    let parts: Vec<String> = good.as_object().expect("an object").keys().cloned().collect();
    for part in parts {
        let mut result = good.clone();
        poison(&mut result[&part], &part, HOSTILE);
        place.write("bad.json", result.to_string());
        for format in ["summary", "text", "json", "csv", "markdown", "junit", "ndjson", "k6"] {
            let output = place.output(&["show", "bad.json", "-o", format]);
            assert_output_harmless(&format!("show -o {format} with a hostile {part}"), &output);
            read += u32::from(output.status.success());
        }
        for args in [
            &["compare", "good.json", "bad.json"][..],
            &["compare", "good.json", "bad.json", "-o", "markdown"],
            &["history", "good.json", "bad.json"],
            &["history", "good.json", "bad.json", "-o", "csv"],
            &["report", "bad.json", "--file", "-"],
        ] {
            assert_output_harmless(&format!("{args:?} with a hostile {part}"), &place.output(args));
        }
    }
    assert!(read > 60, "only {read} of them could be read");
}

#[test]
fn tables_have_neither_formulas_nor_escapes() {
    let place = Place::new();
    let server = Server::of_http(
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec(),
        b"HTTP/1.1 503 no\r\ncontent-length: 0\r\n\r\n".to_vec(),
    );
    let plan = format!(
        "targets: {{a: {}}}\nscenarios:\n- name: '=HYPERLINK(1)'\n  steps:\n  - {{get: /, name: \"@SUM(1+1)\\u202e\"}}\n",
        server.url()
    );
    place.write("plan.yaml", plan);
    let args = ["run", "plan.yaml", "-n", "30", "-c", "1", "--log", "l.csv", "--stats", "s.csv", "--save"];
    let names = ["--name", "+1+1", "--tag", "-x", "--out", "csv=o.csv", "--out", "markdown=o.md"];
    let output = place.result(&[&args[..], &names].concat());
    assert_output_harmless("a run", &output);
    place.write("runs.csv", place.result(&["runs", "-o", "csv"]).stdout);
    for name in ["l.csv", "s.csv", "o.csv", "o.md", "runs.csv"] {
        assert_harmless(name, &place.read(name));
    }
    for name in ["l.csv", "s.csv", "runs.csv"] {
        let table = text(&place.read(name));
        for cell in table.lines().flat_map(|line| line.split(',')) {
            let is_formula = cell.trim_matches('"').starts_with(['=', '+', '@', '-']);
            assert!(!is_formula || cell.parse::<f64>().is_ok(), "{name}: {cell}");
        }
    }
    assert!(
        text(&place.read("l.csv")).contains(",'=HYPERLINK(1),'@SUM(1+1)\u{fffd},"),
        "the names are there"
    );
}
