//! Sources of the content of requests.

use plimsoll_core::{Nanos, Random, Shard};
use plimsoll_plan::Plan;
use plimsoll_scenario::{Feeds, ScriptValue, Scripts, Surroundings};

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
    /// The worker's share of the data sources.
    pub(super) feeds: Feeds,
    /// The bodies that are made for its requests.
    pub(super) bodies: BodyQueues,
    pub(super) tokens: TokenCache,
    pub(super) scripts: Option<Box<dyn Scripts>>,
    /// Values that steps record of the plan's own metrics.
    pub(super) metrics: OwnMetrics,
    /// Values of a script on their way to the metrics; empty between its calls.
    script_values: Vec<ScriptValue>,
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
        let (random, script_values) = (random_of(plan.seed, shard), Vec::new());
        Self { random, feeds, bodies, tokens, scripts, metrics, script_values }
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

    /// Records the values of the last call of a script, for a request of the measured part or of another.
    pub(super) fn record_of_script(&mut self, measured: bool, at: Nanos, plan: &Plan) {
        let Some(scripts) = &mut self.scripts else { return };
        if plan.metrics.is_empty() {
            return;
        }
        scripts.take_values(&mut self.script_values);
        self.metrics.record_of_script(&mut self.script_values, measured, at, plan);
    }

    /// Returns `true` if a script has asked for the end of the load, or has failed with an error that ends
    /// the run.
    #[inline]
    pub(super) fn wants_to_stop(&self) -> bool {
        self.scripts.as_ref().is_some_and(|scripts| scripts.wants_to_stop())
    }
}
