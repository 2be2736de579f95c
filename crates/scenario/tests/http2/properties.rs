//! Any requests in any order on one connection.

use plimsoll_core::Random;
use plimsoll_scenario::{Body, Context, RequestSpec, RequestTemplate, Scope, SentRequest, TraceKey};
use plimsoll_wire::http2::{HeaderBlockCache, Indexing};
use proptest::prelude::*;
use proptest::sample::select;

use crate::http2::connection::{Connection, Fields, get, text};

/// Pieces of text. Random ones, too: all renderings of a request draw them in one order.
const PIECES: &[&str] = &[
    "${sequence}",
    "${worker}",
    "${timestamp_us}",
    "${range(7,12345)}",
    "${one}",
    "${two}",
    "${uuid}",
    "${random_int(-5,1000)}",
    "${random_float(1,2)}",
    "${random_string(9)}",
    "${pick(a,'b c')}",
    "${base64(${one}${random_hex(17)})}",
    "${upper(two)}",
    "plain",
    "$${one}",
    "/",
    "?",
    "",
];

const HEADERS: &[&str] = &[
    "Accept",
    "Authorization",
    "Connection",
    "Content-Type",
    "Cookie",
    "HOST",
    "Keep-Alive",
    "TE",
    "Upgrade",
    "User-Agent",
    "X-One",
    "X-Two",
    "x-one",
];

fn pieces(most: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(select(PIECES), 0..most).prop_map(|pieces| pieces.concat())
}

fn spec() -> impl Strategy<Value = RequestSpec> {
    let target = prop_oneof![
        pieces(4).prop_map(|rest| format!("/{rest}")),
        pieces(3).prop_map(|rest| format!("${{one}}{rest}")),
        Just("/".to_owned()),
    ];
    let headers = proptest::collection::vec((select(HEADERS), pieces(3)), 0..5);
    let body = prop_oneof![
        Just(Body::None),
        pieces(6).prop_map(|text| Body::Text(text.into_bytes())),
        (0..40_000_usize).prop_map(|len| Body::Raw(vec![b'x'; len].into())),
    ];
    let method = select(&["GET", "HEAD", "POST", "PUT", "DELETE"][..]);
    let flags = any::<[bool; 3]>();
    (method, target, headers, body, flags).prop_map(|(method, target, headers, body, flags)| {
        let [keep_alive, cookies, authority_slot] = flags;
        let mut kept: Vec<(String, String)> = Vec::new();
        for (name, value) in headers {
            // Two hosts are refused.
            if name != "HOST" || kept.iter().all(|(known, _)| known != name) {
                kept.push((name.to_owned(), value));
            }
        }
        let method = method.to_owned();
        RequestSpec { method, target, headers: kept, body, keep_alive, cookies, authority_slot, ..get() }
    })
}

