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
        self.responses = 0;
    }
}
