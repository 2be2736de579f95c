//! The files of single requests: a log of all or a sample, and failed ones with their messages.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use plimsoll_core::Outcome;
use plimsoll_core::Redaction;
use plimsoll_document::Problem;
use plimsoll_metrics::log::{StreamLogEntry, StreamTimes};
use plimsoll_metrics::{FailedExchange, Log, LogBatch, LogEntry, LogOptions, Outline};
use plimsoll_plan::Plan;
use serde_json::{Value, json};

use crate::args::live::LiveArgs;
use crate::args::share::parse_percent;
use crate::base::failure::Failure;
use crate::base::foreign_text::csv_cell;
use crate::base::{messages, streams};
use crate::session::live::rotation::RecordFile;
use crate::session::live::stats::is_csv;

/// Failed requests that are written unless a flag says more.
const FAILED_LIMIT: u64 = 1_000;

/// The columns of the log.
const COLUMNS: &str =
    "unix_ns,scenario,step,status,outcome,response_time_ns,service_time_ns,bytes_received,warmup";

/// The last column of both logs where requests of the plan name their traces.
const TRACE_COLUMN: &str = "trace_id";

/// The columns of the log of streams.
const STREAM_COLUMNS: &str =
    "id,scenario,step,outcome,unix_ns,intended_ns,sent_ns,prompt_tokens,tokens,warmup,left_out,content_ns";

/// Receiver of requests that may have changed something. It is called on the thread of the log.
pub(crate) type WriteListener = Box<dyn FnMut(&[FailedExchange]) + Send>;

/// Number of entries that were handed over and did not reach their file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostEntries {
    pub(crate) entries: u64,
    pub(crate) failed: u64,
}

/// The log of a run, and the thread that writes it.
pub(crate) struct RequestLog {
    log: Log,
    thread: Option<JoinHandle<LostEntries>>,
}

impl RequestLog {
    /// Opens the logs that were asked for, and starts the thread if there is something.
    pub(crate) fn open(
        plan: &Plan,
        live: &LiveArgs,
        listener: Option<WriteListener>,
    ) -> Result<Self, Failure> {
        let share = match &live.log_sample {
            Some(text) => parse_share(text).map_err(Failure::usage)?,
            None => 1.0,
        };
        let limit = match &live.failed_limit {
            Some(text) => parse_limit(text).map_err(Failure::usage)?,
            None => FAILED_LIMIT,
        };
        let rotation = live.rotation().map_err(Failure::usage)?;
        let open = |path: Option<&Path>, header: &str| {
            let file = path.map(|path| RecordFile::create(path, header, rotation));
            file.transpose().map(|file| file.map(Sink::new))
        };
        let is_traced = plan.steps.iter().any(|step| step.request.is_traced());
        let header = |path: Option<&Path>, columns: &str| match path {
            Some(path) if is_csv(path) && is_traced => format!("{columns},{TRACE_COLUMN}\n"),
            Some(path) if is_csv(path) => format!("{columns}\n"),
            _ => String::new(),
        };
        let entries = open(live.log(), &header(live.log(), COLUMNS))?;
        let streams = open(live.stream_log(), &header(live.stream_log(), STREAM_COLUMNS))?;
        let failed = open(live.failed(), "")?;
        if entries.is_none() && streams.is_none() && failed.is_none() && listener.is_none() {
            return Ok(Self { log: Log::default(), thread: None });
        }
        let options = LogOptions {
            share: if entries.is_some() { share } else { 0.0 },
            failed: if failed.is_some() { limit } else { 0 },
            good_too: false,
            writes: listener.is_some(),
            streams: streams.is_some(),
            longest: if listener.is_some() { usize::MAX } else { FailedExchange::LONGEST },
            seed: plan.seed,
        };
        let (outline, redaction) = (plan.outline(), plan.redaction.clone());
        let writer = Writer { outline, redaction, is_traced, entries, streams, failed, listener };
        let (log, receive) = Log::new(options);
        let thread = std::thread::Builder::new().name("request-log".to_owned());
        let thread = thread.spawn(move || writer.run(&receive)).map_err(|error| {
            Failure::environment(Problem::new(format!("cannot start the thread of the log: {error}")))
        })?;
        Ok(Self { log, thread: Some(thread) })
    }

