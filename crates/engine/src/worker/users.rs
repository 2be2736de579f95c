//! Users: how many there are, in a closed run whose users are not those of its connections.
//!
//! Users have no identity: a worker counts how many it has and how many it should have. Missing ones begin at
//! once; if there are too many, the first one that is ready for its next iteration goes. So a user always
//! ends what it has begun, and their number falls as fast as that allows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plimsoll_core::{Nanos, Shard};
use plimsoll_driver::Backend;
use plimsoll_plan::{Dealing, Load, Plan};

use super::Worker;
use crate::target_pool::TargetPool;

/// Users of the closed model that are not under way: those that wait to try again, and those whose connection
/// is still to be opened.
///
/// A user is here or has an iteration under way, never both. In the open model there are none.
#[derive(Debug)]
pub(super) struct Users {
    /// The pool that all users belong to, but for those of the second side.
    home: u32,
    /// Where two sides have users of their own: the first step of the second one, and the pool of its users.
    second: Option<(u32, u32)>,
    /// Set if they begin iterations at several targets.
    pub(super) are_dealt: bool,
    /// When their number changes next, on the driver's clock; never, where it is that of the connections.
    next_change: Nanos,
    /// Users that wait to begin an iteration, by time and pool.
    retries: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Users whose connection is opened at the pace of the ramp: when, and of which pool, in order.
    openers: VecDeque<(Nanos, u32)>,
}

impl Users {
    /// No users so far. They are at home where the first scenarios begin.
    pub(super) fn new(plan: &Plan, pools: &[TargetPool]) -> Self {
        let second = match plan.dealing {
            Dealing::Apart(second) => plan.scenarios.get(second as usize).map(|scenario| {
                let step = scenario.steps.start;
                (step, plan.steps[step as usize].target as u32)
            }),
            Dealing::Even | Dealing::Shuffled => None,
        };
        Self {
            second,
            home: pools.iter().position(TargetPool::has_scenarios).unwrap_or(0) as u32,
            are_dealt: pools.iter().filter(|pool| pool.begins).count() > 1,
            next_change: Nanos::MAX,
            retries: BinaryHeap::new(),
            openers: VecDeque::new(),
        }
    }

    /// The pool that all users belong to, if no two sides have users of their own.
    #[inline]
    pub(super) const fn home(&self) -> u32 {
        self.home
    }

    /// The pool that the user of a step belongs to.
    #[inline]
    pub(super) const fn home_of_step(&self, step: u32) -> u32 {
        match self.second {
            Some((first, pool)) if step >= first => pool,
            _ => self.home,
        }
    }

    /// Notes when their number changes next.
    #[inline]
    pub(super) const fn change_at(&mut self, at: Nanos) {
        self.next_change = at;
    }

    /// When their number changes next; never, where it is that of the connections.
    #[inline]
    pub(super) const fn next_change(&self) -> Nanos {
        self.next_change
    }

    /// Lets a user of the pool begin an iteration at that time.
    #[inline]
    pub(super) fn retry(&mut self, at: Nanos, pool: u32) {
        self.retries.push(Reverse((at, pool)));
    }

    /// Takes a user whose time to begin an iteration has come: its pool.
    #[inline]
    pub(super) fn pop_retry(&mut self, now: Nanos) -> Option<u32> {
        let &Reverse((at, pool)) = self.retries.peek()?;
        if at > now {
            return None;
        }
        self.retries.pop();
        Some(pool)
    }

    /// When the next user begins an iteration that waits for that.
    #[inline]
    pub(super) fn next_retry(&self) -> Nanos {
        self.retries.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }

    /// Lets a user of the pool open its connection at that time, which is no earlier than that of the last.
    pub(super) fn open_at(&mut self, at: Nanos, pool: u32) {
        self.openers.push_back((at, pool));
    }

    /// Takes a user whose time to open its connection has come: its pool.
    #[inline]
    pub(super) fn pop_opener(&mut self, now: Nanos) -> Option<u32> {
        let &(at, pool) = self.openers.front()?;
        if at > now {
            return None;
        }
        self.openers.pop_front();
        Some(pool)
    }

    /// When the next connection of a user is to be opened.
    #[inline]
    pub(super) fn next_opener(&self) -> Nanos {
        self.openers.front().map_or(Nanos::MAX, |(at, _)| *at)
    }

    /// Number of users whose connection is still to be opened.
    #[inline]
    pub(super) fn openers(&self) -> u64 {
        self.openers.len() as u64
    }
}

impl<B: Backend> Worker<'_, B> {
    /// Closed model: whether every connection has users of its own.
    pub(super) fn users_have_connections(&self) -> bool {
        matches!(self.plan.load, Load::Closed) && self.plan.users.is_none()
    }

    /// Brings the users to their number, if that changes now. Worker w of W has those whose number leaves w
    /// modulo W, and spreads them over the targets to which users belong.
    pub(super) fn adjust_users(&mut self, now: Nanos) {
        let Some(population) = &self.plan.users else { return };
        // Users who come at the end of a phase belong to the next one, after the figures of this one.
        if now < self.users.next_change() || now >= self.clock.border() {
            return;
        }
        let at = now.since(self.clock.start);
        self.users.change_at(population.change_after(at).map_or(Nanos::MAX, |next| self.clock.start + next));
        let mine = self.shard.share_of(u64::from(population.at(at)));
        let of = self.pools.iter().filter(|pool| pool.has_scenarios()).count() as u32;
        let homes = self.pools.iter_mut().filter(|pool| pool.has_scenarios());
        for (number, pool) in (0..of).zip(homes) {
            // What is left over goes to another target in each worker.
            let index = (number + self.shard.index) % of;
            pool.want_users(Shard { index, of }.share_of(mine) as u32);
        }
        for pool in 0..self.pools.len() as u32 {
            while self.pools[pool as usize].add_user() {
                self.next_iteration(pool, None, Nanos::MAX, now);
            }
        }
    }
}
