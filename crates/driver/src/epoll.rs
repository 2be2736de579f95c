//! The backend over epoll, edge-triggered: works on every Linux.
//!
//! Each connection is added to the epoll set once, for everything, and never modified: `epoll_ctl` costs as
//! much as two other system calls. What an edge has told is kept in the connection until a read or a write
//! says that there is no more. epoll tells of readiness and [`Backend`] of completions, so `next_event` does
//! the reading, into one buffer that all connections share.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use plimsoll_core::Nanos;

use crate::clock::{self, RealtimeMap};
use crate::linger::Lingering;
use crate::outbox::{BufferPool, MAX_PIECES, Outbox};
use crate::slots::{Slots, Token};
use crate::socket::{self, Listener, Style, errno};
use crate::{
    Backend, BackendOptions, Chunk, Close, ConnId, Endpoint, Event, Flush, ListenerId, Open, SocketOptions,
    SystemError, Wait, thread,
};

/// Opens [`Epoll`] backends.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenEpoll(pub BackendOptions);

impl Open for OpenEpoll {
    type Backend = Epoll;

    fn open(&self) -> Result<Epoll, SystemError> {
        Epoll::open(self.0)
    }

    fn name(&self) -> &'static str {
        NAME
    }
}

const NAME: &str = "epoll";

/// Bytes read at once: large bodies in few calls, while the buffer still fits the second-level cache.
const BUFFER_BYTES: usize = 64 << 10;
/// Edges taken from the kernel at once (12 KiB). More is a further call.
const EDGES: usize = 1024;

/// How often a listener tries again that had no descriptor for a connection.
const ACCEPT_RETRY: Nanos = Nanos::from_millis(10);

/// [`Token::kind`]s.
const CONNECTION: u8 = 0;
const LISTENER: u8 = 1;

/// The backend over epoll. See [`Backend`] for what it does.
pub struct Epoll {
    epoll: OwnedFd,
    style: Style,
    stamps: RealtimeMap,
    _stamp_keeper: Option<OwnedFd>,
    slots: Slots<Connection>,
    /// By [`ListenerId`]; ids are not used again.
    listeners: Vec<Option<Listening>>,
    /// Connections with something for their owner, and listeners with connections to accept.
    ready: VecDeque<Token>,
    /// Connections written to since the last flush, in order.
    dirty: Vec<Token>,
    lingering: Lingering,
    pool: BufferPool,
    /// For the outbox of stale ids.
    scratch: Vec<u8>,
    edges: Box<[libc::epoll_event]>,
    buffer: Box<[u8]>,
    /// Whether the kernel has `epoll_pwait2` (5.11).
    fine_wait: bool,
}

struct Listening {
    socket: Listener,
    /// There was no descriptor for a connection that waits to be accepted, and no edge will come for it again:
    /// when to try again.
    retry_at: Option<Nanos>,
}

struct Connection {
    fd: OwnedFd,
    outbox: Outbox,
    phase: Phase,
    /// A send failed with this error; it is reported once what had come before is read. 0: none did.
    send_error: i32,
    /// There may be something to read.
    readable: bool,
    /// There is an end or an error to read, beyond the bytes.
    hangup: bool,
    /// The kernel took less than it was given; an edge will tell when it takes more.
    blocked: bool,
    /// In `ready`.
    listed: bool,
    /// In `dirty`.
    dirty: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Connecting,
    /// The connect call failed with this error at once.
    Refused(i32),
    Open,
    /// The owner has been told of the end, and still may send if it was the peer's end alone.
    Ended,
    /// Closed by the owner, with bytes left to send.
    Sending,
    /// Closed by the owner, everything sent, waiting for the peer's end.
    Lingering,
}

impl fmt::Debug for Epoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoll").field("connections", &self.slots.len()).finish_non_exhaustive()
    }
}

