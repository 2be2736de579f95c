//! Expositions for a Prometheus server: text is read by its grammar, messages by the definitions that
//! Prometheus publishes.

use std::collections::BTreeMap;

use plimsoll_core::Nanos;
use plimsoll_export::Gauges;
use plimsoll_export::prometheus::Exposition;
use plimsoll_metrics::{Exemplar, Exemplars, Interval};
use prost::Message as _;

use crate::fixture::{self, ends, response_times};

fn text(exposition: Exposition) -> String {
    String::from_utf8(exposition.render(&fixture::totals())).expect("it is text")
}

#[test]
fn text_of_a_run() {
    insta::assert_snapshot!(text(Exposition::Text));
}

#[test]
fn the_server_chooses_the_format() {
    let protobuf =
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let open = "application/openmetrics-text;version=1.0.0";
    // The header of Prometheus 2.53 with native histograms, and without.
    let native = format!("{protobuf};q=0.6,{open};q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2");
    let usual = format!("{open};q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2");
    for (accept, expected) in [
        (None, Exposition::Text),
        (Some("*/*"), Exposition::Text),
        (Some("text/html, */*;q=0.1"), Exposition::Text),
        (Some(native.as_str()), Exposition::Protobuf),
        (Some(usual.as_str()), Exposition::OpenMetrics),
        (Some("application/vnd.google.protobuf"), Exposition::Text),
        (Some("application/openmetrics-text; version=\"1.0.0\""), Exposition::OpenMetrics),
        (Some("application/openmetrics-text;version=2.0.0, text/plain"), Exposition::Text),
    ] {
        assert_eq!(Exposition::negotiated(accept), expected, "{accept:?}");
    }
}

/// The samples of an exposition by name and labels, after its grammar was checked: every sample belongs to
/// the family whose type was told last, and labels are quoted.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut family, mut kind) = (BTreeMap::new(), String::new(), String::new());
    let mut families = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, of) = rest.split_once(' ').expect("a name and a type");
            assert!(!families.contains(&name.to_owned()), "{name} is told twice");
            families.push(name.to_owned());
            (family, kind) = (name.to_owned(), of.to_owned());
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').expect("a series and its value");
            let name = series.split('{').next().expect("it begins with its name");
            let suffix =
                name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{name} is not of {family}"));
            let fits = match kind.as_str() {
                "counter" => suffix == "_total" || (suffix.is_empty() && family.ends_with("_total")),
                "histogram" => ["_bucket", "_sum", "_count"].contains(&suffix),
                "gauge" => suffix.is_empty(),
                "summary" => ["", "_sum", "_count"].contains(&suffix),
                other => panic!("{other} is no type"),
            };
            assert!(fits, "{line} of {kind} {family}");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} came twice");
        }
    }
    samples
}

#[test]
fn both_texts_have_the_same_samples_and_these_are_true() {
    let open = text(Exposition::OpenMetrics);
    assert!(open.ends_with("# EOF\n"), "{open}");
    let (found, same) = (samples(&text(Exposition::Text)), samples(&open));
    assert_eq!(found, same);
    let labels = "scenario=\"buy \\\"now\\\"\",step=\"pay\\\\cash\",phase=\"measured\"";
    for (outcome, count) in ["ok", "failed", "timed_out"].iter().zip(ends(1)) {
        let series = format!("plimsoll_requests_total{{{labels},outcome=\"{outcome}\"}}");
        assert_eq!(found[&series], count as f64, "{series}");
    }
    let truth = response_times(1);
    assert_eq!(found[&format!("plimsoll_response_time_seconds_count{{{labels}}}")], truth.len() as f64);
    let mut last = 0.0;
    for bound in ["0.001", "0.0025", "0.005", "10.0", "+Inf"] {
        let series = format!("plimsoll_response_time_seconds_bucket{{{labels},le=\"{bound}\"}}");
        let limit = bound.parse::<f64>().map_or(f64::INFINITY, |bound| bound * 1e9);
        let (counted, below) =
            (found[&series], |limit: f64| truth.iter().filter(|t| **t as f64 <= limit).count());
        // A value within 0.1 % of a limit may be on either side of it.
        assert!(counted as usize >= below(limit / 1.001) && counted as usize <= below(limit), "{series}");
        assert!(counted >= last, "buckets are cumulative");
        last = counted;
    }
}

