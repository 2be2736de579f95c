//! Faults that a node injects on purpose, and its account of them.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::Random;
use serde::{Deserialize, Serialize};

/// Lies that are kept one by one; beyond them they are counted.
const KEPT: usize = 100_000;

/// A share of a node's requests that is answered wrongly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lie {
    /// Kind of the fault.
    pub kind: LieKind,
    /// Share of the cases that are treated wrongly, 0 to 1. The seed and the number of a case alone decide
    /// which ones.
    pub share: f64,
}

/// A way to treat something wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LieKind {
    /// A create or an update is acknowledged and not carried out, on no node.
    Lose,
    /// This node alone stores another value.
    Diverge,
    /// This node answers from an earlier state.
    Stale,
    /// A create stores a second item, with an id of its own.
    Duplicate,
    /// A delete is acknowledged and not carried out, on no node.
    Resurrect,
}

/// A lie that was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InjectedFault {
    pub(crate) kind: LieKind,
    /// Operation of the request: `create`, `update`, `delete`, `get`, `count` or `list`.
    pub(crate) operation: String,
    pub(crate) model: String,
    /// The item, if it is about one.
    pub(crate) id: Option<String>,
    /// The id of the second item.
    pub(crate) duplicate: Option<String>,
}

/// Lies in the order in which they were told, up to a bound.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Confession {
    told: Vec<InjectedFault>,
    total: u64,
}

impl Confession {
    pub(crate) fn add(&mut self, told: InjectedFault) {
        self.total += 1;
        if self.told.len() < KEPT {
            self.told.push(told);
        }
    }

    pub(crate) fn told(&self) -> &[InjectedFault] {
        &self.told
    }

    /// Total number of lies, kept or not.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }
}

/// Chooses the requests that are answered wrongly, by the seed and a number alone.
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

    pub(crate) fn is(&self, kind: LieKind) -> bool {
        self.lie.is_some_and(|lie| lie.kind == kind)
    }

    /// Counts the next case, and returns `true` if it is to be treated with this kind of lie.
    pub(crate) fn lies(&self, kind: LieKind) -> bool {
        // Relaxed: numbers have to be unique, nothing else is published by them.
        self.is(kind) && self.lies_about(kind, self.number.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns `true` if the case with this number is to be treated with this kind of lie.
    pub(crate) fn lies_about(&self, kind: LieKind, number: u64) -> bool {
        let lie = self.lie.filter(|lie| lie.kind == kind);
        lie.is_some_and(|lie| Random::new(self.seed, number).unit() < lie.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_lies_is_as_told_and_always_the_same() {
        let lies = |seed| {
            let injector = FaultInjector::new(Some(Lie { kind: LieKind::Lose, share: 0.25 }), seed);
            assert!(!injector.lies(LieKind::Stale));
            (0..1000).map(|_| injector.lies(LieKind::Lose)).collect::<Vec<_>>()
        };
        let count = lies(1).iter().filter(|lie| **lie).count();
        assert!((200..300).contains(&count), "{count}");
        assert_eq!(lies(1), lies(1));
        assert_ne!(lies(1), lies(2));
    }

    #[test]
    fn what_is_not_kept_is_counted() {
        let told = InjectedFault {
            kind: LieKind::Lose,
            operation: "create".to_owned(),
            model: "m".to_owned(),
            id: None,
            duplicate: None,
        };
        let mut confession = Confession::default();
        (0..KEPT + 2).for_each(|_| confession.add(told.clone()));
        assert_eq!((confession.told().len(), confession.total()), (KEPT, KEPT as u64 + 2));
    }
}
