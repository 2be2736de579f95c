//! Think time.

use plimsoll_core::{Nanos, Random};

/// How long a user thinks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pause {
    /// Always as long.
    Fixed(Nanos),
    /// Uniformly distributed between two times, both included.
    Uniform(Nanos, Nanos),
    /// Exponentially distributed with this mean.
    Exponential(Nanos),
}

impl Pause {
    /// One draw.
    pub fn draw(&self, random: &mut Random) -> Nanos {
        let _ = random;
        match *self {
            Self::Fixed(time) | Self::Exponential(time) | Self::Uniform(time, _) => time,
        }
    }
}
