//! A checksum that shows whether two runs put the same load on their targets.

use std::sync::Arc;

use plimsoll_core::{Arrival, Nanos, Shard};
use plimsoll_plan::{Load, Plan};
use plimsoll_scenario::{Context, Fingerprint, TraceKey};

use crate::addresses::TargetAddress;
use crate::target_pool::TargetPool;
use crate::worker::random_of;

/// Arrivals of the run that are included: those with smaller indices. In the closed model, this many
/// iterations of each worker and target are dealt.
const ARRIVALS: u64 = 10_000;
/// Iterations of each worker whose requests are rendered.
const RENDERED: usize = 100;
/// Bytes of each worker after which no more are rendered.
const MOST_BYTES: usize = 1 << 20;

/// The checksum of the load: the same for the same plan and seed, in every run.
///
/// It is computed before the run, from the actions of each worker: the intended times of its first arrivals
/// and the scenarios that they are dealt to, and the requests of the first of them, rendered one after the
/// other from the worker's stream of random numbers. These are the very requests that it sends as long as no
/// decision by a response comes between: variables and cookies are empty here, the time of day zero, and
/// changes by scripts are not seen. Where programs, scripts or data sources draw, too, the seed itself
/// counts.
pub fn load_checksum(plan: &Plan) -> Fingerprint {
    let mut hash = Fingerprint::EMPTY;
    if draws_beside_requests(plan) {
        hash = hash.with(&plan.seed.to_le_bytes());
    }
    for step in &plan.steps {
        // The fingerprint covers bodies that all requests share; they are not rendered again below.
        hash = hash.with_field(step.request.fingerprint().to_string().as_bytes());
    }
    // All shards of one load have the same checksum.
    let workers = plan.worker_shard(0).of;
    (0..workers).fold(hash, |hash, index| of_worker(plan, Shard { index, of: workers }, hash))
}

/// Returns `true` if something beside the rendering of requests depends on the seed.
fn draws_beside_requests(plan: &Plan) -> bool {
    plan.scripts.is_some()
        || !plan.feeds.is_empty()
        || !plan.pools.is_empty()
        || !plan.supplies.is_empty()
        || plan.scenarios.iter().any(|scenario| scenario.program.draws())
}

/// An iteration that begins: its arrival, its scenario, and its pool.
type Begun = (Arrival, u32, usize);

fn of_worker(plan: &Plan, worker: Shard, mut hash: Fingerprint) -> Fingerprint {
    let nowhere: Vec<Arc<[TargetAddress]>> = plan.targets.iter().map(|_| Arc::from([])).collect();
    let mut pools = TargetPool::all(plan, &nowhere, worker);
    let mut begun: Vec<Begun> = Vec::new();
    for (number, pool) in pools.iter_mut().enumerate() {
        pool.end_at(ARRIVALS);
        begun.extend(
            dealt(plan, pool, worker).into_iter().map(|(arrival, scenario)| (arrival, scenario, number)),
        );
    }
    begun.sort_by_key(|(arrival, _, pool)| (arrival.at, arrival.index, *pool));
    for (arrival, scenario, _) in &begun {
        hash = hash.with(&arrival.index.to_le_bytes()).with(&arrival.at.0.to_le_bytes());
        hash = hash.with(&scenario.to_le_bytes());
    }
    rendered(plan, worker, &pools, &begun, hash)
}

/// Takes the arrivals and scenarios of a pool in the way the run takes them.
fn dealt(plan: &Plan, pool: &mut TargetPool, worker: Shard) -> Vec<(Arrival, u32)> {
    let mut dealt = Vec::new();
    match &plan.load {
        Load::Open { .. } => {
            while let Some(next) = pool.peek() {
                pool.take();
                dealt.push(next);
            }
        }
        Load::Closed => {
            let none = vec![false; plan.scenarios.len()];
            for turn in 0..RENDERED as u64 {
                let Some(scenario) = pool.next_scenario(&none, Nanos::ZERO) else { break };
                let index = turn * u64::from(worker.of) + u64::from(worker.index);
                dealt.push((Arrival { index, at: Nanos::ZERO }, scenario));
            }
        }
    }
    dealt
}

fn rendered(
    plan: &Plan,
    worker: Shard,
    pools: &[TargetPool],
    begun: &[Begun],
    mut hash: Fingerprint,
) -> Fingerprint {
    let mut random = random_of(plan.seed, worker);
    let variables = vec![Vec::new(); plan.variables.len()];
    let (mut scratch, mut out, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (arrival, scenario, _) in begun.iter().take(RENDERED) {
        for step in &plan.steps[range(plan, *scenario)] {
            if bytes > MOST_BYTES {
                return hash;
            }
            let context = Context {
                index: arrival.index,
                step: 0,
                // Every worker has traces of its own.
                trace_key: TraceKey::default(),
                worker: worker.index,
                unix_ns: 0,
                variables: &variables,
                cookies: &[],
                authority: pools.get(step.target).map_or(&[], TargetPool::authority),
                // The fingerprint of the step distinguishes supplies.
                body: None,
                // Tokens depend on the time.
                tokens: None,
            };
            out.clear();
            step.request.render(&context, &mut random, &mut scratch, &mut out);
            bytes += out.len();
            hash = hash.with_field(&out);
        }
    }
    hash
}

/// The range of a scenario's steps among those of the plan.
fn range(plan: &Plan, scenario: u32) -> core::ops::Range<usize> {
    let steps = &plan.scenarios[scenario as usize].steps;
    steps.start as usize..steps.end as usize
}
