//! Every import is a plan that makes a run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use plimsoll_core::Nanos;
use plimsoll_document::{Files, KeyLogFile, Problems, RawValue};
use plimsoll_import::{Imported, curl, h2loadrunner, har, openapi, vegeta};
use plimsoll_plan::{Command, ImportCheck, PlanPatch, PlanSource, ScriptHost};
use plimsoll_script::{Host, LuaScripts};
use proptest::prelude::*;
use serde_json::json;

use crate::import::{Named, checked, checked_alone};

/// These files, and an imported plan.
struct WithPlan<'a>(Named<'a>, String);

impl Files for WithPlan<'_> {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path == Path::new("plan.yaml") { Ok(self.1.clone().into_bytes()) } else { self.0.read(path) }
    }

    fn key_log(&self, path: &Path) -> std::io::Result<KeyLogFile> {
        self.0.key_log(path)
    }
}

/// Files that sources name, among them a certificate with its key.
static FILES: LazyLock<Vec<(&str, &[u8])>> = LazyLock::new(|| {
    let own = rcgen::generate_simple_self_signed(["h".to_owned()]).expect("a certificate");
    let certificate: &[u8] = own.cert.pem().leak().as_bytes();
    let key: &[u8] = own.signing_key.serialize_pem().leak().as_bytes();
    vec![
        ("two.csv", b"x,y\n1,2\n"),
        ("one.csv", b"one\n1\n"),
        ("ragged.csv", b"x\n1,2\n3\n"),
        ("ca.pem", certificate),
        ("cert.pem", certificate),
        ("key.pem", key),
        ("make.lua", b"function make_request(headers, body) return headers, body end"),
        (
            "ask.lua",
            b"local host = io.popen('hostname')\nfunction validate_response() return host ~= nil end",
        ),
    ]
});

/// A host for scripts that are only looked at.
#[derive(Debug)]
struct Still;

impl Host for Still {
    fn monotonic(&self) -> Nanos {
        Nanos::ZERO
    }

    fn unix_ns(&self) -> u64 {
        0
    }

    fn print(&self, _: Option<u32>, text: &[u8]) {
        panic!("a script that is only looked at printed {text:?}");
    }

    fn lookup(&self, _: &str, _: &str) -> Result<Vec<String>, String> {
        Err("there is no name service".to_owned())
    }

    fn can_connect(&self, _: &str) -> bool {
        false
    }
}

/// Lua that is only looked at.
fn scripts() -> ScriptHost {
    ScriptHost(Arc::new(LuaScripts(Arc::new(Still))))
}

/// Returns the reason why a text is no script of Lua, if it is none.
pub(crate) fn syntax_error(source: &[u8]) -> Option<String> {
    scripts().0.syntax_error(source)
}

/// Flags of `check`, which reads scripts and runs nothing of them.
fn flags() -> PlanPatch {
    let script_host = Some(scripts());
    PlanPatch { script_host, only_read_scripts: true, ..PlanPatch::default() }
}

fn of_h2loadrunner(text: &str) -> Result<Imported, Problems> {
    h2loadrunner_for(text, &flags())
}

/// Imports a configuration for a run with these flags.
fn h2loadrunner_for(text: &str, flags: &PlanPatch) -> Result<Imported, Problems> {
    let (here, files) = (Path::new(""), Named(&FILES));
    let unchecked = h2loadrunner::import(text.as_bytes(), here, &files, &syntax_error)?;
    unchecked.check(here, &files, &ImportCheck::with(flags))
}

/// Returns the problems of the plan that was made, if one was made, with its text.
fn refused(imported: Result<Imported, Problems>) -> Option<String> {
    let files = WithPlan(Named(&FILES), imported.ok()?.document.to_yaml());
    let plan = PlanSource::File("plan.yaml".to_owned());
    let command = Command { plan: Some(plan), flags: flags(), ..Command::default() };
    let refused = command.resolve(&files).err()?;
    Some(format!("{}\n{}", refused.problems, files.1))
}

fn is_plan(imported: Result<Imported, Problems>) {
    assert_eq!(refused(imported), None);
}

