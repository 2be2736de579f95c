//! The only code that moves the bytes of connections.
//!
//! One completion-shaped interface, [`Backend`], stands over io_uring ([`uring`]) and epoll ([`epoll`]); a
//! third, simulated one lives in `testkit`. Work goes in as calls that never block (`connect`, `outbox`,
//! `flush`, `close`), results come out as [`Event`]s. Per pass of a loop the calls come in this order:
//!
//! ```text
//! wait(..) ──► next_event() until None (bytes() while handling each) ──► outbox()… ──► flush() ──► wait(..)
//! ```
//!
//! `flush` may be called as often as wanted, also between events. Bytes that it could not hand to the kernel
//! go out by themselves, inside `wait` and `next_event`.
//!
//! A backend belongs to one thread. It must not know a protocol: bytes in, bytes out.

pub mod epoll;
pub mod sock_diag;
pub mod uring;

mod linger;
mod outbox;
mod receive_stamps;
mod slots;
mod socket;

use core::net::{IpAddr, SocketAddr};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::{ErrorClass, Nanos, Shard};
use plimsoll_system::clock;

/// A connection of one backend. Slots are small numbers and are reused; the generation
/// distinguishes connections that had the same slot, so that a stale id does no harm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnId {
    slot: u32,
    generation: u32,
}

impl ConnId {
    /// For backends: the connection in `slot`, of its `generation`.
    pub const fn new(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    /// Index for tables of per-connection state, below the largest number of connections ever open or being
    /// closed at once (a closed one keeps its slot until its last bytes are gone and the kernel is done with
    /// it).
    pub const fn slot(self) -> usize {
        self.slot as usize
    }

    /// Distinguishes the connections that have had this slot.
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

/// A listening socket of one backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListenerId(pub u32);

/// An address to connect to or to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// TCP over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A unix stream socket. Has no kernel receive timestamps.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Options of a new connection. `TCP_NODELAY` is always set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Local address to bind to (the port is chosen at connect time, by `IP_BIND_ADDRESS_NO_PORT`).
    pub source: Option<IpAddr>,
    /// `SO_RCVBUF` in bytes.
    pub receive_buffer: Option<usize>,
    /// `SO_SNDBUF` in bytes.
    pub send_buffer: Option<usize>,
}

/// An error of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemError {
    /// The error number.
    pub errno: i32,
}

impl SystemError {
    /// The class under which a request or a connection that met this error is counted.
    pub fn class(self) -> ErrorClass {
        match self.errno {
            libc::ECONNREFUSED => ErrorClass::ConnectRefused,
            libc::ETIMEDOUT => ErrorClass::ConnectTimeout,
            libc::EADDRNOTAVAIL | libc::EADDRINUSE => ErrorClass::PortsExhausted,
            libc::EMFILE | libc::ENFILE => ErrorClass::DescriptorsExhausted,
            libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => ErrorClass::Reset,
            libc::EHOSTUNREACH
            | libc::EHOSTDOWN
            | libc::ENETUNREACH
            | libc::ENETDOWN
            | libc::ENOENT
            | libc::ENOTDIR
            | libc::ENAMETOOLONG
            | libc::EPROTOTYPE
            | libc::EACCES
            | libc::EPERM
            | libc::EAFNOSUPPORT
            // Also the error of a unix listener whose queue is full.
            | libc::EAGAIN => ErrorClass::ConnectFailed,
            _ => ErrorClass::Io,
        }
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.errno).fmt(f)
    }
}

impl std::error::Error for SystemError {}

