//! `plimsoll sink` and `plimsoll target`: a built-in server until it is stopped.

pub(crate) mod cluster;
pub(crate) mod ingest;
pub(crate) mod node;

use std::sync::Arc;
use std::thread::JoinHandle;

use plimsoll_driver::{BackendOptions, Endpoint, Open, OpenEpoll, OpenUring};
use plimsoll_plan::Problem;
use plimsoll_targets::{
    CacheOptions, CacheReport, CacheServer, Faults, LieKind, Service, SinkOptions, SinkReport, StartError,
    Stopper,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::args::server::cache::CacheSpec;
use crate::args::server::sink::SinkSpec;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::streams;
use crate::session::backend;
use crate::session::built_in_sink::start;
use crate::session::live::progress::grouped;

/// `plimsoll sink`, and the targets that are sinks. Says where it listens and what it does wrong on stderr,
/// and what it did when it ends.
pub(crate) fn command(spec: SinkSpec) -> Result<Exit, Failure> {
    let SinkSpec { name, options, backend, quiet } = spec;
    let faults = faults(&options);
    let of_resources = matches!(options.service, Service::Crud(_));
    raise_descriptors();
    let sink = start(options, backend::uses_uring(backend)?)?;
    let voice = ServerMessages { name, quiet };
    let watch = Watch::new(stop(sink.stopper()))?;
    voice.say(format!("listening on {}", sink.endpoint()));
    // What spoils a run is not to be a surprise.
    if of_resources || !faults.is_empty() {
        voice.say(format!("faults: {}", if faults.is_empty() { "none" } else { &faults }));
    }
    let report = sink.wait();
    watch.end();
    if of_resources || report.replied != report.counter {
        voice.say(ends(&report));
    }
    if report.http2_connections > 0 || report.refused > 0 {
        voice.say(protocols(&report));
    }
    if of_resources {
        voice.say(format!("resources left: {}", grouped(report.resources)));
    }
    voice.say(summary(&report));
    Ok(Exit::Success)
}

/// `plimsoll target cache`, in the same manner.
pub(crate) fn cache(spec: CacheSpec) -> Result<Exit, Failure> {
    let CacheSpec { options, backend, quiet } = spec;
    let lies = lies(&options);
    let caches = options.caches.join(", ");
    raise_descriptors();
    let server = start_cache(options, backend::uses_uring(backend)?)?;
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
        voice.say(format!("{} answered wrongly on purpose", grouped(report.lies)));
    }
    if report.http_connections > 0 {
        let [requests, connections] = [report.http_requests, report.http_connections].map(grouped);
        voice.say(format!("{requests} requests over HTTP on {connections} connections"));
    }
    if report.refused > 0 {
        voice.say(format!("{} connections ended for a violation", grouped(report.refused)));
    }
    if report.over_memory > 0 {
        let ended = grouped(report.over_memory);
        voice.say(format!("{ended} connections ended because unfinished requests took too much memory"));
    }
    let [operations, connections] = [report.operations(), report.connections].map(grouped);
    voice.say(format!("{operations} operations on {connections} connections"));
    Ok(Exit::Success)
}

/// As many descriptors as this process may have: how many connections will come is not known.
fn raise_descriptors() {
    let needed = 1 << 20;
    if let Err(limit) = plimsoll_driver::limits::raise_descriptors(needed) {
        let _ = plimsoll_driver::limits::raise_descriptors(limit.hard);
    }
}

/// Messages of a server on stderr.
struct ServerMessages {
    name: &'static str,
    quiet: bool,
}

impl ServerMessages {
    fn say(&self, text: String) {
        if !self.quiet {
            streams::to_stderr(&format!("{}: {text}\n", self.name));
        }
    }
}

/// Ends a server by a signal: that is its ordinary end, not a failure. Make it before saying where the server
/// listens: who has read that may end it at once.
struct Watch {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Watch {
    fn new(stop: impl FnOnce() + Send + 'static) -> Result<Self, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| {
            Failure::environment(Problem::new(format!("cannot watch for signals: {error}")))
        })?;
        let handle = signals.handle();
        let thread = std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                stop();
            }
        });
        Ok(Self { handle, thread })
    }

    fn end(self) {
        self.handle.close();
        let _ = self.thread.join();
    }
}

/// Ends a server of ours.
fn stop(stopper: Stopper) -> impl FnOnce() + Send {
    move || stopper.stop()
}

const ELSEWHERE: &str = "take another address: --listen, or --http for the API; port 0 takes a free one";

/// Starts a cache server on one of the backends.
fn start_cache(options: CacheOptions, uring: bool) -> Result<CacheServer, Failure> {
    fn on<O: Open + 'static>(options: CacheOptions, open: O) -> Result<CacheServer, Failure> {
        CacheServer::start(options, Arc::new(open)).map_err(|error| {
            let problem = Problem::new(error.to_string());
            Failure::environment(match error {
                StartError::Listen { .. } => problem.with_hint(ELSEWHERE),
                _ => problem,
            })
        })
    }
    let backend = BackendOptions::default();
    if uring { on(options, OpenUring(backend)) } else { on(options, OpenEpoll(backend)) }
}

