//! Tests of the crate by its public interface, as one program.

mod speed;
mod synth;
