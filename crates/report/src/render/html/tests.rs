use plimsoll_core::{Nanos, figure};

use super::*;

#[test]
fn the_template_has_its_places_and_asks_nothing_of_the_network() {
    assert_eq!((TEMPLATE.matches(TITLE).count(), TEMPLATE.matches(CONTENT).count()), (1, 1));
    assert!(TEMPLATE.find(TITLE) < TEMPLATE.find(CONTENT));
    assert!(TEMPLATE.contains("content=\"default-src 'none';"), "it has no policy");
    assert!(TEMPLATE.contains("script-src 'sha256-"), "it does not let its script run");
    assert_eq!(TEMPLATE.matches("<script").count(), 1, "it has the script that draws charts");
    for way in [" src=\"", "@import", "<iframe", "<img", "<object", "href=\"http"] {
        assert!(!TEMPLATE.contains(way), "{way}");
    }
}

/// The page is committed, and with it code of others: their licences ask that the notice goes with the code.
#[test]
fn the_template_has_the_licences_of_what_its_script_is_made_of() {
    let (_, notices) = TEMPLATE.split_once("class=\"licences\"").expect("a place for them");
    for notice in ["preact\n\nThe MIT License", "uplot\n\nThe MIT License", "Copyright (c)"] {
        assert!(notices.contains(notice), "{notice}");
    }
}

/// The script writes figures at the cursor by rules of its own, which are held to the same examples.
#[test]
fn figures_are_written_as_the_script_writes_them() {
    let examples = include_str!("../../../../../web/tests/figures.json");
    let examples: serde_json::Value = serde_json::from_str(examples).unwrap();
    let written = |kind: &str, value: f64| match kind {
        "nanos" => figure::nanos(Nanos(value as u64)),
        "count" => figure::count(value as u64),
        "number" => figure::number(value),
        "per_second" => figure::per_second(value),
        "share" => figure::share(value),
        "bytes" => figure::bytes(value as u64),
        _ => panic!("{kind} is not a kind of figure"),
    };
    let mut checked = 0;
    for (kind, pairs) in examples.as_object().unwrap() {
        for pair in pairs.as_array().unwrap() {
            assert_eq!(written(kind, pair[0].as_f64().unwrap()), pair[1].as_str().unwrap(), "{kind}");
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} examples");
}
