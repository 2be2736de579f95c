//! Whatever a source says, an importer ends with a plan or with problems.

use std::path::Path;

use plimsoll_import::{curl, h2loadrunner, har, openapi, vegeta};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::{Named, shown};

/// Words that the formats have a meaning for, and some that they have none for.
const WORDS: &[&str] = &[
    "schema",
    "host",
    "http",
    "Scenarios",
    "Requests",
    "uri",
    "typeOfAction",
    "input",
    "fromResponseHeader",
    "method",
    "GET",
    "payload",
    "additonalHeaders",
    "a: b",
    "${a}",
    "$$${a}",
    "response-match",
    "headers",
    "header-name",
    ":status",
    "matchType",
    "RegexMatch",
    "[a",
    "value-pickers",
    "source",
    "regexp",
    "save-to-variable",
    "user-id-variable-in-path-and-data",
    "user-id-range-end",
    "range-based-variables",
    "variable-name",
    "variable-range-end",
    "weight",
    "name",
    "log",
    "entries",
    "request",
    "url",
    "http://h/",
    "startedDateTime",
    "2026-01-01T00:00:00Z",
    "time",
    "postData",
    "params",
    "text",
    "openapi",
    "3.0.0",
    "servers",
    "paths",
    "/{a}",
    "get",
    "parameters",
    "in",
    "path",
    "query",
    "$ref",
    "#/paths",
    "requestBody",
    "content",
    "application/json",
    "type",
    "object",
    "properties",
    "allOf",
    "items",
    "-",
    "request-per-second",
    "total-requests",
    "clients",
    "\u{e4}",
    "",
    "body",
    "header",
    "two.csv",
];

fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(WORDS).prop_map(str::to_owned)
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        word().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((word(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A configuration that is right but for one part.
fn configuration() -> impl Strategy<Value = Value> {
    (tree(), proptest::sample::select(WORDS), 0..3_usize).prop_map(|(part, key, place)| {
        let mut value = serde_json::json!({"schema": "http", "host": "h", "Scenarios": [{"name": "s",
            "Requests": [{"uri": {"input": "/${a}"}, "method": "GET"}]}]});
        let pointer = ["", "/Scenarios/0", "/Scenarios/0/Requests/0"][place];
        let object = value.pointer_mut(pointer).and_then(Value::as_object_mut);
        object.expect("it is an object").insert(key.to_owned(), part);
        value
    })
}

fn all(text: &[u8]) {
    let files = Named(&[("two.csv", b"x,y\n1,2\n")]);
    let here = Path::new("");
    shown(&h2loadrunner::import(text, here, &files));
    shown(&har::import(text, &har::Options::default()));
    shown(&openapi::import(text, &openapi::Options::default()));
    shown(&vegeta::import(text, &vegeta::Options::default()));
    if let Ok(text) = std::str::from_utf8(text) {
        shown(&curl::import(text, here, &files));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_imported_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        all(&bytes);
    }

    #[test]
    fn any_tree_is_imported_or_refused(tree in tree()) {
        all(tree.to_string().as_bytes());
    }

    #[test]
    fn any_configuration_is_imported_or_refused(value in configuration()) {
        all(value.to_string().as_bytes());
    }

    #[test]
    fn any_words_of_curl_are_imported_or_refused(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "-X", "-d", "-H", "a: b", "http://h/", "-F", "a=@two.csv;type=", "-G", "-Z", "--data-urlencode",
                "=", "@", "@two.csv", "-", "--", "-sd", "--json", "-u", ":", "-b", "\u{e4}", "", "-\u{e4}x", "-T",
            ]),
            0..8,
        ),
    ) {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        shown(&curl::import_words(&words, Path::new(""), &Named(&[("two.csv", b"x")])));
    }

    #[test]
    fn any_lines_of_targets_are_imported_or_refused(text in "((GET|put|@|a:|#| |http://h/|\\{|\"url\"|\n){1,4}\n){0,6}") {
        shown(&vegeta::import(text.as_bytes(), &vegeta::Options { steps: true }));
    }
}
