//! A small server of a port beside the load: one thread, HTTP/1.1, one request after the other on a
//! connection, everything bounded.
//!
//! It must never get in the way of the load: it has a thread and a backend of its own, sleeps until something
//! comes, and holds at most [`CONNECTIONS`] connections with [`HEAD_BYTES`] and [`BODY_BYTES`] each. This
//! module decides who may use it (see [`Access`]); its user decides what a request means.

mod message;
mod reading;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use plimsoll_core::Nanos;
use plimsoll_driver::epoll::Epoll;
use plimsoll_driver::{Backend as _, Close, ConnId, Endpoint, Event, ListenerId, SystemError, Wait};
use plimsoll_wire::http1::RequestMemo;

use crate::open;
use message::write_reply;
pub use message::{Access, CONTROL_FIELD, Reply, Request};
pub use reading::{Reading, RequestReader};

/// Connections at once: some people and a script; more are turned away with 503.
const CONNECTIONS: usize = 8;
/// The most bytes of a request's head.
const HEAD_BYTES: usize = 8 * 1024;
/// The most bytes of a request's body: a rate has some twenty, refreshed values of a setup have kilobytes.
const BODY_BYTES: usize = 1 << 20;
/// A client that leaves more than this many bytes unread is cut off, lest it fill the memory: many times the
/// size of a large run's metrics.
const UNREAD_BYTES: usize = 16 << 20;
/// A connection that has brought no whole request for this time is closed, so that the few places are not
/// held for ever.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// A stop is noticed within this time.
const STOP_POLL: Nanos = Nanos::from_millis(50);

/// The address to listen on, and the clients that are admitted.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address; port 0 takes a free one.
    pub listen: Endpoint,
    /// Clients that may use it.
    pub access: Access,
    /// Purpose of the port, which names its thread and appears in messages.
    pub name: &'static str,
}

/// Reason why the port could not be opened; with its name.
#[derive(Debug)]
pub enum ServeError {
    /// No thread.
    Thread(&'static str, std::io::Error),
    /// No backend.
    Open(&'static str, SystemError),
    /// The address cannot be listened on.
    Listen(&'static str, Endpoint, SystemError),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(name, error) => write!(f, "cannot start the thread of the {name} port: {error}"),
            Self::Open(name, error) => write!(f, "cannot open the {name} port: {error}"),
            Self::Listen(name, endpoint, error) => {
                write!(f, "cannot listen on {endpoint} for {name}: {error}")
            }
        }
    }
}

impl std::error::Error for ServeError {}

/// A function that answers requests, one at a time.
pub type Handler = Box<dyn FnMut(&Request) -> Reply + Send>;

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the thread of a server, and returns when it listens. `handler` is called on that thread.
///
/// # Errors
/// No thread, no backend, or an address that cannot be listened on.
pub fn serve(options: ServeOptions, handler: Handler) -> Result<Server, ServeError> {
    let (stop, name) = (Arc::new(AtomicBool::new(false)), options.name);
    let stopped = Arc::clone(&stop);
    let (ready, is_ready) = channel();
    let thread = Builder::new()
        .name(options.name.to_owned())
        .spawn(move || work(options, handler, &stopped, &ready))
        .map_err(|error| ServeError::Thread(name, error))?;
    match is_ready.recv() {
        Ok(Ok(endpoint)) => Ok(Server { endpoint, stop, thread: Some(thread) }),
        Ok(Err(error)) => Err(error),
        Err(_) => std::panic::resume_unwind(thread.join().err().unwrap_or_else(|| Box::new("no answer"))),
    }
}

impl Server {
    /// The address that it listens on.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has reported its own panic.
            let _ = thread.join();
        }
    }
}

fn work(
    options: ServeOptions,
    handler: Handler,
    stop: &AtomicBool,
    ready: &Sender<Result<Endpoint, ServeError>>,
) {
    let name = options.name;
    let opened = open().map_err(|error| ServeError::Open(name, error)).and_then(|mut io| {
        let bound = io.listen(&options.listen, false);
        let (listener, endpoint) =
            bound.map_err(|error| ServeError::Listen(name, options.listen.clone(), error))?;
        Ok((io, listener, endpoint))
    });
    match opened {
        Ok((io, listener, endpoint)) => {
            // The receiver waits for this, so it cannot be gone.
            let _ = ready.send(Ok(endpoint));
            let (memo, access) = (RequestMemo::new(), options.access);
            Port { io, listener, memo, access, handler, callers: Vec::new() }.run(stop);
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

/// A connection.
struct Caller {
    id: ConnId,
    /// When it came, or its last request was answered.
    since: Nanos,
    reader: RequestReader,
    /// `true` if the connection ends when its last reply has been sent. Until then it keeps its place.
    leaves: bool,
}

struct Port {
    io: Epoll,
    listener: ListenerId,
    memo: RequestMemo,
    access: Access,
    handler: Handler,
    callers: Vec<Caller>,
}

impl Port {
    fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let until = self.io.now() + STOP_POLL;
            self.io.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            while let Some(event) = self.io.next_event() {
                self.handle(event);
            }
            let now = self.io.now();
            let late = |caller: &Caller| now.since(caller.since) >= PATIENCE;
            while let Some(number) = self.callers.iter().position(late) {
                let caller = self.callers.swap_remove(number);
                self.io.close(caller.id, Close::Now);
            }
            self.io.flush();
            let io = &mut self.io;
            self.callers.retain(|caller| {
                let has_left = caller.leaves && io.unsent(caller.id) == 0;
                if has_left {
                    io.close(caller.id, Close::AfterSend);
                }
                !has_left
            });
        }
        self.io.close_listener(self.listener);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, at, .. } if self.callers.len() < CONNECTIONS => {
                let reader = RequestReader::default();
                self.callers.push(Caller { id: conn, since: at, reader, leaves: false });
            }
            Event::Accepted { conn, .. } => {
                let reply = Reply::problem(503, "too many connections to this port");
                write_reply(self.io.outbox(conn), false, false, &reply);
                self.io.close(conn, Close::AfterSend);
            }
            Event::Received { conn, data, .. } => {
                if self.io.unsent(conn) > UNREAD_BYTES {
                    self.callers.retain(|caller| caller.id != conn);
                    self.io.close(conn, Close::Reset);
                } else if let Some(number) = self.callers.iter().position(|caller| caller.id == conn)
                    && !self.callers[number].leaves
                {
                    let Self { io, access, memo, callers, .. } = self;
                    let reading = callers[number].reader.take(io.bytes(data), access, memo);
                    self.go_on(number, reading);
                }
            }
            Event::Closed { conn, .. } | Event::Failed { conn, .. } => {
                self.callers.retain(|caller| caller.id != conn);
                self.io.close(conn, Close::AfterSend);
            }
            // The server connects nowhere.
            Event::Connected { .. } | Event::ConnectFailed { .. } => {}
        }
    }

    /// Answers a request, if it is whole.
    fn go_on(&mut self, number: usize, reading: Reading) {
        let id = self.callers[number].id;
        let (reply, head_request, stays) = match reading {
            Reading::Pending { wants_continue } => {
                if wants_continue {
                    self.io.outbox(id).extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
                return;
            }
            Reading::Request { request, stays } => {
                ((self.handler)(&request), request.method == "HEAD", stays)
            }
            Reading::Refused { reply, head_request, stays } => (reply, head_request, stays),
        };
        let caller = &mut self.callers[number];
        (caller.since, caller.leaves) = (self.io.now(), !stays);
        write_reply(self.io.outbox(id), head_request, stays, &reply);
    }
}
