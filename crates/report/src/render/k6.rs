//! The summary that k6 exports at the end of a test (`--summary-export`), as far as the two measure the same.
//!
//! Times are in milliseconds. `http_req_duration` has the meaning of k6, the time of the exchange alone: our
//! service time, of all requests only where none failed: times of failures are kept apart here, and
//! `http_req_duration{expected_response:true}` is without them in k6, too. The response time, which counts
//! from when a request should have started, is beside it as `plimsoll_response_time`. Figures without an
//! equivalent are left out; `docs/formats.md` lists it.

use plimsoll_metrics::Threshold;
use plimsoll_metrics::threshold::{Counted, Metric, TimeKind};
use serde_json::{Map, Value, json};

use crate::build::headline::Standing;
use crate::contract::result::{IntervalResult, ModelKind, RunResult};
use crate::contract::summary::Summary;

/// Nanoseconds of a millisecond.
const MILLISECOND: f64 = 1e6;

/// Name of our response time among the metrics of k6.
const RESPONSE: &str = "plimsoll_response_time";
const SERVICE: &str = "http_req_duration";
/// Service times of good responses alone, as k6 calls them.
const EXPECTED: &str = "http_req_duration{expected_response:true}";
const REQUESTS: &str = "http_reqs";
const FAILED: &str = "http_req_failed";

/// The summary as one object.
pub(crate) fn summary(result: &RunResult) -> Value {
    let accounting = &result.accounting;
    let bad = accounting.failed.saturating_add(accounting.timed_out);
    let ended = accounting.ok.saturating_add(bad).saturating_add(accounting.aborted);
    let counter = |count: u64| json!({ "count": count, "rate": per_second(count, result.duration_s) });
    let mut metrics = Map::new();
    let mut add = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    add("checks", share(accounting.ok, result.errors.get("check").copied().unwrap_or(0)));
    add("data_received", counter(result.bytes.received));
    add("data_sent", counter(result.bytes.sent));
    let dropped = accounting.dropped.saturating_add(accounting.never_started);
    if dropped > 0 {
        add("dropped_iterations", counter(dropped));
    }
    // Those of k6 have the failed ones among them: without any the two are the same.
    if bad == 0 {
        trend(&mut add, SERVICE, &result.service_time);
    }
    trend(&mut add, EXPECTED, &result.service_time);
    // In this metric failures are "passes": it is a share of failures.
    add(FAILED, share(bad, accounting.ok));
    trend(&mut add, "http_req_waiting", &result.first_byte_time);
    add(REQUESTS, counter(ended));
    add("iterations", counter(result.iterations.completed.saturating_add(result.iterations.failed)));
    trend(&mut add, RESPONSE, &result.response_time);
    // k6 has no lower bounds: the values of as many requests are among the times.
    if result.response_time.censored > 0 {
        add("plimsoll_unanswered", counter(result.response_time.censored));
    }
    if let Some(users) = in_flight(result) {
        add("vus", users);
        add("vus_max", gauge(users_max(result)));
    }
    thresholds(&mut metrics, result);
    let group = json!({
        "name": "",
        "path": "",
        // The MD5 of the empty path, as k6 has it.
        "id": "d41d8cd98f00b204e9800998ecf8427e",
        "groups": {},
        "checks": {},
    });
    json!({ "root_group": group, "metrics": metrics })
}

/// A distribution of times; without values there is none.
fn trend(add: &mut impl FnMut(&str, Value) -> Option<Value>, name: &str, times: &Summary) {
    let ms = |value: Option<u64>| value.map(|value| value as f64 / MILLISECOND);
    let figures = [
        ("avg", times.mean),
        ("min", times.min),
        ("med", times.p.p50),
        ("max", times.max),
        ("p(90)", times.p.p90),
        ("p(95)", times.p.p95),
    ];
    // k6 has a percentile for any number of values; here one with too few is left out.
    let known = figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(ms(value)?))));
    if times.count > 0 {
        add(name, Value::Object(known.collect()));
    }
}

/// A share as k6 counts it.
fn share(passes: u64, fails: u64) -> Value {
    let all = passes.saturating_add(fails);
    let value = if all == 0 { 0.0 } else { passes as f64 / all as f64 };
    json!({ "passes": passes, "fails": fails, "value": value })
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

fn gauge(value: u64) -> Value {
    json!({ "value": value, "min": value, "max": value })
}

/// Requests in flight at the ends of measured intervals: the nearest equivalent of k6's users, each of whom
/// has one request in flight.
fn in_flight(result: &RunResult) -> Option<Value> {
    let measured = || result.intervals.iter().filter(|interval| !interval.warmup && !interval.drain);
    let range = |interval: &IntervalResult| {
        interval.in_flight_range.unwrap_or((interval.in_flight, interval.in_flight))
    };
    let last = measured().next_back()?.in_flight;
    let least = measured().map(|interval| range(interval).0).min()?;
    let most = measured().map(|interval| range(interval).1).max()?;
    Some(json!({ "value": last, "min": least, "max": most }))
}

/// Returns the limit on requests in flight.
fn users_max(result: &RunResult) -> u64 {
    match result.model.kind {
        ModelKind::Closed => result.model.connections.saturating_mul(result.model.depth),
        ModelKind::Open => result.connections.limit.saturating_mul(result.model.depth),
    }
}

/// Thresholds stand with the metric that they are about; the value says whether it was crossed, so `false`
/// is good. Only one that is shown not to hold was crossed: k6 has no word for one that is neither. Those
/// about nothing that k6 measures stand with its requests.
fn thresholds(metrics: &mut Map<String, Value>, result: &RunResult) {
    for outcome in &result.thresholds {
        let name = Threshold::of_saved(&outcome.text).map_or(REQUESTS, |threshold| metric(threshold.metric));
        let name = if name == SERVICE && !metrics.contains_key(SERVICE) { EXPECTED } else { name };
        let name = if metrics.contains_key(name) { name } else { REQUESTS };
        let Some(metric) = metrics.get_mut(name).and_then(Value::as_object_mut) else { continue };
        let all = metric.entry("thresholds").or_insert_with(|| json!({}));
        if let Some(all) = all.as_object_mut() {
            all.insert(outcome.heading(), Value::Bool(outcome.standing() == Standing::Fails));
        }
    }
}

/// The metric of k6 that a threshold is about.
fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Time(TimeKind::Response, ..) => RESPONSE,
        Metric::Time(TimeKind::Service, ..) => SERVICE,
        Metric::Time(TimeKind::FirstByte, ..) => "http_req_waiting",
        Metric::Time(..) | Metric::Rate | Metric::Query(_) | Metric::Own(_) => REQUESTS,
        Metric::ErrorRate | Metric::TimeoutRate => FAILED,
        Metric::Count(Counted::Errors(_)) => FAILED,
        Metric::Count(Counted::Total(total)) => match total.name() {
            "failed" | "timed_out" => FAILED,
            "checks" => "checks",
            "bytes_sent" => "data_sent",
            "bytes_received" => "data_received",
            "dropped" | "never_started" => "dropped_iterations",
            _ => REQUESTS,
        },
    }
}
