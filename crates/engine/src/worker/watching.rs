//! Watching itself: how long to wait, whether arrivals are held up, and whether this thread was.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Backend;
use plimsoll_histogram::{Delta, Histogram};
use plimsoll_metrics::recorder::Gauges;
use plimsoll_metrics::{
    ConnectionRecord, ResponseFacts, Snapshot, Stall, ThresholdSpec, WorkerRecord, WorkerStatus,
};
use plimsoll_plan::{Load, Overload};

use super::dialing::Block;
use super::routing::ASK_INTERVAL;
use super::stalls::STALL;
use super::{LONGEST_WAIT, Worker};
use crate::connection::State;
use crate::pacing::Outlook;
use crate::target_pool::TargetPool;

/// Stalls kept in detail.
const STALLS_KEPT: usize = 100;
/// Ages that stand for those of a backlog.
const AGES: u64 = 64;
/// A wait that returned so much too late makes the target seem silent that was not listened to.
const UNHEARD: Nanos = Nanos::from_millis(1);

impl<B: Backend> Worker<'_, B> {
    /// Returns `true` if a run that is counted, or complete, has nothing left to start and nothing to wait
    /// for.
    pub(super) fn is_through(&mut self) -> bool {
        let ends = self.iterations.is_complete() || self.plan.end.iterations.is_some();
        if self.content.wants_to_stop() && self.keeps_its_length() {
            return false;
        }
        if !ends || self.counts.in_flight() > 0 || self.iterations.has_sleepers() {
            return false;
        }
        if self.iterations.is_complete() {
            return self.iterations.has_begun_all();
        }
        match self.counts.remaining() {
            Some(remaining) => remaining == 0,
            None => self.pools.iter_mut().all(|pool| pool.peek().is_none()),
        }
    }

    pub(super) fn outlook(&mut self, now: Nanos, next_edge: Nanos) -> Outlook {
        let over = now >= self.clock.end;
        let sleeper = self.iterations.next_sleeper().max(now);
        let arrival = if over || self.iterations.has_begun_all() {
            None
        } else {
            // While an arrival waits for a connection, the next thing to wait for is a response.
            let pools = self.pools.iter_mut().filter(|pool| !pool.blocked);
            let due = pools.filter_map(|pool| pool.peek().map(|(arrival, _)| arrival.at)).min();
            due.map(|at| self.clock.start + at)
        };
        // After the end no session thinks.
        let next_due = arrival.into_iter().chain((!over && sleeper < Nanos::MAX).then_some(sleeper)).min();
        let end = if over { self.clock.drained } else { self.clock.end };
        let retry = self.users.next_retry();
        let longest = if self.batch.more || self.websockets.are_due() { now } else { now + LONGEST_WAIT };
        let poll = self.polls.next_due().max(now);
        let until = self.timers.next_due().min(next_edge).min(end).min(retry).min(poll).min(longest);
        let until = if self.routes.is_asking() { until.min(now + ASK_INTERVAL) } else { until };
        let until = self.pools.iter().map(TargetPool::waiting_until).fold(until, Nanos::min);
        let probe = self.pools.iter().map(|pool| pool.target_addresses.next_probe().max(now)).min();
        // After the end no server is resolved.
        let until = if over { until } else { until.min(probe.unwrap_or(Nanos::MAX)) };
        let until = if over { until } else { until.min(self.users.next_change().max(now)) };
        let waits =
            self.dialing.blocked_since().is_some() || self.pools.iter().any(|pool| !pool.waiting.is_empty());
        let opening = self.clock.start + self.dialing.ramp.next();
        let paced = self.dialing.ramp.is_rising() && !self.users_have_connections() && !over;
        let until = if paced { until.min(opening.max(now)) } else { until };
        let until = until.min(self.users.next_opener().max(now));
        let until = until.min(self.dialing.next_look(now));
        let measure = if now < self.clock.measure { self.clock.measure } else { Nanos::MAX };
        Outlook {
            now,
            until: until.min(measure),
            next_due,
            blocked: waits || over,
            follows: self.iterations.follows,
            awaits: self.dialing.connecting() > 0
                || self.steps.has_streams
                || self.pools.iter().any(|pool| pool.open > 0 && pool.awaiting.is_due()),
            // Polls that wait to be sent again get no response.
            in_flight: self.counts.in_flight() - self.polls.len(),
            room: self.room(),
        }
    }

    /// Returns the number of arrivals that may share a wake-up: as many as find a connection at once. If the
    /// plan drops arrivals that find none, half of the room is left for chance to bring more than usual.
    fn room(&self) -> u64 {
        // Only the pools of the plan's targets count, since arrivals begin there.
        let pools = self.pools.iter().take(self.plan.targets.len());
        let places = pools.map(|pool| u64::from(pool.max) * u64::from(pool.depth)).sum::<u64>();
        let room = places.saturating_sub(self.counts.in_flight());
        let drops = matches!(self.plan.load, Load::Open { overload: Overload::Drop, .. });
        if drops { room / 2 } else { room }
    }

    /// Notes whether an arrival is due that finds no connection, and the reason.
    pub(super) fn note_blocked(&mut self, block: Option<Block>, now: Nanos) {
        self.dialing.add_blocked(&mut self.records.measured.connections, self.clock.measure, now);
        if let Some(since) = self.dialing.blocked_since() {
            // Requests that fell due in a stall wait for connections, and so do later ones.
            self.stalls.extend(since, now);
        }
        self.dialing.note_blocked(block, now);
    }

    /// Notes a pass of the loop, without the wait after it.
    pub(super) fn note_pass(&mut self, began: Nanos, ended: Nanos) {
        let length = ended.since(began);
        self.batch.away = length;
        self.records.worker.passes += 1;
        self.records.worker.longest_pass = self.records.worker.longest_pass.max(length);
        self.stalls.extend(began, ended);
        if let Some(demand) = self.dialing.demand_mut() {
            demand.note_away(length);
        }
        if length > STALL {
            self.note_stall(began, length);
        }
    }

    /// Notes a wait. If it returned long after it had to, this thread did not run.
    pub(super) fn note_wait(&mut self, began: Nanos, until: Nanos, returned: Nanos) {
        let late = returned.since(until.min(began + LONGEST_WAIT));
        if late > UNHEARD
            && let Some(demand) = self.dialing.demand_mut()
        {
            demand.stood_still(late, returned);
        }
        if late > STALL {
            self.note_stall(until, late);
        }
    }

    /// Notes that this thread did not run.
    fn note_stall(&mut self, at: Nanos, length: Nanos) {
        self.stalls.note(at, length);
        if at >= self.clock.measure && self.records.worker.stalls.len() < STALLS_KEPT {
            self.records.worker.stalls.push(Stall {
                worker: self.plan.worker_of(self.shard),
                at: at.since(self.clock.start),
                length,
            });
        }
    }

    /// The interval that ends at `at`, or the drain after the last one.
    pub(super) fn snapshot(&mut self, at: Nanos, drain: bool) -> Snapshot {
        let measure = self.clock.measure;
        let warmup = self.plan.warmup > Nanos::ZERO && (at < measure || (at == measure && !drain));
        self.exchanges.log.flush();
        let backlog = (!warmup).then(|| self.backlog(at));
        let (scheduled, iterations, resent) = self.counts.take_progress(backlog);
        let gauges = Gauges {
            at: at.since(self.clock.start),
            warmup,
            drain,
            scheduled,
            iterations,
            resent,
            answers: self.counts.take_answers(self.clock.start),
            in_flight: self.counts.in_flight(),
            connections: self.dialing.open(),
        };
        // A worker whose load ends in the warm-up reports its status with the last interval of the warm-up.
        let tells = self.control.is_detailed() && (!warmup || at >= self.clock.end);
        let worker_status = if tells {
            let status = self.worker_status(at);
            self.records.news(status)
        } else {
            None
        };
        let looks = self.plan.thresholds.iter().any(ThresholdSpec::looks_at_waiting);
        let waiting = if looks && !warmup && !drain { self.waiting(at) } else { Vec::new() };
        let exemplars = if warmup { Vec::new() } else { self.slowest.take_exemplars() };
        let recorder = if warmup { &mut self.records.warmup } else { &mut self.records.measured };
        // Values that the first measured iterations record before this one is made are of the next interval.
        let metrics = if warmup { Vec::new() } else { self.content.metrics.take_recent(self.plan) };
        Snapshot { worker_status, waiting, exemplars, metrics, ..recorder.snapshot(gauges) }
    }

    /// Returns for how long requests of the measured part have been due without an answer, step by step.
    fn waiting(&mut self, now: Nanos) -> Vec<Delta> {
        let mut ages = vec![Histogram::new(); self.plan.steps.len()];
        self.backlog_ages(now, &mut ages);
        let on_connections = self.conns.iter().filter(|conn| conn.state != State::Free);
        let on_connections = on_connections.flat_map(|conn| conn.requests.iter());
        let queued = self.pools.iter().flat_map(|pool| pool.waiting.iter().map(|(_, request)| request));
        for request in on_connections.chain(queued).chain(self.polls.requests()) {
            let since = request.intended.min(request.started);
            if request.measured && !request.is_given_up() && since < now {
                ages[request.step as usize].record(now.since(since).0);
            }
        }
        ages.iter().map(Delta::of_all).collect()
    }

    /// Adds for how long arrivals have been due that were not taken up: these came evenly since the first of
    /// them, as far as an age of so many is known.
    fn backlog_ages(&mut self, now: Nanos, ages: &mut [Histogram]) {
        if self.iterations.is_complete() {
            return;
        }
        let until = now.min(self.clock.end).since(self.clock.start);
        for pool in &mut self.pools {
            let Some((first, scenario)) = pool.peek().filter(|(arrival, _)| arrival.at < until) else {
                continue;
            };
            let step = self.plan.scenarios[scenario as usize].steps.start as usize;
            let (left, longest) = (pool.backlog(until), until.since(first.at).0);
            for part in 0..AGES {
                let share = left * (part + 1) / AGES - left * part / AGES;
                ages[step].record_many(longest * part / AGES, share);
            }
        }
    }

    /// Returns the number of arrivals of the measured part that are due before an instant and were not taken.
    fn backlog(&mut self, at: Nanos) -> u64 {
        // Arrivals beyond a fence may belong to another process.
        let until = at.min(self.clock.end).min(self.control.fenced_from()).since(self.clock.start);
        match self.iterations.is_complete() {
            true => 0,
            false => self.pools.iter_mut().map(|pool| pool.backlog(until)).sum(),
        }
    }

    /// Returns the status of this worker at an instant of the measured part, or in the drain.
    fn worker_status(&mut self, at: Nanos) -> WorkerStatus {
        let load_end = at.min(self.clock.end);
        let mut connections = self.records.measured.connections.counts();
        self.dialing.add_blocked(&mut connections, self.clock.measure, load_end);
        self.state_limits(&mut connections);
        let wall = load_end.since(self.clock.measure);
        let waiting = self.backlog(at);
        WorkerStatus {
            worker: self.plan.worker_of(self.shard),
            accounting: self.counts.accounting(),
            iterations: self.counts.iterations(),
            connections,
            kept: WorkerRecord {
                wall,
                shared_wakeups: self.pacer.napped(),
                ..self.records.worker.without_times()
            },
            completed: self.counts.completed_in_window(),
            pacing_budget: self.pacer.budget(),
            waiting,
            start_lags: self.records.measured.start_lags(),
            responses: Arc::new(self.response_facts()),
        }
    }

    /// Returns properties of the responses of the measured part so far.
    fn response_facts(&self) -> ResponseFacts {
        let protocols = self.counts.protocols(self.plan).into_iter();
        let (error_examples, errors) = self.failures.so_far();
        ResponseFacts {
            statuses: self.records.measured.statuses(),
            error_examples,
            slowest: self.slowest.so_far().to_vec(),
            errors,
            peers: self.records.peers.clone(),
            protocols: protocols.map(|(protocol, responses)| (protocol.to_owned(), responses)).collect(),
            tls_versions: self.records.tls_versions.clone(),
        }
    }

    /// States the limits of connections.
    pub(super) fn state_limits(&self, connections: &mut ConnectionRecord) {
        let limit = self.pools.iter().map(|pool| u64::from(pool.max)).sum();
        connections.limit = self.dialing.limit().min(limit);
        connections.depth = self.pools.iter().map(|pool| pool.depth).max().unwrap_or(1);
        connections.http2.streams_asked = self.plan.connections.streams;
    }
}
