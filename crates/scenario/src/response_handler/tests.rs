//! Reactions: checks, extractions, messages.

use plimsoll_core::Shard;
use proptest::prelude::*;

use super::*;
use crate::Conversion;
use crate::{FieldList, FieldNeeds, PoolSpec};

const JSON: &str = r#"{"id": 17, "name": "Anna \u00e4\n", "path": "../b?x", "items": [{"k": "v"}, true, null],
    "a.b": "dot", "empty": "", "price": 1.50}"#;

fn names() -> [String; 3] {
    ["one".to_owned(), "two".to_owned(), "three".to_owned()]
}

fn fields() -> FieldList {
    let mut fields = FieldList::default();
    for (name, value) in [
        ("Content-Type", "application/json"),
        ("ETag", " \"abc\" "),
        ("Location", "http://other.test/orders/9?x#y"),
        ("Vary", "accept"),
        ("Vary", "origin"),
        ("Set-Cookie", "sid=first; Path=/"),
        ("Set-Cookie", "other=1"),
        ("Set-Cookie", "sid = second ; HttpOnly"),
    ] {
        fields.push(name.as_bytes(), value.as_bytes());
    }
    fields
}

/// A session whose variables are `1st` and `2nd`, and which has sent a request.
fn session() -> Session {
    let mut session = Session::new(3);
    session.variables = vec![b"1st".to_vec(), b"application".to_vec(), Vec::new()];
    session.sent.method = b"POST".to_vec();
    session.sent.path = b"/a/order?q".to_vec();
    session.sent.authority = b"example.test".to_vec();
    session.sent.fields.push(b"X-Id", b"77");
    session.sent.body = br#"{"n": [1, "asked"]}"#.to_vec();
    session
}

fn compiled(spec: &ReactionSpec) -> Result<ResponseHandler, TemplateError> {
    let names = names();
    ResponseHandler::compile(spec, &Scope::new(&names))
}

fn check(source: Source, matching: Matching) -> CheckSpec {
    CheckSpec { source, matching, negated: false }
}

fn take(source: Source) -> ExtractSpec {
    ExtractSpec { variable: 2, source, regex: None, form: Conversion::Value, default: None }
}

fn header(name: &str) -> Source {
    Source::Header(name.to_owned())
}

fn pointer(path: &str) -> Source {
    Source::JsonPointer(path.to_owned())
}

/// Applies it to the usual response: returns the failure, and its description.
fn applied(spec: &ReactionSpec, status: u16, session: &mut Session) -> Result<(), (ErrorClass, String)> {
    let handler = compiled(spec).unwrap();
    let fields = fields();
    let received = Received::new(status, &fields, JSON.as_bytes());
    handler
        .apply(&received, session)
        .map(|_| ())
        .map_err(|failure| (failure.class, handler.describe(failure, &received)))
}

/// Returns the text that one value becomes: `None` if the request failed.
fn taken(take: ExtractSpec) -> Option<String> {
    let mut session = session();
    let spec = ReactionSpec { extract: vec![take], ..ReactionSpec::default() };
    let result = applied(&spec, 200, &mut session);
    assert_eq!(session.known[2], result.is_ok());
    match result {
        Ok(()) => Some(String::from_utf8(session.variables[2].clone()).unwrap()),
        Err((class, _)) => {
            assert_eq!(class, ErrorClass::Extraction);
            assert!(session.variables[2].is_empty());
            None
        }
    }
}

/// Returns the description of a failed check: `None` if it holds.
fn said(check: CheckSpec) -> Option<String> {
    let spec = ReactionSpec { checks: vec![check.clone()], ..ReactionSpec::default() };
    let result = applied(&spec, 200, &mut session());
    let opposite = CheckSpec { negated: !check.negated, ..check };
    let negated = ReactionSpec { checks: vec![opposite], ..ReactionSpec::default() };
    assert_eq!(applied(&negated, 200, &mut session()).is_ok(), result.is_err());
    result.err().map(|(class, text)| {
        assert_eq!(class, ErrorClass::Check);
        text
    })
}

