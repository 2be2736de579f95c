//! Each format's bytes to records, by independent decoders.

use influxdb_line_protocol::{FieldValue, parse_lines};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use plimsoll_synth::Kind;
use prost::Message;
use rmpv::Value;

use crate::synth::{Cell, Record};

fn unpacked(bytes: &[u8]) -> Value {
    let mut rest = bytes;
    let value = rmpv::decode::read_value(&mut rest).unwrap();
    assert!(rest.is_empty(), "{} bytes are left over", rest.len());
    value
}

fn packed_cell(value: &Value) -> Cell {
    match value {
        Value::String(text) => Cell::Text(text.as_str().expect("strings are UTF-8").to_owned()),
        Value::Boolean(flag) => Cell::Flag(*flag),
        Value::F64(number) => Cell::Number(*number),
        Value::Integer(number) => Cell::Number(number.as_u64().unwrap() as f64),
        other => panic!("unexpected: {other}"),
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_map().unwrap().iter().map(|(key, value)| (key.as_str().unwrap(), value))
}

/// The measurement and the records of Arc's columns.
pub(crate) fn columnar(bytes: &[u8]) -> (String, Vec<Record>) {
    let value = unpacked(bytes);
    assert!(entries(&value).map(|(key, _)| key).eq(["m", "columns"]));
    let mut records: Vec<Record> = Vec::new();
    for (number, (name, cells)) in entries(&value["columns"]).enumerate() {
        let cells = cells.as_array().unwrap();
        assert_eq!(name == "time", number == 0);
        if records.is_empty() {
            records.resize(cells.len(), Record::new());
        }
        assert_eq!(cells.len(), records.len(), "{name}");
        for (record, cell) in records.iter_mut().zip(cells) {
            assert_eq!(record.insert(name.to_owned(), packed_cell(cell)), None, "{name} comes twice");
        }
    }
    (value["m"].as_str().unwrap().to_owned(), records)
}

/// Arc's rows: flattened as Arc does.
pub(crate) fn rows(bytes: &[u8]) -> (String, Vec<Record>) {
    let value = unpacked(bytes);
    let rows = value["batch"].as_array().unwrap();
    let records = rows.iter().map(|row| {
        assert!(entries(row).map(|(key, _)| key).eq(["m", "t", "h", "fields", "tags"]));
        let cells = entries(&row["fields"]).chain(entries(&row["tags"]));
        let mut record: Record = cells.map(|(name, cell)| (name.to_owned(), packed_cell(cell))).collect();
        record.insert("time".to_owned(), packed_cell(&row["t"]));
        if row["h"].as_str() != Some("") {
            record.insert("host".to_owned(), packed_cell(&row["h"]));
        }
        record
    });
    (rows[0]["m"].as_str().unwrap().to_owned(), records.collect())
}

pub(crate) fn lines(bytes: &[u8]) -> (String, Vec<Record>) {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut measurement = String::new();
    let records = parse_lines(text).map(|line| {
        let line = line.unwrap();
        measurement = line.series.measurement.to_string();
        let tags = line.series.tag_set.iter().flatten();
        let mut record: Record =
            tags.map(|(name, value)| (name.to_string(), Cell::Text(value.to_string()))).collect();
        for (name, value) in &line.field_set {
            let cell = match value {
                FieldValue::I64(number) => Cell::Number(*number as f64),
                FieldValue::F64(number) => Cell::Number(*number),
                FieldValue::String(text) => Cell::Text(text.to_string()),
                FieldValue::Boolean(flag) => Cell::Flag(*flag),
                FieldValue::U64(number) => panic!("{number}u is not understood everywhere"),
            };
            record.insert(name.to_string(), cell);
        }
        record.insert("time".to_owned(), Cell::Number(line.timestamp.unwrap() as f64));
        record
    });
    let records = records.collect();
    (measurement, records)
}

fn json_record(value: &serde_json::Value) -> Record {
    let cells = value.as_object().unwrap().iter().map(|(name, value)| {
        let cell = match value {
            serde_json::Value::String(text) => Cell::Text(text.clone()),
            serde_json::Value::Bool(flag) => Cell::Flag(*flag),
            serde_json::Value::Number(number) => Cell::Number(number.as_f64().unwrap()),
            other => panic!("unexpected: {other}"),
        };
        (name.clone(), cell)
    });
    cells.collect()
}

pub(crate) fn json_lines(bytes: &[u8]) -> (String, Vec<Record>) {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(text.ends_with('\n'));
    let mut measurement = String::new();
    let records = text.lines().map(|line| {
        let mut record = json_record(&serde_json::from_str(line).unwrap());
        measurement = record.remove("measurement").unwrap().text().to_owned();
        record
    });
    let records = records.collect();
    (measurement, records)
}

pub(crate) fn bulk(bytes: &[u8]) -> (String, Vec<Record>) {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(text.ends_with('\n'), "the last line of a bulk has to end");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut measurement = String::new();
    let records = lines.chunks(2).map(|pair| {
        measurement = pair[0]["create"]["_index"].as_str().unwrap().to_owned();
        let mut record = json_record(&pair[1]);
        let time = record.remove("@timestamp").unwrap();
        record.insert("time".to_owned(), time);
        record
    });
    let records = records.collect();
    (measurement, records)
}

/// Loki's streams; times are in milliseconds again.
pub(crate) fn loki(bytes: &[u8]) -> (String, Vec<Record>) {
    let request: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let (mut measurement, mut records) = (String::new(), Vec::new());
    let mut seen = Vec::new();
    for stream in request["streams"].as_array().unwrap() {
        let mut labels = json_record(&stream["stream"]);
        assert!(!seen.contains(&labels), "a stream comes twice");
        seen.push(labels.clone());
        measurement = labels.remove("job").unwrap().text().to_owned();
        for entry in stream["values"].as_array().unwrap() {
            let nanos: u64 = entry[0].as_str().unwrap().parse().unwrap();
            let mut record = json_record(&serde_json::from_str(entry[1].as_str().unwrap()).unwrap());
            record.extend(labels.clone());
            record.insert("time".to_owned(), Cell::Number((nanos / 1_000_000) as f64));
            records.push(record);
        }
    }
    (measurement, records)
}

fn attributes(attributes: &[KeyValue]) -> Record {
    let cells = attributes.iter().map(|attribute| {
        let cell = match attribute.value.as_ref().and_then(|value| value.value.as_ref()).unwrap() {
            any_value::Value::StringValue(text) => Cell::Text(text.clone()),
            any_value::Value::BoolValue(flag) => Cell::Flag(*flag),
            any_value::Value::IntValue(number) => Cell::Number(*number as f64),
            any_value::Value::DoubleValue(number) => Cell::Number(*number),
            other => panic!("unexpected: {other:?}"),
        };
        (attribute.key.clone(), cell)
    });
    cells.collect()
}

fn service(resource: Option<&Resource>) -> Cell {
    attributes(&resource.unwrap().attributes).remove("service.name").unwrap()
}

fn millis(nanos: u64) -> Cell {
    assert_eq!(nanos % 1_000_000, 0);
    Cell::Number((nanos / 1_000_000) as f64)
}

/// OpenTelemetry's points.
pub(crate) fn otlp_metrics(bytes: &[u8]) -> (String, Vec<Record>) {
    let request = ExportMetricsServiceRequest::decode(bytes).unwrap();
    assert_eq!(request.encoded_len(), bytes.len(), "it is as short as it can be");
    let (mut measurement, mut records) = (String::new(), Vec::new());
    for resource in &request.resource_metrics {
        assert_eq!(service(resource.resource.as_ref()).text(), "plimsoll");
        for metric in resource.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
            let (prefix, name) = metric.name.split_once('.').unwrap();
            measurement = prefix.to_owned();
            let Some(metric::Data::Gauge(gauge)) = &metric.data else { panic!("{:?}", metric.data) };
            for point in &gauge.data_points {
                let mut record = attributes(&point.attributes);
                let Some(number_data_point::Value::AsDouble(value)) = point.value else {
                    panic!("{point:?}")
                };
                record.insert("value".to_owned(), Cell::Number(value));
                record.insert("metric_name".to_owned(), Cell::Text(name.to_owned()));
                record.insert("time".to_owned(), millis(point.time_unix_nano));
                records.push(record);
            }
        }
    }
    (measurement, records)
}

