//! Tests of the crate by its public interface, as one program.

mod headline;
mod histogram;
mod recorder;
mod threshold;
mod verdict;
