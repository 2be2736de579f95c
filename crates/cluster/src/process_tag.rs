//! Finds the processes of a cluster: those that have its mark in their environment, and their descendants.
//!
//! The mark passes to every process that a node starts, even if it leaves the process group. A number that
//! the system has given to another process meanwhile has no mark, so that no other process is ever hit.

use std::path::Path;

use plimsoll_core::Nanos;
use plimsoll_system::clock;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// The variable that has the mark: `CLUSTER/NODE`.
pub const VARIABLE: &str = "PLIMSOLL_NODE";
/// Time limit for killed processes to disappear. A process that waits for a disk may take long.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// Poll interval while killed processes disappear.
const LOOK: Nanos = Nanos::from_millis(5);

/// The environment entry that identifies the processes of a cluster, or of one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessTag {
    /// `PLIMSOLL_NODE=CLUSTER/`, and the node if it is one's.
    entry: String,
    whole: bool,
}

impl ProcessTag {
    /// The tag of all nodes of a cluster.
    pub fn of_cluster(cluster: &str) -> Self {
        Self { entry: format!("{VARIABLE}={cluster}/"), whole: false }
    }

    /// The tag of one node.
    pub fn of_node(cluster: &str, node: &str) -> Self {
        Self { entry: format!("{VARIABLE}={cluster}/{node}"), whole: true }
    }

    /// The entry of the environment that a node's processes have.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Returns `true` if an environment contains the tag.
    fn is_in(&self, environment: &[u8]) -> bool {
        let entry = self.entry.as_bytes();
        let has = |found: &[u8]| if self.whole { found == entry } else { found.starts_with(entry) };
        environment.split(|byte| *byte == 0).any(has)
    }

    /// The numbers of the processes that have it. Those that have ended are not included.
    pub fn processes(&self) -> Vec<u32> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter(|pid| self.is_of(*pid)).collect()
    }

    /// Returns `true` if a process has the tag. The environment of another user's process cannot be read, and
    /// a process that has ended has none: both count as untagged.
    pub fn is_of(&self, pid: u32) -> bool {
        let path = Path::new("/proc").join(pid.to_string()).join("environ");
        std::fs::read(path).is_ok_and(|environment| self.is_in(&environment))
    }

    /// Sends a signal to all processes that have it. Returns to how many.
    pub fn signal(&self, signal: Signal) -> usize {
        self.processes().into_iter().filter(|pid| self.signal_one(*pid, signal)).count()
    }

    fn signal_one(&self, pid: u32, signal: Signal) -> bool {
        let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
        match pidfd_open(number, PidfdFlags::empty()) {
            // From here on the handle is that of one process, even if its number is reused.
            Ok(handle) => self.is_of(pid) && pidfd_send_signal(handle, signal).is_ok(),
            // Before Linux 5.3.
            Err(Errno::NOSYS) => self.is_of(pid) && kill_process(number, signal).is_ok(),
            Err(_) => false,
        }
    }

    /// Kills all processes that have it, and those that they may be starting; returns when they are gone, or
    /// how many are not.
    ///
    /// # Errors
    /// The number that are left, if some cannot be killed.
    pub fn kill(&self) -> Result<(), usize> {
        let until = clock::monotonic() + PATIENCE;
        loop {
            // A process that is just being started gets its mark a moment later, so one empty look is not
            // enough.
            if self.signal(Signal::KILL) == 0 {
                clock::sleep_until(clock::monotonic() + LOOK);
                if self.signal(Signal::KILL) == 0 {
                    return Ok(());
                }
            }
            if clock::monotonic() > until {
                return Err(self.processes().len());
            }
            clock::sleep_until(clock::monotonic() + LOOK);
        }
    }
}

/// When a process began, in ticks since the boot; `None` if there is none, or if it has ended.
pub fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The name, which may hold anything, ends with the last bracket; the state follows, field 3 (proc(5)).
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let began = fields.nth(18)?;
    (!["Z", "X"].contains(&state)).then(|| began.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_that_of_its_cluster_and_of_its_node_alone() {
        let environment = b"PATH=/bin\0PLIMSOLL_NODE=abc/1\0HOME=/\0";
        for (mark, is_in) in [
            (ProcessTag::of_cluster("abc"), true),
            (ProcessTag::of_cluster("ab"), false),
            (ProcessTag::of_node("abc", "1"), true),
            (ProcessTag::of_node("abc", "10"), false),
            (ProcessTag::of_node("abc", ""), false),
        ] {
            assert_eq!(mark.is_in(environment), is_in, "{mark:?}");
        }
    }

    #[test]
    fn who_has_the_mark_is_killed_with_its_children_wherever_they_went() {
        let cluster = format!("test-{}", std::process::id());
        let mark = ProcessTag::of_node(&cluster, "0");
        // A child in a session of its own, and one that ignores what it can.
        let script = "trap '' TERM; (setsid sleep 600 &) ; sleep 600 & wait";
        let mut shell = std::process::Command::new("sh");
        let mut shell = shell.args(["-c", script]).env(VARIABLE, format!("{cluster}/0")).spawn().unwrap();
        while mark.processes().len() < 3 {
            std::thread::yield_now();
        }
        assert!(ProcessTag::of_node(&cluster, "1").processes().is_empty());
        assert_eq!(ProcessTag::of_cluster(&cluster).kill(), Ok(()));
        assert_eq!(mark.processes(), [0_u32; 0]);
        shell.wait().unwrap();
    }
}
