//! Our sink under the load of other people's clients: h2load, nghttp and curl.

use plimsoll_testkit::skip;
use std::process::Command;

use crate::loopback::backends::on_each;
use crate::loopback::foreign::Certificate;
use crate::loopback::process::{Folder, Process};
use crate::loopback::sink::{Saw, Sink};

/// Runs a program to its end and returns its stdout; `None`, and a word on stderr, if it is not installed.
pub(super) fn output(program: &str, args: &str) -> Option<String> {
    let Some(process) = Process::try_start(Command::new(program).args(args.split_whitespace())) else {
        skip::without_program(program);
        return None;
    };
    let finished = process.finish();
    assert_eq!(finished.code, Some(0), "{program} {args}: {finished:?}");
    Some(finished.stdout)
}

/// A sink with TLS, and one without.
struct Sinks {
    plain: Sink,
    tls: Sink,
    _folder: Folder,
}

impl Sinks {
    fn start(args: &str) -> Self {
        let folder = Folder::new();
        let Certificate { certificate, key } = Certificate::new(&folder);
        let tls = Sink::start(&format!("--tls-cert {certificate} --tls-key {key} {args}"));
        Self { plain: Sink::start(args), tls, _folder: folder }
    }

    /// A URL on either of them, and its name.
    fn each(&self) -> [String; 2] {
        [self.plain.url(), format!("https://{}/", self.tls.endpoint)]
    }

    fn stop(self) -> [Saw; 2] {
        [self.plain.stop(), self.tls.stop()]
    }
}

/// Asserts that h2load had a good answer to each of its requests.
fn assert_served(report: &str, requests: u64, protocol: &str) {
    let counts = format!(
        "requests: {requests} total, {requests} started, {requests} done, {requests} succeeded, 0 failed, 0 \
         errored, 0 timeout"
    );
    assert!(report.contains(&counts), "{report}");
    assert!(report.contains(&format!("Application protocol: {protocol}\n")), "{report}");
}

/// Arguments of h2load, and the number of requests that it makes with them.
const LOADS: &[(&str, u64)] = &[
    ("-n 5000 -c 8 -m 32", 5_000),
    ("-n 3000 -c 1 -m 1000", 3_000),
    ("-n 200 -c 1 -m 1", 200),
    ("-n 300 -c 300 -m 1", 300),
    ("-n 1000 -c 4 -m 16 --header-table-size=0 --encoder-header-table-size=0", 1_000),
    ("-n 1000 -c 4 -m 16 --header-table-size=65536 --encoder-header-table-size=65536", 1_000),
    ("-n 1000 -c 4 -m 16 -H x-one:1 -H cookie:a=b -H cookie:c=d", 1_000),
];

#[test]
fn h2load_is_answered_exactly() {
    on_each(|backend| {
        let sinks = Sinks::start(&format!("--backend {backend}"));
        for (url, protocol) in sinks.each().iter().zip(["h2c", "h2"]) {
            for &(load, requests) in LOADS {
                let Some(report) = output("h2load", &format!("{load} {url}")) else { return };
                assert_served(&report, requests, protocol);
            }
        }
        for saw in sinks.stop() {
            assert_eq!(saw.requests, LOADS.iter().map(|load| load.1).sum::<u64>());
            assert_eq!(saw.connections, 8 + 1 + 1 + 300 + 4 + 4 + 4);
        }
    });
}

/// Bodies in both directions, past windows of any size.
#[test]
fn h2load_with_bodies_and_small_windows() {
    let folder = Folder::new();
    let body = folder.write("body", vec![b'y'; 3_000_000]);
    on_each(|backend| {
        let sinks = Sinks::start(&format!("--body-size 300000 --backend {backend}"));
        for (url, protocol) in sinks.each().iter().zip(["h2c", "h2"]) {
            for windows in ["", "-w 16 -W 16", "-w 10 -W 20", "-w 20 -W 16", "-f 1048576"] {
                let load = format!("-n 40 -c 2 -m 8 {windows} {url}");
                let Some(report) = output("h2load", &load) else { return };
                assert_served(&report, 40, protocol);
                assert!(report.contains("11.44MB") || report.contains("(12000000) data"), "{report}");
            }
            let Some(report) = output("h2load", &format!("-n 20 -c 2 -m 4 -d {body} {url}")) else { return };
            assert_served(&report, 20, protocol);
        }
        for saw in sinks.stop() {
            assert_eq!(saw.requests, 5 * 40 + 20);
        }
    });
}

