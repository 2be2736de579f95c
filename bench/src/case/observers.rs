//! The observer effect: what every output turned on costs the generator above none (R20).

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
/// Nanoseconds by which all outputs may change a percentile in any case (R20).
const MOST_SHIFT_NS: f64 = 1000.0;

/// Carries out the case: pairs of runs, with all outputs and with none, in alternating order.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let seconds = session.options.seconds;
    let file = |name: &str| session.directory().join(name).display().to_string();
    let (stats, log, failed) = (file("observed.csv"), file("observed.log"), file("observed.failed"));
    let (store, saved) = (file("observed.db"), format!("ndjson={}", file("observed.ndjson")));
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
        // Nobody listens there: the worst that can happen to an export.
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
    let (mut without, mut with): (Vec<Run>, Vec<Run>) = (Vec::new(), Vec::new());
    for pair in 0..session.options.pairs {
        let mut order = [(&plain, &mut without), (&observed, &mut with)];
        if pair % 2 == 1 {
            order.reverse();
        }
        for (load, runs) in order {
            runs.push(run(session, &server, load, seconds, &[])?);
        }
    }
    let ratios = with.iter().zip(&without).map(|(with, without)| with.total_us() / without.total_us());
    let ratio = Spread::of(ratios).ok_or_else(|| Failure::new("no pair of runs was made"))?;
    let mut section = Section::titled("GET, open, 20,000/s, every output on and off, against the sink");
    let line = |load: &Load| Ok(load.pinned(session, &server, seconds)?.line(session.directory()));
    section.commands(&[server.line.clone(), line(&plain)?, line(&observed)?]);
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
        &[row("none", &without), row("all", &with)],
    );
    section.note(format!("All outputs cost {} times as much, within the pairs.", cell(Some(ratio), 3)));
    section.findings.push(Finding {
        case: "observers".to_owned(),
        figure: "CPU per request, all outputs to none".to_owned(),
        measured: cell(Some(ratio), 3),
        limit: format!("< {MOST}"),
        met: ratio.median < MOST,
    });
    for (which, name) in ["p50", "p99"].into_iter().enumerate() {
        let (with, without) = (time(&with, which), time(&without, which));
        let shifts = with.iter().zip(&without).map(|(with, without)| with - without);
        let shift = Spread::of(shifts).ok_or_else(|| Failure::new("no run has percentiles"))?;
        let noise = Spread::of(without).ok_or_else(|| Failure::new("no run has percentiles"))?;
        // The noise is how far runs without outputs are from each other.
        let most = MOST_SHIFT_NS.max(noise.max - noise.min);
        section.findings.push(Finding {
            case: "observers".to_owned(),
            figure: format!("shift of the {name} of the response time, ns"),
            measured: cell(Some(shift), 0),
            limit: format!("< {most:.0}, how far runs without outputs are apart"),
            met: shift.median.abs() < most,
        });
    }
    Ok(vec![section])
}
