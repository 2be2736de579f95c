//! The work for every request allocates nothing once the buffers have grown.

use allocation_counter::measure;
use plimsoll_core::Random;
use plimsoll_scenario::{
    Body, CheckSpec, Context, Conversion, DynamicRequest, ExtractSpec, FieldList, Matching, ReactionSpec,
    Received, RequestSpec, RequestTemplate, ResponseHandler, Scheme, Scope, SentRequest, Session, Source,
    StatusRange,
};
use plimsoll_wire::http2::{HeaderBlockCache, Indexing};

fn names() -> [String; 3] {
    ["token", "id", "page"].map(str::to_owned)
}

fn templated() -> RequestSpec {
    RequestSpec {
        method: "POST".to_owned(),
        target: "/users/${id}/${urlencode(token)}?r=${random_int(1,99)}&${pick(a,b)}".to_owned(),
        authority_slot: true,
        cookies: true,
        headers: vec![
            ("Authorization".to_owned(), "Basic ${base64(${id}:${token})}".to_owned()),
            ("X-Sum".to_owned(), "${hash(sha256,${token}${uuid})} ${hash(crc32,token)}".to_owned()),
        ],
        body: Body::Text(b"{\"t\":\"${json(token)}\",\"f\":${random_float(0,1)},\"n\":${sequence}}".to_vec()),
        ..RequestSpec::default()
    }
}

#[test]
fn rendering_a_request() {
    let names = names();
    let mut book = HeaderBlockCache::new();
    let request = RequestTemplate::compile(&templated(), &Scope::new(&names), Some(&mut book)).unwrap();
    book.seal();
    let variables = ["to\"ken / x", "4711", ""].map(|text| text.as_bytes().to_vec());
    let mut random = Random::new(1, 0);
    let (mut scratch, mut out, mut block) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sent, mut dynamic) = (SentRequest::default(), DynamicRequest::default());
    let mut indexing = Indexing::default();
    let mut once = |index: u64| {
        let context = Context {
            index,
            variables: &variables,
            cookies: b"sid=1",
            authority: b"one.test",
            ..Context::default()
        };
        out.clear();
        block.clear();
        request.render(&context, &mut random, &mut scratch, &mut out);
        let len = request.render_body(&context, &random, &mut scratch).len();
        request.render_block(&book, &mut indexing, &context, &mut random, len, &mut block);
        request.render_request(&context, &mut random.clone(), &mut sent);
        request.render_dynamic(&context, &mut random, &mut dynamic);
        assert_eq!(dynamic.check(), Ok(()));
        block.clear();
        dynamic.write_block(Scheme::Http, &mut block);
        out.clear();
        dynamic.write_http1(None, &mut out);
    };
    (1_000_000..1_000_100).for_each(&mut once);
    let counted = measure(|| (1..1_000).for_each(&mut once));
    assert_eq!(counted.count_total, 0);
    assert_eq!(DynamicRequest::count_http1(&out), Ok(1));
}

#[test]
fn judging_a_response() {
    let names = names();
    let check = |source, matching| CheckSpec { source, matching, negated: false };
    let take = |variable, source, regex: Option<&str>| ExtractSpec {
        variable,
        source,
        regex: regex.map(str::to_owned),
        form: Conversion::Value,
        default: None,
    };
    let pointer = |path: &str| Source::JsonPointer(path.to_owned());
    let header = |name: &str| Source::Header(name.to_owned());
    let text = |text: &str| text.to_owned();
    let spec = ReactionSpec {
        statuses: vec![StatusRange { first: 200, last: 299 }],
        checks: vec![
            check(Source::Status, Matching::Equals(text("200"))),
            check(header("etag"), Matching::Exists),
            check(Source::Body, Matching::Contains(text("id"))),
            check(Source::Body, Matching::Contains(text("${token}"))),
            check(pointer("/name"), Matching::Equals(text("Zoë"))),
            check(pointer("/name"), Matching::Regex(text("^Zo."))),
            check(Source::RequestHeader(text("x-sum")), Matching::Starts(text("${upper(token)}"))),
        ],
        extract: vec![
            take(0, pointer("/items/1/id"), None),
            take(1, Source::Body, Some(r#""next":"([^"]+)""#)),
            ExtractSpec { form: Conversion::Path, ..take(2, header("location"), None) },
            take(1, Source::Cookie(text("sid")), None),
        ],
        ..ReactionSpec::default()
    };
    let handler = ResponseHandler::compile(&spec, &Scope::new(&names)).unwrap();
    let mut fields = FieldList::default();
    fields.push(b"etag", b"\"1\"");
    fields.push(b"location", b"../next?x");
    fields.push(b"set-cookie", b"sid=7; Path=/");
    let body = r#"{"name":"Zo\u00eb","items":[{"id":"first"},{"id":"42"}],"next":"page 2"}"#;
    let received = Received::new(200, &fields, body.as_bytes());
    let mut session = Session::new(3);
    session.sent.path.extend_from_slice(b"/a/b");
    session.sent.fields.push(b"x-sum", b"42 and more");
    session.variables[0] = b"42".to_vec();
    for _ in 0..10 {
        assert!(handler.apply(&received, &mut session).is_ok());
    }
    assert_eq!(session.variables, ["42", "7", "/next?x"].map(|text| text.as_bytes().to_vec()));
    let counted = measure(|| {
        for _ in 0..1000 {
            assert!(handler.apply(&received, &mut session).is_ok());
        }
    });
    assert_eq!(counted.count_total, 0);
    let failing =
        measure(|| assert!(handler.apply(&Received { status: 404, ..received }, &mut session).is_err()));
    assert_eq!(failing.count_total, 0);
}

#[test]
fn the_counter_counts() {
    assert_eq!(measure(|| drop(vec![1_u8; 100])).count_total, 1);
}
