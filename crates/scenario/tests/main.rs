//! Tests of the crate by its public interface, as one program.

mod data;
mod dialects;
mod forward;
mod http2;
