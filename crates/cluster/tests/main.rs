//! Tests of the crate by its public interface, as one program.

mod proxy;
mod specs;
