//! h2spec against our sink: every rule that it knows, strict ones included.

use plimsoll_testkit::skip;
use std::process::Command;

use crate::loopback::backends::on_each;
use crate::loopback::foreign::Certificate;
use crate::loopback::process::{Folder, Process};
use crate::loopback::sink::Sink;

/// Seconds that h2spec waits for an answer; it does so only where an answer is missing.
const PATIENCE_S: &str = "1";

/// Rules of RFC 7540 that RFC 9113 has no more: its section 5.3.1 left priorities out.
const WITHDRAWN: [&str; 2] =
    ["Sends HEADERS frame that depend on itself", "Sends PRIORITY frame that depend on itself"];
/// Without TLS the sink takes other bytes than the preface of HTTP/2 for HTTP/1.1, and reports the error in
/// that protocol.
const NOT_THE_ONLY_PROTOCOL: &str = "Sends invalid connection preface";

/// Returns the failures that h2spec reports for a sink; `None`, with a message on stderr, if h2spec is not
/// installed.
fn failures(sink: &Sink, flags: &[&str]) -> Option<Vec<String>> {
    let port = sink.endpoint.rsplit_once(':').expect("an address has a port").1;
    let mut command = Command::new("h2spec");
    command.args(["-S", "-h", "127.0.0.1", "-p", port, "-o", PATIENCE_S]).args(flags);
    let Some(process) = Process::try_start(&mut command) else {
        // It is built by Go, which not every machine has.
        skip::on_this_machine("h2spec is not installed, so nothing is tested with it");
        return None;
    };
    let report = process.finish().stdout;
    // "146 tests, 145 passed, 1 skipped, 0 failed"
    let totals = report.lines().last().unwrap_or_default();
    let figures: Vec<usize> =
        totals.split(", ").filter_map(|part| part.split(' ').next()?.parse().ok()).collect();
    let [tests, passed, skipped, failed] = figures[..] else { panic!("{report}") };
    assert!(tests > 100 && passed + skipped + failed == tests && skipped <= 1, "{report}");
    let (_, list) = report.split_once("\nFailures:").unwrap_or_default();
    // "× 2: Sends invalid connection preface"
    let titles = list.lines().filter_map(|line| line.trim().strip_prefix("× ")?.split_once(": "));
    let titles: Vec<String> = titles.map(|(_, title)| title.to_owned()).collect();
    assert_eq!(titles.len(), failed, "{report}");
    Some(titles)
}

#[test]
fn h2spec_finds_nothing_but_what_is_meant_so() {
    let folder = Folder::new();
    let Certificate { certificate, key } = Certificate::new(&folder);
    on_each(|backend| {
        let plain = Sink::start(&format!("--backend {backend}"));
        let Some(mut failures_of_plain) = failures(&plain, &[]) else { return };
        failures_of_plain.retain(|title| title != NOT_THE_ONLY_PROTOCOL);
        assert_eq!(failures_of_plain, WITHDRAWN);
        let tls = Sink::start(&format!("--tls-cert {certificate} --tls-key {key} --backend {backend}"));
        let failures_of_tls = failures(&tls, &["-t", "-k"]).expect("it is there");
        assert_eq!(failures_of_tls, WITHDRAWN);
    });
}
