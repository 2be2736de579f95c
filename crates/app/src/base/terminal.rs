//! The terminal of this process, of which there is one: its modes, and whether the screen is on it.
//!
//! While it is taken it gives keys one by one and without showing them, but keeps its signals (`^C`, `^Z`)
//! and its line ends. Its modes are restored on every way out: at the end, on a signal that ends or stops the
//! process, and in a panic. A process in the background leaves it alone.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};

use plimsoll_core::Nanos;
use plimsoll_system::{clock, last_words};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, Winsize};
use rustix::{process, stdio, termios};

/// Leaves the alternate screen and shows the cursor, with plain letters (xterm's private modes 1049 and 25).
pub(crate) const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

static STATE: Mutex<State> = Mutex::new(State { before: None, screen: Screen::Off, turns: 0 });

/// Time between two attempts to lock the state, and the number of attempts.
const MOMENT: Nanos = Nanos::from_millis(1);
const MOMENTS: u32 = 200;

struct State {
    /// The modes that it had; `None` while it has them.
    before: Option<Termios>,
    screen: Screen,
    /// Number of times that the screen was entered. After each of them everything has to be drawn again.
    turns: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// The screen is not wanted.
    Off,
    /// The screen is wanted, and left for now: the process is stopped, or in the background.
    Left,
    On,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns `true` if this process is in the foreground of its terminal. In the background, a change of the
/// terminal's modes, or a read, would stop the process.
pub(crate) fn is_ours() -> bool {
    termios::tcgetpgrp(stdio::stdin()).is_ok_and(|group| group == process::getpgrp())
}

/// Lets the terminal give keys one by one, and shows the screen again if it was left. False if it is not
/// ours, or not available.
pub(crate) fn take() -> bool {
    restore_in_a_panic();
    let mut state = state();
    if !is_ours() {
        return false;
    }
    let Ok(present) = termios::tcgetattr(stdio::stdin()) else { return false };
    let mut changed = present.clone();
    changed.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    changed.special_codes[SpecialCodeIndex::VMIN] = 1;
    changed.special_codes[SpecialCodeIndex::VTIME] = 0;
    last_words::remember_modes();
    if termios::tcsetattr(stdio::stdin(), OptionalActions::Now, &changed).is_err() {
        return false;
    }
    // After a stop by another process, the terminal still has our modes; the original ones are known then.
    state.before.get_or_insert(present);
    if state.screen == Screen::Left {
        state.enter();
    }
    true
}

/// Restores the modes of the terminal, and leaves the screen. A process in the background has no right to
/// change modes, and no need: the shell did.
pub(crate) fn give_back() {
    // A drawing thread holds the lock for a moment. In a panic this very thread may hold it for ever.
    for _ in 0..MOMENTS {
        match STATE.try_lock() {
            Ok(mut state) => return state.give_back(),
            Err(TryLockError::Poisoned(state)) => return state.into_inner().give_back(),
            Err(TryLockError::WouldBlock) => clock::sleep_until(clock::monotonic() + MOMENT),
        }
    }
}

/// Shows the screen, from an empty one.
pub(crate) fn open_screen() {
    let mut state = state();
    if state.screen == Screen::Off {
        if is_ours() {
            state.enter();
        } else {
            state.screen = Screen::Left;
        }
    }
}

/// Shows what was there before the screen.
pub(crate) fn close_screen() {
    state().leave(Screen::Off);
}

/// Returns the number of times that the screen was entered; `None` while it is not shown.
pub(crate) fn screen_turn() -> Option<u64> {
    let state = state();
    (state.screen == Screen::On && is_ours()).then_some(state.turns)
}

/// Writes to the screen as much as the terminal takes without waiting, and removes it from `bytes`. If the
/// screen is not shown, nothing of it is.
///
/// # Errors
/// The terminal takes nothing any more, and never will.
pub(crate) fn paint(output: &mut Output, bytes: &mut Vec<u8>) -> io::Result<()> {
    // Holding the lock keeps a frame from being painted after the screen was left.
    let state = state();
    if state.screen != Screen::On || !is_ours() {
        bytes.clear();
        return Ok(());
    }
    output.write(bytes)
}

/// Columns and rows of the terminal.
pub(crate) fn size() -> Option<(u16, u16)> {
    let Winsize { ws_col, ws_row, .. } = termios::tcgetwinsize(stdio::stderr()).ok()?;
    (ws_col > 0 && ws_row > 0).then_some((ws_col, ws_row))
}

/// Columns of the terminal that stdout is, if it says so.
pub(crate) fn width_of_stdout() -> Option<usize> {
    let columns = termios::tcgetwinsize(stdio::stdout()).ok()?.ws_col;
    (columns > 0).then_some(usize::from(columns))
}

impl State {
    fn give_back(&mut self) {
        self.leave(Screen::Left);
        if let Some(modes) = self.before.take()
            && is_ours()
        {
            let _ = termios::tcsetattr(stdio::stdin(), OptionalActions::Now, &modes);
        }
        last_words::forget_modes();
    }

    fn enter(&mut self) {
        self.screen = Screen::On;
        self.turns += 1;
        // The first frame of the turn begins with entering.
        last_words::say(Some(LEAVE));
    }

    fn leave(&mut self, into: Screen) {
        if self.screen == Screen::On {
            let _ = io::stderr().write_all(LEAVE.as_bytes());
            last_words::say(None);
        }
        self.screen = if self.screen == Screen::Off { Screen::Off } else { into };
    }
}

/// A way to the terminal of stderr that never makes its user wait.
#[derive(Debug)]
pub(crate) struct Output {
    /// Opened again, so that its non-blocking mode does not affect other processes that share stderr.
    own: Option<File>,
}

impl Output {
    pub(crate) fn open() -> Self {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Self { own: rustix::fs::open("/proc/self/fd/2", flags, Mode::empty()).ok().map(File::from) }
    }

    fn write(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            let result = match &mut self.own {
                Some(own) => own.write(rest),
                // The terminal belongs to another process: write a little at a time, whenever there is room.
                None if has_room() => io::stderr().write(&rest[..rest.len().min(256)]),
                None => break,
            };
            match result {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        bytes.drain(..written);
        Ok(())
    }
}

fn has_room() -> bool {
    let stderr = io::stderr();
    let mut ready = [PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::OUT)];
    poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

fn restore_in_a_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            previous(info);
        }));
    });
}
