//! Recordings.

use plimsoll_import::har::{Options, Server, import};
use serde_json::{Value, json};

use crate::import::{checked_alone, shown};

fn imported(value: &Value, options: &Options) -> String {
    shown(&checked_alone(import(value.to_string().as_bytes(), options)))
}

fn entry(page: &str, start: &str, time: f64, request: Value) -> Value {
    json!({"pageref": page, "startedDateTime": start, "time": time, "request": request,
           "response": {"status": 200}, "cache": {}, "timings": {}, "_priority": "High"})
}

fn recording() -> Value {
    let get = |url: &str| json!({"method": "GET", "url": url, "httpVersion": "h2", "headers": []});
    json!({"log": {
        "version": "1.2", "creator": {},
        "pages": [
            {"id": "p2", "startedDateTime": "2026-01-01T00:00:10Z", "title": "second"},
            {"id": "p1", "startedDateTime": "2026-01-01T00:00:00Z", "title": "first"}
        ],
        "entries": [
            entry("p2", "2026-01-01T00:00:10.5Z", 100.0, json!({
                "method": "POST", "url": "https://shop.example/cart?x=${y}", "httpVersion": "h2",
                "cookies": [{"name": "a", "value": "1"}], "queryString": [],
                "headers": [
                    {"name": ":authority", "value": "shop.example"}, {"name": "Connection", "value": "close"},
                    {"name": "Content-Length", "value": "3"}, {"name": "Cookie", "value": "a=1"},
                    {"name": "X-Y", "value": "1"}, {"name": "X-Y", "value": "2"}
                ],
                "postData": {"mimeType": "application/x-www-form-urlencoded", "params": [
                    {"name": "item", "value": "a b"}, {"name": "n", "value": "1"}]}
            })),
            entry("p1", "2026-01-01T01:00:00.250+01:00", 50.5, get("https://shop.example/style.css")),
            entry("p1", "2026-01-01T00:00:00Z", 300.0, get("https://shop.example/")),
            entry("p2", "2026-01-01T00:00:11Z", 1.0, json!({
                "method": "PUT", "url": "https://shop.example/note", "headers": [],
                "postData": {"mimeType": "text/plain", "text": "keep ${this}"}, "unknown": 1
            })),
            entry("p2", "2026-01-01T00:00:12Z", 1.0, get("wss://shop.example/live")),
            entry("p2", "2026-01-01T00:00:13Z", 1.0, get("https://ads.example/pixel"))
        ]
    }})
}

#[test]
fn a_recording_becomes_steps_with_think_time() {
    insta::assert_snapshot!("recording", imported(&recording(), &Options::default()));
    let options = Options {
        think: false,
        only: Some("Shop.example".to_owned()),
        expect_status: true,
        ..Options::default()
    };
    insta::assert_snapshot!("recording_of_one_host", imported(&recording(), &options));
}

/// An entry of a session: method, URL, headers, a body and its type, and the response's headers and body.
fn exchange(
    second: u64,
    request: (&str, &str, Value, Option<(&str, &str)>),
    response: (Value, &str),
) -> Value {
    let (method, url, headers, body) = request;
    let mut sent = json!({"method": method, "url": url, "headers": headers});
    if let Some((media_type, text)) = body {
        sent["postData"] = json!({"mimeType": media_type, "text": text});
    }
    json!({"startedDateTime": format!("2026-01-01T00:00:{second:02}Z"), "time": 1.0, "request": sent,
           "response": {"status": 200, "headers": response.0, "content": {"text": response.1}}})
}