/// OpenTelemetry's log records, and events as such.
pub(crate) fn otlp_logs(bytes: &[u8], is_event: bool) -> Vec<Record> {
    let request = ExportLogsServiceRequest::decode(bytes).unwrap();
    assert_eq!(request.encoded_len(), bytes.len(), "it is as short as it can be");
    let mut records = Vec::new();
    for resource in &request.resource_logs {
        for log in resource.scope_logs.iter().flat_map(|scope| &scope.log_records) {
            let mut record = attributes(&log.attributes);
            let (owner, level) = if is_event { ("source", "severity") } else { ("service", "level") };
            record.insert(owner.to_owned(), service(resource.resource.as_ref()));
            record.insert(level.to_owned(), Cell::Text(log.severity_text.clone()));
            let number = match log.severity_text.to_lowercase().as_str() {
                "debug" => 5,
                "info" => 9,
                "warn" | "warning" => 13,
                "error" => 17,
                "fatal" | "critical" => 21,
                other => panic!("{other}"),
            };
            assert_eq!(log.severity_number, number);
            record.insert("time".to_owned(), millis(log.time_unix_nano));
            if is_event {
                record.insert("event_type".to_owned(), Cell::Text(log.event_name.clone()));
            } else {
                let Some(AnyValue { value: Some(any_value::Value::StringValue(body)) }) = &log.body else {
                    panic!("{:?}", log.body)
                };
                record.insert("message".to_owned(), Cell::Text(body.clone()));
            }
            records.push(record);
        }
    }
    records
}