#[test]
fn options_of_curl_without_effect_are_noted_and_left_out() {
    let here = PathBuf::new();
    for (command, notes) in [
        ("curl -k http://h/", &["-k: it has no effect without https, and is left out"][..]),
        (
            "curl --tlsv1.3 --cacert a --cert b --key c http://h/",
            &[
                "--cacert: it has no effect without https, and is left out",
                "--cert: it has no effect without https, and is left out",
                "--key: it has no effect without https, and is left out",
                "--tlsv1.3: it has no effect without https, and is left out",
            ],
        ),
        ("curl -k https://h/ http://h/", &[]),
        ("curl -k --cacert a https://h/", &["--cacert: nothing is verified with -k: it is left out"]),
        ("curl --key a https://h/", &["--key: a key without a certificate has no effect: it is left out"]),
        (
            "curl --http2-prior-knowledge https://h/",
            &["--http2-prior-knowledge: over TLS, HTTP/2 is agreed on by ALPN"],
        ),
        (
            "curl --resolve other:80:127.0.0.1 --resolve h:80:127.0.0.1 http://h/",
            &[
                "--resolve: `other:80:127.0.0.1`: it is for none of the URLs, or an earlier one is: it is left out",
            ],
        ),
        ("curl --connect-to ::127.0.0.1:81 https://h/", &[]),
        (
            "curl -H 'Connection: close' http://h/",
            &[
                "-H: `Connection: close`: a plan asks for that for all requests: every connection is used once",
            ],
        ),
        (
            "curl --unix-socket s --connect-to ::: -4 http://h/",
            &[
                "--connect-to: it has no effect with a unix socket, and is left out",
                "-4: it has no effect with a unix socket, and is left out",
            ],
        ),
        ("curl --oauth2-bearer @x http://me:pw@h/", &[]),
        ("curl --http1.1 --http2 -4 -6 http://h/", &[]),
        ("curl -L --max-redirs 1000 http://h/", &["--max-redirs: `1000`: at most 100 are followed"]),
    ] {
        let imported = checked(curl::import(command, &here, &Named(&FILES)), &here, &Named(&FILES)).unwrap();
        let found: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
        let found: Vec<&str> =
            found.iter().map(String::as_str).filter(|note| !note.starts_with("-L")).collect();
        assert_eq!(found, notes, "{command}");
        assert_eq!(refused(Ok(imported)), None, "{command}");
    }
}

const CURL: &[&[&str]] = &[
    &["-k"],
    &["--tlsv1.3"],
    &["--http1.1"],
    &["--http2"],
    &["--http2-prior-knowledge"],
    &["-4"],
    &["-6"],
    &["-L"],
    &["--max-redirs", "7"],
    &["-m", "2"],
    &["-m", "0"],
    &["-m", "0.0000001"],
    &["--connect-timeout", "1"],
    &["-X", "PURGE"],
    &["-X", "get"],
    &["-X", "HEAD"],
    &["-X", "CONNECT"],
    &["-I"],
    &["-G"],
    &["-d", "a=${b}"],
    &["-d", ""],
    &["--json", "{\"a\": \"${x}\"}"],
    &["-F", "a=@two.csv"],
    &["-T", "two.csv"],
    &["-Z"],
    &["-H", "Host: x"],
    &["-H", "Host:"],
    &["-H", "X: ${y}"],
    &["-H", "X: $"],
    &["-H", "Connection: close"],
    &["-H", "Connection: keep-alive"],
    &["-H", "Transfer-Encoding: chunked"],
    &["-H", "Content-Length: 5"],
    &["-H", "Expect: 100-continue"],
    &["-H", "TE: trailers"],
    &["-H", "Accept:"],
    &["-H", "X: \u{e4}"],
    &["-H", "Authorization: a"],
    &["-u", "a:b"],
    &["-u", "@:$"],
    &["--oauth2-bearer", "t"],
    &["-A", ""],
    &["-A", "a\u{1}"],
    &["-b", "a=b"],
    &["-b", "a=b; c"],
    &["-r", "0-5"],
    &["-e", "http://x"],
    &["--compressed"],
    &["--resolve", "h:80:127.0.0.1"],
    &["--resolve", "h:443:[::1]"],
    &["--connect-to", "h:80:i:81"],
    &["--connect-to", ":::"],
    &["--unix-socket", "s"],
    &["--interface", "127.0.0.1"],
    &["--interface", "::1"],
    &["--no-keepalive"],
    &["--request-target", "*"],
    &["--request-target", "x"],
    &["--request-target", "/a b"],
    &["http://h/"],
    &["https://h/x?y=${z}"],
    &["h/{a}"],
    &["http://[::1]:81/"],
    &["http://127.0.0.1"],
    &["http://me:pw@h/"],
    &["http://h:99999/"],
    &["http://h_x/"],
    &["http://h/%zz"],
    &["http://h/a?b#c"],
    &["http://H:80/$"],
    &["-g"],
];

