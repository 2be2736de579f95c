//! `plimsoll sink` and `plimsoll target`: a built-in server until it is stopped.

pub(crate) mod cluster;
pub(crate) mod ingest;
pub(crate) mod node;

use std::thread::JoinHandle;

use plimsoll_core::{figure, text};
use plimsoll_document::Problem;
use plimsoll_targets::{Faults, Service, SinkOptions, SinkReport, Stopper};

use crate::args::extension::ServerSpec;
use crate::args::server::sink::SinkSpec;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::streams;
use crate::base::wording::percent;
use crate::session::backend;
use crate::session::built_in_sink::start;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// `plimsoll sink`, and the targets that are sinks. Reports its address and faults on stderr, and a summary
/// when it ends.
pub(crate) fn command(spec: SinkSpec) -> Result<Exit, Failure> {
    let SinkSpec { name, options, backend, quiet } = spec;
    let faults = faults(&options);
    let of_resources = matches!(options.service, Service::Crud(_));
    raise_descriptors();
    let sink = start(options, backend::chosen(backend)?)?;
    let voice = ServerMessages { name, quiet };
    let watch = Watch::new(stop(sink.stopper()))?;
    voice.say(format!("listening on {}", sink.endpoint()));
    // Faults are announced at the start, so that their errors surprise no one.
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
        voice.say(format!("resources left: {}", figure::count(report.resources)));
    }
    voice.say(summary(&report));
    Ok(Exit::Success)
}

/// `plimsoll target` with a server that is a value, of this name.
pub(crate) fn added(name: &str, ServerSpec { backend, quiet, start }: ServerSpec) -> Result<Exit, Failure> {
    raise_descriptors();
    let server = start(backend::chosen(backend)?)?;
    let name = format!("target {name}");
    let voice = ServerMessages { name: &name, quiet };
    let watch = Watch::new(stop(server.stopper()))?;
    server.opening().into_iter().for_each(|line| voice.say(line));
    let lines = server.wait();
    watch.end();
    lines.into_iter().for_each(|line| voice.say(line));
    Ok(Exit::Success)
}

/// As many descriptors as this process may have: how many connections will come is not known.
fn raise_descriptors() {
    let needed = 1 << 20;
    if let Err(limit) = plimsoll_system::limits::raise_descriptors(needed) {
        let _ = plimsoll_system::limits::raise_descriptors(limit.hard);
    }
}

/// Messages of a server on stderr.
struct ServerMessages<'n> {
    name: &'n str,
    quiet: bool,
}

impl ServerMessages<'_> {
    fn say(&self, text: String) {
        if !self.quiet {
            streams::to_stderr(&format!("{}: {text}\n", self.name));
        }
    }
}

/// Ends a server by a signal: that is its ordinary end, not a failure. Make it before saying where the server
/// listens: a reader of that may end it at once.
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
    let of_the_service = match (rejections, garbage) {
        (0, 0) => String::new(),
        _ => format!(
            "{} rejected, {} answered with garbage, ",
            figure::count(rejections),
            figure::count(garbage)
        ),
    };
    let [replied, statuses, dropped, resets, refusals, abandoned] =
        [replied, statuses, dropped, resets, refusals, abandoned].map(figure::count);
    format!(
        "{replied} answered, {of_the_service}{statuses} failed on purpose, {dropped} dropped, {resets} reset, \
         {refusals} refused, {abandoned} abandoned"
    )
}

/// Describes the connections by protocol, and the cancelled streams.
fn protocols(report: &SinkReport) -> String {
    let SinkReport { http1_connections, http2_connections, cancelled, refused, .. } = *report;
    let [http1, http2, cancelled, refused] =
        [http1_connections, http2_connections, cancelled, refused].map(figure::count);
    format!(
        "connections: {http1} of HTTP/1.1, {http2} of HTTP/2, {refused} ended for a violation; \
         {cancelled} streams cancelled by clients"
    )
}

fn summary(report: &SinkReport) -> String {
    format!("{} requests on {} connections", figure::count(report.counter), figure::count(report.connections))
}

fn requests(count: u64) -> String {
    format!("{} {}", figure::count(count), text::noun(count, "request"))
}

#[cfg(test)]
mod tests {
    use plimsoll_driver::Endpoint;

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
