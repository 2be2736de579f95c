//! nginx: without TLS, by ALPN, over a unix socket, and where it speaks only HTTP/1.1.

use crate::loopback::backends::on_each;
use crate::loopback::foreign::{Certificate, balanced};
use crate::loopback::process::{Folder, run};
use plimsoll_testkit::sink_log::{account, count, delivered, errors};

use super::{Server, assert_all_ok, assert_spoke, http2};

/// Size of the file: more than any buffer between it and us.
const FILE_BYTES: u64 = 1 << 20;
/// Requests after which one of the listeners says goodbye.
const GOODBYE_AFTER: u64 = 50;

fn nginx() -> Option<Server> {
    let prepare = |folder: &Folder, plain: &str, tls: &str, certificate: &Certificate| {
        folder.write("file.html", vec![b'x'; FILE_BYTES as usize]);
        let configuration = folder.write("nginx.conf", configuration(folder, plain, tls, certificate));
        let prefix = folder.path().display().to_string();
        ["-p", &prefix, "-c", &configuration, "-e", "stderr"].map(str::to_owned).to_vec()
    };
    // It listens before it says where it runs.
    Server::start("nginx", prepare, |process| process.stderr.find(" OS: "))
}

fn configuration(folder: &Folder, plain: &str, tls: &str, files: &Certificate) -> String {
    let Certificate { certificate, key } = files;
    // Unlike other paths those of sockets are not below its prefix.
    let [goodbye, http1] = ["goodbye.sock", "http1.sock"].map(|name| folder.file(name));
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr notice;
        events {{ worker_connections 256; }}
        http {{
            log_format short '$server_protocol $status $uri'; access_log access.log short;
            gzip off; types {{ text/html html; }}
            client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp; uwsgi_temp_path temp;
            scgi_temp_path temp;
            server {{
                listen {plain} http2;
                listen {tls} ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key};
                ssl_protocols TLSv1.2 TLSv1.3;
                keepalive_requests 100000; root .;
                location = / {{ return 200 hello; }}
                location = /moved {{ return 302 /; }}
            }}
            server {{
                listen unix:{goodbye} http2; keepalive_requests {GOODBYE_AFTER};
                location / {{ return 200 hello; }}
            }}
            server {{
                listen unix:{http1};
                location / {{ return 200 hello; }}
            }}
        }}"
    )
}

#[test]
fn without_tls_its_log_has_what_we_count() {
    on_each(|backend| {
        let Some(nginx) = nginx() else { return };
        let at = |path: &str, load: &str| {
            http2(&format!("http://{}{path} {load} --backend {backend}", nginx.plain))
        };
        let usual = at("/", "-n 4000 -c 8 -m 16");
        assert_all_ok(&usual, 4_000, 8);
        assert_eq!((count(&usual, "/statuses/200"), count(&usual, "/http2/streams_asked")), (4_000, 16));
        assert_eq!(count(&usual, "/http2/stream_limit"), 128, "its default");
        let single = at("/", "-n 200 -c 1 -m 1");
        assert_all_ok(&single, 200, 1);
        let missing = at("/missing", "-n 100 -c 2 -m 8");
        assert_eq!((errors(&missing, "status_4xx"), count(&missing, "/statuses/404")), (100, 100));
        assert_eq!(count(&missing, "/connections/opened"), 2, "an answer like any other");
        let open = at("/", "--rate 500 -d 1s -c 2 -m 50");
        assert_all_ok(&open, 500, 2);
        assert_eq!(account(&open, "scheduled"), 500);
        let runs = [usual, single, missing, open];
        let (_, log) = nginx.stop("access.log");
        assert_eq!(log.lines().count() as u64, runs.iter().map(delivered).sum::<u64>());
        assert!(log.lines().all(|line| line.starts_with("HTTP/2.0 ")), "{log}");
        assert_eq!(log.matches(" 404 ").count(), 101, "with a preflight");
    });
}

#[test]
fn alpn_chooses_what_both_speak() {
    let Some(nginx) = nginx() else { return };
    let (url, ca) = (format!("https://{}/", nginx.tls), nginx.certificate.certificate.clone());
    run(&format!("{url} --http2")).assert_refused(1, "certificate");
    on_each(|backend| {
        let load = format!("{url} --cacert {ca} -n 1000 -c 4 --backend {backend}");
        for version in ["1.2", "1.3"] {
            let result = http2(&format!("{load} -m 8 --tls {version}"));
            assert_all_ok(&result, 1_000, 4);
            assert_eq!(count(&result, &format!("/tls_versions/TLSv{version}")), 4);
        }
        let negotiated = balanced(&format!("{load} -m 8 --alpn h2,http/1.1"));
        assert_spoke(&negotiated, "h2");
        assert_all_ok(&negotiated, 1_000, 4);
        for only in ["--alpn http/1.1", "--http1.1", ""] {
            let result = balanced(&format!("{load} {only}"));
            assert_spoke(&result, "http/1.1");
            assert_eq!(account(&result, "ok"), 1_000, "{only}: {}", result["errors"]);
            assert!(result["http2"].is_null(), "{}", result["http2"]);
        }
    });
}

