//! Requests of scripts: refusals, and the written bytes.

use plimsoll_core::Random;
use plimsoll_wire::http2::FieldLimits;
use plimsoll_wire::http2::hpack::Decoder;
use proptest::prelude::*;

use super::*;
use crate::{Body, Context, RequestSpec, RequestTemplate};

fn request(method: &str, fields: &[(&str, &str)], body: &str) -> DynamicRequest {
    let mut request = DynamicRequest {
        method: method.into(),
        path: b"/a?b".to_vec(),
        authority: b"example.test:81".to_vec(),
        body: body.into(),
        ..DynamicRequest::default()
    };
    for (name, value) in fields {
        request.fields.push(name.as_bytes(), value.as_bytes());
    }
    request
}

fn written(request: &DynamicRequest) -> String {
    let mut out = Vec::new();
    request.write_http1(None, &mut out);
    String::from_utf8(out).unwrap()
}

fn block(request: &DynamicRequest) -> Vec<(String, String)> {
    let mut out = Vec::new();
    request.write_block(Scheme::Https, &mut out);
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Decoder::new(0)
        .decode(&out, &FieldLimits::default(), |name, value| fields.push((text(name), text(value))))
        .unwrap();
    fields
}

#[test]
fn http1_has_a_host_and_a_true_length() {
    assert_eq!(written(&request("GET", &[], "")), "GET /a?b HTTP/1.1\r\nhost: example.test:81\r\n\r\n");
    let fields = [("X-A", "1"), ("Content-Length", "99"), ("Connection", "close")];
    assert_eq!(
        written(&request("PUT", &fields, "abc")),
        "PUT /a?b HTTP/1.1\r\nhost: example.test:81\r\nx-a: 1\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc"
    );
    assert!(written(&request("POST", &[], "")).contains("\r\ncontent-length: 0\r\n"));
    assert!(!written(&request("HEAD", &[], "")).contains("content-length"));
    assert!(written(&request("GET", &[], "x")).contains("\r\ncontent-length: 1\r\n"));
    let other = written(&request("GET", &[("Host", "other")], ""));
    assert!(other.contains("\r\nhost: other\r\n") && !other.contains("example"), "{other}");
    let raw = DynamicRequest { raw: b"anything".to_vec(), raw_count: 1, ..request("GET", &[], "") };
    assert_eq!(written(&raw), "anything");
}

#[test]
fn http2_has_pseudo_headers_first_and_nothing_about_connections() {
    let fields = [
        ("X-A", " 1 "),
        ("Connection", "close, X-Hop"),
        ("x-hop", "2"),
        ("Keep-Alive", "5"),
        ("TE", "gzip"),
        ("Cookie", "a=b"),
        ("content-length", "7"),
    ];
    let text = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let pseudo =
        [(":method", "POST"), (":scheme", "https"), (":path", "/a?b"), (":authority", "example.test:81")];
    let rest = [("x-a", "1"), ("cookie", "a=b"), ("content-length", "0")];
    assert_eq!(block(&request("POST", &fields, "")), text(&[&pseudo[..], &rest].concat()));
    let trailers = block(&request("GET", &[("te", "trailers"), ("host", "h")], ""));
    assert_eq!(trailers[3..], text(&[(":authority", "h"), ("te", "trailers")]));
}

#[test]
fn secrets_are_never_indexed() {
    let mut out = Vec::new();
    request("GET", &[("Authorization", "x")], "").write_block(Scheme::Http, &mut out);
    // RFC 7541 section 6.2.3 with the static name 23: 0001 1111, then 23 - 15.
    assert!(out.windows(2).any(|pair| pair == [0x1f, 8]), "{out:x?}");
}

#[test]
fn what_could_be_read_as_another_request_is_refused() {
    let good = || request("GET", &[("x", "y")], "");
    let with = |change: &dyn Fn(&mut DynamicRequest)| {
        let mut request = good();
        change(&mut request);
        request.check().unwrap_err()
    };
    assert_eq!(good().check(), Ok(()));
    for (message, reason) in [
        (with(&|r| r.method = b"GE T".to_vec()), "`GE T` is not a method"),
        (with(&|r| r.method = b"GET\r\n".to_vec()), "`GET\\r\\n` is not a method"),
        (with(&|r| r.method.clear()), "`` is not a method"),
        (
            with(&|r| r.method = b"CONNECT".to_vec()),
            "the method CONNECT opens a tunnel and cannot be used for load",
        ),
        (with(&|r| r.path = b"a".to_vec()), "the path `a` does not start with `/`"),
        (with(&|r| r.path.clear()), "the path `` does not start with `/`"),
        (with(&|r| r.path = b"/a b".to_vec()), "` ` is not allowed in a path: write %20"),
        (with(&|r| r.path = b"/\r\nX: y".to_vec()), "`\\r` is not allowed in a path: write %0D"),
        (with(&|r| r.authority = b"a\nb".to_vec()), "`\\n` is not allowed in a host"),
        (with(&|r| r.fields.push(b"a b", b"c")), "`a b` is not the name of a header"),
        (with(&|r| r.fields.push(b":path", b"/")), "`:path` is not the name of a header"),
        (with(&|r| r.fields.push(b"", b"/")), "`` is not the name of a header"),
        (
            with(&|r| r.fields.push(b"x", b"secret\r\ny: z")),
            "the value of the header `x` has a control character",
        ),
        (with(&|r| r.fields.push(b"Host", b"a b")), "` ` is not allowed in a host"),
        (
            with(&|r| ["a", "b"].iter().for_each(|host| r.fields.push(b"Host", host.as_bytes()))),
            "the header `host` is there twice",
        ),
        (
            with(&|r| r.fields.push(b"Transfer-Encoding", b"chunked")),
            "the header `transfer-encoding` cannot be set: bodies are sent with their length",
        ),
        (with(&|r| r.raw = b"x".to_vec()), "the bytes are not a whole request"),
    ] {
        assert_eq!(message, reason);
    }
    let options = DynamicRequest { path: b"*".to_vec(), ..request("OPTIONS", &[], "") };
    assert_eq!(options.check(), Ok(()));
}

