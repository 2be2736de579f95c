//! Each part of a request, as HTTP/2 sends it.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_scenario::reference::{Origin, Resource};
use plimsoll_scenario::{
    Body, Constants, Context, Conversion, Extract, RequestSpec, RequestTemplate, Scheme, Scope,
};
use plimsoll_wire::http2::{HeaderBlockCache, Indexing, Payload};

use crate::http2::connection::{Connection, get, post, raw, text, value, with_headers};

const AGENT: (&str, &str) = ("user-agent", concat!("plimsoll/", env!("CARGO_PKG_VERSION")));

fn compile(spec: &RequestSpec, book: &mut HeaderBlockCache) -> RequestTemplate {
    RequestTemplate::compile(spec, &Scope::default(), Some(book)).expect("a valid request")
}

/// The fields and the body of one request, alone on its connection.
fn sent(spec: &RequestSpec) -> (Vec<(String, String)>, String) {
    let mut book = HeaderBlockCache::new();
    let request = compile(spec, &mut book);
    book.seal();
    let context =
        Context { index: 5, worker: 1, unix_ns: 7_000_000_000, variables: &[], ..Context::default() };
    let (fields, body) = Connection::default().send(&request, &book, &context, &mut Random::new(1, 0));
    (fields.into_iter().map(|(name, value)| (name, text(&value))).collect(), text(&body))
}

#[test]
fn heads_become_fields() {
    let https = RequestSpec { scheme: Scheme::Https, ..get() };
    let options = RequestSpec { method: "OPTIONS".to_owned(), target: "*".to_owned(), ..get() };
    let templated = RequestSpec { target: "/${sequence}?w=${worker}".to_owned(), ..get() };
    let closing = RequestSpec { keep_alive: false, ..get() };
    let basic = |method, scheme, path, authority| {
        vec![(":method", method), (":scheme", scheme), (":path", path), (":authority", authority)]
    };
    let default = || basic("GET", "http", "/", "example.test:8080");
    for (spec, pseudo, rest) in [
        (get(), default(), vec![AGENT]),
        (https, basic("GET", "https", "/", "example.test:8080"), vec![AGENT]),
        (options, basic("OPTIONS", "http", "*", "example.test:8080"), vec![AGENT]),
        (templated, basic("GET", "http", "/5?w=1", "example.test:8080"), vec![AGENT]),
        (closing, default(), vec![AGENT]),
        (
            with_headers(get(), &[("HOST", "other"), ("X-A", " b "), ("User-Agent", "")]),
            basic("GET", "http", "/", "other"),
            vec![("x-a", "b")],
        ),
        (
            with_headers(get(), &[("Host", "v${sequence}.test"), ("x-a", "1"), ("X-A", "2")]),
            basic("GET", "http", "/", "v5.test"),
            vec![AGENT, ("x-a", "1"), ("x-a", "2")],
        ),
        (with_headers(get(), &[("Host", "")]), default()[..3].to_vec(), vec![AGENT]),
        (
            with_headers(
                get(),
                &[
                    ("Connection", "keep-alive, Upgrade"),
                    ("Keep-Alive", "timeout=5"),
                    ("Proxy-Connection", "close"),
                    ("Upgrade", "websocket"),
                    ("Transfer-Encoding", ""),
                    ("TE", "gzip"),
                    ("Te", "Trailers"),
                    ("X-Empty", ""),
                ],
            ),
            default(),
            vec![AGENT, ("te", "Trailers")],
        ),
    ] {
        let (fields, body) = sent(&spec);
        let expected = pseudo.into_iter().chain(rest).map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(fields, expected.collect::<Vec<_>>(), "{spec:?}");
        assert_eq!(body, "");
    }
}