#[test]
fn bodies_and_windows() {
    let Some(nginx) = nginx() else { return };
    on_each(|backend| {
        let at = |load: &str| http2(&format!("http://{}/file.html {load} --backend {backend}", nginx.plain));
        // The smallest windows that a connection can have stop the server every 64 KiB, or not at all.
        let windows = ["", "--window-bits 16", "--window-bits 16 --connection-window-bits 16"];
        for load in windows.into_iter().chain(["--max-frame-size 1048576", "--header-table-size 0"]) {
            let result = at(&format!("-n 40 -c 2 -m 4 {load}"));
            assert_all_ok(&result, 40, 2);
            let received = count(&result, "/bytes/received");
            assert!(received > 40 * FILE_BYTES && received < 41 * FILE_BYTES, "{load}: {received}");
        }
        let heads = at("-n 40 -c 2 -m 4 -X HEAD");
        assert_all_ok(&heads, 40, 2);
        assert!(count(&heads, "/bytes/received") < 40 * 1_000, "{}", heads["bytes"]);
        let refused = at("-n 40 -c 2 -m 4 -b text");
        assert_eq!(count(&refused, "/statuses/405"), 40, "nginx takes no POST for a file");
    });
}

#[test]
fn redirects() {
    let Some(nginx) = nginx() else { return };
    let at = |load: &str| http2(&format!("http://{}/moved -n 20 -c 2 -m 2 {load}", nginx.plain));
    let left = at("");
    assert_eq!((account(&left, "ok"), count(&left, "/statuses/302")), (20, 20));
    let followed = at("--follow-redirects");
    assert_eq!((account(&followed, "ok"), count(&followed, "/statuses/200")), (20, 20));
    assert_eq!(account(&followed, "redirects_followed"), 20);
}

/// nginx sends GOAWAY after `GOODBYE_AFTER` requests, and ignores later ones on the connection.
#[test]
fn a_connection_that_says_goodbye_is_replaced() {
    on_each(|backend| {
        let Some(nginx) = nginx() else { return };
        let socket = nginx.folder.file("goodbye.sock");
        let load = format!("-n 1000 -c 2 -m 4 --backend {backend}");
        let load = format!("http://localhost/ --unix-socket {socket} {load}");
        let left = http2(&format!("{load} --no-resend"));
        assert!(errors(&left, "go_away") >= 1_000 / GOODBYE_AFTER, "{}", left["errors"]);
        assert_eq!((account(&left, "failed"), account(&left, "resent")), (errors(&left, "go_away"), 0));
        let result = http2(&load);
        // Requests that were in flight at the GOAWAY were not processed, and are sent again, on a connection
        // that may say goodbye as well.
        let unprocessed = errors(&result, "go_away");
        assert_eq!(account(&result, "ok") + unprocessed, 1_000, "{}", result["errors"]);
        let resent = account(&result, "resent");
        assert!(resent >= 1_000 / GOODBYE_AFTER && unprocessed * 20 <= resent, "{}", result["accounting"]);
        let goodbyes = count(&result, "/http2/go_aways/NO_ERROR");
        assert!(goodbyes >= 1_000 / GOODBYE_AFTER - 2, "{}", result["http2"]);
        assert!(count(&result, "/connections/opened") >= 1_000 / GOODBYE_AFTER, "{}", result["connections"]);
        assert_eq!(result["http2"]["violations"], serde_json::json!({}));
        let (_, log) = nginx.stop("access.log");
        let answered = |result| account(result, "ok") + account(result, "unmeasured");
        assert_eq!(log.lines().count() as u64, answered(&left) + answered(&result), "each answered once");
    });
}

#[test]
fn a_server_that_speaks_only_http1_is_told_apart() {
    let Some(nginx) = nginx() else { return };
    let socket = nginx.folder.file("http1.sock");
    on_each(|backend| {
        let load = format!("http://localhost/ --unix-socket {socket} --http2 --backend {backend}");
        run(&load).assert_refused(1, "the first request to");
        let result = balanced(&format!("{load} -n 20 -c 4 -m 1 --no-preflight"));
        assert_eq!(errors(&result, "wrong_protocol"), 20, "{}", result["errors"]);
    });
}
