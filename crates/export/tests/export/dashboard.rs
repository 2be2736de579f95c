//! The dashboard of `integrations/grafana` asks for what the exporter has, in a way that is right for several
//! generators at once.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_export::prometheus::Exposition;
use serde_json::Value;

use crate::fixture;

const DASHBOARD: &str = include_str!("../../../../integrations/grafana/dashboard.json");

/// Labels that a server of Prometheus puts on whatever it scrapes.
const OF_THE_SERVER: [&str; 2] = ["job", "instance"];
/// Aggregations that are right for what several generators say. An average is not: it has a weight for each
/// generator, whatever that did.
const AGGREGATIONS: [&str; 4] = ["sum", "max", "min", "count"];
/// Metrics that stand on no panel.
const NOT_SHOWN: [&str; 2] = ["plimsoll_run_info", "plimsoll_paused"];

/// Metrics by name, with their labels. Histograms also have their own name, as which a server keeps native
/// ones.
fn metrics() -> BTreeMap<String, BTreeSet<String>> {
    let mut totals = fixture::totals().with_process();
    totals.end(true);
    let text = String::from_utf8(Exposition::Text.render(&totals)).expect("it is text");
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let found = tokens(line);
        let labels = found.windows(2).filter(|pair| pair[1] == "=").map(|pair| pair[0].to_owned());
        let labels: BTreeSet<String> = labels.collect();
        if let Some(native) = found[0].strip_suffix("_bucket") {
            let own = labels.iter().filter(|label| *label != "le").cloned();
            metrics.entry(native.to_owned()).or_default().extend(own);
        }
        metrics.entry(found[0].to_owned()).or_default().extend(labels);
    }
    metrics
}

/// The words, strings and signs of an expression of PromQL, or of a line of an exposition.
fn tokens(text: &str) -> Vec<&str> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "_:.$".contains(letter);
    let (mut found, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let end = if first == '"' {
            let mut escaped = false;
            let closing = rest[1..].find(|letter| {
                let closes = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                closes
            });
            closing.expect("a string ends") + 2
        } else if is_word(first) {
            rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        found.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    found
}

/// A metric in an expression: the labels that select from it, and the functions that it is an argument of.
struct Asked<'a> {
    metric: &'a str,
    selected_by: Vec<&'a str>,
    within: Vec<&'a str>,
}

