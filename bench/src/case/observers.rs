//! The observer effect: the cost to the generator of all outputs at once (R20), and that of a page of
//! `plimsoll ui` that shows the run.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::failure::{Failure, Result};
use crate::report::{Finding, Section, cell, spread};
use crate::run::{Load, Run, run};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::Spread;

/// The load, without outputs.
const PLAIN: [&str; 4] = ["-c", "50", "--rate", RATE];
/// Requests per second.
const RATE: &str = "20000";
/// The most that all outputs may cost, as a ratio of CPU time per request.
const MOST: f64 = 1.03;
/// The most that an open page may cost, as a ratio of CPU time per request.
const MOST_OF_PAGE: f64 = 1.01;
/// Time between two looks of a page, as `plimsoll ui` has it.
const LOOK: Duration = Duration::from_secs(1);
/// Nanoseconds by which all outputs may change a percentile in any case (R20).
const MOST_SHIFT_NS: f64 = 1000.0;

/// Outputs whose cost is measured.
struct Observed {
    /// As `--only` chooses it.
    name: &'static str,
    title: &'static str,
    load: Load,
    /// `true` if a page looks at the run.
    is_looked_at: bool,
    /// The most that it may cost, as a ratio of CPU time per request.
    most: f64,
    runs: Vec<Run>,
}

/// Carries out the case: rounds of runs with no output and with each of the others, in changing order.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let seconds = session.options.seconds;
    let page = Page::new()?;
    let plain = Load::plimsoll(session, &PLAIN);
    let mut without: Vec<Run> = Vec::new();
    let mut rows: Vec<Observed> = rows(session, &page.control.to_string());
    rows.retain(|row| row.name.contains(&session.options.only));
    if rows.is_empty() {
        return Err(Failure::new("no outputs have such a name: there are all, ui and page"));
    }
    for round in 0..session.options.pairs {
        let mut order: Vec<usize> = (0..=rows.len()).collect();
        order.rotate_left(round as usize % (rows.len() + 1));
        for which in order {
            let Some(row) = which.checked_sub(1).map(|row| &mut rows[row]) else {
                without.push(run(session, &server, &plain, seconds, &[])?);
                continue;
            };
            let load = || run(session, &server, &row.load, seconds, &[]);
            let made = if row.is_looked_at { page.open_during(load)? } else { load()? };
            row.runs.push(made);
        }
    }
    let ratio = |runs: &[Run]| {
        let ratios = runs.iter().zip(&without).map(|(with, without)| with.total_us() / without.total_us());
        Spread::of(ratios).ok_or_else(|| Failure::new("no pair of runs was made"))
    };
    let mut section = Section::titled("GET, open, 20,000/s, outputs on and off, against the sink");
    let line = |load: &Load| Ok(load.pinned(session, &server, seconds)?.line(session.directory()));
    let lines = rows.iter().map(|row| line(&row.load)).collect::<Result<Vec<_>>>()?;
    section.commands(&[vec![server.line.clone(), line(&plain)?], lines].concat());
    let time = |runs: &[Run], which: usize| {
        let times = runs.iter().filter_map(|run| run.reading.detail.response_time_ns);
        times.map(|times| times[which] as f64).collect::<Vec<f64>>()
    };
    let micros =
        |runs: &[Run], which: usize| cell(Spread::of(time(runs, which).into_iter().map(|ns| ns / 1e3)), 1);
    let row = |name: &str, runs: &[Run]| {
        let cpu = [cell(spread(runs, Run::total_us), 3), cell(spread(runs, Run::user_us), 3)];
        [vec![name.to_owned()], cpu.to_vec(), vec![micros(runs, 0), micros(runs, 1)]].concat()
    };
    let cells = [vec![row("none", &without)], rows.iter().map(|each| row(each.title, &each.runs)).collect()];
    section.table(&["outputs", "CPU µs per request", "in user mode", "p50 µs", "p99 µs"], &cells.concat());
    section.note(format!("The page looked {} times.", page.looks.load(Ordering::Relaxed)));
    for Observed { title, most, runs, .. } in &rows {
        let ratio = ratio(runs)?;
        section.findings.push(Finding {
            case: "observers".to_owned(),
            figure: format!("CPU per request, {title} to none"),
            measured: cell(Some(ratio), 3),
            limit: format!("< {most}"),
            met: ratio.median < *most,
        });
    }
    for (which, name) in ["p50", "p99"].into_iter().enumerate() {
        let without = time(&without, which);
        let noise = Spread::of(without.iter().copied());
        let noise = noise.ok_or_else(|| Failure::new("no run has percentiles"))?;
        // The noise is how far runs without outputs are from each other.
        let most = MOST_SHIFT_NS.max(noise.max - noise.min);
        for Observed { title, runs, .. } in &rows {
            let with = time(runs, which);
            let shifts = with.iter().zip(&without).map(|(with, without)| with - without);
            let shift = Spread::of(shifts).ok_or_else(|| Failure::new("no run has percentiles"))?;
            section.findings.push(Finding {
                case: "observers".to_owned(),
                figure: format!("shift of the {name} of the response time, {title}, ns"),
                measured: cell(Some(shift), 0),
                limit: format!("< {most:.0}, how far runs without outputs are apart"),
                met: shift.median.abs() < most,
            });
        }
    }
    Ok(vec![section])
}

