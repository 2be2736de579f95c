//! Fingerprints: equal for equal commands, different for any other.

use crate::resolve::flags::plan;

const URL: &str = "http://a.test/";

#[test]
fn seed_and_secrets_do_not_count() {
    let print = |line: &[&str]| plan(&[&[URL], line].concat()).fingerprint();
    assert_eq!(print(&[]), print(&["--seed", "5"]));
    assert_eq!(print(&["--bearer", "a"]), print(&["--bearer", "b"]));
    assert_ne!(print(&["--bearer", "a"]), print(&[]));
    // Other ways of writing the same plan give the same hash.
    assert_eq!(print(&[]), print(&["--duration", "10s", "--connections", "64", "--method", "GET"]));
}

#[test]
fn it_is_stable_over_versions() {
    // A stored run is found again by this value: if a change of the plan makes it differ, raise the version
    // in the canonical text and this value with it. The request carries the version of the program. The drain
    // of this plan is a default, which was 5 s once: then it is another plan.
    let plan = plan(&[URL, "--rate", "100", "--header", "User-Agent:"]);
    assert_eq!(plan.fingerprint().to_string(), "7790815d9cf646a4ba9298d5254d3a5f");
}

#[test]
fn what_is_offered_over_tls_counts() {
    let print = |line: &[&str]| plan(&[&["https://a.test/", "--insecure"], line].concat()).fingerprint();
    let prints = [&[][..], &["--alpn", "h2,http/1.1"], &["--alpn", "http/1.1,h2"], &["--http2"]].map(print);
    assert!((1..4).all(|index| !prints[..index].contains(&prints[index])), "{prints:?}");
    assert_eq!(print(&["--http2"]), print(&["--alpn", "h2"]));
}

#[test]
fn every_other_flag_counts() {
    let lines: &[&[&str]] = &[
        &[],
        &["http://a.test/2"],
        &["--connections", "2"],
        &["--iterations", "200"],
        &["--duration", "3s"],
        &["--threads", "2"],
        &["--rate", "100"],
        &["--rate", "100", "--arrival", "poisson"],
        &["--rate", "100", "--overload", "drop"],
        &["--rate", "101"],
        &["--warmup", "1s"],
        &["--users", "64"],
        &["--user-stages", "1s@5"],
        &["--user-stages", "1s@4"],
        &["--drain", "1s"],
        &["--timeout", "29s"],
        &["--connect-timeout", "9s"],
        &["--method", "HEAD"],
        &["--header", "A: b"],
        &["--body", "a"],
        &["--follow-redirects", "1"],
        &["--pipeline", "2"],
        &["--max-requests-per-connection", "2"],
        &["--disable-keepalive"],
        &["--source-ip", "127.0.0.1"],
        &["--unix-socket", "/a"],
        &["--precise"],
        &["--backend", "epoll"],
        &["--pacing", "shared"],
        &["--max-head-bytes", "4096"],
        &["--no-preflight"],
        &["--http2"],
        &["--http2", "--rate", "100"],
        &["--http2", "--streams", "2"],
        &["--http2", "--window-bits", "20"],
        &["--http2", "--connection-window-bits", "20"],
        &["--http2", "--header-table-size", "0"],
        &["--http2", "--encoder-header-table-size", "0"],
        &["--http2", "--max-frame-size", "32KiB"],
        &["--http2", "--ping-interval", "1s"],
        &["--connection-lifetime", "1s"],
        &["--connection-inactivity", "1s"],
        &["--connection-rate", "10"],
        &["--crud-create-method", "POST"],
        &["--crud-update-method", "PATCH"],
        &["--crud-delete-method", "DELETE"],
        &["--crud-delete-method", "DELETE", "--crud-resource-header", "x-at"],
        &["--crud-create-method", "POST", "--rps", "2"],
    ];
    let prints: Vec<_> = lines.iter().map(|line| plan(&[&[URL], *line].concat()).fingerprint()).collect();
    for (index, print) in prints.iter().enumerate() {
        if let Some(same) = prints[..index].iter().position(|other| other == print) {
            panic!("{:?} and {:?}", lines[index], lines[same]);
        }
    }
}