/// Fields of h2loadrunner's format with values of all kinds; `S` and `R` stand for its scenario and request.
fn h2loadrunner_fields() -> Vec<(&'static str, serde_json::Value)> {
    let of = |places: &[&'static str], values: serde_json::Value| -> Vec<(&'static str, serde_json::Value)> {
        let values = values.as_array().expect("a list").clone();
        places.iter().flat_map(|place| values.iter().map(|value| (*place, value.clone()))).collect()
    };
    let counts = ["/threads", "/clients", "/total-requests", "/max-concurrent-streams", "/rate", "/port"];
    let times = [
        "/duration",
        "/warm-up-time",
        "/rate-period",
        "/stream-timeout",
        "/connection-active-timeout",
        "/connection-inactivity-timeout",
        "/interval-between-ping-frames",
        "/statistics-interval",
    ];
    let bits =
        ["/window-bits", "/connection-window-bits", "/header-table-size", "/encoder-header-table-size"];
    let flags = [
        "/connection-retry",
        "/switch-back-after-connection-retry",
        "/open-new-connection-based-on-authority-header",
        "S/run-requests-in-parallel",
        "S/user-id-range-slicing",
        "R/clear-old-cookies",
    ];
    let files =
        ["/log-file", "/failed-request-log-file", "/statistics-file", "/request-per-second-feed-file"];
    let tables = ["S/user-id-list-file", "S/user-variables-input-file"];
    [
        of(&counts, json!([0, 1, 2, 3, 100, 70_000])),
        of(&times, json!([0, 0.5, 1, 1.5, 5000])),
        of(&["/request-per-second"], json!([0, 0.1, 1, 3, 100])),
        of(&bits, json!([0, 1, 10, 16, 30, 31, 4096])),
        of(&flags, json!([true, false])),
        of(&files, json!(["", "a", "b"])),
        of(&tables, json!(["", "two.csv", "ragged.csv", "one.csv"])),
        of(&["/schema"], json!(["http", "https"])),
        of(&["/host"], json!(["h", "127.0.0.1", "::1", "h_x"])),
        of(&["/load-share-hosts"], json!([[], [{"host": "g"}], [{"host": "h", "port": 80}, {"host": "::1"}]])),
        of(&["/no-tls-proto"], json!(["h2c", "http/1.1"])),
        of(&["/npn-list"], json!(["h2", "http/1.1", "http/1.1,h2", "h2,h2-14,x", ""])),
        of(&["/max-tls-version"], json!(["TLSv1.2", "TLSv1.3"])),
        of(&["/builtin-server-listening-port"], json!([0, 8888])),
        of(&["S/weight"], json!([0, 1, 7, 100_000, 4_294_967_295_u32])),
        of(&["S/interval-to-wait-before-start"], json!([0, 30, 1000, 90_000])),
        of(&["S/user-id-variable-in-path-and-data"], json!(["", "-ID", "$", "/", "${v}"])),
        of(&["S/user-id-range-start", "S/user-id-range-end"], json!([0, 1, 5, 1000, u64::MAX])),
        of(&["S/range-based-variables"], json!([
            [{"variable-name": "v", "variable-range-end": 9}], [{"variable-name": "x", "variable-range-end": 3}],
            [{"variable-name": "uuid", "variable-range-start": 1, "variable-range-end": 2}],
        ])),
        of(&["S/two-dimensional-variables"], json!([
            [{"variable-name": "w", "file-name": "two.csv"}], [{"variable-name": "a b", "file-name": "ragged.csv"}],
        ])),
        of(&["R/uri/typeOfAction"], json!([
            "input", "sameWithLastOne", "fromResponseHeader", "fromJsonPointer",
        ])),
        of(&["R/uri/input"], json!([
            "/", "a", "", "/${v}/${x}", "/-ID", "${w}", "${f}", "location", "/a/0", "http://h/x", "http://i:1/${v}",
            "https://h/", "/a b", "/$${v}", "*", ":status", "/%zz", "http://h",
        ])),
        of(&["R/method"], json!(["GET", "POST", "PURGE", "HEAD", "CONNECT", "OPTIONS", "get"])),
        of(&["R/payload"], json!(["", "text-ID", "${v} $", "two.csv", "{\"a\": \"${f}\"}", "a.json"])),
        of(&["R/additonalHeaders"], json!([
            ["a:b"], ["x: ${v}", "x: -ID"], ["host: g"], [":authority: i"], ["content-length: 3"], ["connection: close"],
            ["transfer-encoding: chunked"], ["cookie: a=b"], ["te: trailers"], ["e"], ["a:"], ["user-agent:u"],
            ["authorization: $"], ["expect: 100-continue"], ["x: a\u{1}b"], ["upgrade: h2c"],
        ])),
        of(&["R/expected-status-code"], json!([0, 200, 404])),
        of(&["R/response-match"], json!([
            {"headers": [{"header-name": ":status", "matchType": "StartsWith", "input": "2"}], "payload": []},
            {"payload": [{"JsonPointer": "/a", "matchType": "RegexMatch", "input": "${v}"}]},
            {"payload": [{"JsonPointer": "", "matchType": "Contains", "input": ""}], "headers": [
                {"header-name": "X", "input": "${v}"}, {"header-name": "x", "input": "b"}]},
        ])),
        of(&["R/value-pickers"], json!([
            [{"where-to-pickup-from": "Response-Header", "source": "Location", "save-to-variable": "f"}],
            [{"where-to-pickup-from": "Request-Header", "source": ":path", "regexp": "^(.*)$", "save-to-variable": "v"}],
            [{"where-to-pickup-from": "Json-Pointer-In-Request-Payload", "source": "/a", "save-to-variable": "a b"}],
            [{"where-to-pickup-from": "Json-Pointer-In-Response-Payload", "source": "", "save-to-variable": "x"}],
        ])),
        of(&["/certVerificationMode"], json!([0, 1])),
        of(&["/caCert", "/cert", "/privateKey"], json!(["", "ca.pem", "cert.pem", "key.pem", "two.csv", "no.pem"])),
        of(&["R/luaScript"], json!([
            "", "make.lua", "ask.lua", "no.lua", "function make_request(", "print(1)",
            "function validate_response(headers, body) return true end", "os.execute('true') function make_request() end",
            "error('no') function make_request() end", "make_request = 5", "require('no') function make_request() end",
        ])),
        of(&["R/delay-before-executing-next"], json!([0, 10, 0.5])),
    ]
    .concat()
}

