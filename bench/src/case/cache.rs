//! The cache protocol: the cost of a PUT and a GET, beside that of a SET and a GET with redis-benchmark.
//!
//! The two speak different protocols, so each has its own server on the same core; only the cost of the
//! generators is compared, never the servers.

use crate::failure::{Failure, Result};
use crate::report::{Finding, Section, cell, spread};
use crate::run::{Load, Run, Tool, run};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::{Spread, paired_ratios};

/// Connections of every load.
const CONNECTIONS: &str = "50";
/// Bytes of a value.
const VALUE: &str = "100";
/// Keys, where there is not a new one each time.
const KEYS: &str = "10000";
/// Requests ahead on each connection, how many per second a generator should carry at least, and how many
/// redis-benchmark is given per second that its run should take.
const DEPTHS: [(u32, f64, u64); 2] = [(1, 400_000.0, 80_000), (16, 2_000_000.0, 500_000)];
/// The most that other patterns of keys may cost, as a ratio to sequential ones, either way.
const PATTERNS: f64 = 0.1;

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    // Before anything is started: a missing tool should not cost a run.
    Tool::RedisBenchmark.program(session)?;
    let target = Server::start(session, &Serves::Target("cache", vec!["--http".into(), "off".into()]))?;
    let redis = Server::start(session, &Serves::Redis)?;
    DEPTHS
        .into_iter()
        .map(|(depth, least, per_second)| {
            let counts = (least, per_second * u64::from(session.options.seconds));
            of_depth(session, (&target, &redis), depth, counts)
        })
        .collect()
}

/// A PUT and a GET of keys of this pattern.
fn subject(session: &Session, depth: u32, pattern: &[&str]) -> Load {
    let depth = depth.to_string();
    let args = ["cache", "--server", "{authority}", "-t", "1", "-c", CONNECTIONS, "-d", "{seconds}s"];
    let more = ["--output", "json", "--quiet", "--no-verify", "--value-size", VALUE, "--pipeline", &depth];
    let mut load = Load::new(Tool::Plimsoll, &[&args[..], &more, pattern].concat());
    if let Some(backend) = &session.options.backend {
        load.args.extend(["--backend".to_owned(), backend.clone()]);
    }
    load
}

fn of_depth(
    session: &Session,
    (target, redis): (&Server, &Server),
    depth: u32,
    (least, requests): (f64, u64),
) -> Result<Section> {
    let seconds = session.options.seconds;
    let patterns: [(&str, &[&str]); 3] = [
        ("sequential", &["--key", "sequential", "--keys", KEYS]),
        ("fixed", &["--key", "fixed"]),
        ("zipf", &["--key", "zipf", "--keys", KEYS]),
    ];
    let loads = patterns.map(|(name, pattern)| (name, subject(session, depth, pattern)));
    let (depth_text, requests) = (depth.to_string(), requests.to_string());
    let args = ["-h", "{host}", "-p", "{port}", "-t", "set,get", "-c", CONNECTIONS, "-d", VALUE, "-r", KEYS];
    let more = ["-P", &depth_text, "-n", &requests];
    let peer = Load::new(Tool::RedisBenchmark, &[&args[..], &more].concat());

    let mut ours: [Vec<Run>; 3] = Default::default();
    let mut theirs = Vec::new();
    for pair in 0..session.options.pairs {
        let mut turns = vec![0, 1, 2, 3];
        if pair % 2 == 1 {
            turns.reverse();
        }
        for turn in turns {
            match loads.get(turn) {
                Some((_, load)) => ours[turn].push(run(session, target, load, seconds, &[])?),
                None => theirs.push(run(session, redis, &peer, seconds, &[])?),
            }
        }
    }

    let ahead =
        if depth == 1 { "one request at a time".to_owned() } else { format!("{depth} requests ahead") };
    let mut section = Section::titled(&format!("PUT and GET, closed, 50 connections, {ahead}"));
    let line = |load: &Load, server| Ok(load.pinned(session, server, seconds)?.line(session.directory()));
    section.commands(&[
        target.line.clone(),
        redis.line.clone(),
        line(&loads[0].1, target)?,
        line(&peer, redis)?,
    ]);
    let row = |name: &str, runs: &[Run]| {
        vec![
            name.to_owned(),
            cell(spread(runs, Run::total_us), 3),
            cell(spread(runs, Run::user_us), 3),
            cell(spread(runs, |run| run.reading.per_s), 0),
            cell(spread(runs, |run| run.server_share * 100.0), 0),
        ]
    };
    let named = loads.iter().zip(&ours).map(|((name, _), runs)| row(&format!("plimsoll, {name} keys"), runs));
    let rows: Vec<_> = named.chain([row("redis-benchmark", &theirs)]).collect();
    let head =
        ["tool", "CPU µs per operation", "in user mode", "operations/s", "server's use of its core, %"];
    section.table(&head, &rows);

    let cost = |runs: &[Run]| runs.iter().map(Run::total_us).collect::<Vec<_>>();
    let ratio = |of: &[Run], to: &[Run]| {
        Spread::of(paired_ratios(&cost(of), &cost(to)))
            .ok_or_else(|| Failure::new("no pair of runs was made"))
    };
    let mut find = |figure: String, measured: Spread, places, limit: String, met| {
        let (case, measured) = (format!("cache, depth {depth}"), cell(Some(measured), places));
        section.findings.push(Finding { case, figure, measured, limit, met });
    };
    let to_peer = ratio(&ours[0], &theirs)?;
    find("CPU per operation, to redis-benchmark".into(), to_peer, 2, "≤ 1".into(), to_peer.median <= 1.0);
    let rate = spread(&ours[0], |run| run.reading.per_s);
    let rate = rate.ok_or_else(|| Failure::new("no pair of runs was made"))?;
    find("operations/s".into(), rate, 0, format!("≥ {least:.0}"), rate.median >= least);
    for (index, (name, _)) in loads.iter().enumerate().skip(1) {
        let ratio = ratio(&ours[index], &ours[0])?;
        let met = (ratio.median - 1.0).abs() <= PATTERNS;
        find(format!("CPU of {name} to sequential keys"), ratio, 2, "0.9 to 1.1".into(), met);
    }
    Ok(section)
}
