//! The loop of one thread of the sink.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Chunk, Close, ConnId, ListenerId};
use plimsoll_system::clock;
use plimsoll_wire::tls::Session;

use super::connection::{CloseMode, Connection, Protocol};
use super::event_queue::{EventQueue, PendingReply};
use super::freeze::Freezes;
use super::reply::write_refusal;
use super::request_handler::{CONTINUE, RequestHandler};
use super::service::ThreadState;
use super::setup::{Setup, Tally};
use super::truth::{Action, TruthRow};
use crate::server::draining::Draining;
use crate::server::event_loop::{EventLoop, FLUSH_REPLIES, LoopBounds, STOP_POLL};
use crate::server::output::Output;
use crate::table::Table;
use crate::truth_log::{FinishedSheet, Sheet};

/// Events of one pass: bounds how long due replies wait behind reading.
const PASS_EVENTS: u32 = 256;
/// A client that leaves more than this many bytes unread is cut off, lest it fill the memory...
const UNREAD_BYTES: usize = 64 << 20;
/// ...and on HTTP/1.1 on top of it this many replies, for large bodies are not copied there, or are sent in
/// pieces.
const UNREAD_REPLIES: usize = 256;

/// One thread of a sink.
#[derive(Debug)]
pub(crate) struct Worker<B> {
    pub(super) setup: Arc<Setup>,
    bounds: LoopBounds,
    pub(super) writer: Output<B>,
    /// Rows that get their reply time by the next flush, each with the place of its connection in it.
    pub(super) rows: Vec<(u32, TruthRow)>,
    listener: ListenerId,
    pub(super) table: Table<Connection>,
    pub(super) handler: RequestHandler,
    pub(super) queue: EventQueue,
    pub(super) stalled: Draining,
    freezes: Freezes,
    /// Replies that are due, and are prepared together.
    gathered: Vec<PendingReply>,
    pub(super) service: ThreadState,
    pub(super) sheet: Sheet<TruthRow>,
    pub(super) tally: Tally,
    /// Decrypted bytes of the connection that is being read.
    plain: Vec<u8>,
}

impl<B: Backend> Worker<B> {
    /// A thread that listens already and counts its time from `start`.
    pub(crate) fn new(
        setup: Arc<Setup>,
        backend: B,
        listener: ListenerId,
        sheet: Sheet<TruthRow>,
        start: Nanos,
        thread: u32,
    ) -> Self {
        let options = &setup.options;
        Self {
            bounds: LoopBounds::new(setup.stopper.clone(), start, options.duration, PASS_EVENTS),
            writer: Output::new(backend),
            rows: Vec::new(),
            listener,
            table: Table::default(),
            handler: RequestHandler::new(Arc::clone(&setup), thread, sheet.is_on()),
            queue: EventQueue::new(Arc::clone(&setup)),
            stalled: Draining::default(),
            freezes: Freezes::new(&options.freezes, start),
            gathered: Vec::new(),
            service: ThreadState::default(),
            sheet,
            tally: Tally::default(),
            plain: Vec::new(),
            setup,
        }
    }

    /// Serves until the sink is stopped or its time is over.
    pub(crate) fn serve(mut self) -> (Tally, FinishedSheet<TruthRow>) {
        self.run();
        self.leave()
    }

    /// Cuts a client off.
    pub(super) fn refuse_to_go_on(&mut self, conn: ConnId) {
        let Some(connection) = self.table.get(conn) else { return };
        if std::mem::replace(&mut connection.state.deaf, true) && connection.state.mute {
            return;
        }
        connection.state.mute = true;
        self.tally.refused += 1;
        self.writer.close(&mut connection.channel, Close::Reset);
    }

    /// Numbers the requests that were read and puts them on the queue.
    fn admit(&mut self) {
        if self.handler.arrivals.is_empty() {
            return;
        }
        let mut arrivals = std::mem::take(&mut self.handler.arrivals);
        if self.queue.is_one_queue() {
            // A pass visits the connections in any order; the queue takes requests by their arrival. The sort
            // is stable: the requests of one segment stay in order.
            arrivals.sort_by_key(|arrival| arrival.at);
        }
        for arrival in arrivals.drain(..) {
            let state = self.table.get(arrival.conn).map(|connection| &mut connection.state);
            self.queue.admit(arrival, self.setup.count(), state);
        }
        // Given back for its memory.
        self.handler.arrivals = arrivals;
    }

