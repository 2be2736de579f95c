//! A server of one's own protocol: the loop, the threads and their reports, for a [`Protocol`] to fill in.
//!
//! ```text
//!   Server::start ──► a thread each: listeners, backend ──► loop ──► Handler: bytes in, replies out
//!   Server::wait  ◄── the reports of all threads, added up ◄──┘  (accepted, received, closed, due)
//! ```
//!
//! The loop waits, reads and writes, and keeps the bounds of [`ServerOptions`]: how long the server serves,
//! how much a client may leave unread, how much memory unfinished requests may take, and how many replies
//! are sent by one system call. A [`Handler`] sees bytes and times, and no socket and no TLS. It is a `dyn`
//! value to the loop, which is so compiled here alone, once for each backend.
//!
//! Replies may be due later, by their own times or by [`ServerOptions::delay`], and come in parts for as long
//! as they last: the loop tells a handler when each was handed to the kernel, and when to pause for clients
//! that do not read.

pub(crate) mod draining;
pub(crate) mod event_loop;
pub mod http;
pub(crate) mod output;
pub(crate) mod worker;

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{ConnId, Endpoint, KernelBackend};
use plimsoll_wire::tls::ServerConfig;

use crate::budget::Budget;
pub use crate::budget::FREE_BYTES;
use crate::server_threads::{Ready, ServerThreads, Stopper, ThreadTask};
use crate::start_error::StartError;
pub use crate::table::Table;
pub use worker::Flushed;
use worker::Listening;

/// Protocol of a server: makes the handler of each thread, and its report at the end. The value is shared by
/// the threads, with whatever they have in common.
pub trait Protocol: fmt::Debug + Send + Sync + 'static {
    /// Handler of one thread.
    type Handler: Handler;
    /// Report of one thread, and, added up, of the server.
    type Report: fmt::Debug + Default + AddAssign + Send + 'static;

    /// Makes the handler of a thread, on that thread.
    fn handler(self: &Arc<Self>) -> Self::Handler;

    /// Returns the report of a thread that has ended.
    fn report(handler: Self::Handler, counts: LoopCounts) -> Self::Report;
}

/// Reader of the requests of one thread, and writer of the replies.
///
/// The state of connections is kept in a [`Table`]: made in [`accepted`](Self::accepted), and removed in
/// [`gone`](Self::gone), which follows for every connection, whoever ends it. Until then an id is valid.
pub trait Handler {
    /// Takes in a connection that the listener of this index has accepted: the first of
    /// [`ServerOptions::listen`] is 0.
    fn accepted(&mut self, conn: ConnId, listener: usize);

    /// Takes in the protocol that a TLS handshake has chosen (ALPN), if any, and writes what the server says
    /// first to `out`, which is empty.
    fn negotiated(&mut self, conn: ConnId, alpn: Option<&[u8]>, out: &mut Outgoing) {
        let _ = (conn, alpn, out);
    }

    /// Reads bytes, which came `at` this time, and writes the replies to `out`, which is empty.
    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate;

    /// The client has sent everything. Returns `true` if the connection goes on, because a reply is yet to be
    /// [due](Self::due); else it ends when it was sent what was written, also for later.
    fn closed(&mut self, conn: ConnId) -> bool {
        let _ = conn;
        false
    }

    /// Writes why a connection ends: the unfinished requests of all connections may have `most` bytes
    /// together. The replies that were just written, to it or to requests before that one, are in `out`. If
    /// nothing is written, the connection is reset.
    fn over_memory(&mut self, conn: ConnId, most: u64, out: &mut Outgoing);

    /// Forgets a connection, which has ended.
    fn gone(&mut self, conn: ConnId);

    /// Returns the latest time at which to call [`due`](Self::due); [`Nanos::MAX`] if nothing is to come.
    fn next_due(&self, now: Nanos) -> Nanos {
        let _ = now;
        Nanos::MAX
    }

    /// Writes what is due for one connection to `out`, which is empty, and gives the connection. Called until
    /// there is none, after the events of each pass, while [`next_due`](Self::next_due) gives a time.
    fn due(&mut self, now: Nanos, out: &mut Outgoing) -> Option<(ConnId, Fate)> {
        let _ = (now, out);
        None
    }