impl From<std::io::Error> for SystemError {
    fn from(error: std::io::Error) -> Self {
        Self { errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// A handle to received bytes, given to [`Backend::bytes`]. Only the backend interprets the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Backend-specific: a buffer.
    pub buffer: u32,
    /// Backend-specific: where the bytes begin in it.
    pub offset: u32,
    /// Number of bytes.
    pub length: u32,
}

impl Chunk {
    /// The last `left` bytes of it.
    #[must_use]
    pub fn last(self, left: usize) -> Self {
        let left = u32::try_from(left).unwrap_or(u32::MAX).min(self.length);
        Self { offset: self.offset + self.length - left, length: left, ..self }
    }
}

/// An event that a backend reports.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A connect call succeeded.
    Connected {
        /// The connection.
        conn: ConnId,
        /// When.
        at: Nanos,
    },
    /// A connect call failed. The id is already gone: no close is needed.
    ConnectFailed {
        /// The former connection.
        conn: ConnId,
        /// When.
        at: Nanos,
        /// The reason.
        error: SystemError,
    },
    /// A listener accepted a connection.
    Accepted {
        /// The listener.
        listener: ListenerId,
        /// The new connection.
        conn: ConnId,
        /// When.
        at: Nanos,
    },
    /// Bytes came.
    Received {
        /// The connection.
        conn: ConnId,
        /// If `stamped`: the kernel's receive time of the last segment in `data`, mapped to the clock of
        /// [`Backend::now`]. Else the time of the pass that saw it.
        at: Nanos,
        /// `true` if `at` is the kernel's receive time.
        stamped: bool,
        /// The bytes, never empty: see [`Backend::bytes`].
        data: Chunk,
    },
    /// The peer closed its side. No more [`Event::Received`] follow; the owner still has to close.
    Closed {
        /// The connection.
        conn: ConnId,
        /// When.
        at: Nanos,
    },
    /// The connection broke. The owner still has to close.
    Failed {
        /// The connection.
        conn: ConnId,
        /// When.
        at: Nanos,
        /// The reason.
        error: SystemError,
    },
}

/// Ways to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Send queued bytes first (flushing it if need be), then close. A TCP peer that takes none of them for a
    /// minute is given up.
    AfterSend,
    /// Drop queued bytes and close.
    Now,
    /// Drop queued bytes and reset the connection (`SO_LINGER` 0).
    Reset,
}

/// Conditions that end [`Backend::wait`].
///
/// The call returns as soon as `want` events are ready; or, once `floor` has passed since the call, as soon
/// as one is; or at `until`. A `want` of 0 or 1, or a `floor` of zero, means "the first event". A `want` that
/// is never reached and a `floor` beyond `until` mean "sleep until then, and gather what comes".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Return at this time at the latest; a time that is past means "do not block".
    pub until: Nanos,
    /// Events to gather.
    pub want: u32,
    /// Time for which to gather them.
    pub floor: Nanos,
    /// Poll busily for this long before `until`, returning at the first event meanwhile.
    pub spin: Nanos,
}

/// Clock readings around the system calls of one flush. Sends happen in the order in which the connections
/// were first written to since the last flush, so the i-th of n began at about `first + (last - first) * i /
/// n`.
///
/// Its start, not its middle: on loopback the reply may be there before the call that sends has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// Before the first system call.
    pub first: Nanos,
    /// After the last.
    pub last: Nanos,
    /// Connections written to.
    pub sends: u32,
}

/// One thread's sockets and clock. See the crate documentation for the order of calls.
pub trait Backend {
    /// `io_uring`, `epoll` or `simulated`.
    fn name(&self) -> &'static str;

    /// The clock: `CLOCK_MONOTONIC`, or virtual time.
    fn now(&self) -> Nanos;

    /// Unix time in nanoseconds: `CLOCK_REALTIME`, or virtual time. Never for a measurement.
    fn unix(&self) -> Nanos {
        clock::unix()
    }

    /// Returns how many times the scheduler has preempted this thread since it began. Makes a system call.
    fn preemptions(&self) -> u64;

    /// Begins to connect. [`Event::Connected`] or [`Event::ConnectFailed`] follows.
    ///
    /// # Errors
    /// When not even a socket could be made or bound: no descriptor or no port left, a bad source address.
    fn connect(&mut self, to: &Endpoint, options: &SocketOptions) -> Result<ConnId, SystemError>;

    /// Listens, and accepts everything that comes ([`Event::Accepted`]). Returns the bound endpoint, so that
    /// port 0 can be asked for.
    ///
    /// # Errors
    /// Address in use, no permission, no descriptor left.
    fn listen(&mut self, on: &Endpoint, reuse_port: bool) -> Result<(ListenerId, Endpoint), SystemError>;

    /// Stops listening. Accepted connections stay.
    fn close_listener(&mut self, listener: ListenerId);

    /// The buffer whose bytes the next flush sends, in order. Calling this marks the connection as written
    /// to. For a stale id it is a scratch buffer that is thrown away.
    fn outbox(&mut self, conn: ConnId) -> &mut Vec<u8>;

    /// Sends `body` after the content of the outbox, without copying it. Bytes that are put into the outbox
    /// afterwards follow it.
    fn send_shared(&mut self, conn: ConnId, body: Arc<[u8]>);

    /// Bytes that were queued on this connection and not yet taken by the kernel.
    fn unsent(&self, conn: ConnId) -> usize;

    /// Hands everything queued to the kernel.
    fn flush(&mut self) -> Flush;