impl Backend for Epoll {
    fn name(&self) -> &'static str {
        NAME
    }

    fn now(&self) -> Nanos {
        clock::monotonic()
    }

    fn connect(&mut self, to: &Endpoint, options: &SocketOptions) -> Result<ConnId, SystemError> {
        let (fd, address) = self.style.connecting(to, options)?;
        // SAFETY: `address` holds an initialised address of the length that it tells, and lives through the
        // call; the descriptor is open.
        let result = unsafe { libc::connect(fd.as_raw_fd(), address.as_ptr().cast(), address.len()) };
        let error = if result == 0 { 0 } else { errno(&io::Error::last_os_error()) };
        // EINTR: the connect goes on by itself, as with EINPROGRESS.
        if matches!(error, 0 | libc::EINPROGRESS | libc::EINTR) {
            return Ok(self.insert(fd, Phase::Connecting)?.conn());
        }
        let token = self.insert_unwatched(fd, Phase::Refused(error));
        self.list(token);
        Ok(token.conn())
    }

    fn listen(&mut self, on: &Endpoint, reuse_port: bool) -> Result<(ListenerId, Endpoint), SystemError> {
        let socket = self.style.listening(on, reuse_port)?;
        let id = self.listeners.len() as u32;
        let token = Token { kind: LISTENER, slot: id, birth: 0 };
        watch(&self.epoll, &socket.fd, (libc::EPOLLIN | libc::EPOLLET) as u32, token)?;
        let bound = socket.bound.clone();
        self.listeners.push(Some(Listening { socket, retry_at: None }));
        Ok((ListenerId(id), bound))
    }

    fn close_listener(&mut self, listener: ListenerId) {
        if let Some(entry) = self.listeners.get_mut(listener.0 as usize) {
            *entry = None;
        }
    }

    fn outbox(&mut self, conn: ConnId) -> &mut Vec<u8> {
        self.mark_dirty(conn);
        match self.slots.get_mut(conn) {
            Some(connection) => connection.outbox.open(&mut self.pool),
            None => {
                self.scratch.clear();
                &mut self.scratch
            }
        }
    }

    fn send_shared(&mut self, conn: ConnId, body: Arc<[u8]>) {
        self.mark_dirty(conn);
        if let Some(connection) = self.slots.get_mut(conn) {
            connection.outbox.push_shared(body);
        }
    }

    fn unsent(&self, conn: ConnId) -> usize {
        self.slots.get(conn).map_or(0, |connection| connection.outbox.unsent())
    }

    fn flush(&mut self) -> Flush {
        let first = clock::monotonic();
        if self.dirty.is_empty() {
            return Flush { first, last: first, sends: 0 };
        }
        let mut sends = 0;
        let mut dirty = std::mem::take(&mut self.dirty);
        for token in dirty.drain(..) {
            let Some(connection) = self.slots.by_token(token) else { continue };
            connection.dirty = false;
            sends += u32::from(connection.outbox.unsent() > 0);
            self.send(token);
        }
        self.dirty = dirty;
        Flush { first, last: clock::monotonic(), sends }
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        let Some(connection) = self.slots.get_mut(conn) else { return };
        let token = token_of(conn);
        let unsent = connection.outbox.unsent() > 0;
        match (how, connection.phase) {
            (Close::AfterSend, Phase::Open | Phase::Ended) if connection.send_error == 0 => {
                let ended = connection.phase == Phase::Ended;
                self.slots.expire(conn);
                self.finish(token, ended);
            }
            (Close::AfterSend, Phase::Connecting) if unsent => {
                // Sends when connected: `edge` looks at the expired id.
                self.slots.expire(conn);
            }
            (Close::Reset, _) => {
                socket::reset_on_close(&connection.fd);
                self.release(token);
            }
            _ => self.release(token),
        }
    }

    fn wait(&mut self, wait: Wait) {
        let start = clock::monotonic();
        self.begin_wait(start);
        let until = wait.until;
        let block_until = until - wait.spin;
        let floor_at = (start + wait.floor).min(block_until);
        if wait.want > 1 && floor_at > start {
            // epoll cannot wait for a number of events, so one sleep stands for it: a wake-up per event is what
            // this is to avoid. Not when the events are there already, unless the sleep is to the end anyway.
            if floor_at < block_until {
                self.gather(Timeout::None);
                if self.ready.len() >= wait.want as usize {
                    return;
                }
            }
            let slept = clock::sleep_once(floor_at);
            self.gather(Timeout::None);
            if !slept {
                return;
            }
        } else {
            self.gather(Timeout::None);
        }
        while self.ready.is_empty() {
            let now = clock::monotonic();
            if now >= until {
                return;
            }
            if now >= block_until {
                self.gather(Timeout::None);
                std::hint::spin_loop();
            } else if !self.gather(Timeout::Span(block_until - now)) {
                // A signal: the owner may want to know what it was about.
                return;
            }
        }
    }

    fn next_event(&mut self) -> Option<Event> {
        while let Some(token) = self.ready.pop_front() {
            let event = if token.kind == LISTENER { self.accept(token) } else { self.look_at(token) };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    fn bytes(&self, data: Chunk) -> &[u8] {
        self.buffer.get(..data.length as usize).unwrap_or_default()
    }
}

fn token_of(conn: ConnId) -> Token {
    Token { kind: CONNECTION, slot: conn.slot() as u32, birth: conn.generation() }
}

/// How long to look for edges.
#[derive(Clone, Copy)]
enum Timeout {
    None,
    Span(Nanos),
}

/// Opening, and the table of connections.
impl Epoll {
    fn open(options: BackendOptions) -> Result<Self, SystemError> {
        thread::set_timer_slack_min();
        let style = Style { stamps: options.receive_stamps, nonblocking: true };
        // SAFETY: takes one integer and returns a descriptor or -1.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(io::Error::last_os_error().into());
        }
        // SAFETY: the descriptor was opened just now and nobody else has it.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        Ok(Self {
            epoll,
            style,
            stamps: RealtimeMap::new(),
            _stamp_keeper: style.stamp_keeper()?,
            slots: Slots::new(),
            listeners: Vec::new(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            lingering: Lingering::default(),
            pool: BufferPool::default(),
            scratch: Vec::new(),
            edges: vec![libc::epoll_event { events: 0, u64: 0 }; EDGES].into(),
            buffer: vec![0; BUFFER_BYTES].into(),
            fine_wait: true,
        })
    }

    fn insert_unwatched(&mut self, fd: OwnedFd, phase: Phase) -> Token {
        let connection = Connection {
            fd,
            outbox: Outbox::default(),
            phase,
            send_error: 0,
            readable: false,
            hangup: false,
            blocked: false,
            listed: false,
            dirty: false,
        };
        token_of(self.slots.insert(connection))
    }

    fn insert(&mut self, fd: OwnedFd, phase: Phase) -> io::Result<Token> {
        let token = self.insert_unwatched(fd, phase);
        let all = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        let Some(connection) = self.slots.by_token(token) else { return Ok(token) };
        if let Err(error) = watch(&self.epoll, &connection.fd, all as u32, token) {
            self.slots.release(token);
            return Err(error);
        }
        Ok(token)
    }

    /// Frees the slot and closes the socket, which takes it out of the epoll set.
    fn release(&mut self, token: Token) {
        if let Some(mut connection) = self.slots.release(token) {
            connection.outbox.clear(&mut self.pool);
        }
    }

    fn mark_dirty(&mut self, conn: ConnId) {
        if let Some(connection) = self.slots.get_mut(conn)
            && !connection.dirty
        {
            connection.dirty = true;
            self.dirty.push(token_of(conn));
        }
    }

    fn list(&mut self, token: Token) {
        if let Some(connection) = self.slots.by_token(token)
            && !connection.listed
        {
            connection.listed = true;
            self.ready.push_back(token);
        }
    }
}

