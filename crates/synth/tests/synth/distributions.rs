//! Cells have the distributions that they should have: goodness of fit with fixed seeds.
//!
//! Each test is at 0.1 %: data of the right distribution would fail one of a thousand of them. Seeds are
//! fixed, so that a test that passes once always does.

use std::collections::BTreeMap;

use plimsoll_synth::Spec;
use statrs::distribution::{ChiSquared, ContinuousCDF as _};

use crate::synth::{Record, records, spec};

const SIGNIFICANCE: f64 = 0.001;

/// Pearson's chi-squared statistic of counts, and the value that it exceeds with the probability
/// [`SIGNIFICANCE`].
fn chi_squared(observed: &[(u64, f64)]) -> (f64, f64) {
    let total: u64 = observed.iter().map(|&(count, _)| count).sum();
    let weight: f64 = observed.iter().map(|&(_, weight)| weight).sum();
    let statistic = observed.iter().map(|&(count, share)| {
        let expected = total as f64 * share / weight;
        assert!(expected >= 5.0, "too few to say");
        (count as f64 - expected).powi(2) / expected
    });
    let freedom = (observed.len() - 1) as f64;
    (statistic.sum(), ChiSquared::new(freedom).unwrap().inverse_cdf(1.0 - SIGNIFICANCE))
}

/// Texts come with these weights, and no others do.
fn assert_shares<'a>(what: &str, texts: impl Iterator<Item = &'a str>, weights: &[(&str, f64)]) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    let observed: Vec<_> =
        weights.iter().map(|(text, weight)| (counts.remove(text).unwrap_or(0), *weight)).collect();
    assert!(counts.is_empty(), "{what}: unexpected {counts:?}");
    let (statistic, critical) = chi_squared(&observed);
    assert!(statistic < critical, "{what}: {statistic} is not below {critical}: {observed:?}");
}

/// Asserts that there are exactly `kinds` different texts, all equally frequent.
fn assert_even<'a>(what: &str, texts: impl Iterator<Item = &'a str>, kinds: usize) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    assert_eq!(counts.len(), kinds, "{what}");
    if kinds == 1 {
        return;
    }
    let observed: Vec<_> = counts.values().map(|&count| (count, 1.0)).collect();
    let (statistic, critical) = chi_squared(&observed);
    assert!(statistic < critical, "{what}: {statistic} is not below {critical}");
}

/// Kolmogorov and Smirnov's distance from a distribution, and the value that it exceeds with the probability
/// [`SIGNIFICANCE`]: `sqrt(−ln(α/2) / 2n)`.
fn kolmogorov_smirnov(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as f64;
    let distances = values.iter().enumerate().map(|(rank, &value)| {
        let expected = cdf(value);
        (expected - rank as f64 / count).max((rank + 1) as f64 / count - expected)
    });
    (distances.fold(0.0, f64::max), (-(SIGNIFICANCE / 2.0).ln() / (2.0 * count)).sqrt())
}

/// Values are uniform and within their bounds, which are not far from the smallest and largest. Values of a
/// grid are compared with the middle of their cells.
fn assert_uniform(what: &str, values: impl Iterator<Item = f64>, low: f64, high: f64, grid: f64) {
    let values: Vec<f64> = values.collect();
    assert!(values.len() > 300, "{what}: {}", values.len());
    assert!(values.iter().all(|value| (low..=high).contains(value)), "{what}");
    // The outermost twelve of n parts at an end are empty once in exp(12) = 160,000 times.
    let margin = (high - low + grid) * 12.0 / values.len() as f64;
    let (smallest, largest) = values.iter().fold((high, low), |(low, high), &it| (low.min(it), high.max(it)));
    assert!(smallest <= low + margin && largest >= high - margin, "{what}: from {smallest} to {largest}");
    let cdf = |value: f64| (value - low + grid / 2.0) / (high - low + grid);
    let (distance, critical) = kolmogorov_smirnov(values, cdf);
    assert!(distance < critical, "{what}: {distance} is not below {critical}");
}

fn texts<'a>(records: &'a [Record], name: &str) -> impl Iterator<Item = &'a str> {
    records.iter().map(move |record| record[name].text())
}

fn numbers<'a>(records: &'a [Record], name: &str) -> impl Iterator<Item = f64> + use<'a> {
    let name = name.to_owned();
    records.iter().map(move |record| record[&name].number())
}

fn of(records: &[Record], is_wanted: impl Fn(&Record) -> bool) -> Vec<Record> {
    records.iter().filter(|record| is_wanted(record)).cloned().collect()
}

