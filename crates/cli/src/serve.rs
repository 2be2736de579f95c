//! `plimsoll sink` and `plimsoll target`: a built-in server until it is stopped.

use std::io::Write as _;
use std::sync::Arc;

use plimsoll_driver::{BackendOptions, Open, OpenEpoll, OpenUring};
use plimsoll_plan::Problem;
use plimsoll_targets::{Faults, Service, Sink, SinkOptions, SinkReport};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::progress::grouped;
use crate::sink_flags::SinkSpec;
use crate::{Exit, Failure, run};

/// The command. Says where it listens and what it does wrong on stderr, and what it did when it ends.
pub(crate) fn command(spec: SinkSpec) -> Result<Exit, Failure> {
    let SinkSpec { name, options, backend, quiet } = spec;
    let faults = faults(&options);
    let of_resources = matches!(options.service, Service::Crud(_));
    let needed = 1 << 20;
    // As many descriptors as this process may have: how many connections will come is not known.
    if let Err(limit) = plimsoll_driver::limits::raise_descriptors(needed) {
        let _ = plimsoll_driver::limits::raise_descriptors(limit.hard);
    }
    let sink = start(options, run::uses_uring(backend)?)?;
    let say = |text: String| {
        if !quiet {
            // Where there is no stderr there is no one to tell.
            let _ = writeln!(std::io::stderr(), "{name}: {text}");
        }
    };
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::environment(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let handle = signals.handle();
    let stopper = sink.stopper();
    let watch = std::thread::spawn(move || {
        // A sink is ended by a signal: that is its ordinary end, not a failure.
        if signals.forever().next().is_some() {
            stopper.stop();
        }
    });
    // Not before signals are watched for: who has read this may end the sink at once.
    say(format!("listening on {}", sink.endpoint()));
    // What spoils a run is not to be a surprise.
    if of_resources || !faults.is_empty() {
        say(format!("faults: {}", if faults.is_empty() { "none" } else { &faults }));
    }
    let report = sink.wait();
    handle.close();
    let _ = watch.join();
    if of_resources || report.replied != report.counter {
        say(ends(&report));
    }
    if report.http2_connections > 0 || report.refused > 0 {
        say(protocols(&report));
    }
    if of_resources {
        say(format!("resources left: {}", grouped(report.resources)));
    }
    say(summary(&report));
    Ok(Exit::Success)
}

/// Starts a sink on one of the backends.
pub(crate) fn start(options: SinkOptions, uring: bool) -> Result<Sink, Failure> {
    fn on<O: Open + 'static>(options: SinkOptions, open: O) -> Result<Sink, Failure> {
        Sink::start(options, Arc::new(open))
            .map_err(|error| Failure::environment(Problem::new(error.to_string())))
    }
    let backend = BackendOptions::default();
    if uring { on(options, OpenUring(backend)) } else { on(options, OpenEpoll(backend)) }
}

/// The faults in force, in words; empty if there are none.
fn faults(options: &SinkOptions) -> String {
    let Faults { drop, reset, refuse, statuses, close_idle_after, go_away_after } = &options.faults;
    let mut found = Vec::new();
    let mut add = |share: f64, what: &str| {
        if share > 0.0 {
            // Shares are typed in percent; the division by 100 is not to show.
            let percent = format!("{:.6}", share * 100.0);
            found.push(format!("{}% {what}", percent.trim_end_matches('0').trim_end_matches('.')));
        }
    };
    add(*drop, "never answered");
    add(*reset, "reset");
    add(*refuse, "refused");
    for (status, share) in statuses {
        add(*share, &format!("answered {status}"));
    }
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

/// How the requests ended.
fn ends(report: &SinkReport) -> String {
    let SinkReport { replied, statuses, dropped, resets, refusals, abandoned, .. } = *report;
    let [replied, statuses, dropped, resets, refusals, abandoned] =
        [replied, statuses, dropped, resets, refusals, abandoned].map(grouped);
    format!(
        "{replied} answered, {statuses} failed on purpose, {dropped} dropped, {resets} reset, \
         {refusals} refused, {abandoned} abandoned"
    )
}

/// Who spoke what.
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
    use plimsoll_driver::Endpoint;

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
            close_idle_after: Some(1),
            go_away_after: Some(1500),
        };
        assert_eq!(
            faults(&options),
            "3% never answered, 7% reset, 0.0015% refused, 10% answered 404, 33.333333% answered 503, \
             seed 5, connections closed after 1 request, connections announced to end after 1,500 requests"
        );
    }

    #[test]
    fn what_was_dropped_stands_before_its_word() {
        let report = SinkReport { replied: 1234, dropped: 5, abandoned: 1, ..SinkReport::default() };
        assert_eq!(
            ends(&report),
            "1,234 answered, 0 failed on purpose, 5 dropped, 0 reset, 0 refused, 1 abandoned"
        );
    }
}
