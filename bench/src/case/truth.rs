//! The figures of a run beside the server's own log of it: shapes of connections × behaviours × loads.
//!
//! No figure of this case is one of speed. A cell whose run is invalid, because the machine disturbed it, is
//! tried again, and is not judged if it never is valid.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::child::Running;
use crate::failure::{Failure, Result};
use crate::report::{Finding, Section};
use crate::server::{Server, Serves};
use crate::session::Session;

/// A time may be more than the server's by this much, and by [`SHARE`] of it.
const OURS_NS: f64 = 300_000.0;
const SHARE: f64 = 0.01;
/// And less by the width of a bucket, and by what the server takes between its stamps and the kernel's.
const LESS_NS: f64 = 60_000.0;
/// A run that opens connections may take this much longer for each handshake.
const HANDSHAKE_NS: f64 = 700_000.0;
/// Tries of a cell whose runs are invalid.
const TRIES: u32 = 3;
/// Time that a run may take.
const LONGEST: Duration = Duration::from_secs(40);
/// The fewest values of a percentile that is compared.
const FEWEST: f64 = 10.0;

/// A way of using connections: flags of the sink and of the load.
struct Shape {
    name: &'static str,
    sink: &'static [&'static str],
    load: &'static [&'static str],
    scheme: &'static str,
    /// `true` if each request has a connection of its own.
    connects: bool,
}

const SHAPES: [Shape; 8] = [
    Shape { name: "kept", sink: &[], load: &[], scheme: "http", connects: false },
    Shape {
        name: "close announced",
        sink: &["--goaway-after", "1"],
        load: &[],
        scheme: "http",
        connects: true,
    },
    Shape {
        name: "closed in silence",
        sink: &["--max-requests-per-connection", "1"],
        load: &[],
        scheme: "http",
        connects: true,
    },
    Shape { name: "not kept", sink: &[], load: &["--disable-keepalive"], scheme: "http", connects: true },
    Shape { name: "TLS", sink: &["--self-signed"], load: &["-k"], scheme: "https", connects: false },
    Shape { name: "h2c", sink: &[], load: &["--http2"], scheme: "http", connects: false },
    Shape {
        name: "h2 over TLS",
        sink: &["--self-signed"],
        load: &["-k", "--http2"],
        scheme: "https",
        connects: false,
    },
    Shape {
        name: "h2c, one a connection",
        sink: &[],
        load: &["--http2", "--max-requests-per-connection", "1"],
        scheme: "http",
        connects: true,
    },
];

/// Flags that make the sink slow or faulty. No share of slow or lost requests equals the part above a
/// compared percentile, where chance would decide on which side its value lies.
const BEHAVIOURS: [(&str, &[&str]); 6] = [
    ("constant", &["--delay", "2ms"]),
    ("bimodal", &["--delay", "bimodal:1ms,60ms,0.25"]),
    ("503", &["--delay", "1ms", "--fail", "20%:503"]),
    ("silent", &["--delay", "1ms", "--drop", "25%"]),
    ("queue", &["--delay", "exponential:1ms", "--queue"]),
    ("slow", &["--delay", "250ms"]),
];

/// The load; a timeout bounds what is silent.
const LOADS: [(&str, &[&str]); 8] = [
    ("20/s", &["--rate", "20", "-d", "2s"]),
    ("200/s", &["--rate", "200", "-d", "1s"]),
    ("200/s poisson", &["--rate", "200", "-d", "1s", "--arrival", "poisson"]),
    ("400/s shared", &["--rate", "400", "-d", "1s", "--pacing", "shared"]),
    ("stages", &["--stages", "500ms@100,500ms@300"]),
    ("warm-up", &["--rate", "200", "-d", "1s", "--warmup", "500ms"]),
    ("closed", &["-c", "4", "-d", "1s"]),
    ("counted", &["-c", "4", "-n", "200"]),
];

/// One request as the sink saw it, in nanoseconds.
struct Row {
    received: u64,
    replied: Option<u64>,
    good: bool,
}

