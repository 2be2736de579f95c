//! Deadlines, armed lazily.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;

/// The deadlines of a worker's connections.
///
/// Nearly every deadline is moved to later before it comes, so a connection has one entry that counts, and it
/// is not moved along: when its time comes, the connection is asked for its present deadline and put back.
/// The cost per request is zero; the cost per connection is one heap operation per timeout. Only a deadline
/// that moves to earlier (a request after a slow connect) makes a second entry; the owner remembers which one
/// counts.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
}

impl Timers {
    /// Adds an entry for `conn`, which from now on is the one that counts.
    pub(crate) fn arm(&mut self, at: Nanos, conn: ConnId) {
        self.heap.push(Reverse((at, conn.slot() as u32, conn.generation())));
    }

    /// When the first entry comes due.
    pub(crate) fn next_due(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |Reverse((at, _, _))| *at)
    }

    /// Takes an entry that is due, with its time. It may be stale: compare the id and the time.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, ConnId)> {
        let Reverse((at, slot, generation)) = *self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((at, ConnId::new(slot, generation)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_in_the_order_of_their_deadlines_and_not_early() {
        let mut timers = Timers::default();
        timers.arm(Nanos(30), ConnId::new(1, 0));
        timers.arm(Nanos(10), ConnId::new(2, 5));
        assert_eq!(timers.next_due(), Nanos(10));
        assert_eq!(timers.pop_due(Nanos(9)), None);
        assert_eq!(timers.pop_due(Nanos(10)), Some((Nanos(10), ConnId::new(2, 5))));
        assert_eq!(timers.pop_due(Nanos(29)), None);
        assert_eq!(timers.pop_due(Nanos(99)), Some((Nanos(30), ConnId::new(1, 0))));
        assert_eq!(timers.next_due(), Nanos::MAX);
    }
}
