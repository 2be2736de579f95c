//! Processes that make the unfinished runs of the history, and whether they still exist.

use plimsoll_core::Nanos;
use plimsoll_system::clock;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// After this silence a process that cannot be inspected (on another machine, in another container)
/// is taken for gone. It writes once per interval, and an interval is mostly a second.
const SILENCE: Nanos = Nanos::from_secs(120);

/// This process, in words by which another one can find it: the boot of its system, its namespace of process
/// numbers, its number, and when it began.
pub(crate) fn this_process() -> String {
    let pid = std::process::id();
    format!("{} {pid} {}", world(), begun(pid).unwrap_or_default())
}

/// Returns `true` if the process that [`this_process`] described in these words still exists. `heard` is when
/// it last wrote.
pub(crate) fn lives(process: &str, heard: Nanos) -> bool {
    match of_this_world(process) {
        Some(_) => number(process).is_some(),
        None => clock::unix() - heard < SILENCE,
    }
}

/// Returns the number of the process that [`this_process`] described in these words, if it still exists and
/// can be inspected.
pub(crate) fn number(process: &str) -> Option<u32> {
    let (pid, since) = of_this_world(process)?;
    let pid = pid.parse().ok()?;
    // A pid may be reused later, by a process that began at another time.
    (begun(pid)? == since).then_some(pid)
}

/// The number of that process, and its command line.
pub(crate) fn number_and_arguments(process: &str) -> Option<(u32, Vec<String>)> {
    let pid = number(process)?;
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    Some((pid, words.collect()))
}

/// The number and the begin of a process in the words of [`this_process`], if it can be inspected.
fn of_this_world(process: &str) -> Option<(&str, &str)> {
    process.strip_prefix(&world())?.strip_prefix(' ')?.split_once(' ')
}

/// Has this process ended with its parent, however that one ends; `false` if it has ended already.
pub(crate) fn end_with(parent: u32) -> bool {
    let is_there =
        || getppid().is_some_and(|process| process.as_raw_nonzero().get().cast_unsigned() == parent);
    // It may end before it is asked for.
    is_there() && set_parent_process_death_signal(Some(Signal::TERM)).is_ok() && is_there()
}

/// Returns the scope in which process numbers are unique: the boot and the namespace.
fn world() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// When a process began, in ticks since the boot (`proc(5)`, field 22 of `stat`); `None` if there is none, or
/// if it has ended and only its parent has not noticed.
fn begun(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, which may hold anything, ends with the last bracket; the state follows, field 3.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let begun = fields.nth(18)?;
    (!["Z", "X"].contains(&state)).then(|| begun.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_ends_and_is_not_another_one_with_its_number() {
        let this = this_process();
        assert!(lives(&this, Nanos::ZERO), "{this}");
        assert!(!lives(&format!("{this}0"), clock::unix()));
        let (number, arguments) = number_and_arguments(&this).expect("it lives");
        assert!(number == std::process::id() && !arguments.is_empty(), "{arguments:?}");
        assert_eq!(number_and_arguments("elsewhere pid:[1] 7 8"), None);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let of_child = |begun: &str| format!("{} {} {begun}", world(), child.id());
        let of_child = of_child("1");
        child.wait().unwrap();
        assert!(!lives(&of_child, clock::unix()));
        // Without a start time, the last write decides.
        assert!(
            lives("elsewhere pid:[1] 7 8", clock::unix()) && !lives("elsewhere pid:[1] 7 8", Nanos::ZERO)
        );
    }
}
