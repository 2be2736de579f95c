//! Replies that are wrong on purpose.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::{Nanos, Random};

use super::options::{Lie, LieKind};
use super::store::Store;

/// The number of the next GET over all threads, by which lies are drawn.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

/// Chooses the GETs of one thread that are answered wrongly, and their answers.
#[derive(Debug)]
pub(crate) struct FaultInjector {
    lie: Lie,
    seed: u64,
    counter: Arc<Counter>,
    /// A reply that waits for the next one, to be swapped with it.
    waiting: Option<Range<usize>>,
    /// The reply to the GET before, for one that waits in vain.
    before: Vec<u8>,
    /// Replies that were wrong.
    pub(crate) told: u64,
}

impl FaultInjector {
    pub(crate) const fn new(lie: Lie, seed: u64, counter: Arc<Counter>) -> Self {
        Self { lie, seed, counter, waiting: None, before: Vec::new(), told: 0 }
    }

    /// Returns the value to answer a GET with, and whether its reply is to be swapped: pass that to
    /// [`answered`](Self::answered).
    pub(crate) fn value(&mut self, store: &Store, key: &[u8], now: Nanos) -> (Option<Arc<[u8]>>, bool) {
        let truth = store.get(key, now);
        // Relaxed: numbers have to be unique, nothing else is published by them.
        let number = self.counter.0.fetch_add(1, Ordering::Relaxed);
        if Random::new(self.seed, number).unit() >= self.lie.share {
            return (truth, false);
        }
        let value = match self.lie.kind {
            LieKind::Wrong => truth.as_deref().map(wrong),
            LieKind::Stale => store.previous(key, now),
            LieKind::Swapped => return (truth, true),
        };
        self.told += u64::from(value != truth);
        (value, false)
    }

    /// The reply to a GET stands in this place of `out`.
    pub(crate) fn answered(&mut self, out: &mut Vec<u8>, reply: Range<usize>, to_swap: bool) {
        if self.lie.kind != LieKind::Swapped {
            return;
        }
        match self.waiting.take() {
            Some(first) => self.swap(out, first, reply),
            None if to_swap => self.waiting = Some(reply),
            None => {
                self.before.clear();
                self.before.extend_from_slice(&out[reply]);
            }
        }
    }

    /// The input that was read has ended.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(reply) = self.waiting.take()
            && !self.before.is_empty()
        {
            self.told += u64::from(out[reply.clone()] != self.before[..]);
            let truth = out[reply.clone()].to_vec();
            out.splice(reply, self.before.iter().copied());
            self.before = truth;
        }
    }

    fn swap(&mut self, out: &mut Vec<u8>, first: Range<usize>, second: Range<usize>) {
        let [one, other] = [first.clone(), second.clone()].map(|reply| out[reply].to_vec());
        self.told += 2 * u64::from(one != other);
        // From the back, so that the places in front stay valid.
        out.splice(second, one.iter().copied());
        out.splice(first, other);
        self.before = one;
    }
}

/// A value that is not this one.
fn wrong(truth: &[u8]) -> Arc<[u8]> {
    let mut value = truth.to_vec();
    match value.last_mut() {
        Some(last) => *last ^= 1,
        None => value.push(b'?'),
    }
    value.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injector(kind: LieKind, share: f64) -> FaultInjector {
        FaultInjector::new(Lie { kind, share }, 1, Arc::default())
    }

    fn store() -> Store {
        Store::new("ttl", 1 << 20, Nanos::from_secs(1), true)
    }

    #[test]
    fn a_value_is_wrong_in_its_share_of_cases() {
        let (store, mut injector) = (store(), injector(LieKind::Wrong, 0.25));
        store.put(b"k", b"value", Nanos(0));
        let wrong = (0..1000).filter(|_| {
            let (value, _) = injector.value(&store, b"k", Nanos(0));
            value.as_deref() != Some(&b"value"[..])
        });
        let wrong = wrong.count() as u64;
        assert!((200..300).contains(&wrong), "{wrong}");
        assert_eq!(injector.told, wrong);
        assert_eq!(*super::wrong(b""), b"?"[..]);
    }

    #[test]
    fn a_stale_value_is_that_before_the_last_put() {
        let (store, mut injector) = (store(), injector(LieKind::Stale, 1.0));
        let mut told = |key: &[u8]| injector.value(&store, key, Nanos(0)).0.map(|value| value.to_vec());
        assert_eq!(told(b"k"), None);
        store.put(b"k", b"one", Nanos(0));
        assert_eq!(told(b"k"), None, "there was none");
        store.put(b"k", b"two", Nanos(0));
        assert_eq!(told(b"k"), Some(b"one".to_vec()));
        assert_eq!(injector.told, 2, "of a key that never was there is no lie");
    }

    #[test]
    fn replies_are_swapped_across_what_is_between_them() {
        let mut injector = injector(LieKind::Swapped, 1.0);
        let mut out = b"A..Bb-Ccc".to_vec();
        injector.answered(&mut out, 0..1, true);
        injector.answered(&mut out, 3..5, true);
        assert_eq!((&out[..], injector.told), (&b"Bb..A-Ccc"[..], 2));
        injector.answered(&mut out, 6..9, true);
        injector.end(&mut out);
        assert_eq!((&out[..], injector.told), (&b"Bb..A-A"[..], 3), "the one before it, where none follows");
        injector.answered(&mut out, 0..2, false);
        injector.end(&mut out);
        assert_eq!(out, b"Bb..A-A");
    }
}
