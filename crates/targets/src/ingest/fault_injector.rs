//! Deliberate faults in the handling of batches that are acknowledged.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::Random;

use super::options::{Lie, LieKind};

/// The fate of a batch that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Stored,
    /// Acknowledged and thrown away.
    Lost,
    /// Stored twice.
    Duplicated,
    /// Acknowledged and never flushed.
    Late,
    /// Stored; not acknowledged to its sender.
    Unacknowledged,
}

/// Chooses the writes that are treated wrongly: by the seed and the number of the write alone.
#[derive(Debug)]
pub(crate) struct FaultInjector {
    lie: Option<Lie>,
    seed: u64,
    number: AtomicU64,
}

impl FaultInjector {
    pub(crate) const fn new(lie: Option<Lie>, seed: u64) -> Self {
        Self { lie, seed, number: AtomicU64::new(0) }
    }

    /// Draws the fate of the next write.
    pub(crate) fn fate(&self) -> Fate {
        let Some(lie) = self.lie else { return Fate::Stored };
        // Relaxed: numbers have to be unique, nothing else is published by them.
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        if Random::new(self.seed, number).unit() >= lie.share {
            return Fate::Stored;
        }
        match lie.kind {
            LieKind::Lose => Fate::Lost,
            LieKind::Duplicate => Fate::Duplicated,
            LieKind::Late => Fate::Late,
            LieKind::Unacknowledged => Fate::Unacknowledged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_lies_is_as_told_and_always_the_same() {
        let fates = |seed| {
            let injector = FaultInjector::new(Some(Lie { kind: LieKind::Lose, share: 0.25 }), seed);
            (0..1000).map(|_| injector.fate()).collect::<Vec<_>>()
        };
        let lost = fates(1).iter().filter(|fate| **fate == Fate::Lost).count();
        assert!((200..300).contains(&lost), "{lost}");
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
        assert_eq!(FaultInjector::new(None, 1).fate(), Fate::Stored);
    }
}
