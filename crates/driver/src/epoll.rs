//! The backend over epoll, edge-triggered: works on every Linux.
//!
//! Each connection is added to the epoll set once, for everything, and never modified: `epoll_ctl` costs as
//! much as two other system calls. The state from an edge is kept in the connection until a read or a write
//! says that there is no more. epoll reports readiness and [`Backend`] completions, so `next_event` does
//! the reading, into one buffer that all connections share.

mod edges;
mod pacing;
mod receiving;
mod sending;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_system::{clock, thread, usage};

use self::pacing::Pace;
use crate::linger::Lingering;
use crate::outbox::{BufferPool, Outbox};
use crate::receive_stamps::RealtimeMap;
use crate::slots::{Slots, Token};
use crate::socket::{self, Listener, Style, errno};
use crate::{
    Backend, BackendOptions, Chunk, Close, ConnId, Endpoint, Event, Flush, ListenerId, Open, SocketOptions,
    SystemError, Wait,
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

/// Delay before a listener that had no descriptor for a connection tries to accept again.
const ACCEPT_RETRY: Nanos = Nanos::from_millis(10);

/// [`Token::kind`]s.
const CONNECTION: u8 = 0;
const LISTENER: u8 = 1;

/// The backend over epoll. See [`Backend`] for its behaviour.
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
    /// None: connections are as fast as they can be.
    pace: Option<Pace>,
    /// For the outbox of stale ids.
    scratch: Vec<u8>,
    edges: Box<[libc::epoll_event]>,
    buffer: Box<[u8]>,
    /// `true` until the kernel turns out to lack `epoll_pwait2` (5.11).
    fine_wait: bool,
}

struct Listening {
    socket: Listener,
    /// There was no descriptor for a connection that waits to be accepted, and no edge will come for it
    /// again: when to try again.
    retry_at: Option<Nanos>,
}

struct Connection {
    fd: OwnedFd,
    outbox: Outbox,
    phase: Phase,
    /// A send failed with this error; it is reported once the earlier data are read. 0 if none failed.
    send_error: i32,
    /// There may be something to read.
    readable: bool,
    /// There is an end or an error to read, beyond the bytes.
    hangup: bool,
    /// The kernel took less than it was given; an edge will tell when it takes more.
    blocked: bool,
    /// From when on bytes may be sent, and received, if it has a [`Pace`].
    send_at: Nanos,
    receive_at: Nanos,
    /// In `ready`.
    listed: bool,
    /// In `dirty`.
    dirty: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Connecting,
    /// The connect call has ended: when that was seen.
    Reached(Nanos),
    /// The connect call failed with this error at once.
    Refused(i32),
    Open,
    /// The owner was notified of the end, and may still send if the peer alone has ended.
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

    fn poll_until(&mut self, at: Nanos) -> Nanos {
        clock::poll_until(at)
    }

    fn preemptions(&self) -> u64 {
        usage::thread_cpu().involuntary_switches
    }

    fn connect(&mut self, to: &Endpoint, options: &SocketOptions) -> Result<ConnId, SystemError> {
        let small = self.pace.as_ref().map(|_| Pace::BUFFER_BYTES);
        let options = &SocketOptions { receive_buffer: options.receive_buffer.or(small), ..options.clone() };
        let (fd, address) = self.style.connecting(to, options)?;
        // SAFETY: `address` holds an initialised address of the length that it returns, and lives through the
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
                if let Some(connection) = self.slots.by_token(token)
                    && connection.phase == Phase::Sending
                {
                    socket::give_up_after(&connection.fd, socket::STALLED);
                }
            }
            (Close::AfterSend, Phase::Connecting | Phase::Reached(_)) if unsent => {
                // Sends when connected: `edge` looks at the expired id.
                socket::give_up_after(&connection.fd, socket::STALLED);
                self.slots.expire(conn);
            }
            (Close::Reset, _) => {
                socket::reset_on_close(&connection.fd);
                self.release(token);
            }
            _ => self.release(token),
        }
    }

    fn wait(&mut self, wait: Wait) -> Option<Nanos> {
        let mut late = None;
        let start = clock::monotonic();
        let until = wait.until.min(self.begin_wait(start));
        let block_until = until - wait.spin;
        let floor_at = (start + wait.floor).min(block_until);
        if wait.want > 1 && floor_at > start {
            // epoll cannot wait for a number of events, so a sleep stands for it: the purpose is to avoid a
            // wake-up per event. No sleep if the events are there already, unless it would last to the end
            // anyway.
            if floor_at < block_until {
                self.gather(Timeout::None);
                if self.ready.len() >= wait.want as usize {
                    return None;
                }
            }
            let slept = clock::sleep_once(floor_at);
            if slept && floor_at == block_until {
                late = Some(clock::monotonic() - block_until);
            }
            self.gather(Timeout::None);
            if !slept {
                return None;
            }
        } else {
            self.gather(Timeout::None);
        }
        while self.ready.is_empty() {
            let now = clock::monotonic();
            if now >= until {
                break;
            }
            if now >= block_until {
                self.gather(Timeout::None);
                std::hint::spin_loop();
            } else if !self.gather(Timeout::Span(block_until - now)) {
                // A signal: the owner may want to know what it was about.
                break;
            } else if self.ready.is_empty() {
                late = Some(clock::monotonic() - block_until);
            }
        }
        late
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
        let bytes = self.buffer.get(data.offset as usize..).unwrap_or_default();
        bytes.get(..data.length as usize).unwrap_or_default()
    }
}

fn token_of(conn: ConnId) -> Token {
    Token { kind: CONNECTION, slot: conn.slot() as u32, birth: conn.generation() }
}

/// Time to block while looking for edges.
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
        // SAFETY: the descriptor was opened just now and nothing else owns it.
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
            pace: options.bytes_per_s.map(Pace::new),
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
            send_at: Nanos::ZERO,
            receive_at: Nanos::ZERO,
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn a_closed_connection_does_not_wait_without_end_for_its_peer() {
        let mut backend = OpenEpoll::default().open().expect("opens");
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let to = Endpoint::Tcp(listener.local_addr().expect("an address"));
        for close_at_once in [true, false] {
            let conn = backend.connect(&to, &SocketOptions::default()).expect("a socket");
            let _silent: TcpStream = listener.accept().expect("accepts").0;
            if !close_at_once {
                let until = backend.now() + Nanos::from_secs(20);
                backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
                assert!(matches!(backend.next_event(), Some(Event::Connected { .. })));
            }
            backend.outbox(conn).extend_from_slice(&vec![0; 16 << 20]);
            backend.close(conn, Close::AfterSend);
            let connection = backend.slots.by_token(token_of(conn)).expect("it has bytes to send");
            let limit = socket2::SockRef::from(&connection.fd).tcp_user_timeout().expect("an option");
            assert_eq!(limit, Some(socket::STALLED), "{close_at_once}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
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
