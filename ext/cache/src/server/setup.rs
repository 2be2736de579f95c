//! State that the threads of a cache server share, and the counts of each.

use std::num::NonZero;
use std::sync::Arc;

use super::accounts::Accounts;
use super::catalogue::Catalogue;
use super::fault_injector::Counter;
use super::options::{CacheOptions, LieKind};
use super::store::Store;

/// State that the threads of a cache server share.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) options: CacheOptions,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) accounts: Accounts,
    pub(crate) counter: Arc<Counter>,
}

impl Setup {
    pub(crate) fn new(options: CacheOptions) -> Self {
        let setup = Self {
            catalogue: Arc::default(),
            accounts: Accounts::new(&options.user, &options.password),
            counter: Arc::default(),
            options,
        };
        for name in &setup.options.caches {
            setup.catalogue.add(name, || setup.store("ttl", setup.options.max_bytes, None));
        }
        setup
    }

    /// A new cache of this bound.
    pub(crate) fn store(
        &self,
        eviction: &'static str,
        max_bytes: u64,
        max_values: Option<NonZero<u64>>,
    ) -> Store {
        let keeps_previous = self.options.lie.is_some_and(|lie| lie.kind == LieKind::Stale);
        Store::bounded(eviction, (max_bytes, max_values), self.options.time_to_live, keeps_previous)
    }
}

/// Counts of one thread, or of the whole server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Connections to the binary port.
    pub connections: u64,
    /// Connections to the HTTP port.
    pub http_connections: u64,
    /// PINGs.
    pub pings: u64,
    /// PUTs that were stored.
    pub puts: u64,
    /// GETs of caches that exist.
    pub gets: u64,
    /// GETs that were answered with a value.
    pub hits: u64,
    /// DELETEs in caches that exist.
    pub deletes: u64,
    /// Requests on the binary port that were answered with an error, a missing key apart.
    pub refusals: u64,
    /// GETs that were answered wrongly on purpose.
    pub lies: u64,
    /// Requests over HTTP.
    pub http_requests: u64,
    /// Connections that were ended because of bytes that the client sent or did not read.
    pub refused: u64,
    /// Connections that were ended because the unfinished requests of all of them took too much memory.
    pub over_memory: u64,
}

impl CacheReport {
    /// Requests on the binary port.
    pub const fn operations(&self) -> u64 {
        self.pings + self.puts + self.gets + self.deletes + self.refusals
    }
}

plimsoll_targets::add_fields!(CacheReport {
    connections,
    http_connections,
    pings,
    puts,
    gets,
    hits,
    deletes,
    refusals,
    lies,
    http_requests,
    refused,
    over_memory
});