fn fields<const N: usize>(fields: [(&str, &str); N]) -> Value {
    fields.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

#[test]
fn values_of_responses_become_variables() {
    let none = || fields([]);
    let entries = json!([
        exchange(
            0,
            ("GET", "https://shop.example/login?lang=en-GB-2026", none(), None),
            (
                fields([("Set-Cookie", "visit=v1; Path=/")]),
                "<form>\n<input type=hidden name='csrf' value='k+9/q2==x'> <a href='/terms-2026-11'>"
            )
        ),
        exchange(
            1,
            (
                "POST",
                "https://shop.example/login",
                fields([("Cookie", "visit=v1; theme=dark")]),
                Some((
                    "application/x-www-form-urlencoded",
                    "user=ann-1984%40x.example&csrf=k%2B9%2Fq2%3D%3Dx"
                ))
            ),
            (
                fields([
                    ("Location", "https://shop.example/accounts/0c9f81d2?from=login"),
                    ("Date", "2026-01-01")
                ]),
                ""
            )
        ),
        exchange(
            2,
            (
                "GET",
                "https://shop.example/accounts/0c9f81d2?from=login",
                fields([("Referer", "https://shop.example/login?lang=en-GB-2026")]),
                None
            ),
            (
                none(),
                r#"{"user": "ann-1984@x.example", "access_token": "eyJhbGciOi.J9", "id": 7,
                    "old": [{"id": 17}]}"#
            )
        ),
        exchange(
            3,
            (
                "PUT",
                "https://shop.example/orders/17",
                fields([("Authorization", "Bearer eyJhbGciOi.J9"), ("Content-Type", "application/json")]),
                Some((
                    "application/json",
                    r#"{"user": "ann-1984@x.example", "account_id": 7, "count": 17, "7": [7]}"#
                ))
            ),
            (fields([("ETag", "\"v-00000001\"")]), "{}")
        ),
        exchange(
            4,
            (
                "GET",
                "https://shop.example/orders/17/lines",
                fields([("If-None-Match", "\"v-00000001\""), ("User-Agent", "eyJhbGciOi.J9")]),
                None
            ),
            (none(), "")
        ),
    ]);
    let recording = json!({"log": {"entries": entries}});
    let options = Options { think: false, ..Options::default() };
    insta::assert_snapshot!("correlated", imported(&recording, &options));
    let as_recorded = Options { think: false, correlate: false, ..Options::default() };
    let written = imported(&recording, &as_recorded);
    assert!(
        !written.contains("${") && !written.contains("extract") && written.contains("visit=v1"),
        "{written}"
    );
}

/// Requests of one page: begin, wait for the response, and its length, all in milliseconds.
fn page(version: &str, requests: &[(u64, u64, u64, Value)]) -> Value {
    let entries: Vec<Value> = requests
        .iter()
        .map(|(start, wait, receive, response)| {
            json!({"pageref": "p", "startedDateTime": format!("2026-01-01T00:00:{:02}.{:03}Z", start / 1000, start % 1000),
                   "time": wait + receive, "timings": {"wait": wait, "receive": receive},
                   "request": {"method": "GET", "url": format!("http://a/{start}"), "httpVersion": version, "headers": [
                       {"name": "x-of", "value": response["of"].as_str().unwrap_or("none")}]},
                   "response": {"status": 200, "headers": [{"name": "x-id", "value": response["id"].as_str().unwrap_or("none")}]}})
        })
        .collect();
    let start = "2026-01-01T00:00:00Z";
    json!({"log": {"pages": [{"id": "p", "startedDateTime": start}], "entries": entries}})
}

#[test]
fn resources_of_a_page_are_sent_at_once() {
    let none = || json!({});
    // The document is read while the first two resources are asked for. One depends on the first response: it
    // was sent after it.
    let recorded = page(
        "http/1.1",
        &[
            (0, 100, 300, none()),
            (150, 50, 10, json!({"id": "token-123456"})),
            (160, 90, 10, none()),
            (205, 50, 0, json!({"of": "token-123456"})),
            (900, 10, 0, none()),
        ],
    );
    insta::assert_snapshot!("resources_at_once", imported(&recorded, &Options::default()));
    let options = Options { parallel: false, ..Options::default() };
    let plain = imported(&recorded, &options);
    assert!(!plain.contains("parallel"), "{plain}");
    // A value of a response that came later cannot be in a request that was sent with it.
    let same = || json!({"id": "token-123456", "of": "token-123456"});
    let recorded = page("http/1.1", &[(0, 100, 0, same()), (1, 100, 0, same())]);
    let together = imported(&recorded, &Options::default());
    assert!(together.contains("parallel") && !together.contains("extract"), "{together}");
}

#[test]
fn as_many_requests_are_sent_at_once_as_a_browser_would_send() {
    let many: Vec<_> = (0..150).map(|index| (index, 1000, 0, json!({}))).collect();
    for (version, groups) in [("http/1.1", 25), ("h2", 2)] {
        let plan = imported(&page(version, &many), &Options::default());
        assert_eq!(plan.matches("parallel:").count(), groups, "{plan}");
    }
    // Without times nothing is known of what was under way together.
    let mut recorded = page("h2", &many);
    for entry in recorded["log"]["entries"].as_array_mut().expect("a list") {
        entry["time"] = json!(-1);
    }
    assert!(!imported(&recorded, &Options::default()).contains("parallel:"));
}

