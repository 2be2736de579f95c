//! Create, update, delete: the scenario of h2loadrunner's command line.

use plimsoll_core::{Nanos, Rate};
use plimsoll_plan::{End, Load, Overload, Plan, Protocol};
use plimsoll_scenario::FieldNeeds;
use plimsoll_schedule::{Process, Stage};

use crate::resolve::flags::{Memory, request, resolve_with};

const URL: &str = "http://a.test/nudm-ee/v2/imsi-2621012-USER_ID/sdm-subscriptions/";

/// The numbers 1 to 999,999,999 for `-USER_ID`, written with ten digits.
const VARIABLE: [&str; 6] = [
    "--crud-request-variable-name",
    "-USER_ID",
    "--crud-request-variable-value-start",
    "1",
    "--crud-request-variable-value-end",
    "1000000000",
];

fn plan(lines: &[&[&str]]) -> Plan {
    let memory = Memory(
        [
            ("datafile.json", br#"{"who":"imsi-1-USER_ID","n":"${uuid}","cost":"5$"}"#.to_vec()),
            ("updatedatafile.json", br#"{"ref":"${a}"}"#.to_vec()),
            ("empty", Vec::new()),
            ("binary", b"\xff\0-USER_ID\xfe".to_vec()),
        ]
        .into(),
    );
    let line = lines.concat();
    resolve_with(&line, &memory).unwrap_or_else(|problems| panic!("{line:?}: {problems}"))
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.steps.iter().map(|step| step.name.as_str()).collect()
}

fn constant(plan: &Plan) -> Rate {
    let Load::Open { profile, .. } = &plan.load else { panic!("closed") };
    let [Stage { from, to, .. }] = profile.stages() else { panic!("stages") };
    assert_eq!(from, to);
    *to
}

#[test]
fn the_example_of_h2loadrunner() {
    let plan = plan(&[
        &[URL, "--threads", "5", "--connections", "100", "--duration", "10", "--http2", "--streams", "512"],
        &["--rps", "100", "--crud-update-method", "PATCH", "--crud-delete-method", "DELETE"],
        &["--crud-create-method", "POST", "--crud-resource-header", "location"],
        &VARIABLE,
        &["--stream-timeout-interval-ms", "2000", "--streams", "512"],
        &["--crud-create-data-file", "datafile.json", "--crud-update-data-file", "updatedatafile.json"],
    ]);
    assert_eq!(
        names(&plan),
        ["create POST /nudm-ee/v2/imsi-2621012-USER_ID/sdm-subscriptions/", "update PATCH", "delete DELETE"]
    );
    assert_eq!((plan.scenarios[0].name.as_str(), plan.scenarios[0].steps.clone()), ("crud", 0..3));
    assert_eq!((plan.scenarios.len(), plan.variables.len()), (1, 1));
    let needs = &plan.steps[0].needs;
    assert_eq!(needs.fields, FieldNeeds::Named(vec!["location".to_owned()]));
    assert!(needs.path && plan.steps[1].needs.is_nothing() && plan.steps[2].needs.is_nothing());

    // 100 connections at 100 requests/s. What follows a create that fails leaves its place to others.
    assert_eq!(constant(&plan), Rate::new(10_000, Nanos::from_secs(1)).unwrap());
    assert!(plan.paces_requests());
    assert!(matches!(plan.load, Load::Open { process: Process::Uniform, overload: Overload::Queue, .. }));
    assert_eq!(plan.end, End { duration: Some(Nanos::from_secs(10)), iterations: None });
    assert_eq!((plan.connections.initial, plan.connections.max, plan.threads), (100, 100, 5));
    assert_eq!((plan.connections.streams, plan.timeout), (512, Nanos::from_secs(2)));
    assert_eq!(plan.targets[0].protocol, Protocol::Http2);
}

#[test]
fn the_requests_of_one_iteration() {
    let plan = plan(&[
        &[URL, "--crud-update-method", "PUT", "--crud-delete-method", "DELETE"],
        &VARIABLE,
        &["--crud-create-data-file", "datafile.json", "--crud-update-data-file", "updatedatafile.json"],
        &["--header", "Content-Type: application/json"],
    ]);
    let create = request(&plan, 0);
    let target = "POST /nudm-ee/v2/imsi-26210120000000008/sdm-subscriptions/ HTTP/1.1\r\n";
    assert!(create.starts_with(target), "{create}");
    assert!(
        create.ends_with("\r\n\r\n{\"who\":\"imsi-10000000008\",\"n\":\"${uuid}\",\"cost\":\"5$\"}"),
        "{create}"
    );
    let update = request(&plan, 1);
    assert!(update.starts_with("PUT /made HTTP/1.1\r\n"), "{update}");
    assert!(update.ends_with("\r\n\r\n{\"ref\":\"${a}\"}"), "{update}");
    let delete = request(&plan, 2);
    assert!(delete.starts_with("DELETE /made HTTP/1.1\r\n") && delete.ends_with("\r\n\r\n"), "{delete}");
    assert!([create, update, delete].iter().all(|text| text.contains("Content-Type: application/json")));
    assert_eq!(plan.targets[0].protocol, Protocol::Http1);
    assert!(matches!(plan.load, Load::Closed));
}

/// Symptom: the DELETE behind a PATCH that failed was not sent, unlike in the same scenario as a
/// configuration.
#[test]
fn a_request_that_failed_does_not_end_the_scenario() {
    let plan = plan(&[&[URL, "--crud-update-method", "PUT", "--crud-delete-method", "DELETE"]]);
    assert!(plan.steps.iter().all(|step| step.goes_on));
}

#[test]
fn update_and_delete_are_there_when_their_method_is_given() {
    for (flags, expected) in [
        (&["--crud-create-method", "PUT"][..], &["create PUT /x"][..]),
        (&["--crud-create-data-file", "empty"], &["create POST /x"]),
        (&["--crud-update-method", "PATCH"], &["create POST /x", "update PATCH"]),
        (&["--crud-delete-method", "DELETE"], &["create POST /x", "delete DELETE"]),
    ] {
        let plan = plan(&[&["http://a.test/x"], flags]);
        assert_eq!(names(&plan), expected);
        assert_eq!(plan.steps[0].needs.is_nothing(), plan.steps.len() == 1);
    }
    let named = plan(&[
        &["http://a.test/x", "--crud-delete-method", "DELETE"],
        &["--crud-resource-header", "X-Where"],
    ]);
    assert_eq!(named.steps[0].needs.fields, FieldNeeds::Named(vec!["x-where".to_owned()]));
}

#[test]
fn several_urls_are_told_apart() {
    let plan =
        plan(&[&["http://a.test/-USER_ID", "http://b.test/y", "--crud-delete-method", "DELETE"], &VARIABLE]);
    assert_eq!(
        names(&plan),
        [
            "create POST http://a.test/-USER_ID",
            "delete DELETE (http://a.test/-USER_ID)",
            "create POST http://b.test/y",
            "delete DELETE (http://b.test/y)"
        ]
    );
    let steps: Vec<_> = plan.scenarios.iter().map(|scenario| scenario.steps.clone()).collect();
    assert_eq!(steps, [0..2, 2..4]);
    assert_eq!(plan.steps.iter().map(|step| step.target).collect::<Vec<_>>(), [0, 0, 1, 1]);
}

#[test]
fn a_variable_is_found_in_any_bytes() {
    let memory = Memory([("binary", b"\xff\0-USER_ID\xfe".to_vec())].into());
    let line = [&["http://a.test/", "--crud-create-data-file", "binary"], &VARIABLE[..]].concat();
    let plan = resolve_with(&line, &memory).unwrap();
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    let context = plimsoll_scenario::Context { index: 7, ..plimsoll_scenario::Context::default() };
    let mut random = plimsoll_core::Random::new(1, 0);
    plan.steps[0].request.render(&context, &mut random, &mut scratch, &mut out);
    assert!(out.ends_with(b"\r\n\r\n\xff\x000000000008\xfe"), "{}", out.escape_ascii());
}

#[test]
fn a_rate_per_connection_fixes_their_number() {
    let crud = ["http://a.test/", "--crud-create-method", "POST", "--rps", "2.5"];
    let default = plan(&[&crud]);
    assert_eq!((default.connections.initial, default.connections.max), (64, 64));
    assert_eq!(constant(&default), Rate::per_second(160));
    let few = plan(&[&crud, &["--iterations", "4"]]);
    assert_eq!(few.connections.initial, 4);
    assert_eq!(constant(&few), Rate::per_second(10));
    let dropping = plan(&[&crud, &["--overload", "drop", "--connections", "10"]]);
    assert!(matches!(dropping.load, Load::Open { overload: Overload::Drop, .. }));
    assert_eq!(constant(&dropping), Rate::per_second(25));
    // Seen as a client of h2loadrunner with `rate` and `request-per-second`: the connections that were open
    // already carried the rate of those that were to come.
    let growing = |more: &[&str]| {
        let flags = ["--connections", "3", "--connection-rate", "1", "--rps", "10"];
        let plan = plan(&[&["http://a.test/", "--crud-create-method", "POST"], &flags, more]);
        let Load::Open { profile, .. } = &plan.load else { panic!("the load is open") };
        let stages = profile.stages().iter();
        let shown: Vec<(u64, f64)> =
            stages.map(|stage| (stage.duration.0 / 1_000_000, stage.from.per_second_f64())).collect();
        (shown, profile.total(), plan.warmup)
    };
    let stages = vec![(1_000, 10.0), (1_000, 20.0), (1_000, 30.0), (7_000, 30.0)];
    assert_eq!(growing(&["--duration", "10s"]), (stages, 270, Nanos::ZERO));
    let cut = vec![(1_000, 10.0), (500, 20.0)];
    assert_eq!(growing(&["--duration", "1500ms"]), (cut, 20, Nanos::ZERO));
    let after_a_warm_up = vec![(1_000, 10.0), (500, 20.0), (500, 20.0), (1_000, 30.0), (500, 30.0)];
    let warmup = Nanos::from_millis(1_500);
    assert_eq!(growing(&["--duration", "2s", "--warmup", "1500ms"]), (after_a_warm_up, 75, warmup));
    let many = plan(&[&crud, &["--connections", "1000", "--connection-rate", "500", "--duration", "4s"]]);
    let Load::Open { profile, .. } = &many.load else { panic!("the load is open") };
    // The exact number is that of 1,000 steps: 2.5 × (999 × 1,000 / 2 / 500 + 2 × 1,000 + 1,000 / 500).
    assert!(profile.stages().len() <= 101 && profile.total().abs_diff(7_502) <= 5, "{}", profile.total());
    // The rate of the run counts iterations, as everywhere.
    let total = plan(&[&["http://a.test/", "--crud-delete-method", "DELETE", "--rate", "50"]]);
    assert_eq!(constant(&total), Rate::per_second(50));
}