/// Result of a cell.
enum Judged {
    Right,
    Wrong(Vec<String>),
    /// No try was valid; the reasons of the last.
    Disturbed(String),
}

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let backends = match &session.options.backend {
        Some(backend) => vec![backend.clone()],
        None => vec!["uring".to_owned(), "epoll".to_owned()],
    };
    let only = &session.options.only;
    let (mut right, mut cells) = (0_u64, 0_u64);
    let (mut wrong, mut disturbed) = (Vec::new(), Vec::new());
    for (number, shape) in SHAPES.iter().enumerate() {
        for (behaviour, sink) in BEHAVIOURS {
            for (load, flags) in LOADS {
                // The backends take turns: each meets every shape, behaviour and load.
                let backend = &backends[(cells as usize + number) % backends.len()];
                let name = format!("{}, {behaviour}, {load}, {backend}", shape.name);
                if !name.contains(only) {
                    continue;
                }
                cells += 1;
                match judge(session, shape, sink, flags, backend)? {
                    Judged::Right => right += 1,
                    Judged::Wrong(findings) => {
                        wrong.extend(findings.iter().map(|finding| format!("{name}: {finding}")));
                    }
                    Judged::Disturbed(why) => disturbed.push(format!("{name}: {why}")),
                }
            }
        }
    }
    let mut section = Section::titled("The server's own log");
    section.text.push_str(&format!(
        "{cells} runs against the sink, whose log of the same run is the truth: counts are equal, and p50, p90 and \
         p99 are at most {} µs + {} % above it, {} µs more where each request opens a connection. \
         {right} are right.\n",
        OURS_NS / 1e3,
        SHARE * 100.0,
        HANDSHAKE_NS / 1e3,
    ));
    wrong.iter().for_each(|text| section.note(format!("wrong: {text}")));
    disturbed.iter().for_each(|text| section.note(format!("not judged: {text}")));
    section.findings.push(Finding {
        case: "truth".to_owned(),
        figure: "figures that differ from the server's log".to_owned(),
        measured: wrong.len().to_string(),
        limit: "0".to_owned(),
        met: wrong.is_empty(),
    });
    Ok(vec![section])
}

/// Runs a cell until its run is valid, and compares it.
fn judge(session: &Session, shape: &Shape, sink: &[&str], flags: &[&str], backend: &str) -> Result<Judged> {
    let mut last = String::new();
    for _ in 0..TRIES {
        let (result, rows) = run(session, shape, sink, flags, backend)?;
        let verdict = &result["verdict"];
        if verdict["valid"] == true {
            let wrong = compare(shape, &result, &rows);
            return Ok(if wrong.is_empty() { Judged::Right } else { Judged::Wrong(wrong) });
        }
        last = verdict["invalid_reasons"].to_string();
    }
    Ok(Judged::Disturbed(last))
}

/// One run, and the sink's log of it.
fn run(
    session: &Session,
    shape: &Shape,
    sink: &[&str],
    flags: &[&str],
    backend: &str,
) -> Result<(Value, Vec<Row>)> {
    let log = session.directory().join("truth.csv");
    let mut sink: Vec<String> = sink.iter().chain(shape.sink).map(|flag| (*flag).to_owned()).collect();
    sink.extend(["--truth-log".to_owned(), log.display().to_string()]);
    let server = Server::start(session, &Serves::Sink(sink))?;
    let url = format!("{}://{}/", shape.scheme, server.authority());
    let mut args = vec!["run", &url, "-o", "json", "--quiet", "--no-preflight", "--timeout", "300ms"];
    args.extend(["-t", "1", "--backend", backend]);
    args.extend(flags.iter().chain(shape.load));
    let pinned = session.on_tool_core(&session.plimsoll, &args);
    let output = session.directory().join("truth.json");
    let file = fs::File::create(&output).map_err(|error| Failure::because(output.display(), error))?;
    let mut command = pinned.command();
    command.stdout(file);
    let failed = |error: &dyn std::fmt::Display| Failure::because(pinned.to_string(), error);
    let running = Running::start(&mut command).map_err(|error| failed(&error))?;
    running.finish(LONGEST).map_err(|error| failed(&error))?;
    server.stop()?;
    let text = fs::read_to_string(&output).map_err(|error| failed(&error))?;
    let result: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let text = fs::read_to_string(&log).map_err(|error| failed(&error))?;
    Ok((result, text.lines().skip(1).filter_map(row).collect()))
}

