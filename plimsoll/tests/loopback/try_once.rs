//! `plimsoll try`: each scenario of a plan once, with every exchange in full.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::loopback::process::{Finished, Folder, Process, plimsoll, run};
use crate::loopback::sink::Sink;

fn tried(plan: &str) -> (Finished, Value) {
    let finished = run(&format!("try {plan} -o json"));
    let value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", finished.stdout, finished.stderr));
    (finished, value)
}

/// The built-in CRUD server, which answers with the sent item.
fn crud() -> (Process, String) {
    let mut target = Process::start(plimsoll("target crud --listen 127.0.0.1:0 --drop 0 --fail 0"));
    let line = target.stderr.wait_for("listening on ");
    let url = line.split("listening on ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let url =
        format!("http://{}", url.expect("an address").trim_start_matches("http://").trim_end_matches('/'));
    (target, url)
}

#[test]
fn every_scenario_is_carried_out_once_with_its_values() {
    let folder = Folder::new();
    let (_target, url) = crud();
    folder.write(
        "plan.yaml",
        format!(
            "run: {{rate: 500/s, duration: 60s, bearer: topsecret}}
targets: {{api: \"{url}\"}}
thresholds: ['p99<1us']
scenarios:
  - name: write
    weight: 9
    steps:
      - post: /items
        json: {{name: first}}
        extract: {{item: {{header: location, as_path: true}}, token: {{header: location}}}}
      - get: ${{item}}
        expect: {{status: 200, headers: {{content-length: {{exists: true}}}}}}
  - name: read
    start_after: 30s
    steps:
      - get: /items
        expect: {{status: 404}}
"
        ),
    );
    let (finished, value) = tried(&folder.file("plan.yaml"));
    assert_eq!(finished.code, Some(0), "{value:#} {}", finished.stderr);
    let exchanges = value["exchanges"].as_array().expect("a list");
    let seen: Vec<_> = exchanges.iter().map(|one| (&one["scenario"], &one["request"]["method"])).collect();
    let want = [("write", "POST"), ("write", "GET"), ("read", "GET")];
    let want: Vec<_> = want.iter().map(|(scenario, method)| (json!(scenario), json!(method))).collect();
    assert!(seen.iter().map(|(a, b)| ((*a).clone(), (*b).clone())).eq(want), "{value:#}");
    let [post, get, _] = &exchanges[..] else { panic!("{value:#}") };
    assert_eq!(post["request"]["body"], json!("{\"name\":\"first\"}"));
    let head = post["response"]["head"].as_str().expect("a text");
    let location = head.lines().find_map(|line| line.strip_prefix("location: ")).expect("it is there");
    let (item, token) = (&post["extracted"][0], &post["extracted"][1]);
    assert_eq!((&item["name"], &item["value"]), (&json!("item"), &json!(location)), "{value:#}");
    assert_eq!(token["value"], json!("***"), "a value by this name is not shown");
    let url = format!("{url}{location}");
    assert_eq!((&get["request"]["url"], &get["response"]["status"]), (&json!(url), &json!(200)));
    assert_eq!(get["checks"][0]["passed"], json!(true), "{value:#}");
    assert!(!finished.stdout.contains("topsecret"), "{}", finished.stdout);
}

#[test]
fn a_failed_check_shows_the_answer_and_the_reason() {
    let folder = Folder::new();
    let sink = Sink::start("");
    folder.write(
        "plan.yaml",
        format!(
            "targets: {{api: \"{}\"}}
scenarios:
  - steps:
      - name: first
        get: /a
        expect: {{headers: {{x-none: {{exists: true}}}}}}
      - name: second
        get: /b
",
            sink.url()
        ),
    );
    let (finished, value) = tried(&folder.file("plan.yaml"));
    assert_eq!(finished.code, Some(1), "{value:#}");
    let exchanges = value["exchanges"].as_array().expect("a list");
    // The iteration ends with its first failure, as in a run.
    assert_eq!((exchanges.len(), &value["ok"], &value["unfinished"]), (1, &json!(false), &json!(1)));
    let first = &exchanges[0];
    assert_eq!((&first["error"]["class"], &first["response"]["status"]), (&json!("check"), &json!(200)));
    assert!(first["error"]["message"].as_str().is_some_and(|text| text.contains("x-none")), "{first:#}");
    let shown = run(&format!("try {}", folder.file("plan.yaml")));
    for part in [
        "> GET /a HTTP/1.1\n",
        "< HTTP/1.1 200",
        "! check: ",
        "1 of 1 exchange failed; 1 of 1 iteration did not finish",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
}

/// Symptom: "2 of 2 iterations did not finish" where the setup had failed and the iteration was not tried, and
/// "1 exchanges".
#[test]
fn exchanges_and_iterations_are_counted_as_they_were() {
    let (folder, sink) = (Folder::new(), Sink::start(""));
    let url = sink.url();
    for (name, setup, more, said) in [
        ("good", "", "", "1 exchange, and it is good"),
        ("two", "", "\n      - get: /c", "2 exchanges, all of them good"),
        (
            "setup",
            "setup:\n  - {get: /a, expect: {status: 500}}\n",
            "",
            "1 of 1 exchange failed; the setup did not finish, so 1 iteration was not tried",
        ),
    ] {
        let plan =
            format!("targets: {{api: \"{url}\"}}\n{setup}scenarios:\n  - steps:\n      - get: /b{more}\n");
        let file = folder.file(name) + ".yaml";
        folder.write(&format!("{name}.yaml"), plan);
        let shown = run(&format!("try {file}"));
        assert!(shown.stdout.trim_end().ends_with(said), "{name}: {}{}", shown.stdout, shown.stderr);
        assert_eq!(shown.code, Some(i32::from(name == "setup")), "{name}: {}", shown.stdout);
    }
}

#[test]
fn a_server_that_is_not_there_and_a_wrong_plan_are_told_as_data() {
    let (finished, value) = tried("http://127.0.0.1:1/x");
    assert_eq!((finished.code, &value["ok"]), (Some(1), &json!(false)), "{value:#}");
    assert!(value.to_string().contains("refused"), "{value:#}");
    let folder = Folder::new();
    folder.write("plan.yaml", "run:\n  rat: 5\ntargets: {a: 'http://127.0.0.1:1'}\nscenarios: []\n");
    for command in ["check", "explain", "try"] {
        let refused = run(&format!("{command} {} -o json", folder.file("plan.yaml")));
        assert_eq!(refused.code, Some(2), "{command}: {}", refused.stderr);
        let value: Value = serde_json::from_str(&refused.stdout).expect("it is JSON");
        let problem = &value["problems"][0];
        assert_eq!((&value["ok"], &problem["severity"]), (&json!(false), &json!("error")));
        let place = [&problem["line"], &problem["column"], &problem["length"]];
        assert_eq!(place, [&json!(2), &json!(3), &json!(3)], "{command}: {value:#}");
        assert_eq!(problem["hint"], json!("did you mean `rate`?"));
    }
}

/// Symptom: over HTTP/2 the request of a script was shown without the content-length that it was sent with.
#[test]
fn the_length_of_a_body_that_a_script_has_made_is_shown() {
    let (folder, sink) = (Folder::new(), Sink::start(""));
    folder.write(
        "plan.yaml",
        format!(
            "targets: {{api: \"{}\"}}
scenarios:
  - name: s
    steps:
      - post: /x
        body: hello
        script: |
          function make_request(response, payload, headers, body)
            return headers, body .. ' again'
          end
",
            sink.url().trim_end_matches('/')
        ),
    );
    for version in ["--http1.1", "--http2"] {
        let finished = run(&format!("try {} {version} -o json", folder.file("plan.yaml")));
        let value: Value =
            serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
        let request = &value["exchanges"][0]["request"];
        assert_eq!(request["body"], "hello again", "{version}: {value:#}");
        let head = request["head"].as_str().unwrap_or_default();
        assert_eq!(head.matches("\ncontent-length: 11").count(), 1, "{version}: {value:#}");
    }
}

/// A server that answers by the path: `/lead/STATUS/LOCATION` leads there, with a body, all others are good.
fn leading() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    // It ends with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let (mut first, mut length) = (String::new(), 0);
            let _ = stream.read_line(&mut first);
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).is_err() || line.trim().is_empty() {
                    break;
                }
                let line = line.to_ascii_lowercase();
                length =
                    line.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap_or(0));
            }
            let _ = stream.read_exact(&mut vec![0; length]);
            let path = first.split(' ').nth(1).unwrap_or_default();
            let leads = path.strip_prefix("/lead/").and_then(|rest| rest.split_once('/'));
            let head = match leads {
                Some((status, to)) if to.starts_with("http:") => format!("{status} Away\r\nlocation: {to}"),
                Some((status, to)) => format!("{status} Away\r\nlocation: /{to}"),
                None => "200 OK\r\nx-token: t1".to_owned(),
            };
            let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 3\r\nconnection: close\r\n\r\nhi\n");
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

/// Symptom: a request that was redirected was "1 exchange", its last.
#[test]
fn every_hop_of_a_redirect_is_shown() {
    let (folder, server, other) = (Folder::new(), leading(), leading());
    let away = format!("/lead/302/{other}/x");
    for (name, step, wanted, failed) in [
        ("none", "get: /x".to_owned(), vec![("GET", "/x", 200)], false),
        ("one", "get: /lead/302/x".to_owned(), vec![("GET", "/lead/302/x", 302), ("GET", "/x", 200)], false),
        (
            "two",
            "get: /lead/301/lead/307/x".to_owned(),
            vec![("GET", "/lead/301/lead/307/x", 301), ("GET", "/lead/307/x", 307), ("GET", "/x", 200)],
            false,
        ),
        (
            "another method",
            "{post: /lead/303/x, body: b}".to_owned(),
            vec![("POST", "/lead/303/x", 303), ("GET", "/x", 200)],
            false,
        ),
        (
            "the same method",
            "{post: /lead/308/x, body: b}".to_owned(),
            vec![("POST", "/lead/308/x", 308), ("POST", "/x", 200)],
            false,
        ),
        ("away", format!("get: {away}"), vec![("GET", &*away, 302), ("GET", "/x", 200)], false),
        (
            "too many",
            "get: /lead/302/lead/302/lead/302/x".to_owned(),
            vec![
                ("GET", "/lead/302/lead/302/lead/302/x", 302),
                ("GET", "/lead/302/lead/302/x", 302),
                ("GET", "/lead/302/x", 302),
            ],
            true,
        ),
    ] {
        let step = step.trim_matches(['{', '}']);
        let plan = format!(
            "run: {{follow_redirects: 2}}\ntargets: {{api: \"{server}\"}}\nscenarios:\n  - steps:\n      - \
             {{{step}, extract: {{t: {{header: x-token}}}}}}\n      - get: /last\n"
        );
        folder.write("plan.yaml", plan);
        let (finished, value) = tried(&folder.file("plan.yaml"));
        assert_eq!(finished.code, Some(i32::from(failed)), "{name}: {value:#}");
        let exchanges = value["exchanges"].as_array().expect("a list");
        let mut all = wanted.clone();
        if !failed {
            all.push(("GET", "/last", 200));
        }
        let seen: Vec<(&str, &str, u64)> = exchanges
            .iter()
            .map(|one| {
                let url = one["request"]["url"].as_str().expect("a text");
                let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
                let method = one["request"]["method"].as_str().expect("a text");
                (method, path.expect("a path"), one["response"]["status"].as_u64().expect("a number"))
            })
            .collect();
        assert_eq!(seen, all, "{name}: {value:#}");
        // The body of each, values of the last alone, and nothing that was left out.
        let is_whole = |one: &Value| one["response"]["body"] == json!("hi\n");
        assert!(exchanges.iter().all(is_whole), "{name}: {value:#}");
        for (one, hop) in exchanges.iter().zip(1..) {
            let goes_on = hop < wanted.len();
            assert_eq!(!one["went_on"].is_null(), goes_on, "{name}, {hop}: {one:#}");
            let takes = !goes_on && !failed && hop == wanted.len();
            let extracted = if takes { json!([{"name": "t", "value": "t1"}]) } else { json!([]) };
            if !failed || goes_on {
                assert_eq!(one["extracted"], extracted, "{name}, {hop}: {one:#}");
            }
        }
        assert_eq!(value["more_exchanges"], json!(0), "{name}: {value:#}");
        let shown = run(&format!("try {}", folder.file("plan.yaml")));
        let count = all.len();
        let said = match failed {
            false => format!("{count} exchanges, all of them good"),
            true => format!("1 of {count} exchanges failed; 1 of 1 iteration did not finish"),
        };
        assert!(shown.stdout.trim_end().ends_with(&said), "{name}: {}", shown.stdout);
        let followed = shown.stdout.matches("= the redirect was followed\n").count();
        assert_eq!(followed, wanted.len() - 1, "{name}: {}", shown.stdout);
    }
}
