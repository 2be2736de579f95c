//! Proceeding: what an iteration does next, and how it ends.

use std::cmp::Reverse;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::Backend;
use plimsoll_plan::Load;
use plimsoll_scenario::{Next, Surroundings};

use super::Worker;
use super::routing::NoWay;
use crate::request::{AT_SEND, InFlight, new_request};

/// When the next request of an iteration is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextDue {
    /// When it should start; [`AT_SEND`] if its user has no plan but to send at once.
    pub(super) intended: Nanos,
    /// Closed model: when the response arrived that made its user ready; never, if unknown.
    pub(super) ready: Nanos,
    /// Start of the think time.
    pub(super) since: Nanos,
    /// `true` if its iteration begins with it.
    pub(super) begins: bool,
}

/// The next request of an iteration, where arrivals are requests: it waits for the next one of its scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    session: u32,
    step: u32,
    /// The pool of the request before.
    pool: u32,
}

/// State of an iteration after it was asked to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IterationState {
    /// It has requests under way, or thinks.
    UnderWay,
    /// It is over: its session has ended.
    Over,
    /// Its data had ended before it began: it never started.
    Exhausted,
}

/// Consequence of a request's end for its iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Other requests of it are under way.
    Pending,
    /// It is over.
    Over,
    /// It goes on with its next step.
    GoesOn,
}

