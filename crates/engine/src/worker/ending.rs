//! Ending: the one place where a request's end is recorded, deadlines, and the final accounts.

use std::cmp::Reverse;

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_driver::{Backend, Close};
use plimsoll_metrics::Sample;
use plimsoll_plan::Load;

use super::{Worker, WorkerReport};
use crate::connection::{AT_SEND, InFlight, State};
use crate::control::Stop;

impl<B: Backend> Worker<'_, B> {
    /// Records the end of a request.
    pub(super) fn finish(&mut self, request: &InFlight, outcome: Outcome, status: u16, at: Nanos) {
        self.counts.in_flight -= 1;
        // A stamp and an interpolated send may disagree by some microseconds: nothing is received before it
        // was sent.
        let sent = if request.sent == AT_SEND { AT_SEND } else { request.sent.min(at) };
        let intended = request.intended.min(sent).min(at);
        let sample = Sample {
            step: request.step,
            intended,
            started: request.started.min(at).max(intended),
            sent,
            first_byte: request.first_byte,
            done: at,
            outcome,
            status,
            bytes_sent: request.bytes_sent,
            bytes_received: request.bytes_redirects,
        };
        if !request.measured {
            self.counts.accounting.unmeasured += u64::from(request.sent != AT_SEND);
            self.warmup.record(&sample);
            return;
        }
        self.recorder.record(&sample);
        let accounting = &mut self.counts.accounting;
        match outcome {
            Outcome::Ok => accounting.ok += 1,
            Outcome::Failed(_) => accounting.failed += 1,
            Outcome::TimedOut => accounting.timed_out += 1,
        }
        accounting.undelivered += u64::from(request.sent == AT_SEND);
        self.counts.completed_in_window += u64::from(sample.is_complete() && at <= self.times.end);
        self.counts.last_done = self.counts.last_done.max(at);
    }

    /// A request that failed; `status` is that of its response, 0 if there was none. In the closed model its
    /// user goes on, after a pause if it was the connection that failed.
    pub(super) fn fail(&mut self, lane: u32, request: &InFlight, class: ErrorClass, status: u16, at: Nanos) {
        self.finish(request, Outcome::Failed(class), status, at);
        if !matches!(self.plan.load, Load::Closed) {
            return;
        }
        let now = self.now;
        let pause = if class.is_connect() || class == ErrorClass::Tls {
            self.lanes[lane as usize].backoff(now)
        } else {
            Nanos::ZERO
        };
        self.retries.push(Reverse((now + pause, lane)));
    }

    /// Deals with every deadline that has come.
    pub(super) fn expire(&mut self, now: Nanos) {
        while let Some((at, id)) = self.timers.pop_due(now) {
            if !self.lives(id) || self.conns[id.slot()].armed != at {
                continue;
            }
            let slot = id.slot() as u32;
            self.conns[id.slot()].armed = Nanos::MAX;
            if self.conns[id.slot()].deadline(self.plan.connect_timeout) <= now {
                self.expire_connection(slot, now);
            }
            if self.lives(id) {
                self.arm(slot);
            }
        }
    }

    pub(super) fn expire_connection(&mut self, slot: u32, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let connecting = matches!(conn.state, State::Connecting | State::Handshaking);
        if connecting && conn.since + self.plan.connect_timeout <= now {
            let what = if conn.state == State::Connecting { "connection" } else { "TLS handshake" };
            self.connect_failed(ErrorClass::ConnectTimeout, &format!("no {what} within the connect timeout"));
            self.break_off(slot, ErrorClass::ConnectTimeout, Some(Close::Reset), now);
            return;
        }
        let lane = conn.lane;
        let mut users = 0;
        let mut position = 0;
        while let Some(request) = self.conns[slot as usize].requests.get_mut(position) {
            position += 1;
            if request.abandoned || request.deadline > now {
                continue;
            }
            request.abandoned = true;
            let request = *request;
            self.finish(&request, Outcome::TimedOut, 0, now);
            users += 1;
        }
        let conn = &mut self.conns[slot as usize];
        // Its next responses belong to requests that are given up: take no new ones. A connection that is
        // still being established goes on without them.
        if connecting {
            conn.requests = Default::default();
        } else {
            conn.state = State::Doomed;
            self.close_if_idle_and_doomed(slot);
        }
        if matches!(self.plan.load, Load::Closed) {
            for _ in 0..users {
                self.retries.push(Reverse((now, lane)));
            }
        }
    }

    pub(super) fn heed_control(&mut self, now: Nanos) {
        match self.control.wish() {
            Stop::No => {}
            Stop::Drain if self.times.end > now => {
                self.times.end = now;
                self.times.drained = now + self.plan.drain;
            }
            Stop::Drain => {}
            Stop::Now => {
                self.times.end = self.times.end.min(now);
                self.times.drained = now;
                self.ended = true;
            }
        }
    }

    /// Settles the accounts.
    pub(super) fn report(mut self, now: Nanos) -> WorkerReport {
        let mut unfinished = Vec::new();
        for conn in &mut self.conns {
            if conn.state == State::Free {
                continue;
            }
            // Connections are not closed one by one: that comes with the backend's end, and costs less there.
            unfinished.extend(conn.requests.iter().filter(|request| !request.abandoned).copied());
        }
        for request in unfinished {
            if !request.measured {
                self.counts.accounting.unmeasured += u64::from(request.sent != AT_SEND);
                continue;
            }
            self.counts.accounting.in_flight_at_stop += 1;
            self.counts.accounting.undelivered += u64::from(request.sent == AT_SEND);
            let started = if request.started == AT_SEND { now } else { request.started };
            let intended = if request.intended == AT_SEND { started } else { request.intended };
            self.recorder.record_unfinished(request.step, started.since(intended));
        }
        for lane in &mut self.lanes {
            while let Some((arrival, step)) = lane.peek() {
                let intended = self.times.start + arrival.at;
                if intended >= self.times.end {
                    break;
                }
                lane.take(step);
                let measured = u64::from(intended >= self.times.measure);
                self.counts.accounting.scheduled += measured;
                self.counts.accounting.never_started += measured;
            }
        }
        self.note_blocked(false, false, self.times.end.min(now));
        let window = self.times.end.since(self.times.measure);
        self.record.wall = window;
        self.recorder.connections.limit = self.lanes.iter().map(|lane| u64::from(lane.max)).sum();
        self.recorder.connections.depth = self.plan.connections.depth;
        let pacing_budget = self.pacer.budget();
        let connections = std::mem::take(&mut self.recorder.connections);
        let steps = self.recorder.finish();
        WorkerReport {
            shard: self.shard,
            steps,
            connections,
            accounting: self.counts.accounting,
            worker: self.record,
            peers: self.peers,
            tls_versions: self.tls_versions,
            error_examples: self.error_examples,
            completed_in_window: self.counts.completed_in_window,
            window,
            drain: now.since(self.times.end),
            pacing_budget,
        }
    }
}
