//! A run on a fleet: this process is its coordinator.

pub(crate) mod broker;
pub(crate) mod conduct;
pub(crate) mod course;
pub(crate) mod merging;
pub(crate) mod parcel;
