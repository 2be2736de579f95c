//! The last message to stderr, and the terminal modes to restore, for a signal that ends the process in its
//! handler, where no other code of the program runs any more.

use std::io;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use signal_hook::low_level::register;

/// Modes of the terminal of stdin to be given back; null if there are none. Its target is never freed: a
/// handler may be reading it.
static MODES: AtomicPtr<libc::termios> = AtomicPtr::new(null_mut());
/// Message to write to stderr first; null if there is none.
static WORDS: AtomicPtr<&'static str> = AtomicPtr::new(null_mut());

/// Remembers the modes that the terminal of stdin has now. Those that are remembered already stay.
pub fn remember_modes() {
    if !MODES.load(Ordering::Acquire).is_null() {
        return;
    }
    // SAFETY: a termios is plain integers, for which zero is a value; the call writes one of them.
    let (modes, known) = unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        let known = libc::tcgetattr(libc::STDIN_FILENO, &raw mut modes) == 0;
        (modes, known)
    };
    if known {
        MODES.store(Box::into_raw(Box::new(modes)), Ordering::Release);
    }
}

/// There is nothing to be given back any more.
pub fn forget_modes() {
    MODES.store(null_mut(), Ordering::Release);
}

/// Sets the message that the handler writes to stderr from now on; `None` for no message.
pub fn say(words: Option<&'static str>) {
    let words = words.map_or(null_mut(), |words| Box::into_raw(Box::new(words)));
    WORDS.store(words, Ordering::Release);
}

/// Has the handler of a signal write the words and give the modes back, if `when` is set. Register this
/// before the action that ends the process: actions of a signal are carried out in the order in which they
/// were registered.
///
/// # Errors
/// The system refuses a handler for this signal.
pub fn before_the_end(signal: i32, when: Arc<AtomicBool>) -> io::Result<()> {
    let action = move || {
        if when.load(Ordering::Relaxed) {
            utter();
        }
    };
    // SAFETY: the action reads atomics and makes the system calls `write` and `tcsetattr`, all of which a
    // handler may (signal-safety(7)); it neither allocates nor locks, and cannot panic.
    unsafe { register(signal, action) }.map(|_| ())
}

fn utter() {
    let words = WORDS.load(Ordering::Acquire);
    // SAFETY: what was stored points to a text that is never freed; `write` reads it and nothing more.
    unsafe {
        if !words.is_null() {
            let words: &'static str = *words;
            libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
        }
    }
    let modes = MODES.load(Ordering::Acquire);
    if !modes.is_null() {
        // SAFETY: what was stored points to modes that are never freed; the call reads them.
        unsafe {
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, modes);
        }
    }
}