#[test]
fn the_content_length_is_there_when_it_means_something() {
    let put = RequestSpec { method: "PUT".to_owned(), body: raw(20_000), ..get() };
    let bare = with_headers(RequestSpec { body: Body::None, ..post(b"") }, &[("content-length", "")]);
    for (spec, expected) in [
        (get(), None),
        (RequestSpec { body: Body::None, ..post(b"") }, Some("0")),
        (post(b""), Some("0")),
        (post(b"abc"), Some("3")),
        (with_headers(post(b"abc"), &[("Content-Length", "3")]), Some("3")),
        (post(b"${uuid}"), Some("36")),
        (post(b"n=${sequence}"), Some("3")),
        (post(b"${range(1,1000)}"), Some("4")),
        (put, Some("20000")),
        (bare, None),
    ] {
        let (fields, body) = sent(&spec);
        let lengths: Vec<&str> =
            fields.iter().filter(|(name, _)| name == "content-length").map(|(_, v)| v.as_str()).collect();
        assert_eq!(lengths, expected.into_iter().collect::<Vec<_>>(), "{spec:?}");
        assert_eq!(body.len().to_string(), expected.unwrap_or("0"), "{spec:?}");
    }
}

#[test]
fn credentials_are_never_indexed() {
    let headers = [("Authorization", "Bearer t"), ("proxy-authorization", "Basic ${sequence}"), ("x-a", "b")];
    let mut book = HeaderBlockCache::new();
    let request = compile(&with_headers(get(), &headers), &mut book);
    book.seal();
    let mut connection = Connection::default();
    for _ in 0..3 {
        connection.send(&request, &book, &Context::default(), &mut Random::new(1, 0));
        // RFC 7541 section 6.2.3: 0001, then the index of the name with 4 bits: 23 is 15 and 8, 49 is 15 and
        // 34.
        for literal in [[0x1f, 8], [0x1f, 34]] {
            assert_eq!(connection.block.windows(2).filter(|pair| *pair == literal).count(), 1);
        }
    }
}

#[test]
fn the_second_block_is_shorter_than_the_first() {
    let mut book = HeaderBlockCache::new();
    let request = compile(&with_headers(get(), &[("x-a", "b"), ("accept", "*/*")]), &mut book);
    book.seal();
    let mut connection = Connection::default();
    let mut block = || {
        let (fields, _) = connection.send(&request, &book, &Context::default(), &mut Random::new(1, 0));
        (fields, connection.block.len())
    };
    let ((first, _), (second, len)) = (block(), block());
    assert_eq!(first, second);
    assert_eq!(len, first.len(), "one byte for each field");
}

#[test]
fn bodies_that_never_change_are_not_copied() {
    let context = Context::default();
    let random = Random::new(1, 0);
    let mut scratch = Vec::new();
    let request = |body: Body| RequestTemplate::http1(&RequestSpec { body, ..post(b"") }).unwrap();
    for body in [Body::None, Body::Text(Vec::new()), Body::Raw(Arc::from(Vec::new()))] {
        let request = request(body);
        assert!(matches!(request.render_body(&context, &random, &mut scratch), Payload::None));
    }
    for body in [Body::Text(b"small".to_vec()), raw(16 * 1024)] {
        let request = request(body);
        let mut address = || match request.render_body(&context, &random, &mut scratch) {
            Payload::Bytes(bytes) => bytes.as_ptr(),
            other => panic!("{other:?}"),
        };
        assert_eq!(address(), address());
        assert_eq!(scratch.capacity(), 0);
    }
    let large = request(raw(16 * 1024 + 1));
    let Payload::Shared(bytes) = large.render_body(&context, &random, &mut scratch) else { panic!() };
    assert!(Arc::ptr_eq(bytes, large.shared_body().unwrap()));
    assert_eq!(scratch.capacity(), 0);
}