#[test]
fn raw_requests_are_counted() {
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let post = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let chunked = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (raw, count) in [
        (get.to_owned(), 1),
        (post.to_owned(), 1),
        (format!("{get}{post}{get}"), 3),
        (format!("{chunked}{get}"), 2),
        (get.repeat(1000), 1000),
    ] {
        assert_eq!(DynamicRequest::count_http1(raw.as_bytes()), Ok(count));
    }
    for raw in
        ["", "\r\n", "GET / HTTP/1.1\r\n", &post[..post.len() - 1], "hello\r\n\r\n", &format!("{get}x")]
    {
        assert!(DynamicRequest::count_http1(raw.as_bytes()).is_err(), "{raw:?}");
    }
}

#[test]
fn raw_requests_become_fields() {
    let raw = "\r\nPOST /x?y HTTP/1.1\r\nHost: a:1\r\nX-A: b\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    let parsed = DynamicRequest::parse_http1(raw.as_bytes()).unwrap();
    let mut expected = request("POST", &[("x-a", "b"), ("connection", "close")], "hello");
    (expected.path, expected.authority) = (b"/x?y".to_vec(), b"a:1".to_vec());
    assert_eq!(parsed, expected);
    let absolute = DynamicRequest::parse_http1(b"GET HTTP://b/c HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!((&*absolute.authority, &*absolute.path), (&b"b"[..], &b"/c"[..]));
    for (raw, message) in [
        (
            "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "the script gives 2 requests at once, and HTTP/2 or a proxy takes one after the other",
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "the request has a body in chunks, which HTTP/2 and proxies are not given",
        ),
        ("GET a HTTP/1.1\r\n\r\n", "the path `a` does not start with `/`"),
        ("GET / HTTP/1.1\r\n", "the request ends in its middle: `GET / HTTP/1.1\\r\\n`"),
    ] {
        assert_eq!(DynamicRequest::parse_http1(raw.as_bytes()).unwrap_err(), message);
    }
}

#[test]
fn a_template_becomes_the_request_that_it_sends() {
    let spec = RequestSpec {
        method: "PUT".to_owned(),
        target: "/${random_hex(4)}".to_owned(),
        authority: "a".to_owned(),
        headers: vec![("X-A".to_owned(), "${uuid}".to_owned())],
        body: Body::Text(b"${random_string(9)} ${sequence}".to_vec()),
        ..RequestSpec::default()
    };
    let template = RequestTemplate::http1(&spec).unwrap();
    let (context, random) = (Context::default(), Random::new(5, 0));
    let mut sent = Vec::new();
    template.render(&context, &mut random.clone(), &mut Vec::new(), &mut sent);
    let mut dynamic = request("GET", &[("left", "over")], "left over");
    (dynamic.raw, dynamic.raw_count) = (b"left over".to_vec(), 1);
    template.render_dynamic(&context, &mut random.clone(), &mut dynamic);
    assert_eq!(dynamic.check(), Ok(()));
    assert_eq!(DynamicRequest::parse_http1(&sent).unwrap(), dynamic);
    let mut kept = SentRequest::default();
    template.render_request(&context, &mut random.clone(), &mut kept);
    assert_eq!(kept.fields.get("content-length"), Some(&b"11"[..]));
    let mut copied = request("GET", &[("left", "over")], "left over");
    copied.copy_from(&kept);
    assert_eq!(copied, dynamic);
}

proptest! {
    #[test]
    fn what_passes_is_one_request_that_says_the_same_over_both_protocols(
        method in prop_oneof![9 => "[A-Z]{1,5}|GET|POST|PUT", 1 => "[A-Z\r ]{0,5}"],
        path in prop_oneof![9 => "/[!-~]{0,6}", 1 => "/[!-~ \r\u{80}]{0,6}"],
        fields in proptest::collection::vec(
            (
                prop_oneof![
                    9 => "[a-zA-Z]{1,6}|Connection|Content-Length|TE|Host|Cookie",
                    1 => "[a-zA-Z:\n ]{0,6}",
                ],
                prop_oneof![9 => "[!-~]{0,6}|[ -~\t]{0,6}", 1 => "[ -~\r\n\t]{0,6}"],
            ),
            0..5,
        ),
        body in "[a-z\r\n]{0,40}",
    ) {
        let pairs: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        let mut request = request(&method, &pairs, &body);
        request.path = path.into_bytes();
        prop_assume!(request.check().is_ok());
        let mut raw = Vec::new();
        request.write_http1(None, &mut raw);
        // A server cannot read more requests from it, or fewer; `Connection` may only make it the last.
        prop_assert_eq!(DynamicRequest::count_http1(&raw), Ok(1));
        let read = DynamicRequest::parse_http1(&raw).unwrap();
        prop_assert_eq!((&read.method, &read.path), (&request.method, &request.path));
        prop_assert_eq!(&read.body, &request.body);
        prop_assert_eq!(block(&read), block(&request));
        let block = block(&request);
        prop_assert!(block.iter().skip(4).all(|(name, _)| !name.starts_with(':')), "{:?}", block);
    }

    #[test]
    fn any_bytes_are_counted_or_refused(raw in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = DynamicRequest::count_http1(&raw);
        let _ = DynamicRequest::parse_http1(&raw);
    }
}
