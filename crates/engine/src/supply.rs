//! Supplied bodies, as one worker takes them: made ahead by a thread of their own, or there from the start.
//!
//! A body that takes longer to make than to send must not be made while a request is due. A thread makes them
//! ahead into a bounded queue, and waits when that is full. Should the queue be empty when a request is due,
//! the worker makes the body itself: nothing waits unnoticed, since the time that this takes is in the
//! request's start lag, and it is counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use plimsoll_core::{Nanos, SequenceAllocator, Shard};
use plimsoll_metrics::HelperCpu;
use plimsoll_plan::{Load, Plan};
use plimsoll_scenario::{ALWAYS, Bodies, BodyMaker, BodySource, Supplied, SuppliedBody};
use plimsoll_system::{
    clock,
    usage::{self, Cpu},
};

use crate::error::RunError;
use crate::session::Sessions;

/// For how long bodies are made ahead: long enough for a thread that has lost its core for a while, and short
/// enough that a time in a body is still the time of its request.
const AHEAD: Nanos = Nanos::from_millis(100);
/// Batches of bodies that are made ahead, at least and at most.
const FEWEST: f64 = 2.0;
const MOST: f64 = 64.0;
/// Batches of bodies that are made ahead where there is no rate.
const WITHOUT_RATE: usize = 16;
/// Bytes that are expected of a body at first.
const FIRST_GUESS: usize = 1 << 16;

/// The supplies of a plan, as one worker takes bodies from them.
#[derive(Default)]
pub struct BodyQueues {
    body_queues: Vec<(PrebuiltBodies, BodyQueue)>,
    bodies: Arc<ThreadTimes>,
    signing: Arc<ThreadTimes>,
}

/// CPU time of the threads of one worker that make bodies ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MakingCpu {
    pub(crate) bodies: HelperCpu,
    /// Of those whose bodies are signed.
    pub(crate) signing: HelperCpu,
}

/// CPU time that threads of one kind have used. Each adds its usage after every batch, so that the batch that
/// is being made is missing: a few bodies of a run of thousands.
#[derive(Debug, Default)]
struct ThreadTimes {
    threads: AtomicU32,
    user_ns: AtomicU64,
    system_ns: AtomicU64,
}

impl ThreadTimes {
    /// Adds the calling thread's usage since `known`, and updates `known`.
    fn advance(&self, known: &mut Cpu) {
        let now = usage::thread_cpu();
        self.user_ns.fetch_add(now.user.since(known.user).0, Ordering::Relaxed);
        self.system_ns.fetch_add(now.system.since(known.system).0, Ordering::Relaxed);
        *known = now;
    }

    fn read(&self) -> HelperCpu {
        HelperCpu {
            threads: self.threads.load(Ordering::Relaxed),
            user: Nanos(self.user_ns.load(Ordering::Relaxed)),
            system: Nanos(self.system_ns.load(Ordering::Relaxed)),
        }
    }
}

/// One worker's share of the bodies that were made before the run.
struct PrebuiltBodies {
    bodies: Arc<[SuppliedBody]>,
    /// The next one of this worker's, and how far it is to the one after that.
    next: usize,
    stride: usize,
    expired: u64,
}

impl PrebuiltBodies {
    fn new(bodies: &Arc<[SuppliedBody]>, worker: Shard) -> Self {
        let (next, stride) = (worker.index as usize, worker.of.max(1) as usize);
        Self { bodies: Arc::clone(bodies), next, stride, expired: 0 }
    }

    fn take(&mut self, unix_ns: u64) -> Option<SuppliedBody> {
        loop {
            let made = self.bodies.get(self.next)?;
            self.next += self.stride;
            if may_be_sent(made, unix_ns) {
                return Some(made.clone());
            }
            self.expired += 1;
        }
    }
}

#[inline]
fn may_be_sent(made: &SuppliedBody, unix_ns: u64) -> bool {
    made.window == ALWAYS || made.window.contains(&unix_ns)
}

enum BodyQueue {
    /// These in turn.
    Ready { bodies: Arc<[SuppliedBody]>, next: usize },
    /// Made ahead; by the worker if the queue is empty. Where nothing is made ahead there is no queue.
    Fresh { queue: Option<Queue>, own: Own, signed: bool, count: BodyCount },
}

