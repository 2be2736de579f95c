//! The message for every mistake: the problem, and a hint.

use std::fmt::Write as _;

use crate::resolve::flags::{Memory, resolve_with};

const URL: &str = "http://a.test/";
const HTTPS: &str = "https://a.test/";

fn shown(line: &[&str]) -> String {
    let memory = Memory(
        [
            ("no-colon", b"me".to_vec()),
            ("binary", vec![0xff]),
            ("json", b"{}".to_vec()),
            ("dollar", b"cost: $ID".to_vec()),
        ]
        .into(),
    );
    let problems = match resolve_with(line, &memory) {
        Ok(plan) => panic!("{line:?} was accepted: {plan:?}"),
        Err(problems) => problems,
    };
    let mut text = format!("$ {}\n", line.join(" "));
    for problem in &problems {
        let _ = writeln!(text, "error: {}", problem.message);
        if let Some(hint) = &problem.hint {
            let _ = writeln!(text, "hint: {hint}");
        }
        assert!(!problem.message.contains("topsecret"), "{text}");
        assert!(!problem.message.ends_with('.') && !problem.message.contains('\n'), "{text}");
    }
    text
}

fn shown_all(lines: &[&[&str]]) -> String {
    lines.iter().map(|line| shown(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn urls() {
    insta::assert_snapshot!(shown_all(&[
        &[],
        &[""],
        &["htp://a.test/"],
        &["gopher://a.test/"],
        &["http:/a.test/"],
        &["http://:80/"],
        &["http://a.test:99999/"],
        &["http://::1/"],
        &["http://a.test/a b"],
        &["http://a.test/${uid}"],
        &["http://a.test/${uuid"],
        &["http://${uuid}.test/"],
        &["http://me:topsecret@/"],
        &["plan.yaml"],
    ]));
}

#[test]
fn load() {
    insta::assert_snapshot!(shown_all(&[
        &[URL, "--rate", "0"],
        &[URL, "--rate", "-5"],
        &[URL, "--rate", "fast"],
        &[URL, "--rate", "1/m", "--duration", "10s"],
        &[URL, "--rate", "1e9999"],
        &[URL, "--rate", "100000000000000000000"],
        &[URL, "--rate", "1000m", "--duration", "2s"],
        &[URL, "--rate", "5", "--duration", "1000000d"],
        &[URL, "--duration", "0"],
        &[URL, "--duration", "-1s"],
        &[URL, "--duration", "soon"],
        &[URL, "--iterations", "0"],
        &[URL, "--iterations", "1.5"],
        &[URL, "--iterations", "10", "--connections", "64"],
        &[URL, "--rate", "5", "--stages", "1s@5"],
        &[URL, "--duration", "5s", "--stages", "1s@5"],
        &[URL, "--stages", "nonsense"],
        &[URL, "--stages", "1s@0"],
        &[URL, "--stages", "0s@100"],
        &[URL, "--stages", "1s@0,1s@100", "--warmup", "1s"],
        &[URL, "--users", "0"],
        &[URL, "--users", "5000000000"],
        &[URL, "--users", "5", "--rate", "5"],
        &[URL, "--users", "5", "--user-stages", "1s@5"],
        &[URL, "--users", "20", "--connections", "19"],
        &[URL, "--users", "20", "--pipeline", "4", "--connections", "4"],
        &[URL, "--user-stages", "1s@5", "--duration", "5s"],
        &[URL, "--user-stages", "1s@0.5"],
        &[URL, "--user-stages", "1s@0,1s@5", "--warmup", "1s"],
        &[URL, "--user-stages", "1s@5", "--overload", "drop"],
        &[URL, "--arrival", "poisson"],
        &[URL, "--rate", "5", "--arrival", "normal"],
        &[URL, "--overload", "drop"],
        &[URL, "--rate", "5", "--overload", "explode"],
        &[URL, "--warmup", "x"],
        &[URL, "--drain", "x"],
        &[URL, "--timeout", "0"],
        &[URL, "--connect-timeout", "0s"],
        &[URL, "--seed", "x"],
    ]));
}

#[test]
fn connections() {
    insta::assert_snapshot!(shown_all(&[
        &[URL, "--connections", "0"],
        &[URL, "--connections", "-1"],
        &[URL, "--connections", "5000000000"],
        &[URL, "--threads", "0"],
        &[URL, "--threads", "5s"],
        &[URL, "--threads", "4", "--connections", "2"],
        &["http://a.test/", "http://b.test/", "http://c.test/", "--connections", "2"],
        &[URL, "--pipeline", "0"],
        &[URL, "--pipeline", "4", "--disable-keepalive"],
        &[URL, "--pipeline", "4", "--header", "Connection: close"],
        &[URL, "--pipeline", "4", "--max-requests-per-connection", "3"],
        &[URL, "--max-requests-per-connection", "0"],
        &[URL, "--max-requests-per-connection", "5", "--disable-keepalive"],
        &[URL, "--source-ip", "localhost"],
        &[URL, "--source-ip", "127.0.0.1", "--source-ip", "::1"],
        &[URL, "--source-ip", "127.0.0.1", "--ipv6"],
        &[URL, "--source-ip", "127.0.0.1", "--unix-socket", "/a"],
        &[URL, "--ipv4", "--ipv6"],
        &["http://127.0.0.1/", "--ipv6"],
        &[URL, "--ipv4", "--resolve", "a.test:80:::1"],
        &[URL, "--resolve", "a.test:80"],
        &[URL, "--resolve", "a.test:x:127.0.0.1"],
        &[URL, "--resolve", "a.test:80:b.test"],
        &[URL, "--resolve", "b.test:80:127.0.0.1"],
        &[URL, "--connect-to", "a.test:80:b.test"],
        &[URL, "--connect-to", "b.test:80:c.test:80"],
        &[URL, "--unix-socket", "/a", "--resolve", "a.test:80:127.0.0.1"],
        &[URL, "--unix-socket", ""],
        &[URL, "--backend", "kqueue"],
        &[URL, "--pacing", "exact"],
        &[URL, "--pacing", "shared", "--precise"],
        &[URL, "--max-head-bytes", "10"],
        &[URL, "--max-head-bytes", "many"],
        &[URL, "--follow-redirects", "1000"],
    ]));
}

#[test]
fn protocols() {
    insta::assert_snapshot!(shown_all(&[
        &[URL, "--http2", "--http1.1"],
        &[URL, "--http2", "--http2-prior-knowledge"],
        &[HTTPS, "--insecure", "--http2", "--alpn", "h2"],
        &[HTTPS, "--insecure", "--alpn", "h2,h2-16"],
        &[HTTPS, "--insecure", "--alpn", ""],
        &[HTTPS, "--insecure", "--alpn", "h2,h2"],
        &[URL, "--alpn", "h2"],
        &[HTTPS, "--insecure", "--http2-prior-knowledge"],
        &[URL, HTTPS, "--insecure", "--http2-prior-knowledge"],
        &[URL, "--streams", "8"],
        &[HTTPS, "--insecure", "--alpn", "http/1.1", "--streams", "8"],
        &[URL, "--http2", "--streams", "0"],
        &[URL, "--http2", "--streams", "POST"],
        &[URL, "--http2", "--streams", "5", "--streams", "6"],
        &[URL, "--http2", "--streams", "5", "--max-requests-per-connection", "4"],
        &[URL, "--http2", "--pipeline", "4"],
        &[HTTPS, "--insecure", "--alpn", "h2,http/1.1", "--pipeline", "4"],
        &[URL, "--http2", "--disable-keepalive"],
        &[URL, "--http2", "--header", "Connection: close"],
        &[URL, "--http2", "--header", "Keep-Alive: 5"],
        &[URL, "--http2", "--header", "TE: gzip"],
        &[HTTPS, "--insecure", "--alpn", "h2", "--header", "Upgrade: x"],
        &[HTTPS, URL, "--insecure", "--alpn", "h2", "--header", "Connection: keep-alive"],
        &[
            HTTPS,
            "--insecure",
            "--alpn",
            "h2",
            "--header",
            "Proxy-Connection: x",
            "--header",
            "Keep-Alive: 5"
        ],
        &[URL, "--window-bits", "20", "--ping-interval", "1s", "--max-frame-size", "20k"],
        &[URL, "--header-table-size", "1", "--encoder-header-table-size", "2"],
        &[URL, "--connection-window-bits", "20"],
        &[URL, "--http2", "--window-bits", "15"],
        &[URL, "--http2", "--connection-window-bits", "32"],
        &[URL, "--http2", "--header-table-size", "1g"],
        &[URL, "--http2", "--max-frame-size", "1k"],
        &[URL, "--http2", "--max-frame-size", "16MiB"],
        &[URL, "--http2", "--ping-interval", "0"],
        &[URL, "--connection-lifetime", "0"],
        &[URL, "--connection-inactivity", "soon"],
        &[URL, "--connection-rate", "0"],
        &[URL, "--connection-rate", "fast"],
        &[URL, "--stream-timeout", "0"],
        &[URL, "--stream-timeout", "1s", "--timeout", "2s"],
    ]));
}

#[test]
fn crud() {
    const CREATE: [&str; 3] = [URL, "--crud-create-method", "POST"];
    const VARIABLE: [&str; 5] =
        [URL, "--crud-request-variable-name", "ID", "--crud-request-variable-value-end", "9"];
    let with = |first: &[&'static str], rest: &[&'static str]| [first, rest].concat();
    insta::assert_snapshot!(shown_all(&[
        &[URL, "--rps", "100"],
        &[URL, "--rps", "100", "--connections", "50"],
        &[URL, "--stream-timeout-interval-ms", "2000"],
        &with(&CREATE, &["--rps", "100", "--rate", "5"]),
        &with(&CREATE, &["--rps", "100", "--stages", "1s@5"]),
        &with(&CREATE, &["--rps", "0"]),
        &with(&CREATE, &["--rps", "999999999999999999", "--connections", "1000"]),
        &with(&CREATE, &["--rps", "100", "--overload", "grow"]),
        &with(&CREATE, &["--stream-timeout-interval-ms", "0"]),
        &with(&CREATE, &["--stream-timeout-interval-ms", "2s"]),
        &with(&CREATE, &["--stream-timeout-interval-ms", "2000", "--timeout", "3s"]),
        &with(&CREATE, &["--method", "PUT", "--body", "x"]),
        &with(&CREATE, &["--crud-update-method", "patch"]),
        &with(&CREATE, &["--crud-delete-method", "G T"]),
        &with(&CREATE, &["--crud-update-data-file", "json"]),
        &with(&CREATE, &["--crud-resource-header", "location"]),
        &with(&CREATE, &["--crud-delete-method", "DELETE", "--crud-resource-header", ":status"]),
        &with(&CREATE, &["--crud-create-data-file", "missing"]),
        &with(&CREATE, &["--crud-request-variable-value-start", "1"]),
        &with(&CREATE, &["--crud-request-variable-name", "ID"]),
        &with(&CREATE, &["--crud-request-variable-name", "", "--crud-request-variable-value-end", "9"]),
        &with(&VARIABLE, &[]),
        &with(&VARIABLE, &["--crud-create-data-file", "json"]),
        &with(&VARIABLE, &["http://a.test/ID", "--crud-request-variable-value-start", "9"]),
        &with(&VARIABLE, &["http://a.test/ID", "--crud-request-variable-value-start", "-1"]),
        &with(&VARIABLE, &["http://a.test/$ID"]),
        &with(&VARIABLE, &["http://a.test/", "--crud-create-data-file", "dollar"]),
        &with(&CREATE, &["--crud-delete-method", "DELETE", "--header", "X: ${resource}"]),
    ]));
}

#[test]
fn requests() {
    insta::assert_snapshot!(shown_all(&[
        &[URL, "--method", "GE T"],
        &[URL, "--method", "post"],
        &[URL, "--method", "CONNECT"],
        &[URL, "--header", "Bearer topsecret"],
        &[URL, "--header", "A: b", "--header", "C D: e"],
        &[URL, "--header", "A: b\r\nC: d"],
        &[URL, "--header", "A: ${nope}"],
        &[URL, "--header", "Content-Length: 5"],
        &[URL, "--header", "Transfer-Encoding: chunked"],
        &[URL, "--header", "Host: a", "--header", "Host: b"],
        &[URL, "--body", "{\"a\": ${random_int(5,1)}}"],
        &[URL, "--body", "price ${amount}"],
        &[URL, "--body", "@"],
        &[URL, "--body", "@missing.json"],
        &[URL, "--basic", "topsecret"],
        &[URL, "--basic", "@no-colon"],
        &[URL, "--bearer", "top secret"],
        &[URL, "--bearer", "@missing"],
        &[URL, "--bearer", "@binary"],
        &[URL, "--basic", "me:topsecret", "--bearer", "topsecret"],
        &[URL, "--basic", "me:topsecret", "--header", "Authorization: Bearer topsecret"],
        &["http://me:topsecret@a.test/", "--bearer", "topsecret"],
    ]));
}

#[test]
fn tls_flags_without_https() {
    insta::assert_snapshot!(shown_all(
        &[&[URL, "--insecure"], &[URL, "--cacert", "ca.pem", "--tls", "1.2"],]
    ));
}

#[test]
fn everything_that_is_wrong_is_reported_at_once() {
    insta::assert_snapshot!(shown(&[
        "ftp://a.test/",
        "http://a.test:0/",
        "--connections",
        "0",
        "--duration",
        "0",
        "--rate",
        "0",
        "--timeout",
        "x",
        "--header",
        "nothing",
        "--body",
        "@missing",
        "--method",
        "G T",
        "--backend",
        "x",
        "--streams",
        "0",
        "--crud-create-method",
        "a b",
        "--alpn",
        "x",
    ]));
}

#[test]
fn a_wrong_header_is_reported_once_for_many_urls() {
    let line = ["http://a.test/", "http://b.test/", "--header", "Content-Length: 5"];
    let problems = resolve_with(&line, &Memory::default()).unwrap_err();
    assert_eq!(problems.iter().count(), 1, "{problems}");
}

#[test]
fn a_habit_is_the_hint() {
    let mut patch = crate::resolve::flags::patch(&[URL, "--threads", "5s"]);
    patch.threads = patch.threads.map(|given| given.with_habit("threads, not seconds"));
    let problems = plimsoll_plan::Plan::resolve(patch, &Memory::default()).unwrap_err();
    assert_eq!(problems.iter().next().unwrap().hint.as_deref(), Some("threads, not seconds"));
}
