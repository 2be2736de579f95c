//! Files of other tools, imported and run: the requests that the tools would make, as the sink saw them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::process::{Folder, run};
use crate::sink::{Saw, Sink};
use crate::truth::{account, assert_balance, count};

/// Imports a file and runs the plan. Returns the result, the requests of each step by its name in the log,
/// and the counts of the sink.
fn imported(
    tool: &str,
    name: &str,
    source: impl FnOnce(&str) -> String,
    flags: &str,
) -> (Value, BTreeMap<String, u64>, Saw) {
    let folder = Folder::new();
    let sink = Sink::start("");
    let file = folder.write(name, source(&sink.endpoint));
    let plan = run(&format!("import {tool} {file}"));
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    let plan = folder.write("plan.yaml", plan.stdout);
    let log = folder.file("log.ndjson");
    let result = run(&format!("run {plan} {flags} --log {log} -o json")).result();
    assert_balance(&result);
    let mut steps = BTreeMap::new();
    let written = std::fs::read_to_string(&log).expect("there is a log");
    for line in written.lines() {
        let row: Value = serde_json::from_str(line).expect("each line is JSON");
        let step = row["step"].as_str().expect("a step has a name").to_owned();
        *steps.entry(step).or_insert(0) += 1;
    }
    (result, steps, sink.stop())
}

fn counts<const N: usize>(steps: [(&str, u64); N]) -> BTreeMap<String, u64> {
    steps.into_iter().map(|(name, requests)| (name.to_owned(), requests)).collect()
}

/// All requests were good, and the sink saw those of the log.
fn assert_true(result: &Value, steps: &BTreeMap<String, u64>, saw: &Saw) {
    let requests: u64 = steps.values().sum();
    assert_eq!(account(result, "ok"), requests, "{}", result["accounting"]);
    assert_eq!(saw.truth.of_run(result).count() as u64, requests);
    assert_eq!(count(result, "/log/dropped"), 0);
}

#[test]
fn a_collection_of_postman_makes_its_requests() {
    let collection = |endpoint: &str| {
        let test = |script: &str| json!([{"listen": "test", "script": {"exec": [script]}}]);
        json!({
            "info": {"name": "Shop", "schema":
            "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
            "variable": [{"key": "base", "value": format!("http://{endpoint}")}],
            "item": [
                {"name": "Log in", "request": {"method": "POST", "url": "{{base}}/login",
                    "body": {"mode": "raw", "raw": "{\"id\": \"{{$guid}}\"}"}},
                 "event": test("pm.environment.set('code', pm.response.code); \
                                pm.response.to.have.status(200);")},
                {"name": "Read", "request": "{{base}}/read/{{code}}"},
            ]
        })
        .to_string()
    };
    let (result, steps, saw) = imported("postman", "shop.json", collection, "-n 6 -c 2");
    assert_eq!(steps, counts([("Log in", 6), ("Read", 6)]));
    assert_true(&result, &steps, &saw);
}

#[test]
fn a_script_of_artillery_makes_its_requests() {
    let script = |endpoint: &str| {
        json!({
            "config": {
                "target": format!("http://{endpoint}"),
                "phases": [{"duration": 1, "arrivalCount": 5}],
            },
            "scenarios": [{"flow": [
                {"get": {"url": "/", "name": "first"}},
                {
                    "loop": [{"post": {"url": "/item/{{ $loopCount }}", "name": "item", "json": {"a": 1}}}],
                    "count": 2,
                },
                {"loop": [{"get": {"url": "/again", "name": "again"}}], "count": 3},
            ]}],
        })
        .to_string()
    };
    let (result, steps, saw) = imported("artillery", "load.json", script, "--drain 5s");
    assert_eq!(steps, counts([("first", 5), ("item", 5), ("item (2)", 5), ("again", 15)]));
    assert_true(&result, &steps, &saw);
}

#[test]
fn a_test_plan_of_jmeter_makes_its_requests() {
    let test_plan = |endpoint: &str| {
        let (host, port) = endpoint.split_once(':').expect("a port");
        let property = |name: &str, value: &str| format!("<stringProp name=\"{name}\">{value}</stringProp>");
        let request = |name: &str, path: &str| {
            format!(
                "<HTTPSamplerProxy testname=\"{name}\">{}</HTTPSamplerProxy><hashTree/>",
                property("HTTPSampler.path", path)
            )
        };
        let defaults = format!(
            "<ConfigTestElement>{}{}</ConfigTestElement><hashTree/>",
            property("HTTPSampler.domain", host),
            property("HTTPSampler.port", port)
        );
        let twice = format!(
            "<LoopController>{}</LoopController><hashTree>{}</hashTree>",
            property("LoopController.loops", "2"),
            request("Second", "/second/${__UUID}")
        );
        let group = format!(
            "<elementProp name=\"ThreadGroup.main_controller\">{}</elementProp>{}",
            property("LoopController.loops", "3"),
            property("ThreadGroup.num_threads", "2")
        );
        format!(
            "<jmeterTestPlan><hashTree><TestPlan testname=\"Load\"/><hashTree><ThreadGroup \
             testname=\"Users\">{group}\
             </ThreadGroup><hashTree>{defaults}{}{twice}</hashTree></hashTree></hashTree></jmeterTestPlan>",
            request("First", "first")
        )
    };
    let (result, steps, saw) = imported("jmeter", "test.jmx", test_plan, "");
    assert_eq!(steps, counts([("First", 6), ("Second", 12)]));
    assert_true(&result, &steps, &saw);
}
