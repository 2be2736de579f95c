//! The backend over io_uring: needs Linux 6.1, is at its best from 6.12 on.
//!
//! ```text
//! connect, accept ──► one multishot receive per connection ──► completions ──► pending ──► next_event
//! outbox ──► flush: one send request per connection, one system call ──► completions (no events)
//! wait: one system call that wakes for `want` completions, or for one after `floor`
//! ```
//!
//! Completions are made only when `wait` or `flush` enters the kernel, and are sorted at once: completions of
//! sends and cancellations change the connection's state, the others become `pending` events. So `want`
//! counts events and nothing else.
//!
//! The kernel holds pointers into the outbox of a connection while a send is under way, and into the receive
//! buffers all the time. A slot with requests in the kernel is therefore never freed, regardless of its
//! owner: closing expires the id and makes the requests end, and the last completion frees the slot.

mod buffers;
mod completion;
mod connection;
mod ring;
mod submission;

use std::collections::VecDeque;
use std::fmt;
use std::mem::ManuallyDrop;
use std::net::Shutdown;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use io_uring::types::{CancelBuilder, RecvMsgOut};
use io_uring::{cqueue, opcode};
use plimsoll_core::Nanos;
use plimsoll_system::{clock, thread, usage};

use crate::linger::Lingering;
use crate::outbox::BufferPool;
use crate::receive_stamps::RealtimeMap;
use crate::slots::{Slots, Token};
use crate::socket::{self, Listener, STAMP_SPACE, Style};
use crate::{
    Backend, BackendOptions, Chunk, Close, ConnId, Endpoint, Event, Flush, ListenerId, Open, SocketOptions,
    SystemError, Wait,
};
use buffers::Buffers;
use connection::{Closing, Connection};
use ring::{Ring, SpinPolicy};

/// Opens [`Uring`] backends.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenUring(pub BackendOptions);

impl Open for OpenUring {
    type Backend = Uring;

    fn open(&self) -> Result<Uring, SystemError> {
        Uring::open(self.0)
    }

    fn name(&self) -> &'static str {
        NAME
    }
}

const NAME: &str = "io_uring";

/// Checks by trying whether [`OpenUring`] works on this system.
///
/// # Errors
/// The reason: io_uring is absent or forbidden (as in many containers), in whole or in part, or the kernel is
/// too old.
pub fn uring_available() -> Result<(), String> {
    let mut ring = Ring::open().map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel has no io_uring".to_owned(),
        Some(libc::EPERM | libc::EACCES) => {
            "io_uring is forbidden here (kernel.io_uring_disabled, or a seccomp filter)".to_owned()
        }
        Some(libc::EINVAL) => "the kernel's io_uring is older than 6.1 (no DEFER_TASKRUN)".to_owned(),
        _ => format!("io_uring cannot be set up: {error}"),
    })?;
    if let Some(lack) = ring.lacks() {
        return Err(lack);
    }
    ring.poll().map_err(|error| {
        format!("io_uring can be set up here and not entered ({error}): a seccomp filter forbids it")
    })?;
    drop(ring);
    let backend = Uring::open(BackendOptions::default());
    backend
        .map(drop)
        .map_err(|error| format!("the receive buffers of io_uring cannot be registered: {error}"))
}

/// [`Token::kind`]s: the kind of request that a completion answers.
const RECEIVE: u8 = 1;
const SEND: u8 = 2;
const CONNECT: u8 = 3;
const ACCEPT: u8 = 4;
const CANCEL: u8 = 5;
const CANCEL_ACCEPT: u8 = 6;
/// An error or the end of both directions, which is polled for.
const HANG_UP: u8 = 7;
/// The receive ends, to be made again.
const RENEW: u8 = 8;

/// Bytes that the kernel writes into a buffer before those of a message: its header (16 bytes), then room for
/// a receive stamp.
const MESSAGE_HEAD: usize = 16 + STAMP_SPACE;

/// `IORING_RECVSEND_POLL_FIRST`: do not try before the socket is ready.
const POLL_FIRST: u16 = 1;

/// While polling busily, turns (of about 30 ns) that only read shared memory, to one that enters the kernel.
const SPINS_PER_POLL: u32 = 64;
/// Delay before a listener that had no descriptor for a connection tries to accept again.
const ACCEPT_RETRY: Nanos = Nanos::from_millis(10);
/// Attempts to submit while the kernel refuses for now.
const SUBMIT_ATTEMPTS: u32 = 100;
/// Number of times, 10 ms apart, to look for the end of cancelled requests before their memory is leaked.
const DROP_ATTEMPTS: u32 = 100;

