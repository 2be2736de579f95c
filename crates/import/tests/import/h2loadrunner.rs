//! Configurations of h2loadrunner.

use std::path::{Path, PathBuf};

use plimsoll_document::{Files, Problems};
use plimsoll_import::h2loadrunner::note_on_count;
use plimsoll_import::{Imported, h2loadrunner};
use plimsoll_plan::Disk;
use serde_json::{Value, json};

use crate::import::checked::syntax_error;
use crate::import::{Named, checked, shown};

/// Imports a configuration whose scripts can be read.
fn import(text: &[u8], folder: &Path, files: &dyn Files) -> Result<Imported, Problems> {
    checked(h2loadrunner::import(text, folder, files, &syntax_error), folder, files)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/h2loadrunner")
}

#[test]
fn examples() {
    for name in [
        "basic_get",
        "cookies",
        "crud_location",
        "data_get",
        "defaults",
        "feed_file",
        "load_share",
        "lua",
        "mixed_weights",
        "mtls",
        "parallel",
        "response_match",
        "subscribe_update_delete",
        "subscriptions_with_scripts",
        "two_dimensional",
        "user_ids",
        "variables",
        "value_pickers",
    ] {
        let text = std::fs::read(folder().join(format!("{name}.json"))).unwrap();
        insta::assert_snapshot!(name, shown(&import(&text, &folder(), &Disk)));
    }
}

/// A configuration in which every object of the format is there once.
fn base() -> Value {
    json!({
        "schema": "https", "host": "h", "port": 1,
        "load-share-hosts": [{"host": "g", "port": 2}],
        "Scenarios": [{
            "name": "s",
            "range-based-variables":
                [{"variable-name": "v", "variable-range-start": 1, "variable-range-end": 9}],
            "two-dimensional-variables": [{"variable-name": "w", "file-name": "one.csv"}],
            "Requests": [
                {"uri": {"typeOfAction": "input", "input": "/0/${v}/${w}"}, "method": "GET"},
                {
                    "uri": {"typeOfAction": "input", "input": "/1"}, "method": "PUT",
                    "response-match": {
                        "headers": [{"header-name": "a", "matchType": "EqualsTo", "input": "b"}],
                        "payload": [{"JsonPointer": "/c", "matchType": "EqualsTo", "input": "d"}]
                    },
                    "value-pickers": [{
                        "where-to-pickup-from": "Response-Header", "source": "e", "regexp": ".*",
                        "save-to-variable": "f"
                    }]
                }
            ]
        }]
    })
}

