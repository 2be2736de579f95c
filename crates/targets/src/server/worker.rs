//! The loop of one thread of a server.

use plimsoll_core::Nanos;
use plimsoll_driver::{
    Backend, Chunk, Close, ConnId, Endpoint, Event, KernelBackend, ListenerId, Open, OpenEpoll, OpenUring,
    Wait,
};

use super::{Bounds, Fate, Handler, LoopCounts, Outgoing};
use crate::budget::Part;
use crate::start_error::StartError;
use crate::table::Table;

/// A stop is noticed within this time.
const STOP_POLL: Nanos = Nanos::from_millis(20);
/// Replies of one flush: bounds how long the first of them waits for the last. At less than 1 µs each the
/// wait is below the time of a reply through the kernel, and the system call of the flush is shared by
/// enough.
const FLUSH_REPLIES: u32 = 64;

/// Listening sockets of one thread, of a backend whose type is hidden.
pub(super) trait Listening {
    /// Serves until the server is stopped, or its time is over, which counts from `start`.
    fn serve(self: Box<Self>, handler: &mut dyn Handler, bounds: &Bounds, start: Nanos) -> LoopCounts;
}

/// Opens a backend and listens on these endpoints. Gives them with the ports that were found.
pub(super) fn listen(
    backend: KernelBackend,
    place: &[Endpoint],
    reuse_port: bool,
) -> Result<(Box<dyn Listening>, Vec<Endpoint>), StartError> {
    match backend {
        KernelBackend::Epoll(options) => listen_on(&OpenEpoll(options), place, reuse_port),
        KernelBackend::Uring(options) => listen_on(&OpenUring(options), place, reuse_port),
    }
}

fn listen_on<O: Open<Backend: 'static>>(
    open: &O,
    place: &[Endpoint],
    reuse_port: bool,
) -> Result<(Box<dyn Listening>, Vec<Endpoint>), StartError> {
    let mut backend = open.open().map_err(StartError::Open)?;
    let (mut listeners, mut found) = (Vec::new(), Vec::new());
    for endpoint in place {
        let (listener, at) = backend
            .listen(endpoint, reuse_port)
            .map_err(|error| StartError::Listen { endpoint: endpoint.clone(), error })?;
        listeners.push(listener);
        found.push(at);
    }
    Ok((Box::new(Sockets { backend, listeners }), found))
}

/// A backend with its listeners.
struct Sockets<B> {
    backend: B,
    listeners: Vec<ListenerId>,
}

impl<B: Backend> Listening for Sockets<B> {
    fn serve(self: Box<Self>, handler: &mut dyn Handler, bounds: &Bounds, start: Nanos) -> LoopCounts {
        let counts = LoopCounts { accepted: vec![0; self.listeners.len()], ..LoopCounts::default() };
        let worker = Worker {
            bounds,
            backend: self.backend,
            listeners: self.listeners,
            handler,
            table: Table::default(),
            out: Outgoing::default(),
            counts,
            ends_at: bounds.options.duration.map_or(Nanos::MAX, |duration| start + duration),
        };
        worker.run()
    }
}

/// One thread of a server.
struct Worker<'s, B> {
    bounds: &'s Bounds,
    backend: B,
    listeners: Vec<ListenerId>,
    handler: &'s mut dyn Handler,
    /// The memory that each connection holds for requests that are not whole.
    table: Table<Part>,
    /// Replies to one connection.
    out: Outgoing,
    counts: LoopCounts,
    ends_at: Nanos,
}

