//! nghttpd, whose verbose log names every frame: without TLS and with it, and with all its oddities.

use serde_json::Value;

use crate::loopback::backends::on_each;
use crate::loopback::foreign::Certificate;
use crate::loopback::process::Folder;
use plimsoll_testkit::sink_log::{account, count, delivered};

use super::{Server, assert_all_ok, http2};

/// Starts it with more flags.
fn nghttpd(flags: &[&str], tls: bool) -> Option<Server> {
    let prepare = |folder: &Folder, plain: &str, _: &str, certificate: &Certificate| {
        folder.write("index.html", "hello");
        let (host, port) = plain.rsplit_once(':').expect("an address has a port");
        let folder = folder.path().display().to_string();
        let mut arguments: Vec<String> = ["-v", "-a", host, "-d", &folder].map(str::to_owned).to_vec();
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        if tls {
            arguments.extend([port.to_owned(), certificate.key.clone(), certificate.certificate.clone()]);
        } else {
            arguments.extend(["--no-tls".to_owned(), port.to_owned()]);
        }
        arguments
    };
    Server::start("nghttpd", prepare, |process| process.stdout.find(": listen "))
}

/// Ends it; how often its log says that it received a frame of this type.
fn received(server: Server, frame: &str) -> u64 {
    let log = server.stop("").0.stdout;
    log.matches(&format!(" recv {frame} frame ")).count() as u64
}

fn delivered_by(runs: &[Value]) -> u64 {
    runs.iter().map(delivered).sum()
}

#[test]
fn without_tls_its_log_has_what_we_count() {
    on_each(|backend| {
        let Some(server) = nghttpd(&[], false) else { return };
        let at = |load: &str| http2(&format!("http://{}/ {load} --backend {backend}", server.plain));
        let runs = [at("-n 1000 -c 4 -m 16"), at("-n 100 -c 1 -m 100"), at("--rate 200 -d 1s -c 2 -m 50")];
        for (result, (requests, connections)) in runs.iter().zip([(1_000, 4), (100, 1), (200, 2)]) {
            assert_all_ok(result, requests, connections);
            assert_eq!(count(result, "/http2/stream_limit"), 100, "its default");
        }
        assert_eq!(received(server, "HEADERS"), delivered_by(&runs));
    });
}

#[test]
fn over_tls() {
    on_each(|backend| {
        let Some(server) = nghttpd(&[], true) else { return };
        let ca = &server.certificate.certificate;
        let load = format!("-n 500 -c 4 -m 16 --cacert {ca} --backend {backend}");
        let result = http2(&format!("https://{}/ {load}", server.plain));
        assert_all_ok(&result, 500, 4);
        assert_eq!(count(&result, "/tls_versions/TLSv1.3"), 4);
        assert_eq!(received(server, "HEADERS"), delivered(&result));
    });
}

/// A limit of the server is kept, and reported.
#[test]
fn fewer_streams_than_asked_for() {
    on_each(|backend| {
        let Some(server) = nghttpd(&["-m", "3"], false) else { return };
        let load = format!("-n 300 -c 2 -m 50 --backend {backend}");
        let result = http2(&format!("http://{}/ {load}", server.plain));
        assert_all_ok(&result, 300, 2);
        let (limit, asked) = (count(&result, "/http2/stream_limit"), count(&result, "/http2/streams_asked"));
        assert_eq!((limit, asked), (3, 50));
        let log = server.stop("").0.stdout;
        assert_eq!(log.matches(" recv HEADERS frame ").count() as u64, delivered(&result));
        assert!(!log.contains("REFUSED_STREAM"), "no stream was opened beyond the limit");
    });
}

#[test]
fn padding_trailers_and_no_length() {
    on_each(|backend| {
        let flags = ["-b", "200", "--trailer", "checksum: none", "--no-content-length"];
        let Some(server) = nghttpd(&flags, false) else { return };
        let result = http2(&format!("http://{}/ -n 300 -c 2 -m 8 --backend {backend}", server.plain));
        assert_all_ok(&result, 300, 2);
        assert_eq!(received(server, "HEADERS"), delivered(&result));
    });
}

/// A server without a header table of its own: every request is encoded in full.
#[test]
fn no_header_table() {
    on_each(|backend| {
        for flag in ["-c", "--encoder-header-table-size"] {
            let Some(server) = nghttpd(&[flag, "0"], false) else { return };
            let load = format!("-n 300 -c 2 -m 8 -H x-one:1 -H x-two:2 --backend {backend}");
            let result = http2(&format!("http://{}/ {load}", server.plain));
            assert_all_ok(&result, 300, 2);
            let log = server.stop("").0.stdout;
            let fields = log.matches(") x-two: 2").count() as u64;
            assert_eq!(fields, delivered(&result), "every request has its fields");
        }
    });
}

/// nghttpd returns the request bodies: those that are larger than its windows of 64 KiB go out as it opens
/// them.
#[test]
fn bodies_are_sent_as_the_windows_allow() {
    const BODY_BYTES: u64 = 200_000;
    on_each(|backend| {
        let folder = Folder::new();
        let body = folder.write("body", vec![b'y'; BODY_BYTES as usize]);
        let Some(server) = nghttpd(&["--echo-upload"], false) else { return };
        let load = format!("-n 40 -c 2 -m 4 -b @{body} --backend {backend}");
        let result = http2(&format!("http://{}/ {load}", server.plain));
        assert_all_ok(&result, 40, 2);
        for way in ["sent", "received"] {
            let bytes = count(&result, &format!("/bytes/{way}"));
            assert!(bytes > 40 * BODY_BYTES && bytes < 41 * BODY_BYTES, "{way}: {bytes}");
        }
        let log = server.stop("").0.stdout;
        assert_eq!(log.matches(" recv HEADERS frame ").count() as u64, delivered(&result));
        assert!(!log.contains("FLOW_CONTROL_ERROR"), "no window was overrun");
        assert_eq!(account(&result, "unmeasured"), 0, "the first contact writes nothing");
    });
}
