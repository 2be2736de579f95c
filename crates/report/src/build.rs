//! From the record of a run to its result, and from those of several runs to that of a search.

pub(crate) mod assembly;
pub mod capacity_search;
pub(crate) mod distribution;
pub mod fault;
pub(crate) mod headline;
pub(crate) mod level_reason;
pub mod level_sweep;
pub(crate) mod pace;
pub mod trial_run;
