//! `^C` once stops and drains, twice reports at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use plimsoll_engine::{Control, Stop};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// Turns signals into wishes of the run's control, as long as it lives.
pub(crate) struct SignalWatch {
    handle: Handle,
    first: Arc<AtomicI32>,
}

impl SignalWatch {
    /// Watches for `SIGINT` and `SIGTERM`, which are for the run whose control is asked for then. `say` gets what the user should know.
    pub(crate) fn start(
        control: impl Fn() -> Control + Send + 'static,
        say: impl Fn(&str) + Send + 'static,
    ) -> std::io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let handle = signals.handle();
        let first = Arc::new(AtomicI32::new(0));
        let seen = first.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if seen.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    say("stopping: waiting for what is in flight; once more to report at once");
                    control().stop(Stop::Drain);
                } else {
                    control().stop(Stop::Now);
                }
            }
        })?;
        Ok(Self { handle, first })
    }

    /// The first signal that came.
    pub(crate) fn received(&self) -> Option<i32> {
        Some(self.first.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        self.handle.close();
    }
}
