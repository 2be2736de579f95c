//! Scripts of Artillery.

use std::path::{Path, PathBuf};

use plimsoll_import::artillery::import;
use plimsoll_plan::Disk;

use crate::import::{Named, checked, shown};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/artillery")
}

#[test]
fn examples() {
    for file in [
        "anchors.yml",
        "auth.json",
        "basic.yml",
        "ensure.yml",
        "expectations.yml",
        "functions.yml",
        "loops.yml",
        "mixed_engines.yml",
        "payload.yml",
        "phases.yml",
        "ramp_first.yml",
        "websocket.yml",
    ] {
        let text = std::fs::read(folder().join(file)).unwrap();
        let name = file.split('.').next().unwrap_or_default();
        insta::assert_snapshot!(name, shown(&checked(import(&text, &folder(), &Disk), &folder(), &Disk)));
    }
}

fn imported(text: &str) -> String {
    let files = Named(&[("two.csv", b"x,y\n1,2\n")]);
    shown(&checked(import(text.as_bytes(), Path::new(""), &files), Path::new(""), &files))
}

fn with_phases(phases: &str) -> String {
    imported(&format!(
        "config: {{target: 'http://h', phases: {phases}}}\nscenarios: [{{flow: [{{get: {{url: /}}}}]}}]\n"
    ))
}

#[test]
fn phases_are_courses_of_the_rate() {
    for (phases, course) in [
        ("[{duration: 60, arrivalRate: 5}]", "run:\n  duration: 60s\n  rate: 5\n"),
        ("[{duration: 10, arrivalRate: 1, rampTo: 3}]", "stages: 1ms@1,9999ms@3"),
        ("[{duration: 10, arrivalCount: 5}]", "rate: 1/2s"),
        ("[{duration: 10, arrivalRate: 1}, {duration: 10, arrivalRate: 1, rampTo: 3}]", "stages: 10s@3"),
        (
            "[{duration: 10, arrivalRate: 1}, {duration: 10, arrivalRate: 2, rampTo: 3}]",
            "stages: 1ms@=2,9999ms@3",
        ),
        ("[{duration: 10, arrivalRate: 1}, {pause: 5}, {duration: 10, rampTo: 3}]", "stages: 5s@=0"),
        ("[{duration: 1, arrivalRate: 1, name: a}, {duration: 1, arrivalRate: 2, name: a}]", "name: a (2)"),
        (
            "[{duration: soon, arrivalRate: 1}]",
            "error: /config/phases/0/duration: `soon` is not a length of a phase",
        ),
        ("[{duration: 5}]", "error: /config/phases/0: the phase has no number of users"),
        ("[{arrivalRate: 5}]", "error: /config/phases/0: the phase has no `duration`"),
        ("[]", "no phase has a number of users"),
    ] {
        let text = with_phases(phases);
        assert!(text.contains(course), "{phases}: {text}");
    }
}

#[test]
fn rows_come_from_files_that_are_there() {
    let script = |payload: &str| {
        format!(
            "config: {{target: 'http://h', phases: [{{duration: 1, arrivalRate: 1}}], payload: {payload}}}\n\
             scenarios: [{{flow: [{{get: {{url: '/{{{{ x }}}}'}}}}]}}]\n"
        )
    };
    let head = imported(&script("{path: two.csv, fields: [x, y], skipHeader: true}"));
    assert!(head.contains("csv: two.csv\n    order: random\n") && !head.contains("columns"), "{head}");
    let none = imported(&script("{path: two.csv, fields: [x, z], order: sequence}"));
    assert!(none.contains("columns:\n      - x\n      - z\n") && !none.contains("order"), "{none}");
    let other = imported(&script("{path: two.csv, fields: [x, z], skipHeader: true}"));
    assert!(other.contains("the first row of the file is data here"), "{other}");
    let missing = imported(&script("{path: no.csv, fields: [x]}"));
    assert!(missing.starts_with("error: ") && missing.contains("no.csv"), "{missing}");
}

#[test]
fn mistakes() {
    let mut text = String::new();
    for script in [
        "[]",
        "config: {}",
        "config: {target: nowhere}\nscenarios: []",
        "config: {target: 'http://h'}\nscenarios: [{flow: [{get: {url: 'ftp://h/'}}]}]",
        "config: {target: 'http://h', phases: 5}\nscenarios: {}",
        "config: {target: '{{ $env.TARGET }}'}\nscenarios: [{flow: [{get: {url: /}}]}]",
        "config: {target: 'http://h', payload: [{fields: [a]}, {path: a.csv}]}\nscenarios: [{flow: [{get: \
         /}]}]",
        "config: {target: 'http://h'}\nscenarios: [{weight: -1, flow: [{get: {url: /, headers: {'a b': \
         c}}}]}]",
        "config: {target: 'http://h'}\nscenarios: [{flow: [{think: 1}, {dance: 2}]}]",
    ] {
        text.push_str(&format!("# {}\n{}\n", script.replace('\n', "; "), imported(script)));
    }
    insta::assert_snapshot!(text);
}

/// Lists in lists would be written out without an end.
#[test]
fn loops_that_are_written_out_are_bounded() {
    let mut flow = "[{get: {url: '/{{ $loopElement }}'}}]".to_owned();
    for _ in 0..8 {
        flow = format!("[{{loop: {flow}, over: [{}]}}]", vec!["a"; 20].join(", "));
    }
    let text = imported(&format!(
        "config: {{target: 'http://h', phases: [{{duration: 1, arrivalRate: 1}}]}}\nscenarios: [{{flow: \
         {flow}}}]\n"
    ));
    assert!(
        text.starts_with("error: ") && (text.contains("too many") || text.contains("more than")),
        "{}",
        &text[..200.min(text.len())]
    );
}