fn kind(name: &str) -> Spec {
    spec(&format!(r#"{{"kind":"{name}"}}"#))
}

const REGIONS: [(&str, f64); 4] =
    [("us-east-1", 1.0), ("us-west-2", 1.0), ("eu-central-1", 1.0), ("ap-south-1", 1.0)];
const ENVIRONMENTS: [(&str, f64); 3] = [("prod", 1.0), ("staging", 1.0), ("dev", 1.0)];

#[test]
fn the_tests_refuse_what_is_wrong() {
    let (statistic, critical) = chi_squared(&[(3_100, 30.0), (4_900, 50.0), (2_000, 20.0)]);
    assert!(statistic < critical);
    let (statistic, critical) = chi_squared(&[(3_300, 30.0), (4_700, 50.0), (2_000, 20.0)]);
    assert!(statistic > critical);
    let even: Vec<f64> = (0..2_000).map(|number| f64::from(number) / 2_000.0).collect();
    let (distance, critical) = kolmogorov_smirnov(even.clone(), |value| value);
    assert!(distance < critical);
    let (distance, _) = kolmogorov_smirnov(even, |value| value.powf(1.2));
    assert!(distance > critical);
}

#[test]
fn metrics_are_uniform_within_the_bounds_of_their_types() {
    let records = records(&spec(r#"{"hosts":120}"#), 21, 42);
    let bounds = [
        ("cpu", 0.0, 100.0),
        ("memory", 0.0, 100.0),
        ("disk", 0.0, 100.0),
        ("network_in", 0.0, 1_000.0),
        ("network_out", 0.0, 1_000.0),
        ("temperature", 20.0, 80.0),
        ("power", 100.0, 500.0),
    ];
    let shares: Vec<_> = bounds.iter().map(|&(name, ..)| (name, 1.0)).collect();
    assert_shares("types", texts(&records, "metric_name"), &shares);
    assert_even("nodes", texts(&records, "node"), 120);
    assert_shares("regions", texts(&records, "region"), &REGIONS);
    assert_shares("environments", texts(&records, "environment"), &ENVIRONMENTS);
    for (name, low, high) in bounds {
        let of_it = of(&records, |record| record["metric_name"].text() == name);
        assert_eq!(of_it.len(), 6_000);
        assert_uniform(name, numbers(&of_it, "value"), low, high, 0.001);
        // Values of the same series are independent, and so are neighbours.
        let values: Vec<f64> =
            numbers(&of_it, "value").map(|value| (value - low) / (high - low) - 0.5).collect();
        let products = values.windows(2).map(|pair| pair[0] * pair[1]);
        let correlation = products.sum::<f64>() * 12.0 / values.len() as f64;
        assert!(correlation.abs() < 3.3 / (values.len() as f64).sqrt(), "{name}: {correlation}");
    }
}

#[test]
fn metrics_of_hosts_are_uniform_shares() {
    let records = records(&spec(r#"{"shape":"host","hosts":900}"#), 22, 9);
    for name in ["usage_idle", "usage_user", "usage_system"] {
        assert_uniform(name, numbers(&records, name), 0.0, 100.0, 0.001);
    }
    assert_shares(
        "regions",
        texts(&records, "region"),
        &[("us-east", 1.0), ("us-west", 1.0), ("eu-central", 1.0)],
    );
    assert_shares("environments", texts(&records, "env"), &ENVIRONMENTS);
    assert_even("hosts", texts(&records, "host"), 900);
    assert!(texts(&records, "host").all(|host| host.len() == 9 && host.starts_with("server")));
}

#[test]
fn logs_have_their_levels_and_what_goes_with_them() {
    let records = records(&kind("logs"), 23, 100);
    let levels = [("DEBUG", 30.0), ("INFO", 50.0), ("WARN", 15.0), ("ERROR", 4.0), ("FATAL", 1.0)];
    assert_shares("levels", texts(&records, "level"), &levels);
    assert_even("services", texts(&records, "service"), 50);
    assert_shares("regions", texts(&records, "region"), &REGIONS);
    assert_shares("environments", texts(&records, "environment"), &ENVIRONMENTS);
    let places: Vec<String> = records
        .iter()
        .map(|record| format!("{} {}", record["region"].text(), record["environment"].text()))
        .collect();
    assert_even("places", places.iter().map(String::as_str), 12);
    let is_bad = |record: &Record| ["ERROR", "FATAL"].contains(&record["level"].text());
    let (bad, good) = (of(&records, is_bad), of(&records, |record| !is_bad(record)));
    assert_even("bad messages", texts(&bad, "message"), 8);
    assert_even("good messages", texts(&good, "message"), 15);
    assert_uniform("bad times", numbers(&bad, "response_time_ms"), 500.0, 5_000.0, 1.0);
    assert_uniform("good times", numbers(&good, "response_time_ms"), 10.0, 500.0, 1.0);
    let statuses = |records| numbers(records, "status_code").map(|code| code.to_string()).collect::<Vec<_>>();
    let codes = ["500", "502", "503", "504", "400", "401", "403", "404"].map(|code| (code, 1.0));
    assert_shares("bad statuses", statuses(&bad).iter().map(String::as_str), &codes);
    let codes =
        [("200", 70.0), ("201", 10.0), ("204", 5.0), ("304", 10.0), ("400", 2.0), ("404", 2.0), ("500", 1.0)];
    assert_shares("good statuses", statuses(&good).iter().map(String::as_str), &codes);
    assert!(texts(&records, "request_id").all(|id| id.len() == 16));
}

/// The distribution of a uniform number from `low` to `high`, times one from 1.5 to 3: over the middles of
/// 2,000 slices.
fn longer(value: f64, low: f64, high: f64) -> f64 {
    let slices = (0..2_000).map(|slice| 1.5 + 1.5 * (f64::from(slice) + 0.5) / 2_000.0);
    slices.map(|factor| ((value / factor - low) / (high - low)).clamp(0.0, 1.0)).sum::<f64>() / 2_000.0
}

#[test]
fn spans_have_their_kinds_errors_and_lengths() {
    let records = records(&spec(r#"{"kind":"traces","time_unit":"us"}"#), 24, 100);
    let kinds =
        [("server", 40.0), ("client", 30.0), ("internal", 20.0), ("producer", 5.0), ("consumer", 5.0)];
    assert_shares("kinds", texts(&records, "span_kind"), &kinds);
    assert_even("services", texts(&records, "service_name"), 20);
    assert_even("operations", texts(&records, "operation_name"), 80);
    let is_http = |record: &Record| ["server", "client"].contains(&record["span_kind"].text());
    let (http, other) = (of(&records, is_http), of(&records, |record| !is_http(record)));
    let errors = |records| of(records, |record: &Record| record["error"].flag());
    let told = |records: &[Record]| {
        let told = records.iter().map(|record| if record["error"].flag() { "yes" } else { "no" });
        told.collect::<Vec<_>>()
    };
    assert_shares("errors of HTTP", told(&http).into_iter(), &[("yes", 5.0), ("no", 95.0)]);
    assert_shares("other errors", told(&other).into_iter(), &[("yes", 2.0), ("no", 98.0)]);
    assert_shares(
        "methods",
        texts(&http, "http_method"),
        &["GET", "POST", "PUT", "DELETE"].map(|it| (it, 1.0)),
    );
    assert!(texts(&other, "http_method").all(str::is_empty));
    assert!(numbers(&other, "status_code").all(|code| code == 0.0));
    let statuses =
        |records: &[Record]| numbers(records, "status_code").map(|code| code.to_string()).collect::<Vec<_>>();
    let codes = ["400", "401", "403", "404", "500", "502", "503", "504"].map(|code| (code, 1.0));
    assert_shares("statuses of errors", statuses(&errors(&http)).iter().map(String::as_str), &codes);
    let good = of(&http, |record| !record["error"].flag());
    let codes = ["200", "201", "204"].map(|code| (code, 1.0));
    assert_shares("statuses", statuses(&good).iter().map(String::as_str), &codes);
    let class = |record: &Record| match record["service_name"].text() {
        "api-gateway" => 0,
        "database-service" | "cache-service" => 1,
        _ => 2,
    };
    for (number, (low, high)) in [(10e6, 500e6), (1e6, 50e6), (5e6, 200e6)].into_iter().enumerate() {
        let spans = of(&records, |record| class(record) == number);
        let is_longer = |record: &Record| is_http(record) && record["error"].flag();
        let usual = of(&spans, |record| !is_longer(record));
        assert_uniform("lengths", numbers(&usual, "duration_ns"), low, high, 1.0);
        let failed = of(&spans, is_longer);
        let (distance, critical) =
            kolmogorov_smirnov(numbers(&failed, "duration_ns").collect(), |value| longer(value, low, high));
        assert!(failed.len() > 100 && distance < critical, "{distance} {critical}");
        assert!(numbers(&failed, "duration_ns").all(|it| (1.5 * low..=3.0 * high).contains(&it)));
    }
    assert!(texts(&records, "trace_id").all(|id| id.len() == 32));
    assert!(texts(&records, "span_id").all(|id| id.len() == 16));
}

#[test]
fn traces_are_in_every_environment_and_region_alike() {
    let records = records(&spec(r#"{"kind":"traces","spans_per_trace":1}"#), 25, 20);
    let environments = [("production", 1.0), ("staging", 1.0), ("development", 1.0)];
    assert_shares("environments", texts(&records, "environment"), &environments);
    assert_shares("regions", texts(&records, "region"), &REGIONS);
}

#[test]
fn events_have_their_types_and_what_goes_with_them() {
    let records = records(&kind("events"), 26, 60);
    assert_even("types", texts(&records, "event_type"), 36);
    assert_even("categories", texts(&records, "event_category"), 4);
    assert_even("sources", texts(&records, "source"), 9);
    assert_even("resources", texts(&records, "resource_id"), 1_000);
    let users = texts(&records, "user_id").map(|user| user.strip_prefix("user-").unwrap().parse().unwrap());
    assert_uniform("users", users, 1_000.0, 9_999.0, 1.0);
    let has =
        |record: &Record, words: &[&str]| words.iter().any(|word| record["event_type"].text().contains(word));
    let ends = |record: &Record| {
        if has(record, &["failed", "denied", "exceeded"]) {
            "failed"
        } else if has(record, &["completed", "success", "recovered"]) {
            "ended"
        } else if has(record, &["started", "opened"]) {
            "began"
        } else {
            "other"
        }
    };
    let severities: [(&str, &[&str], f64); 4] = [
        ("failed", &["error", "critical"], 0.0),
        ("ended", &["info"], 1.0),
        ("began", &["info", "warning"], 1.0),
        ("other", &["info", "warning", "error", "critical"], 0.9),
    ];
    for (end, expected, success) in severities {
        let of_it = of(&records, |record| ends(record) == end);
        assert_even(end, texts(&of_it, "severity"), expected.len());
        assert!(texts(&of_it, "severity").all(|severity| expected.contains(&severity)));
        let good = of_it.iter().filter(|record| record["success"].flag()).count();
        if [0.0, 1.0].contains(&success) {
            assert_eq!(good, of_it.len() * success as usize, "{end}");
        } else {
            let (statistic, critical) =
                chi_squared(&[(good as u64, success), ((of_it.len() - good) as u64, 1.0 - success)]);
            assert!(statistic < critical, "{end}: {good} of {}", of_it.len());
        }
    }
    for record in &records {
        let metadata: serde_json::Value = serde_json::from_str(record["metadata"].text()).unwrap();
        assert!(metadata["attempt"].as_u64().unwrap() >= 1 && metadata["region"].is_string());
    }
    events_have_amounts_and_durations(&records);
}

fn events_have_amounts_and_durations(records: &[Record]) {
    let starting = |prefix: &str| of(records, |record| record["event_type"].text().starts_with(prefix));
    assert_uniform("payments", numbers(&starting("payment"), "amount"), 10.0, 500.0, 0.01);
    assert_uniform("orders", numbers(&starting("order"), "amount"), 20.0, 1_000.0, 0.01);
    let prices: Vec<String> =
        numbers(&starting("subscription_upgrade"), "amount").map(|price| price.to_string()).collect();
    let expected = ["9.99", "29.99", "99.99", "299.99"].map(|price| (price, 1.0));
    assert_shares("prices", prices.iter().map(String::as_str), &expected);
    let free = of(records, |record| {
        !["payment", "order", "subscription"].iter().any(|it| record["event_type"].text().starts_with(it))
    });
    assert!(numbers(&free, "amount").all(|amount| amount == 0.0));
    for (name, low, high) in [
        ("login_success", 20.0, 500.0),
        ("backup_completed", 10_000.0, 600_000.0),
        ("deployment_started", 1_000.0, 10_000.0),
    ] {
        assert_uniform(name, numbers(&starting(name), "duration_ms"), low, high, 1.0);
    }
}

#[test]
fn numbers_are_finite() {
    for name in ["metrics", "logs", "traces", "events"] {
        for record in records(&kind(name), 27, 5) {
            let cells = record.values().filter(|cell| matches!(cell, crate::synth::Cell::Number(_)));
            cells.for_each(|cell| assert!(cell.number().is_finite() && cell.number() >= 0.0));
        }
    }
}
