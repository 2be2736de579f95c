//! Ways to steer a run while it goes on.

pub(crate) mod keys;
pub(crate) mod live_stats;
pub(crate) mod port;
pub(crate) mod rate;
pub(crate) mod rate_file;
pub(crate) mod steering;