/// Where an API is.
fn url(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp(address) => format!("http://{address}"),
        Endpoint::Unix(_) => endpoint.to_string(),
    }
}

/// The lies in force, in words.
fn lies(options: &CacheOptions) -> Option<String> {
    let lie = options.lie.filter(|lie| lie.share > 0.0)?;
    let how = match lie.kind {
        LieKind::Wrong => "a wrong value",
        LieKind::Stale => "what was there before the last PUT",
        LieKind::Swapped => "each other's reply",
    };
    Some(format!("{} of the GETs answered with {how}, seed {}", percent(lie.share), options.seed))
}

/// Describes the operations on the binary port.
fn operations(report: &CacheReport) -> String {
    let CacheReport { puts, gets, hits, deletes, pings, refusals, .. } = *report;
    let [puts, gets, hits, deletes, pings, refusals] =
        [puts, gets, hits, deletes, pings, refusals].map(grouped);
    format!(
        "{puts} PUT, {gets} GET of which {hits} found, {deletes} DELETE, {pings} PING, \
         {refusals} answered with an error"
    )
}

/// Shares are typed in percent; the division by 100 is not to show.
fn percent(share: f64) -> String {
    let percent = format!("{:.6}", share * 100.0);
    format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// The faults in force, in words; empty if there are none.
fn faults(options: &SinkOptions) -> String {
    let Faults { drop, reset, refuse, statuses, reject, garbage, close_idle_after, go_away_after } =
        &options.faults;
    let mut found = Vec::new();
    let mut add = |share: f64, what: &str| {
        if share > 0.0 {
            found.push(format!("{} {what}", percent(share)));
        }
    };
    add(*drop, "never answered");
    add(*reset, "reset");
    add(*refuse, "refused");
    for (status, share) in statuses {
        add(*share, &format!("answered {status}"));
    }
    add(*reject, "rejected");
    add(*garbage, "answered with garbage");
    if !found.is_empty() {
        found.push(format!("seed {}", options.seed));
    }
    if let Some(count) = close_idle_after {
        found.push(format!("connections closed after {}", requests(*count)));
    }
    if let Some(count) = go_away_after {
        found.push(format!("connections announced to end after {}", requests(*count)));
    }
    found.join(", ")
}

/// Describes how the requests ended.
fn ends(report: &SinkReport) -> String {
    let SinkReport { replied, statuses, dropped, resets, refusals, abandoned, .. } = *report;
    let SinkReport { rejections, garbage, .. } = *report;
    let of_canisters = match (rejections, garbage) {
        (0, 0) => String::new(),
        _ => format!("{} rejected, {} answered with garbage, ", grouped(rejections), grouped(garbage)),
    };
    let [replied, statuses, dropped, resets, refusals, abandoned] =
        [replied, statuses, dropped, resets, refusals, abandoned].map(grouped);
    format!(
        "{replied} answered, {of_canisters}{statuses} failed on purpose, {dropped} dropped, {resets} reset, \
         {refusals} refused, {abandoned} abandoned"
    )
}

/// Describes the connections by protocol, and the cancelled streams.
fn protocols(report: &SinkReport) -> String {
    let SinkReport { http1_connections, http2_connections, cancelled, refused, .. } = *report;
    let [http1, http2, cancelled, refused] =
        [http1_connections, http2_connections, cancelled, refused].map(grouped);
    format!(
        "connections: {http1} of HTTP/1.1, {http2} of HTTP/2, {refused} ended for a violation; \
         {cancelled} streams cancelled by clients"
    )
}

fn summary(report: &SinkReport) -> String {
    format!("{} requests on {} connections", grouped(report.counter), grouped(report.connections))
}

fn requests(count: u64) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{} requests", grouped(count)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_as_they_were_typed() {
        let mut options = SinkOptions::new(Endpoint::Unix("s".into()));
        options.faults.statuses = vec![(404, 0.0)];
        assert_eq!(faults(&options), "");
        options.seed = 5;
        options.faults = Faults {
            drop: 0.03,
            reset: 0.07,
            refuse: 0.000_015,
            statuses: vec![(404, 0.1), (503, 1.0 / 3.0)],
            reject: 0.02,
            garbage: 0.01,
            close_idle_after: Some(1),
            go_away_after: Some(1500),
        };
        assert_eq!(
            faults(&options),
            "3% never answered, 7% reset, 0.0015% refused, 10% answered 404, 33.333333% answered 503, \
             2% rejected, 1% answered with garbage, seed 5, connections closed after 1 request, connections announced to end after 1,500 requests"
        );
    }

    #[test]
    fn what_was_dropped_stands_before_its_word() {
        let report = SinkReport { replied: 1234, dropped: 5, abandoned: 1, ..SinkReport::default() };
        assert_eq!(
            ends(&report),
            "1,234 answered, 0 failed on purpose, 5 dropped, 0 reset, 0 refused, 1 abandoned"
        );
        let report = SinkReport { rejections: 2, ..report };
        assert!(ends(&report).starts_with("1,234 answered, 2 rejected, 0 answered with garbage, 0 failed"));
    }
}
