//! Thresholds on queries of a Prometheus server: every shape of an answer in every mode, by a server that
//! plays its part, and a real one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use plimsoll_testkit::{machine, skip};
use serde_json::{Value, json};

use crate::loopback::ingest_target::exchange;
use crate::loopback::process::{Finished, Folder, Process, plimsoll, run, run_beside};
use crate::loopback::sink::Sink;
use plimsoll_testkit::ports::lasting_addresses;

/// A reply: its status and its content, or none at all for an empty content.
pub(crate) type Reply = (u16, String);

/// A server that gives the replies of a list in their order, and the last one again and again.
pub(crate) struct Scripted {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
        let address = listener.local_addr().expect("it has an address").to_string();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut noted = noted.lock().expect("no test panics with it");
                let reply = replies.get(noted.len()).or(replies.last()).expect("there is one");
                noted.extend(answer(stream, reply));
            }
        });
        Self { address, asked }
    }

    /// One that has this to say before the load, and that about its end.
    pub(crate) fn saying(before: &Reply, then: &Reply) -> Self {
        Self::start(vec![before.clone(), then.clone()])
    }

    pub(crate) fn flags(&self, threshold: &str) -> String {
        format!("--prom-url http://{} --threshold {threshold}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no test panics with it").clone()
    }
}

/// Reads a request, replies, and returns its head.
fn answer(stream: TcpStream, (status, content): &Reply) -> Option<String> {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    if !content.is_empty() {
        let reply = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{content}",
            content.len()
        );
        // A client that gave up is its own affair.
        let _ = (&stream).write_all(reply.as_bytes());
    }
    (!head.is_empty()).then(|| head.join("\n"))
}

fn of(kind: &str, result: Value) -> Reply {
    (200, json!({"status": "success", "data": {"resultType": kind, "result": result}}).to_string())
}

/// An answer with series `http_errors{job="0"}`, `http_errors{job="1"}` and so on.
pub(crate) fn vector(values: &[&str]) -> Reply {
    let series = values.iter().enumerate().map(|(number, value)| {
        json!({"metric": {"__name__": "http_errors", "job": number.to_string()}, "value": [1, value]})
    });
    of("vector", series.collect())
}

fn error(status: u16, kind: &str, text: &str) -> Reply {
    (status, json!({"status": "error", "errorType": kind, "error": text}).to_string())
}

fn warned(values: &[&str]) -> Reply {
    let (status, content) = vector(values);
    let mut content: Value = serde_json::from_str(&content).expect("it is JSON");
    content["warnings"] = json!(["a store is away"]);
    (status, content.to_string())
}

const LOAD: &str = "-n 200 -c 2";

/// The only threshold of a run that ended by this code, unless a busy machine made it invalid.
fn judged(finished: &Finished, code: i32) -> Value {
    let result: Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", finished.stdout, finished.stderr));
    let expected = if result["verdict"]["valid"] == true { code } else { 3 };
    assert_eq!(finished.code, Some(expected), "{:#}", result["verdict"]);
    result
}

/// The answers about the end of the run, the exit codes, and what is said.
fn endings() -> Vec<(Reply, i32, &'static str)> {
    vec![
        (vector(&["0.5"]), 0, "0.5 of http_errors{job=\"0\"}"),
        (vector(&["0", "0.5"]), 0, "0.5 of http_errors{job=\"1\"}, the worst of 2 series"),
        (vector(&["0", "7", "3"]), 99, "7 of http_errors{job=\"1\"}, the worst of 3 series"),
        (vector(&["+Inf"]), 99, "+Inf of http_errors{job=\"0\"}"),
        (vector(&["NaN", "2"]), 99, "2 of http_errors{job=\"1\"}, the worst of 2 series"),
        (vector(&["NaN"]), 3, "the value of http_errors{job=\"0\"} is NaN, no number"),
        (vector(&[]), 3, "the query has no series: the answer is empty"),
        (warned(&["0"]), 3, "0 of http_errors{job=\"0\"}, the server warns: a store is away"),
        (of("scalar", json!([1, "0.25"])), 0, "0.25"),
        (of("scalar", json!([1, "2"])), 99, "2"),
        (of("string", json!([1, "0"])), 3, "the query gives a text, and no number"),
        (of("matrix", json!([])), 3, "the query gives ranges of values"),
        (error(400, "bad_data", "1:1: parse error"), 3, "refuses the query: bad_data: 1:1: parse error"),
        (
            error(503, "timeout", "query timed out"),
            3,
            "the Prometheus server answered 503: timeout: query timed",
        ),
        ((502, "<html>Bad Gateway".to_owned()), 3, "the server answered 502, and not as Prometheus does"),
        ((200, "hello".to_owned()), 3, "its answer is not one of Prometheus"),
        ((200, String::new()), 3, "the Prometheus server closed the connection without a response"),
    ]
}

