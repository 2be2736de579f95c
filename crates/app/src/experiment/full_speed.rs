//! Runs at full speed against the built-in sink.

use plimsoll_core::Nanos;
use plimsoll_document::Problem;

use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::experiment::campaign::Campaign;

/// Time for connections to be opened and caches to be filled.
pub(crate) const WARMUP: Nanos = Nanos::from_millis(300);

/// Connections of the cells that are not about their number.
pub(crate) const CONNECTIONS: u64 = 64;

pub(crate) fn interrupted(campaign: &Campaign) -> Result<(), Failure> {
    match campaign.interrupted() {
        None => Ok(()),
        Some(signal) => Err(Failure {
            exit: Exit::Interrupted(signal),
            ..Failure::environment(Problem::new("interrupted: nothing was kept"))
        }),
    }
}
