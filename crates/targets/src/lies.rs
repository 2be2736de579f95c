//! Deliberate errors of a server.

/// A share of a server's requests that is answered wrongly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lies<K> {
    /// The way in which they are treated wrongly.
    pub kind: K,
    /// Share of requests, 0 to 1. The seed and the number of each request alone decide which are hit.
    pub share: f64,
}
