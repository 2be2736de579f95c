//! Steering a run while it goes on: the common part of the file, the port and the keys.

use std::sync::Arc;
use std::thread;

use plimsoll_engine::{Control, Progress, Stop};
use plimsoll_plan::{Plan, Problem};
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

/// Stops the run when stdin ends: whoever has started it is gone then, however that came about.
fn end_with_stdin(control: Control) -> std::io::Result<()> {
    let thread = thread::Builder::new().name("stdin".to_owned());
    let wait = move || {
        let (stdin, mut bytes) = (stdio::stdin(), [0_u8; 64]);
        while !matches!(rustix::io::read(stdin, &mut bytes), Ok(0) | Err(rustix::io::Errno::IO)) {}
        control.stop(Stop::Drain);
    };
    // It ends with the process, or before.
    thread.spawn(wait).map(drop)
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
        let live_stats = Arc::new(LiveStats::default());
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
