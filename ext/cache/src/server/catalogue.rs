//! The caches of a server by name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::store::Store;

/// The most caches that there may be before clients can make no more.
const MOST_CACHES: usize = 1_000;

/// All caches. Shared by the threads.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    stores: RwLock<BTreeMap<String, Arc<Store>>>,
    /// Changes with every change of `stores`.
    edition: AtomicU64,
}

impl Catalogue {
    /// Adds a cache for a client; `false`: there is one of that name; `None`: there are as many as there may
    /// be.
    pub(crate) fn create(&self, name: &str, store: impl FnOnce() -> Store) -> Option<bool> {
        self.insert(name, MOST_CACHES, store)
    }

    /// Adds a cache; returns `false` if there is one of that name.
    pub(crate) fn add(&self, name: &str, store: impl FnOnce() -> Store) -> bool {
        self.insert(name, usize::MAX, store).unwrap_or_default()
    }

    fn insert(&self, name: &str, most: usize, store: impl FnOnce() -> Store) -> Option<bool> {
        // Every call leaves the guarded map sound: no thread could leave it half done.
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        if stores.contains_key(name) {
            return Some(false);
        }
        if stores.len() >= most {
            return None;
        }
        stores.insert(name.to_owned(), Arc::new(store()));
        self.edition.fetch_add(1, Ordering::Release);
        Some(true)
    }

    /// Forgets a cache with all its values; `false`: there was none.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        let found = stores.remove(name).is_some();
        self.edition.fetch_add(1, Ordering::Release);
        found
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Store>> {
        self.stores.read().unwrap_or_else(PoisonError::into_inner).get(name).map(Arc::clone)
    }

    /// All of them, in the order of their names.
    pub(crate) fn all(&self) -> Vec<(String, Arc<Store>)> {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        stores.iter().map(|(name, store)| (name.clone(), Arc::clone(store))).collect()
    }
}

/// A thread's memory of the cache that it found last: most requests are about the same one.
#[derive(Debug)]
pub(crate) struct Finder {
    catalogue: Arc<Catalogue>,
    edition: u64,
    name: String,
    /// `None` also before anything was found.
    store: Option<Arc<Store>>,
}

impl Finder {
    pub(crate) const fn new(catalogue: Arc<Catalogue>) -> Self {
        Self { catalogue, edition: 0, name: String::new(), store: None }
    }

    #[inline]
    pub(crate) fn find(&mut self, name: &str) -> Option<&Store> {
        // Acquire: the caches are those of this edition, or of a later one.
        let edition = self.catalogue.edition.load(Ordering::Acquire);
        if edition != self.edition || name != self.name || self.store.is_none() {
            self.edition = edition;
            name.clone_into(&mut self.name);
            self.store = self.catalogue.find(name);
        }
        self.store.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Nanos;

    use super::*;

    #[test]
    fn clients_make_a_bounded_number_of_caches() {
        let catalogue = Catalogue::default();
        let store = || Store::new("ttl", 1 << 20, Nanos::from_secs(1), false);
        for number in 0..MOST_CACHES {
            assert_eq!(catalogue.create(&number.to_string(), store), Some(true));
        }
        assert_eq!((catalogue.create("more", store), catalogue.create("7", store)), (None, Some(false)));
        assert!(catalogue.add("told", store) && catalogue.remove("7") && catalogue.remove("8"));
        assert_eq!(catalogue.create("more", store), Some(true));
    }

    #[test]
    fn a_finder_sees_caches_come_and_go() {
        let catalogue = Arc::new(Catalogue::default());
        let store = || Store::new("ttl", 1 << 20, Nanos::from_secs(1), false);
        let mut finder = Finder::new(Arc::clone(&catalogue));
        assert!(finder.find("a").is_none() && finder.find("").is_none());
        assert!(catalogue.add("a", store) && catalogue.add("b", store) && !catalogue.add("a", store));
        finder.find("a").expect("it is there now").put(b"k", b"v", Nanos(0));
        assert_eq!(finder.find("b").map(Store::len), Some(0));
        assert_eq!(finder.find("a").map(Store::len), Some(1));
        assert_eq!(catalogue.all().len(), 2);
        assert!(catalogue.remove("a") && !catalogue.remove("a"));
        assert!(finder.find("a").is_none());
        assert!(catalogue.add("a", store));
        assert_eq!(finder.find("a").map(Store::len), Some(0), "another one of that name");
    }
}