/// Bodies that were made ahead, in the order in which they were made.
struct Queue {
    batches: Receiver<Vec<SuppliedBody>>,
    /// The batch that is being taken from, the next body at its end.
    batch: Vec<SuppliedBody>,
}

impl Queue {
    fn next(&mut self) -> Option<SuppliedBody> {
        if self.batch.is_empty() {
            self.batch = self.batches.try_recv().ok()?;
        }
        self.batch.pop()
    }
}

/// State of a thread for making bodies.
struct Own {
    maker: Box<dyn BodyMaker>,
    turns: Arc<SequenceAllocator>,
    out: Vec<u8>,
}

impl Own {
    fn new(maker: Box<dyn BodyMaker>, turns: &Arc<SequenceAllocator>) -> Self {
        Self { maker, turns: Arc::clone(turns), out: Vec::with_capacity(FIRST_GUESS) }
    }

    fn make(&mut self, unix_ns: u64) -> SuppliedBody {
        let (number, begin) = self.turns.take(unix_ns);
        self.maker.made(number, begin, &mut self.out)
    }
}

/// Counts of the bodies taken, by origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyCount {
    /// Bodies that were taken.
    pub(crate) taken: u64,
    /// Bodies that were made only when they were due, because none was ready.
    pub(crate) late: u64,
    /// Late bodies that also had to be signed.
    pub(crate) unsigned: u64,
    /// Bodies that were made ahead and not taken, because they could not be sent at that time any more, or
    /// not yet.
    pub(crate) expired: u64,
}

impl fmt::Debug for BodyQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taps").field("count", &self.body_queues.len()).finish()
    }
}

impl BodyQueues {
    /// Opens all supplies of a plan for one worker, and starts the threads that make bodies ahead. They end
    /// when this is dropped. Where time is simulated (`at_once`) the worker makes all bodies itself.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn open(plan: &Plan, worker: Shard, at_once: bool) -> Result<Self, RunError> {
        let (bodies, signing) = (Arc::<ThreadTimes>::default(), Arc::<ThreadTimes>::default());
        let body_queues = plan.supplies.iter().enumerate().map(|(number, supply)| {
            let seed = plan.supply_seed(number);
            let tap = match &supply.bodies {
                Bodies::Ready(bodies) => {
                    // Workers begin at different places, so that they do not all send the same.
                    let next = bodies.len() * worker.index as usize / worker.of.max(1) as usize;
                    BodyQueue::Ready { bodies: Arc::clone(bodies), next }
                }
                Bodies::Fresh(source) => {
                    // The thread and the worker take turns, so that their bodies have nothing in common.
                    let turns = Arc::new(
                        SequenceAllocator::new(source.span_ns(), worker).starting_at(source.start_ns()),
                    );
                    let own = || Own::new(source.open(seed), &turns);
                    let queue = match at_once {
                        true => None,
                        false => {
                            let makers = (0..source.makers().max(1)).map(|_| own());
                            let (depth, batch) = (depth(plan, worker, &**source), source.batch());
                            let times = if source.is_signed() { &signing } else { &bodies };
                            Some(ahead(makers, worker, depth, batch, times)?)
                        }
                    };
                    let (signed, count) = (source.is_signed(), BodyCount::default());
                    BodyQueue::Fresh { queue, own: own(), signed, count }
                }
            };
            Ok((PrebuiltBodies::new(&supply.stock, worker), tap))
        });
        let body_queues = body_queues.collect::<Result<_, RunError>>()?;
        Ok(Self { body_queues, bodies, signing })
    }

    /// Returns the CPU time that the threads which make bodies ahead have used so far.
    pub(crate) fn cpu(&self) -> MakingCpu {
        MakingCpu { bodies: self.bodies.read(), signing: self.signing.read() }
    }

    /// The next body of a supply. Takes no lock, and allocates only where a body has to be made here.
    ///
    /// # Panics
    /// If there is no such supply.
    pub(crate) fn take(&mut self, supply: u16, unix_ns: u64) -> SuppliedBody {
        let (stock, tap) = &mut self.body_queues[usize::from(supply)];
        if let Some(made) = stock.take(unix_ns) {
            return made;
        }
        match tap {
            BodyQueue::Ready { bodies, next } => {
                let body = bodies[*next].clone();
                *next = (*next + 1) % bodies.len();
                body
            }
            BodyQueue::Fresh { queue, own, signed, count } => {
                count.taken += 1;
                if let Some(queue) = queue {
                    while let Some(made) = queue.next() {
                        if may_be_sent(&made, unix_ns) {
                            return made;
                        }
                        count.expired += 1;
                    }
                    count.late += 1;
                    count.unsigned += u64::from(*signed);
                }
                own.make(unix_ns)
            }
        }
    }

    /// Returns the counts of the bodies that were made for this run.
    pub(crate) fn count(&self) -> BodyCount {
        self.body_queues.iter().fold(BodyCount::default(), |sum, (stock, tap)| match tap {
            BodyQueue::Ready { .. } => sum,
            BodyQueue::Fresh { count, .. } => {
                let BodyCount { taken, late, unsigned, expired } = *count;
                BodyCount {
                    taken: sum.taken + taken,
                    late: sum.late + late,
                    unsigned: sum.unsigned + unsigned,
                    expired: sum.expired + expired + stock.expired,
                }
            }
        })
    }
}

