//! The connections of one thread: replies at once, at their time, or when a query has ended.

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
    /// Connections that wait for the result of a query,
    owed: Vec<ConnId>,
    /// the first of them that have not been looked at in this pass,
    unseen: usize,
    /// and when the last of those queries came.
    last_query: Nanos,
}

impl Handler for Connections {
    fn accepted(&mut self, conn: ConnId, _listener: usize) {
        self.table.insert(conn, Caller::default());
    }

    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate {
        let Some(caller) = self.table.get(conn) else { return Fate::Ends };
        let moment = Moment { at, unix: clock::unix() };
        let was_owed = caller.is_owed();
        let course = self.http.read(caller, moment, bytes, out);
        let fate = fate(course, caller);
        if caller.is_owed() && !was_owed {
            self.owed.push(conn);
            self.unseen = self.owed.len();
            self.last_query = moment.at;
        }
        fate
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
        if self.owed.is_empty() {
            return Nanos::MAX;
        }
        let [least, most] = ASK_AGAIN;
        now + Nanos(now.since(self.last_query).0 / ASK_AGAIN_SHARE).clamp(least, most)
    }

    fn due(&mut self, now: Nanos, out: &mut Outgoing) -> Option<(ConnId, Fate)> {
        let due = self.settle(now, out);
        if due.is_none() {
            self.unseen = self.owed.len();
        }
        due
    }
}

impl Connections {
    /// Answers the next query that has ended.
    fn settle(&mut self, now: Nanos, out: &mut Outgoing) -> Option<(ConnId, Fate)> {
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
            if caller.is_owed() {
                self.last_query = moment.at;
            } else {
                self.owed.swap_remove(place);
            }
            return Some((conn, if is_over { Fate::Ends } else { fate(course, caller) }));
        }
        None
    }
}

/// Course of a connection, for the loop.
fn fate(course: ConnectionFate, caller: &Caller) -> Fate {
    match course {
        ConnectionFate::GoesOn => Fate::GoesOn { held: caller.held_bytes() },
        ConnectionFate::Ends => Fate::Ends,
        ConnectionFate::Reset => Fate::Reset,
    }
}

impl Protocol for Setup {
    type Handler = Connections;
    type Report = IngestCounts;

    fn handler(self: &Arc<Self>) -> Connections {
        Connections {
            table: Table::default(),
            http: HttpHandler::new(Arc::clone(self)),
            owed: Vec::new(),
            unseen: 0,
            last_query: Nanos::ZERO,
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
