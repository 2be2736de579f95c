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

/// Requests per second.
const RATE: &str = "20000";
/// The most that all outputs may cost, as a ratio of CPU time per request.
const MOST: f64 = 1.03;
/// The same for an open page.
const MOST_OF_PAGE: f64 = 1.01;
/// Time between two looks of a page, as `plimsoll ui` has it.
const LOOK: Duration = Duration::from_secs(1);
/// Nanoseconds by which all outputs may change a percentile in any case (R20).
const MOST_SHIFT_NS: f64 = 1000.0;

/// Carries out the case: rounds of runs with no output, with all of them, and with an open page, in changing
/// order.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let seconds = session.options.seconds;
    let file = |name: &str| session.directory().join(name).display().to_string();
    let (stats, log, failed) = (file("observed.csv"), file("observed.log"), file("observed.failed"));
    let (store, saved) = (file("observed.db"), format!("ndjson={}", file("observed.ndjson")));
    let page = Page::new()?;
    let control = page.control.to_string();
    let load = ["-c", "50", "--rate", RATE];
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
    let plain = Load::plimsoll(session, &load);
    let observed = Load::plimsoll(session, &[&load[..], &outputs].concat());
    let shown = ["--control", &control, "--save", "--store", &store];
    let shown = Load::plimsoll(session, &[&load[..], &shown].concat());
    let (mut without, mut with, mut paged): (Vec<Run>, Vec<Run>, Vec<Run>) = Default::default();
    for round in 0..session.options.pairs {
        let mut order = [0, 1, 2];
        order.rotate_left(round as usize % 3);
        for which in order {
            match which {
                0 => without.push(run(session, &server, &plain, seconds, &[])?),
                1 => with.push(run(session, &server, &observed, seconds, &[])?),
                _ => paged.push(page.open_during(|| run(session, &server, &shown, seconds, &[]))?),
            }
        }
    }
    let ratio = |runs: &[Run]| {
        let ratios = runs.iter().zip(&without).map(|(with, without)| with.total_us() / without.total_us());
        Spread::of(ratios).ok_or_else(|| Failure::new("no pair of runs was made"))
    };
    let (all, open) = (ratio(&with)?, ratio(&paged)?);
    let mut section = Section::titled("GET, open, 20,000/s, every output on and off, against the sink");
    let line = |load: &Load| Ok(load.pinned(session, &server, seconds)?.line(session.directory()));
    section.commands(&[server.line.clone(), line(&plain)?, line(&observed)?, line(&shown)?]);
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
    section.table(
        &["outputs", "CPU µs per request", "in user mode", "p50 µs", "p99 µs"],
        &[row("none", &without), row("all", &with), row("a page of `plimsoll ui`", &paged)],
    );
    section.note(format!(
        "All outputs cost {} times as much, an open page {} times, within the rounds. The page looked {} times.",
        cell(Some(all), 3),
        cell(Some(open), 3),
        page.looks.load(Ordering::Relaxed),
    ));
    for (figure, ratio, most) in [
        ("CPU per request, all outputs to none", all, MOST),
        ("CPU per request, an open page to none", open, MOST_OF_PAGE),
    ] {
        section.findings.push(Finding {
            case: "observers".to_owned(),
            figure: figure.to_owned(),
            measured: cell(Some(ratio), 3),
            limit: format!("< {most}"),
            met: ratio.median < most,
        });
    }
    let observers = [("", &with), (", an open page", &paged)];
    for ((which, name), (what, runs)) in
        ["p50", "p99"].into_iter().enumerate().flat_map(|p| observers.map(|observer| (p, observer)))
    {
        let (with, without) = (time(runs, which), time(&without, which));
        let shifts = with.iter().zip(&without).map(|(with, without)| with - without);
        let shift = Spread::of(shifts).ok_or_else(|| Failure::new("no run has percentiles"))?;
        let noise = Spread::of(without).ok_or_else(|| Failure::new("no run has percentiles"))?;
        // The noise is the distance between runs without outputs.
        let most = MOST_SHIFT_NS.max(noise.max - noise.min);
        section.findings.push(Finding {
            case: "observers".to_owned(),
            figure: format!("shift of the {name} of the response time{what}, ns"),
            measured: cell(Some(shift), 0),
            limit: format!("< {most:.0}, how far runs without outputs are apart"),
            met: shift.median.abs() < most,
        });
    }
    Ok(vec![section])
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
                    let told = ["/stat", "/result"].map(|path| self.ask(path));
                    self.looks.fetch_add(u64::from(told == [true; 2]), Ordering::Relaxed);
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

    /// Returns `true` if there was an answer.
    fn ask(&self, path: &str) -> bool {
        let exchange = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.control)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.control)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        // Nothing listens before the run begins, and after it.
        exchange().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
    }
}