/// The backend over io_uring. See [`Backend`] for its behaviour. Bound to the thread that opened it.
pub struct Uring {
    ring: ManuallyDrop<Ring>,
    buffers: ManuallyDrop<Buffers>,
    slots: ManuallyDrop<Slots<Connection>>,
    /// Shared by all multishot receives; only its sizes matter.
    message: ManuallyDrop<Box<libc::msghdr>>,
    style: Style,
    stamps: RealtimeMap,
    _stamp_keeper: Option<OwnedFd>,
    /// By [`ListenerId`]; ids are not used again.
    listeners: Vec<Option<Listening>>,
    /// Events, in the order in which their completions came.
    pending: VecDeque<Pending>,
    /// The buffer of the event that was given last.
    lent: Option<u16>,
    /// Connections written to since the last flush, in order.
    dirty: Vec<Token>,
    /// Connections whose send has ended and that have more to send.
    resend: Vec<Token>,
    /// Requests to make at the next entry into the kernel, other than sends.
    requests: VecDeque<Token>,
    /// Receives that ended for lack of a buffer.
    starved: Vec<Token>,
    lingering: Lingering,
    pool: BufferPool,
    /// For the outbox of stale ids.
    scratch: Vec<u8>,
    /// Requests in the kernel that have not had their last completion.
    in_kernel: usize,
}

struct Listening {
    socket: Listener,
    /// The accept request is in the kernel.
    accepting: bool,
    /// When to make the accept request again, if it ended with an error.
    retry_at: Option<Nanos>,
    closed: bool,
}

/// An event that `next_event` has yet to report.
struct Pending {
    token: Token,
    at: Nanos,
    what: What,
}

enum What {
    Connected,
    ConnectFailed(i32),
    Accepted { listener: u32 },
    Received { buffer: u16, length: u32 },
    Closed,
    Failed(i32),
}

impl fmt::Debug for Uring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Uring");
        text.field("connections", &self.slots.len())
            .field("in_kernel", &self.in_kernel)
            .finish_non_exhaustive()
    }
}

