use plimsoll_synth::Spec;

use super::super::{DEFAULT_URL, Stream};
use super::*;

fn load(url: &str, format: Format, kinds: &[Kind]) -> IngestLoad {
    let stream = |&kind: &Kind| Stream {
        spec: Spec { kind, format, ..Spec::default() },
        database: None,
        records_per_second: None,
    };
    IngestLoad {
        url: url.to_owned(),
        streams: kinds.iter().map(stream).collect(),
        batches: None,
        connections: None,
        seconds: None,
        thresholds: Vec::new(),
    }
}

fn names(load: &IngestLoad, interface: Interface) -> Vec<String> {
    load.checks(interface).unwrap().into_iter().map(|check| check.name).collect()
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
        assert_eq!(names(&to(format), Interface::Own), [here]);
    }
    // Another store of that format.
    assert_eq!(to(Columnar).store(Interface::Other).unwrap(), Store::Arc);
    let metrics = load("http://h:9090", RemoteWrite, &[Kind::Metrics]);
    assert_eq!(
        (metrics.store(Interface::Other).unwrap(), names(&metrics, Interface::Other)),
        (Store::Prometheus, vec!["system_metrics".to_owned()])
    );
    let influx = load("http://h:8086/write?precision=ms&db=load", InfluxLine, &[Kind::Metrics]);
    assert_eq!(
        (influx.store(Interface::Other).unwrap(), names(&influx, Interface::Other)),
        (Store::InfluxDb, vec!["load.system_metrics".to_owned()])
    );
    let bucket = load("http://h:8086/api/v2/write?bucket=load/autogen", InfluxLine, &[Kind::Logs]);
    assert_eq!(names(&bucket, Interface::Other), ["load.application_logs"]);
    for format in [OtlpProtobuf, LokiPush, ElasticBulk, JsonLines] {
        let error = to(format).checks(Interface::Other).unwrap_err();
        assert!(error.to_string().contains(format.name()) && error.hint().contains("--verify"), "{error}");
    }
}