/// A line of the sink's log: id, received, replied, action, status, number.
fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[_, received, replied, action, ..] = &fields[..] else { return None };
    Some(Row { received: received.parse().ok()?, replied: replied.parse().ok(), good: action == "replied" })
}

/// Returns the differences between a result and the log, in words.
fn compare(shape: &Shape, result: &Value, rows: &[Row]) -> Vec<String> {
    let account = |name: &str| result["accounting"][name].as_u64().unwrap_or(0);
    let mut wrong = Vec::new();
    let delivered = account("started") - account("undelivered")
        + account("unmeasured")
        + account("redirects_followed")
        + account("polls")
        + account("resent");
    // An attempt that met the end of its connection may have been read by nobody.
    let unread = account("resent_closed");
    if !(delivered - unread..=delivered).contains(&(rows.len() as u64)) {
        wrong.push(format!("{delivered} requests were sent, the server has {}", rows.len()));
    }
    let measured = |row: &&Row| {
        let warmup = result["warmup_s"].as_f64().unwrap_or(0.0) * 1e9;
        let start = result["run"]["started_at_monotonic_ns"].as_u64().unwrap_or(0);
        row.received as f64 >= start as f64 + warmup
    };
    let answered =
        rows.iter().filter(measured).filter(|row| row.good && row.replied.is_some()).count() as u64;
    // At the end of a warm-up one may have been due before it, and have come after it.
    let border = if account("unmeasured") > 0 { 2 } else { 0 };
    if account("ok").abs_diff(answered) > border {
        wrong.push(format!("{} ok, the server has answered {answered}", account("ok")));
    }
    let never = f64::INFINITY;
    let time = |row: &Row| match row.replied {
        Some(replied) if row.good => Some((replied - row.received) as f64),
        Some(_) => None,
        None => Some(never),
    };
    let mut truth: Vec<f64> = rows.iter().filter(measured).filter_map(time).collect();
    truth.sort_by(f64::total_cmp);
    // In the open model a response counts from when it was due, and waits for its connection.
    let is_open = result["model"]["kind"] == "open";
    let kinds: &[(&str, bool)] = if is_open {
        &[("service_time", false), ("response_time", true)]
    } else {
        &[("service_time", false)]
    };
    for (kind, connects) in kinds {
        for p in ["50", "90", "99"] {
            let Some(shown) = result[*kind]["p"][p].as_f64() else { continue };
            let share = p.parse::<f64>().unwrap_or(0.0) / 100.0;
            if truth.len() as f64 * (1.0 - share) < FEWEST {
                continue;
            }
            let rank = ((share * truth.len() as f64).ceil() as usize).clamp(1, truth.len());
            let at_least = result[*kind]["at_least"].as_array();
            let marked = at_least.is_some_and(|all| all.iter().any(|name| name == p));
            let near =
                [rank.saturating_sub(border as usize + 1), (rank + border as usize).min(truth.len() - 1)];
            let [least, most] = near.map(|place| truth[place.saturating_sub(usize::from(place == rank))]);
            if most == never {
                if !marked && shown < 290e6 {
                    wrong.push(format!("{kind} p{p} is {shown} ns, the server never answered"));
                }
                continue;
            }
            // A request that is sent again counts from its first attempt.
            let ways = if shape.connects && (*connects || unread > 0) { HANDSHAKE_NS } else { 0.0 };
            if shown < least * (1.0 - SHARE) - LESS_NS || shown > most * (1.0 + SHARE) + OURS_NS + ways {
                wrong.push(format!("{kind} p{p} is {shown} ns, the server has {least} to {most}"));
            }
        }
    }
    wrong
}
