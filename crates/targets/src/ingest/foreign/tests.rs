use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
    metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

use super::protobuf::Refused;
use super::*;

const NOW: i64 = 5;

/// Rows as text: `samples[@1 value=2.0 …; …]`, times in microseconds.
fn told(decoded: &Decoded) -> String {
    assert_eq!(decoded.conflict, None);
    let batches = decoded.batches.iter().map(|batch| {
        let row = |row: usize| {
            let cells = batch.columns.iter().filter_map(|(name, column)| match column.get(row) {
                super::super::column::Cell::Time(micros) => Some(format!("@{micros}")),
                cell => Some(format!("{name}={}", cell.text()?)),
            });
            cells.collect::<Vec<_>>().join(" ")
        };
        format!("{}[{}]", batch.measurement, (0..batch.rows).map(row).collect::<Vec<_>>().join("; "))
    });
    batches.collect::<Vec<_>>().join(" ")
}

fn any(value: any_value::Value) -> Option<AnyValue> {
    Some(AnyValue { value: Some(value) })
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: any(value), ..KeyValue::default() }
}

fn text(text: &str) -> any_value::Value {
    any_value::Value::StringValue(text.to_owned())
}

fn resource() -> Option<Resource> {
    let attributes = vec![attribute("service.name", text("shop")), attribute("host", text("h1"))];
    Some(Resource { attributes, ..Resource::default() })
}

#[test]
fn data_points_of_every_kind_are_rows() {
    let point = |value, time| NumberDataPoint {
        attributes: vec![attribute("host", text("h2")), attribute("cpu", any_value::Value::IntValue(-3))],
        time_unix_nano: time,
        value: Some(value),
        ..NumberDataPoint::default()
    };
    let gauge = Gauge {
        data_points: vec![
            point(number_data_point::Value::AsDouble(1.5), 7000),
            point(number_data_point::Value::AsInt(-2), 0),
        ],
    };
    let histogram =
        HistogramDataPoint { time_unix_nano: 9000, count: 4, sum: Some(2.5), ..Default::default() };
    let named = |name: &str, data| Metric { name: name.to_owned(), data: Some(data), ..Metric::default() };
    let metrics = vec![
        named("usage", metric::Data::Gauge(gauge)),
        named("empty", metric::Data::Sum(Sum::default())),
        named(
            "times",
            metric::Data::Histogram(Histogram { data_points: vec![histogram], ..Default::default() }),
        ),
    ];
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics { resource: resource(), scope_metrics, ..Default::default() }],
    };
    let payload = request.encode_to_vec();
    let decoded = otlp(Signal::Metrics, &payload, NOW).unwrap();
    assert_eq!(
        told(&decoded),
        "metrics[@7 name=usage type=gauge value=1.5 host=h2 cpu=-3 service.name=shop; \
         @5 name=usage type=gauge value=-2.0 host=h2 cpu=-3 service.name=shop; \
         @9 name=times type=histogram value=2.5 count=4 host=h1 service.name=shop]"
    );
    for cut in 1..payload.len() {
        assert_eq!(
            otlp(Signal::Metrics, &payload[..cut], NOW).map(|_| ()),
            Err(Refused::Broken),
            "cut at {cut}"
        );
    }
}

#[test]
fn log_records_are_rows() {
    let list = ArrayValue { values: vec![AnyValue { value: Some(text("a\"b")) }] };
    let map = KeyValueList { values: vec![attribute("k", any_value::Value::BoolValue(true))] };
    let record = LogRecord {
        observed_time_unix_nano: 8000,
        severity_number: 9,
        severity_text: "INFO".to_owned(),
        body: any(text("hello")),
        trace_id: vec![0xab, 1],
        flags: 1,
        attributes: vec![
            attribute("list", any_value::Value::ArrayValue(list)),
            attribute("map", any_value::Value::KvlistValue(map)),
            attribute("share", any_value::Value::DoubleValue(0.5)),
        ],
        ..LogRecord::default()
    };
    let scope_logs = vec![ScopeLogs { log_records: vec![record], ..ScopeLogs::default() }];
    let request = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs { resource: None, scope_logs, ..Default::default() }],
    };
    assert_eq!(
        told(&otlp(Signal::Logs, &request.encode_to_vec(), NOW).unwrap()),
        "logs[@8 severity_number=9 severity_text=INFO body=hello trace_id=ab01 span_id= list=[\"a\\\"b\"] \
         map={\"k\":\"true\"} share=0.5]"
    );
}

