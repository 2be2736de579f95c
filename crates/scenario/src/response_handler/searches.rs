//! Tests of searches by JSONPath and XPath: what they find, and what hostile bodies make of them.

use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::budget::{ATTRIBUTES_MAX, DEPTH_MAX, VALUES_MAX};
use super::*;
use crate::{CookieJar, FieldList, SentRequest};

/// The value that is taken, or the words about why there is none.
fn taken(source: &Source, body: &str) -> Result<String, String> {
    let names = ["v".to_owned()];
    let extract = ExtractSpec {
        variable: 0,
        source: source.clone(),
        regex: None,
        form: Conversion::Value,
        default: None,
    };
    let spec = ReactionSpec { extract: vec![extract], ..ReactionSpec::default() };
    let handler = ResponseHandler::compile(&spec, &Scope::new(&names)).map_err(|error| error.to_string())?;
    let (fields, mut session) = (FieldList::default(), Session::new(1));
    let received = Received::new(200, &fields, body.as_bytes());
    match handler.apply(&received, &mut session) {
        Ok(_) => Ok(String::from_utf8(session.variables[0].clone()).unwrap()),
        Err(failure) => Err(handler.describe(failure, &received)),
    }
}

fn by_xpath(path: &str, body: &str) -> Result<String, String> {
    taken(&Source::XPath(path.to_owned()), body)
}

fn by_json_path(path: &str, body: &str) -> Result<String, String> {
    taken(&Source::JsonPath(path.to_owned()), body)
}

#[test]
fn string_values_of_first_matches_of_xpaths() {
    let xml = "<?xml version='1.0'?><!-- c --><o id='7'><i n='1'>a<b>&amp;b</b></i><i n='2'>c</i></o>";
    for (path, value) in [
        ("/o/@id", Some("7")),
        ("//i", Some("a&b")),
        ("//i[@n='2']", Some("c")),
        ("count(//i)", Some("2")),
        ("string(/o/i[last()])", Some("c")),
        ("//none", None),
        ("//i[2]/text()", Some("c")),
        ("//*[local-name()='b']", Some("&b")),
    ] {
        assert_eq!(by_xpath(path, xml).ok().as_deref(), value, "{path}");
    }
    let declared = "<?xml version='1.0'?><!DOCTYPE o><o xmlns='urn:x'><i>1</i></o>";
    assert_eq!(by_xpath("//*[local-name()='i']", declared).as_deref(), Ok("1"));
    for body in ["", "no xml", "<a>", "<a></b>", "{}"] {
        assert_eq!(by_xpath("//a", body), Err("no value at `//a`".to_owned()), "{body}");
    }
    let deep = |levels: usize| format!("{}x<b/>{}", "<a>".repeat(levels), "</a>".repeat(levels));
    assert_eq!(by_xpath("//a[count(ancestor::a) = 2]", &deep(500)).as_deref(), Ok("x"));
    assert_eq!(by_xpath("count(//a)", &deep(DEPTH_MAX - 1)).as_deref(), Ok("999"));
    let wide = format!("<a>{}</a>", "<b c='1'/><b>1</b>".repeat(1_000));
    assert_eq!(by_xpath("count(//b)", &wide).as_deref(), Ok("2000"));
}

