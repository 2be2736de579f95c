//! Recordings.

use plimsoll_import::har::{Options, import};
use serde_json::{Value, json};

use crate::shown;

fn imported(value: &Value, options: &Options) -> String {
    shown(&import(value.to_string().as_bytes(), options))
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
    let options = Options { think: false, only: Some("Shop.example".to_owned()), expect_status: true };
    insta::assert_snapshot!("recording_of_one_host", imported(&recording(), &options));
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
    text.push_str(&shown(&import(b"{\"log\": }", &Options::default())));
    insta::assert_snapshot!(text);
}
