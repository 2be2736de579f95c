//! Calls of a canister: how fast queries that are there before the run are sent beside plain requests of
//! their size, and queries that are made meanwhile.

use crate::failure::{Failure, Result};
use crate::report::{Finding, Section, cell, spread};
use crate::run::{Load, Run, Tool, in_turn};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::{Spread, paired_ratios};

/// A key that belongs to nobody.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIPX8G5jnHt5tW0cMqAbaqDg8k37K3d/eROQz7YbXMeL6\n\
    -----END PRIVATE KEY-----\n";
/// Bytes of a signed query with a nonce: the length of the plain request.
const BYTES: usize = 335;
/// Queries per second that are made before a run of so many seconds: more than one core sends.
const AHEAD_PER_S: f64 = 350_000.0;
/// The most that such a query may cost beside a plain request.
const STATIC: f64 = 1.10;

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let server = Server::start(session, &Serves::Sink(Vec::new()))?;
    let key = session.directory().join("key.pem");
    std::fs::write(&key, KEY).map_err(|error| Failure::because(key.display(), error))?;
    let key = key.display().to_string();
    let body = "x".repeat(BYTES);
    let seconds = session.options.seconds;
    let made = ((f64::from(seconds) + 1.0) * AHEAD_PER_S).to_string();
    let canister = ["canister", "http://{authority}", "--no-status-check", "--query-nonce"];
    let loads = [
        ("plain POST", vec!["run", "{url}", "-X", "POST", "-b", &body]),
        (
            "query, Ed25519, signed before",
            [&canister[..], &["--pem-file", &key, "--presign", &made]].concat(),
        ),
        ("query, anonymous", canister.to_vec()),
        ("query, Ed25519", [&canister[..], &["--pem-file", &key]].concat()),
    ];
    let loads = loads.map(|(name, args)| {
        let more = ["-c", "64", "-t", "1", "-d", "{seconds}s", "--output", "json", "--quiet"];
        (name, Load::new(Tool::Plimsoll, &[&args[..], &more].concat()))
    });
    let runs = in_turn(session, &server, &loads)?;
    let mut section = Section::titled("Queries of a canister, closed, 64 connections, against the sink");
    let line = |load: &Load| Ok(load.pinned(session, &server, seconds)?.line(session.directory()));
    section.commands(&[server.line.clone(), line(&loads[1].1)?, line(&loads[3].1)?]);
    let row = |(name, runs): (&str, &Vec<Run>)| {
        vec![
            name.to_owned(),
            cell(spread(runs, |run| run.reading.per_s), 0),
            cell(spread(runs, |run| run.server_share * 100.0), 0),
        ]
    };
    let names = loads.iter().map(|(name, _)| *name);
    let rows: Vec<_> = names.zip(&runs).map(row).collect();
    section.table(&["load", "requests/s", "server's use of its core, %"], &rows);
    let speed = |runs: &[Run]| runs.iter().map(|run| run.reading.per_s).collect::<Vec<_>>();
    let ratio = Spread::of(paired_ratios(&speed(&runs[0]), &speed(&runs[1])));
    let ratio = ratio.ok_or_else(|| Failure::new("no pair of runs was made"))?;
    section.findings.push(Finding {
        case: "canister".to_owned(),
        figure: "plain POSTs per second, to queries that were signed before".to_owned(),
        measured: cell(Some(ratio), 2),
        limit: format!("≤ {STATIC}"),
        met: ratio.median <= STATIC,
    });
    Ok(vec![section])
}
