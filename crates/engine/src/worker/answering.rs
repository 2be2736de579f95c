//! Answers: the effects of a whole response on its request, its session and its connection.

use std::sync::Arc;

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_driver::{Backend, Close};
use plimsoll_plan::Load;
use plimsoll_scenario::redirect::leads_elsewhere;
use plimsoll_scenario::reference::{Origin, Resource};
use plimsoll_scenario::{Location, RequestTemplate, Scheme};

use super::Worker;
use super::judging::Judged;
use super::proceeding::{Fate, IterationState};
use super::routing::NoWay;
use crate::capture::Detour;
use crate::connection::{Client, Reply, State};
use crate::request::{AT_SEND, InFlight, Intent};
use crate::session::LastConnection;

/// Words for an exchange of a log of all exchanges that its request went on after.
const FOLLOWED: &str = "the redirect was followed";
const ASKED_AGAIN: &str = "no final answer yet: the request was sent again";

/// A redirect that was answered.
struct Redirect {
    slot: u32,
    pool: u32,
    /// The site of the pool that has answered.
    target_address: u32,
    /// `true` if the next request can go on the same connection.
    here: bool,
    reply: Reply,
    location: Option<Vec<u8>>,
    at: Nanos,
}

impl<B: Backend> Worker<'_, B> {
    /// A whole response came for the request under this ticket; the needed parts are in its capture.
    pub(super) fn on_response(&mut self, slot: u32, ticket: u32, at: Nanos, reply: Reply) {
        let conn = &mut self.conns[slot as usize];
        let (http2, protocol) = (matches!(conn.client, Client::Http2(_)), conn.client.protocol_number());
        if http2 && conn.requests.get_mut(ticket).is_some_and(|request| request.is_unsent()) {
            // The response came before its request was flushed; flushing gives the request its instant.
            self.flush();
        }
        let conn = &mut self.conns[slot as usize];
        let Some(request) = conn.requests.take(ticket) else { return };
        conn.answered = true;
        if let Client::Http2(client) = &mut conn.client {
            client.reuse(ticket);
        }
        if !self.batch.observed && request.sent != AT_SEND {
            self.observe_batch(request.sent, at, reply.wire_bytes);
        }
        self.batch.responses += 1;
        let conn = &mut self.conns[slot as usize];
        let awaiting = &mut self.pools[conn.pool as usize].awaiting;
        awaiting.sized(reply.wire_bytes);
        awaiting.took(at.since(request.first_byte));
        let connections = &self.plan.connections;
        let closes = !reply.keep_alive || !connections.keep_alive;
        let usable = conn.state == State::Open && !closes && !conn.is_spent(connections.max_requests);
        let (id, pool, target_address) = (conn.id, conn.pool, conn.target_address);
        if !usable {
            if conn.requests.is_empty() {
                self.release(slot, Some(Close::Now));
            } else if closes {
                self.break_off_answered(slot, at);
            } else {
                self.conns[slot as usize].state = State::Draining;
            }
        }
        if request.is_given_up() {
            self.finish_request(slot);
            return;
        }
        if matches!(request.intent, Intent::CutRequest | Intent::CutResponse) {
            // The whole response came at once, or before the request was complete: it is discarded.
            self.fail(pool, &request, ErrorClass::AbortedByUs, 0, at);
            self.finish_request(slot);
            return;
        }
        if self.plan.redirects > 0 && leads_elsewhere(reply.status) {
            // On a pipelined connection the redirect would wait behind other requests: it takes a new one.
            let here = usable && (http2 || self.conns[slot as usize].requests.is_empty());
            self.records.of(&request).note_received(request.step, reply.wire_bytes);
            self.keep_cookies(&request, (pool, target_address));
            let location = self.exchanges.location(&request);
            let redirect = Redirect { slot, pool, target_address, here, reply, location, at };
            self.on_redirect(redirect, request);
            if usable {
                self.list(slot);
            }
            return;
        }
        let outcome = match self.judge(&request, (pool, target_address), reply) {
            Judged::Ended(outcome) => outcome,
            Judged::Pending(pause) => {
                self.records.of(&request).note_received(request.step, reply.wire_bytes);
                self.hand_over_interim(&request, reply, at, ASKED_AGAIN);
                self.park(pool, request, at + pause);
                if usable {
                    self.list(slot);
                }
                return;
            }
        };
        self.counts.answer(protocol, request.measured);
        let home = self.home_of(&request, pool);
        if outcome.is_bad() {
            self.failures.blamed = Some(slot);
        }
        self.finish(&request, outcome, (reply.status, reply.wire_bytes), at);
        let slot_if_usable = usable.then_some(slot);
        let fate = self.conclude(&request, outcome == Outcome::Ok);
        let over = match fate {
            Fate::Pending => false,
            Fate::Over => true,
            Fate::GoesOn => {
                if let Some(session) = self.iterations.sessions.get_mut(request.session) {
                    session.note_connection(LastConnection { id, pool, target_address });
                }
                let due = self.due_after(at);
                self.proceed(request.session, pool, slot_if_usable, due) != IterationState::UnderWay
            }
        };
        if over && matches!(self.plan.load, Load::Closed) {
            self.next_iteration(home, slot_if_usable, at, self.clock.now);
        }
        // The next request may think first or go to another target, or there may be none, so the connection
        // is listed as free.
        if usable {
            self.list(slot);
        }
    }

    /// Learns from the first answer of a batch how long answers take.
    #[inline]
    fn observe_batch(&mut self, sent: Nanos, at: Nanos, wire_bytes: u64) {
        self.batch.observed = true;
        if let Some(demand) = self.dialing.demand_mut() {
            demand.heard(self.clock.now);
            // A response that met a stall of this thread says nothing of the target.
            if !self.stalls.met(sent, at) {
                demand.observe(at.since(sent));
            }
        }
        self.pacer.observe(self.clock.now.since(sent), self.batch.stamped, wire_bytes);
    }

    /// The pool to which the user of a request belongs, which is on `pool`.
    pub(super) fn home_of(&self, request: &InFlight, pool: u32) -> u32 {
        match self.iterations.sessions.get(request.session) {
            Some(session) => session.home,
            None if matches!(self.plan.load, Load::Closed) => self.users.home_of_step(request.step),
            // A redirect may have led it away from the target of its step; the plan's pools are in the order
            // of its targets.
            None if request.redirects > 0 => self.plan.steps[request.step as usize].target as u32,
            None => pool,
        }
    }

    /// Follows a redirect, as a part of the same request.
    fn on_redirect(&mut self, redirect: Redirect, mut request: InFlight) {
        let Redirect { slot, pool, target_address, here, reply, ref location, at } = redirect;
        let status = reply.status;
        let next = match location.as_deref() {
            None => Err(unfollowed("a redirect without a location".to_owned())),
            Some(_) if u32::from(request.redirects) >= self.plan.redirects => {
                Err(unfollowed(format!("more than {} redirects in a row", self.plan.redirects)))
            }
            Some(location) => self.redirected(&request, (pool, target_address), location, status),
        };
        let (there, next) = match next {
            Ok(next) => next,
            Err(NoWay { class, reason }) => {
                self.note_error(class, &reason);
                self.failures.blamed = Some(slot);
                let status = if class == ErrorClass::Redirect { status } else { 0 };
                self.fail(pool, &request, class, status, at);
                return;
            }
        };
        self.hand_over_interim(&request, reply, at, FOLLOWED);
        request.redirects += 1;
        request.begin_exchange();
        self.exchanges.captures.send_by(&mut request.capture, Detour::Template(Arc::new(next)));
        // The server may have gone away, or have lowered its limit, together with this answer.
        if there == pool && here && self.has_room(slot) {
            self.transmit(slot, &mut request, Nanos::MAX);
        } else {
            self.seat_dynamic_origins(there, &mut request, Nanos::MAX, self.clock.now);
        }
    }

    /// The target of a redirect from a pool and the site that has answered: the pool and the next request.
    fn redirected(
        &mut self,
        request: &InFlight,
        (pool, target_address): (u32, u32),
        location: &[u8],
        status: u16,
    ) -> Result<(u32, RequestTemplate), NoWay> {
        // A redirect within a pool stays in it: every member may serve a request that was meant for one of
        // them.
        let home = &self.pools[self.plan.steps[request.step as usize].target];
        let here = &self.pools[pool as usize];
        let origin = Origin { https: here.https, authority: &here.name_of(target_address).authority };
        let base = Resource { origin, path: &self.requested_path(request) };
        let Some(next) = Location::resolve(location, base) else {
            let shown = String::from_utf8_lossy(location);
            return Err(unfollowed(format!("a redirect to no URL of http or https: {shown}")));
        };
        let stays = home.has_member(next.origin());
        // A server refers to itself by its own name, also in a pool.
        let there = if next.same_origin { pool } else { self.pool_to(next.origin())? };
        let path = next.path;
        // The redirected request may itself be the result of a redirect.
        let detour = match self.exchanges.captures.detour(request.capture) {
            Some(Detour::Template(template)) => Some(Arc::clone(template)),
            _ => None,
        };
        let from = detour.as_deref().unwrap_or(&self.plan.steps[request.step as usize].request);
        let same_scheme = self.pools[there as usize].https == self.pools[pool as usize].https;
        let next = if there == pool || (stays && same_scheme) {
            from.redirected(&path, status)
        } else {
            let https = self.pools[there as usize].https;
            let scheme = if https { Scheme::Https } else { Scheme::Http };
            from.redirected_away(&path, status, scheme, &self.plan.redaction)
        };
        let next = next.map_err(|error| unfollowed(error.to_string()))?;
        Ok((there, next))
    }

    /// Path and query of a request that was answered.
    fn requested_path(&self, request: &InFlight) -> Vec<u8> {
        let step = request.step as usize;
        let captures = &self.exchanges.captures;
        let template = match captures.detour(request.capture) {
            Some(Detour::Made(made)) => return made.path.clone(),
            Some(Detour::Template(template)) => template,
            None => &self.plan.steps[step].request,
        };
        match template.static_path() {
            // A script may have made another one of it.
            Some(path) if !self.steps.facts[step].request => path.to_vec(),
            _ => captures.sent_path(request.capture).to_vec(),
        }
    }
}

fn unfollowed(reason: String) -> NoWay {
    NoWay { class: ErrorClass::Redirect, reason }
}
