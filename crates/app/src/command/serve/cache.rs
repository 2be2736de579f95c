//! `plimsoll target cache`: a cache until it is stopped.

use plimsoll_core::figure;
use plimsoll_driver::KernelBackend;
use plimsoll_plan::Problem;
use plimsoll_targets::{CacheOptions, CacheReport, CacheServer, LieKind, StartError};

use super::{ServerMessages, Watch, raise_descriptors, stop};
use crate::args::server::cache::CacheSpec;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::wording::{percent, url};
use crate::session::backend;

const ELSEWHERE: &str = "take another address: --listen, or --http for the API; port 0 takes a free one";

pub(crate) fn command(spec: CacheSpec) -> Result<Exit, Failure> {
    let CacheSpec { options, backend, quiet } = spec;
    let lies = lies(&options);
    let caches = options.caches.join(", ");
    raise_descriptors();
    let server = start(options, backend::chosen(backend)?)?;
    let voice = ServerMessages { name: "target cache", quiet };
    let watch = Watch::new(stop(server.stopper()))?;
    if let Some(http) = server.http_endpoint() {
        voice.say(format!("HTTP API on {}", url(http)));
    }
    voice.say(format!("listening on {}", server.endpoint()));
    voice.say(format!("caches: {caches}"));
    if let Some(lies) = lies {
        voice.say(format!("faults: {lies}"));
    }
    let report = server.wait();
    watch.end();
    voice.say(operations(&report));
    if report.lies > 0 {
        voice.say(format!("{} answered wrongly on purpose", figure::count(report.lies)));
    }
    if report.http_connections > 0 {
        let [requests, connections] = [report.http_requests, report.http_connections].map(figure::count);
        voice.say(format!("{requests} requests over HTTP on {connections} connections"));
    }
    if report.refused > 0 {
        voice.say(format!("{} connections ended for a violation", figure::count(report.refused)));
    }
    if report.over_memory > 0 {
        let ended = figure::count(report.over_memory);
        voice.say(format!("{ended} connections ended because unfinished requests took too much memory"));
    }
    let [operations, connections] = [report.operations(), report.connections].map(figure::count);
    voice.say(format!("{operations} operations on {connections} connections"));
    Ok(Exit::Success)
}

/// Starts a cache server.
fn start(options: CacheOptions, backend: KernelBackend) -> Result<CacheServer, Failure> {
    CacheServer::start(options, backend).map_err(|error| {
        let problem = Problem::new(error.to_string());
        Failure::environment(match error {
            StartError::Listen { .. } => problem.with_hint(ELSEWHERE),
            _ => problem,
        })
    })
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
