//! Metrics of a plan's own: values that steps record, in results, reports, thresholds and merged shards.

use serde_json::{Value, json};

use crate::loopback::process::{Folder, Process, plimsoll, run};
use crate::loopback::sink::{Saw, Sink};
use crate::loopback::steering::request;
use plimsoll_testkit::eventually::wait_to_look_again;
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

/// A plan with metrics of all kinds. A request carries its total as its id, so that the log of the sink has
/// the values; a total is recorded if the answer was good. `load` is JSON.
pub(crate) fn traced_plan(folder: &Folder, url: &str, load: &Value) -> String {
    let shops = ["a", "b", "c"];
    let row = |total: usize| json!([shops[total % 3], total, total.is_multiple_of(2)]);
    let rows: Vec<Value> = (1..=500).map(row).collect();
    let plan = json!({
        "targets": {"t": url.trim_end_matches('/')},
        "run": load,
        "metrics": {"cart": {"kind": "trend", "unit": "EUR"}, "spent": "counter", "level": "gauge", "even": "rate"},
        "data": {"cart": {"list": rows, "columns": ["shop", "total", "is_even"]}},
        "scenarios": [{"name": "buy", "steps": [{
            "get": "/cart",
            "headers": {"x-plimsoll-id": "${total}"},
            "record": {
                "cart": {"value": "${total}", "tags": {"shop": "${shop}"}},
                "spent": "${total}",
                "level": "${total}",
                "even": {"value": "${is_even}", "tags": {"shop": "${shop}"}},
            },
        }]}],
    });
    folder.write("traced.json", plan.to_string())
}

/// The metrics of a result of the plan are those of the answers that the sink gave.
pub(crate) fn assert_metrics_are_those_of(result: &Value, saw: &Saw) {
    let good = saw.truth.of_run(result).filter(|row| row.action == "replied");
    let good: Vec<u64> = good.map(|row| row.id).collect();
    assert!(good.len() > 100, "{}", good.len());
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value:#}"));
    for shop in [None, Some(0), Some(1), Some(2)] {
        let of_shop: Vec<u64> =
            good.iter().copied().filter(|id| shop.is_none_or(|shop| id % 3 == shop)).collect();
        let (count, sum) = (of_shop.len() as u64, of_shop.iter().sum::<u64>() as f64);
        let even = of_shop.iter().filter(|id| id.is_multiple_of(2)).count();
        let figures = |name: &str| match shop {
            None => metric(result, name)["all"].clone(),
            Some(shop) => metric(result, name)["tagged"][shop as usize]["figures"].clone(),
        };
        let (cart, rate) = (figures("cart"), figures("even"));
        assert_eq!(cart["count"], count, "{cart:#}");
        assert!((number(&cart["mean"]) - sum / count as f64).abs() < 1e-6, "{cart:#} {sum}");
        let limits = [of_shop.iter().min(), of_shop.iter().max()].map(|limit| limit.copied().unwrap_or(0));
        assert_eq!(["min", "max"].map(|name| number(&cart[name])), limits.map(|limit| limit as f64));
        let mut sorted = of_shop.clone();
        sorted.sort_unstable();
        let median = sorted[sorted.len().div_ceil(2) - 1] as f64;
        assert!((median..=median * 1.001).contains(&number(&cart["p"]["50"])), "{cart:#} {median}");
        assert_eq!((&rate["count"], &rate["hits"]), (&json!(count), &json!(even)), "{rate:#}");
        if shop.is_none() {
            let (spent, level) = (figures("spent"), figures("level"));
            assert_eq!((&spent["count"], number(&spent["sum"])), (&json!(count), sum));
            assert_eq!(["min", "max"].map(|name| number(&level[name])), limits.map(|limit| limit as f64));
            assert!(good.contains(&(number(&level["last"]) as u64)), "{level:#}");
        }
    }
}

/// The sum of a column of a table with a header line.
pub(crate) fn column_sum(table: &str, column: &str) -> f64 {
    let mut lines = table.lines();
    let place = lines.next().and_then(|head| head.split(',').position(|name| name == column));
    let place = place.unwrap_or_else(|| panic!("no {column}: {table}"));
    let cells = lines.filter_map(|line| line.split(',').nth(place)).filter(|cell| !cell.is_empty());
    cells.map(|cell| cell.parse::<f64>().unwrap_or_else(|error| panic!("{cell}: {error}"))).sum()
}

/// Values of a Prometheus exposition by their series.
pub(crate) fn exposed(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    Some(line.parse().unwrap_or_else(|error| panic!("{line}: {error}")))
}

