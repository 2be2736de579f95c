//! Deliberate errors of a server.

/// A share of what a server is asked for is treated wrongly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lies<K> {
    /// The way in which they are treated wrongly.
    pub kind: K,
    /// Share of what is asked for, 0 to 1. The seed and the number of each request alone decide which are
    /// hit.
    pub share: f64,
}
