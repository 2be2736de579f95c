//! Every format says the same of the same batch.

use std::io::Read as _;

use plimsoll_synth::{Compression, Format, Kind, Shape, Spec, TimeUnit};

use crate::synth::{Cell, Record, batch, decoders, spec};

/// Every spec of a format that is valid, with all shapes.
fn fitting(format: Format) -> Vec<Spec> {
    let kinds = Kind::ALL.into_iter().flat_map(|kind| Shape::ALL.map(|shape| (kind, shape)));
    let specs = kinds.map(|(kind, shape)| Spec { kind, shape, format, batch_size: 700, ..Spec::default() });
    specs.filter(|spec| spec.validate().is_ok()).collect()
}

/// Measurement and records of a batch with the data of a spec, sent in columns.
fn columns_of(spec: &Spec, index: u64) -> (String, Vec<Record>) {
    // Of the defaults, only the step depends on the format.
    let step_ns = Some(spec.step());
    let columnar = Spec { format: Format::Columnar, compression: Compression::None, step_ns, ..spec.clone() };
    decoders::columnar(&batch(&columnar, 5, index))
}

fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_cached_key(|record| format!("{record:?}"));
    records
}

fn assert_alike(spec: &Spec, decode: impl Fn(&[u8]) -> (String, Vec<Record>), is_grouped: bool) {
    for index in 0..4 {
        let (measurement, records) = decode(&batch(spec, 5, index));
        let (expected_measurement, expected) = columns_of(spec, index);
        assert_eq!(measurement, expected_measurement, "{spec:?}");
        assert_eq!(records.len(), 700);
        let (records, expected) =
            if is_grouped { (sorted(records), sorted(expected)) } else { (records, expected) };
        for (record, expected) in records.iter().zip(&expected) {
            assert_eq!(record, expected, "{spec:?}");
        }
    }
}

