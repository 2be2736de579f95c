//! A REST resource: the cost of creating, changing and verifying its items beside the same requests of a
//! plain load, 512 of them in flight.

use crate::failure::{Failure, Result};
use crate::report::{Finding, Section, cell, spread};
use crate::run::{Load, Run, Tool, in_turn};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::Spread;

/// Requests in flight.
const CONCURRENCY: &str = "512";
/// The most that a request may cost above one of the plain load, in microseconds.
const MORE_US: f64 = 1.0;
/// Body that `plimsoll crud` sends to create an item.
const PAYLOAD: &str = "{\"name\":\"lg_${sequence}_${random_int(0,4294967295)}\",\
    \"price\":${random_int(100,4999)}.99,\"category\":\"${pick(Electronics,Books,Clothing,Sports)}\"}";

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let data = session.directory().join("node").display().to_string();
    let flags = ["--raft", "127.0.0.1:0", "--fsync", "never", "--data", &data].map(str::to_owned);
    let node = Server::start(session, &Serves::Target("crud-node", flags.to_vec()))?;
    let plain = ["run", "{url}api/products", "-X", "POST", "-b", PAYLOAD, "-c", CONCURRENCY];
    let plain = [&plain[..], &["-H", "Content-Type: application/json"]].concat();
    let crud = ["crud", "--leader", "http://{authority}", "--concurrency", CONCURRENCY];
    let mix = ["--create-pct", "50", "--read-pct", "30", "--update-pct", "15", "--delete-pct", "5"];
    let count = ["--read-path", "/api/products/count"];
    let loads = [
        ("plain POST", plain),
        ("crud, single", crud.to_vec()),
        ("crud, mix 50/30/15/5", [&crud[..], &mix, &count].concat()),
        ("crud, mix, PATCH", [&crud[..], &mix, &count, &["--update", "patch"]].concat()),
    ];
    let loads = loads.map(|(name, args)| {
        let more = ["-t", "1", "-d", "{seconds}s", "--output", "json", "--quiet"];
        (name, Load::new(Tool::Plimsoll, &[&args[..], &more].concat()))
    });
    let seconds = session.options.seconds;
    let runs = in_turn(session, &node, &loads)?;
    let mut section =
        Section::titled("A REST resource, closed, 512 in flight, one node of the reference cluster");
    let line = |load: &Load| Ok(load.pinned(session, &node, seconds)?.line(session.directory()));
    section.commands(&[node.line.clone(), line(&loads[1].1)?, line(&loads[2].1)?]);
    let row = |(name, runs): (&str, &Vec<Run>)| {
        vec![
            name.to_owned(),
            cell(spread(runs, Run::total_us), 2),
            cell(spread(runs, Run::user_us), 2),
            cell(spread(runs, |run| run.reading.per_s), 0),
            cell(spread(runs, |run| run.server_share * 100.0), 0),
        ]
    };
    let names = loads.iter().map(|(name, _)| *name);
    let rows: Vec<_> = names.zip(&runs).map(row).collect();
    let head = ["load", "CPU µs per request", "in user mode", "requests/s", "server's use of its core, %"];
    section.table(&head, &rows);
    let cost = |runs: &[Run]| runs.iter().map(Run::total_us).collect::<Vec<_>>();
    for ((name, _), of_load) in loads.iter().zip(&runs).skip(1) {
        let more: Vec<f64> =
            cost(of_load).iter().zip(cost(&runs[0])).map(|(of_load, plain)| of_load - plain).collect();
        let more = Spread::of(more).ok_or_else(|| Failure::new("no pair of runs was made"))?;
        section.findings.push(Finding {
            case: "resource".to_owned(),
            figure: format!("{name}: CPU µs per request above a plain POST"),
            measured: cell(Some(more), 2),
            limit: format!("≤ {MORE_US}"),
            met: more.median <= MORE_US,
        });
    }
    Ok(vec![section])
}