/// Adds a socket to the epoll set.
fn watch(epoll: &OwnedFd, fd: &OwnedFd, events: u32, token: Token) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: token.bits() };
    // SAFETY: both descriptors are open, and `event` is valid for reading through the call.
    let result =
        unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waiting, and what edges tell.
impl Epoll {
    fn begin_wait(&mut self, now: Nanos) {
        while let Some(token) = self.lingering.pop_over(now) {
            if self.slots.by_token(token).is_some_and(|connection| connection.phase == Phase::Lingering) {
                self.release(token);
            }
        }
        for (id, listening) in self.listeners.iter_mut().enumerate() {
            if let Some(listening) = listening
                && listening.retry_at.is_some_and(|at| at <= now)
            {
                listening.retry_at = None;
                self.ready.push_back(Token { kind: LISTENER, slot: id as u32, birth: 0 });
            }
        }
    }

    /// Takes all edges from the kernel, waiting for the first as long as told. False if a signal came.
    fn gather(&mut self, timeout: Timeout) -> bool {
        let mut count = self.take_edges(timeout);
        loop {
            let Ok(taken) = count else { return false };
            for index in 0..taken {
                let edge = self.edges[index];
                self.edge(edge.events as i32, Token::from_bits(edge.u64));
            }
            if taken < self.edges.len() {
                return true;
            }
            count = self.take_edges(Timeout::None);
        }
    }

