//! Runs that are steered while they go on: by a file, by the control port, by keys.
//!
//! Tests wait for the output of the run: its statistics by the control port, or its messages.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use serde_json::Value;

use crate::loopback::foreign::python;
use crate::loopback::process::{Folder, Process, plimsoll, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, delivered};

/// A run with a control port.
struct Steered {
    sink: Sink,
    run: Process,
    /// `address:port` of the control port.
    control: String,
    /// Header fields of requests to it.
    fields: &'static str,
}

/// A reply of the control port.
#[derive(Debug)]
pub(crate) struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    /// Returns `true` if the status is that of an answer.
    pub(crate) const fn is_good(&self) -> bool {
        self.status == 200
    }

    pub(crate) fn body(&self) -> &str {
        assert_eq!(self.status, 200, "{self:?}");
        &self.body
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends bytes to the control port and reads up to the end of the connection.
fn exchange(control: &str, bytes: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(control).expect("it listens");
    stream.write_all(bytes).expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers and closes");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    Reply { status: status.expect("a status"), head: head.to_ascii_lowercase(), body: body.to_owned() }
}

pub(crate) fn request(control: &str, request: &str, fields: &str, body: &str) -> Reply {
    let length = body.len();
    let fields = format!("host: {control}\r\n{fields}connection: close\r\ncontent-length: {length}");
    let text = format!("{request} HTTP/1.1\r\n{fields}\r\n\r\n{body}");
    exchange(control, text.as_bytes())
}

impl Steered {
    fn start(args: &str) -> Self {
        let sink = Sink::start("");
        let mut run =
            Process::start(plimsoll(&format!("{} -o json --control 127.0.0.1:0 {args}", sink.url())));
        let line = run.stderr.wait_for("control: http://");
        let control = line.trim_start_matches("control: http://").trim_end_matches('/').to_owned();
        Self { sink, run, control, fields: "x-plimsoll-control: 1\r\n" }
    }

    fn ask(&self, line: &str, body: &str) -> Reply {
        request(&self.control, line, self.fields, body)
    }

    /// Asks for the statistics until they are as wanted; the end of the run ends the waiting. All on one
    /// connection, because ports are limited.
    fn wait_for(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut stream = BufReader::new(TcpStream::connect(&self.control).expect("it listens"));
        loop {
            let request = format!("GET /stat HTTP/1.1\r\n{}\r\n", self.fields);
            stream.get_mut().write_all(request.as_bytes()).expect("the run goes on");
            let mut length = 0;
            for line in stream.by_ref().lines() {
                let line = line.expect("the run goes on");
                if line.is_empty() {
                    break;
                }
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.parse().expect("a length");
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).expect("a body");
            let stat = serde_json::from_slice(&body).expect("it is JSON");
            if wanted(&stat) {
                return stat;
            }
        }
    }

    /// Waits until an interval with this many due arrivals has ended since the run was at `elapsed`.
    fn wait_for_due(&self, elapsed: f64, due: std::ops::RangeInclusive<u64>) {
        self.wait_for(|stat| {
            let intervals = stat["intervals"].as_array().expect("a list");
            intervals.iter().any(|interval| {
                interval["at_s"].as_f64().is_some_and(|at| at > elapsed)
                    && interval["scheduled"].as_u64().is_some_and(|count| due.contains(&count))
            })
        });
    }

    /// Ends the run by its port, and checks it against the sink.
    fn end(self) -> Value {
        assert_eq!(self.ask("POST /stop", "").json()["stopping"], true);
        let result = self.run.finish().result();
        assert_balance(&result);
        assert_eq!(delivered(&result), self.sink.stop().requests);
        assert_eq!(result["run"]["stopped_by"], "http");
        result
    }
}

fn changes(result: &Value) -> Vec<(String, Option<f64>, String)> {
    let changes = result["rate"]["changes"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    changes
        .iter()
        .map(|change| (text(&change["what"]), change["to_per_s"].as_f64(), text(&change["by"])))
        .collect()
}

#[test]
fn the_result_so_far_is_that_of_the_run_as_if_it_ended_now() {
    let steered = Steered::start("--rate 500 -d 60s --threshold p99<10s --threshold error_rate<1%");
    steered.wait_for(|stat| stat["intervals"].as_array().is_some_and(|all| all.len() >= 2));
    // The thread that adds intervals up has the lowest priority.
    let so_far = loop {
        let reply = steered.ask("GET /result", "");
        if reply.status == 200 {
            break reply.json();
        }
        assert_eq!(reply.status, 409, "{reply:?}");
    };
    let stat = steered.wait_for(|_| true);
    assert_eq!(so_far["run"]["id"], stat["run"]);
    // The accounts balance; requests that are on their way have no times yet.
    let of = |kind| account(&so_far, kind);
    assert_eq!(of("scheduled"), of("started") + of("dropped") + of("never_started"), "{so_far:#}");
    let ended = of("ok") + of("failed") + of("timed_out");
    assert_eq!(of("started"), ended + of("in_flight_at_stop"), "{so_far:#}");
    assert!(of("ok") > 0 && so_far["response_time"]["count"] == of("ok"), "{so_far:#}");
    // Nothing in it is final.
    assert_ne!(so_far["verdict"]["outcome"], "fail", "{so_far:#}");
    let thresholds = so_far["thresholds"].as_array().expect("a list");
    assert_eq!(thresholds.len(), 2, "{so_far:#}");
    assert!(thresholds.iter().all(|one| one["passed"] == true), "{so_far:#}");
    let intervals = so_far["intervals"].as_array().expect("a list").len();
    let result = steered.end();
    assert_eq!(result["run"]["id"], so_far["run"]["id"]);
    assert!(account(&result, "ok") >= account(&so_far, "ok"));
    // The one at the end has the same intervals first.
    let counted = |result: &Value| -> Vec<Value> {
        let all = result["intervals"].as_array().expect("a list");
        all.iter().take(intervals).map(|interval| interval["completed"].clone()).collect()
    };
    assert_eq!(counted(&so_far), counted(&result));
}

#[test]
fn a_watched_file_sets_the_rate() {
    let folder = Folder::new();
    let file = folder.file("rate");
    let mut steered = Steered::start(&format!("--rate 100 -d 60s --rate-file {file}"));
    steered.wait_for(|stat| stat["elapsed_s"].as_f64().is_some_and(|elapsed| elapsed >= 1.0));
    folder.write("rate", "400\nnot read\n");
    steered.run.stderr.wait_for("rate 400/s from");
    steered.wait_for_due(1.0, 360..=440);
    // Bad content is named, once, and nothing changes.
    folder.write("rate", "many");
    let message = steered.run.stderr.wait_for("ignored");
    assert!(message.contains("`many` is not a rate") && message.contains(&file), "{message}");
    // Slips of the hand: no machine sends that many, and ten times the plan's rate is the most.
    folder.write("rate", "1000000000000\n");
    steered.run.stderr.wait_for("`1000000000000` is a rate that no machine sends");
    folder.write("rate", "50000\n");
    steered.run.stderr.wait_for("`50000` is ignored: at most 1000/s can be set");
    folder.write("rate", "pause\n");
    steered.run.stderr.wait_for("paused from");
    steered.wait_for_due(2.0, 0..=0);
    assert_eq!(steered.wait_for(|_| true)["paused"], true);
    folder.write("rate", "resume\n");
    steered.run.stderr.wait_for("resumed with 400/s");
    let elapsed = steered.wait_for(|stat| stat["paused"] == false)["elapsed_s"].as_f64();
    steered.wait_for_due(elapsed.expect("a number") + 1.0, 360..=440);
    let result = steered.end();
    let by = || "file".to_owned();
    assert_eq!(
        changes(&result),
        [
            ("rate".to_owned(), Some(400.0), by()),
            ("pause".to_owned(), Some(0.0), by()),
            ("resume".to_owned(), Some(400.0), by())
        ]
    );
    assert_eq!(account(&result, "scheduled"), account(&result, "ok"));
}

#[test]
fn the_port_sets_pauses_and_resumes() {
    let steered = Steered::start("--rate 100 -d 60s -c 5");
    let first = steered.wait_for(|stat| stat["elapsed_s"].as_f64().is_some_and(|elapsed| elapsed >= 1.0));
    assert_eq!((&first["running"], &first["target_per_s"]), (&true.into(), &100.0.into()));
    assert!(
        first["intervals"][0]["scheduled"].as_u64().is_some_and(|due| (90..110).contains(&due)),
        "{first}"
    );
    let reply = steered.ask("POST /rate", "{\"rate\":\"0.3k/s\"}").json();
    assert_eq!((&reply["changed"], &reply["target_per_s"]), (&true.into(), &300.0.into()));
    steered.wait_for_due(1.0, 270..=330);
    assert_eq!(steered.ask("POST /rate", "300").json()["changed"], false);
    assert_eq!(steered.ask("POST /pause", "").json()["paused"], true);
    assert_eq!(steered.ask("POST /resume", "").json()["target_per_s"], 300.0);
    // h2loadrunner counts per client.
    let reply = steered.ask("POST /config?rps=100", "").json();
    assert_eq!(reply["target_per_s"], 500.0);
    assert!(reply["note"].as_str().is_some_and(|note| note.contains("each of 5 connections")), "{reply}");
    steered.wait_for_due(2.0, 450..=550);
    let result = steered.end();
    let what: Vec<_> = changes(&result).into_iter().map(|(what, to, by)| (what, to, by == "http")).collect();
    let change = |what: &str, to| (what.to_owned(), Some(to), true);
    assert_eq!(
        what,
        [change("rate", 300.0), change("pause", 0.0), change("resume", 300.0), change("rate", 500.0)]
    );
}

#[test]
fn requests_that_make_no_sense_are_refused_and_the_run_goes_on() {
    let steered = Steered::start("--rate 100 -d 60s");
    let control = &steered.control;
    for (line, fields, body, status) in [
        ("POST /rate", "x-plimsoll-control: 1\r\n", "fast", 400),
        ("POST /rate", "x-plimsoll-control: 1\r\n", "", 400),
        ("GET /rate", "", "", 405),
        ("GET /nothing", "", "", 404),
        ("GET /stop", "", "", 405),
        // Requests that a web page can make: with an origin, under a name that was rebound to this machine,
        // as an image, or as a form of an old browser.
        ("POST /stop", "origin: http://evil.test\r\n", "", 403),
        // A request with two hosts is ambiguous.
        ("GET /stat", "host: evil.test\r\n", "", 400),
        ("GET /config?rps=777", "sec-fetch-site: cross-site\r\nsec-fetch-dest: image\r\n", "", 403),
        ("GET /config?rps=777", "referer: https://evil.test/\r\n", "", 403),
        ("GET /config?rps=777", "", "", 405),
        ("POST /rate", "", "777", 403),
        // A slip.
        ("POST /rate", "x-plimsoll-control: 1\r\n", "1001", 409),
        ("POST /rate", "x-plimsoll-control: 1\r\n", "1000000000000", 400),
    ] {
        let reply = request(control, line, fields, body);
        assert_eq!(reply.status, status, "{line} {fields}: {reply:?}");
        assert!(reply.body.starts_with("error: "), "{reply:?}");
    }
    assert!(steered.ask("GET /rate", "").head.contains("allow: post"));
    let large = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(20_000));
    for (bytes, status) in [
        (&b"\x16\x03\x01 no HTTP at all\r\n\r\n"[..], 400),
        (large.as_bytes(), 400),
        (b"GET /stat HTTP/1.1\r\nhost: evil.test\r\n\r\n", 403),
        (b"POST /rate HTTP/1.1\r\ncontent-length: 100000\r\n\r\n", 413),
        (b"POST /rate HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\n5\r\n0\r\n\r\n", 411),
    ] {
        let bytes = if status == 413 { [bytes, &[b'5'; 20_000]].concat() } else { bytes.to_vec() };
        // The server may reset a connection whose client sends more than it reads, before the answer arrives.
        let Ok(mut stream) = TcpStream::connect(control) else { panic!("it listens") };
        let _ = stream.write_all(&bytes);
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.is_empty() || text.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {text}");
    }
    // Silent connections take the places; the next one is refused, and one that closes makes room.
    let mut silent: Vec<TcpStream> =
        (0..8).map(|_| TcpStream::connect(control).expect("it listens")).collect();
    assert_eq!(steered.ask("GET /stat", "").status, 503);
    for stream in silent.drain(..) {
        let _ = stream.shutdown(Shutdown::Both);
    }
    while steered.ask("GET /stat", "").status == 503 {}
    // A run that is stopped before it begins has no result.
    steered.wait_for(|stat| stat["intervals"].as_array().is_some_and(|list| !list.is_empty()));
    let result = steered.end();
    assert!(changes(&result).is_empty());
}

#[test]
fn get_config_changes_the_rate_where_that_was_asked_for() {
    let steered = Steered::start("--rate 100 -d 60s -c 5 --control-h2loadrunner --max-rate 2k");
    steered.wait_for(|stat| stat["running"] == true);
    let control = &steered.control;
    let status = |line: &str, fields: &str| request(control, line, fields, "").status;
    assert_eq!(status("GET /config?rps=100", "sec-fetch-site: cross-site\r\n"), 403);
    assert_eq!(request(control, "GET /config?rps=400", "", "").json()["target_per_s"], 2_000.0);
    // 401/s on each of 5 connections is above --max-rate.
    assert_eq!(status("GET /config?rps=401", ""), 409);
    let result = steered.end();
    assert!(changes(&result).iter().all(|(_, to, _)| *to == Some(2_000.0)), "{result:#}");
}

#[test]
fn only_who_bears_the_token_steers() {
    let folder = Folder::new();
    let file = folder.write("token", "s3cret\n");
    let mut steered = Steered::start(&format!("--rate 100 -d 60s --control-token @{file}"));
    steered.fields = "authorization: Bearer s3cret\r\n";
    steered.wait_for(|stat| stat["running"] == true);
    let control = &steered.control;
    for fields in ["", "authorization: Bearer s3creT\r\n", "authorization: Basic s3cret\r\n"] {
        let reply = request(control, "POST /stop", fields, "");
        assert_eq!(reply.status, 401, "{fields}");
        assert!(reply.head.contains("www-authenticate: bearer"), "{reply:?}");
        assert!(!reply.body.contains("s3cret"), "{reply:?}");
    }
    assert_eq!(steered.ask("GET /stat", "").json()["stopping"], false);
    steered.end();
}

#[test]
fn a_token_is_not_in_the_result() {
    let sink = Sink::start("");
    let finished = run(&format!("{} -n 10 -o json --control 127.0.0.1:0 --control-token s3cret", sink.url()));
    assert!(!finished.stdout.contains("s3cret"), "{}", finished.stdout);
    assert!(finished.stdout.contains("--control-token"));
}

#[test]
fn ports_that_others_could_reach_need_a_token() {
    let url = "http://127.0.0.1:1/";
    run(&format!("{url} --control 0.0.0.0:0")).assert_refused(2, "anyone");
    run(&format!("{url} --control-token x")).assert_refused(2, "--control");
    let both = run(&format!("{url} --control nowhere --rate fast"));
    both.assert_refused(2, "fast");
    assert!(both.stderr.contains("nowhere"), "all problems come at once: {}", both.stderr);
    let sink = Sink::start("");
    run(&format!("{} --control {}", sink.url(), sink.endpoint)).assert_refused(1, "cannot listen");
}

#[test]
fn the_closed_model_pauses_and_says_that_it_has_no_rate() {
    let steered = Steered::start("-c 4 -d 60s");
    steered.wait_for(|stat| stat["running"] == true);
    let reply = steered.ask("POST /rate", "100");
    assert_eq!(reply.status, 409);
    assert!(reply.body.contains("closed model"), "{reply:?}");
    assert_eq!(steered.ask("POST /pause", "").json()["target_per_s"], Value::Null);
    let paused = |stat: &Value| {
        let intervals = stat["intervals"].as_array().expect("a list");
        intervals.last().is_some_and(|last| last["started"] == 0)
    };
    let stat = steered.wait_for(paused);
    assert_eq!(stat["paused"], true);
    steered.ask("POST /resume", "").json();
    steered.wait_for(|stat| !paused(stat));
    let result = steered.end();
    let what: Vec<_> = changes(&result).into_iter().map(|(what, to, _)| (what, to)).collect();
    assert_eq!(what, [("pause".to_owned(), None), ("resume".to_owned(), None)]);
}

/// Runs the program in a terminal, types the keys of the script, and reports the final state of the terminal.
const TERMINAL: &str = r#"
import os, pty, sys, termios, time, signal, select
keys, ending = sys.argv[1].encode().decode('unicode_escape').encode('latin1').split(b'|'), sys.argv[2]
master, slave = pty.openpty()
before = termios.tcgetattr(slave)
pid = os.fork()
if pid == 0:
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    import fcntl
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in (0, 2):
        os.dup2(slave, number)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.execv(sys.argv[3], sys.argv[3:])
seen = b''
def read_until(*wanted):
    global seen
    while not any(word in seen for word in wanted):
        if not select.select([master], [], [], 60)[0]:
            print('silent after', seen); sys.exit(1)
        seen += os.read(master, 4096)
read_until(b'q stops')
raw = not termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO)
# Once a second there is a live line: the run is under way.
read_until(b' left')
for step in keys:
    key, word = step[:1], step[1:]
    seen = b''
    os.write(master, key)
    read_until(word)