    /// Returns the handle that makes the workers' sinks.
    pub(crate) const fn handle(&self) -> &Log {
        &self.log
    }

    /// Waits until everything is written, as far as that is possible. Returns the entries that are lost.
    pub(crate) fn finish(self) -> LostEntries {
        let Self { log, thread } = self;
        log.end();
        // The thread has reported its own panic.
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// A share above 0, at most all: `1%`, `1/100`, `0.01`.
fn parse_share(text: &str) -> Result<f64, Problem> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.split_once('/') {
        Some((part, whole)) => number(part).zip(number(whole)).map(|(part, whole)| part / whole),
        None => parse_percent(text).or_else(|| number(text)),
    };
    share.filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(|| {
        Problem::new(format!("--log-sample: `{text}` is not a share above 0 and at most 1"))
            .with_hint("write 1%, 1/100 or 0.01")
    })
}

fn parse_limit(text: &str) -> Result<u64, Problem> {
    plimsoll_schedule::parse_count(text)
        .ok()
        .filter(|limit| *limit > 0)
        .ok_or_else(|| Problem::new(format!("--failed-limit: `{text}` is not a number above 0")))
}

/// The form of a line, by the ending of the file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Csv,
    Json,
    /// Of h2load's `--log-file`, for its readers: when the request was sent, its status and its time, in
    /// microseconds.
    Tabs,
}

impl Form {
    fn of(path: &Path) -> Self {
        let is_tsv = || path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tsv"));
        match is_csv(path) {
            true => Self::Csv,
            false if is_tsv() => Self::Tabs,
            false => Self::Json,
        }
    }
}

/// One file. A failure to write it is reported once.
struct Sink {
    file: Option<RecordFile>,
    path: PathBuf,
    form: Form,
    /// Records that did not reach the file.
    lost: u64,
}

impl Sink {
    fn new(file: RecordFile) -> Self {
        let path = file.path().to_owned();
        Self { form: Form::of(&path), path, file: Some(file), lost: 0 }
    }

    /// Writes this number of records with `write`.
    fn write(&mut self, records: u64, write: impl FnOnce(&mut RecordFile) -> std::io::Result<()>) {
        let Some(mut file) = self.file.take() else {
            self.lost += records;
            return;
        };
        let before = file.taken();
        match write(&mut file) {
            Ok(()) => self.file = Some(file),
            Err(error) => {
                let path = self.path.display();
                let message =
                    format!("warning: cannot write to {path}: {error}; nothing more is written to it");
                messages::tell(&message);
                self.lost += records - (file.taken() - before).min(records) + file.give_up();
            }
        }
    }

    /// Hands everything to the system: how many records were lost.
    fn end(mut self) -> u64 {
        self.write(0, RecordFile::flush);
        self.lost
    }
}

struct Writer {
    outline: Outline,
    redaction: Redaction,
    /// `true` if requests of the plan name their traces.
    is_traced: bool,
    entries: Option<Sink>,
    streams: Option<Sink>,
    failed: Option<Sink>,
    listener: Option<WriteListener>,
}

impl Writer {
    fn run(mut self, batches: &Receiver<LogBatch>) -> LostEntries {
        let mut record = Vec::new();
        for batch in batches {
            match batch {
                LogBatch::Entries(entries) => {
                    if let Some(sink) = &mut self.entries {
                        let (outline, form) = (&self.outline, (sink.form, self.is_traced));
                        sink.write(entries.len() as u64, |file| {
                            entries.iter().try_for_each(|entry| {
                                record.clear();
                                write_entry(&mut record, outline, entry, form)?;
                                file.write(&record)
                            })
                        });
                    }
                }
                LogBatch::Streams(streams) => {
                    if let Some(sink) = &mut self.streams {
                        let (outline, form) = (&self.outline, (sink.form, self.is_traced));
                        sink.write(streams.len() as u64, |file| {
                            streams.iter().try_for_each(|stream| {
                                record.clear();
                                write_stream(&mut record, outline, stream, form)?;
                                file.write(&record)
                            })
                        });
                    }
                }
                LogBatch::Writes(writes) => {
                    if let Some(listener) = &mut self.listener {
                        listener(&writes);
                    }
                }
                LogBatch::End => break,
                LogBatch::Failed(exchange) => {
                    if let Some(sink) = &mut self.failed {
                        sink.write(1, |file| {
                            record.clear();
                            write_exchange(&mut record, &self.outline, &self.redaction, &exchange)?;
                            file.write(&record)?;
                            file.flush()
                        });
                    }
                }
            }
        }
        let end = |sink: Option<Sink>| sink.map_or(0, Sink::end);
        LostEntries { entries: end(self.entries) + end(self.streams), failed: end(self.failed) }
    }
}

