//! Figures that monitoring systems get while a run goes on, compared with the result in the end.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use prost::Message as _;
use serde_json::Value;

use crate::loopback::process::{Process, plimsoll, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count};

/// The body of a request with a length.
fn body(stream: &mut TcpStream) -> Vec<u8> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut chunk).expect("it sends");
        bytes.extend_from_slice(&chunk[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            assert!(read > 0, "it ended within its head");
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|text| text.parse().ok()).expect("it has a length");
        if bytes.len() >= end + 4 + length {
            return bytes.split_off(end + 4);
        }
    }
}

/// A receiver of OTLP that answers with these bytes, or not at all without any.
fn receiver(reply: &'static str) -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let (send, requests) = channel();
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            if send.send(body(&mut stream)).is_err() {
                return;
            }
            match reply {
                "" => silent.push(stream),
                // A client that has gone does not want the reply.
                reply => drop(stream.write_all(reply.as_bytes())),
            }
        }
    });
    (url, requests)
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn label<'a>(attributes: &'a [KeyValue], name: &str) -> &'a str {
    let value =
        attributes.iter().find(|pair| pair.key == name).and_then(|pair| pair.value.as_ref()?.value.as_ref());
    match value {
        Some(any_value::Value::StringValue(text)) => text,
        _ => "",
    }
}

