//! The loop of one thread of an ingest server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Chunk, Close, ConnId, Event, ListenerId, Wait};
use plimsoll_system::clock;

use super::api::Moment;
use super::http::{Caller, ConnectionFate, HttpHandler};
use super::setup::{IngestCounts, Setup};
use crate::budget::Part;
use crate::table::Table;

/// A stop is noticed within this time.
const STOP_POLL: Nanos = Nanos::from_millis(20);
/// Events of one pass: bounds how long a stop, and the replies of the pass, have to wait.
const PASS_EVENTS: u32 = 64;
/// A client that leaves more than this many bytes unread is cut off, lest it fill the memory. It is above the
/// largest result of a query.
const UNREAD_BYTES: usize = 128 << 20;
/// While a query runs, its thread is asked for the reply again after this share of the time that it has taken
/// so far: the delay is no larger than that.
const ASK_AGAIN_SHARE: u64 = 16;
/// The shortest and the longest pause between two such looks.
const ASK_AGAIN: [Nanos; 2] = [Nanos::from_micros(50), Nanos::from_millis(10)];

/// One thread of an ingest server.
#[derive(Debug)]
pub(crate) struct Worker<B> {
    setup: Arc<Setup>,
    backend: B,
    listener: ListenerId,
    table: Table<Peer>,
    http: HttpHandler,
    /// Replies that wait for their time.
    held: BinaryHeap<Reverse<Waiting>>,
    /// Connections that wait for the result of a query,
    owed: Vec<ConnId>,
    /// and when the last of those queries came.
    last_query: Nanos,
    /// Replies that have ever waited: those of one instant go out in their order.
    number: u64,
    connections: u64,
    violations: u64,
    over_memory: u64,
    ends_at: Nanos,
}

/// One connection.
#[derive(Debug, Default)]
struct Peer {
    caller: Caller,
    /// Memory that it holds for a request that is not answered.
    part: Part,
}

/// A reply that waits, in the order of its time.
#[derive(Debug)]
struct Waiting {
    due: Nanos,
    number: u64,
    conn: ConnId,
    bytes: Vec<u8>,
    ends: bool,
}

impl Waiting {
    const fn order(&self) -> (Nanos, u64) {
        (self.due, self.number)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl<B: Backend> Worker<B> {
    /// A thread that listens already and counts its time from `start`.
    pub(crate) fn new(setup: Arc<Setup>, backend: B, listener: ListenerId, start: Nanos) -> Self {
        Self {
            backend,
            listener,
            table: Table::default(),
            http: HttpHandler::new(Arc::clone(&setup)),
            held: BinaryHeap::new(),
            owed: Vec::new(),
            last_query: Nanos::ZERO,
            number: 0,
            connections: 0,
            violations: 0,
            over_memory: 0,
            ends_at: setup.options.duration.map_or(Nanos::MAX, |duration| start + duration),
            setup,
        }
    }

    /// Serves until the server is stopped or its time is over.
    pub(crate) fn run(mut self) -> IngestCounts {
        loop {
            let now = self.backend.now();
            if self.setup.stopper.is_stopped() || now >= self.ends_at {
                break;
            }
            let next = self.held.peek().map_or(Nanos::MAX, |Reverse(waiting)| waiting.due);
            let until = (now + STOP_POLL).min(self.ends_at).min(next).min(self.ask_again(now));
            self.backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            for _ in 0..PASS_EVENTS {
                let Some(event) = self.backend.next_event() else { break };
                self.handle(event);
            }
            self.settle();
            self.release();
            self.backend.flush();
        }
        self.leave()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, .. } => {
                self.connections += 1;
                self.table.insert(conn, Peer::default());
            }
            Event::Received { conn, at, data, .. } => self.receive(conn, at, data),
            Event::Closed { conn, .. } => self.close(conn),
            Event::Failed { conn, .. } => self.part(conn, Close::Now),
            // The ingest server connects nowhere.
            Event::Connected { .. } | Event::ConnectFailed { .. } => {}
        }
    }

