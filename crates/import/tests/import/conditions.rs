//! Conditions on values of JSON: each holds in the plan where it holds in the program, or is noted.

use std::path::Path;

use jsonpath_rust::JsonPath as _;
use plimsoll_document::{Document, Problems};
use plimsoll_import::{Imported, k6, locust};
use serde_json::{Value, json};

use crate::import::migrated::Outcome::{self, Right};
use crate::import::{Named, checked};

/// Returns whether the expectations on JSON of the first request hold.
fn holds(document: &Document, body: &Value) -> bool {
    let scenario = document.scenarios[0].get().expect("a scenario");
    let step = scenario.steps[0].get().expect("a step");
    let Some(expect) = step.expect.get() else { return true };
    expect.json.0.iter().all(|(at, _, spec)| {
        let spec = spec.get().expect("a comparison");
        let found = match at.as_str() {
            path if path.starts_with('$') => body.query(path).expect("a JSONPath").first().copied().cloned(),
            pointer => body.pointer(pointer).cloned(),
        };
        let text = found.map(|found| match found {
            Value::String(text) => text,
            other => other.to_string(),
        });
        let is_as_said = match (spec.equals.get(), spec.exists.get()) {
            (Some(equals), None) => text.as_deref() == Some(equals.as_str()),
            (None, Some(exists)) => text.is_some() == *exists,
            other => panic!("{other:?}"),
        };
        is_as_said != (spec.not.get() == Some(&true))
    })
}

/// Values of `v` in a body.
fn bodies(values: &[Value]) -> Vec<Value> {
    values.iter().map(|v| json!({ "a": "", "v": v })).collect()
}

/// A condition, the values of `v` for which it holds, and those for which it does not.
type Row<'r> = (&'r str, &'r [Value], &'r [Value]);

/// A description of what is wrong with a row.
fn wrong(row: &Row<'_>, imported: &Imported) -> Option<String> {
    let (condition, good, bad) = row;
    let is_note = |note: &&plimsoll_import::Note| {
        note.said != "options" && note.at != "run" && !note.becomes.starts_with("a check that does not hold")
    };
    let notes: Vec<String> = imported.notes.iter().filter(is_note).map(ToString::to_string).collect();
    if !notes.is_empty() {
        return Some(format!("{condition}: {notes:?}"));
    }
    let is_wrong = |body: &Value, is_good: bool| holds(&imported.document, body) != is_good;
    let good = bodies(good).into_iter().filter(|body| is_wrong(body, true));
    let bad = bodies(bad).into_iter().filter(|body| is_wrong(body, false));
    let all: Vec<String> = good.chain(bad).map(|body| body.to_string()).collect();
    (!all.is_empty()).then(|| format!("{condition}: {all:?}\n{}", imported.document.to_yaml()))
}

fn locustfile(statements: &str) -> Imported {
    tried(statements).unwrap_or_else(|problems| panic!("{problems}\n{statements}"))
}

fn tried(statements: &str) -> Result<Imported, Problems> {
    let body: String = statements.lines().map(|line| format!("        {line}\n")).collect();
    let text = format!(
        "from locust import *\nclass U(HttpUser):\n    host = 'http://h'\n    @task\n    def t(self):\n{body}"
    );
    let files = Named(&[]);
    let options = locust::Options { name: "l.py".to_owned(), ..locust::Options::default() };
    checked(locust::import(text.as_bytes(), &options, Path::new(""), &files), Path::new(""), &files)
}

