//! The cache server's HTTP port.

use plimsoll_cache::server::{CacheOptions, CacheServer};
use plimsoll_driver::{BackendOptions, Endpoint, KernelBackend};
use plimsoll_testkit::client::{Client, End, Response};
use plimsoll_testkit::on_every_backend;

use super::{options, start};

on_every_backend! {
    values_are_put_and_got,
}

/// `admin:admin123`.
const ADMIN: &str = "authorization: Basic YWRtaW46YWRtaW4xMjM=\r\n";
const JSON: &str = "content-type: application/json\r\n";

fn server(backend: KernelBackend) -> CacheServer {
    start(CacheOptions { http: Some(Endpoint::Tcp(([127, 0, 0, 1], 0).into())), ..options() }, backend)
}

/// One connection to the HTTP port.
struct Browser {
    client: Client,
    index: usize,
}

impl Browser {
    fn new(server: &CacheServer) -> Self {
        let mut client = Client::new();
        let index = client.connect(server.http_endpoint().expect("it speaks HTTP"));
        Self { client, index }
    }

    fn ask(&mut self, line: &str, fields: &str, body: &str) -> Response {
        let length = body.len();
        let request = format!("{line} HTTP/1.1\r\n{fields}content-length: {length}\r\n\r\n{body}");
        self.client.send(self.index, request.as_bytes());
        self.client.response(self.index)
    }

    /// Status and body.
    fn told(&mut self, line: &str, fields: &str, body: &str) -> (u16, String) {
        let response = self.ask(line, fields, body);
        (response.status, String::from_utf8(response.body).expect("it is text"))
    }

    /// Status and body of a request with user, password and media type.
    fn admin(&mut self, line: &str, body: &str) -> (u16, String) {
        self.told(line, &format!("{ADMIN}{JSON}"), body)
    }
}

fn epoll() -> KernelBackend {
    KernelBackend::Epoll(BackendOptions::default())
}

