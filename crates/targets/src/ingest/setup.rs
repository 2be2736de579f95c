//! State that the threads of an ingest server share, and its report.

use std::sync::atomic::AtomicU64;

use super::fault_injector::FaultInjector;
use super::options::IngestOptions;
use super::queries::Queries;
use super::store::{Acknowledged, Limits, Store};
use super::tokens::Tokens;
use crate::server_threads::Stopper;
use crate::sink::{Delay, FaultModel, Faults, SinkOptions};

/// State that the threads of an ingest server share.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) options: IngestOptions,
    pub(crate) store: Store,
    pub(crate) tokens: Tokens,
    pub(crate) injector: FaultInjector,
    /// Service times and failures of writes; `None` if writes take no time and none fails.
    pub(crate) law: Option<FaultModel>,
    /// The number of the next write, for the law.
    pub(crate) number: AtomicU64,
    pub(crate) queries: Queries,
    pub(crate) stopper: Stopper,
}

impl Setup {
    pub(crate) fn new(options: IngestOptions) -> Self {
        let limits = Limits {
            flush_delay: options.flush_delay,
            flush_rows: options.flush_rows,
            keep: options.keep,
            max_memory: options.max_memory,
            full_after: options.full_after,
        };
        let fails = options.reset > 0.0 || options.fails.iter().any(|(_, share)| *share > 0.0);
        let law = (fails || options.delay != Delay::None).then(|| {
            let faults =
                Faults { reset: options.reset, statuses: options.fails.clone(), ..Faults::default() };
            let sink = SinkOptions::new(options.listen.clone());
            FaultModel::new(&SinkOptions { delay: options.delay, faults, seed: options.seed, ..sink })
        });
        Self {
            store: Store::new(limits),
            tokens: Tokens::new(&options.tokens),
            injector: FaultInjector::new(options.lie, options.seed),
            law,
            number: AtomicU64::new(0),
            queries: Queries::default(),
            stopper: Stopper::default(),
            options,
        }
    }
}

/// The report of an ingest server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestReport {
    /// Counts of all threads.
    pub counts: IngestCounts,
    /// Acknowledged rows, by database and measurement.
    pub acknowledged: Vec<Acknowledged>,
}

/// Counts of one thread, or of the whole server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestCounts {
    /// Connections.
    pub connections: u64,
    /// Requests of any kind.
    pub requests: u64,
    /// Writes that were acknowledged.
    pub writes: u64,
    /// Bytes of their payloads, without compression.
    pub bytes: u64,
    /// Writes that were refused for their content, or because the disk was full.
    pub refusals: u64,
    /// Writes that were refused or reset on purpose.
    pub failures: u64,
    /// Parts of writes that were passed over without a word, as the real server does.
    pub skipped: u64,
    /// Queries.
    pub queries: u64,
    /// Connections that were ended because of bytes that the client sent or did not read.
    pub violations: u64,
    /// Queries that were refused because too many were running and waiting.
    pub queries_refused: u64,
    /// Connections that were ended because the unfinished requests of all of them took too much memory.
    pub over_memory: u64,
}

crate::add_fields!(IngestCounts {
    connections,
    requests,
    writes,
    bytes,
    refusals,
    failures,
    skipped,
    queries,
    violations,
    queries_refused,
    over_memory
});
