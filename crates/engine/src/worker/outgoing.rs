//! Requests that are written and not yet handed to the kernel.

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, ConnId};
use plimsoll_metrics::WorkerRecord;

use super::counts::Counts;
use crate::connection::{Conn, State};
use crate::request::{AT_SEND, Intent};
use crate::send_times::SendTimes;

/// Connections written to before it is all handed to the kernel in the middle of a pass. It keeps the target
/// busy during long passes, and bounds the error of the send times, which are interpolated over one flush: 8
/// sends take about 30 µs. With 16 as many requests again have uncertain send times, for no less CPU time
/// (`bench h1`, 64 connections: 10.0 µs per request, 9.5 with 8, 10.9 with 4, medians of 14 turns).
const FLUSH_EVERY: usize = 8;
/// Requests that are handed over at once, where connections carry many: an idle target costs more than the
/// system call, 0.01 µs each.
const FLUSH_REQUESTS: usize = 64;
/// Requests that are handed over at once where those of one read are kept together: a read that begins just
/// below [`FLUSH_REQUESTS`] may be followed by as many again.
const MOST_REQUESTS: usize = 2 * FLUSH_REQUESTS;
/// Bytes of requests that are handed over at once, for the same reasons: about 50 µs of copying.
const FLUSH_BYTES: usize = 256 << 10;

/// Slot of no connection.
const NO_CONNECTION: u32 = u32::MAX;

/// A request that is written and not yet handed to the kernel.
#[derive(Clone, Copy, Debug)]
struct Unsent {
    conn: ConnId,
    ticket: u32,
    /// Place of its connection among those written to since the last flush.
    place: u32,
    /// When the response arrived that made its user ready; never, if that is unknown.
    ready: Nanos,
}

/// The making of the requests of arrivals, from the end of the wait for them on.
#[derive(Debug, Default)]
struct Preparation {
    /// When it began; `None` if it is not measured, or has been.
    began: Option<Nanos>,
    /// How long it took.
    took: Option<Nanos>,
    /// When what is being made is due: nothing leaves sooner. Zero, if it is due already.
    due: Nanos,
    /// Time for which a flush has waited for that.
    held: Nanos,
}

/// Connections and requests written since the last flush, and the instants at which requests are sent.
///
/// [`mark`](Self::mark) comes before bytes are written on a connection, [`push`](Self::push) after those of a
/// request, and [`flush`](Self::flush) at the latest when this [is full](Self::is_full) and before the worker
/// waits. A connection stands here once per flush, however much is written on it.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Connections written to since the last flush, in that order.
    connections: Vec<u32>,
    /// Requests that wait for the flush, in the order of writing.
    requests: Vec<Unsent>,
    /// Bytes of these requests.
    bytes: usize,
    /// The number of the next flush, from 1.
    flush_number: u64,
    preparation: Preparation,
    /// The connection whose responses are being handled; [`NO_CONNECTION`] between reads.
    answering: u32,
    pub(super) send_times: SendTimes,
}

impl Outgoing {
    /// Nothing so far, on a thread that the scheduler has interrupted so often.
    pub(super) fn new(preemptions: u64) -> Self {
        Self {
            connections: Vec::with_capacity(FLUSH_EVERY),
            requests: Vec::with_capacity(FLUSH_EVERY),
            bytes: 0,
            flush_number: 1,
            preparation: Preparation::default(),
            answering: NO_CONNECTION,
            send_times: SendTimes::new(FLUSH_EVERY, preemptions),
        }
    }

    /// Notes that a connection is written to: its place among those of the next flush.
    #[inline]
    pub(super) fn mark(&mut self, slot: u32, conn: &mut Conn) -> u32 {
        if conn.mark.0 != self.flush_number {
            conn.mark = (self.flush_number, self.connections.len() as u32);
            self.connections.push(slot);
        }
        conn.mark.1
    }

    /// Adds a request of this many bytes, written on a connection that was [marked](Self::mark). `ready` is
    /// when the response arrived that made its user ready; never, if that is unknown.
    #[inline]
    pub(super) fn push(&mut self, conn: ConnId, ticket: u32, place: u32, length: usize, ready: Nanos) {
        self.bytes += length;
        self.requests.push(Unsent { conn, ticket, place, ready });
    }

    /// Begins the responses of one read on a connection. Requests that follow on it are kept together up to
    /// the [end](Self::end_answers), as their responses were: a pipelined connection whose requests are sent
    /// one by one has its responses one by one, and stays like that.
    #[inline]
    pub(super) const fn begin_answers(&mut self, slot: u32) {
        self.answering = slot;
    }

    /// Ends the responses of a read.
    #[inline]
    pub(super) const fn end_answers(&mut self) {
        self.answering = NO_CONNECTION;
    }

    /// Returns `true` if all is to be flushed before more is written, the last of it on the connection
    /// `slot`; the pacing may ask for that after `flush_limit` connections.
    #[inline]
    pub(super) fn is_full(&self, slot: u32, flush_limit: usize) -> bool {
        if self.bytes >= FLUSH_BYTES {
            return true;
        }
        if slot == self.answering {
            return self.requests.len() >= MOST_REQUESTS;
        }
        self.connections.len() >= self.send_times.limit().min(flush_limit)
            || self.requests.len() >= FLUSH_REQUESTS
    }

