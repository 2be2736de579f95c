//! What a server does wrongly on purpose.

/// A share of what a server is asked for is treated wrongly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lies<K> {
    /// How.
    pub kind: K,
    /// How many, 0 to 1. Which ones depends on the seed and on their numbers alone.
    pub share: f64,
}