/// A configuration of two scenarios with these fields, each of one scenario and one request.
fn h2loadrunner_text(fields: &[((&str, serde_json::Value), usize, usize)]) -> String {
    let request = |path: &str| json!({"uri": {"typeOfAction": "input", "input": path}, "method": "GET"});
    let scenario =
        |name: &str| json!({"name": name, "Requests": [request("/a"), request("/b"), request("/c")]});
    let mut value = json!({"schema": "http", "host": "h", "Scenarios": [scenario("s"), scenario("s")]});
    for ((field, content), scenario, request) in fields {
        let scenario = format!("/Scenarios/{scenario}");
        let pointer = match field.split_once('/') {
            Some(("S", key)) => format!("{scenario}/{key}"),
            Some(("R", key)) => format!("{scenario}/Requests/{request}/{key}"),
            _ => (*field).to_owned(),
        };
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        let parent = value.pointer_mut(parent).and_then(serde_json::Value::as_object_mut);
        parent.expect("it is an object").insert(key.to_owned(), content.clone());
    }
    value.to_string()
}

#[test]
fn settings_that_contradict_a_plan_are_imported_all_the_same() {
    let field = |field, value| ((field, value), 0, 0);
    for fields in [
        vec![field("/connection-retry", json!(false))],
        vec![field("/switch-back-after-connection-retry", json!(true))],
        vec![
            field("/load-share-hosts", json!([{"host": "g"}])),
            field("/connection-retry", json!(false)),
            field("/switch-back-after-connection-retry", json!(true)),
        ],
        vec![field("S/weight", json!(100_000))],
        vec![field("/request-per-second", json!(3)), field("/total-requests", json!(100))],
        vec![field("S/interval-to-wait-before-start", json!(1000)), field("/request-per-second", json!(3))],
        // More clients than iterations, and data of a scenario that never begins.
        vec![field("/total-requests", json!(4)), field("/clients", json!(9)), field("/threads", json!(3))],
        vec![
            field("S/weight", json!(0)),
            field("S/range-based-variables", json!([{"variable-name": "v", "variable-range-end": 9}])),
        ],
    ] {
        let text = h2loadrunner_text(&fields);
        let imported = of_h2loadrunner(&text);
        assert!(imported.is_ok(), "{text}: {imported:?}");
        assert_eq!(refused(imported), None, "{text}");
    }
}