/// Returns the fields and the body that HTTP/2 has to carry, read from the request as it is rendered for
/// HTTP/1.1: RFC 9113 section 8.3.1 and section 8.2.2. Sorted, because the order of fields with different
/// names means nothing.
fn expected(request: &RequestTemplate, context: &Context<'_>, random: &mut Random) -> (Fields, Vec<u8>) {
    let mut bytes = Vec::new();
    request.render(context, random, &mut Vec::new(), &mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head ends");
    let head = text(&bytes[..end]);
    let mut body = bytes.split_off(end + 4);
    body.extend_from_slice(request.shared_body().map_or(&[], |body| body));
    let mut lines = head.split("\r\n");
    let first: Vec<&str> = lines.next().expect("a first line").split(' ').collect();
    assert_eq!((first.len(), first[2]), (3, "HTTP/1.1"), "{head}");
    let mut fields = vec![
        (":method".to_owned(), first[0].into()),
        (":path".to_owned(), first[1].into()),
        (":scheme".to_owned(), b"http".to_vec()),
    ];
    for line in lines {
        let (name, value) = line.split_once(": ").expect("name: value");
        match name.to_ascii_lowercase().as_str() {
            "host" => fields.push((":authority".to_owned(), value.into())),
            name if of_connection(name) => {}
            name => fields.push((name.to_owned(), value.into())),
        }
    }
    fields.sort();
    (fields, body)
}

fn of_connection(name: &str) -> bool {
    matches!(name, "connection" | "keep-alive" | "upgrade" | "te")
}

/// Returns the fields and the body of a request as it is written down.
fn written_down(request: &RequestTemplate, context: &Context<'_>, random: &mut Random) -> (Fields, Vec<u8>) {
    let mut sent = SentRequest::default();
    sent.fields.push(b"left", b"over");
    request.render_request(context, random, &mut sent);
    let mut fields = vec![
        (":method".to_owned(), sent.method),
        (":path".to_owned(), sent.path),
        (":scheme".to_owned(), b"http".to_vec()),
    ];
    if !sent.authority.is_empty() {
        fields.push((":authority".to_owned(), sent.authority));
    }
    let regular = sent.fields.iter().map(|(name, value)| (text(name), value.to_vec()));
    fields.extend(regular.filter(|(name, _)| !of_connection(name)));
    fields.sort();
    (fields, sent.body)
}

proptest! {
    #[test]
    fn every_block_means_the_same_as_the_head_of_http1(
        specs in proptest::collection::vec(spec(), 1..6),
        order in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u64>(), 0..12_u8), 1..30),
        own_limit in select(&[0_u32, 50, 200, 4096][..]),
        one in "/[a-z%?]{0,20}", two in "[a-z]{0,300}", cookies in select(&["", "a=b; c=d"][..]),
        seed in any::<u64>(),
    ) {
        let names = ["one".to_owned(), "two".to_owned()];
        let scope = Scope::new(&names);
        let mut book = HeaderBlockCache::new();
        let requests: Vec<RequestTemplate> = specs
            .iter()
            .map(|spec| RequestTemplate::compile(spec, &scope, Some(&mut book)).unwrap())
            .collect();
        book.seal();
        let variables = [one.into_bytes(), two.into_bytes()];
        let mut connection = Connection { indexing: Indexing::new(own_limit), ..Connection::default() };
        for (which, index, event) in order {
            let mut request = which.get(&requests).clone();
            match event {
                0 => {
                    // The peer's settings, acknowledged before the next block.
                    let size = (index % 5000) as u32;
                    connection.indexing.peer_limit(size);
                }
                1 => request = request.redirected("/elsewhere", 303).unwrap(),
                2 => request = request.redirected("/elsewhere?${two}", 307).unwrap(),
                _ => {}
            }
            let context = Context {
                step: 0,
                trace_key: TraceKey::default(),
                index,
                worker: 3,
                unix_ns: index ^ 1_700_000_000,
                variables: &variables,
                tokens: None,
                cookies: cookies.as_bytes(),
                authority: b"pool-3.test:9",
                body: None,
            };
            let [mut http2, mut http1, mut down] = [(); 3].map(|()| Random::new(seed, index));
            let (fields, body) = connection.send(&request, &book, &context, &mut http2);
            let pseudo = fields.iter().take_while(|(name, _)| name.starts_with(':')).count();
            prop_assert_eq!(fields.iter().filter(|(name, _)| name.starts_with(':')).count(), pseudo);
            prop_assert!(fields.iter().all(|(name, _)| !name.bytes().any(|byte| byte.is_ascii_uppercase())));
            if let Some((_, length)) = fields.iter().find(|(name, _)| name == "content-length") {
                prop_assert_eq!(length, &body.len().to_string().into_bytes());
            } else {
                prop_assert!(body.is_empty());
            }
            let mut sorted = fields;
            sorted.sort();
            let sent = (sorted, body);
            prop_assert_eq!(&sent, &expected(&request, &context, &mut http1));
            prop_assert_eq!(&sent, &written_down(&request, &context, &mut down));
            let next = http2.bits();
            prop_assert_eq!((next, next), (http1.bits(), down.bits()), "as many were drawn");
        }
    }

    #[test]
    fn no_variable_can_break_out_of_a_target(
        value in proptest::collection::vec(any::<u8>(), 0..200),
        before in select(&["", "/", "/a/"][..]), after in select(&["", "/b", "?x=${v}"][..]),
    ) {
        let names = ["v".to_owned()];
        let spec = RequestSpec { target: format!("{before}${{v}}{after}"), ..get() };
        let mut book = HeaderBlockCache::new();
        let scope = Scope::new(&names);
        let request = RequestTemplate::compile(&spec, &scope, Some(&mut book)).unwrap();
        book.seal();
        let variables = [value];
        let context = Context { variables: &variables, ..Context::default() };
        let mut connection = Connection::default();
        let (fields, _) = connection.send(&request, &book, &context, &mut Random::new(0, 0));
        let path = &fields.iter().find(|(name, _)| name == ":path").unwrap().1;
        prop_assert!(path.starts_with(b"/"));
        prop_assert!(path.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'#'));
        let (http1, _) = expected(&request, &context, &mut Random::new(0, 0));
        let path = (":path".to_owned(), path.clone());
        prop_assert!(http1.contains(&path));
    }
}