impl Backend for Uring {
    fn name(&self) -> &'static str {
        NAME
    }

    fn now(&self) -> Nanos {
        clock::monotonic()
    }

    fn poll_until(&mut self, at: Nanos) -> Nanos {
        clock::poll_until(at)
    }

    fn preemptions(&self) -> u64 {
        usage::thread_cpu().involuntary_switches
    }

    fn connect(&mut self, to: &Endpoint, options: &SocketOptions) -> Result<ConnId, SystemError> {
        let (fd, address) = self.style.connecting(to, options)?;
        let conn = self.slots.insert(Connection::connecting(fd, address));
        self.requests.push_back(connection_token(CONNECT, conn));
        Ok(conn)
    }

    fn listen(&mut self, on: &Endpoint, reuse_port: bool) -> Result<(ListenerId, Endpoint), SystemError> {
        let socket = self.style.listening(on, reuse_port)?;
        let id = self.listeners.len() as u32;
        let bound = socket.bound.clone();
        self.listeners.push(Some(Listening { socket, accepting: false, retry_at: None, closed: false }));
        self.requests.push_back(Token { kind: ACCEPT, slot: id, birth: 0 });
        Ok((ListenerId(id), bound))
    }

    fn close_listener(&mut self, listener: ListenerId) {
        let Some(entry) = self.listeners.get_mut(listener.0 as usize) else { return };
        let Some(listening) = entry else { return };
        if !listening.accepting {
            *entry = None;
        } else if !listening.closed {
            // The socket stays open until the accept request has ended, but it refuses from now on.
            listening.closed = true;
            socket::shutdown(&listening.socket.fd, Shutdown::Both);
            self.requests.push_back(Token { kind: CANCEL_ACCEPT, slot: listener.0, birth: 0 });
        }
    }

    fn outbox(&mut self, conn: ConnId) -> &mut Vec<u8> {
        match self.slots.get_mut(conn) {
            Some(connection) => {
                if !connection.dirty {
                    connection.dirty = true;
                    self.dirty.push(connection_token(SEND, conn));
                }
                connection.outbox.open(&mut self.pool)
            }
            None => {
                self.scratch.clear();
                &mut self.scratch
            }
        }
    }

    fn send_shared(&mut self, conn: ConnId, body: Arc<[u8]>) {
        if let Some(connection) = self.slots.get_mut(conn) {
            if !connection.dirty {
                connection.dirty = true;
                self.dirty.push(connection_token(SEND, conn));
            }
            connection.outbox.push_shared(body);
        }
    }

    fn unsent(&self, conn: ConnId) -> usize {
        self.slots.get(conn).map_or(0, |connection| connection.outbox.unsent())
    }

    fn flush(&mut self) -> Flush {
        let mut flush = Flush { first: clock::monotonic(), ..Flush::default() };
        if !self.dirty.is_empty() || !self.resend.is_empty() {
            // Preparing takes tens of nanoseconds per connection, which is not to count as sending, unless
            // the queue will overflow and sending begins in between.
            let overflows = self.dirty.len() + self.resend.len() > self.ring.room();
            flush.sends = self.queue_dirty();
            self.queue_rest();
            if !overflows {
                flush.first = clock::monotonic();
            }
            self.submit();
            flush.last = clock::monotonic();
        } else {
            flush.last = flush.first;
        }
        if self.requests.iter().any(|token| token.kind == CONNECT) {
            // The others can go along with the next wait, but the peer's clock runs from this one.
            self.queue_requests();
            self.submit();
        }
        self.drain(flush.last);
        flush
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        if self.slots.get(conn).is_none() {
            return;
        }
        self.slots.expire(conn);
        let token = connection_token(SEND, conn);
        let Some(connection) = self.slots.by_token(token) else { return };
        let unsent = connection.outbox.unsent() > 0;
        let sendable = connection.send_error == 0 && (unsent || !connection.connecting);
        match how {
            Close::AfterSend if sendable => {
                connection.closing = Closing::Sending;
                if unsent {
                    socket::give_up_after(&connection.fd, socket::STALLED);
                    // Does nothing while connecting or sending; the end of that does the same.
                    self.resend.push(token);
                } else {
                    self.sent_everything(token);
                }
            }
            Close::AfterSend | Close::Now => self.abandon(token),
            Close::Reset => self.reset(token),
        }
    }

    fn wait(&mut self, wait: Wait) -> Option<Nanos> {
        let mut late = None;
        let mut now = clock::monotonic();
        let until = wait.until.min(self.begin_wait(now));
        let floor = if wait.want > 1 { wait.floor } else { Nanos::ZERO };
        let want = if floor > Nanos::ZERO { wait.want } else { 1 };
        let floor_at = now + floor;
        let block_until = until - wait.spin;
        let mut entered = false;
        loop {
            let ready = u32::try_from(self.pending.len()).unwrap_or(u32::MAX);
            let enough = ready >= want || (ready > 0 && now >= floor_at) || now >= until;
            if enough && entered {
                return late;
            }
            if self.buffers.any_available() {
                self.requests.extend(self.starved.drain(..));
            }
            self.queue_requests();
            let result = if enough {
                self.ring.poll()
            } else if now >= block_until {
                self.spin(until);
                return late;
            } else {
                // Once something is there, the floor is the end; until then it is where the aim is lowered.
                let end = if ready > 0 { block_until.min(floor_at) } else { block_until };
                let want = if now >= floor_at { 1 } else { want - ready };
                self.ring.wait(SpinPolicy { want, floor: floor_at - now, timeout: end - now })
            };
            entered = true;
            let slept = now < block_until;
            now = clock::monotonic();
            if slept && now >= block_until {
                late = Some(now - block_until);
            }
            self.drain(now);
            self.send_rest(now);
            if result.is_err_and(|error| error.raw_os_error() == Some(libc::EINTR)) {
                // The owner may want to know what the signal was about.
                return late;
            }
        }
    }

    fn next_event(&mut self) -> Option<Event> {
        if let Some(buffer) = self.lent.take() {
            self.buffers.recycle(buffer);
        }
        while let Some(pending) = self.pending.pop_front() {
            let event = self.tell(pending);
            if event.is_some() {
                return event;
            }
        }
        None
    }

    fn bytes(&self, data: Chunk) -> &[u8] {
        if self.lent.map(u32::from) != Some(data.buffer) {
            return &[];
        }
        self.buffers.bytes(data.buffer as u16, data.offset as usize, data.length as usize)
    }
}

/// Returns `true` if a token is of a request on a connection, `false` if it is of one on a listener.
const fn is_about_connection(token: Token) -> bool {
    !matches!(token.kind, ACCEPT | CANCEL_ACCEPT)
}

/// The token of a request of this kind on a connection.
fn connection_token(kind: u8, conn: ConnId) -> Token {
    Token { kind, slot: conn.slot() as u32, birth: conn.generation() }
}