/// Every field of the format, a value, and its effect: a part of the plan, or of the notes.
fn fields() -> Vec<(&'static str, Value, &'static str)> {
    let top = vec![
        ("/schema", json!("http"), "url: http://h:1"),
        ("/host", json!("x"), "url: https://x:1"),
        ("/port", json!(99), "url: https://h:99"),
        ("/load-share-hosts/0/host", json!("y"), "- y:2"),
        ("/load-share-hosts/0/port", json!(98), "- g:98"),
        ("/open-new-connection-based-on-authority-header", json!(true), ""),
        ("/connection-retry", json!(false), "fail_over: false"),
        ("/switch-back-after-connection-retry", json!(true), "fail_back: true"),
        ("/threads", json!(3), "threads: 3"),
        ("/clients", json!(5), "connections: 5"),
        ("/duration", json!(7), "duration: 7s"),
        ("/total-requests", json!(8), "iterations: 4"),
        ("/warm-up-time", json!(1.5), "warmup: 1500ms"),
        ("/max-concurrent-streams", json!(6), "max_concurrent_streams: 6"),
        ("/request-per-second", json!(3), "rps: 3"),
        ("/request-per-second-feed-file", json!("r"), "/request-per-second-feed-file: `r`"),
        ("/rate", json!(4), "connection_rate: 4"),
        ("/rate-period", json!(2), "/rate-period: without `rate`"),
        ("/stream-timeout", json!(1500), "timeout: 1500ms"),
        ("/ciphers", json!("c"), "/ciphers: `c`"),
        ("/caCert", json!("ca"), "/caCert: `ca`"),
        ("/cert", json!("ce"), "cert: ce"),
        ("/privateKey", json!("k"), "/privateKey: `k`"),
        ("/certVerificationMode", json!(1), "!insecure: true"),
        ("/max-tls-version", json!("TLSv1.2"), "tls: "),
        ("/no-tls-proto", json!("http/1.1"), ""),
        ("/npn-list", json!("h2"), "alpn: h2\n"),
        ("/connection-active-timeout", json!(10), "connection_lifetime: 10ms"),
        ("/connection-inactivity-timeout", json!(11), "connection_inactivity: 11ms"),
        ("/interval-between-ping-frames", json!(12), "ping_interval: 12s"),
        ("/header-table-size", json!(13), "header_table_size: 13"),
        ("/encoder-header-table-size", json!(14), "encoder_header_table_size: 14"),
        ("/window-bits", json!(17), " window_bits: 17"),
        ("/connection-window-bits", json!(8), "connection_window_bits: 16"),
        ("/socket-receive-buffer-size", json!(19), "/socket-receive-buffer-size: `19`"),
        ("/socket-send-buffer-size", json!(20), "/socket-send-buffer-size: `20`"),
        ("/log-file", json!("l"), " log: l"),
        ("/failed-request-log-file", json!("fl"), "failed: fl"),
        ("/statistics-interval", json!(21), " interval: 21s"),
        ("/statistics-file", json!("st"), "stats: st"),
        ("/builtin-server-listening-port", json!(22), "control: \"127.0.0.1:22\""),
    ];
    let scenario = vec![
        ("/Scenarios/0/name", json!("renamed"), "name: renamed"),
        ("/Scenarios/0/weight", json!(0), "no scenario ever begins"),
        ("/Scenarios/0/interval-to-wait-before-start", json!(30), ""),
        ("/Scenarios/0/run-requests-in-parallel", json!(true), "parallel:"),
        ("/Scenarios/0/user-id-variable-in-path-and-data", json!("/0"), "`/0` has no values"),
        ("/Scenarios/0/user-id-range-start", json!(1), "/user-id-range-start: without"),
        ("/Scenarios/0/user-id-range-end", json!(2), "/user-id-range-end: without"),
        ("/Scenarios/0/user-id-range-slicing", json!(false), "share: whole"),
        ("/Scenarios/0/user-id-list-file", json!("one.csv"), "/user-id-list-file: without"),
        ("/Scenarios/0/user-variables-input-file", json!("two.csv"), "csv: two.csv"),
        ("/Scenarios/0/range-based-variables/0/variable-name", json!("z"), "no variable has this name"),
        ("/Scenarios/0/range-based-variables/0/variable-range-start", json!(3), "- 3"),
        ("/Scenarios/0/range-based-variables/0/variable-range-end", json!(40), "- 40"),
        ("/Scenarios/0/two-dimensional-variables/0/variable-name", json!("z"), "no variable has this name"),
        ("/Scenarios/0/two-dimensional-variables/0/file-name", json!("two.csv"), "csv: two.csv"),
    ];
    let request = vec![
        ("/Scenarios/0/Requests/0/uri/typeOfAction", json!("fromLuaScript"), "the script that sets the path"),
        ("/Scenarios/0/Requests/0/uri/input", json!("/p"), "get: /p"),
        ("/Scenarios/0/Requests/0/method", json!("PURGE"), "method: PURGE"),
        ("/Scenarios/0/Requests/0/payload", json!("text"), "body: text"),
        ("/Scenarios/0/Requests/0/additonalHeaders", json!(["nn:  v "]), "nn: v\n"),
        ("/Scenarios/0/Requests/0/luaScript", json!("function make_request() end"), "script: "),
        ("/Scenarios/0/Requests/0/expected-status-code", json!(418), "- 418"),
        ("/Scenarios/0/Requests/0/clear-old-cookies", json!(true), "clear_cookies: true"),
        ("/Scenarios/0/Requests/0/delay-before-executing-next", json!(31), "think: 31ms"),
        ("/Scenarios/0/Requests/1/response-match/headers/0/header-name", json!("aa"), "aa:"),
        ("/Scenarios/0/Requests/1/response-match/headers/0/matchType", json!("EndsWith"), "ends: b"),
        ("/Scenarios/0/Requests/1/response-match/headers/0/input", json!("bb"), "bb"),
        ("/Scenarios/0/Requests/1/response-match/payload/0/JsonPointer", json!("/cc"), "/cc:"),
        ("/Scenarios/0/Requests/1/response-match/payload/0/matchType", json!("StartsWith"), "starts: d"),
        ("/Scenarios/0/Requests/1/response-match/payload/0/input", json!("dd"), "dd"),
        (
            "/Scenarios/0/Requests/1/value-pickers/0/where-to-pickup-from",
            json!("Json-Pointer-In-Request-Payload"),
            "`e` is not a JSON Pointer",
        ),
        ("/Scenarios/0/Requests/1/value-pickers/0/source", json!("ee"), "header: ee"),
        ("/Scenarios/0/Requests/1/value-pickers/0/regexp", json!("[0-9]"), "regex: "),
        ("/Scenarios/0/Requests/1/value-pickers/0/save-to-variable", json!("ff"), "ff:"),
    ];
    [top, scenario, request].into_iter().flatten().collect()
}

