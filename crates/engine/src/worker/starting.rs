//! Starting: the beginnings of iterations, the choice of their connections, and the writing of their
//! requests.

use plimsoll_core::Nanos;
use plimsoll_driver::Backend;
use plimsoll_plan::{Load, Overload};

use super::dialing::Block;
use super::proceeding::{IterationState, NextDue};
use super::{LONGEST_WAIT, Worker};
use crate::connection::{Conn, State};
use crate::request::{AT_SEND, InFlight, new_request};
use crate::session::LastConnection;
use crate::target_pool::TargetPool;

/// An iteration that is to be begun.
#[derive(Clone, Copy, Debug)]
struct Begin {
    scenario: u32,
    pool: u32,
    index: u64,
    intended: Nanos,
    /// Closed model: when the response arrived that made its user ready.
    ready: Nanos,
    measured: bool,
}

impl<B: Backend> Worker<'_, B> {
    /// Closed model without a number of users: there are as many as iterations may be in flight on the
    /// connections to the targets at which scenarios begin.
    pub(super) fn start_users(&mut self, now: Nanos) {
        let home = self.users.home();
        for pool in 0..self.pools.len() as u32 {
            if !self.pools[pool as usize].begins {
                continue;
            }
            let (initial, depth) = (self.pools[pool as usize].initial, self.pools[pool as usize].depth);
            let is_open = |conn: &&Conn| conn.pool == pool && conn.state == State::Open;
            let open = self.conns.iter().filter(is_open);
            let users = |conn: &Conn| (conn.id.slot() as u32, conn.depth(self.plan.connections.depth));
            let seats: Vec<(u32, u32)> = open.map(users).collect();
            // Each connection has its first user before any has its second: there may be fewer iterations
            // than users.
            let most = seats.iter().map(|(_, users)| *users).max().unwrap_or(0);
            for round in 0..most {
                for (slot, _) in seats.iter().filter(|(_, users)| *users > round) {
                    self.next_iteration(home, Some(*slot), Nanos::MAX, now);
                }
            }
            for _ in seats.len()..initial as usize {
                if self.dialing.ramp.is_paced() {
                    // One user opens the connection; the others that share it start when it is open.
                    let at = self.clock.start + self.dialing.ramp.at(self.users.openers());
                    self.users.open_at(at, pool);
                    continue;
                }
                for _ in 0..depth {
                    self.next_iteration(home, None, Nanos::MAX, now);
                }
            }
        }
    }

    /// Closed model with a ramp: opens the connections whose time has come, each with its first user.
    pub(super) fn start_openers(&mut self, now: Nanos) {
        let home = self.users.home();
        while let Some(pool) = self.users.pop_opener(now) {
            if now >= self.clock.end {
                continue;
            }
            if self.users.are_dealt {
                // Their connection is one to the target that their first iteration goes to.
                for _ in 0..self.pools[pool as usize].depth {
                    self.next_iteration(home, None, Nanos::MAX, now);
                }
                continue;
            }
            self.pools[pool as usize].unfilled += 1;
            match self.open_connection(pool, now) {
                Ok(slot) => {
                    self.next_iteration(pool, Some(slot), Nanos::MAX, now);
                }
                // The failure was counted. The user tries again like any other.
                Err(_) => {
                    let pause = self.pools[pool as usize].backoff(now);
                    self.users.retry(now + pause, pool);
                }
            }
        }
    }

    /// Closed model with a ramp: the other users of a connection that was opened for the first time.
    pub(super) fn fill(&mut self, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        if !std::mem::take(&mut conn.fills) {
            return;
        }
        let (pool, users) = (conn.pool, conn.depth(self.plan.connections.depth));
        debug_assert_eq!(pool, self.users.home(), "dealt users fill no connection");
        for _ in 1..users {
            self.next_iteration(pool, Some(slot), Nanos::MAX, self.clock.now);
        }
    }

    /// Closed model: a user of `pool` is ready for its next iteration, unless the load is over. `slot` is the
    /// connection on which its last one ended, to whatever target, if that can be used again, `ready` when it
    /// did; never, if unknown. Returns `true` if it was begun.
    pub(super) fn next_iteration(&mut self, pool: u32, slot: Option<u32>, ready: Nanos, now: Nanos) -> bool {
        loop {
            let over = now.max(self.clock.now) >= self.clock.end;
            if over || self.counts.remaining() == Some(0) || self.is_stopped_by_script(now) {
                return false;
            }
            if self.is_long_over(now) {
                self.users.retry(self.clock.now, pool);
                return false;
            }
            if self.pools[pool as usize].dismiss_user() {
                return false;
            }
            if self.control.is_paused() {
                self.users.retry(now + LONGEST_WAIT, pool);
                return false;
            }
            let at = now.since(self.clock.start);
            let Some(scenario) = self.pools[pool as usize].next_scenario(self.iterations.exhausted(), at)
            else {
                if let Some(joins) = self.pools[pool as usize].next_joining(at) {
                    self.users.retry(self.clock.start + joins, pool);
                }
                return false;
            };
            let measured = now >= self.clock.measure;
            let index = self.counts.next_index(self.shard);
            let begin = Begin { scenario, pool, index, intended: AT_SEND, ready, measured };
            if self.begin(begin, slot, now) {
                self.counts.take_index(measured);
                return true;
            }
        }
    }

    /// Begins an iteration. False if its data has ended: then it never was.
    #[inline(always)]
    fn begin(&mut self, begin: Begin, slot: Option<u32>, now: Nanos) -> bool {
        let Begin { scenario, pool, index, intended, ready, measured } = begin;
        if let Some(step) = self.iterations.single(scenario) {
            self.counts.schedule(measured);
            self.counts.begin_iteration(measured);
            let mut request = new_request(intended, index, step, measured);
            // A user of the closed model goes to the target at which its scenario begins.
            let there = self.pool_of(self.plan.steps[step as usize].target, pool);
            let slot = slot.filter(|slot| self.conns[*slot as usize].pool == there);
            self.place(there, slot, &mut request, ready, now);
            return true;
        }
        self.begin_session(begin, slot, now)
    }

    /// Begins an iteration that remembers something. False if its data has ended: then it never was.
    #[inline(never)]
    fn begin_session(&mut self, begin: Begin, slot: Option<u32>, now: Nanos) -> bool {
        let Begin { scenario, pool, index, intended, ready, measured } = begin;
        let since = if intended == AT_SEND { now } else { intended };
        let session = self.iterations.sessions.begin(scenario, pool, index, since, measured);
        self.counts.begin_iteration(measured);
        match self.proceed(session, pool, slot, NextDue { intended, ready, since, begins: true }) {
            IterationState::UnderWay => {}
            IterationState::Over => self.user_goes_on(pool, now),
            IterationState::Exhausted => {
                self.counts.take_back_iteration(measured);
                return false;
            }
        }
        true
    }

    /// Requests that were started find a connection, as far as there is room.
    pub(super) fn start_waiting(&mut self, now: Nanos) {
        for pool in 0..self.pools.len() as u32 {
            while let Some((_, first)) = self.pools[pool as usize].waiting.front() {
                let again = first.is_sent_again();
                let has_place = self.can_place(pool, now) || again && self.has_place(pool, now);
                if !has_place {
                    break;
                }
                match self.pools[pool as usize].waiting.pop_front() {
                    Some((_, mut request)) if again => self.seat_again(pool, &mut request, now),
                    Some((_, mut request)) => self.seat_anywhere(pool, &mut request, Nanos::MAX, now),
                    None => break,
                }
            }
        }
    }

    /// Closed model: users whose back-off is over try again.
    pub(super) fn start_retries(&mut self, now: Nanos) {
        while let Some(pool) = self.users.pop_retry(now) {
            self.next_iteration(pool, None, Nanos::MAX, now);
        }
    }

    /// Open model: starts every arrival that is due, as far as connections allow. Where arrivals are
    /// requests, an iteration under way takes one before another begins.
    ///
    /// There is no queue of waiting arrivals: the schedule is an exact sequence, and an arrival that is not
    /// taken keeps its place and its intended time in it.
    pub(super) fn start_arrivals(&mut self, now: Nanos) {
        let Load::Open { overload, .. } = self.plan.load else { return };
        if self.clock.arrivals_ended || self.iterations.has_begun_all() {
            return;
        }
        // Arrivals of the next phase wait until the figures of this one are taken; the first pass at or after
        // the end still starts those that fell due before it.
        let until = self.clock.border();
        let over = now >= self.clock.end && until == self.clock.end;
        // The last ones may share a wake-up, which comes late and owes more of them than there are free
        // connections. They are late by the generator's own doing, as at any other time, and may be so by as
        // much. Where every arrival has its own wake-up, an arrival that finds no connection at the end waits
        // for the target or its limit of connections: it counts as never started, though the run was on time.
        let latest = self.clock.end + self.pacer.budget();
        if over && now > latest && self.counts.last_edge >= self.clock.end {
            self.clock.arrivals_ended = true;
            return;
        }
        let (mut blocked, mut at_limit, mut barred, mut started) = (false, false, false, false);
        let mut unreached = false;
        self.dialing.begin_arrivals();
        'pools: for pool in 0..self.pools.len() as u32 {
            let state = &mut self.pools[pool as usize];
            // While the address of the server is being resolved, connections are not what is missing.
            state.blocked = !state.waiting.is_empty() && state.max > 0;
            let (waits, reached) = (state.blocked, state.reached);
            blocked |= waits;
            unreached |= waits && !reached;
            barred |= waits && self.is_barred(pool);
            at_limit |= waits && reached && self.is_at_limit(pool);
            while let Some((arrival, scenario)) = self.pools[pool as usize].peek() {
                let intended = self.clock.start + arrival.at;
                if intended > now || intended >= until || self.is_long_over(now) {
                    break;
                }
                if self.is_stopped_by_script(now) {
                    break 'pools;
                }
                let measured = intended >= self.clock.measure;
                let turn = self.iterations.first_turn(scenario);
                if turn.is_none() && self.iterations.exhausted()[scenario as usize] {
                    self.pools[pool as usize].take();
                    if !self.iterations.is_complete() {
                        self.counts.pass_by(measured);
                    }
                    continue;
                }
                let there = turn.map_or(pool, |turn| self.pool_of_turn(turn));
                if !self.pools[there as usize].waiting.is_empty() || !self.can_place(there, now) {
                    if overload == Overload::Drop {
                        // In this pass no connection becomes free for later arrivals, either.
                        let due = until.min(now + Nanos(1)).since(self.clock.start);
                        let passed = self.pools[pool as usize].take_before(due, self.iterations.exhausted());
                        self.counts.drop_passed(passed);
                        barred |= self.is_barred(there);
                        unreached |= !self.pools[there as usize].reached;
                        break;
                    }
                    blocked = true;
                    self.pools[pool as usize].blocked = true;
                    barred |= self.is_barred(there);
                    match self.pools[there as usize].reached {
                        true => at_limit |= self.is_at_limit(there),
                        false => unreached = true,
                    }
                    break;
                }
                self.pools[pool as usize].take();
                if let Some(turn) = turn {
                    self.iterations.take_turn(scenario);
                    self.send_turn(turn, intended, measured);
                    started = true;
                    continue;
                }
                let index = arrival.index;
                let begin = Begin { scenario, pool, index, intended, ready: Nanos::MAX, measured };
                if self.begin(begin, None, now) {
                    started = true;
                } else if !self.iterations.is_complete() {
                    self.counts.pass_by(measured);
                }
                if self.iterations.has_begun_all() || self.is_stopped_by_script(now) {
                    break 'pools;
                }
            }
        }
        if started {
            self.pacer.started(now);
        }
        self.clock.arrivals_ended = over && !(blocked && now < latest);
        let block = match (blocked, barred, at_limit) {
            // Arrivals that were dropped have waited for nothing else.
            (_, true, _) => Some(Block::Barred),
            (_, _, false) if unreached => Some(Block::Unreached),
            (false, ..) => None,
            (.., true) => Some(Block::AtLimit),
            _ => Some(Block::Other),
        };
        self.note_blocked(block, now.min(self.clock.end));
    }

    /// Returns `true` if a pass that began at `now` has taken so long that the control and the deadlines come
    /// first: scripts may take their time.
    #[inline]
    pub(super) fn is_long_over(&self, now: Nanos) -> bool {
        self.content.scripts.is_some() && self.clock.now.since(now) > LONGEST_WAIT
    }

    /// Returns `true` if [`place`](Self::place) would find or may open a connection.
    pub(super) fn can_place(&mut self, pool: u32, now: Nanos) -> bool {
        self.find_available(pool).is_some() || self.may_open(pool, now)
    }

    /// Opens the connections whose time has come (`--connection-rate`), unless they come with their users.
    pub(super) fn open_paced(&mut self, now: Nanos) {
        if self.users_have_connections() {
            // Users open them at the pace of the ramp.
            return;
        }
        while self.dialing.ramp.is_rising()
            && now >= self.clock.start + self.dialing.ramp.next()
            && now < self.clock.end
        {
            let lacks = |pool: &TargetPool| pool.open < pool.initial;
            let Some(pool) = self.pools.iter().position(lacks) else { return };
            if self.is_at_limit(pool as u32) {
                return;
            }
            // A connection that fails is counted, and tried again when a request needs one.
            let _ = self.open_connection(pool as u32, now);
        }
    }

    fn may_open(&mut self, pool: u32, now: Nanos) -> bool {
        // A WebSocket carries nothing but the messages of its iteration, however short they are.
        self.has_place(pool, now)
            && (self.pools[pool as usize].server.protocol.is_websocket() || self.is_owed_one(pool, now))
    }

    /// Returns `true` if the limit and the pace of connections allow the pool a further one.
    pub(super) fn has_place(&self, pool: u32, now: Nanos) -> bool {
        let paced = self.dialing.ramp.is_paced() && !self.users_have_connections();
        !self.is_at_limit(pool)
            && !self.is_barred(pool)
            && (!paced || now >= self.clock.start + self.dialing.ramp.next())
    }

    /// Returns `true` if what is owed needs one more connection of the pool.
    fn is_owed_one(&mut self, pool: u32, now: Nanos) -> bool {
        if self.dialing.needs(&self.pools[pool as usize], now) {
            return true;
        }
        if !self.dialing.is_count_due(now) {
            return false;
        }
        self.count_slow(now);
        self.dialing.needs(&self.pools[pool as usize], now)
    }

    /// Counts the requests whose answer should have come: each of them holds a place for longer than others.
    #[cold]
    fn count_slow(&mut self, now: Nanos) {
        let Some(demand) = self.dialing.demand_mut() else { return };
        let (mut slow, mut walked) = (0, self.conns.len() as u32);
        for conn in &self.conns {
            for request in conn.requests.iter() {
                walked += 1;
                slow += u32::from(demand.is_slow(request.started, now));
            }
        }
        demand.note_slow(slow, walked, now);
    }

    /// Returns `true` if the limit of connections allows the pool no further one.
    #[inline]
    fn is_at_limit(&self, pool: u32) -> bool {
        let TargetPool { open, max, .. } = self.pools[pool as usize];
        open >= max || (self.dialing.is_full() && self.idle_dynamic_origins(pool).is_none())
    }

    /// Returns `true` if the server of a pool allows no streams on any connection that stands: further ones
    /// would not help.
    #[inline]
    fn is_barred(&self, pool: u32) -> bool {
        self.pools[pool as usize].barred > 0 && self.has_only_barred(pool)
    }

    #[cold]
    fn has_only_barred(&self, pool: u32) -> bool {
        let takes = |conn: &Conn| conn.pool == pool && conn.state == State::Open && !conn.barred;
        !self.conns.iter().any(takes)
    }

    /// A connection of another pool on which nothing is in flight, of the pool with most of them that which
    /// has been idle for longest. It gives its place to a server that has come up, or gets it back: the pools
    /// of the plan's targets alone never have more than all of the places.
    #[cold]
    pub(super) fn idle_dynamic_origins(&self, pool: u32) -> Option<u32> {
        let idle = |(number, other): (u32, &TargetPool)| {
            let is_idle = |slot: &u32| {
                let conn = &self.conns[*slot as usize];
                let listed = conn.pool == number && conn.listed && conn.state == State::Open;
                listed && conn.requests.is_empty()
            };
            let slot = other.available.iter().copied().find(is_idle)?;
            Some((other.open, slot))
        };
        let others = (0..).zip(&self.pools).filter(|(number, _)| *number != pool);
        others.filter_map(idle).max_by_key(|(open, _)| *open).map(|(_, slot)| slot)
    }

    /// The first connection of the pool that has room for a request; forgets stale entries on the way.
    pub(super) fn find_available(&mut self, pool: u32) -> Option<u32> {
        while let Some(&slot) = self.pools[pool as usize].available.front() {
            let conn = &self.conns[slot as usize];
            if conn.pool == pool && conn.listed && self.has_room(slot) {
                return Some(slot);
            }
            if self.conns[slot as usize].pool == pool {
                self.conns[slot as usize].listed = false;
            }
            self.pools[pool as usize].available.pop_front();
        }
        None
    }

    /// Returns `true` if the connection can take a request.
    #[inline]
    pub(super) fn has_room(&self, slot: u32) -> bool {
        let connections = &self.plan.connections;
        let conn = &self.conns[slot as usize];
        conn.has_room(connections.depth, self.pools[conn.pool as usize].depth, connections.max_requests)
    }

    /// Starts `request`: on the connection `slot` if it has room, else on the one that has had room for
    /// longest, else on one that is opened for it.
    #[inline]
    pub(super) fn place(
        &mut self,
        pool: u32,
        slot: Option<u32>,
        request: &mut InFlight,
        ready: Nanos,
        now: Nanos,
    ) {
        self.count_started(request);
        self.assign(pool, slot, request, ready, now);
    }

    #[inline(always)]
    pub(super) fn count_started(&mut self, request: &InFlight) {
        if self.counts.in_flight() == 0
            && let Some(demand) = self.dialing.demand_mut()
        {
            demand.heard(self.clock.now);
        }
        self.counts.start(request.measured);
        self.records.of(request).note_started(request.step);
    }

    /// Assigns a connection to a request that was counted before, as [`place`](Self::place) does. Without a
    /// connection the request waits for one.
    #[inline]
    pub(super) fn assign(
        &mut self,
        pool: u32,
        slot: Option<u32>,
        request: &mut InFlight,
        ready: Nanos,
        now: Nanos,
    ) {
        if self.pools[pool as usize].waiting.is_empty() {
            if let Some(slot) = slot
                && self.has_room(slot)
            {
                self.enqueue(slot, request, ready, now);
            } else {
                self.seat_anywhere(pool, request, ready, now);
            }
            return;
        }
        // Other requests have waited for longer, so the connection goes to them.
        if let Some(slot) = slot {
            self.list(slot);
        }
        self.wait_for_room(pool, request, now);
    }

    /// Lets a request that was started wait for a connection of the pool.
    pub(super) fn wait_for_room(&mut self, pool: u32, request: &mut InFlight, now: Nanos) {
        let deadline = request.deadline(self.plan).min(now + self.plan.timeout_of(request.step));
        if request.intended == AT_SEND {
            // The user is ready, so the wait begins here.
            request.intended = now;
        }
        self.pools[pool as usize].waiting.push_back((deadline, *request));
    }

    /// Starts a request on a connection with room, or on a new one. An iteration stays with its member of a
    /// pool as long as that takes connections: what a request has made there may not be known to others.
    pub(super) fn seat_anywhere(&mut self, pool: u32, request: &mut InFlight, ready: Nanos, now: Nanos) {
        if self.pools[pool as usize].has_members() && self.seat_at_member(pool, request, ready, now) {
            return;
        }
        if let Some(slot) = self.find_available(pool) {
            self.pools[pool as usize].available.pop_front();
            self.seat_on(slot, request, ready, now);
            self.even_out(pool, now);
            return;
        }
        if !self.may_open(pool, now) {
            self.wait_for_room(pool, request, now);
            return;
        }
        self.seat_on_new(pool, request, ready, now);
    }

    /// Starts a request with the member of the pool that its iteration had its last answer from. Returns
    /// `false` if there was none, or if it takes no connections.
    #[cold]
    fn seat_at_member(&mut self, pool: u32, request: &mut InFlight, ready: Nanos, now: Nanos) -> bool {
        let session = self.iterations.sessions.get(request.session);
        let last = session.and_then(|session| session.last_connection(pool));
        let Some(LastConnection { target_address, .. }) = last else { return false };
        let TargetPool { available, target_addresses, .. } = &self.pools[pool as usize];
        let member = target_addresses.member(target_address);
        let is_sound = target_addresses.is_sound(target_address);
        let place = available.iter().position(|&slot| {
            let conn = &self.conns[slot as usize];
            let is_there = conn.pool == pool && target_addresses.member(conn.target_address) == member;
            is_there && conn.listed && self.has_room(slot)
        });
        if let Some(slot) = place.and_then(|place| self.pools[pool as usize].available.remove(place)) {
            self.seat_on(slot, request, ready, now);
            return true;
        }
        if !is_sound || !self.has_place(pool, now) {
            return false;
        }
        // A further connection that fails is counted there, and the request may go to another member.
        let Ok(slot) = self.open_connection_at(pool, Some(target_address), now) else { return false };
        self.seat_on(slot, request, ready, now);
        true
    }

    /// Starts a request on a connection that is in no list, and lists the connection if it has room left.
    #[inline]
    fn seat_on(&mut self, slot: u32, request: &mut InFlight, ready: Nanos, now: Nanos) {
        self.conns[slot as usize].listed = false;
        self.enqueue(slot, request, ready, now);
        self.list(slot);
    }

    /// Opens a connection to a member of the pool that has fewer than another: requests go to connections in
    /// turn, and so to members as often as they have connections. Where redirects are followed, those that
    /// lead to a member take its turn, and equal numbers would keep all others from it.
    fn even_out(&mut self, pool: u32, now: Nanos) {
        let takes_turns = self.plan.redirects == 0;
        if takes_turns && self.pools[pool as usize].target_addresses.is_uneven() && self.has_place(pool, now)
        {
            // One that fails is counted, and its member is lost.
            let _ = self.open_connection(pool, now);
        }
    }

    /// Opens a connection for `request`.
    pub(super) fn seat_on_new(&mut self, pool: u32, request: &mut InFlight, ready: Nanos, now: Nanos) {
        match self.open_connection(pool, now) {
            Ok(slot) => self.seat_on(slot, request, ready, now),
            Err(class) => self.fail(pool, request, class, 0, now),
        }
    }

    /// Adds `request` to a connection, and writes it if the connection is ready for it.
    #[inline]
    pub(super) fn enqueue(&mut self, slot: u32, request: &mut InFlight, ready: Nanos, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        let deadline = request.deadline(self.plan).min(now + self.plan.timeout_of(request.step));
        if deadline < conn.armed {
            conn.armed = deadline;
            self.timers.arm(deadline, conn.id);
        }
        if conn.state == State::Open {
            self.transmit(slot, request, ready);
        } else {
            begin_now(request, now);
            conn.requests.push(request);
        }
    }

    /// Puts the connection into its pool's list if it has room and is not there yet.
    #[inline]
    pub(super) fn list(&mut self, slot: u32) {
        if !self.conns[slot as usize].listed && self.has_room(slot) {
            let conn = &mut self.conns[slot as usize];
            conn.listed = true;
            self.pools[conn.pool as usize].available.push_back(slot);
        }
    }
}

/// A request that needs a connection is taken up now, if it was not before: opening it is part of its
/// response time.
fn begin_now(request: &mut InFlight, now: Nanos) {
    request.started = request.started.min(now);
    if request.intended == AT_SEND {
        request.intended = now;
    }
}
