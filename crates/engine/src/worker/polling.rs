//! Polling: requests whose answer is still to come wait, and are sent again.

use plimsoll_core::Nanos;
use plimsoll_driver::Backend;

use super::Worker;
use crate::capture::NO_CAPTURE;
use crate::request::InFlight;

impl<B: Backend> Worker<'_, B> {
    /// The request is sent again at that time, on any connection of that time. Its time limit goes on.
    pub(super) fn park(&mut self, pool: u32, mut request: InFlight, at: Nanos) {
        self.exchanges.captures.end(request.capture);
        request.capture = NO_CAPTURE;
        request.redirects = 0;
        request.begin_exchange();
        let at = at.min(request.deadline(self.plan));
        self.polls.push(at, pool, request);
    }

    /// Requests whose pause is over are sent again, also after the end of the load: they were begun before.
    pub(super) fn start_polls(&mut self, now: Nanos) {
        while let Some((pool, mut request)) = self.polls.pop_due(now) {
            if request.deadline(self.plan) <= now {
                self.time_out(pool, &request, now);
            } else {
                self.seat_dynamic_origins(pool, &mut request, Nanos::MAX, now);
            }
        }
    }
}
