//! The server of `plimsoll target cache`, and its messages.

use plimsoll_app::{Failure, RunningServer, percent, url};
use plimsoll_core::figure;
use plimsoll_driver::KernelBackend;
use plimsoll_targets::Stopper;

use super::{CacheOptions, CacheReport, CacheServer, LieKind};

const ELSEWHERE: &str = "take another address: --listen, or --http for the API; port 0 takes a free one";

/// A cache, and what is said of it at the start.
struct RunningCache {
    server: CacheServer,
    caches: String,
    lies: Option<String>,
}

/// Starts a cache.
pub(super) fn start(
    options: CacheOptions,
    backend: KernelBackend,
) -> Result<Box<dyn RunningServer>, Failure> {
    let (lies, caches) = (lies(&options), options.caches.join(", "));
    let server = CacheServer::start(options, backend).map_err(|error| Failure::start(&error, ELSEWHERE))?;
    Ok(Box::new(RunningCache { server, caches, lies }))
}

impl RunningServer for RunningCache {
    fn stopper(&self) -> Stopper {
        self.server.stopper()
    }

    fn opening(&self) -> Vec<String> {
        let Self { server, caches, lies } = self;
        let http = server.http_endpoint().map(|http| format!("HTTP API on {}", url(http)));
        let place = format!("listening on {}", server.endpoint());
        let lies = lies.as_ref().map(|lies| format!("faults: {lies}"));
        http.into_iter().chain([place, format!("caches: {caches}")]).chain(lies).collect()
    }

    fn wait(self: Box<Self>) -> Vec<String> {
        summary(&self.server.wait())
    }
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

/// The lies in force, in words.
fn lies(options: &CacheOptions) -> Option<String> {
    let lie = options.lie.filter(|lie| lie.share > 0.0)?;
    let how = match lie.kind {
        LieKind::Wrong => "a wrong value",
        LieKind::Stale => "the value before the last PUT",
        LieKind::Swapped => "each other's reply",
    };
    Some(format!("{} of the GETs answered with {how}, seed {}", percent(lie.share), options.seed))
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
