//! Tests of the crate by its public interface, as one program.

mod error_rows;
mod headline;
mod recorder;
mod threshold;
mod verdict;