    /// Returns `true` if requests wait for the flush.
    #[inline]
    pub(super) const fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Returns `true` if nothing waits for the flush.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Begins to measure how long it takes until the next flush.
    #[inline]
    pub(super) const fn begin_preparation(&mut self, now: Nanos) {
        self.preparation.began = Some(now);
    }

    /// Nothing that is written from now on leaves before `due`, until the
    /// [end of the preparation](Self::end_preparation).
    #[inline]
    pub(super) const fn hold_until(&mut self, due: Nanos) {
        self.preparation.due = due;
    }

    /// Ends a preparation: the time that it took, if that was measured and something was sent, and the time
    /// for which that was held back.
    #[inline]
    pub(super) fn end_preparation(&mut self) -> (Option<Nanos>, Nanos) {
        let Preparation { took, held, .. } = std::mem::take(&mut self.preparation);
        (took, held)
    }

    /// Waits until what is being made is due. Returns the time then.
    #[cold]
    pub(super) fn hold(&mut self, io: &mut impl Backend) -> Nanos {
        let ready = io.now();
        if let Some(began) = self.preparation.began.take() {
            self.preparation.took = Some(ready.since(began));
        }
        let now = io.poll_until(self.preparation.due);
        self.preparation.held += now.since(ready);
        self.preparation.due = Nanos::ZERO;
        now
    }

    /// Returns `true` if what is being made is not due yet.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.preparation.due != Nanos::ZERO
    }

    /// Hands everything written to the kernel, and notes in the requests when. Returns the time after it.
    ///
    /// Sends happen one after the other between the two readings of the clock, so each is given the start of
    /// its share: see [`Flush`](plimsoll_driver::Flush). The possible error of the share is known when the
    /// response is there: see [`SendTimes`].
    pub(super) fn flush(
        &mut self,
        io: &mut impl Backend,
        conns: &mut [Conn],
        counts: &mut Counts,
        record: &mut WorkerRecord,
    ) -> Nanos {
        let sends = self.connections.len() as u64;
        for slot in self.connections.drain(..) {
            let conn = &mut conns[slot as usize];
            if let Some(tls) = &mut conn.tls
                && !tls.plain.is_empty()
                && conn.state != State::Free
            {
                tls.session.send(&tls.plain, io.outbox(conn.id));
                tls.plain.clear();
            }
        }
        self.flush_number += 1;
        self.bytes = 0;
        if self.is_held() {
            self.hold(io);
        }
        let flush = io.flush();
        if sends > 0
            && let Some(began) = self.preparation.began.take()
        {
            self.preparation.took = Some(flush.first.since(began));
        }
        self.send_times.note(&flush, sends, || io.preemptions());
        // One division for all: spans are far below the 2^53 ns that this is exact for.
        let share = flush.last.since(flush.first).0 as f64 / sends.max(1) as f64;
        for Unsent { conn: id, ticket, place, ready } in self.requests.drain(..) {
            let at = flush.first + Nanos((share * f64::from(place)) as u64);
            let conn = &mut conns[id.slot()];
            if conn.id != id {
                // The connection is gone, and its slot has a new one.
                continue;
            }
            let Some(request) = conn.requests.get_mut(ticket) else { continue };
            if request.sent != AT_SEND {
                if let Intent::SendAgain(loss) = request.intent {
                    request.intent = Intent::AwaitAgain;
                    counts.resend(request, loss);
                }
                continue;
            }
            request.sent = at;
            // Without a connection to open, taking up and sending are one: the start lag holds both.
            if request.started == AT_SEND {
                request.started = at;
            }
            if request.intended == AT_SEND {
                request.intended = at;
                if request.measured && ready != Nanos::MAX {
                    record.turnaround += at.since(ready);
                    record.turnarounds += 1;
                }
            }
        }
        flush.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: a pipelined connection sent sixteen commands in two or three writes, and had as many reads.
    #[test]
    fn requests_that_follow_from_one_read_are_sent_together() {
        let mut outgoing = Outgoing::new(0);
        let mut conns: Vec<Conn> = (0..FLUSH_EVERY).map(|_| Conn::free()).collect();
        let last = conns.len() as u32 - 1;
        let push = |outgoing: &mut Outgoing, length| {
            outgoing.push(ConnId::new(last, 0), 0, last, length, Nanos::MAX);
        };
        outgoing.begin_answers(last);
        for (slot, conn) in (0..).zip(&mut conns) {
            assert!(!outgoing.is_full(slot, usize::MAX), "{slot}");
            outgoing.mark(slot, conn);
        }
        // Those of another connection wait for no more connections than usual.
        assert!(outgoing.is_full(0, usize::MAX));
        for _ in 0..MOST_REQUESTS {
            assert!(!outgoing.is_full(last, 1));
            push(&mut outgoing, 100);
        }
        assert!(outgoing.is_full(last, usize::MAX), "there is an end");
        outgoing.requests.clear();
        assert!(!outgoing.is_full(last, 1));
        push(&mut outgoing, FLUSH_BYTES);
        assert!(outgoing.is_full(last, usize::MAX), "they are large");
        outgoing.bytes = 0;
        outgoing.end_answers();
        assert!(outgoing.is_full(last, usize::MAX), "the read has ended");
    }
}
