//! Forms that a plan file may have, and the places of its values.

use plimsoll_core::Redaction;
use plimsoll_document::{Document, Field, Place, Problems, Source, Text};
use proptest::prelude::*;

use super::parts::PARTS;

pub(crate) fn read(text: &str) -> (Option<Document>, Problems) {
    let mut problems = Problems::default();
    let source = Source { name: "plan.yaml".to_owned(), text: text.to_owned() };
    let document = Document::read(&source, PARTS.document(), &mut problems);
    (document, problems)
}

pub(crate) fn good(text: &str) -> Document {
    let (document, problems) = read(text);
    assert!(problems.is_empty(), "{problems:?} in:\n{text}");
    document.expect("a document without problems")
}

fn text(field: &Field<Text>) -> &str {
    field.get().expect("a value").as_str()
}

#[test]
fn scalars_keep_the_text_that_was_typed() {
    let document = good(
        "name: 007\nrun: {rate: 5k/s, seed: 0x10, tls: 1.20, insecure: true}\n\
         variables: {a: true, b: 'it''s', c: \"\\u00e9\", d: \"\", e: 1e3}\n",
    );
    assert_eq!(text(&document.name), "007");
    let run = document.run.get().unwrap();
    assert_eq!((text(&run.rate), text(&run.seed), text(&run.tls)), ("5k/s", "0x10", "1.20"));
    assert_eq!(run.insecure.get(), Some(&true));
    let values: Vec<_> = document.variables.0.iter().map(|(_, _, value)| text(value)).collect();
    assert_eq!(values, ["true", "it's", "é", "", "1e3"]);
}

#[test]
fn every_value_has_its_place_in_bytes() {
    for source in [
        "# é\nname: ÄÖ\nrun:\n  rate: 5k # comment\n",
        "{\"name\": \"ÄÖ\",\r\n \"run\": {\"rate\": \"5k\"}}",
        "\u{feff}name:   ÄÖ   \nrun: { rate: '5k' }",
    ] {
        let document = good(source);
        let shown = |place: Option<Place>| {
            let place = place.expect("a place");
            source[place.start as usize..place.end as usize].trim_matches(['"', '\'']).to_owned()
        };
        assert_eq!(shown(document.name.place()), "ÄÖ", "{source:?}");
        assert_eq!(shown(document.run.get().unwrap().rate.place()), "5k", "{source:?}");
    }
    let source = "scenarios:\n  - name: a\n    steps:\n      - post: /\n        body: |\n          x\n          y\n\n\nname: z\n";
    let document = good(source);
    let step = document.scenarios[0].get().unwrap().steps[0].clone();
    let body = &step.get().unwrap().request().unwrap().body.body;
    let place = body.place().unwrap();
    assert_eq!(&source[place.start as usize..place.end as usize], "x\n          y");
    assert_eq!(text(body), "x\ny\n");
    let place = step.place().unwrap();
    assert!(source[place.start as usize..place.end as usize].starts_with("post: /\n"));
}

#[test]
fn one_value_stands_for_a_list_and_a_text_for_the_usual_field() {
    let long = good(
        "targets: {a: {url: 'http://a/', share: [b]}}\n\
         data: {d: {list: [[1], [2]], columns: [c]}}\n\
         scenarios:\n- steps:\n  - get: /\n    think: {fixed: 1s}\n    expect: {status: [200], body: [x]}\n\
         thresholds: [{that: p99<1s}]\nrun: {headers: ['A: b'], source_ip: [127.0.0.1]}\n",
    );
    let short = good(
        "targets: {a: {url: 'http://a/', share: b}}\n\
         data: {d: {list: [1, 2], columns: c}}\n\
         scenarios:\n  steps:\n    get: /\n    think: 1s\n    expect: {status: 200, body: x}\n\
         thresholds: p99<1s\nrun: {headers: 'A: b', source_ip: 127.0.0.1}\n",
    );
    let json = |document: &Document| serde_json::to_value(document).unwrap();
    assert_eq!(json(&long), json(&short));
    let url = good("targets: {a: http://a/}");
    assert_eq!(text(&url.targets.0[0].2.url), "http://a/");
}

#[test]
fn json_of_a_body_keeps_its_types() {
    let document = good(
        "scenarios:\n- steps:\n  - post: /\n    json: {a: 1, b: '1', c: 1.5, d: true, e: ~, f: [x, 007], g: -3, h: {}}\n",
    );
    let json = document.scenarios[0].get().unwrap().steps[0]
        .get()
        .unwrap()
        .request()
        .unwrap()
        .body
        .json
        .get()
        .cloned()
        .unwrap();
    assert_eq!(
        json,
        serde_json::json!({"a": 1, "b": "1", "c": 1.5, "d": true, "e": null, "f": ["x", "007"], "g": -3, "h": {}})
    );
}

#[test]
fn aliases_and_merge_keys_repeat_values() {
    let document = good(
        "scenarios:\n- name: a\n  steps: &steps\n  - get: /a\n- name: b\n  steps: *steps\n\
         targets:\n  x: &x {url: http://x/, share: y}\n  z: {<<: *x, url: http://z/}\n",
    );
    let steps = |index: usize| document.scenarios[index].get().unwrap().steps.clone();
    assert_eq!(text(&steps(1)[0].get().unwrap().request().unwrap().address.get), "/a");
    let z = &document.targets.0[1].2;
    assert_eq!((text(&z.url), text(&z.share[0])), ("http://z/", "y"));
}

