//! Starting: who begins an iteration, on which connection, and how its request is written.

use std::cmp::Reverse;

use plimsoll_core::Nanos;
use plimsoll_driver::Backend;
use plimsoll_plan::{Load, Overload};
use plimsoll_scenario::Context;

use super::{FLUSH_EVERY, Worker};
use crate::connection::{AT_SEND, InFlight, State};

impl<B: Backend> Worker<'_, B> {
    /// Closed model: every connection gets as many iterations as it may have in flight.
    pub(super) fn start_users(&mut self, now: Nanos) {
        for lane in 0..self.lanes.len() as u32 {
            let users = u64::from(self.lanes[lane as usize].initial) * u64::from(self.plan.connections.depth);
            for _ in 0..users {
                self.next_iteration(lane, None, Nanos::MAX, now);
            }
        }
    }

    /// Closed model: a user of `lane` is ready for its next iteration, unless the load is over. `slot` is the
    /// connection on which its last one ended, if that can be used again, `ready` when it did; never, if
    /// unknown.
    pub(super) fn next_iteration(&mut self, lane: u32, slot: Option<u32>, ready: Nanos, now: Nanos) {
        if now >= self.times.end || self.counts.remaining == Some(0) {
            return;
        }
        let measured = now >= self.times.measure;
        if measured && let Some(remaining) = &mut self.counts.remaining {
            *remaining -= 1;
        }
        let index = self.counts.begun * u64::from(self.shard.of) + u64::from(self.shard.index);
        self.counts.begun += 1;
        let step = self.lanes[lane as usize].next_step();
        self.counts.accounting.scheduled += u64::from(measured);
        self.counts.new_scheduled += 1;
        let request = self.new_request(AT_SEND, index, step, measured, now);
        self.place(lane, slot, InFlight { ready, ..request }, now);
    }

    /// Closed model: users whose back-off is over try again.
    pub(super) fn start_retries(&mut self, now: Nanos) {
        while let Some(&Reverse((at, lane))) = self.retries.peek() {
            if at > now {
                return;
            }
            self.retries.pop();
            self.next_iteration(lane, None, Nanos::MAX, now);
        }
    }

    /// Open model: starts every arrival that is due, as far as connections allow.
    ///
    /// There is no queue of waiting arrivals: the schedule is an exact sequence, and an arrival that is not
    /// taken keeps its place and its intended time in it.
    pub(super) fn start_arrivals(&mut self, now: Nanos) {
        let Load::Open { overload, .. } = self.plan.load else { return };
        if self.ended {
            return;
        }
        // The first pass at or after the end still starts what fell due before it.
        self.ended = now >= self.times.end;
        let (mut blocked, mut at_limit, mut started) = (false, false, false);
        for lane in 0..self.lanes.len() as u32 {
            while let Some((arrival, step)) = self.lanes[lane as usize].peek() {
                let intended = self.times.start + arrival.at;
                if intended > now || intended >= self.times.end {
                    break;
                }
                if !self.can_place(lane) {
                    if overload == Overload::Drop {
                        self.lanes[lane as usize].take(step);
                        self.counts.new_scheduled += 1;
                        let measured = u64::from(intended >= self.times.measure);
                        self.counts.accounting.scheduled += measured;
                        self.counts.accounting.dropped += measured;
                        continue;
                    }
                    blocked = true;
                    let lane = &self.lanes[lane as usize];
                    at_limit |= lane.open >= lane.max;
                    break;
                }
                self.lanes[lane as usize].take(step);
                let measured = intended >= self.times.measure;
                self.counts.accounting.scheduled += u64::from(measured);
                self.counts.new_scheduled += 1;
                started = true;
                let request = self.new_request(intended, arrival.index, step, measured, now);
                self.place(lane, None, request, now);
            }
        }
        if started {
            self.pacer.started(now);
        }
        self.note_blocked(blocked, at_limit, now);
    }

    pub(super) fn new_request(
        &self,
        intended: Nanos,
        index: u64,
        step: u32,
        measured: bool,
        now: Nanos,
    ) -> InFlight {
        InFlight {
            intended,
            started: AT_SEND,
            sent: AT_SEND,
            first_byte: Nanos::MAX,
            ready: Nanos::MAX,
            deadline: now + self.plan.timeout,
            index,
            bytes_sent: 0,
            bytes_redirects: 0,
            step,
            redirects: 0,
            measured,
            abandoned: false,
        }
    }

    /// Whether [`place`](Self::place) would find or may open a connection.
    pub(super) fn can_place(&mut self, lane: u32) -> bool {
        self.find_available(lane).is_some() || {
            let lane = &self.lanes[lane as usize];
            lane.open < lane.max
        }
    }

    /// The first connection of the lane that has room for a request; forgets stale entries on the way.
    pub(super) fn find_available(&mut self, lane: u32) -> Option<u32> {
        let connections = &self.plan.connections;
        while let Some(&slot) = self.lanes[lane as usize].available.front() {
            let conn = &mut self.conns[slot as usize];
            if conn.lane == lane && conn.listed && conn.has_room(connections.depth, connections.max_requests)
            {
                return Some(slot);
            }
            if conn.lane == lane {
                conn.listed = false;
            }
            self.lanes[lane as usize].available.pop_front();
        }
        None
    }

    /// Starts `request`: on the connection `slot` if it has room, else on the one that has had room for
    /// longest, else on one that is opened for it.
    pub(super) fn place(&mut self, lane: u32, slot: Option<u32>, request: InFlight, now: Nanos) {
        self.counts.in_flight += 1;
        self.counts.new_started += 1;
        self.counts.accounting.started += u64::from(request.measured);
        self.seat(lane, slot, request, now);
    }

    /// The same for a request that was counted before.
    pub(super) fn seat(&mut self, lane: u32, slot: Option<u32>, request: InFlight, now: Nanos) {
        let connections = &self.plan.connections;
        if let Some(slot) = slot
            && self.conns[slot as usize].has_room(connections.depth, connections.max_requests)
        {
            self.put(slot, request, now);
            return;
        }
        if let Some(slot) = self.find_available(lane) {
            self.lanes[lane as usize].available.pop_front();
            self.conns[slot as usize].listed = false;
            self.put(slot, request, now);
            self.list(slot);
            return;
        }
        match self.open_connection(lane, now) {
            Ok(slot) => {
                self.put(slot, request, now);
                if self.plan.connections.depth > 1 {
                    self.list(slot);
                }
            }
            Err(class) => self.fail(lane, &request, class, 0, now),
        }
    }

    /// Adds `request` to a connection, and writes it if the connection is ready for it.
    fn put(&mut self, slot: u32, mut request: InFlight, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let open = conn.state == State::Open;
        if !open {
            begin_now(&mut request, now);
        }
        conn.requests.push(request);
        self.arm(slot);
        if open {
            self.transmit(slot);
        }
    }

    /// Puts the connection into its lane's list if it has room and is not there yet.
    pub(super) fn list(&mut self, slot: u32) {
        let connections = &self.plan.connections;
        let conn = &mut self.conns[slot as usize];
        if !conn.listed && conn.has_room(connections.depth, connections.max_requests) {
            conn.listed = true;
            self.lanes[conn.lane as usize].available.push_back(slot);
        }
    }

    /// Writes the youngest request of the connection into its outbox.
    pub(super) fn transmit(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        let Some(request) = conn.requests.last_mut() else { return };
        let template = &self.plan.steps[request.step as usize].request;
        let unix_ns = if template.needs_clock() { self.now.0.wrapping_add(self.unix_offset) } else { 0 };
        let context = Context { index: request.index, worker: self.shard.index, unix_ns };
        let shared = template.shared_body();
        let length;
        match &mut conn.tls {
            None => {
                let out = self.io.outbox(conn.id);
                let before = out.len();
                template.render(&context, &mut self.random, &mut self.scratch, out);
                length = out.len() - before;
                if let Some(body) = shared {
                    self.io.send_shared(conn.id, body.clone());
                }
            }
            Some(tls) => {
                self.rendered.clear();
                template.render(&context, &mut self.random, &mut self.scratch, &mut self.rendered);
                length = self.rendered.len();
                let out = self.io.outbox(conn.id);
                tls.send(&self.rendered, out);
                if let Some(body) = shared {
                    tls.send(body, out);
                }
            }
        }
        request.bytes_sent += (length + shared.map_or(0, |body| body.len())) as u64;
        conn.served += 1;
        self.unsent.push(slot);
        if self.unsent.len() >= FLUSH_EVERY {
            self.flush();
        }
    }

    /// Hands everything written to the kernel, and notes when.
    ///
    /// Sends happen one after the other between the two readings of the clock, so each is given the begin of
    /// its share: see [`Flush`](plimsoll_driver::Flush).
    pub(super) fn flush(&mut self) {
        let flush = self.io.flush();
        self.now = self.now.max(flush.last);
        let count = self.unsent.len() as u64;
        if count == 0 {
            return;
        }
        let span = flush.last.since(flush.first).0;
        for (position, slot) in self.unsent.drain(..).enumerate() {
            let at = flush.first + Nanos(span * position as u64 / count);
            let conn = &mut self.conns[slot as usize];
            if matches!(conn.state, State::Connecting | State::Handshaking) {
                // The one that was written to is gone, and its slot has a new one.
                continue;
            }
            if let Some(request) = conn.requests.iter_mut().find(|request| request.sent == AT_SEND) {
                request.sent = at;
                // Without a connection to open, taking up and sending are one: the start lag holds both.
                if request.started == AT_SEND {
                    request.started = at;
                }
                if request.intended == AT_SEND {
                    request.intended = at;
                    if request.measured && request.ready != Nanos::MAX {
                        self.record.turnaround += at.since(request.ready);
                        self.record.turnarounds += 1;
                    }
                    // Counts from here, too: else a censored response time would be a little below the
                    // timeout.
                    request.deadline = at + self.plan.timeout;
                }
            }
        }
    }
}

/// A request that needs a connection is taken up now: opening it is part of its response time.
fn begin_now(request: &mut InFlight, now: Nanos) {
    request.started = now;
    if request.intended == AT_SEND {
        request.intended = now;
    }
}
