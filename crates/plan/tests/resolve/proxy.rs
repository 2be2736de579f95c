//! The proxy of a run: which targets it is handed the requests of, and what is refused beside it.

use plimsoll_plan::{Plan, ProxyKind};

use crate::resolve::flags::{Memory, plan, request, resolve_with};

const PROXY: [&str; 2] = ["--proxy", "http://me:topsecret@proxy.test:3128"];

fn through(line: &[&str]) -> Plan {
    plan(&[line, &PROXY].concat())
}

#[test]
fn it_is_handed_plain_requests_and_asked_for_tunnels_otherwise() {
    for (line, forwarded) in [
        (&["http://a.test:8080/x"][..], true),
        (&["https://a.test:8080/x"], false),
        (&["http://a.test:8080/x", "--http2"], false),
        (&["https://a.test:8080/x", "--alpn", "h2,http/1.1"], false),
    ] {
        let plan = through(line);
        let target = &plan.targets[0];
        assert_eq!(target.forward().is_some(), forwarded, "{line:?}");
        assert_eq!(target.proxy.as_ref().unwrap().authority, "proxy.test:3128");
        let request = request(&plan, 0);
        let first = if forwarded { "GET http://a.test:8080/x HTTP/1.1\r\n" } else { "GET /x HTTP/1.1\r\n" };
        assert!(request.starts_with(first), "{line:?}: {request}");
        // base64("me:topsecret")
        let told = request.contains("Proxy-Authorization: Basic bWU6dG9wc2VjcmV0\r\n");
        assert_eq!(told, forwarded, "{line:?}: {request}");
        let debug = format!("{plan:?}");
        assert!(!debug.contains("topsecret") && !debug.contains("bWU6"), "{debug}");
    }
    let socks = plan(&["http://a.test/", "--proxy", "socks5h://127.0.0.1:1080"]);
    assert!(socks.targets[0].forward().is_none());
    assert_eq!(socks.targets[0].proxy.as_ref().unwrap().kind, ProxyKind::Socks5Names);
    assert!(plan(&["http://a.test/", "--proxy", "none"]).targets[0].proxy.is_none());
}

#[test]
fn plans_through_another_proxy_are_others_and_its_credentials_do_not_count() {
    let fingerprint = |proxy: &str| plan(&["https://a.test/", "--proxy", proxy]).fingerprint();
    let one = fingerprint("http://127.0.0.1:1");
    assert_eq!(one, fingerprint("http://me:topsecret@127.0.0.1:1"));
    for other in ["http://127.0.0.1:2", "socks5://127.0.0.1:1", "socks5h://127.0.0.1:1", "none"] {
        assert_ne!(one, fingerprint(other), "{other}");
    }
}

#[test]
fn settings_without_effect_beside_it_are_refused() {
    let hosts = "the proxy finds the hosts of http:// URLs";
    for (line, message) in [
        (&["http://a.test/", "--unix-socket", "/s"][..], "--proxy has no effect with --unix-socket"),
        (&["http://a.test/", "--connect-to", "::b.test:"], hosts),
        (&["http://a.test/", "--resolve", "a.test:80:127.0.0.1"], hosts),
    ] {
        let problems = resolve_with(&[line, &PROXY].concat(), &Memory::default()).unwrap_err();
        assert!(problems.to_string().contains(message), "{line:?}: {problems}");
    }
    // A tunnel leads where a URL is led to.
    through(&["https://a.test/", "--connect-to", "::b.test:"]);
    through(&["http://a.test/", "--http2", "--resolve", "a.test:80:127.0.0.1"]);
}

/// The family is that of our connections, which are those to the proxy.
#[test]
fn the_family_is_that_of_the_proxy() {
    let proxied = |line: &[&str]| resolve_with(line, &Memory::default()).map(drop).map_err(|p| p.to_string());
    let v4 = ["--proxy", "http://127.0.0.1:1"];
    assert_eq!(proxied(&[&["https://[::1]/", "--ipv4"][..], &v4].concat()), Ok(()));
    let refused = proxied(&[&["https://[::1]/", "--ipv6"][..], &v4].concat());
    assert_eq!(refused.unwrap_err(), "--ipv6: 127.0.0.1 is not an IPv6 address");
    let resolved_here = proxied(&["https://[::1]/", "--ipv4", "--proxy", "socks5://127.0.0.1:1"]);
    assert_eq!(resolved_here.unwrap_err(), "--ipv4: ::1 is not an IPv4 address");
}