/// `value` with the member at `pointer` set.
fn with(mut value: Value, pointer: &str, member: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
    let object = value.pointer_mut(parent).and_then(Value::as_object_mut);
    object.expect("the parent is an object").insert(key.to_owned(), member);
    value
}

fn imported(value: &Value) -> String {
    let files = Named(&[("one.csv", b"one\n1\n"), ("two.csv", b"x,y\n1,2\n")]);
    shown(&import(value.to_string().as_bytes(), Path::new(""), &files))
}

#[test]
fn every_field_is_in_the_plan_or_noted() {
    let before = imported(&base());
    for (pointer, value, expected) in fields() {
        let after = imported(&with(base(), pointer, value));
        assert!(!after.contains("the format has no such field"), "{pointer}: {after}");
        match expected.strip_prefix('!') {
            Some(gone) => assert!(before.contains(gone) && !after.contains(gone), "{pointer}: {after}"),
            None => {
                assert!(
                    expected.is_empty() || !before.contains(expected),
                    "{pointer} shows nothing: {before}"
                );
                assert!(after.contains(expected), "{pointer}: {expected}: {after}");
            }
        }
        // The three that change nothing here: no request has another authority, there is TLS, and one
        // scenario.
        assert_eq!(after == before, expected.is_empty(), "{pointer}: {after}");
    }
}

#[test]
fn a_field_of_another_name_is_noted_everywhere() {
    // Every object of the format, with a field that it does not have, and one that is a comment.
    for (pointer, _, _) in fields() {
        let (parent, _) = pointer.rsplit_once('/').unwrap();
        let text = imported(&with(base(), &format!("{parent}/unknown"), json!(1)));
        let note = format!("note: {parent}/unknown: `1`: the format has no such field");
        assert!(text.contains(&note), "{parent}: {text}");
        let text = imported(&with(base(), &format!("{parent}/_comment"), json!(1)));
        assert_eq!(text, imported(&base()), "{parent}");
    }
}

#[test]
fn cleartext_has_no_tls_settings() {
    let mut value = with(base(), "/schema", json!("http"));
    for (key, given) in [("ciphers", "c"), ("caCert", "a"), ("cert", "b"), ("privateKey", "k")] {
        value = with(value, &format!("/{key}"), json!(given));
    }
    let text = imported(&value);
    assert_eq!(text.matches("it has no effect without TLS").count(), 4, "{text}");
    assert!(text.contains("http2: true") && !text.contains("insecure"), "{text}");
    let text = imported(&with(with(value, "/no-tls-proto", json!("http/1.1")), "/window-bits", json!(20)));
    assert!(text.contains("http1: true") && !text.contains("window_bits: "), "{text}");
    assert!(text.contains("note: /window-bits: it has no effect with HTTP/1.1"), "{text}");
}

/// Lines of a plan that begin with one of these words.
fn lines(text: &str, words: &[&str]) -> Vec<String> {
    let is_meant = |line: &&str| words.iter().any(|word| line.starts_with(word));
    text.lines().map(str::trim).filter(is_meant).map(str::to_owned).collect()
}