    fn take_edges(&mut self, timeout: Timeout) -> io::Result<usize> {
        let (epoll, room) = (self.epoll.as_raw_fd(), self.edges.len() as i32);
        let mut count = -1;
        if let Timeout::Span(span) = timeout {
            let span = clock::timespec(span);
            if self.fine_wait {
                // SAFETY: `edges` is valid for writing `room` events, `span` for reading, and a null signal
                // mask (whose size is then ignored) leaves the mask as it is.
                count = unsafe {
                    libc::syscall(
                        libc::SYS_epoll_pwait2,
                        epoll,
                        self.edges.as_mut_ptr(),
                        room,
                        &raw const span,
                        std::ptr::null::<libc::sigset_t>(),
                        0_usize,
                    )
                };
                self.fine_wait = count >= 0 || errno(&io::Error::last_os_error()) != libc::ENOSYS;
            }
            if !self.fine_wait {
                // An epoll descriptor can be polled itself, and ppoll has always had nanoseconds.
                let mut poll = libc::pollfd { fd: epoll, events: libc::POLLIN, revents: 0 };
                // SAFETY: one pollfd, valid for writing; `span` valid for reading; no mask.
                count = i64::from(unsafe { libc::ppoll(&mut poll, 1, &span, std::ptr::null()) });
                if count > 0 {
                    return self.take_edges(Timeout::None);
                }
            }
        } else {
            // SAFETY: `edges` is valid for writing `room` events.
            count = i64::from(unsafe { libc::epoll_wait(epoll, self.edges.as_mut_ptr(), room, 0) });
        }
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    fn edge(&mut self, mask: i32, token: Token) {
        const END: i32 = libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR;
        if token.kind == LISTENER {
            self.ready.push_back(token);
            return;
        }
        let Some(connection) = self.slots.by_token(token) else { return };
        connection.readable |= mask & (libc::EPOLLIN | END) != 0;
        connection.hangup |= mask & END != 0;
        let writable = mask & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) != 0;
        match connection.phase {
            Phase::Connecting if writable => self.list(token),
            Phase::Lingering => self.discard(token),
            Phase::Open if connection.readable => {
                if writable && connection.blocked {
                    connection.blocked = false;
                    self.send(token);
                }
                self.list(token);
            }
            Phase::Open | Phase::Ended | Phase::Sending if writable && connection.blocked => {
                connection.blocked = false;
                self.send(token);
            }
            _ => {}
        }
    }
}

/// Receiving.
impl Epoll {
    fn accept(&mut self, token: Token) -> Option<Event> {
        let listening = self.listeners.get_mut(token.slot as usize)?.as_mut()?;
        loop {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            // SAFETY: the listener is open, and the peer's address is not asked for (both pointers null).
            let fd = unsafe {
                libc::accept4(
                    listening.socket.fd.as_raw_fd(),
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    flags,
                )
            };
            if fd >= 0 {
                // SAFETY: the descriptor was opened just now and nobody else has it.
                let fd = unsafe { OwnedFd::from_raw_fd(fd) };
                let Ok(conn) = self.insert(fd, Phase::Open) else { return None };
                // There may be more of them; the others get their turn between.
                self.ready.push_back(token);
                let listener = ListenerId(token.slot);
                return Some(Event::Accepted { listener, conn: conn.conn(), at: clock::monotonic() });
            }
            match errno(&io::Error::last_os_error()) {
                libc::EAGAIN => return None,
                libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => {
                    listening.retry_at = Some(clock::monotonic() + ACCEPT_RETRY);
                    return None;
                }
                // This connection failed before it was accepted (ECONNABORTED and network errors).
                libc::EBADF | libc::EINVAL | libc::ENOTSOCK | libc::EOPNOTSUPP | libc::EFAULT => return None,
                _ => {}
            }
        }
    }

    fn look_at(&mut self, token: Token) -> Option<Event> {
        let live = self.slots.get(token.conn()).is_some();
        let connection = self.slots.by_token(token)?;
        connection.listed = false;
        match connection.phase {
            Phase::Connecting => {
                if let Some(error) = socket::connect_error(&connection.fd) {
                    return self.connect_failed(token, error);
                }
                connection.phase = Phase::Open;
                if live {
                    if connection.readable {
                        self.list(token);
                    }
                    self.send_unless_dirty(token);
                    Some(Event::Connected { conn: token.conn(), at: clock::monotonic() })
                } else {
                    self.finish(token, false);
                    None
                }
            }
            Phase::Refused(error) => self.connect_failed(token, error),
            Phase::Open if connection.readable => self.receive(token),
            _ => None,
        }
    }