#[test]
fn rendering_reuses_its_buffers() {
    let names = ["token".to_owned(), "path".to_owned()];
    let scope = Scope::new(&names);
    let spec = with_headers(
        RequestSpec {
            target: "${path}/${range(1,500)}?q=${random_string(130)}".to_owned(),
            ..post(b"${sequence} ${timestamp_ns} ${random_int(-5,5)} ${token}")
        },
        &[("X-Request-Id", "${uuid}"), ("Authorization", "Bearer ${token}"), ("X-Fixed", "1")],
    );
    let mut book = HeaderBlockCache::new();
    let request = RequestTemplate::compile(&spec, &scope, Some(&mut book)).unwrap();
    book.seal();
    assert!(request.needs_clock() && request.uses_variables());
    let variables = [vec![b't'; 40], b"/a b".to_vec()];
    let (mut random, mut indexing) = (Random::new(1, 0), Indexing::default());
    let (mut out, mut scratch) = (Vec::with_capacity(1024), Vec::with_capacity(1024));
    let before = (out.as_ptr(), out.capacity(), scratch.as_ptr(), scratch.capacity());
    for index in 0..1000 {
        out.clear();
        let context = Context {
            index,
            worker: 0,
            unix_ns: u64::MAX - index,
            variables: &variables,
            ..Context::default()
        };
        let len = request.render_body(&context, &random, &mut scratch).len();
        request.render_block(&book, &mut indexing, &context, &mut random, len, &mut out);
        assert!(out.len() > 200 && len > 60);
    }
    assert_eq!(before, (out.as_ptr(), out.capacity(), scratch.as_ptr(), scratch.capacity()));
}

#[test]
fn the_path_can_be_had_alone() {
    let spec = with_headers(
        RequestSpec { target: "/${uuid}/${sequence}".to_owned(), ..post(b"${random_hex(9)}${sequence}") },
        &[("Host", "h${random_int(1,1000)}.test"), ("X-A", "${random_hex(9)}")],
    );
    let mut book = HeaderBlockCache::new();
    let request = compile(&spec, &mut book);
    book.seal();
    let context = Context { index: 3, ..Context::default() };
    let (mut random, mut path) = (Random::new(9, 0), Vec::new());
    let mut scratch = Vec::new();

    request.render_path(&context, &mut random.clone(), &mut path);
    let mut http1 = Vec::new();
    request.render(&context, &mut random, &mut scratch, &mut http1);
    assert_eq!(http1.split(|&byte| byte == b' ').nth(1), Some(&path[..]));

    let len = request.render_body(&context, &random, &mut scratch).len();
    path.clear();
    request.render_path(&context, &mut random.clone(), &mut path);
    let mut block = Vec::new();
    request.render_block(&book, &mut Indexing::default(), &context, &mut random, len, &mut block);
    let mut found = Vec::new();
    let field = |name: &[u8], value: &[u8]| found.extend((name == b":path").then(|| value.to_vec()));
    Connection::default().decoder.decode(&block, &Default::default(), field).unwrap();
    assert_eq!(found, [path]);
}

#[test]
fn a_resource_is_created_and_then_addressed_by_what_the_response_said() {
    let names = ["resource".to_owned()];
    let scope = Scope::new(&names);
    let mut book = HeaderBlockCache::new();
    let update = RequestSpec { method: "PATCH".to_owned(), target: "${resource}".to_owned(), ..post(b"{}") };
    let update = RequestTemplate::compile(&update, &scope, Some(&mut book)).unwrap();
    book.seal();
    let extract = Extract { header: "location".to_owned(), variable: 0, form: Conversion::Path };
    let mut variables = vec![Vec::new()];
    for (location, path) in [
        ("http://example.test:8080/users/1/items/77", "/users/1/items/77"),
        ("items/78?v=1#top", "/users/1/items/78?v=1"),
        ("?page=2", "/users/1/items?page=2"),
    ] {
        let origin = Origin { https: false, authority: b"example.test:8080" };
        let asked = Resource { origin, path: b"/users/1/items" };
        assert!(extract.apply(location.as_bytes(), asked, &mut variables[0]));
        let context = Context { variables: &variables, ..Context::default() };
        let (fields, _) = Connection::default().send(&update, &book, &context, &mut Random::new(1, 0));
        assert_eq!(value(&fields, ":path"), Some(path.as_bytes()), "{location}");
        let mut http1 = Vec::new();
        update.render(&context, &mut Random::new(1, 0), &mut Vec::new(), &mut http1);
        assert!(http1.starts_with(format!("PATCH {path} HTTP/1.1\r\n").as_bytes()), "{location}");
    }
}