#[test]
fn rates_and_weights_count_requests() {
    let request = json!({"uri": {"input": "/"}, "method": "GET"});
    let scenario = |weight: u64, requests: usize| json!({"name": "s", "weight": weight, "Requests": vec![request.clone(); requests]});
    let lines = |rate: u64, scenarios: Vec<Value>, more: Value| {
        let mut value = json!({
            "schema": "http", "host": "h", "clients": 3, "request-per-second": rate, "Scenarios": scenarios
        });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        lines(&imported(&value), &["rate", "rps", "weight", "iterations", "duration", "error"])
    };
    let minute = |all: &[&'static str]| [&["duration: 60s"], all].concat();
    for (scenarios, expected) in [
        (vec![scenario(100, 1)], minute(&["rps: 2"])),
        (vec![scenario(100, 4)], minute(&["rate_of: requests", "rps: 2"])),
        (
            vec![scenario(7, 2), scenario(7, 2)],
            minute(&["rate_of: requests", "rps: 2", "weight: 1", "weight: 1"]),
        ),
        // Shares of requests stay what they are, however long iterations are.
        (
            vec![scenario(50, 1), scenario(25, 3)],
            minute(&["rate_of: requests", "rps: 2", "weight: 2", "weight: 1"]),
        ),
        // The shipped examples are beyond what the schema allows.
        (
            vec![scenario(100_000, 4), scenario(2, 1)],
            minute(&["rate_of: requests", "rps: 2", "weight: 50000", "weight: 1"]),
        ),
        (
            vec![scenario(4_294_967_295, 1), scenario(1, 1)],
            minute(&["rps: 2", "weight: 4294967295", "weight: 1"]),
        ),
    ] {
        assert_eq!(lines(2, scenarios, json!({})), expected);
    }
    // Users of the closed model take iterations: of as many requests each, 3 of one and 1 of three.
    let closed = lines(0, vec![scenario(50, 1), scenario(50, 3)], json!({}));
    assert_eq!(closed, ["duration: 60s", "weight: 3", "weight: 1"]);
    // The number of requests determines the duration.
    let counted = lines(2, vec![scenario(1, 4)], json!({"total-requests": 100}));
    assert_eq!(counted, ["duration: 16666666667ns", "rate_of: requests", "rps: 2"]);
    let too_heavy = lines(2, vec![scenario(1 << 32, 1)], json!({}));
    assert_eq!(too_heavy.len(), 1, "{too_heavy:?}");
}

/// Where the program has but one host, there is none to go to, or to come back from.
#[test]
fn settings_of_a_pool_are_left_out_without_one() {
    let alone = with(base(), "/load-share-hosts", json!([]));
    for (key, value) in [("connection-retry", false), ("switch-back-after-connection-retry", true)] {
        let text = imported(&with(alone.clone(), &format!("/{key}"), json!(value)));
        assert!(!text.contains("fail_"), "{text}");
    }
    let both = with(
        with(base(), "/connection-retry", json!(false)),
        "/switch-back-after-connection-retry",
        json!(true),
    );
    assert!(!imported(&both).contains("fail_back"), "{}", imported(&both));
}

/// A file with every field at its default, as the editor of the format writes it, and a rate.
fn defaults() -> Value {
    let text = std::fs::read(folder().join("defaults.json")).expect("the file");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn defaults_are_taken_over_without_a_note() {
    for schema in ["http", "https"] {
        let text = imported(&with(defaults(), "/schema", json!(schema)));
        assert!(!text.contains("note:") && !text.contains("error:"), "{text}");
    }
    // Symptoms: the shipped examples have it, and `--strict` took none; an only scenario waited.
    for (key, value) in
        [("/connection-retry", json!(false)), ("/Scenarios/0/interval-to-wait-before-start", json!(1000))]
    {
        assert_eq!(imported(&with(defaults(), key, value)), imported(&defaults()), "{key}");
    }
    // Each difference gets its own note.
    for (key, value, note) in [
        ("ciphers", json!("AES128-SHA"), "ciphers cannot be chosen"),
        ("npn-list", json!("h2,spdy"), "`spdy`: the protocol is not spoken"),
        ("socket-send-buffer-size", json!(1), "the kernel sizes the buffers"),
        ("rate-period", json!(2), "without `rate`"),
        ("total-requests", json!(2), "no effect beside a `duration`"),
    ] {
        let https = with(defaults(), "/schema", json!("https"));
        let text = imported(&with(https, &format!("/{key}"), value));
        assert!(text.contains(&format!("note: /{key}: ")) && text.contains(note), "{text}");
    }
}

/// The user id is replaced in paths and bodies alone, nothing else is sent, and a limit of 0 is none.
#[test]
fn requests_are_sent_as_they_are_written() {
    let value = with(defaults(), "/Scenarios/0/user-id-variable-in-path-and-data", json!("-ID"));
    let value = with(value, "/Scenarios/0/user-id-range-end", json!(1000));
    let value = with(value, "/Scenarios/0/Requests/0/additonalHeaders", json!(["x: a-ID", "e"]));
    let value = with(value, "/Scenarios/0/Requests/0/payload", json!("b-ID"));
    let value = with(value, "/stream-timeout", json!(0));
    let text = imported(&value);
    assert!(text.contains("x: a-ID\n") && text.contains("body: b${ID}\n"), "{text}");
    assert!(text.contains("user-agent: \"\"\n") && text.contains("timeout: \"365d\"\n"), "{text}");
    assert!(text.contains("note: /Scenarios/0/Requests/0/additonalHeaders/1: `e`: "), "{text}");
    assert_eq!(text.matches("note:").count(), 1, "{text}");
    assert_eq!(text.matches("on_failure: continue").count(), 2, "{text}");
    assert!(imported(&defaults()).contains("timeout: 5s\n"));
}

#[test]
fn every_client_has_a_slice_of_the_data() {
    let value = with(
        defaults(),
        "/Scenarios/0/range-based-variables",
        json!([
        {"variable-name": "v", "variable-range-start": 5, "variable-range-end": 1000}]),
    );
    let value = with(value, "/clients", json!(2));
    assert!(imported(&value).contains("slices: 2\n"), "{}", imported(&value));
    let whole = with(value.clone(), "/Scenarios/0/user-id-range-slicing", json!(false));
    assert!(!imported(&whole).contains("slices"), "{}", imported(&whole));
    assert!(!imported(&with(value, "/clients", json!(1))).contains("slices"));
}

/// Notes tell where data go to other clients than there: the program refuses fewer values than clients, and
/// begins whole data at random.
#[test]
fn data_that_go_to_other_clients_are_told() {
    let range =
        |end: u64| json!([{"variable-name": "v", "variable-range-start": 0, "variable-range-end": end}]);
    let of = |clients: u64, end: u64, slicing: bool| {
        let value = with(defaults(), "/clients", json!(clients));
        let value = with(value, "/Scenarios/0/range-based-variables", range(end));
        imported(&with(value, "/Scenarios/0/user-id-range-slicing", json!(slicing)))
    };
    for (clients, end, slicing, note) in [
        (3, 3, true, None),
        (1, 1, false, None),
        (
            3,
            2,
            true,
            Some("range-based-variables/0: there are 3 clients, each with values of its own, and 2 values"),
        ),
        (
            2,
            9,
            false,
            Some("user-id-range-slicing: `false`: each of the 1 threads goes through all of the data"),
        ),
    ] {
        let text = of(clients, end, slicing);
        assert_eq!(text.contains("note:"), note.is_some(), "{text}");
        assert!(text.contains(note.unwrap_or_default()), "{text}");
    }
    let value = with(defaults(), "/clients", json!(2));
    let value = with(value, "/Scenarios/0/user-variables-input-file", json!("one.csv"));
    assert!(imported(&value).contains("there are 2 clients"), "{}", imported(&value));
}

/// The program calls every status below 400 a success, and draws each scenario by its weight.
#[test]
fn successes_and_scenarios_are_those_of_the_program() {
    let text = imported(&with(defaults(), "/Scenarios/0/Requests/0/expected-status-code", json!(0)));
    assert!(
        text.contains("- \"2xx\"\n") && text.contains("- \"3xx\"\n") && !text.contains("deal:"),
        "{text}"
    );
    let mut two = defaults();
    let scenarios = two["Scenarios"].as_array_mut().expect("a list");
    scenarios.push(json!({"name": "two", "Requests": [{"uri": {"input": "/2"}, "method": "GET"}]}));
    assert!(imported(&two).contains("deal: shuffled\n"), "{}", imported(&two));
}

/// Symptom: an error of the import, where the program sends 20 requests of which none is a success.
#[test]
fn a_match_of_the_status_that_never_holds_is_taken_over_and_told() {
    let matching = |rules: Value| {
        let value = with(defaults(), "/Scenarios/0/Requests/0/response-match", json!({"headers": rules}));
        imported(&value)
    };
    let rule = |kind: &str, input: &str| json!({"header-name": ":status", "matchType": kind, "input": input});
    let text = matching(json!([rule("RegexMatch", "2")]));
    let note = "response-match/headers/0/input: `2`: no status from 200 to 599 matches: every request fails";
    assert!(
        text.contains(note) && text.contains("\":status\":\n") && text.contains("regex: ^(?:2)$"),
        "{text}"
    );
    // Two that exclude each other.
    let text = matching(json!([rule("EqualsTo", "200"), rule("EqualsTo", "201")]));
    assert!(text.contains("headers/1/input: `201`: no status") && text.contains("equals: 201"), "{text}");
    assert!(text.contains("- 200\n") || text.contains("- \"200\"\n"), "{text}");
    // The whole value has to match there, too.
    assert!(!matching(json!([rule("RegexMatch", "2..")])).contains("note:"));
}

/// Symptom: a rule without a name was an error, and one with `:status` alone matched nothing.
#[test]
fn keys_left_out_of_a_match_have_the_defaults_of_the_schema() {
    for rule in [
        json!({}),
        json!({"header-name": ":status"}),
        json!({"input": "200"}),
        json!({"matchType": "EqualsTo"}),
    ] {
        let rules = json!({"headers": [rule]});
        let text = imported(&with(defaults(), "/Scenarios/0/Requests/0/response-match", rules));
        assert!(
            text.contains("status:\n          - \"200\"\n") || text.contains("- 200\n"),
            "{rule}: {text}"
        );
        assert!(!text.contains("no status from 200"), "{rule}: {text}");
    }
}

/// Values that the program writes in another form, in comparisons and where they are picked.
#[test]
fn values_in_json_that_the_program_writes_otherwise_are_told() {
    let compared = |input: &str| {
        let rule = json!([{"JsonPointer": "/a", "matchType": "EqualsTo", "input": input}]);
        let at = "/Scenarios/0/Requests/0/response-match";
        imported(&with(defaults(), at, json!({"headers": [], "payload": rule})))
    };
    for (input, told) in [("12.5", true), ("12.500000", true), ("{}", true), ("12", false), ("http", false)] {
        let text = compared(input);
        assert_eq!(text.contains("a fraction has six decimals (12.500000)"), told, "{input}: {text}");
    }
    for (place, told) in [
        ("Json-Pointer-In-Response-Payload", true),
        ("Json-Pointer-In-Request-Payload", true),
        ("Response-Header", false),
    ] {
        let picker = json!([{"where-to-pickup-from": place, "source": "/a", "save-to-variable": "v"}]);
        let picker = match told {
            true => picker,
            false => json!([{"where-to-pickup-from": place, "source": "a", "save-to-variable": "v"}]),
        };
        let text = imported(&with(defaults(), "/Scenarios/0/Requests/0/value-pickers", picker));
        assert_eq!(text.contains("value-pickers/0/source: "), told, "{text}");
    }
}

#[test]
fn files_of_the_program_that_have_another_form_are_told() {
    for (key, note) in [
        ("log-file", "a file that ends in .tsv has those of there"),
        ("statistics-file", "rows are of scenarios and of all together"),
    ] {
        let text = imported(&with(defaults(), &format!("/{key}"), json!("f.csv")));
        assert!(text.contains(&format!("note: /{key}: `f.csv`: ")) && text.contains(note), "{text}");
    }
    for (key, file) in [("/failed-request-log-file", "f.txt"), ("/log-file", "f.tsv")] {
        let text = imported(&with(defaults(), key, json!(file)));
        assert!(!text.contains("note:") && text.contains(file), "{text}");
    }
}

#[test]
fn a_script_that_is_no_lua_is_left_out() {
    for script in ["function make_request(", "return 5"] {
        let text = imported(&with(defaults(), "/Scenarios/0/Requests/0/luaScript", json!(script)));
        assert!(
            text.contains("note: /Scenarios/0/Requests/0/luaScript: ") && !text.contains("script: "),
            "{text}"
        );
        assert!(text.contains("left out"), "{text}");
    }
}

/// Rows have as many values as they have, regardless of the head, and a range wins over a column.
#[test]
fn rows_decide_what_a_file_has() {
    let value = with(defaults(), "/Scenarios/0/user-variables-input-file", json!("var.csv"));
    let value = with(
        value,
        "/Scenarios/0/range-based-variables",
        json!([
        {"variable-name": "imsi", "variable-range-start": 0, "variable-range-end": 10000}]),
    );
    let value = with(
        value,
        "/Scenarios/0/two-dimensional-variables",
        json!([
        {"variable-name": "suci", "file-name": "id.csv"}]),
    );
    let value = with(value, "/Scenarios/0/Requests/0/uri/input", json!("/${imsi}/${supi}/${suci}"));
    let value =
        with(value, "/Scenarios/0/Requests/1/uri", json!({"typeOfAction": "input", "input": "/${suci}"}));
    let files = Named(&[
        ("var.csv", b"imsi,supi\n1,2\n3,4\n"),
        ("id.csv", b"suci\ngenuine-suci1,fake-suci1\ngenuine-suci2,fake-suci2\nboth\n"),
    ]);
    let text = shown(&import(value.to_string().as_bytes(), Path::new(""), &files));
    assert!(!text.contains("note:") && !text.contains("error:"), "{text}");
    assert!(
        text.contains("post: /${imsi_2}/${supi}/${suci}\n") && text.contains("get: /${suci_2}\n"),
        "{text}"
    );
    assert!(text.contains("- \"00000\"\n") && text.contains("- both\n"), "{text}");
    assert!(text.contains("csv: var.csv\n"), "{text}");
}

/// Symptom: a range with the name of a table was an error, where one with the name of a column was none.
#[test]
fn a_range_wins_over_a_table_of_the_same_name() {
    let range = json!([{"variable-name": "id", "variable-range-start": 0, "variable-range-end": 10_000}]);
    let value = with(defaults(), "/Scenarios/0/range-based-variables", range);
    let tables = json!([{"variable-name": "id", "file-name": "id.csv"}]);
    let value = with(value, "/Scenarios/0/two-dimensional-variables", tables);
    let value = with(value, "/Scenarios/0/Requests/0/uri/input", json!("/${id}"));
    let files = Named(&[("id.csv", b"id\na,b\nc\n")]);
    let text = shown(&import(value.to_string().as_bytes(), Path::new(""), &files));
    assert!(!text.contains("note:") && !text.contains("error:"), "{text}");
    assert!(text.contains("post: /${id}\n") && text.contains("- \"00000\"\n"), "{text}");
    assert!(!text.contains("list:"), "nothing of the table is sent: {text}");
}

/// More than 10,000 rows were refused if one of them was shorter.
#[test]
fn a_large_file_with_rows_of_different_lengths_is_taken_over() {
    let mut rows = "suci\n".to_owned();
    for number in 0..50_000 {
        rows += &format!("imsi-{number:015}{}\n", if number % 3 == 0 { "" } else { ",other" });
    }
    let tables = json!([{"variable-name": "suci", "file-name": "id.csv"}]);
    let value = with(defaults(), "/Scenarios/0/two-dimensional-variables", tables);
    let value = with(value, "/Scenarios/0/Requests/0/uri/input", json!("/${suci}"));
    let imported =
        import(value.to_string().as_bytes(), Path::new(""), &Named(&[("id.csv", rows.as_bytes())]));
    let imported = imported.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(imported.notes, []);
    let yaml = imported.document.to_yaml();
    assert_eq!(yaml.matches("- imsi-000000000").count(), 50_000 + 50_000_usize.div_ceil(3));
}

#[test]
fn mistakes() {
    let request = |extra: Value| {
        let mut request = json!({"uri": {"typeOfAction": "input", "input": "/"}, "method": "GET"});
        request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"schema": "http", "host": "h", "Scenarios": [{"name": "s", "Requests": [request]}]})
    };
    let scenario = |extra: Value| {
        let mut scenario = json!({"name": "s", "Requests": [{"uri": {"input": "/${a}"}, "method": "GET"}]});
        scenario.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"schema": "http", "host": "h", "Scenarios": [scenario]})
    };
    let mut text = String::new();
    for value in [
        json!([]),
        json!({}),
        json!({"schema": "ftp", "host": "a/b", "port": 70000, "clients": "3", "Scenarios": {}}),
        json!({"schema": "https", "host": "h", "npn-list": "spdy", "max-tls-version": "TLSv1.1",
               "certVerificationMode": 2, "no-tls-proto": "h3", "Scenarios": [{"weight": 70000}]}),
        // Symptom: four rounds of hints, of which the last named no field.
        json!({"schema": "http", "host": "h", "scenarios": [
            {"path": {"source": "input", "input": "/apt/version/1"}, "method": "POST", "payload": "hello world"},
            {"path": {"source": "extractFromLastResponseHeader", "headerToExtract": "location"}, "method": "GET"},
            {"path": {"typeOfAction": "sameWithLastOne"}, "method": "GET"}]}),
        json!({"schema": "http", "host": "h", "variable-name-in-path-and-data": "-ID", "variable-range-start": 1,
               "scenario": [{"path": "/a-ID", "method": "GET"}]}),
        scenario(
            json!({"variable-name-in-path-and-data": "-ID", "variable-range-slicing": true, "Requests": [
            {"path": {"typeOfAction": "input", "input": "/a"}},
            {"uri": {"typeOfAction": "fromResponseHeader", "headerToExtract": "location"}},
            {"uri": {"typeOfAction": "extractFromLastResponseHeader", "input": "location"}},
            {"uri": {"source": "sameWithLastOne"}},
            {"uri": {"typeOfAction": "fromResponseHeader"}}]}),
        ),
        request(json!({"uri": {"typeOfAction": "guess"}})),
        request(json!({"uri": {"typeOfAction": "fromResponseHeader", "input": "location"}})),
        request(json!({"uri": {"typeOfAction": "sameWithLastOne"}})),
        request(json!({"uri": {"typeOfAction": "input", "input": "http://a b/"}})),
        request(json!({"uri": null, "method": "G T"})),
        request(json!({"additonalHeaders": ["no colon", ": x", "a b: c", 1]})),
        request(json!({"luaScript": "missing.lua", "expected-status-code": 199})),
        request(json!({"response-match": {"headers": [
            {"header-name": ":status", "matchType": "EqualsTo", "input": "ok"},
            {"header-name": "", "matchType": "Contains", "input": "a"},
            {"header-name": "x", "matchType": "Like", "input": "a"},
            {"header-name": "x", "matchType": "RegexMatch", "input": "(?=a)"}],
            "payload": [{"JsonPointer": "a", "input": "b"}]}})),
        request(json!({"value-pickers": [
            {"where-to-pickup-from": "Moon", "source": "a", "save-to-variable": "b"},
            {"where-to-pickup-from": "Response-Header", "source": ":path", "save-to-variable": "b"},
            {"where-to-pickup-from": "Response-Header", "source": "a", "regexp": "(", "save-to-variable": "c"},
            {"where-to-pickup-from": "Response-Header", "source": "a"}]})),
        scenario(json!({"user-variables-input-file": "none.csv"})),
        scenario(json!({"range-based-variables": [
            {"variable-name": "a", "variable-range-start": 5, "variable-range-end": 5},
            {"variable-name": "b"}, {"variable-range-end": 5}]})),
        scenario(json!({"range-based-variables": [
            {"variable-name": "a", "variable-range-end": 5}, {"variable-name": "a", "variable-range-end": 5}]})),
        scenario(json!({"two-dimensional-variables": [{"variable-name": "a", "file-name": "two.csv"}, {}],
            "Requests": vec![json!({"uri": {"input": "/"}, "method": "GET"}); 3]})),
        json!({"schema": "http", "host": "h", "scenario": [], "variable-range-start": 1}),
        request(json!({"uri": {"typeOfAction": "input", "input": "/a b"}})),
    ] {
        let line = value.to_string();
        text.push_str(&format!("# {line}\n{}\n", imported(&value)));
    }
    insta::assert_snapshot!(text);
}