/// Everything that is measured beside no output at all. `control` is the address of the run's control port.
fn rows(session: &Session, control: &str) -> Vec<Observed> {
    let file = |name: &str| session.directory().join(name).display().to_string();
    let (stats, log, failed) = (file("observed.csv"), file("observed.log"), file("observed.failed"));
    let (store, saved) = (file("observed.db"), format!("ndjson={}", file("observed.ndjson")));
    let outputs = [
        "--stats",
        &stats,
        "--log",
        &log,
        "--log-sample",
        "1%",
        "--failed",
        &failed,
        "--control",
        "127.0.0.1:0",
        "--slices",
        "--prometheus",
        "127.0.0.1:0",
        // Nothing listens there, which is the worst case for an export.
        "--otlp=http://127.0.0.1:9/",
        "--otlp-interval",
        "1s",
        "--save",
        "--store",
        &store,
        "--out",
        &saved,
    ];
    // Runs of `plimsoll ui` have these.
    let ui = ["--control", control, "--save", "--store", &store];
    let row = |name, title, outputs: &[&str], is_looked_at, most| {
        let load = Load::plimsoll(session, &[&PLAIN[..], outputs].concat());
        Observed { name, title, load, is_looked_at, most, runs: Vec::new() }
    };
    vec![
        row("all", "all outputs", &outputs, false, MOST),
        row("ui", "a run of `plimsoll ui`, no page open", &ui, false, MOST_OF_PAGE),
        row("page", "the same with its page open", &ui, true, MOST_OF_PAGE),
    ]
}

/// Requests of `plimsoll ui` to a run that a page shows.
struct Page {
    /// Control port of the run.
    control: SocketAddr,
    /// Results that it was told.
    looks: AtomicU64,
}

impl Page {
    /// A page whose runs listen on a free port.
    fn new() -> Result<Self> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let control = free.map_err(|error| Failure::because("a free port", error))?;
        Ok(Self { control, looks: AtomicU64::new(0) })
    }

    /// Asks the run that `run` carries out for its figures and its result, once per second.
    fn open_during(&self, run: impl FnOnce() -> Result<Run>) -> Result<Run> {
        let before = self.looks.load(Ordering::Relaxed);
        let (end, ended) = channel::<()>();
        let run = thread::scope(|scope| {
            scope.spawn(move || {
                while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    let Some(stat) = self.ask("/stat") else { continue };
                    // As `plimsoll ui` does: what is known already is not asked for.
                    let elapsed = number(&stat, "\"elapsed_s\":").unwrap_or(0.0);
                    let told = self.ask(&format!("/result?after={}", (elapsed - 2.0).max(0.0)));
                    self.looks.fetch_add(u64::from(told.is_some()), Ordering::Relaxed);
                }
            });
            let run = run();
            drop(end);
            run
        })?;
        match self.looks.load(Ordering::Relaxed) > before {
            true => Ok(run),
            false => {
                Err(Failure::new("the control port told no result: is the run longer than two seconds?"))
            }
        }
    }

    /// Returns the answer, if there was one.
    fn ask(&self, path: &str) -> Option<String> {
        let exchange = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.control)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.control)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        // Before the run begins, and after it, nobody listens.
        exchange().ok().filter(|answer| answer.starts_with("HTTP/1.1 200 "))
    }
}

/// The number behind a name in an answer.
fn number(answer: &str, name: &str) -> Option<f64> {
    let (_, rest) = answer.split_once(name)?;
    rest.split([',', '}']).next()?.trim().parse().ok()
}