/// The counts of the measured part: of each metric, and of each metric with the outcome or the class.
fn counts(request: &[u8]) -> BTreeMap<String, u64> {
    let request = ExportMetricsServiceRequest::decode(request).expect("it is such a request");
    let mut counts = BTreeMap::new();
    for metric in &request.resource_metrics[0].scope_metrics[0].metrics {
        let mut add = |attributes: &[KeyValue], count: u64| {
            if label(attributes, "phase") != "warmup" {
                *counts.entry(metric.name.clone()).or_default() += count;
                for of in ["outcome", "class", "step"].map(|name| label(attributes, name)) {
                    *counts.entry(format!("{}/{of}", metric.name)).or_default() += count;
                }
            }
        };
        match metric.data.as_ref().expect("it has data") {
            metric::Data::Sum(sum) => sum.data_points.iter().for_each(|point| {
                if let Some(number_data_point::Value::AsInt(count)) = point.value {
                    add(&point.attributes, count as u64);
                }
            }),
            metric::Data::ExponentialHistogram(times) => {
                times.data_points.iter().for_each(|point| add(&point.attributes, point.count));
            }
            metric::Data::Gauge(gauge) => {
                if let Some(number_data_point::Value::AsDouble(value)) = gauge.data_points[0].value {
                    counts.insert(metric.name.clone(), value as u64);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    counts
}

#[test]
fn the_last_export_is_what_the_result_says() {
    let sink = Sink::start("--fail 10%:503 --drop 2% --delay exponential:5ms");
    for load in ["--rate 500 -c 64 -t 2", "-c 8"] {
        let (url, requests) = receiver(TAKEN);
        let flags =
            format!("--warmup 300ms -d 1500ms --timeout 300ms --otlp={url} --otlp-interval 1s -o json");
        let finished = run(&format!("run {0}a {0}b {load} {flags}", sink.url()));
        let result = finished.result();
        assert_balance(&result);
        let all: Vec<Vec<u8>> = requests.try_iter().collect();
        assert!(all.len() >= 2, "one while it went on, one at its end");
        let export = &result["exports"][0];
        assert_eq!(
            (&export["sent"], &export["failed"]),
            (&Value::from(all.len()), &Value::from(0)),
            "{export}"
        );
        assert_eq!(export["to"], format!("{url}/v1/metrics"));
        let last = counts(all.last().expect("there is one"));
        for (name, expected) in [
            ("plimsoll.requests_started", account(&result, "started")),
            ("plimsoll.requests/ok", account(&result, "ok")),
            ("plimsoll.requests/failed", account(&result, "failed")),
            ("plimsoll.requests/timed_out", account(&result, "timed_out")),
            ("plimsoll.errors/status_5xx", count(&result, "/errors/status_5xx")),
            ("plimsoll.response_time", count(&result, "/response_time/count")),
            ("plimsoll.service_time", count(&result, "/service_time/count")),
            ("plimsoll.sent", count(&result, "/bytes/sent")),
            ("plimsoll.received", count(&result, "/bytes/received")),
            ("plimsoll.valid", u64::from(result["verdict"]["valid"] == true)),
            ("plimsoll.in_flight", 0),
        ] {
            assert_eq!(last.get(name), Some(&expected), "{load} {name}: {last:?}");
        }
        for step in result["by_step"].as_array().expect("steps") {
            let name = format!("plimsoll.response_time/{}", step["step"].as_str().expect("a name"));
            assert_eq!(last[&name], count(step, "/response_time/count"), "{load} {name}");
        }
        // Counts only grow.
        let each: Vec<u64> = all.iter().map(|request| counts(request)["plimsoll.requests_started"]).collect();
        assert!(each.is_sorted(), "{each:?}");
    }
}

#[test]
fn a_receiver_that_takes_nothing_changes_no_figure_and_is_named() {
    let sink = Sink::start("");
    let dead = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        format!("http://{}", listener.local_addr().expect("it is bound"))
    };
    let (silent, _kept) = receiver("");
    let (broken, _refused) = receiver("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n");
    for (url, reason) in [
        (dead, "Connection refused"),
        (silent, "the receiver gave no answer in time"),
        (broken, "the receiver answered 500"),
    ] {
        let flags = format!("--rate 200 -d 1200ms --otlp={url} --otlp-interval 1s -o json");
        let finished = run(&format!("{} {flags}", sink.url()));
        let result = finished.result();
        assert_balance(&result);
        assert_eq!(account(&result, "scheduled"), 240, "every arrival of 1.2 s at 200/s");
        assert_eq!(account(&result, "ok"), 240, "{}", finished.stderr);
        let export = &result["exports"][0];
        let error = export["last_error"].as_str().unwrap_or_default();
        assert!(
            export["sent"] == 0 && export["failed"].as_u64() >= Some(1) && error.contains(reason),
            "{export}"
        );
        let warning = finished.stderr.lines().find(|line| line.starts_with("warning: ")).unwrap_or_default();
        assert!(warning.contains(reason) && warning.contains(&url), "{}", finished.stderr);
    }
}

/// Asks for the metrics of a run.
pub(crate) fn scrape(address: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request =
        format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\naccept: {accept}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it answers and closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_server_of_prometheus_is_told_while_the_run_goes_on() {
    let sink = Sink::start("--fail 10%:503");
    let args = format!("{} --rate 500 -d 30s --interval 100ms --prometheus 127.0.0.1:0 -o json", sink.url());
    let mut run = Process::start(plimsoll(&args));
    let line = run.stderr.wait_for("metrics: http://");
    let address = line.trim_start_matches("metrics: http://").trim_end_matches("/metrics").to_owned();
    let told = |text: &str| {
        let series = text.lines().filter(|line| line.starts_with("plimsoll_requests_total{"));
        series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum::<u64>()
    };
    // Every answer shows that the run goes on; without a run there are no answers.
    let mut asked = 1;
    let mut text = scrape(&address, "*/*");
    while told(&text) < 100 {
        text = scrape(&address, "*/*");
        asked += 1;
    }
    assert!(text.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4"), "{text}");
    for series in
        ["plimsoll_target_rate_per_second 500\n", "class=\"status_5xx\"", "plimsoll_run_info{version="]
    {
        assert!(text.contains(series), "{series}: {text}");
    }
    let protobuf =
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    assert!(scrape(&address, protobuf).contains("content-type: application/vnd.google.protobuf"));
    assert!(scrape(&address, "application/openmetrics-text").ends_with("# EOF\n"));
    run.signal("INT");
    let result = run.finish().result();
    assert_eq!(count(&result, "/exports/0/sent"), asked + 2);
    assert!(told(&text) <= account(&result, "ok") + account(&result, "failed"));
}
