//! Tests of the crate by its public interface, as one program.

mod cost;
mod limits;
mod step;
mod world;
mod wrk;
