//! Sources of the content of requests.

use plimsoll_core::{Nanos, Random, Shard};
use plimsoll_plan::Plan;
use plimsoll_scenario::{Feeds, Scripts, Surroundings};

use super::own_metrics::OwnMetrics;
use super::random_of;
use super::tokens::TokenCache;
use crate::supply::BodyQueues;

/// The sources that a worker draws the content of its requests from: random numbers, rows of data, bodies,
/// tokens and scripts.
///
/// All are the worker's own. They are drawn from in the order in which requests are written, so that a seed
/// makes the same requests each time.
pub(super) struct Content {
    pub(super) random: Random,
    /// Its share of the data sources.
    pub(super) feeds: Feeds,
    /// The bodies that are made for its requests.
    pub(super) bodies: BodyQueues,
    pub(super) tokens: TokenCache,
    pub(super) scripts: Option<Box<dyn Scripts>>,
    /// Values that steps record of the plan's own metrics.
    pub(super) metrics: OwnMetrics,
}

impl Content {
    /// The sources of one worker of a plan, at a time in nanoseconds since 1970.
    pub(super) fn new(
        plan: &Plan,
        shard: Shard,
        unix_ns: u64,
        feeds: Feeds,
        bodies: BodyQueues,
        scripts: Option<Box<dyn Scripts>>,
    ) -> Self {
        let tokens = TokenCache::new(plan, shard, unix_ns);
        let metrics = OwnMetrics::new(plan);
        Self { random: random_of(plan.seed, shard), feeds, bodies, tokens, scripts, metrics }
    }

    /// The sources that a program may draw from in the next step of iteration `index`, `elapsed` after it
    /// began.
    #[inline]
    pub(super) fn surroundings(
        &mut self,
        index: u64,
        elapsed: Nanos,
        shard: Shard,
        unix_ns: u64,
    ) -> Surroundings<'_> {
        Surroundings {
            index,
            worker: shard.index,
            unix_ns,
            elapsed,
            random: &mut self.random,
            feeds: &mut self.feeds,
            tokens: Some(&self.tokens.all),
            values: Some(&mut self.metrics),
        }
    }

    /// Returns `true` if a script has asked for the end of the load, or has failed with an error that ends
    /// the run.
    #[inline]
    pub(super) fn wants_to_stop(&self) -> bool {
        self.scripts.as_ref().is_some_and(|scripts| scripts.wants_to_stop())
    }
}
