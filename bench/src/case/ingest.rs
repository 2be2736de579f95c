//! Ingest: the cost of making batches, the cost of sending existing ones beside other requests of their size,
//! and whether one core carries the loads of Arc's guide.

use plimsoll_synth::{Compression, Kind, Spec, Synthesizer};

use crate::failure::{Failure, Result};
use crate::machine::process_cpu_us;
use crate::report::{Finding, Section, cell, spread};
use crate::run::{Load, Run, Tool, run};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::{Spread, paired_ratios};

/// Records of a batch.
const BATCH: u32 = 1_000;
/// Batches between two looks at the clock.
const STRIDE: u64 = 500;
/// Kinds, their compression, and how many millions of records a core should make per second at least.
const SPEEDS: [(Kind, Compression, f64); 7] = [
    (Kind::Metrics, Compression::None, 20.0),
    (Kind::Metrics, Compression::Gzip { level: 1 }, 4.0),
    (Kind::Metrics, Compression::Zstd { level: 1 }, 8.0),
    (Kind::Logs, Compression::None, 3.0),
    (Kind::Logs, Compression::Gzip { level: 1 }, 0.0),
    (Kind::Traces, Compression::None, 3.0),
    (Kind::Events, Compression::None, 0.0),
];
/// Rates that the guide's scripts reached with fourteen cores, in records per second.
const HEADLINES: [(Kind, u32); 4] =
    [(Kind::Metrics, 2_910_000), (Kind::Logs, 968_000), (Kind::Traces, 784_000), (Kind::Events, 981_000)];
/// The share of such a rate that has to be reached.
const REACHED: f64 = 0.99;
/// The most that an existing batch may cost beside a fixed body of its size: the variation between pairs.
const STATIC: f64 = 1.05;

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    Ok(vec![made(session)?, ready(session)?, headlines(session)?])
}

fn spec(kind: Kind, compression: Compression) -> Spec {
    Spec { kind, compression, batch_size: BATCH, ..Spec::default() }
}

fn unmade(problems: Vec<plimsoll_synth::Problem>) -> Failure {
    Failure::new(problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("; "))
}

/// Batches made in this process, by its CPU time.
fn made(session: &Session) -> Result<Section> {
    let mut section = Section::titled("Batches of 1,000 records, columnar, made by one thread");
    let mut rows = Vec::new();
    for (kind, compression, least) in SPEEDS {
        let mut synthesizer = Synthesizer::new(&spec(kind, compression), 1).map_err(unmade)?;
        let (mut out, mut index, mut bytes) = (Vec::new(), 0, 0);
        let mut speeds = Vec::new();
        for _ in 0..session.options.pairs {
            let pid = std::process::id();
            let (begin, first) = (process_cpu_us(pid)?, index);
            let mut spent = 0.0;
            while spent < 1e6 {
                for _ in 0..STRIDE {
                    synthesizer.batch(index, 1_700_000_000_000_000_000 + index * 1_000_000, &mut out);
                    index += 1;
                }
                spent = process_cpu_us(pid)? - begin;
            }
            bytes = out.len();
            // Records per microsecond are millions per second.
            speeds.push((index - first) as f64 * f64::from(BATCH) / spent);
        }
        let speed = Spread::of(speeds).ok_or_else(|| Failure::new("no round was made"))?;
        let name = format!("{kind}, {}", compression.name());
        rows.push(vec![name.clone(), cell(Some(speed), 1), bytes.to_string()]);
        if least > 0.0 {
            section.findings.push(Finding {
                case: "ingest".to_owned(),
                figure: format!("{name}: million records per second of CPU"),
                measured: cell(Some(speed), 1),
                limit: format!("≥ {least}"),
                met: speed.median >= least,
            });
        }
    }
    section.table(&["batches", "million records per second of CPU", "bytes of the last one"], &rows);
    Ok(section)
}