    /// Notes that the client does not read what it is sent ([`ServerOptions::high_water`]): replies that are
    /// due later have to wait until [`resume_writing`](Self::resume_writing).
    fn pause_writing(&mut self, conn: ConnId) {
        let _ = conn;
    }

    /// Goes on with the replies to a client that has read nearly everything.
    fn resume_writing(&mut self, conn: ConnId, now: Nanos) {
        let _ = (conn, now);
    }

    /// Takes in when the kernel got what was written since the last call. Follows for all replies, before
    /// their connections are gone.
    fn flushed(&mut self, flushed: &mut Flushed<'_>) {
        let _ = flushed;
    }
}

/// Replies to a connection.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Bytes to send, but for those that are shared.
    pub bytes: Vec<u8>,
    /// Replies that were written. They are handed to the kernel when there are a few dozens of them, or at
    /// the end of the pass.
    pub replies: u32,
    /// Bodies that are sent without a copy, each with its place in `bytes`.
    shared: Vec<(usize, Arc<[u8]>)>,
    /// Replies for later, with their times.
    pub(crate) later: Vec<(Nanos, Vec<u8>)>,
}

impl Outgoing {
    /// Appends a body without copying it. A copy costs less than the additional piece of a system call up to
    /// some 16 KiB.
    pub fn share(&mut self, body: Arc<[u8]>) {
        self.shared.push((self.bytes.len(), body));
    }

    /// Has a reply sent when it is `due`, unless its connection has broken by then. A connection that
    /// [ends](Fate::Ends) goes on until its last reply is sent.
    pub fn send_later(&mut self, due: Nanos, reply: Vec<u8>) {
        self.later.push((due, reply));
    }

    /// Has everything that was written sent when it is `due`, in place of now.
    fn hold_back(&mut self, due: Nanos) {
        let mut reply = Vec::with_capacity(self.length());
        let mut from = 0;
        for (place, body) in self.shared.drain(..) {
            reply.extend_from_slice(&self.bytes[from..place]);
            reply.extend_from_slice(&body);
            from = place;
        }
        reply.extend_from_slice(&self.bytes[from..]);
        self.bytes.clear();
        self.replies = 0;
        if !reply.is_empty() {
            self.send_later(due, reply);
        }
    }

    /// Number of bytes to send now, with those that are shared.
    fn length(&self) -> usize {
        self.bytes.len() + self.shared.iter().map(|(_, body)| body.len()).sum::<usize>()
    }

    /// Throws everything away but the count.
    fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
        self.later.clear();
    }
}

/// Course of a connection after its bytes were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The connection goes on.
    GoesOn {
        /// Bytes of memory that it holds for requests that are not answered.
        held: usize,
    },
    /// The connection ends when it was sent what was written, and nothing more is read.
    Ends,
    /// The connection is reset.
    Reset,
}

/// Counts of the loop of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopCounts {
    /// Connections that were accepted, by listener.
    pub accepted: Vec<u64>,
    /// Connections that were reset because the client left too much unread.
    pub unread: u64,
    /// Connections that were ended because unfinished requests took too much memory.
    pub over_memory: u64,
    /// Connections that were ended because of what the client sent for TLS.
    pub tls_errors: u64,
}

/// Place, threads and bounds of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Name of its threads.
    pub name: &'static str,
    /// Endpoints to listen on.
    pub listen: Vec<Endpoint>,
    /// Threads; each serves all endpoints.
    pub threads: u32,
    /// Time after which it stops.
    pub duration: Option<Nanos>,
    /// Time for which replies to requests are held back.
    pub delay: Nanos,
    /// Bytes that a client may leave unread. When there are more, and it is due another reply, its connection
    /// is reset, lest it fill the memory.
    pub unread_bytes: usize,
    /// Bytes that a client may leave unread of replies that are due later; then its handler pauses, until
    /// nearly all are read. Unread bytes take part in [`memory`](Self::memory) then.
    pub high_water: Option<usize>,
    /// Memory in bytes that unfinished requests of all connections may take together.
    pub memory: u64,
    /// Events of a pass: bounds how long a stop, and what is due, have to wait.
    pub pass_events: u32,
    /// TLS, on all connections.
    pub tls: Option<ServerConfig>,
    /// Stops it.
    pub stopper: Stopper,
}