#[test]
fn xpaths_of_every_kind() {
    let xml = "<!DOCTYPE s PUBLIC '-//X//Y' 'http://x.test/s>.dtd'>\
        <s xmlns:p='urn:p' xml:lang='en-GB'><?go now?><!--note-->\
        <item sku='a1' p:sku='p1'><name>Pen &amp; ink</name><price>1.50</price><min>2</min></item>\
        <item sku='b2'><name>  Two \n words </name><price>20</price><min>3</min></item>\
        <p:item sku='c3'><name>&#x4e2d;<![CDATA[<x>]]>end</name><price>300</price></p:item>\
        <d xmlns='urn:d'><item sku='d4'/><e xmlns=''>e</e></d></s>";
    for (path, value) in [
        ("//item/@sku", "a1"),
        ("//item[2]/@sku", "b2"),
        ("//item[last()]/@sku", "b2"),
        ("//item[price > 10]/@sku", "b2"),
        ("//item[price < number(min)]/@sku", "a1"),
        ("//item[@sku != 'a1']/name/../@sku", "b2"),
        ("//item[name = 'Pen & ink' and not(@none)]/price", "1.50"),
        ("//item[contains(name, 'words')]/preceding-sibling::item/@sku", "a1"),
        ("//item[starts-with(@sku, 'a')]/following-sibling::*[1]/@sku", "b2"),
        ("count(//item | //price | //item)", "5"),
        ("count(//*)", "15"),
        ("count(//@sku)", "4"),
        ("count(//@*)", "6"),
        ("//@*[namespace-uri() = 'urn:p']", "p1"),
        ("name(//*[namespace-uri() = 'urn:p'])", "p:item"),
        ("name(//*[namespace-uri() = 'urn:d'])", "d"),
        ("local-name(//*[@sku = 'c3'])", "item"),
        ("//*[local-name() = 'item' and @sku = 'c3']/name", "\u{4e2d}<x>end"),
        ("//*[local-name() = 'item' and @sku = 'c3']/name/text()", "\u{4e2d}<x>end"),
        ("//e", "e"),
        ("normalize-space(//item[2]/name)", "Two words"),
        ("translate(//item/@sku, 'a1', 'A')", "A"),
        ("concat(//item/@sku, '-', //item[2]/@sku)", "a1-b2"),
        ("substring(//item/name, 1, 3)", "Pen"),
        ("substring-before(//item/name, ' ')", "Pen"),
        ("substring-after(//item/name, '& ')", "ink"),
        ("string-length(//item/name)", "9"),
        ("sum(//price)", "321.5"),
        ("floor(//price) + ceiling(//price) * 2 - -1", "6"),
        ("round(//price) mod 2", "0"),
        ("//price div 3", "0.5"),
        ("1 div 0", "Infinity"),
        ("number('x')", "NaN"),
        ("boolean(//none)", "false"),
        ("//item/@sku = 'b2'", "true"),
        ("//none = 'b2' or 1 >= 2", "false"),
        ("(//item)[2]/@sku", "b2"),
        ("(//name)[position() = 3]", "\u{4e2d}<x>end"),
        ("//price/ancestor::*[2]/@*[local-name() = 'lang']", "en-GB"),
        ("count(//price[lang('en')])", "3"),
        ("//processing-instruction('go')", "now"),
        ("//comment()", "note"),
        ("name(/*)", "s"),
        ("/descendant::item[@sku][2]/self::item/@sku", "b2"),
        ("//item/following::price", "20"),
        ("count(//price[3]/preceding::*)", "0"),
        ("count(/s/namespace::*)", "1"),
        ("//item[@sku = ../item[2]/@sku]/price", "20"),
        ("//p:item/@sku", "c3"),
        ("//item/@p:sku", "p1"),
        ("//p:*[1]/price", "300"),
        ("/s/@xml:lang", "en-GB"),
    ] {
        assert_eq!(by_xpath(path, xml).as_deref(), Ok(value), "{path}");
    }
    // Names without a prefix are those without a namespace.
    assert_eq!(by_xpath("//d", xml), Err("no value at `//d`".to_owned()));
    assert_eq!(by_xpath("//none:d", xml), Err("no value at `//none:d`".to_owned()));
}

