//! Connections whose clients have bytes to read before they are sent more.

use std::collections::VecDeque;

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, ConnId};

/// Pause before asking again whether the kernel has taken more: no event reports it. Above 300 MB/s of one
/// connection that goes on below 64 KiB, and 5 GB/s of one below 1 MiB, it would be too long.
pub(crate) const RECALL_AFTER: Nanos = Nanos::from_micros(200);
/// Added to it for each connection, so that asking all of them takes a small share of the time.
const RECALL_EACH: Nanos = Nanos(100);

/// The connections of a thread that go on when the kernel has taken more, in the order of their turns.
#[derive(Debug, Default)]
pub(crate) struct Draining {
    connections: VecDeque<ConnId>,
    recall_at: Nanos,
}

impl Draining {
    /// When to ask for the next time; never if there are none.
    pub(crate) fn next(&self) -> Nanos {
        if self.connections.is_empty() { Nanos::MAX } else { self.recall_at }
    }

    /// Returns the time if it is time to ask.
    pub(crate) fn due(&self, backend: &impl Backend) -> Option<Nanos> {
        let now = (!self.connections.is_empty()).then(|| backend.now())?;
        (now >= self.recall_at).then_some(now)
    }

    /// Number of connections.
    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Adds a connection, which must not be there.
    pub(crate) fn push(&mut self, conn: ConnId) {
        self.connections.push_back(conn);
    }

    /// Takes the next connection out.
    pub(crate) fn pop(&mut self) -> Option<ConnId> {
        self.connections.pop_front()
    }

    /// Asks again after a pause; at once if any have moved, as soon as the bytes that came meanwhile are
    /// read.
    pub(crate) fn pause(&mut self, now: Nanos, have_moved: bool) {
        let pause = RECALL_AFTER + RECALL_EACH * self.connections.len() as u64;
        self.recall_at = if have_moved { now } else { now + pause };
    }
}