#[test]
fn unknown_names_are_refused_wherever_they_stand() {
    let names = ["resource".to_owned()];
    let scope = Scope::new(&names);
    let target = RequestSpec { target: "${resorce}".to_owned(), ..get() };
    for (spec, place) in [
        (target, "URL"),
        (with_headers(get(), &[("A", "${resorce}")]), "header `A`"),
        (post(b"${resorce}"), "body"),
    ] {
        let error = RequestTemplate::compile(&spec, &scope, None).unwrap_err();
        assert_eq!(error.message(), format!("{place}: unknown template slot `${{resorce}}`"));
        assert_eq!(error.hint(), Some("did you mean `resource`? (write $${ for a literal ${)"));
        let without = RequestTemplate::http1(&spec).unwrap_err();
        assert!(without.hint().unwrap().starts_with("known: sequence"), "{without:?}");
    }
}

#[test]
fn a_redirect_is_followed_on_the_connection_that_it_came_on() {
    let names = ["token".to_owned()];
    let scope = Scope::new(&names);
    let spec = with_headers(
        RequestSpec { target: "/form?${token}".to_owned(), ..post(b"n=${sequence}&${token}") },
        &[("X-Kept", "1"), ("Authorization", "${token}"), ("Content-Type", "text/plain")],
    );
    let mut book = HeaderBlockCache::new();
    let first = RequestTemplate::compile(&spec, &scope, Some(&mut book)).unwrap();
    book.seal();
    let variables = [b"secret".to_vec()];
    let context = Context { index: 12, variables: &variables, ..Context::default() };
    let mut random = Random::new(1, 0);
    let mut connection = Connection::default();
    connection.send(&first, &book, &context, &mut random);
    // The next block has to say that the table shrinks, although the book does not know it.
    connection.indexing.peer_limit(0);
    let repeated = first.redirected("/there?a=${b}", 307).unwrap();
    let (fields, body) = connection.send(&repeated, &book, &context, &mut random);
    assert_eq!(connection.block[0], 0x20, "a size update to 0 (RFC 7541 section 6.3)");
    assert_eq!(value(&fields, ":method"), Some(&b"POST"[..]));
    assert_eq!(value(&fields, ":path"), Some(&b"/there?a=${b}"[..]));
    assert_eq!(value(&fields, "authorization"), Some(&b"secret"[..]));
    assert_eq!(value(&fields, "content-length"), Some(&b"11"[..]));
    assert_eq!(body, b"n=12&secret");
    let again = repeated.redirected("/end", 303).unwrap();
    let (fields, body) = connection.send(&again, &book, &context, &mut random);
    assert_eq!(value(&fields, ":method"), Some(&b"GET"[..]));
    assert_eq!(value(&fields, ":path"), Some(&b"/end"[..]));
    assert_eq!(value(&fields, "x-kept"), Some(&b"1"[..]));
    assert!(fields.iter().all(|(name, _)| !name.starts_with("content-")) && body.is_empty());
    let (fields, _) = connection.send(&first, &book, &context, &mut random);
    assert_eq!(value(&fields, ":path"), Some(&b"/form?secret"[..]));
}