/// OpenTelemetry's spans.
pub(crate) fn otlp_spans(bytes: &[u8]) -> Vec<Record> {
    spans(bytes, true)
}

/// OpenTelemetry's spans where nothing is said of their kind.
pub(crate) fn otlp_spans_of_no_kind(bytes: &[u8]) -> Vec<Record> {
    spans(bytes, false)
}

fn spans(bytes: &[u8], has_kind: bool) -> Vec<Record> {
    let request = ExportTraceServiceRequest::decode(bytes).unwrap();
    assert_eq!(request.encoded_len(), bytes.len(), "it is as short as it can be");
    let hex = |bytes: &[u8]| Cell::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
    let mut records = Vec::new();
    for resource in &request.resource_spans {
        for span in resource.scope_spans.iter().flat_map(|scope| &scope.spans) {
            let mut record = attributes(&span.attributes);
            record.entry("http_method".to_owned()).or_insert(Cell::Text(String::new()));
            record.insert("service_name".to_owned(), service(resource.resource.as_ref()));
            record.insert("trace_id".to_owned(), hex(&span.trace_id));
            record.insert("span_id".to_owned(), hex(&span.span_id));
            record.insert("parent_span_id".to_owned(), hex(&span.parent_span_id));
            record.insert("operation_name".to_owned(), Cell::Text(span.name.clone()));
            let kinds = ["", "internal", "server", "client", "producer", "consumer"];
            assert_eq!(has_kind, span.kind != 0);
            if has_kind {
                record.insert("span_kind".to_owned(), Cell::Text(kinds[span.kind as usize].to_owned()));
            }
            let duration = span.end_time_unix_nano - span.start_time_unix_nano;
            record.insert("duration_ns".to_owned(), Cell::Number(duration as f64));
            let code = span.status.as_ref().map_or(0, |status| status.code);
            assert!([0, 2].contains(&code));
            record.insert("error".to_owned(), Cell::Flag(code == 2));
            record.insert("time".to_owned(), millis(span.start_time_unix_nano));
            records.push(record);
        }
    }
    records
}

/// Returns the number of records in an OpenTelemetry request, of any content.
pub(crate) fn otlp_count(bytes: &[u8], kind: Kind) -> usize {
    match kind {
        Kind::Metrics => {
            let request = ExportMetricsServiceRequest::decode(bytes).unwrap();
            let metrics = request.resource_metrics[0].scope_metrics[0].metrics.iter();
            let points = metrics.map(|metric| match &metric.data {
                Some(metric::Data::Gauge(gauge)) => gauge.data_points.len(),
                other => panic!("{other:?}"),
            });
            points.sum()
        }
        Kind::Logs | Kind::Events => {
            let request = ExportLogsServiceRequest::decode(bytes).unwrap();
            request.resource_logs.iter().map(|resource| resource.scope_logs[0].log_records.len()).sum()
        }
        Kind::Traces => {
            let request = ExportTraceServiceRequest::decode(bytes).unwrap();
            request.resource_spans.iter().map(|resource| resource.scope_spans[0].spans.len()).sum()
        }
    }
}

/// Prometheus remote write 1.0, after <https://prometheus.io/docs/specs/prw/remote_write_spec/>.
#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

/// Prometheus's series, of a batch that is still compressed; a metric is called as its measurement and its
/// type.
pub(crate) fn remote_write(bytes: &[u8], measurement: &str) -> Vec<Record> {
    let raw = snap::raw::Decoder::new().decompress_vec(bytes).unwrap();
    let request = WriteRequest::decode(&raw[..]).unwrap();
    assert_eq!(request.encoded_len(), raw.len(), "it is as short as it can be");
    let records = request.timeseries.iter().map(|series| {
        assert!(series.labels.is_sorted_by(|one, other| one.name < other.name), "{:?}", series.labels);
        let [sample] = &series.samples[..] else { panic!("{:?}", series.samples) };
        let mut record = Record::new();
        for label in &series.labels {
            record.insert(label.name.clone(), Cell::Text(label.value.clone()));
        }
        let name = record.remove("__name__").unwrap();
        let type_ = name.text().strip_prefix(measurement).unwrap().strip_prefix('_').unwrap();
        record.insert("metric_name".to_owned(), Cell::Text(type_.to_owned()));
        record.insert("value".to_owned(), Cell::Number(sample.value));
        record.insert("time".to_owned(), Cell::Number(sample.timestamp as f64));
        record
    });
    records.collect()
}
