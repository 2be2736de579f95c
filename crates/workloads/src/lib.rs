//! Ready-made workloads: a few settings become a plan, which is carried out like any other. There is no code
//! of a workload in the engine, and its actions can be printed and changed.
//!
//! A workload is a struct with its settings and their defaults; its `document` makes the content of a plan
//! file. Some bodies of such plans are made here, too, and so are the judges of the answers to them: their
//! keys are [`PARTS`] of plans.
#![forbid(unsafe_code)]

pub mod canister;
pub mod crud;
mod error;
pub mod ingest;
pub mod key_value;
pub mod websocket;

pub use error::WorkloadError;
use plimsoll_plan::PlanParts;

/// Keys of plan files whose values these workloads read.
pub const PARTS: PlanParts = PlanParts { bodies: &[&ingest::BATCH, &canister::MESSAGE], ..PlanParts::NONE };