/// Opening, and events.
impl Uring {
    fn open(options: BackendOptions) -> Result<Self, SystemError> {
        thread::set_timer_slack_min();
        let style = Style { stamps: options.receive_stamps, nonblocking: false };
        let ring = Ring::open()?;
        let buffers = Buffers::register(&ring)?;
        let stamp_keeper = style.stamp_keeper()?;
        // SAFETY: a msghdr is plain pointers and integers, for all of which zero is a value.
        let mut message: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        message.msg_controllen = STAMP_SPACE as _;
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            buffers: ManuallyDrop::new(buffers),
            slots: ManuallyDrop::new(Slots::new()),
            message: ManuallyDrop::new(message),
            style,
            stamps: RealtimeMap::new(),
            _stamp_keeper: stamp_keeper,
            listeners: Vec::new(),
            pending: VecDeque::new(),
            lent: None,
            dirty: Vec::new(),
            resend: Vec::new(),
            requests: VecDeque::new(),
            starved: Vec::new(),
            lingering: Lingering::default(),
            pool: BufferPool::default(),
            scratch: Vec::new(),
            in_kernel: 0,
        })
    }

    /// The event, unless its connection was closed since.
    fn tell(&mut self, pending: Pending) -> Option<Event> {
        let Pending { token, at, what } = pending;
        let conn = token.conn();
        if self.slots.get(conn).is_none() {
            if let What::Received { buffer, .. } = what {
                self.buffers.recycle(buffer);
            }
            return None;
        }
        Some(match what {
            What::Received { buffer, length } => {
                self.lent = Some(buffer);
                let (at, stamped, data) = self.message(buffer, length as usize, at);
                Event::Received { conn, at, stamped, data }
            }
            What::Accepted { listener } => Event::Accepted { listener: ListenerId(listener), conn, at },
            What::Connected => Event::Connected { conn, at },
            What::ConnectFailed(errno) => {
                self.slots.expire(conn);
                self.abandon(token);
                Event::ConnectFailed { conn, at, error: SystemError { errno } }
            }
            What::Closed => Event::Closed { conn, at },
            What::Failed(errno) => Event::Failed { conn, at, error: SystemError { errno } },
        })
    }

    /// When the bytes in a buffer came, and where they are.
    fn message(&mut self, buffer: u16, length: usize, now: Nanos) -> (Nanos, bool, Chunk) {
        let chunk = |offset: usize, length: usize| Chunk {
            buffer: u32::from(buffer),
            offset: offset as u32,
            length: length as u32,
        };
        if !self.style.stamps {
            return (now, false, chunk(0, length));
        }
        let Ok(message) = RecvMsgOut::parse(self.buffers.bytes(buffer, 0, length), &self.message) else {
            return (now, false, chunk(0, 0));
        };
        let data = chunk(MESSAGE_HEAD, message.payload_data().len());
        let stamp = socket::receive_stamp(message.control_data());
        let mapped = stamp.and_then(|stamp| self.stamps.map(stamp, now));
        (mapped.unwrap_or(now), mapped.is_some(), data)
    }
}

impl Uring {
    /// Makes every request in the kernel end. False if some did not.
    ///
    /// Shutting a socket down ends the requests that wait on it. Cancelling everything at once would do that
    /// as well, but the kernel then looks for each request from the beginning, which for 10,000 connections
    /// took longer than to open them; so that is left for the few that remain.
    fn end_everything(&mut self) -> bool {
        for connection in self.slots.entries() {
            socket::shutdown(&connection.fd, Shutdown::Both);
        }
        while self.in_kernel > 0 && self.reap() {}
        let everything = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
        // SAFETY: this request points to nothing.
        if self.in_kernel == 0 || unsafe { self.ring.push(&everything.user_data(u64::MAX)) }.is_err() {
            return self.in_kernel == 0;
        }
        self.in_kernel += 1;
        for _ in 0..DROP_ATTEMPTS {
            self.reap();
            if self.in_kernel == 0 {
                return true;
            }
        }
        false
    }