#[test]
fn statuses_come_first_and_have_their_classes() {
    let range = |first, last| StatusRange { first, last };
    for (statuses, status, expected) in [
        (vec![], 200, None),
        (vec![], 399, None),
        (vec![], 400, Some((ErrorClass::Status4xx, "status 400, expected below 400"))),
        (vec![], 503, Some((ErrorClass::Status5xx, "status 503, expected below 400"))),
        (vec![range(200, 200)], 302, Some((ErrorClass::Check, "status 302, expected 200"))),
        (vec![range(404, 404)], 404, None),
        (
            vec![range(200, 204), range(301, 301)],
            500,
            Some((ErrorClass::Status5xx, "status 500, expected 200-204 or 301")),
        ),
        (vec![range(500, 599)], 200, Some((ErrorClass::Check, "status 200, expected 500-599"))),
    ] {
        let plain = ReactionSpec { statuses: statuses.clone(), ..ReactionSpec::default() };
        let handler = compiled(&plain).unwrap();
        assert!(handler.is_plain() && handler.needs().is_nothing());
        assert_eq!(handler.accepts(status).map_err(|failure| failure.class).err(), expected.map(|e| e.0));
        let broken = check(Source::Body, Matching::Equals("x".to_owned()));
        let spec = ReactionSpec { statuses, checks: vec![broken], ..ReactionSpec::default() };
        let result = applied(&spec, status, &mut session());
        match expected {
            // The body, which was kept, is quoted.
            Some((class, text)) => {
                let (of, said) = result.unwrap_err();
                let quote = said.strip_prefix(text).unwrap_or_else(|| panic!("{said}"));
                assert_eq!((of, quote.starts_with(": {\"id\": 17, ")), (class, true), "{said}");
                assert!(quote.chars().count() <= 202 && !quote.contains(char::is_control), "{said}");
            }
            None => assert_eq!(result, Err((ErrorClass::Check, "body is not `x`".to_owned()))),
        }
    }
    let backwards = ReactionSpec { statuses: vec![range(300, 200)], ..ReactionSpec::default() };
    assert_eq!(compiled(&backwards).unwrap_err().message(), "there is no status from 300 to 200");
}

