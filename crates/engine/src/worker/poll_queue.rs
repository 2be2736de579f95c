//! Requests whose answer is still to come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_core::Nanos;

use crate::request::InFlight;

/// Requests that are to be sent again, each with its pool and its time.
///
/// A request is here from [`push`](Self::push) until it is [due](Self::pop_due): on no connection, and still
/// in flight.
#[derive(Debug, Default)]
pub(super) struct PollQueue {
    /// When, and the place among all.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    all: Vec<(u32, InFlight)>,
    free: Vec<u32>,
}

impl PollQueue {
    /// Adds a request that is sent again at that time.
    pub(super) fn push(&mut self, at: Nanos, pool: u32, request: InFlight) {
        let place = match self.free.pop() {
            Some(place) => {
                self.all[place as usize] = (pool, request);
                place
            }
            None => {
                self.all.push((pool, request));
                (self.all.len() - 1) as u32
            }
        };
        self.due.push(Reverse((at, place)));
    }

    /// Takes a request whose time has come, with its pool.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(u32, InFlight)> {
        let &Reverse((at, place)) = self.due.peek()?;
        if at > now {
            return None;
        }
        self.due.pop();
        self.free.push(place);
        Some(self.all[place as usize])
    }

    /// Returns the time at which the next one is due.
    #[inline]
    pub(super) fn next_due(&self) -> Nanos {
        self.due.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }

    /// Returns the number of requests that are to be sent again.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.due.len() as u64
    }

    /// The requests, in no order, for changes.
    pub(super) fn requests_mut(&mut self) -> impl Iterator<Item = &mut InFlight> {
        let mut waits = vec![false; self.all.len()];
        self.due.iter().for_each(|Reverse((_, place))| waits[*place as usize] = true);
        self.all.iter_mut().zip(waits).filter_map(|((_, request), waits)| waits.then_some(request))
    }

    /// The requests, in no order.
    pub(super) fn requests(&self) -> impl Iterator<Item = &InFlight> {
        self.due.iter().map(|Reverse((_, place))| &self.all[*place as usize].1)
    }
}