/// The result at a control port, which the page of a run that goes on shows, once more than `least` values of
/// the first metric are in it. The end of the run ends the waiting.
pub(crate) fn result_so_far(control: &str, least: u64) -> Value {
    loop {
        // Before the run there is none.
        let answer = request(control, "GET /result", "", "");
        let result = if answer.is_good() { answer.json() } else { Value::Null };
        if result["metrics"][0]["all"]["count"].as_u64().is_some_and(|count| count > least) {
            return result;
        }
        wait_to_look_again();
    }
}

#[test]
fn metrics_are_seen_while_the_run_goes_on_and_interval_by_interval() {
    let (folder, sink) = (Folder::new(), Sink::start("--fail 10%:503"));
    let load = json!({"rate": 300, "duration": "3s", "connections": 8, "interval": "200ms"});
    let file = traced_plan(&folder, &sink.url(), &load);
    let (csv, json, stats) = (folder.file("run.csv"), folder.file("run.json"), folder.file("stats.csv"));
    let ports = "--prometheus 127.0.0.1:0 --control 127.0.0.1:0";
    let args = format!("run {file} {ports} --stats {stats} --out csv={csv} --out json={json} --no-preflight");
    let mut going = Process::start(plimsoll(&args));
    let mut port = |prefix: &str| {
        let line = going.stderr.wait_for(prefix);
        line.trim_start_matches(prefix).split('/').next().expect("an address").to_owned()
    };
    let control = port("control: http://");
    let metrics = port("metrics: http://");
    let so_far = result_so_far(&control, 20);
    assert_eq!(metric(&so_far, "cart")["tagged"].as_array().map(Vec::len), Some(3), "{so_far:#}");
    assert!(so_far["intervals"][0]["metrics"][1]["per_s"].as_f64().is_some_and(|rate| rate > 0.0));
    let text = request(&metrics, "GET /metrics", "", "").body().to_owned();
    let told = exposed(&text, "plimsoll_metric_cart_count").expect("it is told");
    assert!(told > 20.0, "{text}");
    let by_shop = exposed(&text, "plimsoll_metric_even_tagged_total{value=\"true\",shop=\"a\"}");
    assert!(by_shop.is_some_and(|count| count > 0.0), "{text}");
    let finished = going.finish();
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:?}");
    let read = |path: &str| std::fs::read_to_string(path).expect("it was written");
    let result: Value = serde_json::from_str(&read(&json)).expect("a result");
    let saw = sink.stop();
    assert_metrics_are_those_of(&result, &saw);
    for table in [read(&csv), read(&stats)] {
        for (name, figure) in [("cart", "count"), ("spent", "sum"), ("level", "count"), ("even", "hits")] {
            let all = metric(&result, name)["all"][figure].as_f64();
            assert_eq!(Some(column_sum(&table, &format!("metric_{name}_{figure}"))), all, "{table}");
        }
    }
}

#[test]
fn scripts_record_metrics_that_the_plan_declares() {
    let (folder, sink) = (Folder::new(), Sink::start(""));
    let script = "local made = plimsoll.metric('made')\n\
                  function make_request() made:add(1, {by = 'script'}) end\n\
                  function validate_response(headers, body)\n\
                  plimsoll.metric('status'):add(headers[':status'])\n\
                  plimsoll.metric('good'):add(headers[':status'] == '200' or headers[':status'] == 200)\n\
                  return true end";
    let plan = |script: &str| {
        let plan = json!({
            "targets": {"t": sink.url().trim_end_matches('/')},
            "run": {"connections": 4, "threads": 2, "iterations": 200},
            "metrics": {"made": "counter", "status": {"kind": "trend"}, "good": "rate"},
            "scenarios": [{"name": "scripted", "steps": [{"get": "/", "script": script}]}],
        });
        folder.write("scripted.json", plan.to_string())
    };
    let result = run(&format!("run {} -o json --no-preflight", plan(script))).result();
    assert_balance(&result);
    assert_eq!(metric(&result, "made")["all"]["sum"], 200.0, "{:#}", result["metrics"]);
    let tagged = &metric(&result, "made")["tagged"][0];
    assert_eq!((&tagged["tags"]["by"], &tagged["figures"]["sum"]), (&json!("script"), &json!(200.0)));
    let status = &metric(&result, "status")["all"];
    assert_eq!(
        (&status["count"], &status["min"], &status["max"]),
        (&json!(200), &json!(200.0), &json!(200.0))
    );
    assert_eq!(metric(&result, "good")["all"]["hits"], 200);
    // One that the plan does not declare is found before the run.
    let wrong = plan(&format!("local wrong = plimsoll.metric('madde')\n{script}"));
    run(&format!("run {wrong}")).assert_refused(2, "no metric is called `madde`: did you mean `made`?");
    // A metric that neither a step nor a script records is still an error.
    let silent = plan("function validate_response() plimsoll.metric('made'):add(1) return true end");
    run(&format!("run {silent}")).assert_refused(2, "no step records the metric `status`");
}
