//! The values of one cache.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use plimsoll_core::Nanos;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// Bytes that a value costs beside itself and its key: places in tables and allocations, roughly.
const UPKEEP: u64 = 96;
/// The least share of a cache that has a lock of its own: a value that does not fit one is not held.
const SMALLEST_SHARD: u64 = 32 << 20;

/// One cache: values by key, bounded in bytes and perhaps in number, each with its time to live. Older values
/// are not found any more, and are dropped when their place is needed.
#[derive(Debug)]
pub(crate) struct Store {
    entries: Cache<Box<[u8]>, Entry, Weight>,
    time_to_live: Nanos,
    /// `true` if the value before the last PUT is remembered.
    keeps_previous: bool,
    pub(crate) max_bytes: u64,
    /// Name that its creator gave to the way to make room. All names behave alike.
    pub(crate) eviction: &'static str,
}

#[derive(Clone, Debug)]
struct Entry {
    value: Arc<[u8]>,
    previous: Option<Arc<[u8]>>,
    dies: Nanos,
}

/// Bytes that values cost, none less than its part of a bound on their number.
#[derive(Clone, Debug)]
struct Weight {
    least: u64,
}

impl Weighter<Box<[u8]>, Entry> for Weight {
    fn weight(&self, key: &Box<[u8]>, entry: &Entry) -> u64 {
        ((key.len() + entry.value.len()) as u64 + UPKEEP).max(self.least)
    }
}

impl Store {
    #[cfg(test)]
    pub(crate) fn new(
        eviction: &'static str,
        max_bytes: u64,
        time_to_live: Nanos,
        keeps_previous: bool,
    ) -> Self {
        Self::bounded(eviction, (max_bytes, None), time_to_live, keeps_previous)
    }

    /// Creates one with at most this many bytes, and values if that is bounded, too.
    pub(crate) fn bounded(
        eviction: &'static str,
        (max_bytes, max_values): (u64, Option<NonZero<u64>>),
        time_to_live: Nanos,
        keeps_previous: bool,
    ) -> Self {
        let weight = Weight { least: max_values.map_or(0, |most| max_bytes.div_ceil(most.get())) };
        let cores = available_parallelism().map_or(1, NonZero::get);
        let shards = (max_bytes / SMALLEST_SHARD).clamp(1, 4 * cores as u64);
        let options = OptionsBuilder::new()
            .shards(shards as usize)
            // It reserves memory for recently evicted keys: values have some 200 bytes, or few.
            .estimated_items_capacity((max_bytes / 256).clamp(1024, 1 << 20) as usize)
            .weight_capacity(max_bytes)
            .build()
            .expect("both of the numbers that are asked for are there");
        let entries =
            Cache::with_options(options, weight, DefaultHashBuilder::default(), DefaultLifecycle::default());
        Self { entries, time_to_live, keeps_previous, max_bytes, eviction }
    }

    #[inline]
    pub(crate) fn put(&self, key: &[u8], value: &[u8], now: Nanos) {
        let previous = if self.keeps_previous { self.get(key, now) } else { None };
        let dies = Nanos(now.0.saturating_add(self.time_to_live.0));
        self.entries.insert(key.into(), Entry { value: value.into(), previous, dies });
    }

    #[inline]
    pub(crate) fn get(&self, key: &[u8], now: Nanos) -> Option<Arc<[u8]>> {
        self.live(key, now).map(|entry| entry.value)
    }

    /// Returns the value before the last PUT of `key`, if it is remembered.
    pub(crate) fn previous(&self, key: &[u8], now: Nanos) -> Option<Arc<[u8]>> {
        self.live(key, now)?.previous
    }

    /// Removes a key. Returns `true` if it had a value whose time was not over.
    pub(crate) fn remove(&self, key: &[u8], now: Nanos) -> bool {
        self.entries.remove(key).is_some_and(|(_, entry)| now < entry.dies)
    }

    /// Returns the number of values, including expired ones that are still in their place.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    fn live(&self, key: &[u8], now: Nanos) -> Option<Entry> {
        self.entries.get(key).filter(|entry| now < entry.dies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    #[test]
    fn values_come_and_go() {
        let store = Store::new("ttl", 1 << 20, SECOND, false);
        assert_eq!(store.get(b"k", Nanos(0)), None);
        store.put(b"k", b"one", Nanos(0));
        store.put(b"", b"", Nanos(5));
        assert_eq!(store.get(b"k", Nanos(1)).as_deref(), Some(&b"one"[..]));
        assert_eq!(store.get(b"", SECOND).as_deref(), Some(&b""[..]));
        assert_eq!(store.get(b"k", SECOND), None, "its time is over");
        assert_eq!((store.remove(b"k", SECOND), store.len()), (false, 1));
        assert_eq!((store.remove(b"", SECOND), store.remove(b"", SECOND)), (true, false));
    }

    #[test]
    fn the_value_before_is_remembered_if_that_is_asked_for() {
        for keeps_previous in [false, true] {
            let store = Store::new("ttl", 1 << 20, SECOND, keeps_previous);
            store.put(b"k", b"one", Nanos(0));
            assert_eq!(store.previous(b"k", Nanos(0)), None);
            store.put(b"k", b"two", Nanos(0));
            let expected = if keeps_previous { Some(&b"one"[..]) } else { None };
            assert_eq!(store.previous(b"k", Nanos(0)).as_deref(), expected);
        }
    }

    #[test]
    fn what_is_too_large_for_a_cache_is_not_there_and_nothing_else_is_in_its_place() {
        let store = Store::new("ttl", 1 << 20, SECOND, false);
        store.put(b"k", b"small", Nanos(0));
        store.put(b"k", &vec![7; 2 << 20], Nanos(0));
        assert_eq!((store.get(b"k", Nanos(0)), store.len()), (None, 0));
    }

    #[test]
    fn a_cache_of_a_number_of_values_holds_no_more_of_them() {
        let bounds = (1 << 20, NonZero::new(100));
        let store = Store::bounded("ttl", bounds, SECOND, false);
        for number in 0_u32..3000 {
            store.put(&number.to_be_bytes(), b"v", Nanos(0));
        }
        assert!((50..=100).contains(&store.len()), "{} values", store.len());
    }

    #[test]
    fn a_cache_holds_no_more_than_its_bound() {
        let store = Store::new("size", 1 << 20, SECOND, false);
        for number in 0_u32..3000 {
            store.put(&number.to_be_bytes(), &[7; 1000], Nanos(0));
        }
        assert!(store.len() * 1100 <= 1 << 20, "{} values of 1,100 bytes", store.len());
        assert!(store.len() > 500, "{} values are far below the bound", store.len());
    }
}