#[test]
fn xpaths_that_cannot_be_carried_out_are_refused() {
    for (path, message) in [
        ("", "the XPath is empty"),
        ("//[", "is not an XPath: expected a node test at character 3"),
        ("a b", "unexpected trailing input"),
        ("a/", "unexpected end of input"),
        ("$a", "there is no variable `$a`"),
        ("id('a')", "there is no function `id`"),
        ("lower-case(a)", "there is no function `lower-case`"),
        ("contains(a)", "`contains` does not take 1 arguments"),
        ("a | 'b'", "`|` joins nodes only"),
        ("//a = //b", "a comparison of two sets of nodes"),
        ("//c[a < b]", "a comparison of two sets of nodes"),
        ("//c[(a) != (//b | d)]", "a comparison of two sets of nodes"),
        ("translate(a, b, 'c')", "`translate` of characters that are not in the expression"),
        (&format!("{}a{}", "(".repeat(33), ")".repeat(33)), "more than 32 brackets"),
        (&format!("{}1", "- ".repeat(33)), "more than 32 brackets"),
        (&vec!["1"; 100].join("+"), "more than 64 operators"),
        (&format!("'{}'", "a".repeat(5_000)), "more than 4096 characters"),
    ] {
        let error = by_xpath(path, "<a/>").unwrap_err();
        assert!(error.contains(message), "{path}: {error}");
    }
    // Brackets in quotes are none.
    let text = format!("string('{}')", "(".repeat(100));
    assert_eq!(by_xpath(&text, "<a/>").unwrap().len(), 100);
}

#[test]
fn the_deepest_expression_and_document_fit_a_stack() {
    let deep = format!("{}x{}", "<a>".repeat(DEPTH_MAX), "</a>".repeat(DEPTH_MAX));
    assert_eq!(by_xpath("string(/a)", &deep).as_deref(), Ok("x"));
    let small = "<a>1</a>";
    for (path, value) in [
        (format!("count(//a{}{})", "[not(b".repeat(15), ")]".repeat(15)), "1"),
        (format!("count(//a{}{})", "[../a".repeat(30), "]".repeat(30)), "1"),
        (format!("{}1{}", "(1 + ".repeat(20), ")".repeat(20)), "21"),
        (format!("{}1", "-".repeat(32)), "1"),
        (vec!["1"; 60].join(" + "), "60"),
        (format!("{}'a'{}", "concat('b', ".repeat(31), ")".repeat(31)), &format!("{}a", "b".repeat(31))),
    ] {
        assert_eq!(by_xpath(&path, small).as_deref(), Ok(value), "{path}");
    }
}

