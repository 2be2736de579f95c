//! `^C` once stops and drains, twice reports at once, and ends the process in any case. A terminal that goes
//! away stops and drains, too, except for a process that was started not to mind (`nohup`). It counts as one
//! signal, whichever sender comes first; a `SIGHUP` that comes later counts as any other.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::{io, thread};

use plimsoll_core::Nanos;
use plimsoll_engine::{Control, Stop};
use plimsoll_system::{clock, last_words};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level;

use crate::base::terminal;

/// Time from the second signal to the end of the process at any cost: the run control gives its workers
/// 5 s, and then there is a report to be written.
const GRACE: Nanos = Nanos::from_secs(15);

/// The kernel and the shell both signal the loss of a terminal, one right after the other: a
/// `SIGHUP` within this time after another signal is not a second one.
const SAME_HANGUP: Nanos = Nanos::from_secs(1);

/// Turns signals into wishes of the run's control, as long as it lives. From then on a signal ends the
/// process as if there were no watch.
pub(crate) struct SignalWatch {
    handle: Handle,
    first: Arc<AtomicI32>,
    /// Set when a signal ends the process at once.
    ends: Arc<AtomicBool>,
}

impl SignalWatch {
    /// Watches for `SIGINT`, `SIGTERM` and `SIGHUP`, which are for the run whose control is asked for then.
    /// `say` gets messages for the user.
    pub(crate) fn start(
        control: impl Fn() -> Control + Send + 'static,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        // Handlers run in the order of registration, and this one first: it may set the flag while the
        // handler of the same signal is still at work.
        let ends = flag_of_the_end()?;
        let hangs_up = (!ignores_hangup()).then_some(SIGHUP);
        let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangs_up))?;
        // Reset only now: until the handlers are registered, signals are handled by default.
        ends.store(false, Ordering::Relaxed);
        let handle = signals.handle();
        let first = Arc::new(AtomicI32::new(0));
        let (seen, at_once) = (first.clone(), ends.clone());
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let say = Arc::new(say);
            let mut last = Nanos::ZERO;
            for signal in signals.forever() {
                let (now, before) = (clock::monotonic(), last);
                last = now;
                if seen.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    control().stop(Stop::Drain);
                    // The message goes out on a thread of its own: a reader of stderr that has stopped
                    // reading would block it, and the next signal must still be handled.
                    let say = say.clone();
                    thread::spawn(move || {
                        say("stopping: waiting for requests in flight; once more to report at once");
                    });
                } else if signal == SIGHUP && now.since(before) < SAME_HANGUP {
                    // The next hangup is compared with the first one of this burst.
                    last = before;
                } else {
                    control().stop(Stop::Now);
                    // A third one does not wait.
                    if at_once.swap(true, Ordering::Relaxed) {
                        continue;
                    }
                    thread::spawn(move || {
                        clock::sleep_until(clock::monotonic() + GRACE);
                        terminal::give_back();
                        // Exits without the ordinary end, which may wait for the very thing that holds the
                        // process up.
                        low_level::exit(128 + signal);
                    });
                }
            }
        })?;
        Ok(Self { handle, first, ends })
    }

    /// The first signal that came.
    pub(crate) fn received(&self) -> Option<i32> {
        Some(self.first.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        self.handle.close();
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Returns the flag by which `SIGINT` and `SIGTERM` end the process at once. All watches share it, because
/// the action of a signal's handler cannot be removed.
fn flag_of_the_end() -> io::Result<Arc<AtomicBool>> {
    static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = ENDS.get() {
        return Ok(flag.clone());
    }
    let flag = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGTERM] {
        last_words::before_the_end(signal, flag.clone())?;
        flag::register_conditional_shutdown(signal, 128 + signal, flag.clone())?;
    }
    Ok(ENDS.get_or_init(|| flag).clone())
}

/// Returns `true` if this process was told to ignore `SIGHUP`. Call it before a handler is registered; later
/// calls return the first answer.
fn ignores_hangup() -> bool {
    static IGNORES: OnceLock<bool> = OnceLock::new();
    *IGNORES.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // Signal n is bit n - 1 (proc(5)).
        ignored.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
    })
}