#[test]
fn checks_of_every_kind() {
    let text = |text: &str| text.to_owned();
    for (source, matching, expected) in [
        (header("Content-Type"), Matching::Exists, None),
        (header("x-none"), Matching::Exists, Some("header `x-none` is missing")),
        (header("X-None"), Matching::Equals(text("a")), Some("header `x-none` is missing")),
        (header("content-type"), Matching::Starts(text("${two}/")), None),
        (header("content-type"), Matching::Equals(text("${two}/json")), None),
        (
            header("content-type"),
            Matching::Ends(text("${upper(two)}")),
            Some("header `content-type` does not end with `${upper(two)}`"),
        ),
        (header("content-type"), Matching::Contains(text("n/j")), None),
        (
            header("content-type"),
            Matching::Contains(text("${one}")),
            Some("header `content-type` does not contain `${one}`"),
        ),
        (header("content-type"), Matching::Regex(text("^app.*/[jx]")), None),
        (
            header("content-type"),
            Matching::Regex(text("^[jx]")),
            Some("header `content-type` does not match `^[jx]`"),
        ),
        (header("vary"), Matching::Equals(text("origin")), None),
        (header("vary"), Matching::Equals(text("accept")), None),
        (header(":status"), Matching::Equals(text("200")), None),
        (Source::Status, Matching::Starts(text("20")), None),
        (Source::Status, Matching::Regex(text("^3")), Some("status 200 does not match `^3`")),
        (Source::Body, Matching::Contains(text("Anna")), None),
        (Source::Body, Matching::Contains(text("ok")), Some("body does not contain `ok`")),
        (Source::Body, Matching::Starts(text("{\"id\"")), None),
        (Source::Body, Matching::Regex(text("(?i)ANNA")), None),
        (Source::Body, Matching::Exists, None),
        (pointer("/id"), Matching::Equals(text("17")), None),
        (pointer("/id"), Matching::Equals(text("18")), Some("value at `/id` is not `18`")),
        (pointer("/nope"), Matching::Equals(text("18")), Some("no value at `/nope`")),
        (pointer("/name"), Matching::Equals(text("Anna ä\n")), None),
        (
            pointer("/name"),
            Matching::Regex(text("^Anna ä$")),
            Some("value at `/name` does not match `^Anna ä$`"),
        ),
        (pointer("/items/0"), Matching::Equals(text("{\"k\": \"v\"}")), None),
        (pointer("/empty"), Matching::Exists, None),
        (pointer("/items/2"), Matching::Equals(text("null")), None),
        (Source::JsonPath(text("$.items[?(@.k)].k")), Matching::Equals(text("v")), None),
        (Source::JsonPath(text("$['a.b']")), Matching::Equals(text("dot")), None),
        (Source::JsonPath(text("$.items[0]")), Matching::Equals(text("{\"k\":\"v\"}")), None),
        (Source::JsonPath(text("$.none")), Matching::Exists, Some("no value at `$.none`")),
        (Source::RequestHeader(text("X-ID")), Matching::Equals(text("77")), None),
        (Source::RequestHeader(text(":path")), Matching::Equals(text("/a/order?q")), None),
        (
            Source::RequestHeader(text(":method")),
            Matching::Equals(text("PUT")),
            Some("request header `:method` is not `PUT`"),
        ),
        (Source::RequestHeader(text("host")), Matching::Equals(text("example.test")), None),
        (Source::RequestJsonPointer(text("/n/1")), Matching::Equals(text("asked")), None),
        (
            Source::RequestJsonPointer(text("/m")),
            Matching::Exists,
            Some("value at `/m` of the request is missing"),
        ),
        (Source::Cookie(text("sid")), Matching::Equals(text("second")), None),
        (
            Source::Cookie(text("sid")),
            Matching::Equals(text("topsecret")),
            Some("cookie `sid` is not the value in the plan"),
        ),
        (
            header("set-cookie"),
            Matching::Equals(text("topsecret")),
            Some("header `set-cookie` is not the value in the plan"),
        ),
    ] {
        assert_eq!(
            said(check(source.clone(), matching.clone())).as_deref(),
            expected,
            "{source:?} {matching:?}"
        );
    }
    let there = CheckSpec { negated: true, ..check(header("etag"), Matching::Exists) };
    assert_eq!(said(there).as_deref(), Some("header `etag` is there"));
    let long = said(check(Source::Body, Matching::Contains("ä\"\n".repeat(500)))).unwrap();
    assert!(long.chars().count() <= 200 && long.ends_with("…`"), "{long}");
}

