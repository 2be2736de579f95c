//! `plimsoll target ingest`: a store to ingest into until it is stopped.

use plimsoll_core::figure;
use plimsoll_driver::KernelBackend;
use plimsoll_targets::Delay;
use plimsoll_targets::ingest::{
    Acknowledged, IngestCounts, IngestOptions, IngestReport, IngestServer, LieKind,
};

use super::{ServerMessages, Watch, raise_descriptors, stop};
use crate::args::server::ingest::IngestSpec;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::wording::{percent, url};
use crate::session::backend;
use crate::session::built_in_sink::ANOTHER_PORT;

/// Most measurements that are listed one by one at the end.
const TOLD: usize = 20;

pub(crate) fn command(spec: IngestSpec) -> Result<Exit, Failure> {
    let IngestSpec { options, backend, quiet } = spec;
    let (access, faults) = (access(&options), faults(&options));
    raise_descriptors();
    let server = start(options, backend::chosen(backend)?)?;
    let voice = ServerMessages { name: "target ingest", quiet };
    let watch = Watch::new(stop(server.stopper()))?;
    voice.say(format!("listening on {}", url(server.endpoint())));
    voice.say(access);
    // Faults are announced at the start, so that their errors surprise no one.
    if !faults.is_empty() {
        voice.say(format!("faults: {faults}"));
    }
    let report = server.wait();
    watch.end();
    for line in summary(&report) {
        voice.say(line);
    }
    Ok(Exit::Success)
}

fn start(options: IngestOptions, backend: KernelBackend) -> Result<IngestServer, Failure> {
    IngestServer::start(options, backend).map_err(|error| Failure::start(&error, ANOTHER_PORT))
}

/// Describes the credentials that the server asks for.
fn access(options: &IngestOptions) -> String {
    match options.tokens.len() {
        0 => "every client may read and write: no --token".to_owned(),
        1 => "1 token".to_owned(),
        tokens => format!("{} tokens", figure::count(tokens as u64)),
    }
}

/// The faults in force, in words; empty if there are none.
fn faults(options: &IngestOptions) -> String {
    let mut found = Vec::new();
    let mut add = |share: f64, what: &str| {
        if share > 0.0 {
            found.push(format!("{} {what}", percent(share)));
        }
    };
    if let Some(lie) = options.lie {
        add(
            lie.share,
            match lie.kind {
                LieKind::Lose => "of the writes acknowledged and lost",
                LieKind::Duplicate => "of the writes stored twice",
                LieKind::Late => "of the writes acknowledged and never flushed",
                LieKind::Unacknowledged => "of the writes stored and not acknowledged",
            },
        );
    }
    for (status, share) in &options.fails {
        add(*share, &format!("of the writes answered {status}"));
    }
    add(options.reset, "of the writes reset");
    if !found.is_empty() {
        found.push(format!("seed {}", options.seed));
    }
    if options.delay != Delay::None {
        found.push("replies delayed".to_owned());
    }
    if let Some(bytes) = options.full_after {
        found.push(format!("the disk is full after {} bytes", figure::count(bytes)));
    }
    found.join(", ")
}

/// Describes the requests and contents of the server, in lines.
fn summary(report: &IngestReport) -> Vec<String> {
    let mut lines: Vec<String> = report.acknowledged.iter().take(TOLD).map(told).collect();
    if let Some(more) = report.acknowledged.len().checked_sub(TOLD).filter(|more| *more > 0) {
        lines.push(format!("and {} measurements more", figure::count(more as u64)));
    }
    let IngestCounts { writes, bytes, refusals, failures, skipped, queries, violations, .. } = report.counts;
    let IngestCounts { queries_refused, over_memory, .. } = report.counts;
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            lines.push(format!("{} {what}", figure::count(count)));
        }
    };
    add(failures, "writes refused or reset on purpose");
    add(refusals, "writes refused as invalid");
    add(skipped, "parts of writes passed over, as the real server does");
    add(violations, "connections ended for a violation");
    add(over_memory, "connections ended because unfinished requests took too much memory");
    add(queries_refused, "queries refused because too many ran and waited");
    let rows: u64 = report.acknowledged.iter().map(|of| of.rows).sum();
    let [rows, writes, bytes] = [rows, writes, bytes].map(figure::count);
    lines.push(format!("{rows} rows acknowledged, in {writes} writes of {bytes} bytes"));
    let [queries, requests, connections] =
        [queries, report.counts.requests, report.counts.connections].map(figure::count);
    lines.push(format!("{requests} requests, {queries} of them queries, on {connections} connections"));
    lines
}

/// Describes the fate of the rows of one measurement.
fn told(of: &Acknowledged) -> String {
    let mut text = format!(
        "{}.{}: {} rows acknowledged, {} visible",
        of.database,
        of.measurement,
        figure::count(of.rows),
        figure::count(of.visible)
    );
    for (count, what) in [
        (of.buffered, "in the buffer"),
        (of.visible - of.kept, "without their values"),
        (of.lost, "lost on purpose"),
        (of.duplicated, "stored twice on purpose"),
        (of.late, "never flushed on purpose"),
        (of.unacknowledged, "stored and not acknowledged on purpose"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {} {what}", figure::count(count)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Nanos;
    use plimsoll_driver::Endpoint;
    use plimsoll_targets::ingest::Lie;

    use super::*;

    #[test]
    fn faults_are_told_as_they_were_typed() {
        let plain = IngestOptions::new(Endpoint::Unix("s".into()));
        assert_eq!(faults(&plain), "");
        let options = IngestOptions {
            lie: Some(Lie { kind: LieKind::Late, share: 0.025 }),
            fails: vec![(503, 0.1), (429, 0.0)],
            reset: 0.03,
            delay: Delay::Constant(Nanos(5)),
            full_after: Some(1_000_000),
            seed: 7,
            ..plain
        };
        assert_eq!(
            faults(&options),
            "2.5% of the writes acknowledged and never flushed, 10% of the writes answered 503, \
             3% of the writes reset, seed 7, replies delayed, the disk is full after 1,000,000 bytes"
        );
    }

    #[test]
    fn many_measurements_are_summed_up() {
        let of = |number: u64| Acknowledged {
            database: "d".to_owned(),
            measurement: format!("m{number}"),
            rows: 1000,
            visible: 900,
            kept: 800,
            lost: 100,
            ..Acknowledged::default()
        };
        let report =
            IngestReport { counts: IngestCounts::default(), acknowledged: (0..22).map(of).collect() };
        let lines = summary(&report);
        let first =
            "d.m0: 1,000 rows acknowledged, 900 visible, 100 without their values, 100 lost on purpose";
        assert_eq!((lines.len(), &*lines[0], &*lines[20]), (23, first, "and 2 measurements more"));
        assert_eq!(lines[21], "22,000 rows acknowledged, in 0 writes of 0 bytes");
    }
}
