//! The time of the machine, which all tests share.
//!
//! A test is of one of three kinds. One that [needs a quiet machine](quiet) measures: its result depends on
//! who else has the processors, so it has the machine to itself, in this process and in all others. One that
//! [puts a load](fn@load) on a server counts: it may run beside others of its kind, and not beside a
//! measurement. All other tests run anywhere. Of these, one that starts hundreds of programs lets them
//! [yield](beside), and one that computes for seconds in this process [gives way](give_way) itself.

use std::cell::Cell;
use std::env;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::marker::PhantomData;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::process::setpriority_process;

/// The file whose lock is the right to measure, in the folder of temporary files: all checkouts on a machine
/// share its processors.
const LOCK: &str = "plimsoll-quiet-machine.lock";

/// Nice value of what does not measure.
const NICE: i32 = 19;

thread_local! {
    /// Turns that this thread holds.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// The right to measure, or to put a load on a server, until it is dropped.
#[derive(Debug)]
#[must_use = "the turn ends when it is dropped"]
pub struct Turn {
    /// `None` for a turn within another one of the same thread.
    _lock: Option<File>,
    /// A turn is counted by its thread.
    _thread: PhantomData<*const ()>,
}

/// Marks a test that needs a quiet machine, and waits until neither such a test nor a [`load`] runs.
///
/// The lock belongs to an open file, so that it ends with the process that holds it, and any number of
/// runners (threads of `cargo test`, processes of another runner, other checkouts) wait for each other. A
/// thread that has a turn gets another one at once, of the kind that it has.
///
/// # Panics
/// If the lock cannot be taken: a measurement would disturb others.
pub fn quiet() -> Turn {
    turn(File::lock)
}

/// Marks a load whose requests are counted, and waits until no test [measures](quiet). Any number of loads
/// may run at once.
///
/// # Panics
/// If the lock cannot be taken.
pub fn load() -> Turn {
    turn(File::lock_shared)
}

fn turn(lock: fn(&File) -> std::io::Result<()>) -> Turn {
    let nested = HELD.get() > 0;
    let lock = (!nested).then(|| {
        let path = env::temp_dir().join(LOCK);
        let file = open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        lock(&file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file
    });
    HELD.set(HELD.get() + 1);
    Turn { _lock: lock, _thread: PhantomData }
}

/// Opens the file of the lock. Another user's file is only read, which its lock does not mind.
fn open(path: &std::path::Path) -> std::io::Result<File> {
    File::open(path).or_else(|_| OpenOptions::new().append(true).create(true).open(path))
}

impl Drop for Turn {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// Lowers the priority of this thread, and of the threads that it starts, below that of a measurement. Only
/// the superuser could raise it again, so that this is for a test that does nothing else.
pub fn give_way() {
    // Where it is forbidden, the test runs as it is.
    let _ = setpriority_process(None, NICE);
}

/// Returns a command for `program`, which yields to everything else on the machine unless this thread has a
/// [turn](Turn).
pub fn beside(program: impl AsRef<OsStr>) -> Command {
    if HELD.get() > 0 {
        return Command::new(program);
    }
    let mut command = Command::new("nice");
    command.args(["-n", &NICE.to_string()]);
    // The policy is for processors that a measurement wants at that moment. A process that leaves it for some
    // of its threads has the nice value.
    if idle_policy_works() {
        command.args(["chrt", "--idle", "0"]);
    }
    command.arg(program);
    command
}

/// Returns `true` if processes may be given the policy SCHED_IDLE: some containers forbid it.
fn idle_policy_works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let tried = Command::new("chrt").args(["--idle", "0", "true"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn is_free() -> bool {
        let file =
            open(&env::temp_dir().join(LOCK)).expect("the folder of temporary files can be written to");
        file.try_lock().is_ok()
    }

    #[test]
    fn a_turn_keeps_others_out_and_is_given_twice_to_its_thread() {
        let turn = quiet();
        assert!(thread::spawn(|| !is_free()).join().expect("no panic"));
        drop(load());
        drop(turn);
        let first = load();
        // Loads run beside each other.
        thread::spawn(|| drop(load())).join().expect("no panic");
        assert!(!is_free());
        drop(first);
    }

    #[test]
    fn a_command_yields_unless_its_thread_has_a_turn() {
        assert_eq!(beside("true").get_program(), "nice");
        let _turn = load();
        assert_eq!(beside("true").get_program(), "true");
        assert!(beside("true").status().expect("it is there").success());
    }
}
