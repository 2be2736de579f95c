//! A server of one's own protocol: the loop, the threads and their reports, for a [`Protocol`] to fill in.
//!
//! ```text
//!   Server::start ──► a thread each: listeners, backend ──► loop ──► Handler: bytes in, replies out
//!   Server::wait  ◄── the reports of all threads, added up ◄──┘  (accepted, received, closed, due)
//! ```
//!
//! The loop waits, reads and writes, and keeps the bounds of [`ServerOptions`]: how long the server serves,
//! how much a client may leave unread, how much memory unfinished requests may take, and how many replies
//! are sent by one system call. A [`Handler`] sees bytes and times, and no socket. It is a `dyn` value to the
//! loop, which is so compiled here alone, once for each backend. Replies that are to come later are held back
//! here, by [`ServerOptions::delay`], or by the handler, until they are [due](Handler::due).

mod delayed;
mod worker;

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{ConnId, Endpoint, KernelBackend};

use crate::budget::Budget;
use crate::server_threads::{Ready, ServerThreads, Stopper, ThreadTask};
use crate::start_error::StartError;
pub use crate::table::Table;
use delayed::Delayed;
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

    /// Reads bytes, which came `at` this time, and writes the replies to `out`, which is empty.
    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate;

    /// The client has sent everything. Returns `true` if the connection goes on, because a reply is yet to
    /// come; else it ends when it was sent what was written.
    fn closed(&mut self, conn: ConnId) -> bool {
        let _ = conn;
        false
    }

    /// Writes why a connection ends: the unfinished requests of all connections may have `most` bytes
    /// together. The replies that were just written, to it or to requests before that one, are in `out`.
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
}

impl Outgoing {
    /// Appends a body without copying it. A copy costs less than the additional piece of a system call up to
    /// some 16 KiB.
    pub fn share(&mut self, body: Arc<[u8]>) {
        self.shared.push((self.bytes.len(), body));
    }

    /// Returns `true` if nothing is to be sent.
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.shared.is_empty()
    }

    /// Throws everything away but the count.
    fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
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
    /// The connection ends when it was sent what was written.
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
    /// Memory in bytes that unfinished requests of all connections may take together.
    pub memory: u64,
    /// Events of a pass: bounds how long a stop, and what is due, have to wait.
    pub pass_events: u32,
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
            memory: 512 << 20,
            pass_events: 256,
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
    endpoints: Vec<Endpoint>,
    stopper: Stopper,
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
        Ok(Self { protocol, endpoints: ready.place().clone(), stopper, threads: ready.begin() })
    }

    /// The protocol.
    pub const fn protocol(&self) -> &Arc<P> {
        &self.protocol
    }

    /// The endpoints that it listens on, in the order of [`ServerOptions::listen`], with the ports that were
    /// found.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Something that can stop it while another waits for it.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Stops it and returns its report.
    pub fn stop(self) -> P::Report {
        self.stopper.stop();
        self.wait()
    }

    /// Waits until it stops and returns its report.
    pub fn wait(mut self) -> P::Report {
        let mut report = P::Report::default();
        for of_thread in self.threads.wait() {
            report += of_thread;
        }
        report
    }
}

impl<P: Protocol> Drop for Server<P> {
    fn drop(&mut self) {
        self.stopper.stop();
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
    type Place = Vec<Endpoint>;
    type Ready = Box<dyn Listening>;
    type Error = StartError;
    type Ended = P::Report;

    fn listen(&self, _index: u32, place: &Vec<Endpoint>) -> Result<(Self::Ready, Vec<Endpoint>), StartError> {
        worker::listen(self.backend, place, self.bounds.options.threads > 1)
    }

    fn serve(&self, ready: Self::Ready, start: Nanos, _index: u32) -> P::Report {
        let mut handler = self.protocol.handler();
        let counts = match self.bounds.options.delay {
            Nanos::ZERO => ready.serve(&mut handler, &self.bounds, start),
            delay => ready.serve(&mut Delayed::new(&mut handler, delay), &self.bounds, start),
        };
        P::report(handler, counts)
    }
}