#[test]
fn spans_are_rows() {
    let span = Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        parent_span_id: vec![3; 8],
        name: "GET /".to_owned(),
        kind: 2,
        start_time_unix_nano: 1_000_000,
        end_time_unix_nano: 3_500_000,
        status: Some(Status { code: 2, ..Status::default() }),
        ..Span::default()
    };
    let scope_spans = vec![ScopeSpans { spans: vec![span.clone(), span], ..ScopeSpans::default() }];
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { resource: resource(), scope_spans, ..Default::default() }],
    };
    let row = format!(
        "@1000 trace_id={} span_id={} parent_span_id={} name=GET / kind=2 duration_ns=2500000 status_code=2 \
         service.name=shop host=h1",
        "01".repeat(16),
        "02".repeat(8),
        "03".repeat(8)
    );
    let decoded = otlp(Signal::Traces, &request.encode_to_vec(), NOW).unwrap();
    assert_eq!(told(&decoded), format!("spans[{row}; {row}]"));
}

/// The message of prometheus/prometheus `prompb/remote.proto`.
#[derive(Clone, PartialEq, prost::Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[test]
fn samples_are_rows() {
    let label = |name: &str, value: &str| Label { name: name.to_owned(), value: value.to_owned() };
    let samples = vec![Sample { value: 1.5, timestamp: 7 }, Sample { value: 0.0, timestamp: 8 }];
    let labels = vec![label("__name__", "up"), label("job", "a")];
    let request = WriteRequest { timeseries: vec![TimeSeries { labels, samples }] };
    let decoded = prometheus(&request.encode_to_vec()).unwrap();
    let expected = "samples[@7000 value=1.5 __name__=up job=a; @8000 value=0.0 __name__=up job=a]";
    assert_eq!(told(&decoded), expected);
    assert_eq!(prometheus(b"\xFF").map(|_| ()), Err(Refused::Broken));
}

