//! Metrics of a plan's own: values that steps record, in results, reports, thresholds and merged shards.

use serde_json::{Value, json};

use crate::loopback::process::{Folder, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance};

/// The plan of 300 iterations that each record a row: totals of 1 to 30, of three shops.
fn plan(folder: &Folder, sink: &Sink, thresholds: &[&str]) -> String {
    let shops = ["a", "b", "c"];
    let row = |total: usize| json!([shops[total % 3], total, total.is_multiple_of(2)]);
    let rows: Vec<Value> = (1..=30).map(row).collect();
    let plan = json!({
        "targets": {"t": sink.url().trim_end_matches('/')},
        "run": {"connections": 6, "threads": 3, "iterations": 300},
        "metrics": {
            "cart_total": {"kind": "trend", "unit": "EUR"},
            "logins": "counter",
            "left": "gauge",
            "even": "rate",
        },
        "data": {"cart": {"list": rows, "columns": ["shop", "total", "is_even"]}},
        "scenarios": [{"name": "buy", "steps": [
            {"get": "/cart", "record": {
                "cart_total": {"value": "${total}", "tags": {"shop": "${shop}"}},
                "logins": 2,
                "left": "${total}",
            }},
            {"record": {"even": "${is_even}", "undeclared": "${shop}"}},
        ]}],
        "thresholds": thresholds,
    });
    folder.write("plan.json", plan.to_string())
}

/// A metric of a result by its name.
fn metric<'r>(result: &'r Value, name: &str) -> &'r Value {
    let metrics = result["metrics"].as_array().expect("the plan records metrics");
    metrics.iter().find(|metric| metric["name"] == name).expect("it is among them")
}

#[test]
fn recorded_values_are_a_part_of_the_result() {
    let (folder, sink) = (Folder::new(), Sink::start(""));
    let holds =
        ["metric(cart_total).max==30", "metric(cart_total{shop:b}).min==1", "metric(logins).sum==600"];
    let file =
        plan(&folder, &sink, &[&holds[..], &["metric(even) rate>=50%", "metric(left).min<2"]].concat());
    let page = folder.file("page.html");
    let finished = run(&format!("run {file} -o json --report {page}"));
    let result = finished.result();
    assert_balance(&result);
    assert_eq!(account(&result, "ok"), 300);
    let trend = metric(&result, "cart_total");
    assert_eq!(
        (&trend["kind"], &trend["unit"], &trend["unfit"]),
        (&json!("trend"), &json!("EUR"), &json!(0))
    );
    let all = &trend["all"];
    assert_eq!(all["count"], 300);
    assert_eq!(
        (&all["min"], &all["mean"], &all["max"]),
        (&json!(1.0), &json!(15.5), &json!(30.0)),
        "{all:#}"
    );
    let p50 = all["p"]["50"].as_f64().expect("the median");
    assert!((15.0..15.02).contains(&p50), "{p50}");
    assert_eq!(all["p"]["99.9"], Value::Null, "300 values are too few");
    let shops: Vec<&Value> = trend["tagged"].as_array().expect("by shop").iter().collect();
    let tags: Vec<&Value> = shops.iter().map(|shop| &shop["tags"]["shop"]).collect();
    assert_eq!(tags, ["a", "b", "c"]);
    assert!(shops.iter().all(|shop| shop["figures"]["count"] == 100), "{trend:#}");
    let counter = &metric(&result, "logins")["all"];
    let seconds = result["duration_s"].as_f64().expect("a length");
    assert_eq!((&counter["count"], &counter["sum"]), (&json!(300), &json!(600.0)));
    assert!((counter["per_s"].as_f64().expect("a rate") * seconds - 600.0).abs() < 1e-6);
    let rate = &metric(&result, "even")["all"];
    assert_eq!((&rate["count"], &rate["hits"], &rate["share"]), (&json!(300), &json!(150), &json!(0.5)));
    let gauge = &metric(&result, "left")["all"];
    assert_eq!((&gauge["min"], &gauge["max"]), (&json!(1.0), &json!(30.0)));
    assert!(gauge["last"].as_f64().is_some_and(|last| (1.0..=30.0).contains(&last)), "{gauge:#}");
    // What is no number is counted, and no zero.
    let unfit = metric(&result, "undeclared");
    assert_eq!(
        (&unfit["kind"], &unfit["unfit"], &unfit["all"]["count"]),
        (&json!("trend"), &json!(300), &json!(0))
    );
    let example = unfit["unfit_example"].as_str().expect("an example");
    assert!(["`a` is no number", "`b` is no number", "`c` is no number"].contains(&example), "{example}");
    for threshold in result["thresholds"].as_array().expect("thresholds") {
        assert_eq!(threshold["passed"], true, "{threshold:#}");
    }
    let html = std::fs::read_to_string(page).expect("the page was written");
    assert!(html.contains("cart_total (EUR)") && html.contains("/metrics/0/tagged/1/figures/p/95"));
    let text = run(&format!("run {file} -o text")).stdout;
    for part in
        ["own metrics: trends", "cart_total{shop:a}", "own metrics: counters", "300 values of undeclared"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_threshold_on_a_metric_fails_the_run() {
    let (folder, sink) = (Folder::new(), Sink::start(""));
    let file = plan(&folder, &sink, &["metric(cart_total{shop:c}).max<29"]);
    let finished = run(&format!("run {file} -o json"));
    let result: Value = serde_json::from_str(&finished.stdout).expect("a result");
    let threshold = &result["thresholds"][0];
    assert_eq!((&threshold["passed"], &threshold["observed"]["value"]), (&json!(false), &json!(29.0)));
    assert_eq!(finished.code, Some(99), "{threshold:#}");
}

#[test]
fn values_of_shards_and_of_the_warm_up() {
    let (folder, sink) = (Folder::new(), Sink::start(""));
    let store = folder.file("runs.db");
    let file = plan(&folder, &sink, &["metric(logins).sum==600"]);
    for shard in 1..=2 {
        let save = format!("--save --store {store} --name shard-{shard} -o json --quiet --seed 3");
        run(&format!("run {file} --shard {shard}/2 -t 1 -c 2 {save}"));
    }
    let merged = run(&format!("merge shard-1 shard-2 --store {store} -o json")).result();
    let trend = metric(&merged, "cart_total");
    assert_eq!((&trend["all"]["count"], &trend["tagged"][0]["figures"]["count"]), (&json!(300), &json!(100)));
    assert_eq!((&trend["all"]["mean"], &trend["all"]["max"]), (&json!(15.5), &json!(30.0)));
    assert_eq!(metric(&merged, "logins")["all"]["sum"], 600.0);
    assert_eq!(merged["thresholds"][0]["passed"], true, "{:#}", merged["thresholds"]);
    // Iterations of the warm-up record nothing.
    let warm = plan(&folder, &sink, &["metric(logins).sum>0"]);
    let text = std::fs::read_to_string(&warm).expect("the plan").replace("\"iterations\":300", "\"users\":6");
    let warm = folder.write("warm.json", text);
    let result = run(&format!("run {warm} --warmup 1s -d 1s -o json")).result();
    let iterations = &result["iterations"];
    assert_eq!(metric(&result, "logins")["all"]["count"], iterations["completed"], "{iterations:#}");
}
