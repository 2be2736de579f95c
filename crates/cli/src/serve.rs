//! `plimsoll sink`: the built-in server until it is stopped.

use std::io::Write as _;
use std::sync::Arc;

use plimsoll_driver::{BackendOptions, Open, OpenEpoll, OpenUring};
use plimsoll_plan::{Disk, Problem};
use plimsoll_targets::{Sink, SinkOptions, SinkReport};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::progress::grouped;
use crate::sink_flags::SinkArgs;
use crate::{Exit, Failure, run};

/// The command. Says where it listens on stderr, and what it did when it ends.
pub(crate) fn command(args: &SinkArgs) -> Result<Exit, Failure> {
    let spec = args.to_spec(&Disk).map_err(Failure::usage)?;
    let needed = 1 << 20;
    // As many descriptors as this process may have: how many connections will come is not known.
    if let Err(limit) = plimsoll_driver::limits::raise_descriptors(needed) {
        let _ = plimsoll_driver::limits::raise_descriptors(limit.hard);
    }
    let sink = start(spec.options, run::uses_uring(spec.backend)?)?;
    let say = |text: String| {
        if !spec.quiet {
            // Where there is no stderr there is no one to tell.
            let _ = writeln!(std::io::stderr(), "{text}");
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
    say(format!("sink: listening on {}", sink.endpoint()));
    let report = sink.wait();
    handle.close();
    let _ = watch.join();
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

fn summary(report: &SinkReport) -> String {
    format!("sink: {} requests on {} connections", grouped(report.counter), grouped(report.connections))
}