/// Symptom: unreadable certificates were imported without a word, and `check` refused the plan.
#[test]
fn certificates_that_cannot_be_read_are_problems_of_the_import_and_scripts_do_not_run() {
    let field = |field, value| ((field, value), 0, 0);
    let https = |key, file: &str| {
        let secure = [("/schema", "https"), ("/certVerificationMode", ""), (key, file)];
        let value = |(key, value): (&'static str, &str)| match value {
            "" => field(key, json!(1)),
            value => field(key, json!(value)),
        };
        h2loadrunner_text(&secure.map(value))
    };
    let own = h2loadrunner_text(&[field("R/luaScript", json!("ask.lua"))]);
    for (text, message) in [
        (&https("/caCert", "no.pem"), "no.pem"),
        (&https("/caCert", "two.csv"), "two.csv"),
        (&https("/cert", "cert.pem"), "cert.pem"),
    ] {
        let problems = of_h2loadrunner(text).expect_err("no plan is made of it").to_string();
        assert!(problems.starts_with("a plan does not allow this: "), "{problems}");
        assert!(problems.contains(message), "{problems}");
    }
    // Text that flags allow, or replace, is not a problem of the file.
    let import = |text: &str, flags| h2loadrunner_for(text, &flags).map(|_| ());
    // Whether it may ask for the system is decided where it runs.
    assert_eq!(import(&own, flags()), Ok(()));
    let replaced = PlanPatch { cacert: Some(RawValue::new("--cacert", "other.pem")), ..flags() };
    assert_eq!(import(&https("/caCert", "no.pem"), replaced), Ok(()));
    assert_eq!(import(&https("/caCert", "ca.pem"), flags()), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn what_is_imported_from_h2loadrunner_is_a_plan(
        fields in proptest::collection::vec(
            (proptest::sample::select(h2loadrunner_fields()), 0..2_usize, 0..3_usize), 0..14
        ),
    ) {
        let text = h2loadrunner_text(&fields);
        is_plan(of_h2loadrunner(&text));
    }
}

proptest! {
    #[test]
    fn what_is_imported_from_curl_is_a_plan(
        options in proptest::collection::vec(proptest::sample::select(CURL), 0..6),
        url in proptest::sample::select(vec!["http://h/", "https://h/"]),
    ) {
        let words: Vec<String> =
            options.iter().copied().flatten().chain(&[url]).map(|word| (*word).to_owned()).collect();
        is_plan(checked(curl::import_words(&words, Path::new(""), &Named(&FILES)), Path::new(""), &Named(&FILES)));
    }

    #[test]
    fn what_is_imported_from_a_recording_is_a_plan(
        requests in proptest::collection::vec(
            (
                proptest::sample::select(vec!["GET", "POST", "get", "PURGE", "CONNECT", "OPTIONS"]),
                proptest::sample::select(vec![
                    "http://h/", "https://h/a?b=${c}", "http://H:80/%zz", "https://[::1]/", "http://u:p@h/#x",
                    "wss://h/", "http://h:99999/", "http://h/$", "http://h/a|b", "http://h/{x}",
                ]),
                proptest::sample::select(vec!["HTTP/1.1", "h2", "h3", ""]),
                proptest::sample::select(vec![
                    ("Host", "x"), ("connection", "close"), ("Connection", "keep-alive"), ("TE", "trailers"),
                    ("Transfer-Encoding", "chunked"), ("Content-Length", "7"), (":authority", "h"), ("X", "${y}"),
                    ("Authorization", "Basic x"), ("Cookie", "a=b"), ("Expect", "100-continue"), ("X", "\u{e4}"),
                    ("Upgrade", "websocket"), ("Keep-Alive", "5"), ("HTTP2-Settings", "x"), ("X", "a\tb"),
                    ("Proxy-Connection", "close"), ("Accept-Encoding", "br"),
                ]),
                proptest::sample::select(vec!["", "a", "${b}", "\u{1}"]),
            ),
            1..4,
        ),
        expect_status in any::<bool>(),
    ) {
        let entries: Vec<_> = requests.iter().zip(10..).map(|((method, url, version, header, body), second)| {
            serde_json::json!({
                "startedDateTime": format!("2026-01-01T00:00:{second}Z"),
                "time": 5, "response": {"status": 200},
                "request": {"method": method, "url": url, "httpVersion": version,
                    "headers": [{"name": header.0, "value": header.1}], "postData": {"text": body}},
            })
        }).collect();
        let text = serde_json::json!({"log": {"entries": entries}}).to_string();
        let options = har::Options { expect_status, ..har::Options::default() };
        is_plan(checked_alone(har::import(text.as_bytes(), &options)));
    }

    #[test]
    fn what_is_imported_from_lines_of_targets_is_a_plan(
        text in "((GET|POST|PURGE|CONNECT|get) (http://h/|https://h/a|http://h/\\$\\{x\\}|http://u:p@h/)\n\
                 ((X: \\$\\{y\\}|Host: x|Connection: close|Transfer-Encoding: chunked|Content-Length: 5|Y: \
                 )\n)?\
                 (@two\\.csv\n)?\n){1,4}",
        steps in any::<bool>(),
    ) {
        is_plan(checked_alone(vegeta::import(text.as_bytes(), &vegeta::Options { steps })));
    }

    #[test]
    fn what_is_imported_from_a_description_is_a_plan(
        path in proptest::sample::select(vec!["/", "/a/{b}", "/{b}/{b}", "/a b", "/$", "/${c}", "/\u{e4}", "a"]),
        method in proptest::sample::select(vec!["get", "put", "post", "delete", "head", "options", "trace"]),
        place in proptest::sample::select(vec!["path", "query", "header", "cookie"]),
        name in proptest::sample::select(vec!["b", "Connection", "Transfer-Encoding", "x y", "Authorization", "${c}"]),
        example in proptest::sample::select(vec!["1", "a b", "${c}", "close", "\u{e4}", ""]),
        server in proptest::sample::select(vec!["http://h/v1", "https://h", "http://h/v1/?x", "/v1", "http://{a}/"]),
    ) {
        let text = serde_json::json!({
            "openapi": "3.0.0", "servers": [{"url": server}],
            "paths": {path: {method: {
                "parameters": [{"name": name, "in": place, "required": true, "example": example}],
                "requestBody": {"content": {"application/json": {"example": {"text": example}}}},
            }}},
        });
        let options = openapi::Options { server: None };
        is_plan(checked_alone(openapi::import(text.to_string().as_bytes(), &options)));
    }
}