    /// Carries out the actions that are due. Returns `true` if it was cut short.
    fn settle_due(&mut self) -> bool {
        if self.queue.next() == Nanos::MAX {
            return false;
        }
        let now = self.writer.backend.now();
        let works = self.setup.options.work > Nanos::ZERO;
        let gathers = self.setup.forms.table.gathers();
        while let Some(due) = self.queue.pop(now) {
            if gathers {
                self.gathered.push(due);
                continue;
            }
            self.settle(due);
            // Replies that are worked for become ready one by one, so they are also sent one by one.
            if works || self.writer.replies >= FLUSH_REPLIES {
                self.flush();
            }
            if works && self.writer.backend.now() - now >= STOP_POLL {
                return true;
            }
        }
        false
    }

    /// Prepares the gathered requests together, and answers them.
    fn settle_gathered(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        let setup = &self.setup;
        self.service.prepare(&setup.forms.table, &gathered, setup.options.seed);
        for due in gathered.drain(..) {
            self.settle(due);
            if self.writer.replies >= FLUSH_REPLIES {
                self.flush();
            }
        }
        // Given back for its memory.
        self.gathered = gathered;
    }

    /// Sends the output that had to wait for the last outstanding reply, and closes the connection if it is
    /// time.
    pub(super) fn part(&mut self, conn: ConnId) {
        let Some(connection) = self.table.get(conn) else { return };
        if connection.state.farewell == Some(CloseMode::Broken) {
            connection.state.farewell = None;
            return self.writer.close(&mut connection.channel, Close::AfterSend);
        }
        if connection.state.mute {
            // A dropped reply must look like one that takes for ever, so only the client may end this
            // connection.
            if connection.state.peer_closed {
                self.writer.close(&mut connection.channel, Close::Now);
            }
            return;
        }
        if !connection.is_settled() {
            return;
        }
        if std::mem::take(&mut connection.state.continue_owed) {
            self.writer.transmit(&mut connection.channel, CONTINUE);
            return;
        }
        if let Some(farewell) = connection.state.farewell.take() {
            if farewell == CloseMode::Refuse {
                self.handler.out.clear();
                write_refusal(&mut self.handler.out);
                self.writer.transmit(&mut connection.channel, &self.handler.out);
            }
            connection.state.deaf = true;
            self.writer.close(&mut connection.channel, Close::AfterSend);
        }
    }

    /// Hands everything to the kernel and completes the rows of what was sent.
    fn send(&mut self) {
        let Some(sends) = self.writer.flush() else { return };
        for (place, row) in self.rows.drain(..) {
            self.sheet.push(TruthRow { reply: Some(sends.at(place)), ..row });
        }
    }

    fn leave(mut self) -> (Tally, FinishedSheet<TruthRow>) {
        while let Some(due) = self.queue.pop(Nanos::MAX) {
            self.log(due, Action::Abandoned);
        }
        self.send();
        self.writer.backend.close_listener(self.listener);
        for id in self.table.ids() {
            self.writer.backend.close(id, Close::AfterSend);
            self.forget(id);
        }
        (self.tally, self.sheet.finish())
    }
}

impl<B: Backend> EventLoop for Worker<B> {
    type Backend = B;

    fn output(&mut self) -> &mut Output<B> {
        &mut self.writer
    }

    fn bounds(&self) -> &LoopBounds {
        &self.bounds
    }

    fn accepted(&mut self, _listener: ListenerId, conn: ConnId) {
        let tls = match self.setup.options.tls.as_ref().map(Session::server).transpose() {
            Ok(session) => session.map(Box::new),
            Err(_) => {
                self.tally.refused += 1;
                return self.writer.backend.close(conn, Close::Now);
            }
        };
        self.tally.connections += 1;
        self.table.insert(conn, Connection::new(conn, tls));
    }