#[test]
fn values_of_every_kind() {
    let text = |text: &str| text.to_owned();
    let regex = |source, regex: &str| ExtractSpec { regex: Some(text(regex)), ..take(source) };
    let path = |source| ExtractSpec { form: Conversion::Path, ..take(source) };
    let or = |source, default: &str| ExtractSpec { default: Some(text(default)), ..take(source) };
    for (take, expected) in [
        (take(header("ETag")), Some("\"abc\"")),
        (take(header("vary")), Some("accept")),
        (take(header("none")), None),
        (take(Source::Status), Some("200")),
        (take(Source::Cookie(text("sid"))), Some("second")),
        (take(Source::Cookie(text("none"))), None),
        (take(pointer("/id")), Some("17")),
        (take(pointer("/price")), Some("1.50")),
        (take(pointer("/items/0/k")), Some("v")),
        (take(pointer("/name")), Some("Anna ä\n")),
        (take(pointer("/empty")), None),
        (take(Source::Body), Some(JSON)),
        (take(Source::JsonPath(text("$..k"))), Some("v")),
        (take(Source::RequestHeader(text(":method"))), Some("POST")),
        (take(Source::RequestJsonPointer(text("/n/0"))), Some("1")),
        (regex(Source::Body, r#""id": (\d+)"#), Some("17")),
        (regex(Source::Body, "Anna"), Some("Anna")),
        (regex(Source::Body, "(x)?Anna"), None),
        (regex(Source::Body, "nobody"), None),
        (regex(pointer("/name"), "^(.*) "), Some("Anna")),
        (regex(header("location"), "orders/([0-9]+)"), Some("9")),
        (path(header("location")), Some("/orders/9?x")),
        (path(pointer("/path")), Some("/b?x")),
        (path(pointer("/name")), None),
        (or(header("none"), "${one}!"), Some("1st!")),
        (or(header("none"), ""), Some("")),
        (or(pointer("/empty"), "x"), Some("x")),
        (or(pointer("/id"), "x"), Some("17")),
        (ExtractSpec { default: Some(text("0")), ..regex(Source::Body, "nobody") }, Some("0")),
    ] {
        assert_eq!(taken(take.clone()).as_deref(), expected, "{take:?}");
    }
}

#[test]
fn missing_values_are_named() {
    let said = |take: ExtractSpec| {
        let spec = ReactionSpec { extract: vec![take], ..ReactionSpec::default() };
        applied(&spec, 200, &mut session()).unwrap_err().1
    };
    let regex = |source| ExtractSpec { regex: Some("x(y)".to_owned()), ..take(source) };
    assert_eq!(said(take(pointer("/nope"))), "no value at `/nope`");
    assert_eq!(said(take(header("X-None"))), "header `x-none` is missing");
    assert_eq!(said(regex(Source::Body)), "body has no value by `x(y)`");
    assert_eq!(said(regex(header("x-none"))), "header `x-none` is missing");
    assert_eq!(said(take(pointer("/empty"))), "value at `/empty` is empty");
    let path = ExtractSpec { form: Conversion::Path, ..take(pointer("/name")) };
    assert_eq!(said(path), "value at `/name` is not a path");
    let cookie = take(Source::Cookie("none".to_owned()));
    assert_eq!(said(cookie), "cookie `none` is missing or empty");
}

#[test]
fn only_what_is_read_is_needed() {
    let needs = |checks: Vec<CheckSpec>, extract: Vec<ExtractSpec>, cookies| {
        let spec = ReactionSpec { checks, extract, cookies, ..ReactionSpec::default() };
        let handler = compiled(&spec).unwrap();
        assert!(!handler.is_plain());
        handler.needs().clone()
    };
    let named = |names: &[&str]| FieldNeeds::Named(names.iter().map(|&name| name.to_owned()).collect());
    let headers = vec![check(header("ETag"), Matching::Exists), check(header("etag"), Matching::Exists)];
    let both = needs(headers, vec![take(header("Vary"))], false);
    assert_eq!(both, Needs { fields: named(&["etag", "vary"]), ..Needs::default() });
    let body = needs(vec![check(pointer(""), Matching::Exists)], vec![], false);
    assert_eq!(body, Needs { body: true, ..Needs::default() });
    let path = ExtractSpec { form: Conversion::Path, ..take(header("location")) };
    let located = needs(vec![], vec![path], false);
    assert_eq!(located, Needs { fields: named(&["location"]), path: true, ..Needs::default() });
    let cookies = needs(vec![], vec![], true);
    assert_eq!(cookies, Needs { fields: named(&["set-cookie"]), path: true, ..Needs::default() });
    let own = needs(vec![], vec![take(Source::RequestHeader(":path".to_owned()))], false);
    assert_eq!(own, Needs { path: true, ..Needs::default() });
    let own = needs(vec![], vec![take(Source::RequestHeader("x-id".to_owned()))], false);
    assert_eq!(own, Needs { request: true, ..Needs::default() });
    assert_eq!(needs(vec![check(Source::Status, Matching::Exists)], vec![], false), Needs::default());
}

#[test]
fn nothing_is_taken_from_a_response_that_did_not_pass() {
    let spec = ReactionSpec {
        checks: vec![check(Source::Body, Matching::Contains("nobody".to_owned()))],
        extract: vec![take(pointer("/id"))],
        ..ReactionSpec::default()
    };
    let mut session = session();
    assert!(applied(&spec, 200, &mut session).is_err());
    assert!(session.variables[2].is_empty() && !session.known[2]);
    // A value that is not there any more is forgotten.
    session.variables[2] = b"old".to_vec();
    session.known[2] = true;
    let spec = ReactionSpec { extract: vec![take(pointer("/nope"))], ..ReactionSpec::default() };
    assert!(applied(&spec, 200, &mut session).is_err());
    assert!(session.variables[2].is_empty() && !session.known[2]);
}

#[test]
fn later_values_and_checks_see_the_right_variables() {
    let into = |variable, source, default: Option<&str>| ExtractSpec {
        variable,
        source,
        regex: None,
        form: Conversion::Value,
        default: default.map(str::to_owned),
    };
    let spec = ReactionSpec {
        checks: vec![check(pointer("/id"), Matching::Equals("${one}7".to_owned()))],
        extract: vec![
            into(0, pointer("/items/0/k"), None),
            into(1, header("none"), Some("${one}")),
            into(2, header("none"), Some("${two}${one}")),
        ],
        ..ReactionSpec::default()
    };
    let mut session = session();
    session.variables[0] = b"1".to_vec();
    assert_eq!(applied(&spec, 200, &mut session), Ok(()));
    assert_eq!(session.variables, [b"v".to_vec(), b"v".to_vec(), b"vv".to_vec()]);
}

#[test]
fn malformed_parts_are_refused() {
    let text = |text: &str| text.to_owned();
    let failed = |spec: ReactionSpec| compiled(&spec).unwrap_err();
    let checks = |source, matching| {
        failed(ReactionSpec { checks: vec![check(source, matching)], ..ReactionSpec::default() })
    };
    for (source, message) in [
        (header("a b"), "` ` is not allowed in the header's name `a b`"),
        (Source::RequestHeader(text(":scheme")), "a request has no `:scheme` to take"),
        (Source::Cookie(text("a=b")), "cookie: `=` is not allowed in the header's name `a=b`"),
        (pointer("id"), "`id` is not a JSON Pointer"),
        (Source::JsonPath(text("$.[")), "`$.[` is not a JSONPath"),
        (Source::JsonPath(text("/a")), "`/a` is not a JSONPath"),
    ] {
        assert_eq!(checks(source, Matching::Exists).message(), message);
    }
    for (matching, message) in [
        (Matching::Regex(text("a(b")), "the regular expression `a(b`: unclosed group"),
        (
            Matching::Regex(text("(\\w{1000}){1000}")),
            "the regular expression `(\\w{1000}){1000}`: it takes more than 10485760 bytes",
        ),
        (Matching::Equals(text("${oen}")), "unknown template slot `${oen}`"),
        (
            Matching::Contains(text("${uuid}")),
            "`${uuid}` names more than variables, and would differ from the request's",
        ),
        (
            Matching::Starts(text("${sequence}")),
            "`${sequence}` names more than variables, and would differ from the request's",
        ),
    ] {
        assert_eq!(checks(Source::Body, matching).message(), message);
    }
    let beyond = ExtractSpec { variable: 3, ..take(Source::Status) };
    let spec = ReactionSpec { extract: vec![beyond], ..ReactionSpec::default() };
    assert_eq!(failed(spec).message(), "there is no variable number 3");
}

#[test]
fn secrets_of_checks_are_in_neither_debug_nor_descriptions() {
    let one = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into_iter().collect();
    let constants = crate::Constants::new(one("HOME", "here"), one("KEY", "topsecret"));
    let names = names();
    let scope = Scope { constants: Some(&constants), ..Scope::new(&names) };
    for matching in [
        Matching::Contains("${secret(KEY)}".to_owned()),
        Matching::Equals("${base64(${secret(KEY)})}".to_owned()),
    ] {
        let checks = vec![check(Source::Body, matching)];
        let spec = ReactionSpec { checks, ..ReactionSpec::default() };
        let handler = ResponseHandler::compile(&spec, &scope).unwrap();
        let fields = FieldList::default();
        let received = Received::new(200, &fields, b"nothing");
        let failure = handler.apply(&received, &mut session()).unwrap_err();
        let said = format!("{handler:?} {}", handler.describe(failure, &received));
        assert!(said.contains("secret(KEY)") && !said.contains("topsecret"), "{said}");
        assert!(!said.contains("dG9wc2VjcmV0"), "{said}");
    }
}

proptest! {
    #[test]
    fn what_is_taken_as_a_path_is_one(
        value in proptest::collection::vec(
            prop_oneof![any::<u8>(), proptest::sample::select(&b"/.?#:@ \r\n\0ahtp\"\\{}u0123"[..])], 0..60,
        ),
        form in proptest::sample::select(vec![Conversion::Value, Conversion::Path, Conversion::Url]),
        with_regex in any::<bool>(), with_default in any::<bool>(),
    ) {
        let mut fields = FieldList::default();
        fields.push(b"x", &value);
        fields.push(b"set-cookie", &[b"c=", value.as_slice()].concat());
        let json = serde_json::json!({ "v": String::from_utf8_lossy(&value) }).to_string();
        let sources = [
            header("x"),
            Source::Body,
            Source::Cookie("c".to_owned()),
            pointer("/v"),
            pointer(""),
            Source::JsonPath("$.v".to_owned()),
        ];
        for source in sources {
            let is_json = matches!(source, Source::JsonPointer(_) | Source::JsonPath(_));
            let take = ExtractSpec {
                regex: with_regex.then(|| "(?s-u)^.(.*)$".to_owned()),
                form,
                default: with_default.then(|| "${one}".to_owned()),
                ..take(source)
            };
            let extract = vec![take];
            let handler = compiled(&ReactionSpec { extract, ..ReactionSpec::default() }).unwrap();
            let mut session = session();
            let body = if is_json { json.as_bytes() } else { value.as_slice() };
            let result = handler.apply(&Received::new(200, &fields, body), &mut session);
            let kept = &session.variables[2];
            prop_assert_eq!(session.known[2], result.is_ok());
            prop_assert!(result.is_ok() || kept.is_empty());
            prop_assert!(result.is_ok() || !with_default);
            if result.is_ok() && form == Conversion::Path && !with_default {
                prop_assert!(kept.starts_with(b"/"));
                prop_assert!(kept.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'#'));
            }
        }
    }
}

#[test]
fn rows_are_collected_from_arrays() {
    let collect =
        CollectSpec { pool: 0, each: "/data".to_owned(), columns: vec!["/id".to_owned(), "".to_owned()] };
    let spec = ReactionSpec { collect: vec![collect], ..ReactionSpec::default() };
    let handler = ResponseHandler::compile(&spec, &Scope::default()).unwrap();
    assert!(!handler.is_plain() && handler.needs().body);
    let pool = PoolSpec { name: "rows".to_owned(), columns: vec![1, 0], rows: [].into() };
    for (body, rows, fails) in [
        (r#"{"data":[{"id":"a"},{"id":7,"x":"\u0041"}]}"#, 2, false),
        (r#"{"data":[]}"#, 0, false),
        (r#"{"data":[{"id":"a"},{"x":1},{"id":"b"}]}"#, 1, true),
        (r#"{"data":[{"id":"a\nb"}]}"#, 1, false),
        (r#"{"data":[{"id":"a"},{"id":""}]}"#, 1, true),
        (r#"{"data":{}}"#, 0, true),
        (r#"{"data":[{"id":"a"}"#, 0, true),
        ("", 0, true),
    ] {
        let mut feeds = Feeds::default().with_pools(std::slice::from_ref(&pool), Shard::WHOLE);
        let (mut random, fields) = (Random::new(1, 0), FieldList::default());
        let received = Received::new(200, &fields, body.as_bytes());
        let collected = handler.collect(&received, &mut feeds, &mut random);
        assert_eq!(collected.is_err(), fails, "{body}");
        if let Err(failure) = collected {
            assert_eq!(failure.class, ErrorClass::Extraction);
            assert!(handler.describe(failure, &received).contains("`/data`"), "{body}");
        }
        let (mut variables, mut known, mut found) = (vec![Vec::new(); 2], vec![false; 2], Vec::new());
        loop {
            feeds.pool(0).give(true, &[], &mut random, &mut variables, &mut known);
            if !known[0] {
                break;
            }
            found.push(
                variables.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>(),
            );
        }
        found.sort();
        assert_eq!(found.len(), rows, "{body}");
        if rows == 2 {
            assert_eq!(found, [[r#"{"id":"a"}"#, "a"], [r#"{"id":7,"x":"\u0041"}"#, "7"]]);
        }
    }
}

#[test]
fn what_reads_the_response_alone_says_the_same_in_any_session() {
    let text = |text: &str| text.to_owned();
    let contains = |part: &str| Matching::Contains(text(part));
    let one = |source, matching| ReactionSpec { checks: vec![check(source, matching)], ..Default::default() };
    let alone = [
        ReactionSpec::default(),
        one(Source::Status, Matching::Equals(text("200"))),
        one(header("vary"), Matching::Starts(text("acc"))),
        one(pointer("/id"), Matching::Regex(text("^1"))),
        one(Source::JsonPath(text("$.items[0].k")), Matching::Ends(text("w"))),
        one(Source::Body, contains("missing")),
        ReactionSpec { statuses: vec![StatusRange { first: 500, last: 599 }], ..Default::default() },
    ];
    for spec in &alone {
        assert!(compiled(spec).unwrap().reads_response_alone(), "{spec:?}");
        let mut empty = Session::new(3);
        assert_eq!(applied(spec, 200, &mut empty), applied(spec, 200, &mut session()), "{spec:?}");
        assert!(empty.variables.iter().all(Vec::is_empty) && !empty.known.contains(&true));
    }
    let until = vec![check(Source::Body, contains("${one}"))];
    let not_alone = [
        one(Source::Body, contains("${one}")),
        one(Source::Cookie(text("sid")), Matching::Exists),
        one(Source::RequestUrl, Matching::Exists),
        one(Source::RequestHeader(text(":path")), contains("order")),
        one(Source::RequestHeader(text(":method")), contains("POST")),
        one(Source::RequestHeader(text(":authority")), contains("test")),
        one(Source::RequestHeader(text("x-id")), contains("77")),
        one(Source::RequestJsonPointer(text("/n")), Matching::Exists),
        ReactionSpec { extract: vec![take(Source::Status)], ..Default::default() },
        ReactionSpec { cookies: true, ..Default::default() },
        ReactionSpec { poll: Some(PollSpec { until, ..Default::default() }), ..Default::default() },
    ];
    for spec in &not_alone {
        assert!(!compiled(spec).unwrap().reads_response_alone(), "{spec:?}");
    }
}

#[test]
fn events_of_a_stream_are_checked_and_taken() {
    let body = b"data: {\"a\": 1, \"id\": \"x\"}\n\ndata: {\"a\": 2}\n\ndata: {\"end\": \"stop\"}\n\n\
        data: [DONE]\n\n";
    let event = |pick: EventPick, of: Source| Source::Event { pick, of: Box::new(of) };
    let at = |pick: EventPick, path: &str| event(pick, Source::JsonPointer(path.to_owned()));
    let path = |pick: EventPick, path: &str| event(pick, Source::JsonPath(path.to_owned()));
    let equals = |text: &str| Matching::Equals(text.to_owned());
    let empty = FieldList::default();
    let (first, last, any) = (EventPick::Number(1), EventPick::Last, EventPick::Any);
    for (source, matching, negated, holds) in [
        (at(first, "/a"), equals("1"), false, true),
        (at(EventPick::Number(2), "/a"), equals("2"), false, true),
        (at(last, "/end"), equals("stop"), false, true),
        (path(last, "$.end"), equals("stop"), false, true),
        (at(last, "/a"), Matching::Exists, false, false),
        (at(any, "/a"), equals("2"), false, true),
        (at(any, "/a"), equals("3"), false, false),
        (at(any, "/a"), equals("3"), true, true),
        (at(EventPick::Number(4), ""), Matching::Exists, false, false),
        (event(last, Source::Body), Matching::Contains("stop".to_owned()), false, true),
        (event(any, Source::Body), Matching::Contains("DONE".to_owned()), false, false),
    ] {
        let check = CheckSpec { source, matching, negated };
        let spec = ReactionSpec {
            checks: vec![check.clone()],
            stream: Some(EventStream::Completion),
            ..ReactionSpec::default()
        };
        let handler = compiled(&spec).unwrap();
        assert!(handler.needs().body && handler.needs().events);
        let accepted = handler.apply(&Received::new(200, &empty, body), &mut session());
        assert_eq!(accepted.is_ok(), holds, "{check:?}");
    }
    for (source, regex, value) in [
        (at(first, "/id"), None, Some("x")),
        (at(any, "/end"), None, Some("stop")),
        (path(any, "$.a"), Some("^([2-9])$"), Some("2")),
        (event(any, Source::Body), Some("\"a\": (2)"), Some("2")),
        (event(last, Source::Body), None, Some("{\"end\": \"stop\"}")),
        (at(last, "/id"), None, None),
        (event(any, Source::Body), Some("nothing"), None),
    ] {
        let extract = ExtractSpec { regex: regex.map(str::to_owned), ..take(source.clone()) };
        let spec = ReactionSpec {
            extract: vec![extract],
            stream: Some(EventStream::Completion),
            ..ReactionSpec::default()
        };
        let (handler, mut session) = (compiled(&spec).unwrap(), session());
        let accepted = handler.apply(&Received::new(200, &empty, body), &mut session);
        assert_eq!(accepted.is_ok(), value.is_some(), "{source:?}");
        assert_eq!(session.variables[2], value.unwrap_or_default().as_bytes(), "{source:?}");
    }
}

#[test]
fn a_failure_names_the_event() {
    let empty = FieldList::default();
    let describe = |pick: EventPick, of: Source, body: &[u8]| {
        let source = Source::Event { pick, of: Box::new(of) };
        let spec = ReactionSpec {
            checks: vec![check(source, Matching::Equals("b".to_owned()))],
            stream: Some(EventStream::Ndjson),
            ..ReactionSpec::default()
        };
        let (handler, received) = (compiled(&spec).unwrap(), Received::new(200, &empty, body));
        handler.describe(handler.apply(&received, &mut session()).unwrap_err(), &received)
    };
    let pointer = || Source::JsonPointer("/a".to_owned());
    let body = b"{\"a\": 1}\n";
    assert_eq!(describe(EventPick::Last, pointer(), body), "value at `/a` in the last event is not `b`");
    assert_eq!(describe(EventPick::Number(2), pointer(), body), "no value at `/a` in event 2");
    assert_eq!(describe(EventPick::Number(1), Source::Body, body), "the first event is not `b`");
    assert_eq!(describe(EventPick::Any, Source::Body, b""), "any event is missing");
}
