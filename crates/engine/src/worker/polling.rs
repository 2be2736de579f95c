//! Polling: requests whose answer is still to come wait, and are sent again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_core::Nanos;
use plimsoll_driver::Backend;

use super::Worker;
use crate::capture::NO_CAPTURE;
use crate::request::InFlight;

/// Requests that are to be sent again, each with its pool.
#[derive(Debug, Default)]
pub(super) struct Parked {
    /// When, and the place among all.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    all: Vec<(u32, InFlight)>,
    free: Vec<u32>,
}

impl Parked {
    fn push(&mut self, at: Nanos, pool: u32, request: InFlight) {
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

    fn pop_due(&mut self, now: Nanos) -> Option<(u32, InFlight)> {
        let &Reverse((at, place)) = self.due.peek()?;
        if at > now {
            return None;
        }
        self.due.pop();
        self.free.push(place);
        Some(self.all[place as usize])
    }

    /// Returns the time at which the next one is due.
    pub(super) fn next_due(&self) -> Nanos {
        self.due.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }

    /// Returns the number of requests that are to be sent again.
    pub(super) fn len(&self) -> u64 {
        self.due.len() as u64
    }

    /// The requests, in no order.
    pub(super) fn requests(&self) -> impl Iterator<Item = &InFlight> {
        self.due.iter().map(|Reverse((_, place))| &self.all[*place as usize].1)
    }
}

impl<B: Backend> Worker<'_, B> {
    /// The request is sent again at that time, on whatever connection there is then. Its time limit goes on.
    pub(super) fn park(&mut self, pool: u32, mut request: InFlight, at: Nanos) {
        self.exchanges.captures.end(request.capture);
        request.capture = NO_CAPTURE;
        request.redirects = 0;
        // What is measured and extracted is the last response.
        request.first_byte = Nanos::MAX;
        let at = at.min(request.deadline(self.plan));
        self.parked.push(at, pool, request);
    }

    /// Requests whose pause is over are sent again, also after the end of the load: they were begun before.
    pub(super) fn start_parked(&mut self, now: Nanos) {
        while let Some((pool, mut request)) = self.parked.pop_due(now) {
            if request.deadline(self.plan) <= now {
                self.time_out(pool, &request, now);
            } else {
                self.seat_dynamic_origins(pool, &mut request, Nanos::MAX, now);
            }
        }
    }
}
