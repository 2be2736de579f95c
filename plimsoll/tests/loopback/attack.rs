//! The attack in a small size: the program against every hostile server of the test kit, on each backend, and
//! its servers against damaged requests. `cargo run --release -p bench -- attack` is the same in earnest.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use plimsoll_testkit::hostile::{Run, Suite, Target, attempt, authority_pem, barrage, suites};

use crate::loopback::backends::working;
use crate::loopback::cache::CacheTarget;
use crate::loopback::ingest_target::IngestTarget;
use crate::loopback::process::Folder;
use crate::loopback::sink::Sink;

/// Runs of a suite at a time. Most of them wait for a timeout.
const AT_ONCE: usize = 8;

/// Held by the suite that is carried out: eight suites at once would be 64 programs.
static SUITE: Mutex<()> = Mutex::new(());

/// Runs every case of these suites on every backend, and fails with all that did not hold at once.
fn attack(suites: &[Suite]) {
    let _one = SUITE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new();
    let authority = folder.write("authority.pem", authority_pem());
    let jobs: Vec<_> = suites
        .iter()
        .flat_map(|suite| suite.cases.iter().map(move |case| (suite, case)))
        .flat_map(|(suite, case)| working().iter().map(move |backend| (suite, case, *backend)))
        .collect();
    let (next, complaints) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((suite, case, backend)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = Run {
                        program: Path::new(env!("CARGO_BIN_EXE_plimsoll")),
                        backend,
                        authority: Path::new(&authority),
                        requests: 4,
                        connections: 2,
                    };
                    let made = attempt(run, suite, case).expect("server and program start");
                    let bad = made.breaches.iter().chain(&made.unexpected);
                    let bad = bad.map(|text| format!("{}, {}, {backend}: {text}", suite.name, case.name));
                    complaints.lock().expect("no panic while it is locked").extend(bad);
                }
            });
        }
    });
    let complaints = complaints.into_inner().expect("nobody panicked with it");
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
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
fn hostile_caches() {
    attack(&suites_of("cache"));
}

#[test]
fn hostile_websockets() {
    attack(&suites_of("WebSocket"));
}

#[test]
fn hostile_servers_of_grpc() {
    attack(&suites_of("gRPC"));
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
    let (sink, ingest, cache) = (Sink::start(""), IngestTarget::start(""), CacheTarget::start(""));
    for (target, address) in
        [(Target::Sink, &sink.endpoint), (Target::Ingest, &ingest.address), (Target::Cache, &cache.frames)]
    {
        let address = address.parse().expect("an address");
        let made = barrage(address, target, 1, 3_000).expect("every good request is answered well");
        assert_eq!(made.sent, 3_000);
        assert!(made.answered > 300, "{}: {made:?}", target.name());
    }
}
