//! Large bodies that would have to be copied: they are sent in pieces, so that a client that asks for many of
//! them, or reads slowly, does not fill the memory.
//!
//! Bodies are copied into the frames of HTTP/2 and the records of TLS. The bytes of a connection that the
//! kernel has not taken are bounded by [`UNSENT_BYTES`], those that HTTP/2's windows hold back by one
//! [`PIECE_BYTES`] of each stream.

use std::collections::VecDeque;

use plimsoll_driver::{Backend, ConnId};

use super::completion::{Sent, send_piece};
use super::connection::{Connection, Protocol};
use super::encoded_reply::Answer;
use super::event_queue::PendingReply;
use super::truth::Action;
use super::worker::Worker;
use crate::server::event_loop::EventLoop;

/// While this much of a connection is not sent, no further piece follows.
pub(crate) const UNSENT_BYTES: usize = 1 << 20;
/// A piece, unless a window lets less of it go: a frame of HTTP/2.
pub(crate) const PIECE_BYTES: usize = 16 * 1024;
/// The streams of a connection take turns of this many pieces. The copies that one takes to the kernel are
/// large enough then for its calls not to matter.
const TURN_PIECES: usize = 4;
/// Connections that go on in one pass: bounds how long reading waits behind their copies.
const PASS_CONNECTIONS: usize = 8;

/// Replies of one connection whose bodies are being sent in pieces, and those behind them.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Begun, or about to: in the order of their turns.
    begun: VecDeque<PendingReply>,
    /// On HTTP/1.1: the replies that follow the one that is begun.
    behind: VecDeque<PendingReply>,
}

impl Backlog {
    /// Returns `true` if nothing is being sent in pieces.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.behind.is_empty()
    }

    /// Adds a reply that may begin.
    pub(crate) fn begin(&mut self, due: PendingReply) {
        self.begun.push_back(due);
    }

    /// Adds a reply that has to follow the one that is begun.
    pub(crate) fn wait_behind(&mut self, due: PendingReply) {
        self.behind.push_back(due);
    }

    /// Everything in it.
    pub(crate) fn into_dues(self) -> impl Iterator<Item = PendingReply> {
        self.begun.into_iter().chain(self.behind)
    }
}

/// Returns `true` if the body of this answer is sent in pieces to this client.
pub(crate) fn is_in_pieces(connection: &Connection, answer: &Answer<'_>, head_only: bool) -> bool {
    let copied = connection.channel.tls.is_some() || matches!(connection.protocol, Protocol::Http2(_));
    copied && !answer.form.is_inline() && answer.form.sent_body(head_only) > 0
}

impl<B: Backend> Worker<B> {
    /// Sends the replies of a connection's backlog that may go, and closes the connection if they were the
    /// last.
    pub(super) fn advance(&mut self, conn: ConnId) {
        // Streams in a row that wait for their windows.
        let mut held = 0;
        while let Some(connection) = self.table.get(conn) {
            let Some(due) = connection.backlog.begun.pop_front() else {
                let Some(due) = connection.backlog.behind.pop_front() else { break };
                self.conclude(due);
                continue;
            };
            let stream = due.arrival.to.stream;
            let waits = connection.is_held(stream);
            // A client that sends nothing more does not open windows either.
            let hopeless = connection.state.mute || (waits && connection.state.deaf);
            if hopeless || !connection.is_owed(stream) {
                connection.state.outstanding -= 1;
                self.log(due, Action::Abandoned);
            } else if waits {
                connection.backlog.begun.push_back(due);
                held += 1;
                if held == connection.backlog.begun.len() {
                    // A WINDOW_UPDATE of the client continues it.
                    break;
                }
                continue;
            } else if self.writer.backend.unsent(conn) >= UNSENT_BYTES {
                connection.backlog.begun.push_front(due);
                if !std::mem::replace(&mut connection.state.stalled, true) {
                    self.stalled.push(conn);
                }
                break;
            } else {
                self.take_turn(due);
            }
            held = 0;
        }
        self.part(conn);
    }

    /// Sends the next pieces of a body.
    fn take_turn(&mut self, mut due: PendingReply) {
        let Some(connection) = self.table.get(due.arrival.conn) else { return };
        // A service that answers differently from time to time has no large bodies.
        let (answer, action) =
            self.setup.forms.decided(due.intent, &due.arrival.ask, due.number, self.handler.thread);
        let out = &mut self.handler.out;
        out.clear();
        let mut sent = Sent::Nothing;
        for _ in 0..TURN_PIECES {
            sent = send_piece(connection, &answer, &self.setup.forms, &due, PIECE_BYTES, out);
            match sent {
                Sent::Part(bytes) => due.sent = bytes,
                Sent::Whole | Sent::Nothing => break,
            }
            if connection.is_held(due.arrival.to.stream) {
                break;
            }
        }
        self.writer.transmit(&mut connection.channel, out);
        if let Sent::Part(_) = sent {
            return connection.backlog.begun.push_back(due);
        }
        connection.state.outstanding -= 1;
        let status = answer.form.status;
        self.finish(due, action, status, sent);
    }

    /// Goes on with the connections of which the kernel has taken enough.
    pub(super) fn recall(&mut self) {
        let Some(now) = self.stalled.due(&self.writer.backend) else { return };
        let mut moved = 0;
        for _ in 0..self.stalled.len() {
            if moved == PASS_CONNECTIONS {
                break;
            }
            let Some(conn) = self.stalled.pop() else { break };
            let Some(connection) = self.table.get(conn) else { continue };
            if self.writer.backend.unsent(conn) >= UNSENT_BYTES {
                self.stalled.push(conn);
                continue;
            }
            connection.state.stalled = false;
            moved += 1;
            self.advance(conn);
            self.flush();
        }
        self.stalled.pause(now, moved > 0);
    }
}

#[cfg(test)]
mod tests;
