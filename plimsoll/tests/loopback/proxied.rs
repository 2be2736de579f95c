//! Loads through a proxy: requests that it is handed, and tunnels, against a small proxy that notes what it
//! is asked for. The sink counts what comes out behind it.

mod server;

use serde_json::Value;

use crate::loopback::backends::on_each;
use crate::loopback::foreign::Certificate;
use crate::loopback::process::{Folder, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count, delivered, errors};
use server::{Options, Proxy};

/// A run of 40 requests on 4 connections through a proxy, after a preflight.
fn carry_out(url: &str, proxy: &str, flags: &str) -> Value {
    let result = run(&format!("{url} --proxy {proxy} -n 40 -c 4 -o json {flags}")).result();
    assert_balance(&result);
    assert_eq!(account(&result, "ok"), 40, "{url} {flags}: {}", result["error_examples"]);
    result
}

#[test]
fn an_http_proxy_is_handed_plain_requests() {
    on_each(|backend| {
        let (sink, proxy) = (Sink::start(""), Proxy::start(Options::default()));
        let url = format!("{}a?b=1", sink.url());
        let flags = format!("--backend {backend} --body hello");
        let result = carry_out(&url, &format!("http://{}", proxy.address), &flags);
        let seen = proxy.seen();
        // The preflight sends no write, and connects only.
        assert_eq!(seen.len(), 40, "{seen:?}");
        for asked in &seen {
            assert_eq!((&*asked.line, &asked.authorization), (&*format!("POST {url} HTTP/1.1"), &None));
        }
        let saw = sink.stop();
        assert_eq!(saw.requests, delivered(&result));
        assert!(count(&result, "/connect_time/count") >= 4, "{}", result["connect_time"]);
    });
}

#[test]
fn credentials_go_to_the_proxy_alone_and_are_shown_nowhere() {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let Certificate { certificate, key } = Certificate::new(&folder);
    let secure = Sink::start(&format!("--tls-cert {certificate} --tls-key {key}"));
    let proxy = Proxy::start(Options { credentials: Some("me:topsecret"), ..Options::default() });
    let file = folder.file("result.html");
    for url in [sink.url(), format!("https://{}/", secure.endpoint)] {
        let flags = format!("--cacert {certificate} --report {file}");
        let flags = if url.starts_with("https") { flags } else { format!("--report {file}") };
        let result = carry_out(&url, &format!("http://me:topsecret@{}", proxy.address), &flags);
        let shown = result.to_string() + &std::fs::read_to_string(&file).expect("there is a report");
        assert!(!shown.contains("topsecret") && !shown.contains("bWU6dG9wc2VjcmV0"), "{shown}");
        assert!(shown.contains(&format!("http://***@{}", proxy.address)), "{}", result["run"]["args"]);
    }
    for asked in proxy.seen() {
        assert_eq!(asked.authorization.as_deref(), Some("Basic bWU6dG9wc2VjcmV0"), "{asked:?}");
    }
    // The proxy passes on what it is handed, and has taken the field out.
    assert_eq!([sink.stop().requests, secure.stop().requests], [41, 41]);
}

/// A tunnel for TLS, by HTTP/1.1 and HTTP/2, and for HTTP/2 without TLS.
#[test]
fn https_and_http2_go_through_tunnels() {
    on_each(|backend| {
        let folder = Folder::new();
        let Certificate { certificate, key } = Certificate::new(&folder);
        let tls = format!("--tls-cert {certificate} --tls-key {key}");
        for (server, scheme, flags, protocol) in [
            (&*tls, "https", "-k", "http/1.1"),
            (&tls, "https", "-k --http2", "h2"),
            (&tls, "https", "-k --alpn h2,http/1.1", "h2"),
            ("", "http", "--http2", "h2"),
        ] {
            let (sink, proxy) = (Sink::start(server), Proxy::start(Options::default()));
            let url = format!("{scheme}://{}/", sink.endpoint);
            let flags = format!("{flags} --backend {backend}");
            let result = carry_out(&url, &format!("http://{}", proxy.address), &flags);
            assert_eq!(count(&result, &format!("/protocols/{}", protocol.replace('/', "~1"))), 40);
            let (seen, saw) = (proxy.seen(), sink.stop());
            assert_eq!(seen.len() as u64, saw.connections, "a tunnel for each connection");
            let line = format!("CONNECT {} HTTP/1.1", sink_of(&url));
            assert!(seen.iter().all(|asked| asked.line == line), "{seen:?}");
            assert_eq!(saw.requests, delivered(&result));
        }
    });
}

