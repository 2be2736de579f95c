//! A child process whose use of the machine is accounted, and which never outlives this program.
//!
//! The only `unsafe` of this crate: the standard library offers neither `wait4` with its figures, nor a wait
//! with a time limit, nor limits and a death signal for a child.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::Duration;

/// A running child. It is killed and reaped when this is dropped, and killed by the kernel should this
/// program die.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pidfd: OwnedFd,
    reaped: bool,
}

/// Resources used by a child until it ended, including all of its threads and its start-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usage {
    /// Exit code, or 128 + the signal that ended it, as shells say it.
    pub(crate) code: i32,
    /// CPU time in user mode, in microseconds.
    pub(crate) user_us: f64,
    /// CPU time in the kernel, in microseconds.
    pub(crate) sys_us: f64,
    /// Largest resident memory in bytes; never below that of this program, from which the child was forked.
    pub(crate) rss_peak_bytes: u64,
}

impl Running {
    /// Starts `command` with as many file descriptors as the hard limit allows. Must be called on the main
    /// thread: the kernel takes the end of the starting thread for that of the program.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        // SAFETY: the closure runs between fork and exec and makes only system calls, all of which are
        // async-signal-safe; it touches no memory but its own stack.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn()?;
        match open_pidfd(&child) {
            Ok(pidfd) => Ok(Self { child, pidfd, reaped: false }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Interrupts the child, as a terminal does.
    pub(crate) fn interrupt(&self) -> io::Result<()> {
        let pid = libc::pid_t::try_from(self.child.id()).map_err(io::Error::other)?;
        // SAFETY: kill takes two integers. `pid` is our own child and not reaped yet: reaping takes `self`.
        if unsafe { libc::kill(pid, libc::SIGINT) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until the child has ended, or for `limit`. Returns `true` if it has ended.
    pub(crate) fn ends_within(&self, limit: Duration) -> io::Result<bool> {
        let timeout_ms = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
        loop {
            let mut entry = libc::pollfd { fd: self.pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: `entry` is one valid pollfd for the length of the call, and its descriptor is open as
            // long as `self.pidfd` lives.
            match unsafe { libc::poll(&raw mut entry, 1, timeout_ms) } {
                -1 => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
                ready => return Ok(ready > 0),
            }
        }
    }

    /// Waits for the child to end by itself, at most for `limit`, and returns its resource usage. A child
    /// that is still there then is killed.
    pub(crate) fn finish(mut self, limit: Duration) -> io::Result<Usage> {
        if !self.ends_within(limit)? {
            self.end();
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("still running after {} s, killed", limit.as_secs()),
            ));
        }
        self.reap()
    }

    fn reap(&mut self) -> io::Result<Usage> {
        let pid = libc::pid_t::try_from(self.child.id()).map_err(io::Error::other)?;
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        loop {
            // SAFETY: both pointers are valid for writes of their types during the call. `pid` is our own
            // child and not reaped yet (`self.reaped`), so that it cannot name another process.
            if unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) } == pid {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        self.reaped = true;
        // SAFETY: zeroes are a valid rusage, and wait4 has filled it.
        let usage = unsafe { usage.assume_init() };
        Ok(Usage {
            code: if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                128 + libc::WTERMSIG(status)
            },
            user_us: micros(usage.ru_utime),
            sys_us: micros(usage.ru_stime),
            // Linux counts it in KiB.
            rss_peak_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        })
    }

    fn end(&mut self) {
        if !self.reaped {
            // It may have ended by itself; it is still ours to reap then, and its id is not reused before.
            let _ = self.child.kill();
            let _ = self.reap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Prepares the child before it executes the program.
fn prepare() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit for the length of each call, and prctl takes no pointer here.
    let done = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0
            && {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0
            }
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn open_pidfd(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and gives a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    match i32::try_from(fd) {
        // SAFETY: the descriptor is new and nobody else's.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn micros(time: libc::timeval) -> f64 {
    time.tv_sec as f64 * 1e6 + time.tv_usec as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Running {
        Running::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn exit_codes_and_signals_as_shells_say_them() {
        let limit = Duration::from_secs(60);
        assert_eq!(shell("exit 3").finish(limit).unwrap().code, 3);
        assert_eq!(shell("kill -9 $$").finish(limit).unwrap().code, 128 + 9);
    }

    #[test]
    fn cpu_time_and_memory_are_the_childs() {
        let usage = shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
            .finish(Duration::from_secs(60))
            .unwrap();
        assert!(usage.user_us + usage.sys_us > 1_000.0, "{usage:?}");
        assert!(usage.rss_peak_bytes > 100 * 1024, "{usage:?}");
    }

    #[test]
    fn a_child_that_does_not_end_is_killed() {
        let running = shell("exec sleep 1000");
        let pid = running.pid();
        assert!(!running.ends_within(Duration::ZERO).unwrap());
        let error = running.finish(Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let running = shell("exec sleep 1000");
        let pid = running.pid();
        drop(running);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn children_get_all_the_descriptors_that_the_hard_limit_allows() {
        assert_eq!(
            shell("[ $(ulimit -Sn) = $(ulimit -Hn) ]").finish(Duration::from_secs(60)).unwrap().code,
            0
        );
    }
}
