//! Runs held against each other: two groups, many runs over time, and repeated runs of one plan.

pub mod comparison;
pub mod history;
pub mod interleaved;
pub mod measure;
pub mod repeated;