#[test]
fn nghttp_gets_what_it_asks_for() {
    on_each(|backend| {
        let sinks = Sinks::start(&format!("--body-size 100000 --backend {backend}"));
        for url in sinks.each() {
            for flags in ["", "--no-dep", "-w 10", "-w 10 -W 16", "-H te:trailers", "-b 200"] {
                let Some(body) = output("nghttp", &format!("{flags} -m 5 {url}")) else { return };
                assert_eq!(body.len(), 500_000, "{flags}");
            }
            let seen = output("nghttp", &format!("-nv -H:method:HEAD {url}")).expect("it is there");
            assert!(seen.contains(":status: 200") && seen.contains("content-length: 100000"), "{seen}");
            assert!(!seen.contains("recv DATA"), "{seen}");
        }
        for saw in sinks.stop() {
            assert_eq!((saw.requests, saw.connections), (6 * 5 + 1, 7));
        }
    });
}

#[test]
fn curl_speaks_whichever_version_it_likes() {
    let folder = Folder::new();
    let body = folder.write("body", vec![b'y'; 500_000]);
    on_each(|backend| {
        let sinks = Sinks::start(&format!("--backend {backend}"));
        let [plain, tls] = sinks.each();
        let told = |args: &str| {
            let write =
                "-s -k -o /dev/null --max-time 60 -w %{http_version}/%{http_code}/%{size_download}\\n";
            output("curl", &format!("{write} {args}"))
        };
        let ways: [(&str, &str, &str); 6] = [
            ("--http2-prior-knowledge", &plain, "2/200/32"),
            ("--http2", &tls, "2/200/32"),
            ("", &tls, "2/200/32"),
            ("--http1.1", &tls, "1.1/200/32"),
            ("--http1.1", &plain, "1.1/200/32"),
            // An upgrade is an offer: the answer may be one of HTTP/1.1 (RFC 9110 section 7.8).
            ("--http2", &plain, "1.1/200/32"),
        ];
        for (flags, url, expected) in ways {
            let Some(line) = told(&format!("{flags} {url}")) else { return };
            assert_eq!(line.trim(), expected, "{flags} {url}");
            let posted = told(&format!("{flags} -X POST --data-binary @{body} {url}")).expect("it is there");
            assert_eq!(posted.trim(), expected, "{flags} {url}");
        }
        for saw in sinks.stop() {
            assert_eq!(saw.requests, 6);
        }
    });
}

/// Faults of the sink, as others see them: a status, a stream that is reset, and one that stays open.
#[test]
fn h2load_sees_the_faults() {
    on_each(|backend| {
        let sink = Sink::start(&format!("--fail 20%:503 --reset 20% --backend {backend}"));
        let Some(report) = output("h2load", &format!("-n 2000 -c 4 -m 16 {}", sink.url())) else { return };
        let saw = sink.stop();
        assert_eq!(saw.requests, 2_000);
        let ended = |action: &str| saw.truth.rows.iter().filter(|row| row.action == action).count();
        let (good, bad, reset) = (ended("replied"), ended("status 503"), ended("reset"));
        assert_eq!(good + bad + reset, 2_000);
        assert!(bad > 300 && reset > 300, "{bad} {reset} of 2,000 at 20 %");
        let statuses = format!("status codes: {good} 2xx, 0 3xx, 0 4xx, {bad} 5xx");
        assert!(report.contains(&statuses), "{report}");
        let counts = format!("{good} succeeded, {} failed, {reset} errored", bad + reset);
        assert!(report.contains(&counts), "{report}");
        assert_eq!(saw.connections, 4);
    });
}