/// As much of `io.prometheus.client` as is told, by the numbers of its `metrics.proto`.
#[derive(Clone, PartialEq, prost::Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Single>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Single>,
    #[prost(message, optional, tag = "4")]
    summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Summary {
    #[prost(uint64, tag = "1")]
    count: u64,
    #[prost(double, tag = "2")]
    sum: f64,
    #[prost(message, repeated, tag = "3")]
    quantile: Vec<Quantile>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Quantile {
    #[prost(double, tag = "1")]
    quantile: f64,
    #[prost(double, tag = "2")]
    value: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Single {
    #[prost(double, tag = "1")]
    value: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Histogram {
    #[prost(uint64, tag = "1")]
    count: u64,
    #[prost(double, tag = "2")]
    sum: f64,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    schema: i32,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<Span>,
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Bucket {
    #[prost(uint64, tag = "1")]
    cumulative_count: u64,
    #[prost(double, tag = "2")]
    upper_bound: f64,
    #[prost(message, optional, tag = "3")]
    exemplar: Option<MessageExemplar>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MessageExemplar {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(double, tag = "2")]
    value: f64,
    #[prost(message, optional, tag = "3")]
    timestamp: Option<Timestamp>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Span {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

#[test]
fn messages_have_native_histograms_that_hold_every_value() {
    let bytes = Exposition::Protobuf.render(&fixture::totals());
    let (mut rest, mut families) = (bytes.as_slice(), Vec::new());
    while !rest.is_empty() {
        families.push(MetricFamily::decode_length_delimited(&mut rest).expect("it is a family"));
    }
    let named = |name: &str| families.iter().find(|family| family.name == name).expect("it is told");
    let requests = named("plimsoll_requests_total");
    assert_eq!((requests.kind, requests.metric.len()), (0, 3 * 3 * 2));
    let told: f64 = requests.metric.iter().filter_map(|metric| Some(metric.counter.as_ref()?.value)).sum();
    assert_eq!(told, 3_000.0);
    assert_eq!(named("plimsoll_in_flight").metric[0].gauge, Some(Single { value: 4.0 }));
    let times = named("plimsoll_response_time_seconds");
    assert_eq!(times.kind, 4);
    for metric in &times.metric {
        let label =
            |name: &str| &metric.label.iter().find(|label| label.name == name).expect("a label").value;
        let step =
            ["add", "pay\\cash", "look"].iter().position(|step| step == label("step")).expect("a step");
        let mut truth = response_times(step as u64);
        if label("phase") == "warmup" {
            truth = truth.into_iter().step_by(2).collect();
        }
        let histogram = metric.histogram.as_ref().expect("it is one");
        assert_eq!(histogram.count, truth.len() as u64);
        assert!(histogram.zero_threshold > 0.0 && histogram.zero_count == 0);
        let base = 2_f64.powf(2_f64.powi(-histogram.schema));
        let (mut index, mut count, mut deltas) = (0, 0, histogram.positive_delta.iter());
        let mut truth = truth.into_iter().map(|time| time as f64 / 1e9);
        for span in &histogram.positive_span {
            index += span.offset;
            for _ in 0..span.length {
                count += deltas.next().expect("as many deltas as buckets");
                for value in truth.by_ref().take(count as usize) {
                    // Bucket `i` holds what is above base^(i - 1) and not above base^i.
                    let fits = value * 1.001 > base.powi(index - 1) && value < base.powi(index) * 1.001;
                    assert!(fits, "{value} in {index}");
                }
                index += 1;
            }
        }
        assert_eq!((deltas.next(), truth.next()), (None, None));
        assert!(histogram.bucket.is_sorted_by_key(|bucket| bucket.cumulative_count));
    }
}

#[test]
fn a_run_that_has_just_begun_has_empty_histograms() {
    for exposition in [Exposition::Text, Exposition::OpenMetrics, Exposition::Protobuf] {
        assert!(!exposition.render(&fixture::nothing()).is_empty());
    }
    let bytes = Exposition::Protobuf.render(&fixture::nothing());
    let mut rest = bytes.as_slice();
    let mut spans = Vec::new();
    while !rest.is_empty() {
        let family = MetricFamily::decode_length_delimited(&mut rest).expect("it is a family");
        spans.extend(family.metric.into_iter().filter_map(|metric| Some(metric.histogram?.positive_span)));
    }
    assert!(
        !spans.is_empty() && spans.iter().all(|span| *span == [Span { offset: 0, length: 0 }]),
        "{spans:?}"
    );
}

/// The exemplars of the step `look` in an exposition: the limit of the bucket, the id, the value, the time.
fn exemplars_of_text(text: &str) -> Vec<(String, String, f64, f64)> {
    let marked = text.lines().filter_map(|line| line.split_once(" # "));
    let read = |(series, exemplar): (&str, &str)| {
        let name =
            "plimsoll_response_time_seconds_bucket{scenario=\"look\",step=\"look\",phase=\"measured\",le=\"";
        let (limit, count) =
            series.strip_prefix(name).expect("it is of a bucket").split_once("\"} ").expect("a count");
        assert!(count.parse::<u64>().is_ok(), "{series}");
        let (id, rest) =
            exemplar.strip_prefix("{trace_id=\"").expect("a label").split_once("\"} ").expect("its end");
        let (value, at) = rest.split_once(' ').expect("a value and a time");
        (limit.to_owned(), id.to_owned(), value.parse().expect("a number"), at.parse().expect("a number"))
    };
    marked.map(read).collect()
}

#[test]
fn buckets_carry_requests_with_traces_where_the_format_has_exemplars() {
    let mut totals = fixture::totals();
    let took = |trace_id, micros: u64, at: u64| Exemplar {
        trace_id,
        response_time: Nanos::from_micros(micros),
        done: Nanos::from_millis(at),
    };
    for (at, requests) in [
        (
            4,
            vec![took(1, 5, 3_100), took(2, 2_500, 3_200), took(3, 2_501, 3_300), took(4, 11_000_000, 3_400)],
        ),
        (5, vec![took(0xabc, 2_000, 4_500)]),
    ] {
        let mut exemplars = vec![Exemplars::default(); 3];
        requests.into_iter().for_each(|one| exemplars[2].note(one));
        let interval = Interval { at: Nanos::from_secs(at), exemplars, ..Interval::default() };
        totals.add(fixture::START, &interval, Gauges::default());
    }
    let text = |exposition: Exposition| String::from_utf8(exposition.render(&totals)).expect("it is text");
    assert!(!text(Exposition::Text).contains(" # "), "the older text has none");
    let start = fixture::START.as_secs_f64();
    let expected = [
        ("0.00001", 1, 0.000_005, 3.1),
        // That of the later interval.
        ("0.0025", 0xabc, 0.002, 4.5),
        ("0.005", 3, 0.002_501, 3.3),
        ("+Inf", 4, 11.0, 3.4),
    ]
    .map(|(limit, id, value, at)| (limit.to_owned(), format!("{id:032x}"), value, start + at));
    assert_eq!(exemplars_of_text(&text(Exposition::OpenMetrics)), expected);
    let (bytes, mut found) = (Exposition::Protobuf.render(&totals), Vec::new());
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let family = MetricFamily::decode_length_delimited(&mut rest).expect("it is a family");
        for bucket in
            family.metric.into_iter().filter_map(|metric| metric.histogram).flat_map(|one| one.bucket)
        {
            let Some(MessageExemplar { label, value, timestamp }) = bucket.exemplar else { continue };
            let [LabelPair { name, value: id }] = &*label else { panic!("{label:?}") };
            let at = timestamp.expect("a time");
            assert_eq!((family.name.as_str(), name.as_str()), ("plimsoll_response_time_seconds", "trace_id"));
            assert!(value <= bucket.upper_bound, "{value} {}", bucket.upper_bound);
            found.push((id.clone(), value, at.seconds as f64 + f64::from(at.nanos) / 1e9));
        }
    }
    assert_eq!(found, expected.map(|(_, id, value, at)| (id, value, at)));
}

#[test]
fn metrics_of_the_plan_have_families_of_their_own() {
    let totals = fixture::own_metrics();
    let text = |exposition: Exposition| String::from_utf8(exposition.render(&totals)).expect("it is text");
    let open = text(Exposition::OpenMetrics);
    let (found, same) = (samples(&text(Exposition::Text)), samples(&open));
    assert_eq!(found, same);
    let own: BTreeMap<&str, f64> = found
        .iter()
        .filter_map(|(series, value)| Some((series.strip_prefix("plimsoll_metric_")?, *value)))
        .collect();
    for (series, expected) in [
        // Two intervals with the carts 1 to 100, each, half of them of a shop.
        ("cart_count", 200.0),
        ("cart_sum", 10_100.0),
        ("cart{quantile=\"0.5\"}", 50.0),
        ("cart{quantile=\"0.95\"}", 95.0),
        ("cart_tagged_count{quantile_2=\"x\",shop=\"north\"}", 100.0),
        ("cart_tagged{quantile_2=\"x\",shop=\"north\",quantile=\"0.5\"}", 50.0),
        ("orders_total", 200.0),
        ("stock_left", 4.0),
        ("stock_left_2", 7.0),
        ("found_total{value=\"true\"}", 198.0),
        ("found_total{value=\"false\"}", 2.0),
        ("found_tagged_total{value=\"true\",value_2=\"mine\"}", 2.0),
    ] {
        let about = |value: f64| (value - expected).abs() <= expected / 1_000.0;
        assert!(own.get(series).copied().is_some_and(about), "{series} {expected}: {own:?}");
    }
    // Too few values for a percentile, or none at all, or no tags.
    for series in ["cart{quantile=\"0.99\"}", "nothing{quantile=\"0.5\"}", "orders_tagged_total"] {
        assert!(!own.contains_key(series), "{series}");
    }
    assert_eq!(own["nothing_count"], 0.0);
    assert_eq!(found["plimsoll_unfit_values_total{metric=\"cart\"}"], 2.0);
    let (bytes, mut families) = (Exposition::Protobuf.render(&totals), Vec::new());
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        families.push(MetricFamily::decode_length_delimited(&mut rest).expect("it is a family"));
    }
    let cart = families.iter().find(|family| family.name == "plimsoll_metric_cart").expect("it is told");
    let [Metric { summary: Some(summary), .. }] = &cart.metric[..] else { panic!("{cart:?}") };
    assert_eq!((cart.kind, summary.count, summary.sum, summary.quantile.len()), (2, 200, 10_100.0, 3));
}
