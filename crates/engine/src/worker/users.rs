//! Users: how many there are, in a closed run whose users are not those of its connections.
//!
//! Nobody is a certain user: a worker counts how many it has and how many it should have. Those that are
//! missing begin at once; if there are too many, whoever is ready for its next iteration goes. So a user
//! always ends what it has begun, and their number falls as fast as that allows.

use plimsoll_core::{Nanos, Shard};
use plimsoll_driver::Backend;
use plimsoll_plan::Load;

use super::Worker;

impl<B: Backend> Worker<'_, B> {
    /// Closed model: whether every connection has users of its own.
    pub(super) fn users_have_connections(&self) -> bool {
        matches!(self.plan.load, Load::Closed) && self.plan.users.is_none()
    }

    /// Brings the users to their number, if that changes now. Worker w of W has those whose number leaves w
    /// modulo W, and spreads them in the same way over the targets at which scenarios begin.
    pub(super) fn adjust_users(&mut self, now: Nanos) {
        let Some(population) = &self.plan.users else { return };
        // Who comes at the end of a phase belongs to the next one, after the figures of this one.
        if now < self.users_change || now >= self.times.end.min(self.border) {
            return;
        }
        let at = now.since(self.times.start);
        self.users_change = population.change_after(at).map_or(Nanos::MAX, |next| self.times.start + next);
        let mine = self.shard.share_of(u64::from(population.at(at)));
        let of = self.pools.iter().filter(|pool| pool.has_scenarios()).count() as u32;
        let homes = self.pools.iter_mut().filter(|pool| pool.has_scenarios());
        for (index, pool) in (0..of).zip(homes) {
            pool.users_wanted = Shard { index, of }.share_of(mine) as u32;
        }
        for pool in 0..self.pools.len() as u32 {
            while self.pools[pool as usize].users < self.pools[pool as usize].users_wanted {
                self.pools[pool as usize].users += 1;
                self.next_iteration(pool, None, Nanos::MAX, now);
            }
        }
    }

    /// Returns `true` if a user of the pool that is ready for its next iteration leaves instead, and counts
    /// it out.
    #[inline]
    pub(super) fn user_goes(&mut self, pool: u32) -> bool {
        let pool = &mut self.pools[pool as usize];
        let goes = pool.users > pool.users_wanted;
        pool.users -= u32::from(goes);
        goes
    }
}