impl<B: Backend> Worker<'_, B> {
    fn run(mut self) -> LoopCounts {
        let Bounds { options, .. } = self.bounds;
        loop {
            let now = self.backend.now();
            if options.stopper.is_stopped() || now >= self.ends_at {
                break;
            }
            let until = (now + STOP_POLL).min(self.ends_at).min(self.handler.next_due(now));
            self.backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            for _ in 0..options.pass_events {
                let Some(event) = self.backend.next_event() else { break };
                self.handle(event);
            }
            if self.handler.next_due(now) != Nanos::MAX {
                self.release();
            }
            self.flush();
        }
        self.leave()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { listener, conn, .. } => self.accept(listener, conn),
            Event::Received { conn, at, data, .. } => self.receive(conn, at, data),
            Event::Closed { conn, .. } => {
                if self.table.get(conn).is_some() && !self.handler.closed(conn) {
                    self.part(conn, Close::AfterSend);
                }
            }
            Event::Failed { conn, .. } => self.part(conn, Close::Now),
            // A server connects nowhere.
            Event::Connected { .. } | Event::ConnectFailed { .. } => {}
        }
    }

    fn accept(&mut self, listener: ListenerId, conn: ConnId) {
        let index = self.listeners.iter().position(|of| *of == listener).unwrap_or_default();
        self.counts.accepted[index] += 1;
        self.table.insert(conn, Part::default());
        self.handler.accepted(conn, index);
    }

    fn receive(&mut self, conn: ConnId, at: Nanos, data: Chunk) {
        if self.backend.unsent(conn) > self.bounds.options.unread_bytes {
            return self.cut_off(conn);
        }
        let fate = self.handler.received(conn, at, self.backend.bytes(data), &mut self.out);
        self.follow(conn, fate);
    }

    /// Sends what is due.
    fn release(&mut self) {
        let now = self.backend.now();
        while let Some((conn, fate)) = self.handler.due(now, &mut self.out) {
            if self.backend.unsent(conn) > self.bounds.options.unread_bytes {
                self.out.clear();
                self.cut_off(conn);
            } else {
                self.follow(conn, fate);
            }
        }
    }

    /// Sends what was written for a connection, and goes on with it.
    fn follow(&mut self, conn: ConnId, fate: Fate) {
        let Bounds { budget, .. } = self.bounds;
        let has_room = match (fate, self.table.get(conn)) {
            (Fate::GoesOn { held }, Some(part)) => budget.note(part, held),
            _ => true,
        };
        if !has_room {
            self.counts.over_memory += 1;
            self.handler.over_memory(conn, budget.most(), &mut self.out);
        }
        self.transmit(conn);
        match fate {
            Fate::GoesOn { .. } if has_room => {}
            Fate::GoesOn { .. } | Fate::Ends => self.part(conn, Close::AfterSend),
            Fate::Reset => self.part(conn, Close::Reset),
        }
        if self.out.replies >= FLUSH_REPLIES {
            self.flush();
        }
    }

    /// Queues what was written for a connection.
    fn transmit(&mut self, conn: ConnId) {
        let Outgoing { bytes, shared, .. } = &mut self.out;
        let mut from = 0;
        for (place, body) in shared.drain(..) {
            self.backend.outbox(conn).extend_from_slice(&bytes[from..place]);
            self.backend.send_shared(conn, body);
            from = place;
        }
        if from < bytes.len() {
            self.backend.outbox(conn).extend_from_slice(&bytes[from..]);
        }
        bytes.clear();
    }

    fn flush(&mut self) {
        self.out.replies = 0;
        self.backend.flush();
    }

    /// Resets the connection of a client that has left too much unread.
    fn cut_off(&mut self, conn: ConnId) {
        self.counts.unread += 1;
        self.part(conn, Close::Reset);
    }

    fn part(&mut self, conn: ConnId, how: Close) {
        if let Some(mut part) = self.table.remove(conn) {
            self.bounds.budget.release(&mut part);
            self.handler.gone(conn);
        }
        self.backend.close(conn, how);
    }

    fn leave(mut self) -> LoopCounts {
        self.backend.flush();
        for listener in std::mem::take(&mut self.listeners) {
            self.backend.close_listener(listener);
        }
        for conn in self.table.ids() {
            self.part(conn, Close::AfterSend);
        }
        self.counts
    }
}