#[test]
fn conditions_of_python_hold_where_python_says() {
    let truthy = [
        json!(true),
        json!(1),
        json!(-1),
        json!(0.5),
        json!("0"),
        json!("false"),
        json!([0]),
        json!({"a": 0}),
    ];
    let falsy = [json!(false), json!(0), json!(0.0), json!(""), json!([]), json!({}), Value::Null];
    let mut all = Vec::new();
    for row in [
        ("r.json()['v']", &truthy[..], &falsy[..]),
        ("not r.json()['v']", &falsy, &truthy),
        ("r.json().get('v')", &truthy, &falsy),
        (
            "r.json()['v'] is True",
            &[json!(true)],
            &[json!(false), json!(1), json!("true"), json!("True"), Value::Null],
        ),
        ("r.json()['v'] is not True", &[json!(false), json!(1), json!("true")], &[json!(true)]),
        ("r.json()['v'] is False", &[json!(false)], &[json!(true), json!(0), json!("false"), Value::Null]),
        ("r.json()['v'] == True", &[json!(true), json!(1)], &[json!(false), json!("true")]),
        ("r.json()['v'] != False", &[json!(true), json!(2)], &[json!(false), json!(0)]),
        ("r.json()['v'] is None", &[Value::Null], &[json!(0), json!(""), json!("null"), json!(false)]),
        ("r.json()['v'] is not None", &[json!(0), json!(""), json!("None")], &[Value::Null]),
        ("r.json()['v'] == None", &[Value::Null], &[json!(0), json!("null")]),
        ("r.json()['v'] == 3", &[json!(3), json!(3.0)], &[json!("3"), json!(4)]),
        ("r.json()['v'] == 1", &[json!(1), json!(true)], &[json!("1"), json!(0)]),
        ("r.json()['v'] != 3", &[json!("3"), json!(4)], &[json!(3), json!(3.0)]),
        ("r.json()['v'] == '3'", &[json!("3")], &[json!(3)]),
        ("r.json()['v'] == 'true'", &[json!("true")], &[json!(true)]),
        ("r.json()['v'] == 'b'", &[json!("b")], &[json!("c"), json!(["b"])]),
        ("r.json()['v'] != 'b'", &[json!("c")], &[json!("b")]),
        ("r.json()['v'] in ['a', 'b']", &[json!("a"), json!("b")], &[json!("c"), json!(["a"])]),
        ("r.json()['v'] not in (1, 'b')", &[json!("c"), json!("1")], &[json!(1), json!("b")]),
        (
            "'k' in r.json()['v']",
            &[json!(["k"]), json!({"k": ""}), json!("ok")],
            &[json!(["ok"]), json!({"x": "k"}), json!("no")],
        ),
        ("'k.' in r.json()['v']", &[json!("ok.")], &[json!("oks")]),
        (
            "'k' not in r.json()['v']",
            &[json!(["ok"]), json!({"x": "k"}), json!("no")],
            &[json!(["k"]), json!({"k": 1}), json!("ok")],
        ),
        ("3 in r.json()['v']", &[json!([1, 3])], &[json!(["3"]), json!({"3": 3}), json!([])]),
        (
            "len(r.json()['v']) > 0",
            &[json!([1]), json!({"a": 1}), json!("x")],
            &[json!([]), json!({}), json!("")],
        ),
        ("len(r.json()['v']) == 2", &[json!([1, 2]), json!("xy")], &[json!([1]), json!("")]),
        ("len(r.json()['v']) != 2", &[json!([1])], &[json!([1, 2])]),
        ("r.json()['v'] and r.json()['v'] != 5", &[json!(4)], &[json!(5), json!(0)]),
        ("bool(r.json()['v'])", &truthy, &falsy),
    ] {
        for statements in [
            format!(
                "with self.client.get('/a', catch_response=True) as r:\n    if not ({}):\n        r.failure('x')",
                row.0
            ),
            format!(
                "with self.client.get('/a', catch_response=True) as r:\n    if {}:\n        pass\n    else:\n        r.failure('x')",
                row.0
            ),
        ] {
            all.extend(wrong(&row, &locustfile(&statements)));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n----\n"));
}

#[test]
fn checks_of_k6_hold_where_javascript_says() {
    let truthy = [json!(true), json!(1), json!("0"), json!("false"), json!([]), json!({})];
    let falsy = [json!(false), json!(0), json!(""), Value::Null];
    let mut all = Vec::new();
    for row in [
        ("r.json('v')", &truthy[..], &falsy[..]),
        ("!r.json('v')", &falsy, &truthy),
        ("!!r.json().v", &truthy, &falsy),
        ("Boolean(r.json('v'))", &truthy, &falsy),
        ("r.json('v') === true", &[json!(true)], &[json!(false), json!(1), json!("true"), Value::Null]),
        ("r.json('v') == true", &[json!(true), json!(1)], &[json!(false), json!("x"), Value::Null]),
        ("r.json('v') !== false", &[json!(true), json!(0), Value::Null], &[json!(false)]),
        ("r.json('v') === null", &[Value::Null], &[json!(0), json!(""), json!("null")]),
        ("r.json('v') !== null", &[json!(0), json!("null")], &[Value::Null]),
        ("r.json('v') != null", &[json!(0), json!("")], &[Value::Null]),
        ("r.json('v') == undefined", &[Value::Null], &[json!(0), json!("")]),
        ("r.json('v') !== undefined", &[json!(0), json!(""), Value::Null], &[]),
        ("r.json('v') === 3", &[json!(3), json!(3.0)], &[json!("3"), json!(4)]),
        ("r.json('v') == 3", &[json!(3), json!("3")], &[json!(4)]),
        ("r.json('v') === '3'", &[json!("3")], &[json!(3)]),
        ("r.json('v') == '3'", &[json!("3"), json!(3)], &[json!(4)]),
        ("r.json('v') === 'b'", &[json!("b")], &[json!("c")]),
        ("r.json('v') !== 'b'", &[json!("c")], &[json!("b")]),
        ("r.json('v').length === 2", &[json!([1, 2]), json!("xy")], &[json!([1])]),
        ("r.json('v').length > 0", &[json!([1]), json!("x")], &[json!([]), json!("")]),
        ("['a', 'b'].includes(r.json('v'))", &[json!("a")], &[json!("c"), json!(["a"])]),
        ("[1, 2].includes(r.json('v'))", &[json!(1)], &[json!("1"), json!(3)]),
    ] {
        let text = format!(
            "import http from 'k6/http';\nimport {{ check }} from 'k6';\nexport default function () {{\n\
             const res = http.get('http://h/a');\ncheck(res, {{ 'it holds': (r) => {} }});\n}}\n",
            row.0
        );
        let options = k6::Options { name: "script.js".to_owned(), ..k6::Options::default() };
        let files = Named(&[]);
        let imported =
            checked(k6::import(text.as_bytes(), &options, Path::new(""), &files), Path::new(""), &files);
        all.extend(wrong(&row, &imported.unwrap_or_else(|problems| panic!("{problems}\n{text}"))));
    }
    assert!(all.is_empty(), "{}", all.join("\n----\n"));
}

#[test]
fn conditions_on_steps_hold_where_python_says() {
    let mut all = Vec::new();
    for (statements, sent, lines) in [
        (
            "if r.json()['ok']:\n    self.client.get('/b')",
            &["GET /a", "GET /b"][..],
            &[
                "json: $[?@ == $.ok && (@ == true || @ < 0 || @ > 0 || length(@) > 0)]",
                "default: \"\"",
                "if: (not ${ok} == \"\")",
            ][..],
        ),
        (
            "if not r.json()['ok']:\n    self.client.get('/b')",
            &["GET /a", "GET /b"],
            &["if: not (not ${ok} == \"\")"],
        ),
        (
            "if r.json()['ok'] is None:\n    self.client.get('/b')",
            &["GET /a", "GET /b"],
            &["json: $[?@ == $.ok && @ != null]"],
        ),
        (
            "if 0 < r.json()['n'] < 9:\n    self.client.get('/b')",
            &["GET /a", "GET /b"],
            &["if: (\"${n}\" > 0) and (\"${n}\" < 9)"],
        ),
    ] {
        let text = format!("r = self.client.get('/a')\n{statements}");
        let imported = locustfile(&text);
        all.extend(wrong_lines(&text, &imported, &Right(sent, lines)));
    }
    // Python looks at the middle once.
    let text = "if 0 < self.client.get('/b').json()['n'] < 9:\n    self.client.get('/c')";
    let refused = tried(text).unwrap_err().to_string();
    assert!(refused.contains("l.py:7: `self.client.get('/c')`: whether it is carried out"), "{refused}");
    assert!(all.is_empty(), "{}", all.join("\n----\n"));
}

/// A description of what is wrong with a plan.
fn wrong_lines(text: &str, imported: &Imported, outcome: &Outcome<'_>) -> Option<String> {
    super::migrated::wrong("l.py", text, &Ok(imported.clone()), outcome)
}