    fn received(&mut self, conn: ConnId, at: Nanos, data: Chunk) {
        let Some(connection) = self.table.get(conn) else { return };
        if connection.state.deaf {
            return;
        }
        if unread(&self.writer.backend, connection) > unread_limit(&self.setup, connection) {
            return self.refuse_to_go_on(conn);
        }
        self.handler.clear();
        let bytes = self.writer.backend.bytes(data);
        let mut over = false;
        match &mut connection.channel.tls {
            None => self.handler.read(connection, at, bytes, &mut self.tally),
            Some(session) => {
                self.plain.clear();
                match session.receive(bytes, &mut self.plain) {
                    Ok(received) => {
                        over = received.closed;
                        if received.handshake_done_now {
                            self.handler.negotiated(
                                &mut connection.protocol,
                                session.alpn(),
                                &mut self.tally,
                            );
                        }
                        self.handler.read(connection, at, &self.plain, &mut self.tally);
                    }
                    Err(_) => {
                        // Only the alert remains to be sent.
                        connection.state.deaf = true;
                        connection.state.farewell = Some(CloseMode::Silent);
                        self.tally.refused += 1;
                    }
                }
            }
        }
        self.writer.transmit(&mut connection.channel, &self.handler.out);
        self.writer.replies += self.handler.answered;
        self.tally.replied += u64::from(self.handler.answered);
        for row in self.handler.rows.drain(..) {
            match row.action {
                Action::Replied => self.rows.push((self.writer.mark(&mut connection.channel), row)),
                _ => self.sheet.push(row),
            }
        }
        if !connection.backlog.is_empty() {
            // The client may have opened windows, or given streams up.
            self.advance(conn);
        } else if connection.state.farewell.is_some() {
            self.part(conn);
        }
        if over {
            self.closed(conn);
        }
    }

    /// The client sends nothing more, but may still wait for its replies.
    fn closed(&mut self, conn: ConnId) {
        if let Some(connection) = self.table.get(conn) {
            connection.state.deaf = true;
            connection.state.peer_closed = true;
            connection.state.continue_owed = false;
            connection.state.farewell.get_or_insert(CloseMode::Silent);
            self.advance(conn);
        }
    }

    /// Forgets a connection that is gone, except for its counts.
    fn forget(&mut self, conn: ConnId) {
        let Some(mut gone) = self.table.remove(conn) else { return };
        self.tally.cancelled += gone.protocol.cancelled();
        gone.backlog.into_dues().for_each(|due| self.log(due, Action::Abandoned));
    }

    fn next_due(&mut self, _now: Nanos) -> Nanos {
        self.queue.next().min(self.stalled.next()).min(self.freezes.next())
    }

    fn release(&mut self) -> bool {
        self.admit();
        let is_cut_short = self.settle_due();
        self.settle_gathered();
        self.recall();
        is_cut_short
    }

    fn flush(&mut self) {
        if !self.writer.is_waiting() {
            return;
        }
        if self.freezes.next() != Nanos::MAX {
            let now = self.writer.backend.now();
            self.stand_still(now);
        }
        self.send();
        // Mostly empty, which takes no memory.
        let closed: Vec<_> = self.writer.close_all().collect();
        closed.into_iter().for_each(|id| self.forget(id));
    }

    /// Reads or writes nothing until the freeze that `now` lies in is over.
    fn stand_still(&mut self, now: Nanos) -> bool {
        let mut now = now;
        let mut stood = false;
        while let Some(end) = self.freezes.until(now) {
            if self.bounds.is_over(now) {
                return true;
            }
            stood = true;
            // The wait of the backend would go on reading and writing.
            clock::sleep_until(end.min(now + STOP_POLL).min(self.bounds.ends_at));
            now = self.writer.backend.now();
        }
        stood
    }
}

/// Bytes that a client has left unread. Those that windows of HTTP/2 hold back have a bound of their own,
/// except for messages of WebSockets.
pub(super) fn unread<B: Backend>(backend: &B, connection: &Connection) -> usize {
    let held = match &connection.protocol {
        Protocol::Upgraded(server) => server.held_bytes(),
        Protocol::Open(_) | Protocol::Http1(_) | Protocol::Http2(_) => 0,
    };
    backend.unsent(connection.channel.id) + held
}

/// Bytes that a client may leave unread.
pub(super) fn unread_limit(setup: &Setup, connection: &Connection) -> usize {
    match connection.protocol {
        Protocol::Http2(_) => UNREAD_BYTES,
        Protocol::Open(_) | Protocol::Http1(_) | Protocol::Upgraded(_) => {
            UNREAD_BYTES.saturating_add(UNREAD_REPLIES.saturating_mul(setup.forms.table.largest().len()))
        }
    }
}
