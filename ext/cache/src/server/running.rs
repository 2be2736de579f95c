//! The server of `plimsoll target cache`, and its messages.

use plimsoll_app::{Failure, RunningServer, running, url};
use plimsoll_core::figure;
use plimsoll_driver::KernelBackend;

use super::{CacheOptions, CacheReport, CacheServer};

const ELSEWHERE: &str = "take another address: --listen, or --http for the API; port 0 takes a free one";

/// Starts a cache that announces these faults.
pub(super) fn start(
    options: CacheOptions,
    faults: Option<String>,
    backend: KernelBackend,
) -> Result<Box<dyn RunningServer>, Failure> {
    let caches = format!("caches: {}", options.caches.join(", "));
    let server = CacheServer::start(options, backend).map_err(|error| Failure::start(&error, ELSEWHERE))?;
    let http = server.http_endpoint().map(|http| format!("HTTP API on {}", url(http)));
    let place = format!("listening on {}", server.endpoint());
    let opening = http.into_iter().chain([place, caches]).chain(faults).collect();
    Ok(running(server.0, opening, summary))
}

/// Describes what the server did.
fn summary(report: &CacheReport) -> Vec<String> {
    let mut lines = vec![operations(report)];
    if report.lies > 0 {
        lines.push(format!("{} answered wrongly on purpose", figure::count(report.lies)));
    }
    if report.http_connections > 0 {
        let [requests, connections] = [report.http_requests, report.http_connections].map(figure::count);
        lines.push(format!("{requests} requests over HTTP on {connections} connections"));
    }
    if report.refused > 0 {
        lines.push(format!("{} connections ended for a violation", figure::count(report.refused)));
    }
    if report.over_memory > 0 {
        let ended = figure::count(report.over_memory);
        lines.push(format!("{ended} connections ended because unfinished requests took too much memory"));
    }
    let [operations, connections] = [report.operations(), report.connections].map(figure::count);
    lines.push(format!("{operations} operations on {connections} connections"));
    lines
}

/// Describes the operations on the binary port.
fn operations(report: &CacheReport) -> String {
    let CacheReport { puts, gets, hits, deletes, pings, refusals, .. } = *report;
    let [puts, gets, hits, deletes, pings, refusals] =
        [puts, gets, hits, deletes, pings, refusals].map(figure::count);
    format!(
        "{puts} PUT, {gets} GET of which {hits} found, {deletes} DELETE, {pings} PING, \
         {refusals} answered with an error"
    )
}
