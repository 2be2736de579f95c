//! The events that a pass handles.

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
    /// Set once the pacer was told of a response of this pass: one is enough for its means.
    pub(super) observed: bool,
}

impl EventBatch {
    /// Begins the events of a pass.
    pub(super) const fn begin(&mut self) {
        self.more = false;
        self.observed = false;
    }

    /// Begins an event with bytes that a peer has sent.
    #[inline]
    pub(super) const fn receive(&mut self, stamped: bool) {
        self.stamped = stamped;
        (self.responses, self.impossible) = (0, 0);
    }

    /// Returns the number of responses of the event that end at the kernel's stamp.
    #[inline]
    pub(super) const fn by_stamp(&self) -> u64 {
        if self.stamped { self.responses.saturating_sub(self.impossible) } else { 0 }
    }
}