/// The message of grafana/loki `pkg/push/push.proto`.
#[derive(Clone, PartialEq, prost::Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    streams: Vec<Stream>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Stream {
    #[prost(string, tag = "1")]
    labels: String,
    #[prost(message, repeated, tag = "2")]
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Entry {
    #[prost(message, optional, tag = "1")]
    timestamp: Option<Timestamp>,
    #[prost(string, tag = "2")]
    line: String,
    #[prost(message, repeated, tag = "3")]
    metadata: Vec<Label>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[test]
fn lines_of_streams_are_rows() {
    let entry = Entry {
        timestamp: Some(Timestamp { seconds: 1, nanos: 5000 }),
        line: "a line".to_owned(),
        metadata: vec![Label { name: "trace".to_owned(), value: "t".to_owned() }],
    };
    let push = |labels: &str| {
        let stream = Stream { labels: labels.to_owned(), entries: vec![entry.clone()] };
        loki_packed(&PushRequest { streams: vec![stream] }.encode_to_vec())
    };
    let expected = "entries[@1000005 line=a line app=a, \"b\" env=x trace=t]";
    assert_eq!(told(&push(r#"{app="a, \"b\"", env="x"}"#).unwrap()), expected);
    let json = br#"{"streams":[{"stream":{"app":"a, \"b\"","env":"x"},
                   "values":[["1000005000","a line",{"trace":"t"}]]}]}"#;
    assert_eq!(told(&loki_json(json).unwrap()), expected);
    assert_eq!(push("{}").unwrap_err(), "error at least one label pair is required per stream");
    for bad in ["", "app", "{app}", "{app=}", "{app=\"a}", "{app=\"a"] {
        assert!(push(bad).unwrap_err().starts_with("couldn't parse labels"), "{bad}");
    }
    for bad in [
        "",
        "{}",
        r#"{"streams":[{"stream":{},"values":[]}]}"#,
        r#"{"streams":[{"stream":{"a":"b"}}]}"#,
        r#"{"streams":[{"stream":{"a":"b"},"values":[["x","y"]]}]}"#,
        r#"{"streams":[{"stream":{"a":"b"},"values":[["1"]]}]}"#,
        r#"{"streams":[{"stream":{"a":1},"values":[["1","y"]]}]}"#,
    ] {
        assert!(loki_json(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn documents_are_rows() {
    let payload = br#"{"index":{"_index":"logs","_id":"7"}}
{"@timestamp":"1970-01-01T00:00:01Z","level":"INFO","http":{"status":200},"tags":["a"],"none":null}
{"create":{}}
{"@timestamp":2000000000000,"level":5}
"#;
    let Bulk { decoded, items } = bulk(payload, Some("usual"), NOW).unwrap();
    assert_eq!(
        told(&decoded),
        "documents[@1000000 _index=logs _id=7 level=INFO http.status=200 tags=[\"a\"]; \
         @2000000000000000 _index=usual _id=5-2 level=5]",
        "where a column has to be of two kinds all are text"
    );
    let statuses: Vec<_> = items.iter().map(|item| item.to_string().contains(r#""status":201"#)).collect();
    assert_eq!(statuses, [true, true]);
    for (bad, why) in [
        ("{\"index\":{}}\n{}", "The bulk request must be terminated by a newline [\\n]"),
        ("x\n", "Malformed action/metadata line [1], expected START_OBJECT"),
        ("{\"delete\":{}}\n", "this target takes index and create, and line [1] is `delete`"),
        ("{\"index\":{}}\n", "Validation Failed: 1: index is missing;"),
        ("{\"index\":{\"_index\":\"i\"}}\n", "line [1] has no document behind it"),
    ] {
        assert_eq!(bulk(bad.as_bytes(), None, NOW).unwrap_err(), why);
    }
    let bad = b"{\"index\":{\"_index\":\"i\"}}\n{\"time\":\"soon\"}\n";
    assert_eq!(bulk(bad, None, NOW).unwrap_err(), "`time` is not an instant: \"soon\"");
}

#[test]
fn json_lines_are_rows() {
    let payload = b"{\"_time\":1,\"a\":1}\n\n{\"a\":2.5,\"ok\":true}";
    assert_eq!(told(&lines(payload, None, NOW).unwrap()), "lines[@1000000 a=1.0; @5 a=2.5 ok=true]");
    let named = lines(b"{\"at\":3,\"time\":\"noon\"}", Some("at"), NOW).unwrap();
    assert_eq!(told(&named), "lines[@3000000 time_=noon]");
    assert!(lines(b"{}\n5", None, NOW).unwrap_err().starts_with("line 2 is not a JSON object: "));
}

/// Symptom: a batch was refused for a column of texts and numbers, with an attribute that was called as the
/// number of a histogram's values is.
#[test]
fn an_attribute_may_have_the_name_of_a_column() {
    let point = NumberDataPoint { attributes: vec![attribute("count", text("many"))], ..Default::default() };
    let histogram = HistogramDataPoint { count: 4, ..Default::default() };
    let metrics = vec![
        Metric { data: Some(metric::Data::Gauge(Gauge { data_points: vec![point] })), ..Metric::default() },
        Metric {
            data: Some(metric::Data::Histogram(Histogram {
                data_points: vec![histogram],
                ..Default::default()
            })),
            ..Metric::default()
        },
    ];
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let resource_metrics = vec![ResourceMetrics { scope_metrics, ..Default::default() }];
    let decoded =
        otlp(Signal::Metrics, &ExportMetricsServiceRequest { resource_metrics }.encode_to_vec(), NOW);
    assert_eq!(told(&decoded.unwrap()), "metrics[@5 name= type=gauge; @5 name= type=histogram count=4]");
}

/// A request with one log record that has this attribute.
fn with_attribute(value: any_value::Value) -> Vec<u8> {
    let record = LogRecord { attributes: vec![attribute("deep", value)], ..LogRecord::default() };
    let scope_logs = vec![ScopeLogs { log_records: vec![record], ..ScopeLogs::default() }];
    let resource_logs = vec![ResourceLogs { resource: None, scope_logs, ..Default::default() }];
    ExportLogsServiceRequest { resource_logs }.encode_to_vec()
}

/// Symptom: each list around a text doubled its backslashes: eight lists made 256 bytes of each quote.
#[test]
fn lists_within_lists_are_escaped_once() {
    let quotes = "\"".repeat(1000);
    let mut value = text(&quotes);
    for _ in 0..7 {
        value = any_value::Value::ArrayValue(ArrayValue { values: vec![AnyValue { value: Some(value) }] });
    }
    let decoded = otlp(Signal::Logs, &with_attribute(value), NOW).unwrap();
    let expected = format!("deep={}\"{}\"{}", "[".repeat(7), "\\\"".repeat(1000), "]".repeat(7));
    assert!(told(&decoded).contains(&expected), "{}", told(&decoded));
}

/// Symptom: a payload was refused as broken for a value of a kind that a later version has.
#[test]
fn values_of_unknown_kinds_are_empty() {
    let known = with_attribute(text("x"));
    let mut unknown = known.clone();
    // Field 1 of the value, a text of one byte, becomes field 15.
    let at = unknown.windows(3).rposition(|bytes| bytes == [0x0a, 1, b'x']).expect("the value is there");
    unknown[at] = 0x7a;
    let of = |payload: &[u8]| told(&otlp(Signal::Logs, payload, NOW).unwrap());
    assert_eq!(of(&unknown), of(&known).replace("deep=x", "deep="));
}

/// Symptom: a value that occurs once in a payload but belongs to each of its rows took any amount of memory,
/// here 10 GB of 200 kB.
#[test]
fn rows_of_one_payload_have_a_bound_of_memory() {
    let (long, many) = ("x".repeat(100_000), 100_000);
    let resource = Some(Resource { attributes: vec![attribute("a", text(&long))], ..Resource::default() });
    let log_records = vec![LogRecord::default(); many];
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    let resource_logs = vec![ResourceLogs { resource, scope_logs, ..Default::default() }];
    let logs = ExportLogsServiceRequest { resource_logs }.encode_to_vec();
    assert_eq!(otlp(Signal::Logs, &logs, NOW).unwrap_err(), Refused::TooLarge);

    let labels = vec![Label { name: "a".to_owned(), value: long.clone() }];
    let timeseries = vec![TimeSeries { labels, samples: vec![Sample::default(); many] }];
    let write = WriteRequest { timeseries }.encode_to_vec();
    assert_eq!(prometheus(&write).unwrap_err(), Refused::TooLarge);

    let too_large = Refused::TooLarge.to_string();
    let stream = Stream { labels: format!("{{a=\"{long}\"}}"), entries: vec![Entry::default(); many] };
    let push = PushRequest { streams: vec![stream] }.encode_to_vec();
    assert_eq!(loki_packed(&push).unwrap_err(), too_large);
    let values = vec!["[\"1\",\"\"]"; many].join(",");
    let push = format!("{{\"streams\":[{{\"stream\":{{\"a\":\"{long}\"}},\"values\":[{values}]}}]}}");
    assert_eq!(loki_json(push.as_bytes()).unwrap_err(), too_large);

    // A column of each line has a cell in all of them.
    let documents: String = (0..30_000).map(|number| format!("{{\"f{number}\":1}}\n")).collect();
    assert_eq!(lines(documents.as_bytes(), None, NOW).unwrap_err(), too_large);
}

/// Symptom: names within a long name were joined with it, one after the other.
#[test]
fn joined_names_have_a_bound() {
    let document = |length: usize| format!("{{\"{}\":{{\"a\":1,\"b\":2.5}}}}", "x".repeat(length));
    assert!(lines(document(1022).as_bytes(), None, NOW).is_ok());
    let refused = lines(document(1023).as_bytes(), None, NOW).unwrap_err();
    assert!(refused.ends_with("has a name of more than 1024 bytes") && refused.len() < 200, "{refused}");
}

/// Symptom: an overflow where the seconds of a line were as large as a number can be.
#[test]
fn times_beyond_all_bounds_are_the_last_one() {
    let entry = Entry { timestamp: Some(Timestamp { seconds: i64::MAX, nanos: 5000 }), ..Entry::default() };
    let stream = Stream { labels: "{a=\"b\"}".to_owned(), entries: vec![entry] };
    let decoded = loki_packed(&PushRequest { streams: vec![stream] }.encode_to_vec()).unwrap();
    assert!(told(&decoded).starts_with(&format!("entries[@{} ", i64::MAX)), "{}", told(&decoded));
}
