//! The loop of one thread of the sink.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Chunk, Close, ConnId, Event, ListenerId, Wait, clock};
use plimsoll_wire::tls::Session;

use super::agenda::{Agenda, Due};
use super::connection::{Connection, Farewell, Table};
use super::desk::{CONTINUE, Desk};
use super::freeze::Freezes;
use super::law::Intent;
use super::outlet::Outlet;
use super::setup::{Setup, Tally};
use super::truth::{Action, FinishedSheet, RequestId, Sheet, TruthRow};

/// A stop is noticed within this time.
const STOP_POLL: Nanos = Nanos::from_millis(20);
/// Events of one pass: bounds how long due replies wait behind reading.
const PASS_EVENTS: u32 = 256;
/// Replies of one flush: bounds how long the first of them waits for the last. At 1 µs each the wait is of
/// the order of what a reply takes through the kernel, and the system call of the flush is shared by enough.
const FLUSH_REPLIES: u32 = 64;
/// A client that leaves more than this many bytes unread is cut off, lest it fill the memory...
const UNREAD_BYTES: usize = 64 << 20;
/// ...and on top of it this many replies, for large bodies are not copied.
const UNREAD_REPLIES: usize = 256;

/// One thread of a sink.
#[derive(Debug)]
pub(crate) struct Worker<B> {
    setup: Arc<Setup>,
    outlet: Outlet<B>,
    listener: ListenerId,
    table: Table,
    desk: Desk,
    agenda: Agenda,
    freezes: Freezes,
    sheet: Sheet,
    tally: Tally,
    /// Decrypted bytes of the connection that is being read.
    plain: Vec<u8>,
    ends_at: Nanos,
    /// Bytes that a client may leave unread.
    unread_limit: usize,
    /// The last pass was cut short: there may be more to read without waiting.
    cut_short: bool,
}

impl<B: Backend> Worker<B> {
    /// A thread that listens already and counts its time from `start`.
    pub(crate) fn new(
        setup: Arc<Setup>,
        backend: B,
        listener: ListenerId,
        sheet: Sheet,
        start: Nanos,
    ) -> Self {
        let options = &setup.options;
        Self {
            outlet: Outlet::new(backend),
            listener,
            table: Table::default(),
            desk: Desk::new(Arc::clone(&setup), sheet.is_on()),
            agenda: Agenda::new(options),
            freezes: Freezes::new(&options.freezes, start),
            sheet,
            tally: Tally::default(),
            plain: Vec::new(),
            ends_at: options.duration.map_or(Nanos::MAX, |duration| start + duration),
            unread_limit: UNREAD_BYTES
                .saturating_add(UNREAD_REPLIES.saturating_mul(setup.forms.usual().len())),
            cut_short: false,
            setup,
        }
    }

    /// Serves until the sink is stopped or its time is over.
    pub(crate) fn run(mut self) -> (Tally, FinishedSheet) {
        loop {
            let now = self.outlet.backend.now();
            if self.setup.is_stopped() || now >= self.ends_at {
                break;
            }
            if self.freezes.next() <= now {
                self.stand_still(now);
                continue;
            }
            let until = if self.cut_short { now } else { self.wake_up_by(now) };
            self.outlet.backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            self.pass();
        }
        self.leave()
    }

    fn wake_up_by(&self, now: Nanos) -> Nanos {
        (now + STOP_POLL).min(self.agenda.next()).min(self.freezes.next()).min(self.ends_at)
    }

    /// Reads or writes nothing until the freeze that `now` lies in is over.
    fn stand_still(&mut self, now: Nanos) {
        let mut now = now;
        while let Some(end) = self.freezes.until(now) {
            if self.setup.is_stopped() || now >= self.ends_at {
                return;
            }
            // Not the backend's wait: that would go on reading and writing.
            clock::sleep_until(end.min(now + STOP_POLL).min(self.ends_at));
            now = self.outlet.backend.now();
        }
    }