impl ServerOptions {
    /// A server that tests of clients want: one thread, for ever, and bounds that no sound client reaches.
    pub fn new(name: &'static str, listen: Vec<Endpoint>) -> Self {
        Self {
            name,
            listen,
            threads: 1,
            duration: None,
            delay: Nanos::ZERO,
            unread_bytes: 64 << 20,
            high_water: None,
            memory: 512 << 20,
            pass_events: 256,
            tls: None,
            stopper: Stopper::default(),
        }
    }

    /// Everything that is wrong with these options, each as a sentence; empty if they are sound.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.threads == 0 {
            found.push("a server needs at least one thread".to_owned());
        }
        let is_on_path = self.listen.iter().any(|endpoint| matches!(endpoint, Endpoint::Unix(_)));
        if self.threads != 1 && is_on_path {
            found.push("a unix socket cannot be shared by several threads: use one thread".to_owned());
        }
        found
    }
}

/// A running server. It stops by [`stop`](Self::stop), by a [`Stopper`], at the end of its
/// [duration](ServerOptions::duration), or when this is dropped.
#[derive(Debug)]
pub struct Server<P: Protocol> {
    protocol: Arc<P>,
    threads: ServerThreads<P::Report>,
}

impl<P: Protocol> Server<P> {
    /// Starts the threads, each with a backend of its own, and returns once all of them listen.
    ///
    /// # Errors
    /// Options that make no sense (all of them are named), an address that cannot be listened on, no backend.
    pub fn start(options: ServerOptions, protocol: P, backend: KernelBackend) -> Result<Self, StartError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(StartError::Options(problems));
        }
        let protocol = Arc::new(protocol);
        let (name, threads, stopper) = (options.name, options.threads, options.stopper.clone());
        let place = options.listen.clone();
        let budget = Budget::new(options.memory);
        let task = Arc::new(ServerTask {
            protocol: Arc::clone(&protocol),
            bounds: Bounds { options, budget },
            backend,
        });
        let ready = Ready::gather(name, threads, place, &task)?;
        Ok(Self { protocol, threads: ready.begin(stopper) })
    }

    /// The protocol.
    pub const fn protocol(&self) -> &Arc<P> {
        &self.protocol
    }

    /// The endpoints that it listens on, in the order of [`ServerOptions::listen`], with the ports that were
    /// found.
    pub fn endpoints(&self) -> &[Endpoint] {
        self.threads.place()
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        self.threads.stopper().clone()
    }

    /// Stops it and returns its report.
    pub fn stop(self) -> P::Report {
        self.threads.stopper().stop();
        self.wait()
    }

    /// Waits until it stops and returns its report.
    pub fn wait(self) -> P::Report {
        let mut report = P::Report::default();
        for of_thread in self.threads.wait() {
            report += of_thread;
        }
        report
    }
}

/// Bounds of the loops of a server.
#[derive(Debug)]
struct Bounds {
    options: ServerOptions,
    budget: Budget,
}

/// The task of a thread of the server.
#[derive(Debug)]
struct ServerTask<P> {
    protocol: Arc<P>,
    bounds: Bounds,
    backend: KernelBackend,
}

impl<P: Protocol> ThreadTask for ServerTask<P> {
    type Ready = Box<dyn Listening>;
    type Ended = P::Report;

    fn listen(&self, _index: u32, place: &[Endpoint]) -> Result<(Self::Ready, Vec<Endpoint>), StartError> {
        worker::listen(self.backend, place, self.bounds.options.threads > 1)
    }

    fn serve(&self, ready: Self::Ready, start: Nanos, _index: u32) -> P::Report {
        let mut handler = self.protocol.handler();
        let counts = ready.serve(&mut handler, &self.bounds, start);
        P::report(handler, counts)
    }
}
