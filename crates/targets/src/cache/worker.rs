//! The loop of one thread of a cache server.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Chunk, Close, ConnId, Event, ListenerId, Wait};
use plimsoll_wire::cache::RequestServer;

use super::http::{Caller, HttpDesk};
use super::request_handler::RequestHandler;
use super::setup::{CacheReport, Setup};
use crate::budget::Part;
use crate::table::Table;

/// A stop is noticed within this time.
const STOP_POLL: Nanos = Nanos::from_millis(20);
/// Events of one pass: bounds how long a stop has to wait.
const PASS_EVENTS: u32 = 1024;
/// Replies of one flush: bounds how long the first of them waits for the last. At less than 1 µs each the
/// wait is below the time of a reply through the kernel, and the system call of the flush is shared by
/// enough.
const FLUSH_REPLIES: u32 = 64;
/// A client that leaves more than this many bytes unread is cut off, lest it fill the memory.
const UNREAD_BYTES: usize = 64 << 20;

/// One thread of a cache server.
#[derive(Debug)]
pub(crate) struct Worker<B> {
    setup: Arc<Setup>,
    backend: B,
    ports: Ports,
    table: Table<Peer>,
    handler: RequestHandler,
    http: HttpDesk,
    report: CacheReport,
    ends_at: Nanos,
}

/// The endpoints of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) frames: ListenerId,
    pub(crate) http: Option<ListenerId>,
}

/// One connection.
#[derive(Debug)]
struct Peer {
    connection: Connection,
    /// Memory that it holds for a request that is not whole.
    part: Part,
}

/// The protocol of a connection.
#[derive(Debug)]
enum Connection {
    Frames(RequestServer),
    Http(Box<Caller>),
}

impl<B: Backend> Worker<B> {
    /// A thread that listens already and counts its time from `start`.
    pub(crate) fn new(setup: Arc<Setup>, backend: B, ports: Ports, start: Nanos) -> Self {
        Self {
            backend,
            ports,
            table: Table::default(),
            handler: RequestHandler::new(&setup),
            http: HttpDesk::new(Arc::clone(&setup)),
            report: CacheReport::default(),
            ends_at: setup.options.duration.map_or(Nanos::MAX, |duration| start + duration),
            setup,
        }
    }

    /// Serves until the server is stopped or its time is over.
    pub(crate) fn run(mut self) -> CacheReport {
        loop {
            let now = self.backend.now();
            if self.setup.stopper.is_stopped() || now >= self.ends_at {
                break;
            }
            let until = (now + STOP_POLL).min(self.ends_at);
            self.backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            for _ in 0..PASS_EVENTS {
                let Some(event) = self.backend.next_event() else { break };
                self.handle(event);
            }
            self.flush();
        }
        self.leave()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { listener, conn, .. } => self.accept(listener, conn),
            Event::Received { conn, at, data, .. } => self.receive(conn, at, data),
            // Replies that the client is owed were queued when its requests came.
            Event::Closed { conn, .. } => self.part(conn, Close::AfterSend),
            Event::Failed { conn, .. } => self.part(conn, Close::Now),
            // The cache server connects nowhere.
            Event::Connected { .. } | Event::ConnectFailed { .. } => {}
        }
    }

    fn accept(&mut self, listener: ListenerId, conn: ConnId) {
        let connection = if Some(listener) == self.ports.http {
            self.report.http_connections += 1;
            Connection::Http(Box::default())
        } else {
            self.report.connections += 1;
            Connection::Frames(RequestServer::new())
        };
        self.table.insert(conn, Peer { connection, part: Part::default() });
    }

    fn receive(&mut self, conn: ConnId, at: Nanos, data: Chunk) {
        let Some(Peer { connection, part }) = self.table.get(conn) else { return };
        if self.backend.unsent(conn) > UNREAD_BYTES {
            self.report.refused += 1;
            return self.part(conn, Close::Reset);
        }
        let bytes = self.backend.bytes(data);
        let budget = &self.setup.budget;
        let (goes_on, is_sound, has_room) = match connection {
            Connection::Frames(server) => {
                let sound = self.handler.read(server, at, bytes).is_ok();
                let has_room = budget.note(part, server.held_bytes());
                if !has_room {
                    self.handler.refuse_for_memory(budget.most());
                }
                self.transmit(conn);
                (sound, sound, has_room)
            }
            Connection::Http(caller) => {
                let read = self.http.read(caller, at, bytes);
                let has_room = budget.note(part, caller.held_bytes());
                if !has_room {
                    self.http.refuse_for_memory(budget.most());
                }
                self.backend.outbox(conn).append(&mut self.http.out);
                (read == Ok(true), read.is_ok(), has_room)
            }
        };
        self.report.refused += u64::from(!is_sound);
        self.report.over_memory += u64::from(!has_room);
        if !goes_on || !has_room {
            self.part(conn, Close::AfterSend);
        }
        if self.handler.answered >= FLUSH_REPLIES {
            self.flush();
        }
    }

    /// Queues the output of the handler.
    #[inline]
    fn transmit(&mut self, conn: ConnId) {
        let RequestHandler { out, large, .. } = &mut self.handler;
        let mut from = 0;
        for (place, value) in large.drain(..) {
            self.backend.outbox(conn).extend_from_slice(&out[from..place]);
            self.backend.send_shared(conn, value);
            from = place;
        }
        if from < out.len() {
            self.backend.outbox(conn).extend_from_slice(&out[from..]);
        }
        out.clear();
    }

    fn flush(&mut self) {
        self.handler.answered = 0;
        self.backend.flush();
    }

    fn part(&mut self, conn: ConnId, how: Close) {
        if let Some(mut peer) = self.table.remove(conn) {
            self.setup.budget.release(&mut peer.part);
        }
        self.backend.close(conn, how);
    }

    fn leave(mut self) -> CacheReport {
        self.backend.flush();
        for listener in [Some(self.ports.frames), self.ports.http].into_iter().flatten() {
            self.backend.close_listener(listener);
        }
        for conn in self.table.ids() {
            self.part(conn, Close::AfterSend);
        }
        let mut report = self.report;
        report += self.handler.finish();
        report += self.http.finish();
        report
    }
}
