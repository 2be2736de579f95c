//! Output of one thread of a server: bytes that wait for the next flush, their times of sending, and closes.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Close, ConnId, Flush};
use plimsoll_wire::tls::Session;

/// The way to one client.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: ConnId,
    pub(crate) tls: Option<Box<Session>>,
    /// The flush in which it was written to last, and its place among those written to in it.
    mark: (u64, u32),
}

impl Channel {
    pub(crate) const fn new(id: ConnId, tls: Option<Box<Session>>) -> Self {
        Self { id, tls, mark: (0, 0) }
    }
}

/// Writes to the connections of one backend and knows which of them wait for the next flush.
#[derive(Debug)]
pub(crate) struct Output<B> {
    pub(crate) backend: B,
    /// Number of the next flush, from 1, so that the mark of a new connection is never that of a flush.
    flush_number: u64,
    /// Connections written to since the last flush.
    sends: u32,
    /// Replies written since the last flush.
    pub(crate) replies: u32,
    /// Connections to be closed once the next flush is done.
    closings: Vec<(ConnId, Close)>,
    cipher: Vec<u8>,
}

impl<B: Backend> Output<B> {
    pub(crate) const fn new(backend: B) -> Self {
        Self { backend, flush_number: 1, sends: 0, replies: 0, closings: Vec::new(), cipher: Vec::new() }
    }

    /// Queues `plain`, and with TLS also the session's own output.
    #[inline]
    pub(crate) fn transmit(&mut self, channel: &mut Channel, plain: &[u8]) {
        let bytes = match &mut channel.tls {
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
            self.backend.outbox(channel.id).extend_from_slice(bytes);
            self.mark(channel);
        }
    }

    /// Queues a large body behind the transmitted bytes.
    pub(crate) fn transmit_body(&mut self, channel: &mut Channel, body: &Arc<[u8]>) {
        if channel.tls.is_some() {
            return self.transmit(channel, body);
        }
        self.backend.send_shared(channel.id, Arc::clone(body));
        self.mark(channel);
    }

    /// Closes a connection after the next flush.
    pub(crate) fn close(&mut self, channel: &mut Channel, how: Close) {
        if let (Close::AfterSend, Some(session)) = (how, &mut channel.tls) {
            self.cipher.clear();
            session.close_notify(&mut self.cipher);
            self.backend.outbox(channel.id).extend_from_slice(&self.cipher);
            self.mark(channel);
        }
        self.closings.push((channel.id, how));
    }

    /// Returns `true` if there is anything to flush or to close.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.sends > 0 || self.replies > 0 || !self.closings.is_empty()
    }

    /// Hands everything to the kernel; `None` if there was nothing.
    pub(crate) fn flush(&mut self) -> Option<Sends> {
        if self.sends == 0 && self.replies == 0 {
            return None;
        }
        let sends = Sends { flush: self.backend.flush(), number: self.flush_number, count: self.sends };
        self.sends = 0;
        self.replies = 0;
        self.flush_number += 1;
        Some(sends)
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
    pub(crate) fn mark(&mut self, channel: &mut Channel) -> u32 {
        if channel.mark.0 != self.flush_number {
            channel.mark = (self.flush_number, self.sends);
            self.sends += 1;
        }
        channel.mark.1
    }
}

/// Times of sending of one flush.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sends {
    flush: Flush,
    /// Number of the flush.
    number: u64,
    /// Connections written to.
    count: u32,
}

impl Sends {
    /// When the connection at this place was written to: see [`Flush`].
    pub(crate) fn at(&self, place: u32) -> Nanos {
        let Self { flush, count, .. } = *self;
        let span = u128::from((flush.last - flush.first).0);
        let share = span * (2 * u128::from(place) + 1) / (2 * u128::from(count.max(place + 1)));
        // `share` is at most `span`, which is a u64.
        flush.first + Nanos(share as u64)
    }

    /// When this connection was written to; the end of the flush if it was not.
    pub(super) fn to(&self, channel: Option<&Channel>) -> Nanos {
        match channel {
            Some(channel) if channel.mark.0 == self.number => self.at(channel.mark.1),
            _ => self.flush.last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_are_spread_evenly_over_their_flush() {
        let sends = |first, last, count| {
            let flush = Flush { first: Nanos(first), last: Nanos(last), sends: count };
            Sends { flush, number: 1, count }
        };
        assert_eq!(sends(100, 200, 2).at(0), Nanos(125));
        assert_eq!(sends(100, 200, 2).at(1), Nanos(175));
        assert_eq!(sends(100, 200, 1).at(0), Nanos(150));
        assert_eq!(sends(5, 5, 0).at(3), Nanos(5));
        let mut channel = Channel::new(ConnId::new(0, 1), None);
        assert_eq!(sends(100, 200, 2).to(Some(&channel)), Nanos(200), "it was not written to");
        channel.mark = (1, 1);
        assert_eq!(sends(100, 200, 2).to(Some(&channel)), Nanos(175));
        assert_eq!(sends(100, 200, 2).to(None), Nanos(200));
    }
}
