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
    let row = |name: &str, runs: &[Run]| {
        vec![name.to_owned(), cell(spread(runs, Run::total_us), 3), cell(spread(runs, Run::user_us), 3)]
    };
    section.table(
        &["outputs", "CPU µs per request", "in user mode"],
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
    Ok(vec![section])
}
