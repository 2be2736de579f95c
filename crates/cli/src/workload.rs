//! The ready-made workloads.

pub(crate) mod audit;
pub(crate) mod auxiliary_request;
pub(crate) mod cache;
pub(crate) mod canister;
pub(crate) mod canister_charts;
pub(crate) mod crud;
pub(crate) mod ingest;
pub(crate) mod ingest_demo;
pub(crate) mod printed_plan;
pub(crate) mod sql_answer;
pub(crate) mod store;
pub(crate) mod verification;
