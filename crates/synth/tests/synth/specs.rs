//! Problems of a spec are reported all at once, with advice.

use plimsoll_synth::{Compression, Format, Kind, Shape, Spec, Synthesizer, TimeUnit};

use crate::synth::spec;

/// `field: message (hint)` for each problem.
fn problems(spec: &Spec) -> Vec<String> {
    let problems = spec.validate().err().unwrap_or_default();
    assert_eq!(Synthesizer::new(spec, 1).err().unwrap_or_default(), problems);
    problems.iter().map(|problem| format!("{}: {problem} ({})", problem.field, problem.hint)).collect()
}

#[test]
fn every_problem_has_its_hint() {
    let table = [
        (
            r#"{"format":"remote-write","kind":"logs"}"#,
            "format: remote-write has no logs (format: columnar, row, influx-line, otlp-protobuf, loki-push, \
             elastic-bulk or json-lines)",
        ),
        (
            r#"{"format":"loki-push","kind":"metrics"}"#,
            "format: loki-push has no metrics (format: columnar, row, influx-line, otlp-protobuf, remote-write, \
             elastic-bulk or json-lines)",
        ),
        (
            r#"{"format":"elastic-bulk","compression":{"zstd":{"level":1}}}"#,
            "compression: elastic-bulk is not sent with zstd (compression: none or gzip)",
        ),
        (
            r#"{"format":"remote-write","compression":{"gzip":{"level":1}}}"#,
            "compression: remote-write is not sent with gzip (compression: snappy)",
        ),
        (
            r#"{"compression":"snappy"}"#,
            "compression: columnar is not sent with snappy (compression: none, gzip or zstd)",
        ),
        (
            r#"{"compression":{"gzip":{"level":0}}}"#,
            "compression: gzip has no level 0 (a level is from 1 to 9)",
        ),
        (
            r#"{"compression":{"zstd":{"level":20}}}"#,
            "compression: zstd has no level 20 (a level is from -7 to 19)",
        ),
        (
            r#"{"format":"remote-write","time_unit":"ns"}"#,
            "time_unit: remote-write has times in ms, not in ns (time_unit: ms)",
        ),
        (
            r#"{"format":"elastic-bulk","time_unit":"s"}"#,
            "time_unit: elastic-bulk has times in ms, not in s (time_unit: ms)",
        ),
        (
            r#"{"kind":"events","shape":"host"}"#,
            "shape: the shape host is one of metrics, not of events (shape: seed or small)",
        ),
        (
            r#"{"format":"otlp-protobuf","shape":"host"}"#,
            "shape: a record of the shape host has three values, and one of otlp-protobuf has one \
             (shape: seed or small)",
        ),
        (
            r#"{"batch_size":0}"#,
            "batch_size: a batch cannot have 0 records (batch_size is from 1 to 1000000)",
        ),
        (
            r#"{"measurement":"2fast"}"#,
            "measurement: `2fast` is not a measurement (a name begins with a letter and has letters, digits, \
             `_` and `-`, at most 64)",
        ),
        (
            r#"{"format":"elastic-bulk","measurement":"CPU"}"#,
            "measurement: Elasticsearch has no index `CPU` (measurement: cpu)",
        ),
        (
            r#"{"format":"remote-write","measurement":"a-b"}"#,
            "measurement: Prometheus has no metrics that begin with `a-b` (measurement: a_b)",
        ),
        (
            r#"{"step_ns":100000000000}"#,
            "step_ns: a batch of 1000 records 100000000000 ns apart is too long (a batch spans a day at most)",
        ),
        (r#"{"churn":1.5}"#, "churn: a churn of 1.5 is not a share (churn is from 0 to 1)"),
        (r#"{"services":5}"#, "services: metrics have no services (services are those of logs and traces)"),
        (
            r#"{"kind":"logs","services":0}"#,
            "services: there cannot be 0 services (services are from 1 to 100000)",
        ),
        (
            r#"{"kind":"logs","hosts":5}"#,
            "hosts: logs have no hosts (hosts is about series, which are metrics)",
        ),
        (
            r#"{"kind":"traces","churn":0.5}"#,
            "churn: traces have no churn (churn is about series, which are metrics)",
        ),
        (r#"{"hosts":0}"#, "hosts: there cannot be 0 hosts (hosts are from 1 to 2000000)"),
        (
            r#"{"hosts":10,"cardinality":71}"#,
            "cardinality: 10 hosts of 7 metrics have 70 series, not 71 (hosts: 11)",
        ),
        (
            r#"{"cardinality":2,"shape":"host"}"#,
            "cardinality: a cardinality of 2 is too small (cardinality is at least 3)",
        ),
        (r#"{"parents":-0.1}"#, "parents: -0.1 is not a share of spans (parents is from 0 to 1)"),
        (
            r#"{"spans_per_trace":0}"#,
            "spans_per_trace: a trace cannot have 0 spans (spans_per_trace is from 1 to 255)",
        ),
    ];
    for (json, expected) in table {
        assert_eq!(problems(&spec(json)), [expected], "{json}");
    }
}

#[test]
fn problems_are_said_all_at_once() {
    let many = Spec {
        format: Format::RemoteWrite,
        kind: Kind::Events,
        compression: Compression::Zstd { level: 99 },
        batch_size: 2_000_000,
        hosts: Some(3),
        churn: f64::NAN,
        ..Spec::default()
    };
    assert_eq!(problems(&many).len(), 6, "{:#?}", problems(&many));
}

#[test]
fn line_protocol_says_the_unit_of_its_times() {
    let said = |unit: &str, path: &str| {
        let spec = spec(&format!(r#"{{"format":"influx-line","time_unit":"{unit}"}}"#));
        let checked = spec.check_path(path).map_err(|problem| format!("{problem} ({})", problem.hint));
        (spec.path_with_precision(path), checked.err().unwrap_or_default())
    };
    let own = "/api/v1/write/line-protocol";
    assert_eq!(
        said("ms", own),
        (
            format!("{own}?precision=ms"),
            "times are written in ms, and without `precision` they are read in ns (add precision=ms to the path, \
             or write them in ns)"
                .to_owned()
        )
    );
    assert_eq!(said("s", "/write?db=x").0, "/write?db=x&precision=s");
    let other = said("ms", "/write?precision=ns&db=x");
    assert_eq!(other.0, "/write?precision=ns&db=x");
    assert_eq!(other.1, "times are written in ms, and `precision=ns` says another unit (precision=ms)");
    for (unit, path) in [
        ("ns", own),
        ("ns", "/write?precision=n"),
        ("us", "/write?precision=u"),
        ("us", "/api/v2/write?precision=us"),
        ("ms", "/write?precision=${unit}"),
        ("ms", "/write?${query}"),
    ] {
        assert_eq!(said(unit, path).1, "", "{unit} {path}");
    }
    let columnar = spec("{}");
    assert_eq!(columnar.path_with_precision("/take/it"), "/take/it");
    assert!(columnar.check_path("/take/it").is_ok());
}

#[test]
fn what_goes_with_a_request_fits_the_format() {
    let told = |json: &str| {
        let spec = spec(json);
        assert_eq!(problems(&spec), [""; 0]);
        let encoding = spec.content_encoding().unwrap_or("-");
        format!("{} {} {encoding}", spec.default_path(), spec.content_type())
    };
    assert_eq!(told("{}"), "/api/v1/write/msgpack application/msgpack -");
    assert_eq!(
        told(r#"{"compression":{"zstd":{"level":1}}}"#),
        "/api/v1/write/msgpack application/msgpack zstd"
    );
    assert_eq!(
        told(r#"{"format":"influx-line","time_unit":"us"}"#),
        "/api/v2/write?precision=us text/plain; charset=utf-8 -"
    );
    assert_eq!(told(r#"{"format":"otlp-protobuf","kind":"events"}"#), "/v1/logs application/x-protobuf -");
    assert_eq!(told(r#"{"format":"remote-write"}"#), "/api/v1/write application/x-protobuf snappy");
    assert_eq!(
        told(r#"{"format":"remote-write","compression":"snappy"}"#),
        told(r#"{"format":"remote-write"}"#)
    );
    assert_eq!(
        told(r#"{"format":"loki-push","kind":"logs","compression":{"gzip":{"level":1}}}"#),
        "/loki/api/v1/push application/json gzip"
    );
    assert_eq!(
        told(r#"{"format":"json-lines","kind":"logs"}"#),
        "/insert/jsonline?_time_field=time&_msg_field=message&_stream_fields=service application/x-ndjson -"
    );
    assert_eq!(told(r#"{"format":"elastic-bulk"}"#), "/_bulk application/x-ndjson -");
    assert_eq!(spec(r#"{"format":"remote-write"}"#).headers()[0].0, "X-Prometheus-Remote-Write-Version");
}

#[test]
fn a_spec_is_written_as_it_is_read_and_has_a_schema() {
    let written = Spec {
        kind: Kind::Traces,
        format: Format::JsonLines,
        compression: Compression::Gzip { level: 4 },
        shape: Shape::Small,
        services: Some(7),
        ..Spec::default()
    };
    let json = serde_json::to_string(&written).unwrap();
    assert_eq!(spec(&json), written);
    assert!(serde_json::from_str::<Spec>(r#"{"batchsize":1}"#).is_err());
    let schema = serde_json::to_value(schemars::schema_for!(Spec)).unwrap();
    assert!(
        schema["properties"]["cardinality"]["description"].as_str().unwrap().starts_with("Different series")
    );
}

/// The name that serde writes.
fn written(value: impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap();
    match value.as_object() {
        Some(fields) => fields.keys().next().unwrap().clone(),
        None => value.as_str().unwrap().to_owned(),
    }
}

#[test]
fn names_are_the_same_in_documents_and_elsewhere() {
    Kind::ALL.iter().for_each(|kind| assert_eq!(written(kind), kind.to_string()));
    Format::ALL.iter().for_each(|format| assert_eq!(written(format), format.to_string()));
    Shape::ALL.iter().for_each(|shape| assert_eq!(written(shape), shape.name()));
    TimeUnit::ALL.iter().for_each(|unit| assert_eq!(written(unit), unit.name()));
    let compressions = [
        Compression::None,
        Compression::Gzip { level: 1 },
        Compression::Zstd { level: 1 },
        Compression::Snappy,
    ];
    compressions.iter().for_each(|compression| assert_eq!(written(compression), compression.name()));
}

#[test]
fn measurements_are_told() {
    assert_eq!(spec("{}").measurements(), ["system_metrics"]);
    assert_eq!(spec(r#"{"shape":"host"}"#).measurements(), ["cpu", "mem", "disk"]);
    assert_eq!(spec(r#"{"shape":"host","measurement":"m"}"#).measurements(), ["m"]);
}