/// The body that a request gets: the next turn of what the session began, or the next body of a supply, which
/// the session then may ask after, or the inquiry after its last one.
#[inline(never)]
pub(crate) fn body_of(
    supplied: Supplied,
    body_queues: &mut BodyQueues,
    sessions: &mut Sessions,
    session: u32,
    unix_ns: u64,
) -> Arc<[u8]> {
    let mut session = sessions.get_mut(session);
    if supplied.inquiry {
        let follow_up = session.and_then(|session| session.state.follow_up.as_ref());
        return follow_up.map_or_else(Arc::default, |follow_up| Arc::clone(&follow_up.inquiry));
    }
    if let Some(session) = &mut session
        && session.state.turns.0 == supplied.supply
        && let Some(turn) = session.state.turns.1.pop()
    {
        return turn;
    }
    let made = body_queues.take(supplied.supply, unix_ns);
    if let Some(session) = session {
        session.state.follow_up = made.follow_up;
        session.state.turns = (supplied.supply, made.turns);
    }
    made.body
}

/// Starts threads that make bodies ahead in batches of `batch`, until the queue that they fill is dropped.
/// The queue has room for `depth` bodies.
fn ahead(
    makers: impl Iterator<Item = Own>,
    worker: Shard,
    depth: usize,
    batch: usize,
    times: &Arc<ThreadTimes>,
) -> Result<Queue, RunError> {
    let (send, batches) = sync_channel(depth.div_ceil(batch));
    for mut own in makers {
        let send = send.clone();
        let times = Arc::clone(times);
        times.threads.fetch_add(1, Ordering::Relaxed);
        let mut known = Cpu::default();
        // Taken from the end.
        let mut make = move || {
            let mut made: Vec<SuppliedBody> = (0..batch).map(|_| own.make(clock::unix().0)).collect();
            made.reverse();
            times.advance(&mut known);
            made
        };
        thread::Builder::new()
            .name(format!("bodies-{}", worker.index))
            // Runs until the receiver is dropped.
            .spawn(move || while send.send(make()).is_ok() {})
            .map_err(|error| RunError::Worker(error.to_string()))?;
    }
    Ok(Queue { batches, batch: Vec::new() })
}

/// Bodies that are made ahead for one worker and supply.
fn depth(plan: &Plan, worker: Shard, source: &dyn BodySource) -> usize {
    let batches = match &plan.load {
        Load::Open { profile, .. } => {
            let rate = profile.peak() / f64::from(worker.of.max(1));
            let each = source.batch().max(1) as f64;
            (rate * AHEAD.as_secs_f64() / each).ceil().clamp(FEWEST, MOST) as usize
        }
        Load::Closed => WITHOUT_RATE,
    };
    batches * source.batch()
}
