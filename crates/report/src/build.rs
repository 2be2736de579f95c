//! From the record of a run to its result.

pub(crate) mod assembly;
pub(crate) mod distribution;
pub mod fault;
pub(crate) mod headline;
pub(crate) mod pace;
