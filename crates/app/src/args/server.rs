//! Flags of the built-in servers.

pub(crate) mod host;
pub(crate) mod ingest;
pub(crate) mod replica;
pub(crate) mod sink;
pub(crate) mod sink_values;
pub(crate) mod target;
