//! Memory: of many connections with little to do, and over the length of a run.

use crate::failure::{Failure, Result};
use crate::report::{Finding, Section, cell, spread};
use crate::run::{Load, Run, run};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::Spread;

/// Connections of the first part.
const CONNECTIONS: u32 = 10_000;
/// Requests per second over all of them: one per connection in 2 s, so that nearly all are idle at any time,
/// and have been used before.
const RATE: &str = "5000";
/// Most memory that Plimsoll may use without connections, in bytes.
const BASE_BYTES: f64 = (20 << 20) as f64;
/// Most memory that it may use for each connection, in KiB.
const PER_CONNECTION_KIB: f64 = 8.0;
/// Growth that counts as none, in KiB: less than a tenth of a byte per request at 50,000/s for 50 s, and room
/// for the result of one second after the other.
const NO_GROWTH_KIB: f64 = 256.0;

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    Ok(vec![idle(session)?, growth(session)?])
}

fn idle(session: &Session) -> Result<Section> {
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let seconds = session.options.seconds;
    let [one, many] = [1, CONNECTIONS]
        .map(|connections| Load::plimsoll(session, &["-c", &connections.to_string(), "--rate", RATE]));
    let (mut base, mut runs) = (Vec::new(), Vec::new());
    for _ in 0..session.options.pairs {
        base.push(run(session, &server, &one, seconds, &[])?);
        let run = run(session, &server, &many, seconds, &[])?;
        let open = run.reading.detail.peak_open;
        if open != u64::from(CONNECTIONS) {
            return Err(Failure::new(format!("{open} connections were open instead of {CONNECTIONS}")));
        }
        runs.push(run);
    }
    let line =
        |load: &Load| load.pinned(session, &server, seconds).map(|pinned| pinned.line(session.directory()));
    let mut section = Section::titled("Memory of 10,000 connections");
    section.commands(&[server.line.clone(), line(&one)?, line(&many)?]);
    let each = spread(&runs, per_connection_kib);
    let own = Spread::of(
        base.iter()
            .zip(&runs)
            .map(|(base, run)| (run.peak_mib() - base.peak_mib()) * 1024.0 / f64::from(CONNECTIONS - 1)),
    );
    let row = |name: &str, base: String, many: String| vec![name.to_owned(), base, many];
    section.table(
        &["", "1 connection", "10,000 connections"],
        &[
            row(
                "peak RSS, MiB",
                cell(spread(&base, Run::peak_mib), 1),
                cell(spread(&runs, Run::peak_mib), 1),
            ),
            row("above 20 MiB, KiB per connection", String::new(), cell(each, 2)),
            row("above 1 connection, KiB per connection", String::new(), cell(own, 2)),
        ],
    );
    section.findings.push(Finding {
        case: "memory, 10,000 connections".to_owned(),
        figure: "peak RSS above 20 MiB, KiB per connection".to_owned(),
        measured: cell(each, 2),
        limit: format!("≤ {PER_CONNECTION_KIB:.0}"),
        met: each.is_some_and(|each| each.median <= PER_CONNECTION_KIB),
    });
    Ok(section)
}

fn per_connection_kib(run: &Run) -> f64 {
    (run.usage.rss_peak_bytes as f64 - BASE_BYTES).max(0.0) / 1024.0 / f64::from(CONNECTIONS)
}

fn growth(session: &Session) -> Result<Section> {
    let looks = &session.options.growth;
    let [from, to] = looks[..] else { return Err(Failure::new("--growth takes two seconds")) };
    if from >= to {
        return Err(Failure::new("--growth: the second moment has to come after the first"));
    }
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let load = Load::plimsoll(session, &["-c", "64"]);
    // One more second, so that no sample falls into the writing of the report.
    let run = run(session, &server, &load, to + 1, looks)?;
    let &[before, after] = &run.resident_bytes[..] else {
        return Err(Failure::new(format!("the run ended before second {to}")));
    };
    let grown_kib = (after as f64 - before as f64) / 1024.0;
    let mut section = Section::titled("Memory over time");
    section
        .commands(&[server.line.clone(), load.pinned(session, &server, to + 1)?.line(session.directory())]);
    section.table(
        &["requests", &format!("RSS at {from} s, KiB"), &format!("RSS at {to} s, KiB"), "growth, KiB"],
        &[vec![
            run.reading.completed.to_string(),
            (before / 1024).to_string(),
            (after / 1024).to_string(),
            format!("{grown_kib:.0}"),
        ]],
    );
    section.findings.push(Finding {
        case: format!("memory, second {from} to {to}"),
        figure: "growth of RSS, KiB".to_owned(),
        measured: format!("{grown_kib:.0}"),
        limit: format!("≤ {NO_GROWTH_KIB:.0}"),
        met: grown_kib <= NO_GROWTH_KIB,
    });
    Ok(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Reading;

    #[test]
    fn what_is_below_the_base_is_no_connections_memory() {
        let peak = |rss_peak_bytes| {
            let mut run = Run::undisturbed(1.0, 1.0, Reading::default());
            run.usage.rss_peak_bytes = rss_peak_bytes;
            run
        };
        assert_eq!(per_connection_kib(&peak(10 << 20)), 0.0);
        assert_eq!(per_connection_kib(&peak((20 << 20) + 10_000 * 8192)), 8.0);
    }
}
