//! Messages that wait for a step that awaits one.

use std::collections::VecDeque;

use plimsoll_core::Nanos;

/// Messages that wait, and their bytes: what is beyond is skipped, the oldest first.
pub(super) const MOST_WAITING: usize = 1_024;
pub(super) const MOST_WAITING_BYTES: usize = 1 << 20;
/// Memory for messages that a connection keeps, in bytes: idle ones are many.
pub(super) const USUAL_INBOX: usize = 4 << 10;

/// Messages that came, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Payloads of the waiting messages, and of messages that were taken before them. A message is read into
    /// its end before it is [added](Self::add).
    pub(super) bytes: Vec<u8>,
    messages: VecDeque<Waiting>,
}

/// An unread message.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    start: usize,
    end: usize,
    at: Nanos,
}

impl Inbox {
    /// The oldest message, and when it came.
    pub(crate) fn first(&self) -> Option<(&[u8], Nanos)> {
        let Waiting { start, end, at } = *self.messages.front()?;
        Some((&self.bytes[start..end], at))
    }

    /// Takes the oldest message out.
    pub(crate) fn pop(&mut self) {
        self.messages.pop_front();
        if self.messages.is_empty() {
            self.clear();
        }
    }

    /// Forgets all messages.
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.bytes.clear();
        self.bytes.shrink_to(USUAL_INBOX);
    }

    /// The message of this length that was read, and is not added yet.
    pub(super) fn last(&self, length: usize) -> &[u8] {
        &self.bytes[self.bytes.len() - length..]
    }

    /// Takes that message out again.
    pub(super) fn drop_last(&mut self, length: usize) {
        self.bytes.truncate(self.bytes.len() - length);
        if self.messages.is_empty() {
            self.clear();
        }
    }

    /// Adds a message whose bytes are the last ones. Returns the number of older ones that had to go.
    pub(super) fn add(&mut self, length: usize, at: Nanos) -> u64 {
        let end = self.bytes.len();
        self.messages.push_back(Waiting { start: end - length, end, at });
        let mut skipped = 0;
        let held = |inbox: &Self| inbox.messages.front().map_or(0, |first| end - first.start);
        while self.messages.len() > MOST_WAITING
            || (held(self) > MOST_WAITING_BYTES && self.messages.len() > 1)
        {
            self.messages.pop_front();
            skipped += 1;
        }
        let unused = self.messages.front().map_or(0, |first| first.start);
        if unused > MOST_WAITING_BYTES {
            self.bytes.drain(..unused);
            for message in &mut self.messages {
                message.start -= unused;
                message.end -= unused;
            }
        }
        skipped
    }
}