    fn connect_failed(&mut self, token: Token, errno: i32) -> Option<Event> {
        let live = self.slots.get(token.conn()).is_some();
        self.release(token);
        let (conn, at, error) = (token.conn(), clock::monotonic(), SystemError { errno });
        live.then_some(Event::ConnectFailed { conn, at, error })
    }

    fn receive(&mut self, token: Token) -> Option<Event> {
        let connection = self.slots.by_token(token)?;
        let (result, stamp) = receive(&connection.fd, &mut self.buffer, self.style.stamps);
        let conn = token.conn();
        let now = clock::monotonic();
        let error = match result {
            Ok(0) => connection.send_error,
            Ok(length) => {
                // With edges, less than was asked for means that all was read. An end wants a read of its own.
                connection.readable = length == self.buffer.len() || connection.hangup;
                if connection.readable {
                    self.list(token);
                }
                let mapped = stamp.and_then(|stamp| self.stamps.map(stamp, now));
                let data = Chunk { buffer: 0, offset: 0, length: length as u32 };
                return Some(Event::Received {
                    conn,
                    at: mapped.unwrap_or(now),
                    stamped: mapped.is_some(),
                    data,
                });
            }
            Err(libc::EAGAIN) => {
                connection.readable = false;
                return None;
            }
            Err(error) if connection.send_error == 0 => error,
            Err(_) => connection.send_error,
        };
        connection.phase = Phase::Ended;
        connection.readable = false;
        Some(if error == 0 {
            Event::Closed { conn, at: now }
        } else {
            Event::Failed { conn, at: now, error: SystemError { errno: error } }
        })
    }

    /// Reads and drops what a lingering connection still gets, up to its end.
    fn discard(&mut self, token: Token) {
        let Some(connection) = self.slots.by_token(token) else { return };
        loop {
            match receive(&connection.fd, &mut self.buffer, false).0 {
                Err(libc::EAGAIN) => return,
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        self.release(token);
    }
}

/// One read: bytes or the error's number, and the kernel's stamp if `stamps` asks for it and there is one.
fn receive(fd: &OwnedFd, buffer: &mut [u8], stamps: bool) -> (Result<usize, i32>, Option<Nanos>) {
    /// Control data, aligned as the kernel's header wants it.
    #[repr(C, align(8))]
    struct Control([u8; socket::STAMP_SPACE]);

    loop {
        let mut control = Control([0; socket::STAMP_SPACE]);
        let mut stamp = None;
        let length = if stamps {
            let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            // SAFETY: a msghdr is plain pointers and integers, for all of which zero is a value.
            let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
            message.msg_iov = &raw mut piece;
            message.msg_iovlen = 1;
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = control.0.len() as _;
            // SAFETY: `message` points to one piece, which spans the exclusively borrowed buffer, and to the
            // control bytes with their length; all three outlive the call. There is no address.
            let length = unsafe { libc::recvmsg(fd.as_raw_fd(), &mut message, 0) };
            let filled = (message.msg_controllen as usize).min(control.0.len());
            if length > 0 {
                stamp = socket::receive_stamp(&control.0[..filled]);
            }
            length
        } else {
            // SAFETY: the buffer is exclusively borrowed and valid for writing its whole length.
            unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) }
        };
        match usize::try_from(length) {
            Ok(length) => return (Ok(length), stamp),
            Err(_) => match errno(&io::Error::last_os_error()) {
                libc::EINTR => {}
                error => return (Err(error), None),
            },
        }
    }
}

/// Sending.
impl Epoll {
    /// Gives the kernel what is queued, as far as it takes it.
    fn send(&mut self, token: Token) {
        let Some(connection) = self.slots.by_token(token) else { return };
        if connection.blocked || matches!(connection.phase, Phase::Connecting | Phase::Refused(_)) {
            return;
        }
        match transmit(connection, &mut self.pool) {
            Ok(()) if connection.phase == Phase::Sending && !connection.blocked => self.finish(token, false),
            Ok(()) => {}
            Err(_) if connection.phase == Phase::Sending => self.release(token),
            Err(error) => {
                // What came before the connection broke is still to be read. Shutting down makes sure that the
                // reading comes to an end.
                connection.outbox.clear(&mut self.pool);
                if connection.send_error == 0 {
                    connection.send_error = error;
                    socket::shutdown(&connection.fd, Shutdown::Both);
                    // The peer's end may have been told already; this is news all the same.
                    connection.phase = Phase::Open;
                    connection.readable = true;
                    connection.hangup = true;
                    self.list(token);
                }
            }
        }
    }