/// Names of scenario and step.
fn names<'a>(outline: &'a Outline, entry: &LogEntry) -> (&'a str, &'a str) {
    let scenario = outline.scenario_of(entry.step).and_then(|index| outline.scenarios.get(index));
    let step = outline.steps.get(entry.step as usize);
    (scenario.map_or("", |scenario| &scenario.name), step.map_or("", String::as_str))
}

const fn outcome(entry: &LogEntry) -> &'static str {
    match entry.outcome {
        Outcome::Ok => "ok",
        Outcome::Failed(class) => class.name(),
        Outcome::TimedOut => "timed_out",
    }
}

/// The line of a request as h2load writes it: -1 is the status of one without a whole answer.
fn write_tabs(out: &mut impl Write, entry: &LogEntry) -> std::io::Result<()> {
    const MICROSECOND: u64 = 1_000;
    let time = entry.service_time.unwrap_or(entry.response_time);
    let sent = entry.unix + entry.response_time.since(time);
    let status = match entry.outcome {
        Outcome::TimedOut => -1,
        _ if entry.status == 0 => -1,
        _ => i32::from(entry.status),
    };
    writeln!(out, "{}\t{status}\t{}", sent.0 / MICROSECOND, time.0 / MICROSECOND)
}

/// Writes the line of a request; `is_traced` is `true` if requests of the plan name their traces.
fn write_entry(
    out: &mut impl Write,
    outline: &Outline,
    entry: &LogEntry,
    (form, is_traced): (Form, bool),
) -> std::io::Result<()> {
    if form == Form::Tabs {
        return write_tabs(out, entry);
    }
    let (scenario, step) = names(outline, entry);
    if form == Form::Csv {
        let service = entry.service_time.map_or(String::new(), |time| time.0.to_string());
        write!(
            out,
            "{},{},{},{},{},{},{service},{},{}",
            entry.unix.0,
            csv_cell(scenario),
            csv_cell(step),
            entry.status,
            outcome(entry),
            entry.response_time.0,
            entry.bytes_received,
            entry.warmup,
        )?;
        return end_of_line(out, entry, is_traced);
    }
    let mut line = json!({
        "unix_ns": entry.unix.0,
        "scenario": scenario,
        "step": step,
        "status": entry.status,
        "outcome": outcome(entry),
        "response_time_ns": entry.response_time.0,
        "service_time_ns": entry.service_time.map(|time| time.0),
        "bytes_received": entry.bytes_received,
        "warmup": entry.warmup,
    });
    add_trace(&mut line, entry);
    writeln!(out, "{line}")
}

/// Ends a line of CSV, with the trace id where there is a column for it.
fn end_of_line(out: &mut impl Write, entry: &LogEntry, is_traced: bool) -> std::io::Result<()> {
    match entry.trace {
        Some(id) if is_traced => writeln!(out, ",{id:032x}"),
        None if is_traced => writeln!(out, ","),
        _ => writeln!(out),
    }
}

/// Adds the trace id to a line of JSON.
fn add_trace(line: &mut Value, entry: &LogEntry) {
    if let Some(id) = entry.trace {
        line[TRACE_COLUMN] = json!(format!("{id:032x}"));
    }
}

