//! Secrets are sent, and stand in nothing that is written.

use plimsoll_report::evidence::Evidence;
use serde_json::Value;

use crate::written::server::Server;
use crate::written::{Place, text};

/// Text that every secret of these tests contains.
const MARK: &str = "zebra";

const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// With secrets of the server's.
const BAD: &str = "HTTP/1.1 503 no\r\ncontent-length: 2\r\nset-cookie: a=zebra-20\r\nx-auth-token: zebra-21\r\n\
                   location: http://a.test/?code=zebra-22\r\n\r\nno";

const FORMATS: [&str; 10] =
    ["summary", "text", "json", "csv", "markdown", "junit", "ndjson", "hgrm", "hlog", "k6"];

fn server() -> Server {
    Server::of_http(GOOD.into(), BAD.into())
}

/// Panics if a secret stands in a text, with its surroundings.
fn assert_free(what: &str, bytes: &[u8]) {
    let text = text(bytes);
    if let Some(at) = text.find(MARK) {
        let around: String =
            text.chars().skip(text[..at].chars().count().saturating_sub(120)).take(200).collect();
        panic!("a secret in {what}: …{around}…");
    }
}

/// Panics if a secret stands in a file of the place, of any name.
fn assert_files_free(place: &Place, but: &[&str]) {
    let mut count = 0;
    for entry in std::fs::read_dir(place.path()).expect("it is there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && !but.contains(&&*name) {
            assert_free(&name, &place.read(&name));
            count += 1;
        }
    }
    assert!(count > 10, "{count} files");
}

/// Reads the history in every way there is.
fn assert_history_free(place: &Place, run: &str) {
    for format in ["text", "json", "csv"] {
        assert_free("runs", &place.result(&["runs", "--store", "h.db", "-o", format]).stdout);
    }
    for format in FORMATS {
        let shown = place.result(&["show", run, "--store", "h.db", "-o", format]);
        assert_free(&format!("show -o {format}"), &shown.stdout);
        assert!(!shown.stdout.is_empty(), "{format}");
    }
    place.result(&["export", run, "--store", "h.db", "-o", "saved", "--file", "x.plimsoll"]);
    let exported = place.result(&["show", "x.plimsoll", "-o", "json"]);
    assert_free("a saved run", &exported.stdout);
    place.result(&["report", run, "--store", "h.db", "--file", "page.html"]);
    assert_free("report", &place.read("page.html"));
}