    /// Sends what was queued while connecting, unless the next flush does it.
    fn send_unless_dirty(&mut self, token: Token) {
        if self.slots.by_token(token).is_some_and(|connection| !connection.dirty) {
            self.send(token);
        }
    }

    /// Goes on closing a connection whose id has expired: sends the rest, then ends our direction, then waits
    /// for the peer to do the same, which it may have done already (`ended`).
    fn finish(&mut self, token: Token, ended: bool) {
        let Some(connection) = self.slots.by_token(token) else { return };
        if connection.outbox.unsent() > 0 {
            connection.phase = Phase::Sending;
            if !connection.blocked {
                self.send(token);
            }
        } else if ended {
            self.release(token);
        } else {
            socket::shutdown(&connection.fd, Shutdown::Write);
            connection.phase = Phase::Lingering;
            self.lingering.push(token, clock::monotonic());
            // Edges from before were not looked at.
            self.discard(token);
        }
    }
}

/// Sends until nothing is left or the kernel takes no more, which sets `blocked`.
fn transmit(connection: &mut Connection, pool: &mut BufferPool) -> Result<(), i32> {
    while connection.outbox.unsent() > 0 {
        let (asked, result) = if let Some(bytes) = connection.outbox.only_open() {
            // SAFETY: `bytes` is borrowed through the call and valid for reading its whole length.
            let sent = unsafe {
                libc::send(connection.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
            };
            (bytes.len(), sent)
        } else {
            send_pieces(connection)
        };
        let Ok(sent) = usize::try_from(result) else {
            match errno(&io::Error::last_os_error()) {
                libc::EINTR => continue,
                libc::EAGAIN => {
                    connection.blocked = true;
                    return Ok(());
                }
                error => return Err(error),
            }
        };
        if connection.outbox.has_sealed() {
            connection.outbox.advance(sent, pool);
        } else {
            connection.outbox.advance_open(sent, pool);
        }
        if sent < asked {
            // Full. There is an edge once there is room again, because the kernel was asked for more.
            connection.blocked = true;
            return Ok(());
        }
    }
    // Nothing was written, or all is gone: an empty buffer goes back.
    connection.outbox.clear(pool);
    Ok(())
}

/// One gathering send of the sealed segments: what was asked for, and the system's answer.
fn send_pieces(connection: &mut Connection) -> (usize, isize) {
    connection.outbox.seal();
    let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MAX_PIECES];
    let count = connection.outbox.gather(&mut pieces);
    let asked = pieces[..count].iter().map(|piece| piece.iov_len).sum();
    // SAFETY: a msghdr is plain pointers and integers, for all of which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr();
    message.msg_iovlen = count as _;
    // SAFETY: the first `count` pieces are initialised and point into segments that the outbox, which nobody
    // touches during the call, owns or shares; the kernel only reads them.
    let sent = unsafe { libc::sendmsg(connection.fd.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
    (asked, sent)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn waits_without_the_newer_system_call() {
        let mut backend = OpenEpoll::default().open().expect("opens");
        backend.fine_wait = false;
        let first = |until| Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO };
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let to = Endpoint::Tcp(listener.local_addr().expect("an address"));
        backend.connect(&to, &SocketOptions::default()).expect("a socket");
        let far = backend.now() + Nanos::from_secs(20);
        backend.wait(first(far));
        assert!(matches!(backend.next_event(), Some(Event::Connected { .. })));
        assert!(backend.next_event().is_none());
        let mut peer: TcpStream = listener.accept().expect("accepts").0;

        let until = backend.now() + Nanos::from_micros(700);
        backend.wait(first(until));
        assert!(backend.now() >= until && backend.next_event().is_none());

        peer.write_all(b"x").expect("writes");
        backend.wait(first(far));
        assert!(backend.now() < far);
        assert!(matches!(backend.next_event(), Some(Event::Received { .. })));
        assert!(!backend.fine_wait);
    }
}
