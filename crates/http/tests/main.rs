//! Tests of the crate by its public interface, as one program.

mod ask;
mod serve;
