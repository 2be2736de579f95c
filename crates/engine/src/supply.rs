//! Supplied bodies, as one worker takes them: made ahead by a thread of their own, or there from the begin.
//!
//! A body that takes longer to make than to send must not be made while a request is due. A thread makes them
//! ahead into a bounded queue, and waits when that is full. Should the queue be empty when a request is due,
//! the worker makes the body itself: nothing waits unnoticed, since the time that this takes is in the
//! request's start lag, and it is counted.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use plimsoll_core::{Nanos, Shard, Turns};
use plimsoll_driver::clock;
use plimsoll_plan::{Load, Plan};
use plimsoll_scenario::{Bodies, BodyMaker};

use crate::error::RunError;

/// For how long bodies are made ahead: long enough for a thread that has lost its core for a while, and short
/// enough that a time in a body is still the time of its request.
const AHEAD: Nanos = Nanos::from_millis(100);
/// Bodies that are made ahead, at least and at most.
const FEWEST: f64 = 2.0;
const MOST: f64 = 64.0;
/// The same where there is no rate.
const WITHOUT_RATE: usize = 16;
/// Bytes that are expected of a body at first.
const FIRST_GUESS: usize = 1 << 16;

/// The supplies of a plan, as one worker takes bodies from them.
#[derive(Default)]
pub struct Taps {
    taps: Vec<Tap>,
}

enum Tap {
    /// These in turn.
    Ready { bodies: Arc<[Arc<[u8]>]>, next: usize },
    /// Made ahead; when there is none, by the worker. Where nothing is made ahead there is no queue.
    Fresh { made: Option<Receiver<Arc<[u8]>>>, own: Own, count: BodyCount },
}

/// What a thread makes bodies with.
struct Own {
    maker: Box<dyn BodyMaker>,
    turns: Arc<Turns>,
    out: Vec<u8>,
}

impl Own {
    fn new(maker: Box<dyn BodyMaker>, turns: &Arc<Turns>) -> Self {
        Self { maker, turns: Arc::clone(turns), out: Vec::with_capacity(FIRST_GUESS) }
    }

    fn make(&mut self, unix_ns: u64) -> Arc<[u8]> {
        let (number, begin) = self.turns.take(unix_ns);
        self.maker.make(number, begin, &mut self.out);
        Arc::from(&self.out[..])
    }
}

/// How bodies were come by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyCount {
    /// Bodies that were taken.
    pub(crate) taken: u64,
    /// Of them those that were made when they were due, for want of one that was made ahead.
    pub(crate) late: u64,
}

impl fmt::Debug for Taps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taps").field("count", &self.taps.len()).finish()
    }
}

impl Taps {
    /// Opens all supplies of a plan for one worker, and starts the threads that make bodies ahead. They end
    /// when this is dropped. Where time is simulated (`at_once`) the worker makes all bodies itself.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn open(plan: &Plan, worker: Shard, at_once: bool) -> Result<Self, RunError> {
        let depth = depth(plan, worker);
        let taps = plan.supplies.iter().enumerate().map(|(number, supply)| {
            let seed = plan.supply_seed(number);
            Ok(match &supply.bodies {
                Bodies::Ready(bodies) => {
                    // Workers begin at different places, so that they do not all send the same.
                    let next = bodies.len() * worker.index as usize / worker.of.max(1) as usize;
                    Tap::Ready { bodies: Arc::clone(bodies), next }
                }
                Bodies::Fresh(source) => {
                    // The thread and the worker take turns, so that their bodies have nothing in common.
                    let turns = Arc::new(Turns::new(source.span_ns(), worker).starting_at(source.start_ns()));
                    let own = || Own::new(source.open(seed), &turns);
                    let made = match at_once {
                        true => None,
                        false => Some(ahead(own(), worker, depth)?),
                    };
                    Tap::Fresh { made, own: own(), count: BodyCount::default() }
                }
            })
        });
        Ok(Self { taps: taps.collect::<Result<_, RunError>>()? })
    }

    /// The next body of a supply. Takes no lock, and allocates only where a body has to be made here.
    ///
    /// # Panics
    /// If there is no such supply.
    pub(crate) fn take(&mut self, supply: u16, unix_ns: u64) -> Arc<[u8]> {
        match &mut self.taps[usize::from(supply)] {
            Tap::Ready { bodies, next } => {
                let body = Arc::clone(&bodies[*next]);
                *next = (*next + 1) % bodies.len();
                body
            }
            Tap::Fresh { made, own, count } => {
                count.taken += 1;
                if let Some(made) = made {
                    if let Ok(body) = made.try_recv() {
                        return body;
                    }
                    count.late += 1;
                }
                own.make(unix_ns)
            }
        }
    }

    /// How the bodies that were made for this run were come by.
    pub(crate) fn count(&self) -> BodyCount {
        self.taps.iter().fold(BodyCount::default(), |sum, tap| match tap {
            Tap::Ready { .. } => sum,
            Tap::Fresh { count, .. } => {
                BodyCount { taken: sum.taken + count.taken, late: sum.late + count.late }
            }
        })
    }
}

/// Starts a thread that makes bodies ahead, until the queue that it fills is dropped.
fn ahead(mut own: Own, worker: Shard, depth: usize) -> Result<Receiver<Arc<[u8]>>, RunError> {
    let (send, made) = sync_channel(depth);
    thread::Builder::new()
        .name(format!("bodies-{}", worker.index))
        // Until nobody wants them.
        .spawn(move || while send.send(own.make(clock::unix().0)).is_ok() {})
        .map_err(|error| RunError::Worker(error.to_string()))?;
    Ok(made)
}

/// Bodies that are made ahead for one worker and supply.
fn depth(plan: &Plan, worker: Shard) -> usize {
    match &plan.load {
        Load::Open { profile, .. } => {
            let rate = profile.peak() / f64::from(worker.of.max(1));
            (rate * AHEAD.as_secs_f64()).clamp(FEWEST, MOST) as usize
        }
        Load::Closed => WITHOUT_RATE,
    }
}
