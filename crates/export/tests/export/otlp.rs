//! OTLP, decoded by the messages that OpenTelemetry publishes.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use plimsoll_export::otlp;
use prost::Message as _;

use crate::fixture::{self, START, ends, response_times};

fn metrics(request: &[u8]) -> (Vec<KeyValue>, Vec<Metric>) {
    let request = ExportMetricsServiceRequest::decode(request).expect("it is such a request");
    assert_eq!(request.resource_metrics.len(), 1);
    let of_resource = request.resource_metrics.into_iter().next().expect("there is one");
    let attributes = of_resource.resource.expect("it says who sends").attributes;
    assert_eq!(of_resource.scope_metrics.len(), 1);
    let scope = of_resource.scope_metrics.into_iter().next().expect("there is one");
    (attributes, scope.metrics)
}

fn text(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|pair| pair.key == name).unwrap_or_else(|| panic!("no {name}"));
    match found.value.as_ref().and_then(|value| value.value.clone()) {
        Some(any_value::Value::StringValue(text)) => text,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_request_says_who_sends_and_counts_what_ended() {
    let resource = [("service.name".to_owned(), "plimsoll".to_owned())];
    let (attributes, metrics) = metrics(&otlp::request(&fixture::totals(), &resource));
    assert_eq!(text(&attributes, "service.name"), "plimsoll");
    assert_eq!(text(&attributes, "plimsoll.plan"), "9f86d081");
    let requests = metrics.iter().find(|metric| metric.name == "plimsoll.requests").expect("it is told");
    let Some(metric::Data::Sum(sum)) = &requests.data else { panic!("{requests:?}") };
    assert!(sum.is_monotonic);
    assert_eq!(sum.aggregation_temporality, 2, "cumulative");
    for point in &sum.data_points {
        assert_eq!(point.start_time_unix_nano, START.0);
        assert_eq!(point.time_unix_nano, START.0 + 3_000_000_000);
        let of = |name: &str| text(&point.attributes, name);
        let step = ["add", "pay\\cash", "look"].iter().position(|step| *step == of("step"));
        let end = ["ok", "failed", "timed_out"].iter().position(|end| *end == of("outcome"));
        let (step, end) = (step.expect("a step"), end.expect("an end"));
        let expected = ends(step as u64)[end] / if of("phase") == "warmup" { 2 } else { 1 };
        assert_eq!(point.value, Some(number_data_point::Value::AsInt(expected as i64)), "{point:?}");
        assert_eq!(of("scenario"), if step == 2 { "look" } else { "buy \"now\"" });
    }
    assert_eq!(sum.data_points.len(), 3 * 3 * 2);
}

#[test]
fn exponential_histograms_hold_every_value_in_its_bucket() {
    let (_, metrics) = metrics(&otlp::request(&fixture::totals(), &[]));
    let times = metrics.iter().find(|metric| metric.name == "plimsoll.response_time").expect("it is told");
    assert_eq!(times.unit, "s");
    let Some(metric::Data::ExponentialHistogram(times)) = &times.data else { panic!("{times:?}") };
    assert_eq!(times.aggregation_temporality, 2, "cumulative");
    let measured = times.data_points.iter().filter(|point| text(&point.attributes, "phase") == "measured");
    for point in measured {
        let step =
            ["add", "pay\\cash", "look"].iter().position(|step| *step == text(&point.attributes, "step"));
        let truth = response_times(step.expect("a step") as u64);
        let buckets = point.positive.as_ref().expect("there are values");
        let counted: u64 = buckets.bucket_counts.iter().sum();
        assert_eq!((point.count, counted + point.zero_count), (truth.len() as u64, truth.len() as u64));
        let sum: f64 = truth.iter().map(|time| *time as f64 / 1e9).sum();
        assert!((point.sum.expect("a sum") - sum).abs() < 1e-6 * sum, "{:?} is not {sum}", point.sum);
        // Bucket `i` holds what is above base^(offset + i) and not above the next power.
        let base = 2_f64.powf(2_f64.powi(-point.scale));
        let mut truth = truth.into_iter().map(|time| time as f64 / 1e9);
        for (index, count) in (buckets.offset..).zip(&buckets.bucket_counts) {
            for value in truth.by_ref().take(*count as usize) {
                // Values come from buckets that are 0.1 % wide.
                assert!(
                    value * 1.001 > base.powi(index) && value < base.powi(index + 1) * 1.001,
                    "{value} in {index}"
                );
            }
        }
    }
}

#[test]
fn a_run_that_has_just_begun_and_one_that_is_over_can_be_told() {
    let (_, metrics) = metrics(&otlp::request(&fixture::nothing(), &[]));
    assert!(metrics.iter().all(|metric| metric.name != "plimsoll.valid"));
    let mut over = fixture::totals();
    over.end(true);
    let (_, metrics) = self::metrics(&otlp::request(&over, &[]));
    let gauge = |name: &str| {
        let found = metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no {name}"));
        let Some(metric::Data::Gauge(gauge)) = &found.data else { panic!("{found:?}") };
        match gauge.data_points[0].value {
            Some(number_data_point::Value::AsDouble(value)) => value,
            ref other => panic!("{name}: {other:?}"),
        }
    };
    assert_eq!((gauge("plimsoll.valid"), gauge("plimsoll.in_flight")), (1.0, 0.0));
    assert_eq!(gauge("plimsoll.target_rate"), 0.0);
}

#[test]
fn metrics_of_the_plan_keep_their_names_and_units() {
    let (_, metrics) = metrics(&otlp::request(&fixture::own_metrics(), &[]));
    let named = |name: &str| {
        let found = metrics.iter().find(|metric| metric.name == format!("plimsoll.metric.{name}"));
        found.unwrap_or_else(|| panic!("no {name}"))
    };
    let cart = named("cart");
    let Some(metric::Data::Summary(summary)) = &cart.data else { panic!("{cart:?}") };
    let [point] = &summary.data_points[..] else { panic!("{summary:?}") };
    assert_eq!((cart.unit.as_str(), point.count, point.sum), ("EUR", 200, 10_100.0));
    assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (START.0, START.0 + 2_000_000_000));
    let shares: Vec<f64> = point.quantile_values.iter().map(|value| value.quantile).collect();
    assert_eq!(shares, [0.5, 0.9, 0.95]);
    let Some(metric::Data::Summary(tagged)) = &named("cart_tagged").data else { panic!("{metrics:?}") };
    let point = &tagged.data_points[0];
    assert_eq!((point.count, text(&point.attributes, "shop")), (100, "north".to_owned()));
    assert_eq!(text(&point.attributes, "quantile"), "x");
    let Some(metric::Data::Sum(orders)) = &named("orders_total").data else { panic!("{metrics:?}") };
    assert!(orders.is_monotonic && orders.aggregation_temporality == 2);
    let value = |value: f64| Some(number_data_point::Value::AsDouble(value));
    assert_eq!(orders.data_points[0].value, value(200.0));
    let Some(metric::Data::Gauge(stock)) = &named("stock.left").data else { panic!("{metrics:?}") };
    assert_eq!(stock.data_points[0].value, value(4.0));
}
