//! The connections of one thread: replies at once, at their time, or when a query has ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;
use plimsoll_system::clock;

use super::api::Moment;
use super::http::{Caller, ConnectionFate, HttpHandler};
use super::setup::{IngestCounts, Setup};
use crate::server::{Fate, Handler, LoopCounts, Outgoing, Protocol, Table};

/// While a query runs, its thread is asked for the reply again after this share of the time that it has taken
/// so far: the delay is no larger than that.
const ASK_AGAIN_SHARE: u64 = 16;
/// The shortest and the longest pause between two such looks.
const ASK_AGAIN: [Nanos; 2] = [Nanos::from_micros(50), Nanos::from_millis(10)];

/// Connections of one thread.
#[derive(Debug)]
pub(crate) struct Connections {
    table: Table<Caller>,
    http: HttpHandler,
    /// Replies that wait for their time.
    held: BinaryHeap<Reverse<Waiting>>,
    /// Connections that wait for the result of a query,
    owed: Vec<ConnId>,
    /// the first of them that have not been looked at in this pass,
    unseen: usize,
    /// and when the last of those queries came.
    last_query: Nanos,
    /// Replies that have ever waited: those of one instant go out in their order.
    number: u64,
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

impl Handler for Connections {
    fn accepted(&mut self, conn: ConnId, _listener: usize) {
        self.table.insert(conn, Caller::default());
    }

    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate {
        let Some(caller) = self.table.get(conn) else { return Fate::Ends };
        let moment = Moment { at, unix: clock::unix() };
        let was_owed = caller.is_owed();
        let course = self.http.read(caller, moment, bytes, &mut out.bytes);
        let held = caller.held_bytes();
        if caller.is_owed() && !was_owed {
            self.owed.push(conn);
            self.unseen = self.owed.len();
            self.last_query = moment.at;
        }
        self.hold(conn, course, held)
    }

    /// Replies that the client is owed were queued when its requests came, except for the result of a query.
    fn closed(&mut self, conn: ConnId) -> bool {
        match self.table.get(conn) {
            Some(caller) if caller.is_owed() => {
                caller.is_closed = true;
                true
            }
            _ => false,
        }
    }

    fn over_memory(&mut self, _conn: ConnId, most: u64, out: &mut Outgoing) {
        HttpHandler::refuse_for_memory(most, &mut out.bytes);
    }

    fn gone(&mut self, conn: ConnId) {
        self.table.remove(conn);
    }

    fn next_due(&self, now: Nanos) -> Nanos {
        self.held.peek().map_or(Nanos::MAX, |Reverse(waiting)| waiting.due).min(self.ask_again(now))
    }

    fn due(&mut self, now: Nanos, out: &mut Outgoing) -> Option<(ConnId, Fate)> {
        let due = self.settle(now, &mut out.bytes).or_else(|| self.release(now, &mut out.bytes));
        if due.is_none() {
            self.unseen = self.owed.len();
        }
        due
    }
}

impl Connections {
    /// Keeps the replies for later that were just written for a connection.
    fn hold(&mut self, conn: ConnId, course: ConnectionFate, held: usize) -> Fate {
        let waits = !self.http.held.is_empty();
        for reply in self.http.held.drain(..) {
            let (number, due, bytes, ends) = (self.number, reply.due, reply.bytes, reply.ends);
            self.held.push(Reverse(Waiting { due, number, conn, bytes, ends }));
            self.number += 1;
        }
        match course {
            ConnectionFate::GoesOn => Fate::GoesOn { held },
            // The last reply that is held ends the connection.
            ConnectionFate::Ends if waits => Fate::GoesOn { held },
            ConnectionFate::Ends => Fate::Ends,
            ConnectionFate::Reset => Fate::Reset,
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

    /// Answers the next query that has ended.
    fn settle(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<(ConnId, Fate)> {
        while let Some(place) = self.unseen.checked_sub(1) {
            self.unseen = place;
            let conn = self.owed[place];
            let Some(caller) = self.table.get(conn) else {
                self.owed.swap_remove(place);
                continue;
            };
            let moment = Moment { at: now, unix: clock::unix() };
            let Some(course) = self.http.settle(caller, moment, out) else { continue };
            // Another query may have followed this one.
            let is_over = caller.is_closed && !caller.is_owed();
            let held = caller.held_bytes();
            if caller.is_owed() {
                self.last_query = moment.at;
            } else {
                self.owed.swap_remove(place);
            }
            return Some((
                conn,
                match self.hold(conn, course, held) {
                    Fate::GoesOn { .. } if is_over => Fate::Ends,
                    fate => fate,
                },
            ));
        }
        None
    }

    /// Gives the next reply whose time has come.
    fn release(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<(ConnId, Fate)> {
        while self.held.peek().is_some_and(|Reverse(waiting)| waiting.due <= now) {
            let Reverse(Waiting { conn, bytes, ends, .. }) = self.held.pop()?;
            // A client that went away gets no reply.
            let Some(caller) = self.table.get(conn) else { continue };
            out.extend_from_slice(&bytes);
            let held = caller.held_bytes();
            return Some((conn, if ends { Fate::Ends } else { Fate::GoesOn { held } }));
        }
        None
    }
}

impl Protocol for Setup {
    type Handler = Connections;
    type Report = IngestCounts;

    fn handler(self: &Arc<Self>) -> Connections {
        Connections {
            table: Table::default(),
            http: HttpHandler::new(Arc::clone(self)),
            held: BinaryHeap::new(),
            owed: Vec::new(),
            unseen: 0,
            last_query: Nanos::ZERO,
            number: 0,
        }
    }

    fn report(handler: Connections, counts: LoopCounts) -> IngestCounts {
        let mut report = handler.http.finish();
        report.connections += counts.accepted.iter().sum::<u64>();
        report.violations += counts.unread;
        report.over_memory += counts.over_memory;
        report
    }
}