#[test]
fn columns_are_those_of_their_kind() {
    let names = |json| columns_of(&spec(json), 0).1[0].keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(names("{}"), "environment metric_name node region time value");
    assert_eq!(names(r#"{"shape":"host"}"#), "env host region time usage_idle usage_system usage_user");
    assert_eq!(
        names(r#"{"kind":"logs"}"#),
        "environment level message region request_id response_time_ms service status_code time"
    );
    assert_eq!(
        names(r#"{"kind":"traces"}"#),
        "duration_ns environment error http_method operation_name parent_span_id region service_name span_id \
         span_kind status_code time trace_id"
    );
    assert_eq!(
        names(r#"{"kind":"events"}"#),
        "amount duration_ms environment event_category event_type metadata resource_id severity source success time user_id"
    );
    assert_eq!(names(r#"{"shape":"small"}"#), "metric_name node time value");
    assert_eq!(names(r#"{"shape":"small","kind":"logs"}"#), "level message service time");
    assert_eq!(names(r#"{"shape":"small","kind":"events"}"#), "event_type severity source success time");
    assert_eq!(
        names(r#"{"shape":"small","kind":"traces"}"#),
        "duration_ns error operation_name parent_span_id service_name span_id time trace_id"
    );
}

#[test]
fn rows_say_what_columns_say() {
    let specs = fitting(Format::Row);
    assert_eq!(specs.len(), 9);
    specs.iter().for_each(|spec| assert_alike(spec, decoders::rows, false));
}

#[test]
fn lines_of_influxdb_say_what_columns_say() {
    let specs = fitting(Format::InfluxLine);
    assert_eq!(specs.len(), 9);
    specs.iter().for_each(|spec| assert_alike(spec, decoders::lines, false));
}

#[test]
fn json_lines_say_what_columns_say() {
    fitting(Format::JsonLines).iter().for_each(|spec| assert_alike(spec, decoders::json_lines, false));
}

#[test]
fn elasticsearch_s_bulks_say_what_columns_say() {
    fitting(Format::ElasticBulk).iter().for_each(|spec| assert_alike(spec, decoders::bulk, false));
}

#[test]
fn loki_s_streams_say_what_columns_say() {
    let specs = fitting(Format::LokiPush);
    assert_eq!(specs.len(), 4);
    specs.iter().for_each(|spec| assert_alike(spec, decoders::loki, true));
}

#[test]
fn opentelemetry_s_requests_say_what_columns_say() {
    let specs = fitting(Format::OtlpProtobuf);
    assert_eq!(specs.len(), 8);
    for spec in &specs {
        let measurement = spec.measurements()[0].to_owned();
        match spec.kind {
            Kind::Metrics => assert_alike(spec, decoders::otlp_metrics, true),
            Kind::Logs | Kind::Events => {
                let is_event = spec.kind == Kind::Events;
                let decode = |bytes: &[u8]| (measurement.clone(), decoders::otlp_logs(bytes, is_event));
                assert_alike(spec, decode, true);
            }
            Kind::Traces if spec.shape == Shape::Small => {
                // Fields that every span has and that are not columns of the shape.
                let decode = |bytes: &[u8]| {
                    let mut records = decoders::otlp_spans_of_no_kind(bytes);
                    records.iter_mut().for_each(|record| {
                        record.remove("http_method");
                    });
                    (measurement.clone(), records)
                };
                assert_alike(spec, decode, true);
            }
            Kind::Traces => {
                assert_alike(spec, |bytes| (measurement.clone(), decoders::otlp_spans(bytes)), true);
            }
        }
    }
}

#[test]
fn remote_writes_say_what_columns_say() {
    let specs = fitting(Format::RemoteWrite);
    assert_eq!(specs.len(), 2);
    for spec in &specs {
        let measurement = spec.measurements()[0].to_owned();
        let decode = |bytes: &[u8]| (measurement.clone(), decoders::remote_write(bytes, &measurement));
        assert_alike(spec, decode, false);
    }
}

#[test]
fn other_measurements_and_services_are_said_in_every_format() {
    let named = |json: &str| Spec { measurement: Some("other".to_owned()), batch_size: 700, ..spec(json) };
    let row = named(r#"{"format":"row","shape":"host"}"#);
    assert_alike(&row, decoders::rows, false);
    assert_eq!(columns_of(&row, 2).0, "other");
    assert_alike(&named(r#"{"format":"otlp-protobuf"}"#), decoders::otlp_metrics, true);
    assert_alike(&named(r#"{"format":"loki-push","kind":"logs","services":3}"#), decoders::loki, true);
    let services = named(r#"{"format":"influx-line","kind":"traces","services":45}"#);
    assert_alike(&services, decoders::lines, false);
    let records = columns_of(&services, 0).1;
    let mut names: Vec<&str> = records.iter().map(|record| record["service_name"].text()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 45);
    assert!(names.contains(&"api-gateway-2") && names.contains(&"order-service-3"));
}

#[test]
fn whatever_is_compressed_is_the_same_when_decompressed() {
    for kind in Kind::ALL {
        let plain = Spec { kind, ..Spec::default() };
        let raw = batch(&plain, 3, 9);
        let sent = |compression| batch(&Spec { compression, ..plain.clone() }, 3, 9);
        for level in 1..=9 {
            let sent = sent(Compression::Gzip { level });
            assert!(sent.len() < raw.len() && sent.starts_with(&[0x1f, 0x8b]));
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&sent[..]).read_to_end(&mut plain).unwrap();
            assert_eq!(plain, raw);
        }
        for level in [-7, -1, 0, 1, 3, 19] {
            let sent = sent(Compression::Zstd { level });
            assert!(sent.len() < raw.len() && sent.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
            assert_eq!(zstd::stream::decode_all(&sent[..]).unwrap(), raw);
        }
    }
}

#[test]
fn a_batch_tells_its_size_and_replaces_what_was_there() {
    for json in ["{}", r#"{"compression":{"gzip":{"level":1}}}"#, r#"{"format":"remote-write"}"#] {
        let mut synthesizer = plimsoll_synth::Synthesizer::new(&spec(json), 1).unwrap();
        let mut out = b"left over".repeat(100_000);
        let first = synthesizer.batch(0, crate::synth::NOW, &mut out);
        assert_eq!(out, batch(&spec(json), 1, 0));
        assert_eq!(first.records, 1_000);
        if json == "{}" {
            assert_eq!(first.raw_bytes, out.len() as u64);
        } else {
            assert!(first.raw_bytes > out.len() as u64);
        }
    }
}

#[test]
fn times_are_in_the_unit_and_a_step_apart() {
    for unit in TimeUnit::ALL {
        let spec = Spec { time_unit: unit, step_ns: Some(1_500_000), batch_size: 20, ..Spec::default() };
        let (_, records) = decoders::columnar(&batch(&spec, 1, 0));
        for (number, record) in (0..).zip(&records) {
            let expected = (crate::synth::NOW + number * 1_500_000) / unit.nanos();
            assert_eq!(record["time"], Cell::Number(expected as f64), "{unit:?}");
        }
        // Arc takes the unit from the size.
        let time = records[0]["time"].number();
        let guessed = [1e10, 1e13, 1e16].into_iter().filter(|&limit| time >= limit).count();
        assert_eq!(TimeUnit::ALL[guessed], unit);
        // Formats that require nanoseconds get them whatever the unit is.
        let logs = Spec { kind: Kind::Logs, format: Format::LokiPush, ..spec };
        let text = String::from_utf8(batch(&logs, 1, 0)).unwrap();
        assert!(text.contains("[\"1790000000000000000\",\""), "{text}");
    }
}

#[test]
fn sizes_around_those_where_encodings_change_can_be_decoded() {
    for kind in Kind::ALL {
        for batch_size in [1, 2, 15, 16, 17, 300, 65_535, 65_536] {
            let spec = Spec { kind, batch_size, step_ns: Some(1_000), ..Spec::default() };
            let (_, records) = decoders::columnar(&batch(&spec, 1, 0));
            assert_eq!(records.len(), batch_size as usize);
            if batch_size < 1_000 {
                let row = Spec { format: Format::Row, ..spec.clone() };
                assert_eq!(decoders::rows(&batch(&row, 1, 0)).1, records);
                let otlp = batch(&Spec { format: Format::OtlpProtobuf, ..spec }, 1, 0);
                let count = match kind {
                    Kind::Metrics => decoders::otlp_metrics(&otlp).1.len(),
                    Kind::Logs | Kind::Events => decoders::otlp_logs(&otlp, kind == Kind::Events).len(),
                    Kind::Traces => decoders::otlp_spans(&otlp).len(),
                };
                assert_eq!(count, batch_size as usize);
            }
        }
    }
}
