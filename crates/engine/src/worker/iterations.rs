//! Iterations under way: their programs and sessions, and those that wait.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;
use plimsoll_metrics::RateUnit;
use plimsoll_plan::{Load, Plan, Scenario, Step};
use plimsoll_scenario::{Feeds, Program};

use crate::session::Sessions;

/// The next request of an iteration, where arrivals are requests: it waits for the next one of its scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) session: u32,
    pub(super) step: u32,
    /// The pool of the request before.
    pub(super) pool: u32,
}

/// The iterations of one worker that are under way, and the scenarios that they are of.
///
/// An iteration whose scenario is a [single](Self::single) request has no session. Any other has one from its
/// start to [`end`](Self::end), and then is in one of three places: it has requests under way, it thinks
/// (among the sleepers), or its next request waits for an arrival (among the turns).
#[derive(Debug)]
pub(super) struct Iterations {
    pub(super) sessions: Sessions,
    /// By scenario. They are the worker's own: the cache of a regular expression is not shared.
    pub(super) programs: Vec<Program>,
    /// Open model: whether arrivals are requests, and not iterations.
    pub(super) paces_requests: bool,
    /// Set if something is sent because of a response, and not by the schedule alone.
    pub(super) follows: bool,
    /// The only step of each scenario that is nothing but a request.
    singles: Vec<Option<u32>>,
    /// Iterations that think, by the end of that.
    sleepers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// By scenario: requests of iterations under way that wait for an arrival, in the order in which they
    /// became ready.
    turns: Vec<VecDeque<Turn>>,
    /// WebSockets of iterations that have ended, or have opened another one.
    pub(super) unlinked: Vec<ConnId>,
    /// Scenarios whose data has ended.
    exhausted: Vec<bool>,
    /// The load is complete before its end: all data has ended, or a script wished so. Nothing more is begun,
    /// and later arrivals are not owed.
    completion: Option<Completion>,
}

/// The end of a load by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    /// The data source that ended last; `None` if a script wished the end.
    pub(super) feed: Option<u16>,
    /// When that was seen, on the driver's clock.
    pub(super) at: Nanos,
}

impl Iterations {
    /// No iterations so far, of the scenarios of a plan.
    pub(super) fn new(plan: &Plan) -> Self {
        let singles: Vec<_> = plan.scenarios.iter().map(|scenario| single(plan, scenario)).collect();
        Self {
            sessions: Sessions::new(plan.variables.len()),
            programs: plan.scenarios.iter().map(|scenario| scenario.program.clone()).collect(),
            paces_requests: matches!(plan.load, Load::Open { rate_of: RateUnit::Requests, .. }),
            follows: plan.redirects > 0 || singles.iter().any(Option::is_none),
            singles,
            sleepers: BinaryHeap::new(),
            turns: vec![VecDeque::new(); plan.scenarios.len()],
            unlinked: Vec::new(),
            exhausted: vec![false; plan.scenarios.len()],
            completion: None,
        }
    }

    /// The step of a scenario whose iterations are one request that remembers nothing.
    #[inline]
    pub(super) fn single(&self, scenario: u32) -> Option<u32> {
        self.singles[scenario as usize]
    }

    /// Ends an iteration; its session is used again.
    #[inline]
    pub(super) fn end(&mut self, number: u32, feeds: &mut Feeds) {
        if let Some(session) = self.sessions.get_mut(number) {
            feeds.release(&mut session.state);
            self.unlinked.extend(session.link.take());
        }
        self.sessions.end(number);
    }

    /// Lets nothing come after the requests of an iteration that are under way.
    #[cold]
    pub(super) fn stop(&mut self, number: u32) {
        if let Some(session) = self.sessions.get_mut(number) {
            session.stops = true;
        }
    }

    /// Lets an iteration do nothing until then.
    #[inline]
    pub(super) fn sleep(&mut self, number: u32, until: Nanos) {
        self.sleepers.push(Reverse((until, number)));
    }

    /// Takes an iteration whose think time is over, and when it ended.
    #[inline]
    pub(super) fn pop_sleeper(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        let &Reverse((at, number)) = self.sleepers.peek()?;
        if at > now {
            return None;
        }
        self.sleepers.pop();
        Some((at, number))
    }

    /// When the next think time ends.
    #[inline]
    pub(super) fn next_sleeper(&self) -> Nanos {
        self.sleepers.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }

    /// Returns `true` if iterations think.
    #[inline]
    pub(super) fn has_sleepers(&self) -> bool {
        !self.sleepers.is_empty()
    }

    /// Lets a request of an iteration of this scenario wait for an arrival.
    #[inline]
    pub(super) fn queue_turn(&mut self, scenario: u32, turn: Turn) {
        self.turns[scenario as usize].push_back(turn);
    }

    /// The request of this scenario that has waited longest for an arrival.
    #[inline]
    pub(super) fn first_turn(&self, scenario: u32) -> Option<Turn> {
        self.turns[scenario as usize].front().copied()
    }

    /// Takes [that request](Self::first_turn) out.
    #[inline]
    pub(super) fn take_turn(&mut self, scenario: u32) {
        self.turns[scenario as usize].pop_front();
    }

    /// Notes that a data source of a scenario has ended. Iterations under way go on to their end.
    pub(super) fn exhaust(&mut self, scenario: u32, feed: u16, at: Nanos) {
        self.exhausted[scenario as usize] = true;
        if self.exhausted.iter().all(|exhausted| *exhausted) {
            self.completion.get_or_insert(Completion { feed: Some(feed), at });
        }
    }

    /// Scenarios whose data has ended: by scenario, whether it has.
    #[inline]
    pub(super) fn exhausted(&self) -> &[bool] {
        &self.exhausted
    }

    /// Notes that a script wishes the end of the load.
    pub(super) fn complete(&mut self, at: Nanos) {
        self.completion.get_or_insert(Completion { feed: None, at });
    }

    /// The end of the load by itself, if there was one.
    #[inline]
    pub(super) const fn completion(&self) -> Option<Completion> {
        self.completion
    }

    /// Returns `true` if the load is complete before its end.
    #[inline]
    pub(super) const fn is_complete(&self) -> bool {
        self.completion.is_some()
    }

    /// Returns `true` if the load is complete before its end, and no request waits for an arrival.
    #[inline]
    pub(super) fn has_begun_all(&self) -> bool {
        self.completion.is_some() && self.turns.iter().all(VecDeque::is_empty)
    }
}

/// The step of a scenario whose iterations are single requests without a session.
fn single(plan: &Plan, scenario: &Scenario) -> Option<u32> {
    let step = scenario.program.single()?;
    let Step { request, handler, make_script, check_script, .. } = &plan.steps[step as usize];
    let forgets = handler.reads_response_alone() && make_script.is_none() && check_script.is_none();
    (forgets && !request.uses_variables()).then_some(step)
}
