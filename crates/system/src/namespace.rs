//! Network namespaces without a name: each has addresses, routes and packet filters of its own, and is gone
//! with the last process or descriptor that has it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::thread;

/// A network namespace. It goes when this is dropped and no process is left in it, and with this process,
/// however that ends.
#[derive(Debug)]
pub struct NetworkNamespace {
    handle: File,
}

impl NetworkNamespace {
    /// Makes one in which there is nothing but a loopback device that is down.
    ///
    /// # Errors
    /// The system has none, or this process may not (`CAP_SYS_ADMIN`), or no thread can be started.
    pub fn new() -> io::Result<Self> {
        let handle = on_own_thread(|| {
            // SAFETY: the call takes a number, and with this one changes the network of this thread alone.
            let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            result_of(done)?;
            File::open("/proc/thread-self/ns/net")
        })?;
        Ok(Self { handle: handle? })
    }

    /// A path by which other programs find it, for as long as this process has it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.handle.as_raw_fd()))
    }

    /// Does something in it, on a thread that ends afterwards. Sockets that are made there stay in it, and so
    /// do the processes that are started.
    ///
    /// # Errors
    /// It cannot be entered, or no thread can be started.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_own_thread(|| {
            // SAFETY: the descriptor is open as long as `self` is; only the network of this thread changes.
            let done = unsafe { libc::setns(self.handle.as_raw_fd(), libc::CLONE_NEWNET) };
            result_of(done).map(|()| work())
        })?
    }
}

/// Runs `work` on a new thread and returns its result. A panic of that thread is resumed here.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let begun = thread::Builder::new().name("namespace".to_owned()).spawn_scoped(scope, work)?;
        Ok(begun.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn result_of(done: libc::c_int) -> io::Result<()> {
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices() -> Vec<String> {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("it can be read");
        let names = text.lines().skip(2).filter_map(|line| line.split(':').next());
        names.map(|name| name.trim().to_owned()).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn what_is_done_within_one_sees_nothing_of_other_networks() {
        let namespace = match NetworkNamespace::new() {
            Ok(namespace) => namespace,
            // Without the privilege to make a namespace, that is the error.
            Err(error) => return assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}"),
        };
        let outside = std::fs::read_link("/proc/thread-self/ns/net").expect("it has one");
        let within = namespace.within(|| (devices(), std::fs::read_link("/proc/thread-self/ns/net")));
        let (seen, inside) = within.expect("it can be entered");
        assert!(seen.iter().all(|name| !name.starts_with("eth")), "{seen:?}");
        assert_ne!(inside.expect("it has one"), outside);
        // The same one each time, and a child is in it.
        let link = || std::process::Command::new("readlink").arg("/proc/self/ns/net").output();
        let of_child = namespace.within(link).expect("it can be entered").expect("there is readlink");
        let again = namespace.within(|| std::fs::read_link("/proc/thread-self/ns/net"));
        let again = again.expect("it can be entered").expect("it has one");
        assert_eq!(String::from_utf8_lossy(&of_child.stdout).trim(), again.to_string_lossy());
        assert_eq!(std::fs::read_link("/proc/thread-self/ns/net").expect("it has one"), outside);
    }
}