/// The authority of a URL.
fn sink_of(url: &str) -> &str {
    url.split('/').nth(2).expect("a URL")
}

#[test]
fn socks5_makes_tunnels_for_everything() {
    on_each(|backend| {
        let folder = Folder::new();
        let Certificate { certificate, key } = Certificate::new(&folder);
        let tls = format!("--tls-cert {certificate} --tls-key {key}");
        for (server, scheme, flags) in
            [("", "http", ""), (&*tls, "https", "-k"), (&tls, "https", "-k --http2"), ("", "http", "--http2")]
        {
            for (proxy, user, credentials, told) in [
                ("socks5", "", None, "127.0.0.1"),
                ("socks5h", "", None, "localhost"),
                ("socks5h", "me:secret@", Some("me:secret"), "localhost"),
            ] {
                let sink = Sink::start(server);
                let made = Proxy::start(Options { credentials, ..Options::default() });
                let port = sink.endpoint.rsplit(':').next().expect("a port");
                let url = format!("{scheme}://localhost:{port}/");
                let flags = format!("{flags} -4 --backend {backend}");
                let result = carry_out(&url, &format!("{proxy}://{user}{}", made.address), &flags);
                let line = format!("SOCKS5 {told}:{port}");
                let (seen, saw) = (made.seen(), sink.stop());
                assert!(seen.iter().all(|asked| asked.line == line), "{seen:?}");
                assert_eq!(seen.len() as u64, saw.connections, "a tunnel for each connection");
                assert_eq!(saw.requests, delivered(&result));
            }
        }
    });
}

/// The proxy takes its time for each tunnel, and none for what goes through it.
#[test]
fn the_time_for_a_tunnel_is_that_of_connecting() {
    const DELAY_NS: u64 = 300_000_000;
    let sink = Sink::start("");
    for scheme in ["http", "socks5"] {
        let delay = std::time::Duration::from_nanos(DELAY_NS);
        let proxy = Proxy::start(Options { delay, ..Options::default() });
        let http2 = if scheme == "http" { "--http2" } else { "--disable-keepalive" };
        let flags = format!("--proxy {scheme}://{} -n 8 -c 4 -o json {http2}", proxy.address);
        let result = run(&format!("{} {flags}", sink.url())).result();
        assert_eq!(account(&result, "ok"), 8, "{}", result["error_examples"]);
        assert!(count(&result, "/connect_time/min") >= DELAY_NS, "{}", result["connect_time"]);
        assert!(count(&result, "/service_time/min") < DELAY_NS, "{}", result["service_time"]);
    }
}

#[test]
fn a_refusal_of_the_proxy_is_told_in_its_words() {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let wants = Proxy::start(Options { credentials: Some("me:secret"), ..Options::default() });
    let (address, secure) = (&wants.address, format!("https://{}/", sink.endpoint));
    for (proxy, message) in [
        (format!("http://{address}"), "refused the tunnel: HTTP/1.1 407 Proxy Authentication Required"),
        (format!("http://me:wrong@{address}"), "refused the tunnel: HTTP/1.1 407"),
        (format!("socks5://{address}"), "it wants credentials, and the proxy's URL has none"),
        (format!("socks5://me:wrong@{address}"), "the user or the password is wrong (status 1)"),
    ] {
        let refused = run(&format!("{secure} -k --proxy {proxy} -n 4"));
        refused.assert_refused(1, message);
        assert!(refused.stderr.contains("hint: give the proxy's user and password"), "{}", refused.stderr);
        let result = run(&format!("{secure} -k --proxy {proxy} -n 4 -c 2 --no-preflight -o json")).result();
        assert_balance(&result);
        assert_eq!(errors(&result, "proxy"), 4, "{}", result["errors"]);
        let examples = result["error_examples"].to_string();
        assert!(examples.contains(message), "{examples}");
    }
    // Nothing listens there.
    let free = crate::loopback::foreign::free_address();
    let target = Proxy::start(Options::default());
    run(&format!("https://{free}/ -k --proxy http://{} -n 4", target.address))
        .assert_refused(1, "the proxy refused the tunnel: HTTP/1.1 502 Bad Gateway");
    run(&format!("http://{free}/ --proxy socks5h://{} -n 4", target.address))
        .assert_refused(1, "the proxy refused the tunnel: connection refused (SOCKS reply 5)");
    let gone = run(&format!("{} --proxy http://{free} -n 4", sink.url()));
    gone.assert_refused(1, &format!("through the proxy `{free}`: connect to the proxy: Connection refused"));
    assert!(gone.stderr.contains("is the proxy running"), "{}", gone.stderr);
    drop(folder);
    assert_eq!(sink.stop().requests, 0);
}