#[test]
fn each_answer_about_the_end_of_a_run_is_judged_and_told() {
    let sink = Sink::start("");
    for (reply, code, seen) in endings() {
        let server = Scripted::saying(&vector(&["0"]), &reply);
        let flags = server.flags("prom(http_errors)<1");
        let result = judged(&run(&format!("{} {LOAD} {flags} -o json", sink.url())), code);
        let [threshold] = &**result["thresholds"].as_array().expect("thresholds") else {
            panic!("one was given")
        };
        assert_eq!(threshold["text"], "prom(http_errors)<1");
        assert_eq!(threshold["passed"], code == 0, "{seen}: {threshold:#}");
        let text = |place: &str| threshold.pointer(place).and_then(Value::as_str).unwrap_or_default();
        let (value, reason) = (text("/series/value"), text("/reason"));
        assert!(
            seen.contains(text("/observed/text")) && seen.contains(reason.trim_end_matches('…'))
                || reason.contains(seen),
            "{seen}: {threshold:#}"
        );
        assert_eq!(reason.is_empty(), code != 3, "{seen}: {threshold:#}");
        assert!(seen.starts_with(value) || code == 3, "{seen}: {threshold:#}");
        if result["verdict"]["valid"] == true {
            let cause = match code {
                0 => Value::Null,
                99 => json!("thresholds"),
                _ => json!("not_shown"),
            };
            assert_eq!(result["verdict"]["cause"], cause, "{:#}", result["verdict"]);
            let summary = result["verdict"]["summary"].as_str().unwrap_or_default();
            assert!(summary.contains(seen), "{seen}: {summary}");
        }
        let [before, after] = &*server.asked() else { panic!("{:?}", server.asked()) };
        assert!(before.starts_with("GET /api/v1/query?query=http%5Ferrors&time="), "{before}");
        // It is asked about the end of the measured part, by the clock of the run.
        let end = result["run"]["started_at_unix_ns"].as_f64().unwrap() / 1e9
            + result["duration_s"].as_f64().unwrap();
        let at: f64 =
            after.split_once("&time=").and_then(|(_, rest)| rest.split('&').next()?.parse().ok()).unwrap();
        assert!((at - end).abs() < 0.002, "{at} is not {end}");
    }
}