impl<B: Backend> Worker<'_, B> {
    /// Lets an iteration do what it does next: `pool` and `slot` are those of its last request, if its
    /// connection can be used again.
    pub(super) fn proceed(
        &mut self,
        number: u32,
        pool: u32,
        slot: Option<u32>,
        due: NextDue,
    ) -> IterationState {
        let Some(session) = self.sessions.get_mut(number) else { return IterationState::Over };
        let (scenario, measured) = (session.scenario, session.measured);
        loop {
            let stops = !due.begins && self.wants_to_stop();
            let Some(session) = self.sessions.get_mut(number) else { return IterationState::Over };
            let mut surroundings = Surroundings {
                index: session.index,
                worker: self.shard.index,
                unix_ns: self.now.0.wrapping_add(self.unix_offset),
                random: &mut self.random,
                feeds: &mut self.feeds,
                tokens: Some(&self.tokens.all),
            };
            let steps = match self.programs[scenario as usize].next(&mut session.state, &mut surroundings) {
                Next::Send(step) => step..step + 1,
                Next::Fork(steps) => steps,
                Next::Pause(time) if time == Nanos::ZERO => continue,
                Next::Pause(time) => {
                    self.sleep(number, due.since + time);
                    return IterationState::UnderWay;
                }
                Next::ScriptPause(script) => match self.script_pause(script) {
                    Ok(Nanos::ZERO) => continue,
                    Ok(time) => {
                        self.sleep(number, due.since + time);
                        return IterationState::UnderWay;
                    }
                    Err(reason) => return self.give_up(number, ErrorClass::Script, &reason),
                },
                Next::End => {
                    let (completed, failed) = if session.failed { (0, 1) } else { (1, 0) };
                    self.counts.iterations.completed += if measured { completed } else { 0 };
                    self.counts.iterations.failed += if measured { failed } else { 0 };
                    self.end_session(number);
                    return IterationState::Over;
                }
                Next::Exhausted => {
                    self.exhausted[scenario as usize] = true;
                    // What is under way goes on to its end.
                    self.complete |= self.exhausted.iter().all(|exhausted| *exhausted);
                    if !due.begins {
                        // It has thought already, and counts.
                        return self.give_up(number, ErrorClass::Scenario, "the data has ended");
                    }
                    self.end_session(number);
                    return IterationState::Exhausted;
                }
                Next::Fail(reason) => return self.give_up(number, ErrorClass::Scenario, &reason),
            };
            if stops || self.now >= self.times.end && !due.begins {
                // The load is over: what it would have done is not begun, and the iteration not complete.
                self.end_session(number);
                return IterationState::Over;
            }
            session.outstanding = steps.len() as u32;
            let mut slot = slot;
            let mut has_arrival = due.begins || !self.paces_requests;
            for step in steps {
                if has_arrival {
                    self.send_step(number, step, pool, slot.take(), due, measured);
                } else {
                    self.turns[scenario as usize].push_back(Turn { session: number, step, pool });
                }
                has_arrival = !self.paces_requests;
            }
            return IterationState::UnderWay;
        }
    }

    /// Arrivals are requests: the one that is intended at `intended` is that of an iteration under way.
    pub(super) fn send_turn(&mut self, turn: Turn, intended: Nanos, measured: bool) {
        let Turn { session, step, pool } = turn;
        let due = NextDue { intended, ready: Nanos::MAX, since: intended, begins: false };
        self.send_step(session, step, pool, None, due, measured);
    }

    /// Starts the request of one step of an iteration.
    fn send_step(
        &mut self,
        number: u32,
        step: u32,
        pool: u32,
        slot: Option<u32>,
        due: NextDue,
        measured: bool,
    ) {
        let Some(session) = self.sessions.get(number) else { return };
        let index = session.index;
        self.counts.accounting.scheduled += u64::from(measured);
        self.counts.new_scheduled += 1;
        let next_pool = self.pool_of(self.plan.steps[step as usize].target, pool);
        let mut request = new_request(due.intended, index, step, measured);
        request.session = number;
        if self.plan.steps[step as usize].away.is_some() {
            self.send_by_url(next_pool, pool, slot, &mut request, due.ready);
            return;
        }
        let slot = slot.filter(|_| next_pool == pool);
        self.place(next_pool, slot, &mut request, due.ready, self.now);
    }

    /// The same for a step whose URL may be that of another server than its target, whose pool is `home`.
    #[inline(never)]
    fn send_by_url(&mut self, home: u32, pool: u32, slot: Option<u32>, request: &mut InFlight, ready: Nanos) {
        let way = self.pool_by_url(request, home);
        let now = self.now;
        match way {
            Ok(there) if there == pool && slot.is_some() => self.place(there, slot, request, ready, now),
            Ok(there) => {
                self.count_started(request);
                self.seat_dynamic_origins(there, request, ready, now);
            }
            Err(NoWay { class, reason }) => {
                self.count_started(request);
                self.fail_unrouted(home, request, class, &reason);
            }
        }
    }

    /// The pool in which a request will be that waits for its arrival.
    pub(super) fn pool_of_turn(&self, turn: Turn) -> u32 {
        self.pool_of(self.plan.steps[turn.step as usize].target, turn.pool)
    }

    pub(super) fn pool_of(&self, target: usize, likely: u32) -> u32 {
        if self.pools[likely as usize].target == target {
            return likely;
        }
        self.pools.iter().position(|pool| pool.target == target).map_or(likely, |pool| pool as u32)
    }

    /// An iteration is over.
    fn end_session(&mut self, number: u32) {
        if let Some(session) = self.sessions.get_mut(number) {
            self.feeds.release(&mut session.state);
        }
        self.sessions.end(number);
    }

    /// The iteration does nothing until then.
    pub(super) fn sleep(&mut self, number: u32, until: Nanos) {
        self.sleepers.push(Reverse((until, number)));
    }

    /// The iteration cannot go on.
    fn give_up(&mut self, number: u32, class: ErrorClass, reason: &str) -> IterationState {
        self.note_error(class, reason);
        self.record.script_errors += 1;
        if let Some(session) = self.sessions.get(number) {
            self.counts.iterations.failed += u64::from(session.measured);
        }
        self.end_session(number);
        IterationState::Over
    }

    /// Iterations whose think time is over go on.
    pub(super) fn start_sleepers(&mut self, now: Nanos) {
        while let Some(&Reverse((at, number))) = self.sleepers.peek() {
            if at > now || now >= self.times.end || self.is_long_over(now) {
                return;
            }
            self.sleepers.pop();
            let Some(home) = self.sessions.get(number).map(|session| session.home) else { continue };
            // It owes its next request to its own plan: being late is the generator's matter.
            let due = NextDue { intended: at, ready: Nanos::MAX, since: at, begins: false };
            let over = self.proceed(number, home, None, due) == IterationState::Over;
            if over && matches!(self.plan.load, Load::Closed) {
                // It has taken its time already.
                self.retries.push(Reverse((now, home)));
            }
        }
    }

    /// Closed model: the user of an iteration that took no time at all begins the next one; after a moment,
    /// so that such iterations do not take all the time there is.
    pub(super) fn user_goes_on(&mut self, home: u32, now: Nanos) {
        if matches!(self.plan.load, Load::Closed) {
            let pause = Nanos::from_millis(1);
            self.retries.push(Reverse((now + pause, home)));
        }
    }

    /// Ends one request of an iteration, and returns the consequence. After a request that ended badly, an
    /// iteration goes on only if its step wants that and no value that it was to take is missing
    /// ([`Session::stops`](crate::session::Session::stops)).
    #[inline]
    pub(super) fn conclude(&mut self, request: &InFlight, ok: bool) -> Fate {
        let Some(session) = self.sessions.get_mut(request.session) else {
            let measured = u64::from(request.measured);
            let iterations = &mut self.counts.iterations;
            iterations.completed += if ok { measured } else { 0 };
            iterations.failed += if ok { 0 } else { measured };
            return Fate::Over;
        };
        session.outstanding = session.outstanding.saturating_sub(1);
        session.failed |= !ok;
        session.stops |= !ok && !self.plan.steps[request.step as usize].goes_on;
        match (session.outstanding, session.stops) {
            (0, false) => Fate::GoesOn,
            (0, true) => {
                self.counts.iterations.failed += u64::from(session.measured);
                self.end_session(request.session);
                Fate::Over
            }
            _ => Fate::Pending,
        }
    }

    /// When the next request of an iteration is due whose last response arrived at `at`.
    pub(super) fn due_after(&self, at: Nanos) -> NextDue {
        match self.plan.load {
            // In the open model a session owes its steps to a schedule, though each waits for the one before.
            Load::Open { .. } => NextDue { intended: at, ready: Nanos::MAX, since: at, begins: false },
            Load::Closed => NextDue { intended: AT_SEND, ready: at, since: at, begins: false },
        }
    }
}
