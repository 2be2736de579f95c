//! Replies that are held back for a time.

use std::collections::VecDeque;

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;

use super::{Fate, Handler, Outgoing};
use crate::table::Table;

/// A handler whose replies to requests leave a constant time after they were written.
pub(super) struct Delayed<'h> {
    handler: &'h mut dyn Handler,
    delay: Nanos,
    table: Table<Connection>,
    /// Replies in the order in which they are due.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug, Default)]
struct Connection {
    /// Replies that wait.
    waiting: u32,
    /// Set once the handler has ended it, or the client has sent everything: it ends with its last reply.
    is_over: bool,
}

/// Replies to the requests that were read at once.
struct Waiting {
    due: Nanos,
    conn: ConnId,
    out: Outgoing,
    /// Course of the connection after them.
    fate: Fate,
}

impl<'h> Delayed<'h> {
    pub(super) fn new(handler: &'h mut dyn Handler, delay: Nanos) -> Self {
        Self { handler, delay, table: Table::default(), waiting: VecDeque::new() }
    }
}

impl Handler for Delayed<'_> {
    fn accepted(&mut self, conn: ConnId, listener: usize) {
        self.table.insert(conn, Connection::default());
        self.handler.accepted(conn, listener);
    }

    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate {
        let Some(connection) = self.table.get(conn) else { return Fate::Reset };
        if connection.is_over {
            return Fate::GoesOn { held: 0 };
        }
        // What was counted for the flush is of other connections.
        let counted = std::mem::take(&mut out.replies);
        let fate = self.handler.received(conn, at, bytes, out);
        let written = std::mem::replace(out, Outgoing { replies: counted, ..Outgoing::default() });
        let goes_on = matches!(fate, Fate::GoesOn { .. });
        if written.is_empty() && (goes_on || connection.waiting == 0) {
            return fate;
        }
        connection.waiting += 1;
        connection.is_over = !goes_on;
        self.waiting.push_back(Waiting { due: at + self.delay, conn, out: written, fate });
        if goes_on { fate } else { Fate::GoesOn { held: 0 } }
    }

    fn closed(&mut self, conn: ConnId) -> bool {
        let goes_on = self.handler.closed(conn);
        let Some(connection) = self.table.get(conn) else { return goes_on };
        connection.is_over |= !goes_on;
        goes_on || connection.waiting > 0
    }

    fn over_memory(&mut self, conn: ConnId, most: u64, out: &mut Outgoing) {
        self.handler.over_memory(conn, most, out);
    }

    fn gone(&mut self, conn: ConnId) {
        self.table.remove(conn);
        self.handler.gone(conn);
    }

    fn next_due(&self, now: Nanos) -> Nanos {
        let first = self.waiting.front().map_or(Nanos::MAX, |waiting| waiting.due);
        first.min(self.handler.next_due(now))
    }

    fn due(&mut self, now: Nanos, out: &mut Outgoing) -> Option<(ConnId, Fate)> {
        while self.waiting.front().is_some_and(|waiting| waiting.due <= now) {
            let Waiting { conn, out: written, fate, .. } = self.waiting.pop_front()?;
            // One that has ended meanwhile is owed nothing.
            let Some(connection) = self.table.get(conn) else { continue };
            connection.waiting -= 1;
            let is_last = connection.is_over && connection.waiting == 0;
            let counted = out.replies;
            *out = written;
            out.replies += counted;
            return Some((conn, if is_last && fate != Fate::Reset { Fate::Ends } else { fate }));
        }
        self.handler.due(now, out)
    }
}
