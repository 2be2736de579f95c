//! The attack in a small size: the program against every hostile server of the core, on each backend, and
//! its servers against damaged requests. The tests of extensions make theirs. `cargo run --release -p bench
//! -- attack` is the same in earnest.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use plimsoll_testkit::hostile::{Suite, barrage, check, ingest_requests, sink_requests, suites};

use crate::loopback::ingest_target::IngestTarget;
use crate::loopback::sink::Sink;

/// Held by the suite that is carried out: eight suites at once would be 64 programs.
static SUITE: Mutex<()> = Mutex::new(());

/// Runs every case of these suites on every backend, and fails with all that did not hold at once.
fn attack(suites: &[Suite]) {
    let _one = SUITE.lock().unwrap_or_else(PoisonError::into_inner);
    check(Path::new(env!("CARGO_BIN_EXE_plimsoll")), suites);
}

fn suites_of(name: &str) -> Vec<Suite> {
    let suites: Vec<Suite> = suites().into_iter().filter(|suite| suite.name.starts_with(name)).collect();
    assert!(!suites.is_empty(), "{name}");
    suites
}

#[test]
fn hostile_servers_of_http1() {
    attack(&suites_of("HTTP/1.1"));
}

#[test]
fn hostile_servers_of_http2() {
    attack(&suites_of("HTTP/2"));
}

#[test]
fn hostile_servers_of_tls() {
    attack(&suites_of("TLS"));
}

#[test]
fn hostile_websockets() {
    attack(&suites_of("WebSocket"));
}

#[test]
fn hostile_services() {
    attack(&["canister", "ingest", "crud"].map(suites_of).concat());
}

#[test]
fn hostile_proxies() {
    attack(&suites_of("proxy"));
}

#[test]
fn damaged_requests_are_survived() {
    let (sink, ingest) = (Sink::start(""), IngestTarget::start(""));
    for (requests, address) in [(sink_requests(), &sink.endpoint), (ingest_requests(), &ingest.address)] {
        let address = address.parse().expect("an address");
        let made = barrage(address, &requests, 1, 3_000).expect("every good request is answered well");
        assert_eq!(made.sent, 3_000);
        assert!(made.answered > 300, "{}: {made:?}", requests.server);
    }
}
