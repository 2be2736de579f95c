//! The dashboard of `examples/grafana`: it asks for metrics and labels that are exported, and for nothing
//! that is wrong once several generators are added up.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_export::prometheus::Exposition;
use serde_json::Value;

use crate::fixture;

/// Labels that a server of Prometheus adds.
const OF_THE_SERVER: [&str; 2] = ["job", "instance"];

/// The exported names: those of samples, those of native histograms, and labels.
struct Exported {
    counters: BTreeSet<String>,
    gauges: BTreeSet<String>,
    /// Histograms without a suffix, as native ones are asked for.
    histograms: BTreeSet<String>,
    labels: BTreeSet<String>,
}

fn exported() -> Exported {
    let mut totals = fixture::totals();
    totals.end(true);
    let text = String::from_utf8(Exposition::Text.render(&totals)).expect("it is text");
    let of_kind = |wanted: &str| {
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        types.filter(|(_, kind)| *kind == wanted).map(|(name, _)| name.to_owned()).collect()
    };
    let before_values = text.split("=\"").map(|part| part.rsplit(['{', ',']).next().unwrap_or_default());
    let mut labels: BTreeSet<String> = before_values.map(str::to_owned).collect();
    labels.extend(OF_THE_SERVER.map(str::to_owned));
    let (counters, gauges) = (of_kind("counter"), of_kind("gauge"));
    let mut exported = Exported { counters, gauges, histograms: of_kind("histogram"), labels };
    // The fixture's generator has no process whose use is known.
    exported.counters.insert("plimsoll_generator_cpu_seconds_total".to_owned());
    exported.gauges.insert("plimsoll_generator_memory_bytes".to_owned());
    exported.labels.insert("mode".to_owned());
    exported
}

/// The names in an expression that are Plimsoll's, each with its surroundings.
fn names(expression: &str) -> Vec<(&str, &str, &str)> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut found = Vec::new();
    for (at, _) in expression.match_indices("plimsoll_") {
        let (before, rest) = expression.split_at(at);
        if before.chars().next_back().is_none_or(|letter| !is_part(letter)) {
            let (name, behind) = rest.split_at(rest.find(|letter| !is_part(letter)).unwrap_or(rest.len()));
            found.push((before, name, behind));
        }
    }
    found
}

/// The labels that an expression names: those that it matches and those that it groups by.
fn labels(expression: &str) -> BTreeSet<&str> {
    let within = |open: &'static str, close: char| {
        expression.split(open).skip(1).filter_map(move |rest| rest.split(close).next())
    };
    let matched = within("{", '}').flat_map(|part| part.split("\",")).filter_map(|part| {
        let end = part.find(['=', '!', '~'])?;
        Some(part[..end].trim())
    });
    let grouped = within("by (", ')').flat_map(|part| part.split(',')).map(str::trim);
    matched.chain(grouped).collect()
}