    /// Waits up to 10 ms for the ends of requests. Returns `true` if there were any.
    fn reap(&mut self) -> bool {
        let before = self.in_kernel;
        let want = u32::try_from(before).unwrap_or(u32::MAX);
        let _ = self.ring.wait(SpinPolicy { want, floor: Nanos::ZERO, timeout: Nanos::from_millis(10) });
        while let Some(completion) = self.ring.pop() {
            let token = Token::from_bits(completion.user_data());
            if token.kind == ACCEPT && completion.result() >= 0 {
                // SAFETY: as in `accepted`: a descriptor that nothing else owns.
                drop(unsafe { OwnedFd::from_raw_fd(completion.result()) });
            }
            self.in_kernel -= usize::from(!cqueue::more(completion.flags()));
        }
        self.in_kernel < before
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let idle = self.end_everything();
        // SAFETY: each field is dropped at most once, here, and not used afterwards, as `self` is going. The
        // ring goes first, so that nothing can be asked of the kernel any more. What requests point to is
        // dropped only if the last completion of every request was seen: then the kernel does not use it any
        // more. Else it stays allocated for good.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            if idle {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.slots);
                ManuallyDrop::drop(&mut self.message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn a_closed_connection_does_not_wait_without_end_for_its_peer() {
        if uring_available().is_err() {
            return;
        }
        let mut backend = OpenUring::default().open().expect("opens");
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let to = Endpoint::Tcp(listener.local_addr().expect("an address"));
        let conn = backend.connect(&to, &SocketOptions::default()).expect("a socket");
        let until = backend.now() + Nanos::from_secs(20);
        backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
        assert!(matches!(backend.next_event(), Some(Event::Connected { .. })));
        backend.outbox(conn).extend_from_slice(b"left");
        backend.close(conn, Close::AfterSend);
        let token = connection_token(SEND, conn);
        let connection = backend.slots.by_token(token).expect("it has bytes to send");
        let limit = socket2::SockRef::from(&connection.fd).tcp_user_timeout().expect("an option");
        assert_eq!(limit, Some(socket::STALLED));
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn a_wait_keeps_its_promises_where_the_kernel_cannot_lower_its_aim() {
        if uring_available().is_err() {
            return;
        }
        let mut backend = OpenUring::default().open().expect("opens");
        backend.ring.lowers_aim = false;
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let to = Endpoint::Tcp(listener.local_addr().expect("an address"));
        backend.connect(&to, &SocketOptions::default()).expect("a socket");
        let far = backend.now() + Nanos::from_secs(20);
        let gather = |until, floor| Wait { until, want: 64, floor, spin: Nanos::ZERO };
        let floor = Nanos::from_millis(2);
        backend.wait(gather(far, floor));
        assert!(matches!(backend.next_event(), Some(Event::Connected { .. })));
        let mut peer: TcpStream = listener.accept().expect("accepts").0;

        let until = backend.now() + Nanos::from_millis(4);
        assert!(backend.next_event().is_none());
        backend.wait(gather(until, floor));
        assert!(backend.now() >= until && backend.next_event().is_none());

        peer.write_all(b"early").expect("writes");
        let start = backend.now();
        backend.wait(gather(far, floor));
        assert!(backend.now() >= start + floor && backend.now() < far);
        assert!(matches!(backend.next_event(), Some(Event::Received { .. })));
        assert!(backend.next_event().is_none());

        let start = backend.now();
        let late = std::thread::spawn(move || {
            clock::sleep_until(start + Nanos::from_millis(10));
            peer.write_all(b"late").expect("writes");
            peer
        });
        backend.wait(gather(far, floor));
        assert!(backend.now() >= start + Nanos::from_millis(10) && backend.now() < far);
        assert!(matches!(backend.next_event(), Some(Event::Received { .. })));
        late.join().expect("writes");
    }
}

#[cfg(test)]
mod refusals {
    use super::*;

    /// Has the kernel refuse a system call of this thread from now on, as the filters of some containers do.
    fn refuse(number: libc::c_long) {
        let filter = [
            (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number as u32),
            (libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
            (libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let mut filter = filter.map(|(code, jt, jf, k)| libc::sock_filter { code: code as u16, jt, jf, k });
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: both calls concern this thread alone; the program lives through the second one.
        let results = unsafe {
            [
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
                libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program),
            ]
        };
        assert_eq!(results, [0, 0], "{}", std::io::Error::last_os_error());
    }

    /// Symptom: where a ring may be set up and not entered, runs went round and round for ever.
    #[test]
    fn a_refused_system_call_is_found_before_the_run() {
        for (number, words) in [
            (libc::SYS_io_uring_setup, "io_uring is forbidden here"),
            (libc::SYS_io_uring_enter, "io_uring can be set up here and not entered"),
            (libc::SYS_io_uring_register, "does not report its io_uring operations"),
        ] {
            let tried = std::thread::spawn(move || {
                refuse(number);
                uring_available()
            });
            let reason = tried.join().expect("it returns").expect_err("it is refused");
            // Where there is no io_uring at all, that is the reason.
            let none = uring_available().err();
            assert!(reason.contains(words) || none.is_some(), "{reason} {none:?}");
        }
    }
}
