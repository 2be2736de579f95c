//! Memory that all connections of a server share for incomplete messages.

use std::sync::atomic::{AtomicU64, Ordering};

/// A connection that keeps no more bytes than this has no part in the budget: the usual one costs nothing.
pub const FREE_BYTES: usize = 16 << 10;

/// Bytes that unfinished requests of all connections may take together.
#[derive(Debug)]
pub(crate) struct Budget {
    most: u64,
    taken: AtomicU64,
}

/// The part of one connection. It has to be [released](Budget::release) when the connection ends.
#[derive(Debug, Default)]
pub(crate) struct Part(u64);

impl Budget {
    /// A budget of `most` bytes.
    pub(crate) const fn new(most: u64) -> Self {
        Self { most, taken: AtomicU64::new(0) }
    }

    /// The most bytes.
    pub(crate) const fn most(&self) -> u64 {
        self.most
    }

    /// Notes that a connection keeps `bytes` bytes now. Gives `false` if it has more than before, and all
    /// connections together more than they may: this one has to end.
    // Relaxed: a sum, by which nothing else is published.
    #[inline]
    pub(crate) fn note(&self, part: &mut Part, bytes: usize) -> bool {
        let now = if bytes > FREE_BYTES { bytes as u64 } else { 0 };
        let before = std::mem::replace(&mut part.0, now);
        if now > before {
            return self.taken.fetch_add(now - before, Ordering::Relaxed) + (now - before) <= self.most;
        }
        if now < before {
            self.taken.fetch_sub(before - now, Ordering::Relaxed);
        }
        true
    }

    /// Returns the memory of a connection.
    pub(crate) fn release(&self, part: &mut Part) {
        self.note(part, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_what_there_is() {
        let budget = Budget::new(100_000);
        let [mut one, mut other] = [Part::default(), Part::default()];
        assert!(budget.note(&mut one, 60_000));
        assert!(budget.note(&mut other, FREE_BYTES), "little is not counted");
        assert!(budget.note(&mut other, 40_000));
        assert!(!budget.note(&mut other, 40_001));
        // A connection that does not grow may stay, whatever others use.
        assert!(budget.note(&mut one, 60_000));
        budget.release(&mut other);
        assert!(budget.note(&mut one, 100_000));
        budget.release(&mut one);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }
}