/// Everything that is wrong with an expression.
fn complaints(expression: &str, exported: &Exported) -> Vec<String> {
    let mut wrong = Vec::new();
    let found = names(expression);
    if found.is_empty() {
        wrong.push("it asks for nothing of Plimsoll".to_owned());
    }
    for (before, name, behind) in found {
        let histogram = name.strip_suffix("_bucket").unwrap_or(name);
        let grows = exported.counters.contains(name) || exported.histograms.contains(histogram);
        if !grows && !exported.gauges.contains(name) {
            wrong.push(format!("{name} is not exported"));
        }
        // A counter that begins anew with every run is meaningful only by its growth; and with several
        // generators the growth is added up, not the counts.
        if grows && !before.ends_with("rate(") {
            wrong.push(format!("{name} is not within a rate"));
        }
        if grows && !before.trim_end_matches("rate(").ends_with('(') {
            wrong.push(format!("the rate of {name} is not added up"));
        }
        let gathers = ["sum(", "count(", "sum by (instance) (", "sum by (instance, server, number) ("];
        if !grows && !gathers.iter().any(|word| before.ends_with(word)) {
            wrong.push(format!("{name} is not gathered over generators"));
        }
        if behind.contains("offset") {
            wrong.push(format!("{name} is asked for at another time"));
        }
    }
    // A mean of percentiles has no meaning, whatever its weights are.
    for word in ["avg", "quantile_over_time", "avg_over_time", "_sum{", "stddev"] {
        if expression.contains(word) {
            wrong.push(format!("{word} does not go together with several generators"));
        }
    }
    for (at, word) in expression.match_indices("quantile(") {
        let is_of_histogram = expression[..at].ends_with("histogram_");
        let argument = expression[at + word.len()..].split_once(", ").map_or("", |(_, rest)| rest);
        if !is_of_histogram || !argument.starts_with("sum") {
            wrong.push("a quantile is not that of buckets that were added up".to_owned());
        }
        let inner = argument.split(" or ").next().unwrap_or_default();
        if inner.contains("_bucket{") && !inner.starts_with("sum by (le)") && !inner.contains(", le)") {
            wrong.push("buckets are added up without le".to_owned());
        }
    }
    let unknown = labels(expression).into_iter().filter(|label| *label != "le");
    let unknown = unknown.filter(|label| !exported.labels.contains(*label));
    wrong.extend(unknown.map(|label| format!("no label is named {label}")));
    wrong.into_iter().map(|problem| format!("{expression}\n  {problem}")).collect()
}

/// The texts under a name, wherever they are.
fn under<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    Value::String(text) if key == name => found.push(text),
                    field => under(field, name, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| under(item, name, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_for_what_is_exported_and_can_be_added_up() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/grafana/plimsoll.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("it is JSON");
    let (mut expressions, exported) = (Vec::new(), exported());
    under(&dashboard, "expr", &mut expressions);
    assert!(expressions.len() > 20, "{expressions:?}");
    let wrong: Vec<_> = expressions.iter().flat_map(|text| complaints(text, &exported)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    // Variables are chosen from metrics, too, without adding them up.
    let mut definitions = Vec::new();
    under(&dashboard, "definition", &mut definitions);
    assert!(definitions.len() >= 3, "{definitions:?}");
    for definition in definitions {
        for (_, name, _) in names(definition) {
            assert!(exported.counters.contains(name) || exported.gauges.contains(name), "{definition}");
        }
        let label = definition.rsplit([',', ' ', ')']).find(|part| !part.is_empty()).expect("a label");
        assert!(exported.labels.contains(label), "{definition}");
    }
}

#[test]
fn a_wrong_expression_is_found() {
    let exported = exported();
    let right = "histogram_quantile(0.9, sum by (step, le) (rate(plimsoll_service_time_seconds_bucket[1m])))";
    assert_eq!(complaints(right, &exported), Vec::<String>::new());
    for wrong in [
        "sum(up)",
        "sum(rate(plimsoll_request_total[1m]))",
        "sum(rate(plimsoll_requests_total{stage=\"measured\"}[1m]))",
        "sum by (node) (rate(plimsoll_requests_total[1m]))",
        "sum(plimsoll_requests_total)",
        "rate(plimsoll_requests_total[1m])",
        "avg(rate(plimsoll_requests_total[1m]))",
        "plimsoll_in_flight",
        "sum(plimsoll_inflight)",
        "avg(histogram_quantile(0.99, sum by (le) (rate(plimsoll_response_time_seconds_bucket[1m]))))",
        "histogram_quantile(0.99, rate(plimsoll_response_time_seconds_bucket[1m]))",
        "histogram_quantile(0.9, sum by (step) (rate(plimsoll_service_time_seconds_bucket{step=\"a\"}[1m])))",
        "quantile(0.99, sum(rate(plimsoll_requests_total[1m])))",
        "sum(rate(plimsoll_response_time_seconds_sum[1m]))",
    ] {
        assert!(!complaints(wrong, &exported).is_empty(), "{wrong}");
    }
}
