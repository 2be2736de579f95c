//! Routes to servers other than the target of a step.

use std::sync::Arc;

use plimsoll_plan::DynamicOrigins;
use plimsoll_scenario::reference::Origin;

use crate::directory::Directory;
use crate::target_pool::{ResolveState, TargetPool};

/// Ways to write the authorities of known servers that are remembered. Further ones are read each time.
const SPELLINGS: usize = 256;

/// Another way to write the authority of a server.
#[derive(Debug)]
struct Spelling {
    https: bool,
    authority: Vec<u8>,
    pool: u32,
}

/// The way from the origin of a URL to the pool of its server.
///
/// A pool is [found](Self::find) by the name of its server or a spelling that was met before. A server that
/// has no pool is asked for in the directory, and [`count_asked`](Self::count_asked) follows each answer.
#[derive(Debug)]
pub(super) struct Routes {
    /// The servers that the plan does not name.
    pub(super) directory: Arc<Directory>,
    /// Number of pools whose server is being looked for.
    asked: u32,
    spellings: Vec<Spelling>,
}

impl Routes {
    /// Routes that only know the names of the plan's targets so far.
    pub(super) const fn new(directory: Arc<Directory>) -> Self {
        Self { directory, asked: 0, spellings: Vec::new() }
    }

    /// The pool of a server whose authority was written like this before.
    #[inline]
    pub(super) fn find(&self, pools: &[TargetPool], origin: Origin<'_>) -> Option<u32> {
        let pool = pools.iter().position(|pool| pool.is_called(origin)).map(|pool| pool as u32);
        pool.or_else(|| {
            let same = |spelling: &&Spelling| {
                spelling.https == origin.https && spelling.authority == origin.authority
            };
            self.spellings.iter().find(same).map(|spelling| spelling.pool)
        })
    }

    /// Remembers that the server of a pool was written like this, too.
    pub(super) fn remember(&mut self, origin: Origin<'_>, pool: u32) {
        if self.spellings.len() < SPELLINGS {
            let (https, authority) = (origin.https, origin.authority.to_vec());
            self.spellings.push(Spelling { https, authority, pool });
        }
    }

    /// Counts the pools whose server is being looked for.
    pub(super) fn count_asked(&mut self, pools: &[TargetPool]) {
        let asked = |pool: &&TargetPool| matches!(pool.resolve_state, ResolveState::Resolving);
        self.asked = pools.iter().filter(asked).count() as u32;
    }

    /// Returns `true` if servers are being looked for.
    #[inline]
    pub(super) const fn is_asking(&self) -> bool {
        self.asked > 0
    }

    /// Settings for servers that the plan does not name; `None` if the plan has no way to meet one.
    #[inline]
    pub(super) fn dynamic_origins(&self) -> Option<&DynamicOrigins> {
        self.directory.dynamic_origins()
    }
}
