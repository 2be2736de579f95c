//! Tests of the crate by its public interface, as one program.

mod change_points;
mod comparison;
mod ranks;
mod scalability;
mod search;
mod sequential;
mod simulation;