fn write_stream(
    out: &mut impl Write,
    outline: &Outline,
    stream: &StreamLogEntry,
    (form, is_traced): (Form, bool),
) -> std::io::Result<()> {
    let entry = &stream.entry;
    let (scenario, step) = names(outline, entry);
    let nothing = StreamTimes::default();
    let times = stream.times.as_deref().unwrap_or(&nothing);
    let id = times.id.as_deref().unwrap_or_default();
    if form == Form::Csv {
        let number = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        write!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},",
            csv_cell(id),
            csv_cell(scenario),
            csv_cell(step),
            outcome(entry),
            entry.unix.0,
            stream.intended.0,
            number(stream.sent.map(|sent| sent.0)),
            number(stream.prompt_tokens),
            number(stream.tokens),
            entry.warmup,
            times.left_out,
        )?;
        for (place, at) in times.content.iter().enumerate() {
            write!(out, "{}{}", if place > 0 { " " } else { "" }, at.0)?;
        }
        return end_of_line(out, entry, is_traced);
    }
    let mut line = json!({
        "id": id,
        "scenario": scenario,
        "step": step,
        "outcome": outcome(entry),
        "unix_ns": entry.unix.0,
        "intended_ns": stream.intended.0,
        "sent_ns": stream.sent.map(|sent| sent.0),
        "prompt_tokens": stream.prompt_tokens,
        "tokens": stream.tokens,
        "warmup": entry.warmup,
        "left_out": times.left_out,
        "content_ns": times.content.iter().map(|at| at.0).collect::<Vec<u64>>(),
    });
    add_trace(&mut line, entry);
    writeln!(out, "{line}")
}

