//! Memory of many HTTP/2 connections with many streams each.

use crate::failure::{Failure, Result};
use crate::options::Peer;
use crate::report::{Finding, Section, cell, invalid_runs, spread};
use crate::run::{Load, Run, Tool, run};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::Spread;

const CONNECTIONS: u32 = 1_000;
/// Streams on each of them.
const STREAMS: u32 = 100;

/// Carries out the case: 1 x 1 is the memory that Plimsoll needs in any case, 1,000 x 1 shows that of a
/// connection, and 1,000 x 100 that of a stream.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let seconds = session.options.seconds;
    let plimsoll = |connections: u32, streams: u32| {
        let (connections, streams) = (connections.to_string(), streams.to_string());
        Load::plimsoll(session, &["--http2", "-c", &connections, "-m", &streams])
    };
    let loads = [plimsoll(1, 1), plimsoll(CONNECTIONS, 1), plimsoll(CONNECTIONS, STREAMS)];
    let peer = Load::new(
        Tool::Peer(Peer::H2load),
        &["-t1", &format!("-c{CONNECTIONS}"), &format!("-m{STREAMS}"), "-D", "{seconds}", "{url}"],
    );
    peer.tool.program(session)?;
    let (mut runs, mut peers) = ([const { Vec::new() }; 3], Vec::new());
    for _ in 0..session.options.pairs {
        for (load, runs) in loads.iter().zip(&mut runs) {
            runs.push(run(session, &server, load, seconds, &[])?);
        }
        peers.push(run(session, &server, &peer, seconds, &[])?);
    }
    let [base, connections, streams] = runs;
    for run in connections.iter().chain(&streams) {
        let open = run.reading.detail.peak_open;
        if open != u64::from(CONNECTIONS) {
            return Err(Failure::new(format!("{open} connections were open instead of {CONNECTIONS}")));
        }
    }
    let mut section = Section::titled("HTTP/2: memory of 1,000 connections x 100 streams");
    let mut lines = vec![server.line.clone()];
    for load in loads.iter().chain([&peer]) {
        lines.push(load.pinned(session, &server, seconds)?.line(session.directory()));
    }
    section.commands(&lines);
    section.table(
        &["", "1 x 1", "1,000 x 1", "1,000 x 100", "h2load, 1,000 x 100"],
        &[
            row("peak RSS, MiB", [&base, &connections, &streams, &peers], Run::peak_mib, 1),
            row("requests/s", [&base, &connections, &streams, &peers], |run| run.reading.per_s, 0),
            row("CPU µs per request", [&base, &connections, &streams, &peers], Run::total_us, 2),
        ],
    );
    let each_connection = growth_bytes(&base, &connections, CONNECTIONS - 1);
    let each_stream = growth_bytes(&connections, &streams, CONNECTIONS * (STREAMS - 1));
    section.note(format!("Per connection, beside its streams: {} bytes.", cell(each_connection, 0)));
    section.note(format!("Per stream: {} bytes.", cell(each_stream, 0)));
    section
        .note("h2load keeps figures of every request, so that its memory grows with the length of its run.");
    if let Some(invalid) = invalid_runs(&streams) {
        section.note(format!("Plimsoll's verdict on itself was `invalid` in {invalid}."));
    }
    section.findings.push(Finding {
        case: "h2memory".to_owned(),
        figure: "bytes per connection; per stream".to_owned(),
        measured: format!("{}; {}", cell(each_connection, 0), cell(each_stream, 0)),
        limit: "runs".to_owned(),
        // A run that had not served every stream would be an error above.
        met: true,
    });
    Ok(vec![section])
}

fn row(name: &str, columns: [&[Run]; 4], figure: impl Fn(&Run) -> f64, places: usize) -> Vec<String> {
    let cells = columns.map(|runs| cell(spread(runs, &figure), places));
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// By how much the peak grew from one run to the one beside it, shared among `count`, in bytes.
fn growth_bytes(from: &[Run], to: &[Run], count: u32) -> Option<Spread> {
    let peak = |run: &Run| run.usage.rss_peak_bytes as f64;
    Spread::of(from.iter().zip(to).map(|(from, to)| (peak(to) - peak(from)) / f64::from(count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Reading;

    #[test]
    fn growth_is_shared_among_what_came_on_top() {
        let peak = |rss_peak_bytes| {
            let mut run = Run::undisturbed(1.0, 1.0, Reading::default());
            run.usage.rss_peak_bytes = rss_peak_bytes;
            run
        };
        let (from, to) = ([peak(1_000), peak(2_000)], [peak(5_000), peak(2_500)]);
        assert_eq!(growth_bytes(&from, &to, 10), Some(Spread { median: 225.0, min: 50.0, max: 400.0 }));
        let cells = row("rss", [&from, &to, &[], &from], |run| run.usage.rss_peak_bytes as f64, 0);
        assert_eq!(cells[..2], ["rss", "1500 (1000..2000)"]);
        assert_eq!(cells[3], "–");
    }
}
