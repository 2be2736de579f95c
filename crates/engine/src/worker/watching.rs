//! Watching itself: how long to wait, whether arrivals are held up, and whether this thread was.

use std::cmp::Reverse;

use plimsoll_core::Nanos;
use plimsoll_driver::Backend;
use plimsoll_metrics::recorder::Gauges;
use plimsoll_metrics::{ConnectionRecord, Snapshot, Stall, WorkerRecord, WorkerStatus};
use plimsoll_plan::{Load, Overload};

use super::routing::ASK_INTERVAL;
use super::{CATCHING_UP, LONGEST_WAIT, STALL, STALLS_KEPT, Worker};
use crate::pacing::Outlook;
use crate::target_pool::TargetPool;

/// Delay before an arrival that needs no further connection is looked at again.
const HELD: Nanos = Nanos::from_millis(1);
/// A wait that returned so much too late makes the target seem silent that was not listened to.
const UNHEARD: Nanos = Nanos::from_millis(1);

impl<B: Backend> Worker<'_, B> {
    /// Returns `true` if a run that is counted, or complete, has nothing left to start and nothing to wait
    /// for.
    pub(super) fn is_through(&mut self) -> bool {
        let ends = self.complete || self.plan.end.iterations.is_some();
        if self.wants_to_stop() && self.keeps_its_length() {
            return false;
        }
        if !ends || self.counts.in_flight > 0 || !self.sleepers.is_empty() {
            return false;
        }
        if self.complete {
            return self.has_begun_all();
        }
        match self.counts.remaining {
            Some(remaining) => remaining == 0,
            None => self.pools.iter_mut().all(|pool| pool.peek().is_none()),
        }
    }

    pub(super) fn outlook(&mut self, now: Nanos, next_edge: Nanos) -> Outlook {
        let over = now >= self.times.end;
        let next_arrival = if over || self.has_begun_all() {
            None
        } else {
            // While an arrival waits for a connection, the next thing to wait for is a response.
            let pools = self.pools.iter_mut().filter(|pool| !pool.blocked);
            let due = pools.filter_map(|pool| pool.peek().map(|(arrival, _)| arrival.at)).min();
            due.map(|at| self.times.start + at)
        };
        let end = if over { self.times.drained } else { self.times.end };
        let retry = self.retries.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at);
        let longest = if self.more { now } else { now + LONGEST_WAIT };
        let parked = self.parked.next_due().max(now);
        let until = self.timers.next_due().min(next_edge).min(end).min(retry).min(parked).min(longest);
        let until = if self.asked > 0 { until.min(now + ASK_INTERVAL) } else { until };
        let until = self.pools.iter().map(TargetPool::waiting_until).fold(until, Nanos::min);
        let probe = self.pools.iter().map(|pool| pool.target_addresses.next_probe().max(now)).min();
        // After the end no server is asked for, and nobody thinks.
        let until = if over { until } else { until.min(probe.unwrap_or(Nanos::MAX)) };
        let sleeper = self.sleepers.peek().map_or(Nanos::MAX, |Reverse((at, _))| (*at).max(now));
        let until = if over { until } else { until.min(sleeper).min(self.users_change.max(now)) };
        let waits = self.blocked_since.is_some() || self.pools.iter().any(|pool| !pool.waiting.is_empty());
        let opening = self.times.start + self.ramp.next();
        let paced = self.ramp.is_rising() && !self.users_have_connections() && !over;
        let until = if paced { until.min(opening.max(now)) } else { until };
        let until = self.openers.front().map_or(until, |(at, _)| until.min((*at).max(now)));
        // A target that has fallen silent needs more connections from moment to moment.
        let until = if self.held { until.min(now + HELD) } else { until };
        let measure = if now < self.times.measure { self.times.measure } else { Nanos::MAX };
        Outlook {
            now,
            until: until.min(measure),
            next_arrival,
            blocked: waits || over,
            follows: self.follows,
            // Nothing comes for those that are to be sent again.
            in_flight: self.counts.in_flight - self.parked.len(),
            room: self.room(),
        }
    }

    /// Returns the number of arrivals that may share a wake-up: as many as find a connection at once. If the
    /// plan drops arrivals that find none, half of the room is left for chance to bring more than usual.
    fn room(&self) -> u64 {
        // Those of the plan's targets: arrivals begin there.
        let pools = self.pools.iter().take(self.plan.targets.len());
        let places = pools.map(|pool| u64::from(pool.max) * u64::from(pool.depth)).sum::<u64>();
        let room = places.saturating_sub(self.counts.in_flight);
        let drops = matches!(self.plan.load, Load::Open { overload: Overload::Drop, .. });
        if drops { room / 2 } else { room }
    }

    pub(super) fn note_blocked(&mut self, blocked: bool, at_limit: bool, now: Nanos) {
        if let Some(since) = self.blocked_since {
            let length = now.since(since.max(self.times.measure));
            self.recorder.connections.blocked += length;
            if self.blocked_at_limit {
                self.recorder.connections.blocked_at_limit += length;
            }
            // Requests that fell due in a stall wait for connections, and so do those behind them.
            let [_, end, latest] = self.stalled;
            if since <= end + CATCHING_UP && end < latest {
                self.stalled[1] = end.max(now.min(latest));
            }
        }
        self.blocked_since = blocked.then_some(now);
        self.blocked_at_limit = at_limit;
    }

    pub(super) fn note_pass(&mut self, began: Nanos, ended: Nanos) {
        let length = ended.since(began);
        self.record.passes += 1;
        self.record.longest_pass = self.record.longest_pass.max(length);
        let [_, end, latest] = self.stalled;
        if began <= end + CATCHING_UP && end < latest {
            self.stalled[1] = ended.min(latest);
        }
        if length > STALL {
            self.note_stall(began, length);
        }
    }

    /// A wait that returned long after it had to: this thread did not run.
    pub(super) fn note_wait(&mut self, began: Nanos, until: Nanos, returned: Nanos) {
        let late = returned.since(until.min(began + LONGEST_WAIT));
        if late > UNHEARD
            && let Some(demand) = &mut self.demand
        {
            demand.stood_still(late, returned);
        }
        if late > STALL {
            self.note_stall(until, late);
        }
    }

    pub(super) fn note_stall(&mut self, at: Nanos, length: Nanos) {
        // While the backlog of the last one is worked off, both are one.
        let [begin, end, _] = self.stalled;
        let begin = if end > Nanos::ZERO && at <= end + LONGEST_WAIT { begin } else { at };
        let end = at + length;
        self.stalled = [begin, end, end + length];
        if at >= self.times.measure && self.record.stalls.len() < STALLS_KEPT {
            self.record.stalls.push(Stall {
                worker: self.shard.index,
                at: at.since(self.times.start),
                length,
            });
        }
    }

    /// The end of the phase that is under way at `at`; never, without phases.
    pub(super) fn border_after(&self, at: Nanos) -> Nanos {
        let ends = self.plan.phases.iter().map(|phase| self.times.start + phase.end());
        ends.filter(|end| *end > at).min().unwrap_or(Nanos::MAX)
    }

    /// The end of the interval that begins at `at`. None reaches from the warm-up into the measured part, or
    /// from one phase into the next.
    pub(super) fn edge_after(&self, at: Nanos) -> Nanos {
        let edge = (at + self.plan.interval).min(self.border_after(at));
        if at < self.times.measure { edge.min(self.times.measure) } else { edge }
    }

    /// The interval that ends at `at`, or what came after the last one: the drain.
    pub(super) fn snapshot(&mut self, at: Nanos, drain: bool) -> Snapshot {
        let measure = self.times.measure;
        let warmup = self.plan.warmup > Nanos::ZERO && (at < measure || (at == measure && !drain));
        self.log.flush();
        let gauges = Gauges {
            at: at.since(self.times.start),
            warmup,
            drain,
            scheduled: std::mem::take(&mut self.counts.new_scheduled),
            iterations: std::mem::take(&mut self.counts.new_iterations),
            in_flight: self.counts.in_flight,
            connections: self.open_now,
        };
        // A worker whose load ends in the warm-up says how it stands with the last interval of that.
        let tells = self.control.is_detailed() && (!warmup || at >= self.times.end);
        let worker_status = if tells { self.news(at) } else { None };
        let recorder = if warmup { &mut self.warmup } else { &mut self.recorder };
        Snapshot { worker_status, ..recorder.snapshot(gauges) }
    }

    /// Returns the status of this worker, unless it was reported already.
    fn news(&mut self, at: Nanos) -> Option<Box<WorkerStatus>> {
        let worker_status = self.worker_status(at);
        if self.told.as_ref().is_some_and(|told| !worker_status.tells_more_than(told)) {
            return None;
        }
        self.told = Some(Box::new(worker_status.without_lags()));
        Some(Box::new(worker_status))
    }

    /// Returns the status of this worker at an instant of the measured part, or in the drain.
    fn worker_status(&mut self, at: Nanos) -> WorkerStatus {
        let load_end = at.min(self.times.end);
        let mut connections = self.recorder.connections.counts();
        if let Some(since) = self.blocked_since {
            let length = load_end.since(since.max(self.times.measure));
            connections.blocked += length;
            connections.blocked_at_limit += if self.blocked_at_limit { length } else { Nanos::ZERO };
        }
        self.state_limits(&mut connections);
        let wall = load_end.since(self.times.measure);
        let until = load_end.since(self.times.start);
        let waiting = match self.complete {
            true => 0,
            false => self.pools.iter_mut().map(|pool| pool.backlog(until)).sum(),
        };
        WorkerStatus {
            worker: self.shard.index,
            accounting: self.counts.accounting,
            iterations: self.counts.iterations,
            connections,
            kept: WorkerRecord { wall, ..self.record.without_times() },
            completed: self.counts.completed_in_window,
            pacing_budget: self.pacer.budget(),
            waiting,
            start_lags: self.recorder.start_lags(),
        }
    }

    /// States what connections were allowed.
    pub(super) fn state_limits(&self, connections: &mut ConnectionRecord) {
        let limit = self.pools.iter().map(|pool| u64::from(pool.max)).sum();
        connections.limit = self.most_open.min(limit);
        connections.depth = self.pools.iter().map(|pool| pool.depth).max().unwrap_or(1);
        connections.http2.streams_asked = self.plan.connections.streams;
    }
}