    fn pass(&mut self) {
        let mut events = 0;
        self.cut_short = false;
        while let Some(event) = self.outlet.backend.next_event() {
            self.handle(event);
            if self.outlet.replies >= FLUSH_REPLIES {
                self.flush();
            }
            events += 1;
            if events == PASS_EVENTS {
                self.cut_short = true;
                break;
            }
        }
        self.admit();
        self.release();
        self.flush();
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, .. } => self.accept(conn),
            Event::Received { conn, at, data, .. } => self.receive(conn, at, data),
            Event::Closed { conn, .. } => self.peer_closed(conn),
            Event::Failed { conn, .. } => {
                self.outlet.backend.close(conn, Close::Now);
                self.table.remove(conn);
            }
            // The sink connects nowhere.
            Event::Connected { .. } | Event::ConnectFailed { .. } => {}
        }
    }

    fn accept(&mut self, conn: ConnId) {
        let tls = match self.setup.options.tls.as_ref().map(Session::server).transpose() {
            Ok(session) => session.map(Box::new),
            Err(_) => {
                self.tally.refused += 1;
                return self.outlet.backend.close(conn, Close::Now);
            }
        };
        self.tally.connections += 1;
        self.table.insert(Connection::new(conn, tls));
    }

    fn receive(&mut self, conn: ConnId, at: Nanos, data: Chunk) {
        let Some(connection) = self.table.get(conn) else { return };
        if connection.state.deaf {
            return;
        }
        if self.outlet.backend.unsent(conn) > self.unread_limit {
            connection.state.deaf = true;
            connection.state.mute = true;
            self.tally.refused += 1;
            return self.outlet.close(connection, Close::Reset);
        }
        let bytes = self.outlet.backend.bytes(data);
        let mut over = false;
        match &mut connection.tls {
            None => self.desk.read(connection, at, bytes, &mut self.tally),
            Some(session) => {
                self.plain.clear();
                match session.receive(bytes, &mut self.plain) {
                    Ok(received) => {
                        over = received.closed;
                        self.desk.read(connection, at, &self.plain, &mut self.tally);
                    }
                    Err(_) => {
                        // What remains to be sent is the alert.
                        self.desk.clear();
                        connection.state.deaf = true;
                        connection.state.farewell = Some(Farewell::Silent);
                        self.tally.refused += 1;
                    }
                }
            }
        }
        self.outlet.transmit(connection, &self.desk.out);
        self.outlet.replies += self.desk.answered;
        self.tally.replied += u64::from(self.desk.answered);
        for row in self.desk.rows.drain(..) {
            self.outlet.note(&mut connection.state, row);
        }
        if self.setup.options.work > Nanos::ZERO && self.desk.answered > 0 {
            let done = self.outlet.backend.now() + self.setup.options.work * u64::from(self.desk.answered);
            while self.outlet.backend.now() < done {}
            // Ready one by one, so also sent one by one.
            self.outlet.replies = FLUSH_REPLIES;
        }
        if connection.state.deaf {
            self.part(conn);
        }
        if over {
            self.peer_closed(conn);
        }
    }

    /// The client sends nothing more, but may still wait for what it is owed.
    fn peer_closed(&mut self, conn: ConnId) {
        if let Some(connection) = self.table.get(conn) {
            connection.state.deaf = true;
            connection.state.peer_closed = true;
            connection.state.continue_owed = false;
            connection.state.farewell.get_or_insert(Farewell::Silent);
            self.part(conn);
        }
    }

    /// Numbers the requests that were read and puts them on the agenda.
    fn admit(&mut self) {
        if self.desk.arrivals.is_empty() {
            return;
        }
        let mut arrivals = std::mem::take(&mut self.desk.arrivals);
        if self.agenda.is_one_queue() {
            // One pass meets the connections in any order; the queue takes them as they came. The sort is
            // stable: the requests of one segment stay in order.
            arrivals.sort_by_key(|arrival| arrival.at);
        }
        for arrival in arrivals.drain(..) {
            let state = self.table.get(arrival.conn).map(|connection| &mut connection.state);
            self.agenda.admit(arrival, self.setup.count(), state);
        }
        // Given back for its memory.
        self.desk.arrivals = arrivals;
    }

    /// Does what is due.
    fn release(&mut self) {
        if self.agenda.next() == Nanos::MAX {
            return;
        }
        let now = self.outlet.backend.now();
        while let Some(due) = self.agenda.pop(now) {
            self.settle(due);
            if self.outlet.replies >= FLUSH_REPLIES {
                self.flush();
            }
        }
    }

    /// Ends one request that was served.
    fn settle(&mut self, due: Due) {
        let conn = due.arrival.conn;
        let Some(connection) = self.table.get(conn) else { return self.log(due, Action::Abandoned) };
        connection.state.outstanding -= 1;
        if connection.state.mute {
            return self.log(due, Action::Abandoned);
        }
        match due.intent {
            Intent::Reply => self.reply(due, Action::Replied),
            Intent::Status(status) => self.reply(due, Action::Status(status)),
            Intent::Drop => {
                connection.state.mute = true;
                self.log(due, Action::Dropped);
            }
            Intent::Reset => {
                connection.state.mute = true;
                connection.state.deaf = true;
                self.outlet.close(connection, Close::Reset);
                self.log(due, Action::Reset);
            }
        }
        self.part(conn);
    }

    fn reply(&mut self, due: Due, action: Action) {
        let Some(connection) = self.table.get(due.arrival.conn) else { return };
        let form = match action {
            Action::Status(status) => self.setup.forms.fault(status),
            _ => self.setup.forms.usual(),
        };
        self.desk.out.clear();
        let body = form.write(due.number, due.arrival.head_only, due.arrival.persistence, &mut self.desk.out);
        self.outlet.transmit(connection, &self.desk.out);
        if let Some(body) = body {
            self.outlet.transmit_body(connection, body);
        }
        self.outlet.replies += 1;
        self.tally.count(action);
        if self.sheet.is_on() {
            let mut row = row(due, action);
            row.status = Some(form.status);
            self.outlet.note(&mut connection.state, row);
        }
    }

    /// Counts and logs a request that got no reply.
    fn log(&mut self, due: Due, action: Action) {
        self.tally.count(action);
        if self.sheet.is_on() {
            self.sheet.push(row(due, action));
        }
    }

    /// Sends what had to wait for the last outstanding reply, and parts from the client if it is time.
    fn part(&mut self, conn: ConnId) {
        let Some(connection) = self.table.get(conn) else { return };
        let state = &mut connection.state;
        if state.mute {
            // A dropped reply must look like one that takes for ever, so only the client ends this
            // connection.
            if state.peer_closed {
                self.outlet.close(connection, Close::Now);
            }
            return;
        }
        if state.outstanding > 0 {
            return;
        }
        if std::mem::take(&mut state.continue_owed) {
            self.outlet.transmit(connection, CONTINUE);
            return;
        }
        if let Some(farewell) = state.farewell.take() {
            if let Farewell::Refuse(refusal) = farewell {
                self.desk.out.clear();
                refusal.write(&mut self.desk.out);
                self.outlet.transmit(connection, &self.desk.out);
            }
            self.outlet.close(connection, Close::AfterSend);
        }
    }

    fn flush(&mut self) {
        if !self.outlet.is_waiting() {
            return;
        }
        if self.freezes.next() != Nanos::MAX {
            let now = self.outlet.backend.now();
            self.stand_still(now);
        }
        self.outlet.flush(&mut self.sheet);
        for id in self.outlet.close_all() {
            self.table.remove(id);
        }
    }

    fn leave(mut self) -> (Tally, FinishedSheet) {
        while let Some(due) = self.agenda.pop(Nanos::MAX) {
            self.log(due, Action::Abandoned);
        }
        self.outlet.flush(&mut self.sheet);
        self.outlet.backend.close_listener(self.listener);
        for id in self.table.ids() {
            self.outlet.backend.close(id, Close::AfterSend);
        }
        (self.tally, self.sheet.finish())
    }
}

/// The row of a request without a reply time.
fn row(due: Due, action: Action) -> TruthRow {
    let id = RequestId::new(due.arrival.id.as_deref(), due.number);
    TruthRow { id, number: due.number, recv: due.arrival.at, reply: None, action, status: None }
}