    fn receive(&mut self, conn: ConnId, at: Nanos, data: Chunk) {
        let Some(Peer { caller, .. }) = self.table.get(conn) else { return };
        if self.backend.unsent(conn) > UNREAD_BYTES {
            self.violations += 1;
            return self.part(conn, Close::Reset);
        }
        let moment = Moment { at, unix: clock::unix() };
        let was_owed = caller.is_owed();
        let course = self.http.read(caller, moment, self.backend.bytes(data));
        if caller.is_owed() && !was_owed {
            self.owed.push(conn);
            self.last_query = moment.at;
        }
        self.follow(conn, course);
    }

    /// Sends the output of the handler for a connection, and goes on with it.
    fn follow(&mut self, conn: ConnId, course: ConnectionFate) {
        let Some(Peer { caller, part }) = self.table.get(conn) else { return };
        if course == ConnectionFate::GoesOn && !self.setup.budget.note(part, caller.held_bytes()) {
            self.over_memory += 1;
            self.http.refuse_for_memory();
            self.backend.outbox(conn).append(&mut self.http.out);
            self.http.held.clear();
            return self.part(conn, Close::AfterSend);
        }
        self.backend.outbox(conn).append(&mut self.http.out);
        let waits = !self.http.held.is_empty();
        for held in self.http.held.drain(..) {
            let (number, due, bytes, ends) = (self.number, held.due, held.bytes, held.ends);
            self.held.push(Reverse(Waiting { due, number, conn, bytes, ends }));
            self.number += 1;
        }
        match course {
            ConnectionFate::GoesOn => {}
            // The last reply that is held ends the connection.
            ConnectionFate::Ends if waits => {}
            ConnectionFate::Ends => self.part(conn, Close::AfterSend),
            ConnectionFate::Reset => self.part(conn, Close::Reset),
        }
    }

    /// The client of a connection has sent everything. Replies that it is owed were queued when its requests
    /// came, except for the result of a query.
    fn close(&mut self, conn: ConnId) {
        match self.table.get(conn) {
            Some(Peer { caller, .. }) if caller.is_owed() => caller.is_closed = true,
            _ => self.part(conn, Close::AfterSend),
        }
    }

    /// When to look for results again.
    fn ask_again(&self, now: Nanos) -> Nanos {
        if self.owed.is_empty() {
            return Nanos::MAX;
        }
        let [least, most] = ASK_AGAIN;
        now + Nanos(now.since(self.last_query).0 / ASK_AGAIN_SHARE).clamp(least, most)
    }

    /// Answers the queries that have ended.
    fn settle(&mut self) {
        for place in (0..self.owed.len()).rev() {
            let conn = self.owed[place];
            let Some(Peer { caller, .. }) = self.table.get(conn) else {
                self.owed.swap_remove(place);
                continue;
            };
            // Input behind a query may contain further queries.
            if self.backend.unsent(conn) > UNREAD_BYTES {
                self.violations += 1;
                self.part(conn, Close::Reset);
                continue;
            }
            let moment = Moment { at: self.backend.now(), unix: clock::unix() };
            let Some(course) = self.http.settle(caller, moment) else { continue };
            // Another query may have followed this one.
            if caller.is_owed() {
                self.last_query = moment.at;
            } else {
                self.owed.swap_remove(place);
            }
            let is_over = caller.is_closed && !caller.is_owed();
            self.follow(conn, course);
            if is_over {
                self.part(conn, Close::AfterSend);
            }
        }
    }

    /// Sends the replies whose time has come.
    fn release(&mut self) {
        let now = self.backend.now();
        while self.held.peek().is_some_and(|Reverse(waiting)| waiting.due <= now) {
            let Some(Reverse(Waiting { conn, bytes, ends, .. })) = self.held.pop() else { return };
            // A client that went away gets no reply.
            if self.table.get(conn).is_none() {
                continue;
            }
            self.backend.outbox(conn).extend_from_slice(&bytes);
            if ends {
                self.part(conn, Close::AfterSend);
            }
        }
    }

    fn part(&mut self, conn: ConnId, how: Close) {
        if let Some(mut peer) = self.table.remove(conn) {
            self.setup.budget.release(&mut peer.part);
        }
        self.backend.close(conn, how);
    }

    fn leave(mut self) -> IngestCounts {
        self.backend.flush();
        self.backend.close_listener(self.listener);
        for conn in self.table.ids() {
            self.part(conn, Close::AfterSend);
        }
        let mut counts = self.http.finish();
        counts.connections += self.connections;
        counts.violations += self.violations;
        counts.over_memory += self.over_memory;
        counts
    }
}
