//! The events that a pass handles.

use plimsoll_core::Nanos;

/// State of handling the events of one pass.
///
/// [`begin`](Self::begin) comes before the first event of a pass, [`receive`](Self::receive) before the bytes
/// of each.
#[derive(Debug, Default)]
pub(super) struct EventBatch {
    /// Set if the last pass left events for the next.
    pub(super) more: bool,
    /// Responses in the event that is being handled.
    pub(super) responses: u64,
    /// Responses among them with a stamp before their request's first byte.
    pub(super) impossible: u64,
    /// Set if that event was stamped by the kernel.
    pub(super) stamped: bool,
    /// Set once the pacer has recorded a response of this pass: one is enough for its means.
    pub(super) observed: bool,
    /// Length of the last pass, during which nothing was read.
    pub(super) away: Nanos,
    /// Time for which bytes may have waited to be read: the passes in which nothing was read, or the longest
    /// time between arrival and reading in this one.
    pub(super) behind: Nanos,
}

impl EventBatch {
    /// Begins the events of a pass.
    pub(super) const fn begin(&mut self) {
        // Bytes that the last pass left have waited for this one as well.
        let left = if self.more { self.behind } else { Nanos::ZERO };
        self.behind = Nanos(left.0.saturating_add(self.away.0));
        self.more = false;
        self.observed = false;
    }

    /// Begins an event with bytes that a peer has sent this long ago.
    #[inline]
    pub(super) const fn receive(&mut self, stamped: bool, lag: Nanos) {
        self.stamped = stamped;
        if lag.0 > self.behind.0 {
            self.behind = lag;
        }
        (self.responses, self.impossible) = (0, 0);
    }

    /// Returns the number of responses of the event that end at the kernel's stamp.
    #[inline]
    pub(super) const fn by_stamp(&self) -> u64 {
        if self.stamped { self.responses.saturating_sub(self.impossible) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_may_have_waited_for_as_long_as_nobody_looked() {
        let mut batch = EventBatch { away: Nanos(300), ..EventBatch::default() };
        batch.begin();
        assert_eq!(batch.behind, Nanos(300));
        batch.receive(true, Nanos(20));
        assert_eq!(batch.behind, Nanos(300));
        batch.receive(true, Nanos(900));
        assert_eq!(batch.behind, Nanos(900));
        // A pass that left events makes them wait for the next one, too.
        (batch.more, batch.away) = (true, Nanos(400));
        batch.begin();
        assert_eq!(batch.behind, Nanos(1_300));
        batch.begin();
        assert_eq!(batch.behind, Nanos(400));
    }
}
