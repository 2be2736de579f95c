//! Completion of served requests: a request that is due becomes a reply, a fault or nothing.

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Close};
use plimsoll_wire::http2::{ErrorCode, Payload};

use super::backlog::{UNSENT_BYTES, is_in_pieces};
use super::connection::{Connection, Protocol};
use super::encoded_reply::{Answer, Room};
use super::event_queue::PendingReply;
use super::law::Intent;
use super::reply::Forms;
use super::truth::{Action, RequestId, TruthRow};
use super::worker::Worker;

/// The result of sending a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Whole,
    /// Number of bytes of its body that were sent; the rest follows.
    Part(usize),
    /// The stream that it belongs to is gone.
    Nothing,
}

impl<B: Backend> Worker<B> {
    /// Ends one request that was served, or sends another piece of its reply.
    pub(super) fn settle(&mut self, due: PendingReply) {
        let conn = due.arrival.conn;
        if let Some(connection) = self.table.get(conn)
            && due.arrival.to.stream == 0
            && !connection.backlog.is_empty()
        {
            return connection.backlog.wait_behind(due);
        }
        match self.conclude(due) {
            true => self.advance(conn),
            false => self.part(conn),
        }
    }

    /// Ends one request that was served, or sends another piece of its reply, without parting from the
    /// client. Returns `true` if the reply, or the rest of it, is in the backlog of its connection: then call
    /// [`advance`](Self::advance).
    pub(super) fn conclude(&mut self, due: PendingReply) -> bool {
        let Some(connection) = self.table.get(due.arrival.conn) else {
            self.log(due, Action::Abandoned);
            return false;
        };
        connection.state.outstanding -= 1;
        if connection.state.mute || !connection.is_owed(due.arrival.to.stream) {
            self.log(due, Action::Abandoned);
            return false;
        }
        if matches!(connection.protocol, Protocol::Upgraded(_)) {
            self.conclude_websocket(due);
            return false;
        }
        if due.sent > 0 && due.at >= due.arrival.deadline {
            // The head and a part of the messages are on their way.
            self.reset(due);
            return false;
        }
        match (due.intent, &connection.protocol) {
            (Intent::Reply | Intent::Status(_) | Intent::Reject | Intent::Garbage, _) => {
                return self.reply(due);
            }
            (Intent::Drop, Protocol::Http2(_)) => self.log(due, Action::Dropped),
            (Intent::Drop, _) => {
                connection.state.mute = true;
                self.log(due, Action::Dropped);
            }
            (Intent::Reset | Intent::Refuse, Protocol::Http2(_)) => self.reset(due),
            (Intent::Reset | Intent::Refuse, _) => {
                connection.state.mute = true;
                connection.state.deaf = true;
                self.writer.close(&mut connection.channel, Close::Reset);
                self.log(due, Action::Reset);
            }
        }
        false
    }

    /// Resets a stream of HTTP/2.
    fn reset(&mut self, due: PendingReply) {
        let (code, action) = match due.intent {
            Intent::Refuse => (ErrorCode::RefusedStream, Action::Refused),
            Intent::Reply => (ErrorCode::Cancel, Action::Reset),
            _ => (ErrorCode::InternalError, Action::Reset),
        };
        if let Some(connection) = self.table.get(due.arrival.conn)
            && let Protocol::Http2(server) = &mut connection.protocol
        {
            self.handler.out.clear();
            server.reset(due.arrival.to.stream, code, &mut self.handler.out);
            self.writer.transmit(&mut connection.channel, &self.handler.out);
        }
        self.log(due, action);
    }

