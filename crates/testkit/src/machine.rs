//! The time of the machine, which all tests share.
//!
//! A test is of one of three kinds. One that [needs a quiet machine](quiet) measures: its result depends on
//! who else has the processors, so it has the machine to itself, in this process and in all others. One that
//! [puts a load](fn@load) on a server counts: it may run beside a few others of its kind, and not beside a
//! measurement. All other tests run anywhere. Of these, one that starts hundreds of programs lets them
//! [yield](beside), and one that computes for seconds in this process [gives way](give_way) itself.
//!
//! Measurements go first: no load begins while one waits, so that those that wait follow each other and the
//! machine has to become quiet once for all of them.

use std::cell::Cell;
use std::env;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::marker::PhantomData;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::setpriority_process;

/// The file whose lock is the right to measure, in the folder of temporary files: all checkouts on a machine
/// share its processors. A load shares it.
const LOCK: &str = "plimsoll-quiet-machine.lock";

/// The file that measurements share, from when they ask for their turn to its end. A load locks it for a
/// moment before it begins.
const GATE: &str = "plimsoll-quiet-machine.gate";

/// Begin of the names of the files of which each load locks one.
const PLACE: &str = "plimsoll-quiet-machine.load";

/// Loads at a time. Of more, each would wait for a processor for a good part of its time; with fewer, a
/// processor waits: most loads of the tests use one for a third of their time.
const PLACES: u32 = 4;

/// Nice value of what does not measure.
const NICE: i32 = 19;

/// Nice value of what has a turn: its generator finds a processor at once, whatever other tests do. Their
/// servers may have to wait, which makes a target slower and no measurement invalid.
const PREFERRED: i32 = -10;

thread_local! {
    /// Turns that this thread holds.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// The right to measure, or to put a load on a server, until it is dropped.
#[derive(Debug)]
#[must_use = "the turn ends when it is dropped"]
pub struct Turn {
    /// Empty for a turn within another one of the same thread.
    _locks: Vec<File>,
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
    turn(|| {
        let gate = file(GATE);
        locked(GATE, gate.lock_shared());
        let lock = file(LOCK);
        locked(LOCK, lock.lock());
        vec![gate, lock]
    })
}

/// Marks a load whose requests are counted, and waits until no test [measures](quiet) or wants to, and fewer
/// than four loads run. Whoever holds a turn may not wait for another thread that takes one: that thread may
/// wait for a measurement, which waits for the turn.
///
/// # Panics
/// If the lock cannot be taken.
pub fn load() -> Turn {
    turn(|| {
        let place = place();
        vec![place, beside_no_measurement()]
    })
}

/// Marks a load that hardly uses a processor, such as one of a few hundred requests per second, or whose
/// program waits for most of the time. It runs beside any number of [loads](fn@load), and beside no
/// [measurement](quiet).
///
/// # Panics
/// If the lock cannot be taken.
pub fn light_load() -> Turn {
    turn(|| vec![beside_no_measurement()])
}

/// Waits until no test measures or wants to.
fn beside_no_measurement() -> File {
    let gate = file(GATE);
    locked(GATE, gate.lock());
    let lock = file(LOCK);
    locked(LOCK, lock.lock_shared());
    lock
}

fn turn(take: impl FnOnce() -> Vec<File>) -> Turn {
    let locks = if HELD.get() > 0 { Vec::new() } else { take() };
    if HELD.get() == 0 {
        // For this thread, and for the processes and threads that it starts. Only the superuser may; the turn
        // holds without it.
        let _ = setpriority_process(None, PREFERRED);
    }
    HELD.set(HELD.get() + 1);
    Turn { _locks: locks, _thread: PhantomData }
}

/// Waits for one of the places.
fn place() -> File {
    let mut places = (0..PLACES).map(|number| file(&format!("{PLACE}{number}")));
    if let Some(free) = places.find(|place| place.try_lock().is_ok()) {
        return free;
    }
    // Threads that wait are spread over the places.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("{PLACE}{}", NEXT.fetch_add(1, Ordering::Relaxed) % PLACES);
    let place = file(&name);
    locked(&name, place.lock());
    place
}

fn locked(name: &str, result: std::io::Result<()>) {
    result.unwrap_or_else(|error| panic!("{name}: {error}"));
}

fn file(name: &str) -> File {
    let path = env::temp_dir().join(name);
    open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Opens the file of the lock. Another user's file is only read, which its lock does not mind.
fn open(path: &std::path::Path) -> std::io::Result<File> {
    File::open(path).or_else(|_| OpenOptions::new().append(true).create(true).open(path))
}

impl Drop for Turn {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
        if HELD.get() == 0 {
            let _ = setpriority_process(None, 0);
        }
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

    #[test]
    fn a_turn_keeps_others_out_and_is_given_twice_to_its_thread() {
        let turn = quiet();
        assert!(file(LOCK).try_lock_shared().is_err());
        drop(load());
        drop(turn);
        let _first = load();
        // Loads run beside each other, and not beside a measurement.
        assert!(file(LOCK).try_lock_shared().is_ok());
        assert!(file(LOCK).try_lock().is_err());
    }

    #[test]
    fn no_load_begins_while_a_measurement_waits() {
        let first = load();
        let measurement = thread::spawn(|| drop(quiet()));
        // It shares the gate from when it asks.
        while file(GATE).try_lock().is_ok() {
            thread::yield_now();
        }
        assert!(!measurement.is_finished());
        drop(first);
        measurement.join().expect("it has its turn");
        drop(load());
    }

    #[test]
    fn a_command_yields_unless_its_thread_has_a_turn() {
        assert_eq!(beside("true").get_program(), "nice");
        let _turn = load();
        assert_eq!(beside("true").get_program(), "true");
        assert!(beside("true").status().expect("it is there").success());
    }
}
