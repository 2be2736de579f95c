//! Tests of the crate by its public interface, as one program.

mod parsers;
mod sampler;
mod servers;