#[test]
fn a_request_that_failed_in_the_recording_is_expected_to_fail() {
    let mut missing =
        exchange(0, ("GET", "http://shop.example/favicon.ico", fields([]), None), (fields([]), ""));
    missing["response"]["status"] = json!(404);
    let fine = exchange(1, ("GET", "http://shop.example/", fields([]), None), (fields([]), ""));
    let written = imported(&json!({"log": {"entries": [missing, fine]}}), &Options::default());
    let note = "note: /log/entries/0: `/favicon.ico`: the status was 404 in the recording: it is expected";
    assert!(written.contains(note), "{written}");
    assert_eq!(written.matches("status:\n").count(), 1, "{written}");
}

#[test]
fn parts_of_a_form_are_those_of_the_recording() {
    let mut upload = exchange(0, ("POST", "http://shop.example/up", fields([]), None), (fields([]), ""));
    upload["request"]["headers"] =
        json!([{"name": "Content-Type", "value": "multipart/form-data; boundary=----WebKit7"}]);
    upload["request"]["postData"] = json!({"mimeType": "multipart/form-data; boundary=----WebKit7", "params": [
        {"name": "title", "value": "costs ${5}"},
        {"name": "file", "fileName": "a.png", "contentType": "image/png"}]});
    let written = imported(&json!({"log": {"entries": [upload]}}), &Options::default());
    // Whatever its place in the plan is.
    let lines: Vec<&str> = written.lines().map(str::trim_start).collect();
    let begin = lines.iter().position(|line| *line == "multipart:").expect("a form");
    assert_eq!(
        lines[begin + 1..begin + 7],
        [
            "- name: title",
            "value: costs $${5}",
            "- name: file",
            "value: \"\"",
            "filename: a.png",
            "content_type: image/png"
        ],
        "{written}"
    );
    assert!(written.contains("boundary=----WebKit7"), "{written}");
    let note = "note: /log/entries/0/request/postData/params/1: `a.png`: its content was not recorded: an empty file \
                is sent; name yours as `file`";
    assert!(written.contains(note), "{written}");
}

#[test]
fn servers_take_the_place_of_those_of_the_recording() {
    let servers = ["ads.example=http://127.0.0.1:9000", "https://localhost:8443"];
    let servers = servers.map(|server| Server::parse(server).unwrap()).to_vec();
    let entry = |url: &str| exchange(0, ("GET", url, fields([]), None), (fields([]), ""));
    let recording =
        json!({"log": {"entries": [entry("https://shop.example/a"), entry("http://ads.example:80/b")]}});
    let written = imported(&recording, &Options { servers, ..Options::default() });
    assert!(
        written.contains("https://localhost:8443/a") && written.contains("http://127.0.0.1:9000/b"),
        "{written}"
    );
    for (server, wrong) in [
        ("localhost", "`localhost` is no URL of a server: it has no scheme"),
        ("http://a/b", "`http://a/b` has more than scheme, host and port"),
        ("=http://a", "the host before `=` is missing"),
    ] {
        assert_eq!(Server::parse(server).unwrap_err(), wrong);
    }
}

#[test]
fn mistakes() {
    let with = |entries: Value| json!({"log": {"entries": entries}});
    let mut text = String::new();
    for value in [
        json!(null),
        json!({}),
        with(json!([])),
        with(json!({})),
        with(
            json!([{}, {"request": {"method": "A B", "url": "http://h/"}}, {"request": {"url": "http://"}}]),
        ),
        with(json!([entry(
            "",
            "yesterday",
            -1.0,
            json!({"url": "http://h/", "postData":
            {"mimeType": "multipart/form-data", "params": []}})
        )])),
        with(json!([entry(
            "",
            "",
            0.0,
            json!({"url": "http://h/", "postData":
            {"text": "AA==", "encoding": "base64"}})
        )])),
        with(json!([{"_fromCache": "memory", "request": {"url": "http://h/"}}])),
    ] {
        text.push_str(&format!("# {value}\n{}\n", imported(&value, &Options::default())));
    }
    let options = Options { only: Some("other".to_owned()), ..Options::default() };
    text.push_str(&imported(&recording(), &options));
    text.push_str(&shown(&checked_alone(import(b"{\"log\": }", &Options::default()))));
    insta::assert_snapshot!(text);
}