    /// Answers a request. True if the reply is in the backlog.
    fn reply(&mut self, due: PendingReply) -> bool {
        let work = self.setup.options.work;
        if work > Nanos::ZERO {
            let done = self.writer.backend.now() + work;
            while self.writer.backend.now() < done {}
        }
        let Some(connection) = self.table.get(due.arrival.conn) else { return false };
        let forms = &self.setup.forms;
        let seed = self.setup.options.seed;
        let (answer, action) = self.service.answer(forms, &due, seed, self.handler.thread);
        if forms.slow.is_none() && is_in_pieces(connection, &answer, due.arrival.to.head_only) {
            connection.state.outstanding += 1;
            connection.backlog.begin(due);
            return true;
        }
        let out = &mut self.handler.out;
        out.clear();
        let mut apart = None;
        let sent = match forms.slow {
            // In HTTP/2, other streams keep their own pace, so this one may fall behind its own.
            Some(_) if is_clogged(connection, &due, self.writer.backend.unsent(connection.channel.id)) => {
                Sent::Part(due.sent)
            }
            Some(slow) => send_piece(connection, &answer, forms, &due, slow.bytes, out),
            None => match &mut connection.protocol {
                Protocol::Http2(server) => {
                    let to = due.arrival.to;
                    match answer.write_http2(server, to.stream, to.head_only, &forms.book, out) {
                        true => Sent::Whole,
                        false => Sent::Nothing,
                    }
                }
                Protocol::Open(_) | Protocol::Http1(_) | Protocol::Upgraded(_) => {
                    apart = answer.write(due.arrival.to.head_only, due.arrival.to.persistence, out);
                    Sent::Whole
                }
            },
        };
        self.writer.transmit(&mut connection.channel, out);
        if let Some(body) = apart {
            self.writer.transmit_body(&mut connection.channel, body);
        }
        if let (Sent::Part(sent), Some(slow)) = (sent, forms.slow) {
            connection.state.outstanding += 1;
            let at = due.at + slow.every;
            self.queue.put_back(due, at, sent);
            return false;
        }
        let status = answer.form.status;
        self.finish(due, action, status, sent);
        false
    }

    /// Counts and logs a request whose reply has been transmitted, or has nowhere to go.
    pub(super) fn finish(&mut self, due: PendingReply, action: Action, status: u16, sent: Sent) {
        if sent == Sent::Nothing {
            return self.log(due, Action::Abandoned);
        }
        self.writer.replies += 1;
        self.tally.count(action);
        if self.sheet.is_on()
            && let Some(connection) = self.table.get(due.arrival.conn)
        {
            let row = TruthRow { status: Some(status), ..row(due, action) };
            self.rows.push((self.writer.mark(&mut connection.channel), row));
        }
    }

    /// Counts and logs a request that got no reply.
    pub(super) fn log(&mut self, due: PendingReply, action: Action) {
        self.tally.count(action);
        if self.sheet.is_on() {
            self.sheet.push(row(due, action));
        }
    }
}

/// Returns `true` if a piece of a slow body has to wait on HTTP/2 for the ones before it.
fn is_clogged(connection: &Connection, due: &PendingReply, unsent: usize) -> bool {
    due.arrival.to.stream != 0 && (unsent >= UNSENT_BYTES || connection.is_held(due.arrival.to.stream))
}

/// Appends the next `bytes` of the body of a reply that is sent in pieces to `out`, and before the first
/// of them its head.
pub(super) fn send_piece(
    connection: &mut Connection,
    answer: &Answer<'_>,
    forms: &Forms,
    due: &PendingReply,
    bytes: usize,
    out: &mut Vec<u8>,
) -> Sent {
    let (to, mut room) = (due.arrival.to, Room::default());
    let body = answer.body(to.head_only, &mut room);
    let begin = due.sent.min(body.len());
    let end = answer.piece_end(body, begin, bytes);
    let (piece, is_last) = (&body[begin..end], end == body.len());
    let written = match &mut connection.protocol {
        Protocol::Http2(server) => {
            let head = |indexing: &mut _, out: &mut _| answer.write_block(&forms.book, indexing, out);
            match (begin, is_last) {
                (0, true) => answer.write_http2(server, to.stream, to.head_only, &forms.book, out),
                (0, false) => {
                    server.reply_head(to.stream, head, out)
                        && server.data(to.stream, Payload::Bytes(piece), false, out)
                }
                _ => match answer.trailers() {
                    Some(trailers) if is_last => {
                        server.data(to.stream, Payload::Bytes(piece), false, out)
                            && server.trailers(to.stream, trailers, out)
                    }
                    _ => server.data(to.stream, Payload::Bytes(piece), is_last, out),
                },
            }
        }
        Protocol::Open(_) | Protocol::Http1(_) | Protocol::Upgraded(_) => {
            if begin == 0 {
                answer.write_head(to.persistence, out);
            }
            out.extend_from_slice(piece);
            true
        }
    };
    match (written, is_last) {
        (false, _) => Sent::Nothing,
        (true, true) => Sent::Whole,
        (true, false) => Sent::Part(end),
    }
}

/// The row of a request without a reply time.
fn row(due: PendingReply, action: Action) -> TruthRow {
    let id = RequestId::new(due.arrival.id.as_deref(), due.number);
    TruthRow { id, number: due.number, recv: due.arrival.at, reply: None, action, status: None }
}