#[test]
fn what_cannot_be_asked_is_told_before_the_load() {
    let sink = Sink::telling("");
    for (reply, code, said) in [
        (
            error(
                400,
                "bad_data",
                "invalid parameter \"query\": 1:5: parse error: unclosed left parenthesis",
            ),
            2,
            "refuses the query: bad_data: invalid parameter \"query\": 1:5: parse error: unclosed",
        ),
        (error(422, "execution", "many-to-many matching"), 2, "refuses the query: execution: many-to-many"),
        (of("matrix", json!([])), 2, "the query gives ranges of values"),
        (of("string", json!([1, "x"])), 2, "the query gives a text"),
        (
            error(503, "unavailable", "starting"),
            1,
            "the Prometheus server answered 503: unavailable: starting",
        ),
        ((404, "404 page not found".to_owned()), 1, "the server answered 404, and not as Prometheus does"),
        ((401, "no".to_owned()), 1, "it wants other credentials than those of the URL"),
        ((200, "<html>".to_owned()), 1, "its answer is not one of Prometheus"),
        ((200, String::new()), 1, "closed the connection without a response"),
    ] {
        let server = Scripted::start(vec![reply]);
        let flags = server.flags("prom(http_errors)<1");
        run(&format!("{} {LOAD} {flags} -o json", sink.url())).assert_refused(code, said);
        assert_eq!(server.asked().len(), 1);
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = taken.local_addr().expect("an address").to_string();
    drop(taken);
    let url = sink.url();
    let query = "--threshold prom(up)<1";
    for (flags, code, said) in [
        (format!("{query} --prom-url http://{closed}"), 1, "cannot connect to"),
        (format!("{query} --prom-url ftp://{closed}"), 2, "unknown scheme"),
        (format!("{query} --prom-url ws://{closed}"), 2, "is not spoken to by ws"),
        (format!("{query} --prom-url http://{closed}/?a=b"), 2, "something behind its path"),
        (format!("{query} --prom-url http://"), 2, "--prom-url: "),
        (query.to_owned(), 2, "names no Prometheus server"),
        (format!("--prom-url http://{closed}"), 2, "--prom-url has no effect: no threshold is a query"),
        (
            format!("--prom-url http://{closed} --threshold prom(up)<1ms"),
            2,
            "`1ms` is not a limit for prom(up)",
        ),
    ] {
        run(&format!("{url} {LOAD} {flags} -o json")).assert_refused(code, said);
    }
    // Searches and comparisons of sides have no run whose end could be asked about.
    for (command, said) in [
        (
            format!("find {url} --slo prom(up)<1 --prom-url http://{closed}"),
            "prom(up)<1 cannot be searched for",
        ),
        (format!("ab {url} {url} --threshold prom(up)<1 --prom-url http://{closed}"), "has no place here"),
    ] {
        run(&command).assert_refused(2, said);
    }
}

#[test]
fn a_server_behind_a_path_and_credentials_is_asked_and_no_secret_is_told() {
    let sink = Sink::start("");
    let folder = Folder::new();
    let server = Scripted::start(vec![vector(&["0"])]);
    let plan = json!({
        "targets": {"t": sink.url()},
        "run": {"users": 1, "iterations": 50, "prom_url": format!("http://me:hush@{}/tenant/", server.address)},
        "thresholds": ["prom(sum by (job) (rate(http_errors{code!=\"200\"}[1m])))<=0", "failed==0"],
        "scenarios": [{"steps": [{"get": "/"}]}],
    });
    let file = folder.write("plan.json", plan.to_string());
    let result = judged(&run(&format!("run {file} -o json")), 0);
    assert!(!result.to_string().contains("hush"), "{result:#}");
    assert_eq!(
        result["thresholds"][0]["text"],
        "prom(sum by (job) (rate(http_errors{code!=\"200\"}[1m])))<=0"
    );
    for head in server.asked() {
        assert!(head.starts_with("GET /tenant/api/v1/query?query=sum%20by%20%28job%29"), "{head}");
        // base64("me:hush")
        assert!(head.contains("authorization: Basic bWU6aHVzaA=="), "{head}");
    }
    let explained = run_beside(&format!("explain {file} --print-plan"));
    assert!(!explained.stdout.contains("hush") && !explained.stderr.contains("hush"), "{explained:?}");
}

#[test]
fn every_report_has_the_series_that_decided() {
    let sink = Sink::start("");
    let folder = Folder::new();
    let server = Scripted::saying(&vector(&["0"]), &vector(&["0", "7.5"]));
    let [text, markdown, junit, page, json] =
        ["r.txt", "r.md", "r.xml", "r.html", "r.json"].map(|name| folder.file(name));
    let store = folder.file("runs.db");
    let flags = server.flags("prom(http_errors)<1");
    let outputs = format!(
        "--out text={text} --out markdown={markdown} --out junit={junit} --out json={json} --report {page}"
    );
    let finished = run(&format!("{} {LOAD} {flags} {outputs} --store {store} --name asked", sink.url()));
    assert!(matches!(finished.code, Some(99 | 3)), "{finished:?}");
    let shown = run_beside(&format!("show asked -o text --store {store}")).stdout;
    let again = run_beside(&format!("report {json} --file -")).stdout;
    let read = |file: &str| std::fs::read_to_string(file).expect("it was written");
    for (what, content) in [
        ("text", read(&text)),
        ("markdown", read(&markdown)),
        ("junit", read(&junit)),
        ("page", read(&page)),
        ("show", shown),
        ("report", again),
    ] {
        let plain = content.replace("&quot;", "\"").replace("\\_", "_").replace('\\', "");
        assert!(
            plain.contains("prom(http_errors)<1") || plain.contains("prom(http_errors)&lt;1"),
            "{what}: {content}"
        );
        for part in ["7.5", "http_errors{job=\"1\"}", "the worst of 2 series"] {
            assert!(plain.contains(part), "{what}: {part} is not in {content}");
        }
    }
}

#[test]
fn a_query_ends_a_run_and_is_asked_about_each_of_several() {
    let sink = Sink::start("");
    let server = Scripted::saying(&vector(&["0"]), &vector(&["5"]));
    let flags = server.flags("prom(http_errors)<1");
    // Ten minutes, if nothing ends it.
    let load = "-d 10m -c 2 --rate 200 --interval 100ms --abort-on-fail";
    let result = judged(&run(&format!("{} {load} {flags} -o json", sink.url())), 99);
    assert_eq!(result["run"]["ended_by_threshold"], "prom(http_errors)<1");
    assert_eq!(result["thresholds"][0]["ended_run"], true);
    assert_eq!(result["thresholds"][0]["series"]["value"], "5");
    // What it was ended by is not asked once more.
    assert_eq!(server.asked().len(), 2);

    let server = Scripted::start(vec![vector(&["0"])]);
    let flags = server.flags("prom(http_errors)<1");
    let repeated = run(&format!("{} {LOAD} {flags} --repeat 2 -o json", sink.url()));
    assert!(matches!(repeated.code, Some(0 | 3)), "{repeated:?}");
    assert_eq!(server.asked().len(), 4);
    let runs: Value = serde_json::from_str(&repeated.stdout).expect("it is JSON");
    let runs = runs["runs"].as_array().expect("runs");
    assert!(runs.iter().all(|run| run["thresholds"][0]["passed"] == true), "{runs:#?}");
    // One answer does for all thresholds on a query.
    let server = Scripted::start(vec![vector(&["0"])]);
    let flags = format!("{} --threshold prom(http_errors)>=0", server.flags("prom(http_errors)<1"));
    judged(&run(&format!("{} {LOAD} {flags} -o json", sink.url())), 0);
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn evidence_takes_answers_of_a_server_as_recorded() {
    let sink = Sink::start("");
    let folder = Folder::new();
    let file = folder.file("evidence.json");
    for (reply, code) in [(vector(&["0"]), 0), (vector(&["+Inf"]), 99), (vector(&[]), 3)] {
        let server = Scripted::saying(&vector(&["0"]), &reply);
        let flags = server.flags("prom(http_errors)<1");
        judged(&run(&format!("{} {LOAD} {flags} --evidence {file} -o json", sink.url())), code);
        let verified = run_beside(&format!("verify {file}"));
        assert_eq!(verified.code, Some(0), "{verified:?}");
        assert!(verified.stdout.contains("from outside of the record"), "{verified:?}");
        std::fs::remove_file(&file).expect("it was written");
    }
}

/// A Prometheus server that scrapes itself and another address five times a second; `None`, and a word on
/// stderr, if it is not installed.
fn prometheus(folder: &Folder, other: &str) -> Option<(Process, String)> {
    let [address] = lasting_addresses();
    let targets = format!("static_configs: [{{targets: ['{address}', '{other}']}}]");
    let config = folder.write(
        "prometheus.yml",
        format!(
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\n\
             scrape_configs: [{{job_name: own, {targets}}}]\n"
        ),
    );
    let mut command = Command::new("prometheus");
    command
        .arg(format!("--config.file={config}"))
        .arg(format!("--storage.tsdb.path={}", folder.file("data")))
        .arg(format!("--web.listen-address={address}"))
        .arg("--enable-feature=exemplar-storage");
    let Some(mut process) = Process::try_start(&mut command) else {
        skip::without_program("prometheus");
        return None;
    };
    process.stderr.wait_for("Server is ready to receive web requests");
    Some((process, address))
}

#[test]
fn a_real_prometheus_answers_for_itself() {
    let folder = Folder::new();
    let Some((_process, address)) = prometheus(&folder, "127.0.0.1:1") else { return };
    let healthy = "prometheus_http_requests_total{handler=\"/-/healthy\",code=\"200\"}";
    // On a busy machine the first look of the server at itself comes late.
    let series = "/api/v1/query?query=prometheus_http_requests_total%7Bhandler%3D%22%2F-%2Fhealthy%22%7D";
    let ask = |path: &str| exchange(&address, format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).1;
    ask("/-/healthy");
    while !ask(series).contains("instance") {}
    let load =
        format!("http://{address}/-/healthy --rate 200 -d 2s -c 2 --prom-url http://{address} -o json");
    for (threshold, code, seen) in [
        (
            format!("prom({healthy})<10"),
            99,
            " of prometheus_http_requests_total{code=\"200\", handler=\"/-/healthy\", instance=\"",
        ),
        (
            format!("prom(increase({healthy}[1m]))>10"),
            0,
            " of {code=\"200\", handler=\"/-/healthy\", instance=\"",
        ),
        ("prom(up{instance!=\"127.0.0.1:1\"})==1".to_owned(), 0, "1 of up{instance=\""),
        ("prom(vector(0)/0)<1".to_owned(), 3, "the value is NaN, no number"),
        ("prom(no_such_metric)<1".to_owned(), 3, "the query has no series"),
        ("prom(scalar(max(up)))<=1".to_owned(), 0, "1"),
    ] {
        let result = judged(&run(&format!("{load} --threshold {threshold}")), code);
        let summary = result["verdict"]["summary"].as_str().unwrap_or_default();
        assert!(summary.contains(seen) || result["verdict"]["valid"] == false, "{summary}");
    }
    for (query, said) in [
        ("rate(up)", "bad_data: invalid parameter \"query\": 1:6: parse error: expected type range vector"),
        ("up[1m]", "the query gives ranges of values"),
        ("\"text\"", "the query gives a text"),
        ("sum(up", "parse error: unclosed left parenthesis"),
    ] {
        run(&format!("{load} --threshold prom({query})<1")).assert_refused(2, said);
    }
}

#[test]
fn a_real_prometheus_keeps_the_traces_of_a_run() {
    let (folder, [served]) = (Folder::new(), lasting_addresses());
    let Some((_process, address)) = prometheus(&folder, &served) else { return };
    let sink = Sink::start("");
    let _turn = machine::load();
    // It ends as soon as there is something to see.
    let flags = format!("--trace-context --prometheus {served} --interval 100ms --threads 1 -o json");
    let mut run = Process::start(plimsoll(&format!("{} --rate 100 -d 60s {flags}", sink.url())));
    run.stderr.wait_for("metrics: http://");
    let path = "/api/v1/query_exemplars?query=plimsoll_response_time_seconds_bucket&start=0&end=4000000000";
    let ask = || {
        let (status, told) = exchange(&address, format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes());
        assert_eq!(status, 200, "{told}");
        serde_json::from_str::<Value>(&told).expect("it is JSON")["data"].clone()
    };
    let mut found = ask();
    while found.as_array().is_none_or(Vec::is_empty) {
        assert!(!run.has_ended(), "it ended without an exemplar");
        found = ask();
    }
    run.signal("INT");
    let result = run.finish().result();
    let slowest = result["by_step"][0]["slowest"][0]["trace_id"].as_str().expect("it has an id");
    for series in found.as_array().expect("series") {
        let limit = series["seriesLabels"]["le"].as_str().expect("a limit").replace("+Inf", "inf");
        for exemplar in series["exemplars"].as_array().expect("exemplars") {
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            let (id, value) = (text(&exemplar["labels"]["trace_id"]), text(&exemplar["value"]));
            // Traces of one worker begin alike.
            assert_eq!((id.len(), &id[..16]), (32, &slowest[..16]));
            let [value, limit] = [value, limit.clone()].map(|text| text.parse::<f64>().expect("a number"));
            assert!((0.002..=limit).contains(&value), "{value} of {limit}");
        }
    }
}