#[test]
fn a_run_of_flags_shows_none() {
    let (place, server) = (Place::new(), server());
    let url = format!("{}/a?token=zebra-1&b=2&Pin=zebra-2", server.url());
    let body = r#"{"user":"me","password":"zebra-3","deep":{"session":{"id":"zebra-4"}},"pin":"zebra-5"}"#;
    let otlp = format!("--otlp={}/?api_key=zebra-6", server.url());
    let mut args = vec!["run", &*url, "-n", "60", "-c", "2", "--name", "one", "--store", "h.db", "-b", body];
    args.extend(["-H", "X-Custom-Secret: zebra-7", "-H", "X-Mine:zebra-8", "-HAuthorization: zebra-9"]);
    args.extend(["--redact", "pin", "--redact", "x-mine", &*otlp, "--seed", "7"]);
    args.extend(["--log", "l.csv", "--failed", "f.txt", "--stats", "s.csv", "--report", "r.html"]);
    args.extend(["--evidence", "run.evidence"]);
    let files: Vec<String> =
        FORMATS[1..].iter().map(|format| format!("--out={format}=out.{format}")).collect();
    args.extend(files.iter().map(String::as_str));
    let said = place.result(&[&*args, &["-o", "json"]].concat());
    // All of it was sent.
    let asked = server.asked();
    for number in [1, 2, 3, 4, 5, 7, 8, 9] {
        assert!(asked.contains(&format!("zebra-{number}")), "zebra-{number} was not sent: {asked:.500}");
    }
    assert_free("stdout", &said.stdout);
    assert_free("stderr", &said.stderr);
    let result: Value = serde_json::from_slice(&said.stdout).expect("it is JSON");
    let shown = format!("{}/a?token=***&b=2&Pin=***", server.url());
    assert_eq!(result["run"]["targets"][0]["urls"][0], *shown);
    let args_shown: Vec<&str> =
        result["run"]["args"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let body_shown = r#"{"user":"me","password":"***","deep":{"session":"***"},"pin":"***"}"#;
    for expected in [&*shown, body_shown, "X-Custom-Secret: ***", "X-Mine: ***", "-HAuthorization: ***"] {
        assert!(args_shown.contains(&expected), "{expected}: {args_shown:?}");
    }
    // Behind the line of the signature it is compressed.
    let evidence = place.read("run.evidence");
    let line = evidence.iter().position(|byte| *byte == b'\n').expect("a first line");
    let evidence = Evidence::from_bytes(&evidence[line + 1..]).expect("it is evidence");
    let evidence = serde_json::to_vec(&evidence).expect("it is JSON");
    assert!(text(&evidence).contains(body_shown.replace('"', "\\\"").as_str()), "it has the command line");
    assert_free("evidence", &evidence);
    let failed = text(&place.read("f.txt"));
    for expected in [
        "POST /a?token=***&b=2&Pin=*** HTTP/1.1\n",
        "X-Mine: ***\n",
        "X-Custom-Secret: ***\n",
        body_shown,
        "set-cookie: ***\n",
        "location: http://a.test/?code=***\n",
    ] {
        assert!(failed.contains(expected), "{expected}: {failed:.1500}");
    }
    assert_history_free(&place, "one");
    assert_files_free(&place, &[]);
    // Names of secrets change nothing of the load.
    let checksum = |more: &[&str]| {
        let args = [&["run", &url, "-n", "1", "-b", body, "--seed", "7", "-o", "json"][..], more].concat();
        let result: Value = serde_json::from_slice(&place.result(&args).stdout).expect("it is JSON");
        (result["run"]["load_checksum"].clone(), result["run"]["plan_hash"].clone())
    };
    assert_eq!(checksum(&[]), checksum(&["--redact", "pin", "--redact", "user"]));
}

#[test]
fn a_run_of_a_plan_shows_none_and_keeps_what_is_none() {
    let (place, server) = (Place::new(), server());
    let plan = format!(
        "targets: {{api: {url}}}\n\
         run:\n  redact: [pin]\n  headers: ['X-Own-Token: zebra-1']\n\
         variables: {{api_key: zebra-2, page: seven}}\n\
         data:\n  people: {{columns: [user, password], list: [[ann, zebra-3], [bob, zebra-4]]}}\n\
         scenarios:\n- name: shop\n  data: [people]\n  steps:\n\
         \x20 - get: /a?access_token=zebra-5&page=${{page}}&key=${{api_key}}\n\
         \x20   headers: {{X-Custom-Secret: zebra-6}}\n\
         \x20 - post: /b\n    json: {{user: '${{user}}', password: '${{password}}', pin: zebra-7}}\n\
         \x20 - post: /c\n    body: 'user=x&client_secret=zebra-8'\n\
         \x20 - post: /d\n    body: \"{{\\\"password\\\":\\\"zebra-9\\\"}}\"\n\
         thresholds:\n- {{that: p99<10s, scenario: shop, step: 'GET /a?access_token=zebra-5&page=${{page}}&key=${{api_key}}'}}\n",
        url = server.url()
    );
    place.write("plan.yaml", &plan);
    let mut args = vec!["run", "plan.yaml", "-n", "30", "-c", "2", "--name", "two", "--store", "h.db"];
    args.extend(["--log", "l.ndjson", "--failed", "f.txt", "--stats", "s.csv", "--report", "r.html"]);
    let files: Vec<String> =
        FORMATS[1..].iter().map(|format| format!("--out={format}=out.{format}")).collect();
    args.extend(files.iter().map(String::as_str));
    let said = place.result(&args);
    assert_free("stdout", &said.stdout);
    assert_free("stderr", &said.stderr);
    let asked = server.asked();
    for number in 1..=9 {
        assert!(asked.contains(&format!("zebra-{number}")), "zebra-{number} was not sent: {asked:.500}");
    }
    assert_free("explain", &place.result(&["explain", "plan.yaml"]).stdout);
    assert_free("check", &place.result(&["check", "plan.yaml"]).stdout);
    assert_history_free(&place, "two");
    assert_files_free(&place, &["plan.yaml"]);
    let result: Value = serde_json::from_slice(&place.read("out.json")).expect("it is JSON");
    assert_eq!(result["by_step"][0]["step"], "GET /a?access_token=***&page=${page}&key=${api_key}");
    // The environment names them as well.
    let environment = place
        .command(&["run", &format!("{}/?colour=zebra-30", server.url()), "-n", "1", "-o", "json"])
        .env("PLIMSOLL_REDACT", "shape\ncolour")
        .output()
        .expect("the program was built");
    assert_free("stdout", &environment.stdout);
    let refused = place.output(&["run", &server.url(), "--redact", "a=b"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("error: --redact: `a=b` is not a name\nhint: "), "{refused:?}");
}
