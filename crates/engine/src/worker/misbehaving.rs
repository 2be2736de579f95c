//! Clients that misbehave on purpose: the misbehaviour is drawn when a request is written, and carried out
//! when it has left, when its response begins, or when its client has waited long enough.
//!
//! HTTP/1.1 has no other way to abort a request than to close its connection; on HTTP/2 the stream is
//! cancelled, and the connection goes on.

use plimsoll_core::{ErrorClass, Nanos, Random, Shard};
use plimsoll_driver::{Backend, Close, ConnId};
use plimsoll_plan::{ClientFaults, Parts, Plan};

use super::Worker;
use super::step_table::Facts;
use crate::connection::{Client, State};
use crate::request::{InFlight, Intent};

/// Stream of the random numbers of faults, beside those of workers, which count from 1.
const STREAM: u64 = 1 << 41;

/// The faults of the clients of one worker.
pub(super) struct Misbehaviour {
    faults: ClientFaults,
    /// Of no other use, so that requests are the same with faults and without.
    random: Random,
    /// Requests that are to be aborted after the next flush: their connections and tickets.
    pending: Vec<(ConnId, u32)>,
}

impl Misbehaviour {
    /// Returns the faults of a plan, if there are any.
    pub(super) fn of(plan: &Plan, worker: Shard) -> Option<Box<Self>> {
        let faults = plan.client_faults?;
        let random = Random::new(plan.seed, STREAM + u64::from(worker.index));
        Some(Box::new(Self { faults, random, pending: Vec::new() }))
    }

    /// Draws the intent of the next request.
    fn draw(&mut self) -> Intent {
        let ClientFaults { abort, abort_at, abandon, .. } = self.faults;
        let number = self.random.below(ClientFaults::WHOLE);
        if number >= abort {
            return if number < abort + abandon { Intent::Abandon } else { Intent::Await };
        }
        match abort_at {
            Parts::Request => Intent::CutRequest,
            Parts::Response => Intent::CutResponse,
            Parts::Either if self.random.below(2) == 0 => Intent::CutRequest,
            Parts::Either => Intent::CutResponse,
        }
    }

    /// Draws the number of bytes of a request to send: at least one, and not all.
    pub(super) fn part_of(&mut self, bytes: usize) -> usize {
        1 + self.random.below(bytes.saturating_sub(1).max(1) as u64) as usize
    }
}

impl<B: Backend> Worker<'_, B> {
    /// Writes a request by its step's template, or a part of it.
    #[inline(never)]
    pub(super) fn transmit_badly(&mut self, slot: u32, request: &mut InFlight, facts: Facts, ready: Nanos) {
        let plan = self.plan;
        let template = &plan.steps[request.step as usize].request;
        let Some(faults) = &mut self.misbehaviour else { return };
        request.intent = faults.draw();
        if request.intent == Intent::Abandon && faults.faults.abandon_after >= plan.timeout_of(request.step) {
            // The request times out first.
            request.intent = Intent::Await;
        }
        let is_in_turn = !matches!(self.conns[slot as usize].client, Client::Http2(_));
        if request.intent == Intent::CutRequest && !is_in_turn && !template.has_body() {
            // The request is one frame, of which no part can be left out.
            request.intent = Intent::CutResponse;
        }
        let ticket = self.transmit_as(slot, request, template, facts, ready);
        match request.intent {
            Intent::CutRequest => {}
            // The deadline to abandon is earlier than the one for which the connection is armed.
            Intent::Abandon => return self.arm(slot),
            _ => return,
        }
        if is_in_turn {
            // Nothing can follow half a request.
            self.conns[slot as usize].state = State::Draining;
        }
        self.abort_later(slot, ticket);
    }

    /// Aborts a request after the next flush, unless it has ended by then.
    pub(super) fn abort_later(&mut self, slot: u32, ticket: u32) {
        let id = self.conns[slot as usize].id;
        if let Some(faults) = &mut self.misbehaviour {
            faults.pending.push((id, ticket));
        }
    }

    /// Aborts the chosen requests, now that all written bytes have left.
    #[inline(never)]
    pub(super) fn cut_off(&mut self) {
        let Some(faults) = &mut self.misbehaviour else { return };
        if faults.pending.is_empty() {
            return;
        }
        for (id, ticket) in std::mem::take(&mut faults.pending) {
            if self.lives(id) {
                self.abort(id.slot() as u32, ticket, self.clock.now);
            }
        }
        self.flush();
    }

    /// Aborts a response that comes in turn, if its client has that in mind and it begins now. Returns `true`
    /// if the connection is gone.
    #[inline(never)]
    pub(super) fn breaks_off_response(&mut self, slot: u32, at: Nanos) -> bool {
        let conn = &mut self.conns[slot as usize];
        if !matches!(conn.client, Client::InTurn(_)) {
            return false;
        }
        let breaks = conn.requests.nth_mut(0).is_some_and(|oldest| oldest.intent == Intent::CutResponse);
        if breaks {
            self.break_off(slot, ErrorClass::AbortedByUs, Some(Close::Now), at);
        }
        breaks
    }

    fn abort(&mut self, slot: u32, ticket: u32, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let pool = conn.pool;
        let Client::Http2(client) = &mut conn.client else {
            // Queued bytes of the request leave first.
            self.break_off(slot, ErrorClass::AbortedByUs, Some(Close::AfterSend), now);
            return;
        };
        let wishes =
            |request: &&mut InFlight| matches!(request.intent, Intent::CutRequest | Intent::CutResponse);
        if conn.requests.get_mut(ticket).filter(wishes).is_none() {
            // The request has ended meanwhile.
            return;
        }
        let Some(request) = conn.requests.take(ticket) else { return };
        self.buffers.control.clear();
        client.cancel(ticket, &mut self.buffers.control);
        self.records.measured.connections.http2.cancelled += 1;
        self.write_control(slot);
        self.fail(pool, &request, ErrorClass::AbortedByUs, 0, now);
        self.finish_request(slot);
    }
}