/// A redirect leads from a request that the proxy is handed to one through a tunnel, and a script's requests
/// are handed to it, too.
#[test]
fn redirects_and_scripts_stay_on_the_way() {
    let folder = Folder::new();
    let Certificate { certificate, key } = Certificate::new(&folder);
    let secure = Sink::start(&format!("--tls-cert {certificate} --tls-key {key}"));
    let sink = Sink::start("");
    let proxy = Proxy::start(Options {
        redirects: Some(format!("https://{}/there", secure.endpoint)),
        ..Options::default()
    });
    let flags = format!("--follow-redirects=2 --cacert {certificate} --no-preflight -n 12 -c 3 -o json");
    let result = run(&format!("{} --proxy http://me:secret@{} {flags}", sink.url(), proxy.address)).result();
    assert_eq!(account(&result, "ok"), 12, "{}", result["error_examples"]);
    let seen = proxy.seen();
    let tunnels = seen.iter().filter(|asked| asked.line == format!("CONNECT {} HTTP/1.1", secure.endpoint));
    assert!(tunnels.count() > 0, "{seen:?}");
    assert_eq!([sink.stop().requests, secure.stop().requests], [0, 12]);

    let (sink, proxy) = (Sink::start(""), Proxy::start(Options::default()));
    let script = folder.write(
        "wrk.lua",
        "local n = 0\nrequest = function() n = n + 1\nreturn wrk.format('PUT', '/made/' .. n, nil, 'abc') end\n",
    );
    let flags = format!("-s {script} -t 1 -n 12 -c 3 --no-preflight -o json");
    let result = run(&format!("{} --proxy http://{} {flags}", sink.url(), proxy.address)).result();
    assert_eq!(account(&result, "ok"), 12, "{}", result["error_examples"]);
    let line = format!("PUT http://{}/made/12 HTTP/1.1", sink.endpoint);
    assert!(proxy.seen().iter().any(|asked| asked.line == line), "{:?}", proxy.seen());
    assert_eq!(sink.stop().requests, 12);
}

#[test]
fn websockets_and_single_tries_go_through_it() {
    let (sink, proxy) = (Sink::start("--websocket --threads 1"), Proxy::start(Options::default()));
    let line = format!("ws ws://{}/chat --proxy http://{}", sink.endpoint, proxy.address);
    let result = run(&format!("{line} -n 4 -c 2 --messages 3 --quiet -o json")).result();
    // An upgrade, three messages and a close each.
    assert_eq!(account(&result, "ok"), 4 * 5, "{}", result["error_examples"]);
    let tunnel = format!("CONNECT {} HTTP/1.1", sink.endpoint);
    assert!(!proxy.seen().is_empty() && proxy.seen().iter().all(|asked| asked.line == tunnel));
    drop(sink.stop());

    let (sink, folder) = (Sink::start(""), Folder::new());
    let plan = format!("targets: {{a: '{}'}}\nscenarios: [{{steps: [{{get: /x}}]}}]\n", sink.url());
    let plan = folder.write("plan.yaml", plan);
    let tried = run(&format!("try {plan} --proxy http://me:secret@{}", proxy.address));
    assert_eq!(tried.code, Some(0), "{tried:?}");
    assert!(tried.stdout.contains(&format!("GET {}x", sink.url())), "{}", tried.stdout);
    assert!(!tried.stdout.contains("bWU6c2VjcmV0"), "{}", tried.stdout);
    assert_eq!(sink.stop().requests, 1);
}
