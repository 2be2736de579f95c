//! Proceeding: the next step of an iteration, and its end.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::Backend;
use plimsoll_plan::Load;
use plimsoll_scenario::{LONGEST_VALUE, Next};

use super::Worker;
use super::iterations::Turn;
use super::routing::NoWay;
use crate::request::{AT_SEND, InFlight, new_request};
use crate::session::LastConnection;

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

/// The connection that a request goes on if that has room.
#[derive(Clone, Copy, Debug)]
enum Preference {
    /// That of the last answer that its iteration had from the server: the one given, if it is to the server.
    Same(Option<u32>),
    /// The one that has been idle for longest, since the request goes beside others of its iteration.
    Any,
}

/// State of an iteration after it was asked to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IterationState {
    /// The iteration has requests under way, or thinks.
    UnderWay,
    /// The iteration is over: its session has ended.
    Over,
    /// The data had ended before the iteration began: it never started.
    Exhausted,
}

/// Consequence of a request's end for its iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Other requests of it are under way.
    Pending,
    /// The iteration is over.
    Over,
    /// The iteration goes on with its next step.
    GoesOn,
}

impl<B: Backend> Worker<'_, B> {
    /// Carries out the next step of an iteration: `pool` and `slot` are those of its last request, if its
    /// connection can be used again.
    pub(super) fn proceed(
        &mut self,
        number: u32,
        pool: u32,
        slot: Option<u32>,
        due: NextDue,
    ) -> IterationState {
        let Some(session) = self.iterations.sessions.get_mut(number) else { return IterationState::Over };
        let (scenario, measured) = (session.scenario, session.measured);
        loop {
            let stops = !due.begins && self.content.wants_to_stop();
            let Some(session) = self.iterations.sessions.get_mut(number) else { return IterationState::Over };
            let unix_ns = self.clock.unix_ns();
            let elapsed = due.since.since(session.begun);
            self.content.metrics.go_on(measured, self.clock.now.since(self.clock.start));
            let mut surroundings = self.content.surroundings(session.index, elapsed, self.shard, unix_ns);
            let steps = match self.iterations.programs[scenario as usize]
                .next(&mut session.state, &mut surroundings)
            {
                Next::Send(step) => step..step + 1,
                Next::Fork(steps) => steps,
                Next::Pause(time) if time == Nanos::ZERO => continue,
                Next::Pause(time) => {
                    self.iterations.sleep(number, due.since + time);
                    return IterationState::UnderWay;
                }
                Next::ScriptPause(script) => match self.script_pause(script) {
                    Ok(Nanos::ZERO) => continue,
                    Ok(time) => {
                        self.iterations.sleep(number, due.since + time);
                        return IterationState::UnderWay;
                    }
                    Err(reason) => return self.give_up(number, ErrorClass::Script, &reason),
                },
                Next::End => {
                    self.counts.end_iteration(measured, !session.failed);
                    self.iterations.end(number, &mut self.content.feeds);
                    return IterationState::Over;
                }
                Next::Exhausted(feed) => {
                    self.iterations.exhaust(scenario, feed, self.clock.now);
                    if !due.begins {
                        // The iteration has begun already, and counts.
                        return self.give_up(number, ErrorClass::Scenario, "the data has ended");
                    }
                    self.iterations.end(number, &mut self.content.feeds);
                    return IterationState::Exhausted;
                }
                Next::Overgrown(variable) => {
                    let name = self.plan.variables.get(usize::from(variable)).map_or("", String::as_str);
                    let most = LONGEST_VALUE >> 20;
                    let reason =
                        format!("the variable `{name}` was to be set to a text of more than {most} MiB");
                    return self.give_up(number, ErrorClass::Scenario, &reason);
                }
                Next::Fail(reason) => return self.give_up(number, ErrorClass::Scenario, &reason),
            };
            let variables = &session.state.variables;
            let unfit = |step| self.plan.steps[step as usize].request.unfit_value(variables);
            if let Some(reason) = steps.clone().find_map(unfit) {
                return self.give_up(number, ErrorClass::Scenario, &reason);
            }
            if stops || self.clock.now >= self.clock.end && !due.begins {
                // The load is over: the next step is not begun, and the iteration stays incomplete.
                self.iterations.end(number, &mut self.content.feeds);
                return IterationState::Over;
            }
            session.outstanding = steps.len() as u32;
            let mut preference = Preference::Same(slot);
            let mut has_arrival = due.begins || !self.iterations.paces_requests;
            for step in steps {
                if has_arrival {
                    let preference = std::mem::replace(&mut preference, Preference::Any);
                    self.send_step(number, step, pool, preference, due, measured);
                } else {
                    self.iterations.queue_turn(scenario, Turn { session: number, step, pool });
                }
                has_arrival = !self.iterations.paces_requests;
            }
            return IterationState::UnderWay;
        }
    }

    /// Arrivals are requests: the one that is intended at `intended` is that of an iteration under way.
    pub(super) fn send_turn(&mut self, turn: Turn, intended: Nanos, measured: bool) {
        let Turn { session, step, pool } = turn;
        let due = NextDue { intended, ready: Nanos::MAX, since: intended, begins: false };
        self.send_step(session, step, pool, Preference::Same(None), due, measured);
    }

    /// The connection that the next request of an iteration to a pool wants; `None` for any.
    fn wanted(&self, preference: Preference, number: u32, pool: u32) -> Option<u32> {
        let Preference::Same(slot) = preference else { return None };
        slot.filter(|slot| self.conns[*slot as usize].pool == pool).or_else(|| {
            let LastConnection { id, .. } = self.iterations.sessions.get(number)?.last_connection(pool)?;
            self.lives(id).then(|| id.slot() as u32)
        })
    }

    /// Starts the request of one step of an iteration.
    fn send_step(
        &mut self,
        number: u32,
        step: u32,
        pool: u32,
        preference: Preference,
        due: NextDue,
        measured: bool,
    ) {
        let Some(session) = self.iterations.sessions.get(number) else { return };
        let index = session.index;
        self.counts.schedule(measured);
        let next_pool = self.pool_of(self.plan.steps[step as usize].target, pool);
        let mut request = new_request(due.intended, index, step, measured);
        request.session = number;
        if let Some(action) = self.plan.steps[step as usize].request.websocket() {
            return self.send_on_websocket(action, next_pool, &mut request, due.ready);
        }
        if self.plan.steps[step as usize].away.is_some() {
            self.send_by_url(next_pool, preference, &mut request, due.ready);
            return;
        }
        let slot = self.wanted(preference, number, next_pool);
        self.place(next_pool, slot, &mut request, due.ready, self.clock.now);
    }

    /// Starts the request of a step whose URL may be that of another server than its target, whose pool is
    /// `home`.
    #[inline(never)]
    fn send_by_url(&mut self, home: u32, preference: Preference, request: &mut InFlight, ready: Nanos) {
        let way = self.pool_by_url(request, home);
        let now = self.clock.now;
        match way {
            Ok(there) => match self.wanted(preference, request.session, there) {
                Some(slot) => self.place(there, Some(slot), request, ready, now),
                None => {
                    self.count_started(request);
                    self.seat_dynamic_origins(there, request, ready, now);
                }
            },
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

    /// The iteration cannot go on.
    fn give_up(&mut self, number: u32, class: ErrorClass, reason: &str) -> IterationState {
        self.note_error(class, reason);
        self.records.worker.script_errors += 1;
        if let Some(session) = self.iterations.sessions.get(number) {
            self.counts.end_iteration(session.measured, false);
        }
        self.iterations.end(number, &mut self.content.feeds);
        IterationState::Over
    }

    /// Iterations whose think time is over go on.
    pub(super) fn start_sleepers(&mut self, now: Nanos) {
        while now < self.clock.end
            && !self.is_long_over(now)
            && let Some((at, number)) = self.iterations.pop_sleeper(now)
        {
            let Some(home) = self.iterations.sessions.get(number).map(|session| session.home) else {
                continue;
            };
            // Its own think time scheduled this request: being late is the generator's fault.
            let due = NextDue { intended: at, ready: Nanos::MAX, since: at, begins: false };
            let over = self.proceed(number, home, None, due) == IterationState::Over;
            if over && matches!(self.plan.load, Load::Closed) {
                // The user has waited already.
                self.users.retry(now, home);
            }
        }
    }

    /// Closed model: the user of an iteration that took no time at all begins the next one; after a moment,
    /// so that such iterations do not take all the time there is.
    pub(super) fn user_goes_on(&mut self, home: u32, now: Nanos) {
        if matches!(self.plan.load, Load::Closed) {
            let pause = Nanos::from_millis(1);
            self.users.retry(now + pause, home);
        }
    }

    /// Ends one request of an iteration, and returns the consequence. After a request that ended badly, an
    /// iteration goes on only if its step wants that and no value that it was to take is missing
    /// ([`Session::stops`](crate::session::Session::stops)).
    #[inline]
    pub(super) fn conclude(&mut self, request: &InFlight, ok: bool) -> Fate {
        let Some(session) = self.iterations.sessions.get_mut(request.session) else {
            // One that was carried over from the warm-up is no iteration of the measured part.
            let measured = request.measured && request.intended >= self.clock.measure;
            self.counts.end_iteration(measured, ok);
            return Fate::Over;
        };
        session.outstanding = session.outstanding.saturating_sub(1);
        session.failed |= !ok;
        session.stops |= !ok && !self.plan.steps[request.step as usize].goes_on;
        match (session.outstanding, session.stops) {
            (0, false) => Fate::GoesOn,
            (0, true) => {
                self.counts.end_iteration(session.measured, false);
                self.iterations.end(request.session, &mut self.content.feeds);
                Fate::Over
            }
            _ => Fate::Pending,
        }
    }

    /// When the next request of an iteration is due whose last response arrived at `at`.
    pub(super) fn due_after(&self, at: Nanos) -> NextDue {
        match self.plan.load {
            // In the open model a session follows a schedule, though each step waits for the one before.
            Load::Open { .. } => NextDue { intended: at, ready: Nanos::MAX, since: at, begins: false },
            Load::Closed => NextDue { intended: AT_SEND, ready: at, since: at, begins: false },
        }
    }
}