    /// Closes. No event for this id follows any more; a stale id is ignored.
    fn close(&mut self, conn: ConnId, how: Close);

    /// Blocks as [`Wait`] says. Where the thread slept until it was to return, or to poll, it says how late
    /// it was woken; `None` where it did not sleep, or something came.
    fn wait(&mut self, wait: Wait) -> Option<Nanos>;

    /// Waits busily until a time that is microseconds away, and returns the time then. Nothing is sent or
    /// received meanwhile.
    fn poll_until(&mut self, at: Nanos) -> Nanos;

    /// The next event; `None` when nothing more is ready and it is time to wait.
    fn next_event(&mut self) -> Option<Event>;

    /// The bytes of the [`Event::Received`] that [`next_event`](Self::next_event) gave last. They are gone
    /// when it is called again.
    fn bytes(&self, data: Chunk) -> &[u8];
}

/// Opens one backend per worker thread.
pub trait Open: Send + Sync {
    /// The type of backend that is opened.
    type Backend: Backend;

    /// Opens a backend on the calling thread, which must be the one that uses it.
    ///
    /// # Errors
    /// When the system does not provide it or has no descriptor or locked memory left.
    fn open(&self) -> Result<Self::Backend, SystemError>;

    /// Opens a backend for one of several workers. Backends of one machine are alike, so that it makes no
    /// difference which worker comes first. Where each worker has a world of its own, the backend is in that
    /// of this worker.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_for(&self, _worker: Shard) -> Result<Self::Backend, SystemError> {
        self.open()
    }

    /// The name that its backends have.
    fn name(&self) -> &'static str;
}

/// Options of the real backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendOptions {
    /// Ask the kernel for the receive time of every segment (`SO_TIMESTAMPNS`).
    pub receive_stamps: bool,
    /// Limit on the bytes per second that each connection sends, and receives, as over a narrow link. Only
    /// epoll supports it, for a few connections beside those of the load.
    pub bytes_per_s: Option<u64>,
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self { receive_stamps: true, bytes_per_s: None }
    }
}

/// One of the kernel's interfaces as a value. Code that is generic over [`Open`] is compiled for each of them
/// where the value is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelBackend {
    /// [`OpenEpoll`] with these options.
    Epoll(BackendOptions),
    /// [`OpenUring`] with these options.
    Uring(BackendOptions),
}

impl KernelBackend {
    /// The name that its backends have.
    pub fn name(self) -> &'static str {
        match self {
            Self::Epoll(options) => OpenEpoll(options).name(),
            Self::Uring(options) => OpenUring(options).name(),
        }
    }
}

pub use epoll::OpenEpoll;
pub use uring::{OpenUring, uring_available};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_class() {
        let table = [
            (libc::ECONNREFUSED, ErrorClass::ConnectRefused),
            (libc::ETIMEDOUT, ErrorClass::ConnectTimeout),
            (libc::EADDRNOTAVAIL, ErrorClass::PortsExhausted),
            (libc::EADDRINUSE, ErrorClass::PortsExhausted),
            (libc::EMFILE, ErrorClass::DescriptorsExhausted),
            (libc::ENFILE, ErrorClass::DescriptorsExhausted),
            (libc::ECONNRESET, ErrorClass::Reset),
            (libc::EPIPE, ErrorClass::Reset),
            (libc::ECONNABORTED, ErrorClass::Reset),
            (libc::EHOSTUNREACH, ErrorClass::ConnectFailed),
            (libc::ENETUNREACH, ErrorClass::ConnectFailed),
            (libc::ENOENT, ErrorClass::ConnectFailed),
            (libc::EACCES, ErrorClass::ConnectFailed),
            (libc::EAGAIN, ErrorClass::ConnectFailed),
            (libc::EIO, ErrorClass::Io),
            (libc::ENOMEM, ErrorClass::Io),
            (0, ErrorClass::Io),
        ];
        for (errno, class) in table {
            assert_eq!(SystemError { errno }.class(), class, "{}", SystemError { errno });
        }
    }

    #[test]
    fn errors_and_endpoints_can_be_read() {
        assert!(SystemError { errno: libc::ECONNREFUSED }.to_string().starts_with("Connection refused"));
        assert_eq!(SystemError::from(std::io::Error::other("odd")).errno, libc::EIO);
        let tcp = Endpoint::Tcp("[::1]:80".parse().expect("an address"));
        assert_eq!(tcp.to_string(), "[::1]:80");
        assert_eq!(Endpoint::Unix("/run/x".into()).to_string(), "unix:/run/x");
    }
}