if ending != 'wait':
    os.kill(pid, getattr(signal, ending))
_, status = os.waitpid(pid, 0)
after = termios.tcgetattr(slave)
print('raw', raw, 'restored', before == after, 'status', status)
"#;

fn in_a_terminal(keys: &str, ending: &str, json: &str) -> Option<(String, Value)> {
    let sink = Sink::start("");
    let (program, url) = (env!("CARGO_BIN_EXE_plimsoll"), sink.url());
    let args = ["-c", TERMINAL, keys, ending, program, &url, "--rate", "100", "-d", "60s", "--json", json];
    let mut python = python(&args)?;
    let line = python.stdout.wait_for("raw ");
    let result = std::fs::read_to_string(json).unwrap_or_default();
    Some((line, serde_json::from_str(&result).unwrap_or_default()))
}

#[test]
fn keys_steer_and_the_terminal_is_given_back() {
    let folder = Folder::new();
    let json = folder.file("result.json");
    // The last rate is in force before the end: only then is it in the result.
    let keys = "+rate 110/s|-rate 99/s|?keys:|ppaused from|+p resumes|pof 99.0/s|qstopping";
    let Some((line, result)) = in_a_terminal(keys, "wait", &json) else { return };
    assert!(line.starts_with("raw True restored True status "), "{line}");
    assert_eq!(result["run"]["stopped_by"], "key", "{result}");
    let to: Vec<_> = changes(&result).into_iter().map(|(_, to, by)| (to, by == "key")).collect();
    assert_eq!(to, [110.0, 99.0, 0.0, 99.0].map(|to| (Some(to), true)));
}

#[test]
fn the_terminal_is_given_back_when_a_signal_ends_the_run() {
    let folder = Folder::new();
    for signal in ["SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP"] {
        let Some((line, _)) = in_a_terminal("?keys:", signal, &folder.file("result.json")) else { return };
        assert!(line.starts_with("raw True restored True status "), "{signal}: {line}");
    }
}
