//! Resending: requests that their server has provably not processed, or may process twice without harm, are
//! sent once more.
//!
//! An attempt is lost in three ways. HTTP/2 says which requests were not processed: those behind the last
//! stream of a GOAWAY, and refused streams (RFC 9113 section 8.7). A server of HTTP/1.1 may close a kept
//! connection at any time, so that the close and the next request cross: without one byte of an answer the
//! request is repeated if its method is idempotent (RFC 9110 section 9.2.2), and so are those behind it. And
//! no request is processed behind an answer that says that it is the last one (RFC 9112 section 9.6).
//!
//! A request that is sent again is still the same: its intended time stays, its timeout goes on, and it ends
//! in one account. It is counted as resent when its bytes are handed over, by
//! [`Outgoing::flush`](super::outgoing::Outgoing::flush). A second loss is a failure.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::Backend;

use super::Worker;
use crate::capture::Detour;
use crate::connection::{Client, InTurn};
use crate::request::{InFlight, Intent, Loss, NO_SESSION};
use crate::target_pool::TargetPool;

/// Facts about the requests on a connection of HTTP/1.1 that was lost, none of which has got a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The server has not processed them.
    Unprocessed,
    /// The server had answered before, and closed or reset the connection: it may have processed them.
    Perhaps,
    /// Something else ended the connection: they have failed.
    Otherwise,
}

impl<B: Backend> Worker<'_, B> {
    /// Returns what is known of the requests on a connection that ends with a failure of this class.
    pub(super) fn lost_with(&self, slot: u32, class: ErrorClass) -> Lost {
        let conn = &self.conns[slot as usize];
        let closed = matches!(
            class,
            ErrorClass::Reset | ErrorClass::ClosedBeforeResponse | ErrorClass::ClosedInResponse
        );
        match conn.client {
            Client::InTurn(InTurn::Http1(_)) if closed && conn.answered => Lost::Perhaps,
            _ => Lost::Otherwise,
        }
    }

    /// Returns `true` if a request on a connection that was lost is to be sent again.
    pub(super) fn may_resend_lost(&self, request: &InFlight, how: Lost) -> bool {
        match how {
            Lost::Unprocessed => self.may_resend(request, true),
            Lost::Perhaps => self.may_resend(request, false),
            Lost::Otherwise => false,
        }
    }

    /// Returns `true` if a request whose attempt was lost is to be sent again; `proven` if it was certainly
    /// not processed.
    pub(super) fn may_resend(&self, request: &InFlight, proven: bool) -> bool {
        self.plan.resend
            && request.intent == Intent::Await
            && request.first_byte == Nanos::MAX
            && request.deadline(self.plan) > self.clock.now
            && !self.takes_bodies(request)
            && (proven || self.is_repeatable(request))
    }

    /// Returns `true` if the request of a session has taken the body of a supply, which is not kept: the next
    /// one is another turn of a conversation, or has another outcome to ask for.
    fn takes_bodies(&self, request: &InFlight) -> bool {
        let supplied = self.plan.steps[request.step as usize].request.supply();
        request.session != NO_SESSION && supplied.is_some_and(|supplied| !supplied.inquiry)
    }

    /// Returns `true` if a request does no harm that is processed twice. The method of one that a script
    /// makes is not known any more, and a write whose effect is examined after the run must happen once.
    fn is_repeatable(&self, request: &InFlight) -> bool {
        let step = &self.plan.steps[request.step as usize];
        let idempotent = match self.exchanges.captures.detour(request.capture) {
            Some(Detour::Template(template)) => template.is_idempotent(),
            Some(Detour::Made(made)) => made.is_idempotent(),
            None => step.make_script.is_none() && step.request.is_idempotent(),
        };
        let examined = self.steps.facts[request.step as usize].writes && self.exchanges.log.keeps_writes();
        idempotent && !examined
    }

    /// Lets a request of this pool be sent once more in the next pass, when all that has come is known: other
    /// connections may have ended as well, and a drained one may have left its place. It is placed before
    /// those that began later.
    #[cold]
    pub(super) fn resend(&mut self, pool: u32, request: &InFlight, loss: Loss) {
        let mut again = InFlight { intent: Intent::SendAgain(loss), ..*request };
        self.exchanges.captures.renew(&mut again.capture);
        let deadline = again.deadline(self.plan);
        let TargetPool { awaiting, waiting, .. } = &mut self.pools[pool as usize];
        // A request follows from what came, and will from the next of its kind.
        awaiting.received(false);
        let place = waiting.iter().position(|(later, _)| *later > deadline).unwrap_or(waiting.len());
        waiting.insert(place, (deadline, again));
    }

    /// Sends a request once more: on a connection that has sent nothing yet, which is opened if there may be
    /// a further one; else on the one of those with room that has sent the fewest requests, as servers that
    /// end connections after a number of requests end it last.
    #[cold]
    pub(super) fn seat_again(&mut self, pool: u32, request: &mut InFlight, now: Nanos) {
        if self.put_youngest_first(pool) != Some(0) && self.has_place(pool, now) {
            self.seat_on_new(pool, request, Nanos::MAX, now);
        } else {
            self.seat_anywhere(pool, request, Nanos::MAX, now);
        }
    }

    /// Puts the connection with room that has sent the fewest requests in front of the others of its pool.
    /// Returns the number of them; `None` if no connection has room.
    fn put_youngest_first(&mut self, pool: u32) -> Option<u64> {
        let available = &self.pools[pool as usize].available;
        let is_usable = |slot: u32| {
            let conn = &self.conns[slot as usize];
            conn.pool == pool && conn.listed && self.has_room(slot)
        };
        let usable = (0..).zip(available.iter().copied()).filter(|(_, slot)| is_usable(*slot));
        let served = |slot: u32| self.conns[slot as usize].served;
        let (served, place) = usable.map(|(place, slot)| (served(slot), place)).min()?;
        let available = &mut self.pools[pool as usize].available;
        if let Some(slot) = available.remove(place) {
            available.push_front(slot);
        }
        Some(served)
    }

    /// Notes why a connection ends, unless all of its requests are sent again.
    #[cold]
    pub(super) fn note_broken(&mut self, slot: u32, class: ErrorClass, reason: &str) {
        let how = self.lost_with(slot, class);
        let conn = &self.conns[slot as usize];
        let moves = conn.state.is_established() && conn.answered;
        let goes_on = |request: &InFlight| {
            request.is_given_up() || moves && request.is_unsent() || self.may_resend_lost(request, how)
        };
        if !conn.requests.iter().all(goes_on) {
            self.note_error(class, reason);
        }
    }
}
