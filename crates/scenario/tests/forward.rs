//! Requests that a proxy is handed: the whole URL in their first line.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_core::Redaction;
use plimsoll_scenario::{Body, Context, DynamicRequest, ForwardProxy, RequestSpec, RequestTemplate, Scheme};

fn proxy() -> ForwardProxy {
    ForwardProxy { authorization: Some(Arc::from("Basic bWU6c2VjcmV0")) }
}

fn spec() -> RequestSpec {
    RequestSpec {
        target: "/a?n=${sequence}".to_owned(),
        authority: "h.test:8080".to_owned(),
        headers: vec![("User-Agent".to_owned(), String::new()), ("X-A".to_owned(), "1".to_owned())],
        forward: Some(proxy()),
        ..RequestSpec::default()
    }
}

fn rendered(request: &RequestTemplate) -> String {
    let context = Context { index: 7, authority: b"other.test", ..Context::default() };
    let mut out = Vec::new();
    request.render(&context, &mut Random::new(1, 0), &mut Vec::new(), &mut out);
    String::from_utf8(out).expect("these requests are text")
}

fn of(spec: &RequestSpec) -> String {
    rendered(&RequestTemplate::http1(spec).expect("a legal request"))
}

#[test]
fn the_first_line_has_the_whole_url_and_the_proxy_its_credentials() {
    assert_eq!(
        of(&spec()),
        "GET http://h.test:8080/a?n=7 HTTP/1.1\r\nHost: h.test:8080\r\n\
         Proxy-Authorization: Basic bWU6c2VjcmV0\r\nX-A: 1\r\n\r\n"
    );
    let free = RequestSpec { forward: Some(ForwardProxy { authorization: None }), ..spec() };
    assert!(!of(&free).contains("Proxy-"), "{}", of(&free));
    let pooled = RequestSpec { authority_slot: true, ..spec() };
    assert!(of(&pooled).starts_with("GET http://other.test/a?n=7 HTTP/1.1\r\nHost: other.test\r\n"));
    let all = RequestSpec { method: "OPTIONS".to_owned(), target: "*".to_owned(), ..spec() };
    assert!(of(&all).starts_with("OPTIONS http://h.test:8080 HTTP/1.1\r\n"), "{}", of(&all));
    let own = [spec().headers, vec![("proxy-authorization".to_owned(), "Other x".to_owned())]].concat();
    let own = of(&RequestSpec { headers: own, ..spec() });
    assert!(own.contains("proxy-authorization: Other x\r\n") && !own.contains("bWU6"), "{own}");
}

/// A request through a tunnel has nothing for the proxy.
#[test]
fn requests_over_tls_have_no_part_for_the_proxy() {
    let secure = of(&RequestSpec { scheme: Scheme::Https, ..spec() });
    assert_eq!(secure, "GET /a?n=7 HTTP/1.1\r\nHost: h.test:8080\r\nX-A: 1\r\n\r\n");
    let first = RequestTemplate::http1(&spec()).unwrap();
    let away = first.redirected_away("/there", 302, Scheme::Https, &Redaction::default()).unwrap();
    assert!(
        rendered(&away).starts_with("GET /there HTTP/1.1\r\nHost: other.test\r\n"),
        "{}",
        rendered(&away)
    );
    assert!(!rendered(&away).contains("Proxy-"));
    let back = away.redirected_away("/back", 302, Scheme::Http, &Redaction::default()).unwrap();
    assert!(rendered(&back).starts_with("GET http://other.test/back HTTP/1.1\r\n"), "{}", rendered(&back));
    assert!(rendered(&back).contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
}

#[test]
fn what_is_static_stays_so_and_secrets_are_not_shown() {
    let plain = RequestSpec { target: "/".to_owned(), body: Body::None, ..spec() };
    let request = RequestTemplate::http1(&plain).unwrap();
    assert!(request.is_static());
    assert_eq!(request.len_hint(), rendered(&request).len());
    for debug in [format!("{plain:?}"), format!("{request:?}")] {
        assert!(!debug.contains("bWU6"), "{debug}");
    }
}

#[test]
fn requests_of_scripts_are_handed_to_it_too() {
    let written = |request: &DynamicRequest| {
        let mut out = Vec::new();
        request.write_http1(Some(&proxy()), &mut out);
        String::from_utf8(out).unwrap()
    };
    let raw = b"PUT /x HTTP/1.1\r\nHost: virtual.test\r\nContent-Length: 2\r\n\r\nab";
    let mut request = DynamicRequest::parse_http1(raw).unwrap();
    request.address(b"h.test:80");
    assert_eq!(
        written(&request),
        "PUT http://h.test:80/x HTTP/1.1\r\nproxy-authorization: Basic bWU6c2VjcmV0\r\n\
         host: virtual.test\r\ncontent-length: 2\r\n\r\nab"
    );
    let mut same = DynamicRequest::parse_http1(b"OPTIONS * HTTP/1.1\r\nHost: h.test\r\n\r\n").unwrap();
    same.address(b"h.test");
    assert!(written(&same).starts_with("OPTIONS http://h.test HTTP/1.1\r\n"), "{}", written(&same));
    assert!(written(&same).contains("\r\nhost: h.test\r\n"));
}
