//! Seeded random numbers.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded stream of random numbers (xoshiro256++: a named, portable algorithm, so that a seed gives the
/// same run on every machine and in every version).
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream number `stream` of `seed`. Streams of one seed are independent for practical purposes: the
    /// pair is mixed by SplitMix64, which `seed_from_u64` applies.
    pub fn new(seed: u64, stream: u64) -> Self {
        // The odd constant is the golden-ratio increment of SplitMix64: neighbouring streams land far apart.
        Self(Xoshiro256PlusPlus::seed_from_u64(
            seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32),
        ))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `[0, 1)`, with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `0..bound`; zero for a bound of zero. Multiply-shift: the bias is below `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with the given mean (inverse transform: `-mean * ln(1 - u)`).
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (-self.unit()).ln_1p()
    }

    /// Standard normal (Box–Muller, the cosine half; one call takes two uniforms).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (-self.unit()).ln_1p()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream_and_another_stream_differs() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.bits(), random.bits(), random.bits()]
        };
        assert_eq!(draw(7, 0), draw(7, 0));
        assert_ne!(draw(7, 0), draw(7, 1));
        assert_ne!(draw(7, 0), draw(8, 0));
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut random = Random::new(1, 0);
        let n = 200_000;
        let mean = (0..n).map(|_| random.exponential(3.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 3.0).abs() < 0.03, "{mean}");
        let squares = (0..n).map(|_| random.normal().powi(2)).sum::<f64>() / f64::from(n);
        assert!((squares - 1.0).abs() < 0.02, "{squares}");
        assert!((0..1000).all(|_| random.below(10) < 10));
    }
}
