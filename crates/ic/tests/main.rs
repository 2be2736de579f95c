//! Tests of the crate by its public interface, as one program.

mod certificates;
mod keys;
mod oracle;