#[test]
fn json_paths_of_every_kind() {
    let json = r#" {"store": {"book": [
            {"title": "One", "price": 8.95, "tags": ["a", "b"], "isbn": "0-1"},
            {"title": "Tw\u006f", "price": 12.0, "tags": []},
            {"title": "T\nhree", "price": 1e2, "isbn": null}],
          "bicycle": {"color": "red", "price": 19.95, "0": "zero"}},
        "expensive": 10, "same": 1, "same": {"x": [true, null, {"y" : "z"}]}, "a/b": "slash",
        "big": 18446744073709551615, "negative": -0.0, "": "empty"} "#;
    for (path, value) in [
        ("$.store.book[0].title", Some("One")),
        ("$.store.book[1].title", Some("Two")),
        ("$['store']['book'][1]['price']", Some("12.0")),
        ("$.store.book[2].price", Some("100.0")),
        ("$.store.book[3].title", None),
        ("$.store.book['0'].title", None),
        ("$.store.bicycle[0]", None),
        ("$.store.bicycle['0']", Some("zero")),
        ("$.store.book[0].tags", Some(r#"["a","b"]"#)),
        ("$.store.book[0].title.none", None),
        ("$.same", Some(r#"{"x":[true,null,{"y":"z"}]}"#)),
        ("$.same.x[2].y", Some("z")),
        ("$.same.x[1]", Some("null")),
        ("$['a/b']", Some("slash")),
        ("$.big", Some("18446744073709551615")),
        ("$.negative", Some("-0.0")),
        ("$['']", Some("empty")),
        ("$.store.book[-1].price", Some("100.0")),
        ("$..book[?@.isbn].title", Some("One")),
        ("$..book[?@.price > $.expensive].title", Some("Two")),
        ("$..book[?@.price == 12].title", Some("Two")),
        ("$..book[?length(@.tags) == 0].title", Some("Two")),
        ("$..book[?count(@.tags[*]) == 2].price", Some("8.95")),
        ("$..book[?match(@.title, 'T.o')].price", Some("12.0")),
        ("$..book[?match(@.title, 'w')].price", None),
        ("$..book[?search(@.title, '[w]')].price", Some("12.0")),
        ("$..book[?search(@.title, 'T.h')].price", None),
        ("$..book[?!match(@.title, 'One')].price", Some("12.0")),
        ("$..book[?in('b', @.tags)].title", Some("One")),
        ("$..book[1:].title", Some("Two")),
        ("$..book[::-1].price", Some("100.0")),
        ("$.store.*.color", Some("red")),
        ("$..['color', 'title']", Some("red")),
        ("$.same..y", Some("z")),
        ("$.same.x[?@ == true]", Some("true")),
        ("$..x[?@ == {}]", None),
    ] {
        assert_eq!(by_json_path(path, json).ok().as_deref(), value, "{path}");
    }
    for body in ["", "{", "[1] 2", "{\"store\": 1,}", "nothing"] {
        for path in ["$.store", "$..store"] {
            assert_eq!(by_json_path(path, body), Err(format!("no value at `{path}`")), "{body}");
        }
    }
    for (path, message) in [
        ("$[?match(@.a, @.b)]", "has to be a text in quotes"),
        ("$[?search(@.a, '(')]", "`(` is not a regular expression"),
        ("$.", "is not a JSONPath"),
    ] {
        let error = by_json_path(path, "[]").unwrap_err();
        assert!(error.contains(message), "{path}: {error}");
    }
}

/// A body that is made of a piece, again and again.
fn body(before: &str, piece: &str, times: usize, after: &str) -> String {
    [before, &piece.repeat(times), after].concat()
}

fn with_attributes(count: usize) -> String {
    let attributes: String = (0..count).map(|number| format!(" a{number}='1'")).collect();
    format!("<r{attributes}/>")
}

#[test]
fn a_hostile_document_holds_nobody_up() {
    let values = format!("the body has more than {VALUES_MAX} values (elements, attributes and texts)");
    let (values, steps) = (values.as_str(), "the search took more than 500000 steps");
    let namespaces: String = (0..900).map(|number| format!(" xmlns:n{number}='u{number}'")).collect();
    let deep = |levels: usize| body("", "<a>", levels, &"</a>".repeat(levels));
    for (name, path, body, says) in [
        (
            "attributes",
            "/r/@a5",
            with_attributes(ATTRIBUTES_MAX + 1),
            "an element has more than 1000 attributes",
        ),
        (
            "open tag",
            "/r",
            with_attributes(50_000).replace('>', ""),
            "an element has more than 1000 attributes",
        ),
        ("many of 1,000 attributes", "//r", body("<x>", &with_attributes(1_000), 40, "</x>"), steps),
        ("elements", "//a", body("<x>", "<a/>", VALUES_MAX, "</x>"), values),
        ("texts", "//a", body("<x>", "<a>b</a>", VALUES_MAX / 2, "</x>"), values),
        ("comments", "//a", body("<x>", "<!---->", VALUES_MAX, "</x>"), values),
        ("instructions", "//a", body("<x>", "<?a?>", VALUES_MAX, "</x>"), values),
        ("signs", "//a", body("", "<", 4 * VALUES_MAX + 1, ""), values),
        ("equals signs", "/x", body("<x>", "=", 4 * VALUES_MAX + 1, "</x>"), values),
        ("text", "/x", body("<x>", "lorem ipsum ", 1 << 20, "</x>"), steps),
        ("references", "/x", body("<x>", "&lt;", 3 << 20, "</x>"), steps),
        ("joined texts", "/x", body("<x>", "a<![CDATA[b]]>", 40_000, "</x>"), steps),
        ("joined long texts", "/x", body("<x>", &body("<![CDATA[", "a", 50_000, "]]>"), 200, "</x>"), steps),
        ("namespaces", "//a", body(&format!("<x{namespaces}>"), "<a xmlns:q='q'/>", 1_000, "</x>"), steps),
        ("prefixes", "//a", body(&format!("<x{namespaces}>"), "<n899:a/>", 50_000, "</x>"), steps),
        ("levels", "//a", deep(DEPTH_MAX + 1), "more than 1000 elements are within each other"),
        ("siblings", "count(//a/following-sibling::a)", body("<x>", "<a/>", 20_000, "</x>"), steps),
        ("all before", "count(//a/preceding::a)", body("<x>", "<a/>", 20_000, "</x>"), steps),
        ("all behind", "count(//a/following::a)", body("<x>", "<a/>", 20_000, "</x>"), steps),
        ("ancestors", "count(//a/ancestor::a)", body("<x>", &deep(900), 50, "</x>"), steps),
        ("descendants", "count(//a//a//a)", body("<x>", &deep(900), 5, "</x>"), steps),
        ("texts of levels", "//a[contains(., 'z')]", deep(900).replace("</a></a>", "lorem</a></a>"), steps),
        ("join", "//a[@i = //@j]", body("<x>", "<a i='1' j='2'/>", 20_000, "</x>"), steps),
        ("in each other", "//a[../a[../a[../a[b]]]]", body("<x>", "<a/>", 1_000, "</x>"), steps),
        (
            "long names",
            "//*[name() = 'q']",
            body(&format!("<n:x xmlns:n='{}'>", "u".repeat(100_000)), "<n:a/>", 10_000, "</n:x>"),
            steps,
        ),
        (
            "functions",
            "translate(/x, 'bcdefghijklmnopqrstuvwxyz', '')",
            body("<x>", "a", 1 << 20, "</x>"),
            steps,
        ),
    ] {
        let said = by_xpath(path, &body).map(|found| found.len()).unwrap_err();
        assert!(said.ends_with(&format!("`: {says}")), "{name}: {said}");
    }
    // Declarations of entities are not read at all.
    for body in [
        body("<!DOCTYPE x [<!ENTITY a \"", "a", 100_000, "\">]><x>&a;&a;</x>"),
        body("<!DOCTYPE x SYSTEM \"[<a b='\">", "<x>", 100_000, ""),
    ] {
        assert_eq!(by_xpath("//x", &body), Err("no value at `//x`".to_owned()));
    }
}

#[test]
fn hostile_json_holds_nobody_up() {
    let values = format!("the body has more than {VALUES_MAX} values");
    let (values, steps) = (values.as_str(), "the search took more than 500000 steps");
    let long = "k".repeat(20_000);
    for (name, path, body, says) in [
        ("elements", "$..a", body("[1", ",1", VALUES_MAX, "]"), values),
        ("members", "$..b", body("{\"a\":1", ",\"a\":1", VALUES_MAX, "}"), values),
        ("a value of them", "$.a", body("{\"a\":[1", ",1", VALUES_MAX, "]}"), values),
        ("passed over", "$[0]", body("[1", ",1", 8 << 20, "]"), steps),
        (
            "long paths",
            "$..*",
            body("", &format!("{{\"{long}\":"), 60, &body("[1", ",1", 9, &format!("]{}", "}".repeat(60)))),
            steps,
        ),
        ("one long name", "$..*", body(&format!("{{\"{long}\":[1"), ",1", 50_000, "]}"), steps),
        ("again and again", "$..*..*..*", body("[1", ",[1,[1,[1]]]", 14_000, "]"), steps),
        ("deep", "$..*..*", body("[", &format!("{}1{},", "[".repeat(90), "]".repeat(90)), 500, "1]"), steps),
        ("filter in filter", "$[?$[?@.a == 3]]", body("[1", ",{\"a\":2}", 10_000, "]"), steps),
        (
            "trees",
            "$[?$[?@ == $[0]]]",
            body("[[0]", &body(",[1", ",1", 900, "]"), 100, "]")
                .replace("[0]", &body("[1", ",1", 899, ",2]")),
            steps,
        ),
        ("lists", "$[?subset_of($.a, $.a)]", body("{\"a\":[1", ",2", 50_000, "]}"), steps),
        ("pattern", "$[?search(@.a, 'y')]", body("[{\"a\":\"", "x", 15 << 20, "\"}]"), steps),
        ("selectors", "$..[0,0,0,0,0,0,0,0,0,0]", body("[1", ",[1]", 40_000, "]"), steps),
    ] {
        let said = by_json_path(path, &body).map(|found| found.len()).unwrap_err();
        assert!(said.ends_with(&format!("`: {says}")), "{name}: {said}");
    }
}

#[test]
fn a_search_that_was_given_up_is_neither_missing_nor_its_contrary() {
    let names = ["v".to_owned()];
    let body = body("<x>", "<a/>", VALUES_MAX, "</x>");
    let (fields, mut session) = (FieldList::default(), Session::new(1));
    let received = Received::new(200, &fields, body.as_bytes());
    let source = || Source::XPath("//b".to_owned());
    let check = |negated| CheckSpec { source: source(), matching: Matching::Exists, negated };
    let extract = ExtractSpec {
        variable: 0,
        source: source(),
        regex: None,
        form: Conversion::Value,
        default: Some("default".to_owned()),
    };
    let poll = |negated| PollSpec { until: vec![check(negated)], ..PollSpec::default() };
    for spec in [
        ReactionSpec { checks: vec![check(false)], ..ReactionSpec::default() },
        ReactionSpec { checks: vec![check(true)], ..ReactionSpec::default() },
        ReactionSpec { extract: vec![extract], ..ReactionSpec::default() },
        ReactionSpec { poll: Some(poll(false)), ..ReactionSpec::default() },
        ReactionSpec { poll: Some(poll(true)), ..ReactionSpec::default() },
    ] {
        let handler = ResponseHandler::compile(&spec, &Scope::new(&names)).unwrap();
        let failure = handler.apply(&received, &mut session).unwrap_err();
        let said = handler.describe(failure, &received);
        assert!(said.starts_with("value at `//b`: the body has more than 100000 values"), "{spec:?}: {said}");
        assert_eq!(session.variables[0], b"", "{spec:?}");
    }
}

#[test]
fn the_events_of_a_stream_share_the_steps() {
    let names = ["v".to_owned()];
    let of = Box::new(Source::JsonPath("$..b".to_owned()));
    let source = Source::Event { pick: EventPick::Any, of };
    let check = CheckSpec { source, matching: Matching::Exists, negated: false };
    let stream = Some(EventStream::Ndjson);
    let spec = ReactionSpec { checks: vec![check], stream, ..ReactionSpec::default() };
    let handler = ResponseHandler::compile(&spec, &Scope::new(&names)).unwrap();
    let event = body("[1", ",[1]", 1_000, "]\n");
    let fields = FieldList::default();
    for (events, says) in
        [(10, "no value at `$..b` in any event"), (300, "value at `$..b` in any event: the search")]
    {
        let body = event.repeat(events);
        let received = Received::new(200, &fields, body.as_bytes());
        let failure = handler.apply(&received, &mut Session::new(1)).unwrap_err();
        let said = handler.describe(failure, &received);
        assert!(said.starts_with(says), "{said}");
    }
}

/// A small document, not always well-formed.
fn xml() -> impl Strategy<Value = String> {
    let pieces = select(vec![
        "<a>",
        "</a>",
        "<b c='1' d=\"2\">",
        "</b>",
        "<a e='3'/>",
        "text",
        "&amp;",
        "&#65;",
        "<![CDATA[<x>]]>",
        "<!--c-->",
        "<?p i?>",
        " ",
        "\r\n",
        "<n:a xmlns:n='u'>",
        "</n:a>",
        "<b xmlns='v' n:f='4'/>",
        "é",
        "1.5",
        "<!DOCTYPE a>",
        "<",
        ">",
        "'",
        "]]>",
        "&x;",
    ]);
    proptest::collection::vec(pieces, 0..14).prop_map(|pieces| format!("<a>{}</a>", pieces.concat()))
}

fn xpath() -> impl Strategy<Value = String> {
    let pieces = select(vec![
        "/",
        "//",
        "a",
        "b",
        "@c",
        "*",
        "@*",
        ".",
        "..",
        "[",
        "]",
        "(",
        ")",
        "1",
        "'x'",
        "=",
        "<",
        "!=",
        "+",
        "-",
        "|",
        " and ",
        " or ",
        " div ",
        " mod ",
        "node()",
        "text()",
        "comment()",
        "ancestor::*",
        "ancestor::node()",
        "following::a",
        "preceding::node()",
        "following-sibling::*",
        "preceding-sibling::a",
        "namespace::*",
        "descendant-or-self::node()",
        "self::a",
        "parent::*",
        "attribute::e",
        "last()",
        "position()",
        "count(//*)",
        "name()",
        "name(..)",
        "string()",
        "number(.)",
        "contains(., 'x')",
        "translate(., 'x', 'y')",
        "lang('e')",
        "not(",
        "sum(//a)",
        "substring(., 2, 1)",
        "normalize-space(.)",
        ",",
        "[1]",
        "[@c]",
        "[b]",
        "[last()]",
    ]);
    proptest::collection::vec(pieces, 1..9).prop_map(|pieces| pieces.concat())
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        select(vec![0.5, -1.0, 2.0, 1e30]).prop_map(Value::from),
        select(vec!["", "a", "b", "ab", "é\n"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let name = select(vec!["a", "b", "c", "0", "a'b", "\n"]).prop_map(str::to_owned);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((name, inner), 0..5)
                .prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

fn json_path() -> impl Strategy<Value = String> {
    let piece = select(vec![
        ".a",
        ".b",
        "['0']",
        "[0]",
        "[1]",
        "[-1]",
        ".*",
        "[*]",
        "..a",
        "..*",
        "..[0]",
        "[0,1]",
        "['a','b']",
        "[1:]",
        "[::-1]",
        "[?@.a]",
        "[?@ == 'a']",
        "[?@.a == @.b]",
        "[?@ == $]",
        "[?@.a != value($..b)]",
        "[?@.a < 2]",
        "[?@ >= 'a']",
        "[?length(@) > 1]",
        "[?count(@.*) == 2]",
        "[?match(@, 'a.?')]",
        "[?search(@.a, 'b')]",
        "[?!search(@, '^a$') && @]",
        "[?value(@..a) == 1]",
        "[?in(@, $.a)]",
        "[?nin(@, $.a)]",
        "[?any_of(@.a, $.b)]",
        "[?none_of(@, $)]",
        "[?subset_of(@.a, $.a)]",
        "[?@[?@.a == 1] || @.b]",
    ]);
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| format!("${}", pieces.concat()))
}

proptest! {
    #[test]
    fn no_xpath_panics_on_any_document(path in xpath(), body in xml()) {
        let _ = by_xpath(&path, &body);
    }

    #[test]
    fn any_text_is_an_xpath_or_refused(path in "[-a-c*@.:/()\\[\\]'\"|=<>!+$, 0-9\u{e9}]{0,40}") {
        let _ = by_xpath(&path, "<a><b c='1'/>x</a>");
    }

    #[test]
    fn json_paths_find_what_the_library_finds(path in json_path(), value in json()) {
        let body = value.to_string();
        let query = parse_json_path(&path).unwrap();
        let matches = js_path_process(&query, &value).unwrap_or_default();
        let expected = matches.first().map(|found| match found.val {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let budget = Budget::default();
        let mut parsed = Parsed::new(&budget);
        let (fields, sent, cookies) = (FieldList::default(), SentRequest::default(), CookieJar::default());
        let received = &Received::new(200, &fields, body.as_bytes());
        let mut exchange =
            Exchange { received, sent: &sent, cookies: &cookies, parsed: &mut parsed, stream: None };
        let place = Place::compile(&Source::JsonPath(path), &Scope::default()).unwrap();
        let mut scratch = Vec::new();
        let found = place.first(&mut exchange, &mut scratch);
        let found = found.map(|found| String::from_utf8_lossy(found).into_owned());
        prop_assert_eq!(found, expected);
    }
}
