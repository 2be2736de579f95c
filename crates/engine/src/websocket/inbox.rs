//! Messages that wait for a step that awaits one.

use std::collections::VecDeque;

use plimsoll_core::Nanos;

/// Messages that wait, and their bytes: what is beyond is skipped, the oldest first.
pub(super) const MOST_WAITING: usize = 1_024;
pub(super) const MOST_WAITING_BYTES: usize = 1 << 20;
/// Memory for messages that a connection keeps, in bytes: idle ones are many.
pub(super) const USUAL_INBOX: usize = 4 << 10;

/// Messages that came, the oldest first.
///
/// Each leaves in one of three ways: it is [taken](Self::take) by the step that awaits it, a rule
/// [answers](Self::drop_last) it, or it is skipped. So the counts of messages add up.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Payloads of the waiting messages, and of messages that were taken before them. A message is read into
    /// its end before it is [added](Self::add).
    pub(super) bytes: Vec<u8>,
    messages: VecDeque<Waiting>,
    /// Messages that were skipped, of those that count.
    skipped: u64,
}

/// When a message came, and whether it counts: as part of what is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt {
    pub(crate) at: Nanos,
    pub(crate) counts: bool,
}

/// An unread message.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    start: usize,
    end: usize,
    came: Receipt,
}

impl Inbox {
    /// The oldest message, and when it came.
    pub(crate) fn first(&self) -> Option<(&[u8], Nanos)> {
        let Waiting { start, end, came } = *self.messages.front()?;
        Some((&self.bytes[start..end], came.at))
    }

    /// Takes the oldest message out: a step has awaited it.
    pub(crate) fn take(&mut self) {
        self.messages.pop_front();
        self.tidy();
    }

    /// Skips the oldest message: it is not the one that is awaited.
    pub(crate) fn skip(&mut self) {
        self.skip_first();
        self.tidy();
    }

    /// Skips all messages.
    pub(crate) fn skip_all(&mut self) {
        while !self.messages.is_empty() {
            self.skip_first();
        }
        self.tidy();
    }

    /// Returns the number of messages that were skipped since the last call.
    pub(super) const fn take_skipped(&mut self) -> u64 {
        std::mem::replace(&mut self.skipped, 0)
    }

    fn skip_first(&mut self) {
        let first = self.messages.pop_front();
        self.skipped += u64::from(first.is_some_and(|first| first.came.counts));
    }

    /// Gives memory back once there is no message.
    fn tidy(&mut self) {
        if self.messages.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(USUAL_INBOX);
        }
    }

    /// The message of this length that was read, and is not added yet.
    pub(super) fn last(&self, length: usize) -> &[u8] {
        &self.bytes[self.bytes.len() - length..]
    }

    /// Takes that message out again.
    pub(super) fn drop_last(&mut self, length: usize) {
        self.bytes.truncate(self.bytes.len() - length);
        self.tidy();
    }

    /// Adds a message whose bytes are the last ones. Older ones may have to go.
    pub(super) fn add(&mut self, length: usize, came: Receipt) {
        let end = self.bytes.len();
        self.messages.push_back(Waiting { start: end - length, end, came });
        let held = |inbox: &Self| inbox.messages.front().map_or(0, |first| end - first.start);
        while self.messages.len() > MOST_WAITING
            || (held(self) > MOST_WAITING_BYTES && self.messages.len() > 1)
        {
            self.skip_first();
        }
        let unused = self.messages.front().map_or(0, |first| first.start);
        if unused > MOST_WAITING_BYTES {
            self.bytes.drain(..unused);
            for message in &mut self.messages {
                message.start -= unused;
                message.end -= unused;
            }
        }
    }
}