/// Reads an expression: its metrics, and the labels that it groups by.
fn read(expression: &str) -> (Vec<Asked<'_>>, Vec<&str>) {
    let (mut asked, mut grouped_by): (Vec<Asked<'_>>, Vec<&str>) = (Vec::new(), Vec::new());
    let (mut within, mut before) = (Vec::new(), "");
    let mut selecting = false;
    for token in tokens(expression) {
        match token {
            "(" => within.push(before),
            ")" => drop(within.pop()),
            "{" => selecting = true,
            "}" => selecting = false,
            "=" | "!" if selecting => {
                // `!=` is two tokens, and `job` before it is no sign.
                let asked = asked.last_mut().expect("labels select from a metric");
                asked.selected_by.extend((before != "!").then_some(before));
            }
            word if within.last() == Some(&"by") && word != "," => grouped_by.push(word),
            word if word.starts_with("plimsoll_") => {
                asked.push(Asked { metric: word, selected_by: Vec::new(), within: within.clone() });
            }
            _ => {}
        }
        before = token;
    }
    (asked, grouped_by)
}

/// Everything that is wrong with an expression.
fn complaints(expression: &str, metrics: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let (asked, grouped_by) = read(expression);
    let mut complaints = Vec::new();
    if asked.is_empty() {
        complaints.push("it asks for nothing".to_owned());
    }
    for Asked { metric, selected_by, within } in &asked {
        let Some(labels) = metrics.get(*metric) else {
            complaints.push(format!("nothing exports {metric}"));
            continue;
        };
        // What is native has its limits in itself: by them nothing is grouped.
        let is_native = metrics.contains_key(&format!("{metric}_bucket"));
        for label in selected_by.iter().chain(&grouped_by) {
            let is_limit = *label == "le" && is_native;
            if !labels.contains(*label) && !OF_THE_SERVER.contains(label) && !is_limit {
                complaints.push(format!("{metric} has no label {label}"));
            }
        }
        if !AGGREGATIONS.iter().any(|name| within.contains(name)) {
            complaints.push(format!("{metric} of several generators is not put together"));
        }
        if !OF_THE_SERVER.iter().all(|label| selected_by.contains(label)) {
            complaints.push(format!("{metric} is of all generators, not of those that were chosen"));
        }
        let grows = is_native || metric.ends_with("_total") || metric.ends_with("_bucket");
        if grows != ["rate", "increase"].iter().any(|name| within.contains(name)) {
            complaints.push(format!("{metric}: counters have rates, and gauges have none"));
        }
    }
    complaints
}

/// The expressions of all panels.
fn expressions(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("expr").and_then(Value::as_str);
            own.into_iter().chain(fields.values().flat_map(expressions)).collect()
        }
        Value::Array(values) => values.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_panel_asks_for_what_is_exported() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let (metrics, expressions) = (metrics(), expressions(&dashboard));
    assert!(expressions.len() > 25, "{} expressions", expressions.len());
    for expression in expressions {
        let complaints = complaints(expression, &metrics);
        assert!(complaints.is_empty(), "{expression}: {complaints:?}");
    }
    // Lists of what can be chosen come from a metric, too.
    let variables = dashboard["templating"]["list"].as_array().expect("there are variables");
    let queries = variables.iter().filter(|variable| variable["type"] == "query");
    let queries: Vec<&str> = queries.filter_map(|variable| variable["query"].as_str()).collect();
    assert_eq!(queries.len(), OF_THE_SERVER.len());
    for query in queries {
        for asked in read(query).0 {
            assert!(metrics.contains_key(asked.metric), "{query}");
        }
    }
}

#[test]
fn every_metric_is_on_a_panel() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let expressions = expressions(&dashboard);
    let shown: BTreeSet<&str> =
        expressions.iter().flat_map(|expression| read(expression).0).map(|asked| asked.metric).collect();
    let metrics = metrics();
    // The parts of a histogram are one metric.
    let parts = ["_bucket", "_sum", "_count"];
    let is_part = |name: &str| {
        parts.iter().filter_map(|part| name.strip_suffix(part)).any(|whole| metrics.contains_key(whole))
    };
    let missing: Vec<&String> = metrics
        .keys()
        .filter(|name| {
            !is_part(name) && !shown.contains(name.as_str()) && !NOT_SHOWN.contains(&name.as_str())
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn what_is_wrong_is_complained_about() {
    let metrics = metrics();
    let chosen = "job=~\"$job\", instance=~\"$instance\"";
    for (wrong, why) in [
        ("sum(rate(plimsoll_request_total{CHOSEN}[1m]))", "nothing exports plimsoll_request_total"),
        ("sum(rate(plimsoll_requests_total{CHOSEN, result!=\"ok\"}[1m]))", "has no label result"),
        ("sum(rate(plimsoll_requests_total{CHOSEN}[1m])) by (class)", "has no label class"),
        ("sum(plimsoll_connections{CHOSEN}) by (le)", "has no label le"),
        ("plimsoll_in_flight{CHOSEN}", "is not put together"),
        ("avg(plimsoll_in_flight{CHOSEN})", "is not put together"),
        ("sum(plimsoll_in_flight)", "not of those that were chosen"),
        ("sum(plimsoll_requests_total{CHOSEN})", "counters have rates"),
        ("sum(rate(plimsoll_in_flight{CHOSEN}[1m]))", "gauges have none"),
        ("sum(up)", "it asks for nothing"),
    ] {
        let found = complaints(&wrong.replace("CHOSEN", chosen), &metrics);
        assert!(found.len() == 1 && found[0].contains(why), "{wrong}: {found:?}");
    }
}
