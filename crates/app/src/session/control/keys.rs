//! Keys on the terminal, while a run goes on: see [`terminal`] for how it is taken and given back.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use plimsoll_core::{Nanos, Rate};
use plimsoll_engine::{RateCommand, Stop};
use plimsoll_metrics::SteeredBy;
use plimsoll_system::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio;
use signal_hook::consts::{SIGCONT, SIGQUIT, SIGTSTP, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use crate::base::messages::Notify;
use crate::base::terminal;
use crate::session::control::rate::{RateController, told};
use crate::session::live::screen::{ScreenHandle, ViewKey};

/// Time that the thread waits for a key before it checks whether it should end, and whether the terminal is
/// still its own.
const PATIENCE: Nanos = Nanos::from_millis(100);
/// Relative change of a rate by `+` and `-`.
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
    /// Begins to listen; `None` where there is no terminal, or this process is not in its foreground. Keys
    /// that only concern the screen go to the stage, if there is one.
    pub(crate) fn listen(
        controller: RateController,
        say: Notify,
        stage: Option<ScreenHandle>,
    ) -> std::io::Result<Option<Self>> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() || !terminal::is_ours() {
            return Ok(None);
        }
        let mut signals = Signals::new([SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH])?;
        let over = Arc::new(AtomicBool::new(false));
        // From here on the terminal is given back, whatever fails.
        let mut keys = Self { over: Arc::clone(&over), signals: signals.handle(), thread: None };
        if !terminal::take() {
            return Ok(None);
        }
        let changed = stage.clone();
        thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGWINCH => {}
                    SIGCONT => {
                        terminal::take();
                    }
                    _ => {
                        terminal::give_back();
                        // Ends the process, or stops it until it is continued.
                        let _ = emulate_default_handler(signal);
                    }
                }
                if let Some(stage) = &changed {
                    stage.look_again();
                }
            }
        })?;
        if stage.is_none() {
            say(HELP);
        }
        let reader = KeyReader { controller, say, stage };
        let thread = thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || while !over.load(Ordering::Relaxed) && reader.read_keys() {})?;
        keys.thread = Some(thread);
        Ok(Some(keys))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            // The thread has reported its own panic.
            let _ = thread.join();
        }
        terminal::give_back();
    }
}

/// Reader of keys, and the targets of their actions.
struct KeyReader {
    controller: RateController,
    say: Notify,
    stage: Option<ScreenHandle>,
}

impl KeyReader {
    /// Waits for keys for a while and heeds them; false when no more can come.
    fn read_keys(&self) -> bool {
        let wait = Timespec { tv_sec: 0, tv_nsec: PATIENCE.0 as i64 };
        let stdin = stdio::stdin();
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        if !terminal::is_ours() {
            clock::sleep_until(clock::monotonic() + PATIENCE);
            return true;
        }
        match poll(&mut ready, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        let mut bytes = [0_u8; 64];
        match rustix::io::read(stdin, &mut bytes) {
            // The terminal has gone: there is nothing to wait for any more.
            Ok(0) => false,
            Ok(read) => {
                keys_of(&bytes[..read]).into_iter().for_each(|key| self.heed(key));
                true
            }
            Err(error) => matches!(error, rustix::io::Errno::INTR | rustix::io::Errno::AGAIN),
        }
    }

    fn heed(&self, key: Key) {
        let shown = self.stage.as_ref().filter(|stage| stage.is_shown());
        match (key, shown) {
            (Key::View(view), Some(stage)) => stage.press(view),
            (Key::View(ViewKey::Help), None) => (self.say)(HELP),
            (Key::View(_), None) => {}
            (key, _) => steer(key, &self.controller, &self.say),
        }
    }
}

/// Meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Faster,
    Slower,
    Pause,
    Stop,
    /// A key that changes the view.
    View(ViewKey),
}