#[test]
fn streams_that_come_to_one_table_are_one_check() {
    let both = load(DEFAULT_URL, Format::OtlpProtobuf, &[Kind::Logs, Kind::Traces, Kind::Events]);
    let checks = both.checks(Interface::Own).unwrap();
    let of = |check: &Check| (check.name.clone(), check.streams.clone());
    let expected = [("otlp.logs".to_owned(), vec![0, 2]), ("otlp.spans".to_owned(), vec![1])];
    assert_eq!(checks.iter().map(of).collect::<Vec<_>>(), expected);
    // One stream may have several tables.
    let mut host = load(DEFAULT_URL, Format::Columnar, &[Kind::Metrics]);
    host.streams[0].spec.shape = Shape::Host;
    host.streams[0].database = Some("load-1".to_owned());
    let checks = host.checks(Interface::Other).unwrap();
    assert_eq!(checks.len(), 1);
    let steps = checks[0].steps(Window { since_s: 5, until_s: 9 }, true);
    assert!(steps.len() > 1 && steps.iter().all(|step| step["headers"]["x-arc-database"] == "load-1"));
    let answer: (u16, &[u8]) = (200, br#"{"data":[[7,1,-5,9]]}"#);
    let found = checks[0].found(&vec![answer; steps.len()]).unwrap();
    let count = steps.len() as u64;
    let expected = TableContents {
        records: 7 * count,
        duplicates: None,
        misdated: Some(count),
        times_ms: Some((-5, 9)),
    };
    assert_eq!(found, expected);
}

#[test]
fn each_store_is_asked_in_its_language() {
    let window = Window { since_s: 100, until_s: 3_730 };
    let step_at =
        |load: &IngestLoad, interface, ids| load.checks(interface).unwrap()[0].steps(window, ids).remove(0);
    let step = |load: &IngestLoad, ids| step_at(load, Interface::Other, ids);
    let mut logs = load(DEFAULT_URL, Format::Columnar, &[Kind::Logs]);
    assert_eq!(
        step(&logs, false)["json"]["sql"],
        "SELECT COUNT(*), COUNT(CASE WHEN epoch_ms(time) NOT BETWEEN 100000 AND 3730000 THEN 1 END), \
         epoch_ms(MIN(time)), epoch_ms(MAX(time)) FROM application_logs"
    );
    let sql = step(&logs, true)["json"]["sql"].as_str().unwrap().to_owned();
    assert!(sql.contains("epoch_ms(time) >= 100000 THEN request_id"), "{sql}");
    logs.streams[0].spec.measurement = Some("my-logs".to_owned());
    let sql = step_at(&logs, Interface::Own, false)["json"]["sql"].as_str().unwrap().to_owned();
    assert!(sql.ends_with(" FROM \"my-logs\""), "{sql}");
    // Arc has no quoted names.
    assert!(logs.checks(Interface::Other).unwrap_err().to_string().contains("my-logs"));
    let influx = load("http://h/write?db=a", Format::InfluxLine, &[Kind::Logs]);
    let asked = step(&influx, true)["get"].as_str().unwrap().to_owned();
    for part in [
        "/query?db=a&epoch=ms&q=SELECT%20COUNT%28%2A%29%20FROM%20%22application_logs%22%3B%20",
        "WHERE%20time%20%3C%20100s",
        "WHERE%20time%20%3E%203730s",
        "ORDER%20BY%20time%20DESC%20LIMIT%201",
    ] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
    let prometheus = load("http://h", Format::RemoteWrite, &[Kind::Metrics]);
    let asked = step(&prometheus, true)["get"].as_str().unwrap().to_owned();
    assert!(asked.starts_with("/api/v1/query?time=3730&query=%28sum%28count_over_time"), "{asked}");
    assert!(asked.contains("system_metrics_temperature") && asked.contains("%5B3630s%5D"), "{asked}");
}

#[test]
fn what_a_server_is_shows_in_its_answers() {
    let of =
        |answers: [(u16, &str); 2]| Interface::of(&answers.map(|(status, body)| (status, body.as_bytes())));
    let success = r#"{"success":true,"columns":["1"],"data":[[1]]}"#;
    assert_eq!(of([(200, "{}"), (200, success)]), Interface::Own);
    for arc in [(200, success), (401, r#"{"error":"Authentication required","success":false}"#)] {
        assert_eq!(of([(404, "Cannot GET /plimsoll/acknowledged"), arc]), Interface::Arc);
    }
    for other in [(404, "404 page not found"), (200, "<html>"), (405, r#"{"status":"error"}"#)] {
        assert_eq!(of([(404, "404 page not found"), other]), Interface::Other);
    }
    // Arc takes the paths of InfluxDB.
    let bucket = load("http://h/api/v2/write?bucket=b&precision=ms", Format::InfluxLine, &[Kind::Logs]);
    assert_eq!(bucket.store(Interface::Arc).unwrap(), Store::Arc);
    assert_eq!(names(&bucket, Interface::Arc), ["b.application_logs"]);
    assert_eq!(bucket.store(Interface::Other).unwrap(), Store::InfluxDb);
}

#[test]
fn times_may_run_ahead_by_what_was_sent() {
    let mut load = load(DEFAULT_URL, Format::Columnar, &[Kind::Metrics]);
    load.streams[0].spec.step_ns = Some(1_000_000);
    assert_eq!(load.window(1_000, 1_010, 60), Window { since_s: 1_000, until_s: 1_010 + 60 + AHEAD_S });
    load.streams[0].spec.start_ms = Some(500_000);
    assert_eq!(load.window(1_000, 1_010, 0), Window { since_s: 500, until_s: 1_010 + AHEAD_S });
    load.streams[0].spec.start_ms = Some(9_000_000);
    assert_eq!(load.window(1_000, 1_010, 0), Window { since_s: 9_000, until_s: 9_000 + AHEAD_S });
}

#[test]
fn answers_are_read_as_their_store_writes_them() {
    let found = |load: &IngestLoad, status: u16, body: &str| {
        load.checks(Interface::Other).unwrap()[0].found(&[(status, body.as_bytes())])
    };
    let arc = load(DEFAULT_URL, Format::Columnar, &[Kind::Logs]);
    let influx = load("http://h/write?db=a", Format::InfluxLine, &[Kind::Logs]);
    let prometheus = load("http://h", Format::RemoteWrite, &[Kind::Metrics]);
    let of =
        |records, misdated, times_ms, duplicates| TableContents { records, duplicates, misdated, times_ms };
    for (load, body, expected) in [
        (&arc, r#"{"success":true,"data":[[26,0,5,9]]}"#, of(26, Some(0), Some((5, 9)), None)),
        (&arc, r#"{"success":true,"data":[[26,"3",-5,9,"2"]]}"#, of(26, Some(3), Some((-5, 9)), Some(2))),
        (&arc, r#"{"success":true,"data":[[0,0,null,null]]}"#, of(0, Some(0), None, None)),
        (&arc, r#"{"success":true,"columns":[],"data":[]}"#, TableContents::default()),
        (
            &influx,
            r#"{"results":[{"statement_id":0},{"statement_id":1},{"statement_id":2},{"statement_id":3},
                {"statement_id":4}]}"#,
            of(0, Some(0), None, None),
        ),
        (
            &influx,
            r#"{"results":[{"series":[{"columns":["time","count_a","count_b"],"values":[[0,4,5]]}]},
                {"series":[{"values":[[0,1,2]]}]},{"series":[{"values":[[0,1,null]]}]},
                {"series":[{"values":[[1795,"x"]]}]},{"series":[{"values":[[1900,"y"]]}]}]}"#,
            of(5, Some(3), Some((1_795, 1_900)), None),
        ),
        (
            &prometheus,
            r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#,
            of(0, None, None, None),
        ),
        (
            &prometheus,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"value":[1.5,"3000"]}]}}"#,
            of(3_000, None, None, None),
        ),
    ] {
        assert_eq!(found(load, 200, body), Ok(expected), "{body}");
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