/// Batches that are there before the run, beside one body of their size over and over.
fn ready(session: &Session) -> Result<Section> {
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let mut body = Vec::new();
    let metrics = spec(Kind::Metrics, Compression::None);
    Synthesizer::new(&metrics, 1).map_err(unmade)?.batch(0, 1_700_000_000_000_000_000, &mut body);
    let file = session.directory().join("batch.msgpack");
    std::fs::write(&file, &body).map_err(|error| Failure::because(file.display(), error))?;
    let file = format!("@{}", file.display());
    let one = ingest(session, &["metrics", "--pregenerate", "1", "-c", "8"]);
    // More than a second-level cache holds, as a server sees it from any client.
    let many = ingest(session, &["metrics", "--pregenerate", "500", "-c", "8"]);
    let fixed = Load::plimsoll(session, &["-c", "8", "-X", "POST", "--body", &file]);
    let seconds = session.options.seconds;
    let (mut ours, mut others, mut theirs): (Vec<Run>, Vec<Run>, Vec<Run>) = Default::default();
    for pair in 0..session.options.pairs {
        let mut order = [(&one, &mut ours), (&fixed, &mut theirs), (&many, &mut others)];
        if pair % 2 == 1 {
            order.reverse();
        }
        for (load, runs) in order {
            runs.push(run(session, &server, load, seconds, &[])?);
        }
    }
    let mut section =
        Section::titled("POST of batches made before, beside a fixed body, closed, 8 connections");
    let line = |load: &Load| Ok(load.pinned(session, &server, seconds)?.line(session.directory()));
    section.commands(&[server.line.clone(), line(&one)?, line(&many)?, line(&fixed)?]);
    let row = |name: &str, runs: &[Run]| {
        vec![
            name.to_owned(),
            cell(spread(runs, Run::total_us), 2),
            cell(spread(runs, Run::user_us), 2),
            cell(spread(runs, |run| run.reading.per_s), 0),
        ]
    };
    let head = ["body", "CPU µs per request", "in user mode", "requests/s"];
    let rows = [row("one batch", &ours), row("500 batches in turn", &others), row("one file", &theirs)];
    section.table(&head, &rows);
    let cost = |runs: &[Run]| runs.iter().map(Run::total_us).collect::<Vec<_>>();
    let ratio = Spread::of(paired_ratios(&cost(&ours), &cost(&theirs)));
    let ratio = ratio.ok_or_else(|| Failure::new("no pair of runs was made"))?;
    section.findings.push(Finding {
        case: "ingest".to_owned(),
        figure: "CPU of one batch over and over, to a file of its size".to_owned(),
        measured: cell(Some(ratio), 2),
        limit: format!("≤ {STATIC}"),
        met: ratio.median <= STATIC,
    });
    Ok(section)
}

/// The rates of the guide from one core, which makes the batches, too.
fn headlines(session: &Session) -> Result<Section> {
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let seconds = session.options.seconds;
    let mut section = Section::titled("Fresh batches at the rates of Arc's guide, all of it on one core");
    let (mut lines, mut rows) = (vec![server.line.clone()], Vec::new());
    for (kind, rate) in HEADLINES {
        let text = rate.to_string();
        let load = ingest(session, &[kind.name(), "--rate", &text, "-c", "16"]);
        let runs: Vec<Run> = (0..session.options.pairs)
            .map(|_| run(session, &server, &load, seconds, &[]))
            .collect::<Result<_>>()?;
        lines.push(load.pinned(session, &server, seconds)?.line(session.directory()));
        let records = spread(&runs, |run| run.reading.per_s * f64::from(BATCH));
        let records = records.ok_or_else(|| Failure::new("no run was made"))?;
        let busy = spread(&runs, |run| run.total_us() * run.reading.per_s / 1e4);
        rows.push(vec![
            kind.to_string(),
            text,
            cell(Some(records), 0),
            cell(busy, 0),
            cell(spread(&runs, |run| run.server_share * 100.0), 0),
        ]);
        section.findings.push(Finding {
            case: "ingest".to_owned(),
            figure: format!("{kind} per second from one core"),
            measured: cell(Some(records), 0),
            limit: format!("≥ {:.0}", f64::from(rate) * REACHED),
            met: records.median >= f64::from(rate) * REACHED,
        });
    }
    section.commands(&lines);
    let head =
        ["records", "asked per s", "acknowledged per s", "use of the core, %", "server's use of its core, %"];
    section.table(&head, &rows);
    Ok(section)
}

/// Ingest with one worker and the session's backend.
fn ingest(session: &Session, args: &[&str]) -> Load {
    let fixed = ["--url", "{url}", "-t", "1", "-d", "{seconds}s", "--output", "json", "--quiet"];
    let mut load = Load::new(Tool::Plimsoll, &[&["ingest"][..], args, &fixed].concat());
    if let Some(backend) = &session.options.backend {
        load.args.extend(["--backend".to_owned(), backend.clone()]);
    }
    load
}