/// The keys in bytes that were read at once. Of escape sequences (ECMA-48 5.4) those of arrows and the like
/// are known, and the others are skipped, as is a letter that was typed together with Alt.
fn keys_of(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        let key = match first {
            0x1b => {
                let (key, behind) = of_sequence(after);
                rest = behind;
                key
            }
            // The same keys without shift, where + and _ are on them.
            b'+' | b'=' => Some(Key::Faster),
            b'-' | b'_' => Some(Key::Slower),
            b'p' | b'P' => Some(Key::Pause),
            b'q' | b'Q' => Some(Key::Stop),
            b'?' | b'h' => Some(Key::View(ViewKey::Help)),
            b'\t' => Some(Key::View(ViewKey::Next)),
            b'k' => Some(Key::View(ViewKey::Up)),
            b'j' => Some(Key::View(ViewKey::Down)),
            _ => None,
        };
        keys.extend(key);
    }
    keys
}

/// Parses the bytes after an escape. Returns the key, if it is known, and the bytes behind its sequence.
fn of_sequence(bytes: &[u8]) -> (Option<Key>, &[u8]) {
    let [b'[' | b'O', parameters @ ..] = bytes else { return (None, bytes.get(1..).unwrap_or_default()) };
    let Some(end) = parameters.iter().position(|byte| (0x40..0x7f).contains(byte)) else {
        return (None, &[]);
    };
    let (sequence, behind) = parameters.split_at(end + 1);
    let key = match sequence {
        b"A" => ViewKey::Up,
        b"B" => ViewKey::Down,
        b"H" | b"1~" | b"7~" => ViewKey::First,
        b"F" | b"4~" | b"8~" => ViewKey::Last,
        b"5~" => ViewKey::PageUp,
        b"6~" => ViewKey::PageDown,
        b"Z" => ViewKey::Previous,
        _ => return (None, behind),
    };
    (Some(Key::View(key)), behind)
}

/// Applies a key to the run.
fn steer(key: Key, controller: &RateController, say: &Notify) {
    let control = &controller.control;
    let status = control.status();
    let command = match key {
        Key::View(_) => return,
        Key::Stop if control.requested_stop() == Stop::No => {
            say("stopping: waiting for requests in flight; once more to report at once");
            return control.stop_by(SteeredBy::Key);
        }
        Key::Stop => return control.stop(Stop::Now),
        Key::Pause if status.paused => RateCommand::Resume,
        Key::Pause => RateCommand::Pause,
        Key::Faster | Key::Slower if status.paused => return say("paused: p resumes"),
        Key::Faster | Key::Slower => {
            let factor = if key == Key::Faster { 1.0 + STEP } else { 1.0 - STEP };
            match status.target_per_second.map(|target| rounded(target * factor)) {
                Some(Some(rate)) => RateCommand::To(rate),
                Some(None) => return say("the rate can go no further"),
                // The control answers with the reason.
                None => RateCommand::To(Rate::per_second(1)),
            }
        }
    };
    match control.set_rate(command, SteeredBy::Key) {
        Ok(change) => say(&told(change)),
        Err(error) => say(&error.to_string()),
    }
}

/// The rate with three digits that is nearest; `None` if that is zero or above the highest rate. So the
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
    use std::sync::Mutex;

    use plimsoll_engine::Control;

    use super::*;
    use crate::session::control::rate::PerConnection;

    #[test]
    fn keys_are_told_from_escape_sequences() {
        let keys = keys_of;
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
                Key::View(ViewKey::Help),
                Key::View(ViewKey::Help)
            ]
        );
        let view = |view| vec![Key::View(view)];
        assert_eq!(keys(b"\x1b[A"), view(ViewKey::Up));
        assert_eq!(keys(b"\x1bOB"), view(ViewKey::Down));
        assert_eq!(keys(b"\x1b[6~\x1b[Z\t").len(), 3);
        // Keys after an unknown sequence are still read.
        assert_eq!(keys(b"\x1b[1;5qp\x1b[99"), [Key::Pause]);
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
        let controller = RateController { control: Control::default(), per_connection };
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let say: Notify = Arc::new(move |text| heard.lock().unwrap().push(text.to_owned()));
        steer(Key::Faster, &controller, &say);
        steer(Key::Stop, &controller, &say);
        assert_eq!(controller.control.requested_stop(), Stop::Drain);
        steer(Key::Stop, &controller, &say);
        assert_eq!(controller.control.requested_stop(), Stop::Now);
        let said = said.lock().unwrap();
        assert!(said[0].contains("not begun") && said[1].contains("stopping"), "{said:?}");
    }
}
