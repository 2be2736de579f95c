//! The standard descriptors that the process was started with.
//!
//! The standard library opens `/dev/null` in place of those that are closed, before `main`: from then on
//! writes to them are lost without an error. From outside such a descriptor looks the same as one that
//! was opened on purpose for reading and writing, as `subprocess.DEVNULL` of Python is, so it is checked
//! before.

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The C library calls the functions in this section after it has set itself up and before its `main`, in
/// which the standard library's own start is.
// SAFETY: the section is an array of such functions (System V ABI, gABI chapter 5, "Initialization and
// Termination Functions"); the C library passes arguments that this one does not take, which the C calling
// convention allows.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: the call reads a flag of a descriptor, which need not be open. Nothing of the standard library
    // is used that would have to be set up.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    STDOUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Returns `true` if the process was started without stdout (`>&-`). Its output then goes nowhere.
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}
