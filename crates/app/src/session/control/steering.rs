//! Steering a run while it goes on: the common part of the file, the port and the keys.

use std::sync::Arc;
use std::thread;

use plimsoll_core::Nanos;
use plimsoll_document::Problem;
use plimsoll_engine::{Control, Progress, Stop};
use plimsoll_plan::Plan;
use rustix::stdio;

use crate::args::control::ControlSpec;
use crate::base::messages::Notify;
use crate::session::control::keys::Keys;
use crate::session::control::live_stats::LiveStats;
use crate::session::control::port::ControlPort;
use crate::session::control::rate::{PerConnection, RateController};
use crate::session::control::rate_file::RateFile;
use crate::session::live::growing_result::GrowingResult;
use crate::session::live::screen::ScreenHandle;

/// Longest line on stdin that is looked at, in bytes.
const LONGEST_LINE: usize = 64;

/// Stops the run when stdin ends: its parent process has gone, for whatever reason. A line `lease N` there
/// lets the load go on until an instant of the monotonic clock, in nanoseconds, and no longer.
fn end_with_stdin(control: Control) -> std::io::Result<()> {
    let thread = thread::Builder::new().name("stdin".to_owned());
    let wait = move || {
        let (stdin, mut bytes, mut line) = (stdio::stdin(), [0_u8; 256], Vec::new());
        loop {
            match rustix::io::read(stdin, &mut bytes) {
                Ok(0) | Err(rustix::io::Errno::IO) => break,
                Ok(count) => {
                    for byte in &bytes[..count] {
                        match byte {
                            b'\n' => leased(&line).into_iter().for_each(|until| control.fence(until)),
                            _ if line.len() < LONGEST_LINE => line.push(*byte),
                            _ => {}
                        }
                        if *byte == b'\n' {
                            line.clear();
                        }
                    }
                }
                Err(_) => {}
            }
        }
        control.stop(Stop::Drain);
    };
    // It ends with the process, or before.
    thread.spawn(wait).map(drop)
}

/// The instant of a line `lease N`.
fn leased(line: &[u8]) -> Option<Nanos> {
    let number = std::str::from_utf8(line).ok()?.strip_prefix("lease ")?;
    number.parse().ok().map(Nanos)
}

/// Everything that steers a run beside signals, as long as it lives.
pub(crate) struct Steerers {
    _file: Option<RateFile>,
    _port: Option<ControlPort>,
    _keys: Option<Keys>,
    live_stats: Arc<LiveStats>,
}

impl Steerers {
    /// Starts the controls that the flags ask for. Until the run has begun they can only read.
    ///
    /// # Errors
    /// The address of the control port cannot be listened on, or there is no thread.
    pub(crate) fn start(
        spec: &ControlSpec,
        quiet: bool,
        plan: &Plan,
        control: &Control,
        say: &Notify,
        (stage, growing): (Option<&ScreenHandle>, &GrowingResult),
    ) -> Result<Self, Problem> {
        let no_thread = |error| Problem::new(format!("cannot start a thread: {error}"));
        let live_stats = Arc::new(LiveStats::new(plan.drain));
        if let Some(most) = spec.max_rate {
            control.limit_rate(most);
        }
        let controller = RateController { control: control.clone(), per_connection: PerConnection::of(plan) };
        let port = spec.listen.map(|listen| {
            let figures = (Arc::clone(&live_stats), growing.clone());
            ControlPort::start(listen, spec, controller.clone(), figures, say)
        });
        let port = port.transpose()?;
        if spec.ends_with_stdin {
            end_with_stdin(control.clone()).map_err(no_thread)?;
        }
        let file = spec.rate_file.clone();
        let per_connection = spec.per_connection;
        let file =
            file.map(|path| RateFile::watch(path, controller.clone(), per_connection, Arc::clone(say)));
        // With --quiet, keys do not print messages.
        let keys = (spec.keys && !quiet).then(|| Keys::listen(controller, Arc::clone(say), stage.cloned()));
        Ok(Self {
            _port: port,
            _file: file.transpose().map_err(no_thread)?,
            _keys: keys.transpose().map_err(no_thread)?.flatten(),
            live_stats,
        })
    }

    /// Takes up the latest figures.
    pub(crate) fn note(&self, progress: &Progress<'_>) {
        self.live_stats.note(progress);
    }
}
