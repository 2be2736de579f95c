//! Keys on the terminal, while a run goes on.
//!
//! The terminal gives keys one by one and without showing them, but keeps its signals (`^C`, `^Z`) and its
//! line ends. It gets back what it had on every way out: at the end, on a signal that ends or stops the
//! process, and in a panic. A process in the background leaves the terminal alone.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::{self, JoinHandle};

use plimsoll_core::{Nanos, Rate};
use plimsoll_driver::clock;
use plimsoll_engine::{RateWish, Stop};
use plimsoll_metrics::SteeredBy;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use rustix::{process, stdio, termios};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGQUIT, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use crate::steering::{Helm, Say, told};

/// How long the thread waits for a key before it looks whether it is over, and whether the terminal is still
/// its own.
const PATIENCE: Nanos = Nanos::from_millis(100);
/// What `+` and `-` do to a rate.
const STEP: f64 = 0.10;

const HELP: &str = "keys: + and - change the rate by 10 %, p pauses and resumes, q stops, ? shows this";

/// Listens to keys, as long as it lives.
#[derive(Debug)]
pub(crate) struct Keys {
    over: Arc<AtomicBool>,
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    /// Begins to listen; `None` where there is no terminal, or this process is not in its foreground.
    pub(crate) fn listen(helm: Helm, say: Say) -> std::io::Result<Option<Self>> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() || !is_ours() {
            return Ok(None);
        }
        restore_in_a_panic();
        let mut signals = Signals::new([SIGQUIT, SIGHUP, SIGTSTP, SIGCONT])?;
        let over = Arc::new(AtomicBool::new(false));
        // From here on it gives the terminal back, whatever fails.
        let mut keys = Self { over: Arc::clone(&over), signals: signals.handle(), thread: None };
        if !Terminal::enter() {
            return Ok(None);
        }
        thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if signal == SIGCONT {
                    Terminal::enter();
                } else {
                    Terminal::leave();
                    // Ends the process, or stops it until it is continued.
                    let _ = emulate_default_handler(signal);
                }
            }
        })?;
        say(HELP);
        let thread = thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || while !over.load(Ordering::Relaxed) && read_keys(&helm, &say) {})?;
        keys.thread = Some(thread);
        Ok(Some(keys))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
        Terminal::leave();
    }
}

/// The terminal of stdin, of which there is one.
struct Terminal {
    /// What it had before; `None` while it has that.
    before: Mutex<Option<Termios>>,
}

static TERMINAL: Terminal = Terminal { before: Mutex::new(None) };

impl Terminal {
    /// Lets it give keys one by one. False if it is not ours, or not to be had.
    fn enter() -> bool {
        let mut before = TERMINAL.before.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_ours() {
            return false;
        }
        let Ok(present) = termios::tcgetattr(stdio::stdin()) else { return false };
        let mut changed = present.clone();
        changed.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        changed.special_codes[SpecialCodeIndex::VMIN] = 1;
        changed.special_codes[SpecialCodeIndex::VTIME] = 0;
        if termios::tcsetattr(stdio::stdin(), OptionalActions::Now, &changed).is_err() {
            return false;
        }
        // After a stop without our doing it has our own modes still: then what it had is known already.
        before.get_or_insert(present);
        true
    }

    /// Gives it back what it had. Who is in the background has no right to, and no need: the shell did.
    fn leave() {
        // In a panic the lock may be held by this very thread.
        let Ok(mut before) = TERMINAL.before.try_lock() else { return };
        if let Some(modes) = before.take()
            && is_ours()
        {
            let _ = termios::tcsetattr(stdio::stdin(), OptionalActions::Now, &modes);
        }
    }
}

/// Whether this process is in the foreground of its terminal; in the background a change of its modes, or a
/// read, would stop the process.
fn is_ours() -> bool {
    termios::tcgetpgrp(stdio::stdin()).is_ok_and(|group| group == process::getpgrp())
}

fn restore_in_a_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            Terminal::leave();
            previous(info);
        }));
    });
}

/// Waits for keys for a while and heeds them; false when no more can come.
fn read_keys(helm: &Helm, say: &Say) -> bool {
    let wait = Timespec { tv_sec: 0, tv_nsec: PATIENCE.0 as i64 };
    let stdin = stdio::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    if !is_ours() {
        clock::sleep_until(clock::monotonic() + PATIENCE);
        return true;
    }
    match poll(&mut ready, Some(&wait)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return true,
        Ok(_) => {}
        Err(_) => return false,
    }
    let mut bytes = [0_u8; 32];
    match rustix::io::read(stdin, &mut bytes) {
        Ok(0) => false,
        Ok(read) => {
            keys_of(&bytes[..read]).for_each(|key| heed(key, helm, say));
            true
        }
        Err(error) => matches!(error, rustix::io::Errno::INTR | rustix::io::Errno::AGAIN),
    }
}

/// What a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Faster,
    Slower,
    Pause,
    Stop,
    Help,
}

