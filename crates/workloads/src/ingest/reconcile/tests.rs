use plimsoll_synth::Spec;

use super::super::{DEFAULT_URL, Stream};
use super::*;

fn load(url: &str, format: Format, kinds: &[Kind]) -> IngestLoad {
    let stream =
        |&kind: &Kind| Stream { spec: Spec { kind, format, ..Spec::default() }, records_per_second: None };
    IngestLoad {
        url: url.to_owned(),
        database: None,
        streams: kinds.iter().map(stream).collect(),
        batches: None,
        connections: None,
        seconds: None,
        thresholds: Vec::new(),
    }
}

fn names(load: &IngestLoad, own: bool) -> Vec<String> {
    load.checks(own).unwrap().into_iter().map(|check| check.name).collect()
}

#[test]
fn records_are_where_their_format_puts_them() {
    use Format::{Columnar, ElasticBulk, InfluxLine, JsonLines, LokiPush, OtlpProtobuf, RemoteWrite, Row};
    let to = |format| load(DEFAULT_URL, format, &[Kind::Logs]);
    for (format, here) in [
        (Columnar, "default.application_logs"),
        (Row, "default.application_logs"),
        (InfluxLine, "default.application_logs"),
        (OtlpProtobuf, "otlp.logs"),
        (RemoteWrite, "prometheus.samples"),
        (LokiPush, "loki.entries"),
        (ElasticBulk, "elasticsearch.documents"),
        (JsonLines, "jsonlines.lines"),
    ] {
        assert_eq!(names(&to(format), true), [here]);
    }
    // Another store of that format.
    assert_eq!(to(Columnar).store(false).unwrap(), Store::Arc);
    let metrics = load("http://h:9090", RemoteWrite, &[Kind::Metrics]);
    assert_eq!(
        (metrics.store(false).unwrap(), names(&metrics, false)),
        (Store::Prometheus, vec!["system_metrics".to_owned()])
    );
    let influx = load("http://h:8086/write?precision=ms&db=load", InfluxLine, &[Kind::Metrics]);
    assert_eq!(
        (influx.store(false).unwrap(), names(&influx, false)),
        (Store::InfluxDb, vec!["load.system_metrics".to_owned()])
    );
    let bucket = load("http://h:8086/api/v2/write?bucket=load/autogen", InfluxLine, &[Kind::Logs]);
    assert_eq!(names(&bucket, false), ["load.application_logs"]);
    for format in [OtlpProtobuf, LokiPush, ElasticBulk, JsonLines] {
        let error = to(format).checks(false).unwrap_err();
        assert!(error.to_string().contains(format.name()) && error.hint().contains("--verify"), "{error}");
    }
}

#[test]
fn streams_that_come_to_one_table_are_one_check() {
    let both = load(DEFAULT_URL, Format::OtlpProtobuf, &[Kind::Logs, Kind::Traces, Kind::Events]);
    let checks = both.checks(true).unwrap();
    let of = |check: &Check| (check.name.clone(), check.streams.clone());
    let expected = [("otlp.logs".to_owned(), vec![0, 2]), ("otlp.spans".to_owned(), vec![1])];
    assert_eq!(checks.iter().map(of).collect::<Vec<_>>(), expected);
    // One stream may have several tables.
    let mut host = load(DEFAULT_URL, Format::Columnar, &[Kind::Metrics]);
    host.streams[0].spec.shape = Shape::Host;
    host.database = Some("load-1".to_owned());
    let checks = host.checks(false).unwrap();
    assert_eq!(checks.len(), 1);
    let steps = checks[0].steps(5, 9, true);
    assert!(steps.len() > 1 && steps.iter().all(|step| step["headers"]["x-arc-database"] == "load-1"));
    let answer: (u16, &[u8]) = (200, br#"{"data":[[7]]}"#);
    let found = checks[0].found(&vec![answer; steps.len()]).unwrap();
    assert_eq!(found, Found { records: 7 * steps.len() as u64, duplicates: None });
}

#[test]
fn each_store_is_asked_in_its_language() {
    let step_at = |load: &IngestLoad, own, ids| load.checks(own).unwrap()[0].steps(100, 130, ids).remove(0);
    let step = |load: &IngestLoad, ids| step_at(load, false, ids);
    let mut logs = load(DEFAULT_URL, Format::Columnar, &[Kind::Logs]);
    assert_eq!(step(&logs, false)["json"]["sql"], "SELECT COUNT(*) FROM application_logs");
    let sql = step(&logs, true)["json"]["sql"].as_str().unwrap().to_owned();
    assert!(sql.contains("epoch_ms(time) >= 100000 THEN request_id"), "{sql}");
    logs.streams[0].spec.measurement = Some("my-logs".to_owned());
    assert_eq!(step_at(&logs, true, false)["json"]["sql"], "SELECT COUNT(*) FROM \"my-logs\"");
    // Arc has no quoted names.
    assert!(logs.checks(false).unwrap_err().to_string().contains("my-logs"));
    let influx = load("http://h/write?db=a", Format::InfluxLine, &[Kind::Logs]);
    assert_eq!(
        step(&influx, true)["get"],
        "/query?db=a&q=SELECT%20COUNT%28%2A%29%20FROM%20%22application_logs%22"
    );
    let prometheus = load("http://h", Format::RemoteWrite, &[Kind::Metrics]);
    let asked = step(&prometheus, true)["get"].as_str().unwrap().to_owned();
    assert!(asked.starts_with("/api/v1/query?time=3730&query=%28sum%28count_over_time"), "{asked}");
    assert!(asked.contains("system_metrics_temperature") && asked.contains("%5B3630s%5D"), "{asked}");
}

#[test]
fn answers_are_read_as_their_store_writes_them() {
    let found = |load: &IngestLoad, status: u16, body: &str| {
        load.checks(false).unwrap()[0].found(&[(status, body.as_bytes())])
    };
    let arc = load(DEFAULT_URL, Format::Columnar, &[Kind::Logs]);
    let influx = load("http://h/write?db=a", Format::InfluxLine, &[Kind::Logs]);
    let prometheus = load("http://h", Format::RemoteWrite, &[Kind::Metrics]);
    for (load, body, records, duplicates) in [
        (&arc, r#"{"success":true,"columns":["n"],"data":[[26]]}"#, 26, None),
        (&arc, r#"{"success":true,"columns":["n","d"],"data":[[26,"2"]]}"#, 26, Some(2)),
        (&arc, r#"{"success":true,"columns":[],"data":[]}"#, 0, None),
        (&influx, r#"{"results":[{"statement_id":0}]}"#, 0, None),
        (
            &influx,
            r#"{"results":[{"series":[{"columns":["time","count_a","count_b"],
                "values":[["1970-01-01T00:00:00Z",4,5]]}]}]}"#,
            5,
            None,
        ),
        (&prometheus, r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#, 0, None),
        (
            &prometheus,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"value":[1.5,"3000"]}]}}"#,
            3_000,
            None,
        ),
    ] {
        assert_eq!(found(load, 200, body), Ok(Found { records, duplicates }), "{body}");
    }
    for (load, status, body) in [
        (&arc, 401, r#"{"error":"Authentication required","success":false}"#),
        (&arc, 200, "no JSON"),
        (&arc, 200, r#"{"data":[["many"]]}"#),
        (&influx, 200, r#"{"results":[{"error":"database not found: a"}]}"#),
        (&prometheus, 200, r#"{"status":"success"}"#),
    ] {
        let error = found(load, status, body).unwrap_err();
        assert!(error.contains(&status.to_string()) && error.contains(body), "{error}");
    }
}