fn values_are_put_and_got(backend: KernelBackend) {
    let server = server(backend);
    let mut browser = Browser::new(&server);
    let ok = |body: &str| (200, body.to_owned());
    let missing = ok(r#"{"found":false,"ttl_ms_remaining":0}"#);
    assert_eq!(browser.admin("GET /cache/perf_test/k", ""), missing);
    assert_eq!(browser.admin("PUT /cache/perf_test/k", r#"{"value":"h\u00e9"}"#), ok(r#"{"ok":true}"#));
    let found = ok(r#"{"found":true,"value":"hé","ttl_ms_remaining":0}"#);
    assert_eq!(browser.admin("GET /cache/perf_test/k?x", ""), found);
    assert_eq!(browser.admin("GET /cache/perf%5ftest/%6b", ""), found);
    assert_eq!(browser.admin("DELETE /cache/perf_test/k", ""), ok(r#"{"deleted":true}"#));
    assert_eq!(browser.admin("DELETE /cache/perf_test/k", ""), ok(r#"{"deleted":false}"#));
    assert_eq!(browser.admin("GET /cache/perf_test/k", ""), missing);
    // Both ports have the same caches.
    browser.admin("PUT /cache/perf_test/k", r#"{"value":"v"}"#);
    let index = browser.client.connect(server.endpoint());
    browser.client.send(index, b"\0\0\0\x13\x02\0\0\0\x09perf_test\0\0\0\x01k");
    let told =
        browser.client.wait_for("a reply", |client| Some(client.take(index)).filter(|told| told.len() >= 10));
    assert_eq!(told, b"\0\0\0\x06\x02\0\0\0\x01v");
    let report = server.stop();
    assert_eq!((report.http_connections, report.http_requests, report.hits), (1, 8, 1), "{report:?}");
}

#[test]
fn what_is_wrong_with_a_request_is_told() {
    let server = server(epoll());
    let mut browser = Browser::new(&server);
    for (line, body, status) in [
        ("PUT /cache/nope/k", r#"{"value":"v"}"#, 404),
        ("GET /cache/nope/k", "", 404),
        ("PUT /cache/perf_test/k", "{", 400),
        ("PUT /cache/perf_test/k", r#"{"value":1}"#, 422),
        ("PUT /cache/perf_test/k", "[]", 422),
        ("POST /cache/perf_test/k", "", 405),
        ("GET /cache/perf_test", "", 404),
        ("GET /elsewhere", "", 404),
        ("PATCH /admin/caches", "", 405),
    ] {
        assert_eq!(browser.admin(line, body).0, status, "{line} {body}");
    }
    let (status, text) = browser.told("PUT /cache/perf_test/k", ADMIN, "{}");
    assert_eq!((status, &text[..]), (415, "Expected request with `Content-Type: application/json`"));
    let large = format!(r#"{{"value":"{}"}}"#, "x".repeat(2 << 20));
    assert_eq!(browser.admin("PUT /cache/perf_test/k", &large).0, 413);
    assert_eq!(browser.admin("PUT /cache/perf_test/k", &large[..100]).0, 400, "it goes on");
    assert_eq!(browser.ask("POST /health", "", "").head.lines().nth(1), Some("content-length: 0"));
}

#[test]
fn who_may_use_it() {
    let server = server(epoll());
    let mut browser = Browser::new(&server);
    assert_eq!(browser.told("GET /health", "", ""), (200, "OK".to_owned()));
    for (fields, why) in [
        ("", "Missing Authorization header"),
        ("authorization: Basic YTpi\r\n", "Invalid credentials"),
        ("authorization: Bearer x\r\n", "Invalid or expired session token"),
        ("authorization: x\r\n", "Invalid Authorization header format"),
    ] {
        let expected = (401, format!(r#"{{"error":"{why}"}}"#));
        assert_eq!(browser.told("GET /elsewhere", fields, ""), expected);
    }
    let wrong = browser.told("POST /auth/login", JSON, r#"{"username":"admin","password":"x"}"#);
    assert_eq!(wrong, (401, r#"{"error":"Invalid username or password"}"#.to_owned()));
    let (status, told) =
        browser.told("POST /auth/login", JSON, r#"{"username":"admin","password":"admin123"}"#);
    let token = told.strip_prefix(r#"{"token":""#).and_then(|rest| rest.get(..32)).expect("a token");
    assert_eq!(status, 200);
    assert_eq!(told, format!(r#"{{"token":"{token}","expires_in":3600,"username":"admin"}}"#));
    let bearer = format!("authorization: Bearer {token}\r\n");
    assert_eq!(browser.told("GET /admin/caches", &bearer, "").0, 200);
    let [first, second] = [(); 2].map(|()| browser.ask("GET /admin/caches", ADMIN, "").head);
    assert!(first.contains("x-session-reused: false\r\n"), "{first}");
    assert!(second.contains("x-session-reused: true\r\n"), "{second}");
    let session =
        |head: &str| head.lines().find(|line| line.starts_with("x-session-token")).map(str::to_owned);
    assert_eq!(session(&first), session(&second));
    assert!(session(&first).is_some());
}

#[test]
fn caches_are_made_and_unmade() {
    let server = server(epoll());
    let mut browser = Browser::new(&server);
    let made = |created: bool, name: &str, how: &str| {
        (200, format!(r#"{{"created":{created},"message":"Cache '{name}' {how}"}}"#))
    };
    // Symptom: the documents' own request was refused, in words that did not name the field to write.
    let documented = browser.admin("POST /admin/caches", r#"{"name":"documented","max_capacity":100000}"#);
    assert_eq!(documented, made(true, "documented", "created successfully"));
    browser.admin("DELETE /admin/caches/documented", "");
    for (field, value, why) in [
        ("eviction", "lru", "Invalid backend type 'lru' in `eviction`. Must be 'ttl', 'size', or 'storage'"),
        (
            "backend",
            "ttl",
            "Unknown field `backend`. The backend type is `eviction`: 'ttl', 'size', or 'storage'",
        ),
        (
            "backend_type",
            "size",
            "Unknown field `backend_type`. The backend type is `eviction`: 'ttl', 'size', or 'storage'",
        ),
        ("eviction", "size", "mem_bytes must be at least 1048576 for `eviction` 'size'"),
    ] {
        let refused = browser.admin("POST /admin/caches", &format!(r#"{{"name":"x","{field}":"{value}"}}"#));
        assert_eq!(refused, (400, format!(r#"{{"error":"{why}"}}"#)), "{field}");
    }
    let body = r#"{"name":"other","eviction":"ttl"}"#;
    assert_eq!(browser.admin("POST /admin/caches", body), made(true, "other", "created successfully"));
    assert_eq!(browser.admin("POST /admin/caches", body), made(false, "other", "already exists"));
    for (body, status) in [
        (r#"{"name":"a b","eviction":"ttl"}"#, 400),
        (r#"{"eviction":"ttl"}"#, 422),
        (r#"{"name":"a","eviction":1}"#, 422),
        (r#"{"name":"a","max_capacity":0}"#, 422),
        (r#"{"name":"a","max_capacity":"many"}"#, 422),
        (r#"{"name":"a","eviction":"size"}"#, 400),
        (r#"{"name":"a","eviction":"size","mem_bytes":1048575}"#, 400),
        (r#"{"name":"a","eviction":"storage","mem_bytes":1048576}"#, 400),
        (r#"{"name":"a","eviction":"size","mem_bytes":1048576}"#, 200),
        (r#"{"name":"b","eviction":"storage","mem_bytes":1048576,"disk_path":"/tmp"}"#, 200),
    ] {
        assert_eq!(browser.admin("POST /admin/caches", body).0, status, "{body}");
    }
    let (_, list) = browser.admin("GET /admin/caches", "");
    let names: Vec<_> = list.split(r#""name":""#).skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(names, ["a", "b", "other", "perf_test"], "{list}");
    browser.admin("PUT /cache/a/k", r#"{"value":"v"}"#);
    let one = r#"{"name":"a","eviction":"size","mem_bytes":1048576,"keys_estimate":1}"#;
    assert_eq!(browser.admin("GET /admin/caches/a", ""), (200, one.to_owned()));
    assert_eq!(browser.admin("DELETE /admin/caches/a", "").0, 200);
    assert_eq!(browser.admin("DELETE /admin/caches/a", "").0, 404);
    assert_eq!(browser.admin("GET /cache/a/k", "").0, 404);
    assert_eq!(browser.admin("GET /admin/caches/a", "").0, 404);
}

#[test]
fn requests_may_be_pipelined_and_bodies_cut() {
    let server = server(epoll());
    let mut browser = Browser::new(&server);
    let put = format!(
        "PUT /cache/perf_test/k HTTP/1.1\r\n{ADMIN}{JSON}content-length: 13\r\n\r\n{{\"value\":\"v\"}}"
    );
    let get = format!("GET /cache/perf_test/k HTTP/1.1\r\n{ADMIN}\r\n");
    let both = format!("{put}{get}");
    browser.client.send(browser.index, both.as_bytes());
    for piece in both.as_bytes().chunks(7) {
        browser.client.send(browser.index, piece);
    }
    for _ in 0..2 {
        assert_eq!(browser.client.response(browser.index).body, br#"{"ok":true}"#);
        let got = browser.client.response(browser.index).body;
        assert_eq!(got, br#"{"found":true,"value":"v","ttl_ms_remaining":0}"#);
    }
}

#[test]
fn what_is_no_http_ends_a_connection() {
    let server = server(epoll());
    let mut browser = Browser::new(&server);
    browser.client.send(browser.index, b"\0\0\0\x01\0");
    assert_eq!(browser.client.response(browser.index).status, 400);
    assert_eq!(browser.client.end(browser.index), End::Closed);
    assert_eq!(server.stop().refused, 1);
    let without = start(options(), epoll());
    assert_eq!(without.http_endpoint(), None);
}