/// The keys in what was read at once. An escape sequence (of arrows and the like) is none of them.
fn keys_of(bytes: &[u8]) -> impl Iterator<Item = Key> {
    let bytes = if bytes.contains(&0x1b) { &[][..] } else { bytes };
    bytes.iter().filter_map(|byte| match byte {
        // The same keys without shift, where + and _ are on them.
        b'+' | b'=' => Some(Key::Faster),
        b'-' | b'_' => Some(Key::Slower),
        b'p' | b'P' => Some(Key::Pause),
        b'q' | b'Q' => Some(Key::Stop),
        b'?' | b'h' => Some(Key::Help),
        _ => None,
    })
}

fn heed(key: Key, helm: &Helm, say: &Say) {
    let control = &helm.control;
    let status = control.status();
    let wish = match key {
        Key::Help => return say(HELP),
        Key::Stop if control.wish() == Stop::No => {
            say("stopping: waiting for what is in flight; once more to report at once");
            return control.stop_by(SteeredBy::Key);
        }
        Key::Stop => return control.stop(Stop::Now),
        Key::Pause if status.paused => RateWish::Resume,
        Key::Pause => RateWish::Pause,
        Key::Faster | Key::Slower if status.paused => return say("paused: p resumes"),
        Key::Faster | Key::Slower => {
            let factor = if key == Key::Faster { 1.0 + STEP } else { 1.0 - STEP };
            match status.target_per_second.map(|target| rounded(target * factor)) {
                Some(Some(rate)) => RateWish::To(rate),
                Some(None) => return say("the rate can go no further"),
                // The control says why.
                None => RateWish::To(Rate::per_second(1)),
            }
        }
    };
    match control.set_rate(wish, SteeredBy::Key) {
        Ok(change) => say(&told(change)),
        Err(error) => say(&error.to_string()),
    }
}

/// The rate with three digits that is nearest; `None` if that is zero or beyond what a rate can be. So the
/// numbers stay short however often a key is pressed.
fn rounded(per_second: f64) -> Option<Rate> {
    if !(1e-6..1e12).contains(&per_second) {
        return None;
    }
    let exponent = per_second.log10().floor() as i32 - 2;
    let digits = (per_second / 10_f64.powi(exponent)).round() as u64;
    match u32::try_from(exponent) {
        Ok(exponent) => Some(Rate::per_second(digits * 10_u64.pow(exponent))),
        Err(_) => Rate::new(digits, Nanos::from_secs(10_u64.pow(exponent.unsigned_abs()))),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::Control;

    use super::*;
    use crate::steering::PerConnection;

    #[test]
    fn keys_are_told_from_escape_sequences() {
        let keys = |bytes: &[u8]| keys_of(bytes).collect::<Vec<_>>();
        assert_eq!(
            keys(b"+=-_pPqQ?h"),
            [
                Key::Faster,
                Key::Faster,
                Key::Slower,
                Key::Slower,
                Key::Pause,
                Key::Pause,
                Key::Stop,
                Key::Stop,
                Key::Help,
                Key::Help
            ]
        );
        assert_eq!(keys(b"\x1b[A"), []);
        assert_eq!(keys(b"\x1bq"), []);
        assert_eq!(keys(b"xyz \n\0\xff"), []);
    }

    #[test]
    fn rates_keep_three_digits() {
        for (from, expected) in [
            (1100.0, Rate::per_second(1100)),
            (12_345.678, Rate::per_second(12_300)),
            (999.9, Rate::per_second(1000)),
            (1.1, Rate::new(11, Nanos::from_secs(10)).unwrap()),
            (0.012_349, Rate::new(123, Nanos::from_secs(10_000)).unwrap()),
            (1e6 / 3.0, Rate::per_second(333_000)),
        ] {
            assert_eq!(rounded(from), Some(expected), "{from}");
        }
        for beyond in [0.0, 1e-9, 1e15, f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(rounded(beyond), None, "{beyond}");
        }
        // Up and down again and again: the numbers stay short, and something always changes.
        let mut rate = 1000.0;
        for step in 0..200 {
            let next = rounded(rate * if step < 100 { 1.1 } else { 0.9 }).unwrap();
            assert!(next.per_second_f64() != rate && 1_000_000_000_000 % next.period().0 == 0, "{next:?}");
            rate = next.per_second_f64();
        }
    }

    #[test]
    fn a_first_q_drains_and_a_second_reports_at_once() {
        let per_connection = PerConnection { connections: 1, iterations: 1, requests: 1 };
        let helm = Helm { control: Control::default(), per_connection };
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let say: Say = Arc::new(move |text| heard.lock().unwrap().push(text.to_owned()));
        heed(Key::Faster, &helm, &say);
        heed(Key::Help, &helm, &say);
        heed(Key::Stop, &helm, &say);
        assert_eq!(helm.control.wish(), Stop::Drain);
        heed(Key::Stop, &helm, &say);
        assert_eq!(helm.control.wish(), Stop::Now);
        let said = said.lock().unwrap();
        assert!(said[0].contains("not begun") && said[1] == HELP && said[2].contains("stopping"), "{said:?}");
    }
}