#[test]
fn cookies_of_the_session_are_a_field_only_if_there_are_any() {
    let mut book = HeaderBlockCache::new();
    let names = ["v".to_owned()];
    let scope = Scope::new(&names);
    let mut compile = |headers: &[(&str, &str)]| {
        let spec = RequestSpec { cookies: true, ..with_headers(post(b"${v}"), headers) };
        RequestTemplate::compile(&spec, &scope, Some(&mut book)).unwrap()
    };
    let alone = compile(&[("X-A", "${v}")]);
    let joined = compile(&[("Cookie", "mine=1"), ("X-A", "${v}")]);
    let left_out = compile(&[("Cookie", "")]);
    book.seal();
    let variables = [b"value".to_vec()];
    let mut connection = Connection::default();
    for (request, cookies, expected) in [
        (&alone, "", None),
        (&alone, "a=b; c=d", Some("a=b; c=d")),
        (&joined, "", Some("mine=1")),
        (&joined, "a=b", Some("mine=1; a=b")),
        (&left_out, "a=b", None),
        (&alone, "", None),
    ] {
        let context = Context { variables: &variables, cookies: cookies.as_bytes(), ..Context::default() };
        let (fields, body) = connection.send(request, &book, &context, &mut Random::new(0, 0));
        assert_eq!(value(&fields, "cookie").map(text).as_deref(), expected, "{cookies}");
        assert_eq!(value(&fields, "content-length"), Some(&b"5"[..]));
        assert_eq!(body, b"value");
        let mut http1 = Vec::new();
        request.render(&context, &mut Random::new(0, 0), &mut Vec::new(), &mut http1);
        let line = expected.map(|value| format!("\r\nCookie: {value}\r\n"));
        assert_eq!(text(&http1).matches("\r\nCookie: ").count(), usize::from(line.is_some()));
        assert!(line.is_none_or(|line| text(&http1).contains(&line)), "{}", text(&http1));
    }
    assert!(alone.uses_cookies() && joined.uses_cookies() && !left_out.uses_cookies());
    assert!(!alone.is_static());
}

#[test]
fn the_authority_can_differ_from_request_to_request() {
    let mut book = HeaderBlockCache::new();
    let mut compile = |headers: &[(&str, &str)]| {
        let spec = RequestSpec { authority_slot: true, ..with_headers(get(), headers) };
        RequestTemplate::compile(&spec, &Scope::default(), Some(&mut book)).unwrap()
    };
    let (pooled, told) = (compile(&[]), compile(&[("Host", "told")]));
    book.seal();
    assert!(pooled.uses_authority() && !pooled.is_static() && !pooled.uses_variables());
    assert!(!told.uses_authority() && told.is_static());
    let mut connection = Connection::default();
    for authority in ["one.test:1", "two.test"] {
        let context = Context { authority: authority.as_bytes(), ..Context::default() };
        let (fields, _) = connection.send(&pooled, &book, &context, &mut Random::new(0, 0));
        assert_eq!(value(&fields, ":authority"), Some(authority.as_bytes()));
        let (fields, _) = connection.send(&told, &book, &context, &mut Random::new(0, 0));
        assert_eq!(value(&fields, ":authority"), Some(&b"told"[..]));
        let mut http1 = Vec::new();
        pooled.render(&context, &mut Random::new(0, 0), &mut Vec::new(), &mut http1);
        assert!(text(&http1).starts_with(&format!("GET / HTTP/1.1\r\nHost: {authority}\r\n")));
    }
}

#[test]
fn secrets_are_never_indexed_wherever_they_stand() {
    let constants = Constants::new([].into(), [("KEY".to_owned(), "topsecret".to_owned())].into());
    let scope = Scope { constants: Some(&constants), ..Scope::default() };
    let spec = RequestSpec {
        target: "/${secret(KEY)}".to_owned(),
        ..with_headers(get(), &[("X-Own", "${secret(KEY)}"), ("X-Open", "shown")])
    };
    let mut book = HeaderBlockCache::new();
    let request = RequestTemplate::compile(&spec, &scope, Some(&mut book)).unwrap();
    book.seal();
    assert!(request.has_secret() && request.is_static());
    for debug in [format!("{request:?}"), format!("{book:?}"), format!("{spec:?}")] {
        assert!(!debug.contains("topsecret") && !debug.contains("len_hint: Some"), "{debug}");
    }
    let mut connection = Connection::default();
    let mut send = || {
        let (fields, _) = connection.send(&request, &book, &Context::default(), &mut Random::new(0, 0));
        assert_eq!(value(&fields, "x-own"), Some(&b"topsecret"[..]));
        connection.block.len()
    };
    // An indexed field takes one byte the second time; others are sent anew.
    let (first, second) = (send(), send());
    assert!(second > 2 * 10 && first - second < 60, "{first} {second}");
    let redirected = request.redirected("/elsewhere", 307).unwrap();
    assert!(redirected.has_secret(), "constants are known there, too");
}
