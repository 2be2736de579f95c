//! Output of a thread of the sink: replies, their times of sending, and closes.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Close, ConnId, Flush};

use super::connection::{Connection, State};
use super::truth::{Sheet, TruthRow};

/// Writes to the connections of one backend and knows the bytes that wait for the next flush.
#[derive(Debug)]
pub(crate) struct ReplyWriter<B> {
    pub(crate) backend: B,
    /// Number of the next flush, from 1, so that the mark of a new connection is never that of a flush.
    flush_number: u64,
    /// Connections written to since the last flush.
    sends: u32,
    /// Replies written since the last flush.
    pub(crate) replies: u32,
    /// Rows that get their reply time by the next flush, each with the place of its connection in that flush.
    rows: Vec<(u32, TruthRow)>,
    /// Connections to be closed once the next flush is done.
    closings: Vec<(ConnId, Close)>,
    cipher: Vec<u8>,
}

impl<B: Backend> ReplyWriter<B> {
    pub(crate) const fn new(backend: B) -> Self {
        Self {
            backend,
            flush_number: 1,
            sends: 0,
            replies: 0,
            rows: Vec::new(),
            closings: Vec::new(),
            cipher: Vec::new(),
        }
    }

    /// Queues `plain`, and with TLS also the session's own output.
    #[inline]
    pub(crate) fn transmit(&mut self, connection: &mut Connection, plain: &[u8]) {
        let Connection { id, tls, state, .. } = connection;
        let bytes = match tls {
            None => plain,
            Some(session) => {
                self.cipher.clear();
                session.transmit(&mut self.cipher);
                if !plain.is_empty() {
                    session.send(plain, &mut self.cipher);
                }
                self.cipher.as_slice()
            }
        };
        if !bytes.is_empty() {
            self.backend.outbox(*id).extend_from_slice(bytes);
            self.mark(state);
        }
    }

    /// Queues a large body behind the transmitted bytes.
    pub(crate) fn transmit_body(&mut self, connection: &mut Connection, body: &Arc<[u8]>) {
        if connection.tls.is_some() {
            return self.transmit(connection, body);
        }
        self.backend.send_shared(connection.id, Arc::clone(body));
        self.mark(&mut connection.state);
    }

    /// Notes that a reply was queued whose row still lacks its reply time.
    pub(crate) fn note(&mut self, state: &mut State, row: TruthRow) {
        let place = self.mark(state);
        self.rows.push((place, row));
    }

    /// Closes `connection` after the next flush.
    pub(crate) fn close(&mut self, connection: &mut Connection, how: Close) {
        if let (Close::AfterSend, Some(session)) = (how, &mut connection.tls) {
            self.cipher.clear();
            session.close_notify(&mut self.cipher);
            self.backend.outbox(connection.id).extend_from_slice(&self.cipher);
            self.mark(&mut connection.state);
        }
        self.closings.push((connection.id, how));
    }

    /// Returns `true` if there is anything to flush or to close.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.sends > 0 || !self.closings.is_empty()
    }

    /// Hands everything to the kernel and completes the rows of what was sent.
    pub(crate) fn flush(&mut self, sheet: &mut Sheet<TruthRow>) {
        if self.sends == 0 {
            return;
        }
        let flush = self.backend.flush();
        for (place, mut row) in self.rows.drain(..) {
            row.reply = Some(sent_at(flush, place, self.sends));
            sheet.push(row);
        }
        self.sends = 0;
        self.replies = 0;
        self.flush_number += 1;
    }

    /// Closes the connections that were marked. Call it after [`flush`](Self::flush). Returns the ids that
    /// are gone now.
    pub(crate) fn close_all(&mut self) -> impl Iterator<Item = ConnId> + '_ {
        let backend = &mut self.backend;
        self.closings.drain(..).map(|(id, how)| {
            backend.close(id, how);
            id
        })
    }

    /// The place of this connection among those written to since the last flush.
    #[inline]
    fn mark(&mut self, state: &mut State) -> u32 {
        if state.mark.0 != self.flush_number {
            state.mark = (self.flush_number, self.sends);
            self.sends += 1;
        }
        state.mark.1
    }
}

/// When the connection at `place` of `sends` was written to by `flush`: see [`Flush`].
pub(crate) fn sent_at(flush: Flush, place: u32, sends: u32) -> Nanos {
    let span = u128::from((flush.last - flush.first).0);
    let share = span * (2 * u128::from(place) + 1) / (2 * u128::from(sends.max(place + 1)));
    // `share` is at most `span`, which is a u64.
    flush.first + Nanos(share as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_are_spread_evenly_over_their_flush() {
        let flush = Flush { first: Nanos(100), last: Nanos(200), sends: 2 };
        assert_eq!(sent_at(flush, 0, 2), Nanos(125));
        assert_eq!(sent_at(flush, 1, 2), Nanos(175));
        assert_eq!(sent_at(flush, 0, 1), Nanos(150));
        let unordered = Flush { first: Nanos(5), last: Nanos(5), sends: 0 };
        assert_eq!(sent_at(unordered, 3, 1), Nanos(5));
    }
}