/// Bodies of responses are written as they are.
fn write_exchange(
    out: &mut impl Write,
    outline: &Outline,
    redaction: &Redaction,
    exchange: &FailedExchange,
) -> std::io::Result<()> {
    let entry = &exchange.entry;
    let (scenario, step) = names(outline, entry);
    let status = if entry.status == 0 { String::new() } else { format!(", status {}", entry.status) };
    write!(out, "==== {} ns, {scenario}, {step}: {}{status}", entry.unix.0, outcome(entry))?;
    if !exchange.reason.is_empty() {
        write!(out, ": {}", redaction.in_text(&exchange.reason))?;
    }
    writeln!(out, ", after {} ns", entry.response_time.0)?;
    for (name, message) in [("request", &exchange.request), ("response", &exchange.response)] {
        if message.head.is_empty() && message.body.is_empty() {
            writeln!(out, "---- no {name} was kept")?;
            continue;
        }
        writeln!(out, "---- {name}")?;
        write_head(out, redaction, &message.head)?;
        if name == "request" {
            write_shown(out, &message.body, |body| redaction.in_body(body))?;
        } else {
            out.write_all(&streams::for_file(&message.body))?;
        }
        if message.cut > 0 {
            write!(out, "\n---- {} more bytes", message.cut)?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn write_head(out: &mut impl Write, redaction: &Redaction, head: &[u8]) -> std::io::Result<()> {
    for line in head.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        write_shown(out, line, |line| redaction.in_header(line))?;
        writeln!(out)?;
    }
    writeln!(out)
}

/// Writes bytes as they are where there is nothing to hide, else as text.
fn write_shown(
    out: &mut impl Write,
    bytes: &[u8],
    show: impl Fn(&str) -> Cow<'_, str>,
) -> std::io::Result<()> {
    match show(&String::from_utf8_lossy(bytes)) {
        Cow::Borrowed(_) => out.write_all(bytes),
        Cow::Owned(shown) => out.write_all(shown.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{ErrorClass, Nanos};
    use plimsoll_metrics::ScenarioOutline;
    use plimsoll_metrics::log::Message;

    use super::*;

    fn entry() -> LogEntry {
        LogEntry {
            unix: Nanos(1_772_366_401_250_000_000),
            step: 1,
            status: 503,
            outcome: Outcome::Failed(ErrorClass::Status5xx),
            response_time: Nanos(1_234_567),
            service_time: Some(Nanos(1_234_000)),
            bytes_received: 161,
            warmup: false,
            trace: None,
        }
    }

    fn outline() -> Outline {
        let scenario = ScenarioOutline { name: "buy, now".to_owned(), steps: 0..2 };
        Outline {
            scenarios: vec![scenario],
            steps: vec!["login".to_owned(), "pay".to_owned()],
            awaited: Vec::new(),
            phases: Vec::new(),
            paces_requests: false,
            metrics: Vec::new(),
        }
    }

    #[test]
    fn entries_and_failed_requests_are_written() {
        let mut out = Vec::new();
        let unsent =
            LogEntry { outcome: Outcome::TimedOut, status: 0, service_time: None, step: 0, ..entry() };
        for entry in [entry(), unsent] {
            for form in [Form::Csv, Form::Json, Form::Tabs] {
                write_entry(&mut out, &outline(), &entry, (form, false)).unwrap();
            }
        }
        for trace in [std::num::NonZeroU128::new(0xab), None] {
            for form in [Form::Csv, Form::Json] {
                write_entry(&mut out, &outline(), &LogEntry { trace, ..entry() }, (form, true)).unwrap();
            }
        }
        let mut response = Message::new(b"HTTP/1.1 503 Busy\r\nSet-Cookie: topsecret", b"later", 99);
        response.cut = 7;
        let exchange = FailedExchange {
            entry: entry(),
            reason: "busy".to_owned(),
            request: Message::new(
                b"POST /x HTTP/1.1\r\nAuthorization: topsecret\r\nHost: a.test:80",
                b"{}",
                99,
            ),
            response,
        };
        write_exchange(&mut out, &outline(), &Redaction::default(), &exchange).unwrap();
        let lines =
            b":method: GET\n:path: /?sig=topsecret&a=1\ncookie: topsecret\npin: topsecret\naccept: */*";
        let request = Message::new(lines, br#"{"password":"topsecret","a":1}"#, 99);
        let bare = FailedExchange { request, ..FailedExchange::bare(entry()) };
        write_exchange(&mut out, &outline(), &Redaction::new(["pin"]), &bare).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("topsecret"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn streams_are_written_with_the_instants_of_their_content() {
        let times =
            StreamTimes { id: Some("chatcmpl-7".into()), content: vec![Nanos(20), Nanos(40)], left_out: 7 };
        let whole = StreamLogEntry {
            entry: LogEntry { outcome: Outcome::Ok, ..entry() },
            intended: Nanos(5),
            sent: Some(Nanos(6)),
            prompt_tokens: Some(3),
            tokens: Some(2),
            times: Some(Box::new(times)),
        };
        let none = StreamLogEntry {
            entry: entry(),
            sent: None,
            prompt_tokens: None,
            tokens: None,
            times: None,
            ..whole.clone()
        };
        let written = |stream: &StreamLogEntry, csv: bool| {
            let mut out = Vec::new();
            let form = if csv { Form::Csv } else { Form::Json };
            write_stream(&mut out, &outline(), stream, (form, false)).unwrap();
            String::from_utf8(out).unwrap()
        };
        let row = "chatcmpl-7,\"buy, now\",pay,ok,1772366401250000000,5,6,3,2,false,7,20 40\n";
        assert_eq!(written(&whole, true), row);
        assert_eq!(written(&none, true), ",\"buy, now\",pay,status_5xx,1772366401250000000,5,,,,false,0,\n");
        assert_eq!(STREAM_COLUMNS.matches(',').count(), written(&none, true).matches(',').count() - 1);
        let line: serde_json::Value = serde_json::from_str(&written(&whole, false)).unwrap();
        assert_eq!((&line["id"], &line["content_ns"]), (&json!("chatcmpl-7"), &json!([20, 40])));
        let line: serde_json::Value = serde_json::from_str(&written(&none, false)).unwrap();
        assert_eq!((&line["sent_ns"], &line["content_ns"]), (&json!(null), &json!([])));
    }

    #[test]
    fn shares_and_limits() {
        for (text, share) in [("1%", 0.01), ("1/100", 0.01), ("0.01", 0.01), ("100%", 1.0), ("1/4", 0.25)] {
            assert_eq!(parse_share(text).unwrap(), share, "{text}");
        }
        for text in ["0", "0%", "101%", "2/1", "1/0", "-1%", "many", ""] {
            assert!(parse_share(text).is_err(), "{text}");
        }
        assert_eq!(parse_limit("1k").unwrap(), 1_000);
        assert!(parse_limit("0").is_err() && parse_limit("-1").is_err());
    }
}
