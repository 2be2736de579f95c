//! Routing: requests that go to another server than their step's target, because their URL or a redirect says
//! so. It may be one that the plan does not name: then it gets a pool of its own.

use std::sync::Arc;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::Backend;
use plimsoll_metrics::Peer;
use plimsoll_plan::{DynamicOrigin, DynamicOrigins};
use plimsoll_scenario::reference::{self, Origin};

use super::Worker;
use super::records::Records;
use crate::capture::Detour;
use crate::directory::{Answer, ResolvedServer};
use crate::request::InFlight;
use crate::session::LastConnection;
use crate::target_pool::{ResolveState, TargetPool};

/// Interval at which the directory is asked for servers that are being looked for. A request to such a server
/// starts late by at most this time.
pub(super) const ASK_INTERVAL: Nanos = Nanos::from_millis(1);
/// A server that was not found is looked for again by the first request after this time.
const LOST_FOR: Nanos = Nanos::from_secs(1);

/// Reason why a request cannot go where it is sent.
pub(super) struct NoWay {
    pub(super) class: ErrorClass,
    pub(super) reason: String,
}

impl<B: Backend> Worker<'_, B> {
    /// The pool of a request that is to be started: that of its step, `home`, unless its URL names another
    /// server.
    pub(super) fn pool_by_url(&mut self, request: &mut InFlight, home: u32) -> Result<u32, NoWay> {
        let plan = self.plan;
        let step = &plan.steps[request.step as usize];
        let (Some(away), Some(variable)) = (&step.away, step.request.leading_variable()) else {
            return Ok(home);
        };
        let Some(value) = self.iterations.sessions.variables(request.session).get(usize::from(variable))
        else {
            return Ok(home);
        };
        let Some((origin, _)) = reference::origin(value) else { return Ok(home) };
        if self.is_at_last_member(home, request.session, origin) {
            return Ok(home);
        }
        let template = if origin.https { &away.secure } else { &away.plain };
        let pool = match self.routes.find(&self.pools, origin) {
            Some(pool) => pool,
            None => {
                let (https, authority) = (origin.https, origin.authority.to_vec());
                self.new_pool(Origin { https, authority: &authority })?
            }
        };
        if pool != home {
            self.exchanges.captures.send_by(&mut request.capture, Detour::Template(Arc::clone(template)));
        }
        Ok(pool)
    }

    /// Returns `true` if this is the member of the pool that an iteration had its last answer from: it stays
    /// with that one, and needs no pool of its own, whose connections would take the place of these.
    fn is_at_last_member(&self, home: u32, session: u32, origin: Origin<'_>) -> bool {
        let pool = &self.pools[home as usize];
        let last = || self.iterations.sessions.get(session)?.last_connection(home);
        pool.has_members()
            && pool.https == origin.https
            && last().is_some_and(|LastConnection { target_address, .. }| {
                pool.name_of(target_address).authority.eq_ignore_ascii_case(origin.authority)
            })
    }

    /// The pool of the server of a URL; a new one, if there is none yet.
    pub(super) fn pool_to(&mut self, origin: Origin<'_>) -> Result<u32, NoWay> {
        match self.routes.find(&self.pools, origin) {
            Some(pool) => Ok(pool),
            None => self.new_pool(origin),
        }
    }

    #[cold]
    fn new_pool(&mut self, origin: Origin<'_>) -> Result<u32, NoWay> {
        let no_way = |class, reason: String| NoWay { class, reason };
        let dynamic_origin = DynamicOrigin::read(origin.https, origin.authority)
            .map_err(|reason| no_way(ErrorClass::Resolve, reason))?;
        let known = self.pools.iter().position(|pool| pool.is(&dynamic_origin));
        if let Some(pool) = known {
            self.routes.remember(origin, pool as u32);
            return Ok(pool as u32);
        }
        let Some(dynamic_origins) = self.routes.dynamic_origins() else {
            let reason = format!("`{}` is not a target of the plan", dynamic_origin.authority());
            return Err(no_way(ErrorClass::Resolve, reason));
        };
        let outline = dynamic_origins.outline(&dynamic_origin);
        let answer = self.routes.directory.ask(&dynamic_origin, false);
        if matches!(answer, Answer::Full) {
            let most = DynamicOrigins::MOST;
            let reason = format!(
                "`{}` is one server more than the {most} that may come up",
                dynamic_origin.authority()
            );
            return Err(no_way(ErrorClass::TooManyServers, reason));
        }
        self.pools.push(TargetPool::dynamic_origins(self.plan, outline, dynamic_origin));
        let pool = (self.pools.len() - 1) as u32;
        self.take_answer(pool, answer);
        Ok(pool)
    }

    /// Starts a request, which was counted before, on a pool that may be one of a server that the plan does
    /// not name: if that was not found, it fails.
    pub(super) fn seat_dynamic_origins(
        &mut self,
        pool: u32,
        request: &mut InFlight,
        ready: Nanos,
        now: Nanos,
    ) {
        if let ResolveState::Failed { until, reason } = &self.pools[pool as usize].resolve_state {
            if now < *until {
                let reason = Arc::clone(reason);
                self.fail_unrouted(pool, request, ErrorClass::Resolve, &reason);
                return;
            }
            self.ask_for(pool, true);
            if let ResolveState::Failed { reason, .. } = &self.pools[pool as usize].resolve_state {
                let reason = Arc::clone(reason);
                self.fail_unrouted(pool, request, ErrorClass::Resolve, &reason);
                return;
            }
        }
        self.assign(pool, None, request, ready, now);
    }

    /// A request that cannot go anywhere.
    pub(super) fn fail_unrouted(&mut self, pool: u32, request: &InFlight, class: ErrorClass, reason: &str) {
        self.note_error(class, reason);
        self.fail(pool, request, class, 0, self.clock.now);
    }

    /// Asks for the servers that are being looked for.
    #[cold]
    pub(super) fn ask_directory(&mut self, now: Nanos) {
        self.clock.advance(now);
        for pool in 0..self.pools.len() as u32 {
            if matches!(self.pools[pool as usize].resolve_state, ResolveState::Resolving) {
                self.ask_for(pool, false);
            }
        }
    }

    fn ask_for(&mut self, pool: u32, again: bool) {
        let Some(dynamic_origin) = &self.pools[pool as usize].origin else { return };
        let answer = self.routes.directory.ask(dynamic_origin, again);
        self.take_answer(pool, answer);
    }

    /// Handles the directory's answer about the server of this pool.
    fn take_answer(&mut self, pool: u32, answer: Answer) {
        let state = &mut self.pools[pool as usize];
        match answer {
            Answer::Found(found) => self.settle_pool(pool, &found),
            Answer::Pending => state.resolve_state = ResolveState::Resolving,
            Answer::Lost(reason) => {
                let until = self.clock.now + LOST_FOR;
                state.resolve_state = ResolveState::Failed { until, reason: Arc::clone(&reason) };
                let waiting = std::mem::take(&mut state.waiting);
                for (_, request) in waiting {
                    self.fail_unrouted(pool, &request, ErrorClass::Resolve, &reason);
                }
            }
            // The name has an entry already, so there is room for it.
            Answer::Full => {}
        }
        self.routes.count_asked(&self.pools);
    }

    /// The server is found: connections to it may be opened.
    fn settle_pool(&mut self, pool: u32, found: &ResolvedServer) {
        let most = self.shard.share_of(u64::from(self.plan.connections.max)) as u32;
        let peer = self.records.peers.len();
        let pool = &mut self.pools[pool as usize];
        let origin = pool.origin.as_ref().map(DynamicOrigin::origin).unwrap_or_default();
        pool.settle(found, peer, most.max(1), self.shard.index);
        let authority = found.target.authority.clone();
        self.records.peers.push(Peer { origin, ..Records::peer(authority, &pool.target_addresses) });
    }
}
