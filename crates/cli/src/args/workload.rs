//! Flags of the ready-made workloads.

pub(crate) mod cache;
pub(crate) mod canister;
pub(crate) mod cluster;
pub(crate) mod crud;
pub(crate) mod ingest;
pub(crate) mod ingest_demo;
