//! Tests of the crate by its public interface, as one program.

mod compile;
mod document;
mod resolve;
mod script;