/// Symptom: `-n 100` beside a configuration of two steps sent 200 requests without a word.
#[test]
fn a_count_of_the_command_line_is_one_of_iterations() {
    let request = || json!({"uri": {"typeOfAction": "input", "input": "/"}, "method": "GET"});
    let of = |scenarios: &[(u64, usize)]| {
        let scenarios: Vec<Value> = scenarios
            .iter()
            .enumerate()
            .map(|(at, (weight, steps))| {
                let requests = vec![request(); *steps];
                json!({"name": format!("s{at}"), "weight": weight, "Requests": requests})
            })
            .collect();
        let value = json!({"schema": "http", "host": "h", "Scenarios": scenarios});
        import(value.to_string().as_bytes(), Path::new(""), &Named(&[]))
            .unwrap_or_else(|problems| panic!("{problems}"))
    };
    for (scenarios, count, expected) in [
        (&[(1, 1)][..], "100", None),
        (&[(1, 1), (3, 1)], "100", None),
        (
            &[(1, 2)],
            "100",
            Some("it is 100 iterations of 2 requests, and h2loadrunner's -n counts requests: -n 50 is"),
        ),
        (&[(1, 3)], "100", Some("-n 34 is that load")),
        // A third of the requests are of `s1`, which is half as many iterations.
        (&[(2, 1), (1, 2)], "100", Some("-n 84 is that load")),
        (&[(1, 2)], "many", Some("counts requests")),
    ] {
        let imported = of(scenarios);
        let note = note_on_count(&imported.document, count).map(|note| note.to_string());
        let is_right = match (&note, expected) {
            (Some(note), Some(words)) => note.contains(words),
            (None, None) => true,
            _ => false,
        };
        assert!(is_right, "{scenarios:?} {count}: {note:?} {}", imported.document.to_yaml());
    }
}