#[test]
fn a_bomb_of_aliases_ends_in_a_problem() {
    let mut bomb = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!("b{level}: &a{level} [{}]\n", vec![before; 10].join(", ")));
    }
    let (document, problems) = read(&bomb);
    assert!(document.is_none());
    assert!(problems.to_string().contains("aliases repeat more than"), "{problems}");
    let (_, problems) = read("a: &a [*a]");
    assert!(problems.to_string().contains("cannot contain itself"), "{problems}");
    for deep in ["[".repeat(300), "- ".repeat(300), "a: {".repeat(100)] {
        let (_, problems) = read(&deep);
        assert!(problems.to_string().contains("nested deeper"), "{problems}");
    }
}

/// Symptom: a plan of 4 MB took 2 GB.
#[test]
fn values_of_a_plan_are_bounded() {
    let yaml = format!("variables: {{a: [{}x]}}", "x,".repeat(1_000_000));
    let json = format!("{{\"variables\": {{\"a\": [{}1]}}}}", "1,".repeat(1_000_000));
    for text in [yaml, json] {
        let (document, problems) = read(&text);
        assert!(document.is_none());
        assert!(problems.to_string().contains("there are more than 1000000 values"), "{problems}");
    }
}

#[test]
fn reading_goes_on_behind_a_mistake() {
    let (document, problems) = read(
        "run: {rate: [1, 2], durations: 5s, insecure: yes, duration: 7s}\n\
         scenarios:\n- {name: {}, wieght: 2, steps: 5}\n- steps:\n  - get: /x\n",
    );
    let document = document.unwrap();
    let run = document.run.get().unwrap();
    assert_eq!(text(&run.duration), "7s");
    assert!(matches!(run.rate, Field::Bad(_)) && matches!(run.insecure, Field::Bad(_)));
    assert_eq!(document.scenarios.len(), 2);
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "`rate` has to be a single value, and is a list",
            "unknown key `durations`",
            "`insecure` has to be true or false, and is `yes`",
            "`name` has to be a single value, and is a mapping",
            "unknown key `wieght`",
            "`steps` has to be a mapping, and is a single value",
        ]
    );
    assert!(problems.iter().all(|problem| problem.place.is_some()));
}

/// Symptom: "unknown key `browse`", with the keys of a scenario, of scenarios below their names.
#[test]
fn scenarios_below_their_names_are_told_to_be_a_list() {
    let (_, problems) = read("scenarios:\n  browse:\n    steps: [{get: /x}]\n");
    let hints: Vec<_> = problems.iter().filter_map(|problem| problem.hint.as_deref()).collect();
    assert!(hints.iter().any(|hint| hint.contains("`- name: browse`")), "{hints:?}");
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(text in ".{0,200}") {
        places_are_inside(&text);
    }

    /// Texts that are nearly plans get further.
    #[test]
    fn no_pieces_of_plans_make_reading_panic(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)
    ) {
        places_are_inside(&pieces.concat());
    }
}

const PIECES: &[&str] = &[
    "\n",
    "  ",
    "    ",
    "- ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "'",
    "\"",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<",
    "!!str ",
    "#",
    "é",
    "\u{feff}",
    "\t",
    "run",
    "rate",
    "5k",
    "scenarios",
    "steps",
    "get",
    "/x",
    "targets",
    "data",
    "range",
    "thresholds",
    "p99<1s",
    "json",
    "~",
    "think",
    "expect",
    "\r\n",
    "---\n",
    "%YAML 1.2\n",
    "\u{2028}",
    "? ",
];

fn places_are_inside(text: &str) {
    let (document, mut problems) = read(text);
    assert!(document.is_some() || !problems.is_empty());
    if let Some(document) = document {
        if problems.is_empty() {
            let written = document.to_yaml();
            assert_eq!(good_or_empty(&written), written, "{text}");
        }
        document.check(&mut problems);
    }
    for problem in &problems {
        if let Some(place) = problem.place {
            // Slicing at the middle of a character would panic.
            let _ = &text[place.start as usize..(place.end as usize).min(text.len())];
        }
    }
    for place in (Source { name: String::new(), text: text.to_owned() }).secrets(&Redaction::default()) {
        let _ = &text[place.start as usize..place.end as usize];
    }
}

/// `poll` and bodies beside another kind of step were ignored.
#[test]
fn keys_of_another_kind_are_reported() {
    let refused = |step: &str| {
        let (document, mut problems) = read(&format!("scenarios: [{{steps: [{step}]}}]"));
        assert!(!document.expect("a document").check(&mut problems), "{step}");
        problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
    };
    for key in ["poll: {until: {status: 200}}", "greeting: {words: a}", "headers: {a: b}", "then: [{get: /}]"]
    {
        let (name, _) = key.split_once(':').unwrap();
        assert_eq!(
            refused(&format!("{{set: {{a: 1}}, {key}}}")),
            [format!("`{name}` cannot be combined with `set`")]
        );
    }
    assert_eq!(refused("{steps: [{get: /}], get: /}"), ["`steps` cannot be combined with a request"]);
    assert_eq!(refused("{think: 1s, poll: {every: 1s}}"), ["`poll` cannot be combined with a pause"]);
    // The values of those keys are still read.
    assert_eq!(
        refused("{set: {a: 1}, then: [{gett: /}]}"),
        ["unknown key `gett`", "`then` cannot be combined with `set`"]
    );
    assert_eq!(refused("{get: /, if: a}"), ["`get` and `if` exclude each other"]);
}

/// A plan that was written, read and written again.
fn good_or_empty(text: &str) -> String {
    let (document, problems) = read(text);
    document.unwrap_or_else(|| panic!("{problems:?} in:\n{text}")).to_yaml()
}
